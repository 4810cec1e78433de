# SPDX-License-Identifier: BSD-3-Clause
"""Calls of more than is done at once, of counts that nothing divides. tests/composed draws smaller ones, in all combinations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.model import added, rotated
from ..oracles.reference import Array, assert_same_bits

# [B, L, C] of some megabytes, in rows; and with a gap behind each element, of which less is done at once.
ROWS = [(277, 31, 1024), (70001, 1, 16), (3, 70001, 8), (5, 263, 4099)]
APART = [(17, 31, 512), (37, 33, 300), (9, 31, 1031), (3, 5003, 9), (4099, 1, 9)]


def cases(*placements: str) -> pytest.MarkDecorator:
    """Each shape with each placement, the largest with one, by one thread and by two in turn."""
    made = [(shape, step, each) for step, shapes in ((1, ROWS), (2, APART)) for shape in shapes for each in placements]
    made = [case for case in made if case[0] != ROWS[0] or case[2] == placements[0]]
    return pytest.mark.parametrize(
        ("shape", "step", "placement", "threads"),
        [(*case, 1 + (i + i // len(placements)) % 2) for i, case in enumerate(made)],
    )


def numbers(*shape: int) -> Array:
    """Of which neighbours differ, and rows too."""
    return np.resize(np.random.default_rng(len(shape)).standard_normal(9973).astype(np.float32), shape)


def placed(shape: tuple[int, ...], step: int) -> tuple[Array, Array]:
    """An array, and the memory behind it, where as many sequences again would begin."""
    memory = np.zeros((shape[0] + 20, *shape[1:-1], shape[-1] * step), np.float32)
    return memory[: shape[0], ..., ::step], memory[shape[0] :]


def rows_of(shape: tuple[int, ...], placement: str) -> tuple[dict[str, Any], Array, Array]:
    """What is passed, which row of a table each row has, and which rows are valid."""
    rng, (batch, length, _) = np.random.default_rng(1), shape
    indices, valid = np.broadcast_to(np.arange(length), (batch, length)), np.ones((batch, length), bool)
    if placement == "offsets":
        offsets = np.arange(batch)[::-1] % 50
        return {"offset": offsets}, indices + offsets[:, None], valid
    if placement == "positions":
        descending = np.arange(length)[::-1].copy()
        return {"positions": descending}, np.broadcast_to(descending, (batch, length)), valid
    if placement == "lengths":
        lengths = rng.integers(0, length + 1, batch)
        return {"lengths": lengths}, indices, indices < lengths[:, None]
    if placement in ("valid", "valid for all"):
        valid = rng.random((1 if placement == "valid for all" else batch, length)) < 0.7
        given, valid = valid, np.broadcast_to(valid, (batch, length))
        return {"valid": given}, np.maximum(np.cumsum(valid, 1) - 1, 0), valid
    return {}, indices, valid


@cases("", "offsets", "lengths", "valid", "valid for all")
def test_sums(shape: tuple[int, ...], step: int, placement: str, threads: int) -> None:
    x, (given, indices, valid) = numbers(*shape), rows_of(shape, placement)
    table = numbers(shape[1] + 50, shape[2])
    found, behind = placed(shape, step)
    for learned, rows in ((table, table), (None, fastpe.encode(len(table), shape[2]))):
        found[...] = x
        expected = added(x, rows[indices], valid)
        fastpe.add_(found, table=learned, num_threads=threads, **given)
        assert_same_bits(np.ascontiguousarray(found), expected)
    assert not behind.any()


@cases("", "offsets", "positions", "valid")
def test_rotations(shape: tuple[int, ...], step: int, placement: str, threads: int) -> None:
    x, (given, indices, valid) = numbers(*shape), rows_of(shape, placement)
    half, interleaved = shape[2] // 2 - 1, shape[2] % 2 == 0
    cos, sin = (numbers(shape[1] + 50, half + more)[:, :half].copy() for more in (0, 1))
    out, behind = placed(shape, step)
    fastpe.rotate_by_tables(
        x,
        out=out,
        cos=cos,
        sin=sin,
        interleaved=interleaved,
        head_dim=shape[2],
        seq_axis=-2,
        num_threads=threads,
        **given,
    )
    expected = rotated(x, (cos[indices], sin[indices]), valid, interleaved=interleaved)
    assert_same_bits(np.ascontiguousarray(out), expected)
    assert not behind.any()


def test_positions_are_checked_behind_the_first_million() -> None:
    length = 2**20 + 5
    x, table = np.zeros((length, 1), np.float32), np.ones((length - 1, 1), np.float32)
    with pytest.raises(IndexError, match="position"):
        fastpe.add_(x, table=table, valid=np.ones(length, bool))
    assert not x.any()
