"""The trips mark, in runs of pytest of its own."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import {driver} as driver
import pytest

@pytest.fixture
def connection():
    connection = driver.connect(autocommit=True)
    connection.execute("SELECT 'a fixture costs nothing'")
    yield connection
    connection.close()

@pytest.mark.trips(2)
def test_within(connection):
    connection.execute("SELECT 1")
    connection.execute("SELECT 2")

@pytest.mark.trips(2)
def test_beyond(connection):
    for number in range(3):
        connection.execute("SELECT 1")

@pytest.mark.trips(9, connections=0)
def test_connects(connection):
    driver.connect().close()

@pytest.mark.trips(1)
def test_fails_by_itself(connection):
    connection.execute("SELECT 1")
    connection.execute("SELECT 1")
    assert connection is None
"""


@pytest.fixture
def where(server: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, keyword in {"HOST": "host", "PORT": "port", "USER": "user", "PASSWORD": "password"}.items():
        monkeypatch.setenv(f"PG{name}", str(server[keyword]))
    monkeypatch.setenv("PGDATABASE", server["dbname"])
    monkeypatch.delenv("ONETRIP_CONTROL", raising=False)


def check(output: str) -> None:
    assert "onetrip: 3 round trips, 2 allowed (it opened 0 connections)" in output
    assert "onetrip: 1 connection opened, 0 allowed (0 round trips)" in output
    assert "assert <" in output, "a test that fails by itself says why"
    assert "3 failed, 1 passed" in output


@pytest.mark.usefixtures("where")
def test_without_a_gateway_the_packages_own_trips_are_counted(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TESTS.format(driver="onetrip"))
    check(pytester.runpytest_subprocess("--strict-markers").stdout.str())


@pytest.mark.usefixtures("where")
@pytest.mark.parametrize("driver", ["onetrip", "psycopg"])
def test_behind_a_gateway_every_drivers_trips_are_counted_and_booked_on_tests(
    pytester: pytest.Pytester, command: Path, driver: str
) -> None:
    pytester.makepyfile(test_shop=TESTS.format(driver=driver))
    run = [command, "run", "--format", "json", "-o", "report.json", "--", sys.executable, "-m", "pytest", "-v"]
    check(pytester.run(*run).stdout.str())
    report = json.loads((pytester.path / "report.json").read_text())
    trips = {scope["label"]: scope["trips"] for scope in report["scopes"]}
    assert trips["test_shop.py::test_beyond"] == trips["test_shop.py::test_within"] + 1
    shown = pytester.run(command, "run", "--", sys.executable, "-m", "pytest", "-k", "test_within").stderr.str()
    assert "Tests, most trips first" in shown, "also for a single one"


@pytest.mark.usefixtures("where")
def test_a_mark_that_nobody_can_keep_says_so(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n\n@pytest.mark.trips(1)\ndef test_elsewhere():\n    pass\n")
    assert "`onetrip run -- pytest` counts every driver's" in pytester.runpytest_subprocess().stdout.str()
    pytester.makepyfile("import pytest\n\n@pytest.mark.trips(-1)\ndef test_wrong():\n    pass\n")
    assert "takes numbers of trips" in pytester.runpytest_subprocess().stdout.str()
    assert os.environ.get("ONETRIP_CONTROL") is None


PLAIN_TESTS = """
import psycopg
import pytest

@pytest.fixture
def connection():
    connection = psycopg.connect(autocommit=True)
    yield connection
    connection.close()

@pytest.mark.parametrize("count", [1, 4])
def test_asks(connection, count):
    for number in range(count):
        connection.execute("SELECT 1")

def test_asks_nothing():
    pass
"""


@pytest.mark.usefixtures("where")
def test_run_brings_a_plugin_where_the_package_is_not_and_shows_each_tests_trips(
    pytester: pytest.Pytester, command: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in an environment without the package: only what PYTEST_PLUGINS names is loaded.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    pytester.makepyfile(test_shop=PLAIN_TESTS)
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    shown = pytester.run(command, "run", "--", *tests)
    assert shown.ret == 0
    assert "PYTEST_PLUGINS" in shown.stderr.str()
    for name in ("test_shop.py::test_asks[1]", "test_shop.py::test_asks[4]"):
        assert name in shown.stderr.str(), "the table of tests is there without being asked for"
    assert pytester.run(command, "run", "--format", "json", "-o", "report.json", "--", *tests).ret == 0
    report = json.loads((pytester.path / "report.json").read_text())
    trips = {scope["label"]: scope["trips"] for scope in report["scopes"]}
    assert trips["test_shop.py::test_asks[4]"] == trips["test_shop.py::test_asks[1]"] + 3
    assert not any("asks_nothing" in label for label in trips)
    budget = pytester.path / "budgets.toml"
    budget.write_text('[scope."test_shop.py::test_asks[4]"]\ntrips = 3\n')
    broken = pytester.run(command, "run", "--budget-file", str(budget), "--", *tests)
    assert broken.ret == 90
    assert "test_shop.py::test_asks[4]" in broken.stderr.str()


@pytest.mark.usefixtures("where")
def test_marks_are_kept_by_the_plugin_of_run_where_the_package_is_not(
    pytester: pytest.Pytester, command: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    pytester.makepyfile(test_shop=TESTS.format(driver="psycopg"))
    tests = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--strict-markers"]
    ended = pytester.run(command, "run", "--", *tests)
    check(ended.stdout.str())
    assert ended.ret == 1
    pytester.makepyfile(test_shop="import pytest\n\n@pytest.mark.trips(1)\ndef test_elsewhere():\n    pass\n")
    shown = pytester.run(command, "run", "--", *tests).stdout.str()
    assert "spent none that the gateway could see" in shown
    assert "counts every driver" not in shown, "it runs behind a gateway"
    pytester.makepyfile(test_shop="import pytest\n\n@pytest.mark.trips(-1)\ndef test_wrong():\n    pass\n")
    assert "takes numbers of trips" in pytester.run(command, "run", "--", *tests).stdout.str()
    pytester.makepyfile(test_shop="import pytest\n\n@pytest.mark.trips\ndef test_travel():\n    pass\n")
    assert "1 passed" in pytester.run(command, "run", "--", *tests).stdout.str(), "another's mark of this name"


@pytest.mark.usefixtures("where")
def test_behind_a_gateway_nobody_is_told_to_run_behind_one(pytester: pytest.Pytester, command: Path) -> None:
    pytester.makepyfile("import pytest\n\n@pytest.mark.trips(1)\ndef test_elsewhere():\n    pass\n")
    shown = pytester.run(command, "run", "--", sys.executable, "-m", "pytest").stdout.str()
    assert "spent none that the gateway could see" in shown
    assert "counts every driver" not in shown


BUSY = """
import os, time, psycopg

def test_busy():
    open("busy", "w").close()
    with psycopg.connect(autocommit=True) as connection:
        connection.execute("SELECT 1")
        deadline = time.monotonic() + 60
        while not os.path.exists("other") and os.environ.get("TWO") and time.monotonic() < deadline:
            time.sleep(0.01)
        connection.execute("SELECT 2")
"""
OTHER = """
def test_other():
    open("other", "w").close()
"""


@pytest.mark.usefixtures("where")
def test_two_runners_at_once_leave_no_test_to_be_judged(
    pytester: pytest.Pytester, command: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    pytester.makepyfile(test_busy=BUSY, test_other=OTHER)
    (pytester.path / "b.toml").write_text('[scope."test_busy.py::test_busy"]\ntrips = 9\n')
    python = f"{sys.executable} -m pytest -q -p no:cacheprovider"
    run = [command, "run", "--budget-file", "b.toml", "--"]
    assert pytester.run(*run, "sh", "-c", f"{python} test_busy.py && {python} test_other.py").ret == 0
    both = f"TWO=1 {python} test_busy.py & while [ ! -e busy ]; do sleep 0.1; done; {python} test_other.py; wait"
    for name in ("busy", "other"):
        (pytester.path / name).unlink()
    mixed = pytester.run(*run, "sh", "-c", both)
    assert mixed.ret == 91
    assert "two test runners named tests at the same time" in mixed.stderr.str()
