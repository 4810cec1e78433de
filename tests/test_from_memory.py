# SPDX-License-Identifier: BSD-3-Clause
"""Calls as users of other libraries write them from memory: right, or refused with a remedy that, followed, is right."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

Array = npt.NDArray[Any]
fastpe: Any = importlib.import_module("fastpe")  # what is wrong to its types is tried, too
B, H, L, D = 2, 3, 5, 8


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def pe(positions: npt.ArrayLike, d: int = D) -> Array:
    """The formula of the paper and of torch's tutorial."""
    angles = np.asarray(positions, float)[..., None] / 10000.0 ** (np.arange(0, d, 2) / d)
    return np.stack([np.sin(angles), np.cos(angles)], -1).reshape(*angles.shape[:-1], d)


def turned(x: Array, positions: npt.ArrayLike = range(L)) -> Array:
    """rotate_half of transformers, along the last axis but one."""
    angles = np.asarray(positions, float)[..., None] / 10000.0 ** (np.arange(0, x.shape[-1], 2) / x.shape[-1])
    cos, sin = np.cos(angles), np.sin(angles)
    first, second = np.split(x.astype(float), 2, axis=-1)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def refused(call: Callable[[], Any], remedy: str) -> Any:
    """The part of the error that `remedy`, a pattern, finds in it."""
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    found = re.search(remedy, str(caught.value))
    assert found, caught.value
    return found


def names() -> dict[str, Any]:
    """What the calls name, made anew for each."""
    rope, mask = fastpe.RotaryEmbedding(D, interleaved=False), np.arange(L) >= np.array([[3], [5]])
    x, ids = normal(B, L, D), np.array([[7], [900]]) + np.arange(L)
    text = {
        "model_type": "qwen2_vl_text",
        "head_dim": 2 * D,
        "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]},
    }
    return {
        "fastpe": fastpe,
        "np": np,
        "B": B,
        "H": H,
        "L": L,
        "D": D,
        "heads": H,
        "pe": pe,
        "turned": turned,
        "rope": rope,
        "x": x,
        "rows": normal(6, D),
        "flat": normal(B, L, H * D),
        "wide": normal(B, H, L, 2 * D),
        "q": normal(B, 4, L, D),
        "k": normal(B, 2, L, D, seed=2),
        "one": normal(B, H, 1, D),
        "packed": normal(6, H, D),
        "by": functools.partial(fastpe.rotate_by_tables, interleaved=False, seq_axis=-2),
        "cos_sin": rope.tables(L),
        "ids": ids,
        "tiled": rope.tables(ids, form="tile"),
        "mrope": fastpe.RotaryEmbedding.from_config(text, mrope=True),
        "grid": np.random.default_rng(1).integers(0, 9, (3, B, L)),
        "mask": mask,
        "key_padding_mask": mask,
        "image": np.indices((1, 4, 5)).max(axis=0) > 2,
        "attention_mask": np.array([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]]),
        "cached": np.arange(L) >= np.array([[3], [0]]),
        "linear": {"rope_type": "linear", "factor": 4.0},
        "masked": np.ma.masked_array(x.copy(), mask=np.broadcast_to(mask[..., None], x.shape)),
        "masked_valid": np.ma.masked_array(np.ones((B, L), bool), mask=mask),
        "words": np.array(["1", "2.5"]),
        # What is right for each sequence of three and of five rows
        "some": np.where(mask[..., None], x, x + pe(np.arange(L))),
    }


