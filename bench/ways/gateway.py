"""What the gateway costs: `pgbench -S` direct, through onetrip, PgBouncer, HAProxy and a relay that does nothing else.

    bench/run gateway                       # everything: about eight minutes
    bench/run gateway --rounds 3 --seconds 2 --case pinned-1

Two cases, each with prepared and with simple statements:

    pinned-1   1 client; server, proxy and pgbench share one core: repeats within a few per cent
    free-8     8 clients in 2 threads, on all cores: contention, as in real use

and, when asked for by --case: free-1, free-64 and free-1000, so many clients on all cores. The server is thrown away
afterwards and not durable on purpose. How it is measured: bench/ways/proxied.py.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pgserver
from processors import children, pinned
from proxied import TIMED, Bench, Case, Told, find, output_of, search

PEER = "pgbouncer"
CONNECTIONS_MAX = 1100
PGBOUNCER = """\
[databases]
* = host=127.0.0.1 port={upstream} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = session
default_pool_size = 1100
max_client_conn = 1200
server_tls_sslmode = disable
ignore_startup_parameters = extra_float_digits
log_connections = 0
log_disconnections = 0
"""


class PgBench:
    """`pgbench -S`."""

    packages = {"pgbench": "postgresql-15", "pgbouncer": "pgbouncer"}

    @property
    def versions(self) -> dict[str, list[str]]:
        return {"PostgreSQL": [find("pgbench"), "--version"], "PgBouncer": [find("pgbouncer"), "--version"]}

    def server(self) -> pgserver.PgServer:
        settings = {"shared_buffers": "256MB", "max_connections": str(CONNECTIONS_MAX)}
        return pgserver.PgServer(auth="trust", settings=settings)

    def prepare(self, server: pgserver.Address, scale: int) -> None:
        self.pgbench(server, server.port, ["--initialize", f"--scale={scale}", "--quiet"])
        self.pgbench(server, server.port, ["--select-only", "--no-vacuum", "--time=1"])

    def run(
        self, server: pgserver.Address, port: int, mode: str, shape: Case, seconds: int, on: set[int] | None
    ) -> Told:
        options = ["--select-only", "--no-vacuum", f"--protocol={mode}", f"--time={seconds}"]
        options += [f"--client={shape.clients}", f"--jobs={shape.threads}"]
        with tempfile.TemporaryDirectory(prefix="onetrip-bench-") as logs:
            if shape.clients > 1:
                options += ["--log", f"--log-prefix={logs}/log", f"--sampling-rate={1 / TIMED}"]
            output, cpu = self.pgbench(server, port, options, on)
            p99_us = percentile_us(Path(logs), 0.99)
        return Told(
            rate=float(search(r"tps = ([\d.]+) \(without", output)),
            queries=int(search(r"transactions actually processed: (\d+)", output)),
            cpu=cpu,
            p99_us=p99_us,
        )

    def pgbench(
        self, server: pgserver.Address, port: int, options: list[str], on: set[int] | None = None
    ) -> tuple[str, float]:
        place = ["--host=127.0.0.1", f"--port={port}", f"--username={server.user}", server.dbname]
        return output_of([*pinned(on), find("pgbench"), *options, *place])

    def upstream(self, server: pgserver.Address) -> str:
        return f"postgres://127.0.0.1:{server.port}/?sslmode=disable"

    def proxy(
        self, way: str, server: pgserver.Address, port: int, folder: Path
    ) -> tuple[list[str], dict[str, object]] | None:
        if way != PEER:
            return None
        config = folder / "pgbouncer.ini"
        config.write_text(PGBOUNCER.format(port=port, upstream=server.port, user=server.user))
        folder.chmod(0o755)
        # PgBouncer refuses to run as root.
        return [find("pgbouncer"), str(config)], pgserver.identity(pgserver.unprivileged_account())

    def is_over(self, server: pgserver.Address) -> bool:
        return not any(" 127.0.0.1" in process_name(pid) for pid in children(server.pid))


def process_name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def percentile_us(logs: Path, part: float) -> float | None:
    """Of the times in pgbench's logs (its third column)."""
    times = [float(line.split()[2]) for log in logs.iterdir() for line in log.read_text().splitlines()]
    return sorted(times)[int(len(times) * part)] if times else None


def main() -> int:
    return Bench("gateway", PgBench(), "Measure what the gateway costs beside PgBouncer and HAProxy.").main()
