"""What a statement costs in Python: CPU of the client process, against psycopg (with its C core) and asyncpg.

    bench/run python [--rounds N] [--write]

One throw-away PostgreSQL 15, one run, the drivers in turn within each round; each driver in a process of its own, its
CPU read from the operating system. Needs the packages onetrip, psycopg[binary] and asyncpg in the Python that runs it.
With --write the table goes into bench/results.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import time
from typing import Any

import records

INSERT = "INSERT INTO measured (id, a, b) VALUES ({}, {}, {})"
UPDATE = "UPDATE measured SET a = a + {} WHERE id = {}"
SELECT = "SELECT b FROM known WHERE id = {}"
TEXT = "forty characters of text, more or less...."
BENCH = records.case("python")
SELECTS: int = BENCH["selects"]
MANY: int = BENCH["many"]
WAYS: dict[str, list[str]] = BENCH["ways"]
# Work, the peer, and the largest ratio to it; the pipeline's bar is in microseconds.
BARS = (
    ("select", "psycopg", BENCH["target"]["select_cpu_max"]),
    ("executemany", "asyncpg", BENCH["target"]["executemany_cpu_max"]),
)
PIPELINE_MICROS_MAX: float = BENCH["target"]["pipeline_us_max"]


def marks(statement: str, dollar: bool) -> str:
    count = statement.count("{}")
    return statement.format(*[f"${at + 1}" if dollar else "%s" for at in range(count)])


def connect(way: str) -> Any:
    if way == "onetrip":
        import onetrip

        return onetrip.connect(autocommit=True)
    import psycopg

    return psycopg.connect(autocommit=True, prepare_threshold=0)


def blocking(way: str, work: str) -> tuple[int, int]:
    """Statements that were run, and the rows that the server counted, by a connection that waits."""
    connection = STATE.setdefault("connection", None) or connect(way)
    STATE["connection"] = connection
    insert, update, select = (marks(text, False) for text in (INSERT, UPDATE, SELECT))
    if work == "select":
        cursor, found = connection.cursor(), 0
        for id in range(SELECTS):
            found += len(cursor.execute(select, (id,)).fetchall())
        return SELECTS, found
    connection.execute("TRUNCATE measured")
    start()
    if work == "executemany":
        cursor = connection.cursor()
        cursor.executemany(insert, [(id, 0, TEXT) for id in range(MANY)])
        return MANY, cursor.rowcount
    operations = []
    with connection.pipeline() as pipeline:
        run = pipeline.execute if way == "onetrip" else connection.execute
        run("BEGIN")
        for id in range(100):
            operations.append(run(insert, (id, 0, TEXT)))
            for step in range(4):
                operations.append(run(update, (step, id)))
        run("COMMIT")
    return 502, sum(operation.rowcount for operation in operations)


async def awaited(way: str, work: str) -> tuple[int, int]:
    """The same by a connection of an event loop."""
    connection = STATE.get("connection")
    if connection is None:
        if way == "asyncpg":
            import asyncpg

            connection = await asyncpg.connect()
        else:
            from onetrip import aio

            connection = await aio.connect(autocommit=True)
        STATE["connection"] = connection
    if work == "executemany":
        await connection.execute("TRUNCATE measured")
        start()
        await connection.executemany(marks(INSERT, True), [(id, 0, TEXT) for id in range(MANY)])
        return MANY, MANY
    found, select = 0, marks(SELECT, way == "asyncpg")
    for id in range(SELECTS):
        if way == "asyncpg":
            found += len(await connection.fetch(select, id))
        else:
            found += len(await (await connection.execute(select, (id,))).fetchall())
    return SELECTS, found


STATE: dict[str, Any] = {}


def start() -> None:
    """Measures from here on."""
    STATE["began"] = (time.perf_counter(), time.process_time())


def child(way: str, work: str) -> None:
    """A round for each line of input; prints microseconds of CPU and of time per statement, and the rows."""
    loop = asyncio.new_event_loop()
    while sys.stdin.readline():
        start()
        if way in ("asyncpg", "onetrip.aio"):
            statements, rows = loop.run_until_complete(awaited(way, work))
        else:
            statements, rows = blocking(way, work)
        began, cpu = STATE["began"]
        taken = time.process_time() - cpu, time.perf_counter() - began
        print(*[seconds * 1e6 / statements for seconds in taken], rows, flush=True)


def measure(rounds: int, environment: dict[str, str]) -> dict[tuple[str, str], list[tuple[float, float]]]:
    expected = {"select": SELECTS, "pipeline": 500, "executemany": MANY}
    samples: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for work, ways in WAYS.items():
        children = {
            way: subprocess.Popen(
                [sys.executable, __file__, "--child", way, work],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | environment,
            )
            for way in ways
        }
        for round in range(rounds + 2):
            for at in range(len(ways)):
                way = ways[(at + round) % len(ways)]
                process = children[way]
                print("go", file=process.stdin, flush=True)
                cpu, wall, rows = process.stdout.readline().split()
                if int(rows) != expected[work]:
                    sys.exit(f"{way} {work}: {rows} rows, not {expected[work]}")
                if round >= 2:  # connecting, preparing and waking up are not measured
                    samples.setdefault((work, way), []).append((float(cpu), float(wall)))
                    records.keep(work=work, way=way, cpu_us=float(cpu), wall_us=float(wall))
        for process in children.values():
            process.stdin.close()
            process.wait()
    return samples


def table(samples: dict[tuple[str, str], list[tuple[float, float]]], rounds: int) -> str:
    from importlib.metadata import version

    versions = ", ".join(f"{name} {version(name)}" for name in ("onetrip", "psycopg", "asyncpg"))
    lines = [
        f"{time.strftime('%Y-%m-%d')}: {rounds} rounds, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} "
        f"at the end, Python {sys.version.split()[0]}, {versions}, PostgreSQL 15 over loopback.",
        "",
        "| work | way | client CPU µs per statement, median [min–max] | time µs per statement, median |",
        "|---|---|---|---|",
    ]
    for (work, way), values in samples.items():
        cpu, wall = zip(*values, strict=True)
        spread = records.spread(cpu, "{:.2f}")
        lines.append(f"| {work} | {way} | {spread} | {statistics.median(wall):.2f} |")
    lines += ["", "| bar | median | bar at | kept |", "|---|---|---|---|"]
    for work, peer, most in BARS:
        pairs = zip(samples[work, "onetrip"], samples[work, peer], strict=True)
        ratio = statistics.median(ours[0] / theirs[0] for ours, theirs in pairs)
        kept = "yes" if ratio <= most else "no"
        lines.append(f"| {work}: CPU, ratio to {peer} in the same round | {ratio:.2f} | ≤ {most} | {kept} |")
    micros = statistics.median(cpu for cpu, _ in samples["pipeline", "onetrip"])
    kept = "yes" if micros <= PIPELINE_MICROS_MAX else "no"
    lines.append(f"| pipeline: CPU µs per statement | {micros:.2f} | ≤ {PIPELINE_MICROS_MAX:g} | {kept} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=BENCH["rounds"])
    parser.add_argument("--write", action="store_true", help="put the table into bench/results")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return 0
    from pgserver import PgServer

    with PgServer(auth="trust") as at:
        environment = at.env() | {"PGSSLMODE": "disable"}
        prepare = "CREATE TABLE measured (id int PRIMARY KEY, a int, b text);" + (
            f"CREATE TABLE known AS SELECT id, '{TEXT}'::text b FROM generate_series(0, {SELECTS - 1}) id;"
            "ALTER TABLE known ADD PRIMARY KEY (id); ANALYZE known"
        )
        subprocess.run(["psql", "-qc", prepare], env=os.environ | environment, check=True)
        written = table(measure(options.rounds, environment), options.rounds)
    print(written)
    if options.write:
        records.write("python", written)
    return 0


if __name__ == "__main__":
    sys.exit(main())
