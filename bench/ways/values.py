"""What a value costs in Python: CPU of the client process, against psycopg (with its C core) and asyncpg.

    bench/run values [--rounds N] [--case NAME ...] [--write]

The cases are in bench/cases/values.toml. One throw-away PostgreSQL 15, one run, the drivers in turn within each round;
each driver in a process of its own, its CPU read from the operating system. Before times are taken, all drivers have to
give the same rows, and the server has to hold the same after each way of writing. A COPY is given all rows by one call
where the driver has one, as asyncpg and onetrip have, and each by its own where not. Needs the packages onetrip,
psycopg[binary] and asyncpg in the Python that runs it. The exit code is 1 where a ratio
is above the target. With --write the table goes into bench/results.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import hashlib
import os
import statistics
import subprocess
import sys
import time
from typing import Any

import records

BENCH = records.case("values")

READ_ROWS: int = BENCH["read_rows"]
WRITE_ROWS: int = BENCH["write_rows"]
WAYS = ("onetrip", "psycopg", "asyncpg")
# Work: its heading, and who can do it.
WORKS = {
    "read": ("read", WAYS),
    "many": ("`executemany`", WAYS),
    "text": ("COPY, text", ("onetrip", "psycopg")),
    "binary": ("COPY, binary", WAYS),
    "copied": ("COPY read, binary", ("onetrip", "psycopg")),
}
RATIO_MAX: float = BENCH["target"]["ratio_max"]


def cases() -> dict[str, Any]:
    return BENCH["case"]


def prepared() -> str:
    """Makes the tables that are read, and empty ones like them."""
    statements = []
    for name, case in cases().items():
        columns = ", ".join(f"{value} AS {column}" for column, value in case["columns"].items())
        table = f"case_{name.replace('-', '_')}"
        statements += [
            f"CREATE TABLE {table} AS SELECT {columns} FROM generate_series(1, {READ_ROWS}) n",
            f"CREATE UNLOGGED TABLE {table}_written (LIKE {table})",
        ]
    return ";".join(statements)


class Blocking:
    """A driver that waits."""

    def __init__(self, way: str, case: dict[str, Any]) -> None:
        zone = case.get("time_zone", "UTC")
        if way == "onetrip":
            import onetrip

            self.connection = onetrip.connect(autocommit=True)
        else:
            import psycopg

            self.connection = psycopg.connect(autocommit=True, prepare_threshold=0)
        self.connection.execute(f"SET TimeZone = '{zone}'")

    def run(self, work: str, table: str, rows: list[Any], types: list[str] | None) -> list[Any] | None:
        cursor = self.connection.cursor()
        if work == "read":
            return cursor.execute(f"SELECT * FROM {table}").fetchall()
        if work == "copied":
            with cursor.copy(f"COPY {table} TO STDOUT (FORMAT binary)") as copy:
                if types:
                    copy.set_types(types)
                return list(copy.rows())
        if work == "many":
            marks = ", ".join(["%s"] * len(rows[0]))
            cursor.executemany(f"INSERT INTO {table}_written VALUES ({marks})", rows)
            return None
        form = "(FORMAT binary)" if work == "binary" else ""
        with cursor.copy(f"COPY {table}_written FROM STDIN {form}") as copy:
            if types and work == "binary":
                copy.set_types(types)
            if hasattr(copy, "write_rows"):
                copy.write_rows(rows)
            else:
                for row in rows:
                    copy.write_row(row)
        return None


class Awaited:
    """asyncpg."""

    def __init__(self, case: dict[str, Any]) -> None:
        import asyncpg

        self.loop = asyncio.new_event_loop()
        self.connection = self.loop.run_until_complete(asyncpg.connect())
        zone = case.get("time_zone", "UTC")
        self.loop.run_until_complete(self.connection.execute(f"SET TimeZone = '{zone}'"))

    def run(self, work: str, table: str, rows: list[Any], types: list[str] | None) -> list[Any] | None:
        connection = self.connection
        if work == "read":
            return self.loop.run_until_complete(connection.fetch(f"SELECT * FROM {table}"))
        if work == "many":
            marks = ", ".join(f"${at + 1}" for at in range(len(rows[0])))
            self.loop.run_until_complete(connection.executemany(f"INSERT INTO {table}_written VALUES ({marks})", rows))
            return None
        self.loop.run_until_complete(connection.copy_records_to_table(f"{table}_written", records=rows))
        return None


def plain(value: Any) -> Any:
    """What a value says, whichever class of UUID or zone it has."""
    import datetime as dt

    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.timezone.utc).isoformat()
    return [plain(one) for one in value] if isinstance(value, list) else str(value)


def digest(rows: list[Any]) -> str:
    return hashlib.sha256(repr([[plain(value) for value in row] for row in rows]).encode()).hexdigest()[:16]


def child(way: str, name: str) -> None:
    """A round for each line of input, which names the work; prints nanoseconds of CPU a row."""
    case = cases()[name]
    table, types = f"case_{name.replace('-', '_')}", case.get("binary")
    driver: Any = Awaited(case) if way == "asyncpg" else Blocking(way, case)
    rows = [tuple(row) for row in driver.run("read", table, [], None)]
    some = rows[:WRITE_ROWS]
    print(digest(rows), flush=True)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        work = line.strip()
        count = READ_ROWS if work in ("read", "copied") else WRITE_ROWS
        cpu = time.process_time()
        made = driver.run(work, table, some, types)
        cpu = time.process_time() - cpu
        if made is not None:
            assert digest(made) == digest(rows), f"{way} {work} {name}: other rows"
        print(cpu * 1e9 / count, flush=True)


def checked(table: str, environment: dict[str, str]) -> None:
    """The server holds what was written, so often as it was; it is empty then."""
    query = (
        f"SELECT count(*) || ' ' || (SELECT count(*) FROM (SELECT t::text FROM {table}_written t EXCEPT "
        f"SELECT x::text FROM {table} x) wrong) FROM {table}_written; TRUNCATE {table}_written"
    )
    found = subprocess.run(
        ["psql", "-qAtc", query], env=os.environ | environment, check=True, capture_output=True, text=True
    ).stdout.split()
    if found != [str(WRITE_ROWS), "0"]:
        sys.exit(f"{table}: {found} rows, of which the second number is wrong")


def measure(names: list[str], rounds: int, environment: dict[str, str]) -> dict[tuple[str, str, str], list[float]]:
    samples: dict[tuple[str, str, str], list[float]] = {}
    for name in names:
        children = {
            way: subprocess.Popen(
                [sys.executable, __file__, "--child", way, name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | environment,
            )
            for way in WAYS
        }
        digests = {process.stdout.readline() for process in children.values()}
        if len(digests) != 1:
            sys.exit(f"{name}: the drivers give different rows")
        for work, (_, ways) in WORKS.items():
            for round in range(rounds + 1):
                for at in range(len(ways)):
                    way = ways[(at + round) % len(ways)]
                    process = children[way]
                    print(work, file=process.stdin, flush=True)
                    taken = process.stdout.readline()
                    if not taken:
                        sys.exit(f"{way} {work} {name}: ended")
                    if work not in ("read", "copied"):
                        checked(f"case_{name.replace('-', '_')}", environment)
                    if round:  # the first prepares and warms up
                        samples.setdefault((name, work, way), []).append(float(taken))
                        records.keep(row=name, work=work, way=way, cpu_ns=float(taken))
        for process in children.values():
            process.stdin.close()
            process.wait()
        print(name, {key[1:]: round_of(values) for key, values in samples.items() if key[0] == name}, file=sys.stderr)
    return samples


def round_of(values: list[float]) -> int:
    return round(statistics.median(values))


def table(names: list[str], samples: dict[tuple[str, str, str], list[float]], rounds: int) -> tuple[str, bool]:
    from importlib.metadata import version

    versions = ", ".join(f"{name} {version(name)}" for name in WAYS)
    lines = [
        f"{time.strftime('%Y-%m-%d')}: {rounds} rounds of {READ_ROWS:,} rows read and {WRITE_ROWS:,} written, "
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end, Python {sys.version.split()[0]}, "
        f"{versions}, PostgreSQL 15 over loopback. Each cell: CPU ns a row of onetrip, psycopg and asyncpg, medians; "
        "then the ratio to the better of the two.",
        "",
        "| row | " + " | ".join(heading for heading, _ in WORKS.values()) + " |",
        "|---" * (len(WORKS) + 1) + "|",
    ]
    met = total = 0
    for name in names:
        cells = []
        for work, (_, ways) in WORKS.items():
            medians = [statistics.median(samples[name, work, way]) for way in ways]
            ratio = medians[0] / min(medians[1:])
            met, total = met + (ratio <= RATIO_MAX), total + 1
            shown = f"**{ratio:.2f}**" if ratio <= RATIO_MAX else f"{ratio:.2f}"
            cells.append(" / ".join(f"{median:,.0f}" for median in medians) + f" · {shown}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", f"{met} of {total} are at most {RATIO_MAX} of the better peer."]
    return "\n".join(lines), met == total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=BENCH["rounds"])
    parser.add_argument("--case", action="append", help="only this case, and others that are named so")
    parser.add_argument("--write", action="store_true", help="put the table into bench/results")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return 0
    from pgserver import PgServer

    names = options.case or list(cases())
    with PgServer(auth="trust") as at:
        # All read from the first row on, one after the other.
        environment = at.env() | {"PGSSLMODE": "disable", "PGOPTIONS": "-c synchronize_seqscans=off"}
        subprocess.run(["psql", "-qc", prepared()], env=os.environ | environment, check=True)
        written, all_kept = table(names, measure(names, options.rounds, environment), options.rounds)
    print(written)
    if options.write:
        records.write("values", written)
    return 0 if all_kept else 1


if __name__ == "__main__":
    sys.exit(main())
