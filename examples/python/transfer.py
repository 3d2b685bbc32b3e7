"""Moves money by one trip: BEGIN, two updates and COMMIT travel together.

PG* variables say where the server is; `onetrip.connect()` reads them as libpq does.
"""

from __future__ import annotations

import onetrip


def transfer(connection: onetrip.Connection, source: int, target: int, amount: int) -> None:
    """All of it or nothing."""
    with connection.pipeline() as pipeline:
        pipeline.execute("UPDATE account SET balance = balance - %s WHERE id = %s", (amount, source))
        pipeline.execute("UPDATE account SET balance = balance + %s WHERE id = %s", (amount, target))
        pipeline.commit()


def main() -> None:
    with onetrip.connect() as connection:
        connection.execute("CREATE TEMP TABLE account (id int PRIMARY KEY, balance int CHECK (balance >= 0))")
        connection.executemany("INSERT INTO account VALUES (%s, %s)", [(1, 100), (2, 0)])
        connection.commit()
        transfer(connection, 1, 2, 70)
        try:
            transfer(connection, 1, 2, 70)
        except onetrip.errors.CheckViolation as error:
            print("refused:", error.diag.message_primary)
            connection.rollback()
        print(connection.execute("SELECT id, balance FROM account ORDER BY id").fetchall())


if __name__ == "__main__":
    main()
