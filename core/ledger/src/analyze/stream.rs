use std::sync::Arc;

use onetrip_sql::StatementKind;

use super::Shared;
use super::client::Client;
use super::connections::Life;
use super::detectors::Detectors;
use super::event::{Event, Place, Run, Runs};
use super::pace::Pace;
use super::would::{Shadow, Verdict};
use crate::stacks::{Recogniser, Sent, Startup};
use crate::timeline::TripSample;
use crate::{
    Difference, Driver, Exchange, Moment, Obstacle, Outcome, Record, Statement, Steps, Summary,
    TransactionStatus, UnitKind, ValueHash,
};

/// Drivers and ORMs show themselves within their first statements.
const RECOGNITION_TRIPS: u64 = 256;
/// Ids of one kind that a stream defines, at most; what is beyond is damage.
const IDS_MAX: usize = 1 << 16;

/// One connection, as far as it has been seen.
#[derive(Debug, Default)]
pub(super) struct Stream {
    number: u32,
    names: Names,
    opened: bool,
    /// The server let the client in.
    entered: bool,
    opened_at: Moment,
    closed_at: Option<Moment>,
    /// User and database.
    identity: String,
    /// Who the client was taken for by its startup packet.
    startup_driver: Driver,
    recogniser: Recogniser,
    /// Nothing that comes will tell more about the client.
    is_settled: bool,
    rtt_min_us: Option<u32>,
    bound: Bound,
    trip: Option<Trip>,
    connect_trips: u64,
    connect_waited_ns: u64,
    connect_wire_ns: u64,
    work_trips: u64,
    scope: u32,
    level: Level,
    place: Place,
    pace: Pace,
    shadow: Shadow,
    /// The request of the latest exchange; zero is none.
    request: u64,
    transactions: u64,
    detectors: Detectors,
}

/// What the statements of a transaction see, as far as the traffic tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Level {
    /// There is no transaction.
    #[default]
    Outside,
    /// What the session's level says.
    Default,
    /// One state, all of them.
    Snapshot,
}

/// The stream's ids, translated to the analyzer's; position is the stream's id.
#[derive(Debug, Default)]
struct Names {
    templates: Vec<u32>,
    scopes: Vec<u32>,
    columns: Vec<Arc<[String]>>,
}

/// Parameters that came in an exchange before the one that runs their statement. A driver may send Bind and Flush, wait, and send
/// Execute and Sync then.
#[derive(Debug, Default)]
struct Bound(Vec<(u32, Values)>);

/// Those of one template, by the stream's id.
#[derive(Debug)]
enum Values {
    Of(Vec<ValueHash>),
    /// It was bound more than once, and nobody knows which one is run next.
    Several,
}

impl Bound {
    /// Templates that are followed.
    const MAX: usize = 16;

    /// Those of a statement that is run and was not bound in the same exchange.
    fn of(&self, statement: &Statement) -> Option<&[ValueHash]> {
        if self.0.is_empty() || statement.steps.has(Steps::BIND) || statement.parameters > 0 {
            return None;
        }
        match self.0.iter().find(|(template, _)| *template == statement.template) {
            Some((_, Values::Of(values))) => Some(values),
            _ => None,
        }
    }

    /// Notes what an exchange has bound and not run, and forgets what it has run. With a transaction, all portals end.
    fn take(&mut self, exchange: &Exchange) {
        let mut parameters = exchange.parameters.as_slice();
        for statement in &exchange.statements {
            let (own, rest) = parameters.split_at(usize::from(statement.parameters));
            parameters = rest;
            let position = self.0.iter().position(|(template, _)| *template == statement.template);
            match (statement.steps.has(Steps::BIND), statement.steps.has(Steps::EXECUTE)) {
                (true, false) if statement.outcome == Outcome::Done => match position {
                    Some(position) => self.0[position].1 = Values::Several,
                    None if self.0.len() < Self::MAX => {
                        self.0.push((statement.template, Values::Of(own.to_vec())));
                    }
                    None => {}
                },
                (false, true) => drop(position.map(|position| self.0.swap_remove(position))),
                _ => {}
            }
        }
        let is_over = exchange.kind == UnitKind::Group && exchange.status == TransactionStatus::Idle;
        if is_over || exchange.status == TransactionStatus::Failed {
            self.0.clear();
        }
    }
}

