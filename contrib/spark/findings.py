"""Findings OT001, OT002 and OT003 of one connection, by the rules of core/ledger/src/analyze (loops.rs, writes.rs).

Plain Python without a package: the job (job.py) runs it on Spark's workers, and a test runs it without Spark. Rows are
dictionaries with the columns of docs/rows.md. README.md says where the rules here know less than the analyzer's.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from pace import Gap, Pace

Row = dict

LOOP, ROW_BY_ROW, COMMIT_PER_ROW = "OT001", "OT002", "OT003"

# Loops. The names are those of loops.rs, results.rs and claims.rs, which explain them.
PROOF_RUNS = 3
HISTORY = 16
STRIDE_MAX = 32
BODY_OF_REFERENCE = 64
BODY_MAX = 16
APART_MAX = 3
EAGER_RUNS = 12
FOLLOWED_MAX = 512
WALKS_MAX = 16
INSTANCES_REMEMBERED = 64
MATCHES_PER_STRAY = 8
KEPT_PER_CONNECTION = 32
KEPT_IN_ALL = 64
VALUES_MAX = 256 * 1024
REMEMBERED_MAX = 256

# Writes: those of writes.rs.
ROWS_MIN = 5
WRITES_FOLLOWED_MAX = 256

CONTROL = frozenset(["begin", "commit", "rollback", "savepoint", "release", "rollback-to", "two-phase"])
ROW_WRITES = frozenset(["insert", "update", "delete", "merge"])

# How names speak for a loop (relations.rs): not at all; one key of one table; one of the two names the other's table.
NONE, SAME, REFERS = 0, 1, 2
GENERIC = frozenset(["id", "pk", "uuid", "guid", "key", "oid"])
OF_KEYS = frozenset(["id", "ids", "pk", "fk", "uuid", "guid", "key", "ptr", "ref"])

OBJECT_CALL = re.compile(
    r"\b(?:lo_open|loread|lo_lseek(?:64)?|lo_tell(?:64)?|lo_close|lowrite|lo_truncate(?:64)?)\s*\(", re.I
)
SETS_BY_CALL = re.compile(r"\s*select\s+(?:pg_catalog\.)?set_config\s*\(", re.I)
OWN_SETTING = re.compile(r"\s*set\s+(?:session\s+|local\s+)?onetrip\.", re.I)
RESETS_ALL = re.compile(r"\s*(?:reset|discard)\s+all\s*;?\s*$", re.I)


class Late(NamedTuple):
    """A run of a loop's template apart from it: too little there to be a proof by itself."""

    connection: int
    sent_at_ns: int
    waited_ns: int
    # When the result was complete that has its value.
    completed_ns: int


@dataclass
class Finding:
    """Sightings of one pattern: of one connection, or merged."""

    code: str
    template: str
    # The template whose result a loop walks; else empty.
    source: str
    occurrences: int = 0
    trips: int = 0
    avoidable: int = 0
    removed: int = 0
    waited_ns: int = 0
    # Of a loop only: matches that broke the pattern, the latest run, and runs that may belong to it.
    strays: int = 0
    last_at_ns: int = 0
    late: list[Late] = field(default_factory=list)

    def key(self) -> tuple[str, str, str]:
        return self.code, self.template, self.source

    def merged(self, more: Finding) -> Finding:
        counts = ("occurrences", "trips", "avoidable", "removed", "waited_ns", "strays")
        sums = {name: getattr(self, name) + getattr(more, name) for name in counts}
        last_at_ns = max(self.last_at_ns, more.last_at_ns)
        return Finding(self.code, self.template, self.source, **sums, last_at_ns=last_at_ns, late=self.late + more.late)

    def settled(self) -> Finding | None:
        """What the report says of it when all connections are merged; None if that is nothing."""
        if self.code == LOOP:
            if self.strays * MATCHES_PER_STRAY > self.trips + self.removed:
                return None
            # One query can answer for all rows of a loop.
            self.avoidable = max(0, self.trips - self.occurrences)
        if self.avoidable == 0:
            return None
        self.waited_ns = self.waited_ns * self.avoidable // max(1, self.trips)
        return self

    def late_max(self) -> int:
        """Runs that the analyzer adds to the loop if no other finding has their trips, at most."""
        last_at_ns, left = self.last_at_ns, sorted(self.late)
        while left:
            # As long after the last run as the whole loop took may be a share of it.
            near = [late for late in left if late.sent_at_ns - last_at_ns <= max(0, last_at_ns - late.completed_ns)]
            if not near:
                break
            left = [late for late in left if late not in near]
            last_at_ns = max(last_at_ns, *(late.sent_at_ns for late in near))
        return len(self.late) - len(left)

    def shown(self) -> dict:
        """What is told of it."""
        counts = {name: value for name, value in vars(self).items() if name not in ("strays", "last_at_ns", "late")}
        return {**counts, "late_max": self.late_max()}


