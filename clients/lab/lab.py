"""What the lab's Python programs share: arguments, the work, and a line for each round."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from itertools import takewhile
from typing import Self

SELECT = "SELECT id, note FROM items WHERE id = {}"
INSERT = "INSERT INTO orders VALUES ({}, 0)"
UPDATE = "UPDATE stock SET quantity = quantity + 1 WHERE id = {}"


def arguments(modes: tuple[str, ...]) -> tuple[str, str, int, int]:
    """Workload, mode, N and the session's number."""
    if len(sys.argv) != 5 or sys.argv[2] not in modes:
        sys.exit(f"usage: {sys.argv[0]} pipeline-read|pipeline-dml|pipeline-oltp {'|'.join(modes)} N SESSION")
    return sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])


def statements() -> list[tuple[str, list[int]]]:
    """What the lab tells first for pipeline-oltp: a statement a line, its values behind tabs, up to an empty line."""
    lines = takewhile(lambda line: line != "\n", iter(sys.stdin.readline, ""))
    told = (line.rstrip("\n").split("\t") for line in lines)
    return [(text, [int(value) for value in values]) for text, *values in told]


def turns() -> Iterator[int]:
    """Counts the rounds: there is one for each line of the input."""
    for turn, _ in enumerate(iter(sys.stdin.readline, "")):
        yield turn


def keys(count: int, session: int) -> list[int]:
    return [1 + (n * 7919 + session * 131) % 10000 for n in range(count)]


def units(count: int, turn: int, session: int) -> list[tuple[int, list[int]]]:
    """An order's number and the four stocks that it changes; each session has its own."""
    first = session * 1_000_000 + turn * count
    stocks = [[session * 100 + 1 + (unit * 4 + line) % 100 for line in range(4)] for unit in range(count)]
    return list(zip(range(first, first + count), stocks, strict=True))


class Round:
    """Prints its line when it ends well."""

    def __enter__(self) -> Self:
        self.rows = 0
        self.began, self.used = time.perf_counter_ns(), time.process_time_ns()
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is None:
            ns, cpu_ns = time.perf_counter_ns() - self.began, time.process_time_ns() - self.used
            print(json.dumps({"rows": self.rows, "ns": ns, "cpu_ns": cpu_ns}), flush=True)
