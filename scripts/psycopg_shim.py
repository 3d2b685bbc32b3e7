"""Puts onetrip in the place of psycopg's own classes, for psycopg's own tests: a plugin of pytest, which also writes
down what became of each test. `scripts/psycopg-tests` runs it."""

from __future__ import annotations

import json
import os
from typing import Any

import onetrip
import psycopg
import psycopg.raw_cursor
import psycopg.types.bool
import psycopg.types.composite
import psycopg.types.datetime
import psycopg.types.enum
import psycopg.types.hstore
import psycopg.types.json
import psycopg.types.multirange
import psycopg.types.numeric
import psycopg.types.range
import psycopg.types.string
import psycopg.types.uuid
import pytest
from onetrip import adapt, aio, errors, rows, session, sql
from onetrip.types import bool as booleans
from onetrip.types import composite, hstore, info, multirange, numeric, string
from onetrip.types import datetime as times
from onetrip.types import enum as enums
from onetrip.types import json as jsons
from onetrip.types import range as ranges
from onetrip.types import uuid as uuids

LIBPQ = "libpq's object"


class Absent:
    """Stands for an object of libpq, which there is none of."""

    def __init__(self, owner: Any) -> None:
        self._owner = owner

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{LIBPQ}: {name}")


class Connected(Absent):
    """Stands for libpq's connection, with what the tests' fixtures cannot do without."""

    @property
    def transaction_status(self) -> Any:
        return self._owner.transaction_status

    @property
    def status(self) -> Any:
        return psycopg.pq.ConnStatus.BAD if self._owner.closed else psycopg.pq.ConnStatus.OK


def graft(theirs: Any, ours: Any) -> None:
    """Puts what is ours in the place of what has the same name."""
    for name in dir(theirs):
        if not name.startswith("_") and hasattr(ours, name):
            setattr(theirs, name, getattr(ours, name))


def put_in() -> None:
    for kind in (onetrip.Connection, aio.AsyncConnection):
        kind.pgconn = property(Connected)
    for kind in (onetrip.Cursor, aio.AsyncCursor):
        kind.pgresult = property(Absent)
    psycopg.connect = onetrip.Connection.connect
    for name in (
        "adapters", "AsyncClientCursor", "AsyncConnection", "AsyncCursor", "AsyncRawCursor", "AsyncRawServerCursor",
        "AsyncServerCursor", "AsyncTransaction", "ClientCursor", "Connection", "Copy", "Cursor", "IsolationLevel",
        "Notify", "Pipeline", "RawCursor", "RawServerCursor", "Rollback", "ServerCursor", "Transaction", "Xid",
    ):  # fmt: skip
        setattr(psycopg, name, getattr(onetrip, name))
    psycopg.AsyncCopy, psycopg.AsyncPipeline = aio.AsyncCopy, aio.AsyncPipeline
    psycopg.raw_cursor.RawCursorMixin = (
        onetrip.RawCursor, aio.AsyncRawCursor, onetrip.RawServerCursor, aio.AsyncRawServerCursor,
    )  # fmt: skip
    psycopg.adapt.AdaptersMap = adapt.AdaptersMap
    for name in dir(psycopg.errors):
        if isinstance(getattr(errors, name, None), type):
            setattr(psycopg.errors, name, getattr(errors, name))
            if hasattr(psycopg, name):
                setattr(psycopg, name, getattr(errors, name))
    psycopg.errors.lookup = errors.lookup
    psycopg.Binary = onetrip.Binary
    for name in dir(rows):
        if hasattr(psycopg.rows, name) and not name.startswith("_") and callable(getattr(rows, name)):
            setattr(psycopg.rows, name, getattr(rows, name))
    graft(psycopg.sql, sql)
    types = psycopg.types
    for theirs, ours in (
        (types.range, ranges), (types.multirange, multirange), (types.json, jsons), (types.composite, composite),
        (types.enum, enums), (types.hstore, hstore), (types.numeric, numeric),
        (types.string, string), (types.datetime, times), (types.bool, booleans), (types.uuid, uuids),
    ):  # fmt: skip
        graft(theirs, ours)
    types.TypeInfo = info.TypeInfo
    plain = session.SessionState.parameter_status

    def parameter_status(self: Any, name: Any) -> Any:
        """The fixtures take a connection for libpq's, which speaks in bytes."""
        if isinstance(name, bytes):
            value = plain(self, name.decode())
            return None if value is None else value.encode()
        return plain(self, name)

    session.SessionState.parameter_status = parameter_status


def put_in_pools() -> None:
    """The same for psycopg_pool, where it is there. Its logger has another name."""
    try:
        import psycopg_pool
    except ImportError:
        return
    for name in (
        "AsyncConnectionPool", "AsyncNullConnectionPool", "ConnectionPool", "NullConnectionPool", "PoolClosed", "PoolTimeout",
        "TooManyRequests",
    ):  # fmt: skip
        setattr(psycopg_pool, name, getattr(onetrip, name))


put_in()
put_in_pools()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    """Writes down what became of a test: a line of JSON."""
    report = (yield).get_result()
    if report.when != "call" and not (report.when == "setup" and not report.passed):
        return
    outcome = report.outcome
    if hasattr(report, "wasxfail"):
        outcome = "passed" if report.passed else "expected"
    why = ""
    if call.excinfo is not None and outcome == "failed":
        why = f"{call.excinfo.typename}: {call.excinfo.value}"[:300]
    with open(os.environ["ONETRIP_RESULTS"], "a") as results:
        results.write(json.dumps({"id": item.nodeid, "outcome": outcome, "why": why}) + "\n")
