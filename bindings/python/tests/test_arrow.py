"""Results as tables of Arrow."""

from __future__ import annotations

import asyncio
import datetime as dt
import gc
import threading
from decimal import Decimal
from typing import Any

import onetrip
import pyarrow as pa
import pytest
from onetrip import aio

QUERY = """SELECT true AS b, 1::int2 AS i2, -2 AS i4, 9007199254740993 AS i8, 1.5::float4 AS f4, 'NaN'::float8 AS f8,
    'é' AS t, '\\x00ff'::bytea AS bytes, '1969-12-31'::date AS d, '2024-02-29 12:34:56.789'::timestamp AS ts,
    '2024-02-29 12:34:56.789+05:30'::timestamptz AS tstz, 1.25::numeric AS n, ARRAY[1, 2] AS a,
    '6ba7b810-9dad-11d1-80b4-00c04fd430c8'::uuid AS u"""
TYPES = {
    "b": pa.bool_(), "i2": pa.int16(), "i4": pa.int32(), "i8": pa.int64(), "f4": pa.float32(), "f8": pa.float64(),
    "t": pa.large_utf8(), "bytes": pa.large_binary(), "d": pa.date32(), "ts": pa.timestamp("us"),
    "tstz": pa.timestamp("us", tz="UTC"), "n": pa.decimal128(3, 2), "a": pa.list_(pa.int64()), "u": pa.uuid(),
}  # fmt: skip


def test_each_type_has_its_column(connection: onetrip.Connection) -> None:
    connection.execute("SET TimeZone TO 'Asia/Kolkata'")
    table = connection.execute(QUERY).fetch_arrow()
    table.validate(full=True)
    assert {name: table.schema.field(name).type for name in TYPES} == TYPES
    (row,) = table.to_pylist()
    f8 = row.pop("f8")
    moment = dt.datetime(2024, 2, 29, 12, 34, 56, 789000)
    assert f8 != f8
    assert row.pop("tstz") == dt.datetime(2024, 2, 29, 7, 4, 56, 789000, tzinfo=dt.timezone.utc)
    assert str(row.pop("u")) == "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
    assert row == {
        "b": True, "i2": 1, "i4": -2, "i8": 9007199254740993, "f4": 1.5, "t": "é", "bytes": b"\x00\xff",
        "d": dt.date(1969, 12, 31), "ts": moment, "n": Decimal("1.25"), "a": [1, 2],
    }  # fmt: skip


def test_nulls_and_lengths_are_kept(connection: onetrip.Connection) -> None:
    query = """SELECT nullif(n % 3, 0) AS a, CASE WHEN n % 5 > 0 THEN repeat('x', n) END AS b, n % 2 = 0 AS c,
        NULL::numeric AS d FROM generate_series(1, 1000) n"""
    cursor = connection.execute(query)
    expected = cursor.fetchall()
    cursor.execute(query)
    cursor.fetchmany(10)
    table = cursor.fetch_arrow()
    table.validate(full=True)
    assert [tuple(row.values()) for row in table.to_pylist()] == expected[10:]
    assert cursor.fetchall() == []
    assert table.column("a").null_count == sum(row[0] is None for row in expected[10:])


def test_days_are_counted_as_python_counts_them(connection: onetrip.Connection) -> None:
    query = "SELECT d::date AS d, d AS t FROM generate_series('0001-01-01'::timestamp, '9999-12-01', '89 days') d"
    table = connection.execute(query).fetch_arrow()
    rows = connection.execute(query).fetchall()
    assert list(zip(table.column("d").to_pylist(), table.column("t").to_pylist(), strict=True)) == rows
    with pytest.raises(ValueError, match="infinity"):
        connection.execute("SELECT 'infinity'::date").fetch_arrow()


def test_results_without_rows_and_pieces_of_results(connection: onetrip.Connection) -> None:
    assert connection.execute("SELECT 1 AS a WHERE false").fetch_arrow().shape == (0, 1)
    with pytest.raises(onetrip.ProgrammingError):
        connection.execute("SET TimeZone TO UTC").fetch_arrow()
    with connection.cursor("pieces") as cursor:
        cursor.itersize = 10
        cursor.execute("SELECT n, 'a' AS t FROM generate_series(1, 25) n")
        assert cursor.fetchone() == (1, "a")
        assert cursor.fetch_arrow().column("n").to_pylist() == list(range(2, 26))


