# SPDX-License-Identifier: BSD-3-Clause
"""Encodings of more than one coordinate.

Each axis has its own one-dimensional encoding; a `GridConvention` says how they share the columns.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fastpe._encoding import PositionalEncoding
from fastpe._encoding import _at_least as at_least
from fastpe._functions import _encoding as cached_encoding
from fastpe.conventions import Convention, Registry, conventions

# What DETR adds to the last coordinate before it divides by it.
_normalize_epsilon = 1e-6
_slab_values = 1 << 16
# Blocks of a grid that are put together in the second-level cache, and from where on that pays for a step in Python.
_largest_block_bytes = 1 << 19
_smallest_block_bytes = 1 << 14


@dataclasses.dataclass(frozen=True)
class GridConvention:
    """How the encodings of several axes make one vector.

    Attributes
    ----------
    name : str
        What it is called in `grid_conventions`.
    axis : Convention
        The encoding of one axis, over its share of the columns; coordinates count from its first position.
    outermost : {"axis", "function", "frequency"}
        What changes slowest along the vector. "axis": one axis after the other, each in `axis`'s own order. "function":
        the sines of all axes, then their cosines. "frequency": for each frequency the sines of all axes, then their
        cosines.
    axis_order : tuple of int, optional
        Axes of the grid's shape, in the order in which they appear in the vector; as in the shape by default.
    proportions : tuple of int, optional
        Shares of the columns, in vector order; equal by default.
    remainder : {"error", "pad", "truncate"}
        Columns that cannot be shared in pairs: refuse; leave the last ones zero; or take the next larger width and drop
        its last columns.
    normalize : bool
        Whether coordinates are divided by the last one (plus 1e-6) along their axis.
    serves : tuple of str
        Systems that use it. Not compared.
    source : str
        Where it was read. Not compared.

    Examples
    --------
    >>> import fastpe
    >>> print(fastpe.grid_conventions["hf2d"])
    hf2d: axis 0 (sin | cos), axis 1 (sin | cos); w_k = 10000^(-k / n), n per axis
        coordinates from 0
        serves: transformers build_2d_sinusoidal_position_embedding (ViT-MAE, AIMv2, RT-DETR, D-FINE)
        source: huggingface/transformers:models/vit_mae/modeling_vit_mae.py, version 5.23
    """

    name: str
    axis: Convention
    outermost: Literal["axis", "function", "frequency"] = "axis"
    axis_order: tuple[int, ...] | None = None
    proportions: tuple[int, ...] | None = None
    remainder: Literal["error", "pad", "truncate"] = "error"
    normalize: bool = False
    serves: tuple[str, ...] = dataclasses.field(default=(), compare=False, repr=False)
    source: str = dataclasses.field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.outermost != "axis" and (self.axis.layout != "concatenated" or self.proportions is not None):
            raise ValueError(
                f"outermost is {self.outermost!r}, expected 'axis' where axes are interleaved or have shares of their "
                f"own; give axis a concatenated layout and leave proportions out"
            )

    def order(self, axis_count: int) -> tuple[int, ...]:
        """Axes in the order in which they appear in the vector."""
        order = tuple(range(axis_count)) if self.axis_order is None else self.axis_order
        if sorted(order) != list(range(axis_count)):
            raise ValueError(
                f"the grid has {axis_count} axes, expected {len(order)}: convention {self.name!r} takes no others"
            )
        return order

    def widths(self, d_model: int, axis_count: int) -> tuple[int, ...]:
        """Columns of each axis, in vector order; even, and not always `d_model` in all."""
        shares = (1,) * axis_count if self.proportions is None else self.proportions
        total = 2 * sum(shares)
        if self.remainder == "truncate":
            return tuple(2 * -(-d_model * share // total) for share in shares)
        if self.remainder == "error":
            multiple = math.lcm(*(total // math.gcd(total, share) for share in shares))
            if d_model % multiple:
                raise ValueError(
                    f"d_model is {d_model}, expected a multiple of {multiple}: convention {self.name!r} shares the "
                    f"columns among {axis_count} axes in pairs"
                )
        return tuple(2 * (d_model * share // total) for share in shares)

    @property
    def formula(self) -> str:
        """Order of the columns and frequencies in one line."""
        functions, frequencies = self.axis.formula.split(", n = ")[0].split(", w_k = ")
        if self.outermost == "axis":
            order = (0, 1) if self.axis_order is None else self.axis_order
            columns = "".join(f"axis {axis} ({functions.strip('[]')}), " for axis in order)
            columns = columns + ".." if self.axis_order is None else columns.removesuffix(", ")
        elif self.outermost == "function":
            columns = "sines of axis 0, 1, .., then their cosines"
        else:
            columns = "for each k sines of axis 0, 1, .., then their cosines"
        return f"{columns}; w_k = {frequencies}, n per axis"

    def __getstate__(self) -> dict[str, Any]:
        """Fields alone, as `Convention`."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def __str__(self) -> str:
        """Describe the order of the columns, the systems it serves and its source."""
        lines = [
            f"{self.name}: {self.formula}",
            f"    coordinates from {self.axis.first_position}" + (", divided by the last" if self.normalize else ""),
        ]
        if grid_conventions.get(self.name) == self:
            lines += [f"    serves: {'; '.join(self.serves)}", f"    source: {self.source}"]
        return "\n".join(lines)


