# SPDX-License-Identifier: BSD-3-Clause
"""Inputs of exported graphs: which rule of written.json a model's own code follows, and what it computes, which is stored.

A rule is one by which fastpe gives what transformers computes, for prompts among images and videos, and for grids.
tests/graph/test_stored_inputs.py compares fastpe with what is stored.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fastpe._config.file import table, written
from fastpe._graph import model as reader
from fastpe._graph.model import graphs
from tests.oracles import graph_peers as peers
from tests.oracles.stored_inputs import check

STORED = pathlib.Path(__file__).parents[2] / "tests" / "data" / "graph_inputs.json"
TRANSPOSED = ("muse_glimmer", "muse_spark")
# One in which the order of the factors of times shows in what is cut off.
PER_SECOND = {"qwen2_5_vl": 3, "qwen2_5_omni": 7, "qwen3_omni_moe": 7}


def text_row(folder: str, of: str) -> dict[str, Any]:
    """Prompts with what `get_rope_index` gives; those of a folder, for the classes of another one that may count so."""
    config = peers.peer(folder, own_tokens=False, of=of).config
    own = {name: token for name, token in peers.TOKENS.items() if name in config.to_dict()}
    sizes: dict[str, Any] = {}
    if folder == "qwen2_5_vl":
        config.vision_config.tokens_per_second = PER_SECOND[folder]
        sizes = {"vision_config": {"tokens_per_second": PER_SECOND[folder]}}
    elif folder in PER_SECOND:
        config.position_id_per_seconds = PER_SECOND[folder]
        sizes = {"position_id_per_seconds": PER_SECOND[folder]}
    rng = np.random.default_rng(1)
    drawn = [
        peers.drawn(folder, rng, padding=padding, own_tokens=False, sizes=peers.SMALL, of=of)
        for padding in ("", "left", "right") * (1 if folder == "minicpmv4_7" else 2)
    ]
    prompts = [*drawn, *long_videos(folder, config), *uneven_slices(folder), *odd_ends(folder, config)]
    for prompt in prompts:
        prompt.tokens[prompt.tokens >= 300] = 1
    return {"config": {**own, **sizes}, "prompts": [numbered(folder, of, config, prompt) for prompt in prompts]}


def long_videos(folder: str, config: Any) -> list[peers.Prompt]:
    """Two whose times are rounded before they are cut off."""
    if folder not in PER_SECOND:
        return []
    count, per_second, found = 60, np.float32(PER_SECOND[folder]), []
    for seconds in np.float32(np.arange(1, 1000) / 10):
        times = np.arange(count, dtype=np.float32)
        orders = [times * (seconds * per_second), times * seconds * per_second, times * per_second * seconds]
        if all((orders[0].astype(int) != each.astype(int)).any() for each in orders[1:]):
            tokens = np.array([[1, config.vision_start_token_id, *[config.video_token_id] * count, 1]])
            given = {"video_grid_thw": np.array([[count, 2, 2]]), "second_per_grid": np.array([float(seconds)])}
            found.append(peers.Prompt(tokens, np.ones_like(tokens), given, np.array([], int), False, np.array([0])))
    return found[:2]


def uneven_slices(folder: str) -> list[peers.Prompt]:
    """Lines of 2 and 1 slices, which no grid has, of 2, 1 and 3, and of 2, 2 and 2."""
    if folder != "minicpmv4_7":
        return []
    of = peers.TOKENS
    image, size = [of["image_start_id"], *[of["image_token_id"]] * 2, of["image_end_id"]], (4, 8)
    crop = [of["slice_start_id"], *[of["image_token_id"]] * 2, of["slice_end_id"]]
    prompts = []
    for lines in ([2, 1], [2, 1, 3], [2, 2, 2]):
        tokens = [1, *image]
        for number, count in enumerate(lines):
            tokens += [of["newline_id"]] * (number > 0) + crop * count
        grids = {"image_grid_thw": np.array([size] * (1 + sum(lines)))}
        row = np.array([[*tokens, 1]])
        prompts.append(peers.Prompt(row, np.ones_like(row), grids, np.array([], int), False, np.array([0])))
    return prompts


def odd_ends(folder: str, config: Any) -> list[peers.Prompt]:
    """A prompt that ends with an image; and for Omni a wide video whose audio is short and ends it."""
    none = np.array([], int)
    if folder in peers.OMNI:
        inner = [*[config.video_token_id] * 6, *[config.audio_token_id] * 2]
        start = [1, config.vision_start_token_id, config.audio_start_token_id]
        row = np.array([[*start, *inner, 998, 997, 1, 1]])
        given = {"video_grid_thw": np.array([[1, 2, 12]]), "second_per_grid": np.array([1.0])}
        frames = next(each for each in range(1, 50) if peers.audio_length(folder, each) == 2)
        return [peers.Prompt(row, np.ones_like(row), given, np.array([frames]), True, np.array([0]))]
    if folder == "hy_v4_vl":  # a tall video
        row = np.array([[1, *[config.video_token_id] * 16, 1]])
        return [peers.Prompt(row, np.ones_like(row), {"video_grid_thw": np.array([[2, 8, 2]])}, none, False, none)]
    if folder in ("glm_image", "minicpmv4_7", *peers.WITH_LINE_ENDS):
        return []
    row = np.array([[1, *[config.image_token_id] * 6]])
    return [peers.Prompt(row, np.ones_like(row), {"image_grid_thw": np.array([[1, 4, 6]])}, none, False, np.array([1]))]


def numbered(folder: str, of: str, config: Any, prompt: peers.Prompt) -> dict[str, Any]:
    kinds = np.zeros(prompt.tokens.shape, int)
    kinds[prompt.tokens == config.image_token_id] = 1
    if hasattr(config, "video_start_token_id") and folder.startswith("glm"):
        starts, ends = (
            np.cumsum(prompt.tokens == getattr(config, f"video_{end}_token_id"), 1) for end in ("start", "end")
        )
        kinds[(kinds == 1) & (starts > ends)] = 2
    for name, kind in (("video_token_id", 2), ("audio_token_id", 3)):
        if hasattr(config, name):
            kinds[prompt.tokens == getattr(config, name)] = kind
    ids, deltas = peers.rope_index(folder, prompt, kinds, own_tokens=False, of=of)
    arguments = {name: each.tolist() for name, each in prompt.grids.items()}
    if not prompt.mask.all():
        arguments["attention_mask"] = prompt.mask.tolist()
    stored = {"input_ids": prompt.tokens.tolist(), **arguments, "position_ids": ids.tolist()}
    # The delta of glm_image is always 0 in transformers and not read.
    return stored if folder == "glm_image" else {**stored, "rope_deltas": deltas.tolist()}


def vision_row(folder: str, name: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """What the exporters give for grids, by a class's defaults and by other numbers."""
    cases = []
    if "padded" in row:
        return {"cases": [padded_case(folder, side, row["padded"]) for side in (27, 38)]}
    if name == "inkling2":
        return {"cases": [inkling_case(*sizes) for sizes in ((2, 32), (3, 7))]}
    also = {"pos_emb_width": "pos_emb_height" in row["config"], "adapter_merge_size": folder == "dots3_note"}
    keys = [*row["config"], *(key for key, is_one in also.items() if is_one)]
    changed = {key: peers.CHANGES[key] for key in keys if key in peers.CHANGES}
    for changes in ({}, changed, {"image_size": 27 * 16}) if "fractions" in row else ({}, changed):
        model = peers.encoder(folder, "target_sizes" if "fractions" in row else "grid_thw", tuple(changes.items()))
        grids = np.array([[2, 4, 8], [1, 12, 4], [1, 54, 2] if "fractions" in row else [3, 4, 4]])
        given: dict[str, Any] = {"target_sizes": grids[:, 1:]} if "fractions" in row else {"grid_thw": grids}
        if row.get("merge") == "merge_sizes":
            given["merge_sizes"] = np.array([2, 1, 2])
        inputs = peers.expected_of(model, given)
        inputs.pop("merged_shape", None)  # of the first image, where they differ
        if "interp_indices" in inputs:
            inputs["sums"] = sums(folder, model, grids, inputs.pop("interp_indices"), inputs.pop("interp_weights"))
        stored = {key: plain(value) for key, value in inputs.items()}
        cases.append({"config": {key: plain(each) for key, each in changes.items()}, **lists(given), "inputs": stored})
    return {"cases": cases}


