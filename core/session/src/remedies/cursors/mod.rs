//! The remedy `cursors`: a result that is read in pieces is read ahead.
//!
//! ```text
//!  client            session                                                    server
//!    | Execute 10 --->| Execute 10, Sync --------------------------------------->|   the first piece, by the program
//!    |<---------------|<------------------------------- rows, PortalSuspended, T -|
//!    | Execute 10 --->| SAVEPOINT x; Execute 10, Sync; … ; ROLLBACK TO x; RELEASE |   held until its piece has come
//!    |<- rows, T -----|<------------------------------- rows, PortalSuspended, T -|   kept, and delivered in order
//!    | Execute 10 --->|                                                           |   from memory
//! ```
//!
//! A portal keeps its place when the savepoint is rolled back to, so one shield serves a flight of pieces, and nothing
//! has to follow an error. A cursor of SQL is a portal by name: its pieces are read by Execute as well. The server's
//! portal is then ahead of the program; what the program asks for is cut from memory, the rest is asked for
//! ([`answer`]), and what could tell where the server's portal stands is dealt with before it goes out ([`names`]).

mod answer;
mod buffer;
mod flight;
mod forms;
mod names;
mod replies;
mod request;

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use onetrip_ledger::{Moment, TransactionStatus};
use onetrip_wire::pg::{Column, Oid, RowDescription};
use smallvec::SmallVec;

use crate::config::Overflow;
use crate::contract::SessionError;
use crate::events::Event;
use crate::remedies::remedy::Cx;
use crate::services::{Own, Said};
use crate::slots::{Slot, Slots};
use crate::statements::{ResultFormats, Text};
use buffer::{Buffer, Room};
pub(crate) use flight::Refill;
pub(crate) use names::{CursorQuery, Place, may_run_code};
use replies::Awaited;
pub(crate) use request::{Course, Leave, Request};

/// Bytes that one session keeps in memory; what comes beyond goes to a file.
const KEPT_BYTES_MAX: usize = 1024 * 1024;
/// Statements whose columns are known.
const DESCRIBED_MAX: usize = 4096;
/// Types whose modifier bounds the length of their values: `character(n)` and `character varying(n)`.
const SIZED_TYPES: [Oid; 2] = [1042, 1043];
/// A column of at most so many characters is short.
const SHORT_MAX: i32 = 1024;
/// Results of one session that are followed.
const READERS_MAX: usize = 64;

/// What is read in pieces, and what was read of it ahead.
#[derive(Debug, Default)]
pub(crate) struct Cursors {
    /// By the name of the portal.
    readers: HashMap<Box<[u8]>, Reader, RandomState>,
    /// What becomes of the replies to the messages that are this remedy's.
    awaited: Slots<Awaited>,
    next_serial: u64,
    /// Since when the client waits for a piece that is under way.
    held_at: Option<Moment>,
    /// When something was last sent to the server.
    contact_at: Moment,
    /// The piece that the server sends to the client.
    native: Option<Native>,
    /// The cursor about which the server is to be asked.
    asks_about: Option<Box<[u8]>>,
    /// Types of the columns of prepared statements, by serial: a server runs a statement whose columns have changed no more
    /// (`RevalidateCachedQuery`: "cached plan must not change result type").
    described: HashMap<u64, Columns, RandomState>,
    /// A row that is too long to be looked into is passing: it is kept for this reader.
    long_row: Option<u64>,
    /// A message that is replaced is passed on all the same from where it was cut.
    passes_rest: bool,
    /// Pieces that were sent for before one of a turn had come are of the next one: they cost one round trip together. The
    /// last turn of which a piece has come.
    turn_come: u64,
    /// The last turn for which the client has waited.
    turn_waited_for: u64,
    /// The server has skipped what was to put a cursor back to its place.
    is_lost: bool,
    /// SQL has prepared what may move a cursor, and may run it without its name.
    is_off: bool,
    /// A statement that makes code has been prepared by the protocol, with a name.
    has_prepared_code: bool,
    /// The last unit of the client's that an error has answered.
    failed_unit: Option<u64>,
    /// An answer from memory of which the client has not yet got all.
    delivering: Option<Delivering>,
}

