# SPDX-License-Identifier: BSD-3-Clause
"""Named presets, and what presets of every kind have in common."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fastpe._arguments import likely, nearest, shown

# Names of no preset, for what lies elsewhere, as `_plain` has them. The first row also serves models that rotate. Those of the
# second table stand for presets of sequences.
_elsewhere = (
    (
        "rope rotary neox",
        "queries and keys are rotated by a fastpe.RotaryEmbedding, which RotaryEmbedding.from_config(config) makes",
    ),
    ("learned bert gpt2 opt vit clip siglip dinov2", "a learned table is added by fastpe.add_(x, table=..)"),
    ("t5 alibi bloom mpt relative", "it adds a bias to the scores, which fastpe does not make: leave the encoding out"),
    ("mamba jamba nemotronh", "it has no positional encoding: leave the encoding out"),
)
_for_sequences = (
    ("default original transformer sinusoidal sinusoid", "give 'vaswani', which is the default"),
    ("interleaved", "give 'vaswani', whose sines and cosines take turns, or a Convention(.., layout='interleaved')"),
)


def _plain(name: str) -> str:
    """A name without what models' names are written with and without."""
    return re.sub(r"[-_. ]", "", name.lower())


def _is_rotary_model(name: str) -> bool:
    from fastpe._rotary.config import model_types  # which only errors need

    return _plain(name) in map(_plain, model_types())


