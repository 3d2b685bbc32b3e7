"""The engine, by the name under which Django looks for it."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

from onetrip.django import _stand_in

if _stand_in.strangers():
    raise ImproperlyConfigured(
        "onetrip.django has to be imported before Django's modules that import psycopg "
        f"({', '.join(_stand_in.strangers())}). List 'onetrip.django' first in INSTALLED_APPS."
    )

from django.db.backends.postgresql import base  # noqa: E402

from onetrip.django.connection import Connection  # noqa: E402
from onetrip.django.operations import DatabaseOperations  # noqa: E402


class DatabaseWrapper(base.DatabaseWrapper):
    """A database of Django's settings."""

    ops_class = DatabaseOperations

    def _savepoint(self, sid: str) -> None:
        if self._shows_savepoints():
            super()._savepoint(sid)
        else:
            with self.wrap_database_errors:
                self.connection.savepoint(sid, self.ops.savepoint_create_sql(sid))

    def _savepoint_rollback(self, sid: str) -> None:
        super()._savepoint_rollback(sid)
        if isinstance(self.connection, Connection):
            self.connection.rolled_back_to(sid)

    def _savepoint_commit(self, sid: str) -> None:
        if self._shows_savepoints():
            super()._savepoint_commit(sid)
        else:
            with self.wrap_database_errors:
                self.connection.release(sid, self.ops.savepoint_commit_sql(sid))

    def _shows_savepoints(self) -> bool:
        """Whether somebody wants to see each statement, or the connection is not one of ours."""
        is_seen = self.queries_logged or bool(self.execute_wrappers)
        return is_seen or not isinstance(self.connection, Connection)
