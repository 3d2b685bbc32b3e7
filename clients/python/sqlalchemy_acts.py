#!/usr/bin/env python3
"""One act of SQLAlchemy: `sqlalchemy_acts.py psycopg2|psycopg|pymysql ACT`."""

from __future__ import annotations

import decimal
import sys
from functools import partial

from acts import (
    ACCOUNT_IDS,
    AUTHOR_COUNT,
    BOOKS_PER_AUTHOR,
    FILE_CONTENT,
    FILE_IDS,
    FILE_PORTION,
    LOOP_COUNT,
    PAGE_AUTHORS,
    REGISTERED,
    TABLE_ROWS,
    WALK_ROWS,
    act,
    expect,
    main,
    messages,
    named,
    unseen,
)
from mysql_acts import settings
from sqlalchemy import (
    URL,
    Engine,
    ForeignKey,
    NullPool,
    Sequence,
    create_engine,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    Session,
    mapped_column,
    relationship,
    selectinload,
)

DIALECTS = ("psycopg2", "psycopg", "pymysql")
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


class Ticket(Base):
    __tablename__ = "tickets"
    id: Mapped[int] = mapped_column(primary_key=True)
    note: Mapped[str]


class Tag(Base):
    __tablename__ = "tags"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


class File(Base):
    __tablename__ = "files"
    id: Mapped[int] = mapped_column(primary_key=True)
    content: Mapped[int] = mapped_column(postgresql.OID)


def is_mysql() -> bool:
    return dialect == "pymysql"


def engine(**options: object) -> Engine:
    """Host, user and so on come from the PG* environment, as libpq reads it; of MySQL from MYSQL_*."""
    if is_mysql():
        at = settings()
        at["username"] = at.pop("user")
        return create_engine(URL.create(f"mysql+{dialect}", **at), **options)
    return create_engine(f"postgresql+{dialect}://", **options)


def autocommit_engine(**options: object) -> Engine:
    """MySQL's drivers send each rollback, also where there is no transaction to roll back."""
    if is_mysql():
        options["skip_autocommit_rollback"] = True
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


@act
def bad_OT009() -> None:
    with Session(autocommit_engine()) as session:
        for account_id in ACCOUNT_IDS[:12]:
            expect(session.get(Account, account_id) is not None, True)


@act
def fixed_OT009() -> None:
    with Session(autocommit_engine()) as session:
        query = select(Account).where(Account.id.in_(ACCOUNT_IDS[:12]))
        expect(len(session.scalars(query).all()), 12)


READ_ONLY = 0x40000  # INV_READ of libpq-fs.h


@act
def bad_OT010() -> None:
    with engine().begin() as link:
        for file_id in FILE_IDS:
            content = link.scalar(select(File.content).where(File.id == file_id))
            handle = link.scalar(select(func.lo_open(content, READ_ONLY)))
            portions = [link.scalar(select(func.loread(handle, FILE_PORTION))) for _ in range(3)]
            link.scalar(select(func.lo_close(handle)))
            expect(b"".join(map(bytes, portions)), FILE_CONTENT)


@act
def fixed_OT010() -> None:
    with engine().begin() as link:
        for file_id in FILE_IDS:
            content = link.scalar(select(func.lo_get(File.content)).where(File.id == file_id))
            expect(bytes(content), FILE_CONTENT)


def count_authors(pool: Engine) -> None:
    """Ten requests; with pool_pre_ping each checkout but the first tests the connection."""
    for _ in range(10):
        with pool.connect() as link:
            expect(link.scalar(select(func.count()).select_from(Author)), AUTHOR_COUNT)


named("bad_OT011", lambda: count_authors(autocommit_engine(pool_pre_ping=True)))
named("fixed_OT011", lambda: count_authors(autocommit_engine()))


def author_page(author_id: int) -> list:
    return [
        select(Author.name).where(Author.id == author_id),
        select(Book.title).where(Book.author_id == author_id),
        select(func.max(Book.price)).where(Book.author_id == author_id),
    ]


@act
def bad_OT012() -> None:
    with autocommit_engine().connect() as link:
        for author_id in PAGE_AUTHORS:
            for query in author_page(author_id):
                expect(link.scalar(query) is not None, True)


@act
def fixed_OT012() -> None:
    """One statement asks for all three: the queries become sub-queries of it."""
    with autocommit_engine().connect() as link:
        for author_id in PAGE_AUTHORS:
            name, books, price = author_page(author_id)
            title = books.subquery().c.title
            titles = select(func.group_concat(title) if is_mysql() else func.array_agg(title)).scalar_subquery()
            found = link.execute(select(name.scalar_subquery(), titles, price.scalar_subquery())).one()[1]
            expect(len(found.split(",") if is_mysql() else found), BOOKS_PER_AUTHOR)


@act
def bad_OT013() -> None:
    with Session(engine()) as session:
        for account_id in ACCOUNT_IDS:
            session.get(Account, account_id, with_for_update=True).balance += 1
            session.flush()
        session.commit()


@act
def fixed_OT013() -> None:
    with Session(engine()) as session:
        for account_id in ACCOUNT_IDS:
            add_one = update(Account).where(Account.id == account_id)
            add_one = add_one.values(balance=Account.balance + 1)
            if is_mysql():  # it has no UPDATE ... RETURNING
                expect(session.execute(add_one).rowcount, 1)
            else:
                expect(len(session.scalars(add_one.returning(Account.balance)).all()), 1)
        session.commit()


