#!/usr/bin/env python3
"""Measures the acts with scripts/turns.py and checks clients/*.toml, or clients/mysql/*.toml, against the result.

    clients/measure.py                       every driver on PostgreSQL 15
    clients/measure.py --version 18          the drivers with `pg18 = true`
    clients/measure.py --driver pgx --act txn_1 --print
    clients/measure.py --mysql mariadb       the drivers of MySQL, on MariaDB
    clients/measure.py --mysql mysql-5.6     those with `mysql56 = true`

The exit code is 1 when an act fails or a number differs. `--print` writes what was
measured in the form of the TOML tables instead of comparing.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import tomllib

CLIENTS = Path(__file__).resolve().parent
REPOSITORY = CLIENTS.parent
sys.path.insert(0, str(REPOSITORY / "scripts"))

from mysqlserver import KINDS, MysqlServer  # noqa: E402
from mysqlturns import ADDRESS, MysqlSession, MysqlTurns  # noqa: E402
from patterns import BEGIN, Work, facts_of, template  # noqa: E402
from pgserver import PgServer  # noqa: E402
from turns import Relay, Trip, Turns, messages_of, run_counted  # noqa: E402

END = re.compile(r"\s*(COMMIT|ROLLBACK|END)\b(?!.*\bTO\b)", re.I)
FETCH = re.compile(r"\s*FETCH\b", re.I)
OTHER_CONTROL = re.compile(
    r"\s*(SAVEPOINT|RELEASE|SET|SHOW|DISCARD|DEALLOCATE|CLOSE|DECLARE|SELECT pg_advisory_unlock_all)\b",
    re.I,
)


@dataclasses.dataclass
class Portal:
    """A bound statement, and the trips (by number) that executed it."""

    statement: str
    trips: list[int] = dataclasses.field(default_factory=list)


class Session:
    """The prepared statements and portals of one connection, to know what is executed."""

    def __init__(self) -> None:
        self.statements: dict[bytes, str] = {}
        self.portals: dict[bytes, Portal] = {}

    def read(self, trip: Trip, number: int) -> tuple[list[str], list[str], set[int]]:
        """Statements executed, statements prepared, and the trips known to fetch by portions."""
        executed, prepared, fetches = [], [], set()
        for tag, text, body in messages_of(trip.request):
            names = body.split(b"\0")
            if tag == "Q":
                executed.append(text)
            elif tag == "P":
                self.statements[names[0]] = text
                prepared.append(text)
            elif tag == "B":
                self.portals[names[0]] = Portal(self.statements.get(names[1], ""))
            elif tag == "E" and (portal := self.portals.get(names[0])):
                executed.append(portal.statement)
                portal.trips.append(number)
                if len(portal.trips) > 1:  # it was suspended, so the first was a portion too
                    fetches |= set(portal.trips)
        if any(map(FETCH.match, executed)):
            fetches.add(number)
        return executed, prepared, fetches

    def called(self, trip: Trip) -> list[int]:
        """Numbers of the functions that a trip's FunctionCalls name."""
        calls = [body for tag, _, body in messages_of(trip.request) if tag == "F"]
        return [int.from_bytes(body[:4], "big") for body in calls]


@dataclasses.dataclass
class Family:
    """What databases of one protocol have in common."""

    tables: Path = CLIENTS
    names: tuple[str, str] = ("PGHOST", "PGPORT")
    turns: type[Turns] = Turns
    session: type[Session | MysqlSession] = Session


POSTGRES = Family()
MYSQL = Family(CLIENTS / "mysql", ADDRESS, MysqlTurns, MysqlSession)


