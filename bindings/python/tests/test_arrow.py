"""Results as tables of Arrow."""

from __future__ import annotations

import asyncio
import datetime as dt
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
    "tstz": pa.timestamp("us", tz="UTC"), "n": pa.decimal128(3, 2), "a": pa.list_(pa.int64()),
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


def test_the_same_for_event_loops(server: dict[str, Any]) -> None:
    async def main() -> None:
        async with await aio.connect(**server) as connection:
            table = await (await connection.execute("SELECT generate_series(1, 3) AS n")).fetch_arrow()
            assert table.to_pydict() == {"n": [1, 2, 3]}
            async with connection.cursor("pieces") as cursor:
                cursor.itersize = 2
                await cursor.execute("SELECT generate_series(1, 5) AS n")
                assert (await cursor.fetch_arrow()).to_pydict() == {"n": [1, 2, 3, 4, 5]}

    asyncio.run(main())