def of_connection(rows: Iterable[Row]) -> list[Finding]:
    """Findings of one connection, whose exchanges come in order. They are to be merged by key(), then settled."""
    connection = Connection()
    for row in rows:
        connection.take(row)
    return connection.end()


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


class Connection:
    """What one connection's exchanges are held against, in their order."""

    def __init__(self) -> None:
        self.place = Place()
        self.transactions = 0
        self.request = ""
        self.trip_ended_ns: int | None = None
        self.follows_login = False
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
        self.place = Place(self.place.count + 1, self.transactions if is_within else 0)
        ran = (part for part in row["statements"] if "execute" in part["steps"] and part["outcome"] == "done")
        apart_ns = self.carried_ns + (0 if is_in_context else think_ns)
        gap = self.pace.compare(apart_ns)
        if row["starts_trip"] and follows_work:
            self.pace.take(think_ns)
        self.show(Event(row, self.place, apart_ns, gap, [Run(statement) for statement in ran]))

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


class ResultSet:
    """Rows of an earlier result, as far as their columns may be keys."""

    __slots__ = (
        "id",
        "template",
        "tables",
        "request",
        "completed_ns",
        "place",
        "used_at",
        "columns",
        "values",
        "index",
    )

    def __init__(self, number: int, event: Event, run: Run, values: list[int]):
        self.id = number
        self.template = run.template
        self.tables: list[str] = run.statement["tables"]
        self.request = event.request
        self.completed_ns: int = event.row["last_reply_at_ns"]
        self.place = event.place
        self.used_at = event.place.count
        self.columns: list[str] = run.statement["key_columns"]
        self.values = values
        self.index: dict[int, list[int]] | None = None

    def cells(self, value: int) -> list[int]:
        if self.index is None:
            self.index = {}
            for cell, found in enumerate(self.values):
                self.index.setdefault(found, []).append(cell)
        return self.index.get(value, [])

    def has(self, value: int) -> bool:
        return bool(self.cells(value))

    def row_with(self, value: int, column: int, first: int) -> int | None:
        """The first row at or after `first` whose column has this value."""
        width = len(self.columns)
        cells = self.cells(value)
        for at in range(bisect_left(cells, first * width), len(cells)):
            if cells[at] % width == column:
                return cells[at] // width
        return None

    def has_at(self, row: int, column: int, value: int) -> bool:
        at = row * len(self.columns) + column
        return at < len(self.values) and self.values[at] == value

    def unused_for(self, now: Place) -> int:
        return max(0, now.count - self.used_at)


class Recent:
    """The latest results that a loop's parameters may come from, latest first."""

    def __init__(self, kept: int) -> None:
        self.kept = kept
        self.results: deque[ResultSet] = deque()
        self.values = 0

    def put(self, result: ResultSet, old: ResultSet | None) -> None:
        if old is not None:
            self.results.remove(old)
            self.values -= len(old.values)
        self.results.appendleft(result)
        self.values += len(result.values)
        while len(self.results) > self.kept or (self.values > VALUES_MAX and len(self.results) > 1):
            self.values -= len(self.results.pop().values)

    def of_template(self, template: str) -> ResultSet | None:
        return next((result for result in self.results if result.template == template), None)

    def of_id(self, number: int) -> ResultSet | None:
        return next((result for result in self.results if result.id == number), None)


class Execution:
    """One run of a reading statement."""

    __slots__ = ("trip", "values", "place", "sent_at_ns", "request", "waited_ns")

    def __init__(self, event: Event, run: Run, trip: int | None):
        # None if a remedy removed the trip.
        self.trip = trip
        self.values = run.values
        self.place = event.place
        self.sent_at_ns: int = event.row["sent_at_ns"]
        self.request = event.request
        self.waited_ns = event.duration_ns

    def is_near(self, last: Place, body_max: int) -> bool:
        """Whether it may belong to a loop whose latest run was there."""
        in_request = self.request != ""
        return in_request or last.shares_transaction(self.place) or self.place.count - last.count <= body_max


