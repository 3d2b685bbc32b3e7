"""What remedies are worth at each distance: transactions per second of pgbench with and without them, and trips of one.

    bench/run remedies             # about three minutes
    bench/run remedies --rounds 9 --rtt 13 --write

One client runs BEGIN, a SELECT by key, COMMIT, through a gateway that observes and through one with `--remedies exact`,
in turns. Ratios are between medians of one run. The trips of a transaction are compared with those that the case expects:
more is an error. The table goes to standard output, and with --write into bench/results. Only the standard library is
used; `make build` has to have been run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import pgserver
import records

REPOSITORY = records.REPOSITORY
ONETRIP = records.ONETRIP
BENCH = records.case("remedies")
RTTS_MS: list[float] = BENCH["distances_ms"]
SECONDS: int = BENCH["seconds"]
TRIPS: dict[str, float] = BENCH["trips"]
TRANSACTION = "\\set id random(1, 1000)\nBEGIN;\nSELECT * FROM t WHERE id = :id;\nCOMMIT;\n"
RATE = re.compile(r"^tps = ([\d.]+)", re.MULTILINE)
PROCESSED = re.compile(r"^number of transactions actually processed: (\d+)", re.MULTILINE)


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
        "| round trip | observing, transactions/s | trips | `--remedies exact` | trips | ratio |",
        "|--:|--:|--:|--:|--:|--:|",
    ]
    with pgserver.PgServer(load=[REPOSITORY / "clients/schema.sql"]) as server, tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "transaction.sql").write_text(TRANSACTION)
        environment = os.environ | server.env()
        for rtt in options.rtt or RTTS_MS:
            runs: dict[str, list[Run]] = {"none": [], "exact": []}
            for _ in range(options.rounds):
                for remedies, found in runs.items():
                    found.append(measure(environment, Path(folder), remedies, rtt))
                    rate, trips = found[-1]
                    records.keep(
                        distance=f"{rtt:g} ms", remedies=remedies, transactions_per_second=rate, transaction_trips=trips
                    )
            lines.append(row(rtt, runs))
            print(lines[-1], file=sys.stderr, flush=True)
    table = "\n".join(lines)
    print(table)
    if options.write:
        records.write("remedies", table)
    return 0


# Transactions per second, and trips of one.
Run = tuple[float, float]


def measure(environment: dict[str, str], folder: Path, remedies: str, rtt_ms: float) -> Run:
    """One client of pgbench through a gateway of its own."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    run = [ONETRIP, "run", "--spin", "0ms", "--remedies", remedies, "--format", "json", "--output", report]
    if rtt_ms:
        run += ["--rtt", f"{rtt_ms}ms"]
    pgbench = ["pgbench", "-n", "-f", folder / "transaction.sql", "-T", str(SECONDS), "-c", "1"]
    done = subprocess.run([*run, "--", *pgbench], env=environment, text=True, capture_output=True, check=True)
    rate, processed = RATE.search(done.stdout), PROCESSED.search(done.stdout)
    if not rate or not processed:
        sys.exit(f"pgbench said something unexpected:\n{done.stdout}")
    trips = json.loads(report.read_text())["trips"]["work"] / int(processed[1])
    if trips > (most := expected(remedies, rtt_ms)):
        sys.exit(f"{remedies} at {rtt_ms:g} ms takes {trips:.2f} trips a transaction, not {most:g}")
    return float(rate[1]), trips


def expected(remedies: str, rtt_ms: float) -> float:
    """Trips that a transaction takes at most. Where the database is near, remedies may rest."""
    is_far = remedies == "exact" and rtt_ms >= TRIPS["far_ms"]
    return TRIPS["exact_max"] if is_far else TRIPS["none_max"]


def row(rtt_ms: float, runs: dict[str, list[Run]]) -> str:
    rates = {remedies: [rate for rate, _ in found] for remedies, found in runs.items()}
    cells = []
    for remedies, found in rates.items():
        trips = statistics.median(trips for _, trips in runs[remedies])
        cells.append(f"{records.spread(found, '{:.0f}')} | {trips:.2f}")
    ratio = statistics.median(rates["exact"]) / statistics.median(rates["none"])
    return f"| {rtt_ms:g} ms | {' | '.join(cells)} | {ratio:.2f} |"
