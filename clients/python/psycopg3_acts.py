#!/usr/bin/env python3
"""One act of psycopg 3: extended protocol, prepared from the 6th use of a statement."""

from __future__ import annotations

import logging
import sys
from functools import partial

import psycopg
import psycopg_pool
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

AUTHORS = "SELECT id, name FROM authors ORDER BY id"


def open_connection(autocommit: bool = False) -> psycopg.Connection:
    return psycopg.connect("", autocommit=autocommit)


def one_connection_pool(autocommit: bool = False) -> psycopg_pool.ConnectionPool:
    kwargs = {"autocommit": autocommit}
    return psycopg_pool.ConnectionPool("", min_size=1, max_size=1, kwargs=kwargs, open=True)


def select(link: psycopg.Connection, number: int) -> None:
    cur = link.execute("SELECT v FROM t WHERE id = %s", (number,))
    expect(cur.fetchall(), [(f"value {number}",)])


# ---- what the driver spends


@act
def connect() -> None:
    open_connection().close()


def selects(count: int) -> None:
    with open_connection(autocommit=True) as link:
        for number in range(1, count + 1):
            select(link, number)


def transaction(count: int) -> None:
    with open_connection() as link:
        for number in range(1, count + 1):
            select(link, number)


for number in (1, 2, 5, 6, 7):
    named(f"select_{number}", partial(selects, number))
for number in (1, 2):
    named(f"txn_{number}", partial(transaction, number))


@act
def txn_empty() -> None:
    with open_connection() as link:
        link.commit()


@act
def nested_txn() -> None:
    with open_connection(autocommit=True) as link, link.transaction():
        with link.transaction():
            select(link, 1)


@act
def executemany_3() -> None:
    with open_connection(autocommit=True) as link, link.cursor() as cur:
        cur.executemany(INSERT_LOG, [(text,) for text in messages(3)])


@act
def executemany_3_txn() -> None:
    with open_connection() as link, link.cursor() as cur:
        cur.executemany(INSERT_LOG, [(text,) for text in messages(3)])


@act
def pipeline_3() -> None:
    """Rows are read after the block: reading inside it would cost a trip of its own."""
    with open_connection(autocommit=True) as link:
        with link.pipeline():
            query = "SELECT v FROM t WHERE id = %s"
            cursors = [link.execute(query, (number,)) for number in (1, 2, 3)]
        expect([cur.fetchone() for cur in cursors], [("value 1",), ("value 2",), ("value 3",)])


@act
def copy_3() -> None:
    with open_connection(autocommit=True) as link, link.cursor() as cur:
        with cur.copy("COPY log (message) FROM STDIN") as copy:
            for text in messages(3):
                copy.write_row((text,))


@act
def pool_checkin() -> None:
    with one_connection_pool() as pool, pool.connection() as link:
        select(link, 1)


@act
def rollback_after_prepare() -> None:
    """The rollback could undo a Parse, so the driver forgets all: DEALLOCATE ALL."""
    with open_connection() as link:
        for number in range(1, 7):
            select(link, number)
        link.rollback()


@act
def array_param() -> None:
    with open_connection(autocommit=True) as link:
        cur = link.execute("SELECT count(*) FROM authors WHERE id = ANY(%s)", ([101, 105, 112],))
        expect(cur.fetchone(), (3,))


def walk_rows(fetch_size: int, row_count: int) -> None:
    with open_connection() as link:
        with link.cursor("walk") as cur:
            cur.itersize = fetch_size
            cur.execute("SELECT id, v FROM t WHERE id <= %s ORDER BY id", (row_count,))
            expect(sum(1 for _ in cur), row_count)


named("cursor_50_by_10", partial(walk_rows, 10, WALK_ROWS))


@act
def n_plus_one_10() -> None:
    with open_connection() as link:
        for author_id, _ in link.execute(AUTHORS + " LIMIT %s", (LOOP_COUNT,)).fetchall():
            expect(link.execute(BOOKS_OF, (author_id,)).rowcount, BOOKS_PER_AUTHOR)


# ---- findings: what a program does badly, and the same done well


@act
def bad_OT001() -> None:
    with open_connection(autocommit=True) as link:
        for author_id, _ in link.execute(AUTHORS).fetchall():
            expect(link.execute(BOOKS_OF, (author_id,)).rowcount, BOOKS_PER_AUTHOR)


