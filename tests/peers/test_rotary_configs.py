# SPDX-License-Identifier: BSD-3-Clause
"""Embeddings of model configurations beside the modules of transformers that those configurations are for.

Run it with ``pytest -m peers tests/peers/test_rotary_configs.py``. If a release of transformers has more models,
``python tools/measure_models.py`` shows them.
"""

from __future__ import annotations

import itertools
import json
import math
import pathlib
import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fastpe
from fastpe._config.file import table
from fastpe._config.model_type import ModelType
from fastpe._config.unread import concerns_rotation

from ..oracles.configs import rotated_rope
from ..oracles.refusals import naming
from .conftest import imported, modeling, tool

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

Array = npt.NDArray[Any]

DATA = pathlib.Path(__file__).parents[1] / "data"
STORED = json.loads((DATA / "rotary_classes.json").read_text("utf-8"))["classes"]
CLASSES = [tuple(row[key] for key in ("folder", "kind", "config", "layer_type")) for row in STORED]
PUBLISHED = json.loads((DATA / "rotary_configs.json").read_text("utf-8"))["models"]
# Their forward takes positions of several coordinates, or returns complex numbers.
OTHER_CLASSES: list[tuple[str, str, str, dict[str, Any]]] = [
    ("llama4", "Llama4TextRotaryEmbedding", "Llama4TextConfig", {}),
    ("deepseek_v2", "DeepseekV2RotaryEmbedding", "DeepseekV2Config", {}),
    # Llama 4 Scout: both frequency factors are 1, so that nothing lies between them.
    ("llama4", "Llama4TextRotaryEmbedding", "Llama4TextConfig", {"rope_theta": 500000.0,
        "rope_scaling": {"rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 1.0,
        "original_max_position_embeddings": 8192}}),
    ("esm", "EsmRotaryEmbedding", "EsmConfig", {"position_embedding_type": "rotary"}),
    ("t5gemma", "T5GemmaRotaryEmbedding", "T5GemmaModuleConfig", {}),
    ("voxtral_realtime", "VoxtralRealtimeRotaryEmbedding", "VoxtralRealtimeTextConfig", {}),
    ("emu3", "Emu3RotaryEmbedding", "Emu3TextConfig", {}),
    ("muse_glimmer", "MuseGlimmerTextRotaryEmbedding", "MuseGlimmerTextConfig", {}),
    ("hunyuan_vl", "HunYuanVLRotaryEmbedding", "HunYuanVLTextConfig", {"xdrope_section": [16, 16, 16, 16]}),
    ("hunyuan_vl", "HunYuanVLRotaryEmbedding", "HunYuanVLTextConfig", {"head_dim": 128, "type": "xdrope",
        "alpha": 1000.0, "factor": 1.0, "xdrope_section": [16, 16, 16, 16]}),
]  # fmt: skip
# (folder, class, configuration, sections that fit its default width, width of a head)
MROPE_CLASSES: list[tuple[str, str, str, list[int], dict[str, Any]]] = [
    ("qwen2_vl", "Qwen2VLRotaryEmbedding", "Qwen2VLTextConfig", [16, 24, 24], {}),
    ("qwen2_5_vl", "Qwen2_5_VLRotaryEmbedding", "Qwen2_5_VLTextConfig", [20, 24, 20], {}),
    ("qwen2_5_omni", "Qwen2_5OmniRotaryEmbedding", "Qwen2_5OmniTextConfig", [16, 24, 24], {}),
    ("paddleocr_vl", "PaddleOCRRotaryEmbedding", "PaddleOCRTextConfig", [16, 24, 24], {}),
    ("glm4v", "Glm4vTextRotaryEmbedding", "Glm4vTextConfig", [8, 12, 12], {"partial_rotary_factor": 0.5}),
    ("glm4v_moe", "Glm4vMoeTextRotaryEmbedding", "Glm4vMoeTextConfig", [8, 12, 12], {"head_dim": 128}),
    ("glm_ocr", "GlmOcrTextRotaryEmbedding", "GlmOcrTextConfig", [8, 12, 12], {}),
    ("glm_image", "GlmImageTextRotaryEmbedding", "GlmImageTextConfig", [8, 12, 12], {"partial_rotary_factor": 0.5}),
    ("ernie4_5_vl_moe", "Ernie4_5_VLMoeTextRotaryEmbedding", "Ernie4_5_VLMoeTextConfig", [22, 22, 20], {}),
    ("qwen3_vl", "Qwen3VLTextRotaryEmbedding", "Qwen3VLTextConfig", [24, 20, 20], {}),
    ("qwen3_vl_moe", "Qwen3VLMoeTextRotaryEmbedding", "Qwen3VLMoeTextConfig", [22, 22, 20], {}),
    ("qwen3_omni_moe", "Qwen3OmniMoeThinkerTextRotaryEmbedding", "Qwen3OmniMoeTextConfig", [24, 20, 20],
        {"head_dim": 128}),
    ("qwen3_5", "Qwen3_5TextRotaryEmbedding", "Qwen3_5TextConfig", [11, 11, 10], {}),
    ("qwen3_5_moe", "Qwen3_5MoeTextRotaryEmbedding", "Qwen3_5MoeTextConfig", [11, 11, 10], {}),
    ("cosmos3_edge", "Cosmos3EdgeTextRotaryEmbedding", "Cosmos3EdgeTextConfig", [24, 20, 20], {}),
    ("hy_v4_vl", "HYV4VLRotaryEmbedding", "HYV4VLTextConfig", [12, 10, 10], {}),
    ("qwen4_exp", "Qwen4ExpTextRotaryEmbedding", "Qwen4ExpTextConfig", [48, 40, 40], {}),
]  # fmt: skip
POSITIONS = np.array([0, 1, 2, 3, 7, 63, 1000])
classes = pytest.mark.parametrize(
    ("folder", "kind", "config", "layer_type"), CLASSES, ids=["-".join(map(str, row[1::2])) for row in CLASSES]
)


