"""How fast `onetrip analyze` reads: captures that are made up, of many connections of PostgreSQL's and then of MySQL's, read by
onetrip and by tshark.

    bench/run captures                              # 1 GB each, 1,000 connections open at once: about ten minutes
    bench/run captures --protocol mysql
    bench/run captures --connections 10000 --no-tshark
    bench/run captures --protocol mysql --keep big.pcap --bytes 2e9  # keep the file

The traffic is that of programs: log-ins, simple and extended queries, named statements, transactions, results of one row and
of many, long values; segments of 1,448 bytes, acknowledgements alone among them. It depends on --seed only. Every file is read
once before it is measured, so that it comes from the page cache. Times are those of the CPU, as the system counts them for the
process: what else the machine does adds little to them. tshark reads the first --tshark-bytes of the same file for the fields
that onetrip's report needs.

The release build has to be there: cargo build --release -p onetrip. Only the standard library is used.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import mysql_traffic
import records
from traffic import SELECT, TABLES, WORDS, Traffic

REPOSITORY = records.REPOSITORY
ONETRIP = records.ONETRIP
BENCH = records.case("captures")
SEGMENT_BYTES = 1448
VARIANTS = 64
FIELDS = (
    "frame.time_epoch tcp.stream tcp.len tcp.analysis.initial_rtt tcp.analysis.ack_rtt tcp.analysis.retransmission"
    " tcp.analysis.lost_segment tcp.analysis.out_of_order tcp.analysis.zero_window"
).split()
OF_PROTOCOL = {
    "postgresql": "pgsql.type pgsql.query pgsql.statement pgsql.tag".split(),
    "mysql": "mysql.command mysql.query mysql.stmt_id mysql.affected_rows".split(),
}
PORTS = {"postgresql": 5432, "mysql": 3306}
SYN, ACK, FIN, PUSH = 2, 16, 1, 8


def message(tag: bytes, body: bytes = b"") -> bytes:
    return tag + struct.pack(">I", len(body) + 4) + body


READY = {status: message(b"Z", status) for status in (b"I", b"T", b"E")}
SYNC = message(b"S")
COLUMNS = ("id", 23), ("customer_id", 23), ("state", 25), ("amount", 1700), ("title", 25), ("changed_at", 1184)
DESCRIBED = message(
    b"T",
    struct.pack(">H", len(COLUMNS))
    + b"".join(name.encode() + b"\0" + struct.pack(">IHIhih", 16400, 1, oid, 4, -1, 0) for name, oid in COLUMNS),
)


class Conversation(Traffic):
    """The same in PostgreSQL's messages, with statements of one group besides."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__(dice)
        self.prepared: dict[str, str] = {}
        self.log_in()
        acts = {self.named: 30, self.simple: 15, self.extended: 15, self.listing: 12}
        self.play(acts | {self.transaction: 10, self.long_value: 3, self.report: 5})
        self.exchanges.append([(True, message(b"X"))])

    def turn(self, request: bytes, reply: bytes) -> None:
        self.exchanges.append([(True, request), (False, reply)])

    def log_in(self) -> None:
        startup = b"\0\3\0\0user\0shop\0database\0shop\0application_name\0worker\0\0"
        settings = {"server_version": "15.8", "client_encoding": "UTF8", "DateStyle": "ISO, MDY", "TimeZone": "UTC"}
        told = b"".join(message(b"S", f"{name}\0{value}\0".encode()) for name, value in settings.items())
        granted = message(b"R", struct.pack(">I", 0)) + told + message(b"K", struct.pack(">II", 4711, 99)) + READY[b"I"]
        self.turn(struct.pack(">I", len(startup) + 4) + startup, granted)

    def row(self, size: int = 0) -> bytes:
        values = self.values(size, "2026-11-23 12:34:56.789012+00")
        cells = b"".join(struct.pack(">I", len(value)) + value.encode() for value in values)
        return message(b"D", struct.pack(">H", len(values)) + cells)

    def rows(self, count: int, size: int = 0) -> bytes:
        return b"".join(self.row(size) for _ in range(count)) + message(b"C", f"SELECT {count}\0".encode())

    def query(self, text: str, count: int, size: int = 0) -> None:
        self.turn(message(b"Q", text.encode() + b"\0"), DESCRIBED + self.rows(count, size) + READY[b"I"])

    def done(self, text: str, changed: int, is_open: bool) -> None:
        word = text.split()[0]
        tag = {"UPDATE": f"UPDATE {changed}", "INSERT": f"INSERT 0 {changed}"}.get(word, word)
        reply = message(b"C", tag.encode() + b"\0") + READY[b"T" if is_open else b"I"]
        self.turn(message(b"Q", text.encode() + b"\0"), reply)

    def bind(self, name: str, values: list[str]) -> bytes:
        cells = b"".join(struct.pack(">I", len(value)) + value.encode() for value in values)
        body = b"\0" + name.encode() + b"\0\0\0" + struct.pack(">H", len(values)) + cells + b"\0\0"
        return message(b"B", body) + message(b"E", b"\0\0\0\0\0")

    def named(self) -> None:
        table = self.dice.choice(TABLES)
        value = [str(self.dice.randrange(10**6))]
        name = self.prepared.get(table)
        if name is None:
            name = self.prepared[table] = f"S_{len(self.prepared) + 1}"
            text = f"{SELECT} {table} WHERE id = $1"
            parse = message(b"P", f"{name}\0{text}\0".encode() + b"\0\0") + message(b"D", b"S" + name.encode() + b"\0")
            answer = message(b"1") + message(b"t", struct.pack(">HI", 1, 23)) + DESCRIBED
            self.turn(parse + SYNC, answer + READY[b"I"])
        self.turn(self.bind(name, value) + SYNC, message(b"2") + self.rows(1) + READY[b"I"])

    def extended(self) -> None:
        table = self.dice.choice(TABLES)
        text = f"SELECT t.id, t.customer_id, t.state, t.amount, t.title, t.changed_at FROM {table} t " \
            f"JOIN customers c ON c.id = t.customer_id WHERE c.region = $1 AND t.amount > $2 ORDER BY t.changed_at DESC LIMIT 10"
        parse = message(b"P", b"\0" + text.encode() + b"\0\0\0")
        request = parse + message(b"D", b"S\0") + self.bind("", [self.dice.choice(WORDS), "100.00"]) + SYNC
        answer = message(b"1") + message(b"t", struct.pack(">HII", 2, 25, 1700)) + DESCRIBED + message(b"2")
        self.turn(request, answer + self.rows(10) + READY[b"I"])


