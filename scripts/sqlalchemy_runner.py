"""Lets onetrip count as psycopg where SQLAlchemy's own tests ask which driver it is: a plugin of pytest, which also writes
down what became of each test. `scripts/sqlalchemy-tests` runs it."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from sqlalchemy.testing import exclusions

_STANDS_FOR = {"onetrip": "psycopg", "onetrip_async": "psycopg_async"}
_NAME = re.compile(r"_postgresql\+\w+?_\d+_\d+")


class _Renamed:
    """An engine under the name of another driver."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.driver = _STANDS_FOR[engine.driver]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


class _Config:
    def __init__(self, config: Any) -> None:
        self._config = config
        self.db = _Renamed(config.db)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._config, name)


_asked = exclusions.SpecPredicate.__call__


def _answer(self: Any, config: Any) -> Any:
    if _asked(self, config):
        return True
    if config is None or self.op is not None or config.db.driver not in _STANDS_FOR:
        return False
    return _asked(self, _Config(config))


exclusions.SpecPredicate.__call__ = _answer


def pytest_runtest_logreport(report: Any) -> None:
    """One line for each part of a test that decides."""
    if report.when != "call" and report.outcome == "passed":
        return
    why = "" if report.outcome == "passed" else str(report.longrepr)[-3000:]
    one = {"id": _NAME.sub("", report.nodeid), "outcome": report.outcome, "why": why}
    with open(os.environ["SQLALCHEMY_TESTS_RESULTS"], "a") as results:
        results.write(json.dumps(one) + "\n")