def made(folder: str, kind: str, config: str, **given: Any) -> tuple[Any, Any, Any]:
    """The module, its configuration, and the object that makes its tables."""
    module, configuration = modeling(folder), imported(f"transformers.models.{folder}.configuration_{folder}")
    kind_of_config = getattr(configuration, config, None) or getattr(imported("transformers"), config)
    chosen = kind_of_config(**given)
    return module, chosen, getattr(module, kind)(chosen)


def angle_bounds(rope: fastpe.RotaryEmbedding, positions: Array, base: float) -> Array:
    """How far the float32 angles of transformers may be from the exact ones, [.., d/2].

    The exponent of ``base`` is rounded to float32, which counts log(base) times in the frequency. A power, a quotient,
    a blend of two frequencies and the product with the position round once or twice each.
    """
    exact = rope.tables(positions, form="angles", dtype=np.float64)
    bounds: Array = np.abs(exact) * (math.log(base) + 6.0) * 2.0**-24
    return bounds


def table_bounds(rope: fastpe.RotaryEmbedding, positions: Array, base: float) -> Array:
    """How far a cosine or a sine may be: its angle, and 2 ulps of 1 for torch's own cosine, the factor and ours."""
    bounds: Array = (angle_bounds(rope, positions, base) + 2.0**-22) * rope.attention_factor
    return bounds


def spread(bounds: Array, form: str) -> Array:
    """One bound for each column of a table."""
    if form == "tile":
        return np.concatenate([bounds, bounds], -1)
    return np.repeat(bounds, 2, -1) if form == "repeat" else bounds


