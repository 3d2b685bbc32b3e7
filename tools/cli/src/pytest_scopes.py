"""Books each test's round trips on its name, and holds tests to their trips mark. `onetrip run` puts this file beside its
socket and names it in PYTEST_PLUGINS; the plugin of the package `onetrip` does the same and more, and goes before."""

import json
import os
import socket

import pytest


def _ask(line):
    with socket.socket(socket.AF_UNIX) as control:
        control.settimeout(5)
        control.connect(os.environ["ONETRIP_CONTROL"])
        control.sendall(line.encode(errors="replace")[:1000] + b"\n")
        with control.makefile() as replies:
            return json.loads(replies.readline())  # from here on it holds


def _tell(line):
    try:
        _ask(line)
    except (OSError, KeyError, ValueError):
        pass  # nobody counts any more


class Scopes:
    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        _tell("test " + " ".join(item.nodeid.split()))
        try:
            yield
        finally:
            _tell("test")


class Marks:
    """`@pytest.mark.trips(4)`, as in the package."""

    def __init__(self, is_worker):
        self.is_worker = is_worker
        self.unseen = 0

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item):
        mark = item.get_closest_marker("trips")
        # One that says no number is another's mark of this name.
        if mark is None or not (mark.args or mark.kwargs):
            yield
            return
        if self.is_worker:
            raise pytest.UsageError("tests that run at once share the gateway's counts: run those with a limit by -n 0")
        trips, connections = _limit(*mark.args, **mark.kwargs)
        before = _ask("counts")
        outcome = yield
        if outcome.excinfo is not None:
            return  # a test that fails by itself
        after = _ask("counts")
        spent, opened = (after[name] - before[name] for name in ("trips", "connections"))
        self.unseen += trips > 0 and spent == opened == 0
        if spent > trips:
            _fail(outcome, f"{_count(spent, 'round trip')}, {trips} allowed (it opened {_count(opened, 'connection')})")
        elif connections is not None and opened > connections:
            _fail(
                outcome, f"{_count(opened, 'connection')} opened, {connections} allowed ({_count(spent, 'round trip')})"
            )

    def pytest_terminal_summary(self, terminalreporter):
        if self.unseen:
            terminalreporter.write_line(
                f"onetrip: {self.unseen} test(s) with a trips mark spent none that the gateway could see; the report of "
                "`onetrip run` says what it saw"
            )


def _limit(trips, connections=None):
    for value in (trips, connections or 0):
        if not isinstance(value, int) or value < 0:
            raise pytest.UsageError(f"the trips mark takes numbers of trips, not {value!r}")
    return trips, connections


def _count(count, thing):
    return f"{count} {thing}{'' if count == 1 else 's'}"


def _fail(outcome, problem):
    try:
        pytest.fail(f"onetrip: {problem}", pytrace=False)
    except pytest.fail.Exception as failure:
        if hasattr(outcome, "force_exception"):
            outcome.force_exception(failure)
        else:  # pluggy before 1.1
            outcome._excinfo = (type(failure), failure, failure.__traceback__)


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    if config.pluginmanager.hasplugin("onetrip-trips"):
        return
    config.addinivalue_line(
        "markers",
        "trips(most, connections=None): fail if the test spends more round trips to the database than that, or opens "
        "more connections",
    )
    # Tests of several workers run at once: what they share is nobody's own.
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    config.pluginmanager.register(Marks(is_worker), "onetrip-marks")
    if not is_worker:
        config.pluginmanager.register(Scopes(), "onetrip-scopes")
