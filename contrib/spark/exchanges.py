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

    __slots__ = ("statement", "template", "kind", "values", "is_bound_before")

    def __init__(self, statement: Row, bound: Bound):
        self.statement = statement
        before = bound.of(statement)
        self.is_bound_before = before is not None
        self.template: str = statement["template"]
        self.kind: str = statement["kind"]
        # Hashes of parameters; 0 stands for NULL and for what is no key.
        hashes = statement["parameter_hashes"] if before is None else before
        self.values = [int(value, 16) if value else 0 for value in hashes]

    def continues(self) -> bool:
        """Whether it goes on with a result that was begun before."""
        is_bound = "bind" in self.statement["steps"] or self.is_bound_before
        return not is_bound and self.statement["row_limit"] > 0 and self.kind != "fetch"

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


class Bound:
    """Values that came in an exchange before the one that runs their statement (stream.rs)."""

    TEMPLATES_MAX = 16

    def __init__(self) -> None:
        # None where a template was bound more than once, and nobody knows which one is run next.
        self.values: dict[str, list[str] | None] = {}

    def of(self, statement: Row) -> list[str] | None:
        if "bind" in statement["steps"] or statement["parameter_hashes"]:
            return None
        return self.values.get(statement["template"])

    def take(self, row: Row) -> None:
        for statement in row["statements"]:
            template, steps = statement["template"], statement["steps"]
            if "bind" in steps and "execute" not in steps and statement["outcome"] == "done":
                if template in self.values:
                    self.values[template] = None
                elif len(self.values) < self.TEMPLATES_MAX:
                    self.values[template] = statement["parameter_hashes"]
            elif "execute" in steps and "bind" not in steps:
                self.values.pop(template, None)
        if (row["unit"] == "group" and row["transaction"] == "idle") or row["transaction"] == "failed":
            self.values.clear()


class Event:
    """An exchange that did some work."""

    __slots__ = ("row", "owns_trip", "place", "apart_ns", "gap", "runs", "request", "duration_ns")

    def __init__(self, row: Row, owns_trip: bool, place: Place, apart_ns: int, gap: Gap, runs: list[Run]):
        self.row, self.owns_trip = row, owns_trip
        self.place, self.apart_ns, self.gap, self.runs = place, apart_ns, gap, runs
        self.request: str = row["request"]
        self.duration_ns = max(0, row["last_reply_at_ns"] - row["sent_at_ns"])

    def failed(self) -> bool:
        return self.row["outcome"] != "done"

    def is_idle(self) -> bool:
        return self.row["transaction"] == "idle"

    def is_own_trip(self) -> bool:
        return self.owns_trip

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
