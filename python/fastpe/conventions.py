# SPDX-License-Identifier: BSD-3-Clause
"""How systems in use define their sinusoidal encoding, by name.

With ``n`` frequencies,

    w_k = freq_scale * base ** (-k / (n - shift)),    k = 0 .. n - 1
    PE[p] = alpha * layout(sin(p * w), cos(p * w))

A preset is named after an implementation, never after a family of models: ports of one model disagree with each other.
``print(fastpe.conventions)`` lists them, and printing one says which systems it serves and where its formula stands.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, Literal, Protocol, TypeVar

__all__ = ["Convention", "Registry", "conventions", "find"]


@dataclasses.dataclass(frozen=True)
class Convention:
    """The knobs of one sinusoidal encoding.

    Attributes
    ----------
    name : str
        What it is called in `conventions`.
    layout : {"interleaved", "concatenated"}
        sin, cos, sin, cos .., or all of one and then all of the other.
    cosine_first : bool
        Whether cosines come before sines.
    shift : float
        Subtracted from the number of frequencies in the exponent's denominator.
    denominator : float, optional
        The exponent's denominator itself, whatever the number of frequencies.
    odd : {"natural", "pad", "round_up", "error"}
        An odd ``d_model``: "natural" keeps the last sine (the first function, to be exact) and drops its partner, with
        ``d_model / 2`` in the denominator; "pad" leaves the last column zero; "round_up" computes the next even width
        and drops its last column; "error" refuses.
    base, freq_scale : float
        As in the formula above; radians per position.
    first_position : int
        What counted positions start from.
    alpha : float or {"1/sqrt(d)", "sqrt(2/d)"}
        What the encoding is multiplied with.
    serves : tuple of str
        Systems that use it. Not compared.
    source : str
        Where the formula was read: repository, file and commit. Not compared.

    Examples
    --------
    >>> import dataclasses, fastpe
    >>> slow = dataclasses.replace(fastpe.conventions["vaswani"], base=1e6)
    >>> fastpe.encode(3, 8, convention=slow).shape
    (3, 8)
    >>> print(fastpe.conventions["opennmt-tf"])
    opennmt-tf: [sin | cos], w_k = 10000^(-k / (n - 1)), n = d / 2
        positions from 1; odd d: error
        serves: OpenNMT-tf SinusoidalPositionEncoder; CTranslate2 SinusoidalPositionEncoder
        source: OpenNMT/CTranslate2:src/layers/common.cc @0d8bcd36
    """

    name: str
    layout: Literal["interleaved", "concatenated"] = "interleaved"
    cosine_first: bool = False
    shift: float = 0.0
    denominator: float | None = None
    odd: Literal["natural", "pad", "round_up", "error"] = "natural"
    base: float = 10000.0
    freq_scale: float = 1.0
    first_position: int = 0
    alpha: float | Literal["1/sqrt(d)", "sqrt(2/d)"] = 1.0
    serves: tuple[str, ...] = dataclasses.field(default=(), compare=False, repr=False)
    source: str = dataclasses.field(default="", compare=False, repr=False)

    def frequency_count(self, d_model: int) -> int:
        """Number of frequencies in an encoding this wide."""
        if d_model % 2 == 0 or self.odd == "pad":
            return d_model // 2
        if self.odd == "error":
            raise ValueError(
                f"d_model is {d_model}, expected an even number: convention {self.name!r} defines no odd width; "
                f"choose another convention or replace its odd= field"
            )
        return d_model // 2 + 1

    def exponent_denominator(self, d_model: int) -> float:
        """The denominator ``n - shift`` of the exponent."""
        if self.denominator is not None:
            return self.denominator
        count = self.frequency_count(d_model)
        # A single frequency has exponent 0, whatever it is divided by.
        if count < 2:
            return 1.0
        return (d_model / 2 if self.odd == "natural" else float(count)) - self.shift

    def output_scale(self, d_model: int) -> float:
        """`alpha` as a number."""
        if self.alpha == "1/sqrt(d)":
            return 1.0 / math.sqrt(d_model)
        if self.alpha == "sqrt(2/d)":
            return math.sqrt(2.0 / d_model)
        return float(self.alpha)

    @property
    def formula(self) -> str:
        """Layout and frequencies in one line.

        Examples
        --------
        >>> import fastpe
        >>> fastpe.conventions["timestep"].formula
        '[cos | sin], w_k = 10000^(-k / n), n = floor(d / 2)'
        """
        pair = ("cos", "sin") if self.cosine_first else ("sin", "cos")
        order = "{}, {}, {}, {}, ..".format(*pair, *pair) if self.layout == "interleaved" else "[{} | {}]".format(*pair)
        if self.alpha != 1.0:
            order = f"{self.alpha} * ({order})" if self.layout == "interleaved" else f"{self.alpha} * {order}"
        scale = "" if self.freq_scale == 1.0 else f"{self.freq_scale:g} * "
        if self.denominator is not None:
            exponent, n = ("-k" if self.denominator == 1.0 else f"-k / {self.denominator:g}"), ""
        else:
            exponent = f"(-k / (n - {self.shift:g}))" if self.shift else "(-k / n)"
            count = {"pad": "floor(d / 2)", "round_up": "ceil(d / 2)"}.get(self.odd, "d / 2")
            n = f", n = {count}"
        return f"{order}, w_k = {scale}{self.base:g}^{exponent}{n}"

    def __getstate__(self) -> dict[str, Any]:
        """Fields alone: descriptions are not worth their bytes in a pickle."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def __str__(self) -> str:
        """Describe the formula, the systems it serves and its source."""
        lines = [
            f"{self.name}: {self.formula}",
            f"    positions from {self.first_position}; odd d: {self.odd}",
        ]
        preset = conventions.get(self.name)
        if preset is not None and preset != self:
            changed = [
                f"{field.name}={getattr(self, field.name)!r}"
                for field in dataclasses.fields(self)
                if field.compare and getattr(self, field.name) != getattr(preset, field.name)
            ]
            lines.append(f"    changed from the preset: {', '.join(changed)}")
        else:
            lines += [f"    serves: {'; '.join(self.serves)}"] if self.serves else []
            lines += [f"    source: {self.source}"] if self.source else []
        return "\n".join(lines)


