#!/usr/bin/env python3
"""Programs that mislead a finder of avoidable trips; clients/findings.toml says what is true."""

from __future__ import annotations

import asyncio
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import asyncpg
import psycopg
import psycopg_pool
from acts import (
    ACCOUNT_IDS,
    AUTHOR_COUNT,
    BOOKS_OF,
    BOOKS_PER_AUTHOR,
    FILE_CONTENT,
    FILE_IDS,
    PAGE_AUTHORS,
    TABLE_ROWS,
    act,
    expect,
    main,
    messages,
    unseen,
)

AUTHORS = "SELECT id, name FROM authors ORDER BY id"
BOOK_COUNT_OF = "SELECT count(*) FROM books WHERE author_id = %s"
SELECT_VALUE = "SELECT v FROM t WHERE id = %s"
WORKERS = 4


def open_connection(**options: object) -> psycopg.Connection:
    """Autocommit and nothing prepared behind one's back, unless asked for."""
    return psycopg.connect("", **{"autocommit": True, "prepare_threshold": None} | options)


def author_ids(link: psycopg.Connection) -> list[int]:
    return [author_id for author_id, _ in link.execute(AUTHORS).fetchall()]


def ask_for_books(link: psycopg.Connection, ids: list[int]) -> None:
    for author_id in ids:
        expect(link.execute(BOOKS_OF, (author_id,)).rowcount, BOOKS_PER_AUTHOR)


# ---- loops that are avoidable although they do not look like the textbook's


@act
def parallel_loop_over_pool() -> None:
    """One N+1 loop whose children run side by side on the four connections of a pool."""

    async def run() -> None:
        async def books_of(author_id: int) -> None:
            query = BOOKS_OF.replace("%s", "$1")
            expect(len(await pool.fetch(query, author_id)), BOOKS_PER_AUTHOR)

        async with asyncpg.create_pool(min_size=WORKERS, max_size=WORKERS) as pool:
            authors = await pool.fetch(AUTHORS)
            await asyncio.gather(*(books_of(author["id"]) for author in authors))

    asyncio.run(run())


@act
def parallel_loop_in_threads() -> None:
    """The same with threads, each with a connection and a third of the authors."""

    def ask(ids: list[int]) -> None:
        with open_connection() as link:
            ask_for_books(link, ids)

    with open_connection() as link:
        ids = author_ids(link)
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(ask, [ids[0::3], ids[1::3], ids[2::3]]))


@act
def interleaved_loops() -> None:
    """Two child statements for each row, taking turns: two loops of 12."""
    with open_connection() as link:
        for author_id in author_ids(link):
            ask_for_books(link, [author_id])
            expect(link.execute(BOOK_COUNT_OF, (author_id,)).fetchone(), (BOOKS_PER_AUTHOR,))


@act
def interleaved_connections() -> None:
    """Two connections take turns, each with an N+1 loop of its own."""
    with open_connection() as one, open_connection() as other:
        for first, second in zip(author_ids(one), author_ids(other), strict=True):
            ask_for_books(one, [first])
            ask_for_books(other, [second])


