//! What becomes of the server's messages: most go to the client, those that answer the session stay here.

use onetrip_ledger::Moment;
use onetrip_wire::pg::{HEADER_BYTES, backend};

use crate::reply_queue::{Owner, Reply};
use crate::session::{Session, SessionError, Verdict};

impl Session {
    /// What becomes of a message of the server, which has been booked as `reply`. `message` is cut short where it is
    /// longer than what is looked into.
    pub(crate) fn pass_reply(
        &mut self,
        now: Moment,
        tag: u8,
        message: &[u8],
        length: usize,
        reply: Reply,
    ) -> Result<Verdict, SessionError> {
        let is_whole = message.len() == length;
        match (reply.due().map(|due| due.owner), reply) {
            (Some(Owner::Begin), _) => self.begin_reply(tag, reply, message),
            (Some(Owner::Commit), _) => self.commit_reply(tag, reply, message),
            (Some(Owner::Statements), _) => self.statements_reply(now, tag, reply, message),
            (Some(Owner::Cursors), _) => self.cursor_reply(now, tag, reply, message, is_whole),
            (Some(Owner::Inquiry), Reply::Failed(_)) => self.inquiry_failed(message),
            (Some(Owner::Inquiry), _) => {
                self.inquiry_reply(tag, reply, &message[HEADER_BYTES..], is_whole);
                Ok(Verdict::Replace(message.len()))
            }
            (Some(Owner::Loops), _) => self.flight_reply(now, tag, reply, message, is_whole),
            (Some(Owner::Unseen), Reply::Failed(_)) => Ok(Verdict::Forward(message.len())),
            (Some(Owner::Unseen), _) => Ok(Verdict::Replace(message.len())),
            (None, Reply::Async) => {
                self.watch_async();
                let is_of_flight = self.queue.front().is_some_and(|due| due.owner == Owner::Loops);
                if is_of_flight && tag == backend::NOTICE_RESPONSE {
                    return Ok(Verdict::Replace(message.len()));
                }
                if is_whole {
                    return self.keep_for_later(tag, message);
                }
                Ok(Verdict::Forward(message.len()))
            }
            (Some(Owner::Client), _) => {
                if let Some(due) = reply.due() {
                    self.watch_reply(now, due, tag, message, is_whole);
                }
                if tag == backend::READY_FOR_QUERY {
                    return Ok(self.pass_kept(message));
                }
                Ok(Verdict::Forward(message.len()))
            }
            _ => Ok(Verdict::Forward(message.len())),
        }
    }
}
