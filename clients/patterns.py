"""What clients/measure.py counts for the codes from OT009 on, from the statements of each trip.

It reads SQL by simple patterns, which suffice for the statements of the acts, and shares
nothing with onetrip. clients/findings.toml explains the names of the columns.
"""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Iterator

LITERAL = re.compile(r"'(?:[^']|'')*'|\b\d+(?:\.\d+)?\b|\$\d+")
BEGIN = re.compile(r"\s*(BEGIN|START TRANSACTION)\b", re.I)
ROLLBACK = re.compile(r"\s*ROLLBACK\b(?!.*\bTO\b)", re.I)
# Where a transaction begins: without autocommit, where the one before it ends.
LIMIT = re.compile(r"\s*(BEGIN|START TRANSACTION|COMMIT|ROLLBACK(?!.*\bTO\b)|SET autocommit)\b", re.I)
CONTROL = re.compile(
    r"\s*(BEGIN|START|COMMIT|ROLLBACK|END|SAVEPOINT|RELEASE|DEALLOCATE|DISCARD|SELECT pg_advisory_unlock_all)\b",
    re.I,
)
QUERY = re.compile(r"\s*(SELECT|WITH)\b", re.I)
READ = re.compile(r"\s*(SELECT|WITH|SHOW)\b", re.I)
INSERT = re.compile(r"\s*INSERT\b", re.I)
PING = re.compile(r"\s*(--.*|SELECT\s+(\d+|'[^']*')( AS \w+)?)?\s*;?\s*", re.I)
SETTING = re.compile(r"\s*(SET|RESET|SHOW(?!.*\bFROM\b)|DISCARD|SELECT pg_advisory_unlock_all)\b", re.I)
CATALOGUE = re.compile(
    r"\s*SELECT\b.*(\bpg_\w+|\binformation_schema\b|\b(version|current_schema|set_config)\b"
    r"|\b(?:database|connection_id|current_user)\(\))"
    r"|\s*SHOW\s.*\bFROM\b"
    # Of MySQL's variables, these tell what became of the last statement.
    r"|\s*SELECT\s+@@(?!.*\b(?:identity|last_insert_id|insert_id|warning_count|error_count)\b)(?!.*\bFROM\b)",
    re.I | re.S,
)
# What MySQL's mappers ask about a table before they first use it.
DEFINITION = re.compile(r"\s*(SHOW\s.*\bFROM\b|SELECT\b.*\binformation_schema\b)", re.I | re.S)
NEXTVAL = re.compile(r"\s*SELECT\s+(nextval\s*\(|next value for\b)", re.I)
READ_TABLE = re.compile(r'\bFROM\s+["`]?(\w+)', re.I)
CHANGED_TABLE = re.compile(r'\s*(?:UPDATE|DELETE\s+FROM)\s+["`]?(\w+)', re.I)
FILLED_TABLE = re.compile(r'\s*INSERT\s+INTO\s+["`]?(\w+)', re.I)
LARGE_OBJECT = re.compile(r"\b(lo_open|loread|lo_close|lo_lseek|lo_tell)(?:64)?\s*\(", re.I)
# The same functions by the object identifiers that a FunctionCall names them by.
LARGE_OBJECT_CALLS = {
    952: "lo_open",
    953: "lo_close",
    954: "loread",
    956: "lo_lseek",
    958: "lo_tell",
    3170: "lo_lseek",
    3171: "lo_tell",
}


@dataclasses.dataclass
class Work:
    """A trip after the login: the statements it executed, the functions it called by number."""

    connection: int
    executed: list[str]
    called: list[int]


def template(text: str) -> str:
    return LITERAL.sub("?", " ".join(text.split()))


def large_objects(trips: list[Work]) -> dict[str, int]:
    calls_by_trip = []
    for trip in trips:
        by_number = [LARGE_OBJECT_CALLS[oid] for oid in trip.called if oid in LARGE_OBJECT_CALLS]
        by_text = [name for text in trip.executed for name in LARGE_OBJECT.findall(text)]
        calls_by_trip.append(by_number + by_text)
    return {
        "lob_trips": sum(map(bool, calls_by_trip)),
        "lobs": sum(calls.count("lo_open") for calls in calls_by_trip),
    }


