"""A client of PostgreSQL's over TLS that writes its secrets to a key log: keylog.py HOST PORT USER KEYLOG CASE...

Each case is one connection: its version of TLS and, after a colon, a cipher suite; suites of TLS 1.3 are chosen by way of the
program openssl, as Python cannot choose them. It logs in, which needs no password, and runs the same statements.
"""

import socket
import ssl
import struct
import subprocess
import sys


def message(tag, body=b""):
    return tag + struct.pack(">I", len(body) + 4) + body


class OpenSsl:
    """A TLS connection that the program openssl has made."""

    def __init__(self, host, port, keylog, suite):
        command = ["openssl", "s_client", "-quiet", "-starttls", "postgres", "-connect", f"{host}:{port}"]
        command += ["-tls1_3", "-ciphersuites", suite, "-keylogfile", keylog]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, **pipes)

    def sendall(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def recv(self, size):
        return self.process.stdout.read1(size)

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)


class Connection:
    def __init__(self, host, port, user, keylog, case):
        version, _, suite = case.partition(":")
        self.buffer = b""
        if version == "TLSv1_3" and suite:
            self.socket = OpenSsl(host, port, keylog, suite)
        else:
            self.socket = self.connect(host, port, keylog, version, suite)
        startup = b"\0\3\0\0user\0" + user.encode() + b"\0database\0postgres\0\0"
        self.ask(struct.pack(">I", len(startup) + 4) + startup)

    def connect(self, host, port, keylog, version, suite):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
        if suite:
            context.set_ciphers(suite)
        context.keylog_filename = keylog
        plain = socket.create_connection((host, port))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.sendall(struct.pack(">II", 8, 80877103))
        assert plain.recv(1) == b"S"
        return context.wrap_socket(plain)

    def ask(self, request):
        """Sends, and reads up to ReadyForQuery."""
        self.socket.sendall(request)
        while True:
            while len(self.buffer) < 5 or len(self.buffer) < 1 + struct.unpack(">I", self.buffer[1:5])[0]:
                received = self.socket.recv(65536)
                assert received, "the server has closed the connection"
                self.buffer += received
            length = 1 + struct.unpack(">I", self.buffer[1:5])[0]
            tag, self.buffer = self.buffer[:1], self.buffer[length:]
            assert tag != b"E", "the server refuses"
            if tag == b"Z":
                return

    def query(self, text):
        self.ask(message(b"Q", text.encode() + b"\0"))

    def run(self):
        for number in range(12):
            self.query(f"SELECT relname FROM pg_class WHERE oid = {number}")
        parse = message(b"P", b"one\0SELECT relkind FROM pg_class WHERE oid = $1\0\0\0")
        self.ask(parse + message(b"S"))
        for number in range(6):
            value = str(number).encode()
            bind = b"\0one\0\0\0\0\1" + struct.pack(">I", len(value)) + value + b"\0\0"
            self.ask(message(b"B", bind) + message(b"E", b"\0\0\0\0\0") + message(b"S"))
        self.query("SELECT repeat('long', 20000) FROM generate_series(1, 4)")
        self.query("SELECT '" + "x" * 40_000 + "'")
        self.query("SELECT 'last'")
        self.socket.sendall(message(b"X"))
        self.socket.close()


def main():
    host, port, user, keylog, *cases = sys.argv[1:]
    for case in cases:
        Connection(host, int(port), user, keylog, case).run()


main()
