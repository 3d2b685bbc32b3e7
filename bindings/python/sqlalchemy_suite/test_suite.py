"""The suite itself."""

from typing import Any

from onetrip import ServerCursor
from onetrip.aio import AsyncServerCursor
from sqlalchemy.testing.suite import *  # noqa: F403
from sqlalchemy.testing.suite import ServerSideCursorsTest as _ServerSideCursorsTest


class ServerSideCursorsTest(_ServerSideCursorsTest):
    """The suite knows the cursors of SQLAlchemy's own dialects only."""

    def _is_server_side(self, cursor: Any) -> bool:
        return isinstance(getattr(cursor, "_cursor", cursor), ServerCursor | AsyncServerCursor)
