# SPDX-License-Identifier: BSD-3-Clause
"""What the exported encoder of sound takes besides its spectrogram."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpe._arguments import names_keywords
from fastpe._arrays import ArrayLike, WritableArray
from fastpe._config.file import Json, wrong
from fastpe._config.model import ModelConfig, model_of
from fastpe._errors import refused
from fastpe._graph.arrays import Array, boundaries, delivered, integer_array, require_int32
from fastpe._graph.model import encoder


@names_keywords
def audio_inputs(
    config: Json | str | os.PathLike[str] | ModelConfig,
    *,
    feature_lens: ArrayLike,
    dtype: npt.DTypeLike | None = None,
    out: Mapping[str, WritableArray] | None = None,
) -> dict[str, Any]:
    """Compute what the exported audio encoder of a model takes besides features, by the names of its inputs.

    Parameters
    ----------
    config : mapping, path or ModelConfig
        The config.json of Qwen2.5-Omni, Qwen3-Omni or Qwen3-ASR, or its ``audio_config``.
    feature_lens : array_like of int [clips]
        How many frames of the spectrogram each clip has.
    dtype : dtype, optional
        That of arrays of integers, such as a graph's int32; one that does not have a value is refused.
    out : mapping of str to ndarray, optional
        Where to write inputs of these names, in the dtypes of the arrays.

    Returns
    -------
    dict of str to ndarray or int
        Those of the following that the model has:

        - ``"chunk_lengths"`` int64 [chunks]: the frames of each chunk, into which clips are split before they are padded;
        - ``"cu_seqlens"`` int32 [segments + 1], ``"max_seqlen"``: where attention starts again, and the longest segment;
        - ``"valid_indices"`` int64: the results of the convolutions that are not padding;
        - ``"pool_indices"`` int64: the first one of each pair that is averaged;
        - ``"padded_mask_after_cnn"`` bool [chunks, longest], ``"aftercnn_lens"`` int64 [clips], for Qwen3-Omni: which results
          of the convolutions are not padding, and how many each clip has.

    Raises
    ------
    ValueError, TypeError
        For a model that is not known, and lengths that are less than 1.

    Notes
    -----
    The names and integers are those of ``precompute_export_inputs`` in transformers 5.24 (exporters/utils.py,
    modeling_qwen2_5_omni.py, modeling_qwen3_omni_moe.py, modeling_qwen3_asr.py), and of the forward of Qwen3-Omni's authors.

    Examples
    --------
    >>> import fastpe
    >>> inputs = fastpe.audio_inputs({"model_type": "qwen2_5_omni", "audio_config": {"n_window": 100}}, feature_lens=[250])
    >>> inputs["chunk_lengths"], inputs["cu_seqlens"]
    (array([200,  50]), array([  0, 100, 125], dtype=int32))
    """
    whole = model_of(config)
    model = whole._keep("audio_inputs", lambda: encoder("audio", whole))
    lengths = integer_array("feature_lens", feature_lens, (None,), expected="[clips], one per clip")
    if (lengths < 1).any():
        raise refused(ValueError, "feature_lens", f"is {lengths.tolist()}", "lengths of at least 1")
    require_int32("feature_lens", lengths.tolist())
    chunk = 2 * model.integer("n_window")
    counts = -(-lengths // chunk)
    chunks = np.full(int(counts.sum()), chunk, np.int64)
    chunks[np.cumsum(counts) - 1] = (lengths - 1) % chunk + 1
    inputs: dict[str, Any] = {"chunk_lengths": chunks}
    if model.row.get("pooled"):
        left, of_clips = _halved(chunks), _halved(lengths)
        pairs = [first + np.arange(0, length - 1, 2) for first, length in zip(_starts(of_clips), of_clips, strict=True)]
        segments: Any = left
        inputs["pool_indices"] = np.concatenate([np.zeros(0, np.int64), *pairs])
    else:
        left, of_clips = _convolved(chunks, chunk), _convolved(lengths, chunk)
        window = int(left.max(initial=0)) * (model.integer("n_window_infer") // chunk)
        if window < 1 and len(lengths):
            given, path = model.value("n_window_infer")
            raise wrong(path, f"is {given}", f"at least {chunk}, twice n_window")
        segments = [min(window, total - at) for total in of_clips.tolist() for at in range(0, total, window)]
        inputs |= {"padded_mask_after_cnn": _valid(left), "aftercnn_lens": of_clips}
    inputs["cu_seqlens"] = boundaries(segments)
    inputs["max_seqlen"] = int(np.diff(inputs["cu_seqlens"]).max(initial=0))
    inputs["valid_indices"] = np.flatnonzero(_valid(left))
    if model.row.get("masked"):  # its graph splits and selects by a mask
        inputs = {name: inputs[name] for name in ("cu_seqlens", "max_seqlen")}
    return delivered(inputs, dtype, out)


def _halved(lengths: Array) -> Array:
    """What a convolution of stride 2 leaves."""
    return (lengths - 1) // 2 + 1


def _convolved(lengths: Array, chunk: int) -> Array:
    """What three convolutions of stride 2 leave of each chunk: 13 of a whole one, as the models count."""
    rest = _halved(_halved(_halved(lengths % chunk)))
    total: Array = rest + lengths // chunk * 13
    return total


def _starts(lengths: Array) -> Array:
    return np.cumsum(lengths) - lengths


def _valid(lengths: Array) -> Array:
    """Which places of a [chunks, longest] array are not padding."""
    valid: Array = np.arange(lengths.max(initial=0)) < lengths[:, None]
    return valid
