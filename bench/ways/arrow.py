"""What a result costs as arrays: CPU, time and memory of the client process, against ADBC's driver of PostgreSQL.

    bench/run arrow [--rounds N] [--case NAME ...] [--write]

The cases are in bench/cases/arrow.toml. One throw-away PostgreSQL 15, one run, each driver and work in a process of its
own, in turn within each round. `table` is all rows as a table of pyarrow, `batches` a stream of which nothing is kept,
`table, streamed` a table that is made of such a stream,
`numpy` an array for each column, which ADBC has not. Before times are taken, both drivers have to give the same rows.
Memory is what the process has at most when it reads all for the first time, beyond what it had before. Needs the packages
onetrip, pyarrow, numpy and adbc-driver-postgresql in the Python that runs it. With --write the table goes into
bench/results.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import records

BENCH = records.case("arrow")
ROWS: int = BENCH["rows"]
TARGET: dict[str, float] = BENCH["target"]
# Who does what: a work of onetrip's, in the types' binary form where it says so, and what it is compared with.
WORKS = {
    ("onetrip", "table"): ("adbc", "table"),
    ("onetrip", "table, binary"): ("adbc", "table"),
    ("onetrip", "table, streamed"): ("adbc", "table"),
    ("onetrip", "table, streamed, binary"): ("adbc", "table"),
    ("onetrip", "batches"): ("adbc", "batches"),
    ("onetrip", "batches, binary"): ("adbc", "batches"),
    ("onetrip", "numpy"): ("onetrip", "table"),
}
BOTH = [*WORKS, ("adbc", "table"), ("adbc", "batches")]
Figures = tuple[float, float, float]


def prepared(names: list[str]) -> str:
    """Makes the tables that are read."""
    statements = []
    for name in names:
        columns = ", ".join(f"{value} AS {column}" for column, value in BENCH["case"][name]["columns"].items())
        statements.append(f"CREATE TABLE case_{name} AS SELECT {columns} FROM generate_series(1, {ROWS}) n")
    return ";".join([*statements, "VACUUM ANALYZE"])


def work_of(way: str, work: str, query: str) -> Callable[[], Any]:
    """The call that is measured; what it returns has all rows, or is their number."""
    import pyarrow

    is_binary = work.endswith("binary")
    if way == "adbc":
        from adbc_driver_postgresql import dbapi

        opened: Any = dbapi.connect("postgresql:///?sslmode=disable")  # the rest is in PG's variables

        def read() -> Any:
            with opened.cursor() as cursor:
                cursor.execute(query)
                if work == "table":
                    return cursor.fetch_arrow_table()
                return sum(batch.num_rows for batch in cursor.fetch_record_batch())

        return read
    import onetrip

    connection = onetrip.connect(autocommit=True)
    if work.startswith("table, streamed"):
        return lambda: pyarrow.table(connection.cursor().stream_arrow(query, binary=is_binary))
    if work.startswith("table"):
        return lambda: connection.cursor(binary=is_binary).execute(query).fetch_arrow()
    if work == "numpy":
        return lambda: connection.execute(query).fetch_numpy()

    def streamed() -> int:
        stream = connection.cursor().stream_arrow(query, binary=is_binary)
        return sum(batch.num_rows for batch in pyarrow.RecordBatchReader.from_stream(stream))

    return streamed


def shown(made: Any) -> str:
    """What a result says, whichever driver made it."""
    if isinstance(made, int):
        return str(made)
    columns = made.items() if isinstance(made, dict) else ((name, made[name]) for name in made.column_names)
    lists = {name: column.tolist() if isinstance(made, dict) else column.to_pylist() for name, column in columns}
    return hashlib.sha256(repr(lists).encode()).hexdigest()[:16]


def memory_bytes(field: str) -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field))


def child(way: str, work: str, name: str) -> None:
    """Prints what it reads, and the MiB that the first time takes; then for each line of input a round's CPU and time."""
    query = f"SELECT * FROM case_{name}"
    work_of(way, work, f"{query} LIMIT 1")()
    call = work_of(way, work, query)
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")  # what it had at most is counted from here on
    before = memory_bytes("VmRSS")
    made = call()
    memory = (memory_bytes("VmHWM") - before) / 2**20
    print(shown(made), memory, flush=True)
    del made
    for _ in sys.stdin:
        clock, began = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
        made = call()
        seconds, ended = time.perf_counter() - clock, resource.getrusage(resource.RUSAGE_SELF)
        cpu = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
        del made
        print(cpu * 1e9 / ROWS, seconds * 1e9 / ROWS, flush=True)