def compare_tables(rope: fastpe.RotaryEmbedding, theirs: tuple[Array, ...], bounds: Array) -> None:
    given = rope.tables(POSITIONS, form=rope.form)
    ours = given if isinstance(given, tuple) else (given,)
    assert len(ours) == len(theirs)
    for our, their in zip(ours, theirs, strict=True):
        assert our.shape == their.shape
        difference = np.abs(our.astype(np.complex128) - their)
        allowed = spread(bounds, rope.form) * (math.sqrt(2.0) if rope.form == "complex" else 1.0)
        assert (difference <= allowed).all()


def compare_rotation(
    name: str, rope: fastpe.RotaryEmbedding, module: Any, config: Any, theirs: tuple[Array, ...], bounds: Array
) -> None:
    """The module's own rotation of a query with its own tables, and ours."""
    x = np.random.default_rng(2).standard_normal((1, 3, len(POSITIONS), rope.rotary_dim)).astype(np.float32)
    expected = tool().apply(module, config, theirs, x)
    ours = rope.rotate(x, positions=POSITIONS, seq_axis=-2)
    half = rope.rotary_dim // 2
    first, second = (x[..., 0::2], x[..., 1::2]) if rope.interleaved else (x[..., :half], x[..., half:])
    # Two products and a sum round besides, in theirs and in ours.
    bound = (np.abs(first) + np.abs(second)) * (bounds + 3 * 2.0**-23 * rope.attention_factor)
    if table()["models"][config.model_type].get("reorders") and rope.interleaved:
        # It reads neighbours and writes columns that are half of the width apart.
        ours = np.concatenate([ours[..., 0::2], ours[..., 1::2]], -1)
        allowed = spread(bound, "tile")
    else:
        allowed = spread(bound, "repeat" if rope.interleaved else "tile")
    assert (np.abs(ours.astype(np.float64) - expected) <= allowed).all(), name


def required(model_type: str) -> dict[str, Any]:
    """The values of keys without which a model of this type is not rotated."""
    return {key: words[0] for key, words in table()["models"][model_type].get("requires", {}).items()}


def base_of(config: Any, layer_type: str | None) -> float:
    rope = getattr(config, "rope_parameters", None) or {"rope_theta": config.rope_theta}
    base: float = (rope if layer_type is None else rope[layer_type])["rope_theta"]
    return base


def ids(rows: int | None = None) -> Any:
    torch = imported("torch")
    positions = torch.from_numpy(POSITIONS)[None]
    return positions if rows is None else positions.expand(rows, 1, -1)


def arrays(result: Any) -> tuple[Array, ...]:
    """What a forward returned, without the batch."""
    parts = result if isinstance(result, tuple) else (result,)
    return tuple(part.detach().numpy().reshape(len(POSITIONS), -1) for part in parts)


@pytest.mark.parametrize("stored", STORED, ids=lambda row: f"{row['kind']}-{row['layer_type']}")
def test_stored_values_are_those_of_the_classes(stored: dict[str, Any]) -> None:
    module, chosen, rotary = made(stored["folder"], stored["kind"], stored["config"])
    chosen.allow_global_per_layer_attribute_access = True
    inv_freq, factor = frequencies(rotary, stored["layer_type"], None)
    assert [float(each) for each in inv_freq[stored["indices"]]] == stored["frequencies"]
    assert (factor, chosen.model_type) == (stored["attention_factor"], stored["model_type"])
    found = tool().Rotary(stored["folder"], module, type(rotary), type(chosen))
    assert tool().pairing(found, chosen, stored["layer_type"])["interleaved"] == stored["interleaved"]


@classes
def test_default_configuration(folder: str, kind: str, config: str, layer_type: str | None) -> None:
    torch = imported("torch")
    module, chosen, rotary = made(folder, kind, config)
    theirs = arrays(rotary(torch.zeros(1), ids(), **({} if layer_type is None else {"layer_type": layer_type})))
    written = {**json.loads(chosen.to_json_string(use_diff=False)), **required(chosen.model_type)}
    rope = rotated_rope(written, layer_type=layer_type)
    bounds = table_bounds(rope, POSITIONS, base_of(chosen, layer_type))
    compare_tables(rope, theirs, bounds)
    compare_rotation(kind, rope, module, chosen, theirs, bounds)
    # The data has the same defaults.
    written = {"model_type": chosen.model_type, **required(chosen.model_type)}
    assert rotated_rope(written, layer_type=layer_type) == rope