# What a stream has, where it is not what a table has: types without a form of their own in Arrow are text.
OTHERS = """SELECT 1.25::numeric(5, 2) AS n, 1.25::numeric AS free, 0.00123::numeric(3, 5) AS small, 12300::numeric(3, -2) AS big,
    '23:59:59.999999'::time AS c, ARRAY[1, 2] AS a, '{"k": 1}'::jsonb AS j, '1 day'::interval AS i, '10.0.0.1'::inet AS ip,
    int4range(1, 5) AS r, 7::oid AS o, 'x'::"char" AS ch, NULL::text AS nothing"""
OTHER_TYPES = {
    "n": pa.decimal128(5, 2), "free": pa.large_utf8(), "small": pa.decimal128(5, 5), "big": pa.decimal128(5, 0),
    "c": pa.time64("us"), "a": pa.large_utf8(), "j": pa.large_utf8(), "i": pa.large_utf8(), "ip": pa.large_utf8(),
    "r": pa.large_utf8(), "o": pa.int64(), "ch": pa.large_utf8(), "nothing": pa.large_utf8(),
}  # fmt: skip
OTHER_ROW = {
    "n": Decimal("1.25"), "free": "1.25", "small": Decimal("0.00123"), "big": Decimal(12300),
    "c": dt.time(23, 59, 59, 999999), "a": "{1,2}", "j": '{"k": 1}', "i": "1 day", "ip": "10.0.0.1", "r": "[1,5)", "o": 7,
    "ch": "x", "nothing": None,
}  # fmt: skip


@pytest.mark.parametrize("binary", [False, True])
def test_a_stream_has_the_types_of_the_columns(connection: onetrip.Connection, binary: bool) -> None:
    table = pa.table(connection.cursor().stream_arrow(OTHERS, binary=binary))
    table.validate(full=True)
    assert dict(zip(table.schema.names, table.schema.types, strict=True)) == OTHER_TYPES
    # The text of a range has quotes where it is made of the binary form, which means the same.
    row = {**OTHER_ROW, "r": '["1","5")'} if binary else OTHER_ROW
    assert table.to_pylist() == [row]
    # Of a result that is here, the digits of a free numeric are known.
    table = pa.table(connection.cursor(binary=binary).execute(OTHERS))
    assert table.schema.field("free").type == pa.decimal128(3, 2)
    assert table.to_pylist() == [{**row, "free": Decimal("1.25")}]
    table = pa.table(connection.cursor(binary=binary).execute(QUERY))
    table.validate(full=True)
    assert {name: table.schema.field(name).type for name in TYPES} == {**TYPES, "a": pa.large_utf8()}
    assert table.drop(["a", "f8"]) == connection.execute(QUERY).fetch_arrow().drop(["a", "f8"])


@pytest.mark.parametrize("binary", [False, True])
def test_numeric_has_the_digits_of_its_values(connection: onetrip.Connection, binary: bool) -> None:
    cursor = connection.cursor(binary=binary)
    for values, ty in (
        ([], pa.decimal128(1, 0)),
        ([None], pa.decimal128(1, 0)),
        (["0"], pa.decimal128(1, 0)),
        (["0.05", "-100", None], pa.decimal128(5, 2)),
        (["9" * 38], pa.decimal128(38, 0)),
        (["9" * 39], pa.decimal256(39, 0)),
        (["NaN", "1"], pa.utf8()),
        (["Infinity"], pa.utf8()),
    ):
        table = cursor.execute("SELECT a::numeric FROM unnest(%s::text[]) a", (values,)).fetch_arrow()
        expected = values if ty == pa.utf8() else [None if one is None else Decimal(one) for one in values]
        assert table.schema.field(0).type == ty
        assert table.column(0).to_pylist() == expected
        # Without pyarrow's wider type there is text.
        table = pa.table(cursor.execute("SELECT a::numeric FROM unnest(%s::text[]) a", (values,)))
        assert table.schema.field(0).type == (ty if pa.types.is_decimal128(ty) else pa.large_utf8())
    with pytest.raises(ValueError, match='column "a": "NaN"'):
        cursor.execute("SELECT 'NaN'::numeric(5, 2) AS a").fetch_arrow()


