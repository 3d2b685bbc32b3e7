"""Sends bursts from one network namespace to another through a kernel's own TCP, over some distance, and captures
what the sender put on the wire. Each of the three processes prints how long it had to wait for a processor, in ns.

    client namespace --veth-- [this process: every frame waits] --veth-- server namespace

The delay is made here, in user space, because not every kernel has netem; a millisecond more or less does not change
in which round trip a segment leaves. Needs root, iproute2 and tshark. Run it inside a fresh network namespace:

    unshare --net python3 flights.py CAPTURE CONGESTION_CONTROL ONE_WAY_MS BYTES,PAUSE_MS,BYTES,...
"""

import array
import collections
import contextlib
import ctypes
import fcntl
import os
import select
import socket
import struct
import subprocess
import sys
import time
import traceback

CLONE_NEWNET = 0x40000000
SIOCETHTOOL = 0x8946
# ETHTOOL_S{TXCSUM,SG,TSO,GSO,GRO}: frames cross a packet socket, so each must be complete and no larger than it says.
OFFLOADS = (0x17, 0x19, 0x1F, 0x24, 0x2C)
SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23
ETH_P_ALL = 3
PORT = 5432
SETTINGS = {
    "net/ipv4/tcp_no_metrics_save": "1",
    "net/ipv4/tcp_rmem": "4096 131072 6291456",
    "net/ipv4/tcp_wmem": "4096 16384 4194304",
    "net/ipv4/tcp_slow_start_after_idle": "1",
}


def print_waited():
    with contextlib.suppress(FileNotFoundError), open("/proc/self/schedstat") as statistics:
        print(statistics.read().split()[1], flush=True)


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def turn_offloads_off(interface):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command in OFFLOADS:
            value = array.array("I", [command, 0])
            request = struct.pack("16sP8x", interface.encode(), value.buffer_info()[0])
            fcntl.ioctl(control, SIOCETHTOOL, request)


class Namespace:
    """A forked process in a network namespace of its own, which runs `work` when told to go."""

    def __init__(self, interface, peer, address, work):
        ready_read, ready_write = os.pipe()
        go_read, self.go_write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "unshare")
                os.write(ready_write, b"1")
                os.read(go_read, 1)
                for name, value in SETTINGS.items():
                    with open(f"/proc/sys/{name}", "w") as setting:
                        setting.write(value)
                ip("address", "add", address, "dev", interface)
                ip("link", "set", interface, "up")
                ip("link", "set", "lo", "up")
                turn_offloads_off(interface)
                work()
                print_waited()
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        os.read(ready_read, 1)
        ip("link", "add", peer, "type", "veth", "peer", "name", interface)
        ip("link", "set", interface, "netns", str(self.pid))
        ip("link", "set", peer, "up")
        turn_offloads_off(peer)

    def go(self):
        os.write(self.go_write, b"1")


def serve(capture, congestion_control, plan):
    listener = socket.create_server(("10.9.0.2", PORT))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control.encode())
    tshark = subprocess.Popen(
        ["tshark", "-q", "-i", "sender", "-w", capture, "-f", f"tcp port {PORT}", "-s", "100", "-B", "16"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    while b"Capture" not in tshark.stderr.readline():
        if tshark.poll() is not None:
            raise RuntimeError("tshark has ended")
    time.sleep(0.5)
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.recv(1)
    for burst in plan:
        if isinstance(burst, bytes):
            connection.sendall(burst)
            connection.recv(1)  # the client has it all
        else:
            time.sleep(burst)
    connection.close()
    time.sleep(0.5)
    tshark.terminate()
    tshark.wait()


def fetch(plan):
    deadline = time.monotonic() + 10
    while True:
        try:
            connection = socket.create_connection(("10.9.0.2", PORT))
            break
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(b"?")
    buffer = bytearray(1 << 20)
    for burst in plan:
        left = len(burst) if isinstance(burst, bytes) else 0
        while left > 0:
            left -= connection.recv_into(buffer)
        if isinstance(burst, bytes):
            connection.sendall(b"!")
    connection.recv(1)


def open_packets(interface):
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    packets.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    packets.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
    packets.bind((interface, 0))
    packets.setblocking(False)
    return packets


def delay_until_done(ends, one_way, namespaces):
    """Passes frames on after `one_way` seconds, until both namespaces have ended; says whether one failed."""
    waiting = [collections.deque(), collections.deque()]
    running, failed = {namespace.pid for namespace in namespaces}, False
    while running:
        now = time.monotonic()
        for side in (0, 1):
            while waiting[side] and waiting[side][0][0] <= now:
                frame = waiting[side].popleft()[1]
                with contextlib.suppress(OSError):  # the other namespace may have ended
                    ends[1 - side].send(frame)
        due = min((queue[0][0] for queue in waiting if queue), default=now + 0.05)
        for end in select.select(ends, [], [], max(0.0, due - time.monotonic()))[0]:
            side = ends.index(end)
            try:
                while True:
                    waiting[side].append((time.monotonic() + one_way, end.recv(65536)))
            except BlockingIOError:
                pass
            except OSError:  # the interface goes with its namespace
                waiting[side].clear()
                time.sleep(0.01)
        pid, status = os.waitpid(-1, os.WNOHANG)
        running.discard(pid)
        failed |= status != 0
    return failed


def main():
    capture, congestion_control, one_way_ms, words = sys.argv[1:]
    numbers = [int(word) for word in words.split(",")]
    plan = [bytes(number) if index % 2 == 0 else number / 1000 for index, number in enumerate(numbers)]
    server = Namespace("sender", "middle0", "10.9.0.2/24", lambda: serve(capture, congestion_control, plan))
    client = Namespace("reader", "middle1", "10.9.0.1/24", lambda: fetch(plan))
    ends = [open_packets("middle0"), open_packets("middle1")]
    server.go()
    time.sleep(3)
    client.go()
    failed = delay_until_done(ends, int(one_way_ms) / 1000, [server, client])
    print_waited()
    sys.exit(failed)


main()
