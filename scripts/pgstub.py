"""A server that is none, in PostgreSQL's place: one process for each session, as PostgreSQL has.

`with Stub() as stub: stub.port`. It lets everybody in, tells the session's process as PostgreSQL does (BackendKeyData), and
answers `SELECT 'word'`, with `FROM pg_sleep(N)` behind it N seconds later. A cancel request cancels nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Self

STATEMENT = re.compile(rb"SELECT '(\w+)'(?: AS \"\w+\")?(?: FROM pg_sleep\(([\d.]+)\))?")
CANCEL_REQUEST = struct.pack(">I", 80877102)
PR_SET_PDEATHSIG = 1


def message(tag: bytes, body: bytes = b"") -> bytes:
    return tag + struct.pack(">I", len(body) + 4) + body


def main(serve: Callable[[socket.socket], None]) -> None:
    """Lets everybody in, and serves each in a process of its own."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    print(listener.getsockname()[1], flush=True)
    while True:
        stream, _ = listener.accept()
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            listener.close()
            with contextlib.suppress(OSError, EOFError):
                serve(stream)
            os._exit(0)
        stream.close()


def serve(stream: socket.socket) -> None:
    incoming = stream.makefile("rb")

    def exactly(length: int) -> bytes:
        data = incoming.read(length)
        if len(data) < length:
            raise EOFError
        return data

    if exactly(struct.unpack(">I", exactly(4))[0] - 4).startswith(CANCEL_REQUEST):
        return
    ready = message(b"Z", b"I")
    key = message(b"K", struct.pack(">II", os.getpid(), 7))
    stream.sendall(message(b"R", bytes(4)) + message(b"S", b"server_version\x0015.0\0") + key + ready)
    while True:
        tag, length = struct.unpack(">cI", exactly(5))
        text = exactly(length - 4)
        if tag != b"Q":
            return
        found = STATEMENT.match(text)
        if found is None:
            raise EOFError
        time.sleep(float(found[2] or 0))
        columns = b"\0\1c\0" + struct.pack(">IhIhih", 0, 0, 25, -1, -1, 0)
        row = b"\0\1" + struct.pack(">I", len(found[1])) + found[1]
        stream.sendall(message(b"T", columns) + message(b"D", row) + message(b"C", b"SELECT 1\0") + ready)


class Stub:
    name = "stub"
    program = __file__

    def __enter__(self) -> Self:
        command = [sys.executable, self.program]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


if __name__ == "__main__":
    main(serve)
