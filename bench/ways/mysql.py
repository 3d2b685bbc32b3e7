"""What the gateway costs before MariaDB: sysbench's point selects direct, through onetrip, HAProxy and a relay.

    bench/run mysql                         # everything: about six minutes
    bench/run mysql --rounds 3 --seconds 2 --case pinned-1

The cases are those of `bench/run gateway`: pinned-1 and free-8, each with prepared statements and with texts. How it is
measured: bench/ways/proxied.py. The server is thrown away afterwards and not durable on purpose.
"""

from __future__ import annotations

from pathlib import Path

import mysqlserver
from processors import pinned
from proxied import Bench, Case, Told, find, output_of, search

WAYS_OF_STATEMENTS = {"prepared": "auto", "text": "disable"}


class Sysbench:
    """`sysbench oltp_point_select`: one row by its primary key, each time."""

    packages = {"sysbench": "sysbench", "mariadbd": "mariadb-server-core"}

    @property
    def versions(self) -> dict[str, list[str]]:
        return {"MariaDB": [find("mariadbd"), "--version"], "sysbench": [find("sysbench"), "--version"]}

    def server(self) -> mysqlserver.MysqlServer:
        return mysqlserver.MysqlServer("mariadb", ["--innodb-buffer-pool-size=256M"])

    def prepare(self, server: mysqlserver.Address, scale: int) -> None:
        self.sysbench(server, server.port, ["--tables=1", f"--table-size={scale}", "oltp_point_select", "prepare"])
        self.rows = scale

    def run(
        self, server: mysqlserver.Address, port: int, mode: str, shape: Case, seconds: int, on: set[int] | None
    ) -> Told:
        options = ["--tables=1", f"--table-size={self.rows}", f"--time={seconds}", f"--threads={shape.clients}"]
        options += [f"--db-ps-mode={WAYS_OF_STATEMENTS[mode]}", "--percentile=99", "oltp_point_select", "run"]
        output, cpu = self.sysbench(server, port, options, on)
        p99_us = float(search(r"99th percentile:\s+([\d.]+)", output)) * 1000
        return Told(
            rate=float(search(r"queries:\s+\d+\s+\(([\d.]+) per sec", output)),
            queries=int(search(r"queries:\s+(\d+)\s+\(", output)),
            cpu=cpu,
            p99_us=p99_us if shape.clients > 1 else None,
        )

    def sysbench(
        self, server: mysqlserver.Address, port: int, options: list[str], on: set[int] | None = None
    ) -> tuple[str, float]:
        place = ["--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={port}", f"--mysql-user={server.user}"]
        place += [f"--mysql-password={server.password}", f"--mysql-db={server.database}"]
        return output_of([*pinned(on), find("sysbench"), *place, *options])

    def upstream(self, server: mysqlserver.Address) -> str:
        return f"mysql://127.0.0.1:{server.port}"

    def proxy(
        self, way: str, server: mysqlserver.Address, port: int, folder: Path
    ) -> tuple[list[str], dict[str, object]] | None:
        return None

    def is_over(self, server: mysqlserver.Address) -> bool:
        """Its sessions are threads, whose time is the server's at once."""
        return True


def main() -> int:
    return Bench("mysql", Sysbench(), "Measure what the gateway costs before MariaDB, beside HAProxy.").main()
