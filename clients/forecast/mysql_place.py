"""Where the MySQL server is, as the environment says."""

from __future__ import annotations

import os


def parameters() -> dict[str, object]:
    """Arguments of PyMySQL's connect."""
    get = os.environ.__getitem__
    return {
        "host": get("MYSQL_HOST"),
        "port": int(get("MYSQL_TCP_PORT")),
        "user": get("MYSQL_USER"),
        "password": get("MYSQL_PWD"),
        "database": get("MYSQL_DATABASE"),
    }
