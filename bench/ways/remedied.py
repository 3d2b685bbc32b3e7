"""Runs programs beside their database and through a gateway, for `bench/run loops`.

A program prints one line, its milliseconds and a checksum of what it has read: the same wherever it runs.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import records

LISTENING = re.compile(r"listening at 127\.0\.0\.1:(\d+)")
PRINTED = re.compile(r"^([\d.]+) ([0-9a-f]{16})$", re.MULTILINE)
SETTLED_SECONDS_MAX = 10
PROGRAM_SECONDS_MAX = 300


class BenchError(Exception):
    """A program, the gateway or the server did not do what the bench rests on; the text says what."""


@dataclasses.dataclass
class Run:
    """One run of a program."""

    milliseconds: float
    checksum: str
    trips: int = 0
    """For work, without those that were removed."""
    removed: int = 0
    """By the remedy `loops`."""
    received: int = 0
    """Bytes of the server's messages that the program got."""


def kept(run: Run, program: list[str], way: list[str]) -> Run:
    """The run, after its sample is kept."""
    sample = dataclasses.asdict(run)
    sample.pop("checksum")
    records.keep(program=" ".join(program[-4:]), way=" ".join(way), **sample)
    return run


class Runner:
    """Runs programs against one server, and remembers what they read."""

    def __init__(self, onetrip: Path, folder: Path, environment: dict[str, str]) -> None:
        self.onetrip = onetrip
        self.folder = folder
        self.environment = environment
        self.checksums: dict[tuple[str, ...], str] = {}

    def local(self, command: list[str]) -> Run:
        """Next to the database, without a gateway."""
        return kept(self.printed(command, command, self.environment), command, ["beside the database"])

    def printed(self, program: list[str], command: list[str], environment: dict[str, str]) -> Run:
        """Runs `command`, and reads the line of the program in it."""
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PROGRAM_SECONDS_MAX,
        )
        line = PRINTED.search(done.stdout)
        if done.returncode != 0 or not line:
            raise BenchError(f"{command} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-1000:]}")
        found = Run(float(line[1]), line[2])
        # Drivers that do the same have to read the same.
        wanted = self.checksums.setdefault(tuple(program[-2:]), found.checksum)
        if found.checksum != wanted:
            raise BenchError(f"wrong result: {command} read {found.checksum}, before it was {wanted}")
        return found

    def through(self, program: list[str], options: list[str]) -> Run:
        """Through a gateway of its own."""
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        run = [str(self.onetrip), "run", *options, "--format", "json", "--output", str(report), "--"]
        found = self.printed(program, run + program, self.environment)
        return kept(counted(found, json.loads(report.read_text())), program, options)

    def twice(self, program: list[str], options: list[str]) -> tuple[Run, Run]:
        """Two runs through one gateway: in the second, what the program sends has been seen before."""
        trace = self.folder / "twice.trace"
        trace.unlink(missing_ok=True)
        with self.gateway([*options, "--trace", str(trace)]) as environment:
            first = self.printed(program, program, environment)
            before = self.settled(trace, 1)
            second = self.printed(program, program, environment)
            after = self.settled(trace, 2)
        # The gateway that writes the trace is still running.
        counted(first, before, expected=("no_end",))
        counted(second, after, expected=("no_end",))
        second.trips -= first.trips
        second.removed -= first.removed
        return kept(first, program, [*options, "not seen before"]), kept(second, program, [*options, "seen before"])

    @contextmanager
    def gateway(self, options: list[str]) -> Iterator[dict[str, str]]:
        """The environment of programs that are to go through it."""
        command = [self.onetrip, "gateway", "--listen", "127.0.0.1:0", "-o", os.devnull, *options]
        with subprocess.Popen(command, env=self.environment, text=True, stderr=subprocess.PIPE) as gateway:
            try:
                port = next((found[1] for line in gateway.stderr if (found := LISTENING.search(line))), None)
                if not port:
                    raise BenchError(f"{command} does not listen")
                yield self.environment | {"PGHOST": "127.0.0.1", "PGPORT": port, "PGSSLMODE": "disable"}
            finally:
                gateway.send_signal(signal.SIGINT)
                gateway.stderr.read()

    def settled(self, trace: Path, connections: int) -> dict:
        """The report on a trace, once so many connections are in it and over."""
        deadline = time.monotonic() + SETTLED_SECONDS_MAX
        while time.monotonic() < deadline:
            command = [self.onetrip, "report", trace, "--format", "json"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 0:
                report = json.loads(done.stdout)
                if (report["connections"]["opened"], report["connections"]["still_open"]) == (connections, 0):
                    return report
            time.sleep(0.1)
        raise BenchError(f"the trace does not show that {connections} connections are over")

    def salary_scans(self) -> int:
        """How often the server has run a query for salaries, once no session is left that has not told."""
        deadline = time.monotonic() + SETTLED_SECONDS_MAX
        while time.monotonic() < deadline:
            others, scans = self.ask(
                "SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
                " AND pid <> pg_backend_pid()), coalesce(seq_scan, 0) + coalesce(idx_scan, 0)"
                " FROM pg_stat_user_tables WHERE relname = 'salary'"
            )
            if others == 0:
                return scans
            time.sleep(0.05)
        raise BenchError("a session does not end")

    def ask(self, query: str) -> list[int]:
        command = ["psql", "--no-psqlrc", "--no-align", "--tuples-only", "--command", query]
        done = subprocess.run(command, env=self.environment, check=True, text=True, stdout=subprocess.PIPE)
        return [int(field) for field in done.stdout.strip().split("|")]


def counted(run: Run, report: dict, expected: tuple[str, ...] = ()) -> Run:
    """Puts what the gateway counted to what the program printed. Doubts that are `expected` do not count."""
    known = ("may_share", *expected)
    doubts = {name: count for name, count in report["doubts"].items() if count and name not in known}
    if doubts:
        raise BenchError(f"the count of trips has doubts: {doubts}")
    run.trips = report["trips"]["work"]
    run.removed = report["trips"]["removed"].get("loops", 0)
    run.received = report["bytes_received"]
    return run


def median(runs: list[Run]) -> float:
    return statistics.median(run.milliseconds for run in runs)


def most_trips(runs: list[Run]) -> int:
    return max(run.trips for run in runs)


def least_removed(runs: list[Run]) -> int:
    return min(run.removed for run in runs)
