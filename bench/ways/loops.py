"""What `--remedies exact` makes of loops: unmodified programs of seven drivers, near their database and far from it.

    bench/run loops                     # everything: about eleven minutes
    bench/run loops --driver pgx --table story --rounds 1 --rows 1000

Nine tables. `story`: one REPEATABLE READ transaction that reads all employees and then the salary of each
(clients/story). `narrow`: the same over a link of limited bandwidth. `adversaries`: loops that cannot be taken out,
and what trying costs. `near`: the story without a link, where remedies have to rest. `reads`: transactions of BEGIN,
one SELECT, COMMIT. `orm`: parents with two lazy collections. `cursors`: results that a program reads in pieces of ten
rows. `lobs`: large objects read one by one. `settings`: sessions that are set or reset for each request.

What a program reads has to be the same wherever it runs: a checksum that differs ends the bench. Times are medians of
rounds, trips are the most of any round, and what was removed is the least. The exit code is 1 where a bar is missed.

Tables go to standard output, and with --write into bench/results. Only the standard library is used; `make build`
and `scripts/setup test` have to have been run.
"""

from __future__ import annotations

import argparse
import datetime
import math
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pgserver
import records
from remedied import BenchError, Run, Runner, least_removed, median, most_trips

REPOSITORY = records.REPOSITORY
STORY = REPOSITORY / "clients/story"
BENCH = records.case("loops")
RESULT_OF = {"cursors": "cursors", "lobs": "lobs", "settings": "settings"}
"""Where tables go that are not of loops."""
PYTHON = ".venv/bin/python"
GO_PROGRAM = "GO_PROGRAM"  # stands for what this script builds
PROGRAMS = {
    "psycopg 3": [PYTHON, "clients/story/psycopg3_story.py"],
    "psycopg2": [PYTHON, "clients/story/psycopg2_story.py"],
    "asyncpg": [PYTHON, "clients/story/asyncpg_story.py"],
    "pgjdbc": ["java", "-cp", "clients/java/target/lib/*", "clients/story/Story.java"],
    "pgx": [GO_PROGRAM],
    "node-postgres": ["node", "clients/story/story.mjs"],
}
ORMS = {
    "SQLAlchemy on psycopg 3": [PYTHON, "clients/story/sqlalchemy_parents.py"],
    "Hibernate on pgjdbc": ["java", "-cp", "clients/java/target/lib/*", "clients/story/Parents.java"],
}
PARENTS: int = BENCH["orm"]["parents"]
ADVERSARIES = {
    "breaks": "break after the first row, a new list each time",
    "skips": "rows skipped at random",
    "shuffled": "the rows in another order",
    "writes": "a write behind each read",
    "unrelated": "ids that no result has told",
}
CURSORS = {
    "psycopg 3, named cursor": [PYTHON, "clients/story/cursors.py", "psycopg3"],
    "psycopg2, named cursor": [PYTHON, "clients/story/cursors.py", "psycopg2"],
    "Django, `iterator()`": [PYTHON, "clients/story/cursors.py", "django"],
    "pgjdbc, fetch size": ["java", "-cp", "clients/java/target/lib/*", "clients/story/Cursors.java"],
}
LOBS = {
    "psycopg2, `lobject`": [PYTHON, "clients/story/lobs.py"],
    "pgjdbc, `LargeObject`": ["java", "-cp", "clients/java/target/lib/*", "clients/story/Lobs.java", "object"],
    "pgjdbc, `Blob.getBytes`": ["java", "-cp", "clients/java/target/lib/*", "clients/story/Lobs.java", "bytes"],
    "pgjdbc, `Blob.getBinaryStream`": ["java", "-cp", "clients/java/target/lib/*", "clients/story/Lobs.java", "stream"],
}
LOBS_COUNT, LOBS_RTT_MS = BENCH["lobs"]["count"], BENCH["lobs"]["distance_ms"]
RESULTS = {"narrow": (20_000, 48), "wide": (10_000, 1044)}
"""Tables of clients/story/cursors.sql: rows, and the most bytes of one, as the message that it comes in."""
SETTINGS = {
    "asyncpg, pool": ([PYTHON, "clients/story/settings.py", "asyncpg-pool"], 1),
    "psycopg 3, two SETs for each request": ([PYTHON, "clients/story/settings.py", "psycopg3-tenant"], 2),
}
"""Programs, and the trips of each request that change nothing."""
SETTINGS_SHARE_MIN: float = BENCH["settings"]["share_min"]
PIECE_ROWS, KEPT_BYTES = BENCH["cursors"]["piece_rows"], BENCH["cursors"]["kept_bytes"]
CURSORS_RTT_MS: float = BENCH["cursors"]["distance_ms"]
ROWS: int = BENCH["rows"]
RTT_MS: float = BENCH["story"]["distance_ms"]
NARROW_MBIT: int = BENCH["narrow"]["mbit"]
ADVERSARY_RTTS_MS: list[float] = BENCH["adversaries"]["distances_ms"]
SLICE: int = BENCH["slice"]
ADVERSARY_COUNT, READS_COUNT = BENCH["adversaries"]["count"], BENCH["reads"]["count"]
LIST_ROWS: int = BENCH["adversaries"]["list_rows"]
# The bars.
STORY_RATIO_MAX, STORY_TRIPS_MAX = BENCH["story"]["ratio_max"], BENCH["story"]["trips_max"]
NARROW_RATIO_MAX: float = BENCH["narrow"]["ratio_max"]
ADVERSARY_RATIO_MAX: float = BENCH["adversaries"]["ratio_max"]
NEAR_RATIO_MAX: float = BENCH["near"]["ratio_max"]
READS_TRIPS_MAX: float = BENCH["reads"]["trips_max"]
ORM_TRIPS_MAX: int = BENCH["orm"]["trips_max"]
CURSORS_TRIPS_MAX: int = BENCH["cursors"]["trips_max"]
LOBS_TRIPS_MAX: int = BENCH["lobs"]["trips_max"]
EXACT = ["--remedies", "exact"]


