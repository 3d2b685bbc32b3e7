"""The public compliance suite of DB-API 2.0."""

from __future__ import annotations

from typing import Any

import dbapi20
import onetrip
import pytest


class TestCompliance(dbapi20.DatabaseAPI20Test):
    driver = onetrip
    lower_func = "lower"

    @pytest.fixture(autouse=True)
    def _where(self, server: dict[str, Any]) -> None:
        self.connect_args = ()
        self.connect_kw_args = server

    def test_nextset(self) -> None:
        connection = self._connect()
        cursor = connection.cursor()
        cursor.execute("SELECT 1; SELECT 2")
        assert (cursor.fetchall(), cursor.nextset()) == ([(1,)], True)
        assert (cursor.fetchall(), cursor.nextset()) == ([(2,)], None)
        connection.close()

    def test_non_idempotent_close(self) -> None:
        """Closing twice is allowed, as psycopg has it; the suite itself calls this a matter of taste."""
        connection = self._connect()
        connection.close()
        connection.close()

    def test_setoutputsize(self) -> None:
        connection = self._connect()
        connection.cursor().setoutputsize(1000, 0)
        connection.close()