def measure(name: str, rounds: int, environment: dict[str, str]) -> dict[tuple[str, str], Figures]:
    """Medians of each work."""
    works = [key for key in BOTH if key[1] != "numpy" or BENCH["case"][name].get("numpy", True)]
    children = {
        key: subprocess.Popen(
            [sys.executable, __file__, "--child", *key, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )
        for key in works
    }
    first = {key: process.stdout.readline().split() for key, process in children.items()}
    said = {key: words[0] for key, words in first.items()}
    for kind in ("table", "batches"):
        if len({text for key, text in said.items() if key[1].startswith(kind)}) != 1:
            sys.exit(f"{name}: {kind} differ: {said}")
    samples: dict[tuple[str, str], list[Figures]] = {key: [] for key in works}
    for round in range(rounds + 1):
        for at in range(len(works)):
            key = works[(at + round) % len(works)]
            print("go", file=children[key].stdin, flush=True)
            cpu, seconds = map(float, children[key].stdout.readline().split())
            memory = float(first[key][1])
            if round:  # the first prepares and warms up
                samples[key].append((cpu, seconds, memory))
                records.keep(row=name, way=key[0], work=key[1], cpu_ns=cpu, time_ns=seconds, memory_mib=memory)
    for process in children.values():
        process.stdin.close()
        process.wait()
    middle = {
        key: tuple(statistics.median(column) for column in zip(*some, strict=True)) for key, some in samples.items()
    }
    return middle  # type: ignore[return-value]


def table(names: list[str], measured: dict[str, dict[tuple[str, str], Figures]], rounds: int) -> tuple[str, bool]:
    versions = ", ".join(
        f"{name} {version(name)}" for name in ("onetrip", "adbc-driver-postgresql", "pyarrow", "numpy")
    )
    lines = [
        f"{time.strftime('%Y-%m-%d')}: {rounds} rounds of {ROWS:,} rows, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f} at the end, Python {sys.version.split()[0]}, {versions}, PostgreSQL 15 over "
        "loopback. CPU and time in ns a row, memory in MiB, medians. Each cell: onetrip, what it is compared with, ratio.",
        "",
        "| case | work | compared with | CPU | time | memory | kept |",
        "|---|---|---|---|---|---|---|",
    ]
    all_kept = True
    for name in names:
        for own, other in WORKS.items():
            if own not in measured[name]:
                continue
            pairs = list(zip(measured[name][own], measured[name][other], strict=True))
            ratios = [mine / max(theirs, 1e-9) for mine, theirs in pairs]
            if own[1] == "numpy":
                kept = ratios[0] <= TARGET["numpy_cpu_max"]
            else:
                limits = (TARGET["cpu_max"], TARGET["time_max"], TARGET["memory_max"])
                kept = all(ratio <= limit for ratio, limit in zip(ratios, limits, strict=True))
            all_kept = all_kept and kept
            cells = " | ".join(f"{a:,.0f} / {b:,.0f} · {c:.2f}" for (a, b), c in zip(pairs, ratios, strict=True))
            lines.append(f"| {name} | {own[1]} | {' '.join(other)} | {cells} | {'yes' if kept else 'no'} |")
    return "\n".join(lines), all_kept


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=BENCH["rounds"])
    parser.add_argument("--case", action="append", help="only this case, and others that are named so")
    parser.add_argument("--write", action="store_true", help="put the table into bench/results")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return 0
    from pgserver import PgServer

    names = options.case or list(BENCH["case"])
    with PgServer(auth="trust") as at:
        # All read from the first row on, one after the other.
        environment = at.env() | {"PGSSLMODE": "disable", "PGOPTIONS": "-c synchronize_seqscans=off"}
        make = [word for statement in prepared(names).split(";") for word in ("-c", statement)]
        subprocess.run(["psql", "-q", *make], env=os.environ | environment, check=True)
        measured = {name: measure(name, options.rounds, environment) for name in names}
    written, all_kept = table(names, measured, options.rounds)
    print(written)
    if options.write:
        records.write("arrow", written)
    return 0 if all_kept else 1


if __name__ == "__main__":
    sys.exit(main())