/// The trip that is under way.
#[derive(Debug, Clone, Copy)]
struct Trip {
    started_at: Moment,
    first_reply_at: Moment,
    ended_at: Moment,
    bytes_sent: u64,
    bytes_received: u64,
    template: u32,
    scope: u32,
    request: u64,
    connect: bool,
    in_transaction: bool,
    /// Time between the reply before and this trip, in nanoseconds.
    think_ns: u64,
    may_share: bool,
    /// All that it has carried so far are values of statements that are not run yet.
    only_binds: bool,
}

impl Level {
    /// What the statements see, those of a unit with its BEGIN included.
    fn after_begin(self, runs: &[Run<'_>]) -> Self {
        match runs.iter().find(|run| run.facts.kind == StatementKind::Begin) {
            Some(begin) if begin.facts.snapshot => Self::Snapshot,
            Some(_) => Self::Default,
            None => self,
        }
    }

    fn after(self, event: &Event<'_>) -> Self {
        match (event.exchange.status, self.after_begin(&event.runs)) {
            (TransactionStatus::Idle, _) => Self::Outside,
            (_, Self::Outside) => Self::Default,
            (_, level) => level,
        }
    }

    /// What is in the way of remedies, if they were off.
    fn obstacle(self) -> Option<Obstacle> {
        Some(match self {
            Self::Outside => Obstacle::OffOutside,
            Self::Default => Obstacle::OffAtItsLevel,
            Self::Snapshot => Obstacle::Off,
        })
    }
}

impl Names {
    fn template(&self, id: u32) -> u32 {
        self.templates.get(id as usize).copied().unwrap_or(0)
    }

    /// The exchange's statements that ran to their end.
    fn runs<'e>(&'e self, exchange: &'e Exchange, bound: &'e Bound, shared: &Shared) -> Runs<'e> {
        let mut parameters = exchange.parameters.as_slice();
        let mut results = exchange.results.as_slice();
        let mut runs = Runs::default();
        for statement in &exchange.statements {
            let (own_parameters, rest) = parameters.split_at(usize::from(statement.parameters));
            parameters = rest;
            let (own_results, rest) = results.split_at(statement.results as usize);
            results = rest;
            if !statement.is_run() {
                continue;
            }
            let before = bound.of(statement);
            let template = self.template(statement.template);
            let columns = self.columns.get(statement.columns as usize).filter(|_| statement.columns != 0);
            runs.push(Run {
                statement,
                template,
                facts: shared.templates.facts(template),
                parameters: before.unwrap_or(own_parameters),
                is_bound_before: before.is_some(),
                results: own_results,
                columns,
            });
        }
        runs
    }
}

impl Stream {
    pub(super) fn new(number: u32) -> Self {
        Self { number, ..Self::default() }
    }

    /// Whether a client opened a session on it.
    pub(super) fn is_session(&self) -> bool {
        self.opened
    }

    /// Takes one record.
    pub(super) fn take(&mut self, record: Record<'_>, shared: &mut Shared) {
        match record {
            Record::Opened { at, parameters } => self.opened(at, &parameters, shared),
            Record::Entered => self.entered(shared),
            Record::Refused { sqlstate, message } => shared.refusals.add(sqlstate, message),
            Record::Template { id, text } => {
                define(&mut self.names.templates, id, shared.templates.intern(text))
            }
            Record::Impure { id, because } => shared.templates.set_impure(self.names.template(id), because),
            Record::Differed { template, at, .. } => {
                let statement = shared.templates.text(self.names.template(template));
                let differences = &mut shared.summary.differences;
                if differences.len() < Summary::DIFFERENCES_MAX {
                    differences.push(Difference { statement, at });
                }
            }
            Record::MayNotEnd { template, failures } => {
                let template = self.names.template(template);
                let statement = if template == 0 { String::new() } else { shared.templates.text(template) };
                shared.summary.may_not_end(statement, failures);
            }
            Record::Verified { answers, differed } => {
                shared.summary.verified += answers;
                shared.summary.differed += differed;
            }
            Record::Scope { id, label } => define(&mut self.names.scopes, id, shared.scopes.intern(label)),
            Record::Columns { id, names } => {
                let names = shared.columns.intern(&names);
                define_with(&mut self.names.columns, id, names, || Arc::from([]));
            }
            Record::Exchange(exchange) => self.exchange(exchange, shared),
            Record::Path { rtt_min_us, .. } => {
                self.rtt_min_us = Some(rtt_min_us);
                let all = &mut shared.summary.rtt_min_us;
                *all = Some(all.map_or(rtt_min_us, |least| least.min(rtt_min_us)));
            }
            Record::StatementName(name) => self.recogniser.statement_name(name),
            Record::Closed { at, unasked_replies, undecoded, unanswered } => {
                self.closed_at = Some(at);
                shared.summary.unasked_replies += unasked_replies;
                shared.summary.undecoded += undecoded;
                shared.summary.unanswered += unanswered;
            }
            // Facts about the trace itself are taken by the analyzer.
            Record::Origin { .. } | Record::Lost { .. } | Record::End { .. } => {}
        }
    }

