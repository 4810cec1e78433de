# SPDX-License-Identifier: BSD-3-Clause
"""Diffusion timesteps, under the argument names that diffusers gave them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpe import _core
from fastpe._arguments import flag, names_keywords, number
from fastpe._arrays import ArrayLike, WritableArray
from fastpe._errors import renamed
from fastpe._sinusoid.conventions import conventions
from fastpe._sinusoid.functions import encode

# What the arguments of `encode` and the fields of a convention are called here.
_names_here = {
    "positions": "timesteps",
    "d_model": "embedding_dim",
    "denominator_offset": "downscale_freq_shift",
    "freq_scale": "scale",
    "base": "max_period",
}


@names_keywords
def timestep_embedding(
    timesteps: ArrayLike,
    embedding_dim: int,
    *,
    flip_sin_to_cos: bool,
    downscale_freq_shift: float,
    scale: float = 1.0,
    max_period: float = 10000.0,
    dtype: npt.DTypeLike | None = None,
    num_threads: int | None = None,
    out: WritableArray | None = None,
) -> npt.NDArray[Any]:
    """Encode diffusion timesteps: diffusers' ``get_timestep_embedding``, with its names.

    Parameters
    ----------
    timesteps : array_like [N] of int or float, or a number
        Timesteps in an array of any shape; they may be fractional.
    embedding_dim : int
        The width, at least 1. If it is odd, the last column is zero.
    flip_sin_to_cos : bool
        Whether the result is ``[cos | sin]`` instead of ``[sin | cos]``.
    downscale_freq_shift : float
        What is subtracted from the number of frequencies in the exponent's denominator.
    scale : float, optional
        The factor of the angles.
    max_period : float, optional
        The base of the frequencies, which fall from 1 to about its inverse.
    dtype, num_threads, out : optional
        As in `encode`.

    Returns
    -------
    ndarray
        An array ``timesteps.shape + (embedding_dim,)``, or ``[embedding_dim]`` for a number; or `out` if it was given.

    Raises
    ------
    ValueError, TypeError
        The errors of `encode`.

    Notes
    -----
    ``w_k = scale * max_period**(-k / (n - downscale_freq_shift))``, ``n = embedding_dim // 2``. The UNets of diffusers
    and most of its transformers call it with ``flip_sin_to_cos=True, downscale_freq_shift=0``, which is convention
    ``"timestep"`` and the embedding of GLIDE and DiT; its function has the defaults ``False`` and ``1``, which is
    ``"ddpm"``. With one frequency and a shift of 1, diffusers divides 0 by 0 and returns NaN; here, the only frequency
    is `scale`.

    A guidance scale ``w`` of a latent consistency model is encoded as
    ``timestep_embedding(w * 1000, d, flip_sin_to_cos=False, downscale_freq_shift=1)``. In the
    pipelines of diffusers, ``w`` is ``guidance_scale - 1``.

    Examples
    --------
    >>> import fastpe
    >>> fastpe.timestep_embedding([0, 0.5, 999], 4, flip_sin_to_cos=True, downscale_freq_shift=0).round(4)
    array([[ 1.    ,  1.    ,  0.    ,  0.    ],
           [ 0.8776,  1.    ,  0.4794,  0.005 ],
           [ 0.9996, -0.8445, -0.0265, -0.5356]], dtype=float32)
    """
    array = _core.array(timesteps, "timesteps")
    if array.dtype in (np.float16, np.longdouble) or array.dtype.name == "bfloat16":
        # Half precision widens exactly.
        array = array.astype(np.float64)
    convention = dataclasses.replace(
        conventions["ddpm"],
        cosine_first=flag("flip_sin_to_cos", flip_sin_to_cos),
        denominator_offset=number("downscale_freq_shift", downscale_freq_shift),
        freq_scale=number("scale", scale),
        base=number("max_period", max_period, above_zero=True),
    )
    try:
        return encode(array, embedding_dim, convention=convention, dtype=dtype, num_threads=num_threads, out=out)
    except (TypeError, ValueError) as error:
        raise renamed(error, _names_here) from None
