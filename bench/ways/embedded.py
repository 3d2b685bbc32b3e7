"""What a statement costs on the embedded server: beside bare echo servers, and beside PostgreSQL.

    bench/run embedded                     # everything: about three minutes
    bench/run embedded --priority --write  # as root: before everything else on the machine; table into the docs
    bench/run embedded --rounds 3 --part echo

Three parts:

    echo        `VALUES (1)`, prepared, by a client of raw sockets (bench/embed/trips.c), beside servers that send back
                as many bytes and do nothing: a blocking one for 1 connection, one of epoll for 8
    pgbench     `pgbench -S`, 1 client, beside PostgreSQL with the same tables
    allocated   bytes that one execution takes from malloc (bench/embed/allocated.c), in server and client

Every round measures each way once, one right after the other; a ratio is the median of the rounds' ratios. Pinned
means that client and server share the last core. Only the standard library, cc and PostgreSQL's programs are used.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pgserver
import records
from processors import cores, pinned, set_cores, take_priority
from records import spread, table_line

REPOSITORY = records.REPOSITORY
SOURCES = REPOSITORY / "bench/embed"
ONETRIP = records.ONETRIP
PYTHON = REPOSITORY / ".venv/bin/python"
PARTS = ("echo", "pgbench", "allocated")
BENCH = records.case("embedded")
MODES: list[str] = BENCH["modes"]
VALUES = "VALUES (1)"
COLUMN = "SELECT v FROM t WHERE id = 7"
TABLE = """CREATE TABLE t (id int PRIMARY KEY, v varchar(100));
INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series(1, 1000) AS n"""
SCALE: int = BENCH["scale"]
EXECUTIONS: list[int] = BENCH["executions"]
"""Two runs: their difference leaves out what starting and ending take."""
CLIENTS = {
    "psycopg2": """import psycopg2
with psycopg2.connect("") as connection, connection.cursor() as cursor:
    connection.autocommit = True
    for _ in range({count}):
        cursor.execute("{text}")
        cursor.fetchall()""",
    "psycopg 3, prepared": """import psycopg
