# SPDX-License-Identifier: BSD-3-Clause
"""Tiny models without trained weights: their configs, their classes and what they take."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import pathlib
import signal
from collections.abc import Iterator
from typing import Any

import torch

PROCESSOR_SECONDS = 60  # for one model: what takes longer is listed as not measured

SMALL = {
    64: "hidden_size d_model n_embd dim emb_dim embedding_size intermediate_size ffn_dim n_inner d_inner "
    "hidden_dim d_ff encoder_ffn_dim decoder_ffn_dim t2u_encoder_ffn_dim t2u_decoder_ffn_dim "
    "speech_encoder_intermediate_size max_position_embeddings n_positions max_source_positions "
    "moe_intermediate_size word_embed_proj_dim",
    4: "num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads num_experts "
    "num_local_experts n_routed_experts",
    2: "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers speech_encoder_layers "
    "t2u_encoder_layers t2u_decoder_layers num_key_value_heads num_kv_heads num_experts_per_tok "
    "linear_num_key_heads linear_num_value_heads",
    16: "head_dim q_lora_rank kv_lora_rank qk_rope_head_dim qk_nope_head_dim v_head_dim entity_emb_size rotary_dim "
    "mamba_d_head mamba_headdim global_head_dim",
    8: "mamba_n_heads n_mamba_heads",
    1: "num_hidden_groups n_group topk_group first_k_dense_replace decoder_sparse_step",
    1100: "vocab_size n_vocab vocab_size_per_layer_input t2u_vocab_size unit_hifi_gan_vocab_size",
    50: "entity_vocab_size",
}


def shrunk(config: Any) -> Any:
    """The config with sizes that take no time, as far as they have the usual names."""
    config.allow_global_per_layer_attribute_access = True
    for size, names in SMALL.items():
        for name in names.split():
            if type(getattr(config, name, None)) is int or (name in ALSO_NULL and hasattr(config, name)):
                with contextlib.suppress(AttributeError, NotImplementedError):  # what follows from others
                    setattr(config, name, size)
    if hasattr(config, "kv_lora_rank"):  # each head has its own keys
        config.num_key_value_heads = config.num_attention_heads
    for name in ("layer_types", "mlp_layer_types", "layers_block_type"):
        if len(getattr(config, name, None) or ()) > 2:
            setattr(config, name, [getattr(config, name)[0], getattr(config, name)[-1]])
    if (getattr(config, "pad_token_id", None) or 0) >= SMALL_VOCABULARY:
        config.pad_token_id = 0
    for name in getattr(config, "sub_configs", None) or {}:
        if getattr(config, name, None) is not None:
            shrunk(getattr(config, name))
    return config


def divided(config: Any) -> Any:
    """The config with widths that have the same ratios, for classes in which some follow from others."""
    config.allow_global_per_layer_attribute_access = True
    for size, names in SMALL.items():
        for name in names.split():
            value = getattr(config, name, None)
            if type(value) is int and value > size and size in (2, 16, 64, 1100) and "key_value" not in name:
                with contextlib.suppress(AttributeError, NotImplementedError):
                    setattr(config, name, max(value // 8, 4) if size in (16, 64) else size)
    for name in ("layer_types", "mlp_layer_types", "layers_block_type"):
        if kinds := getattr(config, name, None):
            setattr(config, name, ([*dict.fromkeys(kinds)] * 2)[:2])
    changes: dict[str, Any] = {"num_kv_shared_layers": 0, "vocabulary_map": {}, "first_k_dense_replace": 2}
    null = {"layer_types": ["full_attention"] * 2, "mlp_layer_types": ["dense"] * 2, "sliding_window": 8}
    changes |= {name: value for name, value in null.items() if getattr(config, name, 0) is None}
    if type(getattr(config, "qk_nope_head_dim", None)) is int:
        changes["qk_head_dim"] = config.qk_nope_head_dim + config.qk_rope_head_dim
    padding = ("pad_token_id", "audio_pad_token_id")
    changes |= {name: 0 for name in padding if (getattr(config, name, None) or 0) >= SMALL_VOCABULARY}
    for name in changes.keys() & {*dir(config)}:
        setattr(config, name, changes[name])
    for name in getattr(config, "sub_configs", None) or {}:
        if getattr(config, name, None) is not None:
            divided(getattr(config, name))
    return config


# Sizes that follow from others where they are null, which small ones do not.
ALSO_NULL = ("head_dim", "num_key_value_heads", "num_experts_per_tok", "n_routed_experts")
SMALL_VOCABULARY = 1100


def classes_of(config: Any) -> list[Any]:
    """The model classes of a configuration, whole models and those that are usual in front."""
    package, _, stem = config.__module__.replace("configuration_", "modeling_").rpartition(".")
    spec = importlib.util.find_spec(package)
    folders = map(pathlib.Path, (spec and spec.submodule_search_locations) or ())
    stems = {stem, *(source.stem for folder in folders for source in folder.glob("modeling_*.py"))}
    found: dict[str, Any] = {}
    for each in sorted(stems):
        with contextlib.suppress(ModuleNotFoundError):
            found |= vars(importlib.import_module(f"{package}.{each}"))
    own = [name for name, each in found.items() if getattr(each, "config_class", None) is config]
    usual = ("Model", "Decoder", "ForCausalLM", "Encoder")
    names = (name for name in own if "PreTrained" not in name)
    return [found[name] for name in sorted(names, key=lambda name: (not name.endswith(usual), len(name)))]


def inputs_of(model: Any, tokens: list[int], mask: list[int], *, ones: bool = False) -> Iterator[dict[str, Any]]:
    """Inputs by their names; tokens, sounds and images in each shape that models take them in."""

    def size(*names: str, default: int) -> int:
        values = (getattr(model.config, name, None) for name in names)
        numbers = (value[0] if isinstance(value, (list, tuple)) and value else value for value in values)
        return next((number for number in numbers if type(number) is int), default)

    whole, side, patch = torch.tensor([tokens]), size("image_size", default=224), size("patch_size", default=16)
    frames = 2 * size("max_source_positions", "n_window", default=25)
    mels = size("input_size", "num_mel_bins", default=80)
    history = size("context_length", default=64) + max(getattr(model.config, "lags_sequence", None) or [0])
    image = torch.zeros(1, size("num_channels", default=3), side, side)
    given = {
        "decoder_input_ids": whole,
        "attention_mask": torch.tensor([mask]),
        "bbox": torch.zeros(1, len(tokens), 4).long(),
        "encoder_hidden_states": torch.zeros(1, 4, size("cross_attention_hidden_size", "hidden_size", default=64)),
        "lang_ids": torch.zeros(1).long(),
        "visual_feats": torch.zeros(1, 2, size("visual_feat_dim", default=1)),
        "visual_pos": torch.zeros(1, 2, 4),
        "codebook_idx": 1,
        "past_values": torch.zeros(1, history),
        "past_time_features": torch.zeros(1, history, size("num_time_features", default=0)),
        "past_observed_mask": torch.ones(1, history),
        "feature_lens": torch.tensor([frames]),
        "aftercnn_lens": torch.tensor([(frames - 1) // 2 + 1]),
        "input_features_mask": torch.ones(1, frames),
        "pixel_attention_mask": torch.ones(1, 256),
        "spatial_shapes": torch.tensor([[16, 16]]),
        "image": image,
    }
    books = whole.expand(size("num_codebooks", "audio_channels", default=1), -1)
    clip = image[:, None].expand(1, size("num_frames", default=1), -1, -1, -1)
    sounds = ((1, mels, frames), (1, frames, mels), (mels, frames))
    kinds = {
        "input_ids": (books, whole[..., None].expand(-1, -1, 8)),
        "input_features": [torch.full(shape, float(ones)) for shape in sounds],
        "pixel_values": (image, clip, torch.zeros(1, 256, 3 * patch**2)),
        "past_values": (given["past_values"], [torch.zeros(64)]),
        "image": (image,),
    }
    for name, values in kinds.items():
        rest = {key: each for key, each in given.items() if name == "input_ids" or key != "attention_mask"}
        for value in values if takes(model, name) else ():
            yield {key: each for key, each in {**rest, name: value}.items() if takes(model, key)}
    both = {**given, "input_ids": whole, "pixel_values": image, "input_features": torch.zeros(sounds[0])}
    if takes(model, "input_ids") and (takes(model, "pixel_values") or takes(model, "input_features")):
        yield {key: each for key, each in both.items() if takes(model, key)}


def reason(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:100]}"


def takes(kind: Any, name: str) -> bool:
    """Whether a class takes an input of this name."""
    return name in inspect.signature(kind.forward).parameters


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Raise TimeoutError after this time of the processor, which does not depend on what else the machine does."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"more than {PROCESSOR_SECONDS} s of the processor")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, PROCESSOR_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
