# SPDX-License-Identifier: BSD-3-Clause
"""Wrong calls: each raises its documented error, which names the argument and what was found, says what was expected
and what to do, and leaves every array as it was.
"""

from __future__ import annotations

import dataclasses
import io
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import fastpe

from ..oracles.reference import FOREIGN, NATIVE
from ..oracles.remedies import check_remedy, evaluating

# The call; the error; what the message begins with (argument and what was found); a part of the remedy, where the
# message has one beyond what it says was expected.
WRONG_CALLS: list[tuple[str, type[Exception], str, str]] = [
    ("add_(x.tolist())", TypeError, "x is a list", "pass np.asarray(x, np.float32) and keep that array: the res"),
    ("add_([x, out])", TypeError, "x is a list of arrays", "pass its arrays one by one"),
    ("add_(trained)", TypeError, "x is a Tensor", "pass x.detach().numpy()"),
    ("add(trained)", TypeError, "x is a Tensor", "pass x.detach().numpy()"),
    ("add_(short)", TypeError, "x is a Tensor", "pass x.view(torch.uint16).numpy().view(ml_dtypes.bfloat16)"),
    ("add(short)", TypeError, "x is a Tensor", "pass x.view(torch.uint16).numpy().view(ml_dtypes.bfloat16)"),
    ("add_(x.view('u2'))", TypeError, "x has dtype uint16", "or pass x.view(ml_dtypes.bfloat16) if these are the bits"),
    ("add_(None)", TypeError, "x is None", "check the call that made it"),
    ("add_(3.0)", TypeError, "x is a float", "pass np.asarray(x, np.float32) and keep that array: the res"),
    ("add_('x')", TypeError, "x is a str", "pass np.load(..) of a file and keep that array: the res"),
    ("add_(x.astype('i4'))", TypeError, "x has dtype int32", "; pass np.asarray("),
    ("add_(x.astype('c8'))", TypeError, "x has dtype complex64", "or np.real(x)"),
    ("add_(x.astype('?'))", TypeError, "x has dtype bool", "; pass np.asarray("),
    ("add_(x.astype('O'))", TypeError, "x has dtype object", "; pass np.asarray("),
    (
        f"add_(x.astype('{FOREIGN}f4'))",
        TypeError,
        f"x has dtype {FOREIGN}f4",
        "convert it with x.astype(x.dtype.newbyteorder('='))",
    ),
    ("add_(lists)", TypeError, "x has dtype object", "its elements are arrays: pass np.stack(x)"),
    ("add(lists)", TypeError, "x has dtype object", "its elements are arrays: pass np.stack(x)"),
    ("encode(lists, 8)", TypeError, "positions has dtype object", "its elements are arrays: pass np.stack(positions)"),
    ("encode([10**20], 8)", ValueError, "positions[0] is 100000000000000000000", "beyond it not every integer"),
    (
        "encode([[0, 1], [2, -10**20]], 8)",
        ValueError,
        "positions[1, 1] is -1000000000000",
        "beyond it not every integer",
    ),
    (
        "encode(3, 8, freqs=[1.0, None, 1.0, 1.0])",
        TypeError,
        "freqs has dtype object",
        "freqs[1] is None: give a number",
    ),
    ("add_(x, mask=short)", TypeError, "mask is a Tensor", "pass (mask != 0).numpy(), or (mask == 0).numpy() of one"),
    ("encode(3, 8, out=np.zeros((3, 8), int))", TypeError, "out has dtype int64", "; pass an array of one of them"),
    ("add_(np.zeros((3, 8), 'u1'))", TypeError, "x has dtype uint8", "; pass np.asarray("),
    ("add_(np.zeros((3, 8), 'S4'))", TypeError, "x has dtype |S4", "of raw bytes"),
    ("add_(np.zeros((3, 8), 'M8[s]'))", TypeError, "x has dtype datetime64[s]", "; pass np.asarray("),
    (
        "add_(np.zeros((3, 8), [('a', 'f4')]))",
        TypeError,
        f"x has dtype [('a', '{NATIVE}f4')]",
        "pass one field of it, such as x['field']",
    ),
    (
        "add_(np.ma.masked_array(x))",
        TypeError,
        "x is a masked array",
        "pass x.data, and the rows to leave alone as mask",
    ),
    ("add_(readonly)", ValueError, "x is read-only", "use add(.., out=) with an array of your own, or "),
    (
        "add_(np.broadcast_to(x[:1], x.shape))",
        ValueError,
        "x is read-only",
        "use add(.., out=) with an array of your own, or ",
    ),
    (
        "add_(overlapping)",
        ValueError,
        "x has elements that share memory (a broadcast or overlapping view)",
        "pass x.copy() and keep that array, or use add(.., out=)",
    ),
    ("add_(misaligned)", ValueError, "x is misaligned", "make an aligned copy with np.require(x, requirem"),
    ("add_(x[0, 0])", ValueError, "x has shape [8]", "use x[None] for one row"),
    ("add_(np.float32(1))", ValueError, "x has shape []", "use x[None, None] for one number"),
    ("add_(bytes(96))", TypeError, "x has dtype |S96", "of raw bytes"),
    ("add_(bytearray(96))", TypeError, "x has dtype uint8", "; pass np.asarray("),
    ("add_(x.reshape((1,) * 8 + x.shape))", ValueError, "x has 11 axes", ""),
    ("add_(x, x)", TypeError, "add_() takes 1 positional argument(s), found 2; pass all but x by keyword", ""),
    ("add_()", TypeError, "add_() is missing its argument 'x'", ""),
    ("add_(x, postions=[0, 1, 2])", TypeError, "add_() got an un", ""),
    ("add_(x, out=out)", TypeError, "add_() got an un", ""),
    ("enc.add_(x, x)", TypeError, "add_() takes 1 positional argument(s), found 2; pass all but x by keyword", ""),
    ("enc.add_()", TypeError, "add_() is missing its argument 'x'", ""),
    ("enc.add_(x, postions=[0, 1, 2])", TypeError, "add_() got an un", "did you mean 'positions'?"),
    ("enc.add_(x, convention='vaswani')", TypeError, "add_() got an un", ""),
    ("enc.add_(x[..., :6])", ValueError, "x has 6 columns", "make the encoding for this width, or pass channe"),
    ("enc.add_(wide)", ValueError, "x has 16 columns", "make the encoding for this width, or pass channe"),
    ("add_(x, offset=1, positions=[0, 1, 2])", ValueError, "positions and offset were both given", "leave offset out"),
    (
        "add_(x, offset=2**53 + 1)",
        ValueError,
        "offset is 9007199254740993",
        "beyond it not every integer has a float64 of its",
    ),
    (
        "add_(x, offset=-2**53 - 1)",
        ValueError,
        "offset is -9007199254740993",
        "beyond it not every integer has a float64 of its",
    ),
    (
        "add_(x, offset=2**53)",
        ValueError,
        "offset: the position of row 1 is 9007199254740993",
        "beyond it not every integer has a float64 of its",
    ),
    (
        "add_(x, offset=2**70)",
        ValueError,
        "offset is 1180591620717411303424",
        "beyond it not every integer has a float64 of its",
    ),
    ("add_(x, offset=1.5)", TypeError, "offset is 1.5", "fractional positions go into positions="),
    ("add_(x, offset=True)", TypeError, "offset is True", ""),
    ("add_(x, offset='1')", TypeError, f"offset has dtype {NATIVE}U1", "where the text is digits"),
    ("add_(x, offset=np.float32(1))", TypeError, "offset has dtype float32", "; pass np.asarray("),
    ("add_(x, offset=[1.0, 2.0])", TypeError, "offset has dtype float64", "; pass np.asarray("),
    ("add_(x, offset=[1, 2, 3])", ValueError, "offset has shape [3]", "one per batch row"),
    ("add_(x, offset=[[1, 2]])", ValueError, "offset has shape [1, 2]", "one per batch row"),
    (
        "add_(x, offset=[0, 2**53])",
        ValueError,
        "offset[1]: the position of row 1 is 9007199254740993",
        "beyond it not every integer has a float64 of its",
    ),
    (
        "add_(x, offset=[0, -2**63])",
        ValueError,
        "offset[1]: the position of row 0 is -18014398509481984",
        "beyond it not every integer has a float64 of its",
    ),
    (
        "add_(x, offset=np.array([0, 2**64 - 1], np.uint64))",
        ValueError,
        "offset[1]: the position of row 0 is 18014398509481984",
        "beyond it not every integer has a float64 of its",
    ),
    (
        "add_(x, offset=[2**70, 0])",
        ValueError,
        "offset[0] is 1180591620717411303424",
        "beyond it not every integer has a float64 of its",
    ),
    ("add_(x, offset={})", TypeError, "offset is a dict", "what np.asarray makes an array of numbers"),
    ("add_(x, offset=[[1], [2, 3]])", ValueError, "offset is a list that makes no array", "pass an array"),
    ("add_(x, positions=[0, 1])", ValueError, "positions has shape [2]", "one per row"),
    ("add_(x, positions=3)", ValueError, "positions has shape []", "to count from one position, pass offset="),
    ("add_(x, positions=[[0, 1]])", ValueError, "positions has shape [1, 2]", "one per row"),
    ("add_(x, positions=np.zeros((3, 2)))", ValueError, "positions has shape [3, 2]", "one per row"),
    (
        "add_(x, positions=[0, np.nan, 1])",
        ValueError,
        "positions[1] is nan",
        "beyond it not every integer has a float64 of its",
    ),
    (
        "add_(x, positions=[0, np.inf, 1])",
        ValueError,
        "positions[1] is inf",
        "beyond it not every integer has a float64 of its",
    ),
    (
        "add_(x, positions=[0, -np.inf, 1])",
        ValueError,
        "positions[1] is -inf",
        "beyond it not every integer has a float64 of its",
    ),
    (
        "add_(x, positions=[0, 2**53 + 1, 1])",
        ValueError,
        "positions[1] is 9007199254740993",
        "beyond it not every integer has a float64 of its",
    ),
    (
        "add_(x, positions=[0, -2**63, 1])",
        ValueError,
        "positions[1] is -9223372036854775808",
        "beyond it not every integer has a float64 of its",
    ),
    (
        "add_(x, positions=[0, 2.0**54, 1])",
        ValueError,
        "positions[1] is 18014398509481984",
        "beyond it not every integer has a float64 of its",
    ),
    (
        "add_(x, positions=[0, 1e300, 1])",
        ValueError,
        "positions[1] is 1.0000000000000001e+300",
        "beyond it not every integer has a float64 of its",
    ),
    (
        "add_(x, positions=np.array([0, 2**64 - 1, 1], np.uint64))",
        ValueError,
        "positions[1] is 1.8446744073709552e+19",
        "beyond it not every integer has a float64 of its",
    ),
    (
        "add_(x, positions=np.zeros(3, np.float16))",
        TypeError,
        "positions has dtype float16",
        "a 16-bit float cannot hold every position: keep ",
    ),
    (
        "add_(x, positions=np.zeros(3, bfloat16))",
        TypeError,
        "positions has dtype bfloat16",
        "a 16-bit float cannot hold every position: keep ",
    ),
    ("add_(x, positions=np.zeros(3, bool))", TypeError, "positions has dtype bool", "; pass np.asarray("),
    (
        "add_(x, positions=np.zeros(3, complex))",
        TypeError,
        "positions has dtype complex128",
        "; pass np.asarray(",
    ),
    ("add_(x, positions=['a', 'b', 'c'])", TypeError, f"positions has dtype {NATIVE}U1", "where the text is digits"),
    (
        "add_(x, positions=[None, None, None])",
        TypeError,
        "positions has dtype object",
        "positions[0] is None: give a number in its place",
    ),
    ("add_(x, positions=x)", ValueError, "positions has shape [2, 3, 8]", "one per row"),
    (
        "add_(x, positions=[[0, 1, 2], [0, np.nan, 2]])",
        ValueError,
        "positions[1, 1] is nan",
        "beyond it not every integer has a float64 of its",
    ),
    ("add_(x, mask=[1.0, 1.0, 0.0])", TypeError, "mask has dtype float64", "give mask != 0, or mask == 0"),
    ("add_(x, mask=[1, 2, 0])", ValueError, "mask holds integers from 0 to 2", "pass a condition, such as mask != 0"),
    ("add_(x, mask=[0, -1, 0])", ValueError, "mask holds integers from -1 to 0", "pass a condition, such as mask != 0"),
    ("add_(x, mask=[True, False])", ValueError, "mask has shape [2]", "one per row"),
    ("add_(x, mask=True)", ValueError, "mask has shape []", "one per row"),
    ("add_(x, mask=[[True, True]])", ValueError, "mask has shape [1, 2]", "one per row"),
    ("add_(x, mask=np.ones((2, 3, 1), bool))", ValueError, "mask has shape [2, 3, 1]", "one per row"),
    ("add_(x, mask=[True] * 3, lengths=[1, 1])", ValueError, "mask and lengths were both given", "leave lengths out"),
    ("add_(x, mask='no')", TypeError, f"mask has dtype {NATIVE}U2", "give mask != 0, or mask == 0"),
    ("add_(x, lengths=[1, 4])", ValueError, "lengths[1] is 4", ""),
    ("add_(x, lengths=[-1, 1])", ValueError, "lengths[0] is -1", ""),
    ("add_(x, lengths=[1])", ValueError, "lengths has shape [1]", "one per batch row"),
    ("add_(x, lengths=[1.0, 2.0])", TypeError, "lengths has dtype float64", "; pass np.asarray("),
    ("add_(x, lengths=[[1, 2]])", ValueError, "lengths has shape [1, 2]", "one per batch row"),
    ("add_(x, lengths=4)", ValueError, "lengths[0] is 4", ""),
    ("add_(x, lengths=True)", TypeError, "lengths has dtype bool", "; pass np.asarray("),
    (
        "add_(x, cu_seqlens=[0, 3])",
        ValueError,
        "cu_seqlens is for a packed batch",
        "reshape it, or leave cu_seqlens out",
    ),
    ("add_(flat, cu_seqlens=[0, 5])", ValueError, "cu_seqlens[1] is 5", ""),
    ("add_(flat, cu_seqlens=[1, 6])", ValueError, "cu_seqlens[0] is 1", ""),
    ("add_(flat, cu_seqlens=[0, 4, 3, 6])", ValueError, "cu_seqlens[2] is 3", ""),
    ("add_(flat, cu_seqlens=[0, -1, 6])", ValueError, "cu_seqlens[1] is -1", ""),
    ("add_(flat, cu_seqlens=[0, 7, 6])", ValueError, "cu_seqlens[1] is 7", ""),
    (
        "add_(flat, cu_seqlens=np.array([0, 2**63 + 5, 6], np.uint64))",
        ValueError,
        "cu_seqlens[1] is 9.2233720368547758e+18",
        "",
    ),
    ("add_(flat, cu_seqlens=[])", ValueError, "cu_seqlens has shape [0]", "0, the running sum of lengths"),
    ("add_(flat, cu_seqlens=6)", ValueError, "cu_seqlens has shape []", "0, the running sum of lengths"),
    ("add_(flat, cu_seqlens=[[0, 6]])", ValueError, "cu_seqlens has shape [1, 2]", "0, the running sum of lengths"),
    ("add_(flat, cu_seqlens=[0.0, 6.0])", TypeError, "cu_seqlens has dtype float64", "; pass np.asarray("),
    (
        "add_(flat, cu_seqlens=[0, 6], positions=np.arange(6))",
        ValueError,
        "cu_seqlens and positions were both given",
        "leave positions out",
    ),
    (
        "add_(flat, cu_seqlens=[0, 6], mask=np.ones(6, bool))",
        ValueError,
        "cu_seqlens and mask were both given",
        "leave mask out",
    ),
    (
        "add_(flat, cu_seqlens=[0, 6], lengths=[6])",
        ValueError,
        "cu_seqlens and lengths were both given",
        "leave lengths out",
    ),
    ("add_(flat, cu_seqlens=[0, 2, 6], offset=[1, 2, 3])", ValueError, "offset has shape [3]", "one per sequence"),
    (
        "add_(flat, cu_seqlens=[0, 2, 6], offset=[1, 2**53])",
        ValueError,
        "offset[1]: the position of row 3 is 9007199254740993",
        "beyond it not every integer has a float64 of its",
    ),
    ("add_(x, scale='2')", TypeError, "scale is '2'", ""),
    ("add_(x, alpha=[1.0])", TypeError, "alpha is [1.0]", ""),
    ("add_(x, scale=1j)", TypeError, "scale is 1j", ""),
    ("add_(x, seq_axis=2)", ValueError, "seq_axis is 2", ""),
    ("add_(x, seq_axis=-1)", ValueError, "seq_axis is -1", ""),
    ("add_(x, seq_axis=5)", ValueError, "seq_axis is 5", ""),
    ("add_(x, seq_axis=-4)", ValueError, "seq_axis is -4", ""),
    ("add_(x, seq_axis=1.0)", TypeError, "seq_axis is 1.0", ""),
    ("add_(x, seq_axis=2**70)", ValueError, "seq_axis is 1180591620717411303424", ""),
    ("add_(x, channels=(0, 8), d_model=4)", ValueError, "channels is (0, 8)", ""),
    ("add_(x, channels=(0, 16))", ValueError, "channels is (0, 16)", "give d_model, the width of the whole encoding"),
    ("add_(x, channels=(0, 4))", ValueError, "x has 8 columns", ""),
    ("add_(x, channels=(-1, 7), d_model=16)", ValueError, "channels is (-1, 7)", ""),
    ("add_(x, channels=(8, 0), d_model=16)", ValueError, "channels is (8, 0)", ""),
    ("add_(x, channels=8, d_model=16)", TypeError, "channels is 8", ""),
    ("add_(x, channels=[0, 8], d_model=16)", TypeError, "channels is [0, 8]", ""),
    ("add_(x, channels=(0.0, 8.0), d_model=16)", TypeError, "channels is (0.0, 8.0)", ""),
    ("add_(x, channels=(0, 4, 8), d_model=16)", TypeError, "channels is (0, 4, 8)", ""),
    ("add_(x, d_model=16)", ValueError, "x has 8 columns", "make the encoding for this width, or pass channe"),
    ("add_(x, num_threads=0)", ValueError, "num_threads is 0", ""),
    ("add_(x, num_threads=-1)", ValueError, "num_threads is -1", ""),
    ("add_(x, num_threads=1.5)", TypeError, "num_threads is 1.5", ""),
    ("add_(x, num_threads=True)", TypeError, "num_threads is True", ""),
    ("add_(x, num_threads='all')", TypeError, "num_threads is 'all'", ""),
    (
        "add_(x, table=table[:2])",
        IndexError,
        "the position of row 2 is 2",
        "pass a longer table or smaller positions",
    ),
    (
        "add_(x, table=table, offset=98)",
        IndexError,
        "offset: the position of row 2 is 100",
        "pass a longer table or smaller positions",
    ),
    (
        "add_(x, table=table, offset=-1)",
        IndexError,
        "offset: the position of row 0 is -1",
        "pass a longer table or smaller positions",
    ),
    (
        "add_(x, table=table, positions=[0, 1, 100])",
        IndexError,
        "positions[2] is 100",
        "pass a longer table or smaller positions",
    ),
    (
        "add_(x, table=table, positions=[0.5, 1, 2])",
        IndexError,
        "positions[0] is 0.5",
        "pass a longer table or smaller positions",
    ),
    ("add_(x, table=table.astype('f8'))", TypeError, "table has dtype float64", "pass np.asarray(table, np.float32)"),
    ("add_(x, table=table.tolist())", TypeError, "table has dtype float64", "pass np.asarray(table, np.float32)"),
    ("add_(x, table=table[:, :6])", ValueError, "table has 6 columns", ""),
    (
        "add_(x, table=table.repeat(2, axis=1)[:, ::2])",
        ValueError,
        "table has columns that are not contiguous",
        "make a copy with np.ascontiguousarray(table)",
    ),
    ("add_(x, table=table[0])", ValueError, "table has shape [8]", ""),
    (
        "add_(x, table=table, channels=(0, 8))",
        ValueError,
        "table and channels were both given",
        "slice the table's columns",
    ),
    ("add_(x, table=x[0])", ValueError, "the output shares memory with an input", "pass a copy of one"),
    ("add(x, out=out[:1])", ValueError, "out has shape [1, 3, 8]", "nothing is broadcast"),
    ("add(x, out=out.astype('f8'))", TypeError, "out has dtype float64", "as x has; pass an array of that dtype"),
    ("add(x, out=readonly)", ValueError, "out is read-only", "pass np.array(out) and keep that array"),
    ("add(x, out=x[:, ::-1])", ValueError, "out shares memory with x", "pass a copy of one"),
    ("add(wide[:, :8], out=wide[:, 4:12])", ValueError, "out shares memory with x", "pass a copy of one"),
    ("add(x, out=misaligned)", ValueError, "out is misaligned", "make an aligned copy with np.require(out, requir"),
    ("add(x, out=out.tolist())", TypeError, "out is a list", "pass np.asarray(out, np.float32) and keep that"),
    (
        "add(x, out=np.broadcast_to(out[:1], out.shape))",
        ValueError,
        "out is read-only",
        "pass np.array(out) and keep that array",
    ),
    (
        f"add(x, out=out.astype('{FOREIGN}f4'))",
        TypeError,
        f"out has dtype {FOREIGN}f4",
        "convert it with out.astype(out.dtype.newbyteorder('='))",
    ),
    ("add(x, out=(out,))", TypeError, "out is a tuple of arrays", "pass its arrays one by one"),
    ("add([['a']])", TypeError, f"x has dtype {NATIVE}U1", "np.asarray(x, np.float32) where the text is digits"),
    ("add([[1.0], [2.0, 3.0]])", ValueError, "x is a list that makes no array", "pass an array"),
    ("embed([0, 1], [[1.0], [2.0, 3.0]])", ValueError, "table is a list that makes no array", "pass an array"),
    ("add_(x, mask=[[True], [True, False]])", ValueError, "mask is a list that makes no array", "pass an array"),
    ("add([[2**40, 2]])", TypeError, "x has dtype int64", "; pass np.asarray("),
    ("add(None)", TypeError, "x is a NoneType", "what np.asarray makes an array of numbers"),
    ("add_(x, scale=np.nan)", ValueError, "scale is nan", ""),
    ("add(x, alpha=np.float32('nan'))", ValueError, "alpha is nan", ""),
    ("encode(-1, 8)", ValueError, "positions is -1", "for one negative position pass an array, [-1]"),
    ("encode(3.0, 8)", TypeError, "positions is 3.0", "for one fractional position pass [3.0]"),
    ("encode(True, 8)", TypeError, "positions is True", ""),
    ("encode(None, 8)", TypeError, "positions is None", ""),
    ("encode('3', 8)", TypeError, f"positions has dtype {NATIVE}U1", "or int(positions) where the text is digits"),
    ("encode([0, np.nan], 8)", ValueError, "positions[1] is nan", "beyond it not every integer has a float64 of its"),
    (
        "encode([2**53 + 1], 8)",
        ValueError,
        "positions[0] is 9007199254740993",
        "beyond it not every integer has a float64 of its",
    ),
    ("encode([2**64], 8)", ValueError, "positions[0] is 18446744073709551616", "beyond it not every integer"),
    ("encode([[1, 2], [3]], 8)", ValueError, "positions is a list that makes no array", "pass an array"),
    ("encode(3, 0)", ValueError, "d_model is 0", ""),
    ("encode(3, -8)", ValueError, "d_model is -8", ""),
    ("encode(3, 8.0)", TypeError, "d_model is 8.0", ""),
    ("encode(3, '8')", TypeError, "d_model is '8'", ""),
    ("encode(3, None)", TypeError, "d_model is None", ""),
    ("encode(3, True)", TypeError, "d_model is True", ""),
    ("encode(3, 2**40)", ValueError, "d_model is 1099511627776", ""),
    ("fastpe.PositionalEncoding(2**20 + 1)", ValueError, "d_model is 1048577", ""),
    ("fastpe.PositionalEncoding(2**63)", ValueError, "d_model is 9223372036854775808", ""),
    ("fastpe.PositionalEncoding(8, max_len=2**63)", ValueError, "max_len is 9223372036854775808", ""),
    ("enc.shift(np.zeros((3, 8)), 10**30)", ValueError, "k is 1000000000000000000000000000000", ""),
    ("enc.shift(np.zeros((3, 8)), float('nan'))", ValueError, "k is nan", ""),
    ("fastpe.PositionalEncoding(8, max_len=2**60)", ValueError, "max_len is 1152921504606846976", ""),
    ("encode(2**62, 8)", ValueError, "positions is 4611686018427387904", "compute fewer"),
    ("encode(2**70, 8)", ValueError, "positions is 1180591620717411303424", "compute fewer"),
    ("encode(3, 8, dtype='i4')", TypeError, "dtype is int32", ""),
    ("encode(3, 8, dtype=3)", TypeError, "dtype is 3", "pass a dtype of NumPy, such as np.float32"),
    ("encode(3, 8, dtype='nonsense')", TypeError, "dtype is 'nonsense'", ""),
    (
        f"encode(3, 8, dtype='{FOREIGN}f4')",
        TypeError,
        f"dtype is {FOREIGN}f4",
        "pass np.dtype(dtype).newbyteorder('=')",
    ),
    (
        f"encode(3, 8, out=np.zeros((3, 8), '{FOREIGN}f4'))",
        TypeError,
        f"out has dtype {FOREIGN}f4",
        "convert it with out.astype(out.dtype.newbyteorder('='))",
    ),
    (
        "encode(3, 8, dtype='f8', out=out[0])",
        TypeError,
        "out has dtype float32",
        "pass an array of that dtype, or dtype=",
    ),
    ("encode(3, 8, out=out)", ValueError, "out has shape [2, 3, 8]", "nothing is broadcast"),
    ("encode(3, 8, out=[0])", TypeError, "out is a list", "pass np.asarray(out, np.float32) and keep that"),
    ("encode(3, 8, offset=1.0)", TypeError, "offset is 1.0", "fractional positions go into positions="),
    ("encode([0, 1], 8, offset=1)", ValueError, "positions and offset were both given", "leave offset out"),
    (
        "encode(3, 8, offset=2**53)",
        ValueError,
        "offset: the position of row 1 is 9007199254740993",
        "beyond it not every integer has a float64 of its",
    ),
    ("encode(3, 8, channels=(0, 9))", ValueError, "channels is (0, 9)", ""),
    ("encode(3, 8, num_threads=0)", ValueError, "num_threads is 0", ""),
    ("encode(np.zeros((1,) * 9), 8)", ValueError, "positions has more than 8 axes", ""),
    (
        "encode(positions, 8, out=positions[:, None].repeat(8, 1)[..., :4])",
        ValueError,
        "out has shape [3, 4]",
        "nothing is broadcast",
    ),
    ("encode(shared[:, 0], 8, out=shared)", ValueError, "the output shares memory with an input", "pass a copy of one"),
    ("encode(3, 8, mask=[True])", ValueError, "mask has shape [1]", "one per row"),
    ("encode(3, 8, lengths=[4])", ValueError, "lengths[0] is 4", ""),
    ("encode(3, 8, mask=[True] * 3, lengths=[1])", ValueError, "mask and lengths were both given", "leave lengths out"),
    (
        "encode(3, 8, convention='vaswany')",
        ValueError,
        "convention is 'vaswany', which is not known; did you mean 'vaswani'?",
        "",
    ),
    ("encode(3, 8, convention='nonsense')", ValueError, "convention is 'nonsense', which is not known; ", ""),
    ("encode(3, 8, convention=3)", TypeError, "convention is 3", ""),
    ("encode(3, 8, convention=[])", TypeError, "convention is []", ""),
    ("encode(3, 7, convention='mlx')", ValueError, "d_model is 7", "choose another convention or replace its odd= fi"),
    ("encode(3, 8, base=0.0)", ValueError, "base is 0", ""),
    ("encode(3, 8, base=-1.0)", ValueError, "base is -1", ""),
    ("encode(3, 8, base=np.nan)", ValueError, "base is nan", ""),
    ("encode(3, 8, base=np.inf)", ValueError, "base is inf", ""),
    (
        "encode(3, 512, base=1e300)",
        ValueError,
        "frequency 255 is 1.485508017172775e-299 radians per position",
        "check d_model, base, freq_scale and freqs",
    ),
    ("encode(3, 8, base='10000')", TypeError, "base is '10000'", ""),
    ("encode(3, 8, freq_scale=np.inf)", ValueError, "freq_scale is inf", ""),
    (
        "encode(3, 8, freq_scale=2.0**62)",
        ValueError,
        "frequency 0 is 4.6116860184273879e+18 radians per position",
        "check d_model, base, freq_scale and freqs",
    ),
    ("encode(3, 8, freq_scale='1')", TypeError, "freq_scale is '1'", ""),
    ("encode(3, 8, freqs=[1.0])", ValueError, "freqs has shape [1]", "one per pair of columns"),
    (
        "encode(3, 8, freqs=[1.0, np.nan, 1.0, 1.0])",
        ValueError,
        "frequency 1 is nan radians per position",
        "check d_model, base, freq_scale and freqs",
    ),
    (
        "encode(3, 8, freqs=[1.0, 2.0**62, 1.0, 1.0])",
        ValueError,
        "frequency 1 is 4.6116860184273879e+18 radians per position",
        "check d_model, base, freq_scale and freqs",
    ),
    (
        "encode(3, 8, freqs=[1.0, 2.0**-97, 1.0, 1.0])",
        ValueError,
        "frequency 1 is 6.3108872417680944e-30 radians per position",
        "check d_model, base, freq_scale and freqs",
    ),
    ("encode(3, 8, freqs=[[1.0] * 4])", ValueError, "freqs has shape [1, 4]", "one per pair of columns"),
    ("encode(3, 8, freqs='abcd')", TypeError, f"freqs has dtype {NATIVE}U4", "where the text is digits"),
    (
        "encode(3, 8, freqs=[1.0] * 4, base=2.0)",
        ValueError,
        "freqs and base or freq_scale were both given",
        "freqs are the frequencies themselves",
    ),
    ("encode(3, 8, freqs=[1j] * 4)", TypeError, "freqs has dtype complex128", "; pass np.asarray("),
    ("fastpe.PositionalEncoding(8, max_len=-1)", ValueError, "max_len is -1", ""),
    ("fastpe.PositionalEncoding(8, max_len=1.0)", TypeError, "max_len is 1.0", ""),
    ("fastpe.PositionalEncoding(8, max_len=2**53 + 1)", ValueError, "max_len is 9007199254740993", ""),
    (
        "fastpe.PositionalEncoding(8, max_length=4)",
        TypeError,
        "PositionalEncoding() got an un",
        "did you mean 'max_len'?",
    ),
    (
        "fastpe.PositionalEncoding(8, 512)",
        TypeError,
        "PositionalEncoding() takes 1 positional argument(s), found 2; pass all but d_model by keyword",
        "",
    ),
    (
        "fastpe.PositionalEncoding()",
        TypeError,
        "PositionalEncoding() is missing its argument 'd_model'",
        "",
    ),
    (
        "setattr(enc, 'd_model', 4)",
        AttributeError,
        "PositionalEncoding is immutable: cannot set 'd_model'; make a new one",
        "",
    ),
    ("enc.shift(x[..., :6], 1)", ValueError, "pe has shape [2, 3, 6]", ""),
    ("enc.shift(x.astype('f2'), 1)", TypeError, "pe has dtype float16", "; pass np.asarray("),
    (
        "embed(table, [[0, 1]])",
        TypeError,
        "ids has dtype float32 and table int64",
        "pass the ids first, then the table",
    ),
    ("embed([0, 1], 'table')", TypeError, f"table has dtype {NATIVE}U5", "where the text is digits"),
    ("embed([0, 100], table)", IndexError, "ids[1] is 100", "table has 100 rows"),
    ("embed([0, -1], table)", IndexError, "ids[1] is -1", "table has 100 rows"),
    ("embed([[0, 1], [2, 100]], table)", IndexError, "ids[1, 1] is 100", "table has 100 rows"),
    ("embed([0.0, 1.0], table)", TypeError, "ids has dtype float64", "; pass np.asarray("),
    ("embed([True, False], table)", TypeError, "ids has dtype bool", "; pass np.asarray("),
    ("embed('ab', table)", TypeError, f"ids has dtype {NATIVE}U2", "where the text is digits"),
    ("embed(None, table)", TypeError, "ids is a NoneType", "what np.asarray makes an array of numbers"),
    ("embed([0, 1], table[0])", ValueError, "table has shape [8]", ""),
    ("embed([0, 1], table.astype('i4'))", TypeError, "table has dtype int32", "; pass np.asarray("),
    ("embed([0, 1], table, out=out[0])", ValueError, "out has shape [3, 8]", "nothing is broadcast"),
    (
        "embed([0, 1, 2], table, out=table[:3])",
        ValueError,
        "the output shares memory with an input",
        "pass a copy of one",
    ),
    (
        "embed([0, 1], table, position_table=table[:1])",
        IndexError,
        "the position of row 1 is 1",
        "pass a longer table or smaller positions",
    ),
    (
        "embed([0, 1], table, positions=[0, np.nan])",
        ValueError,
        "positions[1] is nan",
        "beyond it not every integer has a float64 of its",
    ),
    ("embed([0, 1], table, seq_axis=0)", TypeError, "embed() got an un", ""),
    ("embed([0, 1])", TypeError, "embed() is missing its argument 'table'", ""),
    (
        "enc.embed([0, 1], table[:, :6])",
        ValueError,
        "table has 6 columns",
        "make the encoding for this width, or pass channe",
    ),
    ("embed(np.zeros((1,) * 9, int), table)", ValueError, "ids has more than 8 axes", ""),
    (
        "embed(np.array([2**64 - 1], np.uint64), table)",
        IndexError,
        "ids[0] is 1.8446744073709552e+19",
        "table has 100 rows",
    ),
    ("embed(np.zeros(0, int), table[:0], cu_seqlens=[0, 1])", ValueError, "cu_seqlens[1] is 1", ""),
]

