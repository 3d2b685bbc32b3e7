"""What the client library costs beside libpq: the same statements, prepared, near the server and far from it.

    bench/run client                 # about three minutes
    bench/run client --rounds 3 --rtt 0 --write
    bench/run client --table bulk --write

`pipeline` is 100 × {insert, 4 updates} and COMMIT in one block, `continue` the same with every operation shielded by a
savepoint, `select` 1,000 selects of one row, one after the other, `lobs` large objects of 10 MB, all of each, beside
bytea of the same bytes by libpq. `bulk` is execute_many in each of its ways, which libpq has no counterpart to, and
`bulk-python` is executemany of the Python package. Rust is edge/client/examples/measure.rs, C is bench/client/libpq.c, Python is
bench/client/many.py. Both run right after each other in every round, in turns first;
ratios are medians of the
rounds' ratios. Near the server, program and server share one core; CPU is that of the client's thread.

The rows that the server counted have to be the same, or the bench ends. The exit code is 1 where a bar is missed.
With --write the tables go into bench/results. Needs a C compiler, libpq-dev, and what `make build` makes; for `bulk-python`,
the package onetrip in the Python that runs it.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pgserver
import records
from processors import take_priority

REPOSITORY = records.REPOSITORY
TABLES = ("peers", "bulk", "bulk-python")
BENCH = records.case("client")
TARGET = BENCH["target"]
RTTS_MS: list[float] = BENCH["distances_ms"]
BLOCKS = {float(rtt): count for rtt, count in BENCH["blocks"].items()}
"""Blocks of one program in one round, by the distance."""
LOB_BYTES: int = BENCH["lobs"]["bytes"]
BULK_WAYS = {"one by one": "Pipeline", "unnest": "Unnest", "copy": "Copy", "auto": "Auto"}
MANY_WAYS = {way: way for way in ("pipeline", "unnest", "copy", "auto")}
PROGRAM_SECONDS_MAX = 120
PIPELINE_NEAR_MAX, PIPELINE_FAR_MAX = TARGET["pipeline_near_max"], TARGET["pipeline_far_max"]
CPU_US_MAX = TARGET["cpu_us_max"]
SELECT_THROUGHPUT_MIN, SELECT_CPU_MAX = TARGET["select_throughput_min"], TARGET["select_cpu_max"]
AUTO_MIN: float = TARGET["auto_min"]
LOB_THROUGHPUT_MIN, LOB_MEMORY_MIB_MAX = TARGET["lob_throughput_min"], TARGET["lob_memory_mib_max"]
LISTENING = re.compile(r"link from 127\.0\.0\.1:(\d+)")
KNOWN = """
CREATE TABLE known (id int PRIMARY KEY, b text);
INSERT INTO known SELECT id, 'text of row ' || id FROM generate_series(0, 999) AS id;
ANALYZE known;
"""
LARGE = """
CREATE TABLE large (id int PRIMARY KEY, object oid, body bytea);
ALTER TABLE large ALTER body SET STORAGE EXTERNAL;
INSERT INTO large SELECT id, lo_from_bytea(0, set_byte(body, 0, id)), set_byte(body, 0, id)
FROM generate_series(1, {count}) AS id,
     (SELECT string_agg(decode(md5(n::text), 'hex'), '') AS body FROM generate_series(1, {bytes} / 16) AS n) AS made;
