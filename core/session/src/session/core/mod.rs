//! One conversation without its remedies: what was sent and is owed, what has a name, what is recorded, and what is to leave.
//!
//! It knows no remedy. Its fields are for the session alone ([`super`]), which books messages; remedies ask and act by its
//! methods.

use std::io::Write;
use std::sync::Arc;

use onetrip_ledger::{
    Exchange, Moment, Remedy, Statement, StreamEncoder, TransactionStatus, UnitKind, ValueHasher,
};
use onetrip_sql::{Lifted, Lifter};
use onetrip_wire::pg::{ErrorFields, Oid, Severity, encode_error};

use crate::canonical::Values;
use crate::contract::BackendKey;
use crate::lazy::Lazy;
use crate::names::{Layout, Names};
use crate::parameters::Parameters;
use crate::reply_queue::{Due, ReplyQueue, Taker};
use crate::scopes::Scopes;
use crate::statements::{Learned, Lessons, Named, Portal, Prepared, ResultFormats};
use crate::texts::Texts;
use crate::units::Units;

/// Longest text of the server that is kept of a refused session, in bytes.
const REFUSAL_BYTES_MAX: usize = 1024;

/// One conversation.
#[derive(Debug)]
pub(crate) struct Core {
    pub(super) phase: Phase,
    pub(super) queue: ReplyQueue,
    pub(super) units: Units,
    pub(super) names: Names,
    pub(super) scopes: Scopes,
    pub(super) values: Values,
    pub(super) lifter: Lazy<Lifter>,
    pub(super) scratch: Vec<u8>,
    pub(super) parameters: Parameters,
    /// Messages that an error made the server skip; empty between calls.
    pub(super) skipped: Vec<Due>,
    pub(super) prepared: Named<Prepared>,
    pub(super) portals: Named<Portal>,
    /// The serial of the last statement that was prepared.
    pub(super) last_serial: u64,
    /// By template.
    pub(super) learned: Lessons,
    pub(super) capture: Capture,
    pub(super) stream: StreamEncoder,
    pub(super) status: TransactionStatus,
    /// What the server's last ReadyForQuery said, whoever it was for.
    pub(super) server_status: u8,
    /// Who takes the replies to what is being booked.
    pub(super) taker: Taker,
    /// The client has sent messages of an extended group, and not the Sync that ends it: a Sync of the session's own would
    /// end it for the server. A Query does not end it as long as an error may have the server skip that, too.
    pub(super) in_group: bool,
    /// Nothing of the client's was under way when the unit that it sends began.
    pub(super) begins_unit_alone: bool,
    /// The server has said that it ends the session.
    pub(super) is_ending: bool,
    pub(super) named_seen: bool,
    pub(super) to_client: Vec<u8>,
    /// The client has yet to take what was sent to it.
    pub(super) client_is_behind: bool,
    pub(super) to_server: Vec<u8>,
    /// Bytes of the message that is passing by, still to come from the client and from the server.
    pub(super) client_passing: usize,
    pub(super) server_passing: usize,
    /// What passes by from the server is dropped: it is the session's own.
    pub(super) server_dropping: bool,
    pub(super) backend_key: Option<BackendKey>,
    /// Requests for encryption that were answered.
    pub(super) answered: Answered,
    pub(super) client_tls: ClientTls,
    /// Passwords and like proofs that the server has asked for and the client has not sent; below zero when they were
    /// sent ahead. While one is due, the server takes any message for it.
    pub(super) proofs_due: i32,
    pub(super) unasked_replies: u64,
    pub(super) undecoded: u64,
    pub(super) last_reply_unit: u64,
    /// When the client said that it ends, or was gone.
    pub(super) client_left_at: Option<Moment>,
    /// Both sides speak for themselves, the start-up included.
    pub(super) is_observed: bool,
    /// After the start-up, nothing is answered or changed: what is said is booked, and no remedy hears of it.
    pub(super) is_passive: bool,
    /// The message that is being booked ends before its length: the rest was not captured.
    pub(super) is_cut: bool,
    /// Bytes of replies were missed since the books last were whole.
    pub(super) lost_results: bool,
}

