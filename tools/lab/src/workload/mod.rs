//! Workloads as data: what is asked, of what database, in what ways, and what the answer and the trips have to be.

mod library;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use library::{all, find};

use crate::chart::spec::ChartSpec;

/// One question with everything that is needed to answer it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// What the command line knows it by.
    pub name: String,
    /// Heading of its page.
    pub title: String,
    /// What is asked.
    pub question: String,
    /// Where the question comes from.
    pub origin: String,
    /// How it is answered.
    pub method: String,
    /// What makes the figures better or worse than elsewhere.
    pub bias: Vec<String>,
    /// Template of the sentence that answers the question.
    pub verdict: String,
    /// Measured rounds of a cell.
    pub rounds: Size,
    /// Numbers by name, for formulas; the name of each comes before those that use it.
    #[serde(default)]
    pub sizes: Vec<NamedSize>,
    /// What is varied, beside the ways; the first axis is the outermost.
    #[serde(default, rename = "axis")]
    pub axes: Vec<Axis>,
    /// Engines, and the statements that make each one's tables.
    pub setup: BTreeMap<Engine, Vec<String>>,
    /// Statements before each round of every way, not timed and not counted, by engine.
    #[serde(default)]
    pub before: BTreeMap<Engine, Vec<String>>,
    /// What another session does all the while, again and again; its times are kept.
    #[serde(default)]
    pub beside: Vec<Step>,
    /// A statement on the database after a round of any way, and the number that it has to give.
    pub check: Option<Check>,
    /// Steps by name, for ways that have some in common.
    #[serde(default)]
    pub steps: NamedSteps,
    /// What is compared.
    #[serde(rename = "way")]
    pub ways: Vec<Way>,
    /// What is drawn.
    #[serde(default, rename = "chart")]
    pub charts: Vec<ChartSpec>,
}

/// Steps that [`Step::Play`] names.
pub type NamedSteps = BTreeMap<String, Vec<Step>>;

/// How large a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Extent {
    /// For tests: counts and answers, no times worth looking at.
    Short,
    /// Minutes.
    #[default]
    Normal,
    /// Everything, however long it takes.
    Full,
}

/// A formula for each extent.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// For [`Extent::Short`].
    pub short: Formula,
    /// For [`Extent::Normal`].
    pub normal: Formula,
    /// For [`Extent::Full`]; as normal where it is left out.
    pub full: Option<Formula>,
}

/// A [`Size`] and its name.
#[derive(Debug, Clone, Deserialize)]
pub struct NamedSize {
    /// The variable.
    pub name: String,
    /// Its value.
    #[serde(flatten)]
    pub size: Size,
}

/// A number, or an expression over the cell's variables.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
#[serde(untagged)]
pub enum Formula {
    /// As it is.
    Number(i64),
    /// To be worked out.
    Expression(String),
}

/// Values that every way is run with.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// The variable that has the values.
    pub name: String,
    /// Values for [`Extent::Normal`].
    pub values: Vec<AxisValue>,
    /// For [`Extent::Short`]; as normal where it is left out.
    pub short: Option<Vec<AxisValue>>,
    /// For [`Extent::Full`]; as normal where it is left out.
    pub full: Option<Vec<AxisValue>>,
}

/// One value of an axis. A text that is a time, such as `12.9ms`, also sets the variable `NAME_us`.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
#[serde(untagged)]
pub enum AxisValue {
    /// A number.
    Number(i64),
    /// A word or a time.
    Text(String),
}

/// A database that a workload can run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// The server behind `onetrip serve`.
    Embedded,
    /// PostgreSQL.
    Postgresql,
    /// MariaDB, by MySQL's protocol.
    Mariadb,
    /// Apache Derby's network server, by DRDA.
    Derby,
    /// No database: as many bytes come back as one would send.
    Echo,
}

/// One way to do the work.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// Its name in tables and charts.
    pub name: String,
    /// Cells that there are of it: a condition over the variables; all where it is left out.
    pub when: Option<String>,
    /// Remedies of the gateway that the program runs through; without any it is timed without a gateway.
    #[serde(default)]
    pub remedies: Option<String>,
    /// Whose sessions play it.
    #[serde(default)]
    pub client: ClientKind,
    /// Sessions that do the same at once.
    #[serde(default)]
    pub sessions: Option<Formula>,
    /// A program of a real driver that does the work: its words, templates. It is told the statements of `steps`, if there are any.
    #[serde(default)]
    pub program: Vec<String>,
    /// What is timed.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// Operations in a round, by which costs are divided.
    pub operations: Formula,
    /// What has to come out.
    pub expect: Expect,
}

/// Whose sessions play a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientKind {
    /// The lab's own, which sends exactly what the steps say.
    #[default]
    Lab,
    /// onetrip's client library, a thread for each session. Of steps it has simple queries, and `fetch`, for which it reads ahead.
    Blocking,
    /// onetrip's client library, all sessions in one thread. Of steps it has those that are one request each.
    Aio,
}