def test_times_that_arrow_has_not_are_errors(connection: onetrip.Connection) -> None:
    for value in ("infinity'::date", "-infinity'::timestamp", "infinity'::timestamptz", "24:00'::time"):
        for binary in (False, True):
            cursor = connection.cursor(binary=binary).execute(f"SELECT '{value} AS a")
            with pytest.raises(ValueError, match=r'column "a": ".*" is beyond what'):
                cursor.fetch_arrow()
            with pytest.raises(ValueError, match="is beyond what"):
                pa.table(connection.cursor().stream_arrow(f"SELECT '{value} AS a", binary=binary))


@pytest.mark.parametrize("binary", [False, True])
def test_years_before_christ_are_counted(connection: onetrip.Connection, binary: bool) -> None:
    query = """SELECT d::date - '1970-01-01'::date AS days, d::date AS d, d AS t, d::timestamptz AS tz
        FROM generate_series('4713-01-01 BC'::timestamp, '0010-01-01', '89 days') d"""
    connection.execute("SET TimeZone TO UTC")
    table = connection.cursor(binary=binary).execute(query).fetch_arrow()
    days = table.column("days").to_pylist()
    assert table.column("d").cast(pa.int32()).to_pylist() == days
    micros = [day * 86_400_000_000 for day in days]
    assert table.column("t").cast(pa.int64()).to_pylist() == micros == table.column("tz").cast(pa.int64()).to_pylist()


def test_dates_in_another_style_are_no_dates(connection: onetrip.Connection) -> None:
    for style in ("Postgres", "SQL", "German"):
        connection.execute(f"SET DateStyle TO {style}")
        for ty in ("date", "timestamp"):
            with pytest.raises(ValueError, match="beyond"):
                connection.execute(f"SELECT '2024-02-01'::{ty}").fetch_arrow()


def test_a_cursor_is_a_stream_in_batches(connection: onetrip.Connection) -> None:
    query = "SELECT n, n::text AS t FROM generate_series(1, 150000) n"
    cursor = connection.execute(query)
    cursor.fetchmany(5)
    pa.RecordBatchReader.from_stream(cursor).close()
    reader = pa.RecordBatchReader.from_stream(cursor)
    sizes = [len(reader.read_next_batch())]
    assert cursor.fetchall() == [], "its rows are the stream's now"
    cursor.execute("SELECT 1")
    sizes += [len(batch) for batch in reader]
    assert sizes == [65_536, 65_536, 149_995 - 2 * 65_536]
    assert pa.table(connection.execute(query)).column("n").to_pylist() == list(range(1, 150_001))
    assert pa.table(connection.execute("SELECT 1 AS a WHERE false")).schema == pa.schema({"a": pa.int32()})
    with pytest.raises(onetrip.ProgrammingError, match="no rows"):
        pa.table(connection.execute("SET TimeZone TO UTC"))
    with pytest.raises(onetrip.ProgrammingError):
        pa.table(connection.cursor())


def test_wide_rows_make_short_batches(connection: onetrip.Connection) -> None:
    stream = connection.cursor().stream_arrow("SELECT repeat('x', 100000) AS t FROM generate_series(1, 500) n")
    sizes = [len(batch) for batch in stream]
    assert sum(sizes) == 500 and max(sizes) * 100_000 < 32 * 1024 * 1024


