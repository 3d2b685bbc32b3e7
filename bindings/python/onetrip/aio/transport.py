"""Moves the bytes of a connection: an `asyncio.Protocol`."""

from __future__ import annotations

import asyncio
import contextlib

from onetrip import _native, errors

# Data of a COPY that nobody has read: beyond it no more is taken in, so that the server waits.
_COPIED_BYTES = 256 * 1024


class Transport(asyncio.Protocol):
    """Moves the bytes of a `Wire`."""

    def __init__(self, wire: _native.Wire) -> None:
        self.wire = wire
        self.transport: asyncio.Transport | None = None
        self.heard = asyncio.Event()
        # Those who wait, each for an operation, or for all answers.
        self._waiters: dict[asyncio.Future[None], int | None] = {}
        self.is_lost = False
        self._is_reading = True
        self._error: Exception | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self.flush()

    def data_received(self, data: bytes) -> None:
        try:
            is_settled = self.wire.received(data)
            self.heard.set()
            self.flush()
            self._bound_reading()
            self._wake_answered(is_settled)
        except errors.Error as error:
            self._error = error
            self.heard.set()
            self._wake(error)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self._may_write.set()
        self.heard.set()
        with contextlib.suppress(errors.Error):
            self.wire.lost()
        self._wake(None)

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def flush(self) -> None:
        """Sends what is to be sent."""
        output = self.wire.output()
        if output and self.transport is not None:
            self.transport.write(output)

    async def flushed(self) -> None:
        """Sends, and waits while the other side does not take it."""
        self.flush()
        await self._may_write.wait()

    async def answered(self, operation: int | None = None) -> None:
        """Waits until all is answered, or an operation."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = operation
        try:
            self.flush()
            # All may have come while nobody waited.
            is_answered = self.wire.received(b"") if operation is None else self.wire.is_answered(operation)
            if self.is_lost or is_answered:
                return
            await waiter
        finally:
            del self._waiters[waiter]

    async def copied(self) -> list[bytes]:
        """The data of a COPY that has come, once there is some; none at the end."""
        while not (pieces := self.wire.copied()):
            self.go_on_reading()
            self.flush()
            if self._error is not None:
                raise self._error
            if self.is_lost or self.wire.received(b""):
                break
            self.heard.clear()
            await self.heard.wait()
        return pieces

    async def rows(self) -> _native.Answer | None:
        """The rows of a statement that have come, once there are some; None once it is answered."""
        while True:
            self.flush()
            if self._error is not None:
                raise self._error
            is_over = self.is_lost or self.wire.received(b"")
            # What came before an error is given out before the error.
            rows = self.wire.rows_here()
            if rows is not None or is_over:
                self.go_on_reading()
                return rows
            self.go_on_reading()
            self.heard.clear()
            await self.heard.wait()

    def go_on_reading(self) -> None:
        """Takes in what comes, after a pause."""
        if not self._is_reading and not self.is_lost and self.transport is not None:
            self._is_reading = True
            self.transport.resume_reading()

    def _bound_reading(self) -> None:
        if self.wire.copied_bytes > _COPIED_BYTES and self._is_reading and self.transport is not None:
            self._is_reading = False
            self.transport.pause_reading()

    def _wake_answered(self, is_settled: bool) -> None:
        open_from: int | None = None
        for waiter, operation in self._waiters.items():
            if waiter.done() or (operation is None and not is_settled):
                continue
            if operation is not None and not is_settled:
                # Answers come in the operations' order.
                if open_from is not None and operation >= open_from:
                    continue
                if not self.wire.is_answered(operation):
                    open_from = operation
                    continue
            waiter.set_result(None)

    def _wake(self, error: Exception | None) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                if error is None:
                    waiter.set_result(None)
                else:
                    waiter.set_exception(error)
