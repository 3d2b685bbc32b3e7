//! Units of the client that the server has not answered whole, and what is recorded of each.

use std::collections::VecDeque;

use onetrip_ledger::{
    Conversation, EXCHANGE_BYTES_MAX, Exchange, Moment, Outcome, Remedy, STATEMENT_BYTES_MAX, Statement,
    UnitKind,
};

use crate::canonical::Values;
use crate::parameters::Parameters;
use crate::statements::ResultFormats;

/// What is known of a unit's statement besides its exchange.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Run {
    /// How its result is written.
    pub(crate) formats: ResultFormats,
    /// The prepared statement that it is of, or zero.
    pub(crate) serial: u64,
}

/// Finished exchanges whose buffers are kept for the next units.
const POOL_MAX: usize = 64;
/// The longest of their buffers, in entries: what a rare long unit took is given back.
const POOLED_MAX: usize = 256;
/// Bytes of all live units, at most: what is beyond is counted only.
const UNITS_BYTES_MAX: usize = EXCHANGE_BYTES_MAX;
/// Values of one result that are kept for finding loops.
const RESULT_VALUES_MAX: usize = 65_536;
/// What a unit takes in memory without its statements and values.
const UNIT_BYTES: usize = size_of::<Unit>() + size_of::<Exchange>();
/// What a trace takes for an exchange without its statements and values.
const EXCHANGE_BYTES: usize = 128;

/// The result of a live unit's statement.
#[derive(Debug)]
pub(crate) struct ResultBook<'u> {
    pub(crate) statement: &'u mut Statement,
    /// Those of all statements of the unit, in a row.
    pub(crate) values: &'u mut Vec<u32>,
    /// How it is written.
    pub(crate) formats: Option<&'u ResultFormats>,
    room: Room<'u>,
}

impl ResultBook<'_> {
    /// Adds a row of this unit to the result's digest.
    pub(crate) fn add_to_digest(
        &mut self,
        values: &Values,
        unit: u64,
        (body, is_whole): (&[u8], bool),
        is_binary: bool,
    ) {
        let mut digest = values.digest(self.statement.result_digest, body);
        if !is_whole {
            // A row whose end is not looked at is like no other.
            digest = values.digest(digest, &unit.to_le_bytes());
        }
        self.statement.result_digest = digest & !1 | u64::from(is_binary);
    }

    /// Whether a row's keys, so many, are kept; room is then taken for them.
    pub(crate) fn has_room_for(&mut self, keys: usize) -> bool {
        self.values.len() + keys <= RESULT_VALUES_MAX && self.room.charge(keys * size_of::<u32>())
    }
}

/// What units take in memory.
#[derive(Debug)]
struct Room<'u> {
    /// All live ones.
    all: &'u mut usize,
    /// This one.
    own: &'u mut usize,
    is_cut: &'u mut bool,
}

impl Room<'_> {
    fn charge(&mut self, bytes: usize) -> bool {
        let fits = *self.own + bytes <= EXCHANGE_BYTES_MAX && *self.all + bytes <= UNITS_BYTES_MAX;
        if fits && !*self.is_cut {
            *self.own += bytes;
            *self.all += bytes;
            return true;
        }
        *self.is_cut = true;
        false
    }
}

/// The units of one connection that are not answered in full, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Units {
    live: VecDeque<Unit>,
    /// Number of the first live unit.
    first: u64,
    /// Boxed, as an exchange is long and goes from hand to hand.
    #[allow(clippy::vec_box)]
    pool: Vec<Box<Exchange>>,
    runs_pool: Vec<Vec<Run>>,
    conversation: Conversation,
    /// Bytes of all live units.
    bytes: usize,
}

#[derive(Debug)]
struct Unit {
    exchange: Box<Exchange>,
    /// By statement.
    runs: Vec<Run>,
    /// Messages that owe a reply.
    pending: u32,
    /// No further message belongs to it.
    closed: bool,
    /// Its first byte came; a unit for COPY data is there before.
    arrived: bool,
    replied: bool,
    /// Bytes that it takes in memory, and in a trace: no less than either.
    bytes: usize,
    /// There was too much of it: what comes is counted only.
    is_cut: bool,
}

