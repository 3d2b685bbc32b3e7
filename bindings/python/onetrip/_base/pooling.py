"""What pools in the form of `psycopg_pool` share, and nothing that waits."""

from __future__ import annotations

import itertools
import time

from onetrip.errors import OperationalError

# What is counted from the beginning on.
COUNTED = (
    "requests_num", "requests_queued", "requests_wait_ms", "requests_errors", "usage_ms", "returns_bad",
    "connections_num", "connections_ms", "connections_errors", "connections_lost",
)  # fmt: skip


class PoolClosed(OperationalError):
    """The pool is not open."""


class PoolTimeout(OperationalError):
    """No connection was free or could be made in time."""


class TooManyRequests(OperationalError):
    """As many callers wait as may wait."""


def milliseconds_since(begun: float) -> int:
    """How long it is since a moment of the monotonic clock."""
    return int(1000 * (time.monotonic() - begun))


def next_name() -> str:
    """A name for a pool that has none."""
    return f"pool-{next(_NUMBERS)}"


_NUMBERS = itertools.count(1)
