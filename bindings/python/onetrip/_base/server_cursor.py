"""Cursors that the server keeps, as far as nothing waits: their statements, and where they stand."""

from __future__ import annotations

import warnings
from typing import Any, cast

from onetrip.errors import ObjectNotInPrerequisiteState

ROWS_AHEAD = 1000


class Declaration:
    """The statements of a named cursor: the same for both kinds of connections."""

    def __init__(self, name: str, scrollable: bool | None, withhold: bool) -> None:
        self.name = name
        self.quoted = '"' + name.replace('"', '""') + '"'
        scroll = {None: "", True: " SCROLL", False: " NO SCROLL"}[scrollable]
        self.options = f"{scroll} CURSOR{' WITH HOLD' if withhold else ''}"

    def declare(self, statement: str) -> str:
        """Makes the cursor."""
        return f"DECLARE {self.quoted}{self.options} FOR {statement}"

    def fetch(self, rows: int | None, number: int) -> str:
        """Fetches rows; None for all. The number keeps cursors apart that have had the same name: a prepared FETCH
        knows the columns of one."""
        count = "ALL" if rows is None else str(max(rows, 0))
        return f"FETCH FORWARD {count} FROM {self.quoted}" + (f" -- {number}" if number else "")

    def move(self, value: int, mode: str, unread: int, is_at_end: bool) -> str:
        """Moves the cursor, from where the program believes that it stands. At its end, the server's stands after the
        last row, which is one further than on it."""
        if mode == "relative":
            return f"MOVE RELATIVE {value - unread - is_at_end} FROM {self.quoted}"
        if mode == "absolute":
            return f"MOVE ABSOLUTE {value} FROM {self.quoted}"
        raise ValueError(f"mode has to be 'relative' or 'absolute', not {mode!r}")


class Moves:
    """What both kinds of named cursors know of where they stand."""

    _position: int | None
    # How many transactions of the connection had ended when it was declared.
    _transaction: int | None = None

    def __del__(self) -> None:
        cursor: Any = self
        if getattr(self, "_is_declared", False) and not cursor._closed and not cursor.connection.closed:
            name = type(self).__name__
            warnings.warn(
                f"{name} {cursor.name!r} was left open: use 'with', or .close()", ResourceWarning, stacklevel=2
            )

    def _has_ended(self) -> bool:
        """Whether the server has closed it, at the end of its transaction."""
        cursor: Any = self
        ended = cursor.connection._transactions_ended
        return not cursor.withhold and self._transaction is not None and self._transaction != ended

    def _check_forward(self, distance: int) -> None:
        if distance < 0 and cast(Any, self).scrollable is False:
            raise ObjectNotInPrerequisiteState("cursor can only scan forward: make it with scrollable=True")

    def _seeks(self, value: int, mode: str) -> bool:
        """Moves within the rows that are here, if the target is among them."""
        cursor: Any = self
        if self._position is None or mode not in ("relative", "absolute"):
            return False
        rows = cursor._rows()
        target = rows.at + value if mode == "relative" else rows.at + value - self._position
        if not 0 <= target <= len(rows) or (target < rows.at and rows.is_released):
            return False
        self._check_forward(target - rows.at)
        self._position += target - rows.at
        rows.seek(target)
        return True
