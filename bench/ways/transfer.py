"""How fast large results and COPY pass: direct, through onetrip, PgBouncer, HAProxy and a relay that does nothing else.

    bench/run transfer                 # about three minutes
    bench/run transfer --case result --rounds 3
    bench/run transfer --write

One client of raw sockets takes or sends 1 GiB in one statement. Server, proxy and client run on all cores. The rate counts the
bytes of the rows; a ratio is the median of the rounds' ratios, and in each round the ways take turns. What a proxy holds is the
most memory that it had in the transfer less what it had before (VmHWM and VmRSS of proc(5)).
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import re
import signal
import socket
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import gateway
import pgserver
import records
from proxied import (
    DIRECT,
    PACKAGES,
    RELAY,
    Bench,
    BenchError,
    build_onetrip,
    build_relay,
    cpu_seconds,
    install_missing,
    machine,
    measured_on,
    versions,
)
from records import spread, table_line

DATA = records.case("transfer")
MIB = 1 << 20
HEADINGS = ["case", "way", "n", "MB/s median [min–max]", "ratio to relay", "proxy CPU s/GiB", "held MiB"]
BAR_HEADINGS = ["bar", "case", "measured", "bar at", "kept"]


class Proxies(Bench):
    """The gateway's bench, of which only the proxies are used."""

    def __init__(self) -> None:
        super().__init__("gateway", gateway.PgBench(), "")


