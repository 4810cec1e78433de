# SPDX-License-Identifier: BSD-3-Clause
"""Values that only rotary embeddings refuse, before anything is written, and the last values that they take.

What sums refuse as well is in tests/reliability/test_bad_input.py, which asks both; scalings are in test_frequencies.py.
"""

from __future__ import annotations

import functools
import types
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe import RotaryEmbedding

from ..oracles.reference import FOREIGN
from ..oracles.refusals import Refused, check_refused, each, naming, rows

# `Rope(..)` makes an embedding, `by(..)` rotates with the tables cos and sin, and `given(..)` with those of the call.
REFUSED: Refused = {
    # ---- Arrays
    (TypeError, "x"): ["rope.rotate_((q, k))"],
    (ValueError, "x"): [
        "rope.rotate_(x[..., :3])",
        *each("rope.shift_({}, by=1)", "readonly | nested | x[..., :2]"),
        "rope.rotate(misaligned)",
        *each("by({})", "readonly | x[..., :3] | x, cos=np.tile(cos, 2), sin=np.tile(sin, 2)"),
        "by(x, cos=np.ones((9, 3), 'f4'), sin=np.ones((9, 3), 'f4'))",
    ],
    (TypeError, "array"): [
        *each("rope.rotate_(x, {})", "None | 5 | np.int64(3) | [0, 1, 2] | [[0, 1, 2]] | np.arange(3)"),
        *each("rope.rotate_(x, {})", "np.ones((2, 3), bool) | x.astype('f8') | x.copy(), q.astype('f2')"),
    ],
    (ValueError, "array"): [
        "rope.rotate_(x, readonly)",
        *each("rope.rotate_(q, {})", "x[0, 0] | k[..., :2] | k[:, :, :2]"),
        # a batch of its own, where rows of the batch differ
        *each("rope.rotate_(q, {}, offset=[1, 2])", "k[:1] | k[0]"),
        *each("rope.rotate_(q, k[:1], {})", "lengths=[2, 3] | offset=[2] | lengths=[2]"),
        *each("rope.rotate_(k[:1], q, {})", "offset=[2] | lengths=[2]"),
        "rope.rotate_(q, k[0, 0], positions=[[0, 1, 2], [1, 2, 3]])",
        "rope.rotate_(q, k[:1], valid=[[True] * 3] * 2)",
        "rope.shift_(q, k[:1], by=[[1], [2]])",
        # axes of its own, where they are counted from the first
        "rope.rotate_(q.transpose(0, 2, 1, 3), k[:, 0], seq_axis=-3)",
        "rope.rotate_(k[:, 0], q.transpose(0, 2, 1, 3), seq_axis=-3)",
        "rope.rotate_(packed, packed[:, 0].copy(), seq_axis=0)",
        # cosines and sines, which would be rotated as well
        "rope.rotate_(x, *rope.tables(3))",
        *each("rope.rotate_(x, x.copy(), *rope.tables(3, form={}))", "'tile' | 'repeat' | 'halves'"),
    ],
    (TypeError, "out"): [
        *each("rope.rotate(x, out={})", "x.astype('f8') | x.tolist()"),
        *each("rope.tables(3, out={})", "cos[:3] | (cos[:3],) | (cos[:3], sin[:3], sin[3:6])"),
        *each("rope.tables(3, out=(cos[:3], {}))", "None | sin[:3].tolist() | sin[:3].astype('f8')"),
        *each("rope.tables(3, form='cos_sin', out={})", "(cos[:3], sin[:3]) | x[0], dtype='f8' | x[0].astype('i4')"),
        "rope.tables(3, form='angles', out=cos[:3].astype('f2'))",
        *each("rope.tables(3, form='complex', out={})", f"cos[:3] | cos[:3].astype('{FOREIGN}c8')"),
        "rope.tables(3, form='complex', out=cos[:3].astype('c16'), dtype='f4')",
    ],
    (ValueError, "out"): [
        *each("rope.rotate(x, out={})", "x[:1] | x[None] | wide | readonly | nested"),
        *each("rope.tables(3, out=(cos[:3], {}))", "sin[:2] | cos[:3] | cos[2:5] | np.broadcast_to(sin[0], (3, 2))"),
        "rope.tables(3, form='tile', out=(cos[:3], sin[:3]))",
        "rope.tables(3, form='cos_sin', out=readonly[0])",
        *each("rope.tables(3, form='pairs', out={})", "x[0] | np.zeros((3, 4, 2), np.float32)[:, ::2]"),
        "rope.tables(3, form='complex', out=np.zeros((3, 4), np.complex64)[:, ::2])",
    ],
    # ---- Memory that is shared
    (ValueError, "x array"): [
        "rope.rotate_(x, x)",
        "rope.rotate_(x, k[:, 0], x[1:, ::-1])",
        "rope.rotate_(wide[..., :4], wide[..., 3:7])",
        "rope.rotate_(wide[:, :2, :4], wide[:, 1:, :4])",
        "by(x, x)",
    ],
    (ValueError, "out x"): ["rope.rotate(x, out=x[:, ::-1])", "rope.rotate(wide[..., :4], out=wide[..., 2:6])"],
    (ValueError, "x positions"): ["rope.rotate_(floats, positions=memory[:12])"],
    (ValueError, "x offset"): ["rope.rotate_(floats, offset=memory[3:5])"],
    (ValueError, "x lengths"): ["rope.rotate_(floats, lengths=memory[:2])"],
    (ValueError, "x valid"): ["rope.rotate_(floats, valid=memory[:3].view('?'))"],
    (ValueError, "x cu_seqlens"): ["rope.rotate_(floats.reshape(24, 4), cu_seqlens=memory[4:6])"],
    (ValueError, "x by"): ["rope.shift_(floats, by=memory[:12])"],
    (ValueError, "x cos"): ["by(x, cos=x[0, :, :2], sin=sin[:3])"],
    (ValueError, "x sin"): ["by(x, cos=sin[:3], sin=x[0, :, :2])"],
    (ValueError, "second cos"): ["by(q, x, cos=x[0, :, 2:], sin=sin[:3])"],
    (ValueError, "out positions"): [
        "rope.rotate(np.ones((2, 12, 4), 'f4'), positions=memory[:12], out=floats)",
        "rope.tables(memory[:12], form='cos_sin', out=floats[0])",
        "rope.tables(memory[:12], out=(np.ones((12, 2), 'f4'), memory[:24].view('f4').reshape(12, 2)))",
    ],
    # ---- Positions
    (TypeError, "positions"): [*each("rope.tables({})", "True | 2.0 | None | '3'")],
    (ValueError, "positions"): [
        *each("rope.tables({})", "-1 | 2**60 | [0.0, np.nan] | [0, 2**53 + 1] | [[1, 2], [3]]"),
        "rope.tables(np.zeros((1,) * 9))",
        "rope.rotate_(packed, positions=[[1, 2, 3, 4, 5, 6]] * 2, seq_axis=0)",
        "rope.rotate_(x, positions=np.zeros((2, 3, 3)))",
        # several coordinates
        *(f"several.{call}" for call in ("rotate_(x)", "rotate(x)", "rotate_(x, valid=[True] * 3)", "tables(5)")),
        *each("several.rotate_(x, positions=np.zeros({}))", "3 | (3, 3) | (2, 3) | (2, 2, 3)"),
        "several.rotate_(x, positions=np.zeros((3, 3, 2)))",
        "several.rotate_(x[0], positions=np.zeros((2, 3, 2)))",
        "several.rotate_(x, positions=[[0, 0], [1, np.nan], [1, 1]])",
        "several.rotate_(x, positions=[[0, 0], [1, 2], [2**54, 1]])",
        *each("several.tables({})", "[1, 2, 3] | np.ones((2, 3)) | np.ones((2, 3, 5)) | [[0, 2**54]]"),
    ],
    (ValueError, "positions offset"): ["rope.tables([1, 2], offset=3)"],
    (IndexError, "positions"): each("by(x, positions=[0, 1, {}])", "9 | -1 | 0.5"),
    (IndexError, "position table"): ["by(x, cos=cos[:0], sin=sin[:0])"],
    (IndexError, "offset"): each("by(x, offset={})", "7 | -1 | [0, 7] | [0, -1]"),
    (TypeError, "offset"): ["rope.tables(3, offset=1.5)"],
    (ValueError, "offset"): [
        "rope.rotate_(x[0], offset=[1, 2])",
        *(f"{call}(packed, offset=[1, 2], seq_axis=0)" for call in ("rope.rotate_", "by")),
        "rope.tables(3, offset=2**53)",
        "rope.tables(3, offset=[0, 2**53])",
        "several.rotate_(x, offset=1)",
        "several.tables(5, offset=2)",
    ],
    (TypeError, "by"): each("rope.shift_(x, by={})", "None | '1' | True"),
    (ValueError, "by"): [
        *each("rope.shift_(x, by={})", "[1, 2] | [[1], [2], [3]] | [1, 2, np.inf] | [[1], [np.nan]]"),
        *each("rope.shift_(x, by={})", "-2**53 - 1 | 2**80 | np.array(2**54)"),
        "rope.shift_(x[0], by=[[1, 2, 3]] * 2)",
        "rope.shift_(packed, by=[[1], [2]], seq_axis=0)",
        *each("several.shift_(x, by={})", "3 | [1, 2, 3] | [[1, 2], [3, 4]] | [1, np.inf]"),
    ],
    # ---- Rows
    (ValueError, "valid"): [
        "rope.rotate_(packed, valid=[[True] * 6] * 2, seq_axis=0)",
        "rope.shift_(x, by=3, valid=[[True, False]])",
    ],
    (ValueError, "lengths"): [
        "rope.rotate_(packed, lengths=[1, 2], seq_axis=-3)",
        "rope.shift_(x, by=3, lengths=[4, 1])",
    ],
    (ValueError, "cu_seqlens"): [
        "rope.rotate_(packed, cu_seqlens=[0, 2, 6])",
        "several.rotate_(packed, cu_seqlens=[0, 6], seq_axis=0)",
    ],
    # ---- Other options of calls
    (TypeError, "inverse"): ["by(x, inverse=0)", "rope.rotate_(x, inverse=1)", "rope.rotate_(x, inverse=None)"],
    (ValueError, "inverse"): [
        "Rope(4, interleaved=True, attention_factor=1e-310).rotate_(x, inverse=True, seq_axis=-2)"
    ],
    (ValueError, "num_threads"): ["rope.tables(3, num_threads=0)"],
    (TypeError, "form"): ["rope.tables(3, form=3)", "Rope(4, interleaved=True, form=1)"],
    (ValueError, "form"): ["rope.tables(3, form='Halves')", "rope.tables(3, form='')"],
    (TypeError, "dtype"): [
        *each("rope.tables(3, dtype={})", f"np.int64 | 'x' | '{FOREIGN}f4'"),
        "rope.tables(3, form='angles', dtype=np.float16)",
        "rope.tables(3, form='complex', dtype=np.float16)",
        "rope.tables(3, form='complex', dtype=np.complex64)",
    ],
    # ---- Tables that are given
    (TypeError, "cos"): [
        "given(x, sin=sin)",
        "given(x, sin=sin, cos=None)",
        "given(x, cos=cos * 1j, sin=sin * 1j)",
        *each("given(x, cos=cos.astype('{}'), sin=sin.astype('{}'))", f"f8 | f2 | i4 | {FOREIGN}f4"),
        "given(x.astype('f2'), cos=cos.astype('f8'), sin=sin.astype('f8'))",
        "given(x.astype('f8'), cos=cos.astype('f2'), sin=sin.astype('f2'))",
    ],
    (ValueError, "cos"): [
        "by(x, cos=cos[0])",
        "by(x, cos=cos[None, None], sin=sin[None, None])",
        "by(x, cos=cos[:, :0], sin=sin[:, :0])",
        *(
            f"given(wide, **dict(zip(('cos', 'sin'), rope.tables(4, form='{form}'))), head_dim=8)"
            for form in ("tile", "repeat")
        ),
    ],
    (TypeError, "sin"): ["given(x, cos=cos)", "by(x, cos=cos.tolist())", "by(x, sin=sin.astype('f8'))"],
    (ValueError, "sin"): ["by(x, cos=cos[:, :1])", "by(x, sin=sin[:5])"],
    (TypeError, "conjugate"): ["Rope(4, interleaved=True, conjugate=None)"],
    (TypeError, "interleaved"): [
        *each("by(x, interleaved={})", "'yes' | None"),
        *each("Rope(4, interleaved={})", "1 | 'no' | None"),
    ],
    # ---- Embeddings
    (TypeError, "frequencies"): each("Rope(4, interleaved=True, frequencies={})", "['a', 'b'] | [1, 2j]"),
    (ValueError, "frequencies"): [
        *each("Rope(4, interleaved=True, frequencies={})", "[1, 2, 3] | [[1], [2, 3]]"),
        *each("Rope(4, interleaved=True, frequencies=[1, {}])", "np.nan | np.inf | 2.0**46 | 2.0**-97"),
    ],
    (ValueError, "frequencies base"): ["Rope(4, interleaved=True, frequencies=[1, 2], base=1e4)"],
    (ValueError, "frequencies seq_len"): ["Rope(4, interleaved=True, frequencies=[1, 2], seq_len=3)"],
    (ValueError, "frequencies scaling"): ["Rope(4, interleaved=True, frequencies=[1, 2], scaling={})"],
    (TypeError, "attention_factor"): ["Rope(4, interleaved=True, attention_factor='1')"],
    (ValueError, "attention_factor"): each(
        "Rope(4, interleaved=True, attention_factor={})", "0 | -1.0 | np.inf | np.nan"
    ),
    (TypeError, "frequency_axes"): ["Rope(4, interleaved=True, frequency_axes=[0.0, 1.0])"],
    (ValueError, "frequency_axes"): each(
        "Rope(4, interleaved=True, frequency_axes={})", "[0, -1] | [0, 16] | [0, 1, 2] | [[0], [1, 2]]"
    ),
    (TypeError, "max_len"): ["Rope(4, interleaved=True, max_len=2.0)"],
    (ValueError, "max_len"): ["Rope(4, interleaved=True, max_len=-1)"],
    (ValueError, "rotary_dim"): ["Rope(5, interleaved=True)"],
    (ValueError, "seq_len"): [
        "Rope(4, interleaved=True, scaling=DYNAMIC)",
        'Rope.from_config({"model_type": "llama", "head_dim": 8}, seq_len=-1)',
    ],
}
DYNAMIC = {"rope_type": "dynamic", "factor": 2.0, "max_position_embeddings": 8}

