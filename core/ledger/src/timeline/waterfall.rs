use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::TripSample;

/// Spans kept, at most: each is drawn apart, and takes some 25 bytes of the page.
const SPANS_MAX: usize = 20_000;
/// First width of the grid on which trips are joined, in nanoseconds.
const GRID_MIN_NS: u64 = 1_024;

/// Trips by connection, in bounded memory: every trip apart while there are few, then neighbours joined.
#[derive(Debug, Clone, Default)]
pub struct Waterfall {
    lanes: BTreeMap<u32, Lane>,
    spans: usize,
    /// Trips of one connection that start within one cell of a grid this wide are joined; zero joins none.
    grid_ns: u64,
    left_out: u64,
    /// Start and end of the trips that were known before any were joined.
    apart: BTreeMap<u32, Vec<(u64, u64)>>,
}

/// One connection's trips.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lane {
    /// The connection, as [`TripSample::connection`] told it.
    pub connection: u32,
    /// Its trips.
    pub trips: u64,
    /// Its trips by time, neighbours joined where there were too many.
    pub spans: Vec<Span>,
}

/// A trip, or neighbours joined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    /// When the first trip started.
    pub started_ns: u64,
    /// When the last one ended.
    pub ended_ns: u64,
    /// How many trips.
    pub trips: u64,
    /// How long the trips took together.
    pub busy_ns: u64,
    /// The database's part of that.
    pub server_ns: u64,
    /// Bytes that they moved both ways, without those of [`super::Bulk`] trips.
    pub bytes: u64,
    /// A statement among them: the most frequent one, if any made up more than half.
    pub statement: u32,
    /// What they were for, as [`TripSample::scope`] told it; `None` where trips of several scopes are joined.
    pub scope: Option<u32>,
    /// Whether they opened a session.
    pub connect: bool,
    /// Whether the session was in a transaction after the last one.
    pub in_transaction: bool,
    /// By how many trips `statement` leads, in the vote that chooses it.
    lead: u64,
}

impl Waterfall {
    /// Connections kept, at most.
    pub(super) const CONNECTIONS_MAX: usize = 4_096;

    /// Takes one trip. Trips of a connection come in order; connections may come in any.
    pub fn add(&mut self, trip: TripSample) {
        let full = self.lanes.len() >= Self::CONNECTIONS_MAX;
        let lane = match self.lanes.entry(trip.connection) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(_) if full => {
                self.left_out += 1;
                return;
            }
            Entry::Vacant(new) => new.insert(Lane { connection: trip.connection, ..Lane::default() }),
        };
        lane.trips += 1;
        self.spans += usize::from(push(&mut lane.spans, Span::of(trip), self.grid_ns));
        if self.spans > SPANS_MAX {
            self.coarsen();
        }
    }

    /// The `lanes_max` connections with most trips, in the order in which they began, and how many trips the
    /// others had.
    pub fn lanes(&self, lanes_max: usize) -> (Vec<&Lane>, u64) {
        let mut lanes: Vec<&Lane> = self.lanes.values().collect();
        lanes.sort_by_key(|lane| std::cmp::Reverse(lane.trips));
        let others = lanes.iter().skip(lanes_max).map(|lane| lane.trips).sum::<u64>();
        lanes.truncate(lanes_max);
        lanes.sort_by_key(|lane| (lane.spans.first().map(|span| span.started_ns), lane.connection));
        (lanes, others + self.left_out)
    }

    /// All connections that are kept, by number.
    pub fn all_lanes(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.values()
    }

    /// Trips of connections beyond those kept.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Connections seen and kept.
    pub fn connections(&self) -> usize {
        self.lanes.len()
    }

    /// Whether some trips are drawn joined.
    pub fn is_joined(&self) -> bool {
        self.grid_ns > 0
    }

    /// Start and end, in nanoseconds, of a connection's first trips, as far as they were kept apart.
    pub fn trips_apart(&self, connection: u32) -> Vec<(u64, u64)> {
        if self.is_joined() {
            return self.apart.get(&connection).cloned().unwrap_or_default();
        }
        self.lanes.get(&connection).map(|lane| ends(&lane.spans)).unwrap_or_default()
    }

    /// Joins neighbours on ever wider grids until half of the room is free, so that this is done rarely.
    fn coarsen(&mut self) {
        if !self.is_joined() {
            self.apart = self.lanes.iter().map(|(number, lane)| (*number, ends(&lane.spans))).collect();
        }
        while self.spans > SPANS_MAX / 2 && self.grid_ns <= u64::MAX / 2 {
            self.grid_ns = (self.grid_ns * 2).max(GRID_MIN_NS);
            self.spans = 0;
            for lane in self.lanes.values_mut() {
                let mut joined = Vec::with_capacity(lane.spans.len() / 2 + 1);
                for span in lane.spans.drain(..) {
                    push(&mut joined, span, self.grid_ns);
                }
                self.spans += joined.len();
                lane.spans = joined;
            }
        }
    }
}

