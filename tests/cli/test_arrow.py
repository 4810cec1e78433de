# SPDX-License-Identifier: BSD-3-Clause
"""Columns of embeddings in Arrow files and streams; what both they and Parquet files can hold is tried here."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow")

import os
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import ipc, parquet

import fastpe
from fastpe.__main__ import main

ROWS, SEQ_LEN, WIDTH = 10, 5, 8
FORMS = ["file", "stream"]


def embeddings(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def write(path: Path, table: pa.Table, form: str = "file", **options: Any) -> str:
    if path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=4)
    else:
        new = ipc.new_file if form == "file" else ipc.new_stream
        with new(str(path), table.schema, options=ipc.IpcWriteOptions(**options)) as writer:
            writer.write_table(table, max_chunksize=4)
    return str(path)


def read(path: Path) -> pa.Table:
    if path.suffix == ".parquet":
        return parquet.read_table(path)
    data = path.read_bytes()
    with ipc.open_file(data) if data.startswith(b"ARROW1") else ipc.open_stream(data) as reader:
        return reader.read_all()


def added(path: Path, column: pa.Array, *options: str, suffix: str = ".arrow") -> pa.Array:
    """The column after `fastpe add`; its type, and how its rows are batched, must not change."""
    source, target = path / f"x{suffix}", path / f"y{suffix}"
    before = pa.table({"e": column})
    write(source, before)
    assert main(["add", str(source), "-o", str(target), "-q", *options]) == 0
    after = read(target)
    assert after.schema == read(source).schema
    assert len(after) == len(before)
    if suffix == ".arrow":
        assert [len(batch) for batch in after.to_batches()] == [len(batch) for batch in before.to_batches(4)]
    after.validate(full=True)
    return after.column("e").combine_chunks()


def as_polars_writes_it(path: Path) -> None:
    """Move a file's messages behind bytes that are no message, which readers of the footer never see."""
    data = path.read_bytes()
    length = int.from_bytes(data[-10:-6], "little")
    footer = bytearray(data[-10 - length : -10])
    with ipc.open_file(data) as reader:
        count = reader.num_record_batches
    moved = 0
    for place in range(0, length - 8, 8):
        # Blocks are {offset, bytes of metadata, bytes of the body}; a message begins with a mark of its own.
        offset = int.from_bytes(footer[place : place + 8], "little")
        if 0 < offset < len(data) - 4 and data[offset : offset + 4] == b"\xff" * 4:
            footer[place : place + 8] = (offset + 64).to_bytes(8, "little")
            moved += 1
    assert moved >= count
    path.write_bytes(data[:8] + b"\x08" * 64 + data[8 : -10 - length] + footer + data[-10:])


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_a_file_is_read_by_its_footer(tmp_path: Path, compression: str | None) -> None:
    x = embeddings(ROWS, WIDTH)
    source, target = tmp_path / "x.arrow", tmp_path / "y.arrow"
    write(source, pa.table({"e": in_lists(x, pa.list_(pa.float32(), WIDTH))}), compression=compression)
    as_polars_writes_it(source)
    assert main(["add", str(source), "-o", str(target), "-q"]) == 0
    after = read(target)
    np.testing.assert_array_equal(after.column("e").to_pylist(), fastpe.add(x))
    assert target.read_bytes() == Path(write(tmp_path / "z.arrow", after, compression=compression)).read_bytes()


