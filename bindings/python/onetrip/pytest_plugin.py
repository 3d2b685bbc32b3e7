"""The pytest plugin of the package: `@pytest.mark.trips(4)` holds a test to so many round trips.

Behind `onetrip run -- pytest` the gateway counts, whatever the driver, and its report books each test's trips on the
test's name. Elsewhere the package counts those of its own connections.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Generator
from typing import Any, NamedTuple, Protocol

import pytest

_SECONDS_MAX = 5.0


class Counts(NamedTuple):
    """What was spent so far."""

    trips: int
    connections: int

    def since(self, earlier: Counts) -> Counts:
        """What was spent since then."""
        return Counts(self.trips - earlier.trips, self.connections - earlier.connections)


class Limit(NamedTuple):
    """What a mark allows."""

    trips: int
    connections: int | None

    @classmethod
    def of(cls, trips: int, *, connections: int | None = None) -> Limit:
        """Of the mark's arguments."""
        for value in (trips, connections or 0):
            if not isinstance(value, int) or value < 0:
                raise pytest.UsageError(f"the trips mark takes numbers of trips, not {value!r}")
        return cls(trips, connections)

    def exceeded_by(self, spent: Counts) -> str | None:
        """What to say of a test that spent so much; None if that is within the limit."""
        if spent.trips > self.trips:
            return f"{_trips(spent.trips)}, {self.trips} allowed (it opened {_sessions(spent.connections)})"
        if self.connections is not None and spent.connections > self.connections:
            return f"{_sessions(spent.connections)} opened, {self.connections} allowed ({_trips(spent.trips)})"
        return None


class Counter(Protocol):
    """Who counts."""

    name: str
    way_out: str

    def counts(self) -> Counts: ...
    def set_scope(self, label: str) -> None: ...


class Own:
    """The package's own connections."""

    name = "the package (which sees its own connections)"
    way_out = "`onetrip run -- pytest` counts every driver's"

    def counts(self) -> Counts:
        from onetrip import _native

        return Counts(*_native.counts())

    def set_scope(self, label: str) -> None:
        """Nobody reads it."""


class Gateway:
    """The gateway that pytest runs behind."""

    name = "the gateway"
    way_out = "the report of `onetrip run` says what it saw"

    def __init__(self, path: str) -> None:
        self.path = path

    def counts(self) -> Counts:
        return self._ask("counts")

    def set_scope(self, label: str) -> None:
        self._ask("test " + " ".join(label.split()))

    def _ask(self, line: str) -> Counts:
        with socket.socket(socket.AF_UNIX) as control:
            control.settimeout(_SECONDS_MAX)
            control.connect(self.path)
            control.sendall(line.encode()[:1000] + b"\n")
            with control.makefile() as replies:
                reply = json.loads(replies.readline())
        return Counts(reply["trips"], reply["connections"])


class Plugin:
    """Counts around each test."""

    def __init__(self, counter: Counter, shares_gateway: bool) -> None:
        self.counter = counter
        self.shares_gateway = shares_gateway
        self.unseen = 0

    @pytest.hookimpl(wrapper=True)  # type: ignore[untyped-decorator]
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Books what the test and its fixtures do on its name."""
        if self.shares_gateway:
            return (yield)
        self.counter.set_scope(item.nodeid)
        try:
            return (yield)
        finally:
            self.counter.set_scope("")

    @pytest.hookimpl(wrapper=True)  # type: ignore[untyped-decorator]
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Counts the test itself; fixtures are not held to its limit."""
        mark = item.get_closest_marker("trips")
        if mark is None:
            return (yield)
        if self.shares_gateway:
            raise pytest.UsageError("tests that run at once share the gateway's counts: run those with a limit by -n 0")
        limit = Limit.of(*mark.args, **mark.kwargs)
        before = self.counter.counts()
        result = yield  # a test that fails by itself ends here
        spent = self.counter.counts().since(before)
        self.unseen += spent == Counts(0, 0) and limit.trips > 0
        problem = limit.exceeded_by(spent)
        if problem is not None:
            pytest.fail(f"onetrip: {problem}", pytrace=False)
        return result

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Says who counted, where it may have been nobody."""
        if self.unseen:
            terminalreporter.write_line(
                f"onetrip: {self.unseen} test(s) with a trips mark spent none that {self.counter.name} could see; "
                f"{self.counter.way_out}"
            )


def pytest_configure(config: pytest.Config) -> None:
    """Registers the mark and what counts."""
    config.addinivalue_line(
        "markers",
        "trips(most, connections=None): fail if the test spends more round trips to the database than that, or opens "
        "more connections",
    )
    path = os.environ.get("ONETRIP_CONTROL")
    is_behind_gateway = path is not None and os.path.exists(path)
    counter: Counter = Gateway(path) if path is not None and is_behind_gateway else Own()
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    config.pluginmanager.register(Plugin(counter, shares_gateway=is_behind_gateway and is_worker), "onetrip-trips")


def _trips(count: int) -> str:
    return f"{count} round trip{'' if count == 1 else 's'}"


def _sessions(count: int) -> str:
    return f"{count} connection{'' if count == 1 else 's'}"
