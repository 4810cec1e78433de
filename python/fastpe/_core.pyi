from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from fastpe._arrays import ArrayLike, Given, WritableArray
from fastpe._names import TableForm

__version__: str

# Arguments that several methods take.
_Offset: TypeAlias = int | ArrayLike | None  # one for all rows, [B] or [B, 1]
_Positions: TypeAlias = ArrayLike | None  # [L], [1, L] or [B, L]
_Valid: TypeAlias = ArrayLike | None  # bool, or 0 and 1: [L], [1, L] or [B, L]
_Lengths: TypeAlias = ArrayLike | None  # one for all rows, [B] or [B, 1]
_Sequences: TypeAlias = ArrayLike | None  # [sequences + 1]
_Table: TypeAlias = ArrayLike | None  # [max_len, C], [1, max_len, C] or [max_len, 1, C]
_Threads: TypeAlias = int | None
_Out: TypeAlias = WritableArray | None
_Pair: TypeAlias = tuple[npt.NDArray[Any], npt.NDArray[Any]]

# fmt: off
# A signature takes a few lines.
def config() -> dict[str, Any]: ...
def use_instruction_set(name: str) -> None: ...
def output(
    out: _Out, dtype: npt.DTypeLike | None, shape: Sequence[int], *inputs: npt.NDArray[Any]
) -> npt.NDArray[Any]: ...
def resize_rows(
    table: npt.NDArray[Any], out: npt.NDArray[Any], *, sides: tuple[int, ...],
    rows: tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]],
    columns: tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]], class_tokens: int, merge_size: int,
    num_threads: _Threads
) -> None: ...
def array(input: Any, name: str, *, in_place: bool = False) -> npt.NDArray[Any]: ...
def bools(input: Any, name: str) -> npt.NDArray[Any]: ...
def document(method: Callable[..., Any], prose: str, /) -> None: ...

conventions: dict[str, dict[str, Any]]
largest_scaling_number: float

def convention_numbers(
    name: str, odd: str, denominator_offset: float, denominator: float | None, alpha: float | str, d_model: int, /
) -> tuple[int, float, float]: ...

table_forms: tuple[str, ...]

def rotary_frequencies(
    rotary_dim: int, base: float, rope_type: str, given: dict[str, Any], /
) -> tuple[npt.NDArray[np.float64], float]: ...

class Encoding:
    def __init__(self, **fields: Any) -> None: ...
    def _frequencies(self) -> npt.NDArray[np.float64]: ...
    def warm_up(self, *, dtype: npt.DTypeLike | None = None, num_threads: _Threads = None) -> None: ...
    def encode(
        self, positions: int | ArrayLike, *, dtype: npt.DTypeLike | None = None, offset: _Offset = None,
        valid: _Valid = None, lengths: _Lengths = None, num_threads: _Threads = None, out: _Out = None
    ) -> npt.NDArray[Any]: ...
    def add_(
        self, x: Given, *, offset: _Offset = None, positions: _Positions = None, valid: _Valid = None,
        lengths: _Lengths = None, cu_seqlens: _Sequences = None, scale: float = 1.0, alpha: float = 1.0,
        seq_axis: int = -2, table: _Table = None, num_threads: _Threads = None
    ) -> Given: ...
    def add(
        self, x: ArrayLike, *, offset: _Offset = None, positions: _Positions = None, valid: _Valid = None,
        lengths: _Lengths = None, cu_seqlens: _Sequences = None, scale: float = 1.0, alpha: float = 1.0,
        seq_axis: int = -2, table: _Table = None, num_threads: _Threads = None, out: _Out = None
    ) -> npt.NDArray[Any]: ...
    def _add_part(
        self, x: ArrayLike, first_column: int, *, offset: _Offset = None, positions: _Positions = None,
        valid: _Valid = None, lengths: _Lengths = None, cu_seqlens: _Sequences = None, scale: float = 1.0,
        alpha: float = 1.0, seq_axis: int = -2, num_threads: _Threads = None, out: _Out = None
    ) -> npt.NDArray[Any]: ...
    def embed(
        self, ids: ArrayLike, table: ArrayLike, *, offset: _Offset = None, positions: _Positions = None,
        valid: _Valid = None, lengths: _Lengths = None, cu_seqlens: _Sequences = None, scale: float | None = None,
        alpha: float = 1.0, position_table: _Table = None, num_threads: _Threads = None, out: _Out = None
    ) -> npt.NDArray[Any]: ...