with psycopg.connect("", autocommit=True) as connection, connection.cursor() as cursor:
    for _ in range({count}):
        cursor.execute("{text}", prepare=True)
        cursor.fetchall()""",
}


class BenchError(RuntimeError):
    """Why there is no measurement."""


@dataclasses.dataclass
class Line:
    """One comparison: rates by round of the embedded server, and of what it is held against."""

    name: str
    place: str
    peer: str
    bar: float
    ours: list[float] = dataclasses.field(default_factory=list)
    theirs: list[float] = dataclasses.field(default_factory=list)

    def ratios(self) -> list[float]:
        return [ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True)]

    def text(self) -> str:
        ratio = statistics.median(self.ratios())
        cells = [self.name, self.place, spread(self.ours, "{:.0f}"), self.peer, spread(self.theirs, "{:.0f}")]
        cells += [spread(self.ratios(), "{:.2f}"), f"≥ {self.bar}", "yes" if ratio >= self.bar else "no"]
        return table_line(cells)


def main() -> int:
    args = arguments()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pgserver.raise_stop)
    try:
        if args.priority:
            take_priority()
        if not args.no_build:
            command = ["cargo", "build", "--release", "--locked", "--package", "onetrip"]
            subprocess.run(command, cwd=REPOSITORY, check=True)
        with tempfile.TemporaryDirectory(prefix="onetrip-bench-") as folder:
            text = Bench(Path(folder), args).report()
    except KeyboardInterrupt:
        return 130
    except (BenchError, pgserver.ServerError, subprocess.CalledProcessError) as error:
        print(f"bench: embedded: {error}", file=sys.stderr)
        return 1
    print(text)
    if args.write:
        records.write("embedded", text)
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=BENCH["rounds"], help="samples of each way")
    parser.add_argument("--seconds", type=float, default=BENCH["seconds"], help="of one sample")
    parser.add_argument("--part", action="append", choices=PARTS, help="default: all")
    parser.add_argument("--write", action="store_true", help="put the table into bench/results")
    parser.add_argument("--no-build", action="store_true", help="use target/release/onetrip as it is")
    parser.add_argument("--priority", action="store_true", help="run before everything else (root)")
    args = parser.parse_args()
    args.part = args.part or list(PARTS)
    if args.write and set(args.part) != set(PARTS):
        parser.error("--write needs all parts")
    return args


class Bench:
    """Builds the programs and runs the parts."""

    def __init__(self, folder: Path, args: argparse.Namespace) -> None:
        self.folder = folder
        self.args = args
        self.trips = folder / "trips"
        self.counter = folder / "allocated.so"
        compile_c([str(SOURCES / "trips.c")], self.trips)
        compile_c(["-shared", "-fPIC", str(SOURCES / "allocated.c")], self.counter)

    def report(self) -> str:
        lines = [conditions(self.args), ""]
        if rows := [row.text() for row in self.compared()]:
            heads = ["statement", "where", "embedded, per second", "beside", "per second"]
            heads += ["ratio [min–max]", "bar", "kept"]
            lines += [table_line(heads), "|---" * len(heads) + "|", *rows, ""]
        if "allocated" in self.args.part:
            heads = ["one execution of a `varchar(100)` of 100 characters", "calls of malloc", "bytes"]
            lines += [table_line(heads), "|---" * len(heads) + "|", *self.allocated()]
        return "\n".join(lines).rstrip() + "\n"

    def compared(self) -> list[Line]:
        rows = self.echoes() if "echo" in self.args.part else []
        return rows + (self.pgbenches() if "pgbench" in self.args.part else [])

    def echoes(self) -> list[Line]:
        echo_min = BENCH["target"]["echo_min"]
        rows = [
            Line(f"`{VALUES}`, 1 connection", "pinned", "blocking echo", echo_min),
            Line(f"`{VALUES}`, 8 connections", "pinned", "epoll echo", echo_min),
            Line(f"`{VALUES}`, 8 connections", "all cores", "epoll echo", echo_min),
        ]
        shapes = [(1, "echo", True), (8, "echo-epoll", True), (8, "echo-epoll", False)]
        seconds = str(self.args.seconds)
        for number in range(self.args.rounds):
            for row, (connections, echo, is_pinned) in zip(rows, shapes, strict=True):
                on = cores(is_pinned)
                with self.served(on) as port:
                    sent, received = self.run(on, self.trips, "prepare", port, VALUES).split()
                    command = [self.trips, "run", port, VALUES, connections, seconds]
                    row.ours.append(rate(self.run(on, *command)))
                with self.started(on, [self.trips, echo, sent, received]) as child:
                    port = child.stdout.readline().strip()
                    command = [self.trips, "run-echo", port, sent, received, connections, seconds]
                    row.theirs.append(rate(self.run(on, *command)))
                progress(number, row)
        return rows

    def pgbenches(self) -> list[Line]:
        rows = [Line(f"`pgbench -S`, {mode}", "pinned", "PostgreSQL", BENCH["target"]["postgresql_min"]) for mode in MODES]
        on = cores(True)
        settings = {"shared_buffers": "256MB"}
        with self.served(on) as port, pgserver.PgServer(auth="trust", settings=settings) as server:
            set_cores(server.pid, on)
            ports = (int(port), server.port)
            for each in ports:
                self.pgbench(each, server, ["--initialize", f"--scale={SCALE}", "--quiet"])
            for number in range(self.args.rounds):
                for row, mode in zip(rows, MODES, strict=True):
                    time = max(1, round(self.args.seconds))
                    options = ["--select-only", "--no-vacuum", f"--protocol={mode}", f"--time={time}"]
                    for each, rates in zip(ports, (row.ours, row.theirs), strict=True):
                        text = self.pgbench(each, server, options)
                        rates.append(float(re.search(r"tps = ([\d.]+) \(without", text)[1]))
                    progress(number, row)
        return rows

    def pgbench(self, port: int, server: pgserver.Address, options: list[str]) -> str:
        place = ["--host=127.0.0.1", f"--port={port}", f"--username={server.user}", server.dbname]
        return self.run(cores(True), program("pgbench"), *options, *place)

    def allocated(self) -> list[str]:
        rows = []
        with self.served(cores(False)) as port:
            self.run(cores(False), program("psql"), "-qc", TABLE, env=address(port))
            file = self.folder / "embedded.db"
            counts = [self.of_server(file, count) for count in EXECUTIONS]
            keep_allocations("server", counts)
            rows.append(allocation("the server", counts))
            for name, source in CLIENTS.items():
                if not PYTHON.exists():
                    print(f"bench: embedded: left out, no .venv: {name}", file=sys.stderr)
                    continue
                counts = [self.of_client(port, source, count) for count in EXECUTIONS]
                keep_allocations(name, counts)
                rows.append(allocation(f"the client {name}", counts))
        return rows

    def of_server(self, file: Path, executions: int) -> tuple[int, int]:
        """Calls and bytes of a server that carries out so many executions and ends."""
        told = self.folder / "allocated"
        env = {"LD_PRELOAD": str(self.counter), "ALLOCATED": str(told)}
        with self.served(cores(False), file, env) as port:
            self.run(cores(False), self.trips, "count", port, COLUMN, executions)
        return counted(told)

    def of_client(self, port: str, source: str, executions: int) -> tuple[int, int]:
        """Calls and bytes of a Python client, whose objects are all taken from malloc for this."""
        told = self.folder / "allocated"
        env = address(port) | {"LD_PRELOAD": str(self.counter), "ALLOCATED": str(told), "PYTHONMALLOC": "malloc"}
        self.run(cores(False), PYTHON, "-c", source.format(count=executions, text=COLUMN), env=env)
        return counted(told)

    @contextlib.contextmanager
    def served(self, on: set[int], file: Path | None = None, env: dict[str, str] | None = None) -> Iterator[str]:
        """The port of an embedded server."""
        file = file or self.folder / "embedded.db"
        command = [ONETRIP, "serve", file, "--listen=127.0.0.1:0"]
        with self.started(on, command, env, subprocess.PIPE) as child:
            line = child.stderr.readline()
            found = re.search(r"served at 127\.0\.0\.1:(\d+)", line)
            if not found:
                raise BenchError(f"onetrip serve said {line!r}")
            yield found[1]

    @contextlib.contextmanager
    def started(
        self, on: set[int], command: list[object], env: dict[str, str] | None = None, err: int | None = None
    ) -> Iterator[subprocess.Popen[str]]:
        """A program until the end of the block."""
        child = subprocess.Popen(
            [*pinned(on), *map(str, command)],
            env=os.environ | (env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=err,
            text=True,
        )
        try:
            yield child
        finally:
            child.send_signal(signal.SIGINT)
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            for stream in filter(None, (child.stdout, child.stderr)):
                stream.close()

    def run(self, on: set[int], *command: object, env: dict[str, str] | None = None) -> str:
        """What a program prints; an error where it fails."""
        done = subprocess.run(
            [*pinned(on), *map(str, command)],
            env=os.environ | (env or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise BenchError(f"{Path(str(command[0])).name} failed: {done.stderr.strip()}")
        return done.stdout


def compile_c(arguments: list[str], output: Path) -> None:
    compiler = shutil.which("cc")
    if not compiler:
        raise BenchError("please install a C compiler: gcc")
    subprocess.run([compiler, "-O2", "-Wall", "-Wextra", "-o", str(output), *arguments], check=True)


def program(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/lib/postgresql/15/bin")
    if not found:
        raise BenchError(f"please install {name}: postgresql-15")
    return found


def address(port: str) -> dict[str, str]:
    return {"PGHOST": "127.0.0.1", "PGPORT": port, "PGUSER": "bench", "PGDATABASE": "bench", "PGSSLMODE": "disable"}


def rate(text: str) -> float:
    """Of what trips.c prints: trips a second."""
    trips, seconds = text.split()
    return int(trips) / float(seconds)


def counted(file: Path) -> tuple[int, int]:
    calls, size = file.read_text().split()
    file.unlink()
    return int(calls), int(size)


def allocation(name: str, counts: list[tuple[int, int]]) -> str:
    """Of one execution: what the longer of two runs took beyond the shorter, divided."""
    more = EXECUTIONS[1] - EXECUTIONS[0]
    calls, size = ((after - before) / more for before, after in zip(*counts, strict=True))
    return table_line([name, f"{calls:.2f}", f"{size:.0f}"])


def progress(number: int, row: Line) -> None:
    for way, rates in (("embedded", row.ours), (row.peer, row.theirs)):
        records.keep(statement=row.name, place=row.place, way=way, round=number, per_second=rates[-1])
    text = f"{number + 1} {row.name} {row.place}: {row.ours[-1]:.0f} to {row.theirs[-1]:.0f}"
    print(f"{text}, {row.ratios()[-1]:.2f}", file=sys.stderr, flush=True)


def keep_allocations(who: str, counts: list[tuple[int, int]]) -> None:
    for executions, (calls, taken) in zip(EXECUTIONS, counts, strict=True):
        records.keep(way=who, after=f"{executions} executions", malloc_calls=calls, malloc_bytes=taken)


def conditions(args: argparse.Namespace) -> str:
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    asked = [[ONETRIP, "--version"], [program("pgbench"), "--version"]]
    versions = [subprocess.run(command, text=True, stdout=subprocess.PIPE, check=True).stdout for command in asked]
    first = ", run before everything else on the machine" if args.priority else ""
    return (
        f"{datetime.date.today().isoformat()}: {args.rounds} rounds of {args.seconds:g} s per way{first}.\n"
        f"{len(os.sched_getaffinity(0))} cores of {cpu[1] if cpu else platform.machine()}, kernel {platform.release()}."
        f" {versions[0].strip()}; {versions[1].strip().replace('pgbench (PostgreSQL)', 'PostgreSQL')}."
    )
