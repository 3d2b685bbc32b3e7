"""Waits until the machine does little else: what a program does in how much time depends on that."""

from __future__ import annotations

import os
import time

# Of all processors, so much does nothing.
IDLE_MIN = 0.5
# The same piece of work takes at most so many times as long as its shortest run: others, of this machine or of its host, do
# not take the processor away.
UNEVEN_MAX = 1.5
PIECES = 40
PIECE = 40_000
LOOKS_S = 1.0


def wait(seconds_max: float) -> bool:
    """Waits until the machine is calm, for so long at most; whether it is."""
    until = time.monotonic() + seconds_max
    while not is_calm():
        if time.monotonic() > until:
            return False
    return True


def is_calm() -> bool:
    """Whether it was so for the last second."""
    before = processors()
    time.sleep(LOOKS_S)
    total, idle = (now - then for now, then in zip(processors(), before, strict=True))
    return idle >= IDLE_MIN * total and unevenness() <= UNEVEN_MAX


def processors() -> tuple[int, int]:
    """Time of all processors, and of those that did nothing, in ticks."""
    with open("/proc/stat") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return sum(ticks), ticks[3] + ticks[4]


def unevenness() -> float:
    """How many times as long as the shortest run the longest but one of the same piece of work takes."""
    times = sorted(piece() for _ in range(PIECES))
    return times[-2] / times[0]


def piece() -> float:
    started = time.perf_counter()
    sum(range(PIECE))
    return time.perf_counter() - started


if __name__ == "__main__":
    print(f"calm: {is_calm()}, {os.cpu_count()} processors, unevenness {unevenness():.2f}")
