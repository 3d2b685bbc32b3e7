"""A load on a database, direct and through proxies: what both benches of gateways share.

In every round each way is measured once, in an order that rotates, so that what else the machine does hits all of them;
ratios are taken between medians of the same run. The bars are data of the case: what is measured of which way, and how
many times that of another way it may be.

Only the standard library is used. Programs are installed if they are missing and we are root on Debian; otherwise one line
says what to install.
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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pgserver
import records
from processors import children, cores, pinned, set_cores, take_priority
from records import spread, table_line

REPOSITORY = records.REPOSITORY
ONETRIP = records.ONETRIP
DIRECT, HAPROXY, RELAY = "direct", "haproxy", "relay"
PACKAGES = {"haproxy": "haproxy", "taskset": "util-linux", "cc": "gcc"}
RELAY_PROGRAM = REPOSITORY / "target/bench/relay"
START_SECONDS_MAX = 10
# One query in so many is timed, for the slowest ones.
TIMED = 10
TICKS = os.sysconf("SC_CLK_TCK")


class BenchError(RuntimeError):
    """Why there is no measurement."""


@dataclasses.dataclass(frozen=True)
class Case:
    clients: int
    threads: int
    is_pinned: bool
    seconds: int = 0
    """Of one sample, at least."""


class Server(Protocol):
    port: int
    pid: int


@dataclasses.dataclass
class Told:
    """What a load's program says of one run."""

    rate: float
    queries: int
    cpu: float
    p99_us: float | None = None
    """Within this many microseconds 99 of 100 queries are answered; not taken of one client."""


class Load(Protocol):
    """What asks the database."""

    packages: dict[str, str]
    versions: dict[str, list[str]]
    """Commands that say the version of what takes part."""

    def server(self) -> contextlib.AbstractContextManager[Server]: ...
    def prepare(self, server: Any, scale: int) -> None: ...
    def run(self, server: Any, port: int, mode: str, shape: Case, seconds: int, on: set[int] | None) -> Told: ...
    def upstream(self, server: Any) -> str:
        """The URL by which onetrip finds the server."""

    def proxy(self, way: str, server: Any, port: int, folder: Path) -> tuple[list[str], dict[str, object]] | None:
        """The command of a proxy that only this load has, and as whom to run it."""

    def is_over(self, server: Any) -> bool:
        """Whether the server has no session of the last run."""


@dataclasses.dataclass
class Sample:
    """One run. Times are seconds of CPU unless named otherwise."""

    case: str
    mode: str
    way: str
    round: int
    clients: int
    rate: float
    queries: int
    elapsed: float
    proxy_cpu: float
    server_cpu: float
    load_cpu: float
    other_cpu: float
    """CPU of everything else on the machine in the meantime, as far as it can be told."""
    load: float
    p99_us: float | None

    def query_us(self) -> float:
        """Wall time of one query of one client, in microseconds."""
        return self.clients * 1e6 / self.rate

    def proxy_us(self) -> float:
        return self.proxy_cpu * 1e6 / self.queries


