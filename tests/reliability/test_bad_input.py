# SPDX-License-Identifier: BSD-3-Clause
"""Values that calls refuse before anything is written, and the last values that they take.

tests/rotary/test_errors.py has what only rotations refuse.
"""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import fastpe

from ..oracles.reference import FOREIGN
from ..oracles.refusals import Module, Refused, Tensor, check_refused, each, rows

REFUSED: Refused = {
    # ---- Arrays
    (TypeError, "x"): [
        *each("add_({})", "x.tolist() | [x, out] | tensor | None | 3.0 | 'x' | bytes(96) | bytearray(96) | lists"),
        *each("add_(x.astype({}))", "'i4' | 'u1' | 'u2' | '?' | 'O' | 'S4' | 'V4' | 'M8[s]' | 'c8' | 'g' | float8"),
        f"add_(x.astype('{FOREIGN}f4'))",
        "add_(np.zeros((3, 8), [('a', 'f4')]))",
        "add_(np.ma.masked_array(x))",
        *each("add({})", "tensor | None | lists | [['a']] | [[2**40, 2]] | x.astype('c16')"),
    ],
    (ValueError, "x"): [
        *each("add_({})", "readonly | np.broadcast_to(x[:1], x.shape) | overlapping | misaligned | x[0, 0]"),
        *each("add_({})", "np.float32(1) | x.reshape((1,) * 8 + x.shape)"),
        *each("add({})", "misaligned | [[1.0], [2.0, 3.0]]"),
        *each("enc.add_({})", "wide | x[..., :6]"),
    ],
    (TypeError, "out"): [
        *each("add(x, out={})", f"out.astype('f8') | out.astype('{FOREIGN}f4') | out.tolist() | (out,)"),
        *each("encode(3, 8, out={})", f"out[0].astype(int) | out[0].astype('{FOREIGN}f4') | out[0], dtype='f8' | [0]"),
    ],
    (ValueError, "out"): [
        *each(
            "add(x, out={})",
            "out[:1] | out[None] | readonly | misaligned | overlapping | np.broadcast_to(out[:1], out.shape)",
        ),
        *each("encode(3, 8, out={})", "out | out[0, :, :4]"),
        "embed([0, 1], table, out=out[0])",
        "embed([0, 1], table, out=out[:1, :2])",
    ],
    (ValueError, "out x"): ["add(x, out=x[:, ::-1])", "add(wide[:, :8], out=wide[:, 4:12])"],
    (ValueError, "x positions"): ["add_(floats, positions=memory[:12])"],
    (ValueError, "x offset"): ["add_(floats, offset=memory[3:5])"],
    (ValueError, "x lengths"): ["add_(floats, lengths=memory[:2])"],
    (ValueError, "x valid"): ["add_(floats, valid=memory[:3].view('?'))"],
    (ValueError, "x cu_seqlens"): ["add_(floats.reshape(24, 8), cu_seqlens=memory[4:6])"],
    (ValueError, "x table"): ["add_(floats, table=floats[0])"],
    (ValueError, "out positions"): [
        "encode(memory[:12], 8, out=floats[0])",
        "embed([0] * 12, table, positions=memory[:12], out=floats[0])",
    ],
    (ValueError, "out ids"): ["embed(memory[:12], table, out=floats[0])"],
    (ValueError, "out table"): ["embed([0, 1, 2], table, out=table[:3])"],
    (TypeError, "dtype"): each("encode(3, 8, dtype={})", f"'i4' | 3 | complex | 'nonsense' | '{FOREIGN}f4'"),
    (TypeError, "table"): [
        *each("add_(x, table={})", "table.astype('f8') | table.tolist() | table * 1j | Module() | [Module()]"),
        *each("embed([0, 1], {})", f"Module() | 'table' | table.astype('i4') | table.astype('{FOREIGN}f4')"),
    ],
    (ValueError, "table"): [
        *each(
            "add_(x, table={})", "table[:, :6] | table.repeat(2, axis=1)[:, ::2] | table[0] | table.repeat(2, axis=1)"
        ),
        *each("add_(x, table=table[:18].reshape({}))", "9, 2, 8 | 2, 9, 8 | 1, 1, 18, 8 | 18, 8, 1"),
        *each("embed([0, 1], {})", "[[1.0], [2.0, 3.0]] | table[0]"),
        "enc.embed([0, 1], table[:, :6])",
    ],
    # ---- Positions
    (TypeError, "positions"): [
        *each("encode({}, 8)", "3.0 | np.float32(3) | True | np.True_ | None | '3' | lists"),
        *each("encode({}, 8)", "[1j] | [True] | np.ma.zeros(2)"),
        *each("add_(x, positions=np.zeros(3, {}))", "np.float16 | bfloat16 | bool | complex"),
        *each("add_(x, positions={})", "['a', 'b', 'c'] | [None, None, None]"),
    ],
    (ValueError, "positions"): [
        *each(
            "encode({}, 8)", "-1 | 2**62 | 2**70 | huge | [[0, 1], [2, -10**20]] | [[1, 2], [3]] | np.zeros((1,) * 9)"
        ),
        *each("encode([0, {}], 8)", "np.nan | 2**53 + 1 | 2**64 | 10**20"),
        *each("add_(x, positions=[0, {}, 1])", "np.nan | np.inf | -np.inf | 2**53 + 1 | -2**53 - 1 | -2**63 | 2.0**54"),
        "add_(x, positions=np.array([0, 2**64 - 1, 1], np.uint64))",
        "add_(x, positions=[[0, 1, 2], [0, np.nan, 2]])",
        *each(
            "add_(x, positions={})",
            "[0, 1] | 3 | range(5) | [[0, 1]] | [range(5)] * 2 | [[1]] | [[1], [2]] | [[0, 1, 2]] * 3 | np.zeros((3, 2)) | x",
        ),
        "embed([0, 1], table, positions=[0, np.nan])",
    ],
    (ValueError, "positions valid"): ["encode(np.zeros((2, 2, 2)), 8, valid=[True] * 2)"],
    (ValueError, "positions offset"): ["add_(x, offset=1, positions=[0, 1, 2])", "encode([0, 1], 8, offset=1)"],
    (IndexError, "positions"): each("add_(x, table=table, positions=[0, 1, {}])", "100 | 0.5 | -1"),
    (IndexError, "position table"): ["add_(x, table=table[:2])", "embed([0, 1], table, position_table=table[:1])"],
    (TypeError, "offset"): [
        "encode(3, 8, offset=1.0)",
        *each("add_(x, offset={})", "1.5 | True | '1' | np.float32(1) | [1.0, 2.0] | {}"),
    ],
    (ValueError, "offset"): [
        *each("add_(x, offset={})", "2**53 - 1 | 2**53 | 2**53 + 1 | -2**53 - 1 | 2**70 | -2**70 | huge"),
        *each("add_(x, offset={})", "[0, 2**53 - 1] | [0, -2**53 - 1] | [0, -2**63] | [2**70, 0]"),
        "add_(x, offset=np.array([0, 2**64 - 1], np.uint64))",
        # A list of one may miss the others; an int says that it is for all.
        *each("add_(x, offset={})", "[1] | [[1]] | [1, 2, 3] | [[1, 2]] | [[1, 2]] * 2 | [[1], [2, 3]]"),
        "add_(x[0], offset=[1, 2, 3])",
        "add_(flat, cu_seqlens=[0, 2, 6], offset=[1, 2, 3])",
        "add_(flat, cu_seqlens=[0, 2, 6], offset=[1, 2**53 - 2])",
        "encode(3, 8, offset=2**53)",
    ],
    (IndexError, "offset"): each("add_(x, table=table, offset={})", "98 | -1 | [0, 98] | [0, -1]"),
    # ---- Rows
    (TypeError, "valid"): ["add_(x, valid=[1.0, 1.0, 0.0])", "add_(x, valid='no')", "add_(x, valid=tensor)"],
    (ValueError, "valid"): [
        *each("add_(x, valid={})", "[1, 2, 0] | [0, -1, 0] | [2**64 - 1] * 3 | True | [True, False] | [[True, True]]"),
        "add_(x, valid=[[True], [True, False]])",
        # with earlier rows, as for a cache of keys, and of the axis before
        *each(
            "add_(x, valid=np.ones({}, bool))",
            "(2, 5) | (1, 5) | (5,) | (2, 2) | (4, 3) | (2, 1) | (2, 3, 1) | (1, 1, 3)",
        ),
        "add_(heads, valid=np.ones((2, 3), bool))",
        "add_(x, valid=np.ones((2, 1, 3, 3), bool))",
        "encode(3, 8, valid=[True])",
    ],
    (ValueError, "valid lengths"): [
        "add_(x, valid=[True] * 3, lengths=[1, 1])",
        "encode(3, 8, valid=[True] * 3, lengths=[1])",
    ],
    (TypeError, "lengths"): ["add_(x, lengths=[1.0, 2.0])", "add_(x, lengths=True)"],
    (ValueError, "lengths"): [
        *each(
            "add_(x, lengths={})",
            "[1, 4] | [-1, 1] | [1] | [1, 2, 3] | [[1, 2]] | [[1, 2]] * 2 | np.ones((2, 1, 1), int) | 4",
        ),
        "add_(x, lengths=np.array([0, 2**64 - 1], np.uint64))",
        "encode(3, 8, lengths=[4])",
    ],
    (TypeError, "cu_seqlens"): ["add_(flat, cu_seqlens=[0.0, 6.0])"],
    (ValueError, "cu_seqlens"): [
        "add_(x, cu_seqlens=[0, 3])",
        *each("add_(flat, cu_seqlens={})", "[] | 6 | [[0, 6]]"),
        *each("add_(flat, cu_seqlens={})", "[0] | [6] | [0, 5] | [0, 7] | [1, 6] | [0, 4, 3, 6] | [0, -1, 6]"),
        "add_(flat, cu_seqlens=np.array([0, 2**63 + 5, 6], np.uint64))",
        "embed(np.zeros(0, int), table[:0], cu_seqlens=[0, 1])",
    ],
    (ValueError, "cu_seqlens positions"): ["add_(flat, cu_seqlens=[0, 6], positions=np.arange(6))"],
    (ValueError, "cu_seqlens valid"): ["add_(flat, cu_seqlens=[0, 6], valid=np.ones(6, bool))"],
    (ValueError, "cu_seqlens lengths"): ["add_(flat, cu_seqlens=[0, 6], lengths=[6])"],
    # ---- Ids
    (TypeError, "ids"): [
        "embed(table, [[0, 1]])",
        *each("embed({}, table)", "[0.0, 1.0] | np.zeros(0) | [True, False] | 'ab' | None"),
    ],
    (ValueError, "ids"): [
        "embed(np.zeros((1,) * 9, int), table)",
        "Encoding(8, padding_idx=1).embed([[[0, 1]]], table)",
    ],
    (IndexError, "ids"): [
        *each("embed({}, table)", "[0, 100] | [0, -1] | [[0, 1], [2, 100]]"),
        "embed([0, 100], table, lengths=0)",
        "embed(np.array([2**64 - 1], np.uint64), table)",
    ],
    # ---- Numbers
    (TypeError, "scale"): each("add_(x, scale={})", "'2' | 1j | True | x | None | huge"),
    (TypeError, "alpha"): each("add_(x, alpha={})", "[1.0] | np.True_ | None"),
    (ValueError, "scale"): ["add_(x, scale=np.nan)"],
    (ValueError, "alpha"): ["add(x, alpha=np.float32('nan'))"],
    (TypeError, "seq_axis"): [*each("add_(x, seq_axis={})", "1.0 | True"), "enc.add_(x, seq_axis=None)"],
    (ValueError, "seq_axis"): each("add_(x, seq_axis={})", "2 | -1 | 5 | -4 | 2**70"),
    (TypeError, "num_threads"): each("add_(x, num_threads={})", "1.5 | True | 'all'"),
    (ValueError, "num_threads"): ["add_(x, num_threads=0)", "add_(x, num_threads=-1)", "encode(3, 8, num_threads=0)"],
    # ---- Encodings
    (TypeError, "d_model"): each("encode(3, {})", "8.0 | '8' | None | True | [8] | x"),
    (ValueError, "d_model"): [
        *each("encode(3, {})", "0 | -8 | 2**20 + 1 | 2**63 | huge"),
        "encode(3, 7, convention='mlx')",
        "Encoding(7).shift(np.zeros((3, 7)), by=1)",
    ],
    (TypeError, "max_len"): each("Encoding(8, max_len={})", "1.0 | True | '3'"),
    (ValueError, "max_len"): each("Encoding(8, max_len={})", "-1 | 2**53 + 1 | 2**60 | 2**63 | -huge"),
    (TypeError, "convention"): ["encode(3, 8, convention=3)", "encode(3, 8, convention=[])"],
    (ValueError, "convention"): ["encode(3, 8, convention='vaswany')", "encode(3, 8, convention=text)"],
    (TypeError, "base"): ["encode(3, 8, base='10000')", "encode(3, 8, base=np.ones(2))"],
    (ValueError, "base"): [
        *each("encode(3, 8, base={})", "0.0 | -1.0 | np.nan | np.inf | 10**400 | huge"),
        "encode(3, 512, base=1e300)",
        "encode(3, 64, base=1e300, freq_scale=1e-3)",
    ],
    (TypeError, "freq_scale"): ["encode(3, 8, freq_scale='1')"],
    (ValueError, "freq_scale"): ["encode(3, 8, freq_scale=np.inf)", "encode(3, 8, freq_scale=2.0**62)"],
    (TypeError, "frequencies"): each(
        "encode(3, 8, frequencies={})",
        "[1.0, None, 1.0, 1.0] | 'abcd' | ['1'] * 4 | [1j] * 4 | [True] * 4 | [10**400] * 4",
    ),
    (ValueError, "frequencies"): [
        *each("encode(3, 8, frequencies=[1.0, {}, 1.0, 1.0])", "np.nan | np.inf | 2.0**46 | 1e30 | 2.0**-97"),
        *each("encode(3, 8, frequencies={})", "1.0 | [1.0] | [[1.0] * 4] | [[1.0], [1.0, 2.0]]"),
    ],
    (TypeError, "pe"): ["enc.shift(x.astype('f2'), by=1)"],
    (ValueError, "pe"): ["enc.shift(x[..., :6], by=1)"],
    (ValueError, "by"): ["enc.shift(np.zeros((3, 8)), by=10**30)", "enc.shift(np.zeros((3, 8)), by=float('nan'))"],
    # ---- One or the other
    (ValueError, "frequencies base"): ["encode(3, 8, frequencies=[1.0] * 4, base=2.0)"],
    (ValueError, "frequencies freq_scale"): ["encode(3, 8, frequencies=[1.0] * 4, freq_scale=2.0)"],
    (ValueError, "table base"): ["add(x, table=table, base=5.0)"],
    (ValueError, "position_table frequencies"): ["embed([1], table, position_table=table, frequencies=[1.0])"],
}

