from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

__version__: str

_Array = TypeVar("_Array")

def check_environment() -> None: ...
def compiler() -> str: ...
def has_openmp() -> bool: ...
def thread_count() -> int: ...
def streaming_threshold_bytes() -> int: ...
def instruction_set() -> str: ...
def available_instruction_sets() -> list[str]: ...
def use_instruction_set(name: str) -> None: ...

largest_scaling_number: float

def rotary_frequencies(
    rotary_dim: int, base: float, rope_type: str, **values: float | Sequence[float]
) -> tuple[npt.NDArray[np.float64], float]: ...

class Encoder:
    def __init__(
        self,
        *,
        d_model: int,
        frequency_count: int,
        base: float,
        exponent_denominator: float,
        freq_scale: float,
        freqs: Sequence[float],
        interleaved: bool,
        cosine_first: bool,
        output_scale: float,
        max_len: int,
        first_position: int,
    ) -> None: ...
    def _frequencies(self) -> npt.NDArray[np.float64]: ...
    def encode(
        self,
        positions: int | npt.ArrayLike,
        *,
        dtype: npt.DTypeLike | None = None,
        offset: int | npt.ArrayLike | None = None,
        mask: npt.ArrayLike | None = None,
        lengths: npt.ArrayLike | None = None,
        channels: tuple[int, int] | None = None,
        num_threads: int | None = None,
        out: npt.NDArray[Any] | None = None,
    ) -> npt.NDArray[Any]: ...
    def add_(
        self,
        x: _Array,
        *,
        offset: int | npt.ArrayLike | None = None,
        positions: npt.ArrayLike | None = None,
        mask: npt.ArrayLike | None = None,
        lengths: npt.ArrayLike | None = None,
        cu_seqlens: npt.ArrayLike | None = None,
        scale: float = 1.0,
        alpha: float = 1.0,
        seq_axis: int = -2,
        channels: tuple[int, int] | None = None,
        table: npt.NDArray[Any] | None = None,
        num_threads: int | None = None,
    ) -> _Array: ...
    def add(
        self,
        x: npt.NDArray[Any],
        *,
        offset: int | npt.ArrayLike | None = None,
        positions: npt.ArrayLike | None = None,
        mask: npt.ArrayLike | None = None,
        lengths: npt.ArrayLike | None = None,
        cu_seqlens: npt.ArrayLike | None = None,
        scale: float = 1.0,
        alpha: float = 1.0,
        seq_axis: int = -2,
        channels: tuple[int, int] | None = None,
        table: npt.NDArray[Any] | None = None,
        num_threads: int | None = None,
        out: npt.NDArray[Any] | None = None,
    ) -> npt.NDArray[Any]: ...
    def embed(
        self,
        ids: npt.ArrayLike,
        table: npt.NDArray[Any],
        *,
        offset: int | npt.ArrayLike | None = None,
        positions: npt.ArrayLike | None = None,
        mask: npt.ArrayLike | None = None,
        lengths: npt.ArrayLike | None = None,
        cu_seqlens: npt.ArrayLike | None = None,
        scale: float = 1.0,
        alpha: float = 1.0,
        position_table: npt.NDArray[Any] | None = None,
        num_threads: int | None = None,
        out: npt.NDArray[Any] | None = None,
    ) -> npt.NDArray[Any]: ...
