"""What the gateway costs: `pgbench -S` direct, through onetrip, PgBouncer, HAProxy and a relay that does nothing else.

    bench/run gateway                       # everything: about eight minutes
    bench/run gateway --rounds 3 --seconds 2 --case pinned-1

Two cases, each with prepared and with simple statements:

    pinned-1   1 client; server, proxy and pgbench share one core: repeats within a few per cent
    free-8     8 clients in 2 threads, on all cores: contention, as in real use

and, when asked for by --case: free-1, free-64 and free-1000, so many clients on all cores. In every round each way is
measured once, in an order that rotates, so that what else the machine does hits all of them; ratios are taken between
medians of the same run. The server is thrown away afterwards and not durable on purpose. Raw samples go to
target/bench as JSON; the table goes to standard output, and with --write into bench/results.

Only the standard library is used. PostgreSQL's programs, PgBouncer and HAProxy are installed if they are missing
and we are root on Debian; otherwise one line says what to install.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import os
import platform
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pgserver
import records

REPOSITORY = records.REPOSITORY
ONETRIP = records.ONETRIP
PACKAGES = {
    "pgbench": "postgresql-15",
    "pgbouncer": "pgbouncer",
    "haproxy": "haproxy",
    "taskset": "util-linux",
    "cc": "gcc",
}
DIRECT, PEER, RELAY = "direct", "pgbouncer", "relay"
RELAY_PROGRAM = REPOSITORY / "target/bench/relay"
BENCH = records.case("gateway")
MODES, WAYS, MORE_WAYS = BENCH["modes"], BENCH["ways"], BENCH["more_ways"]
START_SECONDS_MAX = 10
BARS: list[dict] = BENCH["bar"]
CONNECTIONS_MAX = 1100
# One query in so many is timed, for the slowest ones.
TIMED = 10
TICKS = os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass(frozen=True)
class Case:
    clients: int
    threads: int
    is_pinned: bool


CASES = {name: Case(**shape) for name, shape in BENCH["case"].items()}


@dataclasses.dataclass
class Sample:
    """One run of pgbench. Times are seconds of CPU unless named otherwise."""

    case: str
    mode: str
    way: str
    round: int
    tps: float
    transactions: int
    elapsed: float
    proxy_cpu: float
    server_cpu: float
    pgbench_cpu: float
    other_cpu: float
    """CPU of everything else on the machine in the meantime, as far as it can be told."""
    load: float
    p99_us: float | None
    """Within this many microseconds 99 of 100 queries are answered; not taken of one client."""

    def query_us(self) -> float:
        """Wall time of one query of one client, in microseconds."""
        return CASES[self.case].clients * 1e6 / self.tps

    def proxy_us(self) -> float:
        return self.proxy_cpu * 1e6 / self.transactions


class BenchError(RuntimeError):
    """Why there is no measurement."""


def main() -> int:
    args = arguments()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pgserver.raise_stop)
    try:
        install_missing()
        if args.priority:
            take_priority()
        if not args.no_build:
            build = ["cargo", "build", "--release", "--package", "onetrip"]
            subprocess.run(build, cwd=REPOSITORY, check=True)
        asked = versions()  # now, since others may commit while we measure
        samples = measure(args)
    except KeyboardInterrupt:
        return 130
    except (BenchError, pgserver.ServerError, subprocess.CalledProcessError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    run = {"versions": asked, "machine": machine(), "conditions": conditions(args)}
    records.note(**run)
    text = report(samples, run)
    print(text)
    if args.write:
        records.write("gateway", text)
    return 1 if text.count("| no |") else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure what the gateway costs beside PgBouncer and HAProxy.")
    parser.add_argument("--rounds", type=int, default=BENCH["rounds"], help="samples of each way")
    parser.add_argument("--seconds", type=int, default=BENCH["seconds"], help="of one sample")
    parser.add_argument("--scale", type=int, default=BENCH["scale"], help="of pgbench's tables")
    parser.add_argument("--case", action="append", choices=CASES, help=f"default: {', '.join(BENCH['default_cases'])}")
    parser.add_argument("--mode", action="append", choices=MODES, help="default: both")
    parser.add_argument("--way", action="append", choices=WAYS + MORE_WAYS, help=f"default: {', '.join(WAYS)}")
    parser.add_argument("--write", action="store_true", help="put the table into bench/results")
    parser.add_argument("--no-build", action="store_true", help="use target/release/onetrip as it is")
    parser.add_argument("--priority", action="store_true", help="run before everything else (root)")
    args = parser.parse_args()
    args.case = args.case or BENCH["default_cases"]
    args.mode = args.mode or list(MODES)
    args.way = args.way or list(WAYS)
    return args


def take_priority() -> None:
    """Lets everything measured run before what else the machine does, for each way alike; needs root."""
    with contextlib.suppress(PermissionError):
        os.setsid()  # a scheduling group of our own (sched(7), autogroup); refused where we have one
    group = Path("/proc/self/autogroup")
    if group.exists():
        group.write_text("-20")
    os.nice(-20)


def install_missing() -> None:
    """With Debian's packages where we may, else says what to install."""
    missing = sorted({package for program, package in PACKAGES.items() if not find(program)})
    if not missing:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise BenchError(f"please install: {' '.join(missing)}")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    # Debian would start services of these packages; nothing may be left running.
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *missing]
    with no_services():
        subprocess.run(["apt-get", "update", "-qq"], env=environment, check=True)
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)