# A call that is refused, a pattern that finds the remedy, the call that follows it, and what that gives.
FOLLOWED = [
    ("fastpe.encode(L, dim=D)", r"give (\w+)=", "fastpe.encode(L, {}=D)", "pe(range(L))"),
    # True for padding: no argument here has that meaning.
    *((f"fastpe.add(x, {word}={word})", f"(valid=~{word})", "fastpe.add(x, {})", "some") for word in ("mask", "key_padding_mask")),
    ("fastpe.encode_grid((4, 5), 16, convention='detr', mask=image)", "valid=(~mask)",
        "fastpe.encode_grid((4, 5), 16, convention='detr', valid=(lambda mask: {})(image))[0, :3, :3]",
        "fastpe.encode_grid((3, 3), 16, convention='detr')"),
    ("fastpe.add(x, attention_mask=attention_mask)", "(valid=attention_mask)", "fastpe.add(x, {})[0]",
        "np.r_[x[0, :2], x[0, 2:] + pe(range(3))]"),
    *((f"fastpe.add(x, {word}=[3, 5])", f"(lengths)={word}", "fastpe.add(x, {}=[3, 5])", "some") for word in ("seq_lens", "seq_lengths")),
    # The axis is asked for, whichever it is, and the error says what to write for each layout.
    ("rope.rotate_(q, k)", r"(-\d) for \[B, heads, L, D\]", "rope.rotate_(q, k, seq_axis={})[1]", "turned(k)"),
    ("rope.rotate_(q.swapaxes(1, 2), k.swapaxes(1, 2))", r"(-\d) for \[B, L, heads, D\]",
        "rope.rotate_(q.swapaxes(1, 2), k.swapaxes(1, 2), seq_axis={})[1].swapaxes(1, 2)", "turned(k)"),
    ("rope.rotate_(q.swapaxes(1, 2), k.swapaxes(1, 2), seq_axis=-2)", r"give seq_axis=(-\d)",
        "rope.rotate_(q.swapaxes(1, 2), k.swapaxes(1, 2), seq_axis={})[1].swapaxes(1, 2)", "turned(k)"),
    ("rope.rotate_([q, k], seq_axis=-2)", r"rotate_\((q, k)\)", "rope.rotate_({}, seq_axis=-2)[1]", "turned(k)"),
    ("rope.rotate(flat, seq_axis=-2)", r"x(\.reshape\(.*\)) with seq_axis=(-\d)", "rope.rotate(flat{}, seq_axis={}).swapaxes(1, 2)",
        "turned(flat.reshape(B, L, H, D).swapaxes(1, 2))"),
    ("rope.rotate(wide, seq_axis=-2)", "make the embedding with (head_dim)=",
        "fastpe.RotaryEmbedding(D, interleaved=False, {}=2 * D).rotate(wide, seq_axis=-2)",
        "np.concatenate([turned(wide[..., :D]), wide[..., D:]], -1)"),
    # cos, sin = rotary_emb(x, position_ids): [B, L, head_dim], each column twice; also of one token
    ("by(q, cos=tiled[0], sin=tiled[1])", r"pass cos(\[.*\]), and the same of sin", "by(q, cos=tiled[0]{0}, sin=tiled[1]{0})",
        "turned(q, ids[:, None])"),
    ("by(one, cos=tiled[0][:, :1], sin=tiled[1][:, :1])", r"pass cos(\[.*\]), and the same of sin",
        "by(one, cos=tiled[0][:, :1]{0}, sin=tiled[1][:, :1]{0})", "turned(one, ids[:, None, :1])"),
    ("by(wide, cos=cos_sin[0], sin=cos_sin[1])", r"give head_dim=(\d+) if only a part",
        "by(wide, cos=cos_sin[0], sin=cos_sin[1], head_dim={})[..., :D]", "turned(wide[..., :D])"),
    # q [total, heads, D] with cu_seqlens
    ("rope.rotate(packed, cu_seqlens=[0, 2, 6])", r"(\d) for packed \[N, heads, D\]",
        "rope.rotate(packed, cu_seqlens=[0, 2, 6], seq_axis={}).swapaxes(0, 1)", "turned(packed.swapaxes(0, 1), [0, 1, 0, 1, 2, 3])"),
    ("fastpe.add(rows, offset=[5, 0], cu_seqlens=[2, 4])", r"cu_seqlens\[0\].*of lengths, pass (.*)$",
        "(lambda lengths: fastpe.add(rows, offset=[5, 0], cu_seqlens={}))([2, 4])", "rows + pe([5, 6, 0, 1, 2, 3])"),
    ("fastpe.add(rows, positions=[4, 5, 5, 0, 1, 1], cu_seqlens=[0, 3, 6])", r"leave (cu_seqlens) out",
        "fastpe.add(rows, positions=[4, 5, 5, 0, 1, 1])", "rows + pe([4, 5, 5, 0, 1, 1])"),
    ("fastpe.add(rows[None], cu_seqlens=[0, 2, 6])", r"take out the axis of length 1, as (x\[0\])",
        "(lambda x: fastpe.add({}, cu_seqlens=[0, 2, 6]))(rows[None])", "rows + pe([0, 1, 0, 1, 2, 3])"),
    # One token behind what is in the cache; also a token's position that is an element of an array
    *((f"rope.rotate(one, seq_axis=-2, {word}=17)", f"(offset)={word}", "rope.rotate(one, seq_axis=-2, {}=17)", "turned(one, [17])")
        for word in ("past", "start_pos")),
    ("rope.tables(np.array([17, 3])[0])", r"pass (\[\d+\]) for this position", "rope.tables({})[0]", "np.cos(17 * rope.frequencies)[None]"),
    *((f"rope.rotate(one, valid={mask}, seq_axis=-2)", "pass (.*) with offset=(.*) if valid also has the rows before these",
        f"(lambda valid: rope.rotate(one, valid={{}}, offset={{}}, seq_axis=-2))({mask})", f"turned(one, {positions})")
        for mask, positions in (("cached", "[[[1]], [[4]]]"), ("cached[0]", "[1]"))),
    # position_ids [3, B, L] of the graphs of M-RoPE
    ("mrope.tables(grid)", r"pass (np\.moveaxis\(.*\))", "(lambda positions: mrope.tables({}))(grid)[0]",
        "np.cos(grid[np.repeat([0, 1, 2], [2, 3, 3])].transpose(1, 2, 0) * mrope.frequencies)"),
    ("mrope.rotate(wide, positions=grid, seq_axis=-2)", r"pass (np\.moveaxis\(.*\))",
        "(lambda positions: mrope.rotate(wide, positions={}, seq_axis=-2))(grid)",
        "by(wide, **dict(zip(('cos', 'sin'), mrope.tables(np.moveaxis(grid, 0, -1)))))"),
    ("fastpe.RotaryEmbedding(D, interleaved=False, rope_scaling=linear)", r"give (\w+)=",
        "fastpe.RotaryEmbedding(D, interleaved=False, {}=linear).rotate(x[0])", "turned(x[0], np.arange(L) / 4)"),
    # It means that pairs are not neighbours.
    ("fastpe.RotaryEmbedding(D, is_neox_style=True)", "interleaved=(not is_neox_style)",
        "(lambda is_neox_style: fastpe.RotaryEmbedding(D, interleaved={}))(True).rotate(x[0])", "turned(x[0])"),
    # NumPy's mask is True for what does not count.
    ("fastpe.add_(masked)", r"pass (x\.data); to leave rows alone, give valid=, False for them",
        "(lambda x: fastpe.add_({}, valid=~mask))(masked)", "some"),
    ("fastpe.add(x, valid=masked_valid)", r"pass (valid\.filled\()value", "(lambda valid: fastpe.add(x, valid={}False)))(masked_valid)", "some"),
    *((f"fastpe.add(x, valid={given})", r"pass (valid\[.*\])", f"(lambda valid: fastpe.add(x, valid={{}}))({given})[:1]", "some[:1]")
        for given in ("~mask[:, None, None]", "~mask[:, None]", "~mask[:1, None, None]")),
    ("fastpe.add(x, offset=3.5)", "pass positions=(.*) for L rows", "fastpe.add(x, positions={})", "x + pe(3.5 + np.arange(L))"),
    ("fastpe.add(x, positions=3.5)", r"pass (positions \+ .*\))", "(lambda positions: fastpe.add(x, positions={}))(3.5)",
        "x + pe(3.5 + np.arange(L))"),
    ("fastpe.add(x, offset=np.array([3.0, 4.0]))", r"convert it to (\w+) first, if all",
        "fastpe.add(x, offset=np.array([3.0, 4.0]).astype('{}'))[1]", "x[1] + pe(4 + np.arange(L))"),
    *((f"fastpe.encode({given}, D)", r"convert it to (\w+) first, if all are numbers", f"fastpe.encode({given}.astype('{{}}'), D)",
        "pe([1, 2.5])") for given in ("words", "words.astype(float).astype(object)")),
]  # fmt: skip


