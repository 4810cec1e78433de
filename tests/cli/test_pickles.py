# SPDX-License-Identifier: BSD-3-Clause
"""No file makes a command run code that is in it; test_zarr.py has the same for stores."""

from __future__ import annotations

import pytest

pytest.importorskip("typer")

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .support import PICKLE, Capture, Code, refused

OBJECTS: npt.NDArray[Any] = np.array([[Code()]], dtype=object)
FIELDS = np.zeros((2, 2), [("a", object)])


def npy(array: npt.NDArray[Any]) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def archive(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as target:
        for name, content in members.items():
            target.writestr(name, content)
    return stream.getvalue()


def safetensors(header: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header + PICKLE


TORCH = archive({"model/data.pkl": PICKLE, "model/version": b"3"})
FILES = {
    "objects.npy": npy(OBJECTS),
    "fields.npy": npy(FIELDS),
    "pickle.npy": PICKLE,
    "objects.npz": archive({"x.npy": npy(OBJECTS)}),
    "fields.npz": archive({"x.npy": npy(FIELDS)}),
    "pickle.npz": archive({"x.npy": PICKLE, "x.pkl": PICKLE}),
    "torch.npz": TORCH,
    "torch.npy": TORCH,
    **{f"model.{suffix}": TORCH for suffix in ("pt", "pth", "bin", "ckpt", "PT")},
    **{f"old.{suffix}": PICKLE for suffix in ("pt", "bin", "onnx", "pkl", "json")},
    "pickle.safetensors": PICKLE,
    "objects.safetensors": safetensors(
        b'{"x":{"dtype":"O","shape":[1,%d],"data_offsets":[0,%d]}}' % (len(PICKLE), len(PICKLE))
    ),
    "pickle.parquet": PICKLE,
    "pickle.arrow": PICKLE,
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_pickles_is_refused(name: str, capsys: Capture) -> None:
    if name.endswith((".parquet", ".arrow")):
        pytest.importorskip("pyarrow")
    Path(name).write_bytes(FILES[name])
    for command in (
        *("identify {0}", "add {0} -o y{1}", "add {0} --in-place", "embed {0} {0} -o y.npy"),
        "tables --config {0} --rows 3 -o y.npz",
    ):
        is_table = "--in-place" in command and name.endswith((".parquet", ".arrow"))
        refused(command.format(name, Path(name).suffix), capsys, code=2 if is_table else 1)
    assert os.listdir() == [name]
