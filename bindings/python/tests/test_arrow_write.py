"""Tables and streams of Arrow as rows: of `executemany` and of COPY."""

from __future__ import annotations

import asyncio
import datetime as dt
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import onetrip
import pyarrow as pa
import pytest
from onetrip import aio

UTC = dt.timezone.utc
MOMENT = dt.datetime(2024, 2, 29, 12, 34, 56, 789012)

# Arrow's type, the column's, and values; what comes back where that is not the same.
TYPES: dict[str, tuple[pa.DataType, str, list[Any], list[Any] | None]] = {
    "b": (pa.bool_(), "bool", [True, False], None),
    "i8": (pa.int8(), "int2", [-128, 127], None),
    "i16": (pa.int16(), "int2", [-(2**15), 2**15 - 1], None),
    "i32": (pa.int32(), "int4", [-(2**31), 2**31 - 1], None),
    "i64": (pa.int64(), "int8", [-(2**63), 2**63 - 1], None),
    "u8": (pa.uint8(), "int2", [0, 255], None),
    "u16": (pa.uint16(), "int4", [0, 2**16 - 1], None),
    "u32": (pa.uint32(), "int8", [0, 2**32 - 1], None),
    "u64": (pa.uint64(), "numeric", [0, 2**64 - 1], [Decimal(0), Decimal(2**64 - 1)]),
    "f4": (pa.float32(), "float4", [1.5, float("-inf")], None),
    "f8": (pa.float64(), "float8", [0.1, 1e300], None),
    "d32": (pa.decimal32(5, 2), "numeric", [Decimal("-1.25"), Decimal("100.00")], None),
    "d64": (pa.decimal64(10, 0), "numeric", [Decimal(0), Decimal(-1234567890)], None),
    "d128": (pa.decimal128(38, 20), "numeric", [Decimal("-0." + "0" * 19 + "1"), Decimal("9" * 18 + "." + "9" * 20)], None),
    "d256": (pa.decimal256(76, 3), "numeric", [Decimal("-" + "123456789" * 8 + ".125"), Decimal("0.001")], None),
    "hundreds": (pa.decimal128(5, -2), "numeric", [Decimal("1200"), Decimal("-34500")], None),
    "t": (pa.utf8(), "text", ["é\t\\\n\r", ""], None),
    "T": (pa.large_utf8(), "text", ["x" * 70_000, "\\N"], None),
    "v": (pa.string_view(), "text", ["short", "longer than a view's twelve bytes"], None),
    "dictionary": (pa.dictionary(pa.int8(), pa.utf8()), "text", ["red", "green"], None),
    "bytes": (pa.binary(), "bytea", [b"\x00\xff\\", b""], None),
    "Bytes": (pa.large_binary(), "bytea", [b"\\x00", b"'"], None),
    "views": (pa.binary_view(), "bytea", [b"123456789012", b"1234567890123"], None),
    "fixed": (pa.binary(3), "bytea", [b"\x00\x01\x02", b"abc"], None),
    "uuid": (pa.uuid(), "uuid", [uuid.UUID(int=7), uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")], None),
    "id": (pa.utf8(), "uuid", [str(uuid.UUID(int=7))] * 2, [uuid.UUID(int=7)] * 2),
    "day": (pa.date32(), "date", [dt.date(1, 1, 1), dt.date(9999, 12, 31)], None),
    "day64": (pa.date64(), "date", [dt.date(1969, 12, 31), dt.date(2024, 2, 29)], None),
    "time_s": (pa.time32("s"), "time", [dt.time(0), dt.time(23, 59, 59)], None),
    "time_ms": (pa.time32("ms"), "time", [dt.time(0), dt.time(1, 2, 3, 4000)], None),
    "time": (pa.time64("us"), "time", [dt.time(0), dt.time(23, 59, 59, 999999)], None),
    "time_ns": (pa.time64("ns"), "time", [dt.time(0), dt.time(23, 59, 59, 999999)], None),
    "ts_s": (pa.timestamp("s"), "timestamp", [dt.datetime(1, 1, 1), dt.datetime(9999, 1, 1)], None),
    "ts": (pa.timestamp("us"), "timestamp", [MOMENT, dt.datetime(1969, 12, 31, 23, 59, 59, 999999)], None),
    "tstz": (pa.timestamp("ms", tz="Asia/Kolkata"), "timestamptz", [MOMENT.replace(microsecond=0, tzinfo=UTC)] * 2, None),
    "span": (pa.duration("ms"), "interval", [dt.timedelta(days=-3, hours=1), dt.timedelta(milliseconds=1)], None),
    "nothing": (pa.null(), "int4", [None, None], None),
}  # fmt: skip


def table_of(types: dict[str, tuple[pa.DataType, str, list[Any], list[Any] | None]] = TYPES) -> pa.Table:
    """Values of all types, and a row of NULLs, from the second of four rows on: each column has an offset."""
    columns = {name: pa.array([values[0], *values, None], kind) for name, (kind, _, values, _) in types.items()}
    return pa.table(columns).slice(1)


ROWS = [
    *zip(*[back or values for _, _, values, back in TYPES.values()], strict=True),
    (None,) * len(TYPES),
]


@pytest.fixture
def cursor(connection: onetrip.Connection) -> Iterator[onetrip.Cursor]:
    """A cursor, and a table of all types."""
    columns = ", ".join(f'"{name}" {ty}' for name, (_, ty, _, _) in TYPES.items())
    connection.execute("SET TimeZone TO UTC")
    cursor = connection.execute(f"CREATE TEMP TABLE item ({columns})")
    yield cursor


def names() -> str:
    return ", ".join(f'"{name}"' for name in TYPES)


@pytest.mark.parametrize("by", ["auto", "pipeline", "unnest", "copy"])
def test_executemany_takes_all_types(cursor: onetrip.Cursor, by: Any) -> None:
    marks = ", ".join(["%s"] * len(TYPES))
    cursor.executemany(f"INSERT INTO item ({names()}) VALUES ({marks})", table_of(), by=by)
    assert cursor.rowcount == 3
    assert cursor.execute("SELECT * FROM item").fetchall() == ROWS


@pytest.mark.parametrize("format", ["text", "binary", "binary, typed"])
def test_copy_takes_all_types(cursor: onetrip.Cursor, format: str) -> None:
    # Text has no binary form as a uuid unless somebody says that it is one.
    skipped = ["id", "nothing"] if format == "binary" else []
    types = {name: given for name, given in TYPES.items() if name not in skipped}
    columns = ", ".join(f'"{name}"' for name in types)
    kind = "text" if format == "text" else "binary"
    with cursor.copy(f"COPY item ({columns}) FROM STDIN (FORMAT {kind})") as copy:
        if format == "binary, typed":
            copy.set_types([ty for _, ty, _, _ in types.values()])
        copy.write_arrow(table_of(types))
    assert cursor.rowcount == 3
    kept = [at for at, name in enumerate(TYPES) if name not in skipped]
    rows = cursor.execute(f"SELECT {columns} FROM item").fetchall()
    assert rows == [tuple(row[at] for at in kept) for row in ROWS]


def test_columns_are_found_by_name_or_position(connection: onetrip.Connection) -> None:
    cursor = connection.execute("CREATE TEMP TABLE item (id int, name text)")
    table = pa.table({"name": ["one", "two"], "id": [1, 2]})
    cursor.executemany("INSERT INTO item VALUES (%(id)s, %(name)s)", table)
    cursor.executemany("INSERT INTO item (name, id) VALUES (%s, %b)", table)
    with connection.cursor() as raw:
        raw = onetrip.RawCursor(connection)
        raw.executemany("INSERT INTO item VALUES ($2, $1)", table)
    assert cursor.execute("SELECT * FROM item").fetchall() == [(1, "one"), (2, "two")] * 3
    with pytest.raises(onetrip.ProgrammingError, match="2 placeholders"):
        cursor.executemany("INSERT INTO item VALUES (%s, %s)", table.select(["id"]))
    with pytest.raises(onetrip.ProgrammingError, match="placeholder age"):
        cursor.executemany("INSERT INTO item VALUES (%(age)s)", table)


def test_many_rows_and_their_results(connection: onetrip.Connection) -> None:
    cursor = connection.execute("CREATE TEMP TABLE item (id int8, name text)")
    count = 25_000
    table = pa.table({"id": pa.array(range(count)), "name": [f"name {number}" for number in range(count)]})
    expected = list(zip(*table.to_pydict().values(), strict=True))
    for given in (table, table.to_batches(max_chunksize=999)[0], table.to_reader(1000)):
        cursor.executemany("INSERT INTO item (id, name) VALUES (%s, %s)", given)
        assert cursor.execute("DELETE FROM item RETURNING *").fetchall() == expected[: cursor.rowcount]
    cursor.executemany("SELECT %s::int8 * 2", pa.table({"a": [1, 2**40]}), returning=True)
    assert [result.fetchall() for result in cursor.results()] == [[(2,)], [(2**41,)]]
    with connection.pipeline():
        cursor.executemany("INSERT INTO item VALUES (%s, %s)", table.slice(0, 3))
    assert cursor.rowcount == 3


def test_an_error_says_which_row_it_is(connection: onetrip.Connection) -> None:
    connection.execute("CREATE TEMP TABLE item (id int PRIMARY KEY, at timestamp)")
    connection.commit()
    for by in ("pipeline", "unnest", "copy"):
        with pytest.raises(onetrip.IntegrityError) as caught:
            connection.cursor().executemany("INSERT INTO item (id) VALUES (%s)", pa.table({"id": [1, 2, 2]}), by=by)
        connection.rollback()
        if by != "unnest":
            assert caught.value.row == 2
    late = pa.table({"id": [1, 2], "at": pa.array([0, 2**62], pa.timestamp("s"))})
    with pytest.raises(onetrip.DataError, match=r'column "at" of type timestamp.*out of range') as of_data:
        connection.cursor().executemany("INSERT INTO item VALUES (%s, %s)", late)
    assert of_data.value.row == 1
    connection.rollback()
    with pytest.raises(onetrip.DataError, match=r'column "id" of type int64: 3000000000 is out of the range of int4'):
        with connection.cursor().copy("COPY item (id) FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["int4"])
            copy.write_arrow(pa.table({"id": [1, 3_000_000_000]}))
    connection.rollback()
    assert connection.execute("SELECT count(*) FROM item").fetchone() == (0,)


def test_types_that_cannot_be_written_are_named(connection: onetrip.Connection) -> None:
    cursor = connection.execute("CREATE TEMP TABLE item (a int, b text)")
    for kind, name in (
        (pa.list_(pa.int32()), "list"),
        (pa.struct({"x": pa.int32()}), "struct"),
        (pa.map_(pa.utf8(), pa.int32()), "map"),
        (pa.month_day_nano_interval(), "month_day_nano_interval"),
        (pa.float16(), "halffloat"),
    ):
        table = pa.table({"a": [1], "b": pa.array([None], kind)})
        with pytest.raises(onetrip.NotSupportedError, match=f'column "b": values of Arrow\'s type {name} cannot'):
            cursor.executemany("INSERT INTO item VALUES (%s, %s)", table)
        with pytest.raises(onetrip.NotSupportedError, match='column "b"'), cursor.copy("COPY item FROM STDIN") as copy:
            copy.write_arrow(table)
    with pytest.raises(onetrip.NotSupportedError, match="not an array of int64"):
        cursor.executemany("INSERT INTO item VALUES (%s, %s)", pa.chunked_array([[1, 2]]))
    client = onetrip.ClientCursor(connection)
    with pytest.raises(onetrip.NotSupportedError, match="client cursor"):
        client.executemany("INSERT INTO item VALUES (%s)", pa.table({"a": [1]}))
    with pytest.raises(TypeError, match="no data of Arrow"), cursor.copy("COPY item FROM STDIN") as copy:
        copy.write_arrow([(1, "a")])  # type: ignore[arg-type]


def test_nanoseconds_are_rounded_as_the_server_rounds_them(connection: onetrip.Connection) -> None:
    nanos = [0, 499, 500, 501, 1500, 2500, -500, -501, -1500, 1_700_000_000_123_456_500]
    table = pa.table({"a": pa.array(nanos, pa.timestamp("ns"))})
    cursor = connection.execute("CREATE TEMP TABLE item (a timestamp)")
    cursor.executemany("INSERT INTO item VALUES (%s)", table, by="pipeline")
    ours = [row for (row,) in cursor.execute("SELECT a FROM item").fetchall()]

    def text(value: int) -> str:
        seconds, rest = divmod(value, 1_000_000_000)
        return f"{dt.datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{rest:09}"

    query = "SELECT a::timestamp FROM unnest(%s::text[]) a"
    theirs = [row for (row,) in cursor.execute(query, ([text(value) for value in nanos],)).fetchall()]
    assert ours == theirs


def test_a_table_goes_from_one_connection_to_another(server: dict[str, Any], connection: onetrip.Connection) -> None:
    connection.execute("CREATE TEMP TABLE item (n int, t text, u uuid, d numeric(10, 2))")
    query = """SELECT n, repeat('é', n % 100), md5(n::text)::uuid, nullif(n, 7)::numeric(10, 2)
        FROM generate_series(1, 30000) n"""
    with onetrip.connect(**server) as source:
        with connection.cursor().copy("COPY item FROM STDIN (FORMAT binary)") as copy:
            copy.write_arrow(source.cursor().stream_arrow(query, size=1000, binary=True))
        expected = source.execute(query).fetchall()
    assert connection.execute("SELECT * FROM item ORDER BY n").fetchall() == expected
    # A cursor gives its rows as it always has.
    rows = connection.execute("SELECT n, t, u, d FROM item ORDER BY n LIMIT 3")
    other = connection.cursor()
    other.executemany("INSERT INTO item VALUES (%s, %s, %s, %s)", rows)
    assert other.rowcount == 3


def test_text_is_written_in_the_connections_encoding(server: dict[str, Any]) -> None:
    table = pa.table({"a": ["é", "plain"], "b": [b"\xc3\xa9", b"\xff"]})
    with onetrip.connect(**server, client_encoding="LATIN1") as connection:
        cursor = connection.execute("CREATE TEMP TABLE item (a text, b bytea)")
        cursor.executemany("INSERT INTO item VALUES (%s, %s)", table)
        for options in ("text", "binary"):
            with cursor.copy(f"COPY item FROM STDIN (FORMAT {options})") as copy:
                copy.write_arrow(table)
        assert cursor.execute("SELECT a, b FROM item").fetchall() == [("é", b"\xc3\xa9"), ("plain", b"\xff")] * 3
        with pytest.raises(UnicodeEncodeError), cursor.copy("COPY item FROM STDIN") as copy:
            copy.write_arrow(pa.table({"a": ["日本"], "b": [b""]}))
        connection.rollback()


def test_the_same_for_event_loops(server: dict[str, Any]) -> None:
    async def main() -> None:
        table = pa.table({"n": list(range(3000)), "t": ["x" * 100] * 3000})
        async with await aio.connect(**server) as connection:
            cursor = await connection.execute("CREATE TEMP TABLE item (n int8, t text)")
            for by in ("auto", "pipeline", "unnest", "copy"):
                await cursor.executemany("INSERT INTO item (n, t) VALUES (%(n)s, %(t)s)", table, by=by)
            async with cursor.copy("COPY item FROM STDIN (FORMAT binary)") as copy:
                await copy.write_arrow(table)
            await cursor.execute("SELECT n, t, count(*) FROM item GROUP BY n, t ORDER BY n")
            expected = [(*row, 5) for row in zip(*table.to_pydict().values(), strict=True)]
            assert await cursor.fetchall() == expected
            with pytest.raises(onetrip.NotSupportedError, match='column "a"'):
                await cursor.executemany("SELECT %s", pa.table({"a": [[1]]}))

    asyncio.run(main())
