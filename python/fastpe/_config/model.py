# SPDX-License-Identifier: BSD-3-Clause
"""One config.json, and the parts in it: nothing else walks into a file.

A function that takes a config calls `model_of(config)`, asks `.text`, `.vision` or `.audio` for its part, and reads that
part's `_json`. Errors name a key by `_place(key)`, which is where the file has it. What a function finds it keeps by
`_keep(name, find)`, so that the next call with the same `ModelConfig` reads nothing.
"""

# Annotations are evaluated here, where their names are known: the public class says that it is of `fastpe`.
import importlib
import json
import os
import re
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, TypeVar

from fastpe._arguments import shown, text
from fastpe._config.file import Json, Path, Value, load, path_text, table
from fastpe._errors import refused

_Value = TypeVar("_Value")

# Parts lie inside of each other; files have 3.
_most_parts = 8
_other_parts = re.compile(
    r"(vision|audio|talker|token2wav|code_predictor|decoder|encoder|depth_decoder|speech\w*)_config|decoder|encoder"
)
# What the model types of encoders of images and of sound end in.
_vision, _audio = re.compile(r"_vision(_encoder|_model)?$"), re.compile(r"_audio(_encoder)?$")
_of_images = ("patch_size", "spatial_merge_size")


class ModelConfig:
    """A model's config.json, read once: what fastpe knows of the model, and its parts.

    Every function that takes a config takes it too. ``print(config)`` says which call serves which need.

    Parameters
    ----------
    config : mapping, path or ModelConfig
        The dictionary of a config.json, which is copied, or the path of this file.

    Attributes
    ----------
    model_type : str or None
        The type that the file names. In a part without one, it is the one that its model gives it.
    parts : mapping of str to ModelConfig
        The models in the file, by their place in it, as "text_config" and "thinker_config.talker_config". A call with a part
        answers as for that mapping by itself.
    text, vision, audio : ModelConfig or None
        The parts for text, images and sound that calls use. A language model is its own text, and a ``vision_config`` alone
        its own vision.

    Raises
    ------
    ValueError, TypeError
        For what is not the content of a config.json. A `model_type` that is not known is not an error here.
    OSError
        For a file that cannot be read.

    Notes
    -----
    It is immutable, thread-safe, hashable and picklable; two are equal if their files say the same, key for key.

    Examples
    --------
    >>> import fastpe
    >>> config = fastpe.ModelConfig({"model_type": "qwen3_vl", "text_config": {"head_dim": 128}, "vision_config": {}})
    >>> config
    <ModelConfig qwen3_vl: text_config, vision_config>
    >>> config.text.model_type, config.parts["vision_config"] is config.vision
    ('qwen3_vl_text', True)
    >>> fastpe.RotaryEmbedding.from_config(config)
    RotaryEmbedding(128, interleaved=False, base=500000.0)
    """

    __slots__ = ("__weakref__", "_json", "_kept", "_path")

    _json: Json
    _path: Path
    _kept: dict[Any, Any]

    def __init__(self, config: "Mapping[str, Any] | str | os.PathLike[str] | ModelConfig") -> None:
        given = config._json if isinstance(config, ModelConfig) else _copied(load(config), ())
        self._set(given, ())
        for part in (self, *self.parts.values()):
            _ = part.model_type

    def _set(self, mapping: Json, path: Path) -> "ModelConfig":
        for name, value in (("_json", mapping), ("_path", path), ("_kept", {})):
            object.__setattr__(self, name, value)
        return self

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a ModelConfig is immutable: {name} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a ModelConfig is immutable: {name} cannot be deleted")

    def __repr__(self) -> str:
        parts = ", ".join(self.parts)
        return f"<ModelConfig {self.model_type or 'without a model_type'}{': ' if parts else ''}{parts}>"

    def __str__(self) -> str:
        # It runs the calls that it names, which take this class.
        return importlib.import_module("fastpe._config.report").report(self).text()  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, ModelConfig) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.to_dict(),)

    def __copy__(self) -> "ModelConfig":
        return self

    def __deepcopy__(self, memo: Any) -> "ModelConfig":
        return self

    def to_dict(self) -> dict[str, Any]:
        """Give the mapping, a copy."""
        return _copied(self._json, ())  # type: ignore[no-any-return]

    @property
    def model_type(self) -> str | None:
        """The type that the file names, or that the model gives its part."""
        name = self._json.get("model_type")
        return None if name is None else text(self._place("model_type"), name)

    @property
    def parts(self) -> Mapping[str, "ModelConfig"]:
        """The models in the file, by their place in it."""
        return self._keep("parts", lambda: types.MappingProxyType(dict(self._found_parts(0))))

    @property
    def text(self) -> "ModelConfig | None":
        """The part that is a language model, or this one."""
        if self is self.vision or self is self.audio:
            return None
        try:
            return self._levels[-1]
        except ValueError:  # the part that its type keeps it in is missing
            return None

    @property
    def vision(self) -> "ModelConfig | None":
        """The part that encodes images, or this one."""
        return self._keep("vision", lambda: self._encoder("vision", _vision))

    @property
    def audio(self) -> "ModelConfig | None":
        """The part that encodes sound, or this one."""
        return self._keep("audio", lambda: self._encoder("audio", _audio))

    # For the functions of this package

    @property
    def _known_type(self) -> str | None:
        """The name of its row."""
        name = self.model_type
        return None if name is None else table()["other_names"].get(name, name)

    @property
    def _text(self) -> str:
        """Canonical JSON."""
        return self._keep("json", lambda: json.dumps(self._json, sort_keys=True))

    @property
    def _levels(self) -> "tuple[ModelConfig, ...]":
        """The config, the part in it that leads to the language model, and so on; the last one is that model."""
        return self._keep("levels", lambda: tuple(self._to_text(must_end=True)))

    def _at(self, *keys: str | int) -> Path:
        """Where the file has a value of this part."""
        return (*self._path, *keys)

    def _place(self, *keys: str | int) -> str:
        """The same as errors name it."""
        return path_text((*self._path, *keys))

    def _value(self, key: str, default: Any = None) -> Value:
        """A value of this part, where null counts, and its place."""
        return Value(self._json.get(key, default), (*self._path, key))

    def _keep(self, name: Any, find: Callable[[], _Value]) -> _Value:
        """What `find` gave the first time; two threads may both ask it."""
        if name not in self._kept:
            return self._kept.setdefault(name, find())  # type: ignore[no-any-return]
        return self._kept[name]  # type: ignore[no-any-return]

    def _part(self, key: str, expected: str | None = None) -> "ModelConfig | None":
        """The part under one key, with a type if it has none."""
        mapping = self._json.get(key)
        if not isinstance(mapping, Mapping):
            return None
        return self._keep(("part", key, expected), lambda: part_of(mapping, (*self._path, key), expected))

    def _found_parts(self, depth: int) -> "Iterator[tuple[str, ModelConfig]]":
        to_text, type_of_text = _text_key(self, None) or ("", None)
        for key, mapping in self._json.items() if depth < _most_parts else ():
            if not isinstance(mapping, Mapping) or not isinstance(key, str):
                continue
            if "model_type" in mapping or key in (to_text, *table()["text_parts"]) or _other_parts.fullmatch(key):
                part = self._part(key, type_of_text if key == to_text else self._encoder_type(key))
                if part is not None:
                    yield key, part
                    yield from ((f"{key}.{name}", inner) for name, inner in part._found_parts(depth + 1))

    def _to_text(self, *, must_end: bool) -> "Iterator[ModelConfig]":
        """The config, and the parts that lead to its text, as far as there are any."""
        level, expected = self, None
        for _ in range(_most_parts):
            yield level
            found = _text_key(level, expected)
            if found is None:
                return
            key, expected = found
            part = level._part(key, expected)
            if part is None and "hidden_size" in level._json:
                # Files from before the part had a key of its own, as of Qwen2-VL.
                part = part_of({**level._json, "model_type": expected}, level._path)
            if part is None and must_end:
                missing = f"has no {key!r}, in which a model_type of {level.model_type!r} keeps its sizes"
                raise refused(ValueError, level._place(), missing, remedy="give the mapping of the model of text")
            if part is None:
                return
            level = part
        if must_end:
            deep = f"has parts inside of each other more than {_most_parts} times"
            raise refused(ValueError, self._place(), deep, 'one "text_config"', "give the innermost mapping")

    def _encoder_type(self, key: str) -> str | None:
        """The type of an encoder whose mapping has none."""
        kind, names = key.removesuffix("_config"), table()["layouts"]
        own = (self.model_type or "").removesuffix("_thinker")
        named = (f"{own}_{end}" for end in (kind, f"{kind}_encoder", f"{kind}_model", "encoder"))
        return next((name for name in named if name in names or name in table()["sinusoids"]), None)

    def _encoder(self, kind: str, ending: re.Pattern[str]) -> "ModelConfig | None":
        key, name = f"{kind}_config", self.model_type or ""
        for level in self._to_text(must_end=False):
            if level._json.get(key) is not None:
                return level._part(key, level._encoder_type(key))
        # Some files of a vision_config have the type of the whole model.
        is_alone = kind == "vision" and f"{name}_vision" in table()["layouts"] and "text_config" not in self._json
        is_alone = is_alone and any(each in self._json for each in _of_images)
        is_named = ending.search(name) is not None or (kind == "vision" and name in table()["layouts"])
        return self if is_alone or (is_named and name not in table()["parts"]) else None


