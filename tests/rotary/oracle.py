# SPDX-License-Identifier: BSD-3-Clause
"""The oracle of rotary embeddings: exact frequencies and tables, by mpmath and without a line of the package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt

from ..oracles.model import in_form
from ..oracles.reference import Exact

Array = npt.NDArray[Any]

FORMS = ("halves", "tile", "repeat", "cos_sin", "sin_cos", "pairs", "matrices", "complex", "angles")


# Frequencies


def _ideal(d: int, base: Any) -> list[Any]:
    return [mpmath.power(base, -mpmath.mpf(2 * k) / d) for k in range(d // 2)]


def _of_stretched_base(d: int, base: Any, stretch: Any) -> list[Any]:
    # With two columns there is one frequency, whatever the base is.
    return _ideal(d, base) if d == 2 else _ideal(d, base * mpmath.power(stretch, mpmath.mpf(d) / (d - 2)))


def yarn_range(d: int, base: float, scaling: Mapping[str, Any]) -> tuple[Any, Any]:
    """Where the ramp of a yarn scaling begins and ends."""
    length = mpmath.mpf(scaling["original_max_position_embeddings"])

    def index(turns: float) -> Any:
        return d * mpmath.log(length / (2 * mpmath.pi * mpmath.mpf(turns))) / (2 * mpmath.log(mpmath.mpf(base)))

    low, high = index(scaling.get("beta_fast", 32)), index(scaling.get("beta_slow", 1))
    if scaling.get("truncate", True):
        low, high = mpmath.floor(low), mpmath.ceil(high)
    return max(low, mpmath.mpf(0)), min(high, mpmath.mpf(d - 1))


def _yarn_ramp(k: int, low: Any, high: Any) -> Any:
    if low == high:
        high += mpmath.mpf(1) / 1000
    return min(max((k - low) / (high - low), mpmath.mpf(0)), mpmath.mpf(1))


def _yarn_mscale(factor: Any, mscale: Any) -> Any:
    return mpmath.mpf(1) if factor <= 1 else mscale * mpmath.log(factor) / 10 + 1


def _yarn_attention_factor(factor: Any, scaling: Mapping[str, Any]) -> Any:
    if "attention_factor" in scaling:
        return mpmath.mpf(scaling["attention_factor"])
    mscale, mscale_all_dim = mpmath.mpf(scaling.get("mscale", 0)), mpmath.mpf(scaling.get("mscale_all_dim", 0))
    if mscale != 0 and mscale_all_dim != 0:
        return _yarn_mscale(factor, mscale) / _yarn_mscale(factor, mscale_all_dim)
    return _yarn_mscale(factor, 1)


def _llama3(w: Any, factor: Any, scaling: Mapping[str, Any]) -> Any:
    length = mpmath.mpf(scaling["original_max_position_embeddings"])
    low, high = mpmath.mpf(scaling["low_freq_factor"]), mpmath.mpf(scaling["high_freq_factor"])
    wavelength = 2 * mpmath.pi / w
    if wavelength > length / low:
        return w / factor
    if wavelength < length / high:
        return w
    smooth = (length / wavelength - low) / (high - low)
    return (1 - smooth) * w / factor + smooth * w


def frequencies(
    d: int, base: float = 10000.0, scaling: Mapping[str, Any] | None = None, seq_len: int = 0
) -> tuple[list[Any], Any]:
    """Frequencies and attention factor of a scaling, by the formulas of transformers (and of "ntk")."""
    scaling = scaling or {"rope_type": "default"}
    rope_type = scaling["rope_type"]
    ideal = _ideal(d, mpmath.mpf(base))
    length = scaling.get("original_max_position_embeddings", scaling.get("max_position_embeddings"))
    if "factor" in scaling:
        factor = mpmath.mpf(scaling["factor"])
    elif rope_type in ("yarn", "longrope"):
        factor = mpmath.mpf(scaling["max_position_embeddings"] / length)
    else:
        factor = mpmath.mpf(1)
    attention_factor = mpmath.mpf(1)
    if rope_type == "linear":
        result = [w / factor for w in ideal]
    elif rope_type == "ntk":
        result = _of_stretched_base(d, mpmath.mpf(base), factor)
    elif rope_type == "dynamic" and "alpha" in scaling:
        result = _of_stretched_base(d, mpmath.mpf(base), mpmath.mpf(scaling["alpha"]))
    elif rope_type == "dynamic":
        assert length is not None
        stretch = factor * max(seq_len, length) / length - (factor - 1)
        result = _of_stretched_base(d, mpmath.mpf(base), stretch)
    elif rope_type == "yarn":
        low, high = yarn_range(d, base, scaling)
        ramps = [_yarn_ramp(k, low, high) for k in range(d // 2)]
        result = [w / factor * ramp + w * (1 - ramp) for w, ramp in zip(ideal, ramps, strict=True)]
        attention_factor = _yarn_attention_factor(factor, scaling)
    elif rope_type == "longrope":
        assert length is not None
        divisors = scaling["long_factor" if seq_len > length else "short_factor"]
        result = [w / mpmath.mpf(divisor) for w, divisor in zip(ideal, divisors, strict=True)]
        if "attention_factor" in scaling:
            attention_factor = mpmath.mpf(scaling["attention_factor"])
        elif factor > 1:
            attention_factor = mpmath.sqrt(1 + mpmath.log(factor) / mpmath.log(length))
    elif rope_type == "llama3":
        result = [_llama3(w, factor, scaling) for w in ideal]
    elif rope_type == "proportional":
        rotated = int(scaling.get("partial_rotary_factor", 1.0) * d // 2)
        result = [w / factor if k < rotated else mpmath.mpf(0) for k, w in enumerate(ideal)]
    else:
        assert rope_type == "default"
        result = ideal
    return result, attention_factor


# Tables


def exact_tables(options: dict[str, Any], positions: npt.ArrayLike, form: str) -> tuple[Exact, ...]:
    """Each table of `RotaryEmbedding(**options)` as the sum of two float64 arrays; "complex" as its parts.

    The embedding has no scaling. With frequency_axes, positions have coordinates at the end.
    """
    given, factor = options.get("frequencies"), mpmath.mpf(options.get("attention_factor", 1.0))
    exact = map(float, given) if given else frequencies(options["rotary_dim"], options.get("base", 10000.0))[0]
    coordinates = np.asarray(positions, object)
    coordinates = coordinates[..., options["frequency_axes"]] if "frequency_axes" in options else coordinates[..., None]
    angles = coordinates * np.array([mpmath.mpf(w) for w in exact], object)
    cosines, sines = np.vectorize(mpmath.cos_sin, otypes=[object, object])(angles)
    tables = (angles,) if form == "angles" else in_form(form, factor * cosines, factor * sines)
    return tuple(map(_exact_array, tables))


def _exact_array(values: Array) -> Exact:
    high = np.vectorize(float, otypes=[float])(values)
    return Exact(high, np.vectorize(float, otypes=[float])(values - high))


def arrays_in(tables: Any) -> tuple[Array, ...]:
    """The arrays of a form, also where there is one."""
    return tables if isinstance(tables, tuple) else (tables,)


def parts_of(table: Array) -> Array:
    """The floats of a table: of a complex one its parts, with one more axis at the end."""
    return np.stack([table.real, table.imag], -1) if table.dtype.kind == "c" else table
