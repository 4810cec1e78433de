# SPDX-License-Identifier: BSD-3-Clause
"""What fastpe knows of a model: for each need of a host, the call that serves it.

Nothing is said that was not tried: a call is listed if it, with small arguments, gave what is said of it, and an error of
one that was expected to give something is listed as what is not known.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

import fastpe
from fastpe._arguments import shown
from fastpe._config.file import Value, read_number, read_size, table, wrong
from fastpe._config.masks import masks_of
from fastpe._config.model import ModelConfig
from fastpe._config.model_type import row_of
from fastpe._config.refusals import other_file, parameters_of, refusal, unmet, use_of

_widest, _enough = 118, 4096
_placeholders = {
    "seq_len": "the longest length of sequences",
    "positions": "an int, or an array of positions",
    "q": "queries [B, heads, L, D], which are changed",
    "k": "keys [B, heads, L, D], which are changed",
    "position_ids": "of the inputs",
    "x": "embeddings [.., L, d]",
    "table": "learned rows of the checkpoint",
    "ids": "tokens [.., L]",
    "d": "the width of the model",
    "H": "the height of the grid, in patches",
    "W": "its width",
    "L": "the length of the sequence",
    "pixel_mask": "True or 1 for pixels that are not padding",
    "learned": "the learned table of the checkpoint",
    "input_ids": "tokens [B, L]",
    "so_far": "all tokens until now, [B, cached + queries]: input_ids, and behind them those of each step",
    "text_tokens": "how many tokens the text has",
    "frames": "how many frames there are",
    "rope_axes_dim": "of the config",
    "fps": "frames of the video per second",
    "image_grid_thw": "of the processor, [images, 3]",
    "video_grid_thw": "of the processor, [videos, 3]",
    "second_per_grid": "second_per_grid_ts or video_second_per_grid of the processor",
    "grid_thw": "of the processor, [images, 3]",
    "target_sizes": "height and width of each image in patches, [images, 2]",
    "merge_sizes": "of the processor, [images]",
    "feature_lens": "frames of each clip",
    "rope_deltas": "of the call for the prompt",
    "past": "tokens that each row has had, without padding",
    "cached": "the number of keys before these tokens",
    "queries": "the number of these tokens, 1 in a step of decoding",
    "valid": "True or 1 for keys that are not padding, [B, cached + queries]: the attention_mask of a tokenizer",
}


class Need(NamedTuple):
    """One thing that a host of a part needs: what is known of it, and the statements that give it."""

    part: str
    need: str
    says: str
    calls: tuple[str, ...] = ()


class Report(NamedTuple):
    """What is known of a config."""

    title: str
    needs: tuple[Need, ...]
    not_known: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The same for programs."""
        needs = [{**each._asdict(), "calls": [*each.calls]} for each in self.needs]
        return {"title": self.title, "needs": needs, "not_known": [*self.not_known]}

    def text(self) -> str:
        """The same for people."""
        lines = [self.title]
        for part, needs in itertools.groupby(self.needs, lambda each: each.part):
            lines += ["", part]
            for _, need, says, calls in needs:
                lines += [f"  {need:11}{says}", *(f"{'':13}{call}" for call in calls)]
        if self.not_known:
            lines += ["", "not known", *(f"  {each}" for each in self.not_known)]
        code = "\n".join(call for each in self.needs for call in each.calls)
        words = {*re.findall(r"(?<![.\w])\w+\b(?! ?=(?!=))", code)}
        used = [f"  {word}: {what}" for word, what in _placeholders.items() if word in words]
        return "\n".join(lines + (["", "where", *used] if used else []))


def report(config: ModelConfig) -> Report:
    """Everything that is known of `config`."""
    writer = _Writer(config)
    writer.write()
    types = [config.model_type or str(config._json.get("_class_name") or "a file without a model_type")]
    types += [f"{place} {part.model_type or ''}".strip() for place, part in config.parts.items()]
    return Report(": ".join([types[0], ", ".join(types[1:])] if types[1:] else types), *writer.result())


