#!/usr/bin/env python3
"""One act of asyncpg: extended protocol only, each new statement is described first."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from functools import partial

import asyncpg
from acts import (
    ACCOUNT_IDS,
    AUTHOR_COUNT,
    BOOKS_PER_AUTHOR,
    LOOP_COUNT,
    TABLE_ROWS,
    WALK_ROWS,
    expect,
    main,
    messages,
    named,
)

AUTHORS = "SELECT id, name FROM authors ORDER BY id"
BOOKS_OF = "SELECT title, price FROM books WHERE author_id = $1 ORDER BY id"
INSERT_LOG = "INSERT INTO log (message) VALUES ($1)"
UPDATE_ACCOUNT = "UPDATE accounts SET balance = balance + $1 WHERE id = $2"
SELECT_ONE = "SELECT v FROM t WHERE id = $1"

ConnectedAct = Callable[[asyncpg.Connection], Awaitable[None]]


def act(function: ConnectedAct, name: str | None = None, **options: object) -> ConnectedAct:
    """Decorator: the act gets a connection of its own."""

    async def run() -> None:
        connection = await asyncpg.connect(**options)
        try:
            await function(connection)
        finally:
            await connection.close()

    named(name or function.__name__, lambda: asyncio.run(run()))
    return function


def unconnected(function: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
    """Decorator: the act connects by itself."""
    named(function.__name__, lambda: asyncio.run(function()))
    return function


async def select(connection: asyncpg.Connection, number: int) -> None:
    expect(await connection.fetchval(SELECT_ONE, number), f"value {number}")


# ---- what the driver spends


@act
async def connect(_: asyncpg.Connection) -> None:
    pass


async def nothing(_: asyncpg.Connection) -> None:
    pass


act(nothing, "connect_no_ssl", ssl=False)


async def selects(count: int, connection: asyncpg.Connection) -> None:
    for number in range(1, count + 1):
        await select(connection, number)


async def transaction(count: int, connection: asyncpg.Connection) -> None:
    async with connection.transaction():
        await selects(count, connection)


for count in (1, 2, 6):
    act(partial(selects, count), f"select_{count}")
for count in (1, 2):
    act(partial(transaction, count), f"txn_{count}")


@act
async def txn_empty(connection: asyncpg.Connection) -> None:
    async with connection.transaction():
        pass


@act
async def nested_txn(connection: asyncpg.Connection) -> None:
    async with connection.transaction(), connection.transaction():
        await select(connection, 1)


@act
async def ping(connection: asyncpg.Connection) -> None:
    await connection.execute("SELECT 1")


@act
async def executemany_3(connection: asyncpg.Connection) -> None:
    await connection.executemany(INSERT_LOG, [(text,) for text in messages(3)])


@act
async def copy_3(connection: asyncpg.Connection) -> None:
    rows = [(text,) for text in messages(3)]
    await connection.copy_records_to_table("log", records=rows, columns=["message"])


@act
async def array_param(connection: asyncpg.Connection) -> None:
    """The first array makes the driver look its type up in the catalogue."""
    query = "SELECT count(*) FROM authors WHERE id = ANY($1)"
    expect(await connection.fetchval(query, [101, 105, 112]), 3)


@act
async def array_param_text(connection: asyncpg.Connection) -> None:
    query = "SELECT count(*) FROM authors WHERE name = ANY($1)"
    expect(await connection.fetchval(query, ["author 101", "author 105"]), 2)


@unconnected
async def pool_checkin() -> None:
    async with asyncpg.create_pool(min_size=1, max_size=1) as pool, pool.acquire() as connection:
        await select(connection, 1)


async def walk(fetch_size: int, row_count: int, connection: asyncpg.Connection) -> None:
    query = "SELECT id, v FROM t WHERE id <= $1 ORDER BY id"
    async with connection.transaction():
        walked = [row async for row in connection.cursor(query, row_count, prefetch=fetch_size)]
    expect(len(walked), row_count)


act(partial(walk, 10, WALK_ROWS), "cursor_50_by_10")


@act
async def n_plus_one_10(connection: asyncpg.Connection) -> None:
    async with connection.transaction():
        for author in await connection.fetch(AUTHORS + " LIMIT $1", LOOP_COUNT):
            books = await connection.fetch(BOOKS_OF, author["id"])
            expect(len(books), BOOKS_PER_AUTHOR)


# ---- findings: what a program does badly, and the same done well


@act
async def bad_OT001(connection: asyncpg.Connection) -> None:
    for author in await connection.fetch(AUTHORS):
        expect(len(await connection.fetch(BOOKS_OF, author["id"])), BOOKS_PER_AUTHOR)


@act
async def fixed_OT001(connection: asyncpg.Connection) -> None:
    books = await connection.fetch(
        "SELECT author_id, title, price FROM authors JOIN books ON author_id = authors.id"
    )
    expect(len(books), AUTHOR_COUNT * BOOKS_PER_AUTHOR)


@act
async def bad_OT002(connection: asyncpg.Connection) -> None:
    async with connection.transaction():
        for text in messages():
            await connection.execute(INSERT_LOG, text)


@act
async def bad_OT002_update(connection: asyncpg.Connection) -> None:
    async with connection.transaction():
        for account_id in ACCOUNT_IDS:
            expect(await connection.execute(UPDATE_ACCOUNT, 1, account_id), "UPDATE 1")


@act
async def fixed_OT002(connection: asyncpg.Connection) -> None:
    async with connection.transaction():
        await connection.executemany(INSERT_LOG, [(text,) for text in messages()])


@act
async def fixed_OT002_update(connection: asyncpg.Connection) -> None:
    async with connection.transaction():
        rows = [(1, account_id) for account_id in ACCOUNT_IDS]
        await connection.executemany(UPDATE_ACCOUNT, rows)


@act
async def bad_OT003(connection: asyncpg.Connection) -> None:
    for text in messages():
        await connection.execute(INSERT_LOG, text)


@act
async def fixed_OT003(connection: asyncpg.Connection) -> None:
    await connection.executemany(INSERT_LOG, [(text,) for text in messages()])


act(partial(walk, 10, TABLE_ROWS), "bad_OT004")
act(partial(walk, 1000, TABLE_ROWS), "fixed_OT004")


async def repeat(count: int, connection: asyncpg.Connection) -> None:
    async with connection.transaction():
        for _ in range(count):
            name = await connection.fetchval("SELECT name FROM authors WHERE id = $1", 140)
            expect(name, "author 140")


act(partial(repeat, 10), "bad_OT005")
act(partial(repeat, 1), "fixed_OT005")


@act
async def bad_OT006(connection: asyncpg.Connection) -> None:
    for number in range(1, 11):
        async with connection.transaction():
            await select(connection, number * 7)


@act
async def fixed_OT006(connection: asyncpg.Connection) -> None:
    for number in range(1, 11):
        await select(connection, number * 7)


async def select_ten(connection: asyncpg.Connection) -> None:
    for number in range(1, 11):
        await select(connection, number * 7)


act(select_ten, "bad_OT007", statement_cache_size=0)
act(select_ten, "fixed_OT007")


@unconnected
async def bad_OT008() -> None:
    for number in range(1, 11):
        connection = await asyncpg.connect()
        await select(connection, number * 7)
        await connection.close()


@unconnected
async def fixed_OT008() -> None:
    connection = await asyncpg.connect()
    await select_ten(connection)
    await connection.close()


if __name__ == "__main__":
    sys.exit(main())