def padded_case(folder: str, side: int, padded: str) -> dict[str, Any]:
    """Images beside each other; 27 and 38 are sides of grids whose float32 bounds are not the nearest numbers."""
    sizes = np.array([[38, 1], [3, 2], [54, 1]])
    if padded == "end":
        inputs = {"position_ids": peers.ranged_ids(side, sizes).tolist()}
    else:
        ids, mask = peers.padded_ids(folder, 14 * side, 14, sizes)
        inputs = {"position_ids": ids.tolist(), "patch_attention_mask": mask.astype(int).tolist()}
    return {"config": {"image_size": 14 * side, "patch_size": 14}, "target_sizes": sizes.tolist(), "inputs": inputs}


def inkling_case(merge: int, side: int) -> dict[str, Any]:
    grids = np.array([[1, 2, 3], [1, 4, 1]])
    seen = peers.inkling_inputs(grids, merge, side)
    places = seen["patch_index"]
    inputs = {"position_ids": seen["positions"][places] - 1, "cu_seqlens": seen["cu_seqlens"], "patch_index": places}
    inputs["sums"] = np.round(seen["sums"], 5)
    config = {"spatial_merge_size": merge, "posemb_grid_size": side}
    longest = int(np.diff(seen["cu_seqlens"]).max())
    return {"config": config, "grid_thw": grids.tolist(), "inputs": {**lists(inputs), "max_seqlen": longest}}