/// TLS with the client, which is the gateway's business but for its beginning and what it means for authentication.
#[derive(Debug, Default)]
pub(super) struct ClientTls {
    /// A request for it is granted.
    pub(super) is_offered: bool,
    /// A request was granted.
    pub(super) begins: bool,
    /// The client sees the database's own certificate, so that what is bound to it holds there, too.
    pub(super) has_same_certificate: bool,
    /// Mechanisms with channel binding were taken from the server's list.
    pub(super) is_stripped: bool,
}

/// Which requests for encryption were answered: each may be made once.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Answered {
    pub(super) ssl: bool,
    pub(super) gssapi: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The client has not sent its startup packet.
    Opening,
    /// The server decides whether to let the client in.
    Entering,
    /// Queries.
    Serving,
}

/// Which result's rows are being kept, and how.
#[derive(Debug, Default)]
pub(super) struct Capture {
    pub(super) unit: u64,
    pub(super) statement: u16,
    pub(super) layout: u32,
    pub(super) active: bool,
}

impl Core {
    pub(crate) fn new(hasher: ValueHasher, texts: Arc<Texts>) -> Self {
        Self {
            values: Values::new(hasher),
            phase: Phase::Opening,
            queue: ReplyQueue::default(),
            units: Units::default(),
            names: Names::new(texts),
            scopes: Scopes::default(),
            lifter: Lazy::default(),
            scratch: Vec::new(),
            parameters: Parameters::default(),
            skipped: Vec::new(),
            prepared: Named::default(),
            portals: Named::default(),
            last_serial: 0,
            learned: Lessons::default(),
            capture: Capture::default(),
            stream: StreamEncoder::default(),
            status: TransactionStatus::Idle,
            server_status: b'I',
            taker: Taker::Client,
            in_group: false,
            begins_unit_alone: false,
            is_ending: false,
            named_seen: false,
            to_client: Vec::new(),
            client_is_behind: false,
            to_server: Vec::new(),
            client_passing: 0,
            server_passing: 0,
            server_dropping: false,
            backend_key: None,
            answered: Answered::default(),
            client_tls: ClientTls::default(),
            proofs_due: 0,
            unasked_replies: 0,
            undecoded: 0,
            last_reply_unit: 0,
            client_left_at: None,
            is_observed: false,
            is_passive: false,
            is_cut: false,
            lost_results: false,
        }
    }

    /// Tells the client that the session ends, in the words of PostgreSQL.
    pub(crate) fn refuse(&mut self, sqlstate: &str, message: &str, hint: Option<&str>) {
        if self.phase == Phase::Entering {
            self.refused(sqlstate.as_bytes().try_into().unwrap_or(*b"?????"), message.as_bytes());
        }
        encode_error(&mut self.to_client, ErrorFields { severity: Severity::Fatal, sqlstate, message, hint });
    }

    /// Notes in whose words the session did not come about.
    pub(super) fn refused(&mut self, sqlstate: [u8; 5], message: &[u8]) {
        self.stream.refused(sqlstate, &message[..message.len().min(REFUSAL_BYTES_MAX)]);
    }

    /// What the server still owes.
    pub(crate) fn queue(&self) -> &ReplyQueue {
        &self.queue
    }

    /// What was sent and is not answered in full.
    pub(crate) fn units(&self) -> &Units {
        &self.units
    }

    /// The client's transaction, as the client knows it.
    pub(crate) fn status(&self) -> TransactionStatus {
        self.status
    }

    /// What the server's last ReadyForQuery said, whoever it was for.
    pub(crate) fn server_status(&self) -> u8 {
        self.server_status
    }

    /// Who takes the replies to what is being booked.
    pub(crate) fn taker(&self) -> Taker {
        self.taker
    }

    /// Whether the client has sent messages of an extended group, and not the Sync that ends it.
    pub(crate) fn is_in_group(&self) -> bool {
        self.in_group
    }

