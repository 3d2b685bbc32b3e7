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
    BOOKS_PER_AUTHOR,
    TABLE_ROWS,
    act,
    expect,
    main,
    messages,
)

AUTHORS = "SELECT id, name FROM authors ORDER BY id"
BOOKS_OF = "SELECT title, price FROM books WHERE author_id = %s ORDER BY id"
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


if __name__ == "__main__":
    sys.exit(main())
