# SPDX-License-Identifier: BSD-3-Clause
"""Named presets, and what presets of every kind have in common."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin

from fastpe._arguments import choice, flag, integer, likely, number, other_call, shown, text, texts
from fastpe._errors import refused
from fastpe._names import ConventionName, GridConventionName, ResizeConventionName

# What presets are for, and the calls that take them: their own files import this one.
_kinds = {
    "sequences": (get_args(ConventionName), "fastpe.encode, add, embed"),
    "grids and points": (get_args(GridConventionName), "fastpe.encode_grid, encode_coordinates"),
    "learned grids": (get_args(ResizeConventionName), "fastpe.resize_table, resize_taps"),
}
_most_served = 3  # more clauses are not read
# Presets as they are listed, by kind and name: a changed one says what differs.
_listed: dict[tuple[type, str], Preset] = {}


_checks_of_types: dict[Any, Callable[[str, Any], Any]] = {
    str: text,
    bool: flag,
    int: integer,
    float: number,
    tuple[str, ...]: texts,
}


def plain(name: str) -> str:
    """A name without what models' names are written with and without."""
    return re.sub(r"[-_. ]", "", name.lower())


class Preset:
    """The base of `Convention` and its like: frozen dataclasses whose fields are checked when one is made."""

    name: str
    serves: tuple[str, ...]
    source: str

    @property
    def formula(self) -> str:
        """The columns and the frequencies in one line."""
        raise NotImplementedError

    def _fields(self) -> tuple[dataclasses.Field[Any], ...]:
        return dataclasses.fields(self)  # type: ignore[arg-type]  # each kind of preset is a dataclass

    def _checked_fields(self) -> dict[str, Any]:
        """The fields of which a type does not say all, checked, in the type that they are kept in."""
        raise NotImplementedError

    def _counting(self) -> str:
        """How positions are counted and odd widths are taken, in one line."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        for field in self._fields():
            value = getattr(self, field.name)
            if get_origin(field.type) is Literal:
                vars(self)[field.name] = choice(field.name, value, get_args(field.type))
            elif check := _checks_of_types.get(field.type):
                vars(self)[field.name] = check(field.name, value)
        vars(self).update(self._checked_fields())

    def _different(self, others: Mapping[str, Any]) -> list[str]:
        """The fields that have other values than these."""
        return [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in self._fields()
            if field.compare and getattr(self, field.name) != others[field.name]
        ]

    def __repr__(self) -> str:
        """What makes an equal one: its name, and the fields that differ from their defaults."""
        _, *given = self._different({field.name: field.default for field in self._fields()})
        return f"{type(self).__name__}({', '.join([repr(self.name), *given])})"

    def __getstate__(self) -> dict[str, Any]:
        """Only the fields: descriptions are not worth their bytes in a pickle."""
        return {field.name: getattr(self, field.name) for field in self._fields()}

    def __setstate__(self, fields: dict[str, Any]) -> None:
        """Set the fields of a copy; one that comes from a file is checked like any other."""
        vars(self).update(fields)
        self.__post_init__()

    def __str__(self) -> str:
        """Describe the formula, the systems it serves and its source, or what was changed."""
        lines = [f"{self.name}: {self.formula}", f"    {self._counting()}"]
        preset = _listed.get((type(self), self.name), self)
        if preset == self:
            lines += [f"    serves: {'; '.join(self.serves)}"] if self.serves else []
            lines += [f"    source: {self.source}"] if self.source else []
        else:
            lines.append(f"    changed from the preset: {', '.join(self._different(vars(preset)))}")
        return "\n".join(lines)


_Preset = TypeVar("_Preset", bound=Preset)


def listed(kind: type[_Preset], name: str) -> _Preset:
    """The preset of this kind and name, for files that the list itself imports."""
    return _listed[kind, name]  # type: ignore[return-value]


class Registry(Mapping[str, _Preset], Generic[_Preset]):
    """Presets by name, which cannot be changed. `print` shows one line for each.

    Examples
    --------
    >>> import fastpe
    >>> fastpe.conventions["fairseq"].first_position
    2
    >>> "concat" in fastpe.conventions
    True
    """

    def __init__(self, kind: type[_Preset], presets: Iterable[_Preset], *, word: str, call: str) -> None:
        self._kind = kind
        self._word = word  # what messages call a preset
        self._call = call  # what takes one
        self._presets = {preset.name: preset for preset in presets}
        for preset in self._presets.values():
            _listed[kind, preset.name] = preset
            # Help in notebooks and editors shows this text of a preset.
            object.__setattr__(preset, "__doc__", str(preset))

    def __getitem__(self, name: str) -> _Preset:
        """Look a preset up by its exact name."""
        if name in self._presets:
            return self._presets[name]
        raise KeyError(f"{name!r} is not a {self._word}; {self._hint(str(name))}")

    def __contains__(self, name: object) -> bool:
        """Whether a preset has this name."""
        return name in self._presets

    def __iter__(self) -> Iterator[str]:
        """Names, in the order in which they are listed."""
        return iter(self._presets)

    def __len__(self) -> int:
        """Count the presets."""
        return len(self._presets)

    def __repr__(self) -> str:
        """List every preset with its formula, and what to call."""
        width = max(map(len, self))
        lines = [f"{name:{width}}  {preset.formula}" for name, preset in self.items()]
        return "\n".join([*lines, f"Call {self._call}; print one for the systems that it serves."])

    def _ipython_key_completions_(self) -> list[str]:
        """Names that IPython and notebooks offer in brackets."""
        return list(self)

    def _find(self, preset: Any) -> _Preset:
        """A preset from its name, or `preset` itself."""
        if isinstance(preset, self._kind):
            return preset
        if not isinstance(preset, str):
            expected = f"a name or a fastpe.{self._kind.__name__}"
            raise refused(TypeError, self._word, f"is {shown(preset)}", expected)
        if preset in self._presets:
            return self._presets[preset]
        for kind, (names, call) in _kinds.items():
            if preset in names:
                own = next((f"one for {own}: " for own, (known, _) in _kinds.items() if {*known} == {*self}), "one of ")
                found = f"is {preset!r}, which is for {kind} ({call})"
                raise refused(ValueError, self._word, found, f"{own}{', '.join(self)}")
        meant = other_call(preset).removeprefix("; ")
        # A class that takes conventions has this one just as little.
        remedy = meant if meant and "PositionalEncoding" not in meant else self._hint(preset)
        raise refused(ValueError, self._word, f"is {shown(preset)}, which is not known", "", remedy)

    def _serving(self, name: str) -> list[str]:
        """The presets that serve a system or model of this name, as messages say it."""
        if len(plain(name)) < 3:
            return []
        # GLM-4.5V may be written glm4_5v.
        spelled = "[-_. ]?".join(map(re.escape, plain(name)))
        # A whole word, but not the name of an option.
        word = re.compile(rf"(?<![A-Za-z0-9])(?i:{spelled})(?![a-z]|\w*=)")
        found = {preset.name: systems for preset in self.values() if (systems := [*filter(word.search, preset.serves)])}
        if len(found) > _most_served:
            return [f"systems with such a name have {', '.join(map(repr, found))}: print one to see which"]
        return [f"{preset!r} serves {' and '.join(systems)}" for preset, systems in found.items()]

    def _hint(self, name: str) -> str:
        """What an unknown name probably means, or else the known ones."""
        if serving := self._serving(name):
            return "; ".join(serving)
        for kind, (names, call) in _kinds.items():
            meant = next((known for known in names if plain(known) == plain(name)), "")
            if meant and meant not in self:
                return f"{meant!r} is for {kind} ({call})"
        return self._guess(name) or f"expected one of {', '.join(self)}"

    def _guess(self, name: str) -> str:
        """What is said of a known name that an unknown one was probably meant to be."""
        near = likely(name, self)
        return f"did you mean {near!r}?" if near else ""
