//! Who is connected, and how to interrupt or close each.

use std::collections::{HashMap, VecDeque};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::InterruptHandle;

use super::ServeStats;
use crate::functions::SessionFacts;

/// Places for logins beyond those that can become sessions: whoever has them is told "too many clients".
const LOGINS_BEYOND_SESSIONS: usize = 16;

/// Connections that are closed and have not ended yet, before more are dropped unheard.
const LEAVING_MAX: usize = 16;

/// How long a stop waits for what runs: SQLite cannot be interrupted within one step.
pub(super) const STOP_MAX: Duration = Duration::from_secs(5);

/// All connections of a server.
pub(super) struct Registry {
    entries: Mutex<Entries>,
    /// Told when a connection ends.
    ended: Condvar,
    sessions_max: usize,
    logins_max: usize,
    connections: AtomicU64,
    sessions: AtomicU64,
    messages: AtomicU64,
}

#[derive(Default)]
struct Entries {
    by_number: HashMap<u32, Entry>,
    last_number: u32,
    session_count: usize,
    /// Connections before login, the oldest first.
    logins: VecDeque<u32>,
}

impl Entries {
    fn leave_login(&mut self, number: u32) {
        // Logins are short: it is one of the last.
        if let Some(index) = self.logins.iter().rposition(|login| *login == number) {
            self.logins.remove(index);
        }
    }
}

struct Entry {
    /// None where there is no socket to close.
    stream: Option<Arc<TcpStream>>,
    session: Option<Cancellable>,
}

/// What a cancel request needs.
pub(super) struct Cancellable {
    pub(super) key: [u8; 4],
    pub(super) interrupt: InterruptHandle,
    pub(super) facts: Arc<SessionFacts>,
}

impl Cancellable {
    fn cancel(&self) {
        self.facts.watch.cancel(|| self.interrupt.interrupt());
    }
}

impl Registry {
    pub(super) fn new(sessions_max: usize) -> Self {
        Self {
            entries: Mutex::default(),
            ended: Condvar::new(),
            sessions_max,
            logins_max: sessions_max + LOGINS_BEYOND_SESSIONS,
            connections: AtomicU64::new(0),
            sessions: AtomicU64::new(0),
            messages: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is room for one more connection.
    pub(super) fn has_room(&self) -> bool {
        self.lock().by_number.len() < self.sessions_max + self.logins_max + LEAVING_MAX
    }

    /// Notes a connection until its ticket is dropped. Where too many are before their login, the oldest of them ends: its
    /// client has had the most time, and others would wait for a client that says nothing.
    pub(super) fn enter(self: &Arc<Self>, stream: Option<Arc<TcpStream>>) -> Ticket {
        self.connections.fetch_add(1, Ordering::Relaxed);
        let mut entries = self.lock();
        let number = loop {
            entries.last_number = entries.last_number.wrapping_add(1).max(1);
            if !entries.by_number.contains_key(&entries.last_number) {
                break entries.last_number;
            }
        };
        if entries.logins.len() >= self.logins_max {
            let oldest = entries.logins.pop_front();
            let stream = oldest.and_then(|oldest| entries.by_number.get(&oldest)?.stream.as_ref());
            if let Some(stream) = stream {
                // It may be closed already.
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        entries.logins.push_back(number);
        entries.by_number.insert(number, Entry { stream, session: None });
        Ticket { registry: Arc::clone(self), number }
    }

    /// Interrupts what a session runs, if number and key are right and it runs something.
    pub(super) fn cancel(&self, number: u32, key: &[u8]) {
        let entries = self.lock();
        let session = entries.by_number.get(&number).and_then(|entry| entry.session.as_ref());
        if let Some(session) = session.filter(|session| session.key == key) {
            session.cancel();
        }
    }

    /// Closes all connections and waits until they have ended, or for [`STOP_MAX`].
    pub(super) fn close_all(&self) {
        let start = Instant::now();
        let mut entries = self.lock();
        while !entries.by_number.is_empty() && start.elapsed() < STOP_MAX {
            for entry in entries.by_number.values() {
                if let Some(session) = &entry.session {
                    session.cancel();
                }
                if let Some(stream) = &entry.stream {
                    // It may be closed already.
                    let _ = stream.shutdown(Shutdown::Both);
                }
            }
            let pause = Duration::from_millis(20);
            entries = self.ended.wait_timeout(entries, pause).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(super) fn count_messages(&self, count: u64) {
        self.messages.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn stats(&self) -> ServeStats {
        ServeStats {
            connections: self.connections.load(Ordering::Relaxed),
            sessions: self.sessions.load(Ordering::Relaxed),
            messages: self.messages.load(Ordering::Relaxed),
            ..ServeStats::default()
        }
    }
}

/// A connection's entry.
pub(super) struct Ticket {
    registry: Arc<Registry>,
    number: u32,
}

impl Ticket {
    /// The number that clients see as a process id.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Makes the connection a session until what is returned is dropped; `None` if there is no room for one more.
    pub(super) fn start_session(&self, session: Cancellable) -> Option<RunningSession> {
        let mut entries = self.registry.lock();
        if entries.session_count >= self.registry.sessions_max {
            return None;
        }
        entries.session_count += 1;
        entries.leave_login(self.number);
        if let Some(entry) = entries.by_number.get_mut(&self.number) {
            entry.session = Some(session);
        }
        self.registry.sessions.fetch_add(1, Ordering::Relaxed);
        Some(RunningSession { registry: Arc::clone(&self.registry), number: self.number })
    }
}

/// A session; it has to end before its SQLite connection, which the entry could interrupt, is closed.
pub(super) struct RunningSession {
    registry: Arc<Registry>,
    number: u32,
}

impl Drop for RunningSession {
    fn drop(&mut self) {
        let mut entries = self.registry.lock();
        if let Some(entry) = entries.by_number.get_mut(&self.number) {
            entry.session = None;
        }
        entries.session_count -= 1;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut entries = self.registry.lock();
        entries.by_number.remove(&self.number);
        entries.leave_login(self.number);
        drop(entries);
        self.registry.ended.notify_all();
    }
}
