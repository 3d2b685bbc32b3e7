"""What the Python programs share: their arguments, the clock, the checksum."""

from __future__ import annotations

import hashlib
import sys
import time

EMPLOYEES = "SELECT id, name FROM emp ORDER BY id"


class Story:
    """What was read, and how long that took."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.began = 0.0
        self.milliseconds = 0.0

    def begin(self) -> None:
        self.began = time.perf_counter()

    def end(self) -> None:
        self.milliseconds = (time.perf_counter() - self.began) * 1000

    def print(self) -> None:
        checksum = hashlib.sha256("\n".join(self.lines).encode()).hexdigest()[:16]
        print(f"{self.milliseconds:.1f} {checksum}")


def arguments(acts: tuple[str, ...]) -> tuple[str, int]:
    """The act and its count; exits with 2 where they are neither."""
    if len(sys.argv) != 3 or sys.argv[1] not in acts or not sys.argv[2].isdecimal():
        print(f"usage: {sys.argv[0]} {'|'.join(acts)} COUNT", file=sys.stderr)
        sys.exit(2)
    return sys.argv[1], int(sys.argv[2])