def test_every_model_type_is_known() -> None:
    """A newer release may have types that no table has: ``python tools/measure_models.py`` measures them."""
    kinds = ("models", "parts", "layouts", "told", "sinusoids", "grids", "learned", "without")
    assert not {*tool().configurations()} - {name for kind in kinds for name in table()[kind]}


# Keys of classes that their modules do not read: a file whose value says something else is refused.
REFUSED_KEYS = {
    *(("deepseek_ocr2_text", "head_dim"), ("unlimited_ocr_text", "head_dim"), ("dots3_note_audio_encoder", "head_dim")),
    *(("zamba2", "head_dim"), ("longcat_flash", "qk_rope_head_dim"), ("minimax_m3_vl_text", "rotary_dim")),
    *(("molmo2_text", "rope_scaling_layers"), ("zamba2", "use_long_context"), ("roformer", "rotary_value")),
}
# Keys around the part of text that are about other parts.
AROUND = ["max_period", "position_embedding_type"]


def test_every_key_of_every_class_is_read_or_listed() -> None:
    """A newer release may have keys that speak of rotation, and that nobody has looked at."""
    found = set()
    for model_type, kind in tool().configurations().items():
        data = table()["models"].get(model_type)
        read = {*ModelType(**data).read_keys} if data else {"rope_parameters", "rope_scaling", *AROUND}
        if data or model_type in table()["parts"]:
            own = {*kind.__dataclass_fields__, *kind.attribute_map} - {*inherited_keys()}
            found |= {(model_type, key) for key in own - read if concerns_rotation(key)}
    assert found == REFUSED_KEYS


def inherited_keys() -> list[str]:
    """Keys of every configuration."""
    return list(imported("transformers").PretrainedConfig.__dataclass_fields__)


# Keys that a file may have, and what they would be in it.
OTHER_KEYS: list[dict[str, Any]] = [
    *({key: 2} for key in ("hidden_size", "num_attention_heads", "head_dim", "qk_rope_head_dim")),
    {"head_dim": None},
    {"rope_theta": 30000.0},
    {"rope_theta": 30000.0, "rope_scaling": {"type": "linear", "factor": 4.0}},
    {"rope_scaling": {"rope_type": "yarn", "rope_theta": 30000.0, "factor": 4.0}},
    {"partial_rotary_factor": 0.5},
    {"partial_rotary_factor": None},
    {"rope_parameters": {"rope_type": "default", "rope_theta": 30000.0, "partial_rotary_factor": 0.25}},
    {"rope_scaling": {"rope_type": "default", "type": "default"}},
]


def is_known_to_differ(model_type: str, keys: dict[str, Any]) -> bool:
    """What transformers makes of these keys fits its own attention no more, or drops a scaling."""
    latent = model_type in ("axk1", "deepseek_v3", "glm4_moe_lite", "mistral4", "youtu")
    return (
        (latent and "head_dim" in keys)  # attention rotates qk_rope_head_dim columns all the same
        or (model_type == "mistral4" and ("rope_scaling" in keys or "rope_parameters" in keys))  # so here
        or (model_type == "cohere2_moe" and "rope_scaling" in keys)  # a field that nothing reads
        or (model_type == "zamba2" and keys == {"head_dim": None})  # its heads are twice as wide
    )


def their_tables(
    folder: str, kind: str, config: str, layer_type: str | None, given: dict[str, Any]
) -> tuple[tuple[Array, ...], Any] | None:
    """The tables of another configuration, and the configuration; None where they refuse it."""
    torch = imported("torch")
    try:
        _, chosen, rotary = made(folder, kind, config, **json.loads(json.dumps(given)))
        layer = {} if layer_type is None else {"layer_type": layer_type}
        return arrays(rotary(torch.zeros(1), ids(), **layer)), chosen
    except Exception:  # noqa: BLE001  # their validators and modules refuse in many ways
        return None