def test_rows_come_as_they_are_asked_for(connection: onetrip.Connection) -> None:
    cursor = connection.cursor()
    stream = cursor.stream_arrow("SELECT n, 1 / (100000 - n) AS t FROM generate_series(1, 200000) n", size=1000)
    reader = pa.RecordBatchReader.from_stream(stream)
    first = reader.read_next_batch()
    assert first.column("n").to_pylist() == list(range(1, 1001))
    with pytest.raises(onetrip.ProgrammingError, match="taken"):
        pa.table(stream)
    del stream
    with pytest.raises(OSError, match="division by zero"):
        reader.read_all()
    connection.rollback()
    # Left early, the statement is interrupted.
    with cursor.stream_arrow("SELECT n FROM generate_series(1, 10000000) n", size=10) as stream:
        batch = next(iter(stream))
        assert len(batch) == 10 and batch.column_names == ["n"]
        with pytest.raises(onetrip.ProgrammingError, match="stream"):
            connection.execute("SELECT 1")
    connection.rollback()
    assert connection.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(onetrip.ProgrammingError, match="closed"):
        pa.table(stream)
    with pytest.raises(onetrip.ProgrammingError, match="no rows"):
        list(cursor.stream_arrow("SET TimeZone TO UTC"))
    with pytest.raises(ValueError, match="size"):
        cursor.stream_arrow("SELECT 1", size=0)
    assert [len(batch) for batch in cursor.stream_arrow("SELECT 1 WHERE false")] == [0]
    assert pa.table(cursor.stream_arrow("SELECT 1 AS a WHERE false")).shape == (0, 1)
    reader = pa.RecordBatchReader.from_stream(cursor.stream_arrow("SELECT n FROM generate_series(1, 10000000) n"))
    reader.close()
    del reader
    gc.collect()
    connection.rollback()
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_another_thread_may_read_the_rows(connection: onetrip.Connection) -> None:
    reader = pa.RecordBatchReader.from_stream(
        connection.cursor().stream_arrow("SELECT n FROM generate_series(1, 100000) n", size=1000)
    )
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(reader.read_all().num_rows))
    thread.start()
    thread.join()
    assert found == [100_000]
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_consumer_may_ask_for_a_schema(connection: onetrip.Connection) -> None:
    query = "SELECT 1.25::numeric AS n, 7 AS i"
    for ty, value in ((pa.decimal128(20, 4), Decimal("1.2500")), (pa.float64(), 1.25), (pa.large_utf8(), "1.25")):
        wanted = pa.schema({"n": ty, "i": pa.int32()})
        for given in (connection.execute(query), connection.cursor().stream_arrow(query)):
            table = pa.table(given, schema=wanted)
            assert table.schema == wanted and table.column("n").to_pylist() == [value]
    with pytest.raises(ValueError, match="3 columns"):
        pa.table(connection.execute(query), schema=pa.schema({"a": pa.int32(), "b": pa.int32(), "c": pa.int32()}))
    with pytest.raises((ValueError, OSError), match="beyond"):
        pa.table(connection.execute(query), schema=pa.schema({"n": pa.decimal128(3, 1), "i": pa.int32()}))


def test_a_batch_can_be_taken_more_than_once(connection: onetrip.Connection) -> None:
    (batch,) = connection.cursor().stream_arrow("SELECT n, n::text AS t FROM generate_series(1, 3) n")
    first, second = pa.record_batch(batch), pa.record_batch(batch)
    assert pa.table(batch) == pa.Table.from_batches([first])
    del batch
    gc.collect()
    assert first == second and first.to_pydict() == {"n": [1, 2, 3], "t": ["1", "2", "3"]}


def test_named_cursors_fetch_as_they_are_read(connection: onetrip.Connection) -> None:
    query = "SELECT n, 'a' AS t FROM generate_series(1, 25) n"
    with connection.cursor("pieces") as cursor:
        cursor.itersize = 10
        cursor.execute(query)
        assert cursor.fetchone() == (1, "a")
        pa.RecordBatchReader.from_stream(cursor).close()
        reader = pa.RecordBatchReader.from_stream(cursor)
        assert reader.read_all().column("n").to_pylist() == list(range(2, 26))
        assert cursor.rownumber == 25
        table = pa.table(cursor.stream_arrow(query, size=4))
        assert table.column("n").to_pylist() == list(range(1, 26)) and table.column("n").num_chunks == 7