CONVERSATIONS = {"postgresql": Conversation, "mysql": mysql_traffic.Conversation}


def segments(conversation: Traffic, dice: random.Random) -> list[list[tuple[bytes, bytes, int]]]:
    """The packets of each exchange: bytes before and after the client's address and port, and which way they go."""
    next_byte = {True: 1000, False: 2000}
    turns = []

    def packet(from_client: bool, flags: int, data: bytes = b"") -> tuple[bytes, bytes, int]:
        sequence, acknowledged = next_byte[from_client], next_byte[not from_client]
        options = b"\2\4\5\xb4\1\3\3\7" if flags & SYN else b"\1\1\x08\x0a" + struct.pack(">II", sequence, acknowledged)
        header_bytes = 20 + len(options)
        tcp = struct.pack(
            ">IIBBHHH", sequence, 0 if flags == SYN else acknowledged, header_bytes // 4 << 4, flags, 502, 0, 0
        ) + options + data
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + 4 + len(tcp), 1, 0x4000, 64, 6, 0)
        next_byte[from_client] += len(data) + bool(flags & (SYN | FIN))
        return bytes(12) + b"\x08\0" + ip, tcp, from_client

    turns.append([packet(True, SYN), packet(False, SYN | ACK), packet(True, ACK)])
    for exchange in conversation.exchanges:
        packets = []
        for from_client, data in exchange:
            for number, at in enumerate(range(0, len(data), SEGMENT_BYTES)):
                packets.append(packet(from_client, ACK | PUSH, data[at : at + SEGMENT_BYTES]))
                if number % 2 == 1:
                    packets.append(packet(not from_client, ACK))
        if dice.random() < 0.3:
            packets.append(packet(True, ACK))
        turns.append(packets)
    turns[-1] += [packet(True, ACK | FIN), packet(False, ACK | FIN), packet(True, ACK)]
    return turns


