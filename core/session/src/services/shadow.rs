//! Answers from memory that the server is asked for as well, and that have to be the same.

use onetrip_wire::pg::{HEADER_BYTES, backend, frame, frontend};

use super::{Arrived, Said};
use crate::config::{SessionConfig, Verify};
use crate::contract::SessionError;
use crate::reply_queue::{Due, Expect, Service, Taker};
use crate::session::core::Core;
use crate::slots::{Slot, Slots};

/// Answers under way to be verified; with more, the next ones are not.
const CHECKS_MAX: usize = 64;
/// Bytes of the server's answer that are kept beyond those that were expected, for the record.
const EXCESS_MAX: usize = 1024;

/// `--verify`: what one session verifies.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    /// An answer was wrong, and not all have heard of it.
    has_news: bool,
    /// Answers from memory so far.
    answers: u32,
    checks: Slots<Check>,
    verified: u64,
    differed: u64,
    /// An answer of the object that is being verified was wrong.
    object_differs: bool,
    spare: Vec<Check>,
}

/// One answer that is also asked for.
#[derive(Debug, Default)]
struct Check {
    template: u32,
    asked: Vec<u8>,
    expected: Vec<u8>,
    got: Vec<u8>,
    is_cut: bool,
}

impl Shadow {
    /// Whether an answer was wrong: from then on the session gets none from memory.
    pub(crate) fn has_failed(&self) -> bool {
        self.differed > 0
    }

    /// Whether the next answer is one that is verified.
    fn is_due(&mut self, verify: Option<Verify>) -> bool {
        verify.is_some_and(|verify| verify.is_turn(&mut self.answers)) && self.checks.len() < CHECKS_MAX
    }

    /// Runs a unit for real, the answer to which was put at `reply_at`, if it is this one's turn.
    pub(crate) fn verify(
        &mut self,
        core: &mut Core,
        config: &SessionConfig,
        unit: Arrived<'_>,
        template: u32,
        reply_at: usize,
    ) -> bool {
        if !self.is_due(config.verify) {
            return false;
        }
        let mut check = self.spare.pop().unwrap_or_default();
        check.template = template;
        check.expected.extend_from_slice(core.client_outbox().get(reply_at..).unwrap_or_default());
        for (tag, body) in unit.messages() {
            frame(&mut check.asked, tag, |out| out.extend_from_slice(body));
        }
        core.server_outbox().extend_from_slice(&check.asked);
        let taker = Taker::Service(Service::Shadow, self.checks.put(check));
        for (tag, _) in unit.messages() {
            let expect = match tag {
                frontend::QUERY => Expect::Query,
                frontend::PARSE => Expect::Parse,
                frontend::BIND => Expect::Bind,
                frontend::DESCRIBE => Expect::DescribePortal,
                frontend::EXECUTE => Expect::Execute,
                _ => Expect::Sync,
            };
            core.owe_own(Due::own(taker, expect));
        }
        true
    }

    /// The server answers what was answered from memory.
    ///
    /// # Errors
    ///
    /// It fails at it.
    pub(crate) fn check_reply(
        &mut self,
        core: &mut Core,
        config: &SessionConfig,
        slot: Slot,
        said: &Said<'_>,
    ) -> Result<(), SessionError> {
        if let Some(check) = self.checks.get_mut(slot) {
            let has_room = check.got.len() + said.message.len() <= check.expected.len() + EXCESS_MAX;
            check.is_cut |= !said.is_whole || !has_room;
            if !check.is_cut {
                check.got.extend_from_slice(said.message);
            }
        }
        if said.tag == backend::READY_FOR_QUERY {
            self.check_ends(core, config, slot, &said.message[HEADER_BYTES..])?;
        }
        Ok(())
    }

    fn check_ends(
        &mut self,
        core: &mut Core,
        config: &SessionConfig,
        slot: Slot,
        status: &[u8],
    ) -> Result<(), SessionError> {
        let Some(mut check) = self.checks.take(slot) else { return Ok(()) };
        self.verified += 1;
        if check.is_cut || check.got != check.expected {
            self.differed += 1;
            self.tell_difference(core, config, check.template, [&check.asked, &check.expected, &check.got]);
        }
        if status != b"T" {
            let message = "onetrip answered from memory, and the server fails at the same statement";
            let hint =
                "The transaction is over. Connect again; leave the remedy out by --remedies exact,-loops.";
            core.refuse("08006", message, Some(hint));
            return Err(SessionError::VerifyFailed);
        }
        check.asked.clear();
        check.expected.clear();
        check.got.clear();
        self.spare.push(check);
        Ok(())
    }

    /// An answer was wrong: the trace says which one, and there are no more of them in this session. `texts` are what was
    /// asked, what was answered, and what the server answers.
    pub(crate) fn tell_difference(
        &mut self,
        core: &mut Core,
        config: &SessionConfig,
        template: u32,
        texts: [&[u8]; 3],
    ) {
        self.has_news = true;
        let [_, told, got] = texts;
        let equal = told.iter().zip(got).take_while(|(told, got)| told == got).count();
        let texts = if config.keep_values { texts } else { [b"".as_slice(); 3] };
        core.stream().differed(template, equal as u64, texts);
    }

    /// An answer of the object that is being verified was wrong. Returns whether it is the first.
    pub(crate) fn object_differs(&mut self) -> bool {
        !std::mem::replace(&mut self.object_differs, true)
    }

    /// A large object was read for real as well.
    pub(crate) fn object_verified(&mut self) {
        self.verified += 1;
        self.differed += u64::from(std::mem::take(&mut self.object_differs));
    }

    /// Whether an answer was wrong, and not all have been told.
    pub(crate) fn takes_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// Whether an answer was wrong, or one of the object that is being verified.
    pub(crate) fn has_disproved(&self) -> bool {
        self.has_failed() || self.object_differs
    }

    /// Puts what was verified into the books.
    pub(crate) fn close(&self, core: &mut Core) {
        if self.verified > 0 {
            core.stream().verified(self.verified, self.differed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_nth_answer_is_verified() {
        let verify = Some("1/3".parse().unwrap());
        let mut shadow = Shadow::default();
        let due: Vec<bool> = (0..6).map(|_| shadow.is_due(verify)).collect();
        assert_eq!(due, [false, false, true, false, false, true]);
        assert!(!shadow.is_due(None));
    }
}