impl Units {
    /// The unit that the client is sending; a new one if it has ended the last.
    pub(crate) fn open(&mut self, now: Moment, kind: UnitKind) -> u64 {
        match self.live.back_mut() {
            Some(unit) if !unit.closed => {
                if !unit.arrived {
                    unit.arrive(now, &mut self.conversation);
                } else if kind == UnitKind::Query || kind == UnitKind::FunctionCall {
                    unit.exchange.kind = kind;
                }
            }
            _ => {
                self.push(kind);
                if let Some(unit) = self.live.back_mut() {
                    unit.arrive(now, &mut self.conversation);
                }
            }
        }
        self.last_number()
    }

    /// A unit for the COPY data to come, if the one that asked for it is the last; its first byte is yet to arrive.
    pub(crate) fn expect_copy(&mut self, asking: u64) -> Option<u64> {
        if self.last_number() != asking {
            return None;
        }
        if let Some(unit) = self.live.back_mut() {
            unit.closed = true;
        }
        self.push(UnitKind::CopyIn);
        let number = self.last_number();
        self.owes(number);
        Some(number)
    }

    /// Whether a message would belong to a unit that is under way.
    pub(crate) fn is_open(&self) -> bool {
        self.live.back().is_some_and(|unit| !unit.closed)
    }

    /// No further message belongs to the unit under way.
    pub(crate) fn close(&mut self, kind: Option<UnitKind>) {
        if let Some(unit) = self.live.back_mut().filter(|unit| !unit.closed) {
            unit.closed = true;
            if let Some(kind) = kind.filter(|_| unit.exchange.kind == UnitKind::Group) {
                unit.exchange.kind = kind;
            }
        }
    }

    /// No further message belongs to this unit.
    pub(crate) fn end(&mut self, number: u64) {
        if let Some(unit) = self.get_mut(number) {
            unit.closed = true;
        }
    }

    /// A message of the unit owes a reply.
    pub(crate) fn owes(&mut self, number: u64) {
        if let Some(unit) = self.get_mut(number) {
            unit.pending += 1;
        }
    }

    /// A message of the unit was answered, or never will be.
    pub(crate) fn settled(&mut self, number: u64) {
        if let Some(unit) = self.get_mut(number) {
            unit.pending = unit.pending.saturating_sub(1);
        }
    }

    /// Whether the client had received the last reply when it sent what comes next.
    pub(crate) fn reads(&mut self, has_read: bool) {
        self.conversation.client_has_read(has_read);
    }

    /// Looks at every live unit, by its number.
    pub(crate) fn for_each(&mut self, mut see: impl FnMut(u64, &mut Exchange)) {
        for (number, unit) in (self.first..).zip(&mut self.live) {
            see(number, &mut unit.exchange);
        }
    }

    /// Every unit has ended and was answered.
    pub(crate) fn end_all(&mut self) {
        for unit in &mut self.live {
            unit.closed = true;
            unit.pending = 0;
        }
    }

    /// Every unit was answered, as far as it will be.
    pub(crate) fn settle_all(&mut self) {
        for unit in &mut self.live {
            unit.pending = 0;
        }
    }

    /// A remedy answers the unit: it starts no trip.
    pub(crate) fn answered_by(&mut self, number: u64, remedy: Remedy) {
        if let Some(exchange) = self.exchange_mut(number) {
            exchange.remedy = Some(remedy);
            exchange.obstacle = None;
            exchange.starts_trip = false;
            exchange.may_share = false;
        }
    }

    /// Bytes of the unit came from the client.
    pub(crate) fn bytes_sent(&mut self, bytes: usize) {
        if let Some(unit) = self.live.back_mut() {
            unit.exchange.bytes_sent += bytes as u64;
        }
    }

