//! What remedies would have removed, had they been on: a shadow of them that only reads what was sent.
//!
//! It knows a part of their conditions (`docs/safety.md`), and is stricter where traffic does not show the rest. That is what
//! the catalogue would prove, what the session's own questions would have told, and whether a guess would have been in time.
//! So it counts what is surely removed, not what may be.

use onetrip_sql::StatementKind;

use super::event::{Event, Run};
use super::hash::Set;
use super::purpose::Purpose;
use crate::findings::Would;
use crate::{Obstacle, Remedy, Steps, TransactionStatus, UnitKind};

/// Statements of a transaction after which the session's level, its state and the proofs are surely known.
const LEARNED_AFTER: u64 = 24;
/// Round trips below this have no remedies: what is near is judged as if it were far.
const NEAR_NS: u64 = 200_000;
/// Where statements take the server longer than this on average, a session's own questions, which may take 100 ms at once,
/// are not all asked.
const STATEMENT_NS_MAX: u64 = 10_000_000;
/// A statement that takes the server longer than this part of a round trip is not guessed.
const PART_OF_ROUND_TRIP: u64 = 4;
/// Templates of one connection that are followed.
const FOLLOWED_MAX: usize = 4096;
/// Savepoints of one transaction that are followed.
const SAVEPOINTS_MAX: usize = 64;

/// What would have been answered from memory if it had been foreseen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Reach {
    #[default]
    Nothing,
    /// Only in a transaction at REPEATABLE READ, which this one is not known to be.
    Isolated,
    Exact,
}

/// What remedies would have done with one exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Verdict {
    /// The remedy that would have removed its trip.
    pub(super) remedy: Option<Remedy>,
    /// Whether memory could have answered it.
    pub(super) memory: Reach,
}

/// The shadow of one connection's remedies.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    open: Option<Open>,
    /// The transaction before has only read, and so the session's state is asked for and known when the next one ends.
    is_known: bool,
    /// Templates that only read, and were run in an earlier transaction: their proofs are there.
    proven: Set<u32>,
    /// Templates that were prepared by a group of their own, once.
    prepared_once: Set<u32>,
    /// Those that were prepared so again: their runs are two trips, and the first is another remedy's.
    prepared_again: Set<u32>,
    /// Some statement has named the level SERIALIZABLE, at which reading may make others fail.
    may_be_serializable: bool,
    /// Names of savepoints, the last one last.
    savepoints: Vec<u32>,
    /// Trips so far, and the server's time in them.
    trips: u64,
    server_ns: u64,
}

/// A transaction under way.
#[derive(Debug)]
struct Open {
    /// Its BEGIN was seen.
    is_seen: bool,
    sees_one_state: bool,
    only_reads: bool,
    /// All its statements were proven before it began.
    is_proven: bool,
    statements: u64,
    ran: Vec<u32>,
}

impl Reach {
    /// One trip that is answered from memory.
    pub(super) fn trip(self) -> Would {
        match self {
            Self::Nothing => Would::default(),
            Self::Isolated => Would { exact: 0, isolated: 1 },
            Self::Exact => Would { exact: 1, isolated: 0 },
        }
    }
}

impl Verdict {
    /// The trip itself, if it would have been removed.
    pub(super) fn trip(self) -> Would {
        Would { exact: u64::from(self.remedy.is_some()), isolated: 0 }
    }
}

impl Shadow {
    /// Takes one exchange; `template` translates a statement's template to the analyzer's own id.
    pub(super) fn take(&mut self, event: &Event<'_>, template: impl Fn(u32) -> u32) -> Verdict {
        let exchange = event.exchange;
        let was_off =
            matches!(event.obstacle, Some(Obstacle::Off | Obstacle::OffAtItsLevel | Obstacle::OffOutside));
        self.may_be_serializable |= event.runs.iter().any(|run| run.facts.names_serializable);
        self.note_preparing(event, template);
        if event.is_own_trip() {
            self.trips += 1;
            self.server_ns += server_ns(event);
        }
        let remedy = event.sole_control().filter(|_| was_off && !event.failed()).and_then(|kind| {
            let run = event.runs.first()?;
            self.control(kind, run, event)
        });
        self.follow_savepoints(event);
        let begin = event.runs.iter().find(|run| run.facts.kind == StatementKind::Begin);
        if self.open.is_none() && (begin.is_some() || exchange.status != TransactionStatus::Idle) {
            self.open = Some(Open {
                is_seen: begin.is_some(),
                sees_one_state: begin.is_some_and(|begin| begin.facts.snapshot),
                only_reads: true,
                is_proven: true,
                statements: 0,
                ran: Vec::new(),
            });
        }
        let memory = match event.sole_run() {
            Some(run) if was_off => self.memory(run, event),
            _ => Reach::Nothing,
        };
        self.follow(event);
        Verdict { remedy, memory }
    }

