# SPDX-License-Identifier: BSD-3-Clause
"""How transformers numbers the tokens of each model type.

Of each type, a tiny model without trained weights is given ids with padding on the left, and position ids by each rule: the
rule that changes nothing is the model's own. Models that generate text get the counts of valid tokens from `generate`.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from fastpe._config import tables

LEFT = 3  # tokens of padding
PROCESSOR_SECONDS = 60  # for one model: what takes longer is listed as not measured


class Ids(NamedTuple):
    """The rule of a type and its first position; and why one is not measured, or follows only from `generate`."""

    rule: str
    first: int
    why: str = ""


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
                with suppress(AttributeError, NotImplementedError):  # what follows from others
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
                with suppress(AttributeError, NotImplementedError):
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
    """The classes for this config that take tokens, those that predict masked tokens in front."""
    auto = importlib.import_module("transformers.models.auto.modeling_auto")
    names = ("MASKED_LM", "CAUSAL_LM", "IMAGE_TEXT_TO_TEXT", "SPEECH_SEQ_2_SEQ", "MULTIMODAL_LM", "")
    found = []
    for name in names:
        mapping = getattr(auto, f"MODEL_FOR_{name}_MAPPING" if name else "MODEL_MAPPING", {})
        if type(config) in mapping:
            kind = mapping[type(config)]
            found += [(name, each) for each in (kind if isinstance(kind, (tuple, list)) else [kind])]
    return [(name, each) for name, each in found if takes(each, "input_ids")]


def measured(model_type: str, config_class: Any) -> Ids:
    """The rule of one type; a rule is empty where it is not known."""
    by_hand = tables.written()["ids"].get(model_type, ["?"])
    if not by_hand[0]:
        return Ids("", 0)  # its reason is in the table
    if not (classes := classes_of(config_class())):
        return Ids("", 0)  # takes no tokens
    with_ids = [(name, each) for name, each in classes if takes_ids(each)]
    if not with_ids:
        return Ids("none", 0)
    is_masked = any(name == "MASKED_LM" for name, _ in with_ids)
    own = [*vars(importlib.import_module(with_ids[0][1].__module__)).values()]
    kinds = [each for each in own if getattr(each, "config_class", None) is config_class and not is_masked]
    causal = [each for each in (*(kind for _, kind in with_ids), *kinds) if each.can_generate() and takes_ids(each)]
    models = tables.table()["models"]
    if models.get(model_type, {}).get("mrope") or any(makes_its_own(each) for each in causal):
        return Ids("", 0)  # see graphs.py
    is_causal = bool(causal) and not is_masked and not getattr(config_class(), "is_encoder_decoder", False)
    if is_causal:
        text = getattr(config_class(), "text_config", None)
        parts = [each for each in own if getattr(each, "config_class", None) in (config_class, type(text))]
        with suppress(ValueError):  # a class that is named, but not there
            parts += [each for _, each in (classes_of(text) if text is not None else [])]
        causal += [each for each in parts if takes_ids(each) and takes(each, "input_ids")]
    try:
        starts, rules = first_compared(causal if is_causal else [with_ids[0][1]], config_class)
    except Exception as error:  # noqa: BLE001  # whatever a class raises for sizes that it was not written for
        why = reason(error)
        is_rotated = bool({model_type, text_type(config_class)} & {*models})
        return (
            Ids("valid", 0, f"ids as generate counts, not compared: {why}")
            if is_causal and is_rotated
            else Ids("", 0, why)
        )
    if "padding" in rules and 0 not in starts:
        return Ids("padding", starts[0])
    if is_causal:
        return Ids("valid", 0) if 0 in starts else Ids("", 0, "0 is not the first position")
    if starts and ("columns" in rules or starts[0] > 0):
        return Ids("columns", starts[0])
    return Ids("", 0, "no rule gives what it gives by itself")


def reason(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:100]}"


def takes(kind: Any, name: str) -> bool:
    """Whether a class takes an input of this name."""
    return name in inspect.signature(kind.forward).parameters


def takes_ids(kind: Any) -> bool:
    return takes(kind, "position_ids")


def makes_its_own(kind: Any) -> bool:
    """Whether `generate` numbers tokens by the model's own code."""
    names = [base for base in kind.__mro__ if "_prepare_position_ids_for_generation" in vars(base)]
    return any(base.__module__.startswith("transformers.models") for base in names)