    /// Bytes of the unit's reply came from the server.
    pub(crate) fn bytes_received(&mut self, number: u64, bytes: usize, now: Moment) {
        if let Some(unit) = self.get_mut(number) {
            unit.exchange.bytes_received += bytes as u64;
            if !unit.replied {
                unit.replied = true;
                unit.exchange.first_reply_at = now;
            }
        }
    }

    /// The exchange of a live unit.
    pub(crate) fn exchange_mut(&mut self, number: u64) -> Option<&mut Exchange> {
        self.get_mut(number).map(|unit| &mut *unit.exchange)
    }

    /// Adds a statement to a unit, as its last; `None` where there is too much of it.
    pub(crate) fn add_statement(&mut self, number: u64, statement: Statement) -> Option<u16> {
        if !self.charge(number, size_of::<Statement>().max(STATEMENT_BYTES_MAX) + size_of::<ResultFormats>())
        {
            return None;
        }
        let statements = &mut self.exchange_mut(number)?.statements;
        let slot = u16::try_from(statements.len()).ok()?;
        statements.push(statement);
        Some(slot)
    }

    /// Moves values to a unit as those of its statement `slot`, which has to be its last so far.
    pub(crate) fn add_parameters(&mut self, number: u64, slot: Option<u16>, parameters: &mut Parameters) {
        let is_kept = slot.is_some() && self.charge(number, parameters.bytes());
        let Some(unit) = self.get_mut(number) else { return };
        if !is_kept {
            unit.exchange.cut.values += parameters.len() as u64;
        } else if let Some(slot) = slot {
            parameters.append_to(&mut unit.exchange, slot);
        }
    }

    /// Whether so many more bytes of a unit are kept; they are then taken for it.
    pub(crate) fn charge(&mut self, number: u64, bytes: usize) -> bool {
        let Some(position) = number.checked_sub(self.first) else { return false };
        let unit = usize::try_from(position).ok().and_then(|position| self.live.get_mut(position));
        let Some(Unit { bytes: own, is_cut, .. }) = unit else { return false };
        Room { all: &mut self.bytes, own, is_cut }.charge(bytes)
    }

    /// A statement that is not kept ended: with so many rows, or with an error.
    pub(crate) fn cut_ended(&mut self, number: u64, rows: Option<u64>) {
        if let Some(unit) = self.get_mut(number).filter(|unit| unit.is_cut) {
            let cut = &mut unit.exchange.cut;
            cut.statements += u64::from(rows.is_some());
            cut.failed += u64::from(rows.is_none());
            cut.rows += rows.unwrap_or_default();
        }
    }

    /// Whether there are as many units as are kept.
    pub(crate) fn is_full(&self) -> bool {
        self.live.len() * UNIT_BYTES >= UNITS_BYTES_MAX
    }

    /// Gives back what is kept for units to come.
    pub(crate) fn rest(&mut self) {
        self.pool = Vec::new();
        self.runs_pool = Vec::new();
        if self.live.is_empty() {
            self.live = VecDeque::new();
        }
    }

    /// Takes the oldest unit off if it is answered in full; give its exchange back with [`Self::recycle`].
    pub(crate) fn next_answered(&mut self, now: Moment) -> Option<Box<Exchange>> {
        loop {
            let oldest = self.live.front()?;
            if !oldest.closed || oldest.pending > 0 {
                return None;
            }
            let mut unit = self.live.pop_front()?;
            self.first += 1;
            self.bytes -= unit.bytes;
            self.recycle_runs(std::mem::take(&mut unit.runs));
            if !unit.arrived {
                self.recycle(unit.exchange);
                continue;
            }
            match unit.exchange.remedy {
                None => self.conversation.unit_answered(now),
                Some(_) => self.conversation.unit_served(),
            }
            unit.exchange.last_reply_at = now;
            if !unit.replied {
                unit.exchange.first_reply_at = now;
                unit.exchange.outcome = Outcome::Skipped;
            }
            return Some(unit.exchange);
        }
    }

