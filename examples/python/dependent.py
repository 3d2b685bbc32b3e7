"""Fetch, process, insert: operations that need the result of another, in two trips.

The operations of a block are independent; what depends on a result waits for it by `process`.
"""

from __future__ import annotations

import onetrip


def main() -> None:
    with onetrip.connect() as connection:
        connection.execute(
            "CREATE TEMP TABLE item AS SELECT id, id * 10 AS price FROM generate_series(1, 5) id;"
            "CREATE TEMP TABLE raised (id int, price int)"
        )
        connection.commit()
        with connection.pipeline() as pipeline:
            items = pipeline.execute("SELECT id, price FROM item WHERE price > %s", (20,))
            pipeline.process(items)  # the first trip
            for id, price in items.fetchall():
                pipeline.execute("INSERT INTO raised VALUES (%s, %s)", (id, price + 1))
            pipeline.commit()  # the second, at the end of the block
        print(connection.execute("SELECT * FROM raised ORDER BY id").fetchall())


if __name__ == "__main__":
    main()
