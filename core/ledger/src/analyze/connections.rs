//! OT008: connections one after another, each for a statement or two.

use std::collections::{HashMap, HashSet};

use super::book::{Book, Fate, Key, Sighting};
use super::client::Client;
use crate::findings::{Code, Evidence, Spot};
use crate::{Driver, Moment};

/// Connections that make a pattern.
const CONNECTIONS_MIN: usize = 5;
/// A connection with more work trips than this was worth opening.
pub(super) const WORK_TRIPS_MAX: u64 = 3;
/// Short connections remembered.
const REMEMBERED_MAX: usize = 1 << 20;

/// Short connections of all clients, by who opened them.
#[derive(Debug, Default)]
pub(super) struct Connections {
    short: HashMap<Box<str>, (Driver, Vec<Short>)>,
    /// Who also had a connection that was worth opening: it could have served the short ones.
    long: HashSet<Box<str>>,
    remembered: usize,
}

#[derive(Debug, Clone, Copy)]
struct Short {
    opened_at: Moment,
    closed_at: Moment,
    connect_trips: u32,
    scope: u32,
    waited_ns: u64,
    wire_ns: u64,
}

impl Short {
    fn spot(&self) -> Spot {
        Spot { opened_at: self.opened_at, sent_at: self.opened_at }
    }

    /// Closing is noticed on another thread than opening: lives in a row may seem to overlap a little. Those of a pool
    /// overlap as a whole.
    fn comes_after(&self, last: &Self) -> bool {
        let slack = self.closed_at.since(self.opened_at) / 2;
        self.opened_at.0.saturating_add(slack) >= last.closed_at.0
    }
}

/// What a connection did in its life.
#[derive(Debug, Clone, Copy)]
pub(super) struct Life {
    pub(super) opened_at: Moment,
    pub(super) closed_at: Moment,
    pub(super) connect_trips: u64,
    pub(super) work_trips: u64,
    pub(super) connect_waited_ns: u64,
    pub(super) connect_wire_ns: u64,
    pub(super) scope: u32,
}

impl Connections {
    /// A connection closed. `identity` is its user and database.
    pub(super) fn closed(&mut self, driver: Driver, identity: &str, life: Life) {
        if life.work_trips > WORK_TRIPS_MAX {
            self.long.insert(identity.into());
        }
        if life.work_trips == 0 || life.work_trips > WORK_TRIPS_MAX || self.remembered >= REMEMBERED_MAX {
            return;
        }
        self.remembered += 1;
        let (latest, short) = self.short.entry(identity.into()).or_default();
        *latest = driver;
        short.push(Short {
            opened_at: life.opened_at,
            closed_at: life.closed_at,
            connect_trips: life.connect_trips as u32,
            scope: life.scope,
            waited_ns: life.connect_waited_ns,
            wire_ns: life.connect_wire_ns,
        });
    }

    /// Books the connections that came one after another; those open at the same time were a pool's.
    pub(super) fn book(&self, book: &mut Book) {
        for (who, (driver, short)) in &self.short {
            let mut by_start = short.clone();
            by_start.sort_by_key(|connection| connection.opened_at);
            let mut chain: Vec<Short> = Vec::new();
            for connection in by_start {
                if chain.last().is_none_or(|last| connection.comes_after(last)) {
                    chain.push(connection);
                }
            }
            if chain.len() < CONNECTIONS_MIN {
                continue;
            }
            let sum = |field: fn(&Short) -> u64| chain.iter().map(field).sum::<u64>();
            let connect_trips = sum(|connection| connection.connect_trips.into());
            let spare = self.long.contains(who);
            let first =
                chain.first().filter(|_| !spare).map_or(0, |connection| connection.connect_trips.into());
            book.add(
                Key {
                    code: Code::ConnectionPerQuery,
                    template: 0,
                    source: 0,
                    client: Client::Known(*driver),
                },
                Sighting {
                    scope: chain.first().map_or(0, |connection| connection.scope),
                    spots: chain.iter().map(Short::spot).collect(),
                    occurrences: chain.len() as u64 + u64::from(spare),
                    trips: connect_trips,
                    avoidable: connect_trips - first,
                    waited_ns: sum(|connection| connection.waited_ns),
                    wire_ns: sum(|connection| connection.wire_ns),
                    fate: Fate::default(),
                    evidence: Evidence::Connections { connections: chain.len() as u64, connect_trips },
                },
            );
        }
    }
}
