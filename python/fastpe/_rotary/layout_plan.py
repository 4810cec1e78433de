# SPDX-License-Identifier: BSD-3-Clause
"""A layout for one width: frequencies, and the rotary embeddings that they make."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastpe._errors import refused
from fastpe._rotary.embedding import RotaryEmbedding
from fastpe._rotary.scaling import axes_of, rotary_frequencies

if TYPE_CHECKING:
    from fastpe._rotary.layout import RotaryLayout

# Divisions with frequencies over a coordinate's columns.
own_frequencies = ("blocks", "mixed", "parts")

# The forms of timm: one array, all sines and then all cosines, as wide as the columns each.
sines_first = {"sin_cos_tile": "tile", "sin_cos_repeat": "repeat"}

Array = npt.NDArray[Any]

# Columns of a head, what rotates them, and the coordinates of a position that it takes.
Part = tuple[slice, RotaryEmbedding, tuple[int, ...]]


class Plan(NamedTuple):
    """A layout for one width: its parts, and what serves all of them at once.

    `whole` has the frequencies of all parts, in their order. If there are several, `columns` are those of a head in the
    order in which `whole` pairs them, `checker` takes what `whole` takes and rotates nothing, and the "halves" of
    `tiled` are the tables of form "tile" whose parts are tiled each.
    """

    parts: tuple[Part, ...]
    whole: RotaryEmbedding
    columns: Array | None = None
    checker: RotaryEmbedding | None = None
    tiled: RotaryEmbedding | None = None

    def tables(self, positions: npt.ArrayLike, form: str, out: Any, options: dict[str, Any]) -> Any:
        """The tables of all parts."""
        if form == "tile" and self.tiled is not None:
            return self.tiled.tables(positions, form="halves", out=out, **options)
        return self.whole.tables(positions, form=form, out=out, **options)

    def rotate_(self, arrays: Sequence[Array], options: dict[str, Any]) -> None:
        """Rotate several parts, of arrays that `checker` took: what ends the call leaves all arrays as they are."""
        copies = [bits(array)[..., self.columns] for array in arrays]
        self.whole.rotate_(*(copy.view(arrays[0].dtype) for copy in copies), **options)
        for array, copy in zip(arrays, copies, strict=True):
            bits(array)[..., self.columns] = copy


@functools.lru_cache(maxsize=64)
def planned(preset: RotaryLayout, head_dim: int, theta: float | None, sections: tuple[int, ...] | None) -> Plan:
    """The plan of a preset, with a theta and sections of the call's where they are given."""
    wanted = {"theta": theta, "sections": sections}
    given: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
    layout = dataclasses.replace(preset, **given)
    if layout.division == "doubled":
        found = f"{layout.name!r} divides the columns of a head, and not their frequencies, among its coordinates"
        raise refused(ValueError, "layout", found, remedy="that is not a rotation: it only has position ids")
    counts = _counts(layout, head_dim)
    if layout.theta is None:
        expected = f"the rope_theta of your model's config.json: the models of layout {layout.name!r} differ"
        raise refused(ValueError, "theta", "is missing", expected, "give theta=")
    pairs = sum(counts)
    freqs, axes = _frequencies_and_axes(layout, layout.theta, counts)
    chosen: dict[str, Any] = {"base": layout.theta} if freqs is None else {"freqs": freqs}
    common: dict[str, Any] = {"interleaved": layout.interleaved, "form": sines_first.get(layout.form, layout.form)}
    whole = RotaryEmbedding(2 * pairs, axes=axes, **chosen, **common)
    if freqs is None or layout.division != "parts":
        return Plan(((slice(0, 2 * pairs), whole, tuple(range(len(counts)))),), whole)
    parts: list[Part] = []
    tiles = []
    for coordinate, (count, end) in enumerate(zip(counts, np.cumsum(counts).tolist(), strict=True)):
        own = np.arange(end - count, end)
        rope = RotaryEmbedding(2 * count, axes=np.zeros(count, int), freqs=freqs[own], **common)
        parts.append((slice(2 * (end - count), 2 * end), rope, (coordinate,)))
        tiles.append(np.tile(own, 2))
    twice = np.concatenate(tiles)
    columns = np.arange(2 * pairs)
    if not layout.interleaved:
        partners = np.argsort(twice, kind="stable")
        columns = np.concatenate([partners[0::2], partners[1::2]])
    checker = RotaryEmbedding(2 * pairs, axes=axes, freqs=np.zeros(pairs), **common)
    tiled = RotaryEmbedding(4 * pairs, axes=axes[twice], freqs=freqs[twice], interleaved=False)
    return Plan(tuple(parts), whole, columns, checker, tiled)


def _counts(layout: RotaryLayout, head_dim: int) -> tuple[int, ...]:
    """Frequencies of each section."""
    wrong = functools.partial(refused, ValueError, "head_dim", f"is {head_dim}")
    if layout.sections is not None:
        width = 2 * sum(layout.sections)
        if width == head_dim or (layout.partial and width < head_dim):
            return layout.sections
        expected = f"{'at least ' if layout.partial else ''}{width}: layout {layout.name!r} has sections "
        expected += f"{layout.sections}, and each of their frequencies turns two columns"
        if width == 2 * head_dim and not any(columns % 2 for columns in layout.sections):
            halves = tuple(columns // 2 for columns in layout.sections)
            raise wrong(expected, f"give half of each number of columns, sections={halves}")
        raise wrong(expected, "give sections= whose sum is half of the head")
    shares = layout.proportions or (1,) * len(layout.coordinates)
    multiple = 2 * sum(shares) // math.gcd(*shares)
    if layout.remainder == "error" and head_dim % multiple:
        names = ", ".join(layout.coordinates)
        raise wrong(f"a multiple of {multiple}: layout {layout.name!r} shares the columns among {names} in pairs")
    if layout.remainder == "first" and head_dim % 2:
        raise wrong("an even number: columns are rotated in pairs")
    pairs = head_dim // 2
    counts = [pairs * share // sum(shares) for share in shares]
    if layout.remainder == "first":
        counts[0] += pairs - sum(counts)
    if min(counts) < 1:
        raise wrong(f"more: a coordinate of layout {layout.name!r} has no columns")
    return tuple(counts)


def _frequencies_and_axes(
    layout: RotaryLayout, theta: float, counts: tuple[int, ...]
) -> tuple[npt.NDArray[np.float64] | None, npt.NDArray[np.int64]]:
    """The frequencies, None for the ideal ones over all columns, and the coordinate of each."""
    axes = axes_of(layout.division, counts)
    if layout.division in ("runs", "strides", "turns"):  # the ideal ones over all columns
        return None, axes
    if layout.division == "parity":
        shared, _ = rotary_frequencies(2 * sum(counts), base=theta)
        return np.concatenate([shared[0::2], shared[1::2]]), axes
    if layout.frequencies == "linear":
        own = [np.pi * np.linspace(1.0, theta / 2.0, count) for count in counts]
    else:
        own = [rotary_frequencies(2 * count, base=theta)[0] for count in counts]
    if layout.division == "mixed":
        own, axes = [np.stack(own[::-1], axis=1).ravel()], np.tile([1, 0], counts[0])
    return layout.freq_scale * np.concatenate(own), axes


def bits(array: Array) -> Array:
    """The elements as integers: NumPy copies these without memory of its own."""
    return np.asarray(array).view(f"u{array.itemsize}")
