# SPDX-License-Identifier: BSD-3-Clause
"""What transformers computes for the inputs of exported graphs: prompts by `get_rope_index`, encoders by its exporters."""

from __future__ import annotations

import functools
import importlib
import inspect
import pathlib
import re
from typing import Any, NamedTuple

import numpy as np
import pytest

from fastpe._graph.model import graphs

OMNI = ("qwen2_5_omni", "qwen3_omni_moe")
WITH_LINE_ENDS = ("hunyuan_vl", "hy_v4_vl")
IMAGES_ONLY = ("glm_image", "hunyuan_vl")
# Those whose videos are images among text.
IN_FRAMES = [name for name, row in graphs().items() if row.get("text", {}).get("grid") == "frames"]


def folders_with(pattern: str) -> list[str]:
    """The folders of models in transformers whose code has this."""
    try:
        folder = pathlib.Path(pytest.importorskip("transformers").__file__).parent / "models"
    except pytest.skip.Exception:
        return []
    files = sorted(folder.glob("*/modeling_*.py"))
    return [file.parent.name for file in files if re.search(pattern, file.read_text("utf-8"))]


# Of a prompt that is stored: text has 1.
TOKENS = {
    "image_token_id": 11,
    "video_token_id": 12,
    "audio_token_id": 13,
    "image_token_index": 11,
    "video_token_index": 12,
    "audio_token_index": 13,
    "image_start_id": 14,
    "image_end_id": 15,
    "slice_start_id": 16,
    "slice_end_id": 17,
    "newline_id": 18,
    "video_start_token_id": 21,
    "video_end_token_id": 22,
    "vision_start_token_id": 23,
    "audio_start_token_id": 24,
    "image_start_token_id": 25,
    "image_end_token_id": 26,
}


class Sizes(NamedTuple):
    """The most of each, in `drawn`; sides are in tokens."""

    rows: int
    least_visuals: int
    visuals: int
    side: int


LARGE, SMALL = Sizes(8, 0, 5, 6), Sizes(2, 2, 4, 3)


class Peer(NamedTuple):
    """A model without weights, and its config."""

    model: Any
    config: Any


@functools.cache
def peer(folder: str, *, own_tokens: bool = True, of: str = "") -> Peer:
    """Its own special tokens, or those of `TOKENS`; `of` is the folder of another model, which may count as this one does."""
    torch, of = pytest.importorskip("torch"), of or folder
    module = importlib.import_module(f"transformers.models.{of}.modeling_{of}")
    needed = ("get_rope_index", "compute_3d_position_ids")
    classes = [each for each in vars(module).values() if inspect.isclass(each) and "Talker" not in each.__name__]
    owner: Any = next(each for each in classes if all(hasattr(each, name) for name in needed))
    configuration = importlib.import_module(f"transformers.models.{of}.configuration_{of}")
    kinds = {each.model_type: each for each in vars(configuration).values() if hasattr(each, "model_type")}
    config = kinds[f"{of}_thinker" if folder in OMNI else of]()
    if folder == "minicpmv4_7":
        names = ("image_token_id", "video_token_id", "image_start_id", "image_end_id", "slice_start_id", "slice_end_id")
        for token, name in enumerate((*names, "newline_id"), start=2000):
            setattr(config, name, token)
    if folder == "hunyuan_vl":
        config.text_config.rope_parameters = {"rope_type": "default", "mrope_section": [16, 16, 16, 16]}
    if folder in OMNI:
        config.vision_start_token_id = 151652  # what the config classes leave to published files
    if not own_tokens:
        for name, token in TOKENS.items():
            if hasattr(config, name):
                setattr(config, name, token)
    model = owner.__new__(owner)
    torch.nn.Module.__init__(model)
    model.config, model.rope_deltas, model.spatial_merge_size = config, None, 2
    return Peer(model, config)


class Prompt(NamedTuple):
    tokens: Any
    mask: Any
    grids: dict[str, Any]  # the arguments of text_inputs
    audio: Any
    audio_in_video: bool
    grids_per_row: Any


def text(rng: Any, least: int = 1, most: int = 12) -> list[int]:
    return rng.integers(300, 1000, rng.integers(least, most)).tolist()  # type: ignore[no-any-return]


