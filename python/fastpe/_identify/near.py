# SPDX-License-Identifier: BSD-3-Clause
"""The known table that is closest to one that nothing known makes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from fastpe._identify.answer import evaluated
from fastpe._identify.readings import Array, largest_in_rows, left_at_zero

# The mean difference, relative to the amplitude, up to which a table is taken for a changed table of a candidate.
nearly = 0.05
# The largest difference of such a table, in the same unit: values that are unrelated differ by up to 2.
_largest = 0.5
# A row is named apart if it is this many times as far off as any other, and has at least as many others.
_stands_out = 10.0


@dataclasses.dataclass(frozen=True)
class Candidate:
    """What may have been changed into a table.

    Attributes
    ----------
    title : str
        What a sentence calls it.
    code : str
        The call.
    given : tuple of ndarray
        The arrays that the call makes nearly.
    distance : float
        The mean difference of some rows, relative to the amplitude.
    amplitude : float
        Of sines and cosines.
    """

    title: str
    code: str
    given: tuple[Array, ...]
    distance: float
    amplitude: float = 1.0


def nearest(candidates: Iterable[Candidate]) -> tuple[str, float] | None:
    """A sentence about the closest candidate, and how far the table is off; None if no candidate is close.

    Of candidates that are equally close, the first is named.
    """
    best = min(candidates, key=lambda candidate: candidate.distance, default=None)
    if best is None or not best.distance < nearly:
        return None
    made = evaluated(best.code)
    arrays = made if isinstance(made, tuple) else (made,)
    left: list[int] = []
    compared = len(best.given[0])
    differences = np.max([*map(largest_in_rows, best.given, arrays)], axis=0)
    if best.given[0].ndim == 2:
        # Rows that are zero are not compared.
        zero = ~np.any([array.any(axis=1) for array in best.given], axis=0)
        left = np.flatnonzero(zero & (differences > 0.0)).tolist()
        differences[zero] = 0.0
        compared -= int(np.count_nonzero(zero))
    worst = int(np.argmax(differences))
    largest, others = float(differences[worst]), float(np.delete(differences, worst).max(initial=0.0))
    # A single row of many may be the one of a padding index, or damaged.
    stands_out = best.given[0].ndim == 2 and compared > _stands_out and others < largest / _stands_out
    if (others if stands_out else largest) > _largest * best.amplitude:
        return None
    off = f"off by up to {largest:.2g}"
    if stands_out:
        alone = f"by {largest:.2g} in row {worst}"
        off = f"off by up to {others:.2g}, and {alone}" if others else f"off {alone} alone"
    beside = f"; {left_at_zero(left)}" if left else ""
    return f"the nearest is {best.title}, {off}{beside}", largest
