use super::Connection;
use crate::Error;
use onetrip_wire::pg::TransactionStatus;

impl Connection {
    /// Makes the session ready for somebody else, without waiting: a transaction that is open is rolled back along with
    /// their first request.
    ///
    /// # Errors
    /// A connection that has ended.
    pub(crate) fn hand_over(&mut self) -> Result<(), Error> {
        self.finish_requests();
        if self.is_lost() {
            return Err(Error::Closed);
        }
        // An unanswered statement may yet begin a transaction.
        let is_clean = self.is_settled() && self.transaction_status() == TransactionStatus::Idle;
        if is_clean { Ok(()) } else { self.submit_script("ROLLBACK").map(drop) }
    }

    /// Takes the events that have come; whether the connection is still there then.
    pub(crate) fn is_usable(&mut self) -> bool {
        while !self.is_lost() && self.next_event().is_ok_and(|event| event.is_some()) {}
        !self.is_lost()
    }
}
