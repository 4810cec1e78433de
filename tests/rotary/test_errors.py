# SPDX-License-Identifier: BSD-3-Clause
"""Wrong calls: each raises its documented error, which names the argument and what was found, says what was expected
and what to do, and leaves every array as it was.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe import RotaryEmbedding

from ..oracles.reference import FOREIGN, NATIVE, bits
from ..oracles.remedies import check_remedy, evaluating

DYNAMIC = {"rope_type": "dynamic", "factor": 2.0, "max_position_embeddings": 8}


def arrays() -> dict[str, Any]:
    """What the calls below name, made anew for each."""
    names: dict[str, Any] = {
        "np": np,
        "Rope": RotaryEmbedding,
        "DYNAMIC": DYNAMIC,
        "rope": RotaryEmbedding(4, interleaved=False),
        "several": RotaryEmbedding(4, interleaved=False, axes=[0, 1]),
        "tiny": RotaryEmbedding(4, interleaved=False, attention_factor=1e-310),
        "raw": RotaryEmbedding.__new__(RotaryEmbedding),
        "x": np.ones((2, 3, 4), np.float32),
        "q": np.ones((2, 5, 3, 4), np.float32),
        "k": np.ones((2, 1, 3, 4), np.float32),
        "packed": np.ones((6, 2, 4), np.float32),
        "wide": np.ones((2, 3, 8), np.float32),
        "cos": np.ones((9, 2), np.float32),
        "sin": np.ones((9, 2), np.float32),
        "numbers": np.ones((3, 4), np.int64),
        "memory": np.ones(96, np.int32),
        "nested": np.lib.stride_tricks.as_strided(np.ones(50, np.float32), (2, 3, 4), (8, 16, 4)),
        "readonly": np.ones((2, 3, 4), np.float32),
        "big": np.ones((2, 3, 4), f"{FOREIGN}f4"),
        "pairs": np.zeros((3, 2), f"{FOREIGN}c8"),
        "misaligned": np.frombuffer(bytearray(97), np.uint8)[1:97].view(np.float32).reshape(6, 4),
    }
    names["readonly"].flags.writeable = False
    names["given"] = functools.partial(fastpe.rotate_, interleaved=True)
    names["by"] = functools.partial(names["given"], cos=names["cos"], sin=names["sin"])
    return names


# The call; the error; what the message begins with (argument and what was found); a part of what is to be done, where
# the message has one beyond what it says was expected.
WRONG_CALLS: list[tuple[str, type[Exception], str, str]] = [
    # arrays
    ("rope.rotate_()", TypeError, "rotate_() is missing its argument 'x'", ""),
    (
        "rope.rotate_(x.tolist())",
        TypeError,
        "x is a list",
        "pass np.asarray(x, np.float32) and keep that",
    ),
    (
        "rope.rotate_(None)",
        TypeError,
        "x is None",
        "check the call that made it",
    ),
    (
        "rope.rotate_(x, None)",
        TypeError,
        "others[0] is None",
        "check the call that made it",
    ),
    ("rope.rotate_(x.astype('i4'))", TypeError, "x has dtype int32", "; pass np.asarray("),
    ("rope.rotate_(x.astype('c8'))", TypeError, "x has dtype complex64", "; pass x.view(np.float32), which"),
    (
        f"rope.rotate_(x.astype('{FOREIGN}f4'))",
        TypeError,
        f"x has dtype {FOREIGN}f4",
        "convert it with x.astype(x.dtype.newbyteorder('='))",
    ),
    (
        "rope.rotate_(x, wide.astype('f8'))",
        TypeError,
        "others[0] has dtype float64",
        "; pass np.asarray(",
    ),
    (
        "rope.rotate_(x, wide, q.astype('f2'))",
        TypeError,
        "others[1] has dtype float16",
        "; pass np.asarray(",
    ),
    (
        "rope.rotate_(np.ma.masked_array(x))",
        TypeError,
        "x is a masked array",
        "pass x.data, and the rows to leave alone as mask=",
    ),
    (
        "rope.rotate_(readonly)",
        ValueError,
        "x is read-only",
        "use rotate(.., out=) with an array of your own, or pass",
    ),
    (
        "rope.rotate_(x, readonly)",
        ValueError,
        "others[0] is read-only",
        "use rotate(.., out=) with an array of your own, or pass",
    ),
    (
        "rope.shift_(readonly, by=1)",
        ValueError,
        "x is read-only",
        "pass np.array(x) and keep that array (np.load: mmap_mode='r+')",
    ),
    ("by(readonly)", ValueError, "x is read-only", "pass np.array(x) and keep that array (np.load: mmap_mode='r+')"),
    (
        "rope.rotate_(nested)",
        ValueError,
        "x has elements that share memory (a broadcast or overlapping view)",
        "pass x.copy() and keep that array, or use rotate(.., out=)",
    ),
    (
        "rope.shift_(nested, by=1)",
        ValueError,
        "x has elements that share memory (a broadcast or overlapping view)",
        "pass x.copy()",
    ),
    (
        "rope.rotate_(np.broadcast_to(x[:1], x.shape))",
        ValueError,
        "x is read-only",
        "use rotate(.., out=) with an array of your own, or pass",
    ),
    (
        "rope.rotate_(misaligned)",
        ValueError,
        "x is misaligned",
        "make an aligned copy with np.require(x, requirements='A')",
    ),
    (
        "rope.rotate(misaligned)",
        ValueError,
        "x is misaligned",
        "make an aligned copy with np.require(x, requirements='A')",
    ),
    ("rope.rotate_(x[0, 0])", ValueError, "x has shape [4]", "use x[None] for one row"),
    ("rope.rotate_(q, x[0, 0])", ValueError, "others[0] has shape [4]", "use others[0][None] for one row"),
    ("rope.rotate_(x.reshape((1,) * 8 + x.shape))", ValueError, "x has 11 axes", "expected at most 10"),
    (
        "rope.rotate_(x[..., :3])",
        ValueError,
        "x has 3 columns",
        "pass wider heads, or make the embedding with a smaller",
    ),
    (
        "rope.rotate_(q, k[..., :2])",
        ValueError,
        "others[0] has 2 columns",
        "pass wider heads, or make the embedding with a smaller",
    ),
    (
        "rope.shift_(x[..., :2], by=1)",
        ValueError,
        "x has 2 columns",
        "pass wider heads, or make the embedding with a smaller",
    ),
    ("by(x[..., :3])", ValueError, "x has 3 columns", "pass wider heads, or tables of fewer columns"),
    # arrays that do not fit together
    (
        "rope.rotate_(q, k[:, :, :2])",
        ValueError,
        "others[0] has 2 rows along its sequence",
        "rotate it in a call of its own",
    ),
    (
        "rope.rotate_(q, k[:1], offset=[1, 2])",
        ValueError,
        "others[0] has shape [1, 1, 3, 4]",
        "rotate it in a call of its own",
    ),
    (
        "rope.rotate_(q, k[0], offset=[1, 2])",
        ValueError,
        "others[0] has shape [1, 3, 4]",
        "rotate it in a call of its own",
    ),
    (
        "rope.rotate_(q, k[0, 0], positions=[[0, 1, 2], [1, 2, 3]])",
        ValueError,
        "others[0] has shape [3, 4]",
        "rotate it in a call of its own",
    ),
    (
        "rope.rotate_(q, k[:1], mask=[[True] * 3] * 2)",
        ValueError,
        "others[0] has shape [1, 1, 3, 4]",
        "rotate it in a call of its own",
    ),
    (
        "rope.rotate_(q, k[:1], lengths=[1, 2])",
        ValueError,
        "others[0] has shape [1, 1, 3, 4]",
        "rotate it in a call of its own",
    ),
    (
        "rope.rotate_(q.transpose(0, 2, 1, 3), k[:, 0], seq_axis=-3)",
        ValueError,
        "others[0] has shape [2, 3, 4]",
        "pass others[0][:, :, None] if one head is shared",
    ),
    (
        "rope.rotate_(k[:, 0], q.transpose(0, 2, 1, 3), seq_axis=-3)",
        ValueError,
        "others[0] has shape [2, 3, 5, 4]",
        "pass x[:, :, None] if one head is shared",
    ),
    (
        "rope.rotate_(packed, packed[:, 0].copy(), seq_axis=0)",
        ValueError,
        "others[0] has shape [6, 4]",
        "pass others[0][:, None] if one head is shared",
    ),
    (
        "rope.shift_(q, k[:1], by=[[1], [2]])",
        ValueError,
        "others[0] has shape [1, 1, 3, 4]",
        "rotate it in a call of its own",
    ),
    ("by(q, k[:, :, :2])", ValueError, "others[0] has 2 rows along its sequence", "rotate it in a call of its own"),
    # shared memory
    ("rope.rotate_(x, x)", ValueError, "x shares memory with others[0]", "pass a copy of one"),
    ("rope.rotate_(x, wide, x[1:, ::-1])", ValueError, "x shares memory with others[1]", "pass a copy of one"),
    ("rope.rotate_(wide[..., :4], wide[..., 3:7])", ValueError, "x shares memory with others[0]", "pass a copy of one"),
    ("rope.rotate_(wide[..., :5], wide[..., 4:])", ValueError, "x shares memory with others[0]", "pass a copy of one"),
    (
        "rope.rotate_(wide[:, :2, :4], wide[:, 1:, :4])",
        ValueError,
        "x shares memory with others[0]",
        "pass a copy of one",
    ),
    ("rope.shift_(x, x, by=1)", ValueError, "x shares memory with others[0]", "pass a copy of one"),
    ("by(x, x)", ValueError, "x shares memory with others[0]", "pass a copy of one"),
    ("rope.rotate(x, out=x[:, ::-1])", ValueError, "out shares memory with x", "pass a copy of one"),
    ("rope.rotate(wide[..., :4], out=wide[..., 2:6])", ValueError, "out shares memory with x", "pass a copy of one"),
    (
        "rope.rotate_(memory.view('f4').reshape(2, 12, 4), positions=memory[:12])",
        ValueError,
        "x shares memory with positions",
        "pass a copy of one",
    ),
    (
        "rope.rotate_(memory.view('f4').reshape(2, 12, 4), offset=memory[3:5])",
        ValueError,
        "x shares memory with offset",
        "pass a copy of one",
    ),
    (
        "rope.rotate_(memory.view('f4').reshape(2, 12, 4), lengths=memory[:2])",
        ValueError,
        "x shares memory with lengths",
        "pass a copy of one",
    ),
    (
        "rope.rotate_(memory.view('f4').reshape(2, 12, 4), mask=memory[:3].view('?'))",
        ValueError,
        "x shares memory with mask",
        "pass a copy of one",
    ),
    (
        "rope.rotate_(memory.view('f4').reshape(24, 4), cu_seqlens=memory[4:6])",
        ValueError,
        "x shares memory with cu_seqlens",
        "pass a copy of one",
    ),
    (
        "rope.rotate(np.ones((2, 12, 4), 'f4'), positions=memory[:12], out=memory.view('f4').reshape(2, 12, 4))",
        ValueError,
        "out shares memory with positions",
        "pass a copy of one",
    ),
    (
        "rope.shift_(memory.view('f4').reshape(2, 12, 4), by=memory[:12])",
        ValueError,
        "x shares memory with by",
        "pass a copy of one",
    ),
    (
        "rope.tables(memory[:12], form='cos_sin', out=memory[:48].view('f4').reshape(12, 4))",
        ValueError,
        "out shares memory with positions",
        "pass a copy of one",
    ),
    (
        "rope.tables(memory[:12], out=(np.ones((12, 2), 'f4'), memory[:24].view('f4').reshape(12, 2)))",
        ValueError,
        "out[1] shares memory with positions",
        "pass a copy of one",
    ),
    ("by(x, cos=x[0, :, :2], sin=sin[:3])", ValueError, "x shares memory with cos", "pass a copy of one"),
    ("by(x, cos=sin[:3], sin=x[0, :, :2])", ValueError, "x shares memory with sin", "pass a copy of one"),
    ("by(q, x, cos=x[0, :, 2:], sin=sin[:3])", ValueError, "others[0] shares memory with cos", "pass a copy of one"),
    # rows
    (
        "rope.rotate_(packed, offset=[1, 2], seq_axis=0)",
        ValueError,
        "offset is given for each row of a batch, but x, [6, 2, 4], [N, heads, D], has no batch axi",
        "pass positions=[N], or x[:, None]",
    ),
    (
        "rope.rotate_(packed, positions=[[1, 2, 3, 4, 5, 6]] * 2, seq_axis=0)",
        ValueError,
        "positions is given for each row of a batch, but x, [6, 2, 4], [N, heads, D], has no batch ",
        "pass positions=[N], or x[:, None]",
    ),
    (
        "rope.rotate_(packed, mask=[[True] * 6] * 2, seq_axis=0)",
        ValueError,
        "mask is given for each row of a batch, but x, [6, 2, 4], [N, heads, D], has no batch axis",
        "pass positions=[N], or x[:, None]",
    ),
    (
        "rope.rotate_(packed, lengths=[1, 2], seq_axis=-3)",
        ValueError,
        "lengths is given for each row of a batch, but x, [6, 2, 4], [N, heads, D], has no batch ax",
        "pass positions=[N], or x[:, None]",
    ),
    (
        "rope.rotate_(x[0], offset=[1, 2])",
        ValueError,
        "offset is given for each row of a batch, but x, [3, 4], has no batch axis",
        "pass positions=[L], or x[None]",
    ),
    (
        "by(packed, offset=[1, 2], seq_axis=0)",
        ValueError,
        "offset is given for each row of a batch, but x, [6, 2, 4], [N, heads, D], has no batch axi",
        "pass positions=[N], or x[:, None]",
    ),
    (
        "rope.shift_(packed, by=[[1], [2]], seq_axis=0)",
        ValueError,
        "by is given for each row of a batch, but x, [6, 2, 4], [N, heads, D], has no batch axis",
        "pass by=[N], or x[:, None]",
    ),
    (
        "rope.shift_(x[0], by=[[1, 2, 3]] * 2)",
        ValueError,
        "by is given for each row of a batch, but x, [3, 4], has no batch axis",
        "pass by=[L], or x[None]",
    ),
    (
        "rope.rotate_(x, offset=[1, 2, 3])",
        ValueError,
        "offset has shape [3]",
        "expected an int, or shape [2]: one per batch row",
    ),
    (
        "rope.rotate_(x, offset=[[1, 2]])",
        ValueError,
        "offset has shape [1, 2]",
        "expected an int, or shape [2]: one per batch row",
    ),
    ("rope.rotate_(x, offset=1.5)", TypeError, "offset is 1.5", "fractional positions go into positions="),
    ("rope.rotate_(x, offset=True)", TypeError, "offset is True", "expected an int or an int array"),
    ("rope.rotate_(x, offset=[1.0, 2.0])", TypeError, "offset has dtype float64", "; pass np.asarray("),
    (
        "rope.rotate_(x, offset=2**53)",
        ValueError,
        "offset: the position of row 1 is 9007199254740993",
        "beyond it not every integer has a float64 of its own",
    ),
    (
        "rope.rotate_(x, offset=-2**53 - 1)",
        ValueError,
        "offset is -9007199254740993",
        "beyond it not every integer has a float64 of its own",
    ),
    (
        "rope.rotate_(x, offset=[0, 2**53])",
        ValueError,
        "offset[1]: the position of row 1 is 9007199254740993",
        "beyond it not every integer has a float64 of its own",
    ),
    (
        "rope.rotate_(x, offset=2**80)",
        ValueError,
        "offset is 1208925819614629174706176",
        "beyond it not every integer has a float64 of its own",
    ),
    (
        "rope.rotate_(x, offset=1, positions=[0, 1, 2])",
        ValueError,
        "positions and offset were both given",
        "leave offset out",
    ),
    ("rope.rotate_(x, positions=[0, 1])", ValueError, "positions has shape [2]", "expected [3] or [2, 3]: one per row"),
    ("rope.rotate_(x, positions=3)", ValueError, "positions has shape []", "expected [3] or [2, 3]: one per row"),
    (
        "rope.rotate_(x, positions=[[0, 1, 2]] * 3)",
        ValueError,
        "positions has shape [3, 3]",
        "expected [3] or [2, 3]: one per row",
    ),
    (
        "rope.rotate_(x, positions=[[[0, 1, 2]]])",
        ValueError,
        "positions has shape [1, 1, 3]",
        "expected [3] or [2, 3]: one per row",
    ),
    (
        "rope.rotate_(x, positions=[0, 1, np.nan])",
        ValueError,
        "positions[2] is nan",
        "beyond it not every integer has a float64 of its own",
    ),
    (
        "rope.rotate_(x, positions=[[0, 1, 2], [0, -np.inf, 2]])",
        ValueError,
        "positions[1, 1] is -inf",
        "beyond it not every integer has a float64 of its own",
    ),
    (
        "rope.rotate_(x, positions=[0, 1, 2**53 + 1])",
        ValueError,
        "positions[2] is 9007199254740993",
        "beyond it not every integer has a float64 of its own",
    ),
    (
        "rope.rotate_(x, positions=[0, 1, -2.0**54])",
        ValueError,
        "positions[2] is -18014398509481984",
        "beyond it not every integer has a float64 of its own",
    ),
    (
        "rope.rotate_(x, positions=np.array([0, 1, 2], 'f2'))",
        TypeError,
        "positions has dtype float16",
        "a 16-bit float cannot hold every position: keep them in",
    ),
    (
        "rope.rotate_(x, positions=['a', 'b', 'c'])",
        TypeError,
        f"positions has dtype {NATIVE}U1",
        "np.asarray(positions, np.float64) where the text is digits",
    ),
    (
        "rope.rotate_(x, positions=[0, 1, 2j])",
        TypeError,
        "positions has dtype complex128",
        "; pass np.asarray(",
    ),
    ("rope.rotate_(x, mask=[True, False])", ValueError, "mask has shape [2]", "expected [3] or [2, 3]: one per row"),
    (
        "rope.rotate_(x, mask=np.array([0, 1, 1], 'f8'))",
        TypeError,
        "mask has dtype float64",
        "give mask != 0, or mask == 0 of one that is added to scores",
    ),
    (
        "rope.rotate_(x, mask=[True] * 3, lengths=[1, 1])",
        ValueError,
        "mask and lengths were both given",
        "leave lengths out",
    ),
    ("rope.rotate_(x, lengths=[1, 4])", ValueError, "lengths[1] is 4", "expected 0 to the sequence length, 3"),
    ("rope.rotate_(x, lengths=[-1, 1])", ValueError, "lengths[0] is -1", "expected 0 to the sequence length, 3"),
    ("rope.rotate_(x, lengths=[1.0, 1.0])", TypeError, "lengths has dtype float64", "; pass np.asarray("),
    (
        "rope.rotate_(packed, cu_seqlens=[0, 5], seq_axis=0)",
        ValueError,
        "cu_seqlens[1] is 5",
        "expected 0, then values that never fall, then the number of",
    ),
    (
        "rope.rotate_(packed, cu_seqlens=[0, 4, 3, 6], seq_axis=0)",
        ValueError,
        "cu_seqlens[2] is 3",
        "expected 0, then values that never fall, then the number of",
    ),
    (
        "rope.rotate_(packed, cu_seqlens=[1, 6], seq_axis=0)",
        ValueError,
        "cu_seqlens[0] is 1",
        "expected 0, then values that never fall, then the number of",
    ),
    (
        "rope.rotate_(packed, cu_seqlens=[[0, 6]], seq_axis=0)",
        ValueError,
        "cu_seqlens has shape [1, 2]",
        "expected [number of sequences + 1]: 0, the running sum of",
    ),
    (
        "rope.rotate_(packed, cu_seqlens=[0, 3, 6], seq_axis=0, offset=[1, 2, 3])",
        ValueError,
        "offset has shape [3]",
        "expected an int, or shape [2]: one per sequence",
    ),
    (
        "rope.rotate_(packed, cu_seqlens=[0, 3, 6], seq_axis=0, offset=[1, 2**53])",
        ValueError,
        "offset[1]: the position of row 4 is 9007199254740993",
        "beyond it not every integer has a float64 of its own",
    ),
    (
        "rope.rotate_(packed, cu_seqlens=[0, 6], seq_axis=0, positions=range(6))",
        ValueError,
        "cu_seqlens and positions were both given",
        "leave positions out",
    ),
    (
        "rope.rotate_(packed, cu_seqlens=[0, 6], seq_axis=0, lengths=[6])",
        ValueError,
        "cu_seqlens and lengths were both given",
        "leave lengths out",
    ),
    (
        "rope.rotate_(packed, cu_seqlens=[0, 6], seq_axis=0, mask=[True] * 6)",
        ValueError,
        "cu_seqlens and mask were both given",
        "leave mask out",
    ),
    # the other keywords of rotate_ and rotate
    (
        "rope.rotate_(x, seq_axis=2)",
        ValueError,
        "seq_axis is 2",
        "expected an axis of x, [2, 3, 4], other than the last",
    ),
    (
        "rope.rotate_(x, seq_axis=-1)",
        ValueError,
        "seq_axis is -1",
        "expected an axis of x, [2, 3, 4], other than the last",
    ),
    (
        "rope.rotate_(x, seq_axis=5)",
        ValueError,
        "seq_axis is 5",
        "expected an axis of x, [2, 3, 4], other than the last",
    ),
    ("rope.rotate_(x, seq_axis=1.0)", TypeError, "seq_axis is 1.0", "expected an int"),
    ("rope.rotate_(x, inverse=1)", TypeError, "inverse is 1", "expected True or False"),
    (
        "tiny.rotate_(x, inverse=True)",
        ValueError,
        "inverse is True, but the attention_factor, 9.9999999999999694e-311, has no finite inverse",
        "make the embedding with a larger one",
    ),
    (
        "rope.rotate_(x, num_threads=0)",
        ValueError,
        "num_threads is 0",
        "expected a positive int, or None for the default",
    ),
    (
        "rope.rotate_(x, num_threads=1.5)",
        TypeError,
        "num_threads is 1.5",
        "expected a positive int, or None for the default",
    ),
    ("rope.rotate_(x, out=x)", TypeError, "rotate_() got an unexpected keyword argument 'out'", ""),
    (
        "rope.rotate_(x, ofset=1)",
        TypeError,
        "rotate_() got an unexpected keyword argument 'ofset'",
        "did you mean 'offset'?",
    ),
    (
        "rope.rotate(x, wide)",
        TypeError,
        "rotate() takes 1 positional argument(s), found 2",
        "seq_axis, inverse, num_threads, out; rotate one array in each call",
    ),
    (
        "rope.rotate(x, out=x[:1])",
        ValueError,
        "out has shape [1, 3, 4]",
        "expected exactly [2, 3, 4]: nothing is broadcast",
    ),
    (
        "rope.rotate(x, out=wide)",
        ValueError,
        "out has shape [2, 3, 8]",
        "expected exactly [2, 3, 4]: nothing is broadcast",
    ),
    (
        "rope.rotate(x, out=x.astype('f8'))",
        TypeError,
        "out has dtype float64",
        "as x has; pass an array of that dtype",
    ),
    (
        "rope.rotate(x, out=readonly)",
        ValueError,
        "out is read-only",
        "pass np.array(out) and keep that array (np.load: mmap_mode='r+')",
    ),
    (
        "rope.rotate(x, out=x.tolist())",
        TypeError,
        "out is a list",
        "pass np.asarray(out, np.float32) and keep that",
    ),
    (
        "rope.rotate(x, out=nested)",
        ValueError,
        "out has elements that share memory (a broadcast or overlapping view)",
        "pass out.copy()",
    ),
    ("raw.rotate_(x)", TypeError, "RotaryEmbedding is not initialised", "make a new one"),
    ("raw.tables(3)", TypeError, "RotaryEmbedding is not initialised", "make a new one"),
    # shift_
    ("rope.shift_(x)", TypeError, "shift_() is missing its argument 'by'", ""),
    ("rope.shift_(x, by=None)", TypeError, "shift_() is missing its argument 'by'", ""),
    ("rope.shift_(x, by='1')", TypeError, f"by has dtype {NATIVE}U1", "int(by) where the text is digits"),
    ("rope.shift_(x, by=True)", TypeError, "by has dtype bool", "; pass np.asarray("),
    (
        "rope.shift_(x, by=[1, 2])",
        ValueError,
        "by has shape [2]",
        "expected [3] or [2, 3]: one per row, or [2, 1]: one per sequence",
    ),
    (
        "rope.rotate_(packed, cu_seqlens=[0, 2, 6])",
        ValueError,
        "cu_seqlens ends at 6, expected the number of rows along axis 1 of x, [6, 2, 4]",
        "give seq_axis=0 for [N, heads, D]",
    ),
    ("rope.rotate_(x, 5)", TypeError, "others[0] is 5", "give positions=, offset=, by= and the like by their names"),
    (
        "rope.shift_(x, -3.0)",
        TypeError,
        "others[0] is -3.0",
        "give positions=, offset=, by= and the like by their names",
    ),
    ("rope.rotate_((q, k))", TypeError, "x is a tuple of arrays", "pass its arrays one by one"),
    ("rope.tables(3, form='half')", ValueError, "form is 'half'", "did you mean 'halves'?"),
    (
        "by(x, cos=np.tile(cos, 2), sin=np.tile(sin, 2))",
        ValueError,
        "x has 4 columns, expected at least 8",
        "such as cos[:, :d // 2] of a tiled one or np.ascontiguousarray(cos[:, ::2]) of a repeated one",
    ),
    ("rope.shift_(x, by=[[1], [2], [3]])", ValueError, "by has shape [3, 1]", "expected [3] or [2, 3]: one per row"),
    (
        "rope.shift_(x, by=[1, 2, np.inf])",
        ValueError,
        "by[2] is inf",
        "beyond it not every integer has a float64 of its own",
    ),
    (
        "rope.shift_(x, by=[[1], [np.nan]])",
        ValueError,
        "by[1, 0] is nan",
        "beyond it not every integer has a float64 of its own",
    ),
    (
        "rope.shift_(x, by=-2**53 - 1)",
        ValueError,
        "by is -9007199254740993",
        "beyond it not every integer has a float64 of its own",
    ),
    (
        "rope.shift_(x, by=2**80)",
        ValueError,
        "by is 1208925819614629174706176",
        "beyond it not every integer has a float64 of its own",
    ),
    (
        "rope.shift_(x, by=np.array(2**54))",
        ValueError,
        "by[0] is 18014398509481984",
        "beyond it not every integer has a float64 of its own",
    ),
    ("rope.shift_(x, by=3, offset=1)", TypeError, "shift_() got an unexpected keyword argument 'offset'", ""),
    (
        "rope.shift_(x, by=3, positions=[1, 2, 3])",
        TypeError,
        "shift_() got an unexpected keyword argument 'positions'",
        "",
    ),
    ("rope.shift_(x, by=3, inverse=True)", TypeError, "shift_() got an unexpected keyword argument 'inverse'", ""),
    ("rope.shift_(x, by=3, lengths=[4, 1])", ValueError, "lengths[0] is 4", "expected 0 to the sequence length, 3"),
    (
        "rope.shift_(x, by=3, mask=[[True, False]])",
        ValueError,
        "mask has shape [1, 2]",
        "expected [3] or [2, 3]: one per row",
    ),
    # several coordinates
    (
        "several.rotate_(x)",
        ValueError,
        "positions is missing",
        "expected an array [.., 2], the coordinates of each row",
    ),
    (
        "several.rotate(x)",
        ValueError,
        "positions is missing",
        "expected an array [.., 2], the coordinates of each row",
    ),
    ("several.rotate_(x, offset=1)", ValueError, "offset is 1", "pass positions=, an array [.., 2]"),
    (
        "several.rotate_(packed, cu_seqlens=[0, 6], seq_axis=0)",
        ValueError,
        "cu_seqlens is [0, 6]",
        "pass positions=, an array [.., 2]",
    ),
    (
        "several.rotate_(x, positions=np.zeros((3, 3)))",
        ValueError,
        "positions has shape [3, 3]",
        "expected [3, 2] or [2, 3, 2]: the coordinates of each row",
    ),
    *(
        (
            f"several.rotate_(x, positions=np.zeros({shape}))",
            ValueError,
            "positions has shape ",
            "expected [3, 2] or [2, 3, 2]: the coordinates of each row; pass np.moveaxis(np.asarray(positions), 0, -1)",
        )
        for shape in ((2, 3), (2, 2, 3))
    ),
    (
        "several.tables(np.zeros((2, 3, 5)))",
        ValueError,
        "positions has shape [2, 3, 5]",
        "expected a last axis of 2, the coordinates that axes= counts; pass np.moveaxis(np.asarray(positions), 0, -1)",
    ),
    (
        "several.rotate_(x, positions=[0, 1, 2])",
        ValueError,
        "positions has shape [3]",
        "expected [3, 2] or [2, 3, 2]: the coordinates of each row",
    ),
    (
        "several.rotate_(x, positions=np.zeros((3, 3, 2)))",
        ValueError,
        "positions has shape [3, 3, 2]",
        "expected [3, 2] or [2, 3, 2]: the coordinates of each row",
    ),
    (
        "several.rotate_(x[0], positions=np.zeros((2, 3, 2)))",
        ValueError,
        "positions is given for each row of a batch, but x, [3, 4], has no batch axis",
        "pass positions=[L], or x[None]",
    ),
    (
        "several.rotate_(x, positions=[[0, 0], [1, np.nan], [1, 1]])",
        ValueError,
        "positions[1][1] is nan",
        "beyond it not every integer has a float64 of its own",
    ),
    (
        "several.rotate_(x, positions=[[0, 0], [1, 2], [2**54, 1]])",
        ValueError,
        "positions[2][0] is 18014398509481984",
        "beyond it not every integer has a float64 of its own",
    ),
    (
        "several.rotate_(x, mask=[True] * 3)",
        ValueError,
        "positions is missing",
        "expected an array [.., 2], the coordinates of each row",
    ),
    ("several.shift_(x, by=3)", ValueError, "by is 3", "expected an array of 2 coordinates, since the embedding has"),
    (
        "several.shift_(x, by=[1, 2, 3])",
        ValueError,
        "by has shape [3]",
        "expected a last axis of 2, the coordinates that axes=",
    ),
    (
        "several.shift_(x, by=[[1, 2], [3, 4]])",
        ValueError,
        "by has shape [2, 2]",
        "expected [3, 2] or [2, 3, 2]: the coordinates of each row",
    ),
    (
        "several.shift_(x, by=[1, np.inf])",
        ValueError,
        "by[0][1] is inf",
        "beyond it not every integer has a float64 of its own",
    ),
    ("several.tables(5)", ValueError, "positions is 5", "pass positions=, an array [.., 2]"),
    ("several.tables(np.ones((3, 2)), offset=2)", ValueError, "offset is 2", "pass positions=, an array [.., 2]"),
    ("several.tables(5, offset=2)", ValueError, "offset is 2", "pass positions=, an array [.., 2]"),
    (
        "several.tables([1, 2, 3])",
        ValueError,
        "positions has shape [3]",
        "expected a last axis of 2, the coordinates that axes=",
    ),
    (
        "several.tables(np.ones((2, 3)))",
        ValueError,
        "positions has shape [2, 3]",
        "expected a last axis of 2, the coordinates that axes=",
    ),
    (
        "several.tables([[0, 2**54]])",
        ValueError,
        "positions[0][1] is 18014398509481984",
        "beyond it not every integer has a float64 of its own",
    ),
    # tables
    ("rope.tables()", TypeError, "tables() is missing its argument 'positions'", ""),
    ("rope.tables(-1)", ValueError, "positions is -1", "for one negative position pass an array, [-1]"),
    ("rope.tables(True)", TypeError, "positions is True", "or an array of positions"),
    ("rope.tables(2.0)", TypeError, "positions is 2.0", "for one fractional position pass [2.0]"),
    ("rope.tables(None)", TypeError, "positions is None", "or an array of positions"),
    ("rope.tables('3')", TypeError, f"positions has dtype {NATIVE}U1", "int(positions) where the text is digits"),
    (
        "rope.tables([0.0, np.nan])",
        ValueError,
        "positions[1] is nan",
        "beyond it not every integer has a float64 of its own",
    ),
    (
        "rope.tables([0, 2**53 + 1])",
        ValueError,
        "positions[1] is 9007199254740993",
        "beyond it not every integer has a float64 of its own",
    ),
    ("rope.tables([[1, 2], [3]])", ValueError, "positions is a list that makes no array", "pass an array"),
    (
        "rope.tables(3, offset=2**53)",
        ValueError,
        "offset: the position of row 1 is 9007199254740993",
        "beyond it not every integer has a float64 of its own",
    ),
    (
        "rope.tables(3, offset=[0, 2**53])",
        ValueError,
        "offset[1]: the position of row 1 is 9007199254740993",
        "beyond it not every integer has a float64 of its own",
    ),
    ("rope.tables(3, offset=1.5)", TypeError, "offset is 1.5", "fractional positions go into positions="),
    ("rope.tables([1, 2], offset=3)", ValueError, "positions and offset were both given", "leave offset out"),
    ("rope.tables(2**60)", ValueError, "positions is 1152921504606846976", "compute fewer"),
    ("rope.tables(np.zeros((1,) * 9))", ValueError, "positions has more than 8 axes", "expected at most 8"),
    (
        "rope.tables(3, form='Halves')",
        ValueError,
        "form is 'Halves'",
        "expected 'halves', 'tile', 'repeat', 'cos_sin', 'sin_cos', 'pairs', 'complex' or 'angles'; did you mean 'halves'?",
    ),
    ("rope.tables(3, form=3)", TypeError, "form is 3", "expected 'halves', 'tile'"),
    ("rope.tables(3, dtype=np.int64)", TypeError, "dtype is int64", "expected float32, float64"),
    (
        "rope.tables(3, dtype='x')",
        TypeError,
        "dtype is 'x'",
        "expected float32, float64, float16 or ml_dtypes.bfloat16",
    ),
    (
        f"rope.tables(3, dtype='{FOREIGN}f4')",
        TypeError,
        f"dtype is {FOREIGN}f4",
        "pass np.dtype(dtype).newbyteorder('=')",
    ),
    (
        "rope.tables(3, form='angles', dtype=np.float16)",
        TypeError,
        "dtype is float16",
        "expected float32 or float64 for form='angles'",
    ),
    (
        "rope.tables(3, form='complex', dtype=np.float16)",
        TypeError,
        "dtype is float16",
        "expected float32 or float64, the dtype of the parts, for",
    ),
    (
        "rope.tables(3, form='complex', dtype=np.complex64)",
        TypeError,
        "dtype is complex64",
        "expected float32 or float64, the dtype of the parts, for form='complex'",
    ),
    ("rope.tables(3, channels=(0, 2))", TypeError, "tables() got an unexpected keyword argument 'channels'", ""),
    (
        "rope.tables(3, num_threads=0)",
        ValueError,
        "num_threads is 0",
        "expected a positive int, or None for the default",
    ),
    (
        "rope.tables(3, out=cos[:3])",
        TypeError,
        "out is a numpy.ndarray",
        "expected a tuple of two arrays, (cos, sin), for",
    ),
    (
        "rope.tables(3, out=(cos[:3],))",
        TypeError,
        "out is a tuple of 1",
        "expected a tuple of two arrays, (cos, sin), for",
    ),
    (
        "rope.tables(3, out=(cos[:3], sin[:3], sin[3:6]))",
        TypeError,
        "out is a tuple of 3",
        "expected a tuple of two arrays, (cos, sin), for",
    ),
    (
        "rope.tables(3, out=(cos[:3], None))",
        TypeError,
        "out[1] is None",
        "check the call that made it",
    ),
    (
        "rope.tables(3, out=(cos[:3], sin[:3].tolist()))",
        TypeError,
        "out[1] is a list",
        "pass np.asarray(out[1], np.float32) and keep that",
    ),
    (
        "rope.tables(3, out=(cos[:3], np.zeros((3, 2))))",
        TypeError,
        "out[1] has dtype float64",
        "pass an array of that dtype, or dtype=",
    ),
    (
        "rope.tables(3, out=(cos[:3], sin[:2]))",
        ValueError,
        "out[1] has shape [2, 2]",
        "expected exactly [3, 2]: nothing is broadcast",
    ),
    ("rope.tables(3, out=(cos[:3], cos[:3]))", ValueError, "out[0] shares memory with out[1]", "pass a copy of one"),
    ("rope.tables(3, out=(cos[:3], cos[2:5]))", ValueError, "out[0] shares memory with out[1]", "pass a copy of one"),
    (
        "rope.tables(3, out=(cos[:3], np.broadcast_to(sin[0], (3, 2))))",
        ValueError,
        "out[1] is read-only",
        "pass np.array(out[1]) and keep that array (np.load: mmap_mode='r+')",
    ),
    (
        "rope.tables(3, form='cos_sin', out=(cos[:3], sin[:3]))",
        TypeError,
        "out is a tuple",
        "give the array, or a form of two arrays",
    ),
    (
        "rope.tables(3, form='tile', out=(cos[:3], sin[:3]))",
        ValueError,
        "out[0] has shape [3, 2]",
        "expected exactly [3, 4]: nothing is broadcast",
    ),
    (
        "rope.tables(3, form='pairs', out=np.zeros((3, 4), np.float32))",
        ValueError,
        "out has shape [3, 4]",
        "expected exactly [3, 2, 2]: nothing is broadcast",
    ),
    (
        "rope.tables(3, form='complex', out=np.zeros((3, 2), np.float32))",
        TypeError,
        "out has dtype float32",
        "pass an array of that dtype, or dtype=",
    ),
    (
        "rope.tables(3, form='complex', out=np.zeros((3, 2), np.complex128), dtype=np.float32)",
        TypeError,
        "out has dtype complex128",
        "pass an array of that dtype, or dtype=",
    ),
    (
        f"rope.tables(3, form='complex', out=np.zeros((3, 2), '{FOREIGN}c8'))",
        TypeError,
        f"out has dtype {FOREIGN}c8",
        "convert it with out.astype(out.dtype.newbyteorder('='))",
    ),
    (
        "rope.tables(3, form='complex', out=np.zeros((3, 4), np.complex64)[:, ::2])",
        ValueError,
        "out has pairs with gaps between them",
        "pass an array whose last axes are contiguous",
    ),
    (
        "rope.tables(3, form='pairs', out=np.zeros((3, 4, 2), np.float32)[:, ::2])",
        ValueError,
        "out has pairs with gaps between them",
        "pass an array whose last axes are contiguous",
    ),
    (
        "rope.tables(3, form='angles', out=np.zeros((3, 2), np.float16))",
        TypeError,
        "out has dtype float16",
        "expected float32 or float64 for form='angles'",
    ),
    (
        "rope.tables(3, form='cos_sin', out=np.zeros((3, 4), np.float32), dtype=np.float64)",
        TypeError,
        "out has dtype float32",
        "pass an array of that dtype, or dtype=",
    ),
    (
        "rope.tables(3, form='cos_sin', out=np.zeros((3, 4), np.int32))",
        TypeError,
        "out has dtype int32",
        "; pass an array of one of them",
    ),
    (
        "rope.tables(3, form='cos_sin', out=readonly[0])",
        ValueError,
        "out is read-only",
        "pass np.array(out) and keep that array (np.load: mmap_mode='r+')",
    ),
    # tables that are given
    (
        "given(x)",
        TypeError,
        "rotate_() is missing its argument 'cos'",
        "or make a RotaryEmbedding(..) and call its rotate_",
    ),
    ("given(x, cos=cos)", TypeError, "rotate_() is missing its argument 'sin'", "give the cosines and sines"),
    ("given(x, sin=sin)", TypeError, "rotate_() is missing its argument 'cos'", "give the cosines and sines"),
    ("by(x, interleaved='yes')", TypeError, "interleaved is 'yes'", "expected True or False"),
    ("by(x, interleaved=None)", TypeError, "interleaved is None", "expected True or False"),
    ("by(x, conjugate=0)", TypeError, "conjugate is 0", "expected True or False"),
    (
        "by(x, inverse=True)",
        TypeError,
        "rotate_() got an unexpected keyword argument 'inverse'",
        "leave it out, or make a RotaryEmbedding(..)",
    ),
    ("by()", TypeError, "rotate_() is missing its argument 'x'", ""),
    ("by(x, cos=None)", TypeError, "cos is a NoneType", "what np.asarray makes an array of numbers"),
    (
        "by(x, cos=cos.tolist())",
        TypeError,
        "sin has dtype float32",
        "; pass np.asarray(",
    ),
    ("by(x, cos=cos[0])", ValueError, "cos has shape [2]", "expected [rows, pairs], one pair or more"),
    (
        "by(x, cos=cos[None], sin=sin[None])",
        ValueError,
        "cos has shape [1, 9, 2]",
        "expected [rows, pairs], one pair or more",
    ),
    (
        "by(x, cos=cos[:, :0], sin=sin[:, :0])",
        ValueError,
        "cos has shape [9, 0]",
        "expected [rows, pairs], one pair or more",
    ),
    ("by(x, cos=cos[:, :1])", ValueError, "sin has shape [9, 2]", "expected exactly [9, 1]: nothing is broadcast"),
    ("by(x, sin=sin[:5])", ValueError, "sin has shape [5, 2]", "expected exactly [9, 2]: nothing is broadcast"),
    (
        "by(x, cos=np.ones((9, 3), 'f4'), sin=np.ones((9, 3), 'f4'))",
        ValueError,
        "x has 4 columns",
        "pass wider heads, or tables of fewer columns",
    ),
    (
        "by(x, cos=np.ones((9, 4), 'f4')[:, ::2])",
        ValueError,
        "cos has columns that are not contiguous",
        "make a copy with np.ascontiguousarray(cos)",
    ),
    (
        "by(x, sin=np.ones((9, 4), 'f4')[:, ::2])",
        ValueError,
        "sin has columns that are not contiguous",
        "make a copy with np.ascontiguousarray(sin)",
    ),
    ("by(x, sin=sin.astype('f8'))", TypeError, "sin has dtype float64", "; pass np.asarray("),
    (
        "by(x, cos=cos.astype('f8'), sin=sin.astype('f8'))",
        TypeError,
        "cos has dtype float64",
        "; pass np.asarray(",
    ),
    (
        "by(x, cos=cos.astype('f2'), sin=sin.astype('f2'))",
        TypeError,
        "cos has dtype float16",
        "; pass np.asarray(",
    ),
    (
        "by(x.astype('f2'), cos=cos.astype('f8'), sin=sin.astype('f8'))",
        TypeError,
        "cos has dtype float64",
        "; pass np.asarray(",
    ),
    (
        "by(x.astype('f8'), cos=cos.astype('f2'), sin=sin.astype('f2'))",
        TypeError,
        "cos has dtype float16",
        "; pass np.asarray(",
    ),
    (
        "by(x, cos=cos.astype('i4'), sin=sin.astype('i4'))",
        TypeError,
        "cos has dtype int32",
        "; pass np.asarray(",
    ),
    (
        f"by(x, cos=cos.astype('{FOREIGN}f4'), sin=sin.astype('{FOREIGN}f4'))",
        TypeError,
        f"cos has dtype {FOREIGN}f4",
        "convert it with cos.astype(cos.dtype.newbyteorder('='))",
    ),
    ("by(x, offset=7)", IndexError, "offset: the position of row 2 is 9", "pass longer tables or smaller positions"),
    ("by(x, positions=[0, 1, 9])", IndexError, "positions[2] is 9", "pass longer tables or smaller positions"),
    ("by(x, positions=[0, 1, -1])", IndexError, "positions[2] is -1", "pass longer tables or smaller positions"),
    ("by(x, positions=[0, 1, 0.5])", IndexError, "positions[2] is 0.5", "pass longer tables or smaller positions"),
    (
        "by(x, cos=cos[:0], sin=sin[:0])",
        IndexError,
        "the position of row 0 is 0",
        "pass longer tables or smaller positions",
    ),
    # the embedding
    (
        "Rope(4)",
        TypeError,
        "RotaryEmbedding() is missing its argument 'interleaved'",
        "give interleaved=True for neighbours",
    ),
    (
        "Rope(4, True)",
        TypeError,
        "RotaryEmbedding() is missing its argument 'interleaved'",
        "or call RotaryEmbedding.from_config(config)",
    ),
    (
        "Rope(5, interleaved=True)",
        ValueError,
        "rotary_dim is 5",
        "expected an even number: columns are rotated in pairs",
    ),
    ("Rope(0, interleaved=True)", ValueError, "rotary_dim is 0", "expected 2 to 2**20"),
    ("Rope(-2, interleaved=True)", ValueError, "rotary_dim is -2", "expected 2 to 2**20"),
    ("Rope(2**21, interleaved=True)", ValueError, "rotary_dim is 2097152", "expected 2 to 2**20"),
    ("Rope(4.0, interleaved=True)", TypeError, "rotary_dim is 4.0", "expected an int"),
    ("Rope(4, interleaved=1)", TypeError, "interleaved is 1", "expected True or False"),
    ("Rope(4, interleaved='no')", TypeError, "interleaved is 'no'", "expected True or False"),
    (
        "Rope(4, interleaved=True, freqs=[1, 2, 3])",
        ValueError,
        "freqs has shape [3]",
        "expected [2]: one per pair of columns",
    ),
    ("Rope(4, interleaved=True, freqs=[[1], [2, 3]])", ValueError, "freqs is [[1], [2, 3]]", "expected [2] numbers"),
    (
        "Rope(4, interleaved=True, freqs=[1, 2], base=1e4)",
        ValueError,
        "freqs and base were both given",
        "freqs are the frequencies themselves: leave base out",
    ),
    (
        "Rope(4, interleaved=True, freqs=[1, 2], seq_len=3)",
        ValueError,
        "freqs and seq_len were both given",
        "freqs are the frequencies themselves: leave seq_len out",
    ),
    (
        "Rope(4, interleaved=True, freqs=[1, 2], scaling={})",
        ValueError,
        "freqs and scaling were both given",
        "freqs are the frequencies themselves: leave scaling out",
    ),
    (
        "Rope(4, interleaved=True, freqs=['a', 'b'])",
        TypeError,
        f"freqs has dtype {NATIVE}U1",
        "np.asarray(freqs, np.float64) where the text is digits",
    ),
    (
        "Rope(4, interleaved=True, freqs=[1, 2j])",
        TypeError,
        "freqs has dtype complex128",
        "; pass np.asarray(",
    ),
    (
        "Rope(4, interleaved=True, freqs=[1, np.nan])",
        ValueError,
        "frequency 1 is nan radians per position",
        "check base, scaling and freqs",
    ),
    (
        "Rope(4, interleaved=True, attention_factor=0)",
        ValueError,
        "attention_factor is 0",
        "expected a finite number above 0",
    ),
    (
        "Rope(4, interleaved=True, attention_factor=-1.0)",
        ValueError,
        "attention_factor is -1.0",
        "expected a finite number above 0",
    ),
    (
        "Rope(4, interleaved=True, attention_factor=np.inf)",
        ValueError,
        "attention_factor is inf",
        "expected a finite number above 0",
    ),
    ("Rope(4, interleaved=True, attention_factor='1')", TypeError, "attention_factor is '1'", "expected a number"),
    ("Rope(4, interleaved=True, axes=[0, -1])", ValueError, "axes has -1", "expected coordinates from 0 to 15"),
    ("Rope(4, interleaved=True, axes=[0, 16])", ValueError, "axes has 16", "expected coordinates from 0 to 15"),
    ("Rope(4, interleaved=True, axes=[0.0, 1.0])", TypeError, "axes has dtype float64", "; pass np.asarray("),
    (
        "Rope(4, interleaved=True, axes=[0, 1, 2])",
        ValueError,
        "axes has shape [3]",
        "expected [2]: one coordinate per frequency",
    ),
    ("Rope(4, interleaved=True, axes=[[0], [1, 2]])", ValueError, "axes is [[0], [1, 2]]", "expected [2] ints"),
    ("Rope(4, interleaved=True, conjugate=None)", TypeError, "conjugate is None", "expected True or False"),
    ("Rope(4, interleaved=True, form='tiles')", ValueError, "form is 'tiles'", "did you mean 'tile'?"),
    (
        "Rope(4, interleaved=True, form=1)",
        TypeError,
        "form is 1",
        "expected 'halves', 'tile', 'repeat', 'cos_sin', 'sin_cos', '",
    ),
    ("Rope(4, interleaved=True, max_len=-1)", ValueError, "max_len is -1", "expected at least 0"),
    ("Rope(4, interleaved=True, max_len=2.0)", TypeError, "max_len is 2.0", "expected an int"),
    ("Rope(4, interleaved=True, base=0.5)", ValueError, "base is 0.5", "expected a finite number, at least 1"),
    ("Rope(4, interleaved=True, base='1')", TypeError, "base is '1'", "expected a number"),
    (
        "Rope(4, interleaved=True, scaling='linear')",
        TypeError,
        "scaling is 'linear'",
        'such as {"rope_type": "linear", "factor": 4.0}',
    ),
    (
        "Rope(4, interleaved=True, scaling={'rope_type': 'yarm'})",
        ValueError,
        "scaling[\"rope_type\"] is 'yarm', which is not known",
        'did you mean "yarn"?',
    ),
    ("Rope(4, interleaved=True, scaling=DYNAMIC)", ValueError, "seq_len is None", "give seq_len="),
    (
        "Rope(4, interleaved=True, scaling={'rope_type': 'longrope', 'original_max_position_embeddings': 8, 'factor': 2.0, 'short_factor': [1, 1], 'long_factor': [1, 1]})",
        ValueError,
        "seq_len is None",
        "give seq_len=",
    ),
]

# What each remedy makes of one of the calls that get it, where there is more to do than to pass what was expected.
REMEDIED: dict[str, str] = {
    "rope.tables(3, form='cos_sin', out=(cos[:3], sin[:3]))": "rope.tables(3, form='halves', out=(cos[:3], sin[:3]))",
    "rope.rotate_(packed, cu_seqlens=[0, 2, 6])": "rope.rotate_(packed, cu_seqlens=[0, 2, 6], seq_axis=0)",
    "rope.rotate_(x, 5)": "rope.rotate_(x, offset=5)",
    "rope.rotate_((q, k))": "rope.rotate_(q, k)",
    "rope.tables(3, form='half')": "rope.tables(3, form='halves')",
    "by(x, cos=np.tile(cos, 2), sin=np.tile(sin, 2))": "by(x, cos=np.tile(cos, 2)[:, :2], sin=np.tile(sin, 2)[:, :2])",
    "rope.rotate_(x.tolist())": "rope.rotate_(np.asarray(x.tolist()))",
    "rope.rotate_(x.astype('i4'))": "rope.rotate_(np.asarray(x.astype('i4'), np.float32))",
    "rope.rotate_(x, positions=['a', 'b', 'c'])": "rope.rotate_(x, positions=np.asarray(['1', '2', '3'], np.float64))",
    "rope.shift_(x, by='1')": "rope.shift_(x, by=int('1'))",
    "rope.tables('3')": "rope.tables(int('3'))",
    "rope.rotate(x, out=x.tolist())": "rope.rotate(x, out=np.asarray(x.tolist(), np.float32))",
    "rope.tables(3, out=(cos[:3], sin[:3].tolist()))": "rope.tables(3, out=(cos[:3], np.asarray(sin[:3].tolist(), np.float32)))",
    "rope.tables(3, form='cos_sin', out=np.zeros((3, 4), np.int32))": "rope.tables(3, form='cos_sin', out=np.zeros((3, 4)))",
    "Rope(4, interleaved=True, freqs=['a', 'b'])": "Rope(4, interleaved=True, freqs=np.asarray(['1', '2'], np.float64))",
    f"rope.rotate_(x.astype('{FOREIGN}f4'))": "rope.rotate_(big.astype(big.dtype.newbyteorder('=')))",
    "rope.rotate_(x, wide.astype('f8'))": "rope.rotate_(x, np.asarray(wide.astype('f8'), np.float32))",
    "rope.rotate_(None)": "rope.rotate_(rope.rotate_(x))",
    "given(x)": "(given(x, cos=cos, sin=sin), Rope(4, interleaved=True).rotate_(x))",
    "given(x, sin=sin)": "given(x, cos=cos, sin=sin)",
    "by(x, inverse=True)": "(by(x), by(x, conjugate=True), Rope(4, interleaved=True).rotate_(x, inverse=True))",
    "Rope(4)": "(Rope(4, interleaved=True), Rope(4, interleaved=False))",
    "Rope(4, True)": "(Rope.from_config({'model_type': 'llama', 'head_dim': 4}))",
    "rope.rotate_(np.ma.masked_array(x))": "rope.rotate_(np.ma.masked_array(x).data, mask=[True, False, True])",
    "rope.rotate_(readonly)": "rope.rotate(readonly, out=np.empty_like(readonly))",
    "rope.shift_(readonly, by=1)": "rope.shift_(np.array(readonly), by=1)",
    "rope.rotate_(nested)": "(rope.rotate_(nested.copy()), rope.rotate(nested, out=x))",
    "rope.shift_(nested, by=1)": "rope.shift_(nested.copy(), by=1)",
    "rope.rotate_(misaligned)": "rope.rotate_(np.require(misaligned, requirements='A'))",
    "rope.rotate_(x[0, 0])": "rope.rotate_(x[0, 0][None])",
    "rope.rotate_(q, x[0, 0])": "rope.rotate_(q[:, :, :1], x[0, 0][None])",
    "rope.rotate_(x[..., :3])": "(rope.rotate_(x), Rope(2, interleaved=False).rotate_(x[..., :3]))",
    "by(x[..., :3])": "(by(x), given(x[..., :3], cos=cos[:, :1], sin=sin[:, :1]))",
    "rope.rotate_(q, k[:, :, :2])": "(rope.rotate_(q), rope.rotate_(k[:, :, :2]))",
    "rope.rotate_(q.transpose(0, 2, 1, 3), k[:, 0], seq_axis=-3)": "rope.rotate_(q.transpose(0, 2, 1, 3), k[:, 0][:, :, None], seq_axis=-3)",
    "rope.rotate_(k[:, 0], q.transpose(0, 2, 1, 3), seq_axis=-3)": "rope.rotate_(k[:, 0][:, :, None], q.transpose(0, 2, 1, 3), seq_axis=-3)",
    "rope.rotate_(packed, packed[:, 0].copy(), seq_axis=0)": "rope.rotate_(packed, packed[:, 0].copy()[:, None], seq_axis=0)",
    "rope.rotate_(x, x)": "rope.rotate_(x, x.copy())",
    "rope.rotate_(packed, offset=[1, 2], seq_axis=0)": "(rope.rotate_(packed, positions=range(6), seq_axis=0), rope.rotate_(packed[:, None], offset=[1], seq_axis=0))",
    "rope.rotate_(x[0], offset=[1, 2])": "(rope.rotate_(x[0], positions=[1, 2, 3]), rope.rotate_(x[0][None], offset=[1]))",
    "rope.shift_(packed, by=[[1], [2]], seq_axis=0)": "(rope.shift_(packed, by=range(6), seq_axis=0), rope.shift_(packed[:, None], by=[[1]], seq_axis=0))",
    "rope.shift_(x[0], by=[[1, 2, 3]] * 2)": "(rope.shift_(x[0], by=[1, 2, 3]), rope.shift_(x[0][None], by=[[1, 2, 3]]))",
    "rope.rotate_(x, offset=1.5)": "rope.rotate_(x, positions=[1.5, 2.5, 3.5])",
    "rope.rotate_(x, offset=2**53)": "rope.rotate_(x, offset=2**53 - 2)",
    "rope.rotate_(x, offset=1, positions=[0, 1, 2])": "rope.rotate_(x, positions=[0, 1, 2])",
    "rope.rotate_(x, positions=np.array([0, 1, 2], 'f2'))": "rope.rotate_(x, positions=np.array([0, 1, 2], 'i8'))",
    "rope.rotate_(x, mask=np.array([0, 1, 1], 'f8'))": "rope.rotate_(x, mask=np.array([0, 1, 1], 'f8').astype(bool))",
    "rope.rotate_(x, mask=[True] * 3, lengths=[1, 1])": "rope.rotate_(x, mask=[True] * 3)",
    "rope.rotate_(packed, cu_seqlens=[0, 6], seq_axis=0, positions=range(6))": "rope.rotate_(packed, cu_seqlens=[0, 6], seq_axis=0)",
    "rope.rotate_(packed, cu_seqlens=[0, 6], seq_axis=0, mask=[True] * 6)": "rope.rotate_(packed, cu_seqlens=[0, 6], seq_axis=0)",
    "tiny.rotate_(x, inverse=True)": "Rope(4, interleaved=False, attention_factor=1e-3).rotate_(x, inverse=True)",
    "rope.rotate_(x.astype('c8'))": "rope.rotate_(x.astype('c8').view(np.float32))",
    "rope.rotate_(x, ofset=1)": "rope.rotate_(x, offset=1)",
    "rope.rotate(x, wide)": "(rope.rotate(x), rope.rotate(wide))",
    "rope.rotate(x, out=x.astype('f8'))": "rope.rotate(x, out=np.empty_like(x))",
    "rope.rotate(x, out=readonly)": "rope.rotate(x, out=np.array(readonly))",
    "rope.rotate(x, out=nested)": "rope.rotate(x, out=nested.copy())",
    "raw.rotate_(x)": "Rope(4, interleaved=False).rotate_(x)",
    "several.rotate_(x, offset=1)": "several.rotate_(x, positions=np.zeros((3, 2)))",
    "rope.tables(3, out=(cos[:3], np.zeros((3, 2))))": "rope.tables(3, dtype='f8', out=(np.zeros((3, 2)), np.zeros((3, 2))))",
    "rope.tables(-1)": "rope.tables([-1])",
    "rope.tables(2.0)": "rope.tables([2.0])",
    "rope.tables([[1, 2], [3]])": "rope.tables(np.array([[1, 2], [3, 4]]))",
    "rope.tables(2**60)": "rope.tables(2**6)",
    f"rope.tables(3, dtype='{FOREIGN}f4')": f"rope.tables(3, dtype=np.dtype('{FOREIGN}f4').newbyteorder('='))",
    "rope.tables(3, out=(cos[:3], np.broadcast_to(sin[0], (3, 2))))": "rope.tables(3, out=(cos[:3], np.array(np.broadcast_to(sin[0], (3, 2)))))",
    f"rope.tables(3, form='complex', out=np.zeros((3, 2), '{FOREIGN}c8'))": "rope.tables(3, form='complex', out=pairs.astype(pairs.dtype.newbyteorder('=')))",
    "rope.tables(3, form='complex', out=np.zeros((3, 4), np.complex64)[:, ::2])": "rope.tables(3, form='complex', out=np.zeros((3, 2), np.complex64))",
    "by(x, cos=None)": "by(x, cos=np.asarray(cos))",
    "by(x, cos=np.ones((9, 4), 'f4')[:, ::2])": "by(x, cos=np.ascontiguousarray(np.ones((9, 4), 'f4')[:, ::2]))",
    "by(x, sin=np.ones((9, 4), 'f4')[:, ::2])": "by(x, sin=np.ascontiguousarray(np.ones((9, 4), 'f4')[:, ::2]))",
    f"by(x, cos=cos.astype('{FOREIGN}f4'), sin=sin.astype('{FOREIGN}f4'))": "by(x, cos=cos.astype(cos.dtype.newbyteorder('=')))",
    "by(x, offset=7)": "(by(x, offset=6), given(x, cos=np.tile(cos, (2, 1)), sin=np.tile(sin, (2, 1)), offset=7))",
    "Rope(4, interleaved=True, freqs=[1, 2], base=1e4)": "Rope(4, interleaved=True, freqs=[1, 2])",
    "Rope(4, interleaved=True, freqs=[1, 2], seq_len=3)": "Rope(4, interleaved=True, freqs=[1, 2])",
    "Rope(4, interleaved=True, freqs=[1, 2], scaling={})": "Rope(4, interleaved=True, freqs=[1, 2])",
    "Rope(4, interleaved=True, freqs=[1, np.nan])": "Rope(4, interleaved=True, freqs=[1, 0.5])",
    "Rope(4, interleaved=True, axes=[0.0, 1.0])": "Rope(4, interleaved=True, axes=np.asarray([0.0, 1.0], np.int64))",
    "Rope(4, interleaved=True, form='tiles')": "Rope(4, interleaved=True, form='tile')",
    "Rope(4, interleaved=True, scaling='linear')": "Rope(4, interleaved=True, scaling={'rope_type': 'linear', 'factor': 4.0})",
    "Rope(4, interleaved=True, scaling={'rope_type': 'yarm'})": "Rope(4, interleaved=True, scaling={'rope_type': 'yarn', 'factor': 4.0, 'original_max_position_embeddings': 8})",
    "Rope(4, interleaved=True, scaling=DYNAMIC)": "Rope(4, interleaved=True, scaling=DYNAMIC, seq_len=16)",
}


@pytest.mark.parametrize("call", REMEDIED)
def test_the_remedy_works(call: str) -> None:
    remedy = next(remedy for wrong, _, _, remedy in WRONG_CALLS if wrong == call)
    check_remedy(evaluating(arrays), call, remedy, REMEDIED[call])


def test_every_remedy_has_been_followed() -> None:
    remedies = {call: remedy for call, _, _, remedy in WRONG_CALLS}
    followed = {remedies[call] for call in REMEDIED}
    asked = {text for text in remedies.values() if text and not text.startswith(("expected ", "or an array", "what"))}
    assert asked - followed == set()


@pytest.mark.parametrize(("call", "error", "message", "remedy"), WRONG_CALLS, ids=[call for call, *_ in WRONG_CALLS])
def test_wrong_calls_say_what_to_do_and_write_nothing(
    call: str, error: type[Exception], message: str, remedy: str
) -> None:
    names = arrays()
    before = {name: value.copy() for name, value in names.items() if isinstance(value, np.ndarray)}
    with pytest.raises(error) as caught:
        eval(call, names)
    assert type(caught.value) is error
    text = str(caught.value)
    assert text.startswith(message)
    assert remedy in text[len(message) :]
    for name, value in before.items():
        np.testing.assert_array_equal(bits(names[name]), bits(value))


def test_every_frequency_that_is_refused_is_named() -> None:
    for value, text in (
        (np.nan, "nan"),
        (np.inf, "inf"),
        (2.0**46, "70368744177664"),
        (2.0**-97, "6.3108872417680944e-30"),
    ):
        with pytest.raises(ValueError, match=rf"frequency 1 is {text} radians per position, .*2\*\*-96 to 2\*\*45"):
            RotaryEmbedding(4, interleaved=False, freqs=[1.0, value])


def test_no_position_is_refused_up_to_2_to_the_53() -> None:
    rope = RotaryEmbedding(4, interleaved=False)
    x = np.ones((1, 4))
    for position in (2**53, -(2**53)):
        assert np.isfinite(rope.rotate(x, offset=position)).all()
        assert np.isfinite(rope.shift_(x.copy(), by=position)).all()
        assert np.isfinite(rope.tables([position])[0]).all()


def test_a_position_beyond_the_kept_rows_is_computed() -> None:
    kept, computed = (RotaryEmbedding(4, interleaved=False, max_len=max_len) for max_len in (4, 0))
    x = np.ones((9, 4), np.float32)
    for offset in (-3, 0, 2, 4, 1000):
        np.testing.assert_array_equal(kept.rotate(x, offset=offset), computed.rotate(x, offset=offset))
        assert (kept.rotate(x, offset=offset)[-1] != x[-1]).any()
