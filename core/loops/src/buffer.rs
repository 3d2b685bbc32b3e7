//! Answers kept until the program asks.
//!
//! ```text
//!   expect --> Pending --append*, complete--> Ready --ask: Serve--> Ready, served (kept for a repeat)
//!                 |                             |
//!                 +--- fail, over the cap ------+--- flush: gone, late answers are dropped
//! ```

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;
use std::time::Duration;

use foldhash::fast::RandomState;

use crate::value::Ticket;

/// Requests and replies that a session may keep, in bytes.
pub const BYTES_MAX: usize = 1 << 20;

/// Entries that a session may keep.
pub const ENTRIES_MAX: usize = 4096;

/// The oldest answer that is served. It bounds how long a REVOKE by another session can go unnoticed.
pub const AGE_MAX: Duration = Duration::from_secs(2);

/// Who sent the request of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Nobody asked for it: if it is never served, it was wasted.
    Guess,
    /// The program did: the answer is kept for a repeat.
    Program,
}

/// What the session knows when the program asks.
#[derive(Debug, Clone, Copy)]
pub struct Asking {
    /// Now.
    pub now: Duration,
    /// The server's last ReadyForQuery had the status 'T': inside a transaction that has not failed.
    pub in_transaction: bool,
    /// The statement is proven to do nothing but read rows of the snapshot.
    pub is_pure: bool,
    /// The request asks for all rows.
    pub all_rows: bool,
    /// Nothing of the program's is unanswered ahead of it.
    pub nothing_ahead: bool,
    /// The oldest answer that is good enough, at most [`AGE_MAX`] unless a test wants to see what that is for.
    pub age_max: Duration,
}

/// What to do with a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// Answer with these bytes; tell the predictor that the ticket was served.
    Serve(Ticket, &'a [u8]),
    /// Its answer is on the way: ask again when this ticket is complete or has failed.
    Wait(Ticket),
    /// Send it to the server.
    Forward(Forwarded),
}

/// Why a request goes to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forwarded {
    /// Nothing is known of this request.
    Unknown,
    /// The request or the moment does not allow an answer from memory.
    NotNow,
    /// The answer is too old.
    Old,
}

/// What happened, in entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BufferCounters {
    /// Guesses that the program asked for, each counted once.
    pub hits: u64,
    /// Requests answered from what was served or executed before.
    pub repeats: u64,
    /// Guesses that went unserved: flushed, failed, too old, over the cap.
    pub wasted: u64,
    /// Answers that came after a flush.
    pub late: u64,
}

/// The answers of one session, by exact request.
#[derive(Debug, Default, Clone)]
pub struct Buffer {
    /// What was answered in another generation is never served.
    generation: u64,
    entries: HashMap<Ticket, Entry, RandomState>,
    /// The newest entry of a request's hash. Equality is checked on the bytes.
    by_request: HashMap<u64, Ticket, RandomState>,
    /// Entries from old to new; tickets of entries that are gone are skipped.
    order: VecDeque<Ticket>,
    hasher: RandomState,
    bytes: usize,
    /// Emptied memory of entries that are gone.
    spare: Vec<Vec<u8>>,
    /// The latest time that was told.
    now: Duration,
    counters: BufferCounters,
}

#[derive(Debug, Clone)]
struct Entry {
    /// The request, then the reply.
    bytes: Vec<u8>,
    request_length: usize,
    request_hash: u64,
    generation: u64,
    /// When the request was sent: nothing of the answer is older.
    sent_at: Duration,
    origin: Origin,
    is_complete: bool,
    was_served: bool,
}

impl Entry {
    fn request(&self) -> &[u8] {
        &self.bytes[..self.request_length]
    }

    fn reply(&self) -> &[u8] {
        &self.bytes[self.request_length..]
    }

    fn is_wasted(&self) -> bool {
        self.origin == Origin::Guess && !self.was_served
    }
}

/// The serve rule, all of it: whether a complete answer may stand for the one that the server would give now. That
/// the request is the same byte for byte, and of the same session, is what the entry was found by; that the answer
/// had no error, notice or changed parameter is what [`Buffer::fail`] is for.
fn may_serve(entry: &Entry, request: &[u8], generation: u64, asking: &Asking) -> bool {
    entry.request() == request
        && entry.generation == generation
        && entry.is_complete
        && asking.in_transaction
        && asking.is_pure
        && asking.all_rows
        && asking.nothing_ahead
        && asking.now.saturating_sub(entry.sent_at) <= asking.age_max
}