/// An answer from memory that goes to the client bit by bit.
#[derive(Debug, Clone, Copy)]
struct Delivering {
    /// Its reader.
    serial: u64,
    unit: u64,
    statement: Option<u16>,
    /// Rows that went to the client, and that it wants.
    rows: u64,
    wanted: Option<u64>,
    /// It answers FETCH.
    is_cursor: bool,
}

/// A piece that the server sends to the client.
#[derive(Debug, Clone, Copy)]
struct Native {
    unit: u64,
    /// Its reader.
    serial: u64,
    /// Rows that a FETCH asks for.
    wanted: u64,
}

/// A query, and the types that its client fixed for the parameters.
type Query = (Box<[u8]>, SmallVec<[Oid; 8]>);

/// One result that is read in pieces.
#[derive(Debug)]
struct Reader {
    serial: u64,
    kind: Kind,
    text: Text,
    /// `None` where the text is not known.
    query: Option<Query>,
    formats: ResultFormats,
    /// The prepared statement that it runs, zero for a cursor of SQL.
    statement: u64,
    columns: Option<Columns>,
    opened: Opened,
    judged: Judged,
    /// Pieces and rows that the program has got.
    pieces: u64,
    rows: u64,
    /// Pieces that are under way, and rows that they may bring.
    under_way: usize,
    rows_under_way: u64,
    buffer: Buffer,
    /// The longest row, in bytes.
    row_bytes: usize,
    /// A cursor WITH HOLD whose transaction is over: its rows are stored.
    is_stored: bool,
    /// Time between two pieces of a flight; zero as long as none was seen.
    piece_nanos: u64,
    /// The program has seen the end.
    is_over: bool,
    validity: Validity,
    /// The unit that made it, if that succeeds.
    made_by: u64,
    /// The unit that closes it or puts another in its place, if that succeeds.
    leaving: Option<u64>,
    /// A setting changed that what was read ahead may depend on.
    is_stale: bool,
    /// It must not be read ahead.
    is_barred: bool,
}

/// Whether a result is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Validity {
    Sure,
    /// Something was run that may have closed it, when so many pieces were under way: these tell nothing.
    Unsure {
        sent_before: usize,
    },
}

/// What a result's columns are, as far as it matters.
#[derive(Debug, Clone)]
struct Columns {
    types: SmallVec<[Oid; 8]>,
    /// No row is much longer than another.
    are_short: bool,
}

impl Columns {
    fn new(description: &RowDescription<'_>) -> Self {
        let is_short = |column: Column<'_>| {
            let modifier = i32::from(column.type_len < 0) * column.type_modifier;
            column.type_len > 0
                || SIZED_TYPES.contains(&column.type_oid) && (1..SHORT_MAX).contains(&modifier)
        };
        let mut columns = Self { types: SmallVec::new(), are_short: true };
        for column in description.columns() {
            columns.types.push(column.type_oid);
            columns.are_short &= is_short(column);
        }
        columns
    }
}

/// What held when a result was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Opened {
    /// Of the session's state.
    generation: u64,
    /// Of the catalogue.
    epoch: u64,
    /// How often a text was sent that may have made code which finds cursors.
    code: u64,
}

/// Whether each row of a result is the same whenever it is read, and reading it cannot fail (rules R1 and R2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judged {
    /// Something has to be looked up first.
    Open,
    Steady,
    Unsteady,
}

#[derive(Debug)]
enum Kind {
    /// A portal of the protocol, read by Execute.
    Portal,
    /// A cursor of SQL, read by FETCH.
    Cursor {
        /// Its RowDescription, once it was seen.
        header: Vec<u8>,
        /// It outlives its transaction.
        is_held: bool,
        /// The server can put it back to where the program believes it to be.
        can_move: bool,
        /// No statement of the program's depends on where it stands, but FETCH.
        is_apart: bool,
    },
}

