"""How near forecasts come: real programs at five distances, foretold from local runs.

    bench/run forecasts                # all programs and distances: about five minutes
    bench/run forecasts --program loop --rtt 13 --write

Each program of clients/forecast runs three times next to its database and is traced; the run of median length is
the one that the forecast is made from (`onetrip forecast`). It has seen no simulated link. Then the program runs
over a simulated link at each distance, and what the trace says it took is compared with the forecast. Short runs
are measured three times, and the median is taken.

Only the standard library is used. The table goes to standard output, and with --write into bench/results.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import mysqlserver
import pgserver
import records

REPOSITORY = records.REPOSITORY
ONETRIP = records.ONETRIP
PYTHON = ".venv/bin/python"
JAVA_PATH = "clients/java/target/clients-1.jar:clients/java/target/lib/*"
SCHEMAS = REPOSITORY / "clients/forecast"
SERVERS = {
    "postgresql": lambda: pgserver.PgServer(load=[SCHEMAS / "schema.sql"]),
    "mariadb": lambda: mysqlserver.MysqlServer("mariadb", load=[SCHEMAS / "mysql_schema.sql"]),
}
PROGRAMS = {
    "loop": ("psycopg2, serial loop", [PYTHON, "clients/forecast/loop.py"]),
    "page": ("Django, mixed pages", [PYTHON, "clients/forecast/page.py"]),
    "workers": ("pgx, 8 connections that think", ["clients/go/forecast/forecast"]),
    "bulk": ("psycopg2, 20 MB each way", [PYTHON, "clients/forecast/bulk.py"]),
    "cursor": (
        "pgjdbc, cursor by 10 rows",
        ["java", "-cp", JAVA_PATH, "onetrip.CursorWalk"],
    ),
    "mysql_loop": ("PyMySQL, serial loop", [PYTHON, "clients/forecast/mysql_loop.py"]),
    "mysql_page": ("Django over mysqlclient, mixed pages", [PYTHON, "clients/forecast/page.py"]),
    "mysql_workers": ("mysql2, 8 connections that think", ["node", "clients/forecast/mysql_workers.js"]),
    "mysql_bulk": ("PyMySQL, 20 MB each way", [PYTHON, "clients/forecast/mysql_bulk.py"]),
}
BENCH = records.case("forecasts")
RTTS_MS: list[float] = BENCH["distances_ms"]
SHORT_RUN_SECONDS: float = BENCH["short_run_seconds"]
RUNS: int = BENCH["rounds"]
MEDIAN_MAX, WORST_MAX = BENCH["target"]["median_error_max"], BENCH["target"]["worst_error_max"]
"""Bars: median and largest error of all forecasts."""


def main() -> int:
    options = parse()
    if not ONETRIP.exists():
        print(f"bench: forecasts: {ONETRIP} is missing; run `make build`", file=sys.stderr)
        return 1
    build_go()
    rows: list[tuple[str, float, float, float]] = []
    with contextlib.ExitStack() as running, tempfile.TemporaryDirectory() as folder:
        benches: dict[str, Bench] = {}
        for program in options.program or PROGRAMS:
            server = "mariadb" if program.startswith("mysql_") else "postgresql"
            if server not in benches:
                address = running.enter_context(SERVERS[server]())
                benches[server] = Bench(os.environ | address.env(), Path(folder), options.rounds)
            bench = benches[server]
            near = bench.near(program)
            for rtt in options.rtt or RTTS_MS:
                foretold = bench.forecast(near, rtt)
                measured = bench.measure(program, rtt)
                rows.append((program, rtt, foretold, measured))
                records.keep(program=program, distance=f"{rtt:g} ms", way="forecast", seconds=foretold)
                name = PROGRAMS[program][0]
                error = foretold / measured - 1
                progress = f"{name} {rtt} ms: {foretold:.3f} s, took {measured:.3f} s, {error:+.1%}"
                print(progress, file=sys.stderr, flush=True)
    text = table(rows)
    print(text)
    if options.write:
        records.write("forecasts", text)
    errors = [abs(foretold / measured - 1) for _, _, foretold, measured in rows]
    return 0 if statistics.median(errors) <= MEDIAN_MAX and max(errors) <= WORST_MAX else 1


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=RUNS, help="runs beside the database, and of short ones at each distance")
    parser.add_argument("--program", action="append", choices=PROGRAMS)
    parser.add_argument("--rtt", action="append", type=float, metavar="MS")
    parser.add_argument("--write", action="store_true", help="put the table into bench/results")
    return parser.parse_args()


def build_go() -> None:
    subprocess.run(
        ["go", "build", "-buildvcs=false", "-o", "forecast/forecast", "./forecast"],
        cwd=REPOSITORY / "clients/go",
        env=os.environ | {"GOTOOLCHAIN": "local"},
        check=True,
    )


class Bench:
    """Runs programs against one server."""

    def __init__(self, environment: dict[str, str], folder: Path, rounds: int) -> None:
        self.environment = environment
        self.rounds = rounds
        self.folder = folder

    def near(self, program: str) -> Path:
        """Traces of local runs: the one of median length, after one that warms up."""
        self.run(program, "warm", [])
        runs = [self.run(program, f"near{number}", []) for number in range(self.rounds)]
        return sorted(runs, key=self.seconds)[self.rounds // 2]

    def measure(self, program: str, rtt_ms: float) -> float:
        """Seconds that the program takes at a distance."""
        link = ["--rtt", f"{rtt_ms}ms"]
        where = f"{rtt_ms:g} ms"
        first = self.seconds(self.run(program, "far", link))
        records.keep(program=program, distance=where, seconds=first)
        if first > SHORT_RUN_SECONDS:
            return first
        more = [self.seconds(self.run(program, "far", link)) for _ in range(self.rounds - 1)]
        for seconds in more:
            records.keep(program=program, distance=where, seconds=seconds)
        return statistics.median([first, *more])

    def run(self, program: str, name: str, link: list[str]) -> Path:
        trace = self.folder / f"{program}-{name}.trace"
        trace.unlink(missing_ok=True)
        command = [ONETRIP, "run", *link, "--trace", trace, "--", *PROGRAMS[program][1]]
        subprocess.run(
            command, cwd=REPOSITORY, env=self.environment, stderr=subprocess.DEVNULL, check=True
        )
        return trace

    def seconds(self, trace: Path) -> float:
        """From the first byte to the last reply."""
        return json.loads(self.onetrip("report", trace, "--format", "json"))["elapsed_ns"] / 1e9

    def forecast(self, trace: Path, rtt_ms: float) -> float:
        text = self.onetrip("forecast", trace, "--at", f"{rtt_ms}ms", "--format", "json")
        distances = json.loads(text)["distances"]
        [foretold] = [price for price in distances if not price["measured"]]
        return foretold["as_is"]["time_ns"] / 1e9

    def onetrip(self, *arguments: object) -> str:
        return subprocess.run(
            [ONETRIP, *arguments], check=True, text=True, stdout=subprocess.PIPE
        ).stdout


def table(rows: list[tuple[str, float, float, float]]) -> str:
    """One line per program, one column per distance."""
    rtts = sorted({rtt for _, rtt, _, _ in rows})
    lines = [
        "| program | " + " | ".join(f"{rtt:g} ms" for rtt in rtts) + " |",
        "|---|" + "--:|" * len(rtts),
    ]
    for program in dict.fromkeys(program for program, *_ in rows):
        cells = {
            rtt: f"{foretold:.2f} / {measured:.2f} s ({foretold / measured - 1:+.1%})"
            for name, rtt, foretold, measured in rows
            if name == program
        }
        shown = " | ".join(cells.get(rtt, "") for rtt in rtts)
        lines.append(f"| {PROGRAMS[program][0]} | {shown} |")
    errors = [abs(foretold / measured - 1) for _, _, foretold, measured in rows]
    lines.append("")
    lines.append(
        f"Error: median {statistics.median(errors):.1%}, worst {max(errors):.1%}, of {len(errors)}"
        f" forecasts. {platform.system()} {platform.release()}, {os.cpu_count()} cores,"
        f" {subprocess.run([ONETRIP, '--version'], text=True, stdout=subprocess.PIPE, check=True).stdout.strip()}."
    )
    return "\n".join(lines) + "\n"
