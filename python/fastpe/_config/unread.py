# SPDX-License-Identifier: BSD-3-Clause
"""Keys of a config that were not read and concern rotation: each is refused by its name.

The table of keys in written.json says which: those whose name has one of its `words` or is among its `names`, and not
`harmless`; `types`, which say of which type each layer is; values that are `neutral`, and change nothing; other `parts` of a
file, with keys of `models`; and `arguments`: that which takes the place of a key, by the first of the patterns. A
key that has none is refused whatever is given, unless its own remedy says what to give: it may say which layers are rotated.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fastpe._arguments import shown
from fastpe._config.file import Json, Path, table, wrong
from fastpe._config.layer_types import Found, has_types
from fastpe._config.rope import Rope

_longest_name = 200  # of a key that concerns rotation
# Words of other systems for the pairing of columns: apart, and neighbours.
_pairings = ("rope_gpt_neox", "gpt_neox", "neox"), ("rope_gptj", "gptj")


@functools.cache
def _keys() -> dict[str, Any]:
    """The table, its patterns compiled."""
    data: dict[str, Any] = table()["keys"]
    sets = {name: frozenset(data[name]) for name in ("names", "harmless", "sizes", "models")}
    parts = "|".join(name.replace("*", ".*") for name in data["parts"])
    patterns = {"words": data["words"], "types": data["types"], "parts": parts}
    return {**data, **sets, **{name: re.compile(pattern) for name, pattern in patterns.items()}}


def concerns_rotation(name: str) -> bool:
    """Whether a key of this name is refused where it is not read."""
    word = _lower(name)
    return word not in _keys()["harmless"] and (word in _keys()["names"] or _keys()["words"].search(word) is not None)


def is_other_part(name: str, value: Json) -> bool:
    """Whether a mapping describes something else than this model: another model, a file, a vocabulary."""
    return _keys()["parts"].fullmatch(name) is not None or not _keys()["models"].isdisjoint(value)


def refuse_unread(found: Found, ropes: Sequence[Rope]) -> None:
    """Refuse the first key that was not read, unless it says what the others say, or its argument is given."""
    part, row, given, table_of = found.part, found.row, found.given, _keys()
    read = row.read_keys - {row.rotary_dim}
    keys = [*_unread(part._json, read, part._path, has_types(part))]
    # Other sizes count where the width of a head is a quotient of sizes.
    widths = [[rope.entry.outer(term).found for term in rope.entry.row.width if " // " not in term] for rope in ropes]
    if "rotary_dim" not in given and any(each.count(None) == len(each) for each in widths):
        keys += [(part._at(key), part._json[key]) for key in part._json if key in table_of["sizes"] - read]
    for level in found.outer:
        # What a part of the config says again is that part's.
        also = {name: value for name, value in level._json.items() if part._json.get(name) != value}
        keys += _unread(also, frozenset({"max_period"}), level._path, True)
    for path, value in keys:
        name = _lower(str(path[-1]))
        says_types = table_of["types"].fullmatch(name) is not None
        patterns = table_of["arguments"].items()
        argument = next((each for each, pattern in patterns if says_types or re.search(pattern, name)), "")
        has_remedy = not argument and name in table_of["remedies"]
        same = [None, *table_of["neutral"].get(name, []), *row.neutral.get(name, [])]
        same += table_of["neutral_of_arguments"].get(argument, [])
        same += [each for rope in ropes for each in (*_pairings[rope.interleaved], *_same(argument, name, found, rope))]
        says_pairs = isinstance(value, bool) or value in (*_pairings[0], *_pairings[1])
        if argument == "interleaved" in given and says_pairs and value not in same:
            differs = f"is {value}, and interleaved is {given['interleaved']}"
            raise wrong(path, differs, "the same pairing", "correct one of them, as the code of the model says")
        if argument in given or (has_remedy and {"base", "scaling", "rotary_dim"} <= {*given}):
            continue
        # True is not 1.
        if any(isinstance(value, bool) == isinstance(each, bool) and value == each for each in same):
            continue
        remedy = table_of["remedies"].get(name, table_of["remedies_of_arguments"][argument])
        if argument == "base" and re.search("swa|sliding|local|global", name):
            remedy = "use RotaryEmbedding.from_config(config, layer_type=.., base=..) for each type of layers"
        raise wrong(path, f"is {shown(value)}, and this key is not read in models of this type", remedy=remedy)


def _unread(
    config: Mapping[Any, Any], read: frozenset[str], at: Path, has_types: bool, inner: Path = ()
) -> Iterator[tuple[Path, Any]]:
    """The keys of `config`, and of the mappings and lists in it that are not other parts, that concern rotation."""
    for name, value in config.items():
        here, word = (*inner, name), str(name)[:_longest_name]
        if ".".join(map(str, here)) in read:
            continue
        says_types = not has_types and value and value != 1 and _keys()["types"].fullmatch(_lower(word)) is not None
        if isinstance(name, str) and (says_types or concerns_rotation(word) or value == "alibi"):
            yield (*at, *here), value
        elif isinstance(value, Mapping) and not (isinstance(name, str) and is_other_part(word, value)):
            yield from _unread(value, read, at, has_types, here)
        elif isinstance(value, (list, tuple)) and not is_other_part(word, {}):
            nested = {place: each for place, each in enumerate(value) if isinstance(each, (Mapping, list, tuple))}
            yield from _unread(nested, read, at, has_types, here)


def _same(argument: str, name: str, found: Found, rope: Rope) -> list[Any]:
    """What a key of this name says if it says what the others say."""
    if argument == "interleaved":
        return [rope.interleaved != ("neox" in name or name == "rotate_half")]
    if argument == "base":
        return [rope.base and rope.base.found]
    if name == "rope_scaling_layers":
        count = found.part._json.get("num_hidden_layers")
        return [[*range(count)]] if isinstance(count, int) and 0 < count < 1000 else []
    if argument == "scaling":
        scaling = {key: value.found for key, value in rope.scaling.items()}
        return [scaling.get("factor")] if scaling.get("rope_type") == "linear" else []
    if name in ("mla", "use_mla"):
        has_tail = "qk_rope_head_dim" in rope.entry.row.width[0]
        return [has_tail and bool(found.row.source or found.part._json.get("qk_rope_head_dim"))]
    if name in _keys()["sizes"]:
        return [rope.entry.outer(key).found for key in ("hidden_size", "num_attention_heads")]
    if argument == "rotary_dim":
        return [rope.width, rope.share, 0, *([] if _keys()["words"].search(name) else [rope.head_dim])]
    return []


def _lower(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
