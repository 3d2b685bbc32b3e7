#!/usr/bin/env python3
"""One act of PyMySQL: values are written into the text, every statement is a COM_QUERY."""

from __future__ import annotations

import sys
from typing import Any

import pymysql
from acts import main
from mysql_acts import register, settings


def connect(autocommit: bool) -> Any:
    return pymysql.connect(**settings(), autocommit=autocommit)


register(connect, lambda link: link.begin(), lambda link: link.ping(reconnect=False))

if __name__ == "__main__":
    sys.exit(main())