@classes
def test_other_configurations(folder: str, kind: str, config: str, layer_type: str | None) -> None:
    """One key after the other has another value: both sides read it, or we refuse it with words."""
    _, usual, _ = made(folder, kind, config)
    usual.allow_global_per_layer_attribute_access = True
    for keys in OTHER_KEYS:
        # An int stands for a multiple of the default.
        usually = {key: getattr(usual, key, None) for key in keys}
        given = {key: value * usually[key] if value == 2 and usually[key] else value for key, value in keys.items()}
        if 2 in given.values() or is_known_to_differ(usual.model_type, keys):
            continue  # it has no such key
        given = {usual.attribute_map.get(key, key): value for key, value in given.items()}
        written = {"model_type": usual.model_type, **required(usual.model_type), **given}
        made_there = their_tables(folder, kind, config, layer_type, given)
        if made_there is None:
            continue
        theirs, chosen = made_there
        try:
            rope = rotated_rope(written, layer_type=layer_type)
        except ValueError as error:
            nested = [key for value in given.values() if isinstance(value, dict) for key in value]
            assert any(re.search(naming(key), str(error)) for key in (*given, *nested)), error  # noqa: PT017
            continue
        compare_tables(rope, theirs, table_bounds(rope, POSITIONS, max(base_of(chosen, layer_type), 30000.0)))


@pytest.mark.parametrize("key", ["rope_parameters", "rope_scaling"])
@pytest.mark.parametrize(("folder", "kind", "config", "layer_type"), [row for row in CLASSES if row[3]], ids=str)
def test_a_mapping_for_each_type_of_layers(folder: str, kind: str, config: str, layer_type: str, key: str) -> None:
    """Wherever the base and the part are, both sides read them, or we refuse them."""
    _, usual, _ = made(folder, kind, config)
    names = table()["models"][usual.model_type].get("layers") or [layer_type]
    linear = {"rope_type": "linear", "factor": 4.0}
    wholes: list[dict[str, Any]] = [{}, {"rope_theta": 7e4}]
    for entry, shared, outer, only in itertools.product(
        [linear, {**linear, "rope_theta": 3e4, "partial_rotary_factor": 0.5}], wholes, wholes, [names, [layer_type]]
    ):
        given = {key: {**{name: dict(entry) for name in only}, **shared}, **outer}
        made_there = their_tables(folder, kind, config, layer_type, given)
        if made_there is None:
            continue
        theirs, chosen = made_there
        try:
            rope = fastpe.RotaryEmbedding.from_config({"model_type": usual.model_type, **given}, layer_type=layer_type)
        except ValueError:
            continue
        compare_tables(rope, theirs, table_bounds(rope, POSITIONS, max(base_of(chosen, layer_type), 3e4)))


@pytest.mark.parametrize(
    ("folder", "kind", "config", "given"), OTHER_CLASSES, ids=[f"{row[1]}-{len(row[3])}" for row in OTHER_CLASSES]
)
def test_other_forms(folder: str, kind: str, config: str, given: dict[str, Any]) -> None:
    torch = imported("torch")
    scaling = {
        key: given.pop(key) for key in ("type", "alpha", "factor", "xdrope_section") if key in (given := dict(given))
    }
    arguments = {**given, **({"rope_scaling": scaling} if scaling else {})}
    module, chosen, rotary = made(folder, kind, config, **json.loads(json.dumps(arguments)))
    theirs = arrays(rotary(torch.zeros(1), ids(1 if scaling else None)))
    rope = rotated_rope({"model_type": chosen.model_type, **arguments})
    base = base_of(chosen, None) * scaling.get("alpha", 1.0)
    bounds = table_bounds(rope, POSITIONS, base)
    compare_tables(rope, theirs, bounds)
    compare_rotation(kind, rope, module, chosen, theirs, bounds)


