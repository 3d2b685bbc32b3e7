#!/usr/bin/env python3
"""One act of Pony, over psycopg2. Each fixed act does what Pony's advice says (core/ledger/src/stacks/data)."""

from __future__ import annotations

import decimal
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
from pony.orm import Database, PrimaryKey, Required, Set, db_session, flush, select

db = Database()


class Author(db.Entity):
    _table_ = "authors"
    id = PrimaryKey(int)
    name = Required(str)
    books = Set("Book")


class Book(db.Entity):
    _table_ = "books"
    id = PrimaryKey(int)
    author = Required(Author, column="author_id")
    title = Required(str)
    price = Required(decimal.Decimal)


class Log(db.Entity):
    _table_ = "log"
    id = PrimaryKey(int, auto=True)
    message = Required(str)


class Account(db.Entity):
    _table_ = "accounts"
    id = PrimaryKey(int)
    balance = Required(int)


class Tag(db.Entity):
    _table_ = "tags"
    id = PrimaryKey(int, auto=True)
    name = Required(str, unique=True)


def connect() -> None:
    """The rest of the PG* environment is read by libpq."""
    db.bind(provider="postgres", dbname=os.environ.get("PGDATABASE", ""))
    db.generate_mapping(check_tables=False)


@act
@db_session
def bad_OT001() -> None:
    """A query of each set. Without one, Pony loads the sets of all authors when the second is touched."""
    for author in select(a for a in Author).order_by(Author.id):
        expect(len(author.books.order_by(Book.id)[:]), BOOKS_PER_AUTHOR)


@act
@db_session
def fixed_OT001() -> None:
    authors = select(a for a in Author).order_by(Author.id).prefetch(Author.books)
    expect(sum(len(author.books) for author in authors), AUTHOR_COUNT * BOOKS_PER_AUTHOR)


@act
@db_session
def bad_OT002() -> None:
    """One flush does not help: it writes an object at a time."""
    for message in messages(FEW):
        Log(message=message)


def execute(sql: str, **values: object) -> None:
    """`$name` in the statement is the value of that name."""
    db.execute(sql, values)


def write_all() -> None:
    execute("INSERT INTO log (message) SELECT unnest($texts)", texts=messages(FEW))


named("fixed_OT002", db_session(write_all))


@act
@db_session
def bad_OT002_update() -> None:
    accounts = select(a for a in Account).order_by(Account.id).for_update().limit(FEW)
    for account in accounts:
        account.balance += 1


@act
@db_session
def fixed_OT002_update() -> None:
    add_one = "UPDATE accounts SET balance = balance + 1 WHERE id = ANY($ids)"
    execute(add_one, ids=list(ACCOUNT_IDS[:FEW]))


@act
def bad_OT003() -> None:
    for message in messages(FEW):
        with db_session:
            Log(message=message)


@act
@db_session
def fixed_OT003() -> None:
    write_all()


@act
@db_session
def bad_OT009() -> None:
    for account_id in ACCOUNT_IDS[:12]:
        expect(Account[account_id].id, account_id)


@act
@db_session
def fixed_OT009() -> None:
    ids = ACCOUNT_IDS[:12]
    expect(len(select(a for a in Account if a.id in ids)[:]), 12)


@act
@db_session
def bad_OT013() -> None:
    for account_id in ACCOUNT_IDS[:FEW]:
        Account.get_for_update(id=account_id).balance += 1
        flush()


@act
@db_session
def fixed_OT013() -> None:
    for account_id in ACCOUNT_IDS[:FEW]:
        execute("UPDATE accounts SET balance = balance + 1 WHERE id = $id", id=account_id)


@act
@db_session
def bad_OT015() -> None:
    for name in unseen(FEW):
        if Tag.get(name=name) is None:
            Tag(name=name)
            flush()


@act
@db_session
def fixed_OT015() -> None:
    for name in unseen(FEW):
        execute("INSERT INTO tags (name) VALUES ($name) ON CONFLICT DO NOTHING", name=name)


if __name__ == "__main__":
    if sys.argv[1:] != ["--list"]:
        connect()
    sys.exit(main())