_concat = conventions["concat"]
_interleaved = conventions["vaswani"]

grid_conventions = Registry(
    (
        GridConvention(
            "mae2d",
            _concat,
            axis_order=(1, 0),
            serves=(
                "MAE get_2d_sincos_pos_embed",
                "DiT get_2d_sincos_pos_embed",
                "diffusers get_2d_sincos_pos_embed",
                "llama.cpp clip get_2d_sincos_pos_embed (MiniCPM-V)",
            ),
            source="facebookresearch/mae:util/pos_embed.py",
        ),
        GridConvention(
            "hf2d",
            _concat,
            axis_order=(0, 1),
            serves=("transformers build_2d_sinusoidal_position_embedding (ViT-MAE, AIMv2, RT-DETR, D-FINE)",),
            source="huggingface/transformers:models/vit_mae/modeling_vit_mae.py, version 5.23",
        ),
        GridConvention(
            "diffusers3d",
            _concat,
            axis_order=(0, 2, 1),
            proportions=(2, 3, 3),
            serves=("diffusers get_3d_sincos_pos_embed (CogVideoX)",),
            source="huggingface/diffusers:models/embeddings.py @58eb52c0",
        ),
        GridConvention(
            "timm2d",
            _concat,
            outermost="function",
            serves=("timm build_sincos2d_pos_embed, its defaults",),
            source="huggingface/pytorch-image-models:timm/layers/pos_embed_sincos.py @aa4b5850",
        ),
        GridConvention(
            "detr",
            dataclasses.replace(_interleaved, freq_scale=2.0 * math.pi, first_position=1),
            normalize=True,
            serves=("DETR PositionEmbeddingSine with normalize=True", "transformers DETR and MaskFormer"),
            source="facebookresearch/detr:models/position_encoding.py @29901c5",
        ),
        GridConvention(
            "tensor2tensor",
            conventions["tensor2tensor"],
            remainder="pad",
            serves=("tensor2tensor add_timing_signal_nd",),
            source="tensorflow/tensor2tensor:layers/common_attention.py @bafdc1b6",
        ),
        GridConvention(
            "tatp22",
            _interleaved,
            remainder="truncate",
            serves=("positional-encodings PositionalEncoding2D and 3D (tatp22/multidim-positional-encoding)",),
            source="tatp22/multidim-positional-encoding:positional_encodings/torch_encodings.py @efeb8d9",
        ),
        GridConvention(
            "nerf",
            dataclasses.replace(conventions["nerf"], layout="concatenated"),
            outermost="frequency",
            serves=("NeRF Embedder, log_sampling",),
            source="bmild/nerf:run_nerf_helpers.py",
        ),
    )
)