def main() -> int:
    options = parse()
    os.chdir(REPOSITORY)
    try:
        with tempfile.TemporaryDirectory() as folder:
            texts, missed = measure(options, Path(folder))
    except (BenchError, pgserver.ServerError, OSError, subprocess.SubprocessError) as error:
        print(f"bench: loops: {error}", file=sys.stderr)
        return 1
    print("\n\n".join(texts.values()))
    for name, text in texts.items() if options.write else ():
        records.write(name, text)
    for line in missed:
        print(f"bench: loops: missed: {line}", file=sys.stderr)
    return 1 if missed else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", action="append", choices=PROGRAMS)
    parser.add_argument("--table", action="append", choices=TABLES)
    parser.add_argument("--rounds", type=positive, default=BENCH["rounds"])
    parser.add_argument("--rows", type=positive, default=ROWS, help="employees, and queries for their salaries")
    parser.add_argument("--onetrip", type=Path, default=records.ONETRIP, metavar="PATH")
    parser.add_argument("--write", action="store_true", help="put the tables into bench/results")
    options = parser.parse_args()
    options.onetrip = options.onetrip.resolve()
    if not options.onetrip.exists():
        parser.error(f"{options.onetrip} is missing; run `make build`, or name another with --onetrip")
    if options.rows > ROWS:
        parser.error(f"clients/story/schema.sql has {ROWS} rows")
    options.driver = options.driver or list(PROGRAMS)
    return options


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def measure(options: argparse.Namespace, folder: Path) -> tuple[dict[str, str], list[str]]:
    """The tables as text by the result that they are part of, and the bars that were missed."""
    build_go(folder / "story")
    fewer = folder / "fewer.sql"
    last = 100 + 3 * options.rows
    fewer.write_text(
        f"DELETE FROM emp WHERE id > {last};\nDELETE FROM salary WHERE emp_id > {last};\nVACUUM ANALYZE;\n"
    )
    with pgserver.PgServer(load=[STORY / "schema.sql", STORY / "cursors.sql", STORY / "lobs.sql", fewer]) as server:
        bench = Bench(options, folder, os.environ | server.env())
        parts: dict[str, list[str]] = {}
        for name in options.table or TABLES:
            place = RESULT_OF.get(name, "loops")
            parts.setdefault(place, [header(options)]).append("\n".join(TABLES[name](bench)))
    return {place: "\n\n".join(texts) for place, texts in parts.items()}, bench.missed