impl Reader {
    /// Whether the server's portal is further on than the program knows, or may be.
    fn is_ahead(&self) -> bool {
        self.under_way > 0 || !self.buffer.is_empty()
    }

    /// It may not be there any more.
    fn doubt(&mut self) {
        self.validity = Validity::Unsure { sent_before: self.under_way };
    }

    /// A piece of it has come.
    fn piece_came(&mut self) {
        self.validity = match self.validity {
            Validity::Unsure { sent_before: 0 } | Validity::Sure => Validity::Sure,
            Validity::Unsure { sent_before } => Validity::Unsure { sent_before: sent_before - 1 },
        };
    }

    fn is_unsure(&self) -> bool {
        self.validity != Validity::Sure
    }

    fn is_held(&self) -> bool {
        matches!(self.kind, Kind::Cursor { is_held: true, .. })
    }
}

impl Cursors {
    /// Whether the client waits for a piece that is under way.
    pub(crate) fn holds_client(&self) -> bool {
        self.held_at.is_some()
    }

    /// Whether the client has yet to get the rest of an answer from memory.
    pub(crate) fn is_delivering(&self) -> bool {
        self.delivering.is_some()
    }

    fn by_serial(&mut self, serial: u64) -> Option<&mut Reader> {
        self.readers.values_mut().find(|reader| reader.serial == serial)
    }

    fn add(&mut self, unit: u64, name: &[u8], kind: Kind, text: Text, opened: Opened) -> Option<&mut Reader> {
        if self.readers.len() >= READERS_MAX || self.readers.contains_key(name) {
            return None;
        }
        self.next_serial += 1;
        let reader = Reader {
            serial: self.next_serial,
            kind,
            text,
            query: None,
            formats: ResultFormats::default(),
            statement: 0,
            columns: None,
            opened,
            judged: Judged::Open,
            pieces: 0,
            rows: 0,
            under_way: 0,
            rows_under_way: 0,
            buffer: Buffer::default(),
            row_bytes: 0,
            is_stored: false,
            piece_nanos: 0,
            is_over: false,
            validity: Validity::Sure,
            made_by: unit,
            leaving: None,
            is_stale: false,
            is_barred: false,
        };
        Some(self.readers.entry(name.into()).or_insert(reader))
    }

    /// Whether a result is open on the server that holds its snapshot. That of a cursor WITH HOLD is stored.
    pub(crate) fn hold_snapshot(&self) -> bool {
        self.readers.values().any(|reader| !reader.is_held())
    }

    /// Bytes that are kept in memory for all readers.
    fn kept(&self) -> usize {
        self.readers.values().map(|reader| reader.buffer.bytes_in_memory()).sum()
    }