def test_other_packages_take_the_stream(connection: onetrip.Connection) -> None:
    query = """SELECT n, n::text AS t, nullif(n, 2) AS u, n / 2.0::float8 AS f, md5(n::text)::uuid AS id, n::numeric(9, 2) AS d,
        '2024-02-29 12:00'::timestamptz + n * interval '1 hour' AS at, '2024-02-29'::date AS day, n % 2 = 0 AS even
        FROM generate_series(1, 100000) n"""
    rows = connection.execute(query).fetchall()
    names = ["n", "t", "u", "f", "d", "day", "even"]
    kept = [tuple(row[at] for at in (0, 1, 2, 3, 5, 7, 8)) for row in rows]

    polars = pytest.importorskip("polars")
    for given in (connection.execute(query), connection.cursor().stream_arrow(query, size=10_000)):
        frame = polars.DataFrame(given)
        assert frame.select(names).rows() == kept
        assert frame["at"].dtype == polars.Datetime("us", "UTC")

    duckdb = pytest.importorskip("duckdb")
    stream = connection.cursor().stream_arrow(query, size=10_000)  # noqa: F841 (DuckDB finds it by its name)
    database = duckdb.connect()
    assert database.sql(f"SELECT {', '.join(names)} FROM stream").fetchall() == kept
    given = connection.execute(query)
    assert database.sql("SELECT id FROM given LIMIT 1").fetchall() == [(rows[0][4],)]

    pandas = pytest.importorskip("pandas")
    if hasattr(pandas.DataFrame, "from_arrow"):
        frame = pandas.DataFrame.from_arrow(connection.cursor().stream_arrow(query))
        assert frame["n"].tolist() == [row[0] for row in rows]
    # And give their own, which are written.
    connection.execute("CREATE TEMP TABLE item (n int8, t text, d numeric(9, 2), even bool)")
    cursor = connection.cursor()
    wanted = [(row[0], row[1], row[5], row[8]) for row in rows]
    small = pa.table(connection.execute(query)).select(["n", "t", "d", "even"])
    for given in (
        polars.DataFrame(small),
        small.to_pandas(types_mapper=pandas.ArrowDtype),
        database.sql("SELECT * FROM small"),
    ):
        with cursor.copy("COPY item FROM STDIN") as copy:
            copy.write_arrow(given)
        cursor.executemany("INSERT INTO item VALUES (%(n)s, %(t)s, %(d)s, %(even)s)", given)
        assert cursor.execute("SELECT * FROM item ORDER BY n").fetchall()[::2] == wanted
        cursor.execute("TRUNCATE item")


def test_the_same_for_event_loops(server: dict[str, Any]) -> None:
    async def main() -> None:
        async with await aio.connect(**server) as connection:
            table = await (await connection.execute("SELECT generate_series(1, 3) AS n")).fetch_arrow()
            assert table.to_pydict() == {"n": [1, 2, 3]}
            async with connection.cursor("pieces") as cursor:
                cursor.itersize = 2
                await cursor.execute("SELECT generate_series(1, 5) AS n")
                assert (await cursor.fetch_arrow()).to_pydict() == {"n": [1, 2, 3, 4, 5]}
                with pytest.raises(onetrip.NotSupportedError, match="awaited"):
                    pa.table(cursor)
                stream = cursor.stream_arrow("SELECT generate_series(1, 5) AS n", size=3)
                assert [len(batch) async for batch in stream] == [3, 2]
            assert pa.table(await connection.execute("SELECT 7 AS n")).to_pydict() == {"n": [7]}
            query = "SELECT n, repeat('x', 1000) FROM generate_series(1, 20000) n"
            stream = connection.cursor().stream_arrow(query, size=5000)
            tables = [pa.table(batch) async for batch in stream]
            assert [len(table) for table in tables] == [5000] * 4
            assert pa.concat_tables(tables).column("n").to_pylist() == list(range(1, 20_001))
            async with connection.cursor().stream_arrow(query, size=10) as stream:
                assert len(await anext(stream)) == 10
            await connection.rollback()
            assert await (await connection.execute("SELECT 1")).fetchone() == (1,)

    asyncio.run(main())
