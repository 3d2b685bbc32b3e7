"""What remedies are worth at each distance: transactions per second of pgbench with and without them.

    bench/run remedies             # about three minutes
    bench/run remedies --rounds 9 --rtt 13 --write

One client runs BEGIN, a SELECT by key, COMMIT, through a gateway that observes and through one with `--remedies exact`,
in turns. Ratios are between medians of one run. The table goes to standard output, and with --write into
docs/benchmarks.md. Only the standard library is used; `make build` has to have been run.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile

import pgserver
import records

REPOSITORY = records.REPOSITORY
ONETRIP = records.ONETRIP
BENCH = records.case("remedies")
RTTS_MS: list[float] = BENCH["distances_ms"]
SECONDS: int = BENCH["seconds"]
TRANSACTION = "\\set id random(1, 1000)\nBEGIN;\nSELECT * FROM t WHERE id = :id;\nCOMMIT;\n"
LISTENING = re.compile(r"listening at 127\.0\.0\.1:(\d+)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rtt", action="append", type=float, metavar="MS")
    parser.add_argument("--rounds", type=int, default=BENCH["rounds"])
    parser.add_argument("--write", action="store_true", help="put the table into bench/results")
    options = parser.parse_args()
    if not ONETRIP.exists():
        print(f"bench: remedies: {ONETRIP} is missing; run `make build`", file=sys.stderr)
        return 1
    lines = [
        "| round trip | observing, transactions/s | `--remedies exact` | ratio |",
        "|--:|--:|--:|--:|",
    ]
    with (
        pgserver.PgServer(load=[REPOSITORY / "clients/schema.sql"]) as server,
        tempfile.NamedTemporaryFile("w", suffix=".sql") as script,
    ):
        script.write(TRANSACTION)
        script.flush()
        environment = os.environ | server.env()
        for rtt in options.rtt or RTTS_MS:
            rates: dict[str, list[float]] = {"none": [], "exact": []}
            for _ in range(options.rounds):
                for remedies, found in rates.items():
                    found.append(measure(environment, script.name, remedies, rtt))
                    records.keep(distance=f"{rtt:g} ms", remedies=remedies, transactions_per_second=found[-1])
            lines.append(row(rtt, rates))
            print(lines[-1], file=sys.stderr, flush=True)
    table = "\n".join(lines)
    print(table)
    if options.write:
        records.write("remedies", table)
    return 0


def measure(environment: dict[str, str], script: str, remedies: str, rtt_ms: float) -> float:
    """Transactions per second of one client."""
    command = [ONETRIP, "gateway", "--listen", "127.0.0.1:0", "--spin", "0ms", "--remedies", remedies, "-o", os.devnull]
    if rtt_ms:
        command += ["--rtt", f"{rtt_ms}ms"]
    with subprocess.Popen(command, env=environment, text=True, stderr=subprocess.PIPE) as gateway:
        try:
            port = next(found[1] for line in gateway.stderr if (found := LISTENING.search(line)))
            near = environment | {"PGHOST": "127.0.0.1", "PGPORT": port, "PGSSLMODE": "disable"}
            pgbench = ["pgbench", "-n", "-f", script, "-T", str(SECONDS), "-c", "1"]
            done = subprocess.run(pgbench, env=near, text=True, capture_output=True, check=True)
        finally:
            gateway.send_signal(signal.SIGINT)
            gateway.stderr.read()
    return float(re.search(r"^tps = ([\d.]+)", done.stdout, re.MULTILINE)[1])


def row(rtt_ms: float, rates: dict[str, list[float]]) -> str:
    shown = [
        f"{statistics.median(found):.0f} [{min(found):.0f}–{max(found):.0f}]" for found in rates.values()
    ]
    ratio = statistics.median(rates["exact"]) / statistics.median(rates["none"])
    return f"| {rtt_ms:g} ms | {shown[0]} | {shown[1]} | {ratio:.2f} |"
