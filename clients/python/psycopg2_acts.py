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
    BOOKS_OF,
    BOOKS_PER_AUTHOR,
    FILE_CONTENT,
    FILE_IDS,
    FILE_PORTION,
    INSERT_LOG,
    LOOP_COUNT,
    PAGE_AUTHORS,
    TABLE_ROWS,
    UPDATE_ACCOUNT,
    WALK_ROWS,
    act,
    expect,
    main,
    messages,
    named,
    unseen,
)


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


@act
def bad_OT009() -> None:
    with cursor(autocommit=True) as cur:
        for account_id in ACCOUNT_IDS[:12]:
            cur.execute("SELECT balance FROM accounts WHERE id = %s", (account_id,))
            expect(cur.rowcount, 1)


@act
def fixed_OT009() -> None:
    with cursor(autocommit=True) as cur:
        ids = list(ACCOUNT_IDS[:12])
        cur.execute("SELECT id, balance FROM accounts WHERE id = ANY(%s)", (ids,))
        expect(cur.rowcount, 12)


@act
def bad_OT010() -> None:
    with cursor() as cur:
        for file_id in FILE_IDS:
            cur.execute("SELECT content FROM files WHERE id = %s", (file_id,))
            large_object = cur.connection.lobject(cur.fetchone()[0], "rb")
            portions = [large_object.read(FILE_PORTION) for _ in range(3)]
            large_object.close()
            expect(b"".join(portions), FILE_CONTENT)
        cur.connection.commit()


@act
def fixed_OT010() -> None:
    with cursor() as cur:
        for file_id in FILE_IDS:
            cur.execute("SELECT lo_get(content) FROM files WHERE id = %s", (file_id,))
            expect(bytes(cur.fetchone()[0]), FILE_CONTENT)
        cur.connection.commit()


def count_authors(test_first: bool) -> None:
    """Ten requests, each testing the pooled connection before it uses it, or not."""
    pool = psycopg2.pool.SimpleConnectionPool(1, 1, "")
    for _ in range(10):
        link = pool.getconn()
        link.autocommit = True
        with link.cursor() as cur:
            if test_first:
                cur.execute("SELECT 1")
            cur.execute("SELECT count(*) FROM authors")
            expect(cur.fetchone(), (AUTHOR_COUNT,))
        pool.putconn(link)
    pool.closeall()


named("bad_OT011", partial(count_authors, test_first=True))
named("fixed_OT011", partial(count_authors, test_first=False))


@act
def bad_OT011_set() -> None:
    """In autocommit the session is SET at each call, and SET back on leaving it."""
    with connection(autocommit=True) as link:
        for _ in range(5):
            link.set_session(readonly=True)
            link.set_session(readonly=False)


@act
def fixed_OT011_set() -> None:
    with connection() as link:
        for _ in range(5):
            link.set_session(readonly=True)
            link.set_session(readonly=False)


AUTHOR_PAGE = (
    "SELECT name FROM authors WHERE id = %(author)s",
    "SELECT title FROM books WHERE author_id = %(author)s ORDER BY id",
    "SELECT max(price) FROM books WHERE author_id = %(author)s",
)


@act
def bad_OT012() -> None:
    with cursor(autocommit=True) as cur:
        for author_id in PAGE_AUTHORS:
            for query in AUTHOR_PAGE:
                cur.execute(query, {"author": author_id})
                expect(cur.rowcount > 0, True)


@act
def fixed_OT012() -> None:
    """psycopg2 cannot pipeline: one statement asks for all three."""
    query = """
        SELECT name, array_agg(title ORDER BY books.id), max(price)
        FROM authors JOIN books ON author_id = authors.id
        WHERE authors.id = %s GROUP BY authors.id"""
    with cursor(autocommit=True) as cur:
        for author_id in PAGE_AUTHORS:
            cur.execute(query, (author_id,))
            expect(len(cur.fetchone()[1]), BOOKS_PER_AUTHOR)


@act
def bad_OT013() -> None:
    with cursor() as cur:
        for account_id in ACCOUNT_IDS:
            cur.execute("SELECT balance FROM accounts WHERE id = %s FOR UPDATE", (account_id,))
            balance = cur.fetchone()[0] + 1
            cur.execute("UPDATE accounts SET balance = %s WHERE id = %s", (balance, account_id))
        cur.connection.commit()


@act
def fixed_OT013() -> None:
    with cursor() as cur:
        for account_id in ACCOUNT_IDS:
            cur.execute(UPDATE_ACCOUNT + " RETURNING balance", (1, account_id))
            expect(cur.rowcount, 1)
        cur.connection.commit()


@act
def bad_OT014() -> None:
    with cursor() as cur:
        for text in messages():
            cur.execute("SELECT nextval('tickets_id_seq')")
            ticket_id = cur.fetchone()[0]
            cur.execute("INSERT INTO tickets (id, note) VALUES (%s, %s)", (ticket_id, text))
        cur.connection.commit()


@act
def fixed_OT014() -> None:
    with cursor() as cur:
        for text in messages():
            cur.execute("INSERT INTO tickets (note) VALUES (%s) RETURNING id", (text,))
            expect(cur.rowcount, 1)
        cur.connection.commit()


@act
def bad_OT015() -> None:
    with cursor() as cur:
        for name in unseen():
            cur.execute("SELECT id FROM tags WHERE name = %s", (name,))
            if cur.fetchone() is None:
                cur.execute("INSERT INTO tags (name) VALUES (%s)", (name,))
        cur.connection.commit()


@act
def fixed_OT015() -> None:
    with cursor() as cur:
        for name in unseen():
            cur.execute("INSERT INTO tags (name) VALUES (%s) ON CONFLICT DO NOTHING", (name,))
        cur.connection.commit()


def ten_requests(autocommit: bool) -> None:
    """Nobody commits a read, so putconn() rolls back what it finds open."""
    pool = psycopg2.pool.SimpleConnectionPool(1, 1, "")
    for _ in range(10):
        link = pool.getconn()
        link.autocommit = autocommit
        with link.cursor() as cur:
            cur.execute("SELECT count(*) FROM authors")
            cur.execute("SELECT max(price) FROM books")
        pool.putconn(link)
    pool.closeall()


named("bad_OT016", partial(ten_requests, autocommit=False))
named("fixed_OT016", partial(ten_requests, autocommit=True))


if __name__ == "__main__":
    sys.exit(main())