def sums(folder: str, model: Any, grids: Any, indices: Any, weights: Any) -> list[float]:
    """What each patch gets of a grid of the cosines of 0.7 n."""
    side = peers.grid_side(model)
    if folder in TRANSPOSED:  # as the models' own forward passes them
        indices, weights = peers.interpolation(grids[:, [0, 2, 1]], side)
    table = np.cos(0.7 * np.arange(side**2))
    return np.round((table[np.asarray(indices)] * np.asarray(weights, float)).sum(axis=1), 5).tolist()  # type: ignore[no-any-return]


def audio_row(folder: str, row: Mapping[str, Any]) -> dict[str, Any]:
    cases = []
    known = {key: each for key, each in {"n_window": 25, "n_window_infer": 200}.items() if key in row["config"]}
    lengths = np.array([1, 130, 300, 49])
    for changes in ({}, known):
        argument = "input_features_mask" if row.get("masked") else "feature_lens"
        model = peers.encoder(folder, argument, tuple(changes.items()))
        inputs = peers.expected_of(model, peers.sound(model, lengths, masked=bool(row.get("masked"))))
        if folder == "qwen3_omni_moe":
            inputs |= peers.after_convolutions(model, inputs["chunk_lengths"], lengths)
        stored = {key: plain(value) for key, value in inputs.items()}
        cases.append({"config": changes, "feature_lens": lengths.tolist(), "inputs": stored})
    return {"cases": cases}


def lists(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value.tolist() for name, value in given.items()}


def plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    return value.tolist() if hasattr(value, "tolist") else value


def made_row(kind: str, name: str, folder: str, rule: str) -> dict[str, Any]:
    """What the classes of a folder compute, asked as a model that follows this rule."""
    if kind == "vision":
        return vision_row(folder, name, table()["graph_rules"]["vision"][rule])
    return text_row(rule, folder) if kind == "text" else audio_row(folder, table()["graph_rules"]["audio"][rule])


def folder_of(kind: str, model_type: str, config: Any) -> str:
    """The folder of the classes of one kind of input; empty where there are none."""
    folder = config.__module__.split(".")[2:3]
    if folder != [model_type]:
        return ""
    part = getattr(config(), f"{kind}_config", None)
    if kind == "text":
        auto = importlib.import_module("transformers.models.auto.modeling_auto")
        mapping = auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
        folder = [mapping[config].__module__.split(".")[2]] if config in mapping else folder
    elif part is not None and not isinstance(part, dict):
        folder = [type(part).__module__.split(".")[2]]
    try:
        module = importlib.import_module(f"transformers.models.{folder[0]}.modeling_{folder[0]}")
    except ImportError:
        return ""
    classes = [each for each in vars(module).values() if inspect.isclass(each)]
    if kind == "text":
        return folder[0] if any(hasattr(each, "get_rope_index") for each in classes) else ""
    helpers = {getattr(each, "__module__", ""): name for name, each in vars(module).items()}
    has_encoder = hasattr(module, "get_audio_cu_seqlens") if kind == "audio" else "transformers.vision_utils" in helpers
    return folder[0] if has_encoder else ""