@pytest.mark.parametrize(("call", "remedy", "followed", "expected"), FOLLOWED, ids=[row[0] for row in FOLLOWED])
def test_remedies_are_right(call: str, remedy: str, followed: str, expected: str) -> None:
    given = names()
    before = {name: value.copy() for name, value in given.items() if isinstance(value, np.ndarray)}
    found = refused(lambda: eval(call, given), remedy)
    assert all(np.array_equal(given[name], value) for name, value in before.items())
    close(eval(followed.format(*found.groups()).replace("(..", "(B, L"), given), eval(expected, names()))


@pytest.mark.parametrize("scaled", [True, False])
def test_fairseq_and_m2m_100(scaled: bool) -> None:
    """embed_tokens(ids) * embed_scale + positions(ids), counted from padding_idx + 1 on over what is no padding."""
    config = {"model_type": "m2m_100", "d_model": D, "pad_token_id": 1, "scale_embedding": scaled}
    encoding = fastpe.PositionalEncoding.from_config(config)
    ids, table = np.array([[1, 1, 5, 6, 7], [4, 3, 2, 1, 1]]), normal(9, D)
    table[1] = 0  # as nn.Embedding has it at its padding_idx
    positions = np.where(ids != 1, np.cumsum(ids != 1, axis=1) + 1, 0)
    angles = positions[..., None] / 10000.0 ** (np.arange(D // 2) / (D // 2 - 1))
    added = np.concatenate([np.sin(angles), np.cos(angles)], -1) * (ids != 1)[..., None]
    close(encoding.embed(ids, table), table[ids] * (D**0.5 if scaled else 1) + added)
    other = fastpe.PositionalEncoding.from_config({**config, "scale_embedding": not scaled})
    uncounted = fastpe.PositionalEncoding.from_config({"model_type": "xglm", "d_model": D})
    assert len({encoding, other, uncounted}) == 3
    remedy = refused(lambda: encoding.embed(table, ids), r"pass embed(\(.*\))")[1]
    close(eval(f"encoding.embed{remedy}"), encoding.embed(ids, table))


@pytest.mark.parametrize("name", ["x", "table"])
def test_bits_of_bfloat16(name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.full((4, D), 1.5, ml_dtypes.bfloat16)
    bits = x.view(np.uint16)
    calls = {
        "x": lambda each: fastpe.add(each, alpha=0.0),
        "table": lambda each: fastpe.resize_table(each, (2, 2), mode="bilinear"),
    }
    remedy = refused(lambda: calls[name](bits), r"pass (\w+\.view\(ml_dtypes\.bfloat16\)) if")[1]
    assert (calls[name](eval(remedy, {name: bits, "ml_dtypes": ml_dtypes})) == 1.5).all()
    with pytest.raises(TypeError) as caught:
        calls[name](bits)
    assert "asarray" not in str(caught.value)  # which would take 1.5 for 16320


@pytest.mark.parametrize("interleaved", [True, False])
def test_tables_as_wide_as_heads(interleaved: bool) -> None:
    """A cosine for each column: which equal which, the caller can see; where none do, it is not a rotation."""
    x, own = normal(L, D), fastpe.RotaryEmbedding(D, interleaved=interleaved)
    call = functools.partial(fastpe.rotate_by_tables, x, interleaved=interleaved)
    for form, is_of_pairing in (("repeat", interleaved), ("tile", not interleaved)):
        cos, sin = own.tables(L, form=form)
        pattern = r"if (cos.* equals cos.*), pass (.*), and the same of sin"
        remedy = refused(lambda cos=cos, sin=sin: call(cos=cos, sin=sin), pattern)[2]  # type: ignore[misc]
        names = {"np": np, "cos": cos}
        condition = refused(lambda cos=cos, sin=sin: call(cos=cos, sin=sin), r"if (cos.* equals cos.*), pass")[1]  # type: ignore[misc]
        assert np.array_equal(*(eval(each, names) for each in condition.split(" equals "))) == is_of_pairing
        if is_of_pairing:
            halves = [eval(remedy, {"np": np, "cos": each}) for each in (cos, sin)]
            close(call(cos=halves[0], sin=halves[1]), own.rotate(x))


def test_nothing_is_said_of_heads_where_columns_are_no_whole_ones() -> None:
    with pytest.raises(ValueError, match="columns") as caught:
        names()["rope"].rotate(normal(L, D + 1))
    assert "reshape" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        ("fastpe.RotaryEmbedding(64)", "from_config"),
        ("rope.rotate(x, x)", "with an underscore"),
        ("rope.rotate_(x, out=x)", "without the underscore"),
        ("fastpe.add_(x, out=x)", "without the underscore"),
        ("rope.shift_(x, offset=3)", "by="),
        ("rope.shift_(x)", "positions to move by"),
        ("rope.rotate(x, cu_seqlens=[0, 5], max_seqlen=4)", "cu_seqlens is what counts"),
        ("fastpe.add(x, start_index=3)", "offset=start_index"),
        ("fastpe.add(x, past_len=3)", "offset=past_len"),
        ("fastpe.add(x, batch_first=False)", "seq_axis=0"),
        ("fastpe.add(x, dim=0)", "seq_axis="),
        ("fastpe.text_inputs({'model_type': 'llama'}, [[1]], mask=[[1]])", "attention_mask="),
        ("fastpe.text_inputs({'model_type': 'llama'}, [[1]], past_key_values_length=1)", "past=past_key"),
        ("fastpe.text_inputs({'model_type': 'llama'}, [[1]], offset=1)", "past="),
        ("fastpe.encode(3, 8, convention='rope')", "fastpe.RotaryEmbedding"),
        ("fastpe.PositionalEncoding(8, 512)", "max_len="),
        ("fastpe.RotaryEmbedding(64, interleaved=False, mscale=1)", "scaling="),
        ("fastpe.attention_mask(4, causal=True, sliding_window=2)", "window="),
        ("fastpe.pair_order(64)", "neighbours"),
        ("fastpe.RoPE", "fastpe.RotaryEmbedding"),
        ("fastpe.apply_rotary_pos_emb", "rotate_by_tables"),
    ],
)
def test_words_of_other_libraries(call: str, remedy: str) -> None:
    with pytest.raises((TypeError, ValueError, AttributeError), match=re.escape(remedy)):
        eval(call, {"fastpe": fastpe, "rope": names()["rope"], "x": normal(L, D)})


@pytest.mark.parametrize("given", [None, {"a": 1}, "x", {1, 2}])
def test_what_is_no_array_is_not_made_one(given: Any) -> None:
    with pytest.raises(TypeError, match="x is") as caught:
        fastpe.add_(given)
    assert "asarray" not in str(caught.value)