# The arguments that rotations have too, and those that they do not have.
OF_ROTATIONS = {"x", "positions", "offset", "valid", "lengths", "cu_seqlens", "seq_axis", "num_threads"}
OF_SUMS = re.compile(r"\btable=|x, cu_seqlens")

# The last values on this side of the limits.
TAKEN = [
    "Encoding(2**20)",
    *each("encode({}, 8)", "0 | np.zeros((1,) * 8) | [2**53, -(2**53)]"),
    *each("encode(3, 8, {})", "offset=2**53 - 2 | frequencies=[0.0, 2.0**-96, -(2.0**-96), 2.0**44]"),
    *("encode(3, 1)", "Encoding(8, max_len=0)", "add_(x.reshape((1,) * 7 + x.shape))"),
    *each("add_(x, {})", "offset=[-(2**53), 2**53 - 2] | positions=[[0, -(2**53), 2**53]] | seq_axis=0 | seq_axis=-3"),
    *each("add_(x, {})", "valid=[1, 0, 1], scale=np.inf, alpha=np.float64(2) | lengths=[0, 3]"),
    "add_(flat, cu_seqlens=[0, 0, 6, 6])",
    *each("add_(x, table=table, {})", "offset=[0, 97] | positions=[0.0, 99.0, 1.0]"),
    *each("add({})", "x, out=x | x.tolist()"),
    "embed([0, 99], table)",
    "enc.shift(np.zeros((3, 8)), by=2**53)",
]


