"""Findings OT001, OT002 and OT003 of one connection, by the rules of core/ledger/src/analyze (loops.rs, writes.rs).

Plain Python without a package: the job (job.py) runs it on Spark's workers, and a test runs it without Spark. Rows are
dictionaries with the columns of docs/rows.md. README.md says where the rules here know less than the analyzer's.
"""

from __future__ import annotations

from collections.abc import Iterable

from exchanges import Bound, Event, Place, Row, Run
from finding import Finding
from loops import Loops
from pace import Pace
from writes import Transactions, Writes


def of_connection(rows: Iterable[Row]) -> list[Finding]:
    """Findings of one connection, whose exchanges come in order. They are to be merged by key(), then settled."""
    connection = Connection()
    for row in rows:
        connection.take(row)
    return connection.end()


class Connection:
    """What one connection's exchanges are held against, in their order."""

    def __init__(self) -> None:
        self.place = Place()
        self.transactions = 0
        self.request = ""
        self.trip_ended_ns: int | None = None
        self.follows_login = False
        # Of the trip under way, as long as it has carried nothing but values: its think time, and whether it is certain.
        self.binds: tuple[int, bool] | None = None
        self.bound = Bound()
        self.pace = Pace()
        self.has_set = False
        # Think time before exchanges that only gave the connection back, since its last work.
        self.carried_ns = 0
        self.trips = 0
        self.loops = Loops()
        self.writes = Writes()
        self.open_transaction = Transactions()

    def take(self, row: Row) -> None:
        self.loops.edges.connection = row["connection"]
        think_ns = 0 if self.trip_ended_ns is None else max(0, row["sent_at_ns"] - self.trip_ended_ns)
        follows_work = self.trip_ended_ns is not None and not self.follows_login
        owns_trip = row["starts_trip"] and not row["may_share"]
        if self.binds is not None and not row["starts_trip"]:
            # The trip was made for what runs with these values.
            think_ns, owns_trip = self.binds
        only_binds = bool(row["statements"]) and all(part["steps"] == ["bind"] for part in row["statements"])
        if row["starts_trip"]:
            self.binds = (think_ns, owns_trip) if only_binds else None
        elif not only_binds:
            self.binds = None
        if row["starts_trip"]:
            self.trip_ended_ns = row["last_reply_at_ns"]
            self.follows_login = row["unit"] == "connect"
        elif self.trip_ended_ns is not None:
            self.trip_ended_ns = max(self.trip_ended_ns, row["last_reply_at_ns"])
        if row["unit"] == "connect":
            self.pace.login(row["bytes_sent"], think_ns)
            return
        is_in_context = self.place.transaction != 0 or (row["request"] != "" and row["request"] == self.request)
        self.request = row["request"]
        is_within = row["transaction"] != "idle"
        if is_within and self.place.transaction == 0:
            self.transactions += 1
        is_group = row["unit"] in ("group", "flushed-group")
        runs_nothing = is_group and not any("execute" in part["steps"] for part in row["statements"])
        self.place = Place(self.place.count + (not runs_nothing), self.transactions if is_within else 0)
        ran = (part for part in row["statements"] if "execute" in part["steps"] and part["outcome"] == "done")
        apart_ns = self.carried_ns + (0 if is_in_context else think_ns)
        gap = self.pace.compare(apart_ns)
        if row["starts_trip"] and follows_work:
            self.pace.take(think_ns)
        runs = [Run(statement, self.bound) for statement in ran]
        self.show(Event(row, owns_trip, self.place, apart_ns, gap, runs))
        self.bound.take(row)

    def show(self, event: Event) -> None:
        if event.only_gives_back(self.has_set):
            self.carried_ns = event.apart_ns
            self.writes.clock += 1
            return
        self.carried_ns = 0
        sets = any(run.sets() for run in event.runs)
        self.has_set = sets or (self.has_set and not any(run.resets() for run in event.runs))
        self.writes.tick(event)
        self.writes.show(event)
        sole = event.sole_run()
        from_memory = event.run_from_memory()
        if from_memory is not None:
            self.loops.take(event, from_memory, None, self.trips)
        if sole is not None and sole.is_reading():
            self.trips += 1
            self.loops.take(event, sole, self.trips - 1, self.trips)
        ended = self.open_transaction.take(event)
        if ended is not None:
            self.writes.transaction_ended(*ended)
        for run in event.runs:
            if run.statement["key_hashes"]:
                self.loops.keep(event, run)

    def end(self) -> list[Finding]:
        self.writes.end_all()
        return [*self.loops.end(), *self.writes.findings]
