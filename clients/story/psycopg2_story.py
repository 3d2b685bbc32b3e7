#!/usr/bin/env python3
"""The story loop of psycopg2: parameters are inlined as literals, every statement is a simple query."""

from __future__ import annotations

from itertools import islice

import psycopg2
import psycopg2.extensions
from story import EMPLOYEES, Story, arguments

SALARY = "SELECT amount FROM salary WHERE emp_id = %s"


def loop(connection: psycopg2.extensions.connection, count: int, story: Story) -> None:
    connection.set_session(isolation_level="REPEATABLE READ")
    cursor = connection.cursor()
    story.begin()
    cursor.execute(EMPLOYEES)
    for employee, name in islice(cursor.fetchall(), count):
        story.lines.append(f"{employee} {name}")
        cursor.execute(SALARY, (employee,))
        story.lines += [str(amount) for (amount,) in cursor.fetchall()]
    connection.commit()
    story.end()


def reads(connection: psycopg2.extensions.connection, count: int, story: Story) -> None:
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
    with psycopg2.connect("") as connection:
        {"loop": loop, "reads": reads}[act](connection, count, story)
    story.print()


main()