def text_type(config_class: Any) -> str:
    """The type of the text that a config of this class has."""
    text = getattr(config_class(), "text_config", None)
    return getattr(text, "model_type", "") if text is not None else ""


def first_compared(kinds: list[Any], config_class: Any) -> tuple[list[int], list[str]]:
    """What the first of these classes gives that can be made small."""
    errors = []
    for make, kind in itertools.product((shrunk, divided), dict.fromkeys(kinds)):
        try:
            return compared(kind, make(config_class()))
        except TimeoutError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever a class raises for sizes that it was not written for
            errors.append(error)
    raise errors[0]


def compared(kind: Any, config: Any) -> tuple[list[int], list[str]]:
    """Which first positions, and which rules, give what the model gives by itself."""
    torch = importlib.import_module("torch")
    torch.manual_seed(0)
    if type(config) is not kind.config_class and isinstance(getattr(config, "text_config", None), kind.config_class):
        config = config.text_config  # a class for only the text
    config._attn_implementation = "eager"
    padding = getattr(config, "pad_token_id", None)
    padding = 1 if padding is None or padding < 0 else padding
    length, left = 9, LEFT
    with limited():
        model = kind(config).eval().float()
        for parameter in model.parameters():
            if parameter.ndim >= 2:
                torch.nn.init.normal_(parameter, std=0.2)
        ids = torch.arange(20, 20 + length)[None]
        padded = torch.cat([torch.full((1, left), padding), ids], 1)
        alone, own = output(model, ids, ids > 0), output(model, padded, padded >= 20)[:, left:]
        starts = [n for n in range(4) if agrees(model, ids, alone, 0, list(range(n, n + length)))]
        rules = {
            "columns": list(range(left + length)),
            "padding": [padding] * left + list(range(padding + 1, padding + 1 + length)),
        }
        return starts, [name for name, each in rules.items() if agrees(model, padded, own, left, each)]


@contextmanager
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


def agrees(model: Any, ids: Any, expected: Any, left: int, positions: list[int]) -> bool:
    torch = importlib.import_module("torch")
    try:
        found = output(model, ids, ids >= 20, position_ids=torch.tensor([positions]))[:, left:]
    except (IndexError, RuntimeError):  # a position that the table does not have
        return False
    return bool((found - expected).abs().max() < 1e-4)


def output(model: Any, ids: Any, valid: Any, **given: Any) -> Any:
    torch = importlib.import_module("torch")
    if takes(model, "use_cache"):
        given["use_cache"] = False
    with torch.no_grad():
        result = model(input_ids=ids, attention_mask=valid.long(), return_dict=True, **given)
    return next(each for each in (result.get("logits"), result.get("last_hidden_state")) if each is not None).float()


def shown(rule: str, first: int, padding: int) -> list[int]:
    """An id of padding, and the positions of the first tokens behind three of it; none where there are no positions."""
    start = {"valid": first, "columns": LEFT + first, "padding": padding + 1, "none": 0}[rule]
    return [padding, *(range(start, start + 3) if rule != "none" else ())]


def measure(kinds: Mapping[str, Any]) -> tuple[dict[str, list[Any]], dict[str, list[int]], dict[str, str]]:
    """The rules of these types and of the texts in them, what is stored of each, and why some are not measured."""
    rules: dict[str, list[Any]] = {}
    texts: dict[str, list[Any]] = {}
    seen, missing = {}, {}
    for name in sorted(kinds):
        try:
            found = measured(name, kinds[name])
            part = text_type(kinds[name]) if found.rule == "valid" else ""
            if found.rule and not found.why:
                padding = getattr(shrunk(kinds[name]()), "pad_token_id", None)
                seen[name] = shown(*found[:2], 1 if padding is None or padding < 0 else padding)
        except Exception as error:  # noqa: BLE001  # a class without defaults, or without a package that it needs
            found, part = Ids("", 0, reason(error)), ""
        if found.rule:
            rules[name] = [found.rule, found.first]
        if part:
            texts[part] = ["valid", 0]
        if found.why:
            missing[name] = found.why
    texts = {name: rule for name, rule in texts.items() if rules.get(name, [""])[0] != "valid"}
    return rules | texts, {name: each for name, each in seen.items() if name not in texts}, missing
