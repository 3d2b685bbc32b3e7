"""What is found on one connection, and how the findings of all are merged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

LOOP, ROW_BY_ROW, COMMIT_PER_ROW = "OT001", "OT002", "OT003"
# Of a loop: matches that outweigh one that broke its pattern (loops.rs).
MATCHES_PER_STRAY = 8


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
