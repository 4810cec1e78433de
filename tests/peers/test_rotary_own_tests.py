# SPDX-License-Identifier: BSD-3-Clause
"""Other projects' own tests of rotary embeddings, with fastpe in the place of what they test.

No package contains these tests. `tools/own_tests.sh` fetches them:

    pip install -e '.[test,peers]'                  # keras-hub as the head of test_peers.py says
    tools/own_tests.sh sources
    FASTPE_TEST_SOURCES=sources pytest -m peers tests/peers/test_rotary_own_tests.py
"""

from __future__ import annotations

import functools
import json
import math
import os
import pathlib
import re
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fastpe

from .test_rotary import embedding_of_keras_hub, imported

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

Array = npt.NDArray[Any]


def source(project: str, path: str) -> pathlib.Path:
    sources = os.environ.get("FASTPE_TEST_SOURCES")
    if not sources:
        pytest.skip("the project's own tests are in no package; see the head of this file")
    file = pathlib.Path(sources, project, path)
    if not file.exists():
        pytest.skip(f"{file} is not there; see the head of this file")
    return file


class Near(float):
    """A float that equals its neighbours: a test may compare a factor with its own formula in float64."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and math.isclose(self, other, rel_tol=2.0**-52)

    __hash__ = float.__hash__


class Outcomes:
    """A plugin of pytest: the outcome of each test, and whether the test called fastpe."""

    def __init__(self) -> None:
        self.calls = 0
        self.found: dict[str, str] = {}

    def counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function that takes the place of a project's, with its calls counted."""

        @functools.wraps(function)
        def counting(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            return function(*args, **kwargs)

        return counting

    def pytest_runtest_setup(self) -> None:
        self.calls = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid.rpartition("::")[2]
        if report.failed:
            self.found[name] = f"failed: {report.longreprtext}"
        elif report.when == "call":
            self.found[name] = "passed" if self.calls else "did not call fastpe"

    def run(self, file: pathlib.Path, words: str) -> dict[str, str]:
        """Runs the tests of a file whose names fit the words, as they stand."""
        options = ["-k", words, "--import-mode=importlib", "--noconftest", "-c", os.devnull]
        plugins = ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:terminal", "-p", "no:logging"]
        pytest.main([str(file), f"--rootdir={file.parent}", *options, *plugins], plugins=[self])
        return self.found


def passes(outcomes: dict[str, str], count: int) -> None:
    wrong = [f"{name} {outcome}" for name, outcome in outcomes.items() if outcome != "passed"]
    if wrong:
        pytest.fail("\n\n".join(wrong), pytrace=False)
    # A release may add tests, and must not lose the ones that are known.
    assert len(outcomes) >= count


# transformers


def test_transformers_tests_of_scalings(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but two kinds: 9 are of warnings and errors of its configurations, which are not replaced, and the 3 of "llama3"
    want `default / factor <= frequency` in float32 without a margin, which an exact frequency misses by its rounding.
    """
    file = source("transformers", "tests/utils/test_modeling_rope_utils.py")
    torch, outcomes = imported("torch"), Outcomes()
    imported("parameterized")

    @outcomes.counted
    def frequencies(config: Any, device: Any = None, seq_len: Any = None, layer_type: str | None = None) -> Any:
        written = json.loads(config.to_json_string(use_diff=False))
        # Where no length is given, theirs take the shortest.
        length = 1 if seq_len is None else int(seq_len)
        rope = fastpe.RotaryEmbedding.from_config(written, layer_type=layer_type, seq_len=length)
        return torch.tensor(rope.frequencies, dtype=torch.float32, device=device), Near(rope.attention_factor)

    functions = imported("transformers.modeling_rope_utils").ROPE_INIT_FUNCTIONS
    for rope_type in list(functions):
        monkeypatch.setitem(functions, rope_type, frequencies)
    for model, name in (("llama", "Llama"), ("gemma3", "Gemma3")):
        kind = getattr(imported(f"transformers.models.{model}.modeling_{model}"), f"{name}RotaryEmbedding")
        monkeypatch.setattr(kind, "compute_default_rope_parameters", staticmethod(frequencies))
    passes(outcomes.run(file, "(numerically or resets) and not llama3"), 21)


# keras-hub


def test_keras_hub_tests_of_its_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others ask for shapes and dtypes of what is not computed."""
    file = source("keras-hub", "keras_hub/src/layers/modeling/rotary_embedding_test.py")
    os.environ.setdefault("KERAS_BACKEND", "torch")
    torch, outcomes = imported("torch"), Outcomes()
    layer = imported("keras_hub.layers").RotaryEmbedding
    # Its class of test cases needs these two for other layers.
    tensorflow: Any = types.ModuleType("tensorflow")
    tensorflow.test = types.SimpleNamespace(TestCase=imported("keras.src.testing").TestCase)
    tensorflow.Tensor = tensorflow.RaggedTensor = type("Tensor", (), {})
    tensorflow.string = "string"
    with monkeypatch.context() as context:
        context.setitem(sys.modules, "tensorflow", tensorflow)
        context.setitem(sys.modules, "grain", types.ModuleType("grain"))
        imported("keras_hub.src.tests.test_case")

    @outcomes.counted
    def call(self: Any, inputs: Any, start_index: Any = 0, positions: Any = None) -> Any:
        x = np.moveaxis(inputs.detach().cpu().numpy(), (self.feature_axis, self.sequence_axis), (-1, 1)).copy()
        rope = embedding_of_keras_hub(self, x.shape[-1])
        where = {"offset": int(start_index)} if positions is None else {"positions": positions.cpu().numpy()}
        rope.rotate_(x, seq_axis=1 - x.ndim, **where)
        return torch.from_numpy(np.moveaxis(x, (-1, 1), (self.feature_axis, self.sequence_axis)).copy()).to(inputs)

    monkeypatch.setattr(layer, "call", call)
    passes(outcomes.run(file, "not output_shape and not float16 and not session"), 9)


# x-transformers


def test_x_transformers_tests_of_models_with_rotary_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    file = source("x-transformers", "tests/test_x_transformers.py")
    torch, outcomes = imported("torch"), Outcomes()
    module = imported("x_transformers.x_transformers")

    @outcomes.counted
    def forward(self: Any, t: Any, offset: int = 0) -> Any:
        freqs = self.inv_freq.double().numpy() / self.interpolation_factor
        rope = fastpe.RotaryEmbedding(2 * len(freqs), interleaved=True, freqs=freqs)
        angles = rope.tables(t.detach().numpy().reshape(-1, t.shape[-1]), form="angles")
        # It wants one angle for each column.
        return torch.from_numpy(np.repeat(angles, 2, -1)), 1.0

    @outcomes.counted
    def rotation(t: Any, freqs: Any, scale: Any = 1.0) -> Any:
        x = t.detach().numpy().copy()
        angles = freqs.numpy()[:, -x.shape[-2] :, ::2]
        angles = np.broadcast_to(angles, (x.shape[0], *angles.shape[1:]))
        cos, sin = (function(angles).reshape(-1, angles.shape[-1]) for function in (np.cos, np.sin))
        positions = np.arange(len(cos)).reshape(angles.shape[:2])
        return torch.from_numpy(fastpe.rotate_(x, cos=cos, sin=sin, interleaved=True, positions=positions))

    monkeypatch.setattr(module.RotaryEmbedding, "forward", forward)
    monkeypatch.setattr(module, "apply_rotary_pos_emb", rotation)
    # The first one's other half is of xPos.
    names = ["custom_rotary_pos_emb and False", "pos_emb_parity and rotary", "cross_attn_rotary"]
    passes(outcomes.run(file, " or ".join([*names, "not_include_past and not continuous"])), 7)


# ONNX Runtime


def numbers_in(test: str) -> dict[str, Any]:
    """The variables of a test in C++ that are a number or a vector."""
    found: dict[str, Any] = {name: int(value) for name, value in re.findall(r"int(?:64_t)? (\w+) = (\d+);", test)}
    for kind, name, values in re.findall(r"std::vector<(\w+)> (\w+) = {([^}]*)}", re.sub("//.*", "", test)):
        dtype = np.float32 if kind == "float" else np.int64
        found[name] = np.array([value.strip().rstrip("f") for value in values.split(",") if value.strip()], dtype)
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("path", ["contrib_ops", "providers/cpu/llm"], ids=["com.microsoft", "ONNX"])
def test_onnxruntime_tests_of_its_operators(path: str, dtype: Any) -> None:
    """The others are of errors."""
    text = source("onnxruntime", f"onnxruntime/test/{path}/rotary_embedding_op_test.cc").read_text("utf-8")
    tests = dict(re.findall(r"^TEST\(\w+, (\w+)\) {(.*?)^}", text, re.MULTILINE | re.DOTALL))
    cases = {name: numbers_in(body) for name, body in tests.items() if "RunTests(" in body}
    assert len(cases) >= 4
    for name, case in cases.items():
        batch, length, heads, columns = (
            case[each] for each in ("batch_size", "sequence_length", "num_heads", "head_size")
        )
        is_4d = "4D" in name
        shape = (batch, heads, length, columns) if is_4d else (batch, length, heads, columns)
        pairs = (case.get("rotary_embedding_dim") or columns) // 2
        cos, sin = (case[f"{each}_cache"].reshape(-1, pairs).astype(dtype) for each in ("cos", "sin"))
        positions = case["position_ids"]
        if positions.size == 1:
            positions = positions + np.arange(length)
        elif positions.size == 0:
            # Each row has its own row of the tables.
            positions = np.arange(batch * length)
        positions = np.broadcast_to(positions.reshape(-1, length), (batch, length))
        x = case["input_data"].reshape(shape).astype(dtype)
        where: dict[str, Any] = {"seq_axis": -2 if is_4d else -3, "positions": positions}
        fastpe.rotate_(x, cos=cos, sin=sin, interleaved=bool(case["interleaved"]), **where)
        # Their tolerance, for both dtypes; the numbers have four digits.
        np.testing.assert_allclose(x, case["output_data"].reshape(shape), rtol=0, atol=0.002, err_msg=name)