def build_go(target: Path) -> None:
    subprocess.run(
        ["go", "build", "-buildvcs=false", "-o", target, "./story"],
        cwd=REPOSITORY / "clients/go",
        env=os.environ | {"GOTOOLCHAIN": "local"},
        check=True,
    )


def header(options: argparse.Namespace) -> str:
    version = subprocess.run([options.onetrip, "--version"], text=True, stdout=subprocess.PIPE, check=True)
    return (
        f"{datetime.date.today()}: {options.rounds} rounds, {options.rows:,} employees. {platform.system()}"
        f" {platform.release()}, {os.cpu_count()} cores, {version.stdout.strip()}, PostgreSQL 15."
    )


class Bench(Runner):
    """What the tables are made with, and which bars were missed."""

    def __init__(self, options: argparse.Namespace, folder: Path, environment: dict[str, str]) -> None:
        super().__init__(options.onetrip, folder, environment)
        self.drivers = options.driver
        self.rounds = options.rounds
        self.rows = options.rows
        self.missed: list[str] = []

    def command(self, driver: str, act: str, count: int) -> list[str]:
        words = [str(self.folder / "story") if word == GO_PROGRAM else word for word in PROGRAMS[driver]]
        return [*words, act, str(count)]

    def judge(self, is_kept: bool, what: str) -> str:
        """The last cell of a row."""
        if not is_kept:
            self.missed.append(what)
        print(f"{what}: {'kept' if is_kept else 'missed'}", file=sys.stderr, flush=True)
        return "yes" if is_kept else "no"


# ---- the tables


def story_table(bench: Bench) -> list[str]:
    """The loop of the story, near without a gateway and far with remedies."""
    lines = [
        f"Story loop at {RTT_MS:g} ms (bars: at most {STORY_RATIO_MAX:g} times the local run, {STORY_TRIPS_MAX} trips):",
        "",
        "| driver | local | far, no remedies* | `exact`, loop not seen before | ratio | trips | removed"
        " | loop seen before | ratio | trips | removed | kept |",
        "|---|" + "--:|" * 10 + "---|",
    ]
    for driver in bench.drivers:
        lines.append(story_row(bench, driver))
    part = min(SLICE, bench.rows)
    lines += ["", f"\\* measured for {part} queries, times the trips of {bench.rows:,}."]
    return lines


def story_row(bench: Bench, driver: str) -> str:
    program = bench.command(driver, "loop", bench.rows)
    link = ["--rtt", f"{RTT_MS}ms"]
    near: list[Run] = []
    new: list[Run] = []
    seen: list[Run] = []
    for _ in range(bench.rounds):
        near.append(bench.local(program))
        new.append(bench.through(program, link + EXACT))
        seen.append(bench.twice(program, link + EXACT)[1])
    local = median(near)
    cells, is_kept = [], True
    for runs in (new, seen):
        ratio, trips, removed = median(runs) / local, most_trips(runs), least_removed(runs)
        cells += [f"{median(runs):.0f} ms", f"{ratio:.2f}", str(trips), str(removed)]
        is_kept &= ratio <= STORY_RATIO_MAX and trips <= STORY_TRIPS_MAX and removed > 0
    what = f"story, {driver}: local {local:.0f} ms; {', '.join(cells)}"
    far = f"{far_seconds(bench, driver, link):.0f} s"
    return f"| {driver} | {local:.0f} ms | {far} | {' | '.join(cells)} | {bench.judge(is_kept, what)} |"


def far_seconds(bench: Bench, driver: str, link: list[str]) -> float:
    """What the whole story takes far away without remedies, from a part of it."""
    part = min(SLICE, bench.rows)
    program = bench.command(driver, "loop", part)
    bench.local(program)  # tells the checksum
    run = bench.through(program, link)
    trips = run.trips + bench.rows - part
    return run.milliseconds / 1000 * trips / run.trips


