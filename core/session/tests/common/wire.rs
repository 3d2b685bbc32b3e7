use std::sync::Arc;

use onetrip_ledger::Remedy;
use onetrip_session::{Common, SessionError};

use super::server::Server;
use super::{Pair, query, startup};

/// A program, its session, and a server that answers all that it is sent.
pub(crate) struct Wire {
    pub(crate) pair: Pair,
    pub(crate) server: Server,
}

impl Wire {
    /// A session beside others, with these remedies.
    pub(crate) fn new(
        common: Arc<Common>,
        remedies: impl IntoIterator<Item = Remedy>,
        server: Server,
    ) -> Self {
        let remedies = remedies.into_iter().collect();
        let pair = Pair::remedied_among(common, &startup(), remedies, Some("off"));
        let mut wire = Self { pair, server };
        wire.turn(b"");
        wire
    }

    /// The program has read in a transaction before: what its next ones depend on is known of the session and the tables.
    pub(crate) fn warmed(mut self) -> Self {
        for text in ["BEGIN", "SELECT emp.id FROM emp, salary WHERE emp.id = salary.emp", "COMMIT"] {
            self.turn(&query(text));
        }
        self.server.ran = 0;
        self.server.texts.clear();
        self
    }

    /// The program sends and waits; what it is told.
    pub(crate) fn turn(&mut self, sent: &[u8]) -> Vec<u8> {
        self.tries(sent).expect("good messages")
    }

    /// As [`turn`](Self::turn), where the session may end for it.
    pub(crate) fn tries(&mut self, sent: &[u8]) -> Result<Vec<u8>, SessionError> {
        let mut told = Vec::new();
        let mut sent = self.pair.client(sent)?;
        for _ in 0..8 {
            told.extend(self.pair.server(&self.server.takes(&sent))?);
            sent = self.pair.client(b"")?;
            if sent.is_empty() {
                told.extend(self.pair.server(b"")?);
                return Ok(told);
            }
        }
        panic!("the session asks again and again");
    }

    /// Whether the program is answered before the server has been sent anything.
    pub(crate) fn is_answered(&mut self, sent: &[u8]) -> bool {
        !self.pair.told(sent).is_empty()
    }
}
