"""A program that was written for psycopg, for type checkers: `test_typed.py` checks it with either name. It never runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import onetrip
from onetrip import AsyncConnection, AsyncCursor, AsyncServerCursor, Connection, Cursor, ServerCursor, sql
from onetrip.rows import BaseRowFactory, DictRow, RowMaker, TupleRow, args_row, class_row, dict_row, scalar_row
from typing_extensions import assert_type


@dataclass
class Item:
    id: int
    name: str


def upper(cursor: Cursor[Any]) -> RowMaker[DictRow]:
    names = [column.name.upper() for column in cursor.description or ()]

    def make(values: Sequence[Any]) -> DictRow:
        return dict(zip(names, values, strict=True))

    return make


def pair(first: int, second: str) -> tuple[int, str]:
    return first, second


def names(connection: Connection[DictRow]) -> Iterator[str]:
    for row in connection.execute("SELECT name FROM item"):
        yield row["name"]


def rows_of(connection: Connection[Any], factory: BaseRowFactory[Item]) -> list[Item]:
    return connection.cursor(row_factory=factory).execute("SELECT * FROM item").fetchall()


def main() -> None:
    with onetrip.connect("dbname=shop") as plain:
        assert_type(plain, Connection[TupleRow])
        assert_type(plain.execute("SELECT 1").fetchone(), TupleRow | None)
        assert_type(plain.cursor(row_factory=class_row(Item)), Cursor[Item])
        assert_type(plain.cursor(row_factory=args_row(pair)).fetchmany(3), list[tuple[int, str]])
        assert_type(plain.cursor(row_factory=scalar_row).fetchone(), Any | None)
        assert_type(plain.cursor(row_factory=upper).fetchall(), list[DictRow])
        rows_of(plain, class_row(Item))
        plain.execute(sql.SQL("SELECT {}").format(sql.Literal(1)))
        with plain.transaction(), plain.pipeline():
            plain.cursor().executemany("INSERT INTO item VALUES (%s)", [(1,)])
        with plain.cursor().copy("COPY item FROM STDIN") as copy:
            copy.write_row((1, "a"))
    with onetrip.connect("dbname=shop", row_factory=dict_row, autocommit=True) as dicts:
        assert_type(dicts, Connection[DictRow])
        list(names(dicts))
        with dicts.cursor("named", scrollable=True) as named:
            assert_type(named, ServerCursor[DictRow])
            named.itersize = 50
            for row in named.execute("SELECT * FROM item"):
                assert_type(row, DictRow)
        assert_type(dicts.cursor("items", row_factory=class_row(Item)), ServerCursor[Item])
        for streamed in dicts.cursor().stream("SELECT * FROM item"):
            assert_type(streamed, DictRow)
    items = Connection.connect("dbname=shop", row_factory=class_row(Item))
    assert_type(items.execute("SELECT * FROM item").fetchone(), Item | None)


async def streamed(connection: AsyncConnection[Item]) -> AsyncIterator[Item]:
    async for item in connection.cursor().stream("SELECT * FROM item"):
        yield item


async def awaiting() -> None:
    async with await AsyncConnection.connect("dbname=shop", row_factory=dict_row) as connection:
        assert_type(connection, AsyncConnection[DictRow])
        assert_type(await (await connection.execute("SELECT 1")).fetchone(), DictRow | None)
        assert_type(connection.cursor(row_factory=class_row(Item)), AsyncCursor[Item])
        async with connection.cursor("named") as named:
            assert_type(named, AsyncServerCursor[DictRow])
            named.itersize = 50
            async for row in await named.execute("SELECT * FROM item"):
                assert_type(row, DictRow)
    items = await AsyncConnection.connect(row_factory=class_row(Item))
    async for item in streamed(items):
        assert_type(item, Item)