for _preset in grid_conventions.values():
    object.__setattr__(_preset, "__doc__", str(_preset))


def encode_grid(
    shape: Sequence[int],
    d_model: int,
    *,
    convention: str | GridConvention,
    base: float | None = None,
    freq_scale: float | None = None,
    spacing: float | Sequence[float] = 1.0,
    mask: npt.ArrayLike | None = None,
    class_tokens: int = 0,
    channels_first: bool = False,
    dtype: npt.DTypeLike | None = None,
    num_threads: int | None = None,
    out: npt.NDArray[Any] | None = None,
) -> npt.NDArray[Any]:
    """Encode every cell of a grid.

    Parameters
    ----------
    shape : sequence of int
        The grid: ``(height, width)``, ``(time, height, width)``, .. as the convention takes it.
    d_model : int
        Width of the encoding.
    convention : str or GridConvention
        A name in `fastpe.grid_conventions`, or one of your own. There is no default: the order of the axes differs.
    base, freq_scale : float, optional
        Instead of the convention's.
    spacing : float or one per axis, optional
        Distance between neighbouring cells, in the order of `shape`.
    mask : bool array [height, width] or [B, height, width], optional
        Cells that are True count: a cell's coordinate along an axis is the number of them up to it, so that cells of
        padding repeat the coordinate before them, as DETR has it.
    class_tokens : int, optional
        Zero rows in front; the result is then ``[class_tokens + cells, d_model]``.
    channels_first : bool, optional
        ``[d_model, height, width]`` instead of ``[height, width, d_model]``.
    dtype : dtype, optional
        float32 (default), float64, float16 or ml_dtypes.bfloat16; `out`'s where that is given.
    num_threads : int, optional
        At most this many threads.
    out : ndarray, optional
        A writable array of exactly the result's shape and dtype.

    Returns
    -------
    ndarray
        ``shape + (d_model,)``, behind the mask's batch axis if it has one; `out` where it is given. Cells in a row,
        as most systems keep them, are ``.reshape(-1, d_model)``, which copies nothing.

    Raises
    ------
    ValueError
        For a width that the convention cannot share among the axes, a number of axes that it does not take, an unknown
        convention, or an `out` or `mask` of another shape. Nothing has been written then.
    TypeError
        For a dtype that does not fit.

    Notes
    -----
    Only as many rows are computed as the axes are long together. Values are exact, as `encode`'s.

    Examples
    --------
    >>> import fastpe
    >>> fastpe.encode_grid((14, 14), 768, convention="mae2d", class_tokens=1).shape
    (197, 768)
    >>> fastpe.encode_grid((1, 2), 4, convention="hf2d").round(3)
    array([[[0.   , 1.   , 0.   , 1.   ],
            [0.   , 1.   , 0.841, 0.54 ]]], dtype=float32)
    """
    chosen = _with_overrides(grid_conventions.find(convention, GridConvention), base, freq_scale)
    d_model = at_least("d_model", d_model, 1)
    lengths = _lengths(shape)
    spacings = _spacings(spacing, len(lengths))
    plan = list(_plan(chosen, d_model, len(lengths), None))
    valid = None if mask is None else _checked_mask(mask, lengths)
    result, cells = _result(
        () if valid is None else valid.shape[: valid.ndim - len(lengths)],
        lengths,
        d_model,
        class_tokens,
        channels_first,
        dtype,
        out,
    )
    if valid is None:
        rows = [
            encoding.encode(
                _coordinates(chosen, lengths[axis], spacings[axis]), dtype=result.dtype, num_threads=num_threads
            )
            for axis, encoding, _ in plan
        ]
        if channels_first:
            # The copy runs along the target's own innermost axis.
            _spread(plan, [np.asfortranarray(table) for table in rows], cells)
        else:
            _spread_by_blocks(plan, rows, cells)
    else:
        counted = {
            axis: _counted_coordinates(chosen, valid, axis - len(lengths), spacings[axis]) for axis, _, _ in plan
        }
        _write(plan, counted, cells, num_threads)
    if class_tokens:
        result[..., :class_tokens, :] = 0
    return result


