"""Holds what DuckDB or Spark reads in an export against what onetrip's analyzer says of the same trace.

    python compare.py duckdb|spark EXPORT EXPECTED

EXPECTED is a file of JSON that tools/export/tests/parquet.rs writes. Fails with what differs.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from itertools import groupby

import findings as rules

OTHERS = "(other statements)"


def main() -> None:
    reader, export, expected = sys.argv[1:]
    with open(expected, encoding="utf-8") as file:
        wanted = json.load(file)
    found = {"duckdb": by_duckdb, "spark": by_spark}[reader](export, wanted)
    for part in ("totals", "templates"):
        assert_same(part, found[part], wanted[part])
    exact, loose = with_late(found["findings"], wanted["findings"])
    assert_same("findings", exact, wanted["findings"])
    codes = sorted({finding["code"] for finding in found["findings"]})
    trips, count = found["totals"]["trips"], len(found["findings"])
    print(f"{trips} trips; {count} findings of {codes}, {loose} of them with late runs")


def assert_same(part: str, found: object, wanted: object) -> None:
    found, wanted = canonical(found), canonical(wanted)
    lacks = [entry for entry in wanted if entry not in found]
    more = [entry for entry in found if entry not in wanted]
    if lacks or more or len(found) != len(wanted):
        shown = "\n".join([*(f"  analyzer: {entry}" for entry in lacks), *(f"  rows:     {entry}" for entry in more)])
        sys.exit(f"{part} differ:\n{shown}")


def with_late(found: list[dict], wanted: list[dict]) -> tuple[list[dict], int]:
    """The findings, with as many late runs as the analyzer has added, and how many findings that changes."""
    by_key = {key(finding): finding for finding in wanted}
    exact = []
    loose = 0
    for finding in found:
        finding = dict(finding)
        late_max = finding.pop("late_max")
        other = by_key.get(key(finding), finding)
        added = other["trips"] - finding["trips"]
        if 0 < added <= late_max:
            loose += 1
            finding["trips"] += added
            finding["avoidable"] += added
            finding["waited_ns"] = other["waited_ns"]
        exact.append(finding)
    return exact, loose


def key(finding: dict) -> tuple:
    return finding["code"], finding["template"], finding["source"]


def canonical(part: object) -> list[str]:
    """Entries as texts, in no order."""
    entries = part if isinstance(part, list) else [part]
    return sorted(json.dumps(entry, sort_keys=True).replace(OTHERS, "") for entry in entries)


def by_duckdb(export: str, wanted: dict) -> dict:
    import duckdb

    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    database.execute(f"CREATE VIEW exchanges AS FROM read_parquet('{export}/*/*/*.parquet', hive_partitioning = true)")
    types = dict(database.execute("SELECT column_name, column_type FROM (DESCRIBE exchanges)").fetchall())
    if types["sent_at"] != "TIMESTAMP WITH TIME ZONE" or types["day"] != "DATE" or types["host"] != "VARCHAR":
        sys.exit(f"columns have other types than docs/rows.md says: {types}")
    if sorted(types) != sorted(wanted["columns"]):
        sys.exit(f"columns are not those of docs/rows.md: {sorted(types)}")
    # Each name can be written without quotes.
    database.execute(f"CREATE VIEW named AS SELECT {', '.join(wanted['columns'])} FROM exchanges")
    wrong_days = "SELECT count(*) FROM exchanges WHERE day <> sent_at::DATE"
    wrong_times = (
        f"SELECT count(*) FROM exchanges WHERE epoch_us(sent_at) <> ({wanted['started_unix_ns']} + sent_at_ns) // 1000"
    )
    for query in (wrong_days, wrong_times):
        if one(database, query) != 0:
            sys.exit(f"not 0: {query}")
    return {
        "totals": {
            "trips": one(database, "SELECT count(*) FROM exchanges WHERE starts_trip"),
            "connect": one(database, "SELECT count(*) FROM exchanges WHERE starts_trip AND unit = 'connect'"),
            "statements": one(
                database, f"SELECT sum(len({RUNS}) + cut_statements) FROM exchanges WHERE unit <> 'connect'"
            ),
            "rows": one(database, "SELECT sum(rows) FROM exchanges WHERE unit <> 'connect'"),
        },
        "templates": dicts(database, TEMPLATES),
        "findings": list(findings_of(database)),
    }


RUNS = "list_filter(statements, lambda part: list_contains(part.steps, 'execute') AND part.outcome = 'done')"
TEMPLATES = f"""
WITH runs AS (
    SELECT unnest({RUNS}) AS run, (bytes_sent + bytes_received) // len({RUNS}) AS bytes
    FROM exchanges WHERE unit <> 'connect'
), executed AS (
    SELECT run.template AS template, count(*) AS executions, sum(bytes) AS bytes FROM runs GROUP BY ALL
), parts AS (
    SELECT unnest(statements) AS part FROM exchanges WHERE unit <> 'connect'
), counted AS (
    SELECT part.template AS template, sum(part.rows) AS rows FROM parts WHERE part.rows > 0 GROUP BY ALL
), numbered AS (
    SELECT *, sum(starts_trip::INT) OVER (PARTITION BY host, connection ORDER BY exchange) AS trip FROM exchanges
), trips AS (
    SELECT arg_min(unit, exchange) AS unit, arg_min(template, exchange) AS template,
           greatest(0, max(last_reply_at_ns) - arg_min(sent_at_ns, exchange)) AS waited
    FROM numbered WHERE trip > 0 GROUP BY host, connection, trip
), waited AS (
    SELECT template, count(*) AS trips, sum(waited) AS waited_ns, max(waited) AS waited_max_ns
    FROM trips WHERE unit <> 'connect' GROUP BY ALL
)
SELECT template, coalesce(trips, 0) AS trips, coalesce(executions, 0) AS executions, coalesce(rows, 0) AS rows,
       coalesce(waited_ns, 0) AS waited_ns, coalesce(waited_max_ns, 0) AS waited_max_ns, coalesce(bytes, 0) AS bytes
