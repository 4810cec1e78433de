# SPDX-License-Identifier: BSD-3-Clause
"""What systems compute, written from their own formulas at 40 digits, column by column.

Nothing here uses the library. Names are those of the rows of docs/conventions.md, whose calls are held against this.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt

from .reference import Knobs, exact_table

Table = npt.NDArray[Any]

mp = mpmath.mp.clone()
mp.dps = 40


@dataclasses.dataclass(frozen=True)
class System:
    reference: Callable[..., Table]
    # What the documented call is evaluated with, and the reference called with.
    examples: tuple[dict[str, Any], ...]


def _table(positions: Iterable[Any], columns: int, value: Callable[[Any, int], Any]) -> Table:
    rows = [[float(value(mp.mpf(float(p)), j)) for j in range(columns)] for p in positions]
    return np.array(rows).reshape(len(rows), columns)


def _exact(positions: Iterable[Any], d: int, **knobs: Any) -> Table:
    return exact_table([float(p) for p in positions], d, Knobs(**knobs)).high


def interleaved(positions: Iterable[Any], d: int, freq_scale: float = 1.0) -> Table:
    # pe[pos, 2i] = sin(pos / 10000^(2i / d)), pe[pos, 2i + 1] = cos of the same angle
    return _exact(positions, d, freq_scale=freq_scale)


def _split(interleaved: Table) -> Table:
    # Even columns first, then odd ones: how Marian, Pegasus and CTRL lay the same values out.
    return np.concatenate([interleaved[:, 0::2], interleaved[:, 1::2]], axis=1)


def _halves(positions: Iterable[Any], d: int, shift: float = 1.0, **knobs: Any) -> Table:
    # [sin | cos] of base^(-i / (n - shift)), n = d // 2, zeros up to d; a single frequency is 1
    return _exact(positions, d, interleaved=False, pads_odd=True, shift=shift if d > 3 else 0.0, **knobs)


def timing_signal(
    positions: Iterable[Any], d: int, min_timescale: float = 1, max_timescale: float = 10000, cosine_first: bool = False
) -> Table:
    # inv_timescales = min * exp(-i * log(max / min) / max(n - 1, 1))
    base = max_timescale / min_timescale
    return _halves(positions, d, base=base, freq_scale=min_timescale, cosine_first=cosine_first)


def _sinusoid(L: int, d: int) -> Table:
    return interleaved(range(L), d)


def split_sinusoid(positions: Iterable[Any], d: int) -> Table:
    return _split(interleaved(positions, d))


def _split_rows(L: int, d: int) -> Table:
    return split_sinusoid(range(L), d)


def _signal(L: int, d: int) -> Table:
    return timing_signal(range(L), d)


def _plus(x: Table, table: Table, d: int) -> Table:
    return x * float(mp.sqrt(d)) + table


def _zero_row(L: int, d: int, padding_idx: int) -> Table:
    table = _signal(L, d)
    table[padding_idx] = 0.0
    return table


def _fairseq(valid: npt.NDArray[np.bool_], L: int, d: int, padding_idx: int) -> Table:
    positions = np.cumsum(valid, axis=1) * valid + padding_idx
    assert positions.shape == (2, L)
    table = _zero_row(int(np.max(positions)) + 1, d, padding_idx)
    return np.asarray(table[positions])


def _sam_pointers(positions: Table, d: int) -> Table:
    # temperature ** (2 * (arange(n) // 2) / n), and sines beside cosines
    n = d // 2
    return _table(
        positions, d, lambda p, j: (mp.sin if j < n else mp.cos)(p / mp.power(10000, mp.mpf(2 * (j % n // 2)) / n))
    )


def _neighbouring_signal(L: int, d: int) -> Table:
    n, result = d // 2, _signal(L, d)
    result[:, 0 : 2 * n : 2], result[:, 1 : 2 * n : 2] = result[:, :n].copy(), result[:, n : 2 * n].copy()
    return result


def _alternating(L: int, d: int, frequency: Callable[[int], Any]) -> Table:
    """Sines in even columns and cosines in odd ones, each column with its own frequency."""
    return _table(range(L), d, lambda p, j: (mp.cos if j % 2 else mp.sin)(p * frequency(j)))


def _time_encode(t: Table, d: int) -> Table:
    frequencies = 10.0 ** -np.linspace(0, 9, d)
    return _table(t, d, lambda p, j: mp.cos(p * mp.mpf(float(frequencies[j]))))


def _timestep(timesteps: Table, d: int, flip: bool, shift: float, scale: float = 1.0) -> Table:
    return _halves(timesteps, d, shift, cosine_first=flip, freq_scale=scale)


# Grids


def _joined(*parts: Table) -> Table:
    """The rows of each axis side by side for each cell: [.., d] of [rows of the axis, d / axes] each."""
    axes = len(parts)
    return _join([part.reshape(*(1,) * i, -1, *(1,) * (axes - 1 - i), part.shape[-1]) for i, part in enumerate(parts)])


def _join(parts: Sequence[Table]) -> Table:
    lead = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
    return np.concatenate([np.broadcast_to(part, (*lead, part.shape[-1])) for part in parts], axis=-1)


def _rows_then_columns(H: int, W: int, d: int) -> Table:
    return _joined(_split_rows(H, d // 2), _split_rows(W, d // 2)).reshape(H * W, d)


def _mae(H: int, W: int, d: int) -> Table:
    cells = _rows_then_columns(H, W, d)
    return np.concatenate([np.zeros((1, d)), np.roll(cells, d // 2, axis=1)])  # the width comes first


def _diffusers2d(H: int, W: int, d: int, base_size: int, interpolation_scale: float) -> Table:
    down, along = (split_sinusoid([i * base_size / n / interpolation_scale for i in range(n)], d // 2) for n in (H, W))
    return np.roll(_joined(down, along), d // 2, axis=-1).reshape(H * W, d)


def _diffusers3d(T: int, H: int, W: int, d: int, spatial: float, temporal: float) -> Table:
    time = split_sinusoid([i / temporal for i in range(T)], d // 4)[:, None, None]
    down, along = (split_sinusoid([i / spatial for i in range(n)], 3 * d // 8) for n in (H, W))
    return _join([time, along[None, None], down[None, :, None]]).reshape(T, H * W, d)


def _timm(H: int, W: int, d: int) -> Table:
    cells, q = _rows_then_columns(H, W, d), d // 4
    return np.concatenate([cells[:, :q], cells[:, 2 * q : 3 * q], cells[:, q : 2 * q], cells[:, 3 * q :]], axis=1)


def _normalized(valid: npt.NDArray[np.bool_], d: int, middle: float) -> Table:
    """Counted cells over the last count, of an image's rows and then of its columns: [B, d, H, W]."""
    parts = []
    for axis in (1, 2):
        counts = np.cumsum(valid, axis=axis, dtype=np.float64)
        counts = (counts - middle) / (np.take(counts, [-1], axis) + 1e-6)
        parts.append(interleaved(counts.ravel(), d // 2, 2 * np.pi).reshape(*valid.shape, d // 2))
    return np.moveaxis(np.concatenate(parts, axis=-1), -1, 1)


def _deformable_detr(valid: npt.NDArray[np.bool_] | None, H: int, W: int, d: int) -> Table:
    result = _normalized(np.ones((1, H, W), bool) if valid is None else valid, d, 0.5)
    return result[0] if valid is None else result


def _timing_signal_nd(shape: tuple[int, ...], d: int) -> Table:
    own = 2 * (d // (2 * len(shape)))
    cells = _joined(*(_signal(length, own) for length in shape))
    return np.concatenate([cells, np.zeros((*shape, d - own * len(shape)))], axis=-1)


def _tatp22_nd(shape: tuple[int, ...], d: int) -> Table:
    own = 2 * -(-d // (2 * len(shape)))
    return _joined(*(_sinusoid(length, own) for length in shape))[..., :d]


def _nerf(points: Table, bands: Iterable[Any]) -> Table:
    turned = [mp.mpf(band) for band in bands]
    rows = [[float(f(mp.mpf(float(c)) * w)) for w in turned for f in (mp.sin, mp.cos) for c in p] for p in points]
    return np.concatenate([points, np.array(rows)], axis=1)


def _mip_nerf(points: Table, min_deg: int, max_deg: int) -> Table:
    # x[.., None, :] * scales[:, None] flattened: the sines of all, then their cosines
    turned = [[mp.mpf(float(c)) * 2**k for k in range(min_deg, max_deg) for c in p] for p in points]
    rows = [[float(f(angle)) for f in (mp.sin, mp.cos) for angle in angles] for angles in turned]
    return np.concatenate([points, np.array(rows)], axis=1)


def _harmonics(points: Table, frequencies: Iterable[Any]) -> Table:
    # [.., axes, frequencies] flattened: all sines, then all cosines, then the input
    turned = [mp.mpf(w) for w in frequencies]
    rows = [[float(f(mp.mpf(float(c)) * w)) for f in (mp.sin, mp.cos) for c in p for w in turned] for p in points]
    return np.concatenate([np.array(rows), points], axis=1)


def _loftr(H: int, W: int, frequencies: Iterable[Any]) -> Table:
    # pe[0::4] = sin(x w), pe[1::4] = cos(x w), pe[2::4] = sin(y w), pe[3::4] = cos(y w); x and y count from 1
    def pixel(y: int, x: int) -> list[float]:
        return [float(f(mp.mpf(at) * w)) for w in frequencies for at in (x, y) for f in (mp.sin, mp.cos)]

    return np.moveaxis(np.array([[pixel(y + 1, x + 1) for x in range(W)] for y in range(H)]), -1, 0)


def _loftr_bug(H: int, W: int, d: int) -> Table:
    # -log(10000) / d // 2, which is floor(-9.2 / d / 2), is -1; each frequency is a float64 number
    assert -np.log(10000.0) / d // 2 == -1.0
    return _loftr(H, W, [mp.mpf(float(np.exp(-float(i)))) for i in range(0, d // 2, 2)])


def _sam_points(points: Table, matrix: Table) -> Table:
    projected = ((2 * points - 1) @ matrix).reshape(-1, matrix.shape[1])
    rows = [
        [float(f(mp.mpf(float(p)) * mp.mpf(2 * np.pi))) for f in (mp.sin, mp.cos) for p in each] for each in projected
    ]
    return np.array(rows).reshape(*points.shape[:-1], -1)


def _widths(*widths: int, **more: Any) -> tuple[dict[str, Any], ...]:
    return tuple({"L": 9, "d": d, **more} for d in widths)


def _images(*widths: int, **more: Any) -> tuple[dict[str, Any], ...]:
    return tuple({"H": 2, "W": 3, "d": d, **more} for d in widths)


def _embedded(*widths: int, **more: Any) -> tuple[dict[str, Any], ...]:
    return tuple({"x": np.linspace(-1.0, 1.0, 12 * d).reshape(2, 6, d), "d": d, **more} for d in widths)


def _at(name: str, places: Sequence[float], *widths: int) -> tuple[dict[str, Any], ...]:
    return tuple({name: np.array(places), "d": d} for d in widths)


_left_padded = np.array([[0, 0, 1, 1, 1], [1, 1, 1, 1, 0]], bool)
_rectangles = np.ones((2, 3, 4), bool)
_rectangles[1, 2:, :] = _rectangles[1, :, 3:] = False
_timesteps = (0.0, 0.5, 17.25, 999.0)
_points = np.array([[0.5, -0.25, 1.0], [0.1, 0.2, 0.3]])
_gaussian = np.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.25]])

SYSTEMS: dict[str, System] = {
    "PyTorch tutorial, word_language_model; The Annotated Transformer": System(_sinusoid, _widths(2, 8)),
    "XLM, transformers XLM, DistilBERT; flax nlp_seq": System(_sinusoid, _widths(2, 3, 7, 8)),
    "fairseq PositionalEncoding": System(_sinusoid, _widths(2, 8)),
    "diffusers SinusoidalPositionalEmbedding": System(_sinusoid, _widths(2, 8)),
    "keras-hub SinePositionEncoding": System(
        lambda L, d, start_index: interleaved(range(start_index, start_index + L), d), _widths(2, 3, 8, start_index=4)),
    "fairseq and ESPnet RelPositionalEncoding": System(lambda L, d: interleaved(range(L - 1, -L, -1), d), _widths(2, 8)),
    "ESPnet PositionalEncoding; OpenNMT-py SinusoidalInterleaved": System(
        lambda x, d: _plus(x, _sinusoid(x.shape[1], d), d), _embedded(2, 8)),
    "ESPnet StreamPositionalEncoding; WeNet PositionalEncoding": System(
        lambda x, d, offset: _plus(x, interleaved(range(offset, offset + x.shape[1]), d), d), _embedded(2, 8, offset=16)),
    "ESPnet ScaledPositionalEncoding": System(
        lambda x, d, alpha: x + alpha * _sinusoid(x.shape[1], d), _embedded(2, 8, alpha=0.75)),
    "transformers Marian and Pegasus; CTranslate2's converter for marian-nmt": System(_split_rows, _widths(2, 3, 7, 8)),
    "transformers CTRL": System(_split_rows, _widths(2, 3, 7, 8)),
    "Sockeye, its defaults": System(_split_rows, _widths(2, 8)),
    "Sockeye, scale_up_input and scale_down_positions": System(
        lambda x, d: _plus(x, _split_rows(x.shape[1], d) / float(mp.sqrt(d)), d), _embedded(2, 8)),
    "x-transformers ScaledSinusoidalEmbedding": System(
        lambda L, d: _split_rows(L, d) / float(mp.sqrt(d)), _widths(2, 8)),
    "tensor2tensor get_timing_signal_1d; flax lm1b and wmt": System(_signal, _widths(1, 2, 3, 7, 8)),
    "openai/whisper, transformers Whisper, whisper.cpp; PegasusX": System(_signal, _widths(4, 8)),
    "PyG PositionalEncoding": System(_signal, _widths(4, 8)),
    "tensor2tensor get_timing_signal_1d, other timescales": System(
        lambda L, d, start, min_timescale, max_timescale: timing_signal(
            range(start, start + L), d, min_timescale, max_timescale),
        _widths(4, 7, start=3, min_timescale=2.0, max_timescale=5e3)),
    "tensor2tensor add_timing_signal_1d_given_position": System(
        lambda positions, d: timing_signal(positions.ravel(), d).reshape(*positions.shape, d),
        ({"d": 9, "positions": np.array([[0, 2, 5], [7, 1, 1]])},)),
    # Both halves have d // 2 columns, and nothing fills an odd width up.
    "TensorFlow Model Garden RelativePositionEmbedding": System(
        lambda L, d: _signal(L, d)[:, : 2 * (d // 2)], _widths(4, 7, 8)),
    "marian-nmt; OpenNMT-py SinusoidalConcat": System(lambda x, d: _plus(x, _signal(x.shape[1], d), d), _embedded(8)),
    "fairseq SinusoidalPositionalEmbedding; transformers M2M100, Speech2Text, TrOCR": System(
        _fairseq,
        tuple({"valid": _left_padded, "L": 5, "d": d, "padding_idx": pad} for d in (4, 7) for pad in (0, 1, 3))),
    "OpenNMT-tf SinusoidalPositionEncoder; CTranslate2; FunASR": System(
        lambda L, d: timing_signal(range(1, L + 1), d), _widths(2, 4, 8)),
    "transformers MusicGen": System(
        lambda L, d: timing_signal(range(L), d, cosine_first=True), _widths(4, 7, 8)),
    # sigmas = exp(linspace from log(max_freq) = 0 to log(min_freq) = log(1e-4)), times sqrt(2 / d)
    "mlx.nn.SinusoidalPositionalEncoding": System(
        lambda positions, d: timing_signal(positions, d) * float(mp.sqrt(mp.mpf(2) / d)),
        _at("positions", (0.0, 0.25, -3.0), 2, 8)),
    # 2 pi as the float64 that every implementation uses
    "mlx with cos_first and full_turns": System(
        lambda positions, d: _halves(positions, d, freq_scale=2 * np.pi, cosine_first=True) * float(mp.sqrt(mp.mpf(2) / d)),
        _at("positions", (0.0, 0.25, -3.0), 8)),
    "positional-encodings PositionalEncoding1D": System(
        lambda L, d: _sinusoid(L, 2 * -(-d // 2))[:, :d], _widths(1, 2, 3, 7, 8)),
    "depthcharge FloatEncoder": System(
        lambda positions, d: _halves(positions, d, base=1e7, freq_scale=2 * np.pi / 0.001),
        _at("positions", (0.0, 100.25, 1999.5), 4, 8)),
    # exp(linspace(0, 1, n) * (log(10000) - log(0.5)) + log(0.5)) * 2 pi
    "diffusers StableAudio3ExpoFourierFeatures": System(
        lambda timesteps, d: _halves(timesteps, d, base=0.5 / 10000, freq_scale=2 * np.pi * 0.5, cosine_first=True),
        _at("timesteps", (0.0, 0.125, 0.703125, 1.0), 4, 256)),
    "get_1d_sine_pe of SAM 2, SAM 3 and EdgeTAM": System(
        _sam_pointers, _at("positions", (0.0, 0.25, 1.0, 15.0), 4, 8, 256)),
    "code with tensor2tensor's frequencies in neighbouring columns": System(_neighbouring_signal, _widths(2, 7, 8)),
    "tables of fairseq's form whose row `padding_idx` is zero, read from row 0": System(
        _zero_row, (*_widths(4, 7, padding_idx=0), *_widths(4, 7, padding_idx=1))),
    # The frequencies as the float64 numbers that such loops divide by.
    "loops that divide by `10000 ** (i / d)` in every column `i`; caffe2 SinusoidPositionEncoding": System(
        lambda L, d: _alternating(L, d, lambda j: mp.mpf(10000.0 ** (-j / d))), _widths(2, 3, 8)),
    "TGN TimeEncode, before training": System(_time_encode, _at("t", (0.0, 17.5, 9e4), 2, 5)),
    # The loop's own step is 2 already.
    "the NumPy loop with the exponent doubled": System(
        lambda L, d: _alternating(L, d, lambda j: 1 / mp.power(10000, mp.mpf(2 * (j - j % 2)) / d)), _widths(2, 3, 7, 8)),
    "diffusers get_timestep_embedding, its defaults; DDPM": System(
        lambda timesteps, d: _timestep(timesteps, d, flip=False, shift=1), _at("timesteps", _timesteps, 4, 7, 8)),
    "diffusers UNets; GLIDE; DiT; ggml": System(
        lambda timesteps, d: _timestep(timesteps, d, flip=True, shift=0), _at("timesteps", _timesteps, 2, 3, 7, 8)),
    "diffusers get_guidance_scale_embedding (LCM)": System(
        lambda w, d: _timestep(w * 1000, d, flip=False, shift=1), _at("w", (0.5, 7.5), 4, 7, 8)),
    "keras-hub Flux": System(
        lambda timesteps, d: _timestep(timesteps, d, flip=True, shift=0, scale=1000.0),
        _at("timesteps", (0.0, 0.125, 1.0), 8)),
    # Grids
    "MAE and DiT get_2d_sincos_pos_embed; llama.cpp clip": System(_mae, _images(4, 8)),
    "diffusers get_2d_sincos_pos_embed": System(
        _diffusers2d, ({"H": 2, "W": 4, "d": 8, "base_size": 16, "interpolation_scale": 2.0},)),
    "diffusers get_3d_sincos_pos_embed": System(
        _diffusers3d, ({"T": 2, "H": 3, "W": 2, "d": 16, "spatial": 2.0, "temporal": 4.0},)),
    "transformers build_2d_sinusoidal_position_embedding": System(_rows_then_columns, _images(4, 8)),
    "timm build_sincos2d_pos_embed, interleave_sin_cos": System(_rows_then_columns, _images(4, 8)),
    # Cells run down the columns of the image: width is the slow axis.
    "RT-DETR and D-FINE before transformers 5; keras-hub D-FINE": System(
        lambda H, W, d: _rows_then_columns(W, H, d), _images(8)),
    "timm build_sincos2d_pos_embed": System(_timm, _images(4, 8)),
    "DETR PositionEmbeddingSine, normalize=True; transformers DETR": System(
        lambda valid, H, W, d: _normalized(valid, d, 0.0), ({"valid": _rectangles, "H": 3, "W": 4, "d": 8},)),
    "Deformable DETR PositionEmbeddingSine, normalize=True; transformers Deformable DETR": System(
        _deformable_detr, tuple({"valid": valid, "H": 3, "W": 4, "d": 8} for valid in (_rectangles, None))),
    "DETR PositionEmbeddingSine, normalize=False": System(
        lambda H, W, d: np.moveaxis(_joined(*(interleaved(range(1, n + 1), d // 2) for n in (H, W))), -1, 0),
        ({"H": 3, "W": 4, "d": 8},)),
    "transformers encode_sinusoidal_position_embedding": System(
        lambda x, y, d: np.concatenate([interleaved(axis, d // 2, 2 * np.pi) for axis in (y, x)], axis=-1),
        ({"x": np.array([0.25, 0.5]), "y": np.array([0.125, 1.0]), "d": 8},)),
    "tensor2tensor add_timing_signal_nd": System(
        _timing_signal_nd, ({"shape": (2, 3), "d": 8}, {"shape": (2, 3, 2), "d": 17})),
    "tensor2tensor add_timing_signal_nd_given_positions": System(
        lambda points, d: np.concatenate([timing_signal(points[:, axis], d // 2) for axis in range(2)], axis=-1),
        ({"points": np.array([[0.0, 3.0], [2.0, 1.0]]), "d": 8},)),
    "positional-encodings PositionalEncoding2D and 3D": System(
        _tatp22_nd, ({"shape": (2, 3), "d": 8}, {"shape": (2, 3), "d": 7}, {"shape": (2, 3, 2), "d": 9})),
    "positional-encodings PositionalEncodingPermute2D and 3D": System(
        lambda shape, d: np.moveaxis(_tatp22_nd(shape, d), -1, 0), ({"shape": (2, 3), "d": 7},)),
    "NeRF Embedder": System(
        lambda points, L: _nerf(points, 2.0 ** np.arange(L)), ({"points": _points, "L": 4},)),
    "mip-NeRF pos_enc": System(
        _mip_nerf, ({"points": _points, "min_deg": 0, "max_deg": 4}, {"points": _points, "min_deg": 2, "max_deg": 5})),
    "NeRF Embedder, log_sampling=False": System(
        lambda points, L: _nerf(points, np.linspace(1.0, 2.0 ** (L - 1), L)), ({"points": _points, "L": 4},)),
    "PCP-MAE get_pos_embed": System(
        lambda points, d: np.concatenate([split_sinusoid(axis, d // len(points.T)) for axis in points.T], axis=-1),
        ({"points": _points, "d": 12}, {"points": _points[:, :2], "d": 8})),
    "LoFTR and kornia PositionEncodingSine": System(
        lambda H, W, d: _loftr(H, W, [mp.exp(-i * mp.log(10000) / (d // 2)) for i in range(0, d // 2, 2)]),
        _images(4, 16)),
    "LoFTR and kornia PositionEncodingSine, temp_bug_fix=False": System(
        _loftr_bug, ({"H": 2, "W": 3, "d": 16}, {"H": 2, "W": 2, "d": 256})),
    "SAM PositionEmbeddingRandom, forward_with_coords; nerfstudio RFFEncoding": System(
        _sam_points, ({"points": np.array([[[0.25, 0.5], [1.0, 0.125]]]), "matrix": _gaussian},)),
    "pytorch3d HarmonicEmbedding": System(
        lambda points, n, omega_0: _harmonics(points, [mp.mpf(omega_0) * 2**k for k in range(n)]),
        ({"points": _points, "n": 4, "omega_0": 0.1},)),
    "pytorch3d HarmonicEmbedding, logspace=False": System(
        lambda points, n, omega_0: _harmonics(points, omega_0 * np.linspace(1.0, 2.0 ** (n - 1), n)),
        ({"points": _points, "n": 4, "omega_0": 0.1},)),
    "nerfstudio NeRFEncoding": System(
        lambda points, n, min_freq_exp, max_freq_exp: _harmonics(
            points, 2 * np.pi * 2.0 ** np.linspace(min_freq_exp, max_freq_exp, n)),
        ({"points": _points, "n": 4, "min_freq_exp": 0.0, "max_freq_exp": 8.0},)),
}  # fmt: skip
