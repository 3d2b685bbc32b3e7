//! What happens in a conversation, for all who have to know: one list, and one loop that delivers it
//! ([`Session::tell`](crate::Session)).

use std::time::Duration;

use onetrip_ledger::{Moment, TransactionStatus};

use crate::reading::Deferral;

/// Something has happened. Each who hears of it has a line for each of these, also for those that it ignores.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event<'a> {
    /// The client has asked to be let in, with these parameters.
    Opened(&'a [(&'a [u8], &'a [u8])]),
    /// The path to the database was measured: its shortest round trip.
    PathMeasured(Duration),
    /// The server reports a parameter.
    ParameterReported { name: &'a [u8], value: &'a [u8] },
    /// The server reports a parameter in bytes that cannot be read.
    UnknownReported,
    /// The text of a SET was read.
    SetRead(&'a [u8]),
    /// A message of the client's goes to the server.
    Followed,
    /// A statement goes to the server, or is prepared there; `leaves_savepoints` as far as its text tells.
    StatementSent { leaves_savepoints: bool, is_prepared: bool },
    /// A statement that may only read goes to the server; whether it is proven, as far as that matters.
    ReadSent { is_proven: bool },
    /// A savepoint is made, released or rolled back to.
    SavepointSent,
    /// The client begins a transaction.
    TransactionBegun { at: Moment, deferral: Deferral },
    /// Another BEGIN is sent inside the transaction, which may change its level: nothing that rests on the level holds.
    LevelChanges { deferral: Deferral },
    /// Something that is not known to only read goes to the server, in this unit.
    StateChanges {
        unit: u64,
        /// It goes now. Otherwise it went a while ago as a read, and is not proven to be one.
        is_sent: bool,
        /// It may change the catalogue.
        may_define: bool,
        /// It surely takes no prepared statement away.
        keeps_prepared: bool,
    },
    /// Something goes to the server that may do anything with descriptors of large objects.
    DescriptorsDoubted,
    /// The end of a transaction goes to the server, in this unit.
    EndSent { unit: u64 },
    /// A unit of the client's was answered by ReadyForQuery.
    UnitReady { unit: u64, status: TransactionStatus },
    /// The client's transaction is over: the server says so, or the client was told so, or the session is over.
    TransactionOver,
    /// An error answers a unit of the client's.
    UnitFailed { unit: u64 },
    /// A unit of the client's closes the portal of this name, or puts another in its place.
    PortalLeaves { name: &'a [u8], unit: u64 },
    /// A simple query ends the unnamed portal, whatever comes of it.
    UnnamedPortalEnds,
    /// The program's unnamed portal is made anew.
    UnnamedPortalMade,
    /// The program's unnamed statement is made anew. `parse` is the body of the message inside a snapshot, and empty elsewhere.
    UnnamedStatementMade { parse: &'a [u8] },
    /// A simple query ends the program's unnamed statement and portal, or has done so.
    UnnamedStatementGone,
    /// The server says something unasked; `is_parameter` where it is a parameter that changed.
    CameUnasked { is_parameter: bool },
    /// An answer from memory was wrong: there are no more of them in this session.
    Disproved,
}
