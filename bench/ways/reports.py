"""What a report on a large trace costs: time, memory, and the size of its page.

    bench/run reports                  # ten million exchanges, some minutes with building
    bench/run reports --write          # puts the table into bench/results
    bench/run reports --exchanges 1000000 --rounds 1

The trace is made up (core/ledger/examples/made_up_trace.rs) and the same each time. Every run reads it anew with
`onetrip report --html`. Only the standard library is used.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import records

REPOSITORY = records.REPOSITORY
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / "release"
MEBIBYTE = 1 << 20
BENCH = records.case("reports")
SECONDS_MAX, PAGE_MAX = BENCH["target"]["seconds_max"], BENCH["target"]["page_bytes_max"]
MEMORY_MAX: int = BENCH["target"]["memory_mib_max"] * MEBIBYTE
"""Bars."""


@dataclass(frozen=True)
class Run:
    """One report. Memory is the largest that the process had resident, in bytes."""

    seconds: float
    cpu_seconds: float
    memory: int
    page: int


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--exchanges", type=int, default=BENCH["exchanges"])
    parser.add_argument("--rounds", type=int, default=BENCH["rounds"])
    parser.add_argument(
        "--write", action="store_true", help="put the table into bench/results"
    )
    options = parser.parse_args()
    build()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "made-up.trace"
        subprocess.run(
            [TARGET / "examples/made_up_trace", str(options.exchanges), trace], check=True
        )
        runs = [report(trace) for _ in range(options.rounds)]
        for run in runs:
            records.keep(
                way="onetrip report", seconds=run.seconds, cpu_seconds=run.cpu_seconds, memory_bytes=run.memory, page_bytes=run.page
            )
        text = table(options.exchanges, trace.stat().st_size, runs)
    print(text)
    if options.write:
        records.write("reports", text)
    kept = [
        statistics.median(run.seconds for run in runs) <= SECONDS_MAX,
        max(run.memory for run in runs) <= MEMORY_MAX,
        max(run.page for run in runs) <= PAGE_MAX,
    ]
    return 0 if all(kept) else 1


def build() -> None:
    cargo = [os.environ.get("CARGO", str(REPOSITORY / "scripts/cargo")), "build", "--release", "--locked", "--quiet"]
    subprocess.run([*cargo, "-p", "onetrip"], cwd=REPOSITORY, check=True)
    example = ["-p", "onetrip-ledger", "--example", "made_up_trace"]
    subprocess.run([*cargo, *example], cwd=REPOSITORY, check=True)


def report(trace: Path) -> Run:
    page = trace.with_suffix(".html")
    command = [TARGET / "onetrip", "report", trace, "--html", page, "--output", os.devnull]
    started = time.monotonic()
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"bench: reports: onetrip report ended with {process.returncode}")
    cpu_seconds = usage.ru_utime + usage.ru_stime
    return Run(seconds, cpu_seconds, usage.ru_maxrss * 1024, page.stat().st_size)


def table(exchanges: int, trace_bytes: int, runs: list[Run]) -> str:
    def line(name: str, values: list[float], unit: str, digits: int, bar: float | None) -> str:
        median, least, most = statistics.median(values), min(values), max(values)
        shown = f"{median:.{digits}f} {unit} [{least:.{digits}f}–{most:.{digits}f}]"
        if bar is None:
            return f"| {name} | {shown} | | |"
        # Times vary with what else the machine does, sizes do not.
        kept = (median if unit == "s" else most) <= bar
        return f"| {name} | {shown} | ≤ {bar:g} {unit} | {'yes' if kept else 'no'} |"

    version = subprocess.run(
        [TARGET / "onetrip", "--version"], text=True, stdout=subprocess.PIPE, check=True
    ).stdout.strip()
    machine = f"{platform.system()} {platform.release()}, {os.cpu_count()} cores, {version}"
    subject = f"{exchanges:,} exchanges in {trace_bytes / MEBIBYTE:.0f} MiB, {len(runs)} runs"
    memory = [run.memory / MEBIBYTE for run in runs]
    lines = [
        f"{subject}, median [min–max]; {datetime.date.today()}, {machine}.",
        "",
        "| what | measured | bar | kept |",
        "|---|---|---|---|",
        line("time", [run.seconds for run in runs], "s", 1, SECONDS_MAX),
        line("CPU time", [run.cpu_seconds for run in runs], "s", 1, None),
        line("memory", memory, "MiB", 0, MEMORY_MAX / MEBIBYTE),
        line("page", [run.page / 1e6 for run in runs], "MB", 2, PAGE_MAX / 1e6),
    ]
    return "\n".join(lines) + "\n"