# What each remedy makes of one of the calls that get it.
REMEDIED: dict[str, str] = {
    "add_(np.float32(1))": "add_(np.float32(1)[None, None])",
    "add_(x.tolist())": "add_(np.asarray(x.tolist(), np.float32))",
    "add_(lists)": "add_(np.stack(lists))",
    "encode(lists, 8)": "encode(np.stack(lists), 8)",
    "encode([10**20], 8)": "encode([2**53], 8)",
    "encode(3, 8, freqs=[1.0, None, 1.0, 1.0])": "encode(3, 8, freqs=[1.0, 0.0, 1.0, 1.0])",
    "add_(x, positions=[None, None, None])": "add_(x, positions=[0, 1, 2])",
    "add_(x, offset='1')": "add_(x, offset=int('1'))",
    "encode('3', 8)": "encode(int('3'), 8)",
    "add([['a']])": "add(np.asarray([['1', '2']], np.float32))",
    "add(x, out=out.tolist())": "add(x, out=np.asarray(out.tolist(), np.float32))",
    "add_(bytes(96))": "add_(np.frombuffer(bytes(96), np.float32).reshape(3, 8).copy())",
    "add_(np.zeros((3, 8), [('a', 'f4')]))": "add_(np.zeros((3, 8), [('a', 'f4')])['a'])",
    "add_(x, mask=short)": "(add_(x, mask=(short != 0).numpy()), add_(x, mask=(short == 0).numpy()))",
    "encode(3, 8, out=np.zeros((3, 8), int))": "encode(3, 8, out=np.zeros((3, 8)))",
    "add_('x')": "add_(np.load(saved()))",
    "add_([x, out])": "(add_(x), add_(out))",
    "add_(None)": "add_(add_(x))",
    "fastpe.PositionalEncoding(8, max_length=4)": "fastpe.PositionalEncoding(8, max_len=4)",
    "add(x, out=readonly)": "add(x, out=np.array(readonly))",
    "encode(3, 8, dtype='f8', out=out[0])": "(encode(3, 8, dtype='f8', out=np.zeros((3, 8))), encode(3, 8, dtype='f4', out=out[0]))",
    "add_(trained)": "add_(trained.detach().numpy())",
    "add(short)": "add(short.view(np.uint16).numpy().view(bfloat16))",
    "add_(x.view('u2'))": "add_(x.view('u2').view(bfloat16))",
    "add_(x, positions=3)": "add_(x, offset=3)",
    "add_(x, channels=(0, 16))": "add_(x, channels=(8, 16), d_model=16)",
    "encode(3, 8, dtype=3)": "encode(3, 8, dtype=np.float32)",
    "embed(table, [[0, 1]])": "embed([[0, 1]], table)",
    "add_(x.astype('c8'))": "add_(np.real(x.astype('c8')).copy())",
    "add_(x.astype('i4'))": "add_(np.asarray(x.astype('i4'), np.float32))",
    f"add_(x.astype('{FOREIGN}f4'))": "add_(big.astype(big.dtype.newbyteorder('=')))",
    "add_(np.ma.masked_array(x))": "add_(np.ma.masked_array(x).data, mask=[True, False, True])",
    "add_(readonly)": "(add(readonly, out=out), add_(np.array(readonly)))",
    "add_(overlapping)": "(add_(overlapping.copy()), add(overlapping, out=out))",
    "add_(misaligned)": "add_(np.require(misaligned, requirements='A'))",
    "add_(x[0, 0])": "add_(x[0, 0][None])",
    "enc.add_(x, postions=[0, 1, 2])": "enc.add_(x, positions=[0, 1, 2])",
    "enc.add_(wide)": "(fastpe.PositionalEncoding(16).add_(wide), fastpe.PositionalEncoding(32).add_(wide, channels=(0, 16)))",
    "add_(x, offset=1, positions=[0, 1, 2])": "add_(x, positions=[0, 1, 2])",
    "add_(x, offset=2**53 + 1)": "add_(x, offset=2**53 - 2)",
    "add_(x, offset=1.5)": "add_(x, positions=[1.5, 2.5, 3.5])",
    "add_(x, offset=[1, 2, 3])": "add_(x, offset=[1, 2])",
    "add_(x, offset={})": "add_(x, offset=np.asarray([1, 2]))",
    "add_(x, offset=[[1], [2, 3]])": "add_(x, offset=np.array([1, 2]))",
    "add_(x, positions=[0, 1])": "add_(x, positions=[0, 1, 2])",
    "add_(x, positions=np.zeros(3, np.float16))": "add_(x, positions=np.zeros(3, np.int64))",
    "add_(x, mask=[1.0, 1.0, 0.0])": "add_(x, mask=np.array([1.0, 1.0, 0.0]) != 0)",
    "add_(x, mask=[1, 2, 0])": "add_(x, mask=np.array([1, 2, 0]) != 0)",
    "add_(x, mask=[True] * 3, lengths=[1, 1])": "add_(x, mask=[True] * 3)",
    "add_(x, cu_seqlens=[0, 3])": "(add_(x.reshape(6, 8), cu_seqlens=[0, 3, 6]), add_(x))",
    "add_(flat, cu_seqlens=6)": "add_(flat, cu_seqlens=[0, 6])",
    "add_(flat, cu_seqlens=[0, 6], positions=np.arange(6))": "add_(flat, cu_seqlens=[0, 6])",
    "add_(flat, cu_seqlens=[0, 6], mask=np.ones(6, bool))": "add_(flat, cu_seqlens=[0, 6])",
    "add_(flat, cu_seqlens=[0, 2, 6], offset=[1, 2, 3])": "add_(flat, cu_seqlens=[0, 2, 6], offset=[1, 2])",
    "add_(x, table=table, offset=98)": "(add_(x, table=np.tile(table, (2, 1)), offset=98), add_(x, table=table, offset=97))",
    "add_(x, table=table.astype('f8'))": "add_(x, table=np.asarray(table.astype('f8'), np.float32))",
    "add_(x, table=table.repeat(2, axis=1)[:, ::2])": "add_(x, table=np.ascontiguousarray(table.repeat(2, axis=1)[:, ::2]))",
    "add_(x, table=table, channels=(0, 8))": "add_(x, table=table[:, :8])",
    "add_(x, table=x[0])": "add_(x, table=x[0].copy())",
    "add(x, out=out[:1])": "add(x, out=out)",
    "add(x, out=out.astype('f8'))": "add(x, out=out)",
    "add(x, out=misaligned)": "add(x, out=np.require(misaligned, requirements='A'))",
    f"add(x, out=out.astype('{FOREIGN}f4'))": "add(x, out=big.astype(big.dtype.newbyteorder('=')))",
    "encode(-1, 8)": "encode([-1], 8)",
    "encode(3.0, 8)": "encode([3.0], 8)",
    "encode(2**62, 8)": "encode(3, 8)",
    f"encode(3, 8, dtype='{FOREIGN}f4')": f"encode(3, 8, dtype=np.dtype('{FOREIGN}f4').newbyteorder('='))",
    "encode(3, 7, convention='mlx')": "(encode(3, 7), encode(3, 7, convention=replace(mlx, odd='natural')))",
    "encode(3, 512, base=1e300)": "(encode(3, 512, base=1e20), encode(3, 2, base=1e300))",
    "encode(3, 8, freqs=[1.0])": "encode(3, 8, freqs=[1.0, 0.5, 0.2, 0.1])",
    "encode(3, 8, freqs=[1.0] * 4, base=2.0)": "encode(3, 8, freqs=[1.0] * 4)",
    "embed([0, 100], table)": "embed([0, 99], table)",
}


