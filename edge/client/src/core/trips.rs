//! How many turns the conversation took.

use super::Connection;

impl Connection {
    /// Round trips since the session was open. One starts with a request that is made when nothing is unanswered; what
    /// is asked meanwhile shares it.
    pub fn trips(&self) -> u64 {
        self.trips
    }

    /// A request is about to be booked.
    pub(super) fn count_trip(&mut self) {
        if self.queue.is_empty() {
            self.trips += 1;
            self.distance.asked();
        }
    }
}
