# SPDX-License-Identifier: BSD-3-Clause
"""No file makes a command run code that is in it; test_zarr.py has the same for stores."""

from __future__ import annotations

import pytest

pytest.importorskip("typer")

import io
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .support import Capture, refused, run


class Code:
    """What pickle calls when it reads one of these."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("ran",)


PICKLE = pickle.dumps(Code(), protocol=0)
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
        refused(command.format(name, Path(name).suffix), capsys)
    assert os.listdir() == [name]


def write_parquet(table: Any, name: str) -> None:
    from pyarrow import parquet

    parquet.write_table(table, name)


def write_arrow(table: Any, name: str) -> None:
    from pyarrow import ipc

    with (ipc.new_stream if name.startswith("stream") else ipc.new_file)(name, table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize(
    ("name", "write"), [("x.parquet", write_parquet), ("x.arrow", write_arrow), ("stream.arrow", write_arrow)]
)
@pytest.mark.parametrize("place", ["embeddings", "beside", "inside"])
@pytest.mark.filterwarnings("default")
def test_types_of_columns_are_not_unpickled(
    name: str, write: Callable[[Any, str], None], place: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    pa = pytest.importorskip("pyarrow")
    python_type = {b"ARROW:extension:name": b"arrow.py_extension_type", b"ARROW:extension:metadata": PICKLE}
    vectors, numbers = pa.list_(pa.float32()), pa.int32()
    inner = pa.struct([pa.field("a", numbers, metadata=python_type if place == "inside" else None)])
    fields = [
        pa.field("x", vectors, metadata=python_type if place == "embeddings" else None),
        pa.field("n", numbers, metadata=python_type if place == "beside" else None),
        pa.field("s", inner),
    ]
    columns = [pa.array([[1.0]] * 3, vectors), pa.array(range(3), numbers), pa.array([{"a": 1}] * 3, inner)]
    write(pa.table(columns, schema=pa.schema(fields)), name)
    target = f"y{Path(name).suffix}"
    code = run(f"add {name} -o {target} -q")
    assert set(os.listdir()) == ({name, target} if code == 0 else {name})
    # A pyarrow that would unpickle them reads no file.
    monkeypatch.setattr(pa, "__version__", "14.0.2")
    refused(f"add {name} -o {target}", capsys, "pyarrow is 14.0.2", "pyarrow>=15", code=2)