def facts(trips: list[Trip], code: str | None, family: Family = POSTGRES) -> dict[str, int]:
    """What the work of an act consists of; clients/findings.toml explains the names."""
    sessions: dict[int, Session | MysqlSession] = collections.defaultdict(family.session)
    executions: collections.Counter[str] = collections.Counter()
    templates_by_trip: list[set[str]] = []
    works: list[Work] = []
    fetch_trips: set[int] = set()
    found = dict.fromkeys(("statements", "begin_trips", "end_trips", "prepare_trips"), 0)
    for number, trip in enumerate(trips):
        if not trip.is_work:
            continue
        session = sessions[trip.connection]
        executed, prepared, fetches = session.read(trip, number)
        works.append(Work(trip.connection, executed, session.called(trip)))
        fetch_trips |= fetches
        found["statements"] += len(executed)
        found["begin_trips"] += bool(executed) and all(map(BEGIN.match, executed))
        found["end_trips"] += bool(executed) and all(map(END.match, executed))
        found["prepare_trips"] += bool(prepared) and not executed
        templates = [template(text) for text in executed if is_work_statement(text)]
        executions.update(templates)
        templates_by_trip.append(set(templates) | {template(text) for text in prepared})
    if code and code > "OT009":
        return {"statements": found["statements"]} | facts_of(code, works)
    loop, count = (executions.most_common(1) or [("", 0)])[0]
    found["fetch_trips"] = len(fetch_trips)
    found["loop"] = count
    found["loop_trips"] = sum(loop in templates for templates in templates_by_trip)
    if code == "OT009":
        return {name: found[name] for name in ("statements", "loop", "loop_trips")}
    return found


def is_work_statement(text: str) -> bool:
    return not any(kind.match(text) for kind in (BEGIN, END, FETCH, OTHER_CONTROL))


def code_of(act: str) -> str | None:
    """The code that an act shows or avoids; none for a trap."""
    found = re.match(r"(?:bad|fixed)_(OT\d{3})", act)
    return found[1] if found else None


def avoidable(act: str, found: dict[str, int]) -> int | None:
    """The trips (for OT008: connections) that the fixed program need not spend."""
    if not act.startswith("bad_"):
        return None
    formula = {
        "OT003": lambda: committing_avoidable(found),
        "OT004": lambda: found["fetch_trips"] - 1,
        "OT006": lambda: found["begin_trips"] + found["end_trips"],
        "OT007": lambda: found["prepare_trips"] - 1,
        "OT008": lambda: found["sessions"] - 1,
        "OT010": lambda: found["lob_trips"] - found["lobs"],
        "OT011": lambda: chatter_avoidable(found),
        "OT012": lambda: found["sequence_trips"] - found["sequences"],
        "OT013": lambda: found["pairs"],
        "OT014": lambda: found["pairs"],
        "OT015": lambda: found["pairs"],
        "OT016": lambda: found["rollback_trips"],
    }.get(code_of(act) or "", lambda: found["loop"] - 1)
    return formula()


def committing_avoidable(found: dict[str, int]) -> int:
    """Each row has a BEGIN and a COMMIT at most; the others are not the loop's. Of each kind one stays."""
    kinds = (found["loop"], found["begin_trips"], found["end_trips"])
    return sum(max(min(trips, found["loop"]) - 1, 0) for trips in kinds)


def chatter_avoidable(found: dict[str, int]) -> int:
    looked_up_again = found["catalogue_trips"] - found["catalogue_templates"]
    return found["ping_trips"] + found["setting_trips"] + looked_up_again


def measure(
    command: list[str], act: str, env: dict[str, str], is_finding: bool, family: Family = POSTGRES
) -> dict[str, int]:
    run = run_counted([*command, act], env, turns=family.turns, names=family.names)
    code, relay = asyncio.run(run)
    if code != 0:
        raise RuntimeError(f"{act} ended with exit code {code}")
    return measured(relay, act, is_finding, family)


def measured(relay: Relay, act: str, is_finding: bool, family: Family = POSTGRES) -> dict[str, int]:
    count = relay.count
    found = {
        "connections": count.connections,
        "sessions": count.sessions,
        "connect": count.connect,
        "work": count.work,
    }
    if is_finding:
        found |= facts(relay.trips, code_of(act), family)
        saved = avoidable(act, found)
        if saved is not None:
            found["avoidable"] = saved
    return found


