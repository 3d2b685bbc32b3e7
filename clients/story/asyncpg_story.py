#!/usr/bin/env python3
"""The story loop of asyncpg: a statement is prepared before its first use, and kept."""

from __future__ import annotations

import asyncio
from itertools import islice

import asyncpg
from story import EMPLOYEES, Story, arguments

SALARY = "SELECT amount FROM salary WHERE emp_id = $1"


async def loop(connection: asyncpg.Connection, count: int, story: Story) -> None:
    story.begin()
    async with connection.transaction(isolation="repeatable_read"):
        for employee, name in islice(await connection.fetch(EMPLOYEES), count):
            story.lines.append(f"{employee} {name}")
            for (amount,) in await connection.fetch(SALARY, employee):
                story.lines.append(str(amount))
    story.end()


async def reads(connection: asyncpg.Connection, count: int, story: Story) -> None:
    story.begin()
    for number in range(1, count + 1):
        async with connection.transaction():
            for (amount,) in await connection.fetch(SALARY, 100 + 3 * number):
                story.lines.append(str(amount))
    story.end()


async def main() -> None:
    act, count = arguments(("loop", "reads"))
    story = Story()
    connection = await asyncpg.connect()
    try:
        await {"loop": loop, "reads": reads}[act](connection, count, story)
    finally:
        await connection.close()
    story.print()


asyncio.run(main())
