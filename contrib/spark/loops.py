"""OT001: parameters that walk the rows of an earlier result, by the rules of core/ledger/src/analyze/loops.rs."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from exchanges import BODY_MAX, Event, Place, Row, Run
from finding import LOOP, Finding, Late
from names import NONE, REFERS, SAME, relation

# Loops. The names are those of loops.rs, results.rs and claims.rs, which explain them.
PROOF_RUNS = 3
HISTORY = 16
STRIDE_MAX = 32
BODY_OF_REFERENCE = 64
APART_MAX = 3
EAGER_RUNS = 12
FOLLOWED_MAX = 512
WALKS_MAX = 16
INSTANCES_REMEMBERED = 64
KEPT_PER_CONNECTION = 32
KEPT_IN_ALL = 64
VALUES_MAX = 256 * 1024
REMEMBERED_MAX = 256


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
