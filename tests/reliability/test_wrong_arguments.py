# SPDX-License-Identifier: BSD-3-Clause
"""Arguments by the names of other libraries, in wrong functions, too many or missing: what is said, and what follows it."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import weakref
from typing import Any

import numpy as np
import pytest

import fastpe
from fastpe import _core

from ..oracles.remedies import check_remedy, evaluating

LINEAR = {"rope_type": "linear", "factor": 4.0}
LLAMA = {"model_type": "llama", "head_dim": 8}


def names() -> dict[str, Any]:
    return {name: getattr(fastpe, name) for name in fastpe.__all__} | {
        "fastpe": fastpe,
        "np": np,
        "x": np.ones((2, 3, 8), np.float32),
        "ids": np.array([[1, 2, 0], [3, 0, 0]]),
        "enc": fastpe.PositionalEncoding(8),
        "rope": fastpe.RotaryEmbedding(8, interleaved=False),
        "wan": fastpe.rotary_layouts["wan"],
        "q": np.ones((4, 128), np.float32),
        "tables": {"cos": np.ones((9, 4), np.float32), "sin": np.zeros((9, 4), np.float32)},
        "LINEAR": LINEAR,
        "LLAMA": LLAMA,
    }


REMEDIED: list[tuple[str, str, str]] = [
    # Names of other libraries
    (
        "RotaryEmbedding(8, interleaved=True, theta=5e5)",
        "'theta'; did you mean 'base'?",
        "RotaryEmbedding(8, interleaved=True, base=5e5)",
    ),
    (
        "RotaryEmbedding(dim=8, interleaved=True)",
        "did you mean 'rotary_dim'?",
        "RotaryEmbedding(rotary_dim=8, interleaved=True)",
    ),
    (
        "RotaryEmbedding(8, is_neox_style=True)",
        "did you mean 'interleaved', which is False for that style?",
        "RotaryEmbedding(8, interleaved=False)",
    ),
    ("RotaryEmbedding(8, traditional=True)", "did you mean 'interleaved'?", "RotaryEmbedding(8, interleaved=True)"),
    (
        "RotaryEmbedding(8, interleaved=True, rope_scaling=LINEAR)",
        'did you mean \'scaling\', such as scaling={"rope_type": .., "factor": ..}?',
        "RotaryEmbedding(8, interleaved=True, scaling=LINEAR)",
    ),
    (
        "RotaryEmbedding(8, interleaved=True, max_position_embeddings=9)",
        "did you mean 'max_len'?",
        "RotaryEmbedding(8, interleaved=True, max_len=9)",
    ),
    ("PositionalEncoding(embed_dim=8)", "did you mean 'd_model'?", "PositionalEncoding(d_model=8)"),
    ("PositionalEncoding(8, seq_len=9)", "did you mean 'max_len'?", "PositionalEncoding(8, max_len=9)"),
    ("PositionalEncoding(8, dropout=0.1)", "fastpe has no dropout: leave it out", "PositionalEncoding(8)"),
    (
        "PositionalEncoding(8, dtype='f8')",
        "an argument of each call: give it there",
        "PositionalEncoding(8).encode(3, dtype='f8')",
    ),
    ("rotary_frequencies(8, rope_theta=5e5)", "did you mean 'base'?", "rotary_frequencies(8, base=5e5)"),
    ("encode(seq_len=3, d_model=8)", "did you mean 'positions'?", "encode(positions=3, d_model=8)"),
    ("add_(x, attention_mask=ids != 0)", "did you mean 'mask', which is True, or 1, where", "add_(x, mask=ids != 0)"),
    ("add_(x, key_padding_mask=ids == 0)", "did you mean 'mask', the contrary", "add_(x, mask=~(ids == 0))"),
    ("add_(x, padding_idx=0)", "such as mask=ids != padding_idx?", "add_(x, mask=ids != 0)"),
    ("add_(x, axis=1)", "did you mean 'seq_axis'?", "add_(x, seq_axis=1)"),
    ("add_(x, batch_first=False)", "did you mean 'seq_axis', which is 0 for [L, B, d_model]", "add_(x, seq_axis=0)"),
    ("add_(x, position_ids=[1, 2, 3])", "did you mean 'positions'?", "add_(x, positions=[1, 2, 3])"),
    ("add_(x, seq_len=3)", "the length is that of the array, along seq_axis: leave it out", "add_(x)"),
    ("embed(ids, encode(9, 8), start_pos=3)", "did you mean 'offset'?", "embed(ids, encode(9, 8), offset=3)"),
    ("rope.rotate_(x, start_pos=3)", "did you mean 'offset'?", "rope.rotate_(x, offset=3)"),
    ("rope.shift_(x, offset=3)", "did you mean 'by'?", "rope.shift_(x, by=3)"),
    ("enc.shift(x, by=3)", "did you mean 'k'?", "enc.shift(x, k=3)"),
    (
        "encode_grid((2, 3), 8, convention='mae2d', cls_token=1)",
        "did you mean 'class_tokens'?",
        "encode_grid((2, 3), 8, convention='mae2d', class_tokens=1)",
    ),
    (
        "encode_coordinates(coords=[[0, 1]], d_model=8, convention='mae2d')",
        "did you mean 'coordinates'?",
        "encode_coordinates(coordinates=[[0, 1]], d_model=8, convention='mae2d')",
    ),
    (
        "timestep_embedding(t=[1], embedding_dim=8)",
        "did you mean 'timesteps'?",
        "timestep_embedding(timesteps=[1], embedding_dim=8)",
    ),
    (
        "wan.rotate_(q, position_ids=np.zeros((4, 3)))",
        "did you mean 'positions'?",
        "wan.rotate_(q, positions=np.zeros((4, 3)))",
    ),
    ("wan.parts(128, base=1e4)", "did you mean 'theta'?", "wan.parts(128, theta=1e4)"),
    ("identify(tables=encode(40, 8))", "did you mean 'table'?", "identify(table=encode(40, 8))"),
    # Arguments of other functions
    (
        "add_(x, out=x)",
        "writes into x itself: leave it out, or pass x.copy()",
        "(add_(x), add_(x.copy()), add(x, out=x))",
    ),
    ("add_(x, device='cpu')", "fastpe computes on the CPU: leave it out", "add_(x)"),
    ("add_(x, dtype='f8')", "convert it with .astype(..)", "add_(x.astype('f8'))"),
    ("add(x, inplace=True)", "functions whose name ends in _ work in place", "add_(x)"),
    ("add_(x, max_len=9)", "rows are kept by PositionalEncoding(..)", "PositionalEncoding(8, max_len=9).add_(x)"),
    (
        "enc.add_(x, convention='concat')",
        "give it to PositionalEncoding(..), and call that",
        "PositionalEncoding(8, convention='concat').add_(x)",
    ),
    (
        "enc.encode(3, base=5.0)",
        "frequencies belong to PositionalEncoding(..)",
        "PositionalEncoding(8, base=5.0).encode(3)",
    ),
    (
        "rope.rotate_(x, scaling=LINEAR)",
        "give it to RotaryEmbedding(..), and call that",
        "RotaryEmbedding(8, interleaved=False, scaling=LINEAR).rotate_(x)",
    ),
    ("rope.rotate_(x, table=x)", "a learned table is added by add_, add and embed", "add_(x, table=x[0].copy())"),
    ("rope.rotate_(x, cls_token=1)", "pass the array without the rows of class tokens", "rope.rotate_(x[:, 1:])"),
    (
        "rotate_(x, **tables, convention='concat')",
        "leave it out, or make a RotaryEmbedding(..)",
        "(rotate_(x, **tables, interleaved=True), rope.rotate_(x))",
    ),
    (
        "RotaryEmbedding.from_config(LLAMA, rope_theta=5e5)",
        "it belongs to the config: write it there",
        "RotaryEmbedding.from_config({**LLAMA, 'rope_theta': 5e5})",
    ),
    ("add_(x, zzz=1)", "expected one of x, convention, base", "add_(x, base=5.0)"),
    # Too many, and missing
    (
        "add_(x, 'concat')",
        "takes 1 positional argument(s), found 2; pass the others by keyword",
        "add_(x, convention='concat')",
    ),
    ("PositionalEncoding(8, 512)", "pass the others by keyword", "PositionalEncoding(8, max_len=512)"),
    ("encode(3)", "encode() is missing its argument 'd_model'", "encode(3, d_model=8)"),
    (
        "encode_grid((2, 3), 8)",
        "print(fastpe.grid_conventions) lists its values",
        "encode_grid((2, 3), 8, convention=str(next(iter(grid_conventions))))",
    ),
    ("rotate_(x, offset=3)", "or make a RotaryEmbedding(..) and call its rotate_", "rope.rotate_(x, offset=3)"),
    # Values
    ("add_(x, alpha=None)", "alpha is None, expected a number", "add_(x, alpha=1.0)"),
    ("add_(x, seq_axis=None)", "seq_axis is None, expected an int", "add_(x, seq_axis=-2)"),
    ("rope.rotate_(x, inverse=None)", "inverse is None, expected True or False", "rope.rotate_(x, inverse=False)"),
    (
        "add_(x, mask=np.ones((2, 1, 3, 3), bool))",
        "pass the last query's row, mask[:, 0, -1]",
        "add_(x, mask=np.ones((2, 1, 3, 3), bool)[:, 0, -1])",
    ),
    (
        "add_(x, mask=np.ones((2, 3, 3), bool))",
        "pass the last query's row, mask[:, -1]",
        "add_(x, mask=np.ones((2, 3, 3), bool)[:, -1])",
    ),
]


@pytest.mark.parametrize(("wrong", "remedy", "remedied"), REMEDIED, ids=[wrong for wrong, *_ in REMEDIED])
def test_the_remedy_works(wrong: str, remedy: str, remedied: str) -> None:
    check_remedy(evaluating(names), wrong, remedy, remedied)


PYTHON = [name for name in fastpe.__all__ if inspect.isfunction(getattr(fastpe, name)) and name != "show_config"]


@pytest.mark.parametrize("name", [*PYTHON, "PositionalEncoding", "RotaryEmbedding"])
def test_every_function_in_python_explains_wrong_calls(name: str) -> None:
    known = next(iter(inspect.signature(getattr(fastpe, name)).parameters))
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected .* 'zzz'; expected one of {known}, "):
        getattr(fastpe, name)(zzz=1)


def test_an_error_from_within_stays_what_it_is() -> None:
    with pytest.raises(TypeError, match=r"^positions is None, expected an int"):
        fastpe.encode(None, 8)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^add\(\) got multiple values for argument 'x'$"):
        fastpe.add(np.ones((3, 8)), x=np.ones((3, 8)))  # type: ignore[misc]


def test_functions_that_explain_wrong_calls_are_what_they_were() -> None:
    assert str(inspect.signature(fastpe.identify)).startswith("(table: ")
    assert list(inspect.signature(fastpe.RotaryEmbedding).parameters)[:2] == ["rotary_dim", "interleaved"]
    assert inspect.isroutine(fastpe.add_)
    assert repr(fastpe.add_).startswith("<function add_ at ")
    assert copy.deepcopy(fastpe.add_) is pickle.loads(pickle.dumps(fastpe.add_)) is fastpe.add_


def test_an_error_in_the_explanation_is_passed_on() -> None:
    def interrupted(*arguments: object) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _core.Explained(len, interrupted)()


def test_a_function_and_its_explanation_are_let_go_of() -> None:
    def function() -> None:
        pass

    explained, alive = _core.Explained(function, print), weakref.ref(function)
    function.itself = explained  # type: ignore[attr-defined]
    del explained, function
    gc.collect()
    assert alive() is None
