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
        tag: u8,
        message: &[u8],
        length: usize,
        reply: Reply,
        now: Moment,
    ) -> Result<Verdict, SessionError> {
        let is_whole = message.len() == length;
        match (reply.due().map(|due| due.owner), reply) {
            (Some(Owner::Begin), _) => self.begin_reply(tag, reply, message),
            (Some(Owner::Commit), _) => self.commit_reply(tag, reply, message),
            (Some(Owner::Cursors), _) => self.cursor_reply(now, tag, reply, message, is_whole),
            (Some(Owner::Inquiry), Reply::Failed(_)) => self.inquiry_failed(message),
            (Some(Owner::Inquiry), _) => {
                self.inquiry_reply(tag, reply, &message[HEADER_BYTES..], is_whole);
                Ok(Verdict::Replace(message.len()))
            }
            (None, Reply::Async) if is_whole => self.keep_for_later(tag, message),
            (Some(Owner::Client), Reply::Last(_)) if tag == backend::READY_FOR_QUERY => {
                Ok(self.pass_kept(message))
            }
            _ => Ok(Verdict::Forward(message.len())),
        }
    }
}
