//! OT010: a large object read by several calls, each with a trip of its own.

use super::book::{Book, Fate, Key, Sighting};
use super::client::Client;
use super::event::{Event, Run};
use super::purpose::{ObjectCall, Purpose};
use super::spots::Spots;
use crate::findings::{Code, Evidence, Spot};
use crate::{Remedy, TransactionStatus};

/// Objects open at once that are followed.
const OPEN_MAX: usize = 64;
/// Calls that one object takes at least, for the trip that reads it whole to save any: open, read, close.
const TRIPS_MIN: u64 = 2;

/// Large objects that one connection has open.
#[derive(Debug, Default)]
pub(super) struct Lobs {
    open: Vec<Lob>,
}

#[derive(Debug)]
struct Lob {
    /// What the server calls the open object, as it is kept of results.
    handle: u32,
    scope: u32,
    spot: Spot,
    /// Template of the calls that read, or of the one that opened.
    template: u32,
    reads: u64,
    is_written: bool,
    /// Calls that a remedy answered.
    removed: u64,
    trips: u64,
    waited_ns: u64,
    wire_ns: u64,
}

impl Lobs {
    /// Takes one exchange of any sort.
    pub(super) fn take(&mut self, event: &Event<'_>, client: Client, book: &mut Book) {
        for run in &event.runs {
            if let Purpose::LargeObject(call) = run.facts.purpose {
                self.call(call, event, run, client, book);
            }
        }
        // Objects are closed with their transaction.
        if event.exchange.status == TransactionStatus::Idle && !self.open.is_empty() {
            self.end_all(client, book);
        }
    }

    fn call(&mut self, call: ObjectCall, event: &Event<'_>, run: &Run<'_>, client: Client, book: &mut Book) {
        if call == ObjectCall::Open {
            let &[handle] = run.results else { return };
            self.end(handle, client, book);
            if self.open.len() < OPEN_MAX {
                self.open.push(Lob::new(handle, event, run));
            }
        }
        let handle = match (call, run.results, run.parameters) {
            (ObjectCall::Open, &[handle], _) => handle,
            (_, _, &[handle, ..]) => handle as u32,
            _ => return,
        };
        let Some(lob) = self.open.iter_mut().find(|lob| lob.handle == handle) else { return };
        match call {
            ObjectCall::Read => {
                lob.template = run.template;
                lob.reads += 1;
            }
            ObjectCall::Write => lob.is_written = true,
            ObjectCall::Open | ObjectCall::Seek | ObjectCall::Close => {}
        }
        if event.is_own_trip() && event.runs.len() == 1 {
            lob.trips += 1;
            lob.waited_ns += event.exchange.duration();
            lob.wire_ns += event.wire_ns;
        }
        lob.removed += u64::from(event.exchange.remedy == Some(Remedy::Lobs));
        if call == ObjectCall::Close {
            self.end(handle, client, book);
        }
    }

    /// Ends all: the transaction or the connection ended.
    pub(super) fn end_all(&mut self, client: Client, book: &mut Book) {
        for lob in self.open.drain(..) {
            lob.book(client, book);
        }
    }

    fn end(&mut self, handle: u32, client: Client, book: &mut Book) {
        if let Some(position) = self.open.iter().position(|lob| lob.handle == handle) {
            self.open.swap_remove(position).book(client, book);
        }
    }
}

impl Lob {
    fn new(handle: u32, event: &Event<'_>, run: &Run<'_>) -> Self {
        Self {
            handle,
            scope: event.scope,
            spot: event.spot(),
            template: run.template,
            reads: 0,
            is_written: false,
            removed: 0,
            trips: 0,
            waited_ns: 0,
            wire_ns: 0,
        }
    }

    fn book(self, client: Client, book: &mut Book) {
        if self.reads == 0 || self.is_written || self.trips + self.removed < TRIPS_MIN {
            return;
        }
        book.add(
            Key { code: Code::LobChatter, template: self.template, source: 0, client },
            Sighting {
                scope: self.scope,
                spots: Spots::from(self.spot),
                occurrences: 1,
                trips: self.trips,
                avoidable: self.trips.saturating_sub(1),
                waited_ns: self.waited_ns,
                wire_ns: self.wire_ns,
                fate: Fate { removed: self.removed, ..Fate::default() },
                evidence: Evidence::Objects { objects: 1, calls: self.trips },
            },
        );
    }
}
