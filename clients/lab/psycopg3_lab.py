#!/usr/bin/env python3
"""The lab's work in psycopg 3: statement by statement, and in its pipeline mode."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial

import psycopg
from lab import INSERT, SELECT, UPDATE, Round, arguments, keys, statements, turns, units


def read(connection: psycopg.Connection, mode: str, count: int, session: int, _turn: int) -> None:
    statement = SELECT.format("%s")
    with Round() as this:
        if mode == "blocking":
            for key in keys(count, session):
                this.rows += len(connection.execute(statement, (key,), prepare=True).fetchall())
        else:
            with connection.pipeline():
                cursors = [connection.execute(statement, (key,), prepare=True) for key in keys(count, session)]
                this.rows = sum(len(cursor.fetchall()) for cursor in cursors)


def write(connection: psycopg.Connection, mode: str, count: int, session: int, turn: int) -> None:
    insert, update = INSERT.format("%s"), UPDATE.format("%s")
    with Round(), connection.pipeline() if mode == "pipeline" else nullcontext(), connection.transaction():
        for order, stocks in units(count, turn, session):
            connection.execute(insert, (order,), prepare=True)
            for stock in stocks:
                connection.execute(update, (stock,), prepare=True)


def play(
    told: list[tuple[str, list[int]]], connection: psycopg.Connection, mode: str, count: int, _session: int, _turn: int
) -> None:
    def execute(text: str, values: list[int]) -> psycopg.RawCursor:
        return psycopg.RawCursor(connection).execute(text, values or None, prepare=bool(values))

    with Round() as this:
        for _ in range(count):
            with connection.pipeline() if mode == "pipeline" else nullcontext():
                # Those with values return rows.
                cursors = [(execute(text, values), bool(values)) for text, values in told]
            this.rows += sum(len(cursor.fetchall()) for cursor, returns in cursors if returns)


def main() -> None:
    workload, mode, count, session = arguments(("blocking", "pipeline"))
    work = {"pipeline-read": read, "pipeline-dml": write}.get(workload) or partial(play, statements())
    with psycopg.connect(autocommit=True) as connection:
        for turn in turns():
            work(connection, mode, count, session, turn)


if __name__ == "__main__":
    main()
