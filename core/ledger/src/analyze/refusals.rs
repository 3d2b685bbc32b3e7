//! Sessions that did not come about, by the server's words.

use crate::{Refusal, Summary};

/// Reasons kept, with the sessions that each turned away.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    list: Vec<Refusal>,
}

impl Refusals {
    /// One more session did not come about.
    pub(super) fn add(&mut self, sqlstate: [u8; 5], message: &[u8]) {
        let sqlstate = String::from_utf8_lossy(&sqlstate);
        let message = String::from_utf8_lossy(message);
        let is_same = |known: &&mut Refusal| known.sqlstate == sqlstate && known.message == message;
        if let Some(known) = self.list.iter_mut().find(is_same) {
            known.sessions += 1;
        } else if self.list.len() < Summary::REFUSALS_MAX {
            let (sqlstate, message) = (sqlstate.into_owned(), message.into_owned());
            self.list.push(Refusal { sqlstate, message, sessions: 1 });
        }
    }

    /// The reasons, most frequent first.
    pub(super) fn totals(&self) -> Vec<Refusal> {
        let mut totals = self.list.clone();
        totals.sort_by_key(|refusal| std::cmp::Reverse(refusal.sessions));
        totals
    }
}
