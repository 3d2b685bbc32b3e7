"""What all benches share: their cases, their raw samples, and where results go."""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import tomllib

REPOSITORY = Path(__file__).resolve().parent.parent.parent
RESULTS = REPOSITORY / "bench/results"
ONETRIP = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / "release/onetrip"

_name = ""
_notes: dict[str, Any] = {}
_samples: list[dict[str, Any]] = []
_written: list[str] = []
_began = datetime.datetime.now()


def case(name: str) -> dict[str, Any]:
    """What a bench measures, and its targets: bench/cases/NAME.toml."""
    return tomllib.loads((REPOSITORY / f"bench/cases/{name}.toml").read_text())


def start(name: str) -> None:
    """A bench begins: what is kept from here on belongs to it."""
    global _name, _began
    _name, _began = name, datetime.datetime.now()
    _notes.clear()
    _samples.clear()
    _written.clear()


def keep(**sample: Any) -> None:
    """One raw sample: words say what was measured, numbers what it took, with their unit in the name. Where a bench makes
    several tables, `table` says which of them it is for."""
    _samples.append(sample)


def note(**about: Any) -> None:
    """What else there is to know about the samples, such as the versions of peers."""
    _notes.update(about)


def write(name: str, text: str) -> None:
    """Puts a table into bench/results, in place of the last one."""
    page = RESULTS / f"{name}.md"
    page.write_text(
        f"# Results: {name}\n\nWritten by `bench/run {_name} --write`; what it means:"
        f" [benchmarks](../../docs/benchmarks.md).\n\n{text.strip()}\n"
    )
    _written.append(name)


def finish() -> None:
    """A bench is over: its samples are kept, and summed up beside the tables that were written."""
    if not _samples:
        return
    about = {
        "bench": _name,
        "began": _began.isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "case": case(_name),
        "notes": _notes,
    }
    folder = REPOSITORY / "target/bench" / _began.strftime("%Y%m%d-%H%M%S")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{_name}.json"
    file.write_text(json.dumps(about | {"samples": _samples}, indent=1, default=str) + "\n")
    print(f"bench: {len(_samples)} raw samples in {file}", file=sys.stderr)
    for name in _written:
        (RESULTS / f"{name}.json").write_text(json.dumps(about | {"summary": summary(of_table(name))}, indent=1) + "\n")


def of_table(name: str) -> list[dict[str, Any]]:
    """The samples that a table is made of."""
    return [sample for sample in _samples if sample.get("table", name) == name]


def summary(samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Count, least, median and most of each number, by the words that samples have in common."""
    groups: dict[tuple[tuple[str, str], ...], list[dict[str, Any]]] = {}
    for sample in samples:
        words = tuple((key, value) for key, value in sample.items() if isinstance(value, str))
        groups.setdefault(words, []).append(sample)
    rows = []
    for words, group in groups.items():
        row: dict[str, Any] = dict(words) | {"count": len(group)}
        for key in group[0]:
            numbers = [sample[key] for sample in group if isinstance(sample.get(key), (int, float))]
            if numbers:
                row[key] = [min(numbers), statistics.median(numbers), max(numbers)]
        rows.append(row)
    return rows


def table_line(cells: list[str]) -> str:
    """A row of a table of a result."""
    return "| " + " | ".join(cells) + " |"


def spread(values: list[float], form: str) -> str:
    """Median, least and most."""
    shown = (form.format(value) for value in (statistics.median(values), min(values), max(values)))
    return "{} [{}–{}]".format(*shown)


def machine() -> dict[str, Any]:
    """What it ran on, and how busy that was at the end."""
    return {
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "processors": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load_one_minute": round(os.getloadavg()[0], 2),
    }


def versions() -> dict[str, str]:
    """The commit, and the versions of what takes part in every bench."""
    return {
        "commit": _told(["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty"]),
        "onetrip": _told([str(ONETRIP), "--version"]),
        "postgresql": _told(["/usr/lib/postgresql/15/bin/postgres", "--version"]),
        "python": platform.python_version(),
    }


def _told(command: list[str]) -> str:
    try:
        return subprocess.run(command, text=True, capture_output=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