@act
def fixed_OT001() -> None:
    with open_connection(autocommit=True) as link:
        ids = [author_id for author_id, _ in link.execute(AUTHORS).fetchall()]
        books = link.execute(
            "SELECT author_id, title, price FROM books WHERE author_id = ANY(%s)", (ids,)
        )
        expect(books.rowcount, AUTHOR_COUNT * BOOKS_PER_AUTHOR)


@act
def bad_OT002() -> None:
    with open_connection() as link:
        for text in messages():
            link.execute(INSERT_LOG, (text,))


@act
def bad_OT002_update() -> None:
    with open_connection() as link:
        for account_id in ACCOUNT_IDS:
            expect(link.execute(UPDATE_ACCOUNT, (1, account_id)).rowcount, 1)


@act
def fixed_OT002() -> None:
    with open_connection() as link, link.cursor() as cur:
        cur.executemany(INSERT_LOG, [(text,) for text in messages()])


@act
def fixed_OT002_update() -> None:
    with open_connection() as link, link.cursor() as cur:
        cur.executemany(UPDATE_ACCOUNT, [(1, account_id) for account_id in ACCOUNT_IDS])


@act
def bad_OT003() -> None:
    with open_connection(autocommit=True) as link:
        for text in messages():
            link.execute(INSERT_LOG, (text,))


@act
def fixed_OT003() -> None:
    with open_connection(autocommit=True) as link, link.cursor() as cur:
        with cur.copy("COPY log (message) FROM STDIN") as copy:
            for text in messages():
                copy.write_row((text,))


named("bad_OT004", partial(walk_rows, 10, TABLE_ROWS))
named("fixed_OT004", partial(walk_rows, 1000, TABLE_ROWS))


def repeat(count: int) -> None:
    with open_connection() as link:
        for _ in range(count):
            cur = link.execute("SELECT name FROM authors WHERE id = %s", (140,))
            expect(cur.fetchall(), [("author 140",)])


named("bad_OT005", partial(repeat, 10))
named("fixed_OT005", partial(repeat, 1))


@act
def bad_OT006() -> None:
    with open_connection() as link:
        for number in range(1, 11):
            select(link, number * 7)
            link.commit()


@act
def fixed_OT006() -> None:
    with open_connection(autocommit=True) as link:
        for number in range(1, 11):
            select(link, number * 7)


@act
def fixed_OT006_pipeline() -> None:
    """BEGIN, select and COMMIT leave together (a `transaction()` block would wait for each)."""
    with open_connection(autocommit=True) as link:
        for number in range(1, 11):
            with link.pipeline():
                link.execute("BEGIN")
                cur = link.execute("SELECT v FROM t WHERE id = %s", (number * 7,))
                link.execute("COMMIT")
            expect(cur.fetchall(), [(f"value {number * 7}",)])


@act
def bad_OT007() -> None:
    """A statement cache that holds nothing: Parse, then the execution, then Close."""
    with open_connection(autocommit=True) as link:
        link.prepared_max = 0
        for number in range(1, 11):
            link.execute("SELECT v FROM t WHERE id = %s", (number * 7,), prepare=True)


@act
def fixed_OT007() -> None:
    with open_connection(autocommit=True) as link:
        for number in range(1, 11):
            link.execute("SELECT v FROM t WHERE id = %s", (number * 7,), prepare=True)


@act
def bad_OT008() -> None:
    for number in range(1, 11):
        with open_connection(autocommit=True) as link:
            select(link, number * 7)


@act
def fixed_OT008() -> None:
    with one_connection_pool(autocommit=True) as pool:
        for number in range(1, 11):
            with pool.connection() as link:
                select(link, number * 7)


@act
def bad_OT009() -> None:
    with open_connection(autocommit=True) as link:
        for account_id in ACCOUNT_IDS[:12]:
            query = "SELECT balance FROM accounts WHERE id = %s"
            expect(link.execute(query, (account_id,)).rowcount, 1)


@act
def fixed_OT009() -> None:
    with open_connection(autocommit=True) as link:
        query = "SELECT id, balance FROM accounts WHERE id = ANY(%s)"
        expect(link.execute(query, (list(ACCOUNT_IDS[:12]),)).rowcount, 12)


READ_ONLY = 0x40000  # INV_READ of libpq-fs.h


