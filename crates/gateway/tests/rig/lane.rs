//! One session of a running program.

use std::time::Duration;

use onetrip_wire::pg::backend;

use super::step::{Step, Wait};
use crate::common::client::{Endpoint, RawClient};
use crate::common::messages::{startup_with, sync};
use crate::common::transcript::{Message, Transcript};

/// A connection, and what it waits for.
#[derive(Debug)]
pub(crate) struct Lane {
    client: RawClient,
    /// The server's process, as the server says it.
    pub(crate) process: i32,
    /// Messages that had come before the last step was sent.
    start: usize,
    awaited: Awaited,
    /// An error behind a Flush: the server skips everything until a Sync.
    skips: bool,
    is_blocked: bool,
    /// Steps since its transaction has failed.
    failed: usize,
}

#[derive(Debug, Clone, Copy)]
enum Awaited {
    Ready(usize),
    Stop(&'static [u8]),
}

impl Lane {
    /// Opens a session that the server knows by `name`.
    pub(crate) fn open(endpoint: &Endpoint, database: &str, name: &str) -> Self {
        let mut client = RawClient::connect(endpoint);
        client.send(&startup_with(&[
            ("user", "onetrip"),
            ("database", database),
            ("application_name", name),
        ]));
        client.await_count(backend::READY_FOR_QUERY, 1);
        let start = client.len();
        Self {
            client,
            process: 0,
            start,
            awaited: Awaited::Ready(1),
            skips: false,
            is_blocked: false,
            failed: 0,
        }
    }

    /// Sends a step. A client whose Flush was answered by an error says Sync before anything else.
    pub(crate) fn send(&mut self, step: &Step) {
        self.start = self.client.len();
        let ready = self.client.count(backend::READY_FOR_QUERY);
        if self.skips && !matches!(step.wait, Wait::Ready(_)) {
            self.skips = false;
            self.awaited = Awaited::Ready(ready + 1);
            self.client.send(&sync());
            return;
        }
        let recovery = if self.skips { sync() } else { Vec::new() };
        self.awaited = match step.wait {
            Wait::Ready(count) => Awaited::Ready(ready + count + usize::from(self.skips)),
            Wait::Executed | Wait::Described => Awaited::Stop(step.wait.stops()),
        };
        self.skips = false;
        self.client.send(&[recovery, step.bytes.clone()].concat());
    }

    /// Whether the step's answer comes within `limit`, or the end of the connection.
    pub(crate) fn is_done_within(&mut self, limit: Duration) -> bool {
        let (awaited, start) = (self.awaited, self.start);
        let is_done = self.client.waits_until(limit, |transcript, ended| {
            ended
                || match awaited {
                    Awaited::Ready(count) => transcript.count(backend::READY_FOR_QUERY) >= count,
                    Awaited::Stop(tags) => {
                        transcript.messages[start..].iter().any(|message| tags.contains(&message.tag))
                    }
                }
        });
        if is_done && matches!(awaited, Awaited::Stop(_)) {
            let messages = self.client.messages_from(start);
            self.skips |= messages.iter().any(|message| message.tag == backend::ERROR_RESPONSE);
        }
        is_done
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    pub(crate) fn set_blocked(&mut self, is_blocked: bool) {
        self.is_blocked = is_blocked;
    }

    /// Steps since its transaction has failed.
    pub(crate) fn has_failed_for(&self) -> usize {
        self.failed
    }

    pub(crate) fn count_failed(&mut self, has_failed: bool) {
        self.failed = if has_failed { self.failed + 1 } else { 0 };
    }

    /// Whom to cancel.
    pub(crate) fn cancel_request(&self) -> Vec<u8> {
        self.client.cancel_request()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.client.ends_within(Duration::ZERO)
    }

    /// What the last ReadyForQuery said.
    pub(crate) fn status(&self) -> u8 {
        let messages = self.client.messages_from(0);
        let last = messages.iter().rev().find(|message| message.tag == backend::READY_FOR_QUERY);
        last.and_then(|ready| ready.body.first().copied()).unwrap_or(b'?')
    }

    /// Whether a Flush was the last thing, so that the group is still open.
    pub(crate) fn is_amid_group(&self) -> bool {
        matches!(self.awaited, Awaited::Stop(_))
    }

    /// Where the messages of the last step begin.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    pub(crate) fn messages_from(&self, place: usize) -> Vec<Message> {
        self.client.messages_from(place)
    }

    /// Ends the session; everything that it has seen.
    pub(crate) fn finish(mut self, farewell: &[u8]) -> Transcript {
        self.client.send(farewell);
        self.client.finish()
    }
}
