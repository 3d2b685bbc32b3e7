"""What belongs to a process: a child made by `fork` has copies of its parent's connections, and must not use them."""

from __future__ import annotations

import os
import weakref
from typing import Any

# Connections and pools. Each has `_leave_to_parent`.
_HELD: weakref.WeakSet[Any] = weakref.WeakSet()

# What a child must neither use nor end: ending it would end the parent's session.
LEFT: list[Any] = []

FORKED = "the connection belongs to the process that opened it: after fork(), the child has to open one of its own"


def watch(thing: Any) -> None:
    """Has a connection or a pool told when it is in a child process."""
    _HELD.add(thing)


def _in_child() -> None:
    for thing in list(_HELD):
        thing._leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
