"""Round trips, statements and findings OT001 to OT003 of a Parquet export, as a Spark job.

    spark-submit --py-files exchanges.py,finding.py,findings.py,loops.py,names.py,pace.py,writes.py job.py EXPORT

EXPORT is what `onetrip export TRACE --format parquet -o EXPORT` wrote. The result is one JSON object on standard output.
README.md says what is computed, and how it compares with `onetrip report`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import findings as rules
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

# What the rules of findings need.
COLUMNS = [
    "host",
    "connection",
    "exchange",
    "unit",
    "sent_at_ns",
    "last_reply_at_ns",
    "bytes_sent",
    "starts_trip",
    "may_share",
    "remedy",
    "transaction",
    "outcome",
    "request",
    "statements",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("export", help="directory of a Parquet export")
    options = parser.parse_args()
    spark = SparkSession.builder.appName("onetrip").getOrCreate()
    print(json.dumps(result(spark, options.export), indent=2))
    spark.stop()


def result(spark: SparkSession, export: str) -> dict:
    """Everything that the job computes."""
    for module in sorted(Path(rules.__file__).resolve().parent.glob("*.py")):
        spark.sparkContext.addPyFile(str(module))
    exchanges = spark.read.parquet(export)
    return {
        "totals": totals(exchanges),
        "templates": [row.asDict() for row in templates(exchanges).collect()],
        "findings": findings(exchanges),
    }


def totals(exchanges: DataFrame) -> dict:
    """Trips, and statements and rows of the work."""
    is_work = F.col("unit") != "connect"
    counts = exchanges.agg(
        F.count_if("starts_trip").alias("trips"),
        F.count_if(F.col("starts_trip") & ~is_work).alias("connect"),
        F.sum(F.when(is_work, F.size(runs()) + F.col("cut_statements")).otherwise(0)).alias("statements"),
        F.sum(F.when(is_work, F.col("rows")).otherwise(0)).alias("rows"),
    )
    return {name: value or 0 for name, value in counts.first().asDict().items()}


def templates(exchanges: DataFrame) -> DataFrame:
    """What the statements of each template spent: most trips first."""
    executed = (
        exchanges.where("unit <> 'connect'")
        .withColumn("runs", runs())
        .withColumn("share", F.floor((F.col("bytes_sent") + F.col("bytes_received")) / F.size("runs")))
        .select(F.explode("runs").alias("run"), "share")
        .groupBy(F.col("run.template").alias("template"))
        .agg(
            F.count("*").alias("executions"),
            F.sum("share").alias("bytes"),
        )
    )
    # Those of COPY come with its data, which is no run.
    counted = (
        exchanges.where("unit <> 'connect'")
        .select(F.explode("statements").alias("part"))
        .where("part.rows > 0")
        .groupBy(F.col("part.template").alias("template"))
        .agg(F.sum("part.rows").alias("rows"))
    )
    in_order = Window.partitionBy("host", "connection").orderBy("exchange")
    trips = (
        exchanges.withColumn("trip", F.sum(F.col("starts_trip").cast("int")).over(in_order))
        .where("trip > 0")
        .groupBy("host", "connection", "trip")
        .agg(
            F.min_by("unit", "exchange").alias("unit"),
            F.min_by("template", "exchange").alias("template"),
            F.min_by("sent_at_ns", "exchange").alias("began_ns"),
            F.max("last_reply_at_ns").alias("ended_ns"),
        )
        .where("unit <> 'connect'")
        .withColumn("waited", F.greatest(F.lit(0), F.col("ended_ns") - F.col("began_ns")))
        .groupBy("template")
        .agg(
            F.count("*").alias("trips"),
            F.sum("waited").alias("waited_ns"),
            F.max("waited").alias("waited_max_ns"),
        )
    )
    counts = ["trips", "executions", "rows", "waited_ns", "waited_max_ns", "bytes"]
    joined = trips.join(executed, "template", "full_outer").join(counted, "template", "full_outer")
    return joined.select("template", *(F.coalesce(name, F.lit(0)).alias(name) for name in counts)).orderBy(
        F.desc("trips"), F.desc("executions"), "template"
    )


def runs():
    """The statements that were run to their end."""
    return F.filter(
        "statements",
        lambda statement: F.array_contains(statement["steps"], "execute") & (statement["outcome"] == "done"),
    )


def findings(exchanges: DataFrame) -> list[dict]:
    """OT001 to OT003, most waiting first. All exchanges of one connection are in the memory of one worker at a time."""
    by_connection = exchanges.select(COLUMNS).rdd.map(lambda row: ((row.host, row.connection), row)).groupByKey()
    found = by_connection.flatMap(lambda pair: of_connection(pair[1])).map(lambda finding: (finding.key(), finding))
    merged = found.reduceByKey(lambda one, more: one.merged(more)).values().map(lambda finding: finding.settled())
    settled = [finding.shown() for finding in merged.collect() if finding is not None]
    return sorted(settled, key=lambda finding: (-finding["waited_ns"], finding["code"], finding["template"]))


def of_connection(rows: Iterable) -> Iterator[rules.Finding]:
    in_order = sorted(rows, key=lambda row: row.exchange)
    yield from rules.of_connection(row.asDict(recursive=True) for row in in_order)


if __name__ == "__main__":
    main()
