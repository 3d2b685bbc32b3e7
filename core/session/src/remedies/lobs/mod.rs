//! The remedy `lobs`: a large object is prefetched when it is opened, and what the program then asks for is answered from
//! memory.
//!
//! ```text
//!  client            session                                                          server
//!    | lo_open ------>| lo_open; SAVEPOINT x; lo_lseek64, loread ... ; ROLLBACK TO x ---->|
//!    |<- descriptor --|<-------------------------------------- descriptor, size, bytes ---|
//!    | lo_lseek64 --->|                                                                   |
//!    |<- size --------|                                                     from memory   |
//!    | loread ------->|                                                                   |
//!    |<- bytes -------|                                                     from memory   |
//!    | lo_close ----->| lo_close ------------------------------------------------------->|
//!    |<- 0 -----------|                                     answered, and sent along      |
//! ```
//!
//! **One object, at any level.** A descriptor that only reads (`INV_READ`) sees the snapshot of its `lo_open` for as long as
//! it is open: when its bytes are read does not matter. So the session reads on behind the program's own calls, in a shield
//! as that of `loops`, on the program's own descriptor. ROLLBACK TO leaves a descriptor open that was opened before the
//! savepoint, and does not move it back. The session knows where it stands. Before anything goes to the server that could
//! tell, it puts the descriptor back to where the program believes it to be (`settle`).
//!
//! **Objects of a loop, in REPEATABLE READ.** There `lo_open` reads the transaction's snapshot too, so it does not matter
//! either when an object is opened. The oids come from rows of an earlier result: the flights guess them as they do any
//! value, and a guess is a chain: open, read, close. An object that was read so is opened by the program from memory, and
//! the server has no descriptor for it. Before anything goes to the server that could tell, it is opened there as well.
//! What the program itself writes is sent behind that, so it sees what it would have seen.
//!
//! **Numbers.** A descriptor's number is the lowest that is free, from zero in each transaction. The session tells it in
//! advance only where all that opened or closed descriptors in this transaction were calls that it followed.
//!
//! **What it cannot do.** A descriptor that may write reads what is committed at each read, in REPEATABLE READ as well: what
//! was prefetched may be old when the program asks. pgjdbc's `LargeObjectManager.open(oid)` opens an object that way; with
//! `READ` it does not. Calls by SQL (`SELECT loread(...)`) go to the server.

mod ahead;
mod call;
mod descriptor;
mod policy;
mod request;
mod settle;
mod verify;

use std::collections::BTreeMap;
use std::time::Duration;

use onetrip_ledger::{Moment, TransactionStatus};
use onetrip_wire::Prefetch;
use onetrip_wire::pg::Oid;

use self::ahead::Step;
pub(crate) use self::call::Call;
use self::call::Function;
use self::descriptor::{At, Descriptor};
use self::policy::Policies;
use self::verify::Check;
use super::Rule;
use super::remedy::Cx;
use crate::config::LobPolicy;
use crate::contract::SessionError;
use crate::events::Event;
use crate::facts::Facts;
use crate::reply_queue::Due;
use crate::services::{Own, Said};
use crate::session::core::Core;
use crate::slots::{Slot, Slots};
use crate::statements::Text;

/// Descriptors that are followed.
const OPEN_MAX: usize = 64;
/// How long the server's answer to a call proves that the program may call the function: less than the two seconds within
/// which a REVOKE acts.
const PROVEN_FOR: Duration = Duration::from_secs(1);
/// Reading ahead of which nothing was used, so many times in a row, is tried only now and then.
const IN_VAIN_MAX: u32 = 8;

