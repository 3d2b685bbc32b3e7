#!/usr/bin/env python3
"""One act of mysql-connector-python: values are written into the text, unless a cursor prepares."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import Any

import mysql.connector
from acts import act, expect, main
from mysql_acts import register, settings

VALUE_OF = "SELECT v FROM t WHERE id = %s"


def connect_to(autocommit: bool) -> Any:
    # The driver in Python, which is there on every machine.
    return mysql.connector.connect(**settings(), autocommit=autocommit, use_pure=True)


def prepared(cur: Any, number: int) -> None:
    cur.execute(VALUE_OF, (number,))
    expect(list(cur.fetchall()), [(f"value {number}",)])


register(connect_to, lambda link: link.start_transaction(), lambda link: link.ping())


@act
def prepared_2() -> None:
    with closing(connect_to(autocommit=True)) as link, closing(link.cursor(prepared=True)) as cur:
        for number in (1, 2):
            prepared(cur, number)


@act
def bad_OT007() -> None:
    """Each cursor prepares its statement again."""
    with closing(connect_to(autocommit=True)) as link:
        for number in range(1, 11):
            with closing(link.cursor(prepared=True)) as cur:
                prepared(cur, number * 7)


@act
def fixed_OT007() -> None:
    with closing(connect_to(autocommit=True)) as link, closing(link.cursor(prepared=True)) as cur:
        for number in range(1, 11):
            prepared(cur, number * 7)


if __name__ == "__main__":
    sys.exit(main())