def audio_length(folder: str, frames: int) -> int:
    if folder == "qwen2_5_omni":
        return ((frames - 1) // 2 + 1 - 2) // 2 + 1
    rest = (frames % 100 - 1) // 2 + 1
    return ((rest - 1) // 2 + 1 - 1) // 2 + 1 + frames // 100 * 13


def interleaved(folder: str, config: Any, grid: Any, seconds: float, length: int) -> list[int]:
    """The tokens of a video and its audio in the order that the model numbers them in."""
    rate, cells = config.position_id_per_seconds, grid[1] * grid[2] // 4
    times = (np.arange(grid[0], dtype=np.float32) * np.float32(seconds) * np.float32(rate)).repeat(cells)
    video = [(time, 0) for time in (times if folder == "qwen3_omni_moe" else times.astype(int))]
    audio = [(time, 1) for time in range(length)]
    if folder == "qwen2_5_omni":
        chunk = int(rate * config.seconds_per_chunk)
        video, audio = ([(time // chunk, kind) for time, kind in each] for each in (video, audio))
    order = sorted(video + audio)
    return [config.audio_token_id if kind else config.video_token_id for _, kind in order]


def minicpm_image(rng: Any, config: Any, token: int, grids: list[Any]) -> list[int]:
    def crop(start: int, stop: int) -> list[int]:
        height, width = 4 * rng.integers(1, 6), 4 * rng.integers(1, 6)
        grids.append((height, width))
        return [start, *[token] * (height * width // 16), stop]

    tokens = crop(config.image_start_id, config.image_end_id)
    rows, columns = rng.integers(0, 4, 2)
    for row in range(rows if columns else 0):
        if row:
            tokens += [config.newline_id] * rng.integers(1, 3)
        for _ in range(columns):
            tokens += crop(config.slice_start_id, config.slice_end_id)
    return tokens


def drawn(
    folder: str,
    rng: Any,
    *,
    videos: bool = True,
    padding: str = "",
    own_tokens: bool = True,
    sizes: Sizes = LARGE,
    of: str = "",
) -> Prompt:
    """A batch of prompts among images and videos."""
    config = peer(folder, own_tokens=own_tokens, of=of).config
    audio_in_video = folder in OMNI and bool(rng.integers(2))
    grids: dict[str, list[Any]] = {"image": [], "video": []}
    seconds, audio, rows, per_row = [], [], [], []
    for _ in range(rng.integers(1, sizes.rows + 1)):
        tokens, images_before = text(rng, 2), len(grids["image"])
        for _ in range(rng.integers(sizes.least_visuals, sizes.visuals + 1)):
            kinds = ["image", "video" if videos and folder not in IMAGES_ONLY else "image"]
            kind = rng.choice(kinds + (["audio"] if folder in OMNI else []))
            if kind == "audio":
                audio.append(int(rng.integers(10, 300)))
                length = audio_length(folder, audio[-1])
                tokens += [config.audio_start_token_id, *[config.audio_token_id] * length, 998]
            elif folder == "minicpmv4_7":
                for _ in range(1 if kind == "image" else rng.integers(1, 4)):
                    tokens += minicpm_image(rng, config, getattr(config, f"{kind}_token_id"), grids[kind])
            else:
                times = 1 if kind == "image" else int(rng.integers(1, 6))
                if folder == "ernie4_5_vl_moe" and kind == "video":
                    times *= 2
                height, width = (2 * rng.integers(1, sizes.side + 1, 2)).tolist()
                grids[kind].append((times, height, width))
                token = getattr(config, f"{kind}_token_id")
                if folder == "glm_image":
                    tokens += [config.image_start_token_id, *[token] * (height * width), config.image_end_token_id]
                elif folder in WITH_LINE_ENDS:
                    more = 2 if folder == "hunyuan_vl" and rng.integers(2) else 0
                    tokens += [token] * (times * height // 2 * (width // 2 + 1) + more)
                elif folder in OMNI:
                    inner = [token] * (times * height * width // 4)
                    if kind == "video":
                        unit = rng.integers(1, 4) if folder == "qwen3_omni_moe" else rng.uniform(0.1, 3)
                        seconds.append(float(np.float32(unit)))
                        if audio_in_video:
                            audio.append(int(rng.integers(10, 600)))
                            length = audio_length(folder, audio[-1])
                            inner = interleaved(folder, config, grids[kind][-1], seconds[-1], length)
                            inner = [config.audio_start_token_id, *inner, 998]
                    tokens += [config.vision_start_token_id, *inner, 997]
                elif kind == "video" and folder in IN_FRAMES:
                    marks: list[Any] = [getattr(config, f"video_{end}_token_id", None) for end in ("start", "end")]
                    token = config.image_token_id if marks[0] else token
                    frames = [[*text(rng), *[token] * (height * width // 4)] for _ in range(times)]
                    inner = [each for frame in frames for each in frame] + text(rng)
                    tokens += [marks[0], *inner, marks[1]] if marks[0] else inner
                else:
                    cells = times * height * width // 4 // (2 if folder == "ernie4_5_vl_moe" and kind == "video" else 1)
                    tokens += [token] * cells
                    if folder == "qwen2_5_vl" and kind == "video":
                        seconds.append(float(np.float32(rng.uniform(0.1, 3))))
            tokens += text(rng, 2)
        rows.append(tokens)
        per_row.append(len(grids["image"]) - images_before)
    longest = max(map(len, rows)) + (3 if padding else 0)
    batch, mask = np.full((2, len(rows), longest), 999)
    mask[:] = 0
    for row, tokens in enumerate(rows):
        place = slice(longest - len(tokens), None) if padding == "left" else slice(len(tokens))
        batch[row, place], mask[row, place] = tokens, 1
    arguments: dict[str, Any] = {f"{kind}_grid_thw": np.array(each) for kind, each in grids.items() if each}
    if seconds:
        arguments["second_per_grid"] = np.array(seconds)
    return Prompt(batch, mask, arguments, np.array(audio), audio_in_video, np.array(per_row))


def rope_index(
    folder: str, prompt: Prompt, token_types: Any, *, own_tokens: bool = True, of: str = ""
) -> tuple[Any, Any]:
    """What transformers gives, [coordinates, B, L] and [B]."""
    torch, model = pytest.importorskip("torch"), peer(folder, own_tokens=own_tokens, of=of).model
    given = {name: torch.from_numpy(value) for name, value in prompt.grids.items()}
    seconds = given.pop("second_per_grid", None)
    arguments: dict[str, Any] = {"attention_mask": torch.from_numpy(prompt.mask), **given}
    tokens = torch.from_numpy(prompt.tokens)
    if folder in OMNI:
        arguments |= {"use_audio_in_video": prompt.audio_in_video, "audio_seqlens": torch.from_numpy(prompt.audio)}
        arguments["second_per_grids"] = seconds
    elif folder == "glm_image":
        arguments["images_per_sample"] = torch.from_numpy(prompt.grids_per_row)
    else:
        arguments["mm_token_type_ids"] = torch.from_numpy(np.where(token_types > 3, 0, token_types))
    if folder == "minicpmv4_7":
        names = {"image_grid_thw": "target_sizes", "video_grid_thw": "target_sizes_videos"}
        arguments = {names.get(name, name): value for name, value in arguments.items()}
    if folder == "qwen2_5_vl" and seconds is not None:
        arguments["second_per_grid_ts"] = seconds.float()
    ids, delta = (each.numpy() for each in model.get_rope_index(tokens, **arguments))
    if folder in AFTER_THE_LARGEST:
        return as_its_authors(ids, token_types, prompt.mask)
    return ids, delta.reshape(-1)


# Where transformers 5.3 to 5.24 contradicts the models' authors: there, text continues max(height, width) behind the
# start of a video. The authors, and transformers up to 5.2, continue behind the largest coordinate:
# `st_idx = llm_pos_ids_list[-1].max() + 1` in Qwen's code (huggingface/transformers#32318 and #35569, by its authors) and
# in vLLM, PaddleNLP and the code of PaddleOCR-VL; `cur_position = np.max(pos_ids) + 1` in PaddlePaddle's for ERNIE.
AFTER_THE_LARGEST = ("ernie4_5_vl_moe", "paddleocr_vl", "qwen2_5_vl", "qwen2_vl")


def as_its_authors(ids: Any, token_types: Any, mask: Any) -> tuple[Any, Any]:
    """Ids and deltas in which each run of tokens continues behind the largest coordinate before it."""
    ids, deltas = ids.copy(), np.zeros(len(mask), int)
    for row, (types_of_row, valid) in enumerate(zip(token_types, mask.astype(bool), strict=True)):
        end, here = 0, np.flatnonzero(valid)
        for run in np.split(here, np.flatnonzero(np.diff(types_of_row[here])) + 1):
            ids[:, row, run] += end - ids[0, row, run[0]]
            end = ids[:, row, run].max() + 1
        deltas[row] = end - len(here)
    return ids, deltas


# Numbers of a config that are not the defaults.
CHANGES: dict[str, Any] = {"window_size": 224, "image_size": 448, "merge_kernel_size": (4, 2), "adapter_merge_size": 4}
CHANGES |= {"pos_emb_height": 20, "pos_emb_width": 20, "num_position_embeddings": 400, "spatial_merge_size": 4}


@functools.cache
def encoder(folder: str, argument: str, changes: tuple[tuple[str, Any], ...] = ()) -> Any:
    """The encoder whose forward takes `argument`, without weights, and with one layer."""
    torch = pytest.importorskip("torch")
    base = importlib.import_module("transformers").PreTrainedModel
    module = importlib.import_module(f"transformers.models.{folder}.modeling_{folder}")
    kinds: list[Any] = [each for each in vars(module).values() if inspect.isclass(each) and issubclass(each, base)]
    kind = next(
        each
        for each in kinds
        if each.__module__ == module.__name__
        if {argument, "self"} <= {*inspect.signature(each.forward).parameters}
        if "input_ids" not in inspect.signature(each.forward).parameters
    )
    config = kind.config_class(**dict(changes))
    for name in ("depth", "num_hidden_layers", "encoder_layers"):
        if hasattr(config, name):
            setattr(config, name, 1)
    with torch.device("meta"):
        model = kind(config)
    model.config._attn_implementation = "flash_attention_2"  # else no lengths are computed
    return model


def expected_of(model: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    exporters, torch = importlib.import_module("transformers.exporters.utils"), pytest.importorskip("torch")
    given = {name: torch.from_numpy(np.asarray(value)) for name, value in inputs.items()}
    result = dict(given)
    exporters.precompute_export_inputs(model, result)
    return {name: value for name, value in result.items() if name not in given and name != "padded_feature"}


def grid_side(model: Any) -> int:
    """The side of an encoder's learned grid."""
    return next(int(each.num_grid_per_side) for each in model.modules() if hasattr(each, "num_grid_per_side"))


def interpolation(grids: Any, side: int) -> Any:
    """Indices and weights of Muse, for grids of (time, height, width) as its own forward passes them."""
    utilities, torch = importlib.import_module("transformers.vision_utils"), pytest.importorskip("torch")
    return utilities.get_vision_interpolation_indices_and_weights(
        torch.from_numpy(grids), side, "bilinear", False, 1, "zeros"
    )


def sound(model: Any, lengths: Any, *, masked: bool) -> dict[str, Any]:
    """What the exporters take for clips of these lengths."""
    if not masked:
        return {"input_features": np.zeros((4, lengths.sum()), np.float32), "feature_lens": lengths}
    chunk = 2 * model.config.n_window
    columns = -(-np.max(lengths) // chunk) * chunk
    mask = (np.arange(columns) < lengths[:, None]).astype(int)
    return {"input_features": np.zeros((len(lengths), 4, columns)), "input_features_mask": mask}


def padded_ids(folder: str, image_size: int, patch_size: int, sizes: Any) -> Any:
    """The rows of the learned grid that the embeddings of a padded encoder look up, [images, patches], and their mask."""
    torch = pytest.importorskip("torch")
    module = importlib.import_module(f"transformers.models.{folder}.modeling_{folder}")
    kind = next(each for name, each in vars(module).items() if name.endswith("VisionEmbeddings"))
    mapping = importlib.import_module("transformers.models.auto.configuration_auto").CONFIG_MAPPING
    model = kind(mapping[f"{folder}_vision"](image_size=image_size, patch_size=patch_size, hidden_size=2))
    looked_up: list[Any] = []
    model.position_embedding.register_forward_hook(lambda _, given, __: looked_up.append(given[0].numpy()))
    height, width = sizes.max(axis=0)
    mask = (np.arange(height)[:, None] < sizes[:, :1, None]) & (np.arange(width) < sizes[:, 1:, None])
    with torch.no_grad():
        pixels = torch.zeros(len(sizes), 3, height * patch_size, width * patch_size)
        model(pixels, patch_attention_mask=torch.from_numpy(mask))
    return looked_up[0], mask


def ranged_ids(side: int, sizes: Any) -> Any:
    """The same for MiniCPM-V up to 4.5 and MiniCPM-o, as openbmb's modeling_navit_siglip.py finds cells of its grid."""
    torch = pytest.importorskip("torch")
    ids = np.zeros((len(sizes), sizes.prod(axis=1).max()), np.int64)
    bounds = torch.arange(1 / side, 1.0, 1 / side)
    for row, size in zip(ids, torch.from_numpy(sizes).int(), strict=True):
        # A quotient of tensors has float32.
        places = [torch.arange(0, 1 - 1e-6, 1 / length) for length in size]
        rows, columns = (torch.bucketize(each, bounds, right=True).numpy() for each in places)
        row[: len(rows) * len(columns)] = (rows[:, None] * side + columns).ravel()
    return ids


def inkling_inputs(grids: Any, merge: int, side: int) -> dict[str, Any]:
    """What the encoder of Inkling 2 works with: positions of the sequence, boundaries, places of patches, and sums."""
    torch = pytest.importorskip("torch")
    modeling = importlib.import_module("transformers.models.inkling2.modeling_inkling2")
    sizes = {"hidden_size": 32, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 8}
    config = modeling.Inkling2VisionConfig(
        **sizes, head_dim=16, patch_size=2, spatial_merge_size=merge, posemb_grid_size=side
    )
    model, seen = modeling.Inkling2VisionModel(config).eval(), dict[str, Any]()
    table = model.embeddings.position_embedding.weight
    with torch.no_grad():
        table.copy_(torch.cos(0.7 * torch.arange(side**2)).outer(torch.ones(config.hidden_size)))
    rotation, embeddings = model.rotary_emb.forward, model.embeddings.forward

    def rotary(hidden: Any, positions: Any) -> Any:
        seen["positions"] = positions.numpy()
        return rotation(hidden, positions)

    def embedded(pixels: Any, grid: Any, places: Any, **options: Any) -> Any:
        result = embeddings(pixels, grid, places, **options)
        seen.update(patch_index=places.numpy(), sums=result[places, 0].numpy())
        return result

    def layer(hidden: Any, *, cu_seqlens: Any, **_: Any) -> Any:
        seen["cu_seqlens"] = cu_seqlens.numpy()
        return hidden

    model.rotary_emb.forward, model.embeddings.forward, model.layers[0].forward = rotary, embedded, layer
    pixels = torch.zeros(grids.prod(axis=1).sum(), 2 * merge, 2 * merge, 3)
    with torch.no_grad():
        model(pixels, torch.from_numpy(grids))
    return seen


def after_convolutions(model: Any, chunks: Any, lengths: Any) -> dict[str, Any]:
    """What the encoder of Qwen3-Omni counts behind its convolutions: which results are not padding, and each clip's."""
    torch = pytest.importorskip("torch")
    count = importlib.import_module(type(model).__module__)._get_feat_extract_output_lengths
    left = count(torch.as_tensor(chunks), model.config.n_window)
    masks = [torch.ones(int(each), dtype=torch.bool) for each in left]
    padded = torch.nn.utils.rnn.pad_sequence(masks, batch_first=True)
    return {"padded_mask_after_cnn": padded, "aftercnn_lens": count(torch.as_tensor(lengths), model.config.n_window)}
