# SPDX-License-Identifier: BSD-3-Clause
"""Calls as users of other libraries write them from memory: right, or refused with a remedy that, followed, is right."""

from __future__ import annotations

import functools
import importlib
import json
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


def sinusoids(positions: npt.ArrayLike, d: int) -> Array:
    """The formula of the paper and of torch's tutorial."""
    angles = np.asarray(positions, float)[..., None] / 10000.0 ** (np.arange(0, d, 2) / d)
    return np.stack([np.sin(angles), np.cos(angles)], -1).reshape(*angles.shape[:-1], d)


def rotated(x: Array, positions: npt.ArrayLike) -> Array:
    """rotate_half of transformers, along the last axis but one."""
    angles = np.asarray(positions, float)[..., None] / 10000.0 ** (np.arange(0, x.shape[-1], 2) / x.shape[-1])
    cos, sin = np.cos(angles), np.sin(angles)
    first, second = np.split(x.astype(float), 2, axis=-1)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def refused(call: Callable[[], Any], remedy: str) -> str:
    """The part of the error that `remedy`, a pattern, finds in it."""
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    found = re.search(remedy, str(caught.value))
    assert found, caught.value
    return found[found.lastindex or 0]


def rope(width: int = D) -> Any:
    return fastpe.RotaryEmbedding(width, interleaved=False)


def test_torchs_tutorial() -> None:
    """x + self.pe[: x.size(0)], sequence first; and `dim` for the width."""
    x = normal(L, B, D)
    close(fastpe.add(x, seq_axis=0), x + sinusoids(np.arange(L), D)[:, None])
    remedy = refused(lambda: fastpe.encode(L, dim=D), r"give (\w+)=")
    close(fastpe.encode(L, **{remedy: D}), sinusoids(np.arange(L), D))


@pytest.mark.parametrize("word", ["mask", "key_padding_mask"])
def test_torchs_padding_mask(word: str) -> None:
    """True for padding, in key_padding_mask and in DETR; no argument here has that meaning."""
    x, padding = normal(B, L, D), np.arange(L) >= np.array([[3], [5]])
    remedy = refused(lambda: fastpe.add(x, **{word: padding}), rf"(valid=~{word})")
    given = eval(f"dict({remedy})", {word: padding})
    close(fastpe.add(x, **given), np.where(padding[..., None], x, x + sinusoids(np.arange(L), D)))


def test_detrs_mask() -> None:
    """NestedTensor.mask is True for padding."""
    mask = np.zeros((1, 4, 5), bool)
    mask[:, 3:], mask[..., 4:] = True, True
    remedy = refused(lambda: fastpe.encode_grid((4, 5), 16, convention="detr", mask=mask), "(valid=~mask)")
    found = fastpe.encode_grid((4, 5), 16, convention="detr", **eval(f"dict({remedy})", {"mask": mask}))
    close(found[0, :3, :4], fastpe.encode_grid((3, 4), 16, convention="detr"))


