#!/usr/bin/env python3
"""Runs a file of statements on the MySQL server that MYSQL_* name: `.venv/bin/python clients/mysql/load.py FILE`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pymysql
from pymysql.constants import ER


def main() -> None:
    at = os.environ
    link = pymysql.connect(
        host=at["MYSQL_HOST"],
        port=int(at["MYSQL_TCP_PORT"]),
        user=at["MYSQL_USER"],
        password=at["MYSQL_PWD"],
        database=at["MYSQL_DATABASE"],
        autocommit=True,
    )
    lines = Path(sys.argv[1]).read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("--"))
    with link.cursor() as cursor:
        for statement in filter(None, map(str.strip, text.split(";\n"))):
            try:
                cursor.execute(statement.removesuffix(";"))
            except pymysql.OperationalError as error:
                # A comment to this server: /*M! ... */ is for MariaDB alone.
                if error.args[0] != ER.EMPTY_QUERY:
                    raise
    link.close()


if __name__ == "__main__":
    main()
