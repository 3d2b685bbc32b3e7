"""Exchanges of one connection: rows of docs/rows.md, and what the rules ask of them."""

from __future__ import annotations

import re
from typing import NamedTuple

from pace import Gap

Row = dict

# How far apart statements of one loop, or rows of one write, may be (loops.rs).
BODY_MAX = 16

CONTROL = frozenset(["begin", "commit", "rollback", "savepoint", "release", "rollback-to", "two-phase"])
OBJECT_CALL = re.compile(
    r"\b(?:lo_open|loread|lo_lseek(?:64)?|lo_tell(?:64)?|lo_close|lowrite|lo_truncate(?:64)?)\s*\(", re.I
)
SETS_BY_CALL = re.compile(r"\s*select\s+(?:pg_catalog\.)?set_config\s*\(", re.I)
OWN_SETTING = re.compile(r"\s*set\s+(?:session\s+|local\s+)?onetrip\.", re.I)
RESETS_ALL = re.compile(r"\s*(?:reset|discard)\s+all\s*;?\s*$", re.I)


class Place(NamedTuple):
    """Where an exchange stands in what its connection does."""

    count: int = 0
    # Number of the transaction block; 0 outside of one.
    transaction: int = 0

    def shares_transaction(self, other: Place) -> bool:
        return self.transaction != 0 and self.transaction == other.transaction


class Run:
    """A statement that was run to its end."""

    __slots__ = ("statement", "template", "kind", "values")

    def __init__(self, statement: Row):
        self.statement = statement
        self.template: str = statement["template"]
        self.kind: str = statement["kind"]
        # Hashes of parameters; 0 stands for NULL and for what is no key.
        self.values = [int(value, 16) if value else 0 for value in statement["parameter_hashes"]]

    def continues(self) -> bool:
        """Whether it goes on with a result that was begun before."""
        return "bind" not in self.statement["steps"] and self.statement["row_limit"] > 0 and self.kind != "fetch"

    def is_reading(self) -> bool:
        if self.kind == "values":
            return True
        has_tables = bool(self.statement["tables"])
        return self.kind == "select" and (has_tables or not OBJECT_CALL.search(self.template))

    def resets(self) -> bool:
        return self.kind in ("reset", "discard") and RESETS_ALL.match(self.template) is not None

    def sets(self) -> bool:
        if self.kind == "select":
            return SETS_BY_CALL.match(self.template) is not None
        is_setting = self.kind in ("set", "reset", "discard") and not self.resets()
        return is_setting and not OWN_SETTING.match(self.template)


class Event:
    """An exchange that did some work."""

    __slots__ = ("row", "place", "apart_ns", "gap", "runs", "request", "duration_ns")

    def __init__(self, row: Row, place: Place, apart_ns: int, gap: Gap, runs: list[Run]):
        self.row, self.place, self.apart_ns, self.gap, self.runs = row, place, apart_ns, gap, runs
        self.request: str = row["request"]
        self.duration_ns = max(0, row["last_reply_at_ns"] - row["sent_at_ns"])

    def failed(self) -> bool:
        return self.row["outcome"] != "done"

    def is_idle(self) -> bool:
        return self.row["transaction"] == "idle"

    def is_own_trip(self) -> bool:
        return self.row["starts_trip"] and not self.row["may_share"]

    def sole_run(self) -> Run | None:
        """The one statement, besides transaction control, that this trip was made for."""
        work = [run for run in self.runs if run.kind not in CONTROL]
        return work[0] if self.is_own_trip() and len(work) == 1 else None

    def run_from_memory(self) -> Run | None:
        """The one statement that a remedy answered out of what it had prefetched."""
        return self.runs[0] if self.row["remedy"] in ("loops", "repeats") and len(self.runs) == 1 else None

    def sole_control(self) -> str:
        is_alone = len(self.runs) == 1 and self.is_own_trip() and self.runs[0].kind in CONTROL
        return self.runs[0].kind if is_alone else ""

    def only_gives_back(self, has_set: bool) -> bool:
        """Whether it only gives the connection back to a pool: a reset of a session in which nothing was set."""
        is_reset = bool(self.runs) and all(run.resets() for run in self.runs)
        return is_reset and not has_set and self.is_idle() and not self.failed()