impl Span {
    fn of(trip: TripSample) -> Self {
        let busy_ns = trip.ended_ns.saturating_sub(trip.started_ns);
        Self {
            started_ns: trip.started_ns,
            ended_ns: trip.ended_ns.max(trip.started_ns),
            trips: 1,
            busy_ns,
            server_ns: trip.server_ns.min(busy_ns),
            bytes: if trip.is_bulk() { 0 } else { trip.bytes_sent + trip.bytes_received },
            statement: trip.statement,
            scope: Some(trip.scope),
            connect: trip.connect,
            in_transaction: trip.in_transaction,
            lead: 1,
        }
    }

    /// Joins the neighbour that comes next; the statements' vote is Boyer and Moore's.
    fn join(&mut self, next: Self) {
        self.ended_ns = self.ended_ns.max(next.ended_ns);
        self.trips += next.trips;
        self.busy_ns += next.busy_ns;
        self.server_ns += next.server_ns;
        self.bytes += next.bytes;
        self.in_transaction = next.in_transaction;
        self.scope = self.scope.filter(|_| self.scope == next.scope);
        if self.statement == next.statement {
            self.lead += next.lead;
        } else if self.lead >= next.lead {
            self.lead -= next.lead;
        } else {
            self.lead = next.lead - self.lead;
            self.statement = next.statement;
        }
    }
}

fn ends(spans: &[Span]) -> Vec<(u64, u64)> {
    spans.iter().map(|span| (span.started_ns, span.ended_ns)).collect()
}

/// Appends `span`, or joins it with the last one; returns whether there is one more.
fn push(spans: &mut Vec<Span>, span: Span, grid_ns: u64) -> bool {
    match spans.last_mut() {
        Some(last)
            if grid_ns > 0
                && last.connect == span.connect
                && last.started_ns / grid_ns == span.started_ns / grid_ns =>
        {
            last.join(span);
            false
        }
        _ => {
            spans.push(span);
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trip(connection: u32, number: u64, statement: u32) -> TripSample {
        let started_ns = number * 1_000_000;
        TripSample {
            connection,
            started_ns,
            ended_ns: started_ns + 400_000,
            server_ns: 100_000,
            statement,
            ..TripSample::default()
        }
    }

    #[test]
    fn few_trips_stay_apart() {
        let mut waterfall = Waterfall::default();
        (0..SPANS_MAX as u64).for_each(|number| waterfall.add(trip(1, number, 7)));
        assert!(!waterfall.is_joined());
        assert_eq!(waterfall.lanes(9).0[0].spans.len(), SPANS_MAX);
    }

    #[test]
    fn many_trips_are_joined_and_none_is_lost() {
        let mut waterfall = Waterfall::default();
        let trips = 300_000;
        for number in 0..trips {
            waterfall.add(trip((number % 10) as u32, number, if number % 30 < 10 { 1 } else { 2 }));
        }
        let (lanes, others) = waterfall.lanes(100);
        let spans = || lanes.iter().flat_map(|lane| &lane.spans);
        assert!(waterfall.is_joined() && spans().count() <= SPANS_MAX && spans().count() > SPANS_MAX / 8);
        assert_eq!((spans().map(|span| span.trips).sum::<u64>(), others), (trips, 0));
        assert_eq!(spans().map(|span| span.busy_ns).sum::<u64>(), trips * 400_000);
        assert!(spans().filter(|span| span.trips >= 3).all(|span| span.statement == 2), "two of three are");
    }

    #[test]
    fn joined_trips_keep_their_scope_where_they_share_it() {
        let mut waterfall = Waterfall::default();
        for number in 0..4 * SPANS_MAX as u64 {
            let is_first_half = number < 2 * SPANS_MAX as u64;
            let scope = if is_first_half { 5 } else { number as u32 % 2 };
            waterfall.add(TripSample { scope, ..trip(1, number, 1) });
        }
        let (lanes, _) = waterfall.lanes(9);
        let scopes: Vec<Option<u32>> = lanes[0].spans.iter().map(|span| span.scope).collect();
        assert_eq!((scopes.first(), scopes.last()), (Some(&Some(5)), Some(&None)));
        assert!(lanes[0].spans.iter().all(|span| span.trips == 1 || span.scope != Some(0)));
    }

    #[test]
    fn connections_beyond_the_bound_are_counted_as_left_out() {
        let mut waterfall = Waterfall::default();
        for connection in 0..5_000 {
            waterfall.add(trip(connection, u64::from(connection), 1));
        }
        waterfall.add(trip(3, 9_999, 1));
        let (lanes, others) = waterfall.lanes(10);
        assert_eq!((lanes.len(), others), (10, 5_001 - 11));
        assert!(lanes.iter().any(|lane| lane.connection == 3 && lane.trips == 2), "most trips are kept");
    }
}