@contextlib.contextmanager
def tried(name: str, row: dict[str, Any]) -> Iterator[None]:
    """The table with this row."""
    rows: Any = graphs()
    before, rules = rows.get(name), table()["graph_rules"]
    rows[name] = {kind: rules[kind][each] if kind in rules else each for kind, each in row.items()}
    reader._names.cache_clear()
    try:
        yield
    finally:
        rows.pop(name)
        rows |= {} if before is None else {name: before}
        reader._names.cache_clear()


def rule_of(kind: str, name: str, config: Any, folder: str, row: dict[str, Any]) -> str:
    """The first rule, simple ones in front, that gives what the classes of the folder compute; "" for none."""
    rules = table()["graph_rules"][kind]
    asked = rules.keys() - written()["graphs"]  # of the others no exporter computes them
    for rule in sorted(asked, key=lambda each: (each != name, len(str(rules[each])), each)):
        with contextlib.suppress(Exception), tried(name, {**row, kind: rule}):
            check({name: {kind: made_row(kind, name, folder, rule)}}, kind, name)
            if kind != "text" or has_visual_mask(config) == bool(rules[rule].get("visual_mask")):
                return rule
    return ""


def has_visual_mask(config: Any) -> bool:
    """Whether the model of text of a configuration takes the places of images."""
    text = type(config().get_text_config())
    module = importlib.import_module(text.__module__.replace("configuration_", "modeling_"))
    kinds = [each for each in vars(module).values() if inspect.isclass(each) and hasattr(each, "forward")]
    return any("visual_pos_masks" in inspect.signature(each.forward).parameters for each in kinds)


def tokens_of(config: Any, rule: Mapping[str, Any]) -> dict[str, int]:
    """The ids of tokens that a class has by default and the rule reads."""
    config = getattr(config, "thinker_config", None) or config
    keys = [
        "image_token_id",
        "video_token_id",
        *(["audio_token_id"] if rule.get("audio") else []),
        *rule.get("marks", ()),
    ]
    found = {key: getattr(config, key, None) for key in keys}
    return {key: token for key, token in found.items() if isinstance(token, int)}


def measure(kinds: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The rows of these types, and why some are not measured."""
    rows, missing = {}, {}
    for name in sorted({*kinds} - {*written()["graphs"]}):
        row: dict[str, Any] = {}
        for kind in ("vision", "audio", "text"):
            with contextlib.suppress(Exception):  # classes without defaults
                folder = folder_of(kind, name, kinds[name])
                if folder and (rule := rule_of(kind, name, kinds[name], folder, row)):
                    row[kind] = rule
                elif folder:
                    missing[name] = f"the {kind} inputs of its exported graph, whose classes are in {folder}"
        if "text" in row:
            tokens = tokens_of(kinds[name](), table()["graph_rules"]["text"][row["text"]])
            row = {**({"tokens": tokens} if tokens else {}), "text": row.pop("text"), **row}
        if row:
            rows[name] = row
    return rows, missing


def store(*, write: bool, names: list[str]) -> list[str]:
    """Write the rows, each of which is stored once; or say which differ."""
    kinds = importlib.import_module("tools.measures.rotation").configurations()
    old = json.loads(STORED.read_text("utf-8"))
    rows: dict[str, dict[str, Any]] = {}
    for name, row in table()["graphs"].items():
        if names and name not in names and name in old:
            rows[name] = old[name]
            continue
        rows[name] = {}
        for kind in sorted(row.keys() - {"tokens"}):
            folder = name if name in written()["graphs"] else folder_of(kind, name, kinds[name])
            made = json.loads(json.dumps(made_row(kind, name, folder, row[kind])))
            same = next((one for one, other in rows.items() if other.get(kind) == made), None)
            rows[name][kind] = made if same is None else same
    if write:
        note = "What transformers computes for each row of the table of graphs: tools/measure_models.py writes it."
        lines = [f"{json.dumps(name)}: {json.dumps(row, separators=(',', ':'))}" for name, row in rows.items()]
        STORED.write_text("{\n" + ",\n".join([f'"note": {json.dumps(note)}', *lines]) + "\n}\n", "utf-8")
    return [f"stored inputs, {name}: differ" for name in rows if rows[name] != old.get(name)]