@pytest.mark.parametrize("suffix", [".arrow", ".parquet"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("keys", [["d.*"], ["d.0", "d.[1-7]"]], ids=" ".join)
def test_a_column_for_each_dimension(tmp_path: Path, keys: list[str], dtype: Any, suffix: str) -> None:
    x = embeddings(ROWS, WIDTH, dtype=dtype)
    columns = {f"d.{index}": pa.array(x[:, index]) for index in range(WIDTH)}
    before = pa.table({"id": range(ROWS), "score": np.ones(ROWS)} | columns)
    source, target = tmp_path / f"x{suffix}", tmp_path / f"y{suffix}"
    write(source, before)
    options = [option for key in keys for option in ("--key", key)]
    assert main(["add", str(source), "-o", str(target), "-q", "--offset", "7", "--alpha", "2", *options]) == 0
    after = read(target)
    assert after.schema == before.schema
    assert after.select(["id", "score"]) == before.select(["id", "score"])
    result = np.stack([after.column(name).to_numpy() for name in columns], axis=1)
    np.testing.assert_array_equal(result, fastpe.add(x, offset=7, alpha=2))


@pytest.mark.parametrize("suffix", [".arrow", ".parquet"])
@pytest.mark.parametrize(
    ("x", "kind"),
    [
        (np.zeros((ROWS, WIDTH), np.float32), pa.list_(pa.float32(), WIDTH)),
        (np.zeros((ROWS, SEQ_LEN, WIDTH), np.float16), pa.list_(pa.list_(pa.float16()))),
        (np.zeros(ROWS), pa.float64()),
    ],
    ids=["vectors", "sequences", "dimensions"],
)
def test_the_last_line_counts_the_bytes_of_vectors(
    tmp_path: Path, x: np.ndarray, kind: pa.DataType, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pa.table({"id": range(ROWS), "e": pa.array(x.tolist(), kind)})
    source = write(tmp_path / f"x{suffix}", table)
    assert main(["add", source, "-o", str(tmp_path / f"y{suffix}"), "--key", "e"]) == 0
    assert capsys.readouterr().err == f"added to 1 file: {x.nbytes} B\n"


def test_a_message_names_the_pattern_of_the_dimensions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = embeddings(ROWS, WIDTH)
    source = write(tmp_path / "x.parquet", pa.table({"id": range(ROWS)} | {f"e[{i}]": x[:, i] for i in range(WIDTH)}))
    command = ["add", source, "-o", str(tmp_path / "y.parquet")]
    assert main(command) == 1
    error = capsys.readouterr().err
    assert "x.parquet has no column of lists of floats, but 8 of floats (e[0], e[1], e[2], e[3] ..)" in error
    # The remedy, as pasted.
    key = shlex.split(error.partition("choose them with ")[2])
    assert main([*command, *key]) == 0
    after = read(tmp_path / "y.parquet")
    np.testing.assert_array_equal(after.column("e[3]").to_numpy(), fastpe.add(x)[:, 3])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1.0, 2.0], "b": pa.array([1.0, 2.0], pa.float32())}, "of the types double, float, expected one type"),
        ({"a": [1.0, None], "b": [1.0, 2.0]}, "column a has nulls; fill or drop them first"),
    ],
)
def test_dimensions_that_are_refused(
    tmp_path: Path, columns: dict[str, Any], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path / "x.arrow", pa.table(columns))
    assert main(["add", source, "-o", str(tmp_path / "y.arrow"), "--key", "*"]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert os.listdir(tmp_path) == ["x.arrow"]


def in_lists(x: np.ndarray, kind: pa.DataType) -> pa.Array:
    return pa.array(x.tolist(), kind)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_form_compression_and_other_columns_stay(tmp_path: Path, form: str, compression: str | None) -> None:
    x = embeddings(ROWS, WIDTH)
    words = pa.array(["a", "b"] * 5).dictionary_encode()
    schema = pa.schema(
        [("word", words.type), pa.field("e", pa.list_(pa.float32(), WIDTH), metadata={"of": "field"})], {"of": "table"}
    )
    table = pa.Table.from_arrays([words, in_lists(x, schema.field("e").type)], schema=schema)
    source = write(tmp_path / "x.arrow", table, form, compression=compression)
    target = tmp_path / "y.arrow"
    assert main(["add", source, "-o", str(target), "-q", "--offset", "7"]) == 0
    after = read(target)
    assert after.schema.equals(schema, check_metadata=True)
    assert after.column("word").to_pylist() == words.to_pylist()
    np.testing.assert_array_equal(after.column("e").to_pylist(), fastpe.add(x, offset=7))
    assert target.read_bytes().startswith(b"ARROW1") == (form == "file")
    # Written once more by Arrow itself: the same bytes only if the compression is the same.
    assert target.read_bytes() == Path(write(tmp_path / "z.arrow", after, form, compression=compression)).read_bytes()


@pytest.mark.parametrize("suffix", [".arrow", ".parquet"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    "vector", [lambda t: pa.list_(t, WIDTH), pa.list_, pa.large_list], ids=["fixed", "list", "large"]
)
def test_rows_that_are_vectors(tmp_path: Path, vector: Any, dtype: Any, suffix: str) -> None:
    x = embeddings(ROWS, WIDTH, dtype=dtype)
    column = in_lists(x, vector(pa.from_numpy_dtype(dtype)))
    result = added(tmp_path, column, "--scale", "2", "--convention", "fairseq", suffix=suffix)
    np.testing.assert_array_equal(np.array(result.to_pylist(), dtype), fastpe.add(x, scale=2, convention="fairseq"))


@pytest.mark.parametrize("suffix", [".arrow", ".parquet"])
@pytest.mark.parametrize("vector", [pa.list_(pa.float32(), WIDTH), pa.list_(pa.float32()), pa.large_list(pa.float32())])
@pytest.mark.parametrize(
    "row", [lambda v: pa.list_(v, SEQ_LEN), pa.list_, pa.large_list], ids=["fixed", "list", "large"]
)
def test_rows_that_are_sequences(tmp_path: Path, row: Any, vector: pa.DataType, suffix: str) -> None:
    x = embeddings(ROWS, SEQ_LEN, WIDTH)
    result = added(tmp_path, in_lists(x, row(vector)), "--offset", "3", suffix=suffix)
    np.testing.assert_array_equal(result.to_pylist(), fastpe.add(x, offset=3))


@pytest.mark.parametrize("suffix", [".arrow", ".parquet"])
@pytest.mark.parametrize("vector", [pa.list_(pa.float32(), WIDTH), pa.list_(pa.float32())], ids=["fixed", "list"])
def test_sequences_of_their_own_lengths_and_null_ones(tmp_path: Path, vector: pa.DataType, suffix: str) -> None:
    rows = [None if n is None else embeddings(n, WIDTH) for n in (3, 0, None, 5, 1, None, 1, 9, 2)]
    column = pa.array([None if row is None else row.tolist() for row in rows], pa.list_(vector))
    result = added(tmp_path, column, suffix=suffix).to_pylist()
    for row, after in zip(rows, result, strict=True):
        assert (after is None) == (row is None)
        if row is not None and after is not None:
            np.testing.assert_array_equal(np.array(after, np.float32).reshape(-1, WIDTH), fastpe.add(row))


@pytest.mark.parametrize("suffix", [".arrow", ".parquet"])
@pytest.mark.parametrize("convention", ["vaswani", "fairseq"])
@pytest.mark.parametrize("vector", [pa.list_(pa.float32(), WIDTH), pa.list_(pa.float32())], ids=["fixed", "list"])
def test_null_vectors_stay_null_and_keep_their_positions(
    tmp_path: Path, vector: pa.DataType, convention: str, suffix: str
) -> None:
    x = embeddings(ROWS, WIDTH)
    missing = {0, 5, 6, 9}
    column = pa.array([None if row in missing else x[row].tolist() for row in range(ROWS)], vector)
    result = added(tmp_path, column, "--convention", convention, "--offset", "2", suffix=suffix).to_pylist()
    expected = fastpe.add(x, convention=convention, offset=2).tolist()
    assert result == [None if row in missing else expected[row] for row in range(ROWS)]


@pytest.mark.parametrize("suffix", [".arrow", ".parquet"])
@pytest.mark.parametrize("vector", [pa.list_(pa.float32(), WIDTH), pa.list_(pa.float32())], ids=["fixed", "list"])
def test_null_sequences_of_a_fixed_length(tmp_path: Path, vector: pa.DataType, suffix: str) -> None:
    x = embeddings(ROWS, SEQ_LEN, WIDTH)
    rows = [None if row in (0, 4, 5) else x[row].tolist() for row in range(ROWS)]
    result = added(tmp_path, pa.array(rows, pa.list_(vector, SEQ_LEN)), suffix=suffix).to_pylist()
    for before, after in zip(rows, result, strict=True):
        assert (after is None) == (before is None)
        if before is not None:
            np.testing.assert_array_equal(after, fastpe.add(np.array(before, np.float32)))


def test_nulls_that_hide_values(tmp_path: Path) -> None:
    x = embeddings(ROWS, WIDTH)
    valid = pa.array([row % 3 != 0 for row in range(ROWS)])
    column = pa.Array.from_buffers(
        pa.list_(pa.float32(), WIDTH), ROWS, [valid.buffers()[1]], children=[pa.array(x.reshape(-1))]
    )
    result = added(tmp_path, column).to_pylist()
    expected = fastpe.add(x).tolist()
    assert result == [expected[row] if row % 3 else None for row in range(ROWS)]


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.float32(), WIDTH), pa.list_(pa.float32()), pa.list_(pa.list_(pa.float64()))]
)
@pytest.mark.parametrize("rows", [[], [None, None]])
def test_nothing_to_add_to(tmp_path: Path, rows: list[Any], kind: pa.DataType) -> None:
    assert added(tmp_path, pa.array(rows, kind)).to_pylist() == rows


