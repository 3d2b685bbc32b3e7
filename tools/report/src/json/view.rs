//! What the JSON report holds. The comments are what `docs/report-json.md` and the JSON Schema say of each field.

use std::collections::BTreeMap;

use onetrip_ledger::network::NetworkSummary;
use onetrip_ledger::sides::TwoSides;
use onetrip_ledger::{
    Difference, MayNotEnd, Obstacle, PathTimes, Refusal, Remedy, ScopeTotals, TemplateTotals, Would,
};
#[cfg(test)]
use schemars::JsonSchema;
use serde::Serialize;

#[cfg(test)]
use super::shapes;
use crate::RunInfo;

/// The report as `--format json` prints it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(rename = "Report"))]
pub(super) struct Document<'a> {
    /// Version of this format, 1. It grows when a field changes its meaning or goes away.
    pub format: u32,
    /// The sentence that the terminal report begins with.
    pub headline: String,
    /// False where the headline says that nothing is worth doing.
    pub worth_doing: bool,
    /// Every check passed. False also where one could not be judged.
    pub passed: bool,
    /// The worst of all checks.
    #[cfg_attr(test, schemars(with = "shapes::Ruling"))]
    pub ruling: &'static str,
    /// Why checks could not be judged, in sentences.
    pub reasons: Vec<&'a str>,
    /// The program that ran. Null for a gateway, or a trace that is read later.
    pub run: Option<&'a RunInfo>,
    /// The database.
    pub database: Database<'a>,
    /// Round trips.
    pub trips: Trips<'a>,
    /// Where the time went, over all connections.
    #[cfg_attr(test, schemars(with = "shapes::PathTimes"))]
    pub times: PathTimes,
    /// From the first byte to the last reply.
    pub elapsed_ns: u64,
    /// How long replies were held (`--settle`).
    pub settle_ns: u64,
    /// Connections of clients.
    pub connections: Connections<'a>,
    /// Units sent.
    pub units: u64,
    /// Statements that were run.
    pub statements: u64,
    /// Statements that failed.
    pub errors: u64,
    /// Failed statements by SQLSTATE, the most frequent first.
    pub errors_by_state: Vec<ErrorView<'a>>,
    /// Rows returned or changed.
    pub rows: u64,
    /// Bytes from clients.
    pub bytes_sent: u64,
    /// Bytes to clients.
    pub bytes_received: u64,
    /// What keeps counts from being exact.
    pub doubts: Doubts,
    /// Statements with their literals lifted, those with most trips first.
    #[cfg_attr(test, schemars(with = "Vec<shapes::Template>"))]
    pub templates: &'a [TemplateTotals],
    /// Scopes, those with most trips first.
    #[cfg_attr(test, schemars(with = "Vec<shapes::Scope>"))]
    pub scopes: &'a [ScopeTotals],
    /// Findings, those with most waiting first.
    pub findings: Vec<FindingView<'a>>,
    /// The budgets.
    pub budgets: Vec<BudgetView<'a>>,
    /// The rules of `--fail-on`.
    pub fail_on: Vec<RuleView<'a>>,
    /// The rule of `--compare`.
    pub increase: Option<IncreaseView<'a>>,
    /// The rules of `--snapshot`.
    pub snapshot: Vec<SnapshotView<'a>>,
    /// What changed since an earlier run (`--compare`).
    pub comparison: Option<ComparisonView<'a>>,
    /// What the run costs at other distances.
    pub forecast: Option<ForecastView>,
    /// What the packets of a capture tell of the network. Only there for a capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "shapes::Network"))]
    pub network: Option<&'a NetworkSummary>,
    /// What the captures at both ends of a path tell together. Only there for `analyze --client --server`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "shapes::Sides"))]
    pub sides: Option<&'a TwoSides>,
}

/// What the run costs at other distances.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(rename = "Forecast"))]
pub(super) struct ForecastView {
    /// The round-trip time of the run. Null on a Unix socket.
    pub measured_rtt_ns: Option<u64>,
    /// The round-trip time at which findings are priced.
    pub target_rtt_ns: u64,
    /// The bandwidth that was given, in bits a second.
    pub bandwidth: Option<u64>,
    /// The distances, the nearest first.
    pub distances: Vec<PriceView>,
}