    /// Whether nothing of the client's was under way when the unit that it sends began.
    pub(crate) fn has_begun_unit_alone(&self) -> bool {
        self.begins_unit_alone
    }

    /// Whether a Sync of the session's own may go to the server now: it would end a group of the client's.
    #[inline]
    pub(crate) fn may_send_own(&self) -> bool {
        self.client_passing == 0 && !self.units.is_open() && !self.in_group
    }

    /// Whether the server has said that it ends the session, or nobody will hear of it any more.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// Whether the client has yet to take what was sent to it.
    pub(crate) fn is_client_behind(&self) -> bool {
        self.client_is_behind
    }

    /// Whether a message of the server's is half on its way.
    pub(crate) fn is_server_passing(&self) -> bool {
        self.server_passing > 0
    }

    /// What the backend calls itself, once it has said so.
    pub(crate) fn backend_key(&self) -> Option<&BackendKey> {
        self.backend_key.as_ref()
    }

    /// The prepared statement of this name.
    pub(crate) fn prepared(&self, name: &[u8]) -> Option<&Prepared> {
        self.prepared.get(name)
    }

    /// A prepared statement that is so.
    pub(crate) fn find_prepared(&self, is_so: impl Fn(&Prepared) -> bool) -> Option<&Prepared> {
        self.prepared.find(is_so)
    }

    /// Whether any prepared statement that has a name is so.
    pub(crate) fn has_prepared(&self, is_so: impl Fn(&[u8], &Prepared) -> bool) -> bool {
        self.prepared.names_any(is_so)
    }

    /// Whether one more name will be followed.
    pub(crate) fn has_room_for_names(&self) -> bool {
        self.prepared.has_room()
    }

    /// The portal of this name.
    pub(crate) fn portal(&self, name: &[u8]) -> Option<&Portal> {
        self.portals.get(name)
    }

    /// What the server has told about statements of this template.
    pub(crate) fn learned(&self, template: u32) -> Option<&Learned> {
        self.learned.get(template as usize)
    }

    /// The layout with this id.
    pub(crate) fn layout(&self, id: u32) -> Option<&Layout> {
        self.names.layout_of(id)
    }

    /// How the result of a live unit's statement is written.
    pub(crate) fn formats(&self, unit: u64, statement: u16) -> Option<&ResultFormats> {
        self.units.formats(unit, statement)
    }

    /// Where bytes of the session's own for the server go.
    pub(crate) fn server_outbox(&mut self) -> &mut Vec<u8> {
        &mut self.to_server
    }

    /// Where bytes of the session's own for the client go.
    pub(crate) fn client_outbox(&mut self) -> &mut Vec<u8> {
        &mut self.to_client
    }

    /// The records.
    pub(crate) fn stream(&mut self) -> &mut StreamEncoder {
        &mut self.stream
    }

    /// Takes a statement's text apart.
    pub(crate) fn lift<'t>(&'t mut self, text: &'t [u8], has_standard_strings: bool) -> Lifted<'t> {
        self.lifter.lift(text, has_standard_strings)
    }

    /// The template of a call of this function with so many arguments.
    pub(crate) fn template_of_call(&mut self, function: u32, arguments: usize) -> u32 {
        self.scratch.clear();
        put_call(function, arguments, &mut self.scratch);
        self.names.template(&self.scratch, &mut self.stream)
    }

    /// From now on, this one takes the replies to what is booked.
    pub(crate) fn set_taker(&mut self, taker: impl Into<Taker>) {
        self.taker = taker.into();
    }

    /// The client is told this of its transaction.
    pub(crate) fn set_status(&mut self, status: TransactionStatus) {
        self.status = status;
    }

    /// The server ends the session.
    pub(crate) fn ends(&mut self) {
        self.is_ending = true;
    }

    /// Something came that cannot be decoded.
    pub(crate) fn count_undecoded(&mut self) {
        self.undecoded += 1;
    }

    /// A message goes to the server whose reply is for this taker.
    pub(crate) fn owe_own(&mut self, due: Due) {
        self.queue.sent(due);
    }