    /// Where this reader's buffer may put more.
    fn room_of<'a>(&self, serial: u64, overflow: Option<&'a Arc<dyn Overflow>>) -> Room<'a> {
        let others = self.readers.values().filter(|reader| reader.serial != serial);
        let kept: usize = others.map(|reader| reader.buffer.bytes_in_memory()).sum();
        Room { bytes: KEPT_BYTES_MAX.saturating_sub(kept), overflow }
    }

    /// The server describes the result of a prepared statement, or of a portal that runs it.
    pub(crate) fn statement_described(&mut self, serial: u64, body: &[u8]) {
        if serial == 0 {
            return;
        }
        let Ok(description) = RowDescription::decode(body) else {
            self.described.remove(&serial);
            return;
        };
        let types = || description.columns().map(|column| column.type_oid);
        if self.described.get(&serial).is_some_and(|known| known.types.iter().copied().eq(types())) {
            return;
        }
        if self.described.len() >= DESCRIBED_MAX {
            self.described.clear();
        }
        self.described.insert(serial, Columns::new(&description));
    }

    /// The transaction is over, and its portals with it.
    fn transaction_over(&mut self) {
        self.readers.retain(|_, reader| reader.is_held());
        self.readers.values_mut().for_each(|reader| reader.is_stored = true);
    }

    /// A unit of the client's closes this portal, or binds another by its name.
    fn leaves(&mut self, name: &[u8], unit: u64) {
        if let Some(reader) = self.readers.get_mut(name) {
            reader.leaving.get_or_insert(unit);
        }
    }

    /// A unit of the client's closes all that there are.
    pub(crate) fn all_leave(&mut self, unit: u64) {
        for reader in self.readers.values_mut() {
            reader.leaving.get_or_insert(unit);
        }
    }

    /// A simple query ends the unnamed portal, whatever comes of it.
    fn unnamed_ends(&mut self) {
        self.readers.remove(&b""[..]);
    }

    /// An error answers a unit of the client's: what it was to make may be something else that has that name, and what it was
    /// to close or to put in another's place may be there.
    fn unit_failed(&mut self, unit: u64) {
        self.readers.retain(|_, reader| reader.made_by != unit);
        self.failed_unit = Some(unit);
    }

    /// A unit of the client's was answered by ReadyForQuery; `failed` as it says.
    fn unit_ready(&mut self, unit: u64, failed: bool) {
        let is_due = |reader: &Reader| reader.leaving.is_some_and(|at| at <= unit);
        if failed || self.failed_unit == Some(unit) {
            for reader in self.readers.values_mut().filter(|reader| is_due(reader)) {
                reader.leaving = None;
                reader.doubt();
            }
        } else {
            self.readers.retain(|_, reader| !is_due(reader));
        }
    }

    /// The program may move cursors of these names: from then on it is not known where they stand, and they could not be put
    /// back there (rule R3).
    fn loses_place(&mut self, is_named: impl Fn(&[u8]) -> bool) {
        for (_, reader) in self.readers.iter_mut().filter(|(name, _)| is_named(name)) {
            reader.is_barred = true;
        }
    }

    /// A setting that the server reports has another value now (rule R2).
    fn setting_changed(&mut self, name: &[u8]) {
        if name == b"client_encoding" {
            for reader in self.readers.values_mut().filter(|reader| reader.is_ahead()) {
                reader.is_stale = true;
            }
        }
    }

    /// Something goes to the server that may close portals, as far as is known.
    pub(crate) fn doubt(&mut self) {
        self.readers.values_mut().for_each(Reader::doubt);
    }
}

impl crate::remedies::remedy::Remedy for Cursors {
    #[inline(always)] // see `tell`
    fn on_event(&mut self, cx: &mut Cx<'_>, event: &Event<'_>) {
        match *event {
            Event::ParameterReported { name, .. } => self.setting_changed(name),
            Event::PortalLeaves { name, unit } => self.leaves(name, unit),
            Event::UnnamedPortalEnds => self.unnamed_ends(),
            Event::UnitFailed { unit } => {
                if !cx.config.remedies.is_none() {
                    self.unit_failed(unit);
                }
            }
            Event::UnitReady { unit, status } => self.unit_ready(unit, status == TransactionStatus::Failed),
            Event::TransactionOver => self.transaction_over(),
            Event::Opened(_)
            | Event::PathMeasured(_)
            | Event::UnknownReported
            | Event::SetRead(_)
            | Event::Followed
            | Event::StatementSent { .. }
            | Event::ReadSent { .. }
            | Event::SavepointSent
            | Event::TransactionBegun { .. }
            | Event::LevelChanges { .. }
            | Event::StateChanges { .. }
            | Event::DescriptorsDoubted
            | Event::EndSent { .. }
            | Event::UnnamedPortalMade
            | Event::UnnamedStatementMade { .. }
            | Event::UnnamedStatementGone
            | Event::CameUnasked { .. }
            | Event::Disproved => {}
        }
    }

    fn own_reply(&mut self, cx: &mut Cx<'_>, slot: Slot, said: &Said<'_>) -> Result<Own, SessionError> {
        self.take_reply(cx, slot, said)
    }

    fn own_skipped(&mut self, slot: Slot) {
        self.skipped(slot);
    }
}