# The last values on this side of the limits, and what is like something that is refused.
TAKEN = [
    *each("rope.{}", "rotate(x, offset=2**53 - 2) | rotate(x, offset=-(2**53)) | tables([2**53])"),
    "rope.rotate_(x, positions=[0, -(2**53), 2.0**53])",
    "rope.shift_(x, by=[[2**53], [-(2**53)]])",
    "rope.tables(3, offset=[0, 2**53 - 2])",
    "rope.tables(np.zeros((1,) * 8))",
    "rope.tables(3, form='complex', out=np.ones((3, 2), complex))",
    "several.rotate_(x, positions=np.zeros((2, 3, 2)))",
    "several.rotate_(q, k[:1], positions=np.zeros((3, 2)))",
    "several.shift_(x, by=[1, 2**53])",
    *each("by({})", "x, offset=6 | x, positions=[0, 8.0, 1] | wide, offset=6, head_dim=8"),
    *each(
        "rope.rotate_({})",
        "q, k, offset=[1, 2] | q, k[:1], offset=np.array(2) | q, k[:1], x[0] | wide[..., :4], wide[..., 4:]",
    ),
    "rope.rotate(x, out=x)",
    "Rope(4, interleaved=True, frequencies=[2.0**-96, 2.0**44], frequency_axes=[0, 15], max_len=0)",
    "Rope(4, interleaved=True, base=1.0)",
]