@dataclass
class Walk:
    """A loop that is proven and may go on."""

    source: ResultSet
    # Which parameter comes from which column.
    sources: list[tuple[int, int]]
    first_row: int
    last_row: int
    last_place: Place
    relation: int = NONE

    def is_near(self, execution: Execution) -> bool:
        return execution.is_near(self.last_place, BODY_OF_REFERENCE if self.relation == REFERS else BODY_MAX)

    def go(self, row: int, execution: Execution) -> None:
        self.last_row = row
        self.last_place = execution.place

    def row_in(self, source: ResultSet, execution: Execution, first: int) -> int | None:
        """The row of `source`, not before `first`, that gives all parameters that vary."""
        values = execution.values

        def value(parameter: int) -> int:
            return values[parameter] if parameter < len(values) else 0

        lead, lead_column = self.sources[0]
        if value(lead) == 0:
            return None
        while True:
            row = source.row_with(low(value(lead)), lead_column, first)
            if row is None:
                return None
            if all(value(at) != 0 and source.has_at(row, column, low(value(at))) for at, column in self.sources):
                return row
            first = row + 1


@dataclass
class Edge:
    """Walks of one template over results of another."""

    strays: int = 0
    matches: int = 0
    removed: int = 0
    waited_ns: int = 0
    instances: int = 0
    late: list[Late] = field(default_factory=list)
    latest: deque[int] = field(default_factory=lambda: deque(maxlen=INSTANCES_REMEMBERED))
    last_at_ns: int = 0

    def matched(self, walk: Walk, execution: Execution) -> None:
        walk.source.used_at = max(walk.source.used_at, execution.place.count)
        if walk.source.id not in self.latest:
            self.instances += 1
            self.latest.append(walk.source.id)
        if execution.trip is None:
            self.removed += 1
        else:
            self.matches += 1
            self.waited_ns += execution.waited_ns
        self.last_at_ns = max(self.last_at_ns, execution.sent_at_ns)


class Followed:
    """Runs of one template."""

    def __init__(self) -> None:
        self.history: deque[Execution] = deque()
        self.runs = 0
        self.walk: Walk | None = None

    def goes_on(self, execution: Execution, own: Recent, edges: Edges, template: str) -> bool:
        """Lets a proven loop take its next row, or begin again on a newer result of the same source."""
        walk = self.walk
        if walk is None or not walk.is_near(execution):
            self.walk = None
            return False
        edge = edges.of(template, walk.source.template)
        newer = own.of_template(walk.source.template)
        if newer is not None and newer is not walk.source:
            same_result = newer.id == walk.source.id
            row = walk.row_in(newer, execution, walk.last_row if same_result else 0)
            if row is not None:
                walk.source = newer
                if not same_result:
                    walk.first_row = row
                walk.go(row, execution)
                edge.matched(walk, execution)
                return True
        row = walk.row_in(walk.source, execution, walk.last_row)
        if row is not None:
            walk.go(row, execution)
            edge.matched(walk, execution)
            return True
        row = walk.row_in(walk.source, execution, 0)
        if row is not None:
            if row <= walk.first_row:
                # The program walks the same rows once more: another loop over one result.
                walk.first_row = row
                walk.go(row, execution)
                edge.instances += 1
                edge.matched(walk, execution)
                return True
            edge.strays += 1
        self.walk = None
        self.runs = 0
        return False

    def remember(self, execution: Execution) -> None:
        if self.history:
            last = self.history[-1]
            if last.request != execution.request or not execution.is_near(last.place, BODY_OF_REFERENCE):
                self.history.clear()
        self.runs += 1
        self.history.append(execution)
        if len(self.history) > HISTORY:
            self.history.popleft()

    def prove(self, source: ResultSet, statement: Row) -> tuple[Walk, int] | None:
        """The longest run of remembered executions, up to the latest, that walks `source`, and where it begins."""
        if len(self.history) < PROOF_RUNS:
            return None
        latest = self.history[-1]
        if source.request != "" and source.request != latest.request:
            return None
        if not any(value != 0 and source.has(low(value)) for value in latest.values):
            return None
        history = list(self.history)
        for first in range(len(history) - PROOF_RUNS + 1):
            walked = history[first:]
            if walked[0].sent_at_ns < source.completed_ns:
                continue
            walk = walk_of(source, walked)
            relation = None if walk is None else meant(walk, walked, statement)
            if walk is not None and relation is not None:
                walk.relation = relation
                return walk, first
        return None


