"""Transactions in two phases, as DB-API's extension has them: PREPARE TRANSACTION, then COMMIT PREPARED."""

from __future__ import annotations

import base64
import datetime as dt
import re
from dataclasses import dataclass
from typing import Any

from onetrip.adapt import literal

RECOVER = "SELECT gid, prepared, owner, database FROM pg_catalog.pg_prepared_xacts"

_WRITTEN = re.compile(r"(\d+)_([A-Za-z0-9+/]*={0,2})_([A-Za-z0-9+/]*={0,2})")


@dataclass(frozen=True)
class Xid:
    """The name of a transaction in two phases. What PostgreSQL knows is one text, made of the parts as psycopg and the
    JDBC driver make it; text of another make has no parts but `gtrid`."""

    format_id: int | None
    gtrid: str
    bqual: str | None
    prepared: dt.datetime | None = None
    owner: str | None = None
    database: str | None = None

    @classmethod
    def of_parts(cls, format_id: int, gtrid: str, bqual: str) -> Xid:
        """A name of the X/Open kind."""
        if not 0 <= format_id < 0x80000000:
            raise ValueError("format_id has to be a number of 31 bits")
        for name, part in (("gtrid", gtrid), ("bqual", bqual)):
            if len(part) > 64 or any(not " " <= sign <= "~" for sign in part):
                raise ValueError(f"{name} has to be at most 64 printable signs of ASCII")
        return cls(format_id, gtrid, bqual)

    @classmethod
    def from_string(cls, text: str) -> Xid:
        """The name that a text stands for."""
        found = _WRITTEN.fullmatch(text)
        if found is not None:
            try:
                parts = [base64.b64decode(part).decode() for part in found.groups()[1:]]
            except ValueError:
                pass  # it only looks like one
            else:
                return cls(int(found[1]), parts[0], parts[1])
        return cls(None, text, None)

    @classmethod
    def of_row(cls, row: Any) -> Xid:
        """A row of `RECOVER`."""
        gid, prepared, owner, database = row
        name = cls.from_string(gid)
        return cls(name.format_id, name.gtrid, name.bqual, prepared, owner, database)

    def __str__(self) -> str:
        if self.format_id is None:
            return self.gtrid
        parts = [base64.b64encode(part.encode()).decode() for part in (self.gtrid, self.bqual or "")]
        return "_".join([str(self.format_id), *parts])

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> int | str | None:
        return (self.format_id, self.gtrid, self.bqual)[index]


def named(xid: Xid | str) -> Xid:
    """A name that was given as text or as such."""
    return xid if isinstance(xid, Xid) else Xid.from_string(xid)


def command(words: str, xid: Xid) -> str:
    """A command about a transaction."""
    return f"{words} {literal(str(xid))}"