def along_rows(rope: RotaryEmbedding) -> types.SimpleNamespace:
    """Its methods, whose sequence is the last axis but one unless a call says otherwise."""
    rotations = {name: getattr(rope, name) for name in ("rotate_", "rotate", "shift_", "shift")}
    along = {name: functools.partial(method, seq_axis=-2) for name, method in rotations.items()}
    return types.SimpleNamespace(tables=rope.tables, plain=rope, **along)


def names() -> dict[str, Any]:
    """What the calls name, made anew for each."""
    memory = np.ones(96, np.int32)
    cos, sin = np.ones((9, 2), np.float32), np.ones((9, 2), np.float32)
    given = functools.partial(fastpe.rotate_by_tables_, interleaved=True, seq_axis=-2)
    readonly = np.ones((2, 3, 4), np.float32)
    readonly.flags.writeable = False
    return {
        "np": np,
        "Rope": RotaryEmbedding,
        "DYNAMIC": DYNAMIC,
        "rope": along_rows(RotaryEmbedding(4, interleaved=False)),
        "several": along_rows(RotaryEmbedding(4, interleaved=False, frequency_axes=[0, 1])),
        "given": given,
        "by": functools.partial(given, cos=cos, sin=sin),
        "cos": cos,
        "sin": sin,
        "x": np.ones((2, 3, 4), np.float32),
        "q": np.ones((2, 5, 3, 4), np.float32),
        "k": np.ones((2, 1, 3, 4), np.float32),
        "packed": np.ones((6, 2, 4), np.float32),
        "wide": np.ones((2, 3, 8), np.float32),
        "heads": np.ones((3, 128), np.float32),
        "points": np.zeros((3, 3)),
        "memory": memory,
        "floats": memory.view(np.float32).reshape(2, 12, 4),
        "nested": np.lib.stride_tricks.as_strided(np.ones(50, np.float32), (2, 3, 4), (8, 16, 4)),
        "readonly": readonly,
        "misaligned": np.frombuffer(bytearray(97), np.uint8)[1:97].view(np.float32).reshape(6, 4),
    }


@pytest.mark.parametrize(("call", "error", "arguments"), rows(REFUSED))
def test_refused(call: str, error: type[Exception], arguments: str) -> None:
    check_refused(call, error, arguments, names())


@pytest.mark.parametrize("call", [*TAKEN, pytest.param("Rope(2**20, interleaved=True)", marks=pytest.mark.slow)])
def test_taken(call: str) -> None:
    eval(call, names())


@pytest.mark.parametrize("columns", [9, 15, 17, 64])
def test_other_widths_are_refused_before_anything_is_written(columns: int) -> None:
    half = RotaryEmbedding(8, interleaved=False, head_dim=16)
    x, k = np.ones((2, 3, 4, columns), np.float32), np.ones((2, 3, 4, 16), np.float32)
    calls: list[Any] = [
        lambda: half.rotate_(x, seq_axis=-2),
        lambda: half.rotate_(k, x, seq_axis=-2),
        lambda: half.rotate(x, seq_axis=-2),
        lambda: half.shift_(x, by=1, seq_axis=-2),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=naming(str(columns))):
            call()
    assert (x == 1).all()
    assert (k == 1).all()
