#!/usr/bin/env python3
"""One act of Piccolo, over asyncpg. Each fixed act does what Piccolo's advice says (core/ledger/src/stacks/data)."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable

from acts import (
    ACCOUNT_IDS,
    AUTHOR_COUNT,
    BOOKS_PER_AUTHOR,
    FEW,
    expect,
    main,
    messages,
    named,
    unseen,
)
from piccolo.columns import BigSerial, ForeignKey, Integer, Numeric, Text
from piccolo.engine.postgres import PostgresEngine
from piccolo.table import Table

NAMES = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "database": "PGDATABASE"}
DB = PostgresEngine(
    config={key: os.environ.get(name, "") for key, name in NAMES.items()},
    extensions=(),
    log_queries=False,
)


class Author(Table, tablename="authors", db=DB):
    id = Integer(primary_key=True)
    name = Text()


class Book(Table, tablename="books", db=DB):
    id = Integer(primary_key=True)
    author = ForeignKey(Author, db_column_name="author_id")
    title = Text()
    price = Numeric(digits=(8, 2))


class Log(Table, tablename="log", db=DB):
    id = BigSerial(primary_key=True)
    message = Text()


class Account(Table, tablename="accounts", db=DB):
    id = Integer(primary_key=True)
    balance = Integer()


class Tag(Table, tablename="tags", db=DB):
    id = BigSerial(primary_key=True)
    name = Text(unique=True)


async def pooled(work: Callable[[], Awaitable[None]]) -> None:
    await DB.start_connection_pool(min_size=1, max_size=1)
    try:
        await work()
    finally:
        await DB.close_connection_pool()


def async_act(work: Callable[[], Awaitable[None]], name: str | None = None) -> None:
    """Decorator: the coroutine's name is the act's name."""
    named(name or work.__name__, lambda: asyncio.run(pooled(work)))


@async_act
async def bad_OT001() -> None:
    for book in await Book.objects().order_by(Book.id):
        author = await book.get_related(Book.author)
        expect(author.name, f"author {author.id}")


@async_act
async def fixed_OT001() -> None:
    books = await Book.objects(Book.author).order_by(Book.id)
    expect(len({book.author.name for book in books}), AUTHOR_COUNT)


@async_act
async def bad_OT001_children() -> None:
    for author in await Author.objects().order_by(Author.id):
        books = await Book.objects().where(Book.author == author.id)
        expect(len(books), BOOKS_PER_AUTHOR)


@async_act
async def fixed_OT001_children() -> None:
    """One query for the books, each with the name of its author."""
    books = await Book.select(Book.title, Book.author.name)
    expect(len(books), AUTHOR_COUNT * BOOKS_PER_AUTHOR)


async def write_each() -> None:
    for message in messages(FEW):
        await Log(message=message).save()


async def write_all() -> None:
    await Log.insert(*[Log(message=message) for message in messages(FEW)])


@async_act
async def bad_OT002() -> None:
    async with DB.transaction():
        await write_each()


@async_act
async def fixed_OT002() -> None:
    async with DB.transaction():
        await write_all()


@async_act
async def bad_OT002_update() -> None:
    async with DB.transaction():
        for account in await Account.objects().order_by(Account.id).limit(FEW):
            account.balance += 1
            await account.save()


@async_act
async def fixed_OT002_update() -> None:
    async with DB.transaction():
        add_one = Account.update({Account.balance: Account.balance + 1})
        await add_one.where(Account.id.is_in(list(ACCOUNT_IDS[:FEW])))


@async_act
async def bad_OT003() -> None:
    await write_each()


@async_act
async def fixed_OT003() -> None:
    async with DB.transaction():
        await write_all()


async def repeat(count: int) -> None:
    async with DB.transaction():
        for _ in range(count):
            expect((await Author.objects().get(Author.id == 140)).name, "author 140")


@async_act
async def bad_OT005() -> None:
    await repeat(10)


@async_act
async def fixed_OT005() -> None:
    await repeat(1)


async def look_up_each(count: int = 10) -> None:
    for account_id in ACCOUNT_IDS[:count]:
        expect((await Account.objects().get(Account.id == account_id)).id, account_id)


@async_act
async def bad_OT009() -> None:
    async with DB.transaction():
        await look_up_each(12)


@async_act
async def fixed_OT009() -> None:
    query = Account.select().where(Account.id.is_in(list(ACCOUNT_IDS[:12])))
    async with DB.transaction():
        expect(len(await query), 12)


# Without a pool, each statement has a connection of its own.
named("bad_OT008", lambda: asyncio.run(look_up_each()))
named("fixed_OT008", lambda: asyncio.run(pooled(look_up_each)))


async def count_authors() -> None:
    for _ in range(10):
        expect(await Author.count(), AUTHOR_COUNT)


# Outside a transaction each statement takes a connection from the pool, and gives it back.
async_act(count_authors, "bad_OT011")


@async_act
async def fixed_OT011() -> None:
    async with DB.transaction():
        await count_authors()


@async_act
async def bad_OT013() -> None:
    async with DB.transaction():
        for account_id in ACCOUNT_IDS[:FEW]:
            account = await Account.objects().get(Account.id == account_id)
            account.balance += 1
            await account.save()


@async_act
async def fixed_OT013() -> None:
    async with DB.transaction():
        for account_id in ACCOUNT_IDS[:FEW]:
            add_one = Account.update({Account.balance: Account.balance + 1})
            await add_one.where(Account.id == account_id).returning(Account.balance)


@async_act
async def bad_OT015() -> None:
    async with DB.transaction():
        for name in unseen(FEW):
            await Tag.objects().get_or_create(Tag.name == name)


@async_act
async def fixed_OT015() -> None:
    async with DB.transaction():
        for name in unseen(FEW):
            await Tag.insert(Tag(name=name)).on_conflict(action="DO NOTHING")


if __name__ == "__main__":
    sys.exit(main())
