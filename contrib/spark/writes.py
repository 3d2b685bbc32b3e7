"""OT002 and OT003: rows that are written one a trip, by the rules of core/ledger/src/analyze/writes.rs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from exchanges import BODY_MAX, Event, Run
from finding import COMMIT_PER_ROW, ROW_BY_ROW, Finding
from pace import Gap

ROWS_MIN = 5
BATCH_MIN = 10
RESULTS_MAX = 8
WRITES_FOLLOWED_MAX = 256
ROW_WRITES = frozenset(["insert", "update", "delete", "merge"])


@dataclass
class WriteRun:
    """Rows that one template has written, one a trip."""

    request: str
    last_values: list[int] = field(default_factory=list)
    # What the last row gave back, and rows that were written with what the one before them gave back.
    last_results: list[int] = field(default_factory=list)
    chained: int = 0
    last_clock: int = 0
    rows: int = 0
    # Rows of the transaction under way, or of the last one, and the time of the last row.
    rows_within: int = 0
    last_ns: int = 0
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
        is_row = run is not None and run.statement["rows"] < BATCH_MIN
        if is_row and run.kind in ROW_WRITES and not run.continues():
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
        known.chained += any(value & 0xFFFFFFFF in known.last_results for value in run.values if value)
        results = (int(value, 16) for value in run.statement["key_hashes"])
        known.last_results = [value for value in results if value][:RESULTS_MAX]
        known.slow_gaps += known.rows > 0 and known.gap >= Gap.SLOW
        known.gap = Gap.SHORT
        known.rows += 1
        known.last_values = run.values
        known.last_clock = self.clock
        known.waited_ns += event.duration_ns
        known.last_ns = event.duration_ns
        known.rows_within = known.rows_within + 1 if known.in_transaction else 1
        known.in_transaction = not event.is_idle()
        known.transactions += not known.in_transaction

    def transaction_ended(self, begin: bool, commit: bool, is_undone: bool, waited_ns: int) -> None:
        ended = []
        for run in self.runs.values():
            if not run.in_transaction:
                continue
            run.in_transaction = False
            if is_undone and run.rows_within == 1:
                # The row was all that its transaction wrote: it belongs to no loop.
                run.rows -= 1
                run.waited_ns -= run.last_ns
                continue
            run.transactions += 1
            ended.append(run)
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
        if run is None or run.rows < ROWS_MIN or max(run.slow_gaps, run.chained) * 2 > run.rows:
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

    def take(self, event: Event) -> tuple[bool, bool, bool, int] | None:
        """The transaction that the exchange ended: BEGIN alone, COMMIT alone, whether it was undone, time waited in both."""
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
        is_undone = any(run.kind == "rollback" for run in event.runs)
        return begin_alone, commit_alone, is_undone, waited_ns
