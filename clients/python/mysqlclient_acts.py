#!/usr/bin/env python3
"""One act of mysqlclient (MySQLdb): a C client underneath; values are written into the text, every statement is a COM_QUERY."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import Any

import MySQLdb
import MySQLdb.cursors
from acts import (
    ACCOUNT_IDS,
    BOOKS_OF,
    BOOKS_PER_AUTHOR,
    PAGE_AUTHORS,
    TABLE_ROWS,
    UPDATE_ACCOUNT,
    act,
    expect,
    main,
)
from mysql_acts import AUTHOR_PAGE, register, settings


def connect(autocommit: bool, **options: Any) -> Any:
    return MySQLdb.connect(**settings(), autocommit=autocommit, **options)


register(connect, lambda link: link.begin(), lambda link: link.ping())


@act
def connect_collation() -> None:
    """The character set is set once by the library, and once more with the collation."""
    connect(autocommit=True, charset="utf8mb4", collation="utf8mb4_general_ci").close()


@act
def connect_sql_mode() -> None:
    connect(autocommit=True, sql_mode="TRADITIONAL", init_command="SET time_zone = '+00:00'").close()


def update_all(ids: tuple[int, ...]) -> None:
    """With this fallback, executemany() sends the statements that are no INSERT in one text."""
    with closing(connect(autocommit=False, executemany_fallback="multi")) as link:
        with link.cursor() as cur:
            cur.executemany(UPDATE_ACCOUNT, [(1, account_id) for account_id in ids])
            expect(cur.rowcount, len(ids))
        link.commit()


@act
def executemany_update_3_multi() -> None:
    update_all(ACCOUNT_IDS[:3])


@act
def fixed_OT002_multi() -> None:
    update_all(ACCOUNT_IDS)


@act
def fixed_OT012_multi() -> None:
    """Several statements in one text are allowed by default: the three queries share a trip."""
    with closing(connect(autocommit=True)) as link, link.cursor() as cur:
        for author_id in PAGE_AUTHORS:
            cur.execute("; ".join(AUTHOR_PAGE), (author_id,) * len(AUTHOR_PAGE))
            for number in range(len(AUTHOR_PAGE)):
                expect(len(cur.fetchall()) > 0, True)
                expect(cur.nextset(), 1 if number < len(AUTHOR_PAGE) - 1 else None)


@act
def trap_unbuffered_portions() -> None:
    """fetchmany() of an SSCursor looks like a cursor's portions: it takes rows of one answer, as they come."""
    with closing(connect(autocommit=True)) as link, link.cursor(MySQLdb.cursors.SSCursor) as cur:
        cur.execute("SELECT id, v FROM t ORDER BY id")
        seen = 0
        while rows := cur.fetchmany(10):
            seen += len(rows)
        expect(seen, TABLE_ROWS)


@act
def trap_multi_statements() -> None:
    """The books of each author in a query of their own, and all queries in one text: a loop that spends one trip."""
    with closing(connect(autocommit=True)) as link, link.cursor() as cur:
        cur.execute("SELECT id FROM authors ORDER BY id")
        ids = [author_id for (author_id,) in cur.fetchall()]
        cur.execute("; ".join([BOOKS_OF] * len(ids)), ids)
        for _ in ids:
            expect(len(cur.fetchall()), BOOKS_PER_AUTHOR)
            cur.nextset()


if __name__ == "__main__":
    sys.exit(main())