@contextlib.contextmanager
def no_services() -> Iterator[None]:
    """Keeps packages from starting services while they are installed (Debian's policy-rc.d)."""
    policy = Path("/usr/sbin/policy-rc.d")
    if policy.exists():
        yield
        return
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    try:
        yield
    finally:
        policy.unlink()


def find(program: str) -> str | None:
    """Also in the folders of system programs and of PostgreSQL 15, which may not be in PATH."""
    folders = [os.environ.get("PATH", ""), "/usr/sbin", "/usr/lib/postgresql/15/bin"]
    return shutil.which(program, path=":".join(folders))


def measure(args: argparse.Namespace) -> list[Sample]:
    plan = [(case, mode, way) for case in args.case for mode in args.mode for way in args.way]
    total, samples = len(plan) * args.rounds, []
    if RELAY in args.way:
        RELAY_PROGRAM.parent.mkdir(parents=True, exist_ok=True)
        source = REPOSITORY / "bench/relay/relay.c"
        subprocess.run([find("cc"), "-O2", "-o", RELAY_PROGRAM, source], check=True)
    with pgserver.PgServer(
        auth="trust", settings={"shared_buffers": "256MB", "max_connections": str(CONNECTIONS_MAX)}
    ) as server:
        pgbench(server, server.port, ["--initialize", f"--scale={args.scale}", "--quiet"])
        pgbench(server, server.port, ["--select-only", "--no-vacuum", "--time=1"])
        for number in range(args.rounds):
            for case in args.case:
                set_cores(server.pid, cores(case))
                for mode in args.mode:
                    shift = number % len(args.way)
                    for way in args.way[shift:] + args.way[:shift]:
                        samples.append(measure_one(server, case, mode, way, number, args.seconds))
                        last = samples[-1]
                        records.keep(**dataclasses.asdict(last))
                        place = f"{len(samples)}/{total} {case} {mode} {way}"
                        print(f"{place}: {last.tps:.0f} tps", file=sys.stderr, flush=True)
    return samples


