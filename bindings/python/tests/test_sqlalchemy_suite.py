"""SQLAlchemy's own compliance suite, through both dialects."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import onetrip

SUITE = Path(__file__).parents[1] / "sqlalchemy_suite"
DRIVERS = ("onetrip", "onetrip_async")
SCHEMAS = ("test_schema", "test_schema_2")
SECONDS_MAX = 900
PASSED_MIN = 1700


def start(driver: str, server: dict[str, Any]) -> subprocess.Popen[str]:
    """The suite in a database of its own."""
    database = f"suite_{driver}"
    with onetrip.connect(**server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {database}")
    with onetrip.connect(**{**server, "dbname": database}) as connection:
        for schema in SCHEMAS:
            connection.execute(f"CREATE SCHEMA {schema}")
    url = "postgresql+{driver}://{user}:{password}@{host}:{port}/{database}"
    where = url.format(driver=driver, database=database, **server)
    # It brings its own pytest plugin, which wants to be alone.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:onetrip", "--dburi", where]
    pipe = subprocess.PIPE
    return subprocess.Popen([*command, "test_suite.py"], cwd=SUITE, stdout=pipe, stderr=subprocess.STDOUT, text=True)


def test_both_dialects_pass_the_compliance_suite(server: dict[str, Any]) -> None:
    runs = {driver: start(driver, server) for driver in DRIVERS}
    try:
        for driver, run in runs.items():
            output, _ = run.communicate(timeout=SECONDS_MAX)
            assert run.returncode == 0, f"{driver}:\n{output[-20000:]}"
            passed = re.search(r"(\d+) passed", output)
            assert passed is not None and int(passed[1]) >= PASSED_MIN, output[-500:]
    finally:
        for run in runs.values():
            run.kill()
