//! One session of a running program.

use std::time::Duration;

use onetrip_wire::pg::{ErrorResponse, backend};

use super::asked::Asked;
use super::step::Step;
use crate::common::client::{Endpoint, RawClient};
use crate::common::messages::{query, startup_with};
use crate::common::transcript::{Message, Transcript};

/// Longest time until a cancel request was taken.
const CANCEL_TAKEN_WITHIN: Duration = Duration::from_secs(2);

/// A connection, and what it waits for.
#[derive(Debug)]
pub(crate) struct Lane {
    client: RawClient,
    endpoint: Endpoint,
    /// The server's process, as the server says it.
    pub(crate) process: i32,
    /// Messages that had come before the last step was sent.
    start: usize,
    asked: Asked,
    is_blocked: bool,
    /// Steps since its transaction has failed.
    failed: usize,
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
        let endpoint = endpoint.clone();
        Self {
            client,
            endpoint,
            process: 0,
            start,
            asked: Asked::to_be_let_in(),
            is_blocked: false,
            failed: 0,
        }
    }

    /// An empty query, before the program begins.
    pub(crate) fn greet(&mut self) {
        self.client.send(&query(""));
        self.client.await_count(backend::READY_FOR_QUERY, 2);
        self.start = self.client.len();
    }

    /// Sends a step.
    pub(crate) fn send(&mut self, step: &Step) {
        self.start = self.client.len();
        let ready = self.client.count(backend::READY_FOR_QUERY);
        let bytes = self.asked.send(step, ready);
        self.client.send(&bytes);
    }

    /// Whether the step's answer comes within `limit`, or the end of the connection: behind an error that ends the session
    /// nothing else comes.
    pub(crate) fn is_done_within(&mut self, limit: Duration) -> bool {
        let (asked, start) = (self.asked, self.start);
        let is_done = self.client.waits_until(limit, |transcript, ended| {
            let new = &transcript.messages[start..];
            let tags = new.iter().map(|message| message.tag);
            ended
                || !new.iter().any(ends_session)
                    && asked.is_answered(transcript.count(backend::READY_FOR_QUERY), tags)
        });
        if is_done {
            self.asked.answered(self.client.messages_from(start).iter().map(|message| message.tag));
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

    /// Asks for whatever it runs to be cancelled, and waits until the request was taken: the server has sent its signal
    /// before it hangs up.
    pub(crate) fn cancel(&self) {
        let mut client = RawClient::connect(&self.endpoint);
        client.send(&self.cancel_request());
        client.ends_within(CANCEL_TAKEN_WITHIN);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.client.ends_within(Duration::ZERO)
    }

    /// What the last ReadyForQuery said.
    pub(crate) fn status(&self) -> u8 {
        self.client.status().unwrap_or(b'?')
    }

    /// Whether a Flush was the last thing, so that the group is still open.
    pub(crate) fn is_amid_group(&self) -> bool {
        self.asked.is_amid_group()
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

/// Whether this is an error behind which the server hangs up.
fn ends_session(message: &Message) -> bool {
    message.tag == backend::ERROR_RESPONSE
        && ErrorResponse::decode(&message.body).is_ok_and(|error| error.is_fatal())
}