def measure_one(server: pgserver.Address, case: str, mode: str, way: str, number: int, seconds: int) -> Sample:
    shape = CASES[case]
    options = ["--select-only", "--no-vacuum", f"--protocol={mode}", f"--time={seconds}"]
    options += [f"--client={shape.clients}", f"--jobs={shape.threads}"]
    with tempfile.TemporaryDirectory(prefix="onetrip-bench-") as logs, proxy(way, server, cores(case)) as (pid, port):
        if shape.clients > 1:
            options += ["--log", f"--log-prefix={logs}/log", f"--sampling-rate={1 / TIMED}"]
        server_cpu, proxy_cpu, busy = server_seconds(server.pid), cpu_seconds(pid), machine_seconds()
        started = time.monotonic()
        output, pgbench_cpu = pgbench(server, port, options, cores(case))
        elapsed = time.monotonic() - started
        proxy_cpu, busy = cpu_seconds(pid) - proxy_cpu, machine_seconds() - busy
        p99_us = percentile_us(Path(logs), 0.99)
    # A backend's time is the server's once it is gone; PgBouncer keeps it as long as itself.
    wait_for_backends_to_end(server.pid)
    server_cpu = server_seconds(server.pid) - server_cpu
    return Sample(
        case=case,
        mode=mode,
        way=way,
        round=number,
        tps=float(search(r"tps = ([\d.]+) \(without", output)),
        transactions=int(search(r"transactions actually processed: (\d+)", output)),
        elapsed=elapsed,
        proxy_cpu=proxy_cpu,
        server_cpu=server_cpu,
        pgbench_cpu=pgbench_cpu,
        other_cpu=max(0.0, busy - proxy_cpu - server_cpu - pgbench_cpu),
        load=os.getloadavg()[0],
        p99_us=p99_us,
    )


def percentile_us(logs: Path, part: float) -> float | None:
    """Of the times in pgbench's logs (its third column)."""
    times = [float(line.split()[2]) for log in logs.iterdir() for line in log.read_text().splitlines()]
    return sorted(times)[int(len(times) * part)] if times else None


def search(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    if not found:
        raise BenchError(f"pgbench said something unexpected:\n{text}")
    return found[1]


def pgbench(server: pgserver.Address, port: int, options: list[str], on: set[int] | None = None) -> tuple[str, float]:
    """Its output, and the CPU that it used."""
    place = ["--host=127.0.0.1", f"--port={port}", f"--username={server.user}", server.dbname]
    command = pinned(on) + [find("pgbench"), *options, *place]
    with tempfile.TemporaryFile("w+") as output:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        try:
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        except BaseException:
            child.kill()
            child.wait()
            raise
        output.seek(0)
        text = output.read()
    if child.returncode != 0:
        raise BenchError(f"pgbench failed:\n{text}")
    return text, usage.ru_utime + usage.ru_stime


def pinned(on: set[int] | None) -> list[str]:
    return ["taskset", "--cpu-list", ",".join(map(str, sorted(on)))] if on else []


def cores(case: str) -> set[int]:
    """The last core when pinned: the first one has most of the kernel's interrupts."""
    usable = os.sched_getaffinity(0)
    return {max(usable)} if CASES[case].is_pinned else usable


def set_cores(postmaster: int, on: set[int]) -> None:
    """Moves the server; the backends that it starts stay where it is."""
    for pid in [postmaster, *children(postmaster)]:
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(pid, on)


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def wait_for_backends_to_end(postmaster: int) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        backends = [name for name in map(process_name, children(postmaster)) if " 127.0.0.1" in name]
        if not backends:
            return
        time.sleep(0.01)
    raise BenchError(f"backends did not end: {', '.join(backends)}")


def process_name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def server_seconds(postmaster: int) -> float:
    return sum(map(cpu_seconds, [postmaster, *children(postmaster)]))


def cpu_seconds(pid: int | None) -> float:
    """Of a process and of its children that are gone (proc(5): fields 14 to 17 of stat); none of no process."""
    if pid is None:
        return 0.0
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return 0.0
    fields = stat.rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS


def machine_seconds() -> float:
    """Busy time of all cores (proc(5): user, nice, system, irq, softirq of /proc/stat)."""
    fields = list(map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:]))
    return (sum(fields[0:3]) + sum(fields[5:7])) / TICKS


