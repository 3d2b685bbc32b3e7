"""What the package's tests share: one throw-away server, and connections to it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onetrip
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts"))
from pgserver import PgServer

# SQLAlchemy 2.1 needs Python 3.11.
collect_ignore_glob = ["test_sqlalchemy*"] if sys.version_info < (3, 11) else []


@pytest.fixture(scope="session")
def server() -> Iterator[dict[str, object]]:
    """Keywords of a connection to PostgreSQL 15."""
    with PgServer(auth="scram-sha-256") as at:
        yield {
            "host": at.host,
            "port": at.port,
            "user": at.user,
            "password": at.password,
            "dbname": at.dbname,
        }


@pytest.fixture
def connection(server: dict[str, object]) -> Iterator[onetrip.Connection]:
    """A connection; what it has not committed is rolled back."""
    connection = onetrip.connect(**server)
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def both(server: dict[str, Any]) -> Iterator[tuple[onetrip.Connection, Any]]:
    """A connection of onetrip, and one of psycopg."""
    import psycopg

    with onetrip.connect(**server, autocommit=True) as ours, psycopg.connect(**server, autocommit=True) as theirs:
        yield ours, theirs


@pytest.fixture(scope="session")
def command() -> Path:
    """The `onetrip` command that the wheel installs."""
    return Path(sys.executable).with_name("onetrip")


@pytest.fixture(scope="session")
def whole_command() -> Path:
    """The `onetrip` command with all features: `scripts/test-python` builds it and names it by ONETRIP."""
    named = os.environ.get("ONETRIP")
    assert named, "ONETRIP has to name an onetrip that can serve"
    return Path(named)
