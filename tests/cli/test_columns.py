# SPDX-License-Identifier: BSD-3-Clause
"""``fastpe add`` on columns of Parquet and Arrow files."""

from __future__ import annotations

import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import ipc, parquet

import fastpe
from fastpe._cli import columns

from .support import Array, Capture, embeddings, refused, run

ROWS, SEQ_LEN, WIDTH = 10, 5, 8
FORMS = ["parquet", "arrow", "feather"]  # the last one is a stream here
forms = pytest.mark.parametrize("form", FORMS)


def write(name: str, table: pa.Table, **options: Any) -> None:
    if name.endswith(".parquet"):
        parquet.write_table(table, name, row_group_size=4, **options)
    else:
        new = ipc.new_stream if name.endswith(".feather") else ipc.new_file
        with new(name, table.schema, options=ipc.IpcWriteOptions(**options)) as writer:
            writer.write_table(table, max_chunksize=4)


def read(name: str) -> pa.Table:
    if name.endswith(".parquet"):
        return parquet.read_table(name)
    with ipc.open_stream(name) if name.endswith(".feather") else ipc.open_file(name) as reader:
        return reader.read_all()


def added(column: pa.Array, options: str = "", form: str = "arrow") -> Any:
    """The column after `fastpe add`, as lists; its type, and how its rows are batched, must not change."""
    before = pa.table({"e": column})
    try:
        write(f"x.{form}", before)
        schema = read(f"x.{form}").schema
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pytest.skip("this pyarrow has no null lists of a fixed size in Parquet")
    assert run(f"add x.{form} -o y.{form} -q {options}") == 0
    after = read(f"y.{form}")
    assert after.schema == schema
    if form != "parquet":
        assert [len(batch) for batch in after.to_batches()] == [len(batch) for batch in before.to_batches(4)]
    after.validate(full=True)
    return after.column("e").to_pylist()


def lists(x: Array, kind: pa.DataType) -> pa.Array:
    return pa.array(list(x) if x.ndim == 2 else x.tolist(), kind)


VECTORS = {"fixed": pa.list_(pa.float32(), WIDTH), "list": pa.list_(pa.float32()), "large": pa.large_list(pa.float32())}
vectors = pytest.mark.parametrize("vector", VECTORS.values(), ids=VECTORS)


@forms
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_that_are_vectors(dtype: Any, form: str) -> None:
    x = embeddings(ROWS, WIDTH, dtype=dtype)
    for kind in (lambda t: pa.list_(t, WIDTH), pa.list_, pa.large_list):
        result = added(lists(x, kind(pa.from_numpy_dtype(dtype))), "--scale 2 --convention fairseq --offset 7", form)
        np.testing.assert_array_equal(np.array(result, dtype), fastpe.add(x, scale=2, convention="fairseq", offset=7))


@forms
@vectors
@pytest.mark.parametrize("row", [lambda v: pa.list_(v, SEQ_LEN), pa.list_, pa.large_list], ids=VECTORS)
def test_rows_that_are_sequences(row: Any, vector: pa.DataType, form: str) -> None:
    x = embeddings(ROWS, SEQ_LEN, WIDTH)
    np.testing.assert_array_equal(added(lists(x, row(vector)), "--offset 3", form), fastpe.add(x, offset=3))
    # Null sequences stay null, also where all have one length.
    rows = [None if row in (0, 4, 5) else x[row].tolist() for row in range(ROWS)]
    expected = [None if row in (0, 4, 5) else each.tolist() for row, each in enumerate(fastpe.add(x))]
    assert added(pa.array(rows, row(vector)), "", form) == expected


@forms
@vectors
def test_sequences_of_their_own_lengths_and_null_ones(vector: pa.DataType, form: str) -> None:
    rows = [None if n is None else embeddings(n, WIDTH) for n in (3, 0, None, 5, 1, None, 1, 9, 2)]
    column = pa.array([None if row is None else row.tolist() for row in rows], pa.list_(vector))
    for row, after in zip(rows, added(column, "", form), strict=True):
        assert (after is None) == (row is None)
        if row is not None:
            np.testing.assert_array_equal(np.array(after, np.float32).reshape(-1, WIDTH), fastpe.add(row))