@pytest.mark.parametrize(
    ("folder", "kind", "config", "sections", "given"), MROPE_CLASSES, ids=[row[1] for row in MROPE_CLASSES]
)
def test_sections_of_several_coordinates(
    folder: str, kind: str, config: str, sections: list[int], given: dict[str, Any]
) -> None:
    torch = imported("torch")
    scaling = {"rope_type": "default", "mrope_section": sections}
    module, chosen, rotary = made(folder, kind, config, **given, rope_parameters=dict(scaling))
    written = {"model_type": chosen.model_type, **given, "rope_parameters": scaling}
    # Text: the coordinates are equal.
    theirs = arrays(rotary(torch.zeros(1), ids(3)))
    rope = rotated_rope(written)
    bounds = table_bounds(rope, POSITIONS, base_of(chosen, None))
    compare_tables(rope, theirs, bounds)
    compare_rotation(kind, rope, module, chosen, theirs, bounds)
    # An image: they are not.
    points = np.stack([POSITIONS, POSITIONS[::-1], 3 * POSITIONS + 1], -1)
    axial = rotated_rope(written, mrope=True)
    made_there = arrays(rotary(torch.zeros(1), torch.from_numpy(np.moveaxis(points, -1, 0)[:, None].copy())))
    bounds = spread(table_bounds(axial, points, base_of(chosen, None)), axial.form)
    for our, their in zip(axial.tables(points, form=axial.form), made_there, strict=True):
        assert (np.abs(our.astype(np.float64) - their) <= bounds).all()


@pytest.mark.parametrize(("folder", "kind"), [("gptj", "GPTJ"), ("codegen", "CodeGen")])
def test_sines_before_cosines(folder: str, kind: str) -> None:
    torch = imported("torch")
    module = modeling(folder)
    rope = fastpe.RotaryEmbedding.from_config({"model_type": folder})
    theirs = module.create_sinusoidal_positions(1001, 64)[POSITIONS]
    bounds = table_bounds(rope, POSITIONS, 10000.0)
    difference = np.abs(np.asarray(rope.tables(POSITIONS, form=rope.form), np.float64) - theirs.numpy())
    assert (difference <= np.concatenate([bounds, bounds], -1)).all()
    # Its heads come after the sequence.
    x = np.random.default_rng(3).standard_normal((1, len(POSITIONS), 2, 64)).astype(np.float32)
    sin, cos = torch.split(theirs[None], 32, dim=-1)
    expected = module.apply_rotary_pos_emb(torch.from_numpy(x), sin, cos).numpy()
    ours = rope.rotate(x, positions=POSITIONS, seq_axis=-3)
    assert np.abs(ours - expected).max() <= 2 * np.abs(x).max() * (bounds.max() + 3 * 2.0**-23)


FACTORS: list[dict[str, Any]] = [{}, {"factor": 4.0}, {"factor": None}]
LENGTHS: list[dict[str, Any]] = [{}, {"original_max_position_embeddings": 1024}]
LISTS = {name: [first + k / 64 for k in range(32)] for name, first in (("short_factor", 1.0), ("long_factor", 2.0))}


