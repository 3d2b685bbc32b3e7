#!/usr/bin/env python3
"""One act of SQLModel, over psycopg 3: SQLAlchemy on the wire, and so in reports. Each fixed act does what
SQLAlchemy's advice says (core/ledger/src/stacks/data)."""

# Without `from __future__ import annotations`: SQLModel reads the types of relations.
import decimal
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
from sqlalchemy import Engine, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import selectinload
from sqlmodel import Field, Relationship, Session, SQLModel, create_engine, select


class Author(SQLModel, table=True):
    __tablename__ = "authors"
    id: int = Field(primary_key=True)
    name: str
    books: list["Book"] = Relationship(back_populates="author")


class Book(SQLModel, table=True):
    __tablename__ = "books"
    id: int = Field(primary_key=True)
    author_id: int = Field(foreign_key="authors.id")
    title: str
    price: decimal.Decimal
    author: Author = Relationship(back_populates="books")


class Log(SQLModel, table=True):
    __tablename__ = "log"
    id: int | None = Field(default=None, primary_key=True)
    message: str


class Account(SQLModel, table=True):
    __tablename__ = "accounts"
    id: int = Field(primary_key=True)
    balance: int


class Tag(SQLModel, table=True):
    __tablename__ = "tags"
    id: int | None = Field(default=None, primary_key=True)
    name: str


def engine() -> Engine:
    """Host, user and so on come from the PG* environment, as libpq reads it."""
    return create_engine("postgresql+psycopg://")


def list_books(*options: object) -> None:
    with Session(engine()) as session:
        authors = session.exec(select(Author).order_by(Author.id).options(*options)).all()
        expect(sum(len(author.books) for author in authors), AUTHOR_COUNT * BOOKS_PER_AUTHOR)


named("bad_OT001", list_books)
named("fixed_OT001", lambda: list_books(selectinload(Author.books)))


@act
def bad_OT002() -> None:
    with Session(engine()) as session:
        for message in messages(FEW):
            session.add(Log(message=message))
            session.flush()
        session.commit()


@act
def fixed_OT002() -> None:
    with Session(engine()) as session:
        session.add_all([Log(message=message) for message in messages(FEW)])
        session.commit()


def add_one_to_each(session: Session, *, flushes: bool) -> None:
    for account in session.exec(select(Account).order_by(Account.id).limit(FEW)).all():
        account.balance += 1
        session.add(account)
        if flushes:
            session.flush()
    session.commit()


@act
def bad_OT002_update() -> None:
    with Session(engine()) as session:
        add_one_to_each(session, flushes=True)


@act
def fixed_OT002_update() -> None:
    with Session(engine()) as session:
        add_one_to_each(session, flushes=False)


@act
def bad_OT003() -> None:
    with Session(engine()) as session:
        for message in messages(FEW):
            session.add(Log(message=message))
            session.commit()


@act
def fixed_OT003() -> None:
    with Session(engine()) as session:
        session.add_all([Log(message=message) for message in messages(FEW)])
        session.commit()


@act
def bad_OT005() -> None:
    with Session(engine()) as session:
        for _ in range(10):
            by_name = select(Author).where(Author.name == "author 140")
            expect(session.exec(by_name).one().id, 140)
        session.commit()


@act
def fixed_OT005() -> None:
    """While the object is kept: the identity map alone does not keep it."""
    with Session(engine()) as session:
        author = session.get(Author, 140)
        for _ in range(9):
            expect(session.get(Author, 140) is author, True)
        session.commit()


@act
def bad_OT009() -> None:
    with Session(engine()) as session:
        for account_id in ACCOUNT_IDS[:12]:
            expect(session.get(Account, account_id).id, account_id)


@act
def fixed_OT009() -> None:
    with Session(engine()) as session:
        query = select(Account).where(Account.id.in_(ACCOUNT_IDS[:12]))
        expect(len(session.exec(query).all()), 12)


@act
def bad_OT013() -> None:
    with Session(engine()) as session:
        for account_id in ACCOUNT_IDS[:FEW]:
            session.get(Account, account_id, with_for_update=True).balance += 1
            session.flush()
        session.commit()


@act
def fixed_OT013() -> None:
    with Session(engine()) as session:
        for account_id in ACCOUNT_IDS[:FEW]:
            add_one = update(Account).where(Account.id == account_id)
            add_one = add_one.values(balance=Account.balance + 1).returning(Account.balance)
            expect(len(session.exec(add_one).all()), 1)
        session.commit()


@act
def bad_OT015() -> None:
    with Session(engine()) as session:
        for name in unseen(FEW):
            if session.exec(select(Tag).where(Tag.name == name)).first() is None:
                session.add(Tag(name=name))
                session.flush()
        session.commit()


@act
def fixed_OT015() -> None:
    with Session(engine()) as session:
        for name in unseen(FEW):
            session.exec(postgresql.insert(Tag).values(name=name).on_conflict_do_nothing())
        session.commit()


if __name__ == "__main__":
    sys.exit(main())