def encode_coordinates(
    coordinates: npt.ArrayLike,
    d_model: int,
    *,
    convention: str | GridConvention,
    base: float | None = None,
    freq_scale: float | None = None,
    freqs: npt.ArrayLike | None = None,
    include_input: bool = False,
    dtype: npt.DTypeLike | None = None,
    num_threads: int | None = None,
    out: npt.NDArray[Any] | None = None,
) -> npt.NDArray[Any]:
    """Encode points, each given by several coordinates.

    Parameters
    ----------
    coordinates : array_like [.., axes] of int, float32 or float64
        Points, their axes in the order of the grid's shape: taken as they are, not counted and not normalized.
    d_model : int
        Width of the encoding: ``2 * frequencies * axes``.
    convention : str or GridConvention
        A name in `fastpe.grid_conventions`, or one of your own.
    base, freq_scale : float, optional
        Instead of the convention's.
    freqs : array_like of float64, optional
        The frequencies of every axis themselves, in radians per unit.
    include_input : bool, optional
        Put the coordinates themselves in front: ``d_model + axes`` columns.
    dtype : dtype, optional
        float32 (default), float64, float16 or ml_dtypes.bfloat16; `out`'s where that is given.
    num_threads : int, optional
        At most this many threads.
    out : ndarray, optional
        A writable array of exactly the result's shape and dtype.

    Returns
    -------
    ndarray
        ``coordinates.shape[:-1] + (d_model,)``; `out` where it is given.

    Raises
    ------
    ValueError, TypeError
        As `encode_grid`.

    Notes
    -----
    With convention ``"nerf"`` frequencies are ``2**k`` and no pi: Mildenhall et al., "NeRF", 2020, section 5.1, as its
    code has it.

    Examples
    --------
    >>> import numpy as np, fastpe
    >>> fastpe.encode_coordinates(np.zeros((4096, 3)), 60, convention="nerf", include_input=True).shape
    (4096, 63)
    """
    chosen = _with_overrides(grid_conventions.find(convention, GridConvention), base, freq_scale)
    d_model = at_least("d_model", d_model, 1)
    points = np.asarray(coordinates)
    if points.ndim < 1 or points.shape[-1] == 0:
        raise ValueError(f"coordinates has shape {list(points.shape)}, expected [.., axes]")
    if points.dtype.kind not in "iuf":
        raise TypeError(f"coordinates has dtype {points.dtype}, expected int, float32 or float64")
    # The encoder checks as well, but only the part that it is given.
    if not (np.abs(points) <= 2.0**53).all():
        raise ValueError("coordinates holds values that are not finite or beyond 2**53, expected smaller ones")
    axis_count = points.shape[-1]
    plan = list(_plan(chosen, d_model, axis_count, freqs))
    front = axis_count if include_input else 0
    result, _ = _result((), points.shape[:-1], d_model + front, 0, False, dtype, out)
    encoded = result[..., front:]
    _write(plan, {axis: points[..., axis] for axis in range(axis_count)}, encoded, num_threads)
    if include_input:
        result[..., :front] = points
    return result


_Pieces = list[tuple[slice, slice]]
_Plan = tuple[int, PositionalEncoding, _Pieces]


def _plan(convention: GridConvention, d_model: int, axis_count: int, freqs: npt.ArrayLike | None) -> Iterator[_Plan]:
    """For each axis its encoder, and which of the vector's columns get which of its own."""
    order = convention.order(axis_count)
    start = 0
    for place, (axis, width) in enumerate(zip(order, convention.widths(d_model, axis_count), strict=True)):
        half = width // 2
        if convention.outermost == "axis":
            end = min(start + width, d_model)
            pieces = [(slice(start, end), slice(0, end - start))]
            start = end
        elif convention.outermost == "function":
            pieces = [
                (slice((function * axis_count + place) * half, (function * axis_count + place + 1) * half), own)
                for function, own in enumerate((slice(0, half), slice(half, width)))
            ]
        else:
            pieces = [
                (slice(function * axis_count + place, d_model, 2 * axis_count), own)
                for function, own in enumerate((slice(0, half), slice(half, width)))
            ]
        pieces = [(target, own) for target, own in pieces if own.start < own.stop]
        if pieces:
            yield axis, cached_encoding(width, convention.axis, None, None, freqs), pieces