    /// Ends the connection's patterns and books them.
    pub(super) fn end(&mut self, shared: &mut Shared) {
        self.end_trip(shared);
        let driver = self.recogniser.driver();
        self.settle(shared);
        self.detectors.end(driver, shared);
        if !self.opened {
            return;
        }
        *shared.summary.drivers.entry(driver).or_default() += 1;
        // Of a connection whose opening was not seen, nobody knows how much it was used.
        if let Some(closed_at) = self.closed_at.filter(|_| self.connect_trips > 0) {
            shared.connections.closed(
                driver,
                &self.identity,
                Life {
                    opened_at: self.opened_at,
                    closed_at,
                    connect_trips: self.connect_trips,
                    work_trips: self.work_trips,
                    connect_waited_ns: self.connect_waited_ns,
                    connect_wire_ns: self.connect_wire_ns,
                    scope: self.scope,
                },
            );
        }
    }

    fn opened(&mut self, at: Moment, parameters: &[(&[u8], &[u8])], shared: &mut Shared) {
        self.opened = true;
        self.opened_at = at;
        self.recogniser.startup(&Startup { parameters, asked_encryption: self.connect_trips > 0 });
        let get = |name: &[u8]| {
            let value = parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
            String::from_utf8_lossy(value.unwrap_or_default())
        };
        self.identity = format!("{}@{}", get(b"user"), get(b"database"));
        let is_known = !parameters.is_empty();
        if is_known {
            shared.timeline.opened(self.number, &self.identity);
        }
        if let Some(orm) =
            shared.orms.get(&(self.identity.clone(), self.recogniser.driver())).filter(|_| is_known)
        {
            self.recogniser.expect(*orm);
        }
        self.startup_driver = self.recogniser.driver();
        shared.summary.connections += 1;
    }

    fn entered(&mut self, shared: &mut Shared) {
        if !std::mem::replace(&mut self.entered, true) {
            shared.summary.sessions += 1;
        }
    }

