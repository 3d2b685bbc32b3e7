"""SQLAlchemy's own compliance suite, through both dialects."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import onetrip
import pytest

SUITE = Path(__file__).parents[1] / "sqlalchemy_suite"
RUN_MIN = 1000
SCHEMAS = ("test_schema", "test_schema_2")


@pytest.mark.parametrize("driver", ["onetrip", "onetrip_async"])
def test_the_compliance_suite_passes(driver: str, server: dict[str, Any]) -> None:
    database = f"suite_{driver}"
    with onetrip.connect(**server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {database}")
    with onetrip.connect(**{**server, "dbname": database}) as connection:
        for schema in SCHEMAS:
            connection.execute(f"CREATE SCHEMA {schema}")
    url = "postgresql+{driver}://{user}:{password}@{host}:{port}/{database}"
    where = url.format(driver=driver, database=database, **server)
    # The suite brings its own pytest plugin, which wants to be alone.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:onetrip", "--dburi", where]
    done = subprocess.run([*command, "test_suite.py"], cwd=SUITE, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None and int(passed[1]) >= RUN_MIN, done.stdout[-500:]
