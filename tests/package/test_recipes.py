# SPDX-License-Identifier: BSD-3-Clause
"""The documentation's recipes for servers, runtimes and tables, run as they stand there, and the server of examples/ under load.

Run with: ``pip install '.[test]' --group recipes && pytest tests/package/test_recipes.py``; more load: add ``-m slow -s``.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
from pathlib import Path

import numpy as np
import pytest

import fastpe

from ..oracles.docs_pages import recipe
from ..oracles.examples import example

# Of the libraries, and of what they depend on.
pytestmark = pytest.mark.filterwarnings("ignore")


def require(*libraries: str) -> None:
    missing = [name for name in libraries if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}: pip install --group recipes in a clone")


@pytest.mark.parametrize("library", ["onnxruntime", "datasets", "polars", "torch.utils.data"])
def test_recipe(library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require(library.partition(".")[0], *(["onnx"] if library == "onnxruntime" else []))
    if library == "torch.utils.data" and multiprocessing.get_start_method() != "fork":
        pytest.skip("a snippet has no module that workers could import, where they are not forked")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    rng = np.random.default_rng(0)
    batch, seq_len, d_model = 4, 128, 256
    x = rng.standard_normal((batch, seq_len, d_model), dtype=np.float32)
    table = rng.standard_normal((1000, d_model), dtype=np.float32)
    before = x.copy()
    # What the guide's snippets before the recipe have defined.
    names = {"np": np, "fastpe": fastpe, "x": x, "batch": batch, "seq_len": seq_len, "d_model": d_model}
    names |= {"table": table, "ids": rng.integers(0, 1000, (batch, seq_len))}
    exec(recipe(library), names)  # noqa: S102
    np.testing.assert_array_equal(x, before)


# ---- the server of examples/asgi_server.py, which listens on 127.0.0.1 alone


def test_the_application_without_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    require("onnx", "onnxruntime")
    example("asgi_server").main()
    lines = capsys.readouterr().out.splitlines()
    assert [line[:4] for line in lines] == ["200:", "400:", "400:"]
    assert "ids" in lines[1]


def test_the_decoder_in_onnxruntime_has_the_logits_of_the_one_in_numpy(capsys: pytest.CaptureFixture[str]) -> None:
    require("onnx", "onnxruntime")
    example("numpy_decoder")
    example("onnx_decoder").main()
    assert "logits as in NumPy" in capsys.readouterr().out


def test_the_vision_encoder_in_onnxruntime_encodes_images_together_as_alone(capsys: pytest.CaptureFixture[str]) -> None:
    require("onnx", "onnxruntime")
    example("vision_encoder_host").main()
    assert "tokens" in capsys.readouterr().out
