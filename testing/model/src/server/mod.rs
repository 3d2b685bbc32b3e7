//! The model of a server: sessions, what they share, and who waits for whom.

mod analysis;
mod backend;
mod catalogue;
mod cursors;
mod evaluate;
mod failure;
mod faults;
mod lexer;
mod locks;
mod parser;
mod protocol;
mod replies;
mod rows;
mod schema;
mod settings;
mod statements;
mod syntax;
mod transaction;
mod value;
mod writes;

pub use schema::{TABLES, TableOf, refill, schema};

use backend::World;
use failure::Failure;
use protocol::Connection;
use settings::Settings;

/// The number of a session.
pub type BackendNumber = usize;

/// A server with its tables as [`schema`] makes them.
///
/// Contract: give bytes with [`Server::receive`], take answers with [`Server::said`] from *every* session, as one that
/// waited may go on. When [`Server::next_deadline`] comes, say so with [`Server::handle_deadline`].
#[derive(Debug)]
pub struct Server {
    world: World,
    connections: Vec<Connection>,
}

impl Server {
    /// A server that nobody has connected to; it answers as this major version of PostgreSQL does.
    pub fn new(version: u32) -> Self {
        Self { world: World::new(version), connections: Vec::new() }
    }

    /// A new session; it waits for a startup packet.
    pub fn connect(&mut self) -> BackendNumber {
        self.connections.push(Connection::new(self.connections.len()));
        self.connections.len() - 1
    }

    /// Bytes of a client come, at this time in nanoseconds.
    pub fn receive(&mut self, now: u64, number: BackendNumber, bytes: &[u8]) {
        self.world.now = now;
        let connection = &mut self.connections[number];
        connection.receive(bytes);
        if connection.blocked.is_none() {
            self.advance(number);
        }
        self.settle();
    }

    /// What a session's client is told.
    pub fn said(&mut self, number: BackendNumber) -> Vec<u8> {
        std::mem::take(&mut self.connections[number].said)
    }

    /// Whether a session waits for others.
    pub fn is_blocked(&self, number: BackendNumber) -> bool {
        self.connections[number].blocked.is_some()
    }

    /// Whether a session has done all that it was asked to.
    pub fn is_idle(&self, number: BackendNumber) -> bool {
        self.connections[number].is_idle()
    }

    /// Statements that a session has run, the private ones of a gateway among them.
    pub fn ran(&self, number: BackendNumber) -> u64 {
        self.connections[number].ran
    }

    /// When a session has waited for too long, in nanoseconds.
    pub fn next_deadline(&self) -> Option<u64> {
        self.connections.iter().flat_map(|one| [deadline(one), one.idle_deadline()]).flatten().min()
    }

    /// Time has come this far.
    pub fn handle_deadline(&mut self, now: u64) {
        self.world.now = now;
        for number in 0..self.connections.len() {
            if self.connections[number].idle_deadline().is_some_and(|at| at <= now) {
                self.connections[number].end_idle(&mut self.world);
            }
            if deadline(&self.connections[number]).is_some_and(|at| at <= now) {
                let failure = Failure::new("55P03", "canceling statement due to lock timeout");
                self.connections[number].fail_blocked(&mut self.world, &failure);
                self.advance(number);
            }
        }
        self.settle();
    }

    /// The server reads its configuration anew: a parameter has this value for sessions that have set none. Each sees it
    /// with its next message.
    pub fn configure(&mut self, name: &'static str, value: &'static str) {
        for connection in &mut self.connections {
            connection.configured = Some((name, value));
        }
    }

    /// The next ROLLBACK TO a savepoint whose name begins so fails for want of memory.
    pub fn refuse_rollback_to(&mut self, beginning: &'static str) {
        self.world.faults.back_to = Some(beginning);
    }

    /// A session hears of a notification right ahead of its next message, or once its transaction is over.
    pub fn notify(&mut self, number: BackendNumber) {
        self.connections[number].is_notified = true;
    }

    /// The next piece of a result that is read behind a savepoint whose name begins so fails for want of memory.
    pub fn fail_ahead(&mut self, beginning: &'static str) {
        self.world.faults.ahead = Some(beginning);
    }

