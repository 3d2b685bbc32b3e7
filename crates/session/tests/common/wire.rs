use std::sync::Arc;

use onetrip_ledger::Remedy;
use onetrip_session::Common;

use super::server::Server;
use super::{Pair, startup};

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

    /// The program sends and waits; what it is told.
    pub(crate) fn turn(&mut self, sent: &[u8]) -> Vec<u8> {
        let mut told = self.pair.told(sent);
        for _ in 0..8 {
            let sent = self.pair.client(b"").expect("good messages");
            if sent.is_empty() {
                return told;
            }
            let said = self.server.takes(&sent);
            told.extend(self.pair.server(&said).expect("good messages"));
        }
        panic!("the session asks again and again");
    }

    /// Whether the program is answered before the server has been sent anything.
    pub(crate) fn is_answered(&mut self, sent: &[u8]) -> bool {
        !self.pair.told(sent).is_empty()
    }
}
