#!/usr/bin/env python3
"""One act of Peewee, over psycopg2. Each fixed act does what Peewee's advice says (core/ledger/src/stacks/data)."""

from __future__ import annotations

import os
import sys

from acts import (
    ACCOUNT_IDS,
    AUTHOR_COUNT,
    BOOKS_PER_AUTHOR,
    FEW,
    act,
    expect,
    main,
    messages,
    named,
    unseen,
)
from peewee import (
    DecimalField,
    ForeignKeyField,
    IntegerField,
    Model,
    PostgresqlDatabase,
    TextField,
    prefetch,
)

# The rest of the PG* environment is read by libpq.
db = PostgresqlDatabase(os.environ.get("PGDATABASE", ""), prefer_psycopg3=False)


class Base(Model):
    class Meta:
        database = db


class Author(Base):
    id = IntegerField(primary_key=True)
    name = TextField()

    class Meta:
        table_name = "authors"


class Book(Base):
    id = IntegerField(primary_key=True)
    author = ForeignKeyField(Author, backref="books")
    title = TextField()
    price = DecimalField()

    class Meta:
        table_name = "books"


class Log(Base):
    message = TextField()

    class Meta:
        table_name = "log"


class Account(Base):
    id = IntegerField(primary_key=True)
    balance = IntegerField()

    class Meta:
        table_name = "accounts"


class Tag(Base):
    name = TextField(unique=True)

    class Meta:
        table_name = "tags"


def count_books(authors) -> None:
    expect(sum(len(author.books) for author in authors), AUTHOR_COUNT * BOOKS_PER_AUTHOR)


named("bad_OT001", lambda: count_books(Author.select().order_by(Author.id)))
named("fixed_OT001", lambda: count_books(prefetch(Author.select(), Book.select())))


def write_each() -> None:
    for message in messages(FEW):
        Log.create(message=message)


def write_all() -> None:
    Log.insert_many([{"message": message} for message in messages(FEW)]).execute()


@act
def bad_OT002() -> None:
    with db.atomic():
        write_each()


@act
def fixed_OT002() -> None:
    with db.atomic():
        write_all()


@act
def fixed_OT002_objects() -> None:
    with db.atomic():
        Log.bulk_create([Log(message=message) for message in messages(FEW)], batch_size=1000)


@act
def bad_OT002_update() -> None:
    with db.atomic():
        for account in list(Account.select().order_by(Account.id).limit(FEW)):
            account.balance += 1
            account.save()


@act
def fixed_OT002_update() -> None:
    accounts = list(Account.select().order_by(Account.id).limit(FEW))
    for account in accounts:
        account.balance += 1
    with db.atomic():
        Account.bulk_update(accounts, fields=[Account.balance], batch_size=1000)


named("bad_OT003", write_each)


@act
def fixed_OT003() -> None:
    with db.atomic():
        write_all()


def repeat(count: int) -> None:
    for _ in range(count):
        expect(Author.get_by_id(140).name, "author 140")


@act
def bad_OT005() -> None:
    with db.atomic():
        repeat(10)


@act
def fixed_OT005() -> None:
    with db.atomic():
        repeat(1)


@act
def bad_OT009() -> None:
    for account_id in ACCOUNT_IDS[:12]:
        expect(Account.get_by_id(account_id).id, account_id)


@act
def fixed_OT009() -> None:
    expect(len(Account.select().where(Account.id.in_(ACCOUNT_IDS[:12]))), 12)


@act
def bad_OT013() -> None:
    with db.atomic():
        for account_id in ACCOUNT_IDS[:FEW]:
            account = Account.get_by_id(account_id)
            account.balance += 1
            account.save()


@act
def fixed_OT013() -> None:
    with db.atomic():
        for account_id in ACCOUNT_IDS[:FEW]:
            add_one = Account.update(balance=Account.balance + 1)
            expect(add_one.where(Account.id == account_id).execute(), 1)


@act
def bad_OT015() -> None:
    with db.atomic():
        for name in unseen(FEW):
            Tag.get_or_create(name=name)


@act
def fixed_OT015() -> None:
    with db.atomic():
        for name in unseen(FEW):
            Tag.insert(name=name).on_conflict_ignore().execute()


if __name__ == "__main__":
    sys.exit(main())