def test_attention_mask_of_a_tokenizer() -> None:
    x, attention_mask = normal(B, L, D), np.array([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    remedy = refused(lambda: fastpe.add(x, attention_mask=attention_mask), "(valid=attention_mask)")
    found = fastpe.add(x, **eval(f"dict({remedy})", {"attention_mask": attention_mask}))
    close(found[0], np.r_[x[0, :2], x[0, 2:] + sinusoids(np.arange(3), D)])


@pytest.mark.parametrize("word", ["seq_lens", "seq_lengths"])
def test_lengths_of_sequences(word: str) -> None:
    x, lengths = normal(B, L, D), np.array([2, 5])
    remedy = refused(lambda: fastpe.add(x, **{word: lengths}), f"(lengths={word})")
    padding = np.arange(L) >= lengths[:, None]
    found = fastpe.add(x, **eval(f"dict({remedy})", {word: lengths}))
    close(found, np.where(padding[..., None], x, x + sinusoids(np.arange(L), D)))


@pytest.mark.parametrize("layout", ["[B, heads, L, D]", "[B, L, heads, D]"])
def test_queries_and_keys_of_grouped_heads(layout: str) -> None:
    """The axis is asked for, whichever it is, and the error says what to write for each layout."""
    heads_first = layout == "[B, heads, L, D]"
    q, k = (normal(B, h, L, D, seed=h) for h in (4, 2))
    given = [(x if heads_first else x.swapaxes(1, 2)).copy() for x in (q, k)]
    axis = refused(lambda: rope().rotate_(*given), rf"(-\d) for {re.escape(layout)}")
    rope().rotate_(*given, seq_axis=int(axis))
    for x, found in zip((q, k), given, strict=True):
        close(found if heads_first else found.swapaxes(1, 2), rotated(x, np.arange(L)))


def test_the_wrong_axis_of_grouped_heads() -> None:
    q, k = normal(1, L, 4, D), normal(1, L, 2, D)
    before = q.copy(), k.copy()
    axis = refused(lambda: rope().rotate_(q, k, seq_axis=-2), r"give seq_axis=(-\d)")
    assert all(map(np.array_equal, (q, k), before))
    rope().rotate_(q, k, seq_axis=int(axis))
    close(k.swapaxes(1, 2), rotated(before[1].swapaxes(1, 2), np.arange(L)))


def test_queries_and_keys_in_a_list() -> None:
    q, k = normal(B, H, L, D), normal(B, H, L, D, seed=1)
    before = k.copy()
    call: Any = rope().rotate_
    remedy = refused(lambda: call([q, k], seq_axis=-2), r"rotate_(\(q, k)\)")
    eval(f"call{remedy}, seq_axis=-2)", {"call": call, "q": q, "k": k})
    close(k, rotated(before, np.arange(L)))


def test_heads_that_were_not_taken_apart() -> None:
    x = normal(B, L, H * D)
    remedy = refused(lambda: rope().rotate(x, seq_axis=-2), r"x(\.reshape\(.*\) with seq_axis=-\d)")
    reshaped, axis = remedy.split(" with seq_axis=")
    heads = eval(f"x{reshaped.replace('..', 'B, L').replace('heads', str(H))}", {"x": x, "B": B, "L": L})
    close(rope().rotate(heads, seq_axis=int(axis)).swapaxes(1, 2), rotated(heads.swapaxes(1, 2), np.arange(L)))


def test_a_part_of_a_head() -> None:
    """partial_rotary_factor: the width of a head is not the width that is rotated."""
    x, call = normal(B, H, L, 2 * D), rope
    remedy = refused(lambda: call().rotate(x, seq_axis=-2), "make the embedding with (head_dim)=")
    found = fastpe.RotaryEmbedding(D, interleaved=False, **{remedy: 2 * D}).rotate(x, seq_axis=-2)
    close(found[..., :D], rotated(x[..., :D], np.arange(L)))
    close(found[..., D:], x[..., D:])


@pytest.mark.parametrize("length", [L, 1])
def test_transformers_tiled_tables(length: int) -> None:
    """cos, sin = rotary_emb(x, position_ids): [B, L, head_dim], each column twice; also of one token."""
    ids = np.array([[7], [900]]) + np.arange(length)
    cos, sin = rope().tables(ids, form="tile")
    q, call = normal(B, H, length, D), functools.partial(fastpe.rotate_by_tables, interleaved=False, seq_axis=-2)
    half = refused(lambda: call(q, cos=cos, sin=sin), r"pass cos(\[.*\]), and the same of sin")
    close(call(q, cos=eval(f"cos{half}"), sin=eval(f"sin{half}")), rotated(q, ids[:, None]))


def test_tables_of_position_ids() -> None:
    ids = np.array([[3, 4, 5, 6, 7], [0, 0, 1, 2, 3]])
    cos, sin = rope().tables(ids)
    q = normal(B, H, L, D)
    found = fastpe.rotate_by_tables(q, cos=cos, sin=sin, interleaved=False, seq_axis=-2)
    close(found, rotated(q, ids[:, None]))


@pytest.mark.parametrize("model_type", ["llama", "cohere", "gptj", "gpt_neox"])
def test_caches_of_onnxruntime(model_type: str) -> None:
    """cos_cache, sin_cache [max_len, rotary_dim / 2], whatever the model's own module makes."""
    gptj, others = {"n_embd": 64, "n_head": 4, "rotary_dim": 16}, {"hidden_size": 64, "num_attention_heads": 4}
    sizes = gptj if model_type == "gptj" else others
    model = fastpe.RotaryEmbedding.from_config({"model_type": model_type, **sizes})
    cos_cache, sin_cache = model.tables(10)
    assert cos_cache.shape == sin_cache.shape == (10, model.rotary_dim // 2)
    close(cos_cache, np.cos(np.arange(10)[:, None] * model.frequencies))


def test_diffusers_and_glides_timesteps() -> None:
    """One name, two formulas: the function's defaults in diffusers are not those of GLIDE and DiT, nor of its UNets."""
    call: Any = fastpe.timestep_embedding
    missing = refused(lambda: call([3.0], D), r"'(flip_sin_to_cos)' and 'downscale_freq_shift'|'(\w+)'")
    assert missing in ("flip_sin_to_cos", "downscale_freq_shift")
    angles = 3.0 * 10000.0 ** (-np.arange(D // 2) / (D // 2))
    close(call([3.0], D, flip_sin_to_cos=True, downscale_freq_shift=0)[0], np.r_[np.cos(angles), np.sin(angles)])


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
    remedy = refused(lambda: encoding.embed(table, ids), r"pass embed(\(.*\))")
    close(eval(f"encoding.embed{remedy}"), encoding.embed(ids, table))


def test_flash_attns_packed_sequences() -> None:
    """q [total, heads, D] with cu_seqlens and max_seqlen."""
    q, cu_seqlens = normal(6, H, D), np.array([0, 2, 6], np.int32)
    call: Any = rope().rotate
    refused(lambda: call(q, cu_seqlens=cu_seqlens, max_seqlen=4), "cu_seqlens is what counts")
    axis = refused(lambda: call(q, cu_seqlens=cu_seqlens), r"(\d) for packed \[N, heads, D\]")
    found = call(q, cu_seqlens=cu_seqlens, seq_axis=int(axis))
    close(found.swapaxes(0, 1), rotated(q.swapaxes(0, 1), [0, 1, 0, 1, 2, 3]))


@pytest.mark.parametrize("word", ["past", "start_pos"])
def test_a_cache_of_keys(word: str) -> None:
    """One token [B, heads, 1, D] behind what is in the cache; also a token's position that is an element of an array."""
    k = normal(B, H, 1, D)
    remedy = refused(lambda: rope().rotate(k, seq_axis=-2, **{word: 17}), rf"(offset)={word}")
    close(rope().rotate(k, seq_axis=-2, **{remedy: 17}), rotated(k, [17]))
    position = np.array([17, 3])[0]
    text = refused(lambda: rope().tables(position), r"pass (\[\d+\]) for this position")
    cos, _ = rope().tables(json.loads(text))
    close(cos, np.cos(17 * rope().frequencies)[None])


def test_coordinates_that_come_first() -> None:
    """position_ids [3, B, L] of the graphs of M-RoPE."""
    scaling = {"type": "mrope", "mrope_section": [2, 3, 3]}
    config = {"model_type": "qwen2_vl_text", "head_dim": 16, "rope_scaling": scaling}
    mrope = fastpe.RotaryEmbedding.from_config(config, mrope=True)
    ids = np.random.default_rng(1).integers(0, 9, (3, B, L))
    q = normal(B, H, L, 16)
    along = functools.partial(mrope.rotate, q, seq_axis=-2)
    remedies = {
        refused(call, r"pass (np\.moveaxis\(.*\))")
        for call in (lambda: mrope.tables(ids), lambda: along(positions=ids))
    }
    (first,) = (eval(remedy, {"np": np, "positions": ids}) for remedy in remedies)
    cos, sin = mrope.tables(first)
    turned = fastpe.rotate_by_tables(q, cos=cos, sin=sin, interleaved=False, seq_axis=-2)
    close(along(positions=first), turned)
    angles = ids[np.repeat([0, 1, 2], [2, 3, 3])].transpose(1, 2, 0) * mrope.frequencies
    close(cos, np.cos(angles))


def test_scaling_of_a_config() -> None:
    make: Any = fastpe.RotaryEmbedding
    scaling = {"rope_type": "linear", "factor": 4.0}
    remedy = refused(lambda: make(D, interleaved=False, rope_scaling=scaling), r"give (\w+)=")
    x = normal(L, D)
    close(make(D, interleaved=False, **{remedy: scaling}).rotate(x), rotated(x, np.arange(L) / 4))


def test_vllms_is_neox_style() -> None:
    """It means that pairs are not neighbours."""
    make: Any = fastpe.RotaryEmbedding
    remedy = refused(lambda: make(D, is_neox_style=True), "(interleaved=not is_neox_style)")
    made = make(D, **eval(f"dict({remedy})", {"is_neox_style": True}))
    x = normal(L, D)
    close(made.rotate(x), rotated(x, np.arange(L)))
    assert make(**made.arguments) == made
    assert made.base == 10000.0


def test_masked_arrays() -> None:
    """NumPy's mask is True for what does not count."""
    x, masked_rows = normal(B, L, D), np.arange(L) >= np.array([[3], [5]])
    mask = np.broadcast_to(masked_rows[..., None], x.shape)
    given = np.ma.masked_array(x.copy(), mask=mask)
    data = refused(lambda: fastpe.add_(given), r"pass (x\.data); to leave rows alone, give valid=, False for them")
    fastpe.add_(eval(data, {"x": given}), valid=~masked_rows)
    close(given.data, np.where(mask, x, x + sinusoids(np.arange(L), D)))
    masked_valid = np.ma.masked_array(np.ones((B, L), bool), mask=masked_rows)
    remedy = refused(lambda: fastpe.add(x, valid=masked_valid), r"pass (valid\.filled\()value")
    close(fastpe.add(x, valid=eval(f"{remedy}False)", {"valid": masked_valid})), given.data)


@pytest.mark.parametrize("name", ["x", "table"])
def test_bits_of_bfloat16(name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.full((4, D), 1.5, ml_dtypes.bfloat16)
    bits = x.view(np.uint16)
    calls = {
        "x": lambda each: fastpe.add(each, alpha=0.0),
        "table": lambda each: fastpe.resize_table(each, (2, 2), mode="bilinear"),
    }
    remedy = refused(lambda: calls[name](bits), r"pass (\w+\.view\(ml_dtypes\.bfloat16\)) if")
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
        remedy = refused(lambda cos=cos, sin=sin: call(cos=cos, sin=sin), pattern)  # type: ignore[misc]
        names = {"np": np, "cos": cos}
        condition = refused(lambda cos=cos, sin=sin: call(cos=cos, sin=sin), r"if (cos.* equals cos.*), pass")  # type: ignore[misc]
        assert np.array_equal(*(eval(each, names) for each in condition.split(" equals "))) == is_of_pairing
        if is_of_pairing:
            halves = [eval(remedy, {"np": np, "cos": each}) for each in (cos, sin)]
            close(call(cos=halves[0], sin=halves[1]), own.rotate(x))


def test_fractional_offsets() -> None:
    x = normal(B, L, D)
    expected = x + sinusoids(3.5 + np.arange(L), D)
    remedy = refused(lambda: fastpe.add(x, offset=3.5), r"pass positions=(.*) for L rows")
    close(fastpe.add(x, positions=eval(remedy, {"np": np, "L": L})), expected)
    remedy = refused(lambda: fastpe.add(x, positions=3.5), r"pass (positions \+ .*\))")
    close(fastpe.add(x, positions=eval(remedy, {"np": np, "positions": 3.5})), expected)
    whole = refused(lambda: fastpe.add(x, offset=np.array([3.0, 4.0])), r"convert it to (\w+) first, if all")
    found = fastpe.add(x, offset=np.array([3.0, 4.0]).astype(whole))
    close(found[1], x[1] + sinusoids(4 + np.arange(L), D))


def test_lengths_of_packed_sequences() -> None:
    x, lengths = normal(6, D), [2, 4]
    call = functools.partial(fastpe.add, x, offset=[5, 0])
    remedy = refused(lambda: call(cu_seqlens=lengths), r"cu_seqlens\[0\].*of lengths, pass (.*)$")
    found = call(cu_seqlens=eval(remedy, {"np": np, "lengths": lengths}))
    close(found, x + sinusoids([5, 6, 0, 1, 2, 3], D))
    remedy = refused(lambda: fastpe.add(x[None], cu_seqlens=[0, 2, 6]), r"take out the axis of length 1, as (x\[0\])")
    close(fastpe.add(eval(remedy, {"x": x[None]}), cu_seqlens=[0, 2, 6]), x + sinusoids([0, 1, 0, 1, 2, 3], D))


@pytest.mark.parametrize("shape", [(B, 1, 1, L), (B, 1, L), (1, 1, 1, L)])
def test_masks_of_attention(shape: tuple[int, ...]) -> None:
    x, valid = normal(B, L, D), np.arange(L) < np.array([[3], [5]])
    given = valid[: shape[0]].reshape(shape)
    remedy = refused(lambda: fastpe.add(x, valid=given), r"pass (valid\[.*\])")
    expected = np.where(valid[: shape[0], :, None], x + sinusoids(np.arange(L), D), x)
    close(fastpe.add(x, valid=eval(remedy, {"valid": given})), expected)


@pytest.mark.parametrize("batched", [True, False])
def test_the_whole_mask_while_decoding(batched: bool) -> None:
    """Left padding, and one new token: the mask is that of the cache and the token."""
    k, valid = normal(B, H, 1, D), np.arange(L) >= np.array([[3], [0]])
    valid = valid if batched else valid[0]
    rotate = functools.partial(rope().rotate, k, seq_axis=-2)
    text = refused(lambda: rotate(valid=valid), r"pass (.*) with offset=.* if")
    offset = refused(lambda: rotate(valid=valid), r"with offset=(.*) if valid also has the rows before these")
    found = rotate(valid=eval(text, {"valid": valid}), offset=eval(offset, {"valid": valid}))
    close(found[0], rotated(k[0], [1]))
    close(found[1], rotated(k[1], [4 if batched else 1]))


def test_heads_of_which_a_part_is_rotated_by_tables() -> None:
    x, (cos, sin) = normal(L, 2 * D), rope().tables(L)
    call = functools.partial(fastpe.rotate_by_tables, x, cos=cos, sin=sin, interleaved=False)
    remedy = refused(call, r"give head_dim=(\d+) if only a part")
    found = call(head_dim=int(remedy))
    close(found[:, :D], rotated(x[:, :D], np.arange(L)))
    # Not whole heads: nothing is said of taking them apart.
    with pytest.raises(ValueError, match="columns") as caught:
        rope().rotate(normal(L, D + 1))
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
        eval(call, {"fastpe": fastpe, "rope": rope(), "x": normal(L, D)})


@pytest.mark.parametrize("given", [None, {"a": 1}, "x", {1, 2}])
def test_what_is_no_array_is_not_made_one(given: Any) -> None:
    with pytest.raises(TypeError, match="x is") as caught:
        fastpe.add_(given)
    assert "asarray" not in str(caught.value)


def test_arrays_of_text_and_of_objects() -> None:
    for given in (np.array(["1", "2.5"]), np.array([1, 2.5], object)):
        dtype = refused(functools.partial(fastpe.encode, given, D), r"convert it to (\w+) first, if all are numbers")
        close(fastpe.encode(given.astype(dtype), D), sinusoids(np.array([1, 2.5]), D))
