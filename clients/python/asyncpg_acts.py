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
    FILE_CONTENT,
    FILE_IDS,
    FILE_PORTION,
    LOOP_COUNT,
    PAGE_AUTHORS,
    TABLE_ROWS,
    WALK_ROWS,
    expect,
    main,
    messages,
    named,
    unseen,
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


@act
async def bad_OT009(connection: asyncpg.Connection) -> None:
    for account_id in ACCOUNT_IDS[:12]:
        query = "SELECT balance FROM accounts WHERE id = $1"
        expect(len(await connection.fetch(query, account_id)), 1)


@act
async def fixed_OT009(connection: asyncpg.Connection) -> None:
    query = "SELECT id, balance FROM accounts WHERE id = ANY($1::int[])"
    expect(len(await connection.fetch(query, ACCOUNT_IDS[:12])), 12)


READ_ONLY = 0x40000  # INV_READ of libpq-fs.h


@act
async def bad_OT010(connection: asyncpg.Connection) -> None:
    """asyncpg has no large objects of its own: the server's functions are called by SQL."""
    value = connection.fetchval
    async with connection.transaction():
        for file_id in FILE_IDS:
            content = await value("SELECT content FROM files WHERE id = $1", file_id)
            handle = await value("SELECT lo_open($1, $2)", content, READ_ONLY)
            read = b""
            while len(read) < len(FILE_CONTENT):
                read += await value("SELECT loread($1, $2)", handle, FILE_PORTION)
            await value("SELECT lo_close($1)", handle)
            expect(read, FILE_CONTENT)


@act
async def fixed_OT010(connection: asyncpg.Connection) -> None:
    async with connection.transaction():
        for file_id in FILE_IDS:
            query = "SELECT lo_get(content) FROM files WHERE id = $1"
            expect(await connection.fetchval(query, file_id), FILE_CONTENT)


async def test_connection(connection: asyncpg.Connection) -> None:
    await connection.execute("SELECT 1")


async def no_reset(_: asyncpg.Connection) -> None:
    """Instead of the pool's own reset, which takes a trip at each release."""


async def count_authors(**options: object) -> None:
    """Ten requests over a pool of one connection."""
    async with asyncpg.create_pool(min_size=1, max_size=1, reset=no_reset, **options) as pool:
        for _ in range(10):
            expect(await pool.fetchval("SELECT count(*) FROM authors"), AUTHOR_COUNT)


@unconnected
async def bad_OT011() -> None:
    await count_authors(setup=test_connection)


@unconnected
async def fixed_OT011() -> None:
    await count_authors()


AUTHOR_PAGE = (
    "SELECT name FROM authors WHERE id = $1",
    "SELECT title FROM books WHERE author_id = $1 ORDER BY id",
    "SELECT max(price) FROM books WHERE author_id = $1",
)


@act
async def bad_OT012(connection: asyncpg.Connection) -> None:
    for author_id in PAGE_AUTHORS:
        for query in AUTHOR_PAGE:
            expect(len(await connection.fetch(query, author_id)) > 0, True)


@act
async def fixed_OT012(connection: asyncpg.Connection) -> None:
    """asyncpg cannot pipeline different statements: one asks for all three."""
    query = """
        SELECT name, array_agg(title ORDER BY books.id), max(price)
        FROM authors JOIN books ON author_id = authors.id
        WHERE authors.id = $1 GROUP BY authors.id"""
    for author_id in PAGE_AUTHORS:
        row = await connection.fetchrow(query, author_id)
        expect(len(row[1]), BOOKS_PER_AUTHOR)


@act
async def bad_OT013(connection: asyncpg.Connection) -> None:
    async with connection.transaction():
        for account_id in ACCOUNT_IDS:
            query = "SELECT balance FROM accounts WHERE id = $1 FOR UPDATE"
            balance = await connection.fetchval(query, account_id) + 1
            write = "UPDATE accounts SET balance = $1 WHERE id = $2"
            await connection.execute(write, balance, account_id)


@act
async def fixed_OT013(connection: asyncpg.Connection) -> None:
    async with connection.transaction():
        for account_id in ACCOUNT_IDS:
            query = UPDATE_ACCOUNT + " RETURNING balance"
            expect(len(await connection.fetch(query, 1, account_id)), 1)


@act
async def bad_OT014(connection: asyncpg.Connection) -> None:
    async with connection.transaction():
        for text in messages():
            ticket_id = await connection.fetchval("SELECT nextval('tickets_id_seq')")
            insert = "INSERT INTO tickets (id, note) VALUES ($1, $2)"
            await connection.execute(insert, ticket_id, text)


@act
async def fixed_OT014(connection: asyncpg.Connection) -> None:
    async with connection.transaction():
        for text in messages():
            insert = "INSERT INTO tickets (note) VALUES ($1) RETURNING id"
            expect(len(await connection.fetch(insert, text)), 1)


@act
async def bad_OT015(connection: asyncpg.Connection) -> None:
    async with connection.transaction():
        for name in unseen():
            if await connection.fetchval("SELECT id FROM tags WHERE name = $1", name) is None:
                await connection.execute("INSERT INTO tags (name) VALUES ($1)", name)


@act
async def fixed_OT015(connection: asyncpg.Connection) -> None:
    async with connection.transaction():
        for name in unseen():
            insert = "INSERT INTO tags (name) VALUES ($1) ON CONFLICT DO NOTHING"
            await connection.execute(insert, name)


async def two_reads(connection: asyncpg.Connection) -> None:
    expect(await connection.fetchval("SELECT count(*) FROM authors"), AUTHOR_COUNT)
    await connection.fetchval("SELECT max(price) FROM books")


@act
async def bad_OT016(connection: asyncpg.Connection) -> None:
    """Nothing was written, so the program sees nothing to commit."""
    for _ in range(10):
        transaction = connection.transaction()
        await transaction.start()
        await two_reads(connection)
        await transaction.rollback()


@act
async def fixed_OT016(connection: asyncpg.Connection) -> None:
    for _ in range(10):
        await two_reads(connection)


if __name__ == "__main__":
    sys.exit(main())