class Client:
    """A client that looks at nothing but the end of what comes."""

    def __init__(self, server: pgserver.Address, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.room = bytearray(DATA["client_bytes"])
        words = f"user\0{server.user}\0database\0{server.dbname}\0\0".encode()
        self.socket.sendall(struct.pack(">II", len(words) + 8, 0x30000) + words)
        self.until_ready()

    def until_ready(self) -> int:
        """Reads until the server is ready; how many bytes came."""
        came, end = 0, b""
        while not end.endswith(b"Z\0\0\0\5I"):
            count = self.socket.recv_into(self.room)
            if not count:
                raise BenchError("the server ended the connection")
            came += count
            end = (end + self.room[max(0, count - 6) : count])[-6:]
        return came

    def query(self, text: str) -> None:
        body = text.encode() + b"\0"
        self.socket.sendall(b"Q" + struct.pack(">I", len(body) + 4) + body)

    def copy(self, row_bytes: int, rows: int) -> None:
        """Sends rows, many in a write, each in a message of its own."""
        row = b"x" * (row_bytes - 1) + b"\n"
        message = b"d" + struct.pack(">I", len(row) + 4) + row
        at_once = max(1, DATA["client_bytes"] // len(message))
        many = memoryview(message * at_once)
        for start in range(0, rows, at_once):
            self.socket.sendall(many[: min(at_once, rows - start) * len(message)])
        self.socket.sendall(b"c\0\0\0\4")


def transfer(server: pgserver.Address, port: int, case: dict[str, object], process: int | None) -> dict[str, float]:
    row_bytes, rows = case["row_bytes"], case["bytes"] // case["row_bytes"]
    client = Client(server, port)
    try:
        held, cpu, started = memory("VmRSS", process), cpu_seconds(process), time.monotonic()
        client.query(case["sql"].format(row_bytes=row_bytes, rows=rows))
        if case.get("copies_in"):
            client.copy(row_bytes, rows)
        came = client.until_ready()
        elapsed = time.monotonic() - started
    finally:
        client.socket.close()
    if not case.get("copies_in") and came < row_bytes * rows:
        raise BenchError(f"{came} bytes came of {row_bytes * rows}")
    return {
        "megabytes_per_second": row_bytes * rows / elapsed / 1e6,
        "proxy_cpu_seconds": cpu_seconds(process) - cpu,
        "held_mib": max(0.0, memory("VmHWM", process) - held) / MIB,
    }


def memory(field: str, process: int | None) -> int:
    """Bytes of a line of /proc/PID/status; none of no process."""
    if process is None:
        return 0
    return int(re.search(rf"{field}:\s*(\d+) kB", Path(f"/proc/{process}/status").read_text())[1]) * 1024


@contextlib.contextmanager
def prepared() -> Iterator[pgserver.Address]:
    with pgserver.PgServer(auth="trust") as server:
        client = Client(server, server.port)
        client.query("CREATE UNLOGGED TABLE taken (value text)")
        client.until_ready()
        client.socket.close()
        yield server


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=DATA["rounds"], help="samples of each way")
    parser.add_argument("--case", action="append", choices=DATA["case"], help="default: all")
    parser.add_argument("--way", action="append", choices=DATA["ways"], help="default: all")
    parser.add_argument("--write", action="store_true", help="put the tables into bench/results")
    parser.add_argument("--no-build", action="store_true", help="use target/release/onetrip as it is")
    options = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pgserver.raise_stop)
    bench = Proxies()
    try:
        install_missing(PACKAGES | bench.load.packages)
        if not options.no_build:
            build_onetrip()
        build_relay()
        taken = measure(bench, options)
    except (BenchError, pgserver.ServerError, subprocess.CalledProcessError, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    asked, where = versions(bench.load.versions), machine()
    records.note(versions=asked, machine=where)
    text = "\n".join(
        [
            f"{datetime.date.today().isoformat()}: {options.rounds} rounds.",
            *measured_on(where, asked),
            "",
            *report(taken),
        ]
    )
    print(text)
    if options.write:
        records.write("transfer", text)
    return 1 if "| no |" in text else 0


Taken = dict[tuple[str, str], list[dict[str, float]]]


def measure(bench: Bench, options: argparse.Namespace) -> Taken:
    cases, ways = options.case or list(DATA["case"]), options.way or DATA["ways"]
    taken: Taken = {(case, way): [] for case in cases for way in ways}
    with prepared() as server:
        for number in range(options.rounds):
            for case in cases:
                shift = number % len(ways)
                for way in ways[shift:] + ways[:shift]:
                    with bench.running(way, server, None) as (process, port):
                        sample = transfer(server, port, DATA["case"][case], process)
                    taken[case, way].append(sample)
                    records.keep(case=case, way=way, round=str(number), **sample)
                    print(f"{case} {way}: {sample['megabytes_per_second']:.0f} MB/s", file=sys.stderr, flush=True)
    return taken


def report(taken: Taken) -> list[str]:
    lines = [table_line(HEADINGS), "|---" * len(HEADINGS) + "|"]
    bar, bars = DATA["bar"], []
    for (case, way), samples in taken.items():
        rates = [sample["megabytes_per_second"] for sample in samples]
        peers = taken.get((case, RELAY), [])
        ratios = [rate / peer["megabytes_per_second"] for rate, peer in zip(rates, peers, strict=bool(peers))]
        ratio = statistics.median(ratios) if ratios else None
        gib = DATA["case"][case]["bytes"] / (1 << 30)
        cpu = statistics.median(sample["proxy_cpu_seconds"] for sample in samples) / gib
        held = max(sample["held_mib"] for sample in samples)
        cells = [case, way, str(len(samples)), spread(rates, "{:.0f}"), "" if ratio is None else f"{ratio:.2f}"]
        lines.append(table_line([*cells, *(["", ""] if way == DIRECT else [f"{cpu:.2f}", f"{held:.1f}"])]))
        if way == bar["way"]:
            for name, measured, limit, is_kept in [
                (f"rate, of {bar['beside']}'s", ratio, f"≥ {bar['rate_min']}", ratio and ratio >= bar["rate_min"]),
                ("held MiB", held, f"≤ {bar['held_max_mib']}", held <= bar["held_max_mib"]),
            ]:
                if measured is not None:
                    bars.append(table_line([name, case, f"{measured:.2f}", limit, "yes" if is_kept else "no"]))
    return [*lines, "", table_line(BAR_HEADINGS), "|---" * len(BAR_HEADINGS) + "|", *bars]
