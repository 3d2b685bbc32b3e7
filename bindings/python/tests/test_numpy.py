"""Results as arrays of numpy."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import numpy as np
import onetrip
import pytest
from onetrip import aio

QUERY = """SELECT true AS b, 1::int2 AS i2, -2 AS i4, 9007199254740993 AS i8, 1.5::float4 AS f4, 'NaN'::float8 AS f8,
    '1969-12-31'::date AS d, '2024-02-29 12:34:56.789'::timestamp AS ts,
    '2024-02-29 12:34:56.789+05:30'::timestamptz AS tz, 'é' AS t, '\\x00ff'::bytea AS bytes, 1.25::numeric AS n,
    ARRAY[1, 2] AS a"""
TYPES = {
    "b": "bool", "i2": "int16", "i4": "int32", "i8": "int64", "f4": "float32", "f8": "float64", "d": "datetime64[D]",
    "ts": "datetime64[us]", "tz": "datetime64[us]", "t": "object", "bytes": "object", "n": "object", "a": "object",
}  # fmt: skip


def test_each_type_has_its_array(connection: onetrip.Connection) -> None:
    connection.execute("SET TimeZone TO 'Asia/Kolkata'")
    columns = connection.execute(QUERY).fetch_numpy()
    assert {name: str(array.dtype) for name, array in columns.items()} == TYPES
    assert not any(isinstance(array, np.ma.MaskedArray) for array in columns.values())
    first = {name: array[0] for name, array in columns.items()}
    assert np.isnan(first.pop("f8"))
    assert first == {
        "b": True, "i2": 1, "i4": -2, "i8": 9007199254740993, "f4": 1.5, "d": np.datetime64("1969-12-31"),
        "ts": np.datetime64("2024-02-29T12:34:56.789"), "tz": np.datetime64("2024-02-29T07:04:56.789"),
        "t": "é", "bytes": b"\x00\xff", "n": Decimal("1.25"), "a": [1, 2],
    }  # fmt: skip
    columns["i4"][0] = 7  # they are the program's own


def test_nulls_are_masked_and_no_number_is_changed_by_them(connection: onetrip.Connection) -> None:
    cursor = connection.execute(
        "SELECT i8, i8 > 0 AS b, d, t, '{}'::int[] AS a FROM (VALUES (9007199254740993, date '2026-11-22', 'x'),"
        " (NULL, NULL, NULL), (-1, '1970-01-01', 'y')) AS v (i8, d, t)"
    )
    columns = cursor.fetch_numpy()
    assert columns["i8"].tolist() == [9007199254740993, None, -1]
    assert (columns["b"].tolist(), columns["i8"].sum()) == ([True, None, False], 9007199254740992)
    assert np.isnat(columns["d"]).tolist() == [False, True, False]
    assert (columns["t"].tolist(), columns["a"].tolist()) == (["x", None, "y"], [[], [], []])
    assert cursor.fetchone() is None, "all were read"


def test_what_is_left_of_a_result_and_what_is_empty(connection: onetrip.Connection) -> None:
    cursor = connection.execute("SELECT generate_series(1, 20) AS i")
    assert cursor.fetchmany(15)[-1] == (15,)
    assert cursor.fetch_numpy()["i"].tolist() == [16, 17, 18, 19, 20]
    assert len(cursor.fetch_numpy()["i"]) == 0
    with pytest.raises(onetrip.ProgrammingError, match="same name"):
        connection.execute("SELECT 1 AS a, 2 AS a").fetch_numpy()
    with pytest.raises(onetrip.ProgrammingError):
        connection.execute("SET work_mem TO '4MB'").fetch_numpy()


def test_values_are_made_only_where_an_array_has_them(connection: onetrip.Connection) -> None:
    made: list[str] = []
    for name in ("int4", "point"):
        connection.adapters.register_loader(name, lambda text: made.append(str(text)) or text)
    query = "SELECT i, '(1,2)'::point AS p FROM generate_series(1, 3) AS i"
    cursor = connection.cursor()
    cursor.execute(query)
    cursor.fetchone()
    made.clear()
    columns = cursor.fetch_numpy()
    assert (columns["i"].tolist(), len(columns["p"]), len(made)) == ([2, 3], 2, 2)
    binary = connection.cursor(binary=True).execute(query).fetch_numpy()
    assert (binary["i"].tolist(), [type(value) for value in binary["p"]]) == ([1, 2, 3], [bytes] * 3)


def test_named_cursors_and_event_loops(connection: onetrip.Connection, server: dict[str, Any]) -> None:
    query = "SELECT CASE WHEN i <> 150 THEN i END AS i, i::text AS t FROM generate_series(1, 200) AS i"
    expected = [None if i == 150 else i for i in range(2, 201)]
    with connection.cursor("pieces") as cursor:
        cursor.itersize = 100
        cursor.execute(query)
        cursor.fetchone()
        columns = cursor.fetch_numpy()
        assert columns["i"].tolist() == expected and columns["t"][-1] == "200"

    async def main() -> None:
        async with await aio.connect(**server) as own:
            plain = await own.execute(query)
            assert len((await plain.fetch_numpy())["i"]) == 200
            async with own.cursor("pieces") as cursor:
                cursor.itersize = 100
                await cursor.execute(query)
                await cursor.fetchone()
                assert (await cursor.fetch_numpy())["i"].tolist() == expected

    asyncio.run(main())