class _Writer:
    """Tries the calls for one config."""

    def __init__(self, config: ModelConfig) -> None:
        self.config = config
        self._needs: list[Need] = []
        self._not_known: list[str] = []

    def result(self) -> tuple[tuple[Need, ...], tuple[str, ...]]:
        return tuple(self._needs), tuple(dict.fromkeys(self._not_known))

    def write(self) -> None:
        config = self.config
        if config.model_type is None and "_class_name" in config._json:
            return self._diffusers()
        if config.model_type is None and (other := other_file(config._json)):
            self._not_known.append(f"the file {other}: give the config.json of the same model")
            return None
        text = config.text
        if text is None and config not in (config.vision, config.audio):
            self._not_known.append(f"text: {_error_of(lambda: config._levels)}")
        if text is not None:
            self._language_model(text, "config", "text" if config.parts else "model")
        for place, part in config.parts.items():
            if part is not text and part not in (config.vision, config.audio) and part.parts.keys() == set():
                self._language_model(part, f"config.parts[{place!r}]", place)
        if config.vision is not None:
            self._vision(config.vision)
        if config.audio is not None:
            self._audio(config.audio)
        return None

    def _add(self, part: str, need: str, says: str, *calls: str) -> None:
        self._needs.append(Need(part, need, says, calls))

    def _try(self, what: str, call: str, **names: Any) -> Any:
        """What a call gives, or the error that it raises, which is told."""
        try:
            return _run(call, self.config, names)
        except (TypeError, ValueError) as error:
            self._not_known.append(f"{what}: {error}")
            return error

    # Text

    def _language_model(self, part: ModelConfig, name: str, title: str) -> None:
        """What a part adds, rotates or multiplies, and how its tokens are numbered."""
        known = part._known_type
        row = row_of(known or "") if known in table()["models"] else None
        if row is not None and not unmet(part, row.requires, row.defaults):
            self._rotation(part, name, title)
        elif known in table()["sinusoids"] and (
            found := _quiet(f"fastpe.PositionalEncoding.from_config({name})", self.config)
        ):
            says = f"{found.d_model} columns, convention {found.convention.name!r}"
            says += (
                f"; embeddings are multiplied by {found.embedding_scale:.6g}" if found.embedding_scale != 1.0 else ""
            )
            call = f"encoding = fastpe.PositionalEncoding.from_config({name})"
            self._add(title, "adds", says, call, "x = encoding.add_(x * encoding.embedding_scale)")
        elif use := use_of(known or "", part._json):
            self._use(part, title, use)
        elif known in table()["layouts"]:
            self._layout(part, title, name)
        elif known in table()["without"]:
            rest = "whether it adds a table, or a bias to the scores, fastpe does not say"
            if found := parameters_of(known or ""):
                self._add(title, "positions", f"nothing is rotated; {found}")
                rest = "what its code makes of positions, fastpe does not say"
            self._not_known.append(f"{title}: a model_type of {part.model_type!r} rotates nothing; {rest}")
        elif name == "config" or known is not None:
            self._not_known.append(f"fastpe.RotaryEmbedding.from_config({name}): {refusal(part, 'rotation')}")
        if name == "config":
            self._ids(title)

    def _rotation(self, part: ModelConfig, name: str, title: str) -> None:
        row, arguments = row_of(part._known_type or ""), ""
        layers = self._layers(name, arguments)
        if getattr(layers, "_fields", {}).get("argument") == "seq_len":
            arguments = ", seq_len=seq_len"
            layers = self._layers(name, arguments)
        if isinstance(layers, Exception):
            self._not_known.append(f"{title}, rotation: {layers}")
            return
        kinds: dict[Any, list[int]] = {}
        for at, layer in enumerate(layers):
            kinds.setdefault(layer, []).append(at)
        sections, mrope = self._sections(title, name, arguments) if row.mrope else "", ""
        if sections:
            sections, mrope = f"; {sections} (without mrope=True: of only the text)", ", mrope=True"
        ids = "np.moveaxis(position_ids, 0, -1)" if mrope else "position_ids"
        calls = [f"rope.rotate_(q, k, seq_axis=-2, positions={ids})"]
        for rope, numbers in kinds.items():
            count = "all layers" if len(layers) == 1 else f"{len(layers)} layers alike"
            which = count if len(kinds) == 1 else _named(numbers)
            if rope is None:
                self._add(title, "layers", f"{which}: not rotated")
                continue
            call = f"fastpe.RotaryEmbedding.from_config({name}{arguments}{mrope})"
            if len(kinds) > 1:
                call = f"fastpe.RotaryEmbedding.layers_from_config({name}{arguments}{mrope})[{numbers[0]}]"
            self._add(title, "rotates", f"{which}: {_said(rope)}{sections}", f"rope = {call}", *calls)
            calls = []
        rope = next(each for each in kinds if each is not None) if {*kinds} - {None} else None
        if rope is not None and not mrope:
            result = "cos, sin" if rope.form in ("halves", "tile", "repeat") else "table"
            says = "in the form of the model's own module; engines want others, see rope.tables"
            self._add(title, "tables", says, f'{result} = rope.tables(positions, form="{rope.form}")')
        self._masks(part, title)
        if row.reorders:
            self._add(
                title, "order", "transformers leaves each pair half of the width apart; rotate_ leaves it in its place"
            )
        if row.query_scale and not isinstance(
            self._try(f"{title}, scores", f"fastpe.query_scale({name}, 1, layer=0)"), Exception
        ):
            says, layer = "queries are multiplied by a number of their position, besides 1 / sqrt(d)", ""
            if "temperature" in row.query_scale:
                says, layer = f"{says}, in layers that are not rotated", ", layer=3"
            self._add(title, "scores", says, f"factors = fastpe.query_scale({name}, positions{layer})")

    def _masks(self, part: ModelConfig, title: str) -> None:
        """Which keys each kind of layer lets a query see."""
        try:
            layers, groups = masks_of(part), self._groups()
        except (TypeError, ValueError) as error:
            self._not_known.append(f"{title}, mask: {error}")
            return
        kinds: dict[str, list[int]] = {}
        for at, given in enumerate(layers):
            if given is not None:
                cached = {"past": "cached"} if given["causal"] else {}
                named = {**given, **cached, "valid": "valid", **({"groups": "groups"} if groups else {})}
                kinds.setdefault(", ".join(f"{name}={value}" for name, value in named.items()), []).append(at)
        also = ", the tokens of an image each other" if groups else ""
        for arguments, numbers in kinds.items():
            which = "all layers" if len(kinds) == 1 and len(numbers) == len(layers) else _named(numbers)
            says = f"{which}: which keys queries see{also}"
            self._add(title, "mask", says, *groups, f"mask = fastpe.attention_mask(queries, {arguments})")
            groups = []

    def _groups(self) -> list[str]:
        """The statements that number the images of a prompt, where their tokens see each other."""
        config, data = self.config, table()["masks"]
        if config._known_type in data["own"]:
            raise wrong(
                config._at("model_type"),
                f"is {config.model_type!r}",
                remedy="its own code says which keys a query sees",
            )
        if config._known_type not in data["images"]:
            return []
        keys = data["images"][config._known_type]
        key = next((key for key in keys if config._json.get(key) is not None), keys[0])
        token = read_size(config._value(key))
        numbered = "np.where(image, np.cumsum(np.diff(image, axis=-1, prepend=False) & image, axis=-1) - 1, -1)"
        return [f"image = so_far == {token}", f"groups = {numbered}"]

    def _layers(self, name: str, arguments: str) -> Any:
        """The embedding of each layer, or the error of both calls; of one layer for all where their number is missing."""
        given = {"seq_len": _enough}
        try:
            return _run(f"fastpe.RotaryEmbedding.layers_from_config({name}{arguments})", self.config, given)
        except (TypeError, ValueError) as error:
            if "the number of layers" not in str(error):
                return error
        try:
            return [_run(f"fastpe.RotaryEmbedding.from_config({name}{arguments})", self.config, given)]
        except (TypeError, ValueError) as error:
            return error

    def _sections(self, title: str, name: str, arguments: str) -> str:
        """How coordinates share the frequencies."""
        call = f"fastpe.RotaryEmbedding.layers_from_config({name}{arguments}, mrope=True)"
        layers = _quiet(call, self.config, seq_len=_enough)
        if layers is None:
            one = call.replace("layers_from_config", "from_config")
            layers = [self._try(f"{title}, among images", one, seq_len=_enough)]
        rope = next((each for each in layers if each is not None), None)
        axes = rope.frequency_axes if isinstance(rope, fastpe.RotaryEmbedding) else None
        counts = np.bincount(axes).tolist() if axes else []
        return f"{', '.join(map(str, counts))} frequencies of time, height, width" if counts else ""

    def _use(self, part: ModelConfig, title: str, use: str) -> None:
        """The calls of a sentence of the tables, with the numbers of this file."""
        calls = _calls_in(use)
        for call in calls:
            use = use.replace(call, "")
        for key in {key for call in calls for key in re.findall(r'config\["(\w+)"\]', call)}:
            if key not in part._json:
                self._not_known.append(f"{title}: {part._place(key)} is missing, a number of {calls[0]}")
                return
            try:
                number = read_number(part._value(key))
            except (TypeError, ValueError) as error:
                self._not_known.append(f"{title}: {error}")
                return
            calls = [call.replace(f'config["{key}"]', repr(number)) for call in calls]
        if isinstance(pad := part._json.get("pad_token_id"), int):
            calls = [call.replace("pad_token_id + 1", str(pad + 1)).replace("pad_token_id", str(pad)) for call in calls]
        says = re.sub(r": ?(?=,|$)", "", use.removeprefix("use ").removeprefix("it adds ").strip(" ,"))
        self._add(title, "adds", says or "what this call gives", *calls)

    def _ids(self, title: str) -> None:
        """How tokens are numbered."""
        call = "fastpe.text_inputs(config, input_ids)"
        try:
            given = _run(call, self.config, {"input_ids": np.zeros((1, 2), np.int64)})
        except (TypeError, ValueError) as error:
            if "takes no position ids" not in str(error):
                self._not_known.append(f"{call}: {error}")
            return
        ids = given["position_ids"]
        if ids.ndim == 2:
            first = int(ids[0, 0])
            self._add(title, "ids", f"[B, L], from {first} on", f"inputs = {call[:-1]}, attention_mask=valid)")
            return
        grids, empty = [], np.zeros((0, 3), np.int64)
        for name in ("image_grid_thw", "video_grid_thw"):
            if _quiet(f"fastpe.text_inputs(config, [[0]], {name}=grids)", self.config, grids=empty):
                grids.append(name)
        if "video_grid_thw" in grids and _names_argument(
            "fastpe.text_inputs(config, [[0]], video_grid_thw=[[2, 4, 4]])", self.config, "second_per_grid"
        ):
            grids.append("second_per_grid")
        says = f"[{len(ids)}, B, L], and rope_deltas [B, 1], which the next calls take"
        with_grids = "".join(f", {name}={name}" for name in grids)
        later = "fastpe.text_inputs(config, input_ids, past=past, rope_deltas=rope_deltas)"
        prompt = f"{call[:-1]}{with_grids}, attention_mask=valid)"
        self._add(title, "ids", says, f"inputs = {prompt}", f"inputs = {later}")

    # Images and sound

    def _vision(self, part: ModelConfig) -> None:
        title = "images"
        for arguments, names in (
            ("grid_thw=grid_thw", {"grid_thw": [[1, 16, 16]]}),
            ("target_sizes=target_sizes", {"target_sizes": [[16, 16]]}),
            ("grid_thw=grid_thw, merge_sizes=merge_sizes", {"grid_thw": [[1, 16, 16]], "merge_sizes": [2]}),
        ):
            call = f"fastpe.vision_inputs(config, {arguments})"
            inputs = _quiet(call, self.config, **names)
            if inputs:
                says = ", ".join(f"{name} {_shape(value)}" for name, value in inputs.items())
                self._add(
                    title, "inputs", f"of an exported graph, here for 16 x 16 patches: {says}", f"inputs = {call}"
                )
                boundaries = [name for name in inputs if re.fullmatch("cu_.*seqlens", name)]
                if len(boundaries) == 2 and "pixel_shuffle_index" not in inputs:  # as Qwen2.5-VL has it
                    says = "layers take x[order] and position_ids[order], in windows; merged[back] has the order of patches again"
                    self._add(title, "order", says, *_window_order)
                if "cu_seqlens" in boundaries:
                    self._encoder_masks(part, title, boundaries)
                break
        self._layout(part, title, "config")
        if not any(each.part == title for each in self._needs) and (use := use_of(part._known_type or "", part._json)):
            self._use(part, title, use)
        if not any(each.part == title for each in self._needs):
            self._not_known.append(f"images: {refusal(part, 'layout')}")

    def _encoder_masks(self, part: ModelConfig, title: str, boundaries: list[str]) -> None:
        """Where the sequences of an encoder's layers begin, as masks."""
        key, alone = "fullatt_block_indexes", len(boundaries) < 2
        full: Any = part._json.get(key)
        if not alone and not (isinstance(full, list) and full and all(type(at) is int for at in full)):
            self._not_known.append(f"{title}, mask: {part._place(key)} has no layers that see whole images")
            return
        for name in boundaries:
            which = "all layers" if alone else "the other layers" if "window" in name else _named(full)
            call = f'mask = fastpe.attention_mask(int(inputs["{name}"][-1]), causal=False, cu_seqlens=inputs["{name}"])'
            self._add(title, "mask", f"{which}: which patches see each other", call)

    def _layout(self, part: ModelConfig, title: str, name: str) -> None:
        """The layout of a rotation by several coordinates."""
        own, data = part._known_type or "", table()["layouts"]
        found, *remarks = next((data[each] for each in (own, f"{own}_vision") if each in data), [""])
        if not found:
            return
        head, width, heads = (
            next((part._json[key] for key in keys if isinstance(part._json.get(key), int)), None) for keys in _sizes
        )
        head = width // heads if head is None and width and heads else head
        layout = fastpe.rotary_layouts[found]
        says = f"by {', '.join(layout.coordinates)}{''.join(f', {each}' for each in remarks)}"
        if found == "gemma4_vision":
            self._add(
                title, "rotates", f"{says}, each half of a head by itself", f'layout = fastpe.rotary_layouts["{found}"]'
            )
            return
        if head is None:
            self._not_known.append(f"{title}: {part._place('head_dim')} is missing, the width of a head")
            return
        self._add(title, "rotates", says, f'rope = fastpe.RotaryEmbedding.from_layout("{found}", {head})')

    def _audio(self, part: ModelConfig) -> None:
        title, known, count = "sound", part._known_type, len(self._needs)
        call = "fastpe.audio_inputs(config, feature_lens=feature_lens)"
        if inputs := _quiet(call, self.config, feature_lens=[1000]):
            says = ", ".join(f"{name} {_shape(value)}" for name, value in inputs.items())
            self._add(title, "inputs", f"of an exported graph, here for 1000 frames: {says}", f"inputs = {call}")
        place = next((f"config.parts[{name!r}]" for name, each in self.config.parts.items() if each is part), "config")
        if known in table()["models"] or known in table()["sinusoids"] or use_of(known or "", part._json):
            self._language_model(part, place, title)
        elif len(self._needs) == count:
            self._not_known.append(f"sound: {refusal(part, 'rotation')}")

    # diffusers

    def _diffusers(self) -> None:
        name = str(self.config._json["_class_name"])
        row = table()["diffusers"].get(name)
        if row is None:
            self._not_known.append(str(refusal(self.config, "layout")))
            return
        if "told" in row:
            self._not_known.append(f"{name}: {row['told']}")
            return
        try:
            call = f'fastpe.RotaryEmbedding.from_layout("{row["layout"]}", {self._arguments(row)})'
        except (TypeError, ValueError) as error:
            self._not_known.append(str(error))
            return
        if isinstance(self._try("rotation", call), Exception):
            return
        layout = fastpe.rotary_layouts[row["layout"]]
        self._add("model", "rotates", f"by {', '.join(layout.coordinates)}", f"rope = {call}")
        says = "; ".join([layout._counting(), *([row["note"]] if "note" in row else [])])
        sizes = {"text_tokens": 32, "frames": 1, "H": 4, "W": 4, "rope_axes_dim": (4, 4), "fps": 24, "layout": layout}
        grid = f"({', '.join(_names_of_axes[axis] for axis in layout._grid)})"
        segments = (f"text_tokens, {grid}", f"{grid}, text_tokens", grid)
        calls = (f"layout.positions({each}{row.get('options', '')})" for each in segments)
        ids = next(call for call in calls if _quiet(call, self.config, **sizes) is not None)
        found = "layout = fastpe.RotaryLayout.from_config(config)"
        self._add("model", "ids", says, found, f"position_ids = {ids}")

    def _arguments(self, row: Mapping[str, Any]) -> str:
        """The columns of a head, the frequencies of each coordinate, and the base."""
        config, widths = self.config, self._numbers(row.get("sections", ""), row.get("default", []), read_size)
        head = config._json.get("attention_head_dim")
        head = row.get("head_dim", sum(widths)) if head is None or "head_dim" not in row else head
        columns = read_size(Value(head, config._at("attention_head_dim")))
        sections, base = [width // 2 for width in widths], row.get("base")
        if "mrope_section" in row:  # the first coordinate has what is left
            _, *others = self._numbers("mrope_section", row["mrope_section"], read_size)
            sections = [columns // 2 - sum(others), *others]
        if "rope_theta" in config._json:
            base = read_number(config._value("rope_theta"))
        if "rope_scale" in row:
            own = columns // 6 * 2
            shares = (columns - 2 * own, own, own)
            scales = self._numbers("rope_scale", row["rope_scale"], read_number)
            if min(shares) < 4 or not 0.0 < min(scales) <= max(scales) <= _largest_scale:
                found = f"is {scales}, for {columns} columns"
                raise wrong(
                    config._at("rope_scale"), found, f"numbers from 0 to {_largest_scale}, for 24 columns or more"
                )
            base = [10000.0 * scale ** (share / (share - 2)) for scale, share in zip(scales, shares, strict=True)]
        named = {"sections": sections or None, "base": base}
        return ", ".join([f"{columns}", *(f"{name}={value}" for name, value in named.items() if value is not None)])

    def _numbers(self, key: str, default: list[Any], read: Callable[[Value], Any]) -> list[Any]:
        """The numbers of a list in the file, or those of its class."""
        written = default if self.config._json.get(key) is None else self.config._json[key]
        if not isinstance(written, list) or len(written) != len(default):
            expected, kind = f"a list of {len(default)} numbers", ValueError if isinstance(written, list) else TypeError
            raise wrong(self.config._at(key), f"is {shown(written)}", expected, kind=kind)
        return [read(Value(each, self.config._at(key, at))) for at, each in enumerate(written)]


_names_of_axes = {"time": "frames", "height": "H", "width": "W"}
_window_order = (
    'patches = np.arange(len(inputs["position_ids"])).reshape(len(inputs["window_index"]), -1)',
    'order = patches[inputs["window_index"]].ravel()',
    'back = np.argsort(inputs["window_index"])',
)
_largest_scale = 1000
_sizes = (
    ("head_dim", "attention_head_dim"),
    ("hidden_size", "embed_dim", "d_model"),
    ("num_attention_heads", "num_heads"),
)


def _run(call: str, config: ModelConfig, names: Mapping[str, Any]) -> Any:
    """What a call gives. Of a file it has numbers that were read, and reprs, so that no file says what is run."""
    return eval(call, {"fastpe": fastpe, "np": np, "config": config, **names})


def _quiet(call: str, config: ModelConfig, **names: Any) -> Any:
    """What a call gives, or None where it is refused."""
    try:
        return _run(call, config, names)
    except (TypeError, ValueError):
        return None


def _error_of(call: Callable[[], Any]) -> str:
    try:
        call()
    except ValueError as error:
        return str(error)
    return ""


def _names_argument(call: str, config: ModelConfig, argument: str) -> bool:
    try:
        _run(call, config, {})
    except (TypeError, ValueError) as error:
        return bool(getattr(error, "_fields", {}).get("argument") == argument)
    return False


def _said(rope: fastpe.RotaryEmbedding) -> str:
    """How an embedding rotates."""
    pairs = "neighbours" if rope.interleaved else "halves apart"
    part = f" of {rope.head_dim}" if rope.head_dim != rope.rotary_dim else ""
    base = "" if rope.base is None else f", base {rope.base:,.15g}"
    scaling = rope.scaling or {}
    kind = scaling.get("rope_type", "default")
    factor = f" by {scaling['factor']:g}" if "factor" in scaling else ""
    scaled = "" if kind == "default" else f", {kind}{factor}"
    return (
        f"{rope.rotary_dim}{part} columns, {pairs}{base}{scaled}{', by the negative angle' if rope.conjugate else ''}"
    )


def _named(layers: list[int]) -> str:
    """The layers of these numbers, in few words."""
    steps = {b - a for a, b in itertools.pairwise(layers)}
    if len(layers) > 2 and len(steps) == 1 and steps != {1}:
        return f"layers {layers[0]}, {layers[1]}, .. {layers[-1]}"
    groups = itertools.groupby(enumerate(layers), lambda each: each[1] - each[0])
    runs = [[number for _, number in run] for _, run in groups]
    words = [f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs]
    some = ", ".join(words if len(words) < 6 else [*words[:3], "..", words[-1]])
    return f"layer{'s' * (len(layers) > 1)} {some}"


def _shape(value: Any) -> str:
    """The dtype and the shape of an input."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_shape, value))})"
    return f"{value.dtype} {[*value.shape]}" if isinstance(value, np.ndarray) else type(value).__name__


def _calls_in(text: str) -> list[str]:
    """The calls of fastpe in a sentence, with what is called of their results."""
    calls = []
    for match in re.finditer(r"(learned\[)?fastpe\.", text):
        end, depth = match.start(), 0
        while depth or text[end] not in ")]" or text[end + 1 : end + 2] in ("[", "."):
            end += 1
            depth += (text[end] in "([") - (text[end] in ")]")
        calls.append(text[match.start() : end + 1])
    return calls
