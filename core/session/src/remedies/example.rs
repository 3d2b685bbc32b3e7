//! The worked example of CONTRIBUTING: a remedy in one file, which answers `SELECT 'onetrip'`. It is in the list of test
//! builds alone.
//!
//! What a remedy has to decide is all here: what it keeps, which texts it knows, what the client is told, and what it makes
//! of each event. It sends nothing, so that it has no replies to take.

use onetrip_ledger::Remedy;
use onetrip_wire::pg::{
    CommandComplete, HEADER_BYTES, TransactionStatus as WireStatus, backend, encode_ready_for_query, frame,
    frontend,
};

use super::remedy::{Answer, Asked, Change, Cx, Need, Texts, Told};
use crate::contract::SessionError;
use crate::events::Event;
use crate::services::{Own, Said};
use crate::slots::Slot;

/// What it answers.
const TEXT: &[u8] = b"SELECT 'onetrip'\0";
/// One column of text, named as PostgreSQL names it.
const DESCRIPTION: &[u8] = b"\0\x01?column?\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";
const ROW: &[u8] = b"\0\x01\0\0\0\x07onetrip";

/// How often it has answered in this transaction.
#[derive(Debug, Default)]
pub(crate) struct Example {
    pub(crate) answers: u32,
}

impl super::remedy::Remedy for Example {
    #[inline(always)] // see `tell`
    fn on_event(&mut self, _: &mut Cx<'_>, event: &Event<'_>) {
        match event {
            Event::TransactionOver => self.answers = 0,
            Event::Opened(_)
            | Event::PathMeasured(_)
            | Event::ParameterReported { .. }
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
            | Event::UnitReady { .. }
            | Event::UnitFailed { .. }
            | Event::PortalLeaves { .. }
            | Event::UnnamedPortalEnds
            | Event::UnnamedPortalMade
            | Event::UnnamedStatementMade { .. }
            | Event::UnnamedStatementGone
            | Event::CameUnasked { .. }
            | Event::Disproved => {}
        }
    }

    /// It sends nothing.
    fn own_reply(&mut self, _: &mut Cx<'_>, _: Slot, _: &Said<'_>) -> Result<Own, SessionError> {
        Ok(Own::Dropped)
    }

    fn own_skipped(&mut self, _: Slot) {}
}

impl Texts for Example {
    fn claims(&mut self, _: &mut Cx<'_>, asked: &Asked<'_>) -> Option<Need> {
        let is_it = asked.header.tag == frontend::QUERY && asked.input.get(HEADER_BYTES..) == Some(TEXT);
        (is_it && asked.is_quiet).then_some(Need::Nothing)
    }

    fn answer(&mut self, cx: &mut Cx<'_>, _: &Asked<'_>) -> Answer {
        self.answers += 1;
        let status = match cx.core.status() {
            onetrip_ledger::TransactionStatus::Idle => WireStatus::Idle,
            onetrip_ledger::TransactionStatus::Active => WireStatus::Active,
            onetrip_ledger::TransactionStatus::Failed => return Answer::NotKnown, // an error, there
        };
        let out = cx.core.client_outbox();
        let reply_at = out.len();
        frame(out, backend::ROW_DESCRIPTION, |out| out.extend_from_slice(DESCRIPTION));
        frame(out, backend::DATA_ROW, |out| out.extend_from_slice(ROW));
        CommandComplete { tag: b"SELECT 1" }.encode(out);
        encode_ready_for_query(out, status);
        let reply = out.len() - reply_at;
        // The books know the remedies of the ledger; this one has no name of its own there.
        Answer::Told(Told { by: Remedy::Repeats, reply, taker: None, change: Change::None })
    }
}

#[cfg(test)]
mod tests {
    use onetrip_ledger::{Moment, Remedy, ValueHasher};
    use onetrip_wire::pg::{PROTOCOL_3_0, encode_startup};

    use crate::config::SessionConfig;
    use crate::contract::{Opening, Verdict};
    use crate::session::Session;

    /// A session whose client has been let in.
    fn serving() -> Session {
        let mut session = Session::new(SessionConfig {
            hasher: ValueHasher::new(),
            cancel_key: *b"mine",
            keep_values: false,
            remedies: [Remedy::Chatter].into_iter().collect(), // where all are off, none is asked
            verify: None,
            lobs: Default::default(),
            isolation: None,
            question_burst: Default::default(),
            common: Default::default(),
            texts: Default::default(),
            private: [0; 8],
            overflow: None,
        });
        let mut startup = Vec::new();
        encode_startup(&mut startup, PROTOCOL_3_0, [(&b"user"[..], &b"ann"[..])]);
        assert_eq!(session.handle_opening(Moment(0), &startup), Ok(Opening::Connect(startup.len())));
        let welcome = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
        assert_eq!(session.handle_server(Moment(1), welcome), Ok(Verdict::Forward(9)));
        assert_eq!(session.handle_server(Moment(1), &welcome[9..]), Ok(Verdict::Forward(6)));
        session.to_server().clear();
        session
    }

    fn query(text: &str) -> Vec<u8> {
        let length = (text.len() as u32 + 5).to_be_bytes();
        [b"Q", &length[..], text.as_bytes(), b"\0"].concat()
    }

    #[test]
    fn a_remedy_is_one_file_and_its_lines_in_the_list() {
        let mut session = serving();
        let known = query("SELECT 'onetrip'");
        assert_eq!(session.handle_client(Moment(2), &known), Ok(Verdict::Replace(known.len())));
        assert!(
            session.to_client().windows(7).any(|text| text == b"onetrip") && session.to_server().is_empty()
        );
        assert_eq!(session.example.answers, 1);
        let other = query("SELECT 'two trips'");
        assert_eq!(session.handle_client(Moment(3), &other), Ok(Verdict::Forward(other.len())));
        // While that is under way it is asked of the server, behind it.
        assert_eq!(session.handle_client(Moment(4), &known), Ok(Verdict::Forward(known.len())));
        for _ in 0..2 {
            assert_eq!(session.handle_server(Moment(5), b"Z\0\0\0\x05I"), Ok(Verdict::Forward(6)));
        }
        assert_eq!(session.example.answers, 0, "it has heard that a transaction is over");
    }
}