def narrow_table(bench: Bench) -> list[str]:
    """The story over a link that its bytes take long to cross."""
    lines = [
        f"Story loop at {RTT_MS:g} ms and {NARROW_MBIT} Mbit/s with `exact`, loop not seen before (bar: {NARROW_RATIO_MAX:g} times what"
        " the bytes that the program gets take to cross the link):",
        "",
        "| driver | local | `exact` | ratio to local | bytes | crossing | ratio to crossing | trips | removed | kept |",
        "|---|" + "--:|" * 8 + "---|",
    ]
    link = ["--rtt", f"{RTT_MS}ms", "--bandwidth", f"{NARROW_MBIT}mbit"]
    for driver in bench.drivers:
        program = bench.command(driver, "loop", bench.rows)
        local = median([bench.local(program) for _ in range(bench.rounds)])
        runs = [bench.through(program, link + EXACT) for _ in range(bench.rounds)]
        crossing = runs[0].received * 8 / (NARROW_MBIT * 1000)  # milliseconds
        ratio = median(runs) / crossing
        cells = [f"{local:.0f} ms", f"{median(runs):.0f} ms", f"{median(runs) / local:.2f}", f"{runs[0].received:,}"]
        cells += [f"{crossing:.0f} ms", f"{ratio:.2f}", str(most_trips(runs)), str(least_removed(runs))]
        kept = bench.judge(ratio <= NARROW_RATIO_MAX, f"narrow, {driver}: {', '.join(cells)}")
        lines.append(f"| {driver} | {' | '.join(cells)} | {kept} |")
    return lines


def adversaries_table(bench: Bench) -> list[str]:
    """Loops that cannot be taken out."""
    lines = [
        f"Adversaries, psycopg 3, {ADVERSARY_COUNT} queries (bars: at most {ADVERSARY_RATIO_MAX:g} times the run that is"
        " observed, and its trips; wasted statements: at most as many as the program sent, plus one):",
        "",
        "| loop | round trip | observed | `exact` | ratio | trips | removed | wasted | kept |",
        "|---|" + "--:|" * 7 + "---|",
    ]
    for act, name in ADVERSARIES.items():
        for rtt in ADVERSARY_RTTS_MS:
            lines.append(adversary_row(bench, act, name, rtt))
    return lines