def _spread(plan: list[_Plan], rows: list[npt.NDArray[Any]], cells: npt.NDArray[Any], first_axis: int = 0) -> None:
    """Write the rows of each axis from `first_axis` on to all cells that share their index; `cells` has those axes."""
    for (axis, _, pieces), table in zip(plan, rows, strict=True):
        if axis < first_axis:
            continue
        across = table.reshape(*(-1 if first_axis + i == axis else 1 for i in range(cells.ndim - 1)), table.shape[1])
        for target, source in pieces:
            cells[..., target] = across[..., source]
    cells[..., _used(plan, cells.shape[-1]) :] = 0


def _spread_by_blocks(plan: list[_Plan], rows: list[npt.NDArray[Any]], cells: npt.NDArray[Any]) -> None:
    """Put blocks of cells together in the cache and copy them whole.

    Written one axis after the other, a large grid would go through memory once per axis.
    """
    *lengths, _ = cells.shape
    outer = len(lengths)
    while outer > 0 and math.prod(cells.shape[outer - 1 :]) * cells.itemsize <= _largest_block_bytes:
        outer -= 1
    block_bytes = math.prod(cells.shape[outer:]) * cells.itemsize
    if outer in (0, len(lengths)) or block_bytes < _smallest_block_bytes:
        _spread(plan, rows, cells)
        return
    block = np.empty(cells.shape[outer:], cells.dtype)
    _spread(plan, rows, block, outer)
    before: tuple[int, ...] = (-1,) * outer
    for index in np.ndindex(*lengths[:outer]):
        for (axis, _, pieces), table in zip(plan, rows, strict=True):
            if axis < outer and index[axis] != before[axis]:
                for target, source in pieces:
                    block[..., target] = table[index[axis], source]
        cells[index] = block
        before = index


