"""What a pool waits by, with threads: the twin of `onetrip.aio.waits`, which does the same for asyncio."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from onetrip.errors import Error


class Waiter:
    """Somebody who waits for a connection, or for a word."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._event = threading.Event()
        self._given: Any = None
        self._error: Error | None = None

    @property
    def is_over(self) -> bool:
        """Whether there is nothing to wait for any more."""
        return self._event.is_set()

    def give(self, connection: Any) -> bool:
        """Ends the wait; false for one that has given up."""
        with self._lock:
            if self._event.is_set():
                return False
            self._given = connection
            self._event.set()
            return True

    def fail(self, error: Error) -> None:
        """Ends the wait by an error."""
        with self._lock:
            if not self._event.is_set():
                self._error = error
                self._event.set()

    def wait(self, seconds: float) -> bool:
        """Waits for the end, at most so long; whether it came."""
        return self._event.wait(max(seconds, 0))

    def take(self) -> Any:
        """What it was given, or None; raises the error. Nothing can be given after it."""
        with self._lock:
            self._event.set()
            if self._error is not None:
                raise self._error
            return self._given


class Tasks:
    """Work that goes on beside the program's own."""

    def __init__(self) -> None:
        self._threads: set[threading.Thread] = set()
        self._timers: set[threading.Timer] = set()

    def start(self, work: Callable[[], None], name: str) -> None:
        """Begins some work."""

        def run() -> None:
            try:
                work()
            finally:
                self._threads.discard(threading.current_thread())

        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.add(thread)
        thread.start()

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Calls after a while, unless everything is stopped before."""

        def due() -> None:
            self._timers.discard(timer)
            call()

        timer = threading.Timer(seconds, due)
        timer.daemon = True
        self._timers.add(timer)
        timer.start()

    def stop(self, seconds: float) -> None:
        """Ends all of it, and waits for that at most so long."""
        for timer in list(self._timers):
            timer.cancel()
        self._timers.clear()
        deadline = time.monotonic() + seconds
        for thread in list(self._threads):
            if thread is not threading.current_thread():
                thread.join(max(deadline - time.monotonic(), 0))


def settled(value: Any) -> Any:
    """What a function has returned."""
    return value


def pause_for(seconds: float) -> None:
    """Waits for a while."""
    time.sleep(max(seconds, 0))


def lock() -> Any:
    """Keeps other threads out."""
    return threading.RLock()


def may_begin() -> bool:
    """Whether work can be started here."""
    return True