impl Buffer {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// A request leaves for the server and its answer shall be kept: `request` is everything that the answer depends
    /// on (text, parameter formats and bytes, result formats). False if there is no room: the answer is then
    /// dropped, and a guess had better not be sent.
    pub fn expect(&mut self, now: Duration, ticket: Ticket, request: &[u8], origin: Origin) -> bool {
        self.now = self.now.max(now);
        if self.entries.contains_key(&ticket) || !self.make_room(request.len(), 1) {
            return false;
        }
        let request_hash = self.hasher.hash_one(request);
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.extend_from_slice(request);
        self.bytes += request.len();
        self.entries.insert(
            ticket,
            Entry {
                bytes,
                request_length: request.len(),
                request_hash,
                generation: self.generation,
                sent_at: now,
                origin,
                is_complete: false,
                was_served: false,
            },
        );
        self.by_request.insert(request_hash, ticket);
        if self.order.len() >= 2 * ENTRIES_MAX {
            self.order.retain(|known| self.entries.contains_key(known));
        }
        self.order.push_back(ticket);
        true
    }

    /// Bytes of the answer, message by message or as they come. False if they are not kept: the ticket is unknown,
    /// of an older generation, or over the cap.
    pub fn append(&mut self, ticket: Ticket, reply: &[u8]) -> bool {
        let Some(entry) = self.entries.get(&ticket) else {
            return false;
        };
        if entry.is_complete {
            return false;
        }
        if !self.make_room(reply.len(), 0) {
            self.fail(ticket);
            return false;
        }
        let Some(entry) = self.entries.get_mut(&ticket) else {
            return false; // it was the one pushed out
        };
        entry.bytes.extend_from_slice(reply);
        self.bytes += reply.len();
        true
    }

    /// The answer is complete, and nothing in it forbids to keep it.
    pub fn complete(&mut self, ticket: Ticket) {
        match self.entries.get_mut(&ticket) {
            Some(entry) => entry.is_complete = true,
            None => self.counters.late += 1,
        }
    }

    /// The answer must not be kept: an error, a notice, a changed parameter, a lost connection.
    pub fn fail(&mut self, ticket: Ticket) {
        if let Some(entry) = self.entries.get(&ticket) {
            self.counters.wasted += u64::from(entry.is_wasted());
            self.forget(ticket);
        }
    }

