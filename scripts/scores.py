"""Of the findings that programs of real drivers show: how many onetrip finds, and how many it makes up. As a table."""

from __future__ import annotations

import collections
import threading
from collections.abc import Iterable

COLUMNS = ("acts", "findings", "found", "exact", "false", "named")
HEADER = (
    f"| stack | {' | '.join(COLUMNS)} | precision | recall |",
    "|---|" + "--:|" * (len(COLUMNS) + 2),
)
ALL = "all"

# Numbers by column; `named` is there only where the stack's name is known (`stack` in clients/expected.toml).
Row = dict[str, int]


class Scores:
    """The scores of acts by stack. Where an act is run again, its last run counts."""

    def __init__(self) -> None:
        self.by_act: dict[str, dict[str, Row]] = collections.defaultdict(dict)
        self.lock = threading.Lock()

    def add(self, driver: str, stack: str | None, act: str, row: dict, report: dict, counted: Row) -> None:
        """`counted` has the avoidable trips that onetrip reports, by code; `row` is the act's in clients/findings.toml."""
        own = {act.split("_")[1]: row["avoidable"]} if act.startswith("bad_") else {}
        there = row.get("finds", own)
        right = set(there) & set(counted)
        score = {
            "acts": 1,
            "findings": len(there),
            "found": len(right),
            "exact": sum(counted.get(code) == avoidable for code, avoidable in there.items()),
            "false": len(set(counted) - set(there) - set(row.get("may_also", []))),
        }
        if stack:
            names = {finding["driver"] for finding in report["findings"]}
            score["named"] = len(right) if names == {stack} else 0
        with self.lock:
            self.by_act[driver][act] = score

    def table(self, before: str, order: list[str]) -> str:
        """Markdown. Stacks that were not run keep the row that they have in the table `before`."""
        rows = read_rows(before) | {driver: summed(acts.values()) for driver, acts in self.by_act.items()}
        rows = {driver: rows[driver] for driver in order if driver in rows}
        lines = [shown(driver, row) for driver, row in rows.items()]
        return "\n".join([*HEADER, *lines, shown(ALL, summed(rows.values()))])


def read_rows(table: str) -> dict[str, Row]:
    rows = {}
    for line in table.splitlines():
        driver, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        numbers = dict(zip(COLUMNS, cells, strict=False))
        if numbers.get("acts", "").isdigit():
            rows[driver] = {column: int(cell) for column, cell in numbers.items() if cell}
    return rows


def summed(rows: Iterable[Row]) -> Row:
    total: collections.Counter[str] = collections.Counter()
    for row in rows:
        for column, number in row.items():
            total[column] += number
    return dict(total)


def shown(driver: str, row: Row) -> str:
    reported = row["found"] + row["false"]
    precision = row["found"] / reported if reported else 1.0
    recall = row["found"] / row["findings"] if row["findings"] else 1.0
    cells = [driver, *(str(row.get(column, "")) for column in COLUMNS), f"{precision:.2f}", f"{recall:.2f}"]
    return f"| {' | '.join(cells)} |"
