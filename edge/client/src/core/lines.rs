//! What statements print: notices, and the output that a package keeps for the session until it is asked for.
//!
//! If output is collected, a request for it follows every Sync, with a Sync of its own, in the same write. So the
//! request cannot fail what comes before it. And a failure does not prevent the request.

use std::collections::VecDeque;

use onetrip_wire::Reader;
use postgres_types::{FromSql, Type};

use super::queue::Kind;
use super::{Connection, Request};
use crate::ServerError;

/// Where a session's output is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputSource {
    /// orafce's package `dbms_output`.
    DbmsOutput,
    /// The functions `put_line` and `get_lines` of `onetrip serve`.
    Functions,
}

impl OutputSource {
    /// Takes at most `$1` lines, as an array of texts.
    fn question(self) -> &'static str {
        match self {
            Self::DbmsOutput => "SELECT lines FROM dbms_output.get_lines($1)",
            Self::Functions => "SELECT get_lines($1)",
        }
    }

    /// What has to run once before anything is kept; fails where there is no such source.
    pub fn opening(self) -> &'static str {
        match self {
            // Without a bound of its own: lines that wait here are bounded, and the server's memory is its own.
            Self::DbmsOutput => "SELECT dbms_output.enable(NULL::int)",
            Self::Functions => "SELECT get_lines(0)",
        }
    }
}

/// Lines that wait to be taken.
#[derive(Debug, Default)]
pub(super) struct Lines {
    source: Option<OutputSource>,
    /// Each with how many notices had come before it.
    waiting: VecDeque<(u64, String)>,
}

impl Connection {
    /// Asks for the session's output with every call from now on, or no longer. Its lines wait for
    /// [`take_line`](Self::take_line).
    pub fn collect_output(&mut self, source: Option<OutputSource>) {
        self.lines.source = source;
    }

    /// The oldest line that nobody took: the text of a notice, or of what is collected.
    pub fn take_line(&mut self) -> Option<String> {
        let heard = self.notices_heard - self.notices.len() as u64;
        match self.lines.waiting.front() {
            // What was printed is asked for after the statement's notices have come.
            Some((after, _)) if *after <= heard => self.lines.waiting.pop_front().map(|(_, line)| line),
            _ => self.take_notice().map(|notice| notice.message().to_owned()),
        }
    }

    pub(super) fn book_notice(&mut self, notice: ServerError) {
        self.notices_heard += 1;
        self.notices.push_back(notice);
    }

    /// Asks for what the operation before has printed, as far as there is room for it.
    pub(super) fn put_lines(&mut self, id: u64) {
        let Some(source) = self.lines.source else { return };
        let room = self.limits.lines.saturating_sub(self.lines.waiting.len());
        let room = i32::try_from(room).unwrap_or(i32::MAX);
        let question = source.question();
        // A request that is longer than the limit of the connection is not sent.
        if room > 0 && self.put_operation(id, Kind::Lines, &Request::new(question, &[&room])).is_ok() {
            self.put_sync(id);
        }
    }

    /// Takes the answer.
    pub(super) fn take_lines(&mut self, body: &[u8]) {
        let mut reader = Reader::new(body);
        let value = reader.count().and_then(|_| reader.value());
        let Ok(Some(bytes)) = value else { return };
        let lines: Vec<Option<String>> = FromSql::from_sql(&Type::TEXT_ARRAY, bytes).unwrap_or_default();
        let after = self.notices_heard;
        self.lines.waiting.extend(lines.into_iter().map(|line| (after, line.unwrap_or_default())));
    }

    /// The question failed. A failed transaction answers none, and what was printed stays where it is; anything else is
    /// told as a notice, and nothing more is asked.
    pub(super) fn fail_lines(&mut self, error: ServerError) {
        if error.sqlstate() != "25P02" {
            self.lines.source = None;
            self.book_notice(error);
        }
    }
}