    /// The program asks: whether memory may answer.
    pub fn ask(&mut self, request: &[u8], asking: &Asking) -> Answer<'_> {
        self.now = self.now.max(asking.now);
        let Some(ticket) = self.find(request) else {
            return Answer::Forward(Forwarded::Unknown);
        };
        let Some(entry) = self.entries.get(&ticket) else {
            return Answer::Forward(Forwarded::Unknown);
        };
        if !may_serve(entry, request, self.generation, asking) {
            return self.refuse(ticket, asking);
        }
        self.serve(ticket)
    }

    /// Anything that may change an answer happens: all entries are gone, and answers still on their way are dropped
    /// when they come.
    pub fn flush(&mut self) {
        self.generation += 1;
        if self.order.is_empty() {
            return; // what nothing was expected of holds nothing
        }
        let wasted = self.entries.values().filter(|entry| entry.is_wasted()).count();
        self.counters.wasted += wasted as u64;
        for (_, entry) in self.entries.drain() {
            keep_memory(&mut self.spare, entry.bytes);
        }
        self.by_request.clear();
        self.order.clear();
        self.bytes = 0;
    }

    /// Requests whose answers are kept or expected.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes that may be kept before what was served has to go.
    pub fn room(&self) -> usize {
        BYTES_MAX.saturating_sub(self.bytes)
    }

    /// What happened so far.
    pub fn counters(&self) -> BufferCounters {
        self.counters
    }

    fn find(&self, request: &[u8]) -> Option<Ticket> {
        let ticket = *self.by_request.get(&self.hasher.hash_one(request))?;
        let entry = self.entries.get(&ticket)?;
        (entry.request() == request).then_some(ticket)
    }

    /// The entry is the right one and may not be served: wait for it, or send the request.
    fn refuse(&mut self, ticket: Ticket, asking: &Asking) -> Answer<'_> {
        let Some(entry) = self.entries.get(&ticket) else {
            return Answer::Forward(Forwarded::Unknown);
        };
        let allowed = asking.in_transaction && asking.is_pure && asking.all_rows && asking.nothing_ahead;
        if !allowed {
            return Answer::Forward(Forwarded::NotNow);
        }
        if asking.now.saturating_sub(entry.sent_at) > asking.age_max {
            self.fail(ticket);
            return Answer::Forward(Forwarded::Old);
        }
        Answer::Wait(ticket)
    }

    fn serve(&mut self, ticket: Ticket) -> Answer<'_> {
        let Some(entry) = self.entries.get_mut(&ticket) else {
            return Answer::Forward(Forwarded::Unknown);
        };
        match entry.is_wasted() {
            true => self.counters.hits += 1,
            false => self.counters.repeats += 1,
        }
        entry.was_served = true;
        Answer::Serve(ticket, entry.reply())
    }

    /// Makes room by dropping what was served and what is too old, oldest first. What waits for the program stays: it
    /// is nearer to its place than anything newer.
    fn make_room(&mut self, bytes: usize, entries: usize) -> bool {
        let mut position = 0;
        while position < self.order.len() && !self.fits(bytes, entries) {
            let ticket = self.order[position];
            let droppable = self.entries.get(&ticket).is_none_or(|entry| {
                let is_old = self.now.saturating_sub(entry.sent_at) > AGE_MAX;
                entry.is_complete && (is_old || !entry.is_wasted())
            });
            if droppable {
                self.order.remove(position);
                self.fail(ticket);
            } else {
                position += 1;
            }
        }
        self.fits(bytes, entries)
    }

    fn fits(&self, bytes: usize, entries: usize) -> bool {
        self.bytes + bytes <= BYTES_MAX && self.entries.len() + entries <= ENTRIES_MAX
    }

    fn forget(&mut self, ticket: Ticket) {
        let Some(entry) = self.entries.remove(&ticket) else {
            return;
        };
        self.bytes -= entry.bytes.len();
        if self.by_request.get(&entry.request_hash) == Some(&ticket) {
            self.by_request.remove(&entry.request_hash);
        }
        keep_memory(&mut self.spare, entry.bytes);
    }
}

