"""Named cursors and row factories, of both kinds of connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import onetrip
import pytest
from onetrip import aio, errors, rows


def spent(connection: onetrip.Connection, work: Callable[[], Any]) -> int:
    before = connection.trips
    work()
    return connection.trips - before


def test_a_named_cursor_costs_a_trip_for_each_piece(connection: onetrip.Connection) -> None:
    cursor = connection.cursor("pieces")
    cursor.itersize = 100

    def read() -> None:
        cursor.execute("SELECT generate_series(1, %s)", (250,))
        assert [row[0] for row in cursor] == list(range(1, 251))

    assert spent(connection, read) == 3, "BEGIN and DECLARE travel with the first FETCH"
    assert spent(connection, cursor.close) == 0
    assert spent(connection, lambda: connection.execute("SELECT 1")) == 1
    assert connection.execute("SELECT count(*) FROM pg_cursors WHERE name = 'pieces'").fetchone() == (0,)


def test_a_named_cursor_fetches_as_others_do(connection: onetrip.Connection) -> None:
    with connection.cursor("numbers", scrollable=True) as cursor:
        cursor.itersize = 2
        cursor.execute("SELECT generate_series(1, 10) AS number")
        assert [column.name for column in cursor.description or ()] == ["number"]
        assert cursor.fetchone() == (1,)
        assert cursor.fetchmany(4) == [(2,), (3,), (4,), (5,)]
        cursor.scroll(-3)
        assert cursor.fetchone() == (3,)
        cursor.scroll(8, "absolute")
        assert cursor.fetchall() == [(9,), (10,)]
        assert (cursor.fetchone(), cursor.fetchall()) == (None, [])
        with pytest.raises(ValueError, match="mode"):
            cursor.scroll(1, "sideways")
    with pytest.raises(onetrip.InterfaceError):
        cursor.execute("SELECT 1")


def test_one_name_serves_queries_with_other_columns(connection: onetrip.Connection) -> None:
    for query, first in (("SELECT 1", (1,)), ("SELECT 'a', 2", ("a", 2)), ("SELECT 3.5::float8", (3.5,))):
        with connection.cursor("again") as cursor:
            assert cursor.execute(query).fetchall() == [first]


def test_the_row_that_a_cursor_stands_on_can_be_updated(connection: onetrip.Connection) -> None:
    connection.execute("CREATE TEMP TABLE t (id int, seen bool DEFAULT false)")
    connection.execute("INSERT INTO t SELECT generate_series(1, 3)")
    cursor = connection.cursor("standing")
    cursor.itersize = 1
    cursor.execute("SELECT id FROM t ORDER BY id FOR UPDATE")
    for (id,) in cursor:
        if id == 2:
            connection.execute("UPDATE t SET seen = true WHERE CURRENT OF standing")
    assert connection.execute("SELECT id FROM t WHERE seen").fetchall() == [(2,)]


def test_a_cursor_with_hold_outlives_its_transaction(connection: onetrip.Connection) -> None:
    cursor = connection.cursor("held", withhold=True)
    cursor.itersize = 10
    cursor.execute("SELECT generate_series(1, 25)")
    connection.commit()
    assert len(cursor.fetchall()) == 25
    cursor.close()
    with connection.cursor("gone") as gone:
        gone.itersize = 10
        gone.execute("SELECT generate_series(1, 25)")
        connection.commit()
        with pytest.raises(errors.InvalidCursorName):
            gone.fetchall()
        connection.rollback()


def test_errors_of_a_named_cursor_are_the_querys(connection: onetrip.Connection) -> None:
    cursor = connection.cursor("wrong")
    with pytest.raises(errors.InvalidCursorName):
        cursor.fetchone()
    connection.rollback()
    with pytest.raises(errors.UndefinedTable):
        cursor.execute("SELECT * FROM nothing_here")
    connection.rollback()
    with pytest.raises(onetrip.NotSupportedError):
        cursor.executemany("SELECT %s", [(1,)])
    assert cursor.execute("SELECT 1").fetchall() == [(1,)]


@dataclass
class Item:
    id: int
    name: str


def test_rows_are_what_a_factory_makes(connection: onetrip.Connection) -> None:
    query = "SELECT 1 AS id, 'nail' AS name"

    def one(factory: rows.RowFactory) -> Any:
        return connection.cursor(row_factory=factory).execute(query).fetchone()

    assert one(rows.dict_row) == {"id": 1, "name": "nail"}
    assert one(rows.class_row(Item)) == Item(1, "nail")
    assert one(rows.args_row(Item)) == Item(1, "nail")
    assert one(rows.kwargs_row(lambda id, name: f"{name} {id}")) == "nail 1"
    assert one(rows.scalar_row) == 1
    assert one(rows.tuple_row) == (1, "nail")
    named = one(rows.namedtuple_row)
    assert (named.id, named.name) == named == (1, "nail")
    odd = connection.cursor(row_factory=rows.namedtuple_row).execute('SELECT 1 AS "1st", 2 AS "a b", 3').fetchone()
    assert odd._fields == ("f1st", "a_b", "f_column_")


def test_a_factory_follows_the_result_it_makes_rows_of(server: dict[str, Any]) -> None:
    with onetrip.connect(**server, row_factory=rows.dict_row) as connection:
        cursor = connection.execute("SELECT 1 AS a; SELECT 2 AS b, 3 AS c")
        assert cursor.fetchall() == [{"a": 1}]
        assert cursor.nextset() and list(cursor) == [{"b": 2, "c": 3}]
        cursor.row_factory = rows.scalar_row
        cursor.execute("SELECT generate_series(1, 3)")
        assert (cursor.fetchmany(2), cursor.fetchone(), cursor.fetchone()) == ([1, 2], 3, None)
        with connection.cursor("named") as named:
            named.itersize = 1
            assert named.execute("SELECT generate_series(1, 3) AS n").fetchall() == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_a_connection_has_loaders_of_its_own(connection: onetrip.Connection, server: dict[str, Any]) -> None:
    connection.register_loader(23, lambda text: f"number {text}")
    assert connection.execute("SELECT 7, ARRAY[8]").fetchone() == ("number 7", ["number 8"])
    with onetrip.connect(**server) as other:
        assert other.execute("SELECT 7").fetchone() == (7,)


def test_the_same_for_event_loops(server: dict[str, Any]) -> None:
    async def main() -> None:
        async with await aio.connect(**server, row_factory=rows.dict_row) as connection:
            assert await (await connection.execute("SELECT 1 AS a")).fetchall() == [{"a": 1}]
            async with connection.cursor("pieces", row_factory=rows.tuple_row, scrollable=True) as cursor:
                cursor.itersize = 100
                before = connection.trips
                await cursor.execute("SELECT generate_series(1, %s)", (250,))
                assert [row[0] async for row in cursor] == list(range(1, 251))
                assert connection.trips - before == 3
                await cursor.scroll(248, "absolute")
                assert await cursor.fetchmany(5) == [(249,), (250,)]
                await cursor.scroll(0, "absolute")
                assert (await cursor.fetchone(), len(await cursor.fetchall())) == ((1,), 249)
            async with connection.cursor("pieces", row_factory=rows.scalar_row) as again:
                assert await (await again.execute("SELECT 'other'")).fetchall() == ["other"]
            connection.register_loader(25, str.upper)
            assert await (await connection.execute("SELECT 'loud'::text AS t")).fetchone() == {"t": "LOUD"}

    asyncio.run(main())