/// The price of the run at one distance.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(rename = "Distance"))]
pub(super) struct PriceView {
    /// Round-trip time.
    pub rtt_ns: u64,
    /// This is what was measured, and no forecast.
    pub measured: bool,
    /// The run as it is.
    pub as_is: PredictionView,
    /// With the fixes of all findings made.
    pub with_fixes: PredictionView,
    /// If one trip carried everything.
    pub one_trip: PredictionView,
    /// The program as it is, with `--remedies exact`: without the trips of `would`. Null if remedies were on, or have nothing to remove.
    pub with_remedies: Option<PredictionView>,
    /// Without the remedies that were on. Null where they took no trip out.
    pub without_remedies: Option<PredictionView>,
    /// What the run moves in its busier direction, on average, in bits a second.
    pub bits_per_second: u64,
}

/// A forecast time with its range.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(rename = "Time"))]
pub(super) struct PredictionView {
    /// The time that is expected.
    pub time_ns: u64,
    /// The range's lower end.
    pub low_ns: u64,
    /// The range's upper end.
    pub high_ns: u64,
}

/// The database.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(super) struct Database<'a> {
    /// Its address.
    pub address: &'a str,
    /// The smallest round-trip time that the kernel saw. Null on a Unix socket.
    pub rtt_min_ns: Option<u64>,
}

/// Round trips.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(super) struct Trips<'a> {
    /// All trips: `connect` and `work`.
    pub total: u64,
    /// The total without those that may have shared the trip before.
    pub at_least: u64,
    /// Trips that opened sessions.
    pub connect: u64,
    /// Trips of open sessions.
    pub work: u64,
    /// Trips that the fixes of all findings save.
    pub avoidable: u64,
    /// Time waited in these.
    pub avoidable_ns: u64,
    /// Trips that remedies took out, by remedy.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, u64>"))]
    pub removed: &'a BTreeMap<Remedy, u64>,
    /// Trips that remedies would have taken out at least, by remedy: `begin`, `commit`, `loops` and `repeats`. Empty where
    /// they were on.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, shapes::Would>"))]
    pub would: &'a BTreeMap<Remedy, Would>,
    /// Answers from memory that were run for real as well (`--verify`).
    pub verified: u64,
    /// Those of them that were wrong.
    pub differed: u64,
    /// Up to ten of the wrong ones.
    #[cfg_attr(test, schemars(with = "Vec<shapes::Difference>"))]
    pub differences: &'a [Difference],
    /// Up to ten statements that may never end at the level that `--isolation` sets.
    #[cfg_attr(test, schemars(with = "Vec<shapes::MayNotEnd>"))]
    pub may_not_end: &'a [MayNotEnd],
}

/// Connections of clients.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(super) struct Connections<'a> {
    /// Connections that clients opened.
    pub opened: u64,
    /// Those that the server let in: sessions.
    pub let_in: u64,
    /// Why others were refused, the most frequent first.
    #[cfg_attr(test, schemars(with = "Vec<shapes::Refusal>"))]
    pub refused: &'a [Refusal],
    /// Sessions that were open when the report was made.
    pub still_open: u64,
    /// Drivers that were recognised.
    pub drivers: Vec<DriverView<'a>>,
}

/// A driver or ORM that was recognised.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(rename = "Driver"))]
pub(super) struct DriverView<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its connections.
    pub connections: u64,
}

/// What keeps counts from being exact. All are 0, and `no_end` is false, where nothing does.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(super) struct Doubts {
    /// Trips that may have shared the trip before. With any, `total` is an upper bound.
    pub may_share: u64,
    /// Units without an answer.
    pub unanswered: u64,
    /// Replies that nothing asked for.
    pub unasked_replies: u64,
    /// Messages that could not be decoded.
    pub undecoded: u64,
    /// Bytes of records that were lost. With any, all counts are lower bounds.
    pub lost_bytes: u64,
    /// Damaged blocks of the trace. They are left out.
    pub damaged_blocks: u64,
    /// Bytes of these.
    pub damaged_bytes: u64,
    /// Bytes after the last complete block of the trace.
    pub tail_bytes: u64,
    /// The trace is still being written, or its writer was killed.
    pub no_end: bool,
    /// Exchanges that are counted in full and kept in part.
    pub cut_exchanges: u64,
    /// Statements that were counted without their text, because there are too many different ones. If there are too many kinds of
    /// results, each later statement counts.
    pub untold_statements: u64,
    /// Statements beyond those that can be given a scope.
    pub unscoped_statements: u64,
}