@act
def bad_OT014() -> None:
    with engine().begin() as link:
        for text in messages():
            ticket_id = link.scalar(Sequence("tickets_id_seq"))
            link.execute(insert(Ticket).values(id=ticket_id, note=text))


@act
def fixed_OT014() -> None:
    with engine().begin() as link:
        for text in messages():
            link.scalar(insert(Ticket).values(note=text).returning(Ticket.id))


@act
def bad_OT015() -> None:
    with Session(engine()) as session:
        for name in unseen():
            if session.scalar(select(Tag).where(Tag.name == name)) is None:
                session.add(Tag(name=name))
                session.flush()
        session.commit()


@act
def fixed_OT015() -> None:
    with Session(engine()) as session:
        for name in unseen():
            if is_mysql():
                add = mysql.insert(Tag).values(name=name)
                session.execute(add.on_duplicate_key_update(name=add.inserted.name))
            else:
                session.execute(postgresql.insert(Tag).values(name=name).on_conflict_do_nothing())
        session.commit()


def two_reads_each(pool: Engine) -> None:
    """Nobody commits a read, so the pool rolls back at check-in."""
    for _ in range(10):
        with pool.connect() as link:
            expect(link.scalar(select(func.count()).select_from(Author)), AUTHOR_COUNT)
            link.scalar(select(func.max(Book.price)))


named("bad_OT016", lambda: two_reads_each(engine()))
named("fixed_OT016", lambda: two_reads_each(autocommit_engine()))


# ---- what only one of the databases has

POSTGRESQL_ALONE = {name for name in REGISTERED if name.endswith(("OT004", "OT010", "OT014"))} | {"cursor_50_by_10"}
SHARED = set(REGISTERED) - POSTGRESQL_ALONE


named("select_6", partial(selects, 6))


@act
def txn_empty() -> None:
    with engine().begin():
        pass


@act
def executemany_3() -> None:
    with engine().begin() as link:
        link.execute(insert(Log), [{"message": message} for message in messages(3)])


@act
def executemany_update_3() -> None:
    """By primary key: the driver's executemany(), which is a loop for what is no INSERT."""
    with Session(engine()) as session:
        session.execute(update(Account), [{"id": account_id, "balance": 7} for account_id in ACCOUNT_IDS[:3]])
        session.commit()


@act
def isolation_level() -> None:
    """Set once per connection; it stays."""
    with engine(isolation_level="READ COMMITTED").connect() as link:
        for number in (1, 2):
            expect(link.scalar(value_of(number)), f"value {number}")


def options_each_time(pool: Engine, **options: object) -> None:
    """Ten requests that count the authors, each with these options of its own."""
    for _ in range(10):
        with pool.connect().execution_options(**options) as link:
            expect(link.scalar(select(func.count()).select_from(Author)), AUTHOR_COUNT)


@act
def autocommit_option() -> None:
    """Of one use of a connection, instead of the engine's: set before, and taken back at check-in."""
    with engine().connect().execution_options(isolation_level="AUTOCOMMIT") as link:
        expect(link.scalar(value_of(1)), "value 1")


@act
def bad_OT002_flush() -> None:
    """Objects that were changed are flushed at once, one UPDATE each."""
    with Session(engine()) as session:
        for account in session.scalars(select(Account).where(Account.id.in_(ACCOUNT_IDS))).all():
            account.balance += 1
        session.commit()


def look_after_commit(**options: object) -> None:
    """A commit expires the objects, so that each is asked for again when it is looked at."""
    with Session(engine(), **options) as session:
        authors = session.scalars(select(Author).order_by(Author.id)).all()
        session.add(Log(message="listed"))
        session.commit()
        expect({author.name[:7] for author in authors}, {"author "})


named("bad_OT001_expired", look_after_commit)
named("fixed_OT001_expired", partial(look_after_commit, expire_on_commit=False))


@act
def autocommit_rollback() -> None:
    """The check-in rolls back what never began."""
    with engine(isolation_level="AUTOCOMMIT").connect() as link:
        expect(link.scalar(value_of(1)), "value 1")


named("bad_OT016_autocommit", lambda: two_reads_each(engine(isolation_level="AUTOCOMMIT")))
named("bad_OT011_option", lambda: options_each_time(engine(), isolation_level="AUTOCOMMIT"))
named("trap_streamed", partial(walk, 10, TABLE_ROWS))


@act
def trap_two_of_each() -> None:
    """Too few to be a loop."""
    with Session(autocommit_engine()) as session:
        for author in session.scalars(select(Author).order_by(Author.id).limit(2)).all():
            expect(len(author.books), BOOKS_PER_AUTHOR)


MYSQL_ALONE = set(REGISTERED) - SHARED - POSTGRESQL_ALONE


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in DIALECTS:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(DIALECTS)} ACT")
    dialect = sys.argv[1]
    for other in POSTGRESQL_ALONE if is_mysql() else MYSQL_ALONE:
        del REGISTERED[other]
    sys.exit(main(sys.argv[2:]))