@act
def bad_OT010() -> None:
    """psycopg 3 has no large objects of its own: the server's functions are called by SQL."""
    with open_connection() as link:

        def value(query: str, *parameters: int) -> object:
            return link.execute(query, parameters).fetchone()[0]

        for file_id in FILE_IDS:
            content = value("SELECT content FROM files WHERE id = %s", file_id)
            handle = value("SELECT lo_open(%s, %s)", content, READ_ONLY)
            portions = [value("SELECT loread(%s, %s)", handle, FILE_PORTION) for _ in range(3)]
            value("SELECT lo_close(%s)", handle)
            expect(b"".join(portions), FILE_CONTENT)


@act
def fixed_OT010() -> None:
    with open_connection() as link:
        for file_id in FILE_IDS:
            cur = link.execute("SELECT lo_get(content) FROM files WHERE id = %s", (file_id,))
            expect(cur.fetchone(), (FILE_CONTENT,))


def count_authors(check) -> None:
    """Ten requests over a pool that tests its connection at each checkout, or does not."""
    kwargs = {"autocommit": True}
    with psycopg_pool.ConnectionPool(
        "", min_size=1, max_size=1, kwargs=kwargs, check=check, open=True
    ) as pool:
        for _ in range(10):
            with pool.connection() as link:
                cur = link.execute("SELECT count(*) FROM authors")
                expect(cur.fetchone(), (AUTHOR_COUNT,))


named("bad_OT011", partial(count_authors, psycopg_pool.ConnectionPool.check_connection))
named("fixed_OT011", partial(count_authors, None))


AUTHOR_PAGE = (
    "SELECT name FROM authors WHERE id = %s",
    "SELECT title FROM books WHERE author_id = %s ORDER BY id",
    "SELECT max(price) FROM books WHERE author_id = %s",
)


@act
def bad_OT012() -> None:
    with open_connection(autocommit=True) as link:
        for author_id in PAGE_AUTHORS:
            for query in AUTHOR_PAGE:
                expect(link.execute(query, (author_id,)).rowcount > 0, True)


@act
def fixed_OT012() -> None:
    with open_connection(autocommit=True) as link:
        for author_id in PAGE_AUTHORS:
            with link.pipeline():
                cursors = [link.execute(query, (author_id,)) for query in AUTHOR_PAGE]
            expect([cur.rowcount for cur in cursors], [1, BOOKS_PER_AUTHOR, 1])


@act
def bad_OT013() -> None:
    with open_connection() as link:
        for account_id in ACCOUNT_IDS:
            query = "SELECT balance FROM accounts WHERE id = %s FOR UPDATE"
            balance = link.execute(query, (account_id,)).fetchone()[0] + 1
            write = "UPDATE accounts SET balance = %s WHERE id = %s"
            link.execute(write, (balance, account_id))


@act
def fixed_OT013() -> None:
    with open_connection() as link:
        for account_id in ACCOUNT_IDS:
            cur = link.execute(UPDATE_ACCOUNT + " RETURNING balance", (1, account_id))
            expect(cur.rowcount, 1)


@act
def bad_OT014() -> None:
    with open_connection() as link:
        for text in messages():
            ticket_id = link.execute("SELECT nextval('tickets_id_seq')").fetchone()[0]
            link.execute("INSERT INTO tickets (id, note) VALUES (%s, %s)", (ticket_id, text))


@act
def fixed_OT014() -> None:
    with open_connection() as link:
        for text in messages():
            cur = link.execute("INSERT INTO tickets (note) VALUES (%s) RETURNING id", (text,))
            expect(cur.rowcount, 1)


@act
def bad_OT015() -> None:
    with open_connection() as link:
        for name in unseen():
            if link.execute("SELECT id FROM tags WHERE name = %s", (name,)).fetchone() is None:
                link.execute("INSERT INTO tags (name) VALUES (%s)", (name,))


@act
def fixed_OT015() -> None:
    with open_connection() as link:
        for name in unseen():
            link.execute("INSERT INTO tags (name) VALUES (%s) ON CONFLICT DO NOTHING", (name,))


def ten_requests(autocommit: bool) -> None:
    """Nobody commits a read, so the pool rolls back what it finds open, and warns of it."""
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
    with one_connection_pool(autocommit) as pool:
        for _ in range(10):
            link = pool.getconn()
            link.execute("SELECT count(*) FROM authors")
            link.execute("SELECT max(price) FROM books")
            pool.putconn(link)


named("bad_OT016", partial(ten_requests, False))
named("fixed_OT016", partial(ten_requests, True))


if __name__ == "__main__":
    sys.exit(main())