def generate(path: Path, protocol: str, size: float, connections: int, seed: int) -> tuple[int, int]:
    """Writes a capture; how many packets and connections it has."""
    dice = random.Random(seed)
    variants = [segments(CONVERSATIONS[protocol](dice), dice) for _ in range(VARIANTS)]
    server = bytes([10, 9, 0, 1])
    port = struct.pack(">H", PORTS[protocol])
    pack = struct.Struct("<IIII").pack
    begun = packets = written = 0
    now_us = 1_790_000_000_000_000
    live: list[list] = []

    def begin(at: int) -> list:
        nonlocal begun
        begun += 1
        client = bytes([10, begun >> 24 & 127 | 64, begun >> 16 & 255, begun >> 8 & 255])
        return [variants[dice.randrange(VARIANTS)], at, client, struct.pack(">H", 20_000 + begun % 256)]

    with path.open("wb", buffering=1 << 20) as out:
        out.write(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 1))
        # They are not all at the same place of their conversations.
        live = [begin(0) for _ in range(connections)]
        while written < size:
            place = dice.randrange(connections)
            entry = live[place]
            turns, at, client, client_port = entry
            parts = []
            for before, tcp, from_client in turns[at]:
                now_us += 7
                if from_client:
                    head = (client, server, client_port, port)
                else:
                    head = (server, client, port, client_port)
                length = len(before) + 12 + len(tcp)
                parts += (pack(now_us // 1_000_000, now_us % 1_000_000, length, length), before, *head, tcp)
            packets += len(turns[at])
            block = b"".join(parts)
            written += len(block)
            out.write(block)
            entry[1] += 1
            if entry[1] == len(turns):
                live[place] = begin(0)
    return packets, begun


def run(command: list[str], output: Path | None = None) -> tuple[float, float, int]:
    """CPU seconds, wall seconds and peak memory in KiB of a command."""
    begun = time.monotonic()
    with (output.open("wb") if output else open(os.devnull, "wb")) as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE)
        told = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"bench: captures: {' '.join(command)}: {told.decode(errors='replace')[-600:]}")
    return used.ru_utime + used.ru_stime, time.monotonic() - begun, used.ru_maxrss


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bytes", type=float, default=float(BENCH["bytes"]))
    parser.add_argument("--connections", type=int, default=BENCH["connections"], help="open at once")
    parser.add_argument("--seed", type=int, default=BENCH["seed"])
    parser.add_argument("--rounds", type=int, default=BENCH["rounds"])
    parser.add_argument("--tshark-bytes", type=float, default=float(BENCH["tshark_bytes"]))
    parser.add_argument("--no-tshark", action="store_true")
    parser.add_argument("--keep", type=Path, help="keep the capture here")
    parser.add_argument("--read", type=Path, help="read this capture, and make none")
    parser.add_argument("--protocol", choices=PORTS, action="append", help="both, if none is named")
    args = parser.parse_args()
    if (args.keep or args.read) and len(args.protocol or PORTS) > 1:
        parser.error("--keep and --read are about one file: name its --protocol")
    onetrip = Path(os.environ.get("ONETRIP", ONETRIP))
    if not onetrip.exists():
        raise SystemExit(f"bench: captures: {onetrip} is not there; cargo build --release -p onetrip")
    for protocol in args.protocol or PORTS:
        measure(protocol, onetrip, args)
    return 0


def measure(protocol: str, onetrip: Path, args: argparse.Namespace) -> None:
    """Both readers on one capture."""
    with tempfile.TemporaryDirectory() as directory:
        path = args.read or args.keep or Path(directory) / "made.pcap"
        print(f"{protocol}:")
        if not args.read:
            packets, begun = generate(path, protocol, args.bytes, args.connections, args.seed)
            print(f"{path.stat().st_size / 1e6:.0f} MB, {packets} packets, {begun} connections, {args.connections} at once")
        size = path.stat().st_size
        report = Path(directory) / "report.json"
        command = [str(onetrip), "analyze", str(path), "--format", "json"]
        run(["cat", str(path)])
        rates = []
        for _ in range(args.rounds):
            cpu, wall, memory = run(command, report)
            rates.append(size / cpu / 1e6)
            records.keep(
                way="onetrip analyze", protocol=protocol, bytes=size, cpu_seconds=cpu, seconds=wall, memory_kib=memory
            )
            print(f"onetrip: {cpu:.2f} s of CPU ({size / cpu / 1e6:.0f} MB/s), {wall:.2f} s, {memory / 1024:.0f} MiB")
        said = json.loads(report.read_text())
        print(f"{said['trips']['total']} round trips, {said['statements']} statements, {said['connections']['opened']} connections")
        if args.no_tshark:
            return
        if shutil.which("tshark") is None:
            raise SystemExit("bench: captures: tshark is not installed; --no-tshark leaves it out")
        part = Path(directory) / "part.pcap"
        with path.open("rb") as whole, part.open("wb") as out:
            data = whole.read(int(args.tshark_bytes))
            place = 24
            while place + 16 <= len(data):
                after = place + 16 + struct.unpack_from("<I", data, place + 8)[0]
                if after > len(data):
                    break
                place = after
            out.write(data[:place])
        fields = [word for field in FIELDS + OF_PROTOCOL[protocol] for word in ("-e", field)]
        cpu, wall, memory = run(["tshark", "-n", "-r", str(part), "-T", "fields", *fields])
        size = part.stat().st_size
        rate = size / cpu / 1e6
        records.keep(way="tshark", protocol=protocol, bytes=size, cpu_seconds=cpu, seconds=wall, memory_kib=memory)
        print(f"tshark: {cpu:.2f} s of CPU ({rate:.1f} MB/s), {wall:.2f} s, {memory / 1024:.0f} MiB")
        print(f"onetrip is {sorted(rates)[len(rates) // 2] / rate:.1f} times as fast")
