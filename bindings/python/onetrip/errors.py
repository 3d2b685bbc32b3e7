"""Exceptions: those of DB-API 2.0, one for each SQLSTATE under them, and what a pipeline's operations add.

Every error knows whether its operation may be done again: `retry` is "safe" (it surely did not take effect), "ran"
(it surely ran) or "unknown".
"""

from __future__ import annotations

import re
from typing import Any

from onetrip._sqlstates import CONDITIONS


class Warning(Exception):  # noqa: A001 (the name is DB-API's)
    """Something to know about that did not fail."""


class Diagnostic:
    """What the server said, field by field; a field that it did not send is None."""

    def __init__(self, fields: dict[str, str]) -> None:
        self._fields = fields

    @property
    def fields(self) -> dict[str, str]:
        """All fields, by the letters of the protocol."""
        return dict(self._fields)

    def __reduce__(self) -> tuple[Any, ...]:
        return Diagnostic, (self._fields,)

    def __getattr__(self, name: str) -> str | None:
        letter = _LETTERS.get(name)
        if letter is None:
            raise AttributeError(name)
        return self._fields.get(letter)


class Error(Exception):
    """The base of all errors."""

    sqlstate: str | None = None
    retry: str = "safe"
    row: int | None = None
    """Which row of `executemany` failed, counted from zero; None where it was none of them, or nobody can tell."""

    def __init__(self, *args: Any, diag: Diagnostic | None = None) -> None:
        super().__init__(*args)
        self.diag = diag or Diagnostic({})

    @property
    def pgconn(self) -> None:
        """None: there is no connection of libpq."""

    @property
    def pgresult(self) -> None:
        """None: there is no result of libpq."""

    @property
    def pgcode(self) -> str | None:
        """The SQLSTATE, by psycopg2's name."""
        return self.sqlstate


class InterfaceError(Error):
    """A mistake in the use of this package."""


class DatabaseError(Error):
    """An error of the database."""


class DataError(DatabaseError):
    """A value that does not fit."""


class OperationalError(DatabaseError):
    """The server or the way to it fails, or a limit is reached."""


class IntegrityError(DatabaseError):
    """A constraint is violated."""


class InternalError(DatabaseError):
    """The database is in a state that does not allow it, such as a failed transaction."""


class ProgrammingError(DatabaseError):
    """A statement that is wrong, or a call at the wrong time."""


class NotSupportedError(DatabaseError):
    """What this server or connection cannot do."""


class ConnectionClosed(InterfaceError, OperationalError):
    """The program has closed the connection: an operational error, as psycopg has it, and one of use."""


class ConnectionTimeout(OperationalError):
    """No server answered within `connect_timeout`."""


class CancellationTimeout(OperationalError):
    """A request to cancel was not taken in time."""


class PipelineAborted(OperationalError):
    """The operation did not run, since operation `by` had failed before it."""

    by: int = 0


class PipelineUndone(OperationalError):
    """The operation ran and was undone, since operation `by` failed in the same implicit transaction."""

    by: int = 0


_LETTERS = {
    "severity": "S",
    "severity_nonlocalized": "V",
    "sqlstate": "C",
    "message_primary": "M",
    "message_detail": "D",
    "message_hint": "H",
    "statement_position": "P",
    "internal_position": "p",
    "internal_query": "q",
    "context": "W",
    "schema_name": "s",
    "table_name": "t",
    "column_name": "c",
    "datatype_name": "d",
    "constraint_name": "n",
    "source_file": "F",
    "source_line": "L",
    "source_function": "R",
}

# By the first two signs of a SQLSTATE, else by the first; as psycopg has it.
_BASES: dict[str, type[DatabaseError]] = (
    dict.fromkeys(("0A",), NotSupportedError)
    | dict.fromkeys(("10", "20", "21", "26", "34", "3D", "3F", "42", "44", "P"), ProgrammingError)
    | dict.fromkeys(("22",), DataError)
    | dict.fromkeys(("23",), IntegrityError)
    | dict.fromkeys(("24", "25", "2B", "2D", "X"), InternalError)
    | dict.fromkeys(
        ("08", "27", "28", "2F", "38", "39", "3B", "40", "53", "54", "55", "57", "58", "F", "H"), OperationalError
    )
)

_KINDS: dict[str, type[Error]] = {
    "aborted": PipelineAborted,
    "undone": PipelineUndone,
    "data": DataError,
    "unsupported": NotSupportedError,
    "usage": ProgrammingError,
    "rolled_back": OperationalError,
    "operational": OperationalError,
    "connect_timeout": ConnectionTimeout,
}


def _base(sqlstate: str) -> type[DatabaseError]:
    return _BASES.get(sqlstate[:2]) or _BASES.get(sqlstate[:1], DatabaseError)


def _classes() -> dict[str, type[DatabaseError]]:
    classes = {}
    for line in CONDITIONS.split("\n"):
        sqlstate, _, name = line.partition(" ")
        if not name:
            continue
        kind = type(name, (_base(sqlstate),), {"sqlstate": sqlstate, "__module__": __name__})
        globals()[name] = classes[sqlstate] = kind
    return classes


_BY_SQLSTATE = _classes()


def _name_of(kind: type[DatabaseError]) -> str:
    """PostgreSQL's name of a condition: `UNDEFINED_TABLE` for `UndefinedTable`."""
    name = kind.__name__.removesuffix("Ext").rstrip("_")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).upper()


# Of two conditions with one name, the second.
_BY_NAME = {_name_of(kind): kind for kind in _BY_SQLSTATE.values()}


def lookup(sqlstate: str) -> type[DatabaseError]:
    """The exception of a SQLSTATE, or of the name that PostgreSQL gives it; KeyError where it has none."""
    key = sqlstate.upper()
    return _BY_SQLSTATE.get(key) or _BY_NAME[key]


def from_native(kind: str, message: str, fields: dict[str, str] | None, retry: str, by: int | None) -> Error:
    """The exception for an error of the client."""
    sqlstate = (fields or {}).get("C")
    if sqlstate is None:
        made: type[Error] = _KINDS[kind]
    else:
        made = OperationalError if kind == "operational" else _class_of(sqlstate)
    error = made(_text(message, fields), diag=Diagnostic(fields or {}))
    error.sqlstate = sqlstate
    error.retry = retry
    if isinstance(error, PipelineAborted | PipelineUndone):
        error.by = by or 0
    return error


def _class_of(sqlstate: str) -> type[Error]:
    return _BY_SQLSTATE.get(sqlstate) or _base(sqlstate)


def _text(message: str, fields: dict[str, str] | None) -> str:
    detail = (fields or {}).get("D")
    return f"{message}\nDETAIL:  {detail}" if detail else message
