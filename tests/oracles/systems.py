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


SYSTEMS: dict[str, System] = {}


def _table(positions: Iterable[Any], columns: int, value: Callable[[Any, int], Any]) -> Table:
    rows = [[float(value(mp.mpf(float(p)), j)) for j in range(columns)] for p in positions]
    return np.array(rows).reshape(len(rows), columns)


def _system(name: str, *examples: dict[str, Any]) -> Callable[[Callable[..., Table]], Callable[..., Table]]:
    def register(reference: Callable[..., Table]) -> Callable[..., Table]:
        assert name not in SYSTEMS
        SYSTEMS[name] = System(reference, examples)
        return reference

    return register


def _exact(positions: Iterable[Any], d: int, **knobs: Any) -> Table:
    return exact_table([float(p) for p in positions], d, Knobs(**knobs)).high


def _interleaved(positions: Iterable[Any], d: int, freq_scale: float = 1.0) -> Table:
    # pe[pos, 2i] = sin(pos / 10000^(2i / d)), pe[pos, 2i + 1] = cos of the same angle
    return _exact(positions, d, freq_scale=freq_scale)


def _split(interleaved: Table) -> Table:
    # Even columns first, then odd ones: how Marian, Pegasus and CTRL lay the same values out.
    return np.concatenate([interleaved[:, 0::2], interleaved[:, 1::2]], axis=1)


def _halves(positions: Iterable[Any], d: int, shift: float = 1.0, **knobs: Any) -> Table:
    # [sin | cos] of base^(-i / (n - shift)), n = d // 2, zeros up to d; a single frequency is 1
    return _exact(positions, d, interleaved=False, pads_odd=True, shift=shift if d > 3 else 0.0, **knobs)


def _timing_signal(
    positions: Iterable[Any], d: int, min_timescale: float = 1, max_timescale: float = 10000, cosine_first: bool = False
) -> Table:
    # inv_timescales = min * exp(-i * log(max / min) / max(n - 1, 1))
    base = max_timescale / min_timescale
    return _halves(positions, d, base=base, freq_scale=min_timescale, cosine_first=cosine_first)


def _widths(*widths: int, **more: Any) -> tuple[dict[str, Any], ...]:
    return tuple({"L": 9, "d": d, **more} for d in widths)


def _x(length: int, d: int) -> Table:
    return np.linspace(-1.0, 1.0, 2 * length * d).reshape(2, length, d)


_embedded = tuple({"x": _x(6, d), "d": d} for d in (2, 8))


@_system("PyTorch tutorial, word_language_model; The Annotated Transformer", *_widths(2, 8))
@_system("XLM, transformers XLM, DistilBERT; flax nlp_seq", *_widths(2, 3, 7, 8))
@_system("fairseq PositionalEncoding", *_widths(2, 8))
@_system("diffusers SinusoidalPositionalEmbedding", *_widths(2, 8))
def _vaswani(L: int, d: int) -> Table:
    return _interleaved(range(L), d)


@_system("keras-hub SinePositionEncoding", *_widths(2, 3, 8, start_index=4))
def _keras_hub(L: int, d: int, start_index: int) -> Table:
    return _interleaved(range(start_index, start_index + L), d)


@_system("fairseq and ESPnet RelPositionalEncoding", *_widths(2, 8))
def _relative(L: int, d: int) -> Table:
    return _interleaved(range(L - 1, -L, -1), d)


@_system("ESPnet PositionalEncoding; OpenNMT-py SinusoidalInterleaved", *_embedded)
def _scaled_sum(x: Table, d: int) -> Table:
    return x * float(mp.sqrt(d)) + _interleaved(range(x.shape[1]), d)


@_system("ESPnet StreamPositionalEncoding; WeNet PositionalEncoding", *({**e, "offset": 16} for e in _embedded))
def _stream(x: Table, d: int, offset: int) -> Table:
    return x * float(mp.sqrt(d)) + _interleaved(range(offset, offset + x.shape[1]), d)


@_system("ESPnet ScaledPositionalEncoding", *({**e, "alpha": 0.75} for e in _embedded))
def _learned_alpha(x: Table, d: int, alpha: float) -> Table:
    return x + alpha * _interleaved(range(x.shape[1]), d)


@_system("transformers Marian and Pegasus; CTranslate2's converter for marian-nmt", *_widths(2, 3, 7, 8))
@_system("transformers CTRL", *_widths(2, 3, 7, 8))
def _marian_port(L: int, d: int) -> Table:
    return _split(_interleaved(range(L), d))