/// Emptied memory is kept for the next entries, but not the memory of a huge one.
fn keep_memory(spare: &mut Vec<Vec<u8>>, mut bytes: Vec<u8>) {
    if spare.len() < 256 && bytes.capacity() <= 4096 {
        bytes.clear();
        spare.push(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Asking = Asking {
        now: Duration::from_secs(1),
        in_transaction: true,
        is_pure: true,
        all_rows: true,
        nothing_ahead: true,
        age_max: AGE_MAX,
    };

    /// A buffer with one complete answer, sent at second one.
    fn with_answer() -> Buffer {
        let mut buffer = Buffer::new();
        assert!(buffer.expect(NOW.now, Ticket(1), b"select 1", Origin::Guess));
        assert!(buffer.append(Ticket(1), b"one") && buffer.append(Ticket(1), b" row"));
        buffer.complete(Ticket(1));
        buffer
    }

    #[test]
    fn a_complete_answer_is_served_and_served_again() {
        let mut buffer = with_answer();
        assert_eq!(buffer.ask(b"select 1", &NOW), Answer::Serve(Ticket(1), b"one row"));
        assert_eq!(buffer.ask(b"select 1", &NOW), Answer::Serve(Ticket(1), b"one row"));
        let counters = buffer.counters();
        assert_eq!((counters.hits, counters.repeats), (1, 1));
    }

    #[test]
    fn each_condition_of_the_serve_rule_refuses_by_itself() {
        let asked = [
            (b"select 2", NOW, Forwarded::Unknown),
            (b"select 1", Asking { in_transaction: false, ..NOW }, Forwarded::NotNow),
            (b"select 1", Asking { is_pure: false, ..NOW }, Forwarded::NotNow),
            (b"select 1", Asking { all_rows: false, ..NOW }, Forwarded::NotNow),
            (b"select 1", Asking { nothing_ahead: false, ..NOW }, Forwarded::NotNow),
            (b"select 1", Asking { now: Duration::from_millis(3001), ..NOW }, Forwarded::Old),
        ];
        for (request, asking, why) in asked {
            assert_eq!(with_answer().ask(request, &asking), Answer::Forward(why), "{why:?}");
        }
        let young = Asking { now: Duration::from_secs(3), ..NOW };
        assert!(matches!(with_answer().ask(b"select 1", &young), Answer::Serve(..)));
    }

    #[test]
    fn an_answer_on_its_way_is_waited_for_until_it_fails() {
        let mut buffer = Buffer::new();
        buffer.expect(NOW.now, Ticket(1), b"select 1", Origin::Guess);
        assert_eq!(buffer.ask(b"select 1", &NOW), Answer::Wait(Ticket(1)));
        buffer.append(Ticket(1), b"one");
        assert_eq!(buffer.ask(b"select 1", &NOW), Answer::Wait(Ticket(1)), "half an answer");
        let late = Asking { is_pure: false, ..NOW };
        assert_eq!(
            buffer.ask(b"select 1", &late),
            Answer::Forward(Forwarded::NotNow),
            "nobody waits for what must not be served"
        );
        buffer.fail(Ticket(1));
        assert_eq!(buffer.ask(b"select 1", &NOW), Answer::Forward(Forwarded::Unknown));
        assert!(!buffer.append(Ticket(1), b"more"));
    }

    #[test]
    fn a_flush_ends_a_generation_and_late_answers_are_dropped() {
        let mut buffer = with_answer();
        buffer.expect(NOW.now, Ticket(2), b"select 2", Origin::Guess);
        buffer.flush();
        assert!(!buffer.append(Ticket(2), b"two"));
        buffer.complete(Ticket(2));
        for request in [b"select 1", b"select 2"] {
            assert_eq!(buffer.ask(request, &NOW), Answer::Forward(Forwarded::Unknown));
        }
        let counters = buffer.counters();
        assert_eq!((counters.wasted, counters.late, buffer.room()), (2, 1, BYTES_MAX));
    }

    #[test]
    fn what_was_served_makes_room_and_what_waits_stays() {
        let mut buffer = Buffer::new();
        let quarter = vec![0; BYTES_MAX / 4];
        for ticket in 1..=3 {
            buffer.expect(NOW.now, Ticket(ticket), &[ticket as u8; 8], Origin::Guess);
            buffer.append(Ticket(ticket), &quarter);
            buffer.complete(Ticket(ticket));
        }
        assert!(matches!(buffer.ask(&[2; 8], &NOW), Answer::Serve(..)));
        buffer.expect(NOW.now, Ticket(4), &[4; 8], Origin::Guess);
        assert!(buffer.append(Ticket(4), &quarter), "the served one makes room");
        assert_eq!(buffer.ask(&[2; 8], &NOW), Answer::Forward(Forwarded::Unknown));
        buffer.expect(NOW.now, Ticket(5), &[5; 8], Origin::Guess);
        assert!(!buffer.append(Ticket(5), &quarter), "the others still wait");
        assert_eq!(buffer.counters().wasted, 1);
        for waiting in [1, 3] {
            assert!(matches!(buffer.ask(&[waiting; 8], &NOW), Answer::Serve(..)));
        }
        buffer.expect(Duration::from_secs(9), Ticket(6), &[6; 8], Origin::Guess);
        assert!(buffer.append(Ticket(6), &[0; BYTES_MAX / 2]), "what is too old makes room as well");
    }

    #[test]
    fn an_answer_larger_than_the_cap_is_given_up() {
        let mut buffer = Buffer::new();
        buffer.expect(NOW.now, Ticket(1), b"select 1", Origin::Guess);
        assert!(!buffer.append(Ticket(1), &vec![0; BYTES_MAX + 1]));
        assert_eq!(buffer.ask(b"select 1", &NOW), Answer::Forward(Forwarded::Unknown));
        assert_eq!((buffer.counters().wasted, buffer.len()), (1, 0));
    }

    #[test]
    fn a_newer_answer_stands_for_an_older_one() {
        let mut buffer = with_answer();
        buffer.expect(NOW.now, Ticket(2), b"select 1", Origin::Program);
        assert_eq!(buffer.ask(b"select 1", &NOW), Answer::Wait(Ticket(2)));
        buffer.append(Ticket(2), b"newer");
        buffer.complete(Ticket(2));
        assert_eq!(buffer.ask(b"select 1", &NOW), Answer::Serve(Ticket(2), b"newer"));
    }
}
