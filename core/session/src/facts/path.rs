//! How far away the database is, and whether anything is worth doing there: nothing is below 200 microseconds.

use std::time::Duration;

use crate::rules::Rule;

/// The shortest round trip that is worth it. What the session's own messages cost server and gateway was measured at 30
/// to 270 µs for a transaction (`docs/safety.md`).
const DISTANCE_MIN: Duration = Duration::from_micros(200);

/// What is known of the way to the server, and of what stands at its end.
#[derive(Debug, Default)]
pub(crate) struct Path {
    /// The shortest round trip that was seen; zero where it is not known.
    distance: Duration,
    /// What the server reported as `in_hot_standby`; `None` before PostgreSQL 14.
    standby: Option<bool>,
    /// The session was opened for replication.
    replicates: bool,
}

impl Path {
    /// Whether a trip is worth removing, and extended queries are known at its end (rule B11).
    pub(crate) fn is_worth_it(&self) -> bool {
        self.distance >= DISTANCE_MIN && !self.replicates
    }

    /// How far the server is.
    pub(crate) fn distance(&self) -> Duration {
        self.distance
    }

    /// What the server reported as `in_hot_standby`; `None` before PostgreSQL 14.
    pub(crate) fn standby(&self) -> Option<bool> {
        self.standby
    }

    /// The round trip was measured.
    pub(crate) fn measured(&mut self, rtt_min: Duration) {
        self.distance = rtt_min;
    }

    /// The server has reported whether it is a standby.
    pub(crate) fn standby_reported(&mut self, is_standby: bool) {
        self.standby = Some(is_standby);
    }

    /// The client has asked for a replication connection.
    pub(crate) fn replication_asked(&mut self) {
        self.replicates = Rule::Replication.is_kept();
    }
}