@act
def two_loops_over_one_table() -> None:
    """Two lists, each followed by a loop of six of the same child statement."""
    with open_connection() as link:
        for condition in ("id <= 133", "id > 133"):
            rows = link.execute(f"SELECT id, name FROM authors WHERE {condition} ORDER BY id")
            ids = [author_id for author_id, _ in rows.fetchall()]
            expect(len(ids), AUTHOR_COUNT // 2)
            ask_for_books(link, ids)


# ---- traffic that repeats itself for a reason


@act
def batch_already_pipelined() -> None:
    """The children of the loop leave in one flight."""
    with open_connection() as link:
        ids = author_ids(link)
        with link.pipeline():
            cursors = [link.execute(BOOKS_OF, (author_id,)) for author_id in ids]
        for cursor in cursors:
            expect(cursor.rowcount, BOOKS_PER_AUTHOR)


@act
def multi_row_inserts() -> None:
    """Five statements of 100 rows each in one transaction: batched already."""
    with open_connection() as link, link.transaction():
        for _ in range(5):
            texts = messages(100)
            link.execute("INSERT INTO log (message) SELECT unnest(%s::text[])", (texts,))


@act
def retry_after_serialization_failure() -> None:
    """A transaction that fails twice and runs three times, with the same statements."""
    read = "SELECT balance FROM accounts WHERE id = %s"
    write = "UPDATE accounts SET balance = balance + 1 WHERE id = %s"
    with open_connection(autocommit=False) as link, open_connection() as rival:
        link.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        for attempt in range(3):
            try:
                link.execute(read, (ACCOUNT_IDS[0],)).fetchone()
                if attempt < 2:
                    rival.execute(write, (ACCOUNT_IDS[0],))
                link.execute(write, (ACCOUNT_IDS[0],))
                link.commit()
                return
            except psycopg.errors.SerializationFailure:
                link.rollback()
    raise AssertionError("the third attempt had no rival and failed")


@act
def migration() -> None:
    """Many statements, all different, in one transaction."""
    with open_connection() as link, link.transaction():
        link.execute("DROP SCHEMA IF EXISTS migrated CASCADE")
        link.execute("CREATE SCHEMA migrated")
        link.execute("CREATE TABLE migrated.users (id int PRIMARY KEY, email text)")
        link.execute("CREATE TABLE migrated.orders (id int PRIMARY KEY, user_id int)")
        link.execute("CREATE TABLE migrated.versions (version int, applied timestamptz)")
        link.execute("CREATE INDEX users_email ON migrated.users (email)")
        link.execute("CREATE INDEX orders_user ON migrated.orders (user_id)")
        link.execute("ALTER TABLE migrated.users ADD COLUMN name text")
        link.execute("ALTER TABLE migrated.orders ADD COLUMN total numeric")
        link.execute("INSERT INTO migrated.users VALUES (1, 'a@example', 'a')")
        link.execute("INSERT INTO migrated.orders SELECT 7, id, 9.5 FROM migrated.users")
        link.execute("UPDATE migrated.users SET email = lower(email)")
        link.execute("ALTER TABLE migrated.users ALTER COLUMN email SET NOT NULL")
        link.execute("INSERT INTO migrated.versions VALUES (1, now())")


@act
def pool_pings() -> None:
    """A pool that tests its connection at each of ten checkouts."""
    kwargs = {"autocommit": True, "prepare_threshold": None}
    check = psycopg_pool.ConnectionPool.check_connection
    with psycopg_pool.ConnectionPool(
        "", min_size=1, max_size=1, kwargs=kwargs, check=check, open=True
    ) as pool:
        for number in random.Random(1).sample(range(1, TABLE_ROWS), 10):
            with pool.connection() as link:
                expect(link.execute(SELECT_VALUE, (number,)).fetchone(), (f"value {number}",))


@act
def one_statement_many_requests() -> None:
    """A server's prepared statement: ids from outside, about 10 ms apart."""
    choose = random.Random(2)
    with open_connection(prepare_threshold=0) as link:
        for _ in range(30):
            number = choose.randint(1, TABLE_ROWS)
            expect(link.execute(SELECT_VALUE, (number,)).fetchone(), (f"value {number}",))
            time.sleep(0.01)


@act
def workers_with_a_connection_each() -> None:
    """Eight workers connect at once and keep their connection for five requests."""
    together = threading.Barrier(8)

    def work(seed: int) -> None:
        with open_connection() as link:
            together.wait()
            for number in random.Random(seed).sample(range(1, TABLE_ROWS), 5):
                expect(link.execute(SELECT_VALUE, (number,)).fetchone(), (f"value {number}",))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))


@act
def polling() -> None:
    """The same question again and again, because the answer may have changed."""
    with open_connection() as link:
        for _ in range(12):
            link.execute("SELECT count(*) FROM log WHERE message = %s", ("job",)).fetchone()
            time.sleep(0.05)


@act
def pages_by_key() -> None:
    """Each page starts after the last row of the one before: a chain, not a loop."""
    query = "SELECT id, v FROM t WHERE id > %s ORDER BY id LIMIT 40"
    last, seen = 0, 0
    with open_connection() as link:
        while rows := link.execute(query, (last,)).fetchall():
            last, seen = rows[-1][0], seen + len(rows)
    expect(seen, TABLE_ROWS)


@act
def loop_of_two() -> None:
    """Two children: too few to be worth a word."""
    with open_connection() as link:
        ask_for_books(link, author_ids(link)[:2])


