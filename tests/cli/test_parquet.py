# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest

pytest.importorskip("pyarrow")

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import fastpe
from fastpe.__main__ import main

ROWS, SEQ_LEN, WIDTH = 10, 5, 8


def flat(x: np.ndarray) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), x.shape[-1])


def values(column: pa.ChunkedArray) -> np.ndarray:
    array = pa.concat_arrays(column.chunks)
    while pa.types.is_nested(array.type):
        array = array.flatten()
    return np.asarray(array.to_numpy()).reshape(-1, WIDTH)


def write(path: Path, columns: dict[str, pa.Array], **options: Any) -> str:
    parquet.write_table(pa.table(columns), path, row_group_size=4, **options)
    return str(path)


def embeddings(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_that_are_positions_are_one_sequence(tmp_path: Path, dtype: Any) -> None:
    x = embeddings(ROWS, WIDTH, dtype=dtype)
    source = write(tmp_path / "x.parquet", {"id": pa.array(range(ROWS)), "e": flat(x)}, compression="zstd")
    target = tmp_path / "y.parquet"
    assert main(["add", source, "-o", str(target), "--offset", "7", "--scale", "2", "-q"]) == 0
    before, after = parquet.ParquetFile(source), parquet.ParquetFile(target)
    assert after.schema_arrow == before.schema_arrow
    assert after.num_row_groups == before.num_row_groups == 3
    assert after.metadata.row_group(0).column(1).compression == "ZSTD"
    table = after.read()
    assert table.column("id").to_pylist() == list(range(ROWS))
    np.testing.assert_array_equal(values(table.column("e")), fastpe.add(x, offset=7, scale=2))


def test_rows_that_are_sequences_of_one_length(tmp_path: Path) -> None:
    x = embeddings(ROWS, SEQ_LEN, WIDTH)
    column = pa.FixedSizeListArray.from_arrays(flat(x), SEQ_LEN)
    source, target = write(tmp_path / "x.parquet", {"e": column}), str(tmp_path / "y.parquet")
    assert main(["add", source, "-o", target, "--convention", "fairseq", "-q"]) == 0
    table = parquet.read_table(target)
    assert table.schema.field("e").type == column.type
    np.testing.assert_array_equal(values(table.column("e")), fastpe.add(x, convention="fairseq").reshape(-1, WIDTH))


def test_rows_that_are_sequences_of_their_own_lengths(tmp_path: Path) -> None:
    lengths = [3, 0, 5, 1, 1, 9, 2]
    starts = np.cumsum([0, *lengths])
    x = embeddings(starts[-1], WIDTH)
    column = pa.ListArray.from_arrays(starts.astype(np.int32), flat(x))
    source, target = write(tmp_path / "x.parquet", {"e": column}), str(tmp_path / "y.parquet")
    assert main(["add", source, "-o", target, "-q"]) == 0
    table = parquet.read_table(target)
    assert [len(row) for row in table.column("e").to_pylist()] == lengths
    np.testing.assert_array_equal(values(table.column("e")), fastpe.add(x, cu_seqlens=starts))


def test_an_empty_file(tmp_path: Path) -> None:
    source, target = write(tmp_path / "x.parquet", {"e": flat(embeddings(0, WIDTH))}), str(tmp_path / "y.parquet")
    assert main(["add", source, "-o", target, "-q"]) == 0
    assert parquet.read_table(target).num_rows == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "y.parquet"], "has 3 columns of lists of floats (e, f, ragged); choose with --key NAME"),
        (["-o", "y.parquet", "--key", "g"], "--key is g, expected one of x.parquet's columns: e, f, names, ragged"),
        (["-o", "y.parquet", "--key", "names"], "column names has type string, expected lists of floats"),
        (
            ["-o", "y.parquet", "--key", "ragged"],
            "column ragged has a vector of length 2, expected 1 as the first one has",
        ),
        (["-o", "y.parquet", "--key", "f"], "column f has nulls inside of its rows; fill or drop them first"),
        (["-o", "y.npy", "--key", "e"], "give y.npy the suffix .parquet"),
        (["-o", "y.parquet", "--key", "e", "--dtype", "float16"], "x.parquet is a table"),
        (["--in-place", "--key", "e"], "cannot be changed in place"),
    ],
)
def test_errors_are_one_line_and_write_nothing(
    tmp_path: Path,
    options: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    e = flat(embeddings(2, WIDTH))
    f = pa.array([[1.0] * WIDTH, [None] * WIDTH], e.type)
    write(Path("x.parquet"), {"e": e, "f": f, "names": pa.array(["a", "b"]), "ragged": pa.array([[1.0], [1.0, 2.0]])})
    assert main(["add", "x.parquet", *options]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["x.parquet"]


@pytest.mark.parametrize("data", [b"", b"PAR1 no PAR1", b"nonsense" * 100])
def test_damaged_files(tmp_path: Path, data: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "x.parquet"
    source.write_bytes(data)
    assert main(["add", str(source), "-o", str(tmp_path / "y.parquet")]) == 1
    error = capsys.readouterr().err
    assert "is not a Parquet file, or damaged" in error
    assert error.count("\n") == 1


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    source = write(tmp_path / "x.parquet", {"e": flat(embeddings(2, WIDTH))})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main(["add", source, "-o", str(tmp_path / "y.parquet")]) == 2
    assert "pip install pyarrow" in capsys.readouterr().err