@_system("Sockeye, its defaults", *_widths(2, 8))
def _sockeye(L: int, d: int) -> Table:
    return _split(_interleaved(range(L), d))


@_system("Sockeye, scale_up_input and scale_down_positions", *_embedded)
def _sockeye_scaled(x: Table, d: int) -> Table:
    return x * float(mp.sqrt(d)) + float(1 / mp.sqrt(d)) * _split(_interleaved(range(x.shape[1]), d))


@_system("x-transformers ScaledSinusoidalEmbedding", *_widths(2, 8))
def _x_transformers(L: int, d: int) -> Table:
    return _split(_interleaved(range(L), d)) / float(mp.sqrt(d))


@_system("tensor2tensor get_timing_signal_1d; flax lm1b and wmt", *_widths(1, 2, 3, 7, 8))
@_system("openai/whisper, transformers Whisper, whisper.cpp; PegasusX", *_widths(4, 8))
@_system("PyG PositionalEncoding", *_widths(4, 8))
def _tensor2tensor(L: int, d: int) -> Table:
    return _timing_signal(range(L), d)


@_system(
    "tensor2tensor get_timing_signal_1d, other timescales",
    *_widths(4, 7, start=3, min_timescale=2.0, max_timescale=5e3),
)
def _timescales(L: int, d: int, start: int, min_timescale: float, max_timescale: float) -> Table:
    return _timing_signal(range(start, start + L), d, min_timescale, max_timescale)


@_system("tensor2tensor add_timing_signal_1d_given_position", {"d": 9, "positions": np.array([[0, 2, 5], [7, 1, 1]])})
def _given_position(positions: npt.NDArray[np.int64], d: int) -> Table:
    return _timing_signal(positions.ravel(), d).reshape(*positions.shape, d)