def adversary_row(bench: Bench, act: str, name: str, rtt_ms: float) -> str:
    count = min(ADVERSARY_COUNT, max(1, bench.rows // LIST_ROWS))
    program = [PYTHON, "clients/story/adversaries.py", act, str(count)]
    link = ["--rtt", f"{rtt_ms}ms"]
    observed: list[Run] = []
    exact: list[Run] = []
    asked = in_vain = 0
    for _ in range(bench.rounds):
        start = bench.salary_scans()
        observed.append(bench.through(program, link))
        middle = bench.salary_scans()
        exact.append(bench.through(program, link + EXACT))
        asked = middle - start
        in_vain = max(in_vain, bench.salary_scans() - middle - asked)
    ratio = median(exact) / median(observed)
    is_dearer = ratio > ADVERSARY_RATIO_MAX or most_trips(exact) > most_trips(observed)
    is_kept = not is_dearer and in_vain <= asked + 1
    cells = [f"{median(observed):.0f} ms", f"{median(exact):.0f} ms", f"{ratio:.2f}"]
    cells += [f"{most_trips(observed)} → {most_trips(exact)}", str(least_removed(exact)), f"{in_vain} of {asked}"]
    kept = bench.judge(is_kept, f"adversary {act} at {rtt_ms:g} ms: {', '.join(cells)}")
    return f"| {name} | {rtt_ms:g} ms | {' | '.join(cells)} | {kept} |"


def near_table(bench: Bench) -> list[str]:
    """The story without a link."""
    lines = [
        f"Story loop without a link (bar: at most {NEAR_RATIO_MAX:g} times the run that is observed):",
        "",
        "| driver | observed [min–max] | `exact` [min–max] | ratio | kept |",
        "|---|--:|--:|--:|---|",
    ]
    for driver in bench.drivers:
        program = bench.command(driver, "loop", bench.rows)
        observed: list[Run] = []
        exact: list[Run] = []
        for number in range(bench.rounds):
            ways: list[Callable[[], None]] = [
                lambda: observed.append(bench.through(program, [])),
                lambda: exact.append(bench.through(program, EXACT)),
            ]
            for way in ways if number % 2 == 0 else reversed(ways):
                way()
        ratio = median(exact) / median(observed)
        cells = [spread(observed), spread(exact), f"{ratio:.3f}"]
        kept = bench.judge(ratio <= NEAR_RATIO_MAX, f"near, {driver}: {', '.join(cells)}")
        lines.append(f"| {driver} | {' | '.join(cells)} | {kept} |")
    return lines


def spread(runs: list[Run]) -> str:
    times = [run.milliseconds for run in runs]
    return f"{median(runs):.0f} ms [{min(times):.0f}–{max(times):.0f}]"


def reads_table(bench: Bench) -> list[str]:
    """Transactions that read one row."""
    lines = [
        f"Trips of a transaction of BEGIN, one SELECT, COMMIT at {RTT_MS:g} ms, {READS_COUNT} of them (bar, where the"
        f" statement was seen before: {READS_TRIPS_MAX:g}):",
        "",
        "| driver | observed | `exact`, statement not seen before | seen before | kept |",
        "|---|--:|--:|--:|---|",
    ]
    count = min(READS_COUNT, bench.rows)
    link = ["--rtt", f"{RTT_MS}ms"]
    for driver in bench.drivers:
        program = bench.command(driver, "reads", count)
        observed = [bench.through(program, link)]
        pairs = [bench.twice(program, link + EXACT) for _ in range(bench.rounds)]
        ways = [observed, [new for new, _ in pairs], [seen for _, seen in pairs]]
        each = [most_trips(runs) / count for runs in ways]
        cells = " | ".join(f"{trips:.2f}" for trips in each)
        kept = bench.judge(each[-1] <= READS_TRIPS_MAX, f"reads, {driver}: {cells}")
        lines.append(f"| {driver} | {cells} | {kept} |")
    return lines


def orm_table(bench: Bench) -> list[str]:
    """Lazy collections, as ORMs load them."""
    lines = [
        f"{PARENTS:,} parents with two lazy collections each at {RTT_MS:g} ms, in one REPEATABLE READ transaction (bar:"
        f" {ORM_TRIPS_MAX} trips, without those to start the ORM and to read the parents):",
        "",
        "| ORM | local | `exact`, not seen before | ratio | trips | removed | seen before | ratio | trips | removed | kept |",
        "|---|" + "--:|" * 9 + "---|",
    ]
    link = ["--rtt", f"{RTT_MS}ms"]
    for name, command in ORMS.items():
        program, idle = [*command, "parents", str(PARENTS)], [*command, "parents", "0"]
        bench.local(idle)  # tells the checksum
        start = bench.through(idle, link + EXACT).trips
        local = median([bench.local(program) for _ in range(bench.rounds)])
        pairs = [bench.twice(program, link + EXACT) for _ in range(bench.rounds)]
        cells, is_kept = [], True
        for runs in ([new for new, _ in pairs], [seen for _, seen in pairs]):
            trips, removed = most_trips(runs) - start, least_removed(runs)
            cells += [f"{median(runs):.0f} ms", f"{median(runs) / local:.2f}", str(trips), str(removed)]
            is_kept &= trips <= ORM_TRIPS_MAX and removed > 0
        kept = bench.judge(is_kept, f"orm, {name}: local {local:.0f} ms; {', '.join(cells)}")
        lines.append(f"| {name} | {local:.0f} ms | {' | '.join(cells)} | {kept} |")
    return lines


def cursors_table(bench: Bench) -> list[str]:
    """Results that are read in pieces."""
    lines = [
        f"Results read by {PIECE_ROWS} rows at {CURSORS_RTT_MS:g} ms (bar: {CURSORS_TRIPS_MAX} trips, and one for each MiB of a"
        " result that has more than one):",
        "",
        "| program | result | observed | trips | `exact` | trips | at most | ratio | kept |",
        "|---|---|" + "--:|" * 6 + "---|",
    ]
    link = ["--rtt", f"{CURSORS_RTT_MS}ms"]
    for name, words in CURSORS.items():
        for table, (rows, width) in RESULTS.items():
            program = [*words, table, str(PIECE_ROWS)]
            observed = bench.through(program, link)
            exact = [bench.through(program, link + EXACT) for _ in range(bench.rounds)]
            kept_parts = math.ceil(rows * width / KEPT_BYTES)
            most = CURSORS_TRIPS_MAX + (kept_parts if kept_parts > 1 else 0)
            cells = [f"{observed.milliseconds:.0f} ms", str(observed.trips), f"{median(exact):.0f} ms"]
            cells += [str(most_trips(exact)), str(most), f"{median(exact) / observed.milliseconds:.3f}"]
            kept = bench.judge(most_trips(exact) <= most, f"cursors, {name}, {table}: {', '.join(cells)}")
            lines.append(f"| {name} | {rows:,} rows of up to {width:,} bytes | {' | '.join(cells)} | {kept} |")
    return lines


def settings_table(bench: Bench) -> list[str]:
    """Sessions that are set or reset again and again."""
    lines = [
        f"Requests of one read at {RTT_MS:g} ms, {READS_COUNT} of them (bar: {SETTINGS_SHARE_MIN:.0%} of the trips that"
        " change nothing are gone):",
        "",
        "| program | observed | trips | `exact` | trips | at most | ratio | kept |",
        "|---|" + "--:|" * 6 + "---|",
    ]
    link = ["--rtt", f"{RTT_MS}ms"]
    for name, (words, each) in SETTINGS.items():
        program = [*words, str(READS_COUNT)]
        observed = bench.through(program, link)
        exact = [bench.through(program, link + EXACT) for _ in range(bench.rounds)]
        most = observed.trips - math.floor(SETTINGS_SHARE_MIN * each * READS_COUNT)
        cells = [f"{observed.milliseconds:.0f} ms", str(observed.trips), f"{median(exact):.0f} ms"]
        cells += [str(most_trips(exact)), str(most), f"{median(exact) / observed.milliseconds:.3f}"]
        kept = bench.judge(most_trips(exact) <= most, f"settings, {name}: {', '.join(cells)}")
        lines.append(f"| {name} | {' | '.join(cells)} | {kept} |")
    return lines


def lobs_table(bench: Bench) -> list[str]:
    """Large objects that are read one by one."""
    lines = [
        f"{LOBS_COUNT:,} large objects of 4000 bytes in one transaction at {LOBS_RTT_MS:g} ms (bar: {LOBS_TRIPS_MAX} trips, in"
        " READ COMMITTED beside one for each `lo_open`):",
        "",
        "| program | level | local | observed | trips | `exact` | trips | at most | ratio | kept |",
        "|---|---|" + "--:|" * 7 + "---|",
    ]
    link = ["--rtt", f"{LOBS_RTT_MS}ms"]
    for name, words in LOBS.items():
        opens = 2 if words[-1] == "stream" else 1  # a stream opens its object again
        for level in ("repeatable", "committed"):
            most = LOBS_TRIPS_MAX + (opens * LOBS_COUNT if level == "committed" else 0)
            program = [*words, level, str(LOBS_COUNT)]
            local = median([bench.local(program) for _ in range(bench.rounds)])
            observed = bench.through(program, link)
            exact = [bench.through(program, link + EXACT) for _ in range(bench.rounds)]
            cells = [f"{local:.0f} ms", f"{observed.milliseconds:.0f} ms", str(observed.trips)]
            cells += [f"{median(exact):.0f} ms", str(most_trips(exact)), str(most)]
            cells.append(f"{median(exact) / observed.milliseconds:.3f}")
            kept = bench.judge(most_trips(exact) <= most, f"lobs, {name}, {level}: {', '.join(cells)}")
            said = "REPEATABLE READ" if level == "repeatable" else "READ COMMITTED"
            lines.append(f"| {name} | {said} | {' | '.join(cells)} | {kept} |")
    return lines


TABLES = {
    "story": story_table,
    "narrow": narrow_table,
    "orm": orm_table,
    "adversaries": adversaries_table,
    "near": near_table,
    "reads": reads_table,
    "cursors": cursors_table,
    "lobs": lobs_table,
    "settings": settings_table,
}
