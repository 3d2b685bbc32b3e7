"""Instructions of user code for a query, in the gateway and in what stands in its place: counted by callgrind, whatever else the
machine does. System calls and the kernel's work are not in them.

    bench/run instructions             # about three minutes on two idle cores
    bench/run instructions --write

Each way runs `pgbench -S` with one client twice, under valgrind. What the second run takes more is divided by the queries that
it has more: start and login are the same in both. onetrip's report at the end is left out, and it does not spin here.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import gateway
import pgserver
import records
from proxied import (
    HAPROXY,
    RELAY,
    Bench,
    BenchError,
    build_onetrip,
    build_relay,
    find,
    install_missing,
    versions,
    wait_for_port,
)
from records import table_line

CASE = records.case("instructions")
PACKAGES = {"valgrind": "valgrind", "haproxy": "haproxy", "cc": "gcc"}
HEADINGS = ["mode", "way", "instructions a query", "ratio to PgBouncer"]
# Start of a line of callgrind_annotate: a count, its share, and FILE:FUNCTION.
LINE = re.compile(r"\s*([\d,]+) \([^)]*\)\s+[^:]*:(\S.*)")


class Counted(Bench):
    """The gateway's bench, whose proxies run under callgrind."""

    def __init__(self) -> None:
        super().__init__("gateway", gateway.PgBench(), "")

    def count(self, server: pgserver.Address, way: str, mode: str, queries: int) -> dict[str, int]:
        """Instructions of a run of so many queries: in all, and by part."""
        with tempfile.TemporaryDirectory(prefix="onetrip-bench-") as name:
            folder, port = Path(name), pgserver.free_port()
            command, identity = self.command(way, server, port, folder)
            if way.startswith("onetrip"):
                command.append("--spin=0ms")
            folder.chmod(0o777)  # PgBouncer does not run as root
            profile, log = folder / "profile", folder / "log"
            callgrind = [find("valgrind"), "--tool=callgrind", f"--callgrind-out-file={profile}"]
            with log.open("wb") as said:
                child = subprocess.Popen(
                    callgrind + command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=folder, **identity
                )
            try:
                wait_for_port(child, port, log)
                options = ["--select-only", "--no-vacuum", f"--protocol={mode}", f"--transactions={queries}"]
                self.load.pgbench(server, port, options)
            finally:
                child.send_signal(signal.SIGTERM if way in (HAPROXY, RELAY) else signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(60)
                child.kill()
                child.wait()
            if not profile.exists() or not profile.stat().st_size:
                raise BenchError(f"{way} left no profile:\n{log.read_text(errors='replace')}")
            return counts(profile, CASE["parts"] if way.startswith("onetrip") else {})


def counts(profile: Path, parts: dict[str, str]) -> dict[str, int]:
    annotate = [find("callgrind_annotate"), "--inclusive=yes", "--threshold=100", str(profile)]
    lines = subprocess.run(annotate, check=True, capture_output=True, text=True).stdout.splitlines()
    total = next(line for line in profile.read_text().splitlines() if line.startswith("totals:"))
    found = {"all": int(total.split()[1])}
    matches = [match for line in lines if (match := LINE.match(line))]
    inclusive = {match[2].split(" [")[0]: int(match[1].replace(",", "")) for match in reversed(matches)}
    for part, function in parts.items():
        if function not in inclusive:
            raise BenchError(f"the profile has no {function}, of bench/cases/instructions.toml")
        found[part] = inclusive[function]
    if parts:
        found["all"] -= inclusive[CASE["report"]]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--way", action="append", choices=CASE["ways"], help="default: all")
    parser.add_argument("--mode", action="append", choices=CASE["modes"], help="default: both")
    parser.add_argument("--write", action="store_true", help="put the tables into bench/results")
    parser.add_argument("--no-build", action="store_true", help="use target/release/onetrip as it is")
    options = parser.parse_args()
    ways, modes = options.way or CASE["ways"], options.mode or CASE["modes"]
    bench = Counted()
    try:
        install_missing(PACKAGES | bench.load.packages)
        if not options.no_build:
            build_onetrip()
        build_relay()
        taken = measure(bench, ways, modes)
    except (BenchError, pgserver.ServerError, subprocess.CalledProcessError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    asked = versions(bench.load.versions)
    records.note(versions=asked)
    text = report(taken, asked)
    print(text)
    if options.write:
        records.write("instructions", text)
    return 0


def measure(bench: Counted, ways: list[str], modes: list[str]) -> dict[tuple[str, str], dict[str, float]]:
    """By mode and way: instructions of a query, in all and by part."""
    few, many = CASE["queries"]
    taken = {}
    with bench.load.server() as server:
        bench.load.prepare(server, CASE["scale"])
        for mode in modes:
            for way in ways:
                first, second = (bench.count(server, way, mode, queries) for queries in (few, many))
                each = {part: (second[part] - first[part]) / (many - few) for part in second}
                taken[mode, way] = each
                records.keep(mode=mode, way=way, **{f"instructions {part}": value for part, value in each.items()})
                print(f"{mode} {way}: {each['all']:.0f}", file=sys.stderr, flush=True)
    return taken


def report(taken: dict[tuple[str, str], dict[str, float]], asked: dict[str, str]) -> str:
    lines = [", ".join(f"{name} {version}" for name, version in asked.items()) + ".", ""]
    lines += [table_line(HEADINGS), "|---" * len(HEADINGS) + "|"]
    for (mode, way), each in taken.items():
        peer = taken.get((mode, gateway.PEER))
        ratio = f"{each['all'] / peer['all']:.2f}" if peer else ""
        lines.append(table_line([mode, way, f"{each['all']:,.0f}", ratio]))
    lines += ["", table_line(["mode", "way", *CASE["parts"]]), "|---" * (2 + len(CASE["parts"])) + "|"]
    for (mode, way), each in taken.items():
        if way.startswith("onetrip"):
            lines.append(table_line([mode, way, *(f"{each[part]:,.0f}" for part in CASE["parts"])]))
    return "\n".join(lines) + "\n"
