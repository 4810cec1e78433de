# SPDX-License-Identifier: BSD-3-Clause
"""Keys of a config whose names concern rotation: each is read, or known to be harmless, or refused by its name.

keys.json has the names. A key has the first role whose pattern its name fits; a role says which argument of `from_config`
takes the place of such keys. A name with one of the words below is harmless only as a whole, and not by a pattern.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from fastpe._arguments import shown
from fastpe._errors import refused
from fastpe._rotary.config_file import Json, Path, packaged, path_text

_longest_name = 200  # of a key that concerns rotation
_rotary_word = re.compile(r"rope|rotary|theta|yarn|(^|_)ntk|mscale|alibi")


class Role(NamedTuple):
    """What keys of some names are about, and what to do about them.

    `neutral` values change nothing. With all of `arguments` given to `from_config`, such a key is not looked at.
    `says` is what other values say, if not only that a key is not read.
    """

    name: str
    pattern: str
    neutral: list[Any]
    arguments: list[str]
    remedy: str
    says: str = ""


class Key(NamedTuple):
    """A key that is not read, with its place and its value."""

    path: Path
    value: Any
    role: Role


class _Table(NamedTuple):
    roles: list[tuple[re.Pattern[str], Role]]
    harmless: Mapping[str, str]
    harmless_pattern: re.Pattern[str]
    parts: re.Pattern[str]
    sizes: set[str]
    hints: dict[str, str]
    outer: set[str]


@functools.cache
def _table() -> _Table:
    data = packaged("keys.json")
    roles = [Role(**each) for each in data["roles"]]
    return _Table(
        [(re.compile(role.pattern), role) for role in roles],
        data["harmless"],
        re.compile("|".join(name.replace("*", ".*") for name in data["harmless"])),
        re.compile("|".join(name.replace("*", ".*") for name in data["parts"])),
        {*data["sizes"]},
        data["hints"],
        {*data["outer"]},
    )


def role_of(name: str) -> Role | None:
    """The role of a key, if its name concerns rotation and it is not harmless in every model."""
    word = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    if word in _table().harmless or (not _rotary_word.search(word) and _table().harmless_pattern.fullmatch(word)):
        return None
    return next((role for pattern, role in _table().roles if pattern.search(word)), None)


def _role_of_value(value: Any) -> Role | None:
    """The role of a key of any name whose value is that of a model without rotation."""
    return next(role for _, role in _table().roles if role.name == "kind") if value == "alibi" else None


def is_other_part(name: str, value: Json) -> bool:
    """Whether a mapping describes something else than this model: another model, a file, a vocabulary."""
    return _table().parts.fullmatch(name) is not None or not _table().sizes.isdisjoint(value)


class Keys:
    """The keys of a config that concern rotation and are not read, without those whose arguments are given.

    `neutral` has values that change nothing in models of this type.
    """

    def __init__(
        self,
        config: Json,
        outer: tuple[Json, ...],
        *,
        read: AbstractSet[str],
        given: AbstractSet[str],
        neutral: Mapping[str, list[Any]],
    ) -> None:
        self.given, self._neutral = given, neutral
        self._found = [*_speaking(config, read)]
        for level in outer:
            # What a part of the config says again is that part's.
            also = {name: value for name, value in level.items() if config.get(name) != value}
            self._found += _speaking(also, _table().outer)

    def require(self, role: str, *same: Any, is_nested: bool = False) -> None:
        """Refuse the first key of this role whose value is none of these, and that does not leave things as they are.

        `is_nested`: only keys of mappings within the config.
        """
        for key in self._found:
            if is_nested and len(key.path) == 1:
                continue
            name = str(key.path[-1])
            wanted = [argument for argument in key.role.arguments if argument not in self.given]
            harmless = [None, *key.role.neutral, *self._neutral.get(name, []), *same]
            if key.role.name == role and wanted and not any(_is_same(key.value, each) for each in harmless):
                says = key.role.says or ("" if same else "and this key is not read in models of this type")
                remedy = _table().hints.get(name, key.role.remedy)
                if not (key.role.says or name in _table().hints or _rotary_word.search(name.lower())):
                    remedy += ", or leave the key out if it changes nothing"
                found = f"is {shown(key.value)}{says and ', '}{says}"
                expected = f"{' or '.join(dict.fromkeys(map(shown, same)))}, which the other keys say" if same else ""
                raise refused(ValueError, path_text(key.path), found, expected, remedy)


def _speaking(config: Mapping[Any, Any], read: AbstractSet[str], path: Path = ()) -> Iterator[Key]:
    """The keys of `config`, and of the mappings and lists in it that are not other parts, that are not read."""
    for name, value in config.items():
        here, word = (*path, name), str(name)[:_longest_name]
        if ".".join(map(str, here)) in read:
            continue
        if isinstance(name, str) and (role := role_of(word) or _role_of_value(value)):
            yield Key(here, value, role)
        elif isinstance(value, Mapping) and not (isinstance(name, str) and is_other_part(word, value)):
            yield from _speaking(value, read, here)
        elif isinstance(value, (list, tuple)) and not is_other_part(word, {}):
            nested = {at: each for at, each in enumerate(value) if isinstance(each, (Mapping, list, tuple))}
            yield from _speaking(nested, read, here)


def _is_same(value: Any, other: Any) -> bool:
    """Whether two values are equal; True is not 1."""
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)