@pytest.mark.parametrize("suffix", [".arrow", ".parquet"])
@pytest.mark.parametrize(
    ("rows", "kind", "message"),
    [
        ([[1.0, 2.0], [1.0, 2.0, 3.0]], pa.list_(pa.float32()), "has a vector of length 3, expected 2"),
        ([[1.0, 2.0], []], pa.list_(pa.float32()), "has a vector of length 0, expected 2"),
        ([[1.0, None]], pa.list_(pa.float32(), 2), "has nulls inside of its rows"),
        ([[[1.0, 2.0], None]], pa.list_(pa.list_(pa.float32())), "has nulls inside of its rows"),
        ([[[1.0, None]]], pa.list_(pa.list_(pa.float32(), 2)), "has nulls inside of its rows"),
        ([[1, 2]], pa.list_(pa.int32()), "has no column of floats, or of lists of them; its columns are: e of "),
        (
            [[[[1.0]]]],
            pa.list_(pa.list_(pa.list_(pa.float32()))),
            "has no column of floats, or of lists of them; its columns are: e of ",
        ),
    ],
)
def test_columns_that_are_refused(
    tmp_path: Path,
    rows: list[Any],
    kind: pa.DataType,
    message: str,
    suffix: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = write(tmp_path / f"x{suffix}", pa.table({"e": pa.array(rows, kind)}))
    assert main(["add", source, "-o", str(tmp_path / f"y{suffix}")]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert os.listdir(tmp_path) == [f"x{suffix}"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "y.arrow"], "x.arrow has 2 columns of lists of floats (e, f); choose with --key NAME"),
        (["-o", "y.arrow", "--key", "g"], "--key is g, expected one of x.arrow's columns: e, f, names"),
        (["-o", "y.arrow", "--key", "names"], "x.arrow's column names has type string, expected lists of floats"),
        (
            ["-o", "y.arrow", "--key", "e", "--key", "f"],
            "--key names 2 columns of lists in x.arrow, expected one of them",
        ),
        (
            ["-o", "y.parquet", "--key", "e"],
            "x.arrow is an Arrow file, and so is its result; give y.parquet the suffix",
        ),
        (["-o", "y.arrow", "--key", "e", "--seq-axis", "0"], "--dtype and --seq-axis are for arrays"),
        (["--in-place", "--key", "e"], "x.arrow is an Arrow file, which cannot be changed in place"),
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
    e = in_lists(embeddings(2, WIDTH), pa.list_(pa.float32(), WIDTH))
    write(Path("x.arrow"), pa.table({"e": e, "f": e, "names": ["a", "b"]}))
    assert main(["add", "x.arrow", *options]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert os.listdir() == ["x.arrow"]


@pytest.mark.parametrize("trials", [40, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("form", FORMS)
def test_damaged_files_are_one_line_and_leave_nothing(
    tmp_path: Path, form: str, trials: int, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = pa.list_(pa.list_(pa.float32()))
    source = Path(write(tmp_path / "x.arrow", pa.table({"e": in_lists(embeddings(ROWS, SEQ_LEN, WIDTH), kind)}), form))
    whole = source.read_bytes()
    rng = np.random.default_rng(0)
    codes = []
    for trial in range(trials):
        data = bytearray(whole)
        if trial % 5 == 0:
            del data[rng.integers(len(data)) :]
        for _ in range(rng.integers(1, 4)):
            if data:
                data[rng.integers(len(data))] = rng.integers(256)
        source.write_bytes(data)
        code = main(["add", str(source), "-o", str(tmp_path / "y.arrow"), "-q"])
        error = capsys.readouterr().err
        assert error.count("\n") == code, error
        (tmp_path / "y.arrow").unlink(missing_ok=True)
        assert os.listdir(tmp_path) == ["x.arrow"]
        codes.append(code)
    assert codes.count(1) > trials // 5


@pytest.mark.parametrize("data", [b"", b"FEA1" + bytes(100) + b"FEA1", b"ARROW1", b"nonsense" * 100])
def test_what_is_no_arrow_file(tmp_path: Path, data: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "x.feather"
    source.write_bytes(data)
    assert main(["add", str(source), "-o", str(tmp_path / "y.feather")]) == 1
    error = capsys.readouterr().err
    assert "is not an Arrow file or stream, or damaged" in error
    assert error.count("\n") == 1


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.arrow").touch()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main(["add", str(tmp_path / "x.arrow"), "-o", str(tmp_path / "y.arrow")]) == 2
    error = capsys.readouterr().err
    assert error == "fastpe: Arrow files need pyarrow; install it with: pip install pyarrow\n"