"""


class Program(NamedTuple):
    """What is run: its name in the samples, and how it is started."""

    way: str
    command: tuple[str, ...]


Medians = tuple[float, float]
"""Seconds of a block, and microseconds of CPU of a statement."""


class BenchError(Exception):
    """A program, the link or the server did not do what the bench rests on; the text says what."""


def main() -> int:
    options = parse()
    os.chdir(REPOSITORY)
    try:
        if options.priority:
            take_priority()
        with tempfile.TemporaryDirectory() as folder:
            text, missed = measure(options, Path(folder))
    except (BenchError, pgserver.ServerError, OSError, subprocess.SubprocessError) as error:
        print(f"bench: client: {error}", file=sys.stderr)
        return 1
    print("\n\n".join(text.values()))
    for table, shown in text.items() if options.write else ():
        records.write(table, shown)
    for line in missed:
        print(f"bench: client: missed: {line}", file=sys.stderr)
    return 1 if missed else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=BENCH["rounds"])
    parser.add_argument("--rtt", action="append", type=float, choices=RTTS_MS, metavar="MS")
    parser.add_argument("--table", action="append", choices=TABLES, help="[default: all]")
    parser.add_argument("--lobs", type=int, default=BENCH["lobs"]["count"], metavar="COUNT", help="0 leaves them out")
    parser.add_argument("--onetrip", type=Path, default=records.ONETRIP, metavar="PATH")
    parser.add_argument("--measure", type=Path, metavar="PATH", help="a built example `measure` [default: build it]")
    parser.add_argument("--priority", action="store_true", help="run before everything else (root)")
    parser.add_argument("--write", action="store_true", help="put the table into bench/results")
    options = parser.parse_args()
    options.rtt = options.rtt or list(RTTS_MS)
    options.table = options.table or list(TABLES)
    if any(options.rtt) and not options.onetrip.exists():
        parser.error(f"{options.onetrip} is missing; run `make build`, or name another with --onetrip")
    return options


def measure(options: argparse.Namespace, folder: Path) -> tuple[dict[str, str], list[str]]:
    """The tables as text, and the bars that were missed."""
    rust = Program("rust", (str(options.measure or build_rust()),))
    libpq = Program("libpq", (str(build_c(folder / "libpq")),))
    python = Program("python", (sys.executable, str(REPOSITORY / "bench/client/many.py")))
    has_lobs = "peers" in options.table and options.lobs and 0.0 in options.rtt
    known = folder / "known.sql"
    known.write_text(KNOWN + (LARGE.format(count=options.lobs, bytes=LOB_BYTES) if has_lobs else ""))
    tables = {}
    with pgserver.PgServer(auth="trust", load=[known]) as server:
        bench = Bench(options, rust, libpq, server)
        if "peers" in options.table:
            tables["client"] = peers(options, bench, bool(has_lobs))
        if "bulk" in options.table:
            tables["bulk"] = bench.bulk("bulk", rust, BULK_WAYS)
        if "bulk-python" in options.table:
            tables["bulk-python"] = bench.bulk("bulk-python", python, MANY_WAYS)
    return tables, bench.missed


def peers(options: argparse.Namespace, bench: Bench, has_lobs: bool) -> str:
    lines = [
        header(options),
        "",
        "| work | RTT | Rust | libpq | Rust ÷ libpq in time [min–max] | CPU a statement: Rust | libpq | bar | kept |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [bench.pipeline(rtt) for rtt in options.rtt]
    if 0.0 in options.rtt:
        lines.append(bench.select())
    lines += [bench.shielded(rtt) for rtt in options.rtt if rtt in (0.0, 12.9)]
    if has_lobs:
        lines.append(bench.large_objects())
    return "\n".join(lines)


def build_rust() -> Path:
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    subprocess.run(
        ["cargo", "build", "--release", "--locked", "-q", "-p", "onetrip-client", "--example", "measure"], check=True
    )
    return target / "release/examples/measure"


def build_c(target: Path) -> Path:
    flags = subprocess.run(["pg_config", "--includedir"], text=True, stdout=subprocess.PIPE, check=True)
    include = f"-I{flags.stdout.strip()}"
    subprocess.run(
        ["cc", "-O2", "-Wall", include, REPOSITORY / "bench/client/libpq.c", "-o", target, "-lpq"], check=True
    )
    return target


def header(options: argparse.Namespace) -> str:
    first = ", run before everything else on the machine" if options.priority else ""
    return (
        f"{datetime.date.today()}: {options.rounds} rounds{first}; load of the machine at the start"
        f" {os.getloadavg()[0]:.1f}. {platform.system()} {platform.release()}, {os.cpu_count()} cores, PostgreSQL 15."
    )


class Bench:
    """Runs both programs against one server."""

    def __init__(self, options: argparse.Namespace, rust: Program, libpq: Program, server: pgserver.Address) -> None:
        self.options, self.rust, self.libpq = options, rust, libpq
        self.environment = os.environ | server.env()
        self.server = server
        self.missed: list[str] = []
        self.table = "client"
        """The one that is made now."""
        self.rtt = 0.0
        """How far the server is now, in milliseconds."""
        self.memory_mib = 0.0
        """Most that a process of Rust has used in its last run, where it told."""

    def judge(self, is_kept: bool, what: str) -> str:
        if not is_kept:
            self.missed.append(what)
        return "yes" if is_kept else "no"

    def pipeline(self, rtt: float) -> str:
        with self.link(rtt) as environment:
            rust, libpq, ratios = self.compare("pipeline", BLOCKS[rtt], environment, pinned=rtt == 0)
        ratio, most = statistics.median(ratios), PIPELINE_FAR_MAX if rtt else PIPELINE_NEAR_MAX
        is_kept = ratio <= most and rust[1] <= CPU_US_MAX
        bar = f"≤ {most}, ≤ {CPU_US_MAX} µs"
        return row("pipeline", rtt, rust, libpq, ratios, bar, self.judge(is_kept, f"pipeline at {rtt} ms"))

    def select(self) -> str:
        rust, libpq, ratios = self.compare("select", BENCH["select_blocks"], self.environment, pinned=True)
        is_kept = 1 / statistics.median(ratios) >= SELECT_THROUGHPUT_MIN and rust[1] <= SELECT_CPU_MAX * libpq[1]
        bar = f"≤ {1 / SELECT_THROUGHPUT_MIN:.2f}, CPU ≤ libpq's"
        return row("select × 1,000", 0, rust, libpq, ratios, bar, self.judge(is_kept, "select"))

    def shielded(self, rtt: float) -> str:
        """What savepoints cost: no bar is set on it, and libpq has no such thing."""
        with self.link(rtt) as environment:
            runs = [self.run(self.rust, "continue", BLOCKS[rtt], environment, rtt == 0) for _ in range(self.options.rounds)]
        seconds, cpu = (statistics.median(numbers) for numbers in zip(*(run[:2] for run in runs), strict=True))
        return f"| continue | {rtt} ms | {seconds * 1000:.2f} ms | – | – | {cpu:.2f} µs | – | – | – |"

    def large_objects(self) -> str:
        """Every byte of large objects, read in pieces, beside libpq with whole values of bytea."""
        rounds = min(self.options.rounds, BENCH["lobs"]["rounds"])
        rust, libpq, ratios = self.compare("lobs", BENCH["lobs"]["blocks"], self.environment, pinned=True, rounds=rounds)
        is_fast = 1 / statistics.median(ratios) >= LOB_THROUGHPUT_MIN
        is_kept = is_fast and self.memory_mib <= LOB_MEMORY_MIB_MAX
        bar = f"≤ {1 / LOB_THROUGHPUT_MIN:.2f}, memory {self.memory_mib:.0f} ≤ {LOB_MEMORY_MIB_MAX} MiB"
        work = f"lobs: {self.options.lobs} × {LOB_BYTES // 1_000_000} MB"
        return row(work, 0, rust, libpq, ratios, bar, self.judge(is_kept, "lobs"))

    def bulk(self, table: str, program: Program, ways: dict[str, str]) -> str:
        """Rows per second of each way of execute_many: medians of the rounds."""
        self.table = table
        lines = [
            header(self.options),
            "",
            f"| rows | RTT | {' | '.join(ways.values())} | {list(ways.values())[-1]} ÷ best | bar | kept |",
            "|" + "---|" * (5 + len(ways)),
        ]
        for rtt in BENCH["bulk"]["distances_ms"]:
            with self.link(rtt) as environment:
                for rows in BENCH["bulk"]["rows"]:
                    *others, auto = rates = self.rates(program, ways, rows, environment, rtt == 0)
                    ratio = auto / max(others)
                    kept = self.judge(ratio >= AUTO_MIN, f"auto, {rows:,} rows at {rtt:g} ms: {ratio:.2f}")
                    cells = [f"{rows:,}", f"{rtt:g} ms", *(f"{rate:,.0f}" for rate in rates)]
                    lines.append(f"| {' | '.join(cells)} | {ratio:.2f} | ≥ {AUTO_MIN} | {kept} |")
        return "\n".join(lines)

    def rates(
        self, program: Program, ways: dict[str, str], rows: int, environment: dict[str, str], pinned: bool
    ) -> list[float]:
        """Of each way, which take turns in every round."""
        took: dict[str, list[float]] = {f"{way}:{rows}": [] for way in ways}
        for _ in range(self.options.rounds):
            for work, seconds in took.items():
                run = self.run(program, work, BENCH["bulk"]["blocks"], environment, pinned)
                if run[2] != rows:
                    raise BenchError(f"{work}: the server counted {run[2]} rows")
                seconds.append(run[0])
        return [rows / statistics.median(seconds) for seconds in took.values()]

    def compare(
        self, work: str, blocks: int, environment: dict[str, str], pinned: bool, rounds: int | None = None
    ) -> tuple[Medians, Medians, list[float]]:
        found_rounds, count = [], rounds or self.options.rounds
        for number in range(count):
            order = [self.rust, self.libpq] if number % 2 else [self.libpq, self.rust]
            found = {program: self.run(program, work, blocks, environment, pinned) for program in order}
            rust, libpq = found[self.rust], found[self.libpq]
            if rust[2] != libpq[2]:
                raise BenchError(f"{work}: the server counted {rust[2]} rows for Rust and {libpq[2]} for libpq")
            found_rounds.append((rust, libpq))
        medians = [
            tuple(statistics.median(run[which][part] for run in found_rounds) for part in (0, 1)) for which in (0, 1)
        ]
        return medians[0], medians[1], [rust[0] / libpq[0] for rust, libpq in found_rounds]

    def run(
        self, program: Program, work: str, blocks: int, environment: dict[str, str], pinned: bool
    ) -> tuple[float, float, int]:
        """Medians of the blocks of one process: seconds, microseconds of CPU; and the rows."""
        cores = {0} if pinned else set(range(os.cpu_count()))
        os.sched_setaffinity(self.server.pid, cores)  # sessions of the server inherit it
        command = ["taskset", "-c", ",".join(map(str, cores)), *program.command, work, str(blocks)]
        done = subprocess.run(command, env=environment, text=True, capture_output=True, timeout=PROGRAM_SECONDS_MAX)
        if done.returncode != 0:
            raise BenchError(f"{command} ended with {done.returncode}:\n{done.stderr[-1000:]}")
        lines = [line.split() for line in done.stdout.splitlines()]
        seconds, cpu = (statistics.median(float(line[part]) for line in lines) for part in (0, 1))
        if program == self.rust and len(lines[0]) > 3:
            self.memory_mib = max(float(line[3]) for line in lines)
        words = {"table": self.table, "work": work, "way": program.way, "distance": f"{self.rtt:g} ms"}
        for line in lines:
            records.keep(**words, seconds=float(line[0]), cpu_us=float(line[1]), rows=int(line[2]))
        return seconds, cpu, int(lines[0][2])

    @contextmanager
    def link(self, rtt: float) -> Iterator[dict[str, str]]:
        """The environment of a program that is this far from the server."""
        self.rtt = rtt
        if not rtt:
            yield self.environment
            return
        far_end = f"{self.server.host}:{self.server.port}"
        command = [self.options.onetrip, "link", "--to", far_end, "--rtt", f"{rtt}ms"]
        with subprocess.Popen(command, text=True, stderr=subprocess.PIPE) as link:
            try:
                port = next((found[1] for line in link.stderr if (found := LISTENING.search(line))), None)
                if not port:
                    raise BenchError(f"{command} does not listen")
                yield self.environment | {"PGPORT": port}
            finally:
                link.send_signal(signal.SIGINT)
                link.stderr.read()


def row(work: str, rtt: float, rust: Medians, libpq: Medians, ratios: list[float], bar: str, kept: str) -> str:
    ratio = records.spread(ratios, "{:.2f}")
    return (
        f"| {work} | {rtt:g} ms | {rust[0] * 1000:.2f} ms | {libpq[0] * 1000:.2f} ms | {ratio}"
        f" | {rust[1]:.2f} µs | {libpq[1]:.2f} µs | {bar} | {kept} |"
    )