    /// Keeps an exchange's buffers for the next unit.
    pub(crate) fn recycle(&mut self, mut exchange: Box<Exchange>) {
        let is_small = exchange.statements.capacity() <= POOLED_MAX
            && exchange.parameters.capacity() <= POOLED_MAX
            && exchange.results.capacity() <= POOLED_MAX;
        if self.pool.len() < POOL_MAX && is_small {
            exchange.clear();
            self.pool.push(exchange);
        }
    }

    /// What is known of a unit's statement besides its exchange; `None` for a unit that is over.
    pub(crate) fn run_mut(&mut self, number: u64, statement: u16) -> Option<&mut Run> {
        let unit = self.get_mut(number)?;
        let statement = usize::from(statement);
        if unit.runs.len() <= statement {
            unit.runs.resize_with(statement + 1, Run::default);
        }
        unit.runs.get_mut(statement)
    }

    /// The result of a live unit's statement.
    pub(crate) fn result_mut(&mut self, number: u64, statement: u16) -> Option<ResultBook<'_>> {
        let position = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let Unit { exchange, runs, bytes, is_cut, .. } = self.live.get_mut(position)?;
        Some(ResultBook {
            statement: exchange.statements.get_mut(usize::from(statement))?,
            values: &mut exchange.results,
            formats: runs.get(usize::from(statement)).map(|run| &run.formats),
            room: Room { all: &mut self.bytes, own: bytes, is_cut },
        })
    }

    /// How the result of a live unit's statement is written.
    pub(crate) fn formats(&self, number: u64, statement: u16) -> Option<&ResultFormats> {
        let position = number.checked_sub(self.first)?;
        let unit = self.live.get(usize::try_from(position).ok()?)?;
        unit.runs.get(usize::from(statement)).map(|run| &run.formats)
    }

    /// Units that were sent and not answered in full.
    pub(crate) fn unanswered(&self) -> u32 {
        self.conversation.unanswered()
    }

    /// The number of the oldest live unit, or that of the next one.
    pub(crate) fn oldest(&self) -> u64 {
        self.first
    }

    /// When a live unit was sent.
    pub(crate) fn sent_at(&self, number: u64) -> Option<Moment> {
        let position = number.checked_sub(self.first)?;
        let unit = self.live.get(usize::try_from(position).ok()?)?;
        unit.arrived.then_some(unit.exchange.sent_at)
    }

    /// The number of the last unit.
    pub(crate) fn newest(&self) -> u64 {
        self.last_number()
    }

    /// Live units.
    pub(crate) fn len(&self) -> usize {
        self.live.len()
    }

    fn push(&mut self, kind: UnitKind) {
        let mut exchange = self.pool.pop().unwrap_or_default();
        exchange.kind = kind;
        let runs = self.runs_pool.pop().unwrap_or_default();
        let bytes = UNIT_BYTES.max(EXCHANGE_BYTES);
        self.bytes += bytes;
        if self.live.capacity() == 0 {
            self.live.reserve_exact(1); // most clients wait for each answer
        }
        self.live.push_back(Unit {
            exchange,
            runs,
            pending: 0,
            closed: false,
            arrived: false,
            replied: false,
            bytes,
            is_cut: false,
        });
    }

    fn recycle_runs(&mut self, mut runs: Vec<Run>) {
        if self.runs_pool.len() < POOL_MAX && runs.capacity() <= POOLED_MAX {
            runs.clear();
            self.runs_pool.push(runs);
        }
    }

    fn last_number(&self) -> u64 {
        (self.first + self.live.len() as u64).saturating_sub(1)
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut Unit> {
        let position = number.checked_sub(self.first)?;
        self.live.get_mut(usize::try_from(position).ok()?)
    }
}

impl Unit {
    fn arrive(&mut self, now: Moment, conversation: &mut Conversation) {
        let arrival = conversation.unit_arrived(now);
        self.arrived = true;
        // What the server said before, it said about the COPY, and not in reply to the data.
        self.replied = false;
        self.exchange.sent_at = now;
        self.exchange.starts_trip = arrival.starts_trip;
        self.exchange.may_share = arrival.may_share;
    }
}
