//! A unit that waits for its answer, and what the answer's next payload has to be.

use super::event::{Reply, ReplyKind};
use crate::mysql::{Execute, Status, command};

/// What the next payload of an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expect {
    /// Of a login; `asked` if it is the client's turn.
    Login { asked: bool },
    /// OK, EOF or ERR.
    Single,
    /// A text.
    Text,
    /// Definitions of columns up to an end.
    FieldList,
    /// A result's first one.
    Result(Form),
    /// The client's: a file.
    File { form: Form, has_begun: bool },
    /// A definition of a column; so many are left.
    Definitions { form: Form, left: u64 },
    /// The EOF behind them.
    DefinitionsEnd(Form),
    /// A row, or their end.
    Rows(Form),
    /// PREPARE_OK.
    Prepare,
    /// Definitions behind it, of which so many are left, each sort with an end of its own if `ends`.
    Prepared { parameters: u16, columns: u16, is_end_due: bool },
    /// Payloads of replication.
    Stream,
}

/// The form of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) is_binary: bool,
    /// A cursor was asked for.
    pub(super) may_be_cursor: bool,
    /// It is the values of OUT parameters. The OK of the call follows, whatever its end says: MySQL leaves `MORE_RESULTS_EXIST` out of an EOF
    /// packet there.
    pub(super) is_out: bool,
}

#[derive(Debug)]
pub(super) struct Awaited {
    pub(super) expect: Expect,
    /// Number of the exchange's next packet.
    pub(super) sequence: u8,
    pub(super) reply: Reply,
}

impl Awaited {
    pub(super) fn new(unit: u64, code: u8, trip: u64, expect: Expect, sequence: u8) -> Self {
        let reply = Reply {
            unit,
            code,
            trip,
            kind: ReplyKind::Done,
            results: 0,
            rows: 0,
            affected_rows: 0,
            bytes: 0,
            status: None,
            opened_cursor: false,
        };
        Self { expect, sequence, reply }
    }

    /// A result has ended. What comes next, if anything does.
    pub(super) fn end_result(&mut self, status: Status, form: Form) -> Option<Expect> {
        self.reply.results += 1;
        self.reply.status = Some(status);
        let goes_on = form.is_out || status.has(Status::MORE_RESULTS_EXIST);
        goes_on.then_some(Expect::Result(Form { is_out: false, ..form }))
    }
}

/// What answers a command; `None` if nothing does.
pub(super) fn answer_to(code: u8, payload: &[u8]) -> Option<Expect> {
    let text = Form { is_binary: false, may_be_cursor: false, is_out: false };
    let binary = Form { is_binary: true, ..text };
    Some(match code {
        command::QUIT | command::STMT_CLOSE | command::STMT_SEND_LONG_DATA => return None,
        command::QUERY | command::PROCESS_INFO => Expect::Result(text),
        command::STMT_EXECUTE => {
            let may_be_cursor = Execute::peek(payload).is_ok_and(|(_, flags)| flags & Execute::CURSOR != 0);
            Expect::Result(Form { may_be_cursor, ..binary })
        }
        command::STMT_BULK_EXECUTE => Expect::Result(binary),
        command::STMT_FETCH => Expect::Rows(binary),
        command::FIELD_LIST => Expect::FieldList,
        command::STMT_PREPARE => Expect::Prepare,
        command::STATISTICS => Expect::Text,
        command::CHANGE_USER => Expect::Login { asked: false },
        command::BINLOG_DUMP
        | command::BINLOG_DUMP_GTID
        | command::TABLE_DUMP
        | command::CLONE
        | command::SUBSCRIBE_GROUP_REPLICATION_STREAM => Expect::Stream,
        _ => Expect::Single,
    })
}