@contextlib.contextmanager
def proxy(way: str, server: pgserver.Address, on: set[int]) -> Iterator[tuple[int | None, int]]:
    """A running proxy's process id and port; direct has none."""
    if way == DIRECT:
        yield None, server.port
        return
    with tempfile.TemporaryDirectory(prefix="onetrip-bench-") as folder:
        port = pgserver.free_port()
        command, identity = proxy_command(way, server, port, Path(folder))
        with open(Path(folder) / "log", "wb") as log:
            child = subprocess.Popen(
                pinned(on) + command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                **identity,
            )
        try:
            wait_for_port(child, port, Path(folder) / "log")
            yield child.pid, port
        finally:
            child.send_signal(signal.SIGTERM if way in ("haproxy", RELAY) else signal.SIGINT)
            try:
                child.wait(START_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def proxy_command(way: str, server: pgserver.Address, port: int, folder: Path) -> tuple[list[str], dict[str, object]]:
    """The command, and as whom to run it."""
    if way.startswith("onetrip"):
        command = [str(ONETRIP), "gateway", f"--listen=127.0.0.1:{port}"]
        command += [f"--upstream=postgres://127.0.0.1:{server.port}/?sslmode=disable"]
        command += [] if way == "onetrip-no-trace" else [f"--trace={folder}/trace"]
        command += ["--spin=0ms"] if way == "onetrip-no-spin" else []
        command += ["--remedies=exact"] if way == "onetrip-exact" else []
        return command, {}
    if way == PEER:
        config = folder / "pgbouncer.ini"
        config.write_text(PGBOUNCER.format(port=port, upstream=server.port, user=server.user))
        folder.chmod(0o755)
        # PgBouncer refuses to run as root.
        return [find("pgbouncer"), str(config)], pgserver.identity(pgserver.unprivileged_account())
    if way == RELAY:
        return [str(RELAY_PROGRAM), str(port), str(server.port)], {}
    config = folder / "haproxy.cfg"
    config.write_text(HAPROXY.format(port=port, upstream=server.port))
    return [find("haproxy"), "-db", "-f", str(config)], {}


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
HAPROXY = """\
global
    maxconn 2400
defaults
    mode tcp
    timeout connect 5s
    timeout client 1h
    timeout server 1h
listen postgres
    bind 127.0.0.1:{port}
    server database 127.0.0.1:{upstream}
"""


def wait_for_port(child: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while child.poll() is None and time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                time.sleep(0.1)
                return
        time.sleep(0.02)
    raise BenchError(f"a proxy did not start:\n{log.read_text(errors='replace')}")


def versions() -> dict[str, str]:
    """The version in the first line of what each program says about itself."""
    questions = {
        "onetrip": [str(ONETRIP), "--version"],
        "PostgreSQL": [find("pgbench"), "--version"],
        "PgBouncer": [find("pgbouncer"), "--version"],
        "HAProxy": [find("haproxy"), "-v"],
    }
    answers = {}
    for name, command in questions.items():
        with contextlib.suppress(OSError):
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            found = re.search(r"\d+\.[\d.]*\d", done.stdout)
            answers[name] = found[0] if found else "unknown"
    git = ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty"]
    commit = subprocess.run(git, check=False, capture_output=True, text=True).stdout.strip()
    answers["onetrip"] += f" ({commit})" if commit else ""
    return answers


def machine() -> dict[str, object]:
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text())
    return {
        "cpu": cpu[1].strip() if cpu else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(int(memory[1]) / 2**20) if memory else None,
        "kernel": platform.release(),
    }


def conditions(args: argparse.Namespace) -> dict[str, object]:
    return {
        "date": datetime.date.today().isoformat(),
        "rounds": args.rounds,
        "seconds": args.seconds,
        "scale": args.scale,
        "priority": args.priority,
    }


HEADINGS = ["case", "mode", "way", "n", "queries/s median [min–max]", "ratio to direct"]
HEADINGS += ["added µs/query [min–max]", "proxy CPU µs/query", "p99 µs", "others' CPU"]
BAR_HEADINGS = ["bar", "case", "mode", "way", "measured", "beside", "measured", "ratio", "bar at", "kept"]


def report(samples: list[Sample], run: dict[str, object]) -> str:
    how, where = run["conditions"], run["machine"]
    first = ", run before everything else on the machine" if how["priority"] else ""
    lines = [
        f"{how['date']}: {how['rounds']} rounds of {how['seconds']} s per way, scale {how['scale']}{first}.",
        f"{where['cores']} cores of {where['cpu']}, {where['memory_gib']} GiB, kernel {where['kernel']}.",
        ", ".join(f"{name} {version}" for name, version in run["versions"].items()) + ".",
        "",
        table_line(HEADINGS),
        "|---" * len(HEADINGS) + "|",
    ]
    groups = group(samples)
    for (case, mode, _), found in groups.items():
        lines.append(row(found, groups.get((case, mode, DIRECT), [])))
    lines += ["", *bars(groups)]
    return "\n".join(lines) + "\n"


def group(samples: list[Sample]) -> dict[tuple[str, str, str], list[Sample]]:
    groups: dict[tuple[str, str, str], list[Sample]] = {}
    for way in WAYS + MORE_WAYS:
        for sample in samples:
            if sample.way == way:
                groups.setdefault((sample.case, sample.mode, way), []).append(sample)
    places = {name: place for place, name in enumerate([*CASES, *MODES, *WAYS, *MORE_WAYS])}
    return dict(sorted(groups.items(), key=lambda item: [places[name] for name in item[0]]))


def row(found: list[Sample], direct: list[Sample]) -> str:
    first = found[0]
    tps = [sample.tps for sample in found]
    cells = [first.case, first.mode, first.way, str(len(found)), spread(tps, "{:.0f}")]
    ratio = added = ""
    if direct:
        ratio = f"{statistics.median(tps) / statistics.median(s.tps for s in direct):.2f}"
        if first.way != DIRECT and CASES[first.case].clients == 1:
            added = spread(added_us(found, direct), "{:.1f}")
    others = sum(s.other_cpu for s in found) / sum(s.elapsed for s in found)
    proxy_us = statistics.median(s.proxy_us() for s in found)
    p99 = median_p99(found)
    cells += [ratio, added, f"{proxy_us:.1f}" if first.way != DIRECT else ""]
    cells += ["" if p99 is None else f"{p99:.0f}", f"{others:.0%}"]
    return table_line(cells)


def table_line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def spread(values: list[float], form: str) -> str:
    shown = (form.format(value) for value in (statistics.median(values), min(values), max(values)))
    return "{} [{}–{}]".format(*shown)


def added_us(found: list[Sample], direct: list[Sample]) -> list[float]:
    """Of each round: a query's time beyond a direct one's."""
    base = {sample.round: sample.query_us() for sample in direct}
    return [sample.query_us() - base[sample.round] for sample in found if sample.round in base]


def median_p99(found: list[Sample]) -> float | None:
    times = [sample.p99_us for sample in found if sample.p99_us is not None]
    return statistics.median(times) if times else None


def measured(measure: str, found: list[Sample], direct: list[Sample]) -> float | None:
    match measure:
        case "added":
            return statistics.median(added_us(found, direct))
        case "cpu":
            return statistics.median(sample.proxy_us() for sample in found)
        case "rate":
            return statistics.median(sample.tps for sample in found)
        case _:
            return median_p99(found)


UNITS = {"added": "added µs", "cpu": "CPU µs/query", "rate": "queries/s", "p99": "p99 µs"}


def bars(groups: dict[tuple[str, str, str], list[Sample]]) -> list[str]:
    """What was promised, and whether this run keeps it."""
    lines = [table_line(BAR_HEADINGS), "|---" * len(BAR_HEADINGS) + "|"]
    for bar in BARS:
        limits = bar.get("most") or bar["least"]
        way, beside, measure = bar.get("way", "onetrip"), bar["beside"], bar["measures"]
        for case in bar["cases"]:
            for mode, limit in limits.items():
                ours, peer = groups.get((case, mode, way)), groups.get((case, mode, beside))
                direct = groups.get((case, mode, DIRECT))
                if not ours or not peer or not direct:
                    continue
                a, b = (measured(measure, found, direct) for found in (ours, peer))
                if a is None or not b:
                    continue
                sign, is_kept = ("≤", a / b <= limit) if "most" in bar else ("≥", a / b >= limit)
                cells = [UNITS[measure], case, mode, way, f"{a:.1f}", beside, f"{b:.1f}", f"{a / b:.2f}"]
                lines.append(table_line([*cells, f"{sign} {limit}", "yes" if is_kept else "no"]))
    return lines if len(lines) > 2 else []