def chatter(trips: list[Work]) -> dict[str, int]:
    kinds: collections.Counter[str] = collections.Counter()
    templates = set()
    for trip in trips:
        if not trip.executed:
            continue
        if all(map(PING.fullmatch, trip.executed)):
            kinds["ping"] += 1
        elif all(map(SETTING.match, trip.executed)):
            kinds["setting"] += 1
        elif all(map(CATALOGUE.match, trip.executed)):
            kinds["catalogue"] += 1
            templates.update(map(template, trip.executed))
    return {
        "ping_trips": kinds["ping"],
        "setting_trips": kinds["setting"],
        "catalogue_trips": kinds["catalogue"],
        "catalogue_templates": len(templates),
    }


def sequences(trips: list[Work]) -> dict[str, int]:
    """Groups of at least three trips with one read each, all of different templates."""
    groups: list[set[str]] = []
    for group in groups_by_connection(trips):
        groups += [found for found in group if len(found) >= 3]
    return {"sequence_trips": sum(map(len, groups)), "sequences": len(groups)}


def groups_by_connection(trips: list[Work]) -> Iterator[list[set[str]]]:
    for own in by_connection(trips).values():
        groups: list[set[str]] = [set()]
        for trip in filter(lambda trip: trip.executed, own):
            texts = [template(text) for text in trip.executed if not CONTROL.match(text)]
            is_read = len(texts) == 1 and QUERY.match(texts[0])
            if not is_read or CATALOGUE.match(texts[0]):
                groups.append(set())
            elif texts[0] in groups[-1]:
                groups.append(set(texts))
            else:
                groups[-1].update(texts)
        yield groups


def pairs(trips: list[Work], second: re.Pattern[str]) -> dict[str, int]:
    """Reads of a table that are followed by a statement which `second` finds to write it."""
    count = 0
    for own in by_connection(trips).values():
        texts = [text for trip in own for text in trip.executed if not is_aside(text)]
        for one, other in zip(texts, texts[1:], strict=False):
            read = READ.match(one) and READ_TABLE.search(one)
            written = second.match(other)
            count += bool(read and written and read[1].lower() == written[1].lower())
    return {"pairs": count}


def is_aside(text: str) -> bool:
    """Whether a statement may stand between the two of a pair."""
    return bool(CONTROL.match(text) or DEFINITION.match(text))


def nextvals(trips: list[Work]) -> dict[str, int]:
    """Trips of nextval (a BEGIN may ride along) that an INSERT of the same connection follows."""
    count = 0
    for own in by_connection(trips).values():
        waiting = 0
        for trip in own:
            texts = [text for text in trip.executed if not CONTROL.match(text)]
            if texts and all(map(NEXTVAL.match, texts)):
                waiting += 1
            elif any(map(INSERT.match, texts)):
                count, waiting = count + waiting, 0
    return {"pairs": count}


def rollbacks(trips: list[Work]) -> dict[str, int]:
    """Trips of ROLLBACK alone, after a transaction that read and did nothing else."""
    count = 0
    for own in by_connection(trips).values():
        statements: list[str] = []
        for trip in own:
            if trip.executed and all(map(ROLLBACK.match, trip.executed)):
                count += bool(statements) and all(map(READ.match, statements))
            for text in trip.executed:
                if LIMIT.match(text):
                    statements = []
                elif not CONTROL.match(text):
                    statements.append(text)
    return {"rollback_trips": count}


def by_connection(trips: list[Work]) -> dict[int, list[Work]]:
    own: dict[int, list[Work]] = collections.defaultdict(list)
    for trip in trips:
        own[trip.connection].append(trip)
    return own


def facts_of(code: str, trips: list[Work]) -> dict[str, int]:
    """The columns of a code from OT010 on."""
    return {
        "OT010": large_objects,
        "OT011": chatter,
        "OT012": sequences,
        "OT013": lambda trips: pairs(trips, CHANGED_TABLE),
        "OT014": nextvals,
        "OT015": lambda trips: pairs(trips, FILLED_TABLE),
        "OT016": rollbacks,
    }[code](trips)
