#!/usr/bin/env python3
"""One act of SQLAlchemy: `sqlalchemy_acts.py psycopg2|psycopg ACT`."""

from __future__ import annotations

import decimal
import sys
from functools import partial

from acts import (
    ACCOUNT_IDS,
    AUTHOR_COUNT,
    BOOKS_PER_AUTHOR,
    LOOP_COUNT,
    TABLE_ROWS,
    WALK_ROWS,
    act,
    expect,
    main,
    messages,
    named,
)
from sqlalchemy import (
    Engine,
    ForeignKey,
    NullPool,
    create_engine,
    insert,
    select,
    update,
)
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    Session,
    mapped_column,
    relationship,
    selectinload,
)

DIALECTS = ("psycopg2", "psycopg")
dialect = DIALECTS[0]  # set from the first argument


class Base(DeclarativeBase):
    pass


class Author(Base):
    __tablename__ = "authors"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    books: Mapped[list[Book]] = relationship(order_by="Book.id")


class Book(Base):
    __tablename__ = "books"
    id: Mapped[int] = mapped_column(primary_key=True)
    author_id: Mapped[int] = mapped_column(ForeignKey("authors.id"))
    title: Mapped[str]
    price: Mapped[decimal.Decimal]


class Item(Base):
    __tablename__ = "t"
    id: Mapped[int] = mapped_column(primary_key=True)
    v: Mapped[str]


class Log(Base):
    __tablename__ = "log"
    id: Mapped[int] = mapped_column(primary_key=True)
    message: Mapped[str]


class Account(Base):
    __tablename__ = "accounts"
    id: Mapped[int] = mapped_column(primary_key=True)
    balance: Mapped[int]


def engine(**options: object) -> Engine:
    """Host, user and so on come from the PG* environment, as libpq reads it."""
    return create_engine(f"postgresql+{dialect}://", **options)


def autocommit_engine(**options: object) -> Engine:
    return engine(isolation_level="AUTOCOMMIT", **options)


def value_of(number: int):
    return select(Item.v).where(Item.id == number)


# ---- what the driver spends


@act
def connect() -> None:
    with engine().connect():
        pass


def selects(count: int) -> None:
    with autocommit_engine().connect() as link:
        for number in range(1, count + 1):
            expect(link.scalar(value_of(number)), f"value {number}")


def transaction(count: int) -> None:
    """Left without a commit, as readers do: the check-in rolls back."""
    with engine().connect() as link:
        for number in range(1, count + 1):
            expect(link.scalar(value_of(number)), f"value {number}")


for number in (1, 2):
    named(f"select_{number}", partial(selects, number))
    named(f"txn_{number}", partial(transaction, number))


@act
def pre_ping() -> None:
    """The second checkout finds a connection in the pool and tests it."""
    pool = autocommit_engine(pool_pre_ping=True)
    for number in (1, 2):
        with pool.connect() as link:
            expect(link.scalar(value_of(number)), f"value {number}")


@act
def session_get_commit() -> None:
    with Session(engine()) as session:
        expect(session.get(Author, 105).name, "author 105")
        session.commit()


@act
def update_obj() -> None:
    with Session(engine()) as session:
        session.get(Account, 311).balance += 1
        session.commit()


@act
def nested_txn() -> None:
    with Session(engine()) as session:
        with session.begin_nested():
            expect(session.scalar(value_of(1)), "value 1")
        session.commit()


def walk(fetch_size: int, row_count: int) -> None:
    with engine().connect() as link:
        streaming = link.execution_options(yield_per=fetch_size)
        query = select(Item.id, Item.v).where(Item.id <= row_count).order_by(Item.id)
        expect(sum(1 for _ in streaming.execute(query)), row_count)


named("cursor_50_by_10", partial(walk, 10, WALK_ROWS))


@act
def n_plus_one_10() -> None:
    with Session(engine()) as session:
        for author in session.scalars(select(Author).order_by(Author.id).limit(LOOP_COUNT)):
            expect(len(author.books), BOOKS_PER_AUTHOR)


# ---- findings: what a program does badly, and the same done well


def list_books(*options: object) -> None:
    with Session(engine()) as session:
        authors = session.scalars(select(Author).order_by(Author.id).options(*options)).all()
        expect(sum(len(author.books) for author in authors), AUTHOR_COUNT * BOOKS_PER_AUTHOR)


named("bad_OT001", list_books)
named("fixed_OT001", lambda: list_books(selectinload(Author.books)))


@act
def bad_OT002() -> None:
    with Session(engine()) as session:
        for message in messages():
            session.add(Log(message=message))
            session.flush()
        session.commit()


@act
def bad_OT002_update() -> None:
    with engine().begin() as link:
        for account_id in ACCOUNT_IDS:
            add_one = update(Account).where(Account.id == account_id)
            link.execute(add_one.values(balance=Account.balance + 1))


@act
def fixed_OT002() -> None:
    with Session(engine()) as session:
        session.add_all(Log(message=message) for message in messages())
        session.commit()


@act
def fixed_OT002_update() -> None:
    with engine().begin() as link:
        add_one = update(Account).where(Account.id.in_(ACCOUNT_IDS))
        link.execute(add_one.values(balance=Account.balance + 1))


@act
def bad_OT003() -> None:
    with autocommit_engine().connect() as link:
        for message in messages():
            link.execute(insert(Log).values(message=message).inline())


@act
def fixed_OT003() -> None:
    rows = [{"message": message} for message in messages()]
    with engine().begin() as link:
        link.execute(insert(Log).returning(Log.id), rows)


named("bad_OT004", partial(walk, 10, TABLE_ROWS))
named("fixed_OT004", partial(walk, 1000, TABLE_ROWS))


def repeat(count: int) -> None:
    """A query by anything but the primary key goes to the database each time."""
    with Session(engine()) as session:
        for _ in range(count):
            author = session.scalars(select(Author).where(Author.name == "author 140")).one()
            expect(author.id, 140)
        session.commit()


named("bad_OT005", partial(repeat, 10))
named("fixed_OT005", partial(repeat, 1))


def ten_requests(pool: Engine) -> None:
    for number in range(1, 11):
        with pool.connect() as link:
            expect(link.scalar(value_of(number * 7)), f"value {number * 7}")


named("bad_OT006", lambda: ten_requests(engine()))
named("fixed_OT006", lambda: ten_requests(autocommit_engine()))
named("bad_OT008", lambda: ten_requests(autocommit_engine(poolclass=NullPool)))
named("fixed_OT008", lambda: ten_requests(autocommit_engine()))


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in DIALECTS:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(DIALECTS)} ACT")
    dialect = sys.argv[1]
    sys.exit(main(sys.argv[2:]))
