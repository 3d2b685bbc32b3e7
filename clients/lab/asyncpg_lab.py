#!/usr/bin/env python3
"""The lab's work in asyncpg: statement by statement, and with executemany and fetchmany.

executemany reorders the work: first all inserts, then all updates.
"""

from __future__ import annotations

import asyncio
from functools import partial

import asyncpg
from lab import INSERT, SELECT, UPDATE, Round, arguments, keys, statements, turns, units


async def read(connection: asyncpg.Connection, mode: str, count: int, session: int, _turn: int) -> None:
    statement = SELECT.format("$1")
    with Round() as this:
        if mode == "blocking":
            for key in keys(count, session):
                this.rows += len(await connection.fetch(statement, key))
        else:
            this.rows = len(await connection.fetchmany(statement, [(key,) for key in keys(count, session)]))


async def write(connection: asyncpg.Connection, mode: str, count: int, session: int, turn: int) -> None:
    insert, update = INSERT.format("$1"), UPDATE.format("$1")
    with Round():
        async with connection.transaction():
            work = units(count, turn, session)
            if mode == "many":
                await connection.executemany(insert, [(order,) for order, _ in work])
                await connection.executemany(update, [(stock,) for _, stocks in work for stock in stocks])
                return
            for order, stocks in work:
                await connection.execute(insert, order)
                for stock in stocks:
                    await connection.execute(update, stock)


async def play(
    told: list[tuple[str, list[int]]], connection: asyncpg.Connection, _mode: str, count: int, _session: int, _turn: int
) -> None:
    with Round() as this:
        for _ in range(count):
            for text, values in told:
                if values:
                    this.rows += len(await connection.fetch(text, *values))
                else:
                    await connection.execute(text)


async def main() -> None:
    workload, mode, count, session = arguments(("blocking", "many"))
    work = {"pipeline-read": read, "pipeline-dml": write}.get(workload) or partial(play, statements())
    connection = await asyncpg.connect()
    try:
        for turn in turns():
            await work(connection, mode, count, session, turn)
    finally:
        await connection.close()


if __name__ == "__main__":
    asyncio.run(main())
