#!/usr/bin/env python3
"""The story loop of psycopg 3: parameters are bound, and a statement is prepared when it runs for the sixth time."""

from __future__ import annotations

from itertools import islice

import psycopg
from story import EMPLOYEES, Story, arguments

SALARY = "SELECT amount FROM salary WHERE emp_id = %s"


def loop(connection: psycopg.Connection, count: int, story: Story) -> None:
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    cursor = connection.cursor()
    story.begin()
    cursor.execute(EMPLOYEES)
    for employee, name in islice(cursor.fetchall(), count):
        story.lines.append(f"{employee} {name}")
        cursor.execute(SALARY, (employee,))
        story.lines += [str(amount) for (amount,) in cursor.fetchall()]
    connection.commit()
    story.end()


def reads(connection: psycopg.Connection, count: int, story: Story) -> None:
    cursor = connection.cursor()
    story.begin()
    for number in range(1, count + 1):
        cursor.execute(SALARY, (100 + 3 * number,))
        story.lines += [str(amount) for (amount,) in cursor.fetchall()]
        connection.commit()
    story.end()


def main() -> None:
    act, count = arguments(("loop", "reads"))
    story = Story()
    with psycopg.connect("") as connection:
        {"loop": loop, "reads": reads}[act](connection, count, story)
    story.print()


main()
