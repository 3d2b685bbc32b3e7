#!/usr/bin/env python3
"""One act of asyncmy: values are written into the text, unless a statement is prepared or a connection keeps them prepared."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import asyncmy
from acts import (
    ACCOUNT_IDS,
    AUTHOR_COUNT,
    BOOKS_OF,
    BOOKS_PER_AUTHOR,
    INSERT_LOG,
    LOOP_COUNT,
    PAGE_AUTHORS,
    TABLE_ROWS,
    UPDATE_ACCOUNT,
    expect,
    main,
    messages,
    named,
    unseen,
)
from asyncmy.cursors import SSCursor
from mysql_acts import AUTHOR_PAGE, marks, settings

AUTHORS = "SELECT id, name FROM authors ORDER BY id"
CACHE = {"stmt_cache_size": 100}

AsyncAct = Callable[[], Awaitable[None]]


def act(function: AsyncAct) -> AsyncAct:
    """Decorator: the function's name is the act's name."""
    return registered(function.__name__, function)


def registered(name: str, function: AsyncAct) -> AsyncAct:
    named(name, lambda: asyncio.run(function()))
    return function


@asynccontextmanager
async def connection(autocommit: bool = True, **options: Any) -> AsyncIterator[asyncmy.Connection]:
    async with asyncmy.connect(**settings(), autocommit=autocommit, **options) as link:
        yield link


@asynccontextmanager
async def cursor(autocommit: bool = True, **options: Any) -> AsyncIterator[Any]:
    """A cursor of a connection of its own; without autocommit it commits."""
    async with connection(autocommit, **options) as link:
        async with link.cursor() as cur:
            yield cur
        if not autocommit:
            await link.commit()


def pool(**options: Any) -> Any:
    return asyncmy.create_pool(**settings(), minsize=1, maxsize=1, **options)


async def select(cur: Any, number: int) -> None:
    await cur.execute("SELECT v FROM t WHERE id = %s", (number,))
    expect(await cur.fetchone(), (f"value {number}",))


async def count_authors(cur: Any) -> None:
    await cur.execute("SELECT count(*) FROM authors")
    expect(await cur.fetchone(), (AUTHOR_COUNT,))


# ---- what the driver spends


@act
async def connect() -> None:
    async with connection():
        pass


@act
async def connect_init_command() -> None:
    """It is committed, whatever it did."""
    async with connection(init_command="SET time_zone = '+00:00'"):
        pass


async def selects(count: int, step: int = 1, autocommit: bool = True, **options: Any) -> None:
    async with cursor(autocommit, **options) as cur:
        for number in range(1, count + 1):
            await select(cur, number * step)


for number in (1, 2, 6):
    registered(f"select_{number}", partial(selects, number))
    registered(f"select_{number}_cached", partial(selects, number, **CACHE))
for number in (1, 2):
    registered(f"txn_{number}", partial(selects, number, autocommit=False))


@act
async def txn_empty() -> None:
    async with connection(autocommit=False) as link:
        await link.commit()


@act
async def begin_1() -> None:
    async with connection() as link:
        await link.begin()
        async with link.cursor() as cur:
            await select(cur, 1)
        await link.commit()


@act
async def ping_3() -> None:
    async with connection() as link:
        for _ in range(3):
            await link.ping(reconnect=False)


@act
async def pool_checkin() -> None:
    async with pool(autocommit=True) as connections:
        for number in (1, 2):
            async with connections.acquire() as link, link.cursor() as cur:
                await select(cur, number)


async def insert_all(count: int, autocommit: bool = True, **options: Any) -> None:
    async with cursor(autocommit, **options) as cur:
        await cur.executemany(INSERT_LOG, [(text,) for text in messages(count)])


async def update_all(ids: tuple[int, ...], **options: Any) -> None:
    async with cursor(autocommit=False, **options) as cur:
        await cur.executemany(UPDATE_ACCOUNT, [(1, account_id) for account_id in ids])
        expect(cur.rowcount, len(ids))


registered("executemany_3", partial(insert_all, 3))
registered("executemany_3_cached", partial(insert_all, 3, **CACHE))
registered("executemany_update_3", partial(update_all, ACCOUNT_IDS[:3]))
registered("executemany_update_3_cached", partial(update_all, ACCOUNT_IDS[:3], **CACHE))


@act
async def savepoint() -> None:
    async with cursor(autocommit=False) as cur:
        await cur.execute("SAVEPOINT one")
        await select(cur, 1)
        await cur.execute("RELEASE SAVEPOINT one")


@act
async def prepared_2() -> None:
    async with connection() as link, await link.prepare("SELECT v FROM t WHERE id = ?") as statement:
        for number in (1, 2):
            expect((await statement.execute((number,))).rows, ((f"value {number}",),))


async def books_of_each(limit: int, autocommit: bool) -> None:
    async with cursor(autocommit) as cur:
        await cur.execute(AUTHORS + " LIMIT %s", (limit,))
        for author_id, _ in await cur.fetchall():
            await cur.execute(BOOKS_OF, (author_id,))
            expect(len(await cur.fetchall()), BOOKS_PER_AUTHOR)


registered("n_plus_one_10", partial(books_of_each, LOOP_COUNT, autocommit=False))


# ---- findings: what a program does badly, and the same done well

registered("bad_OT001", partial(books_of_each, AUTHOR_COUNT, autocommit=True))


@act
async def fixed_OT001() -> None:
    async with cursor() as cur:
        await cur.execute(AUTHORS)
        ids = [author_id for author_id, _ in await cur.fetchall()]
        await cur.execute(f"SELECT title, price FROM books WHERE author_id IN ({marks(ids)})", ids)
        expect(len(await cur.fetchall()), AUTHOR_COUNT * BOOKS_PER_AUTHOR)


async def insert_each(autocommit: bool) -> None:
    async with cursor(autocommit) as cur:
        for text in messages():
            await cur.execute(INSERT_LOG, (text,))


ROWS = len(messages())
registered("bad_OT002", partial(insert_each, autocommit=False))
registered("fixed_OT002", partial(insert_all, ROWS, autocommit=False))
registered("bad_OT003", partial(insert_each, autocommit=True))
registered("fixed_OT003", partial(insert_all, ROWS, autocommit=True))
# A loop inside the driver, and the same in one COM_STMT_BULK_EXECUTE.
registered("bad_OT002_update", partial(update_all, ACCOUNT_IDS))
registered("fixed_OT002_update", partial(update_all, ACCOUNT_IDS, **CACHE))


async def repeat(count: int) -> None:
    async with cursor(autocommit=False) as cur:
        for _ in range(count):
            await cur.execute("SELECT name FROM authors WHERE id = %s", (140,))
            expect(await cur.fetchone(), ("author 140",))


registered("bad_OT005", partial(repeat, 10))
registered("fixed_OT005", partial(repeat, 1))


@act
async def bad_OT006() -> None:
    async with connection() as link, link.cursor() as cur:
        for number in range(1, 11):
            await link.begin()
            await select(cur, number * 7)
            await link.commit()


registered("fixed_OT006", partial(selects, 10, 7))


@act
async def bad_OT007() -> None:
    """Prepared for each use, and closed after it."""
    async with connection() as link:
        for number in range(7, 77, 7):
            async with await link.prepare("SELECT v FROM t WHERE id = ?") as statement:
                expect((await statement.execute((number,))).rows, ((f"value {number}",),))


registered("fixed_OT007", partial(selects, 10, 7, **CACHE))


@act
async def bad_OT008() -> None:
    for number in range(1, 11):
        async with cursor() as cur:
            await select(cur, number * 7)


async def ten_requests(**options: Any) -> None:
    """Ten requests over a pool of one connection, which closes connections that come back in a transaction."""
    async with pool(**options) as connections:
        for number in range(1, 11):
            async with connections.acquire() as link, link.cursor() as cur:
                await select(cur, number * 7)


registered("fixed_OT008", partial(selects, 10, 7))
registered("bad_OT008_pool", ten_requests)
registered("fixed_OT008_pool", partial(ten_requests, autocommit=True))


@act
async def bad_OT009() -> None:
    async with cursor() as cur:
        for account_id in ACCOUNT_IDS[:12]:
            await cur.execute("SELECT balance FROM accounts WHERE id = %s", (account_id,))
            expect(len(await cur.fetchall()), 1)


@act
async def fixed_OT009() -> None:
    async with cursor() as cur:
        ids = ACCOUNT_IDS[:12]
        await cur.execute(f"SELECT id, balance FROM accounts WHERE id IN ({marks(ids)})", ids)
        expect(len(await cur.fetchall()), 12)


async def requests(before: Callable[[Any, Any], Awaitable[None]] | None = None) -> None:
    """Ten requests, with something before each."""
    async with pool(autocommit=True) as connections:
        for _ in range(10):
            async with connections.acquire() as link, link.cursor() as cur:
                if before:
                    await before(link, cur)
                await count_authors(cur)


registered("bad_OT011", partial(requests, lambda link, _: link.ping()))
registered(
    "bad_OT011_set",
    partial(requests, lambda _, cur: cur.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")),
)
registered("fixed_OT011", requests)


@act
async def bad_OT012() -> None:
    async with cursor() as cur:
        for author_id in PAGE_AUTHORS:
            for query in AUTHOR_PAGE:
                await cur.execute(query, (author_id,))
                expect(len(await cur.fetchall()) > 0, True)


@act
async def fixed_OT012() -> None:
    """Several statements in one text are allowed by default: the three queries share a trip."""
    async with cursor() as cur:
        for author_id in PAGE_AUTHORS:
            await cur.execute("; ".join(AUTHOR_PAGE), (author_id,) * len(AUTHOR_PAGE))
            for number in range(len(AUTHOR_PAGE)):
                expect(len(await cur.fetchall()) > 0, True)
                expect(await cur.nextset(), True if number < len(AUTHOR_PAGE) - 1 else None)


@act
async def bad_OT013() -> None:
    async with cursor(autocommit=False) as cur:
        for account_id in ACCOUNT_IDS:
            await cur.execute("SELECT balance FROM accounts WHERE id = %s FOR UPDATE", (account_id,))
            (balance,) = await cur.fetchone()
            await cur.execute("UPDATE accounts SET balance = %s WHERE id = %s", (balance + 1, account_id))


@act
async def fixed_OT013() -> None:
    async with cursor(autocommit=False) as cur:
        for account_id in ACCOUNT_IDS:
            await cur.execute(UPDATE_ACCOUNT, (1, account_id))


@act
async def bad_OT015() -> None:
    async with cursor(autocommit=False) as cur:
        for name in unseen():
            await cur.execute("SELECT id FROM tags WHERE name = %s", (name,))
            if not await cur.fetchone():
                await cur.execute("INSERT INTO tags (name) VALUES (%s)", (name,))


@act
async def fixed_OT015() -> None:
    async with cursor(autocommit=False) as cur:
        for name in unseen():
            await cur.execute("INSERT IGNORE INTO tags (name) VALUES (%s)", (name,))


async def two_reads(rolls_back: bool) -> None:
    async with connection() as link, link.cursor() as cur:
        for _ in range(10):
            if rolls_back:
                await link.begin()
            await count_authors(cur)
            await cur.execute("SELECT max(price) FROM books")
            expect(len(await cur.fetchall()), 1)
            if rolls_back:
                await link.rollback()


registered("bad_OT016", partial(two_reads, rolls_back=True))
registered("fixed_OT016", partial(two_reads, rolls_back=False))


# ---- traps: what looks avoidable and is not


@act
async def trap_chain() -> None:
    """Each answer names the next question."""
    async with cursor() as cur:
        number = 713
        for _ in range(10):
            await cur.execute("SELECT next FROM links WHERE id = %s", (number,))
            (number,) = await cur.fetchone()
        expect(number, 713)


@act
async def trap_two_of_each() -> None:
    """Too few to be a loop."""
    async with cursor() as cur:
        for author_id in PAGE_AUTHORS[:2]:
            await cur.execute(BOOKS_OF, (author_id,))
            expect(len(await cur.fetchall()), BOOKS_PER_AUTHOR)


@act
async def trap_unbuffered_portions() -> None:
    """fetchmany() of an SSCursor looks like a cursor's portions: it takes rows of one answer, as they come."""
    async with connection() as link, link.cursor(cursor=SSCursor) as cur:
        await cur.execute("SELECT id, v FROM t ORDER BY id")
        seen = 0
        while rows := await cur.fetchmany(10):
            seen += len(rows)
        expect(seen, TABLE_ROWS)


@act
async def trap_tasks_of_one_connection_each() -> None:
    """Four tasks at once, each with a connection that it keeps: none of them could have used another's."""

    async def work(first: int) -> None:
        await together.wait()
        async with cursor() as cur:
            for number in range(first, first + 5):
                await select(cur, number * 3)

    together = asyncio.Event()
    tasks = [asyncio.create_task(work(first)) for first in (1, 12, 23, 34)]
    together.set()
    await asyncio.gather(*tasks)


if __name__ == "__main__":
    sys.exit(main())
