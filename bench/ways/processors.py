"""Where what is measured runs: on which processors, and before what else."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def take_priority() -> None:
    """Lets everything measured run before what else the machine does, for each way alike; needs root."""
    with contextlib.suppress(PermissionError):
        os.setsid()  # a scheduling group of our own (sched(7), autogroup); refused where we have one
    group = Path("/proc/self/autogroup")
    if group.exists():
        group.write_text("-20")
    os.nice(-20)


def cores(is_pinned: bool) -> set[int]:
    """The last core when pinned: the first one has most of the kernel's interrupts."""
    usable = os.sched_getaffinity(0)
    return {max(usable)} if is_pinned else usable


def pinned(on: set[int] | None) -> list[str]:
    return ["taskset", "--cpu-list", ",".join(map(str, sorted(on)))] if on else []


def set_cores(server: int, on: set[int]) -> None:
    """Moves the server with all its threads and processes; what these start stays where they are."""
    for pid in [server, *children(server)]:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                os.sched_setaffinity(int(thread), on)


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []
