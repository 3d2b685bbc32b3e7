"""The acts that PyMySQL, mysqlclient and mysql-connector-python share: they have %s, and write the values into the text."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

from acts import (
    ACCOUNT_IDS,
    AUTHOR_COUNT,
    BOOKS_OF,
    BOOKS_PER_AUTHOR,
    INSERT_LOG,
    LOOP_COUNT,
    PAGE_AUTHORS,
    UPDATE_ACCOUNT,
    act,
    expect,
    messages,
    named,
    unseen,
)

AUTHOR_PAGE = (
    "SELECT name FROM authors WHERE id = %s",
    "SELECT title FROM books WHERE author_id = %s ORDER BY id",
    "SELECT max(price) FROM books WHERE author_id = %s",
)

Connect = Callable[..., Any]


def settings() -> dict[str, Any]:
    """Where the server is, and how to log in."""
    at = os.environ
    return {
        "host": at["MYSQL_HOST"],
        "port": int(at["MYSQL_TCP_PORT"]),
        "user": at["MYSQL_USER"],
        "password": at["MYSQL_PWD"],
        "database": at["MYSQL_DATABASE"],
    }


def marks(values: list[Any] | tuple[Any, ...]) -> str:
    return ", ".join(["%s"] * len(values))


def select(cur: Any, number: int) -> None:
    cur.execute("SELECT v FROM t WHERE id = %s", (number,))
    expect(list(cur.fetchall()), [(f"value {number}",)])


def count_authors(cur: Any) -> None:
    cur.execute("SELECT count(*) FROM authors")
    expect(list(cur.fetchall()), [(AUTHOR_COUNT,)])


def register(connect_to: Connect, begin: Callable[[Any], None], ping: Callable[[Any], None]) -> None:
    """Makes the acts of a driver: `connect_to(autocommit=...)` opens a connection of its own."""

    @contextmanager
    def connection(autocommit: bool = True) -> Iterator[Any]:
        with closing(connect_to(autocommit=autocommit)) as link:
            yield link

    @contextmanager
    def cursor(autocommit: bool = True) -> Iterator[Any]:
        """A cursor of a connection of its own; without autocommit it commits."""
        with connection(autocommit) as link:
            cur = link.cursor()
            yield cur
            cur.close()
            if not autocommit:
                link.commit()

    # ---- what the driver spends

    @act
    def connect() -> None:
        with connection():
            pass

    def selects(count: int, step: int = 1, autocommit: bool = True) -> None:
        with cursor(autocommit) as cur:
            for number in range(1, count + 1):
                select(cur, number * step)

    for number in (1, 2, 6):
        named(f"select_{number}", partial(selects, number))
    for number in (1, 2):
        named(f"txn_{number}", partial(selects, number, autocommit=False))

    @act
    def txn_empty() -> None:
        with connection(autocommit=False) as link:
            link.commit()

    @act
    def begin_1() -> None:
        with connection() as link:
            begin(link)
            cur = link.cursor()
            select(cur, 1)
            cur.close()
            link.commit()

    @act
    def ping_3() -> None:
        with connection() as link:
            for _ in range(3):
                ping(link)

    @act
    def cursors_3() -> None:
        with connection() as link:
            for number in (1, 2, 3):
                cur = link.cursor()
                select(cur, number)
                cur.close()

    @act
    def executemany_3() -> None:
        with cursor() as cur:
            cur.executemany(INSERT_LOG, [(text,) for text in messages(3)])

    @act
    def executemany_update_3() -> None:
        with cursor() as cur:
            cur.executemany(UPDATE_ACCOUNT, [(1, account_id) for account_id in ACCOUNT_IDS[:3]])

    @act
    def savepoint() -> None:
        with cursor(autocommit=False) as cur:
            cur.execute("SAVEPOINT one")
            select(cur, 1)
            cur.execute("RELEASE SAVEPOINT one")

    def books_of_each(limit: int, autocommit: bool) -> None:
        with cursor(autocommit) as cur:
            cur.execute("SELECT id, name FROM authors ORDER BY id LIMIT %s", (limit,))
            for author_id, _ in cur.fetchall():
                cur.execute(BOOKS_OF, (author_id,))
                expect(len(cur.fetchall()), BOOKS_PER_AUTHOR)

    named("n_plus_one_10", partial(books_of_each, LOOP_COUNT, autocommit=False))

    # ---- findings: what a program does badly, and the same done well

    named("bad_OT001", partial(books_of_each, AUTHOR_COUNT, autocommit=True))

    @act
    def fixed_OT001() -> None:
        with cursor() as cur:
            cur.execute("SELECT id, name FROM authors ORDER BY id")
            ids = [author_id for author_id, _ in cur.fetchall()]
            cur.execute(f"SELECT title, price FROM books WHERE author_id IN ({marks(ids)})", ids)
            expect(len(cur.fetchall()), AUTHOR_COUNT * BOOKS_PER_AUTHOR)

    def insert_each(autocommit: bool) -> None:
        with cursor(autocommit) as cur:
            for text in messages():
                cur.execute(INSERT_LOG, (text,))

    def insert_all(autocommit: bool) -> None:
        with cursor(autocommit) as cur:
            cur.executemany(INSERT_LOG, [(text,) for text in messages()])

    named("bad_OT002", partial(insert_each, autocommit=False))
    named("fixed_OT002", partial(insert_all, autocommit=False))
    named("bad_OT003", partial(insert_each, autocommit=True))
    named("fixed_OT003", partial(insert_all, autocommit=True))

    @act
    def bad_OT002_update() -> None:
        with cursor(autocommit=False) as cur:
            for account_id in ACCOUNT_IDS:
                cur.execute(UPDATE_ACCOUNT, (1, account_id))
                expect(cur.rowcount, 1)

    @act
    def fixed_OT002_update() -> None:
        with cursor(autocommit=False) as cur:
            cur.execute(f"UPDATE accounts SET balance = balance + 1 WHERE id IN ({marks(ACCOUNT_IDS)})", ACCOUNT_IDS)
            expect(cur.rowcount, len(ACCOUNT_IDS))

    def repeat(count: int) -> None:
        with cursor(autocommit=False) as cur:
            for _ in range(count):
                cur.execute("SELECT name FROM authors WHERE id = %s", (140,))
                expect(list(cur.fetchall()), [("author 140",)])

    named("bad_OT005", partial(repeat, 10))
    named("fixed_OT005", partial(repeat, 1))

    @act
    def bad_OT006() -> None:
        with connection() as link:
            cur = link.cursor()
            for number in range(1, 11):
                begin(link)
                select(cur, number * 7)
                link.commit()
            cur.close()

    named("fixed_OT006", partial(selects, 10, 7))

    @act
    def bad_OT008() -> None:
        for number in range(1, 11):
            with cursor() as cur:
                select(cur, number * 7)

    named("fixed_OT008", partial(selects, 10, 7))

    @act
    def bad_OT009() -> None:
        with cursor() as cur:
            for account_id in ACCOUNT_IDS[:12]:
                cur.execute("SELECT balance FROM accounts WHERE id = %s", (account_id,))
                expect(len(cur.fetchall()), 1)

    @act
    def fixed_OT009() -> None:
        with cursor() as cur:
            ids = ACCOUNT_IDS[:12]
            cur.execute(f"SELECT id, balance FROM accounts WHERE id IN ({marks(ids)})", ids)
            expect(len(cur.fetchall()), 12)

    def requests(before: Callable[[Any], None]) -> None:
        """Ten requests on one connection, with something before each."""
        with connection() as link:
            cur = link.cursor()
            for _ in range(10):
                before(cur)
                count_authors(cur)
            cur.close()

    def isolation(cur: Any) -> None:
        cur.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")

    @act
    def bad_OT011() -> None:
        with connection() as link:
            cur = link.cursor()
            for _ in range(10):
                ping(link)
                count_authors(cur)
            cur.close()

    named("bad_OT011_set", partial(requests, isolation))
    named("fixed_OT011", partial(requests, lambda _: None))

    @act
    def bad_OT012() -> None:
        with cursor() as cur:
            for author_id in PAGE_AUTHORS:
                for query in AUTHOR_PAGE:
                    cur.execute(query, (author_id,))
                    expect(len(cur.fetchall()) > 0, True)

    @act
    def fixed_OT012() -> None:
        """No driver sends ahead: one statement asks for all three."""
        query = (
            "SELECT name, group_concat(title ORDER BY books.id), max(price) FROM authors"
            " JOIN books ON author_id = authors.id WHERE authors.id = %s GROUP BY name"
        )
        with cursor() as cur:
            for author_id in PAGE_AUTHORS:
                cur.execute(query, (author_id,))
                expect(len(cur.fetchall()), 1)

    @act
    def bad_OT013() -> None:
        with cursor(autocommit=False) as cur:
            for account_id in ACCOUNT_IDS:
                cur.execute("SELECT balance FROM accounts WHERE id = %s FOR UPDATE", (account_id,))
                balance = cur.fetchall()[0][0] + 1
                cur.execute("UPDATE accounts SET balance = %s WHERE id = %s", (balance, account_id))

    @act
    def fixed_OT013() -> None:
        with cursor(autocommit=False) as cur:
            for account_id in ACCOUNT_IDS:
                cur.execute(UPDATE_ACCOUNT, (1, account_id))

    @act
    def bad_OT015() -> None:
        with cursor(autocommit=False) as cur:
            for name in unseen():
                cur.execute("SELECT id FROM tags WHERE name = %s", (name,))
                if not cur.fetchall():
                    cur.execute("INSERT INTO tags (name) VALUES (%s)", (name,))

    @act
    def fixed_OT015() -> None:
        with cursor(autocommit=False) as cur:
            for name in unseen():
                cur.execute("INSERT IGNORE INTO tags (name) VALUES (%s)", (name,))

    def two_reads(rolls_back: bool) -> None:
        with connection() as link:
            cur = link.cursor()
            for _ in range(10):
                if rolls_back:
                    begin(link)
                count_authors(cur)
                cur.execute("SELECT max(price) FROM books")
                expect(len(cur.fetchall()), 1)
                if rolls_back:
                    link.rollback()
            cur.close()

    named("bad_OT016", partial(two_reads, rolls_back=True))
    named("fixed_OT016", partial(two_reads, rolls_back=False))

    # ---- traps: what looks avoidable and is not

    @act
    def trap_chain() -> None:
        """Each answer names the next question."""
        with cursor() as cur:
            number = 713
            for _ in range(10):
                cur.execute("SELECT next FROM links WHERE id = %s", (number,))
                ((number,),) = cur.fetchall()
            expect(number, 713)

    @act
    def trap_two_of_each() -> None:
        """Too few to be a loop."""
        with cursor() as cur:
            for author_id in PAGE_AUTHORS[:2]:
                cur.execute(BOOKS_OF, (author_id,))
                expect(len(cur.fetchall()), BOOKS_PER_AUTHOR)

    @act
    def trap_several_statements_in_one() -> None:
        """Rows of one INSERT are one trip, however many."""
        with cursor() as cur:
            texts = messages()
            rows = ", ".join(["(%s)"] * len(texts))
            for _ in range(2):
                cur.execute(f"INSERT INTO log (message) VALUES {rows}", texts)
