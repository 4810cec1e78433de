# SPDX-License-Identifier: BSD-3-Clause
"""The rotary embedding object."""

# Annotations are evaluated here, where their names are known: the public classes say that they are of `fastpe`.

import copy
import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from fastpe import _core
from fastpe._arguments import flag, given_frequencies, integer, leave_out, names_keywords, number, numbers
from fastpe._arrays import ArrayLike
from fastpe._config.model import ModelConfig
from fastpe._encoder_base import EncoderBase
from fastpe._errors import refused
from fastpe._layouts.layout import RotaryLayout
from fastpe._names import RotaryLayoutName, TableForm
from fastpe._rotary.scaling import Scaling, of_null, read_rotary_dim, read_scaling, types_by_length

# Arguments that are attributes, and fields of the core, by the same names.
_as_given = ("rotary_dim", "interleaved", "conjugate", "max_len")


# rotate_, rotate, shift_, shift, tables and warm_up are inherited from csrc/bindings/rotary.cpp, with the docstrings of
# _docs.py.
class RotaryEmbedding(EncoderBase, _core.RotaryEmbedding):
    """A rotary position embedding: an immutable plan for one width, one pairing and one set of frequencies.

    It is thread-safe, hashable by value, and picklable. `max_len` changes the speed, and never the results. To make one
    takes longer than to rotate a token by it: make it once, for all layers and steps that are alike.

    Parameters
    ----------
    rotary_dim : int
        Columns that are rotated, d: even, from 2 to 2**20. There are d/2 frequencies.
    interleaved : bool
        Which columns are pairs: (2k, 2k + 1) if True, as in GPT-J, Meta's Llama and GGUF files; (k, k + d/2) if False, as
        in GPT-NeoX and the Llama of Hugging Face. It has no default: with the wrong one, the model is wrong silently.
    base : float, optional
        The base of the frequencies ``base**(-2k / d)``, at least 1; by default 10000.
    frequencies : array_like of float64 [d/2], optional
        The frequencies themselves, in radians per position, instead of ``base``, ``scaling`` and ``seq_len``.
    scaling : mapping, optional
        ``rope_parameters`` or ``rope_scaling`` of a config.json: ``rope_type`` (or ``type``, where it is missing) and the
        keys of that type, listed below. ``rope_theta`` is the base. A value of None counts as a missing key, but as False for
        ``truncate``, as in transformers.
    seq_len : int, optional
        Length of the sequences, for "dynamic" with a factor and for "longrope"; ignored elsewhere.
    attention_factor : float, optional
        The factor of cosines and sines, finite and positive; by default that of the scaling, or else 1.
    frequency_axes : array_like of int [d/2], optional
        Which coordinate of a position each frequency belongs to, if positions have several, as in images and videos.
    conjugate : bool, optional
        Whether to rotate by the negative angle, with the same tables.
    head_dim : int, optional
        Columns of a head, if only a part of them is rotated; by default, `rotary_dim`. Rotations take arrays whose last
        axis is a head, or exactly the rotated part of one, and refuse others, such as heads that were not taken apart.
    max_len : int, optional
        As in `PositionalEncoding`.

    Attributes
    ----------
    rotary_dim, interleaved, base, seq_len, frequency_axes, conjugate, head_dim, max_len
        The arguments, with the values that count where none were given. `base` is None if frequencies were given.
    arguments : dict
        All arguments: ``RotaryEmbedding(**rope.arguments) == rope``.
    scaling : dict or None
        A copy of the mapping that was given.
    attention_factor : float
        The factor by which cosines and sines are multiplied.
    form : str
        The form of the tables that the model's own module makes, for embeddings of a config or a layout; else "halves".
        ``tables(positions, form=rope.form)`` gives it.

    Raises
    ------
    ValueError
        For an odd width, arguments that exclude each other, an unknown type of scaling, a key that the type does not
        know, a key or a `seq_len` that it needs and does not have, a number out of its range, two bases, or frequencies
        other than 0 whose magnitude is below ``2**-96``, or ``2**45`` and more.
    TypeError
        For an argument of another type.

    Notes
    -----
    Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021, section 3.4. Without a scaling the
    frequencies are the ideal ones, kept with more digits than float64 has. Those of a scaling are the values of its formula,
    each rounded to float64 once, so they have the same bits on every machine; `frequencies` are taken as they are.

    The types of a scaling are those of transformers (``modeling_rope_utils.py``), and "ntk", the formula in the code of YaRN's
    authors. Numbers of a scaling are from 2**-31 to 2**31. With ``d`` for `rotary_dim`, ``w_k = base**(-2k / d)``, ``L0`` for
    ``original_max_position_embeddings`` and ``M`` for ``max_position_embeddings``:

    * "default": ``w_k``.
    * "linear": ``w_k / factor``.
    * "ntk": ``w_k`` of the base ``base * factor**(d / (d - 2))``.
    * "dynamic": as "ntk" with ``factor * L / M - (factor - 1)`` for its factor, where ``L`` is the greater of `seq_len`
      and ``M``. ``L0`` may stand for ``M``. Or as "ntk" with ``alpha`` for its factor.
    * "yarn": ``w_k / factor`` for frequencies that turn less than ``beta_slow`` times in ``L0`` positions, ``w_k`` for
      those that turn more than ``beta_fast`` times, and a blend between. Keys: ``L0``; ``factor``, or ``M`` for a
      factor of ``M / L0``; and, if need be, ``beta_fast`` (32), ``beta_slow`` (1), ``truncate`` (True), ``mscale``,
      ``mscale_all_dim``, ``attention_factor``.
    * "longrope": ``w_k / long_factor[k]`` where ``seq_len > L0``, else ``w_k / short_factor[k]``. Keys: these
      three, and one of ``factor``, ``M`` (for a factor of ``M / L0``) and ``attention_factor``.
    * "llama3": ``w_k / factor`` for frequencies that turn less than ``low_freq_factor`` times in ``L0`` positions,
      ``w_k`` for those that turn more than ``high_freq_factor`` times, and a blend between.
    * "proportional": `rotary_dim` is the whole head; ``w_k / factor`` for the first
      ``int(partial_rotary_factor * d // 2)``, then 0; both keys are 1 where they are missing. All other types ignore the
      share: `rotary_dim` says how many columns are rotated.

    Only "yarn" and "longrope" have an attention factor other than 1. Other systems use some of these words for other numbers;
    the page "Scale for long contexts" lists them.

    Examples
    --------
    >>> import numpy as np, fastpe
    >>> rope = fastpe.RotaryEmbedding(8, interleaved=False, max_len=512)
    >>> q = np.ones((1, 4, 3, 8), np.float32)  # [B, heads, L, D]
    >>> k = np.ones((1, 2, 3, 8), np.float32)
    >>> rotated = rope.rotate_(q, k, offset=10, seq_axis=-2)
    >>> cos, sin = rope.tables([10, 11, 12])
    >>> bool((k[0, 0, :, :4] == cos - sin).all())
    True
    >>> yarn = {"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 4.0, "original_max_position_embeddings": 32768}
    >>> rope = fastpe.RotaryEmbedding(128, interleaved=False, scaling=yarn)
    >>> rope.frequencies[[0, 32, 63]], rope.attention_factor
    (array([1.00000000e+00, 6.02941176e-04, 3.10234440e-07]), 1.138629436111989)
    >>> fastpe.RotaryEmbedding(64, interleaved=False, scaling={"rope_type": "linear", "facter": 4.0})
    Traceback (most recent call last):
    ValueError: scaling["facter"] is 4.0, a key that "linear" does not know; did you mean "factor"?
    """

    _compared = ("rotary_dim", "interleaved", "conjugate", "attention_factor", "frequency_axes", "head_dim", "_scaling")
    _defaults: ClassVar = {"conjugate": False}
    __slots__ = ("__weakref__", "_arguments", "base", "form", "max_len", "seq_len", *_compared)

    rotary_dim: int
    interleaved: bool
    attention_factor: float
    frequency_axes: tuple[int, ...] | None
    conjugate: bool
    form: TableForm
    head_dim: int
    base: float | None
    seq_len: int | None
    max_len: int | None
    _scaling: Scaling | tuple[float, ...]

    @names_keywords
    def __init__(
        self,
        rotary_dim: int,
        *,
        interleaved: bool,
        base: float | None = None,
        frequencies: ArrayLike | None = None,
        scaling: Mapping[str, Any] | None = None,
        seq_len: int | None = None,
        attention_factor: float | None = None,
        frequency_axes: ArrayLike | None = None,
        conjugate: bool = False,
        head_dim: int | None = None,
        max_len: int | None = None,
    ) -> None:
        self._require_new()
        width = read_rotary_dim(rotary_dim)
        factor = None if attention_factor is None else number("attention_factor", attention_factor, above_zero=True)
        chosen: Scaling | tuple[float, ...]
        if frequencies is not None:
            leave_out(
                "frequencies", "they replace both the base and its scaling", base=base, scaling=scaling, seq_len=seq_len
            )
            chosen = given = given_frequencies("frequencies", frequencies, width // 2)
            ideal_base = 1.0
        else:
            chosen = read_scaling(width, base=base, scaling=scaling, seq_len=seq_len)
            seq_len = int(seq_len) if seq_len is not None and chosen.rope_type in types_by_length else None
            given, ideal_base = chosen.radians, chosen.base
            factor = chosen.attention_factor if factor is None else factor
        factor = 1.0 if factor is None else factor
        coordinates = None if frequency_axes is None else _given_axes(frequency_axes, width // 2)
        head = width if head_dim is None else integer("head_dim", head_dim, width)
        # What a copy is made of, and what the repr shows: as given, but for what has no effect.
        arguments: dict[str, Any] = {
            "rotary_dim": width,
            "interleaved": flag("interleaved", interleaved),
            "base": None if base is None else float(base),
            "frequencies": None if frequencies is None else list(given),
            "scaling": None if scaling is None else _copied(scaling),
            "seq_len": seq_len,
            "attention_factor": None if attention_factor is None else factor,
            "frequency_axes": None if coordinates is None else list(coordinates),
            "conjugate": flag("conjugate", conjugate),
            "head_dim": None if head == width else head,
            "max_len": None if max_len is None else integer("max_len", max_len, 0),
        }
        same = {name: arguments[name] for name in _as_given}
        super().__init__(
            base=ideal_base,
            frequencies=given,
            attention_factor=factor,
            frequency_axes=coordinates or (),
            head_dim=head,
            **same,
        )
        self._set(
            attention_factor=factor,
            frequency_axes=coordinates,
            head_dim=head,
            base=None if frequencies is not None else ideal_base,
            seq_len=seq_len,
            form="halves",
            _scaling=chosen,
            _arguments=arguments,
            **same,
        )

    @property
    def scaling(self) -> dict[str, Any] | None:
        """The mapping that was given, a copy."""
        scaling: dict[str, Any] | None = copy.deepcopy(self._arguments["scaling"])
        return scaling

    @classmethod
    def _of_model(cls, *, form: str, **arguments: Any) -> "RotaryEmbedding":
        """An embedding that also knows the form of the tables of its model's own module."""
        result = cls(**arguments)
        result._set(form=form)
        return result

    def __getstate__(self) -> Any:
        """What it was made with, and the form of its model's tables."""
        return self._arguments, self.form

    def __setstate__(self, state: Any) -> None:
        """Make the embedding of a copy."""
        arguments, form = state
        super().__setstate__(arguments)
        self._set(form=form)

    @classmethod
    @names_keywords
    def from_config(
        cls,
        config: Mapping[str, Any] | str | os.PathLike[str] | ModelConfig,
        *,
        layer_type: str | None = None,
        seq_len: int | None = None,
        interleaved: bool | None = None,
        mrope: bool = False,
        base: float | None = None,
        scaling: Mapping[str, Any] | None = None,
        rotary_dim: int | None = None,
        max_len: int | None = None,
    ) -> "RotaryEmbedding":
        """Make the embedding of a model's layers from its config.json, if they are alike.

        Its tables are those of the model's own module in transformers, whose form is its attribute `form`, and its
        rotation is that of the model's attention. Nothing is guessed: what neither the config nor the table of model
        types says is an error.

        Parameters
        ----------
        config : mapping, path or ModelConfig
            The dictionary of a config.json, or the path of this file. If a model also has parts for images or sound,
            its ``text_config`` is read.
        layer_type : str, optional
            The type of the layers that are meant, such as "full_attention" and "sliding_attention". These are alike;
            without it, all layers are.
        seq_len : int, optional
            Length of the sequences, for the scalings that depend on it; ignored elsewhere.
        interleaved : bool, optional
            Which columns are pairs, as in the constructor. By default those of the model in transformers; a GGUF file
            of Llama has the others. The argument is needed if ``model_type`` is not known.
        mrope : bool, optional
            Whether positions have three coordinates, time, height and width, among which the model's ``mrope_section``
            divides the frequencies. By default they have one coordinate, which is the same for text.
        base : float, optional
            The base, whatever the config says of it.
        scaling : mapping, optional
            The scaling as in the constructor, whatever the config says of one; ``{"rope_type": "default"}`` for none.
        rotary_dim : int, optional
            Columns that are rotated, whatever the config says of them.
        max_len : int, optional
            As in the constructor.

        Returns
        -------
        RotaryEmbedding
            Its repr shows the arguments that the config stands for.

        Raises
        ------
        ValueError
            For a ``model_type`` that is not known if `interleaved` is missing, a model without rotary embedding, layers
            that are not alike, of which some may not be rotated, a layer type that is not known or not rotated, a missing
            base or width, a key that concerns rotation and is not read in such models, and what the constructor refuses.
        TypeError
            For a value of another type.
        OSError
            For a file that cannot be read.

        Notes
        -----
        Keys mean what they mean in transformers 5.24 (``modeling_rope_utils.py``, ``models/*/configuration_*.py``), and
        the defaults of missing keys are those of the model's configuration class there. The page "Read a config.json"
        says which keys other systems read in another way. Every key whose name concerns rotation is
        read, known to change nothing, or refused with the arguments that take its place.

        If a model rotates the tail of a head, as in multi-head latent attention, ``rotary_dim`` is the width of the
        tail, and the array to rotate is a slice. In transformers, some of these models, such as DeepSeek V3, take
        neighbours as pairs and write the rotated pair half of the width apart. `rotate_` leaves every column in its
        place.

        Examples
        --------
        >>> import fastpe
        >>> config = {"model_type": "qwen3", "head_dim": 128, "rope_theta": 1000000, "rope_scaling": None}
        >>> fastpe.RotaryEmbedding.from_config(config)
        RotaryEmbedding(128, interleaved=False, base=1000000.0)
        >>> gemma = {"model_type": "gemma3_text", "head_dim": 256, "rope_theta": 1000000, "rope_local_base_freq": 10000}
        >>> fastpe.RotaryEmbedding.from_config(gemma, layer_type="sliding_attention").attention_factor
        1.0
        >>> fastpe.RotaryEmbedding.from_config(gemma)
        Traceback (most recent call last):
        ValueError: layer_type was not given, and the layers of this model have rotations of their own; use \
RotaryEmbedding.layers_from_config(config), which has an entry for each layer, or give layer_type=, one of \
'sliding_attention', 'full_attention'
        """
        from fastpe._config.layers import read_layer  # most programs that rotate never need it

        given = {"interleaved": interleaved, "base": base, "scaling": scaling, "rotary_dim": rotary_dim}
        given |= {"seq_len": seq_len, "mrope": mrope}
        return cls._of_model(**read_layer(config, layer_type, given), max_len=max_len)

    @classmethod
    @names_keywords
    def layers_from_config(
        cls,
        config: Mapping[str, Any] | str | os.PathLike[str] | ModelConfig,
        *,
        seq_len: int | None = None,
        interleaved: bool | None = None,
        mrope: bool = False,
        base: float | None = None,
        scaling: Mapping[str, Any] | None = None,
        rotary_dim: int | None = None,
        max_len: int | None = None,
    ) -> "tuple[RotaryEmbedding | None, ...]":
        """Make the embeddings of a model's layers from its config.json: one for each layer, in their order.

        Parameters
        ----------
        config, seq_len, interleaved, mrope, base, scaling, rotary_dim, max_len
            As in `from_config`. What is given counts for every layer that is rotated.

        Returns
        -------
        tuple of RotaryEmbedding or None
            None where the model does not rotate the layer. Layers that are rotated alike share one object.

        Raises
        ------
        ValueError
            For a config without the number of its layers, a list with too few values for them, a type of layers that is
            not known, and what `from_config` refuses.
        TypeError
            For a value of another type.
        OSError
            For a file that cannot be read.

        Notes
        -----
        Which layers are rotated follows from the file's lists, such as ``layer_types`` and ``no_rope_layers``, and where
        it has none, from the rule of the model's configuration class (transformers 5.24,
        ``models/*/configuration_*.py``).

        Examples
        --------
        >>> import fastpe
        >>> config = {"model_type": "smollm3", "num_hidden_layers": 4, "head_dim": 128}
        >>> layers = fastpe.RotaryEmbedding.layers_from_config(config)
        >>> [layer is not None for layer in layers]
        [True, True, True, False]
        >>> layers[0] is layers[2]
        True
        """
        from fastpe._config.layers import read_layers

        given = {"interleaved": interleaved, "base": base, "scaling": scaling, "rotary_dim": rotary_dim}
        layers = read_layers(config, given | {"seq_len": seq_len, "mrope": mrope})
        different = {id(arguments): arguments for arguments in layers if arguments is not None}
        made = {at: cls._of_model(**arguments, max_len=max_len) for at, arguments in different.items()}
        shared: dict[RotaryEmbedding, RotaryEmbedding] = {}
        made = {at: shared.setdefault(each, each) for at, each in made.items()}
        return tuple(made.get(id(arguments)) for arguments in layers)

    @classmethod
    @names_keywords
    def from_layout(
        cls,
        layout: RotaryLayoutName | RotaryLayout,
        head_dim: int,
        *,
        base: float | Sequence[float] | None = None,
        sections: Sequence[int] | None = None,
        max_len: int | None = None,
    ) -> "RotaryEmbedding":
        """Make the embedding of an image, video or diffusion model, whose positions have several coordinates.

        Parameters
        ----------
        layout : str or RotaryLayout
            One of `fastpe.rotary_layouts`, or its name.
        head_dim : int
            Columns of a head.
        base : float or sequence of float, optional
            The base of your model, if it is not that of the layout, or one for each coordinate, where each has a sequence
            of frequencies of its own. Layouts of text need it, since models differ. For "timm_pixel", it is the resolution
            in pixels, ``max_res``.
        sections : sequence of int, optional
            How many frequencies each coordinate has in your model, as in ``mrope_section``. They are half of the columns
            that ``axes_dim`` and ``axes_dims_rope`` count.
        max_len : int, optional
            As in the constructor.

        Returns
        -------
        RotaryEmbedding
            Its positions have an axis of coordinates at their end, in the order of the layout's `coordinates`, as
            `RotaryLayout.positions` gives them. Its `form` is that of the tables of the project's own module.

        Raises
        ------
        ValueError
            For an unknown layout, a width that the coordinates cannot share, a missing base, other numbers of sections,
            and "gemma4_vision", whose halves of a head are rotated one by one.
        TypeError
            For a value of another type.

        Notes
        -----
        Frequencies over all columns are the ideal ones, as in the constructor. Where each coordinate has a sequence of
        its own, they are float64 numbers that are taken as they are.

        Examples
        --------
        >>> import numpy as np, fastpe
        >>> rope = fastpe.RotaryEmbedding.from_layout("wan", 128)
        >>> ids = fastpe.rotary_layouts["wan"].positions((2, 3, 4))  # times, heights and widths
        >>> q = np.ones((1, 4, 24, 128), np.float32)  # [B, heads, L, D]
        >>> rope.rotate_(q, positions=ids, seq_axis=-2) is q
        True
        """
        from fastpe._layouts.layouts import rotary_layouts

        found = rotary_layouts._find(layout)
        arguments = found._rotation.arguments(found.name, found.coordinates, head_dim, base, sections)
        return cls._of_model(**arguments, max_len=max_len)


def _copied(scaling: Mapping[str, Any]) -> dict[str, Any]:
    """What the caller cannot change, in types whose repr can be evaluated."""
    result = {}
    for key, value in scaling.items():
        if isinstance(value, (np.ndarray, np.generic)):
            result[key] = value.tolist()
        elif isinstance(value, (list, tuple)):
            result[key] = [number(f'scaling["{key}"]', each) for each in value]
        elif value is not None or key in of_null:
            result[key] = value
    return result


def _given_axes(axes: ArrayLike, count: int) -> tuple[int, ...]:
    array = numbers("frequency_axes", axes, f"[{count}] ints", "iu", "int64")
    if array.shape != (count,):
        hint = "; of sections, give np.repeat(range(len(sections)), sections)" if array.sum() == count else ""
        expected = f"[{count}]: one coordinate per frequency{hint}"
        raise refused(ValueError, "frequency_axes", f"has shape {list(array.shape)}", expected)
    return tuple(array.tolist())