def names() -> dict[str, Any]:
    """What the calls name, made anew for each."""
    x = np.arange(48, dtype=np.float32).reshape(2, 3, 8)
    readonly, memory = x.copy(), np.ones(192, np.int32)
    readonly.setflags(write=False)
    return {
        **{name: getattr(fastpe, name) for name in ("add", "add_", "embed", "encode")},
        "Encoding": fastpe.PositionalEncoding,
        "enc": fastpe.PositionalEncoding(8),
        "rope": fastpe.RotaryEmbedding(8, interleaved=False),
        "np": np,
        "bfloat16": ml_dtypes.bfloat16,
        "float8": ml_dtypes.float8_e4m3fn,
        "tensor": Tensor(),
        "Module": Module,
        "x": x,
        "readonly": readonly,
        "misaligned": np.zeros(x.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(x.shape),
        "overlapping": np.lib.stride_tricks.as_strided(np.arange(60, dtype=np.float32), (2, 3, 8), (96, 16, 4)),
        "wide": np.arange(96, dtype=np.float32).reshape(6, 16),
        "flat": x.reshape(6, 8).copy(),
        "out": np.full((2, 3, 8), 7, np.float32),
        "table": np.arange(800, dtype=np.float32).reshape(100, 8),
        "heads": np.ones((2, 3, 2, 8), np.float32),
        "memory": memory,
        "floats": memory.view(np.float32).reshape(2, 12, 8),
        "huge": 10**5000,  # which Python does not write
        "text": "\0\ud800",  # which no encoding has
        "lists": np.array([*([1.0] * 8 for _ in range(3)), None], object)[:3],
    }


@pytest.mark.parametrize(("call", "error", "arguments"), rows(REFUSED))
def test_refused(call: str, error: type[Exception], arguments: str) -> None:
    check_refused(call, error, arguments, names())
    if call.startswith("add_(x, "):
        check_refused(call.replace("add_(x, ", "add(x.copy(), out=x, "), error, arguments, names())
    if call.startswith("add_(") and {*arguments.split()} <= OF_ROTATIONS and not OF_SUMS.search(call):
        axis = "" if "seq_axis" in call else ", seq_axis=-2"
        check_refused(f"rope.rotate_({call[5:-1]}{axis})", error, arguments, names())


@pytest.mark.parametrize("call", TAKEN)
def test_taken(call: str) -> None:
    eval(call, names())
