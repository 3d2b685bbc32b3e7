#!/usr/bin/env python3
"""Loops of psycopg 3 that cannot be taken out, or only a part of them: what guessing wrong costs is measured here."""

from __future__ import annotations

import random
from itertools import islice

import psycopg
from story import EMPLOYEES, Story, arguments

EMPLOYEES_FROM = "SELECT id, name FROM emp WHERE id >= %s ORDER BY id LIMIT 20"
LIST_ROWS = 20
SALARY = "SELECT amount FROM salary WHERE emp_id = %s"
NOTE = "INSERT INTO note (emp_id, text) VALUES (%s, %s)"
SEED = 4


class Adversary:
    """One transaction that asks for the salary of `count` employees."""

    def __init__(self, connection: psycopg.Connection, count: int, story: Story) -> None:
        self.cursor = connection.cursor()
        self.count = count
        self.story = story
        self.random = random.Random(SEED)

    def employees(self) -> list[tuple[int, str]]:
        return self.cursor.execute(EMPLOYEES).fetchall()

    def ask(self, employee: int) -> None:
        self.cursor.execute(SALARY, (employee,))
        self.story.lines += [f"{employee} {amount}" for (amount,) in self.cursor.fetchall()]

    def breaks(self) -> None:
        """A list each time, of which only the first row is followed."""
        for number in range(self.count):
            first = 103 + 3 * LIST_ROWS * number
            for employee, _ in self.cursor.execute(EMPLOYEES_FROM, (first,)).fetchall():
                self.ask(employee)
                break

    def skips(self) -> None:
        """Each row is followed or not, at random."""
        chosen = (employee for employee, _ in self.employees() if self.random.random() < 0.5)
        for employee in islice(chosen, self.count):
            self.ask(employee)

    def shuffled(self) -> None:
        """The rows in an order of the program's own."""
        employees = self.employees()[: self.count]
        self.random.shuffle(employees)
        for employee, _ in employees:
            self.ask(employee)

    def writes(self) -> None:
        """A write behind each read: whatever was read ahead is void."""
        for employee, name in self.employees()[: self.count]:
            self.ask(employee)
            self.cursor.execute(NOTE, (employee, name))

    def unrelated(self) -> None:
        """Ids that no result has told."""
        for number in self.random.sample(range(self.count), self.count):
            self.ask(103 + 3 * number)


ACTS = ("breaks", "skips", "shuffled", "writes", "unrelated")


def main() -> None:
    act, count = arguments(ACTS)
    story = Story()
    with psycopg.connect("") as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        adversary = Adversary(connection, count, story)
        story.begin()
        getattr(adversary, act)()
        connection.commit()
        story.end()
    story.print()


main()