/// Failed statements of one SQLSTATE.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(rename = "ErrorCount"))]
pub(super) struct ErrorView<'a> {
    /// The SQLSTATE.
    pub sqlstate: &'a str,
    /// How many statements failed with it.
    pub statements: u64,
}

/// A finding.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(rename = "Finding"))]
pub(super) struct FindingView<'a> {
    /// `OT001` and so on. A code is never given to another pattern.
    pub code: &'a str,
    /// The pattern's name.
    pub title: &'a str,
    /// The statement that is run too often. The source of a loop comes second.
    pub statements: &'a [String],
    /// The driver or ORM that was recognised.
    pub driver: &'a str,
    /// Where it happened, at most five scopes.
    pub scopes: &'a [String],
    /// How often the whole pattern was seen: loops, runs, connections.
    pub occurrences: u64,
    /// Trips that it took.
    pub trips: u64,
    /// Trips that the fix saves.
    pub avoidable: u64,
    /// Trips of the pattern that remedies took out.
    pub removed: u64,
    /// Trips of the pattern that they would have taken out at least.
    #[cfg_attr(test, schemars(with = "shapes::Would"))]
    pub would: Would,
    /// Trips that are left, by [what kept remedies from them](removing.md#why-was-nothing-removed).
    #[cfg_attr(test, schemars(with = "BTreeMap<String, u64>"))]
    pub left: &'a BTreeMap<Obstacle, u64>,
    /// Why the statement is not known to only read.
    pub impure: Option<&'a str>,
    /// Time waited in the avoidable trips.
    pub waited_ns: u64,
    /// The path's part of it.
    pub wire_ns: u64,
    /// What the fix saves at the forecast's `target_rtt_ns`. Null without a forecast.
    pub target_ns: Option<u64>,
    /// The evidence in a sentence.
    pub proof: String,
    /// The evidence as data.
    pub evidence: EvidenceView<'a>,
    /// The lines of the program that sent the statements, at most three, those that sent most first.
    pub lines: Vec<LineView<'a>>,
    /// What to change.
    pub fix: &'a str,
}

/// A line of the program that sent a finding's statements.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(rename = "Line"))]
pub(super) struct LineView<'a> {
    /// Such as `shop/views.py:41 in orders`, the innermost first.
    pub frames: &'a [String],
    /// How many of at most 64 exchanges of the finding came from there.
    pub seen: u64,
}

/// The evidence of a finding. `kind` tells which other fields there are.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
#[cfg_attr(test, derive(JsonSchema), schemars(rename = "Evidence"))]
pub(super) enum EvidenceView<'a> {
    /// Values of one result went one by one into other statements.
    Walk {
        /// Where the values came from.
        parameters: Vec<Source<'a>>,
        /// The first row of the longest loop, counted from one.
        first_row: u64,
        /// Its last row.
        last_row: u64,
    },
    /// Rows were written one by one.
    Rows {
        /// Rows written.
        rows: u64,
        /// Transactions that they took.
        transactions: u64,
    },
    /// A result was fetched in small pieces.
    Fetches {
        /// Rows asked for each time.
        size: u64,
        /// Rows in all.
        rows: u64,
    },
    /// The same statement was run again.
    Repeats {
        /// Distinct sets of values.
        distinct: u64,
        /// Runs in all.
        runs: u64,
    },
    /// Transaction control had trips of its own.
    Alone {
        /// BEGINs with a trip of their own.
        begins: u64,
        /// COMMITs with a trip of their own.
        commits: u64,
        /// Transactions.
        transactions: u64,
    },
    /// Statements were prepared again and again.
    Prepares {
        /// Trips that only prepared.
        prepares: u64,
        /// Runs.
        runs: u64,
    },
    /// Connections were opened for little work.
    Connections {
        /// Connections.
        connections: u64,
        /// Trips that opened them.
        connect_trips: u64,
    },
    /// Statements differed in their literals only.
    Values {
        /// Distinct sets of values.
        distinct: u64,
        /// Runs in all.
        runs: u64,
    },
    /// Large objects were read by calls.
    Objects {
        /// Large objects that were opened.
        objects: u64,
        /// Calls with a trip of their own.
        calls: u64,
    },
    /// Statements that serve the driver, and not the program.
    Chatter {
        /// Pings.
        pings: u64,
        /// SET, RESET, SHOW and DISCARD.
        settings: u64,
        /// Lookups of the catalogue.
        lookups: u64,
    },
    /// Reads that do not need each other's answers.
    Groups {
        /// Groups of reads.
        groups: u64,
        /// Statements in them.
        statements: u64,
    },
    /// Pairs of statements that one could replace.
    Pairs {
        /// Pairs.
        pairs: u64,
    },
    /// A pool reset connections that had only read.
    CheckIns {
        /// ROLLBACKs with a trip of their own.
        rollbacks: u64,
        /// Reads in their transactions.
        reads: u64,
    },
}