@forms
@vectors
@pytest.mark.parametrize("convention", ["vaswani", "fairseq"])
def test_null_vectors_stay_null_and_keep_their_positions(vector: pa.DataType, convention: Any, form: str) -> None:
    x, missing = embeddings(ROWS, WIDTH), {0, 5, 6, 9}
    column = pa.array([None if row in missing else x[row].tolist() for row in range(ROWS)], vector)
    expected = fastpe.add(x, convention=convention, offset=2).tolist()
    result = added(column, f"--convention {convention} --offset 2", form)
    assert result == [None if row in missing else expected[row] for row in range(ROWS)]


def test_nulls_that_hide_values() -> None:
    x = embeddings(ROWS, WIDTH)
    valid = pa.array([row % 3 != 0 for row in range(ROWS)])
    kind, child = pa.list_(pa.float32(), WIDTH), pa.array(x.reshape(-1))
    result = added(pa.Array.from_buffers(kind, ROWS, [valid.buffers()[1]], children=[child]))
    assert result == [row if index % 3 else None for index, row in enumerate(fastpe.add(x).tolist())]


@pytest.mark.parametrize("kind", [*VECTORS.values(), pa.list_(pa.list_(pa.float64()))])
@forms
def test_nothing_to_add_to(kind: pa.DataType, form: str) -> None:
    for rows in ([], [None, None]):
        assert added(pa.array(rows, kind), "", form) == rows


@forms
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_other_columns_and_metadata_stay(form: str, compression: str | None) -> None:
    x = embeddings(ROWS, WIDTH)
    words = pa.array(["a", None] * 5).dictionary_encode()
    field = pa.field("e", pa.list_(pa.float32(), WIDTH), metadata={"of": "field"})
    schema = pa.schema([("word", words.type), field, ("f", field.type)], {"of": "table"})
    table = pa.Table.from_arrays([words, lists(x, field.type), lists(x, field.type)], schema=schema)
    write(f"x.{form}", table, compression=compression)
    assert run(f"add x.{form} -o y.{form} --key e") == 0
    after = read(f"y.{form}")
    assert after.schema.equals(read(f"x.{form}").schema, check_metadata=True)
    assert after.schema.metadata[b"of"] == b"table"
    assert after.select(["word", "f"]).to_pylist() == table.select(["word", "f"]).to_pylist()
    np.testing.assert_array_equal(after.column("e").to_pylist(), fastpe.add(x))
    if form == "parquet":
        groups = [parquet.ParquetFile(f"{name}.parquet").metadata for name in "xy"]
        assert groups[0].num_row_groups == groups[1].num_row_groups == 3


def test_large_row_groups_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_group_bytes", 300)
    x = embeddings(100, WIDTH)
    parquet.write_table(pa.table({"e": lists(x, pa.list_(pa.float32()))}), "x.parquet", use_dictionary=False)
    assert run("add x.parquet -o y.parquet") == 0
    np.testing.assert_array_equal(read("y.parquet").column("e").to_pylist(), fastpe.add(x))
    assert parquet.ParquetFile("y.parquet").num_row_groups > 5


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"e": pa.array([[1.0, 2.0], [1.0]], pa.list_(pa.float32()))}, "", "one length"),
    ({"e": pa.array([[1.0, 2.0], []], pa.list_(pa.float32()))}, "", "one length"),
    ({"e": pa.array([[1.0, 2.0]] * 4 + [[1.0]], pa.list_(pa.float32()))}, "", "one length"),  # in two batches
    ({"e": pa.array([[1.0, None]], pa.list_(pa.float32(), 2))}, "", "nulls"),
    ({"e": pa.array([[[1.0, 2.0], None]], pa.list_(pa.list_(pa.float32())))}, "", "nulls"),
    ({"e": pa.array([[[1.0, None]]], pa.list_(pa.list_(pa.float32(), 2)))}, "", "nulls"),
    ({"e": pa.array([[1, 2]], pa.list_(pa.int32()))}, "", "e of list"),
    ({"e": pa.array([[[[1.0]]]], pa.list_(pa.list_(pa.list_(pa.float32()))))}, "", "e of list"),
    ({"e": pa.array([[], []], pa.list_(pa.float32(), 0))}, "", "x."),
    ({"e": [[1.0]], "f": [[1.0]]}, "", "--key e or --key f"),
    ({"e": [[1.0]], "f": [[1.0]]}, "--key g", "--key is g"),
    ({"e": [[1.0]], "f": [[1.0]]}, "--key e --key f", "--key is e and f"),
    ({"e": [[1.0]], "f": [[1.0]]}, "--key e --key g", "--key is e and g"),
    ({"e": [[1.0]], "f": ["a"]}, "--key f", "f of string"),
    ({"e": [[1.0]]}, "--dtype float16", "--dtype"),
    ({"e": [[1.0]]}, "--seq-axis 0", "--seq-axis"),
    ({"e": [[1.0]]}, f"--offset {2**53 + 1}", "2**53"),
    ({"x" * 5000: ["a"]}, "", "such a column"),
]


