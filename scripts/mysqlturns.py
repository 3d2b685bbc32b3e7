"""What turns.py and clients/measure.py have to know of MySQL's packets; it shares nothing with onetrip."""

from __future__ import annotations

from collections.abc import Iterator

from turns import Trip, Turns

HEADER_BYTES = 4
OK = 0x00
QUERY, PREPARE, EXECUTE, INIT_DB, RESET_CONNECTION = 0x03, 0x16, 0x17, 0x02, 0x1F
# MariaDB's: an execution with many sets of values, and the number that means what was prepared last.
BULK_EXECUTE, LAST_PREPARED = 0xFA, b"\xff\xff\xff\xff"
# Commands that have no text.
NAMES = {0x0E: "COM_PING", 0x1A: "COM_STMT_RESET", 0x1B: "COM_SET_OPTION", 0x1C: "COM_STMT_FETCH", 0x11: "COM_CHANGE_USER"}
ADDRESS = ("MYSQL_HOST", "MYSQL_TCP_PORT")


def payloads(data: bytes) -> Iterator[bytes]:
    """What packets carry; those of more than 16 MiB are not joined."""
    while len(data) > HEADER_BYTES:
        end = HEADER_BYTES + int.from_bytes(data[:3], "little")
        yield data[HEADER_BYTES:end]
        data = data[end:]


class MysqlTurns(Turns):
    """The server speaks first, which the client waits for, and an OK packet ends the login."""

    has_greeted = False

    def is_greeted(self) -> bool:
        first = not self.has_greeted
        self.has_greeted = True
        return first

    def opens(self) -> bool:
        return any(payload[:1] == bytes([OK]) for payload in payloads(bytes(self.held)))


class MysqlSession:
    """The prepared statements of one connection, to know what is executed."""

    def __init__(self) -> None:
        self.statements: dict[bytes, str] = {}

    def read(self, trip: Trip, number: int) -> tuple[list[str], list[str], set[int]]:
        """Statements executed, statements prepared, and the trips known to fetch by portions."""
        executed, prepared, fetches = [], [], set()
        for payload in filter(None, payloads(trip.request)):
            code, body = payload[0], payload[1:]
            text = body.decode(errors="replace")
            if code == QUERY:
                executed.append(text)
            elif code == PREPARE:
                prepared.append(text)
                self.statements[trip.reply[HEADER_BYTES + 1 : HEADER_BYTES + 5]] = text
                self.statements[LAST_PREPARED] = text
            elif code in (EXECUTE, BULK_EXECUTE):
                executed.append(self.statements.get(body[:4], ""))
            elif code == INIT_DB:
                executed.append(f"USE {text}")
            elif code == RESET_CONNECTION:
                executed.append("RESET ALL")
            elif code in NAMES:
                executed.append(f"-- {NAMES[code]}")
                fetches |= {number} if NAMES[code] == "COM_STMT_FETCH" else set()
        return executed, prepared, fetches

    def called(self, trip: Trip) -> list[int]:
        """Numbers of functions that are called by number: none."""
        return []