def acts_of(command: list[str]) -> list[str]:
    listed = subprocess.run([*command, "--list"], capture_output=True, text=True, check=True)
    return listed.stdout.split()


def is_finding_act(driver: str, act: str) -> bool:
    return driver == "traps" or act.startswith(("bad_", "fixed_", "trap_"))


class Check:
    """Compares or prints one act after the other."""

    def __init__(self, expected: dict, findings: dict, only_print: bool, family: Family) -> None:
        self.family = family
        self.expected = expected
        self.findings = findings
        self.only_print = only_print
        self.problems = 0
        self.count = 0

    def act(self, driver: str, command: list[str], act: str, env: dict[str, str]) -> None:
        is_finding = is_finding_act(driver, act)
        table = self.findings.get(driver, {}) if is_finding else self.expected[driver]["acts"]
        wanted = table.get(act, {})
        self.count += 1
        try:
            found = measure(command, act, env, is_finding, self.family)
        except RuntimeError as error:
            self.problem(f"{driver} {error}")
            return
        if self.only_print:
            fields = ", ".join(f"{name} = {number}" for name, number in found.items())
            print(f"{act} = {{ {fields} }}", flush=True)
        elif not wanted:
            self.problem(f"{driver} {act} is in no table; measured {found}")
        for name, number in found.items():
            if not self.only_print and wanted and wanted.get(name) != number:
                self.problem(f"{driver} {act}: {name} is {number}, not {wanted.get(name)}")

    def problem(self, text: str) -> None:
        self.problems += 1
        print(text, file=sys.stderr, flush=True)


def missing(expected: dict, findings: dict) -> list[str]:
    """Codes that a driver neither shows nor says why it cannot."""
    codes = sorted({code_of(act) for acts in findings.values() for act in acts} - {None})
    problems = []
    for driver, entry in expected.items():
        excused = entry.get("not_applicable", {})
        shown = {act for act in findings.get(driver, {}) if act.startswith("bad_")}
        for code in codes:
            if f"bad_{code}" not in shown and not excused.keys() & {code, "all"}:
                problems.append(f"{driver} has no act for {code}")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description="Check clients/*.toml with an own counter.")
    parser.add_argument("--version", default="15")
    parser.add_argument("--mysql", choices=KINDS, help="the drivers of MySQL, on this server")
    parser.add_argument("--driver", action="append")
    parser.add_argument("--act", action="append")
    parser.add_argument("--print", action="store_true", dest="only_print")
    args = parser.parse_args()
    family = MYSQL if args.mysql else POSTGRES
    expected = tomllib.loads((family.tables / "expected.toml").read_text())
    findings = tomllib.loads((family.tables / "findings.toml").read_text())
    os.chdir(REPOSITORY)
    check = Check(expected, findings, args.only_print, family)
    for problem in missing(expected, findings):
        check.problem(problem)
    schema = [family.tables / "schema.sql"]
    server = MysqlServer(args.mysql, load=schema) if args.mysql else PgServer(args.version, load=schema)
    with server as address:
        env = dict(os.environ) | address.env()
        for driver, entry in expected.items():
            if args.driver and driver not in args.driver:
                continue
            if args.version != "15" and not entry.get("pg18"):
                continue
            if args.mysql == "mysql-5.6" and not entry.get("mysql56"):
                continue
            if args.only_print:
                print(f"\n[{driver}]", flush=True)
            for act in args.act or acts_of(entry["command"]):
                check.act(driver, entry["command"], act, env)
    print(f"{check.count} acts measured, {check.problems} problems", file=sys.stderr)
    return 1 if check.problems or not check.count else 0


if __name__ == "__main__":
    sys.exit(main())