@forms
def test_what_is_refused(form: str, capsys: Capture) -> None:
    for arrays, options, named in REFUSED:
        write(f"x.{form}", pa.table(arrays))
        refused(f"add x.{form} -o y.{form} {options}", capsys, named, code=2 if options else 1)
    refused(f"add x.{form} --in-place", capsys, "-o", code=2)


@forms
def test_a_pyarrow_that_unpickles_types_of_columns_reads_no_file(
    form: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    write(f"x.{form}", pa.table({"e": [[1.0]]}))
    monkeypatch.setattr(pa, "__version__", "14.0.2")
    refused(f"add x.{form} -o y.{form}", capsys, "pyarrow is 14.0.2", "pyarrow>=15", code=2)


@pytest.mark.parametrize("trials", [20, pytest.param(600, marks=pytest.mark.slow)])
@forms
def test_damaged_files_are_one_line_and_leave_nothing(form: str, trials: int, capsys: Capture) -> None:
    name, target = f"x.{form}", f"y.{form}"
    write(name, pa.table({"e": lists(embeddings(ROWS, SEQ_LEN, WIDTH), pa.list_(pa.list_(pa.float32())))}))
    whole, rng, codes = Path(name).read_bytes(), np.random.default_rng(0), []
    for trial in range(trials):
        data = bytearray(whole)
        if trial % 5 == 0:
            del data[rng.integers(len(data)) :]
        for _ in range(rng.integers(1, 4)):
            if data:
                data[rng.integers(len(data))] = rng.integers(256)
        Path(name).write_bytes(data)
        codes.append(run(f"add {name} -o {target} -q"))
        error = capsys.readouterr().err
        assert error.count("\n") == codes[-1], error
        Path(target).unlink(missing_ok=True)
        assert os.listdir() == [name]
    assert codes.count(1) > trials // 5


@pytest.mark.parametrize("form", ["arrow", "feather"])
def test_offsets_that_lead_out_of_the_file(form: str, capsys: Capture) -> None:
    write(f"x.{form}", pa.table({"e": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32()))}))
    right, wrong = (np.array(offsets, np.int32).tobytes() for offsets in ([0, 2, 4], [2, 4, 6]))
    Path(f"x.{form}").write_bytes(Path(f"x.{form}").read_bytes().replace(right, wrong))
    refused(f"add x.{form} -o y.{form}", capsys, f"x.{form} cannot be used as a table")


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_a_file_that_is_truncated_while_it_is_read_is_one_line(
    form: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    x = embeddings(40_000, 64)
    table = pa.table({"e": pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), 64)})
    write(f"x.{form}", table)
    replaced = columns._with_floats

    def truncate_first(*arguments: Any) -> Any:
        os.truncate(f"x.{form}", 100_000)
        return replaced(*arguments)

    monkeypatch.setattr(columns, "_with_floats", truncate_first)
    assert run(f"add x.{form} -o y.{form}") == 1
    error = capsys.readouterr().err
    assert error.startswith(f"fastpe: error: x.{form} ")
    assert error.count("\n") == 1
    assert os.listdir() == [f"x.{form}"]