FROM waited FULL JOIN executed USING (template) FULL JOIN counted USING (template)
"""


def findings_of(database) -> Iterator[dict]:
    """The findings, by the same rules as on Spark's workers."""
    rows = dicts(database, "SELECT * EXCLUDE (day, sent_at) FROM exchanges ORDER BY host, connection, exchange")
    merged: dict = {}
    for _, of_one in groupby(rows, lambda row: (row["host"], row["connection"])):
        for finding in rules.of_connection(of_one):
            known = merged.get(finding.key())
            merged[finding.key()] = finding if known is None else known.merged(finding)
    for finding in merged.values():
        settled = finding.settled()
        if settled is not None:
            yield settled.shown()


def one(database, query: str) -> int:
    return database.execute(query).fetchone()[0]


def dicts(database, query: str) -> list[dict]:
    result = database.execute(query)
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def by_spark(export: str, wanted: dict) -> dict:
    import job
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("compare").config("spark.ui.enabled", "false")
    spark = (
        builder.config("spark.sql.shuffle.partitions", "4").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    exchanges = spark.read.parquet(export)
    types = {column.name: column.dataType.simpleString() for column in exchanges.schema}
    if types["sent_at"] != "timestamp" or types["day"] != "date" or types["host"] != "string":
        sys.exit(f"columns have other types than docs/rows.md says: {types}")
    if sorted(types) != sorted(wanted["columns"]):
        sys.exit(f"columns are not those of docs/rows.md: {sorted(types)}")
    moment = f"unix_micros(sent_at) <> ({wanted['started_unix_ns']} + sent_at_ns) div 1000"
    if exchanges.where(f"{moment} OR day <> CAST(sent_at AS DATE)").count() != 0:
        sys.exit("rows have the wrong time or day")
    found = job.result(spark, export)
    spark.stop()
    return found


if __name__ == "__main__":
    main()