/// Where the values of a parameter came from.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(rename = "Parameter"))]
pub(super) struct Source<'a> {
    /// The parameter's number.
    pub parameter: u16,
    /// The column of the result.
    pub column: &'a str,
}

/// A budget.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(rename = "Budget"))]
pub(super) struct BudgetView<'a> {
    /// What is counted.
    pub measure: String,
    /// The scope. Null: the whole run.
    pub scope: Option<&'a str>,
    /// The most that it may be.
    pub most: u64,
    #[serde(flatten)]
    pub verdict: VerdictView<'a>,
}

/// A rule of `--fail-on`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(rename = "FailOn"))]
pub(super) struct RuleView<'a> {
    /// The finding's code.
    pub code: &'a str,
    /// There is such a finding.
    pub found: bool,
    /// What became of the check.
    #[cfg_attr(test, schemars(with = "shapes::Ruling"))]
    pub ruling: &'static str,
    /// Why it could not be judged.
    pub reason: Option<&'a str>,
}

/// The rule of `--compare`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(rename = "Increase"))]
pub(super) struct IncreaseView<'a> {
    /// The earlier run.
    pub base: &'a str,
    /// The most trips that there may be. Null without `--max-increase`.
    pub most: Option<u64>,
    #[serde(flatten)]
    pub verdict: VerdictView<'a>,
}

/// A rule of `--snapshot`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(rename = "SnapshotRule"))]
pub(super) struct SnapshotView<'a> {
    /// What is counted.
    pub measure: String,
    /// The scope. Null: the whole run.
    pub scope: Option<&'a str>,
    /// What the file says. Null where it says nothing of it.
    pub expected: Option<u64>,
    #[serde(flatten)]
    pub verdict: VerdictView<'a>,
}

/// What became of a check.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(super) struct VerdictView<'a> {
    /// What was counted.
    pub counted: u64,
    /// It passed. False also where it could not be judged.
    pub passed: bool,
    /// What became of the check.
    #[cfg_attr(test, schemars(with = "shapes::Ruling"))]
    pub ruling: &'static str,
    /// Why it could not be judged.
    pub reason: Option<&'a str>,
}

/// What changed since an earlier run.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(rename = "Comparison"))]
pub(super) struct ComparisonView<'a> {
    /// All trips.
    pub trips: ChangeView<'a>,
    /// There are more trips, or a finding has more avoidable ones.
    pub worse: bool,
    /// Trips of statements that changed.
    pub statements: Vec<ChangeView<'a>>,
    /// Avoidable trips of findings that changed.
    pub findings: Vec<ChangeView<'a>>,
}

/// A number, and what it was in the earlier run.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(rename = "Change"))]
pub(super) struct ChangeView<'a> {
    /// The finding's code. Only there for a finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'a str>,
    /// The statement. Only there for a statement or a finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statement: Option<&'a str>,
    /// In the earlier run.
    pub before: u64,
    /// In this run.
    pub now: u64,
    /// `now` less `before`.
    pub difference: i64,
}