class Tensor:
    """Like torch's of which NumPy makes no array: one that requires a gradient, or has bfloat16."""

    def __init__(self, dtype: str = "torch.float32", requires_grad: bool = False) -> None:
        self.array = np.ones((2, 3, 8), np.uint16 if dtype == "torch.bfloat16" else np.float32)
        self.dtype = dtype
        self.requires_grad = requires_grad

    def __array__(self, *_: Any, **__: Any) -> None:
        raise (RuntimeError if self.requires_grad else TypeError)("a message of torch's")

    def detach(self) -> Tensor:
        return Tensor(self.dtype)

    def __eq__(self, number: object) -> Any:
        return self._mask(self.array == number)

    def __ne__(self, number: object) -> Any:
        return self._mask(self.array != number)

    def _mask(self, result: Any) -> Tensor:
        mask = Tensor("torch.bool")
        mask.array = result[..., 0]
        return mask

    def view(self, dtype: Any) -> Tensor:
        assert dtype is np.uint16
        return Tensor(self.dtype)

    def numpy(self) -> Any:
        assert not self.requires_grad
        return self.array


def saved() -> io.BytesIO:
    file = io.BytesIO()
    np.save(file, np.ones((3, 8), np.float32))
    file.seek(0)
    return file


def arguments() -> dict[str, Any]:
    """Fresh arrays for every call."""
    x = np.arange(48, dtype=np.float32).reshape(2, 3, 8)
    readonly = x.copy()
    readonly.setflags(write=False)
    return {
        "x": x,
        "readonly": readonly,
        "misaligned": np.zeros(x.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(x.shape),
        "overlapping": np.lib.stride_tricks.as_strided(np.arange(60, dtype=np.float32), (2, 3, 8), (96, 16, 4)),
        "wide": np.arange(96, dtype=np.float32).reshape(6, 16),
        "flat": x.reshape(6, 8).copy(),
        "out": np.full((2, 3, 8), 7, np.float32),
        "table": np.arange(800, dtype=np.float32).reshape(100, 8),
        "big": x.astype(f"{FOREIGN}f4"),
        "positions": np.arange(3.0),
        "shared": np.zeros((3, 8)),
        "lists": np.array([*([1.0] * 8 for _ in range(3)), None], object)[:3],
    }


def functions() -> dict[str, Any]:
    names: dict[str, Any] = {name: getattr(fastpe, name) for name in ("add", "add_", "embed", "encode")}
    names |= {"replace": dataclasses.replace, "mlx": fastpe.conventions["mlx"]}
    names |= {"trained": Tensor(requires_grad=True), "short": Tensor("torch.bfloat16")}
    return names | {
        "saved": saved,
        "np": np,
        "fastpe": fastpe,
        "bfloat16": ml_dtypes.bfloat16,
        "enc": fastpe.PositionalEncoding(8),
    }


@pytest.mark.parametrize(("call", "error", "found", "remedy"), WRONG_CALLS, ids=[row[0] for row in WRONG_CALLS])
def test_wrong_call(call: str, error: type[Exception], found: str, remedy: str) -> None:
    arrays = arguments()
    before = {name: array.tobytes() for name, array in arrays.items()}
    with pytest.raises(error) as caught:
        eval(call, functions() | arrays)
    message = str(caught.value)
    assert type(caught.value) is error
    assert message.startswith(found)
    own = "argument" not in message and "immutable" not in message and "not known" not in message
    assert not own or "expected " in message
    assert remedy in message
    assert {name: array.tobytes() for name, array in arrays.items()} == before


@pytest.mark.parametrize("call", REMEDIED)
def test_the_remedy_works(call: str) -> None:
    remedy = next(remedy for wrong, _, _, remedy in WRONG_CALLS if wrong == call)
    check_remedy(evaluating(lambda: functions() | arguments()), call, remedy, REMEDIED[call])


def test_every_remedy_has_been_followed() -> None:
    remedies = {call: remedy for call, _, _, remedy in WRONG_CALLS}
    followed = {remedies[call] for call in REMEDIED}
    assert {remedy for remedy in remedies.values() if remedy} - followed == set()


def test_enough_wrong_calls() -> None:
    assert len({row[0] for row in WRONG_CALLS}) == len(WRONG_CALLS) >= 150