/// The large objects of one session.
#[derive(Debug, Default)]
pub(crate) struct Lobs {
    /// What the program has open for reading, by descriptor.
    open: BTreeMap<i32, Descriptor>,
    /// The program has no descriptors but these.
    is_sure: bool,
    /// The transaction has read a large object, and so holds the locks of that (rule L3).
    has_read: bool,
    /// When the server last answered a call of each function.
    proven_at: [Option<Moment>; Function::COUNT],
    /// The program's call that is about to go to the server as it came.
    passing: Option<Call>,
    /// The program's call that the server runs, and its unit.
    running: Option<Running>,
    /// What is to be read ahead behind it.
    steps: Vec<Step>,
    /// Calls ahead that the server is to answer.
    ahead: Slots<Step>,
    /// In which mode the objects of an example are opened.
    modes: BTreeMap<u32, i32>,
    /// What the server is to answer to the session's own calls.
    awaited: Slots<Awaited>,
    /// Since when the client waits for what is under way.
    held_at: Option<Moment>,
    /// Bytes that the program reads of an object, as far as the last ones tell.
    usual: usize,
    /// The program asks how long objects are.
    wants_size: bool,
    /// The last object that was read ahead was longer than that.
    is_cut: bool,
    /// Reading ahead of which nothing was used, in a row.
    in_vain: u32,
    /// The numbers of its functions cannot be what they are taken for, or one is forbidden: nothing is read ahead.
    is_off: bool,
    /// What the chain under way has taken so far.
    chain: Chain,
    /// Objects that were answered from memory so far, as far as turns of verifying are counted.
    answered: u32,
    /// How much is read ahead, as far as the program says it.
    policies: Policies,
}

#[derive(Debug)]
struct Running {
    unit: u64,
    call: Call,
    /// Calls that were sent ahead behind it, on the descriptor that it opens.
    steps: usize,
}

/// What the server is to say to a call of the session's own.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Awaited {
    value: Vec<u8>,
    /// The program was told so as well.
    check: Option<Check>,
}

#[derive(Debug, Default)]
struct Chain {
    execution: Duration,
    bytes: usize,
    is_spoilt: bool,
}

impl Lobs {
    /// A transaction begins: no descriptor is open.
    fn transaction_begins(&mut self) {
        self.transaction_over();
        self.is_sure = true;
    }

    /// The transaction is over, and its descriptors with it.
    fn transaction_over(&mut self) {
        self.close_all();
        if !self.is_sure {
            self.proven_at = Default::default(); // it may have had another role
        }
        self.is_sure = false;
        self.has_read = false;
        self.running = None;
        self.steps.clear();
    }

    /// Nothing is read ahead any more.
    fn stop(&mut self) {
        self.is_off = true;
        self.steps.clear();
    }

    /// Something goes to the server that may do anything with descriptors (rule L5).
    fn flush(&mut self) {
        if Rule::Followed.is_kept() {
            self.close_all();
            self.is_sure = false;
            self.proven_at = Default::default();
            self.running = None;
        }
        self.steps.clear();
    }

    /// Something may have opened descriptors that are not followed (rule L6).
    fn doubt_numbers(&mut self) {
        self.is_sure &= !Rule::Followed.is_kept();
        self.steps.clear();
    }

    /// A savepoint is made, released or rolled back to: that closes the descriptors that were opened behind it.
    fn savepoint(&mut self) {
        if !self.open.is_empty() {
            self.flush();
        }
    }

    /// Whether the client waits for what is under way.
    pub(crate) fn holds_client(&self) -> bool {
        self.held_at.is_some()
    }

    /// Whether the program has any descriptor that is followed.
    pub(crate) fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether a descriptor is open on the server that holds the snapshot of its opening: one that only reads.
    pub(crate) fn hold_snapshot(&self) -> bool {
        self.open.values().any(|open| call::only_reads(open.mode) && open.at != At::Nowhere)
    }

    /// Whether the server's descriptors are open, and stand where the program believes.
    pub(crate) fn is_settled(&self) -> bool {
        self.open.values().all(|open| open.under_way == 0 && open.is_in_place())
    }

    /// The server has run a statement, and says so by this tag.
    pub(crate) fn statement_ran(&mut self, unit: u64, statement: Option<u16>, tag: &[u8]) {
        self.policies.ran(unit, statement, tag);
    }

    /// A statement of the client's runs: what it says of the objects that it delivers, and of all that follow.
    pub(crate) fn tells_prefetch(&mut self, core: &Core, unit: u64, statement: Option<u16>, text: &Text) {
        self.policies.runs(core, unit, statement, text);
    }

    /// A row of a result with this layout goes to the program.
    pub(crate) fn see_objects(
        &mut self,
        (core, facts): (&Core, &mut Facts),
        (due, statement): (Due, u16),
        layout: u32,
        body: &[u8],
    ) {
        self.policies.row_goes((core, facts), (due, statement), layout, body);
    }