@_system("TensorFlow Model Garden RelativePositionEmbedding", *_widths(4, 7, 8))
def _model_garden(L: int, d: int) -> Table:
    # Both halves have d // 2 columns and nothing fills an odd width up.
    return _timing_signal(range(L), d)[:, : 2 * (d // 2)]


@_system("marian-nmt; OpenNMT-py SinusoidalConcat", *_embedded[1:])
def _marian_nmt(x: Table, d: int) -> Table:
    return x * float(mp.sqrt(d)) + _timing_signal(range(x.shape[1]), d)


_left_padded = np.array([[0, 0, 1, 1, 1], [1, 1, 1, 1, 0]], bool)


def _positions_of_valid(valid: npt.NDArray[np.bool_], padding_idx: int) -> npt.NDArray[np.int64]:
    return np.asarray(np.cumsum(valid, axis=1) * valid + padding_idx)


@_system(
    "fairseq SinusoidalPositionalEmbedding; transformers M2M100, Speech2Text, TrOCR",
    *({"valid": _left_padded, "L": 5, "d": d, "padding_idx": pad} for d in (4, 7) for pad in (0, 1, 3)),
)
def _fairseq(valid: npt.NDArray[np.bool_], L: int, d: int, padding_idx: int) -> Table:
    positions = _positions_of_valid(valid, padding_idx)
    table = _timing_signal(range(int(positions.max()) + 1), d)
    table[padding_idx] = 0.0
    assert positions.shape == (2, L)
    return table[positions]


@_system("OpenNMT-tf SinusoidalPositionEncoder; CTranslate2; FunASR", *_widths(2, 4, 8))
def _from_one(L: int, d: int) -> Table:
    return _timing_signal(range(1, L + 1), d)


@_system("transformers MusicGen", *_widths(4, 7, 8))
def _musicgen(L: int, d: int) -> Table:
    return _timing_signal(range(L), d, cosine_first=True)


@_system("mlx.nn.SinusoidalPositionalEncoding", *({"positions": np.array([0.0, 0.25, -3.0]), "d": d} for d in (2, 8)))
def _mlx(positions: Table, d: int) -> Table:
    # sigmas = exp(linspace from log(max_freq) = 0 to log(min_freq) = log(1e-4)), times sqrt(2 / d)
    return _timing_signal(positions, d) * float(mp.sqrt(mp.mpf(2) / d))


@_system("mlx with cos_first and full_turns", {"positions": np.array([0.0, 0.25, -3.0]), "d": 8})
def _mlx_turns(positions: Table, d: int) -> Table:
    # 2 pi as the float64 that every implementation uses
    return _halves(positions, d, freq_scale=2 * np.pi, cosine_first=True) * float(mp.sqrt(mp.mpf(2) / d))


@_system("positional-encodings PositionalEncoding1D", *_widths(1, 2, 3, 7, 8))
def _tatp22(L: int, d: int) -> Table:
    return _interleaved(range(L), 2 * -(-d // 2))[:, :d]


@_system("depthcharge FloatEncoder", *({"positions": np.array([0.0, 100.25, 1999.5]), "d": d} for d in (4, 8)))
def _depthcharge(positions: Table, d: int) -> Table:
    return _halves(positions, d, base=1e7, freq_scale=2 * np.pi / 0.001)


@_system(
    "diffusers StableAudio3ExpoFourierFeatures",
    *({"timesteps": np.array([0.0, 0.125, 0.703125, 1.0]), "d": d} for d in (4, 256)),
)
def _stable_audio3(timesteps: Table, d: int) -> Table:
    # exp(linspace(0, 1, n) * (log(10000) - log(0.5)) + log(0.5)) * 2 pi
    return _halves(timesteps, d, base=0.5 / 10000, freq_scale=2 * np.pi * 0.5, cosine_first=True)


@_system(
    "get_1d_sine_pe of SAM 2, SAM 3 and EdgeTAM",
    *({"positions": np.array([0.0, 0.25, 1.0, 15.0]), "d": d} for d in (4, 8, 256)),
)
def _sam_pointers(positions: Table, d: int) -> Table:
    # temperature ** (2 * (arange(n) // 2) / n), and sines beside cosines
    n = d // 2
    return _table(
        positions, d, lambda p, j: (mp.sin if j < n else mp.cos)(p / mp.power(10000, mp.mpf(2 * (j % n // 2)) / n))
    )


@_system("code with tensor2tensor's frequencies in neighbouring columns", *_widths(2, 7, 8))
def _timing_signal_interleaved(L: int, d: int) -> Table:
    concatenated = _timing_signal(range(L), d)
    n = d // 2
    result: Table = concatenated.copy()
    result[:, 0 : 2 * n : 2], result[:, 1 : 2 * n : 2] = concatenated[:, :n], concatenated[:, n : 2 * n]
    return result


@_system(
    "tables of fairseq's form whose row `padding_idx` is zero, read from row 0",
    *_widths(4, 7, padding_idx=0),
    *_widths(4, 7, padding_idx=1),
)
def _zero_row(L: int, d: int, padding_idx: int) -> Table:
    table = _timing_signal(range(L), d)
    table[padding_idx] = 0.0
    return table


@_system(
    "loops that divide by `10000 ** (i / d)` in every column `i`; caffe2 SinusoidPositionEncoding", *_widths(2, 3, 8)
)
def _column_exponents(L: int, d: int) -> Table:
    # The frequencies as the float64 numbers that such loops divide by.
    def value(p: Any, j: int) -> Any:
        angle = p * mp.mpf(10000.0 ** (-j / d))
        return mp.sin(angle) if j % 2 == 0 else mp.cos(angle)

    return _table(range(L), d, value)


@_system("TGN TimeEncode, before training", *({"t": np.array([0.0, 17.5, 9e4]), "d": d} for d in (2, 5)))
def _time_encode(t: Table, d: int) -> Table:
    frequencies = 10.0 ** -np.linspace(0, 9, d)
    return _table(t, d, lambda p, j: mp.cos(p * mp.mpf(float(frequencies[j]))))


@_system("the NumPy loop with the exponent doubled", *_widths(2, 3, 7, 8))
def _doubled_exponent(L: int, d: int) -> Table:
    def value(p: Any, j: int) -> Any:
        i = j - j % 2  # the loop's own step is 2 already
        angle = p / mp.power(10000, mp.mpf(2 * i) / d)
        return mp.sin(angle) if j % 2 == 0 else mp.cos(angle)

    return _table(range(L), d, value)


_timesteps = np.array([0.0, 0.5, 17.25, 999.0])


def _timestep(
    timesteps: Table, d: int, flip: bool, shift: float, scale: float = 1.0, max_period: float = 10000.0
) -> Table:
    return _halves(timesteps, d, shift, cosine_first=flip, freq_scale=scale, base=max_period)


@_system(
    "diffusers get_timestep_embedding, its defaults; DDPM", *({"timesteps": _timesteps, "d": d} for d in (4, 7, 8))
)
def _ddpm(timesteps: Table, d: int) -> Table:
    return _timestep(timesteps, d, flip=False, shift=1)


@_system("diffusers UNets; GLIDE; DiT; ggml", *({"timesteps": _timesteps, "d": d} for d in (2, 3, 7, 8)))
def _glide(timesteps: Table, d: int) -> Table:
    return _timestep(timesteps, d, flip=True, shift=0)


@_system("diffusers get_guidance_scale_embedding (LCM)", *({"w": np.array([0.5, 7.5]), "d": d} for d in (4, 7, 8)))
def _guidance(w: Table, d: int) -> Table:
    return _timestep(w * 1000, d, flip=False, shift=1)


@_system("keras-hub Flux", {"timesteps": np.array([0.0, 0.125, 1.0]), "d": 8})
def _flux(timesteps: Table, d: int) -> Table:
    return _timestep(timesteps, d, flip=True, shift=0, scale=1000.0)


def _join(parts: Sequence[Table]) -> Table:
    lead = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
    return np.concatenate([np.broadcast_to(part, (*lead, part.shape[-1])) for part in parts], axis=-1)


@_system("MAE and DiT get_2d_sincos_pos_embed; llama.cpp clip", *({"H": 2, "W": 3, "d": d} for d in (4, 8)))
def _mae(H: int, W: int, d: int) -> Table:
    along_width = _split(_interleaved(range(W), d // 2))[None, :]
    along_height = _split(_interleaved(range(H), d // 2))[:, None]
    return np.concatenate([np.zeros((1, d)), _join([along_width, along_height]).reshape(H * W, d)])


@_system("diffusers get_2d_sincos_pos_embed", {"H": 2, "W": 4, "d": 8, "base_size": 16, "interpolation_scale": 2.0})
def _diffusers2d(H: int, W: int, d: int, base_size: int, interpolation_scale: float) -> Table:
    across = [_split(_interleaved([i * base_size / n / interpolation_scale for i in range(n)], d // 2)) for n in (W, H)]
    return _join([across[0][None, :], across[1][:, None]]).reshape(H * W, d)


@_system("diffusers get_3d_sincos_pos_embed", {"T": 2, "H": 3, "W": 2, "d": 16, "spatial": 2.0, "temporal": 4.0})
def _diffusers3d(T: int, H: int, W: int, d: int, spatial: float, temporal: float) -> Table:
    time = _split(_interleaved([i / temporal for i in range(T)], d // 4))[:, None, None]
    height = _split(_interleaved([i / spatial for i in range(H)], 3 * d // 8))[None, :, None]
    width = _split(_interleaved([i / spatial for i in range(W)], 3 * d // 8))[None, None, :]
    return _join([time, width, height]).reshape(T, H * W, d)


@_system("transformers build_2d_sinusoidal_position_embedding", *({"H": 2, "W": 3, "d": d} for d in (4, 8)))
@_system("timm build_sincos2d_pos_embed, interleave_sin_cos", *({"H": 2, "W": 3, "d": d} for d in (4, 8)))
def _hf2d(H: int, W: int, d: int) -> Table:
    across = [_split(_interleaved(range(n), d // 2)) for n in (H, W)]
    return _join([across[0][:, None], across[1][None, :]]).reshape(H * W, d)


@_system("RT-DETR and D-FINE before transformers 5; keras-hub D-FINE", {"H": 2, "W": 3, "d": 8})
def _dfine(H: int, W: int, d: int) -> Table:
    # Cells run down the columns of the image: width is the slow axis.
    across = [_split(_interleaved(range(n), d // 2)) for n in (W, H)]
    return _join([across[0][:, None], across[1][None, :]]).reshape(W * H, d)


@_system("timm build_sincos2d_pos_embed", *({"H": 2, "W": 3, "d": d} for d in (4, 8)))
def _timm(H: int, W: int, d: int) -> Table:
    down, along = (_split(_interleaved(range(n), d // 2)) for n in (H, W))
    q = d // 4
    return _join([down[:, None, :q], along[None, :, :q], down[:, None, q:], along[None, :, q:]]).reshape(H * W, d)


_rectangles = np.ones((2, 3, 4), bool)
_rectangles[1, 2:, :] = False
_rectangles[1, :, 3:] = False


@_system(
    "DETR PositionEmbeddingSine, normalize=True; transformers DETR", {"valid": _rectangles, "H": 3, "W": 4, "d": 8}
)
def _detr(valid: npt.NDArray[np.bool_], H: int, W: int, d: int) -> Table:
    y, x = np.cumsum(valid, axis=1, dtype=np.float64), np.cumsum(valid, axis=2, dtype=np.float64)
    y, x = y / (y[:, -1:, :] + 1e-6), x / (x[:, :, -1:] + 1e-6)
    parts = [_interleaved(axis.ravel(), d // 2, 2 * np.pi).reshape(len(valid), H, W, d // 2) for axis in (y, x)]
    return np.moveaxis(np.concatenate(parts, axis=-1), -1, 1)


@_system(
    "Deformable DETR PositionEmbeddingSine, normalize=True; transformers Deformable DETR",
    {"valid": _rectangles, "H": 3, "W": 4, "d": 8},
    {"valid": None, "H": 3, "W": 4, "d": 8},
)
def _deformable_detr(valid: npt.NDArray[np.bool_] | None, H: int, W: int, d: int) -> Table:
    counted = np.ones((1, H, W), bool) if valid is None else valid
    y, x = np.cumsum(counted, axis=1, dtype=np.float64), np.cumsum(counted, axis=2, dtype=np.float64)
    y, x = (y - 0.5) / (y[:, -1:, :] + 1e-6), (x - 0.5) / (x[:, :, -1:] + 1e-6)
    parts = [_interleaved(axis.ravel(), d // 2, 2 * np.pi).reshape(len(counted), H, W, d // 2) for axis in (y, x)]
    result = np.moveaxis(np.concatenate(parts, axis=-1), -1, 1)
    return result[0] if valid is None else result


@_system("DETR PositionEmbeddingSine, normalize=False", {"H": 3, "W": 4, "d": 8})
def _detr_counted(H: int, W: int, d: int) -> Table:
    parts = [_interleaved(range(1, H + 1), d // 2)[:, None], _interleaved(range(1, W + 1), d // 2)[None, :]]
    return np.moveaxis(_join(parts), -1, 0)


@_system(
    "transformers encode_sinusoidal_position_embedding",
    {"x": np.array([0.25, 0.5]), "y": np.array([0.125, 1.0]), "d": 8},
)
def _hf_points(x: Table, y: Table, d: int) -> Table:
    return np.concatenate([_interleaved(axis, d // 2, 2 * np.pi) for axis in (y, x)], axis=-1)


@_system("tensor2tensor add_timing_signal_nd", {"shape": (2, 3), "d": 8}, {"shape": (2, 3, 2), "d": 17})
def _timing_signal_nd(shape: tuple[int, ...], d: int) -> Table:
    own = 2 * (d // (2 * len(shape)))
    result = np.zeros((*shape, d))
    for axis, length in enumerate(shape):
        rows = _timing_signal(range(length), own)
        across = tuple(-1 if other == axis else 1 for other in range(len(shape)))
        result[..., axis * own : (axis + 1) * own] = rows.reshape(*across, own)
    return result


@_system("tensor2tensor add_timing_signal_nd_given_positions", {"points": np.array([[0.0, 3.0], [2.0, 1.0]]), "d": 8})
def _given_positions_nd(points: Table, d: int) -> Table:
    return np.concatenate([_timing_signal(points[:, axis], d // 2) for axis in range(2)], axis=-1)


@_system(
    "positional-encodings PositionalEncoding2D and 3D",
    {"shape": (2, 3), "d": 8},
    {"shape": (2, 3), "d": 7},
    {"shape": (2, 3, 2), "d": 9},
)
def _tatp22_nd(shape: tuple[int, ...], d: int) -> Table:
    own = 2 * -(-d // (2 * len(shape)))
    parts = []
    for axis, length in enumerate(shape):
        across = tuple(-1 if other == axis else 1 for other in range(len(shape)))
        parts.append(_interleaved(range(length), own).reshape(*across, own))
    return _join(parts)[..., :d]


@_system("positional-encodings PositionalEncodingPermute2D and 3D", {"shape": (2, 3), "d": 7})
def _tatp22_permuted(shape: tuple[int, ...], d: int) -> Table:
    return np.moveaxis(_tatp22_nd(shape, d), -1, 0)


def _nerf_bands(points: Table, bands: Sequence[Any]) -> Table:
    columns = [[float(c) for c in point] for point in points]
    for row, point in zip(columns, points, strict=True):
        for band in bands:
            for function in (mp.sin, mp.cos):
                row += [float(function(mp.mpf(float(c)) * band)) for c in point]
    return np.array(columns)


_points = np.array([[0.5, -0.25, 1.0], [0.1, 0.2, 0.3]])


@_system("NeRF Embedder", {"points": _points, "L": 4})
def _nerf(points: Table, L: int) -> Table:
    return _nerf_bands(points, [mp.mpf(2) ** k for k in range(L)])


@_system("NeRF Embedder, log_sampling=False", {"points": _points, "L": 4})
def _nerf_linear(points: Table, L: int) -> Table:
    return _nerf_bands(points, [mp.mpf(float(f)) for f in np.linspace(1.0, 2.0 ** (L - 1), L)])


@_system("PCP-MAE get_pos_embed", {"points": _points, "d": 12}, {"points": _points[:, :2], "d": 8})
def _pcp_mae(points: Table, d: int) -> Table:
    own = d // points.shape[1]
    return np.concatenate([_split(_interleaved(axis, own)) for axis in points.T], axis=-1)


def _loftr_order(H: int, W: int, frequencies: Sequence[Any]) -> Table:
    # pe[0::4] = sin(x w), pe[1::4] = cos(x w), pe[2::4] = sin(y w), pe[3::4] = cos(y w); x and y count from 1
    result = np.zeros((4 * len(frequencies), H, W))
    for k, w in enumerate(frequencies):
        for y in range(H):
            for x in range(W):
                angles = (mp.mpf(x + 1) * w, mp.mpf(y + 1) * w)
                result[4 * k : 4 * k + 4, y, x] = [float(f(a)) for a in angles for f in (mp.sin, mp.cos)]
    return result


@_system("LoFTR and kornia PositionEncodingSine", *({"H": 2, "W": 3, "d": d} for d in (4, 16)))
def _loftr(H: int, W: int, d: int) -> Table:
    half = d // 2
    return _loftr_order(H, W, [mp.exp(-i * mp.log(10000) / half) for i in range(0, half, 2)])


@_system(
    "LoFTR and kornia PositionEncodingSine, temp_bug_fix=False", {"H": 2, "W": 3, "d": 16}, {"H": 2, "W": 2, "d": 256}
)
def _loftr_bug(H: int, W: int, d: int) -> Table:
    # -log(10000) / d // 2, which is floor(-9.2 / d / 2), is -1; each frequency is a float64 number
    assert -np.log(10000.0) / d // 2 == -1.0
    return _loftr_order(H, W, [mp.mpf(float(np.exp(-float(i)))) for i in range(0, d // 2, 2)])


def _fourier_features(projected: Iterable[Any]) -> Table:
    angles = [mp.mpf(float(p)) * mp.mpf(2 * np.pi) for p in projected]
    return np.array([float(f(angle)) for f in (mp.sin, mp.cos) for angle in angles])


_gaussian = np.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.25]])


@_system(
    "SAM PositionEmbeddingRandom, forward_with_coords; nerfstudio RFFEncoding",
    {"points": np.array([[[0.25, 0.5], [1.0, 0.125]]]), "matrix": _gaussian},
)
def _sam_points(points: Table, matrix: Table) -> Table:
    rows = [_fourier_features((2 * point - 1) @ matrix) for point in points.reshape(-1, 2)]
    return np.array(rows).reshape(*points.shape[:-1], -1)


def _harmonics(points: Table, frequencies: Iterable[Any]) -> Table:
    # [.., axes, frequencies] flattened: all sines, then all cosines, then the input
    rows = []
    for point in points:
        angles = [mp.mpf(float(c)) * w for c in point for w in frequencies]
        rows.append([float(f(angle)) for f in (mp.sin, mp.cos) for angle in angles] + [float(c) for c in point])
    return np.array(rows)


@_system("pytorch3d HarmonicEmbedding", {"points": _points, "n": 4, "omega_0": 0.1})
def _harmonic_embedding(points: Table, n: int, omega_0: float) -> Table:
    return _harmonics(points, [mp.mpf(omega_0) * mp.mpf(2) ** k for k in range(n)])


@_system("pytorch3d HarmonicEmbedding, logspace=False", {"points": _points, "n": 4, "omega_0": 0.1})
def _harmonic_embedding_linear(points: Table, n: int, omega_0: float) -> Table:
    return _harmonics(points, [mp.mpf(float(w)) for w in omega_0 * np.linspace(1.0, 2.0 ** (n - 1), n)])


@_system("nerfstudio NeRFEncoding", {"points": _points, "n": 4, "min_freq_exp": 0.0, "max_freq_exp": 8.0})
def _nerfstudio(points: Table, n: int, min_freq_exp: float, max_freq_exp: float) -> Table:
    bands = 2 * np.pi * 2.0 ** np.linspace(min_freq_exp, max_freq_exp, n)
    return _harmonics(points, [mp.mpf(float(w)) for w in bands])