    /// Pieces that have failed so.
    pub fn failed_ahead(&self) -> u64 {
        self.world.faults.failed_ahead
    }

    /// It warns of each answer that has nothing but the row of `p` with this key.
    pub fn warn_of(&mut self, key: i64) {
        self.world.faults.warns = Some(key);
    }

    /// A cancel request meets the next statement of a session.
    pub fn cancel(&mut self, number: BackendNumber) {
        self.world.faults.cancelled = Some(number);
    }

    /// No more does it: the session has nothing to do.
    pub fn forget_cancel(&mut self) {
        self.world.faults.cancelled = None;
    }

    /// The next statement of a session that begins so fails for want of memory: START TRANSACTION, COMMIT, DISCARD ALL or
    /// RESET ALL.
    pub fn refuse(&mut self, number: BackendNumber, beginning: &'static str) {
        self.world.faults.refuse(number, beginning);
    }

    /// From now on nobody may read or write a table.
    pub fn revoke(&mut self, table: &str) {
        self.world.faults.revoke(table);
    }

    /// The column `v` of `w` has the type bigint.
    pub fn widen(&mut self) {
        self.world.is_wide = true;
    }

    /// It has the function `moves`, which moves the cursor `c1`.
    pub fn have_moves(&mut self) {
        self.world.has_moves = true;
    }

    /// It follows another server from its start on, and writes nothing.
    pub fn stand_by(&mut self) {
        self.world.faults.stands_by = true;
    }

    /// A pooler gives one session of it to all clients, transaction by transaction; no program may begin one of its own.
    pub fn share_one_session(&mut self) {
        self.world.faults.shared = Some(Settings::default());
    }

    /// How many transactions that wrote have been committed: [`Server::rows`] changes only with it.
    pub fn commits(&self) -> u64 {
        self.world.rows.now()
    }

    /// The rows that a snapshot of now sees, in lines.
    pub fn rows(&self) -> Vec<String> {
        self.world.rows.shown()
    }

    /// What there is of a session: status, settings, statements, portals, savepoints, snapshot and locks, in lines. Names
    /// that begin with `private` are left out.
    pub fn state(&self, number: BackendNumber, private: &str) -> Vec<String> {
        let connection = &self.connections[number];
        let mut out = connection.shown(private);
        let keys = self.world.advisory.iter().filter(|(_, holder)| **holder == number);
        out.extend(keys.map(|(key, _)| format!("advisory lock {key}")));
        out.extend(self.world.locks.shown(number));
        out
    }

    fn advance(&mut self, number: usize) {
        self.connections[number].advance(&mut self.world);
        if self.is_deadlocked(number) {
            let failure = Failure::new("40P01", "deadlock detected");
            self.connections[number].fail_blocked(&mut self.world, &failure);
            self.advance(number);
        }
    }

    /// Lets those go on who waited for what is over, the first that waits first.
    fn settle(&mut self) {
        loop {
            let waits = |number: &usize| Some((self.connections[*number].blocked.as_ref()?.turn, *number));
            let mut waiting: Vec<_> =
                (0..self.connections.len()).filter_map(|number| waits(&number)).collect();
            waiting.sort_unstable();
            let went_on = waiting.into_iter().any(|(_, number)| {
                self.advance(number);
                self.connections[number].blocked.is_none()
            });
            if !went_on {
                return;
            }
        }
    }

    /// Whether a session waits for itself in the end.
    fn is_deadlocked(&self, number: usize) -> bool {
        let ahead = |of: usize| {
            self.connections[of].blocked.as_ref().map_or_else(Vec::new, |blocked| blocked.by.clone())
        };
        let mut open = ahead(number);
        let mut seen = Vec::new();
        while let Some(next) = open.pop() {
            if next == number {
                return true;
            }
            if !seen.contains(&next) {
                seen.push(next);
                open.extend(ahead(next));
            }
        }
        false
    }
}

fn deadline(connection: &Connection) -> Option<u64> {
    let since = connection.blocked.as_ref()?.since;
    Some(since + connection.backend.settings.lock_timeout()?)
}
