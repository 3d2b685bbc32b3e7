"""What Django asks an engine about SQL."""

from __future__ import annotations

from typing import Any

from django.db.backends.postgresql import operations


class DatabaseOperations(operations.DatabaseOperations):
    """As Django's own for PostgreSQL."""

    def last_executed_query(self, cursor: Any, sql: str, params: Any) -> str | None:
        """The statement that a cursor has sent, for logs and `connection.queries`."""
        if self.connection.features.uses_server_side_binding:
            shown: str | None = super().last_executed_query(cursor, sql, params)
        else:
            shown = cursor.shown
        return shown