class Bench:
    """One bench: its case, and its load."""

    def __init__(self, name: str, load: Load, about: str) -> None:
        self.name, self.load, self.about = name, load, about
        self.data = records.case(name)
        self.cases = {case: Case(**shape) for case, shape in self.data["case"].items()}
        self.ways = self.data["ways"] + self.data.get("more_ways", [])

    def main(self) -> int:
        args = self.arguments()
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, pgserver.raise_stop)
        try:
            install_missing(PACKAGES | self.load.packages)
            if args.priority:
                take_priority()
            if not args.no_build:
                build_onetrip()
            asked = versions(self.load.versions)  # now, since others may commit while we measure
            samples = self.measure(args)
        except KeyboardInterrupt:
            return 130
        except (BenchError, pgserver.ServerError, subprocess.CalledProcessError) as error:
            print(f"bench: {error}", file=sys.stderr)
            return 1
        run = {"versions": asked, "machine": machine(), "conditions": conditions(args)}
        records.note(**run)
        text = self.report(samples, run)
        print(text)
        if args.write:
            records.write(self.name, text)
        return 1 if "| no |" in text else 0

    def arguments(self) -> argparse.Namespace:
        parser = argparse.ArgumentParser(description=self.about)
        default = ", ".join(self.data["default_cases"])
        parser.add_argument("--rounds", type=int, default=self.data["rounds"], help="samples of each way")
        parser.add_argument("--seconds", type=int, default=self.data["seconds"], help="of one sample")
        parser.add_argument("--scale", type=int, default=self.data["scale"], help="of the load's tables")
        parser.add_argument("--case", action="append", choices=self.cases, help=f"default: {default}")
        parser.add_argument("--mode", action="append", choices=self.data["modes"], help="default: both")
        parser.add_argument(
            "--way", action="append", choices=self.ways, help=f"default: {', '.join(self.data['ways'])}"
        )
        parser.add_argument("--write", action="store_true", help="put the table into bench/results")
        parser.add_argument("--no-build", action="store_true", help="use target/release/onetrip as it is")
        parser.add_argument("--priority", action="store_true", help="run before everything else (root)")
        args = parser.parse_args()
        args.case = args.case or self.data["default_cases"]
        args.mode = args.mode or list(self.data["modes"])
        args.way = args.way or list(self.data["ways"])
        return args

    def measure(self, args: argparse.Namespace) -> list[Sample]:
        total, samples = len(args.case) * len(args.mode) * len(args.way) * args.rounds, []
        if RELAY in args.way:
            build_relay()
        with self.load.server() as server:
            self.load.prepare(server, args.scale)
            for number in range(args.rounds):
                for case in args.case:
                    set_cores(server.pid, cores(self.cases[case].is_pinned))
                    for mode in args.mode:
                        shift = number % len(args.way)
                        for way in args.way[shift:] + args.way[:shift]:
                            last = self.measure_one(server, case, mode, way, number, args.seconds)
                            samples.append(last)
                            records.keep(**dataclasses.asdict(last))
                            place = f"{len(samples)}/{total} {case} {mode} {way}"
                            print(f"{place}: {last.rate:.0f} queries/s", file=sys.stderr, flush=True)
        return samples

    def measure_one(self, server: Any, case: str, mode: str, way: str, number: int, seconds: int) -> Sample:
        shape = self.cases[case]
        on = cores(shape.is_pinned)
        with self.running(way, server, on if shape.is_pinned else None) as (pid, port):
            server_cpu, proxy_cpu, busy = server_seconds(server.pid), cpu_seconds(pid), machine_seconds()
            started = time.monotonic()
            seconds = max(seconds, shape.seconds)
            told = self.load.run(server, port, mode, shape, seconds, on if shape.is_pinned else None)
            elapsed = time.monotonic() - started
            proxy_cpu, busy = cpu_seconds(pid) - proxy_cpu, machine_seconds() - busy
        # A backend's time is the server's once it is gone; PgBouncer keeps it as long as itself.
        wait_until(lambda: self.load.is_over(server), "sessions of the last run did not end")
        server_cpu = server_seconds(server.pid) - server_cpu
        return Sample(
            case=case,
            mode=mode,
            way=way,
            round=number,
            clients=shape.clients,
            rate=told.rate,
            queries=told.queries,
            elapsed=elapsed,
            proxy_cpu=proxy_cpu,
            server_cpu=server_cpu,
            load_cpu=told.cpu,
            other_cpu=max(0.0, busy - proxy_cpu - server_cpu - told.cpu),
            load=os.getloadavg()[0],
            p99_us=told.p99_us,
        )

    @contextlib.contextmanager
    def running(self, way: str, server: Any, on: set[int] | None) -> Iterator[tuple[int | None, int]]:
        """A running proxy's process id and port; direct has none."""
        if way == DIRECT:
            yield None, server.port
            return
        with tempfile.TemporaryDirectory(prefix="onetrip-bench-") as folder:
            port = pgserver.free_port()
            command, identity = self.command(way, server, port, Path(folder))
            with open(Path(folder) / "log", "wb") as log:
                child = subprocess.Popen(
                    pinned(on) + command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, **identity
                )
            try:
                wait_for_port(child, port, Path(folder) / "log")
                yield child.pid, port
            finally:
                child.send_signal(signal.SIGTERM if way in (HAPROXY, RELAY) else signal.SIGINT)
                try:
                    child.wait(START_SECONDS_MAX)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()

    def command(self, way: str, server: Any, port: int, folder: Path) -> tuple[list[str], dict[str, object]]:
        """A proxy's command, and as whom to run it."""
        if own := self.load.proxy(way, server, port, folder):
            return own
        if way.startswith("onetrip"):
            command = [str(ONETRIP), "gateway", f"--listen=127.0.0.1:{port}", f"--upstream={self.load.upstream(server)}"]
            command += [] if way == "onetrip-no-trace" else [f"--trace={folder}/trace"]
            command += ["--spin=0ms"] if way == "onetrip-no-spin" else []
            command += ["--remedies=exact"] if way == "onetrip-exact" else []
            return command, {}
        if way == RELAY:
            return [str(RELAY_PROGRAM), str(port), str(server.port)], {}
        config = folder / "haproxy.cfg"
        config.write_text(HAPROXY_CONFIG.format(port=port, upstream=server.port))
        return [find("haproxy"), "-db", "-f", str(config)], {}

    def report(self, samples: list[Sample], run: dict[str, Any]) -> str:
        how, where = run["conditions"], run["machine"]
        first = ", run before everything else on the machine" if how["priority"] else ""
        lines = [
            f"{how['date']}: {how['rounds']} rounds of {how['seconds']} s per way, scale {how['scale']}{first}.",
            *measured_on(where, run["versions"]),
            "",
            table_line(HEADINGS),
            "|---" * len(HEADINGS) + "|",
        ]
        groups = self.group(samples)
        for (case, mode, _), found in groups.items():
            lines.append(row(found, groups.get((case, mode, DIRECT), [])))
        lines += ["", *bars(self.data["bar"], groups)]
        return "\n".join(lines) + "\n"

    def group(self, samples: list[Sample]) -> Groups:
        groups: Groups = {}
        for sample in samples:
            groups.setdefault((sample.case, sample.mode, sample.way), []).append(sample)
        places = {name: place for place, name in enumerate([*self.cases, *self.data["modes"], *self.ways])}
        return dict(sorted(groups.items(), key=lambda item: [places[name] for name in item[0]]))


