#!/usr/bin/env python3
"""One act of Tortoise, over asyncpg. Each fixed act does what Tortoise's advice says (core/ledger/src/stacks/data)."""

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
from tortoise import Tortoise, fields
from tortoise.expressions import F
from tortoise.models import Model
from tortoise.transactions import in_transaction


class Author(Model):
    id = fields.IntField(primary_key=True)
    name = fields.TextField()
    books: fields.ReverseRelation[Book]

    class Meta:
        table = "authors"


class Book(Model):
    id = fields.IntField(primary_key=True)
    author = fields.ForeignKeyField("models.Author", related_name="books")
    title = fields.TextField()
    price = fields.DecimalField(max_digits=8, decimal_places=2)

    class Meta:
        table = "books"


class Log(Model):
    id = fields.BigIntField(primary_key=True)
    message = fields.TextField()

    class Meta:
        table = "log"


class Account(Model):
    id = fields.IntField(primary_key=True)
    balance = fields.IntField()

    class Meta:
        table = "accounts"


class Tag(Model):
    id = fields.BigIntField(primary_key=True)
    name = fields.CharField(max_length=100, unique=True)

    class Meta:
        table = "tags"


def credentials() -> dict[str, object]:
    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "database": "PGDATABASE"}
    return {key: os.environ.get(name, "") for key, name in names.items()} | {"minsize": 1, "maxsize": 1}


async def connected(work: Callable[[], Awaitable[None]]) -> None:
    connection = {"engine": "tortoise.backends.asyncpg", "credentials": credentials()}
    apps = {"models": {"models": ["__main__"], "default_connection": "default"}}
    await Tortoise.init(config={"connections": {"default": connection}, "apps": apps})
    try:
        await work()
    finally:
        await Tortoise.close_connections()


def async_act(work: Callable[[], Awaitable[None]], name: str | None = None) -> None:
    """Decorator: the coroutine's name is the act's name."""
    named(name or work.__name__, lambda: asyncio.run(connected(work)))


@async_act
async def bad_OT001() -> None:
    for author in await Author.all().order_by("id"):
        expect(len(await author.books), BOOKS_PER_AUTHOR)


@async_act
async def fixed_OT001() -> None:
    authors = await Author.all().order_by("id").prefetch_related("books")
    expect(sum(len(author.books) for author in authors), AUTHOR_COUNT * BOOKS_PER_AUTHOR)


async def write_each() -> None:
    for message in messages(FEW):
        await Log.create(message=message)


async def write_all() -> None:
    await Log.bulk_create([Log(message=message) for message in messages(FEW)])


@async_act
async def bad_OT002() -> None:
    async with in_transaction():
        await write_each()


@async_act
async def fixed_OT002() -> None:
    async with in_transaction():
        await write_all()


@async_act
async def bad_OT002_update() -> None:
    async with in_transaction():
        for account in await Account.all().order_by("id").limit(FEW):
            account.balance += 1
            await account.save()


@async_act
async def fixed_OT002_update() -> None:
    async with in_transaction():
        accounts = await Account.all().order_by("id").limit(FEW)
        for account in accounts:
            account.balance += 1
        await Account.bulk_update(accounts, fields=["balance"])


@async_act
async def bad_OT003() -> None:
    await write_each()


@async_act
async def fixed_OT003() -> None:
    async with in_transaction():
        await write_all()


async def repeat(count: int) -> None:
    async with in_transaction():
        for _ in range(count):
            expect((await Author.get(id=140)).name, "author 140")


@async_act
async def bad_OT005() -> None:
    await repeat(10)


@async_act
async def fixed_OT005() -> None:
    await repeat(1)


@async_act
async def bad_OT009() -> None:
    async with in_transaction():
        for account_id in ACCOUNT_IDS[:12]:
            expect((await Account.get(id=account_id)).id, account_id)


@async_act
async def fixed_OT009() -> None:
    async with in_transaction():
        expect(len(await Account.in_bulk(ACCOUNT_IDS[:12], "id")), 12)


async def count_authors() -> None:
    for _ in range(10):
        expect(await Author.all().count(), AUTHOR_COUNT)


# Outside a transaction each statement takes a connection from the pool, and gives it back.
async_act(count_authors, "bad_OT011")


@async_act
async def fixed_OT011() -> None:
    async with in_transaction():
        await count_authors()


@async_act
async def bad_OT013() -> None:
    async with in_transaction():
        for account_id in ACCOUNT_IDS[:FEW]:
            account = await Account.get(id=account_id)
            account.balance += 1
            await account.save()


@async_act
async def fixed_OT013() -> None:
    async with in_transaction():
        for account_id in ACCOUNT_IDS[:FEW]:
            expect(await Account.filter(id=account_id).update(balance=F("balance") + 1), 1)


@async_act
async def bad_OT015() -> None:
    for name in unseen(FEW):
        await Tag.get_or_create(name=name)


@async_act
async def fixed_OT015() -> None:
    await Tag.bulk_create([Tag(name=name) for name in unseen(FEW)], ignore_conflicts=True)


if __name__ == "__main__":
    sys.exit(main())