class _Named(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def serves(self) -> tuple[str, ...]: ...
    @property
    def formula(self) -> str: ...


_Preset = TypeVar("_Preset", bound=_Named)


class Registry(Mapping[str, _Preset], Generic[_Preset]):
    """Presets by name, read-only; printed as one line each.

    Examples
    --------
    >>> import fastpe
    >>> fastpe.conventions["fairseq"].first_position
    2
    >>> "concat" in fastpe.conventions
    True
    """

    def __init__(self, presets: Iterable[_Preset]) -> None:
        self._presets = {preset.name: preset for preset in presets}

    def __getitem__(self, name: str) -> _Preset:
        """Look a preset up by its exact name."""
        return self._presets[name]

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

    def find(self, convention: Any, kind: type[_Preset]) -> _Preset:
        """A preset from its name, or `convention` itself."""
        if isinstance(convention, kind):
            return convention
        if not isinstance(convention, str):
            raise TypeError(f"convention is {convention!r}, expected a name or a fastpe.{kind.__name__}")
        if convention in self:
            return self[convention]
        raise ValueError(f"convention is {convention!r}, which is not known; {self._hint(convention)}")

    def _hint(self, name: str) -> str:
        serving = [
            f"{preset.name!r} serves {system}"
            for preset in self.values()
            for system in preset.serves
            if len(name) > 2 and name.lower() in system.lower()
        ]
        if serving:
            return "; ".join(serving)
        import difflib  # costs more than the rest of the package's import, and only errors need it

        close = difflib.get_close_matches(name.lower(), self, n=1)
        return f"did you mean {close[0]!r}?" if close else f"expected one of {', '.join(self)}"


conventions = Registry(
    (
        Convention(
            "vaswani",
            serves=(
                "PyTorch tutorial and word_language_model PositionalEncoding",
                "The Annotated Transformer",
                "fairseq PositionalEncoding",
                "ESPnet PositionalEncoding",
                "WeNet PositionalEncoding",
                "OpenNMT-py SinusoidalInterleaved",
                "XLM and transformers XLM",
                "keras-hub SinePositionEncoding",
                "flax nlp_seq example",
                "diffusers SinusoidalPositionalEmbedding",
            ),
            source="pytorch/tutorials:beginner_source/transformer_tutorial.py @00109f5a",
        ),
        Convention(
            "concat",
            layout="concatenated",
            serves=(
                "transformers Marian and Pegasus",
                "transformers CTRL",
                "Sockeye",
                "CTranslate2 models converted from marian-nmt",
            ),
            source="huggingface/transformers:models/marian/modeling_marian.py @00b676f8",
        ),
        Convention(
            "x-transformers",
            layout="concatenated",
            odd="error",
            alpha="1/sqrt(d)",
            serves=("x-transformers ScaledSinusoidalEmbedding, at its initial scale",),
            source="lucidrains/x-transformers:x_transformers/x_transformers.py @9252ed7",
        ),
        Convention(
            "tensor2tensor",
            layout="concatenated",
            shift=1.0,
            odd="pad",
            serves=(
                "tensor2tensor get_timing_signal_1d",
                "TensorFlow Model Garden RelativePositionEmbedding, even d",
                "openai/whisper, transformers Whisper and whisper.cpp, even d",
                "marian-nmt, even d",
                "flax lm1b and wmt examples",
                "OpenNMT-py SinusoidalConcat, even d",
                "PyG PositionalEncoding, even d",
            ),
            source="tensorflow/tensor2tensor:layers/common_attention.py @bafdc1b6",
        ),
        Convention(
            "fairseq",
            layout="concatenated",
            shift=1.0,
            odd="pad",
            first_position=2,
            serves=(
                "fairseq SinusoidalPositionalEmbedding",
                "transformers M2M100 and NLLB-MoE",
                "transformers Speech2Text",
            ),
            source="facebookresearch/fairseq:modules/sinusoidal_positional_embedding.py @3d262bb2",
        ),
        Convention(
            "opennmt-tf",
            layout="concatenated",
            shift=1.0,
            odd="error",
            first_position=1,
            serves=("OpenNMT-tf SinusoidalPositionEncoder", "CTranslate2 SinusoidalPositionEncoder"),
            source="OpenNMT/CTranslate2:src/layers/common.cc @0d8bcd36",
        ),
        Convention(
            "musicgen",
            layout="concatenated",
            cosine_first=True,
            shift=1.0,
            odd="pad",
            serves=("transformers MusicGen",),
            source="huggingface/transformers:models/musicgen/modeling_musicgen.py @00363c36",
        ),
        Convention(
            "ddpm",
            layout="concatenated",
            shift=1.0,
            odd="pad",
            serves=("DDPM", "diffusers get_timestep_embedding, its defaults"),
            source="huggingface/diffusers:models/embeddings.py @58eb52c0",
        ),
        Convention(
            "timestep",
            layout="concatenated",
            cosine_first=True,
            odd="pad",
            serves=(
                "GLIDE timestep_embedding",
                "DiT timestep_embedding",
                "ggml_timestep_embedding",
                "diffusers get_timestep_embedding, as its Stable Diffusion UNets call it",
                "keras-hub Flux, with freq_scale=1000",
            ),
            source="openai/glide-text2im:glide_text2im/nn.py",
        ),
        Convention(
            "mlx",
            layout="concatenated",
            shift=1.0,
            odd="error",
            alpha="sqrt(2/d)",
            serves=("mlx.nn.SinusoidalPositionalEncoding",),
            source="ml-explore/mlx:python/mlx/nn/layers/positional_encoding.py @846d1762",
        ),
        Convention(
            "depthcharge",
            layout="concatenated",
            shift=1.0,
            odd="error",
            base=1e7,
            freq_scale=2.0 * math.pi / 0.001,
            serves=("depthcharge FloatEncoder, even d, wavelengths 0.001 to 10000",),
            source="wfondrie/depthcharge:depthcharge/encoders/sinusoidal.py",
        ),
        Convention(
            "tatp22",
            odd="round_up",
            serves=("positional-encodings PositionalEncoding1D (tatp22/multidim-positional-encoding)",),
            source="tatp22/multidim-positional-encoding:positional_encodings/torch_encodings.py @efeb8d9",
        ),
        Convention(
            "nerf",
            odd="error",
            base=0.5,
            denominator=1.0,
            serves=("NeRF positional encoding of one coordinate, log_sampling",),
            source="bmild/nerf:run_nerf_helpers.py",
        ),
        Convention(
            "doubled_exponent",
            base=1e8,
            serves=("the NumPy loop that divides by 10000 ** (2 * i / d) with i = 0, 2, 4, ..",),
            source="w_k = 10000^(-4k / d): the 2 stands in the loop's step and in the exponent",
        ),
    )
)

for _preset in conventions.values():
    # What help in notebooks and editors shows of a preset.
    object.__setattr__(_preset, "__doc__", str(_preset))


def find(convention: str | Convention) -> Convention:
    """A convention from its name, or itself."""
    return conventions.find(convention, Convention)