    fn exchange(&mut self, exchange: &Exchange, shared: &mut Shared) {
        shared.count(exchange);
        if exchange.kind != UnitKind::Connect {
            self.entered(shared); // whoever works was let in
        }
        let scope = self.names.scopes.get(exchange.scope as usize).copied().unwrap_or(0);
        if self.scope == 0 {
            self.scope = scope;
        }
        let mut think_ns = self.trip.map_or(0, |trip| exchange.sent_at.since(trip.ended_at));
        let follows_work = self.trip.is_some_and(|trip| !trip.connect);
        let mut owns_trip = exchange.starts_trip && !exchange.may_share;
        if let Some(trip) = self.trip.filter(|trip| trip.only_binds && !exchange.starts_trip) {
            // The trip was made for what runs with these values.
            (owns_trip, think_ns) = (!trip.may_share, trip.think_ns);
        }
        self.count_trip(exchange, think_ns, scope, shared);
        if exchange.kind == UnitKind::Connect {
            self.pace.login(exchange.bytes_sent, think_ns, self.startup_driver.has_quick_proof());
            return;
        }
        let gauge = self.pace.gauge();
        if exchange.starts_trip && follows_work {
            self.pace.take(think_ns);
        }
        let wire_ns = self.wire_ns(exchange.duration());
        let is_in_context =
            self.place.transaction != 0 || (exchange.request != 0 && self.request == exchange.request);
        self.request = exchange.request;
        let carried_ns = self.detectors.carried_ns();
        self.place = self.place_of(exchange);
        let runs = self.names.runs(exchange, &self.bound, shared);
        let obstacle = match exchange.obstacle {
            // No remedy answers these, and nothing else is said to be in the way.
            None if runs.iter().any(|run| run.is_bound_before) => None,
            None if !shared.has_remedies => self.level.after_begin(&runs).obstacle(),
            told => told,
        };
        let mut event = Event {
            exchange,
            owns_trip,
            place: self.place,
            scope,
            opened_at: self.opened_at,
            think_ns,
            carried_ns,
            gauge,
            is_in_context,
            wire_ns,
            obstacle,
            would: Verdict::default(),
            runs,
        };
        event.would = self.shadow.take(&event, |id| self.names.template(id));
        if let Some(remedy) = event.would.remedy {
            shared.summary.would.entry(remedy).or_default().add(event.would.trip());
        }
        count_statements(&event, |id| self.names.template(id), shared);
        self.level = self.level.after(&event);
        if !self.is_settled {
            let grouped = matches!(exchange.kind, UnitKind::Group | UnitKind::FlushedGroup);
            for run in &event.runs {
                let marks = shared.templates.marks(run.template);
                let sent = match run.statement.steps.has(Steps::BIND) {
                    _ if !grouped => Sent::AsText,
                    true => Sent::WithParameters,
                    false => Sent::BoundBefore,
                };
                self.recogniser.statement(run.template, marks, sent, shared.program);
            }
            if let Some(orm) = self.recogniser.orm() {
                shared.orms.entry((self.identity.clone(), self.startup_driver)).or_insert(orm);
            }
        }
        let client = match self.is_settled {
            true => Client::Known(self.recogniser.driver()),
            false => Client::Connection(self.number),
        };
        self.detectors.show(&event, |id| self.names.template(id), client, shared);
        self.bound.take(exchange);
        if self.recogniser.orm().is_some() || self.work_trips >= RECOGNITION_TRIPS {
            self.settle(shared);
        }
    }

    fn place_of(&mut self, exchange: &Exchange) -> Place {
        let is_within = exchange.status != TransactionStatus::Idle;
        let is_group = matches!(exchange.kind, UnitKind::Group | UnitKind::FlushedGroup);
        let runs_nothing = is_group && !exchange.statements.iter().any(|it| it.steps.has(Steps::EXECUTE));
        self.transactions += u64::from(is_within && self.place.transaction == 0);
        Place {
            connection: self.number,
            count: self.place.count + u64::from(!runs_nothing),
            transaction: if is_within { u32::try_from(self.transactions).unwrap_or(u32::MAX) } else { 0 },
        }
    }

    /// Says whose the connection is, from now on and for what it has done.
    fn settle(&mut self, shared: &mut Shared) {
        if !std::mem::replace(&mut self.is_settled, true) {
            shared.book.settle(self.number, self.recogniser.driver());
            shared.edges.settle(self.number, self.recogniser.driver());
        }
    }

    fn count_trip(&mut self, exchange: &Exchange, think_ns: u64, scope: u32, shared: &mut Shared) {
        let only_binds =
            !exchange.statements.is_empty() && exchange.statements.iter().all(|it| it.steps == Steps::BIND);
        let connect = exchange.kind == UnitKind::Connect;
        if exchange.starts_trip {
            self.end_trip(shared);
            let trips = &mut shared.summary.trips;
            trips.total += 1;
            trips.connect += u64::from(connect);
            trips.may_share += u64::from(exchange.may_share);
            shared.summary.times.think_ns += think_ns;
            self.connect_trips += u64::from(connect);
            self.work_trips += u64::from(!connect);
            self.trip = Some(Trip {
                started_at: exchange.sent_at,
                first_reply_at: exchange.first_reply_at,
                ended_at: exchange.last_reply_at,
                bytes_sent: exchange.bytes_sent,
                bytes_received: exchange.bytes_received,
                template: main_statement(exchange)
                    .map_or(0, |statement| self.names.template(statement.template)),
                scope,
                request: exchange.request,
                connect,
                in_transaction: exchange.status != TransactionStatus::Idle,
                think_ns,
                may_share: exchange.may_share,
                only_binds,
            });
        } else if let Some(trip) = &mut self.trip {
            trip.only_binds &= only_binds;
            trip.ended_at = trip.ended_at.max(exchange.last_reply_at);
            trip.in_transaction = exchange.status != TransactionStatus::Idle;
            trip.bytes_sent += exchange.bytes_sent;
            trip.bytes_received += exchange.bytes_received;
        }
    }