    /// What the server owes this unit is another taker's from now on; how many messages that is.
    pub(crate) fn hand_over(&mut self, unit: u64, taker: impl Into<Taker>) -> usize {
        self.queue.hand_over(unit, taker.into())
    }

    /// The unit that the client is sending; a new one if it has ended the last.
    pub(crate) fn open_unit(&mut self, now: Moment, kind: UnitKind) -> u64 {
        self.units.open(now, kind)
    }

    /// No further message belongs to the unit under way.
    pub(crate) fn close_unit(&mut self) {
        self.units.close(None);
    }

    /// A message of the unit owes a reply.
    pub(crate) fn owes(&mut self, unit: u64) {
        self.units.owes(unit);
    }

    /// A message of the unit was answered, or never will be.
    pub(crate) fn settled(&mut self, unit: u64) {
        self.units.settled(unit);
    }

    /// A remedy answers the unit: it starts no trip.
    pub(crate) fn answered_by(&mut self, unit: u64, remedy: Remedy) {
        self.units.answered_by(unit, remedy);
    }

    /// Bytes of the last unit came from the client.
    pub(crate) fn bytes_sent(&mut self, bytes: usize) {
        self.units.bytes_sent(bytes);
    }

    /// Bytes of the unit's reply came from the server, or from memory.
    pub(crate) fn bytes_received(&mut self, unit: u64, bytes: usize, now: Moment) {
        self.units.bytes_received(unit, bytes, now);
    }

    /// The template of the statement that a message is about.
    pub(crate) fn template_of(&mut self, due: Due) -> Option<usize> {
        let template = self.statement_mut(due.unit, due.statement?)?.template as usize;
        (template != 0).then_some(template)
    }

    /// A statement of a live unit.
    pub(crate) fn statement_mut(&mut self, unit: u64, slot: u16) -> Option<&mut Statement> {
        self.units.exchange_mut(unit)?.statements.get_mut(usize::from(slot))
    }

    /// The exchange of a live unit.
    pub(crate) fn exchange_mut(&mut self, unit: u64) -> Option<&mut Exchange> {
        self.units.exchange_mut(unit)
    }

    /// The prepared statement of this name, to be changed.
    pub(crate) fn prepared_mut(&mut self, name: &[u8]) -> Option<&mut Prepared> {
        self.prepared.get_mut(name)
    }

    /// Looks at each prepared statement.
    pub(crate) fn each_prepared(&mut self, see: impl FnMut(&mut Prepared)) {
        self.prepared.for_each(see);
    }

    /// Keeps the prepared statements that are so.
    pub(crate) fn retain_prepared(&mut self, is_so: impl Fn(&Prepared) -> bool) {
        self.prepared.retain(is_so);
    }

    /// The prepared statement of this name is not followed any more.
    pub(crate) fn forget_prepared(&mut self, name: &[u8]) {
        self.prepared.remove(name);
    }

    /// Portals end with their transaction.
    pub(crate) fn clear_portals(&mut self) {
        self.portals.clear();
    }
}

/// Writes a call as SQL would. The large-object functions have fixed ids (`pg_proc.dat` of PostgreSQL).
fn put_call(function: Oid, arguments: usize, out: &mut Vec<u8>) {
    let name = match function {
        715 => "lo_create",
        764 => "lo_import",
        765 => "lo_export",
        952 => "lo_open",
        953 => "lo_close",
        954 => "loread",
        955 => "lowrite",
        956 => "lo_lseek",
        957 => "lo_creat",
        958 => "lo_tell",
        964 => "lo_unlink",
        1004 => "lo_truncate",
        3170 => "lo_lseek64",
        3171 => "lo_tell64",
        3172 => "lo_truncate64",
        _ => "",
    };
    // Writing to memory does not fail.
    let _ = if name.is_empty() { write!(out, "function {function}(") } else { write!(out, "{name}(") };
    for number in 1..=arguments {
        let _ = write!(out, "{}${number}", if number == 1 { "" } else { ", " });
    }
    out.push(b')');
}
