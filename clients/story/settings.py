#!/usr/bin/env python3
"""Sessions that are set or reset for each request: `settings.py asyncpg-pool|psycopg3-tenant COUNT`, so many requests."""

from __future__ import annotations

import asyncio

from story import Story, arguments

SALARY = "SELECT amount FROM salary WHERE emp_id = "
EMPLOYEE = 103
TENANT = ("SET search_path TO public", "SET statement_timeout = 30000")


async def asyncpg_pool(count: int, story: Story) -> None:
    """Each request borrows the pool's connection, which is reset when it goes back."""
    import asyncpg

    async with asyncpg.create_pool(min_size=1, max_size=1) as pool:
        story.begin()
        for _ in range(count):
            async with pool.acquire() as connection:
                story.lines.append(str(await connection.fetchval(f"{SALARY}$1", EMPLOYEE)))
        story.end()


def psycopg3_tenant(count: int, story: Story) -> None:
    """Each request sets its tenant's schema and limit first."""
    import psycopg

    with psycopg.connect("", autocommit=True) as connection:
        story.begin()
        for _ in range(count):
            for setting in TENANT:
                connection.execute(setting)
            row = connection.execute(f"{SALARY}%s", (EMPLOYEE,)).fetchone()
            story.lines += [str(value) for value in row or ()]
        story.end()


def main() -> None:
    program, count = arguments(("asyncpg-pool", "psycopg3-tenant"))
    story = Story()
    if program == "asyncpg-pool":
        asyncio.run(asyncpg_pool(count, story))
    else:
        psycopg3_tenant(count, story)
    story.print()


main()
