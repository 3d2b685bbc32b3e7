//! When trips happened, in memory that does not grow with them: what a page draws and what a forecast plays again.

mod histogram;
mod waterfall;

use std::collections::BTreeMap;

pub use histogram::{Bar, Histogram};
pub use waterfall::{Lane, Span, Waterfall};

/// Bytes of one direction that a fresh TCP connection may send before it must wait for an acknowledgement: ten
/// segments of 1448 bytes (RFC 6928). A trip that moves more is a [`Bulk`].
const UNWAITED_BYTES: u64 = 10 * 1448;
/// Bulk trips kept, at most.
const BULKS_MAX: usize = 65_536;
/// Characters of a connection's user and database that are kept.
const IDENTITY_MAX: usize = 200;

/// The trips of a trace over time.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// Trips by connection.
    pub waterfall: Waterfall,
    /// Times of the trips after sessions were open.
    pub histogram: Histogram,
    /// Texts of statements by [`TripSample::statement`].
    pub statements: BTreeMap<u32, String>,
    /// Labels of what trips were for, by [`TripSample::scope`]; those of the spans that are kept.
    pub scopes: BTreeMap<u32, String>,
    /// `user@database` of the connections that are kept, as their startup packets said.
    identities: BTreeMap<u32, String>,
    /// Trips that move more bytes than fit a fresh connection's window.
    bulks: Vec<Bulk>,
    bulks_left_out: u64,
}

/// One trip, as whoever counts trips sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TripSample {
    /// Which connection it was on.
    pub connection: u32,
    /// When its first unit arrived, in nanoseconds since the trace began.
    pub started_ns: u64,
    /// When its first reply came.
    pub first_reply_ns: u64,
    /// When its last reply left.
    pub ended_ns: u64,
    /// The database's part of the time between, in nanoseconds.
    pub server_ns: u64,
    /// Bytes from the client.
    pub bytes_sent: u64,
    /// Bytes to the client.
    pub bytes_received: u64,
    /// The statement that it was made for: any number that stays the same for it.
    pub statement: u32,
    /// What it was for: any number that stays the same for a scope; zero for work without one.
    pub scope: u32,
    /// Whether it was one of the trips that open a session.
    pub connect: bool,
    /// Whether the session was in a transaction after it.
    pub in_transaction: bool,
}

/// A trip of so many bytes that TCP's window may hold them back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bulk {
    /// Which connection it was on.
    pub connection: u32,
    /// When it started, in nanoseconds since the trace began.
    pub started_ns: u64,
    /// When its first reply came.
    pub first_reply_ns: u64,
    /// When its last reply left.
    pub ended_ns: u64,
    /// Bytes from the client.
    pub bytes_sent: u64,
    /// Bytes to the client.
    pub bytes_received: u64,
}

impl TripSample {
    /// Whether it moves more bytes than fit a fresh connection's window.
    pub fn is_bulk(&self) -> bool {
        self.bytes_sent.max(self.bytes_received) > UNWAITED_BYTES
    }
}

impl Timeline {
    /// Takes one trip. Trips of a connection come in order; connections may come in any.
    pub fn add(&mut self, trip: TripSample) {
        self.waterfall.add(trip);
        if !trip.connect {
            self.histogram.add(trip.ended_ns.saturating_sub(trip.started_ns));
        }
        if !trip.is_bulk() {
            return;
        }
        if self.bulks.len() >= BULKS_MAX {
            self.bulks_left_out += 1;
            return;
        }
        self.bulks.push(Bulk {
            connection: trip.connection,
            started_ns: trip.started_ns,
            first_reply_ns: trip.first_reply_ns.clamp(trip.started_ns, trip.ended_ns.max(trip.started_ns)),
            ended_ns: trip.ended_ns.max(trip.started_ns),
            bytes_sent: trip.bytes_sent,
            bytes_received: trip.bytes_received,
        });
    }

    /// Trips that move more bytes than fit a fresh connection's window; those of a connection in order.
    pub fn bulks(&self) -> &[Bulk] {
        &self.bulks
    }

    /// A connection was opened by `user@database`.
    pub fn opened(&mut self, connection: u32, identity: &str) {
        if self.identities.len() < Waterfall::CONNECTIONS_MAX {
            let shown = identity.chars().take(IDENTITY_MAX).collect();
            self.identities.insert(connection, shown);
        }
    }

    /// Who opened a connection: `user@database`, if that is known.
    pub fn identity(&self, connection: u32) -> Option<&str> {
        self.identities.get(&connection).map(String::as_str)
    }

    /// Puts in the texts of the statements and the labels of the scopes that spans name.
    pub(crate) fn name(&mut self, text: impl Fn(u32) -> String, label: impl Fn(u32) -> String) {
        let drawn = || self.waterfall.all_lanes().flat_map(|lane| &lane.spans).filter(|span| !span.connect);
        self.statements = drawn().map(|span| (span.statement, text(span.statement))).collect();
        let scopes = drawn().filter_map(|span| span.scope).filter(|scope| *scope != 0);
        self.scopes = scopes.map(|scope| (scope, label(scope))).collect();
    }

    /// How many bulk trips there were for each one kept.
    pub fn bulk_scale(&self) -> f64 {
        let kept = self.bulks.len().max(1) as f64;
        1.0 + self.bulks_left_out as f64 / kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trips_that_outgrow_a_fresh_window_are_bulk_and_their_bytes_are_kept_once() {
        let mut timeline = Timeline::default();
        let trip = |started_ns, bytes_received| TripSample {
            connection: 3,
            started_ns,
            first_reply_ns: started_ns + 5,
            ended_ns: started_ns + 10,
            bytes_sent: 100,
            bytes_received,
            ..TripSample::default()
        };
        timeline.add(TripSample { connect: true, ..trip(0, 50) });
        timeline.add(trip(100, UNWAITED_BYTES));
        timeline.add(trip(200, UNWAITED_BYTES + 1));
        assert_eq!(timeline.bulks().len(), 1);
        assert_eq!(timeline.bulks()[0].bytes_received, UNWAITED_BYTES + 1);
        assert_eq!(timeline.histogram.total(), 2, "opening a session is no statement's time");
        let (lanes, _) = timeline.waterfall.lanes(9);
        let bytes: Vec<u64> = lanes[0].spans.iter().map(|span| span.bytes).collect();
        assert_eq!(bytes, [150, 100 + UNWAITED_BYTES, 0]);
    }

    #[test]
    fn bulk_trips_beyond_the_limit_are_scaled() {
        let mut timeline = Timeline::default();
        for number in 0..3 * BULKS_MAX as u64 {
            let started_ns = number * 10;
            timeline.add(TripSample { started_ns, bytes_sent: 20_000, ..TripSample::default() });
        }
        assert_eq!(timeline.bulks().len(), BULKS_MAX);
        assert!((timeline.bulk_scale() - 3.0).abs() < 1e-9);
    }
}
