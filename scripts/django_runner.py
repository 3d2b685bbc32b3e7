"""Settings and a runner of tests for Django's own tests, which write down what became of each test.
`scripts/django-tests` runs them."""

from __future__ import annotations

import json
import os
import unittest
from typing import Any

from django.test.runner import DiscoverRunner

_ADDRESS = json.loads(os.environ["DJANGO_TESTS_ADDRESS"])
_PREFIX = os.environ["DJANGO_TESTS_PREFIX"]

DATABASES = {
    alias: {"ENGINE": os.environ["DJANGO_TESTS_ENGINE"], "NAME": f"{_PREFIX}_{alias}", **_ADDRESS}
    for alias in ("default", "other")
}
SECRET_KEY = "tests"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
TEST_RUNNER = "django_runner.Runner"


class Result(unittest.TextTestResult):
    """Writes a line of JSON for each test."""

    def _write(self, test: Any, outcome: str, why: str = "") -> None:
        with open(os.environ["DJANGO_TESTS_RESULTS"], "a") as results:
            results.write(json.dumps({"id": test.id(), "outcome": outcome, "why": why[-3000:]}) + "\n")

    def addSuccess(self, test: Any) -> None:  # noqa: N802 (unittest's name)
        super().addSuccess(test)
        self._write(test, "passed")

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        super().addError(test, err)
        self._write(test, "failed", self.errors[-1][1])

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        super().addFailure(test, err)
        self._write(test, "failed", self.failures[-1][1])

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._write(test, "failed", self._exc_info_to_string(err, test))

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
        super().addSkip(test, reason)
        self._write(test, "skipped", reason)

    def addExpectedFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        super().addExpectedFailure(test, err)
        self._write(test, "expected")

    def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: N802
        super().addUnexpectedSuccess(test)
        self._write(test, "failed", "it was expected to fail")


class Runner(DiscoverRunner):
    """Django's runner, with that result."""

    def get_resultclass(self) -> Any:
        """Who is told of each test."""
        return Result


def _put_in() -> None:
    """Django's tests name psycopg's pool by themselves."""
    import sys

    from onetrip import connection_pool

    sys.modules["psycopg_pool"] = connection_pool


if os.environ["DJANGO_TESTS_ENGINE"] == "onetrip.django":
    _put_in()