@act
def one_transaction_of_many_reads() -> None:
    """BEGIN and COMMIT once around different reads: nothing to win but two trips."""
    with open_connection(autocommit=False) as link:
        expect(link.execute("SELECT count(*) FROM authors").fetchone(), (AUTHOR_COUNT,))
        expect(link.execute("SELECT max(id) FROM t").fetchone(), (TABLE_ROWS,))
        expect(link.execute("SELECT min(id) FROM accounts").fetchone(), (ACCOUNT_IDS[0],))
        expect(link.execute("SELECT count(*) FROM books WHERE price > 5000").fetchone(), (0,))


# ---- what looks like the findings from OT009 on


@act
def lock_one_then_update_another() -> None:
    """Each row is locked and read, and its value goes to the row after it."""
    with open_connection(autocommit=False) as link:
        for source, target in zip(ACCOUNT_IDS[0:8:2], ACCOUNT_IDS[1:8:2], strict=True):
            query = "SELECT balance FROM accounts WHERE id = %s FOR UPDATE"
            (balance,) = link.execute(query, (source,)).fetchone()
            write = "UPDATE accounts SET balance = %s WHERE id = %s"
            link.execute(write, (balance, target))


@act
def look_up_elsewhere_then_insert() -> None:
    """The table that is asked is not the table that is filled."""
    with open_connection(autocommit=False) as link:
        for name in unseen(4):
            cur = link.execute("SELECT id FROM authors WHERE name = %s", (name,))
            expect(cur.fetchone(), None)
            link.execute("INSERT INTO tags (name) VALUES (%s)", (name,))


@act
def look_up_that_finds() -> None:
    """Names that are there are only looked up: nothing is inserted after a hit."""
    with open_connection(autocommit=False) as link:
        for author_id in PAGE_AUTHORS:
            query = "SELECT id FROM authors WHERE name = %s"
            expect(link.execute(query, (f"author {author_id}",)).fetchone(), (author_id,))
            link.execute("INSERT INTO log (message) VALUES (%s)", (f"seen {author_id}",))


@act
def number_without_insert() -> None:
    """Numbers from a sequence that no row gets."""
    with open_connection() as link:
        numbers = [
            link.execute("SELECT nextval('tickets_id_seq')").fetchone()[0] for _ in range(4)
        ]
    expect(len(set(numbers)), 4)


@act
def rollback_after_write() -> None:
    """A trial that takes its insert back each time, as tests do."""
    with open_connection(autocommit=False) as link:
        for name in unseen(4):
            link.execute("SELECT count(*) FROM tags").fetchone()
            link.execute("INSERT INTO tags (name) VALUES (%s)", (name,))
            link.rollback()


@act
def rollback_after_error() -> None:
    """The reads failed, so the transaction has to be rolled back."""
    with open_connection(autocommit=False) as link:
        for _ in range(4):
            link.execute("SELECT count(*) FROM tags").fetchone()
            try:
                link.execute("SELECT 1 / (count(*) - count(*)) FROM tags").fetchone()
            except psycopg.errors.DivisionByZero:
                link.rollback()


@act
def values_of_separate_requests() -> None:
    """One query each for fifteen values, 60 ms apart: requests of a server."""
    with open_connection() as link:
        for account_id in ACCOUNT_IDS[:15]:
            cur = link.execute("SELECT balance FROM accounts WHERE id = %s", (account_id,))
            expect(cur.rowcount, 1)
            time.sleep(0.06)


@act
def chain_of_queries() -> None:
    """Three queries, each asking for what the one before it answered."""
    with open_connection() as link:
        for author_id in PAGE_AUTHORS:
            query = "SELECT min(id) FROM books WHERE author_id = %s"
            (book_id,) = link.execute(query, (author_id,)).fetchone()
            query = "SELECT title FROM books WHERE id = %s"
            (title,) = link.execute(query, (book_id,)).fetchone()
            link.execute("SELECT count(*) FROM books WHERE title > %s", (title,)).fetchone()


@act
def pings_of_an_idle_connection() -> None:
    """A keep-alive that is far from any other statement is a ping all the same."""
    with open_connection() as link:
        for _ in range(6):
            link.execute("SELECT 1")
            time.sleep(0.2)


@act
def large_objects_in_one_statement() -> None:
    """Opened and read within one statement each."""
    query = "SELECT loread(lo_open(content, 262144), 1000) FROM files WHERE id = %s"
    with open_connection() as link:
        for file_id in FILE_IDS:
            expect(link.execute(query, (file_id,)).fetchone(), (FILE_CONTENT,))


if __name__ == "__main__":
    sys.exit(main())