def model_of(config: "Json | str | os.PathLike[str] | ModelConfig") -> ModelConfig:
    """What a caller gave, as functions read it: a mapping is not copied."""
    return config if isinstance(config, ModelConfig) else part_of(load(config), ())


def part_of(mapping: Json, path: Path, expected: str | None = None) -> ModelConfig:
    """A config that is read and not kept: its mapping is not copied."""
    if expected is not None and mapping.get("model_type") is None:
        mapping = {**mapping, "model_type": expected}
    return ModelConfig.__new__(ModelConfig)._set(mapping, path)


def _text_key(config: ModelConfig, expected: str | None) -> tuple[str, str | None] | None:
    """The key of the part that leads to the language model, and the type of a part without one; None if there is none."""
    data, level, name = table(), config._json, config._known_type
    is_known = name in data["parts"]
    key, expected = data["parts"][name] if is_known else ("text_config", expected)
    if not isinstance(level.get(key), Mapping) and (is_known or name not in data["models"]):
        names = [*data["text_parts"], *(["decoder_config"] if is_known else [])]
        key = next((each for each in names if isinstance(level.get(each), Mapping) and level[each]), key)
    return (key, expected) if is_known or isinstance(level.get(key), Mapping) else None


def _copied(value: Any, path: Path) -> Any:
    """The same in types of JSON."""
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, (str, int)):
                raise refused(TypeError, path_text(path), f"has the key {shown(key)}", "a str")
        return {str(key): _copied(each, (*path, str(key))) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copied(each, (*path, at)) for at, each in enumerate(value)]
    for kind in (str, bool, int, float):
        if isinstance(value, kind):
            return value if isinstance(value, bool) else kind(value)
    if value is not None:
        what = "what a config.json has: numbers, texts, lists and mappings"
        raise refused(TypeError, path_text(path), f"is {shown(value)}", what)
    return value