    /// Books the trip that is over: its time is known only when all units that shared it are answered.
    fn end_trip(&mut self, shared: &mut Shared) {
        let Some(trip) = self.trip else { return };
        let waited_ns = trip.ended_at.since(trip.started_at);
        let wire_ns = self.wire_ns(waited_ns);
        shared.summary.times.wire_ns += wire_ns;
        shared.summary.times.server_ns += waited_ns - wire_ns;
        shared.timeline.add(TripSample {
            connection: self.number,
            started_ns: trip.started_at.0,
            first_reply_ns: trip.first_reply_at.0,
            ended_ns: trip.ended_at.0,
            server_ns: waited_ns - wire_ns,
            bytes_sent: trip.bytes_sent,
            bytes_received: trip.bytes_received,
            statement: trip.template,
            scope: trip.scope,
            connect: trip.connect,
            in_transaction: trip.in_transaction,
        });
        if trip.connect {
            self.connect_waited_ns += waited_ns;
            self.connect_wire_ns += wire_ns;
            return;
        }
        let totals = shared.templates.totals_mut(trip.template);
        totals.trips += 1;
        totals.waited_ns += waited_ns;
        totals.waited_max_ns = totals.waited_max_ns.max(waited_ns);
        shared.scopes.add_trip(trip.scope, trip.request, waited_ns);
    }

    /// The path's part of some waiting: at least one round trip of it, as fast as the kernel has seen one.
    fn wire_ns(&self, waited_ns: u64) -> u64 {
        waited_ns.min(u64::from(self.rtt_min_us.unwrap_or(0)) * 1000)
    }
}

fn count_statements(event: &Event<'_>, template: impl Fn(u32) -> u32, shared: &mut Shared) {
    let exchange = event.exchange;
    let (runs, cut) = (event.runs.len() as u64, exchange.cut);
    for statement in &exchange.statements {
        if let Outcome::Failed(state) = statement.outcome {
            shared.summary.errors += 1;
            *shared.errors.entry(state).or_default() += 1;
        }
    }
    shared.summary.statements += runs + cut.statements;
    shared.summary.errors += cut.failed;
    // COPY data is a unit of its own, whose statement was run by the unit before; and who fails may have had rows.
    for statement in exchange.statements.iter().filter(|statement| statement.rows > 0) {
        shared.summary.rows += statement.rows;
        shared.templates.totals_mut(template(statement.template)).rows += statement.rows;
    }
    shared.summary.rows += cut.rows;
    let mut untold = cut.untold;
    for run in &event.runs {
        untold += u64::from(run.statement.template != 0 && run.template == 0);
        let totals = shared.templates.totals_mut(run.template);
        totals.executions += 1;
        totals.bytes += (exchange.bytes_sent + exchange.bytes_received) / runs;
    }
    let is_told = shared.scopes.add_statements(event.scope, exchange.request, runs + cut.statements);
    let gaps = &mut shared.summary.gaps;
    gaps.cut_exchanges += u64::from(cut.leaves_out());
    gaps.untold_statements += untold;
    gaps.unscoped_statements += cut.unscoped + u64::from(!is_told);
}

/// The statement that a unit was sent for: the last that is run, because control statements go ahead; else the first.
fn main_statement(exchange: &Exchange) -> Option<&Statement> {
    let statements = &exchange.statements;
    statements.iter().rfind(|statement| statement.steps.has(Steps::EXECUTE)).or(statements.first())
}

fn define(ids: &mut Vec<u32>, id: u32, value: u32) {
    define_with(ids, id, value, || 0);
}

/// Puts `value` at position `id`. Streams count their ids up from one; where a block was lost, some are missing.
fn define_with<T: Clone>(list: &mut Vec<T>, id: u32, value: T, empty: impl Fn() -> T) {
    let id = id as usize;
    if id > IDS_MAX {
        return;
    }
    list.resize_with((id + 1).max(list.len()), empty);
    list[id] = value;
}
