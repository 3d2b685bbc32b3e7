"""What became of the tests of somebody else's suite, with onetrip and with psycopg: read, compared and told with reasons. For
`scripts/django-tests` and `scripts/sqlalchemy-tests`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

# A test's name, and what became of it: `id`, `outcome` and `why`.
Outcomes = dict[str, dict[str, str]]

OPEN = "Not looked at yet."


def read(results: Path) -> Outcomes:
    """Of lines of JSON, one for each end of a test; of one that ended in several ways, the worst."""
    found: Outcomes = {}
    for line in results.read_text().splitlines():
        one = json.loads(line)
        if found.get(one["id"], {}).get("outcome") != "failed":
            found[one["id"]] = one
    return found


def worse(ours: Outcomes, theirs: Outcomes) -> list[str]:
    """Tests that pass with psycopg and not with onetrip."""
    passed = [test for test, one in theirs.items() if one["outcome"] == "passed"]
    return [test for test in passed if ours.get(test, {}).get("outcome") != "passed"]


def reason(test: str, reasons: dict[str, str]) -> str:
    """Why, by what the test's name has."""
    return next((why for part, why in reasons.items() if part in test), OPEN)


def counted(tests: Outcomes) -> str:
    counts = Counter(test["outcome"] for test in tests.values())
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))


def by_reason(tests: Iterable[str], reasons: dict[str, str], separator: str) -> str:
    """A list of reasons, each with its tests, which are shown from the last separator of their names on."""
    named: dict[str, list[str]] = {}
    for test in tests:
        named.setdefault(reason(test, reasons), []).append(f"`{test.rpartition(separator)[2]}`")
    return "\n".join(f"- {why} {', '.join(names)}." for why, names in named.items()) or "None."