@pytest.mark.parametrize(
    ("folder", "prefix", "name", "lists"),
    [
        ("llama", "Llama", "yarn", {}),
        ("llama", "Llama", "longrope", {}),
        ("llama", "Llama", "longrope", LISTS),
        *(
            (folder, prefix, name, lists)
            for folder, prefix in (("phi3", "Phi3"), ("phi4_multimodal", "Phi4Multimodal"))
            for name in ("yarn", "su", "longrope")
            for lists in ({}, LISTS)
        ),
    ],
    ids=lambda each: str(len(each)) if isinstance(each, dict) else each,
)
def test_names_and_missing_keys_of_scalings(folder: str, prefix: str, name: str, lists: dict[str, Any]) -> None:
    """A config that they refuse is refused, and what they fall back to is what we fall back to."""
    usual = {"hidden_size": 512, "num_attention_heads": 8, "rope_theta": 10000.0}
    for key, factor, inner, outer, longest in itertools.product(
        ("type", "rope_type"), FACTORS, LENGTHS, LENGTHS, [{}, {"max_position_embeddings": 8192}]
    ):
        config = {**usual, **outer, **longest, "rope_scaling": {key: name, **factor, **inner, **lists}}
        try:
            _, _, rotary = made(folder, f"{prefix}RotaryEmbedding", f"{prefix}Config", **json.loads(json.dumps(config)))
            theirs = frequencies(rotary, None, 5001)
        except (KeyError, TypeError, ValueError):
            # They look for the length beside the mapping before they rename "su", and miss it then. The first files of
            # Phi 3 are so, and from_config reads them.
            if name == "su" and lists and not inner:
                continue
            with pytest.raises(ValueError, match=r"scaling|rope_type|factor|original_max_position_embeddings"):
                fastpe.RotaryEmbedding.from_config({"model_type": folder, **config}, seq_len=5001)
            continue
        rope = fastpe.RotaryEmbedding.from_config({"model_type": folder, **config}, seq_len=5001)
        np.testing.assert_allclose(rope.frequencies, theirs[0], rtol=16.0 * 2.0**-24)
        assert rope.attention_factor == pytest.approx(theirs[1], rel=1e-15)


# Files of published models


def rotary_class(model_type: str) -> Any:
    """The class of a model_type that makes tables."""
    known = {row["model_type"]: (row["folder"], row["kind"]) for row in STORED}
    known |= {
        "llama4_text": ("llama4", "Llama4TextRotaryEmbedding"),
        "deepseek_v2": ("deepseek_v2", "DeepseekV2RotaryEmbedding"),
        "qwen2_5_vl_text": ("qwen2_5_vl", "Qwen2_5_VLRotaryEmbedding"),
    }
    folder, kind = known[model_type]
    return getattr(modeling(folder), kind)


def text_configuration(config: dict[str, Any]) -> Any:
    """What transformers makes of a file; the data names each type of layers once."""
    transformers = imported("transformers")
    written = json.loads(json.dumps(config))
    for part in (written, written.get("text_config", {})):
        if "layer_types" in part:
            part["num_hidden_layers"] = len(part["layer_types"])
    return transformers.CONFIG_MAPPING[written["model_type"]](**written).get_text_config()


def frequencies(rotary: Any, layer_type: str | None, seq_len: int | None) -> tuple[Array, float]:
    """Frequencies and factor of a module that has just seen a sequence of this length."""
    torch = imported("torch")
    last = torch.tensor([[0 if seq_len is None else seq_len - 1]])
    rotary(torch.zeros(1), last, **({} if layer_type is None else {"layer_type": layer_type}))
    prefix = "" if layer_type is None else f"{layer_type}_"
    factor = getattr(rotary, f"{prefix}attention_scaling")
    return getattr(rotary, f"{prefix}inv_freq").numpy(), float(factor)


@pytest.mark.parametrize(
    ("model", "case"),
    [(model, case) for model in PUBLISHED for case in model["expected"] if model["config"]["model_type"] != "gptj"],
    ids=lambda each: each["model"] if "model" in each else f"{each['layer_type']}-{each['seq_len']}",
)
def test_stored_frequencies_are_those_of_published_configurations(model: dict[str, Any], case: dict[str, Any]) -> None:
    layer_type, seq_len = case["layer_type"], case["seq_len"]
    config = text_configuration(model["config"])
    config.allow_global_per_layer_attribute_access = True
    inv_freq, factor = frequencies(rotary_class(config.model_type)(config), layer_type, seq_len)
    assert [float(each) for each in inv_freq[case["indices"]]] == case["frequencies"]
    assert factor == case["attention_factor"]
