#!/usr/bin/env python3
"""Counts the round trips of a program, by a method that owes nothing to onetrip.

    PGHOST=... PGPORT=... scripts/turns.py -- PROGRAM ARGS

runs PROGRAM with PGHOST and PGPORT pointing at a relay, and prints one JSON line
{"connections", "sessions", "connect", "work"} when it has ended. The exit code is PROGRAM's.

The relay forwards the client's bytes at once and holds the server's until both
sides have been silent for `--settle-ms`. So a client that pipelines has sent all
that it will send, and a client that still has not sent anything more is waiting.
One trip = client bytes, then a release of held server bytes. No message has to be
understood for that; only the end of the connect phase (the first ReadyForQuery)
is recognised, and `--show` names the messages of every trip on standard error.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import json
import os
import sys

READY_IDLE = b"Z\x00\x00\x00\x05I"
HELD_BYTES_MAX = 1 << 20
REPLY_BYTES = 64
SETTLE_MS = 20.0
CLOSE_SECONDS_MAX = 5.0


@dataclasses.dataclass
class Count:
    """Connections made, those that logged in, and trips up to the login and after it."""

    connections: int = 0
    sessions: int = 0
    connect: int = 0
    work: int = 0


@dataclasses.dataclass
class Trip:
    """What the client sent before it waited."""

    connection: int
    is_work: bool
    request: bytes
    # Of its answer, as much as tells a prepared statement's number.
    reply: bytes = b""


class Relay:
    """An asyncio server on 127.0.0.1 in front of one database's address."""

    def __init__(
        self,
        host: str,
        port: int,
        settle_ms: float = SETTLE_MS,
        show: bool = False,
        turns: type[Turns] | None = None,
    ):
        self.turns = turns or Turns
        self.upstream = (host, port)
        self.settle = settle_ms / 1000
        self.show = show
        self.count = Count()
        self.trips: list[Trip] = []
        self.connections: set[asyncio.Task[None]] = set()

    async def listen(self) -> int:
        self.server = await asyncio.start_server(self.accept, "127.0.0.1", 0)
        return self.server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Waits for the connections to end, as those of a program that has ended do."""
        self.server.close()
        if self.connections:
            await asyncio.wait(list(self.connections), timeout=CLOSE_SECONDS_MAX)

    async def accept(
        self, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter
    ) -> None:
        self.connections.add(task := asyncio.current_task())
        task.add_done_callback(self.connections.discard)
        server_out = None
        try:
            server_in, server_out = await asyncio.open_connection(*self.upstream)
            self.count.connections += 1
            turns = self.turns(self, client_out, self.count.connections)
            requests = asyncio.create_task(turns.forward_requests(client_in, server_out))
            replies = asyncio.create_task(turns.hold_replies(server_in))
            await asyncio.wait([requests, replies], return_when=asyncio.FIRST_COMPLETED)
            turns.release()
            requests.cancel()
            replies.cancel()
            await asyncio.gather(requests, replies, return_exceptions=True)
        except OSError as error:
            print(f"turns: {error}", file=sys.stderr)
        finally:
            for writer in filter(None, (client_out, server_out)):
                writer.close()
                with contextlib.suppress(OSError, asyncio.CancelledError):
                    await writer.wait_closed()


class Turns:
    """One connection: whose turn it is, and the replies held back."""

    def __init__(self, relay: Relay, client_out: asyncio.StreamWriter, number: int):
        self.relay = relay
        self.client_out = client_out
        self.number = number
        self.held = bytearray()
        self.asked = bytearray()
        self.is_connected = False
        self.timer: asyncio.TimerHandle | None = None

    async def forward_requests(
        self, client_in: asyncio.StreamReader, server_out: asyncio.StreamWriter
    ) -> None:
        while data := await client_in.read(1 << 16):
            self.asked += data
            self.restart_timer()
            server_out.write(data)
            await server_out.drain()

    async def hold_replies(self, server_in: asyncio.StreamReader) -> None:
        while data := await server_in.read(1 << 16):
            self.held += data
            if len(self.held) > HELD_BYTES_MAX:
                self.release()
                await self.client_out.drain()
            else:
                self.restart_timer()

    def restart_timer(self) -> None:
        if self.timer:
            self.timer.cancel()
        loop = asyncio.get_running_loop()
        self.timer = loop.call_later(self.relay.settle, self.release)

    def is_greeted(self) -> bool:
        """Whether the client waited for what the server says unasked: PostgreSQL says nothing."""
        return False

    def opens(self) -> bool:
        """Whether the session can be used from here on."""
        return READY_IDLE in self.held

    def release(self) -> None:
        if not self.held:
            return
        if self.asked or self.is_greeted():
            if self.is_connected:
                self.relay.count.work += 1
            else:
                self.relay.count.connect += 1
            trip = Trip(self.number, self.is_connected, bytes(self.asked), bytes(self.held[:REPLY_BYTES]))
            self.relay.trips.append(trip)
            if self.relay.show:
                print_trip(trip)
            self.asked.clear()
        if not self.is_connected and self.opens():
            self.is_connected = True
            self.relay.count.sessions += 1
        self.client_out.write(bytes(self.held))
        self.held.clear()


def print_trip(trip: Trip) -> None:
    phase = "work" if trip.is_work else "connect"
    texts = [f"{tag} {text}".strip() for tag, text, _ in messages_of(trip.request)]
    described = ", ".join(texts) if trip.is_work else f"{len(trip.request)} bytes"
    print(f"connection {trip.connection} {phase}: {described}", file=sys.stderr)


def messages_of(data: bytes) -> list[tuple[str, str, bytes]]:
    """Tag, statement text (of Query and Parse, or empty) and body of frontend messages."""
    messages = []
    while len(data) >= 5:
        end = 1 + int.from_bytes(data[1:5], "big")
        tag, body, data = chr(data[0]), data[5:end], data[end:]
        text = {"Q": body.rstrip(b"\0"), "P": b"".join(body.split(b"\0", 2)[1:2])}.get(tag, b"")
        messages.append((tag, text.decode(errors="replace"), body))
    return messages


async def run_counted(
    command: list[str],
    env: dict[str, str],
    settle_ms: float = SETTLE_MS,
    show: bool = False,
    turns: type[Turns] | None = None,
    names: tuple[str, str] = ("PGHOST", "PGPORT"),
) -> tuple[int, Relay]:
    """Runs the command behind a relay to the address that env has under these names: its exit code and the relay."""
    host, port = names
    relay = Relay(env.get(host, "127.0.0.1"), int(env.get(port, "5432")), settle_ms, show, turns)
    redirected = env | {host: "127.0.0.1", port: str(await relay.listen())}
    try:
        process = await asyncio.create_subprocess_exec(*command, env=redirected)
        code = await process.wait()
    finally:
        await relay.close()
    return code, relay


def main() -> int:
    parser = argparse.ArgumentParser(description="Count the round trips of a program.")
    parser.add_argument("--settle-ms", type=float, default=SETTLE_MS)
    parser.add_argument("--show", action="store_true", help="print every trip to standard error")
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    run = run_counted(args.command, dict(os.environ), args.settle_ms, args.show)
    code, relay = asyncio.run(run)
    print(json.dumps(dataclasses.asdict(relay.count)), flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
