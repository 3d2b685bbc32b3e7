"""Blocks that are a transaction, or a savepoint within one: what is sent for them."""

from __future__ import annotations

import enum
from typing import Any

from onetrip.errors import ProgrammingError


class Rollback(Exception):
    """Undoes a block of `transaction()` and leaves it without an error: the innermost, or the one that is named."""

    def __init__(self, transaction: Nested | None = None) -> None:
        super().__init__(transaction)
        self.transaction = transaction


class OutOfOrderTransactionNesting(ProgrammingError):
    """A block of `transaction()` ended before one that was opened within it."""


class Nested:
    """One block of a connection, whichever kind: what is sent for it."""

    class Status(str, enum.Enum):
        """What became of a block."""

        NOT_STARTED = "not_started"
        ACTIVE = "active"
        COMMITTED = "committed"
        FAILED = "failed"
        ROLLED_BACK_EXPLICITLY = "rolled_back_explicitly"
        ROLLED_BACK_WITH_ERROR = "rolled_back_with_error"

    def __init__(self, connection: Any, savepoint_name: str | None, force_rollback: bool) -> None:
        self._connection = connection
        self._name = savepoint_name or ""
        self._is_outermost = False
        # Whether a block around it has ended before it.
        self._is_lost = False
        self.force_rollback = force_rollback
        self.status = self.Status.NOT_STARTED

    @property
    def connection(self) -> Any:
        """The connection whose transaction it is."""
        return self._connection

    @property
    def savepoint_name(self) -> str:
        """The savepoint that stands at the block's beginning; empty where it is the whole transaction."""
        return self._name

    def __repr__(self) -> str:
        name = f" {self._name!r}" if self._name else ""
        kind = f"{type(self).__module__}.{type(self).__qualname__}"
        return f"<{kind}{name} ({self.status.value}) {self._connection._shown()} at 0x{id(self):x}>"

    def _open(self, is_idle: bool) -> str | None:
        """Begins the block; what is to be sent now. BEGIN itself travels with the block's first statement."""
        if self.status != self.Status.NOT_STARTED:
            raise TypeError("a block of transaction() can be entered only once")
        blocks = self._connection._transactions
        self._is_outermost = is_idle and not blocks
        if not self._is_outermost and not self._name:
            self._name = f"onetrip_transaction_{len(blocks) + 1}"
        blocks.append(self)
        self._connection._set_begins()
        self.status = self.Status.ACTIVE
        return f"SAVEPOINT {_quoted(self._name)}" if self._name else None

    def _leave(self) -> None:
        """The block is none of the connection's any more."""
        blocks = self._connection._transactions
        is_last = bool(blocks) and blocks[-1] is self
        if self._is_outermost:
            self._connection._transactions_ended += 1
        if self in blocks:
            blocks.remove(self)
        self._connection._set_begins()
        if not is_last or self._is_lost:
            for block in blocks:
                block._is_lost = True
            self.status = self.Status.FAILED
            raise OutOfOrderTransactionNesting(f"another block of transaction() was opened within this one: {self}")

    def _begins_no_more(self) -> None:
        """BEGIN of a block that has run nothing travels with nothing."""
        block = self._connection._own_block()
        if self._is_outermost and block is not None:
            block._whole()._begins = self._connection._begins and self._connection._is_outside()

    def _keeping(self) -> str:
        """What keeps the block."""
        self.status = self.Status.COMMITTED
        return "COMMIT" if self._is_outermost else f"RELEASE SAVEPOINT {_quoted(self._name)}"

    def _undoing(self, error: BaseException | None) -> list[str]:
        """What undoes it."""
        is_wanted = error is None or isinstance(error, Rollback)
        self.status = self.Status.ROLLED_BACK_EXPLICITLY if is_wanted else self.Status.ROLLED_BACK_WITH_ERROR
        if self._is_outermost:
            return ["ROLLBACK"]
        name = _quoted(self._name)
        return [f"ROLLBACK TO SAVEPOINT {name}", f"RELEASE SAVEPOINT {name}"]

    def _takes(self, error: BaseException | None) -> bool:
        """Whether an exception has done its work with this block."""
        return isinstance(error, Rollback) and error.transaction in (None, self)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