class RotaryEmbedding:
    def __init__(self, **fields: Any) -> None: ...
    def _frequencies(self) -> npt.NDArray[np.float64]: ...
    def warm_up(self, *, dtype: npt.DTypeLike | None = None, num_threads: _Threads = None) -> None: ...
    @overload
    def tables(
        self, positions: int | ArrayLike, *, form: Literal["halves", "tile", "repeat"] = "halves",
        dtype: npt.DTypeLike | None = None, offset: _Offset = None, out: _Pair | None = None,
        num_threads: _Threads = None
    ) -> _Pair: ...
    @overload
    def tables(
        self, positions: int | ArrayLike, *,
        form: Literal["cos_sin", "sin_cos", "pairs", "matrices", "angles", "complex"],
        dtype: npt.DTypeLike | None = None, offset: _Offset = None, out: _Out = None, num_threads: _Threads = None
    ) -> npt.NDArray[Any]: ...
    @overload
    def tables(
        self, positions: int | ArrayLike, *, form: TableForm, dtype: npt.DTypeLike | None = None,
        offset: _Offset = None, out: Any = None, num_threads: _Threads = None
    ) -> Any: ...
    @overload
    def rotate_(
        self, x: Given, *, offset: _Offset = None, positions: _Positions = None, valid: _Valid = None,
        lengths: _Lengths = None, cu_seqlens: _Sequences = None, seq_axis: int | None = None, inverse: bool = False,
        num_threads: _Threads = None
    ) -> Given: ...
    @overload
    def rotate_(
        self, x: Given, *others: Given, offset: _Offset = None, positions: _Positions = None, valid: _Valid = None,
        lengths: _Lengths = None, cu_seqlens: _Sequences = None, seq_axis: int | None = None, inverse: bool = False,
        num_threads: _Threads = None
    ) -> tuple[Given, ...]: ...
    def rotate(
        self, x: ArrayLike, *, offset: _Offset = None, positions: _Positions = None, valid: _Valid = None,
        lengths: _Lengths = None, cu_seqlens: _Sequences = None, seq_axis: int | None = None, inverse: bool = False,
        num_threads: _Threads = None, out: _Out = None
    ) -> npt.NDArray[Any]: ...
    @overload
    def shift_(
        self, x: Given, *, by: ArrayLike, valid: _Valid = None, lengths: _Lengths = None, seq_axis: int | None = None,
        num_threads: _Threads = None
    ) -> Given: ...
    @overload
    def shift_(
        self, x: Given, *others: Given, by: ArrayLike, valid: _Valid = None, lengths: _Lengths = None,
        seq_axis: int | None = None, num_threads: _Threads = None
    ) -> tuple[Given, ...]: ...
    def shift(
        self, x: ArrayLike, *, by: ArrayLike, valid: _Valid = None, lengths: _Lengths = None,
        seq_axis: int | None = None, num_threads: _Threads = None, out: _Out = None
    ) -> npt.NDArray[Any]: ...

def rotate_by_tables_(
    x: Any, *others: Any, cos: ArrayLike, sin: ArrayLike, interleaved: bool, inverse: bool, head_dim: int | None,
    offset: _Offset = None, positions: _Positions = None, valid: _Valid = None, lengths: _Lengths = None,
    cu_seqlens: _Sequences = None, seq_axis: int | None = None, num_threads: _Threads = None
) -> Any: ...
def rotate_by_tables(
    x: Any, *, cos: ArrayLike, sin: ArrayLike, interleaved: bool, inverse: bool, head_dim: int | None,
    offset: _Offset = None, positions: _Positions = None, valid: _Valid = None, lengths: _Lengths = None,
    cu_seqlens: _Sequences = None, seq_axis: int | None = None, num_threads: _Threads = None, out: _Out = None
) -> npt.NDArray[Any]: ...