class Preset:
    """The base of `Convention`, `GridConvention` and `RotaryLayout`: frozen dataclasses whose fields are checked when one is made."""

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
        """Every field in the type that it is kept in."""
        raise NotImplementedError

    def _counting(self) -> str:
        """How positions are counted and odd widths are taken, in one line."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        for name, value in self._checked_fields().items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        """What makes an equal one: its name, and the fields that differ from their defaults."""
        given = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in self._fields()[1:]
            if field.compare and getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join([repr(self.name), *given])})"

    def __getstate__(self) -> dict[str, Any]:
        """Fields alone: descriptions are not worth their bytes in a pickle."""
        return {field.name: getattr(self, field.name) for field in self._fields()}

    def __setstate__(self, fields: dict[str, Any]) -> None:
        """Set the fields of a copy; one that comes from a file is checked like any other."""
        vars(self).update(fields)
        self.__post_init__()

    def _described(self, registry: Mapping[str, Preset]) -> str:
        """The formula, and the systems it serves and its source or what was changed."""
        lines = [f"{self.name}: {self.formula}", f"    {self._counting()}"]
        preset = registry.get(self.name, self)
        if preset == self:
            lines += [f"    serves: {'; '.join(self.serves)}"] if self.serves else []
            lines += [f"    source: {self.source}"] if self.source else []
        else:
            names = [field.name for field in self._fields() if field.compare]
            changed = [
                f"{name}={getattr(self, name)!r}" for name in names if getattr(self, name) != getattr(preset, name)
            ]
            lines.append(f"    changed from the preset: {', '.join(changed)}")
        return "\n".join(lines)


_Preset = TypeVar("_Preset", bound=Preset)


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

    def __init__(
        self, kind: type[_Preset], presets: Iterable[_Preset], *, word: str = "convention", others: str
    ) -> None:
        self._kind = kind
        self._word = word  # what messages call a preset
        self._to_others = others  # what one of its presets is, for their messages
        self._presets = {preset.name: preset for preset in presets}
        for preset in self._presets.values():
            # Help in notebooks and editors shows this text of a preset.
            object.__setattr__(preset, "__doc__", preset._described(self))

    def __getitem__(self, name: str) -> _Preset:
        """Look a preset up by its exact name."""
        if name in self._presets:
            return self._presets[name]
        other = self._other_registry(name)
        if other is not None:
            raise KeyError(f"{name!r} is {other._to_others}; call one of these{self._or_similar(name)}")
        raise KeyError(f"{name!r} is not a {self._word}; {self._hint(str(name))}")

    def __contains__(self, name: object) -> bool:
        """Whether a preset has this name."""
        return name in self._presets

    def _ipython_key_completions_(self) -> list[str]:
        """Names that IPython and notebooks offer in brackets."""
        return list(self)

    if not TYPE_CHECKING:  # for which every attribute would be there

        def __getattr__(self, name: str) -> Any:
            """Say how a preset is written that was taken for an attribute."""
            remedy = f"; write [{name!r}] in place of .{name}" if name in vars(self).get("_presets", ()) else ""
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{remedy}")

    def __iter__(self) -> Iterator[str]:
        """Names, in the order in which they are listed."""
        return iter(self._presets)

    def __len__(self) -> int:
        """Count the presets."""
        return len(self._presets)

    def __repr__(self) -> str:
        """List every preset with its formula."""
        width = max(map(len, self))
        return "\n".join(f"{name:{width}}  {preset.formula}" for name, preset in self.items())

    def find(self, convention: Any) -> _Preset:
        """A preset from its name, or `convention` itself."""
        if isinstance(convention, self._kind):
            return convention
        if not isinstance(convention, str):
            other = next((each for each in self._others() if isinstance(convention, each._kind)), None)
            raise TypeError(
                f"{self._word} is {shown(convention)}, expected a name or a fastpe.{self._kind.__name__}"
                + (f"; it is {other._to_others}" if other else "")
            )
        if convention in self:
            return self[convention]
        raise ValueError(f"{self._word} {self.refusal(convention)}")

    def refusal(self, name: str, *also: Registry[Any]) -> str:
        """What is wrong with a name, and what to do, where the names of the registries `also` are taken, too."""
        other = self._other_registry(name)
        if other is not None:
            return f"is {shown(name)}, which is {other._to_others}; call one of these{self._or_similar(name)}"
        return f"is {shown(name)}, which is not known; {self._hint(name, *also)}"

    def _others(self) -> list[Registry[Any]]:
        """The other registries, whose presets a message may name."""
        import fastpe  # which imports this file, and each registry when it is asked for

        return [
            each for each in (fastpe.conventions, fastpe.grid_conventions, fastpe.rotary_layouts) if each is not self
        ]

    def _other_registry(self, name: str) -> Registry[Any] | None:
        """The registry of another kind that has this name."""
        return next((each for each in self._others() if name in each), None)

    def _or_similar(self, name: str) -> str:
        """The preset of this registry whose name is almost that of another one."""
        near = nearest(name, self, 0.75)
        return f", or give {near!r}" if near else ""

    def _hint(self, name: str, *also: Registry[Any]) -> str:
        taken = list(dict.fromkeys(known for registry in (self, *also) for known in registry))
        return self.known_use(name) or self._guess(name, taken) or f"expected one of {', '.join(taken)}"

    def known_use(self, name: str) -> str:
        """What serves the model of this name, or is meant by it; empty where that is not known."""
        words = _elsewhere + _for_sequences if "vaswani" in self else _elsewhere
        if meant := next((remedy for names, remedy in words if _plain(name) in names.split()), ""):
            return meant
        if _is_rotary_model(name):
            return _elsewhere[0][1]
        if serving := self._serving(name):
            return "; ".join(serving)
        for other in self._others():
            if serving := other._serving(name):
                return f"{'; '.join(serving)}; each is {other._to_others}"
        return ""

    def _guess(self, name: str, taken: list[str]) -> str:
        """What is said of a name in `taken` that an unknown one was probably meant to be."""
        near = likely(name, taken)
        return f"did you mean {near!r}?" if near else ""

    def _serving(self, name: str) -> list[str]:
        if len(_plain(name)) < 3:
            return []
        # GLM-4.5V may be written glm4_5v.
        spelled = "[-_. ]?".join(map(re.escape, _plain(name)))
        # A whole word, or one of "get_2d_sincos" and "PositionalEncoding", but not the name of an option.
        word = re.compile(rf"(?:(?<![A-Za-z0-9])|(?<=[a-z])(?=[A-Z]))(?i:{spelled})(?![a-z]|\w*=)")
        return [
            f"{preset.name!r} serves {system}"
            for preset in sorted(self.values(), key=lambda preset: _plain(preset.name) != _plain(name))
            for system in preset.serves
            if word.search(system)
        ]