class Edges:
    """Proven patterns of one connection: which template walks which."""

    def __init__(self) -> None:
        self.connection = 0
        self.edges: dict[tuple[str, str], Edge] = {}
        # Latest walks by the template that was run.
        self.walks: dict[str, deque[tuple[str, Walk]]] = {}

    def of(self, template: str, source: str) -> Edge:
        return self.edges.setdefault((template, source), Edge())

    def remember(self, template: str, walk: Walk) -> None:
        copied = Walk(walk.source, walk.sources, walk.first_row, walk.last_row, walk.last_place, walk.relation)
        walks = self.walks.setdefault(template, deque(maxlen=WALKS_MAX))
        walks.appendleft((walk.source.template, copied))

    def take_leftover(self, template: str, execution: Execution) -> None:
        """Keeps a run that may belong to a proven loop apart from it."""
        for source, walk in self.walks.get(template, ()):
            completed_ns = walk.source.completed_ns
            if execution.sent_at_ns >= completed_ns and walk.row_in(walk.source, execution, 0) is not None:
                late = Late(self.connection, execution.sent_at_ns, execution.waited_ns, completed_ns)
                self.of(template, source).late.append(late)
                return


class Loops:
    """OT001: parameters that walk the rows of an earlier result."""

    def __init__(self) -> None:
        self.followed: dict[str, Followed] = {}
        self.own = Recent(KEPT_PER_CONNECTION)
        self.everywhere = Recent(KEPT_IN_ALL)
        self.results = 0
        self.edges = Edges()

    def take(self, event: Event, run: Run, trip: int | None, trips: int) -> None:
        if not run.values or run.continues():
            return
        if len(self.followed) >= FOLLOWED_MAX and run.template not in self.followed:
            self.followed.clear()
        followed = self.followed.setdefault(run.template, Followed())
        execution = Execution(event, run, trip)
        if followed.goes_on(execution, self.own, self.edges, run.template):
            return
        followed.remember(execution)
        if followed.runs > EAGER_RUNS and followed.runs % 4 != 0:
            return
        for source in (*self.own.results, *self.everywhere.results):
            if source.template == run.template:
                continue
            proven = followed.prove(source, run.statement)
            if proven is None:
                continue
            walk, first = proven
            edge = self.edges.of(run.template, source.template)
            for known in list(followed.history)[first:]:
                if known.trip is None or known.trip >= trips - REMEMBERED_MAX:
                    edge.matched(walk, known)
            followed.history.clear()
            self.edges.remember(run.template, walk)
            followed.walk = walk
            return

    def keep(self, event: Event, run: Run) -> None:
        """Keeps the result of a run where it has rows to walk."""
        width = len(run.statement["key_columns"])
        if width == 0:
            return
        earlier = self.own.of_template(run.template) if run.continues() else None
        values: list[int] = []
        if earlier is not None and len(earlier.columns) == width:
            number = earlier.id
            values = list(earlier.values)
        else:
            self.results += 1
            number = self.results
        values.extend(int(value, 16) for value in run.statement["key_hashes"])
        del values[VALUES_MAX // width * width :]
        if len(values) < 2 * width:
            return
        result = ResultSet(number, event, run, values)
        self.everywhere.put(result, self.everywhere.of_id(number))
        self.own.put(result, self.own.of_template(run.template))

    def end(self) -> Iterator[Finding]:
        for template, followed in self.followed.items():
            for execution in followed.history:
                if execution.trip is not None:
                    self.edges.take_leftover(template, execution)
        for (template, source), edge in self.edges.edges.items():
            counts = (edge.instances, edge.matches, 0, edge.removed, edge.waited_ns, edge.strays)
            yield Finding(LOOP, template, source, *counts, edge.last_at_ns, edge.late)


def low(value: int) -> int:
    """What results have of a hash."""
    return value & 0xFFFF_FFFF


def walk_of(source: ResultSet, walked: list[Execution]) -> Walk | None:
    """The joint match: parameters that vary, and a column for each, such that increasing rows give them."""
    first = walked[0].values
    if any(len(execution.values) != len(first) for execution in walked):
        return None
    varying = [at for at in range(len(first)) if any(execution.values[at] != first[at] for execution in walked)]
    if not varying:
        return None
    for column in range(len(source.columns)):
        rows = rows_of(source, walked, varying[0], column)
        if rows is None:
            continue
        sources = [(varying[0], column)]
        for at in varying[1:]:
            found = next(
                (other for other in range(len(source.columns)) if gives(source, walked, rows, at, other)), None
            )
            if found is None:
                break
            sources.append((at, found))
        if len(sources) == len(varying):
            return Walk(source, sources, rows[0], rows[-1], walked[-1].place)
    return None


def gives(source: ResultSet, walked: list[Execution], rows: list[int], at: int, column: int) -> bool:
    pairs = zip(walked, rows, strict=True)
    return all(run.values[at] != 0 and source.has_at(row, column, low(run.values[at])) for run, row in pairs)


def rows_of(source: ResultSet, walked: list[Execution], at: int, column: int) -> list[int] | None:
    """Strictly increasing rows, close to each other, whose column gives the parameter of each execution."""
    rows: list[int] = []
    for execution in walked:
        first = rows[-1] + 1 if rows else 0
        value = execution.values[at]
        row = None if value == 0 else source.row_with(low(value), column, first)
        if row is None or (rows and row >= first + STRIDE_MAX):
            return None
        rows.append(row)
    return rows


def meant(walk: Walk, walked: list[Execution], statement: Row) -> int | None:
    """How names speak for the walk, if that and the places of the runs are enough for a proof."""
    source = walk.source
    bounds = {bound - 1 for bound in statement["bounds"]}
    relations = []
    for at, column in walk.sources:
        if at in bounds:
            continue
        targets = [pair["column_name"] for pair in statement["compared"] if pair["parameter"] - 1 == at]
        name = source.columns[column]
        relations.append(max((relation(source.tables, name, statement["tables"], to) for to in targets), default=NONE))
    if not relations:
        return None  # Without a key the rows are paged through.
    best = max(relations)
    first, last = walked[0].place, walked[-1].place
    is_in_transaction = source.place.shares_transaction(first) and first.shares_transaction(last)
    is_in_context = source.request != "" or is_in_transaction
    body = max(after.place.count - before.place.count for before, after in zip(walked, walked[1:], strict=False))

    def is_within(most: int) -> bool:
        return body <= most and source.unused_for(first) <= most

    if best == REFERS:
        is_proven = is_in_context or is_within(BODY_OF_REFERENCE)
    elif best == SAME:
        is_proven = is_in_context or is_within(BODY_MAX)
    else:
        leaves_none_out = walk.last_row - walk.first_row + 1 == len(walked)
        is_proven = leaves_none_out and is_within(BODY_MAX) and source.unused_for(first) <= APART_MAX
    return best if is_proven else None


def relation(lists: list[str], source: str, reads: list[str], target: str) -> int:
    """How the result's column `source` speaks for the column `target` that is compared with the parameter."""
    of_source, of_target = words(source), words(target)
    is_generic_source = len(of_source) == 1 and of_source[0] in GENERIC
    is_generic_target = len(of_target) == 1 and of_target[0] in GENERIC
    if is_generic_source and is_generic_target:
        return SAME if of_source == of_target and set(lists) & set(reads) else NONE
    if not is_generic_source and not is_generic_target:
        if of_source == of_target or bare(of_source) == bare(of_target):
            return REFERS
    if not is_generic_target and any(has_name(of_target, table) for table in lists):
        return REFERS
    if not is_generic_source and any(has_name(of_source, table) for table in reads):
        return REFERS
    return NONE


def has_name(column: list[str], table: str) -> bool:
    """Whether a column's name has a table's in it, as `author_id` has that of `authors` or `shop_author`."""
    own, table_words = bare(column), words(table)
    if not own:
        return False
    tails = (table_words[at:] for at in range(len(table_words)))
    return any(len(own) >= len(tail) and tail in (own[-len(tail) :], own[: len(tail)]) for tail in tails)


def bare(column: list[str]) -> list[str]:
    """The words of a name that do not only say that it is a key."""
    end = len(column)
    while end > 0 and column[end - 1] in OF_KEYS:
        end -= 1
    begin = 0
    while begin < end and column[begin] in OF_KEYS:
        begin += 1
    return column[begin:end]


def words(name: str) -> list[str]:
    """The words of a name, in lower case and in the singular, without the numbers that mappers add (`author_id2_0_`)."""
    found: list[str] = []
    was_lower = is_open = False
    for character in name:
        if not character.isalpha():
            is_open = was_lower = False
            continue
        # `authorId` is two words.
        if not is_open or (was_lower and character.isupper()):
            found.append("")
        was_lower = character.islower()
        is_open = True
        found[-1] += character.lower()
    return [singular(word) for word in found]


def singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    stem = word[:-1]
    if word.endswith("s") and len(stem) > 2 and not stem.endswith(("s", "u")):
        return stem
    return word


@dataclass
class WriteRun:
    """Rows that one template has written, one a trip."""

    request: str
    last_values: list[int] = field(default_factory=list)
    last_clock: int = 0
    rows: int = 0
    slow_gaps: int = 0
    gap: Gap = Gap.SHORT
    transactions: int = 0
    in_transaction: bool = False
    begins: int = 0
    commits: int = 0
    control_waited_ns: int = 0
    waited_ns: int = 0


class Writes:
    """OT002 and OT003: one template that writes a row at a time, in one transaction or each in its own."""

    def __init__(self) -> None:
        self.runs: dict[str, WriteRun] = {}
        self.clock = 0
        self.findings: list[Finding] = []

    def tick(self, event: Event) -> None:
        self.clock += 1
        for run in self.runs.values():
            run.gap = max(run.gap, event.gap)

    def show(self, event: Event) -> None:
        # What a worker writes for one job is no row of what it writes for the next.
        begins_work = any(run.kind == "ddl" or skips_locked(run.template) for run in event.runs)
        if begins_work or event.failed():
            self.end_all()
        run = event.sole_run()
        if run is not None and run.kind in ROW_WRITES and not run.continues():
            self.take(event, run)

    def take(self, event: Event, run: Run) -> None:
        known = self.runs.get(run.template)
        goes_on = (
            known is not None
            and known.request == event.request
            and known.gap < Gap.PAUSE
            and self.clock - known.last_clock <= BODY_MAX
        )
        if not goes_on:
            self.end(run.template)
            if len(self.runs) >= WRITES_FOLLOWED_MAX:
                self.end_all()
        known = self.runs.setdefault(run.template, WriteRun(event.request))
        if known.rows > 0 and known.last_values == run.values:
            # The same row again is a retry, not the next row.
            known.last_clock = self.clock
            return
        known.slow_gaps += known.rows > 0 and known.gap >= Gap.SLOW
        known.gap = Gap.SHORT
        known.rows += 1
        known.last_values = run.values
        known.last_clock = self.clock
        known.waited_ns += event.duration_ns
        known.in_transaction = not event.is_idle()
        known.transactions += not known.in_transaction

    def transaction_ended(self, begin: bool, commit: bool, waited_ns: int) -> None:
        ended = [run for run in self.runs.values() if run.in_transaction]
        for run in ended:
            run.in_transaction = False
            run.transactions += 1
        if ended:
            # BEGIN and COMMIT are one trip each, whatever was written between them.
            first = min(ended, key=lambda run: run.last_clock)
            first.begins += begin
            first.commits += commit
            first.control_waited_ns += waited_ns

    def end_all(self) -> None:
        for template in list(self.runs):
            self.end(template)

    def end(self, template: str) -> None:
        run = self.runs.pop(template, None)
        if run is None or run.rows < ROWS_MIN or run.slow_gaps * 2 > run.rows:
            return
        code, trips, waited_ns = ROW_BY_ROW, run.rows, run.waited_ns
        if run.transactions * 10 >= run.rows * 9:
            code = COMMIT_PER_ROW
            trips += run.begins + run.commits
            waited_ns += run.control_waited_ns
        kept = -(-trips // run.rows)
        self.findings.append(Finding(code, template, "", 1, trips, trips - kept, 0, waited_ns))


def skips_locked(template: str) -> bool:
    return re.search(r"\bskip\s+locked\b", template, re.I) is not None


class Transactions:
    """Transaction blocks: which of their ends travelled alone."""

    def __init__(self) -> None:
        # Whether its BEGIN travelled alone, how long that took, and whether a statement failed.
        self.open: tuple[bool, int, bool] | None = None

    def take(self, event: Event) -> tuple[bool, bool, int] | None:
        """The transaction that the exchange ended: BEGIN alone, COMMIT alone, time waited in both."""
        control = event.sole_control()
        begins = any(run.kind == "begin" for run in event.runs)
        if self.open is None and (begins or not event.is_idle()):
            is_alone = control == "begin"
            self.open = (is_alone, event.duration_ns if is_alone else 0, False)
        if self.open is None:
            return None
        begin_alone, waited_ns, has_failed = self.open
        has_failed = has_failed or event.failed()
        self.open = (begin_alone, waited_ns, has_failed)
        if not event.is_idle():
            return None
        self.open = None
        commit_alone = control in ("commit", "rollback")
        if commit_alone and not has_failed:
            waited_ns += event.duration_ns
        return begin_alone, commit_alone, waited_ns