def _write(
    plan: list[_Plan], coordinates: dict[int, npt.NDArray[Any]], cells: npt.NDArray[Any], num_threads: int | None
) -> None:
    """Encode one coordinate per cell and axis, some of the leading entries at a time."""
    step = max(1, _slab_values // max(1, cells[:1].size))
    for start in range(0, len(cells), step):
        slab = slice(start, start + step)
        for axis, encoding, pieces in plan:
            rows = encoding.encode(coordinates[axis][slab], dtype=cells.dtype, num_threads=num_threads)
            for target, source in pieces:
                cells[slab][..., target] = rows[..., source]
    cells[..., _used(plan, cells.shape[-1]) :] = 0


def _used(plan: list[_Plan], d_model: int) -> int:
    """Columns from this one on belong to no axis."""
    return max((target.indices(d_model)[1] for _, _, pieces in plan for target, _ in pieces), default=0)


def _with_overrides(convention: GridConvention, base: float | None, freq_scale: float | None) -> GridConvention:
    if base is None and freq_scale is None:
        return convention
    axis = PositionalEncoding(2, convention=convention.axis, base=base, freq_scale=freq_scale).convention
    return dataclasses.replace(convention, axis=axis)


def _lengths(shape: Sequence[int]) -> tuple[int, ...]:
    try:
        lengths = tuple(int(length) for length in shape)
    except TypeError:
        raise TypeError(f"shape is {shape!r}, expected one int per axis, such as (height, width)") from None
    if not lengths or min(lengths) < 0:
        raise ValueError(f"shape is {shape!r}, expected one length per axis, from 0")
    return lengths


def _spacings(spacing: float | Sequence[float], axis_count: int) -> list[float]:
    spacings = np.asarray(spacing, dtype=np.float64)
    if spacings.shape not in ((), (axis_count,)) or not np.isfinite(spacings).all():
        raise ValueError(f"spacing is {spacing!r}, expected a number, or {axis_count} of them: one per axis")
    return [float(value) for value in np.broadcast_to(spacings, (axis_count,))]


def _coordinates(convention: GridConvention, length: int, spacing: float) -> npt.NDArray[Any]:
    counted = np.arange(convention.axis.first_position, convention.axis.first_position + length)
    return _scaled(convention, counted, 0, spacing)


def _counted_coordinates(
    convention: GridConvention, valid: npt.NDArray[np.bool_], axis: int, spacing: float
) -> npt.NDArray[Any]:
    counted = np.cumsum(valid, axis=axis) + (convention.axis.first_position - 1)
    return _scaled(convention, counted, axis, spacing)


def _scaled(convention: GridConvention, counted: npt.NDArray[Any], axis: int, spacing: float) -> npt.NDArray[Any]:
    if spacing != 1.0:
        counted = counted * spacing
    if convention.normalize and counted.shape[axis]:
        return np.asarray(counted / (np.take(counted, [-1], axis=axis) + _normalize_epsilon))
    return counted


def _checked_mask(mask: npt.ArrayLike, lengths: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    valid = np.asarray(mask)
    if valid.dtype != np.bool_:
        raise TypeError(f"mask has dtype {valid.dtype}, expected bool: True for cells that count")
    if valid.shape[-len(lengths) :] != lengths or valid.ndim > len(lengths) + 1:
        raise ValueError(f"mask has shape {list(valid.shape)}, expected {list(lengths)}, or a batch axis before that")
    return valid


def _result(
    batch: tuple[int, ...],
    lengths: tuple[int, ...],
    columns: int,
    class_tokens: int,
    channels_first: bool,
    dtype: npt.DTypeLike | None,
    out: npt.NDArray[Any] | None,
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The array to return, and its cells as ``batch + lengths + (columns,)``."""
    class_tokens = at_least("class_tokens", class_tokens, 0)
    if class_tokens and channels_first:
        raise ValueError("class_tokens and channels_first were both given, expected one: tokens are rows of columns")
    if class_tokens:
        shape = (*batch, class_tokens + math.prod(lengths), columns)
    else:
        shape = (*batch, columns, *lengths) if channels_first else (*batch, *lengths, columns)
    result = np.empty(shape, dtype or np.float32) if out is None else _checked_out(out, shape, dtype)
    if class_tokens:
        return result, result[..., class_tokens:, :].reshape(*batch, *lengths, columns)
    return result, np.moveaxis(result, len(batch), -1) if channels_first else result


def _checked_out(out: Any, shape: tuple[int, ...], dtype: npt.DTypeLike | None) -> npt.NDArray[Any]:
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out is {type(out).__name__}, expected a NumPy array")
    if out.shape != shape:
        raise ValueError(f"out has shape {list(out.shape)}, expected {list(shape)}")
    if dtype is not None and out.dtype != np.dtype(dtype):
        raise TypeError(f"out has dtype {out.dtype} but dtype is {np.dtype(dtype)}; leave dtype out")
    if not out.dtype.isnative:
        raise TypeError(f"out has byte order {out.dtype.byteorder!r}, expected the machine's; use .newbyteorder('=')")
    if out.dtype not in (np.float32, np.float64, np.float16) and out.dtype.name != "bfloat16":
        raise TypeError(f"out has dtype {out.dtype}, expected float32, float64, float16 or ml_dtypes.bfloat16")
    if not out.flags.writeable:
        raise ValueError("out is read-only, expected a writable array; make a copy with .copy()")
    if _overlaps_itself(out):
        raise ValueError(
            "out overlaps itself (a broadcast view?), expected separate elements; make a copy with .copy()"
        )
    return out


def _overlaps_itself(array: npt.NDArray[Any]) -> bool:
    reach = array.itemsize
    for stride, length in sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1):
        if stride < reach:
            return array.size > 0
        reach = stride * (length - 1) + reach
    return False
