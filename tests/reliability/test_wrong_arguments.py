# SPDX-License-Identifier: BSD-3-Clause
"""Calls that do not fit a signature: arguments that are unknown, missing, given twice, or given by place."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import pytest

import fastpe

from ..oracles.refusals import Refused, check_refused, rows

FLIP = {"flip_sin_to_cos": "True", "downscale_freq_shift": "0"}
# Every public function and method, with arguments that it takes: the first ones may be given by place.
CALLS: dict[str, dict[str, str]] = {
    "fastpe.encode": {"positions": "3", "d_model": "8"},
    "fastpe.add_": {"x": "x"},
    "fastpe.add": {"x": "x"},
    "fastpe.embed": {"ids": "ids", "table": "table"},
    "fastpe.encode_grid": {"shape": "(2, 3)", "d_model": "8", "convention": "'mae2d'"},
    "fastpe.encode_coordinates": {"coordinates": "[[0, 1]]", "d_model": "8", "convention": "'mae2d'"},
    "fastpe.timestep_embedding": {"timesteps": "[1]", "embedding_dim": "8", **FLIP},
    "fastpe.identify": {"table": "table"},
    "fastpe.query_scale": {"config": "{'model_type': 'llama'}", "positions": "3"},
    "fastpe.rotate_by_tables_": {"x": "x[0]", "cos": "cos", "sin": "sin", "interleaved": "True"},
    "fastpe.rotate_by_tables": {"x": "x[0]", "cos": "cos", "sin": "sin", "interleaved": "True"},
    "fastpe.show_config": {},
    "fastpe.PositionalEncoding": {"d_model": "8"},
    "enc.encode": {"positions": "3"},
    "enc.add_": {"x": "x"},
    "enc.add": {"x": "x"},
    "enc.embed": {"ids": "ids", "table": "table"},
    "enc.shift": {"pe": "x", "by": "3"},
    "enc.warm_up": {},
    "fastpe.PositionalEncoding.from_config": {"config": "{'model_type': 'whisper'}"},
    "fastpe.RotaryEmbedding": {"rotary_dim": "8", "interleaved": "False"},
    "fastpe.RotaryEmbedding.from_config": {"config": "{'model_type': 'llama', 'head_dim': 8}"},
    "fastpe.RotaryEmbedding.layers_from_config": {"config": "{'model_type': 'llama', 'head_dim': 8, 'num_hidden_layers': 2}"},
    "rope.rotate_": {"x": "x[0]"},
    "rope.rotate": {"x": "x[0]"},
    "rope.shift_": {"x": "x[0]", "by": "3"},
    "rope.shift": {"x": "x[0]", "by": "3"},
    "rope.tables": {"positions": "3"},
    "rope.warm_up": {},
    "fastpe.RotaryEmbedding.from_layout": {"layout": "'wan'", "head_dim": "128"},
    "fastpe.RotaryLayout.from_config": {"config": "{'model_type': 'qwen2_vl'}"},
    "fastpe.text_inputs": {"config": "{'model_type': 'llama'}", "input_ids": "[[0, 0]]"},
    "fastpe.vision_inputs": {"config": "{'model_type': 'qwen2_vl', 'vision_config': {}}", "grid_thw": "[[1, 2, 2]]"},
    "fastpe.audio_inputs": {"config": "{'model_type': 'qwen2_5_omni', 'audio_config': {}}", "feature_lens": "[9]"},
    "fastpe.resize_table": {"table": "np.ones((4, 2), 'f4')", "shape": "(3, 3)", "convention": "'vit'"},
    "fastpe.resize_taps": {"shape": "(3, 3)", "trained_shape": "(2, 2)", "convention": "'vit'"},
    "fastpe.alibi_slopes": {"num_heads": "8"},
    "fastpe.attention_mask": {"seq_len": "3", "causal": "True"},
    "fastpe.deberta_buckets": {"relative_positions": "ids", "num_buckets": "256", "max_position": "512"},
    "fastpe.window_relative_index": {"shape": "(2, 3)"},
    "fastpe.window_relative_coordinates": {"shape": "(2, 3)"},
    "fastpe.relative_buckets": {"relative_positions": "ids", "bidirectional": "True"},
    "fastpe.pair_order": {"rotary_dim": "8", "to_interleaved": "True"},
    "fastpe.ResizeConvention": {"name": "'mine'", "mode": "'bicubic'"},
    "fastpe.Convention": {"name": "'mine'"},
    "fastpe.GridConvention": {"name": "'mine'", "axis": "enc.convention"},
}  # fmt: skip
# Whose fields, or second array, may be given by place: dataclasses and identify(cos, sin), and show_config as NumPy's.
# Others take several arrays.
BY_PLACE = {
    "fastpe.Convention",
    "fastpe.GridConvention",
    "fastpe.ResizeConvention",
    "fastpe.identify",
    "fastpe.show_config",
}


SETUP = """
import numpy as np, fastpe
enc, rope = fastpe.PositionalEncoding(8), fastpe.RotaryEmbedding(8, interleaved=False)
layout = fastpe.rotary_layouts["wan"]
x, ids, table = np.ones((2, 3, 8), np.float32), np.array([[1, 2, 0], [3, 0, 0]]), fastpe.encode(40, 8)
cos, sin = np.ones((9, 4), np.float32), np.zeros((9, 4), np.float32)
raw_encoder = fastpe.PositionalEncoding.__new__(fastpe.PositionalEncoding)
raw_embedding = fastpe.RotaryEmbedding.__new__(fastpe.RotaryEmbedding)
"""


def names() -> dict[str, Any]:
    made: dict[str, Any] = {}
    exec(SETUP, made)  # noqa: S102
    return made


def parameters_of(function: str) -> list[inspect.Parameter]:
    return list(inspect.signature(eval(function, names())).parameters.values())


def written(function: str, arguments: dict[str, str], *by_place: str) -> str:
    return f"{function}({', '.join([*by_place, *(f'{name}={value}' for name, value in arguments.items())])})"


def test_every_public_function_is_here() -> None:
    functions = {f"fastpe.{name}" for name in fastpe.__all__ if callable(getattr(fastpe, name))}
    # What identify answers and the presets are made of: not for users to make.
    assert functions - {"fastpe.ModelConfig", "fastpe.Identification", "fastpe.RotaryLayout"} <= set(CALLS)
    for name in ("enc", "rope", "layout"):
        methods = {each for each in dir(names()[name]) if not each.startswith("_")}
        methods = {f"{name}.{each}" for each in methods if callable(getattr(names()[name], each))}
        assert methods - {
            "enc.from_config",
            "rope.from_config",
            "rope.layers_from_config",
            "rope.from_layout",
            "layout.from_config",
            "layout.positions",
        } <= set(CALLS)


@pytest.mark.parametrize("function", CALLS)
def test_calls_that_do_not_fit(function: str) -> None:
    arguments = CALLS[function]
    eval(written(function, arguments), names())

    for unknown in ("zzz", "ofset"):
        check_refused(written(function, {**arguments, unknown: "1"}), TypeError, unknown, names())

    for missing in arguments:
        given = {name: value for name, value in arguments.items() if name != missing}
        check_refused(written(function, given), TypeError, missing, names())

    parameters = parameters_of(function)
    takes_several_arrays = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    by_place = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD and each.name in arguments]
    values = [arguments[name] for name in by_place]
    others = {name: value for name, value in arguments.items() if name not in by_place}
    eval(written(function, others, *values), names())
    if by_place:
        check_refused(written(function, {**others, by_place[0]: "1"}, *values), TypeError, by_place[0], names())
    if function not in BY_PLACE:
        options = [each for each in parameters if each.name not in by_place and each.kind is not each.VAR_POSITIONAL]
        assert {each.kind for each in options} <= {inspect.Parameter.KEYWORD_ONLY}
        if not takes_several_arrays:
            check_refused(written(function, others, *values, "None"), TypeError, "positional", names())


REFUSED: Refused = {
    (AttributeError, "zzz"): ["fastpe.zzz"],
    (TypeError, "positional"): ["fastpe.RotaryEmbedding(8, True)"],
    (TypeError, "self"): [
        # Objects whose __init__ never ran: subclasses that forget to call it
        "raw_encoder.encode(3)",
        "raw_encoder.add_(x)",
        "raw_embedding.rotate_(x)",
        "raw_embedding.tables(3)",
    ],
    # A layout cannot be changed; encodings and embeddings are in tests/arrays/test_objects.py
    (dataclasses.FrozenInstanceError, "name"): ["setattr(layout, 'name', 'x')", "delattr(layout, 'name')"],
}


@pytest.mark.parametrize(("call", "error", "arguments"), rows(REFUSED))
def test_refused(call: str, error: type[Exception], arguments: str) -> None:
    check_refused(call, error, arguments, names())