/// The answer, and what it has to cost.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Trips of one session's round.
    pub trips: Option<Formula>,
    /// Most trips, where their number is not fixed.
    pub trips_max: Option<Formula>,
    /// Rows that one session reads in a round.
    pub rows: Formula,
    /// Sum over what steps with `sum` read.
    pub sum: Option<Formula>,
}

/// A look at the tables after a round.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// A statement with one number as its result.
    pub query: String,
    /// That number.
    pub gives: Formula,
}

/// Something that a program does.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Step {
    /// Text by the simple protocol.
    Query(QueryStep),
    /// A statement with parameters.
    Run(RunStep),
    /// A result read piece by piece.
    Fetch(FetchStep),
    /// Steps again and again.
    Repeat(RepeatStep),
    /// Bytes for bytes.
    Exchange(ExchangeStep),
    /// Steps that the workload has a name for.
    Play(PlayStep),
}

/// See [`Step::Query`].
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryStep {
    /// Template of the text.
    pub query: String,
    /// Times that it is sent.
    pub times: Option<Formula>,
    /// What of the last column goes into the answer.
    pub sum: Option<Sum>,
    /// Leave it out unless this holds.
    pub when: Option<String>,
}

/// See [`Step::Run`].
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunStep {
    /// Template of the statement.
    pub run: String,
    /// Its parameters: formulas, `column N` of the row that it is run for, `kept N` (that
    /// column of all rows that were kept, as an array), or `last`, the first value of the reply before.
    #[serde(default)]
    pub with: Vec<String>,
    /// Times that it is run, with [`Self::as_`] counting from zero.
    pub times: Option<Formula>,
    /// Name of the counter.
    #[serde(default, rename = "as")]
    pub as_: Option<String>,
    /// Run it for each row that was kept, up to this many.
    pub for_each: Option<Formula>,
    /// Executions that share a trip.
    pub per_trip: Option<Formula>,
    /// Keep the rows for `for_each`.
    #[serde(default)]
    pub keep: bool,
    /// Whether the statement stays prepared.
    #[serde(default)]
    pub uncached: bool,
    /// Ask for the values' binary form.
    #[serde(default)]
    pub binary: bool,
    /// What of the last column goes into the answer.
    pub sum: Option<Sum>,
    /// Leave it out unless this holds.
    pub when: Option<String>,
}

/// See [`Step::Fetch`].
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FetchStep {
    /// Template of the statement.
    pub fetch: String,
    /// Rows for each trip; zero for all.
    pub rows: Formula,
    /// What of the last column goes into the answer.
    pub sum: Option<Sum>,
    /// Ask for the values' binary form.
    #[serde(default)]
    pub binary: bool,
    /// What is run for a row, in turn, after the piece that brought it.
    #[serde(default)]
    pub each: Vec<RunStep>,
    /// Every how many rows that is; one by default.
    pub every: Option<Formula>,
}

/// See [`Step::Repeat`].
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepeatStep {
    /// How often.
    pub repeat: Formula,
    /// Name of the counter, which starts at zero.
    #[serde(rename = "as")]
    pub as_: String,
    /// What.
    pub steps: Vec<Step>,
    /// Requests that share a trip, where steps are only `run` and `query`: they leave together up to this many.
    pub per_trip: Option<Formula>,
}

/// See [`Step::Exchange`]; for [`Engine::Echo`] only.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExchangeStep {
    /// Bytes of a question.
    pub ask: Formula,
    /// Bytes of its answer, which counts as a row.
    pub answer: Formula,
    /// How often.
    pub times: Formula,
    /// Leave it out unless this holds.
    pub when: Option<String>,
}

/// See [`Step::Play`].
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlayStep {
    /// Their name in [`Workload::steps`]; they may not come back to themselves.
    pub play: String,
}

/// What of a value is summed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sum {
    /// The number that it is.
    Number,
    /// Its bytes.
    Length,
}

impl Size {
    /// The formula for this extent.
    pub fn at(&self, extent: Extent) -> &Formula {
        match extent {
            Extent::Short => &self.short,
            Extent::Normal => &self.normal,
            Extent::Full => self.full.as_ref().unwrap_or(&self.normal),
        }
    }
}

impl Axis {
    /// The values for this extent.
    pub fn at(&self, extent: Extent) -> &[AxisValue] {
        match extent {
            Extent::Short => self.short.as_ref().unwrap_or(&self.values),
            Extent::Normal => &self.values,
            Extent::Full => self.full.as_ref().unwrap_or(&self.values),
        }
    }
}

impl Engine {
    /// Its name in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Postgresql => "postgresql",
            Self::Mariadb => "mariadb",
            Self::Derby => "derby",
            Self::Echo => "echo",
        }
    }

    /// Whether the lab's client and the gateway can talk to it.
    pub(crate) fn speaks_postgresql(self) -> bool {
        matches!(self, Self::Embedded | Self::Postgresql)
    }
}

impl std::fmt::Display for AxisValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

impl std::fmt::Display for Formula {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Expression(text) => text.fmt(f),
        }
    }
}
