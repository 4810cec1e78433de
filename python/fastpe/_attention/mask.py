# SPDX-License-Identifier: BSD-3-Clause
"""Which keys each query may see."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastpe import _core
from fastpe._arguments import bools, flag, integer, leave_out, names_keywords, shown, whole_numbers
from fastpe._arrays import ArrayLike, WritableArray, returned
from fastpe._errors import refused

_Integers = npt.NDArray[np.int64]
_most_bytes = 1 << 24


@names_keywords
def attention_mask(
    seq_len: int,
    *,
    causal: bool,
    past: int = 0,
    window: int | None = None,
    chunk: int | None = None,
    valid: ArrayLike | None = None,
    cu_seqlens: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    dtype: npt.DTypeLike | None = np.bool_,
    out: WritableArray | None = None,
) -> npt.NDArray[Any]:
    """Make the mask of attention: which keys each query may see.

    Query i has position ``past + i``; keys have positions 0 to ``past + seq_len - 1``.

    Parameters
    ----------
    seq_len : int
        The number L of queries.
    causal : bool
        Whether queries see no later keys. It has no default.
    past : int, optional
        The number of keys before the first query's own, as in a cache: one for all sequences, padding included.
    window : int, optional
        With ``causal=True``, how many keys a query sees, its own included: a config's ``sliding_window``. Otherwise how far
        away a key may be, on either side.
    chunk : int, optional
        Queries see only keys of their own chunk of so many (Llama 4), counted from the first valid key, or from where the
        sequence starts with `cu_seqlens`.
    valid : bool or 0 and 1, array_like [past + L] or [B, past + L], optional
        Which keys are valid, those of the past included: what `text_inputs` calls ``attention_mask``. No query sees the
        others. With a window or chunks, padding may not lie between valid keys, as in a cache that is padded on the right:
        windows count keys.
    cu_seqlens : int array_like [number of sequences + 1], optional
        Where sequences of a packed batch start: 0, the running sum of their lengths. Tokens see only their own sequence. It
        excludes `past`, `valid` and `groups`.
    groups : int array_like [past + L] or [B, past + L], optional
        Tokens of one group, as those of an image, see each other although ``causal=True``; -1 is no group. Each image
        has a number of its own: token types of 0 and 1 would be two groups. A window and a chunk also hold for them.
    dtype : dtype, optional
        bool (the default), or float32, float64, float16 or bfloat16 for a mask that is added to scores; None takes that of
        `out`.
    out : ndarray, optional
        Where to write the result, of exactly its shape.

    Returns
    -------
    ndarray
        ``[L, past + L]``, or ``[B, 1, L, past + L]`` if `valid` or `groups` has two axes; or `out` if it was given. True
        where the query may see the key; of a floating dtype, 0 there and the lowest finite number elsewhere, so that rows
        that see nothing, as those of padding, do not become NaN.

    Raises
    ------
    ValueError
        For a negative length, arguments of other shapes, arguments that exclude each other, `groups` that do not count, and
        an `out` of another shape. Nothing has been written then.
    TypeError
        For an argument of another type, and for a dtype that does not fit.

    Notes
    -----
    A key j is visible to a query q where all of these hold: ``j <= q``, or both are of one group, if `causal`;
    ``j > q - window`` if `causal`, and else ``|q - j| <= window``; ``(j - s) // chunk == (q - s) // chunk``, s being the
    first valid key; ``valid[j]``. As in huggingface/transformers, src/transformers/masking_utils.py; Gemma 3 and 4 join
    windows and groups as here, while ``create_sliding_window_causal_mask`` lets a group see beyond the window.

    Examples
    --------
    >>> import fastpe
    >>> fastpe.attention_mask(4, causal=True, window=2).astype(int)
    array([[1, 0, 0, 0],
           [1, 1, 0, 0],
           [0, 1, 1, 0],
           [0, 0, 1, 1]])
    >>> fastpe.attention_mask(1, causal=True, past=3, valid=[[0, 1, 1, 1]])
    array([[[[False,  True,  True,  True]]]])
    """
    length, causal = integer("seq_len", seq_len, 0), flag("causal", causal)
    if getattr(past, "ndim", isinstance(past, (list, tuple))):
        remedy = "call once for each sequence, or have the padding of all on the left, and give valid="
        raise refused(TypeError, "past", f"is {shown(past)}", "an int, which all sequences share", remedy)
    before = integer("past", past, 0)
    window = None if window is None else integer("window", window, 1 if causal else 0)
    chunk = None if chunk is None else integer("chunk", chunk, 1)
    keys = before + length
    starts = None
    if cu_seqlens is not None:
        if before:
            remedy = "of sequences that have a cache, call once for each, without cu_seqlens"
            raise refused(ValueError, "cu_seqlens", "and past were both given", "one of them", remedy)
        leave_out("cu_seqlens", "packed sequences have no padding", valid=valid, groups=groups)
        starts = _starts(cu_seqlens, length)
    mask = None if valid is None else _over_keys("valid", bools("valid", valid), keys)
    if mask is not None and not (window is chunk is None):
        _refuse_gaps(mask)
    members = None
    if groups is not None:
        if not causal:
            raise refused(ValueError, "groups", "were given with causal=False", "one of them", "leave groups out")
        members = _over_keys("groups", whole_numbers("groups", groups, "number groups from 0 on, and give -1"), keys)
    batches = [len(each) for each in (mask, members) if each is not None and each.ndim == 2]
    if len({*batches}) > 1:
        raise refused(ValueError, "groups", f"has {batches[1]} rows", f"{batches[0]}, as valid has")
    shape = (batches[0], 1, length, keys) if batches else (length, keys)
    result, seen, hidden = _empty(out, dtype, shape)

    shared = (
        None if chunk is not None and mask is not None else _spans(length, before, causal, window, chunk, starts, 0)
    )
    cells = result.view(np.uint16) if _is_bfloat16(result.dtype) else result
    for b, rows in enumerate(cells[:, 0] if batches else cells[None]):
        its_mask, its_members = (each[b] if each is not None and each.ndim == 2 else each for each in (mask, members))
        spans = shared
        if spans is None:
            first_valid = int(np.argmax(its_mask)) if its_mask is not None and its_mask.any() else 0
            spans = _spans(length, before, causal, window, chunk, starts, first_valid)
        elements = np.empty(keys, rows.dtype)
        elements[...] = seen if its_mask is None else np.where(its_mask, seen, hidden)
        _show_spans(rows, spans, elements, hidden)
        if its_members is not None:
            _show_groups(rows, its_members, before, spans, seen, its_mask)
    return returned(out, result)


class _Spans(NamedTuple):
    """The keys that each query sees, from `first` to before `last`; of a later key in its group, to before `end`."""

    first: _Integers
    last: _Integers
    end: _Integers


def _spans(
    length: int,
    past: int,
    causal: bool,
    window: int | None,
    chunk: int | None,
    starts: _Integers | None,
    first_valid: int,
) -> _Spans:
    position = past + np.arange(length)
    first, end = np.zeros(length, np.int64), np.full(length, past + length)
    origin: Any = first_valid
    if starts is not None:
        origin = first = np.repeat(starts[:-1], np.diff(starts))
        end = np.repeat(starts[1:], np.diff(starts))
    if chunk is not None:
        begin = origin + (position - origin) // chunk * chunk
        first, end = np.maximum(first, begin), np.minimum(end, begin + chunk)
    last = np.minimum(end, position + 1) if causal else end
    if window is not None:
        first = np.maximum(first, position - window + causal)
        last = last if causal else np.minimum(last, position + window + 1)
    return _Spans(first, last, end)


def _show_spans(rows: npt.NDArray[Any], spans: _Spans, elements: npt.NDArray[Any], hidden: Any) -> None:
    """Give each query the elements of the keys in its span."""
    at_once = min(64, max(1, _most_bytes // max(1, elements.nbytes)))  # Python answers signals between them
    for i in range(0, len(rows), at_once):
        some = slice(i, i + at_once)
        block, first, last = rows[some], spans.first[some], spans.last[some]
        block[...] = hidden
        begins, ends = first.tolist(), last.tolist()
        begin, all_begin, all_end, end = min(begins), max(begins), min(ends), max(ends)
        block[:, all_begin:all_end] = elements[all_begin:all_end]
        for a, b in ((begin, all_begin), (all_end, end)):
            if a < b:
                key = np.arange(a, b)
                visible = (key >= first[:, None]) & (key < last[:, None])
                np.copyto(block[:, a:b], elements[a:b], where=visible)


def _show_groups(
    rows: npt.NDArray[Any], groups: npt.NDArray[Any], past: int, spans: _Spans, seen: Any, valid: Any
) -> None:
    """Show each query the later tokens of its group."""
    latest = {group: key for key, group in enumerate(groups.tolist()) if group >= 0}
    for i, group in enumerate(groups[past:].tolist()):
        last, end = int(spans.last[i]), min(int(spans.end[i]), latest.get(group, -1) + 1)
        if end > last:
            visible = groups[last:end] == group
            if valid is not None:
                visible &= valid[last:end]
            rows[i, last:end][visible] = seen


def _over_keys(name: str, array: npt.NDArray[Any], keys: int) -> npt.NDArray[Any]:
    """An array over keys, of one or two axes, which no caller can change meanwhile."""
    if array.ndim not in (1, 2) or array.shape[-1] != keys:
        expected = f"[{keys}] or [B, {keys}]: one for each key, those of the past included"
        raise refused(ValueError, name, f"has shape {list(array.shape)}", expected)
    copy: npt.NDArray[Any] = array.copy()
    return copy


def _refuse_gaps(valid: npt.NDArray[np.bool_]) -> None:
    """Refuse padding between keys that are valid: a window would count it, and positions of tokens do not."""
    if not (valid[..., :-1] > valid[..., 1:]).any():  # padding is on the left
        return
    begins = np.count_nonzero(valid[..., 1:] > valid[..., :-1], axis=-1) + valid[..., 0]
    has_gap = np.asarray(begins > 1)
    if has_gap.any():
        row = f"[{has_gap.argmax()}]" if valid.ndim == 2 else ""
        expected = "padding only on the left or the right, since windows and chunks count keys"
        remedy = "move it to the left, or call once for each sequence"
        raise refused(ValueError, f"valid{row}", "has padding between valid keys", expected, remedy)


def _starts(cu_seqlens: ArrayLike, length: int) -> _Integers:
    starts = whole_numbers("cu_seqlens", cu_seqlens, "pass where sequences start")
    if (
        starts.ndim != 1
        or not len(starts)
        or starts[0] != 0
        or starts[-1] != length
        or (starts[1:] < starts[:-1]).any()
    ):
        expected = f"0, then values that never fall, then seq_len, {length}"
        raise refused(
            ValueError, "cu_seqlens", f"is {starts.tolist()}", expected, "of lengths, pass np.cumsum([0, *lengths])"
        )
    return starts.astype(np.int64)


def _is_bfloat16(dtype: np.dtype[Any]) -> bool:
    """Whether it is that of ml_dtypes, or of a tensor without it."""
    return bool(dtype.str[1:] == "V2")


def _empty(
    out: WritableArray | None, dtype: npt.DTypeLike | None, shape: tuple[int, ...]
) -> tuple[npt.NDArray[Any], Any, Any]:
    """The result, and the elements of keys that are visible and hidden."""
    target = None if out is None else _core.array(out, "out", in_place=True)
    given: Any = dtype if dtype is not None else np.bool_ if target is None else target.dtype
    try:
        is_bool = np.dtype(given) == np.bool_
    except TypeError:
        is_bool = False  # the core says what is wrong with it
    if not is_bool:
        try:
            result: npt.NDArray[Any] = _core.output(target, dtype, shape)
        except TypeError as error:
            fields = getattr(error, "_fields", {})
            if not fields.get("expected", "").startswith("float32, "):
                raise
            remedy = fields["remedy"]
            if not remedy and fields["argument"] == "dtype":
                remedy = "pass 'bool'" if str(dtype).endswith(".bool") else "leave it out, and convert the mask"
            remedy = remedy or (_remedy(target.dtype) if target is not None else "")
            raise refused(
                TypeError, **{**fields, "expected": f"bool, {fields['expected']}", "remedy": remedy}
            ) from None
        if _is_bfloat16(result.dtype):
            return result, 0, 0xFF7F
        return result, result.dtype.type(0), np.finfo(result.dtype).min
    if target is None:
        return np.empty(shape, np.bool_), True, False
    if target.dtype != np.bool_:
        name = "bfloat16" if _is_bfloat16(target.dtype) else target.dtype
        raise refused(TypeError, "out", f"has dtype {name}", "bool", _remedy(target.dtype))
    if target.shape != shape:
        raise refused(ValueError, "out", f"has shape {list(target.shape)}", f"exactly {list(shape)}")
    if not target.flags.writeable:
        raise refused(ValueError, "out", "is read-only", "a writable array")
    return target, True, False


def _remedy(dtype: np.dtype[Any]) -> str:
    """What makes an array of another dtype one that is taken."""
    if dtype.kind == "f" or _is_bfloat16(dtype):
        return "give dtype=None to fill an array of floats"
    return "pass a view of it as bool" if dtype.itemsize == 1 else "make one of bool, and convert it"