Groups = dict[tuple[str, str, str], list[Sample]]

HAPROXY_CONFIG = """\
global
    maxconn 2400
defaults
    mode tcp
    timeout connect 5s
    timeout client 1h
    timeout server 1h
listen database
    bind 127.0.0.1:{port}
    server database 127.0.0.1:{upstream}
"""


def build_onetrip() -> None:
    subprocess.run(["cargo", "build", "--release", "--package", "onetrip"], cwd=REPOSITORY, check=True)


def build_relay() -> None:
    RELAY_PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([find("cc"), "-O2", "-o", RELAY_PROGRAM, REPOSITORY / "bench/relay/relay.c"], check=True)


def install_missing(packages: dict[str, str]) -> None:
    """Debian's packages of programs, where we may install them; else says which."""
    missing = sorted({package for program, package in packages.items() if not find(program)})
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


def output_of(command: list[str]) -> tuple[str, float]:
    """What a program says, and the CPU that it used."""
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
        raise BenchError(f"{Path(command[0]).name} failed:\n{text}")
    return text, usage.ru_utime + usage.ru_stime


def search(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    if not found:
        raise BenchError(f"the load said something unexpected:\n{text}")
    return found[1]


def wait_until(is_so: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while not is_so():
        if time.monotonic() > deadline:
            raise BenchError(otherwise)
        time.sleep(0.01)


def wait_for_port(child: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while child.poll() is None and time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                time.sleep(0.1)
                return
        time.sleep(0.02)
    raise BenchError(f"a proxy did not start:\n{log.read_text(errors='replace')}")


def server_seconds(server: int) -> float:
    return sum(map(cpu_seconds, [server, *children(server)]))


def cpu_seconds(pid: int | None) -> float:
    """Of a process and of its children that are gone (proc(5): fields 14 to 17 of stat); none of no process."""
    if pid is None:
        return 0.0
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    fields = stat.rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS


def machine_seconds() -> float:
    """Busy time of all cores (proc(5): user, nice, system, irq, softirq of /proc/stat)."""
    fields = list(map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:]))
    return (sum(fields[0:3]) + sum(fields[5:7])) / TICKS


def versions(commands: dict[str, list[str]]) -> dict[str, str]:
    """The version in the first line of what each program says about itself."""
    questions = {"onetrip": [str(ONETRIP), "--version"], **commands, "HAProxy": [find("haproxy"), "-v"]}
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


def measured_on(where: dict[str, object], asked: dict[str, str]) -> list[str]:
    """The machine and the versions, as tables have them above."""
    return [
        f"{where['cores']} cores of {where['cpu']}, {where['memory_gib']} GiB, kernel {where['kernel']}.",
        ", ".join(f"{name} {version}" for name, version in asked.items()) + ".",
    ]


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
UNITS = {"added": "added µs", "cpu": "CPU µs/query", "rate": "queries/s", "p99": "p99 µs"}


def row(found: list[Sample], direct: list[Sample]) -> str:
    first = found[0]
    rates = [sample.rate for sample in found]
    ratio = added = ""
    if direct:
        ratio = f"{statistics.median(rates) / statistics.median(s.rate for s in direct):.2f}"
        if first.way != DIRECT and first.clients == 1:
            added = spread(added_us(found, direct), "{:.1f}")
    others = sum(s.other_cpu for s in found) / sum(s.elapsed for s in found)
    proxy_us = f"{statistics.median(s.proxy_us() for s in found):.1f}" if first.way != DIRECT else ""
    p99 = median_p99(found)
    cells = [first.case, first.mode, first.way, str(len(found)), spread(rates, "{:.0f}"), ratio, added, proxy_us]
    return table_line([*cells, "" if p99 is None else f"{p99:.0f}", f"{others:.0%}"])


def bars(wanted: list[dict[str, Any]], groups: Groups) -> list[str]:
    """What was promised, and whether this run keeps it."""
    lines = [table_line(BAR_HEADINGS), "|---" * len(BAR_HEADINGS) + "|"]
    for bar in wanted:
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


def measured(measure: str, found: list[Sample], direct: list[Sample]) -> float | None:
    match measure:
        case "added":
            return statistics.median(added_us(found, direct))
        case "cpu":
            return statistics.median(sample.proxy_us() for sample in found)
        case "rate":
            return statistics.median(sample.rate for sample in found)
        case _:
            return median_p99(found)


def median_p99(found: list[Sample]) -> float | None:
    times = [sample.p99_us for sample in found if sample.p99_us is not None]
    return statistics.median(times) if times else None


def added_us(found: list[Sample], direct: list[Sample]) -> list[float]:
    """Of each round: a query's time beyond a direct one's."""
    base = {sample.round: sample.query_us() for sample in direct}
    return [sample.query_us() - base[sample.round] for sample in found if sample.round in base]
