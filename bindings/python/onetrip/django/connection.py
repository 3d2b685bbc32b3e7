"""A connection whose savepoints cost no trips."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onetrip
from onetrip._base.cursor import ONCE
from onetrip.session import TransactionStatus

if TYPE_CHECKING:
    from onetrip import _native
    from onetrip._base.cursor import Params


class Connection(onetrip.Connection):
    """A connection whose SAVEPOINT and RELEASE travel before the next statement. Nobody else notices them."""

    def __init__(self, session: _native.Session, *, autocommit: bool = False, row_factory: object = None) -> None:
        super().__init__(session, autocommit=autocommit, row_factory=row_factory)  # type: ignore[arg-type]
        # What travels before the next statement, and the savepoints that were made so.
        self._waiting: list[str] = []
        self._savepoints: list[str] = []

    def savepoint(self, name: str, statement: str) -> None:
        """Makes a savepoint before the next statement."""
        self._run_before_next(statement, self._status() != TransactionStatus.INERROR)
        self._savepoints.append(name)

    def release(self, name: str, statement: str) -> None:
        """Releases a savepoint before the next statement: at once if that may fail, which somebody has to hear of."""
        is_sure = self._status() != TransactionStatus.INERROR and name in self._savepoints
        self._run_before_next(statement, is_sure)
        if name in self._savepoints:
            del self._savepoints[self._savepoints.index(name) :]

    def rolled_back_to(self, name: str) -> None:
        """Forgets the savepoints after one that the transaction was rolled back to."""
        if name in self._savepoints:
            del self._savepoints[self._savepoints.index(name) + 1 :]

    def _run_before_next(self, statement: str, can_wait: bool) -> None:
        if can_wait and self._block is None:
            self._waiting.append(statement)
        else:
            self._run(statement, None, self._begins)

    def commit(self) -> None:
        """Commits. It ends all savepoints, so that what waits need not be sent. A transaction that has failed is rolled
        back, without an error, as Django is used to."""
        self._forget()
        if self._status() == TransactionStatus.INERROR:
            super().rollback()
        else:
            super().commit()

    def rollback(self) -> None:
        """Rolls back, and all savepoints with it."""
        self._forget()
        super().rollback()

    def close(self) -> None:
        """Ends the session."""
        self._forget()
        super().close()

    def _forget(self) -> None:
        self._waiting.clear()
        self._savepoints.clear()

    def _run(self, statement: str, params: Params, begins: bool, how: int = 0) -> list[_native.Answer]:
        if not self._waiting or self._block is not None:
            return super()._run(statement, params, begins, how)
        if params is None and ";" in statement.rstrip("; \n"):
            # It may be several statements, which are no part of a pipeline.
            self._flush()
            return super()._run(statement, params, begins, how)
        return [self._run_behind(begins, (statement, params, how))]

    def _check_usable(self) -> None:
        super()._usable()

    def _usable(self) -> _native.Session:
        # Whatever does not go by `_run` finds the session as it would be.
        if self._waiting:
            self._flush()
        return super()._usable()

    def _flush(self) -> None:
        self._run_behind(self._begins)

    def _run_behind(self, begins: bool, *last: tuple[str, Params, int]) -> _native.Answer:
        """Runs what waits, and a statement behind it. Each is parsed by itself: a mistake in the last one does not undo
        the savepoint before it."""
        waiting, self._waiting = self._waiting, []
        with self.pipeline() as pipeline:
            pipeline._begins = pipeline._begins and begins
            for statement, params, how in (*((one, None, ONCE) for one in waiting), *last):
                operation = pipeline._add(statement, params, how)
        return operation._done()