    /// What holds for this object.
    pub(crate) fn prefetch(&self, facts: &Facts, policy: &LobPolicy, oid: Oid) -> Prefetch {
        self.policies.of(facts, policy, oid)
    }

    fn close_all(&mut self) {
        while let Some((_, open)) = self.open.pop_first() {
            self.learn(&open);
        }
    }

    /// An object was read: the next ones are taken to be read as far.
    fn learn(&mut self, closed: &Descriptor) {
        let less = self.usual.saturating_sub(closed.read) / 4;
        self.usual = closed.read.max(self.usual - less);
    }

    fn prove(&mut self, now: Moment, function: Function) {
        self.proven_at[function as usize] = Some(now);
    }

    /// Whether the program may surely call this function (rule L7).
    fn is_proven(&self, now: Moment, function: Function) -> bool {
        let is_recent = |at: Moment| now.since(at) <= PROVEN_FOR.as_nanos() as u64;
        Rule::Callable.requires(self.proven_at[function as usize].is_some_and(is_recent))
    }

    /// Whether the server is to be asked again for this function before its proof is too old.
    fn needs_proof(&self, now: Moment, function: Function) -> bool {
        let is_old = |at: Moment| 2 * now.since(at) > PROVEN_FOR.as_nanos() as u64;
        self.proven_at[function as usize].is_none_or(is_old)
    }

    /// Whether their size is asked for: it is wanted, and objects are so long that it is not known by reading them.
    fn asks_size(&self, prefetch: Prefetch) -> bool {
        match prefetch {
            Prefetch::Length => true,
            Prefetch::First(size) => self.wants_size && self.usual >= size as usize,
            Prefetch::Locator | Prefetch::Auto => self.wants_size && (self.is_cut || self.usual == 0),
        }
    }

    /// The lowest number that is free, to the program or on the server.
    fn free_number(&self, on_server: bool) -> i32 {
        let is_taken = |fd: &i32| self.open.get(fd).is_some_and(|open| !on_server || open.at != At::Nowhere);
        (0..).find(|fd| !is_taken(fd)).unwrap_or_default()
    }

    fn kept(&self) -> usize {
        self.open.values().map(|open| open.content.bytes.len()).sum()
    }
}

impl super::remedy::Remedy for Lobs {
    #[inline(always)] // see `tell`
    fn on_event(&mut self, _: &mut Cx<'_>, event: &Event<'_>) {
        match *event {
            Event::Opened(parameters) => self.policies.begin(parameters),
            Event::SavepointSent => self.savepoint(),
            Event::TransactionBegun { .. } => self.transaction_begins(),
            Event::LevelChanges { .. }
            | Event::StateChanges { is_sent: true, .. }
            | Event::DescriptorsDoubted => self.flush(),
            // The descriptors that were open then were doubted when it was sent. Those of today stand where they stand, and the
            // server's may be ahead of the program.
            Event::StateChanges { is_sent: false, .. } => self.doubt_numbers(),
            Event::EndSent { .. } | Event::TransactionOver => self.transaction_over(),
            Event::UnitReady { status: TransactionStatus::Idle, .. } => self.policies.transaction_over(),
            Event::UnitReady { status: TransactionStatus::Failed, .. } => self.flush(),
            Event::UnitFailed { .. } => self.policies.failed(),
            Event::Disproved => self.stop(),
            Event::UnitReady { .. }
            | Event::PathMeasured(_)
            | Event::ParameterReported { .. }
            | Event::UnknownReported
            | Event::SetRead(_)
            | Event::Followed
            | Event::StatementSent { .. }
            | Event::ReadSent { .. }
            | Event::PortalLeaves { .. }
            | Event::UnnamedPortalEnds
            | Event::UnnamedPortalMade
            | Event::UnnamedStatementMade { .. }
            | Event::UnnamedStatementGone
            | Event::CameUnasked { .. } => {}
        }
    }

    fn own_reply(&mut self, cx: &mut Cx<'_>, slot: Slot, said: &Said<'_>) -> Result<Own, SessionError> {
        self.take_reply(cx, slot, said)
    }

    fn own_skipped(&mut self, slot: Slot) {
        self.awaited.take(slot);
    }
}