    /// Which remedy answers this statement, which has the trip for itself.
    fn control(&self, kind: StatementKind, run: &Run<'_>, event: &Event<'_>) -> Option<Remedy> {
        let status = event.exchange.status;
        if !run.facts.is_plain_control {
            return None;
        }
        match kind {
            StatementKind::Begin => {
                let begins = self.open.is_none() && status == TransactionStatus::Active;
                (begins && event.exchange.kind == UnitKind::Query).then_some(Remedy::Begin)
            }
            StatementKind::Savepoint | StatementKind::Release => {
                let is_there =
                    kind == StatementKind::Savepoint || self.savepoints.last() == Some(&run.facts.savepoint);
                let is_within = self.open.is_some() && status == TransactionStatus::Active;
                (is_there && is_within && event.exchange.kind == UnitKind::Query).then_some(Remedy::Begin)
            }
            StatementKind::Commit | StatementKind::Rollback => {
                let open = self.open.as_ref()?;
                let only_reads = open.is_seen && open.only_reads && open.is_proven && self.is_known;
                (only_reads
                    && self.is_told_in_time()
                    && !self.may_be_serializable
                    && status == TransactionStatus::Idle)
                    .then_some(Remedy::Commit)
            }
            _ => None,
        }
    }

    /// Whether memory may answer this statement, which has the trip for itself.
    fn memory(&self, run: &Run<'_>, event: &Event<'_>) -> Reach {
        let Some(open) = &self.open else { return Reach::Nothing };
        let is_learned =
            open.statements >= LEARNED_AFTER || self.is_known && self.proven.contains(&run.template);
        let pays = self.pays(event);
        let may_be = open.is_seen && open.only_reads && self.only_reads(run, event) && is_learned && pays;
        match may_be && self.is_told_in_time() && !self.may_be_serializable && !event.failed() {
            false => Reach::Nothing,
            true if open.sees_one_state => Reach::Exact,
            true => Reach::Isolated,
        }
    }

    /// Whether the server takes so much shorter than the way that statements are guessed: for this one, and on average, as remedies
    /// learn it from all.
    fn pays(&self, event: &Event<'_>) -> bool {
        let is_short = |server_ns: u64, trips: u64| {
            server_ns.saturating_mul(PART_OF_ROUND_TRIP) <= event.wire_ns.saturating_mul(trips)
        };
        event.wire_ns < NEAR_NS || is_short(server_ns(event), 1) && is_short(self.server_ns, self.trips)
    }

    /// Whether the server is fast enough for the session's own questions.
    fn is_told_in_time(&self) -> bool {
        self.server_ns <= self.trips.saturating_mul(STATEMENT_NS_MAX)
    }

    fn only_reads(&self, run: &Run<'_>, event: &Event<'_>) -> bool {
        let is_statement =
            matches!(event.exchange.kind, UnitKind::Query | UnitKind::Group | UnitKind::FlushedGroup);
        is_statement
            && run.facts.is_plain_read
            && !run.is_bound_before
            && !self.prepared_again.contains(&run.template)
    }

    fn note_preparing(&mut self, event: &Event<'_>, template: impl Fn(u32) -> u32) {
        if event.exchange.kind != UnitKind::Group {
            return;
        }
        for statement in &event.exchange.statements {
            let steps = statement.steps;
            let is_apart = steps.has(Steps::PREPARE) && !steps.has(Steps::EXECUTE);
            if !is_apart || self.prepared_once.len() >= FOLLOWED_MAX {
                continue;
            }
            let template = template(statement.template);
            if !self.prepared_once.insert(template) {
                self.prepared_again.insert(template);
                if let Some(open) = &mut self.open {
                    open.only_reads = false;
                }
            }
        }
    }

    fn follow_savepoints(&mut self, event: &Event<'_>) {
        for run in &event.runs {
            match run.facts.kind {
                StatementKind::Savepoint if self.savepoints.len() < SAVEPOINTS_MAX => {
                    self.savepoints.push(run.facts.savepoint);
                }
                StatementKind::Release => drop(self.savepoints.pop()),
                StatementKind::Savepoint
                | StatementKind::RollbackTo
                | StatementKind::Multi
                | StatementKind::Do
                | StatementKind::Call
                | StatementKind::Execute => self.savepoints.clear(),
                _ => {}
            }
        }
        if event.failed() || event.exchange.status != TransactionStatus::Active {
            self.savepoints.clear();
        }
    }

    /// Follows the transaction under way, and what is known after it.
    fn follow(&mut self, event: &Event<'_>) {
        let mut only_reads = !event.failed() && event.exchange.cut.is_nothing();
        for run in event.runs.iter().filter(|run| !run.facts.kind.is_transaction_control()) {
            let is_silent = matches!(run.facts.purpose, Purpose::Show)
                || matches!(run.facts.kind, StatementKind::Empty | StatementKind::Deallocate);
            only_reads &= is_silent || self.only_reads(run, event);
            if run.facts.kind == StatementKind::Ddl {
                self.proven.clear();
            }
            if let Some(open) = self.open.as_mut().filter(|_| !is_silent) {
                open.statements += 1;
                open.is_proven &= self.proven.contains(&run.template);
                if open.ran.len() < FOLLOWED_MAX {
                    open.ran.push(run.template);
                }
            }
        }
        let is_over = event.exchange.status == TransactionStatus::Idle;
        match &mut self.open {
            Some(open) => open.only_reads &= only_reads,
            None => self.is_known &= only_reads,
        }
        if let Some(open) = self.open.take_if(|_| is_over) {
            self.is_known = open.is_seen && open.only_reads;
            if self.is_known && self.proven.len() < FOLLOWED_MAX {
                self.proven.extend(open.ran);
            }
        }
    }
}

/// The server's part of an exchange's time, in nanoseconds.
fn server_ns(event: &Event<'_>) -> u64 {
    event.exchange.duration().saturating_sub(event.wire_ns)
}
