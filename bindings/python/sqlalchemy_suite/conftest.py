"""SQLAlchemy's compliance suite for dialects that are not its own: `bindings/python/tests/test_sqlalchemy_suite.py` runs it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

import sqlalchemy.dialects.postgresql.provision  # noqa: E402, F401
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403
