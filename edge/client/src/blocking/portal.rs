// Made from aio/portal.rs by tests/twins.rs: change that one.
use super::Client;

impl Client {
    /// Closes a portal, or what SQL calls a cursor, along with the next statement: that takes no trip. One that is not
    /// there is no error.
    pub fn close_portal(&mut self, name: &str) {
        self.core.close_portal(name);
    }

    /// Prepares all statements anew when they are next used: for whoever knows that tables have changed, by another
    /// connection. It takes no trip.
    pub fn forget_statements(&mut self) {
        self.core.forget_statements();
    }
}
