#!/usr/bin/env python3
"""One act of psycopg2: parameters are inlined, every statement is a simple Query."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import psycopg2
import psycopg2.extras
import psycopg2.pool
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

BOOKS_OF = "SELECT title, price FROM books WHERE author_id = %s ORDER BY id"
INSERT_LOG = "INSERT INTO log (message) VALUES (%s)"
UPDATE_ACCOUNT = "UPDATE accounts SET balance = balance + %s WHERE id = %s"


@contextmanager
def connection(autocommit: bool = False) -> Iterator[psycopg2.extensions.connection]:
    link = psycopg2.connect("")
    try:
        link.autocommit = autocommit
        yield link
    finally:
        link.close()


@contextmanager
def cursor(autocommit: bool = False) -> Iterator[psycopg2.extensions.cursor]:
    """A cursor of a connection of its own; without autocommit the caller commits."""
    with connection(autocommit) as link, link.cursor() as cur:
        yield cur


def select(cur: psycopg2.extensions.cursor, number: int) -> None:
    cur.execute("SELECT v FROM t WHERE id = %s", (number,))
    expect(cur.fetchall(), [(f"value {number}",)])


# ---- what the driver spends


@act
def connect() -> None:
    with connection():
        pass


def selects(count: int) -> None:
    with cursor(autocommit=True) as cur:
        for number in range(1, count + 1):
            select(cur, number)


def transaction(count: int) -> None:
    with cursor() as cur:
        for number in range(1, count + 1):
            select(cur, number)
        cur.connection.commit()


for number in (1, 2, 6):
    named(f"select_{number}", partial(selects, number))
for number in (1, 2):
    named(f"txn_{number}", partial(transaction, number))


@act
def txn_empty() -> None:
    with connection() as link:
        link.commit()


@act
def pool_checkin() -> None:
    pool = psycopg2.pool.SimpleConnectionPool(1, 1, "")
    link = pool.getconn()
    with link.cursor() as cur:
        select(cur, 1)
    pool.putconn(link)
    pool.closeall()


@act
def set_session() -> None:
    with connection() as link:
        link.set_session(isolation_level="REPEATABLE READ", readonly=True)
        with link.cursor() as cur:
            select(cur, 1)
        link.commit()


@act
def leave_set_session() -> None:
    """In autocommit the characteristics are SET at once, and SET back on leaving it."""
    with connection(autocommit=True) as link:
        link.set_session(isolation_level="REPEATABLE READ", readonly=True)
        link.autocommit = False


@act
def executemany_3() -> None:
    with cursor(autocommit=True) as cur:
        cur.executemany(INSERT_LOG, [(text,) for text in messages(3)])


@act
def savepoint() -> None:
    with cursor() as cur:
        cur.execute("SAVEPOINT one")
        select(cur, 1)
        cur.execute("RELEASE SAVEPOINT one")
        cur.connection.commit()


@act
def array_param() -> None:
    with cursor(autocommit=True) as cur:
        cur.execute("SELECT count(*) FROM authors WHERE id = ANY(%s)", ([101, 105, 112],))
        expect(cur.fetchone(), (3,))


@act
def cursor_50_by_10() -> None:
    with connection() as link:
        with link.cursor("walk") as cur:
            cur.itersize = 10
            cur.execute("SELECT id, v FROM t WHERE id <= %s ORDER BY id", (WALK_ROWS,))
            expect(sum(1 for _ in cur), WALK_ROWS)
        link.commit()


@act
def n_plus_one_10() -> None:
    with cursor() as cur:
        cur.execute("SELECT id, name FROM authors ORDER BY id LIMIT %s", (LOOP_COUNT,))
        for author_id, _ in cur.fetchall():
            cur.execute(BOOKS_OF, (author_id,))
            expect(cur.rowcount, BOOKS_PER_AUTHOR)
        cur.connection.commit()


# ---- findings: what a program does badly, and the same done well


@act
def bad_OT001() -> None:
    with cursor(autocommit=True) as cur:
        cur.execute("SELECT id, name FROM authors ORDER BY id")
        for author_id, _ in cur.fetchall():
            cur.execute(BOOKS_OF, (author_id,))
            expect(len(cur.fetchall()), BOOKS_PER_AUTHOR)


@act
def fixed_OT001() -> None:
    with cursor(autocommit=True) as cur:
        cur.execute("SELECT id, name FROM authors ORDER BY id")
        ids = [author_id for author_id, _ in cur.fetchall()]
        cur.execute("SELECT author_id, title, price FROM books WHERE author_id = ANY(%s)", (ids,))
        expect(len(cur.fetchall()), AUTHOR_COUNT * BOOKS_PER_AUTHOR)


@act
def bad_OT002() -> None:
    with cursor() as cur:
        for text in messages():
            cur.execute(INSERT_LOG, (text,))
        cur.connection.commit()


@act
def bad_OT002_update() -> None:
    with cursor() as cur:
        for account_id in ACCOUNT_IDS:
            cur.execute(UPDATE_ACCOUNT, (1, account_id))
            expect(cur.rowcount, 1)
        cur.connection.commit()


@act
def fixed_OT002() -> None:
    with cursor() as cur:
        rows = [(text,) for text in messages()]
        psycopg2.extras.execute_values(cur, "INSERT INTO log (message) VALUES %s", rows)
        cur.connection.commit()


@act
def fixed_OT002_update() -> None:
    with cursor() as cur:
        rows = [(1, account_id) for account_id in ACCOUNT_IDS]
        psycopg2.extras.execute_batch(cur, UPDATE_ACCOUNT, rows)
        cur.connection.commit()


@act
def bad_OT003() -> None:
    with cursor(autocommit=True) as cur:
        for text in messages():
            cur.execute(INSERT_LOG, (text,))


@act
def fixed_OT003() -> None:
    fixed_OT002()


def walk(fetch_size: int) -> None:
    with connection() as link:
        with link.cursor("walk") as cur:
            cur.itersize = fetch_size
            cur.execute("SELECT id, v FROM t ORDER BY id")
            expect(sum(1 for _ in cur), TABLE_ROWS)
        link.commit()


named("bad_OT004", partial(walk, 10))
named("fixed_OT004", partial(walk, 1000))


def repeat(count: int) -> None:
    with cursor() as cur:
        for _ in range(count):
            cur.execute("SELECT name FROM authors WHERE id = %s", (140,))
            expect(cur.fetchall(), [("author 140",)])
        cur.connection.commit()


named("bad_OT005", partial(repeat, 10))
named("fixed_OT005", partial(repeat, 1))


@act
def bad_OT006() -> None:
    with cursor() as cur:
        for number in range(1, 11):
            select(cur, number * 7)
            cur.connection.commit()


@act
def fixed_OT006() -> None:
    with cursor(autocommit=True) as cur:
        for number in range(1, 11):
            select(cur, number * 7)


@act
def bad_OT008() -> None:
    for number in range(1, 11):
        with cursor(autocommit=True) as cur:
            select(cur, number * 7)


@act
def fixed_OT008() -> None:
    pool = psycopg2.pool.SimpleConnectionPool(1, 1, "")
    for number in range(1, 11):
        link = pool.getconn()
        link.autocommit = True
        with link.cursor() as cur:
            select(cur, number * 7)
        pool.putconn(link)
    pool.closeall()


if __name__ == "__main__":
    sys.exit(main())
