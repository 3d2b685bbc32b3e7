"""Many rows by `executemany` of the Python package, as edge/client/examples/measure.rs does with the Rust client.

    python3 bench/client/many.py WAY:ROWS ROUNDS

WAY is what `by` takes. Prints a line per round: its seconds, the client's CPU in microseconds per row, and the rows that
the server counted. PG's variables say where the server is."""

from __future__ import annotations

import sys
import time

import onetrip

INSERT = "INSERT INTO measured (id, a, b) VALUES (%s, %s, %s)"
TEXT = "forty characters of text, more or less...."
CREATE = "CREATE TEMP TABLE measured (id int PRIMARY KEY, a int, b text)"
# What is prepared and what is awake is not what is measured.
WARMUP = 2


def main() -> None:
    (work, rounds) = sys.argv[1:]
    by, count = work.split(":")
    rows = [(id, 0, TEXT) for id in range(int(count))]
    with onetrip.connect(autocommit=True) as connection:
        connection.execute(CREATE)
        for round in range(int(rounds) + WARMUP):
            connection.execute("TRUNCATE measured")
            cursor = connection.cursor()
            began, cpu = time.perf_counter(), time.process_time()
            cursor.executemany(INSERT, rows, by=by)
            seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
            if round >= WARMUP:
                print(f"{seconds:.7f} {cpu * 1e6 / len(rows):.4f} {cursor.rowcount}")


if __name__ == "__main__":
    main()
