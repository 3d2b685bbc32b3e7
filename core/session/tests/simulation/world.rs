//! A client, a session and a server on one virtual clock: bytes travel in pieces of any size, with any delay, and
//! everything that can be known about the outcome is checked.

use std::collections::VecDeque;
use std::time::Duration;

use onetrip_ledger::trace::{Records, decode_block};
use onetrip_ledger::{Analyzer, Moment, Mutes, Record, TraceError, ValueHasher};
use onetrip_session::{INSPECT_BYTES_MAX, Remedies, Session, SessionConfig};
use onetrip_wire::pg::{BackendKeyData, backend};

use crate::backend::{Backend, Fate, PROCESS_ID};
use crate::books::{Books, Check};
use crate::gateway::{Bug, Gateway};
use crate::message::{Kind, Message};
use crate::random::Random;
use crate::script::{Limits, Script, Step};

const SHOWN_KEY: [u8; 4] = *b"mine";
/// What a driver keeps of one direction, as the gateway's does.
const BUFFER_BYTES: usize = 2 * INSPECT_BYTES_MAX;
/// No schedule needs more turns.
const TURNS_MAX: u64 = 3_000_000;

/// What a schedule came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) messages: usize,
    pub(crate) exchanges: usize,
    pub(crate) trips: u64,
}

/// Bytes on their way, in order.
#[derive(Debug, Default)]
struct Pipe {
    pieces: VecDeque<(u64, Vec<u8>)>,
    last_at: u64,
}

impl Pipe {
    /// Sends bytes in pieces of at most `piece`, each with its own delay.
    fn send(&mut self, bytes: &[u8], now: u64, piece: u64, random: &mut Random) {
        let mut rest = bytes;
        while !rest.is_empty() {
            // Long messages do not travel in single bytes: it would take for ever and show nothing new.
            let least = rest.len() as u64 / 200;
            let count = (least + 1 + random.below(piece)).min(rest.len() as u64) as usize;
            let (head, tail) = rest.split_at(count);
            rest = tail;
            self.last_at = self.last_at.max(now + random.below(30_000));
            self.pieces.push_back((self.last_at, head.to_vec()));
        }
    }

    fn next_at(&self) -> Option<u64> {
        self.pieces.front().map(|(at, _)| *at)
    }
}

pub(crate) struct World {
    random: Random,
    now: u64,
    piece: u64,
    messages: Vec<Message>,
    /// End of each message among all bytes that the client sends.
    ends: Vec<usize>,
    steps: VecDeque<Step>,
    gateway: Gateway,
    hasher: ValueHasher,
    backend: Backend,
    books: Books,
    /// From client, to server, from server, to client.
    pipes: [Pipe; 4],
    up: Vec<u8>,
    down: Vec<u8>,
    sent: usize,
    think_until: u64,
    encryption_refused: bool,
    /// Bytes of the client that the gateway has decided on, and messages that were thereby sent.
    passed_up: usize,
    begun_up: usize,
    passed_down: usize,
    begun_down: usize,
    /// What each message makes leave the server's output buffer.
    releases: Vec<usize>,
    released: usize,
    at_server: Vec<u8>,
    checked_at_server: usize,
    taken: usize,
    at_client: Vec<u8>,
    /// What the server has to get, and the end of each message in it.
    for_server: Vec<u8>,
    server_ends: Vec<usize>,
    /// What the client has to get of the replies released, with the end of each, and where each ends as it was sent.
    for_client: Vec<u8>,
    client_ends: Vec<usize>,
    reply_ends: Vec<usize>,
}

/// Runs one schedule; what is wrong, if anything is.
pub(crate) fn simulate(random: Random, limits: Limits, bug: Option<Bug>) -> Result<Outcome, String> {
    World::new(random, limits, bug).run()
}

impl World {
    fn new(mut random: Random, limits: Limits, bug: Option<Bug>) -> Self {
        let script = Script::generate(&mut random, limits);
        let messages: Vec<Message> = script.messages().cloned().collect();
        let mut end = 0;
        let ends = messages.iter().map(|message| {
            end += message.bytes.len();
            end
        });
        let ends = ends.collect();
        let mut for_server = Vec::new();
        let server_ends = messages.iter().map(|message| {
            if is_for_server(message) {
                for_server.extend_from_slice(&message.bytes);
            }
            for_server.len()
        });
        let server_ends = server_ends.collect();
        let hasher = ValueHasher::new();
        let config = SessionConfig {
            hasher: hasher.clone(),
            cancel_key: SHOWN_KEY,
            keep_values: false,
            remedies: Remedies::default(),
            common: Default::default(),
            verify: None,
            lobs: Default::default(),
            isolation: None,
            question_burst: Duration::from_secs(60),
            texts: Default::default(),
            private: *b"not told",
            overflow: None,
        };
        let noise = *random.pick(&[0, 30, 6]);
        let piece = *random.pick(&[100_000, 1, 3, 40]);
        Self {
            random,
            now: 0,
            piece,
            messages,
            ends,
            steps: script.steps.into(),
            gateway: Gateway::new(Session::new(config), bug),
            hasher,
            backend: Backend::new(noise),
            books: Books::default(),
            pipes: Default::default(),
            up: Vec::new(),
            down: Vec::new(),
            sent: 0,
            think_until: 0,
            encryption_refused: false,
            passed_up: 0,
            begun_up: 0,
            passed_down: 0,
            begun_down: 0,
            releases: Vec::new(),
            released: 0,
            at_server: Vec::new(),
            checked_at_server: 0,
            taken: 0,
            at_client: Vec::new(),
            for_server,
            server_ends,
            for_client: Vec::new(),
            client_ends: Vec::new(),
            reply_ends: Vec::new(),
        }
    }

    fn run(mut self) -> Result<Outcome, String> {
        for _ in 0..TURNS_MAX {
            self.client_acts()?;
            let next = (0..4).filter_map(|pipe| Some((self.pipes[pipe].next_at()?, pipe))).min();
            let think = (self.think_until > self.now).then_some(self.think_until);
            match (next, think) {
                (Some((at, pipe)), think) if think.is_none_or(|think| at <= think) => {
                    self.now = self.now.max(at);
                    self.deliver(pipe)?;
                }
                (_, Some(think)) => self.now = think,
                (_, None) => return self.check_end(),
            }
        }
        Err("the schedule does not end".into())
    }

    fn deliver(&mut self, pipe: usize) -> Result<(), String> {
        let Some((_, bytes)) = self.pipes[pipe].pieces.pop_front() else { return Ok(()) };
        match pipe {
            0 => {
                self.up.extend_from_slice(&bytes);
                self.gateway_up()?;
            }
            1 => {
                self.at_server.extend_from_slice(&bytes);
                self.server_reads()?;
            }
            2 => {
                self.down.extend_from_slice(&bytes);
                self.gateway_down()?;
                self.gateway_up()?; // what was held until the session serves
            }
            _ => {
                let start = self.at_client.len();
                self.at_client.extend_from_slice(&bytes);
                if self.for_client.get(start..self.at_client.len()) != Some(&bytes[..]) {
                    return Err(format!("the client got other bytes behind {start}"));
                }
            }
        }
        Ok(())
    }

    /// The client does what it can do without waiting.
    fn client_acts(&mut self) -> Result<(), String> {
        while self.think_until <= self.now {
            match self.steps.front() {
                None => break,
                Some(Step::AwaitAll) if !self.is_all_answered() => break,
                Some(Step::AwaitCopy) if !self.is_copy_asked() => break,
                Some(Step::AwaitRefusal) if !self.encryption_refused => break,
                _ => {}
            }
            match self.steps.pop_front() {
                Some(Step::Send(message)) => {
                    self.sent += 1;
                    self.pipes[0].send(&message.bytes, self.now, self.piece, &mut self.random);
                }
                Some(Step::Think(time)) => self.think_until = self.now + time,
                Some(Step::AwaitAll) => {
                    if self.gateway.session.is_waiting() && !self.backend.is_dead() {
                        return Err("something is owed although the client is idle".into());
                    }
                    self.backend.make_noise(&mut self.random);
                    self.backend.flushed = self.backend.replies.len();
                    self.release(self.backend.flushed);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn is_all_answered(&self) -> bool {
        self.taken == self.sent
            && self.pipes.iter().all(|pipe| pipe.pieces.is_empty())
            && self.up.is_empty()
            && self.down.is_empty()
    }

    /// Whether the client has read the answer to the last message that can ask for COPY data.
    fn is_copy_asked(&self) -> bool {
        let asks = |message: &Message| matches!(message.kind, Kind::Query(_) | Kind::Execute(_));
        let Some(asking) = self.messages[..self.sent].iter().rposition(asks) else { return true };
        let Some(fate) = self.backend.fates.get(asking) else { return false };
        let asked = self
            .backend
            .replies
            .iter()
            .position(|reply| reply.answers == Some(asking) && reply.tag == backend::COPY_IN_RESPONSE);
        let read =
            |number: usize| self.client_ends.get(number).is_some_and(|end| *end <= self.at_client.len());
        asked.or(fate.ended_by).is_some_and(read)
    }

    /// Runs the session over what the client sent.
    fn gateway_up(&mut self) -> Result<(), String> {
        let mut still = 0;
        while !self.up.is_empty() {
            let seen = &self.up[..self.up.len().min(BUFFER_BYTES)];
            let turn = self.gateway.client(Moment(self.now), seen).map_err(|error| error.to_string())?;
            let Some(turn) = turn else {
                if seen.len() == BUFFER_BYTES && self.gateway.session.is_serving() {
                    return Err("the session waits for more than a buffer holds".into());
                }
                break;
            };
            still = if turn.used == 0 { still + 1 } else { 0 };
            if still > 2 {
                return Err("the session turns without getting on".into());
            }
            self.up.drain(..turn.used);
            self.passed_up += turn.used;
            self.note_sent();
            if !turn.out.is_empty() {
                self.pipes[1].send(&turn.out, self.now, self.piece, &mut self.random);
            }
            self.empty_outboxes();
            self.check_books()?;
        }
        Ok(())
    }

    /// Tells books and backend of messages whose first byte has passed.
    fn note_sent(&mut self) {
        while self.begun_up < self.messages.len() {
            let start = self.ends[self.begun_up] - self.messages[self.begun_up].bytes.len();
            if start >= self.passed_up {
                break;
            }
            let index = self.begun_up;
            self.begun_up += 1;
            if matches!(&self.messages[index].kind, Kind::Connect(entries) if entries.is_empty()) {
                self.backend.fates.push(Fate::default());
                self.taken += 1;
            } else {
                self.backend.take(index, &self.messages[index], &mut self.random);
            }
            self.releases.push(self.backend.flushed);
            self.books.sent(index, &self.messages, Moment(self.now));
            self.books.settle(&self.backend, Moment(self.now));
        }
    }

    /// Runs the session over what the server sent.
    fn gateway_down(&mut self) -> Result<(), String> {
        while !self.down.is_empty() {
            let seen = &self.down[..self.down.len().min(BUFFER_BYTES)];
            let turn = self.gateway.server(Moment(self.now), seen).map_err(|error| error.to_string())?;
            let Some(turn) = turn else { break };
            self.down.drain(..turn.used);
            self.passed_down += turn.used;
            while self.begun_down < self.reply_ends.len()
                && self.start_of_reply(self.begun_down) < self.passed_down
            {
                self.books.passed(self.begun_down, &self.backend, &self.messages);
                self.begun_down += 1;
                self.books.settle(&self.backend, Moment(self.now));
            }
            self.pipes[3].send(&turn.out, self.now, self.piece, &mut self.random);
            self.empty_outboxes();
            self.check_books()?;
        }
        Ok(())
    }

    fn empty_outboxes(&mut self) {
        let own = std::mem::take(self.gateway.session.to_client());
        self.encryption_refused |= own == b"N";
        if own != b"N" {
            self.pipes[3].send(&own, self.now, self.piece, &mut self.random);
        }
        let own = std::mem::take(self.gateway.session.to_server());
        self.pipes[1].send(&own, self.now, self.piece, &mut self.random);
    }

    fn check_books(&self) -> Result<(), String> {
        let waiting = self.gateway.session.is_waiting();
        if self.books.unanswered() > 0 && !waiting {
            return Err("units are unanswered, and the session waits for nothing".into());
        }
        Ok(())
    }

    fn start_of_reply(&self, number: usize) -> usize {
        number.checked_sub(1).map_or(0, |before| self.reply_ends[before])
    }

    fn server_reads(&mut self) -> Result<(), String> {
        let from = self.checked_at_server;
        if self.for_server.get(from..self.at_server.len()) != Some(&self.at_server[from..]) {
            return Err(format!("the server got other bytes behind {from}"));
        }
        self.checked_at_server = self.at_server.len();
        while self.taken < self.begun_up && self.server_ends[self.taken] <= self.at_server.len() {
            self.release(self.releases[self.taken]);
            self.taken += 1;
        }
        Ok(())
    }

    /// Replies below `limit` leave the server.
    fn release(&mut self, limit: usize) {
        for reply in self.backend.replies.get(self.released..limit).unwrap_or_default() {
            self.pipes[2].send(&reply.bytes, self.now, self.piece, &mut self.random);
            if reply.tag == backend::BACKEND_KEY_DATA {
                BackendKeyData { process_id: PROCESS_ID, key: &SHOWN_KEY }.encode(&mut self.for_client);
            } else {
                self.for_client.extend_from_slice(&reply.bytes);
            }
            self.client_ends.push(self.for_client.len());
            self.reply_ends.push(self.reply_ends.last().unwrap_or(&0) + reply.bytes.len());
        }
        self.released = self.released.max(limit);
    }

    fn check_end(mut self) -> Result<Outcome, String> {
        if !self.steps.is_empty() {
            return Err(format!("the conversation hangs before {:?}", self.steps.front()));
        }
        if self.at_server != self.for_server || self.at_client != self.for_client {
            return Err("bytes are missing at the end".into());
        }
        let dead = self.backend.is_dead();
        if !dead && (self.gateway.session.is_waiting() || self.books.unanswered() > 0) {
            return Err("something is owed at the end".into());
        }
        self.gateway.session.close(Moment(self.now));
        let block = self.gateway.session.stream().take_block();
        self.check_records(&block)?;
        let mut analyzer = Analyzer::new();
        analyzer.block(1, &block).map_err(|error| error.to_string())?;
        let summary = analyzer.finish(&Mutes::default()).summary;
        let books = &self.books;
        let answered_trips = books.answered.len() as u64;
        if summary.units != answered_trips || (!dead && summary.trips.total != books.trips) {
            return Err(format!("{} trips are {} in the report", books.trips, summary.trips.total));
        }
        if summary.unanswered != books.unanswered() as u64 || summary.unasked_replies + summary.undecoded > 0
        {
            return Err(format!("unanswered, unasked or undecoded: {:?}", summary));
        }
        Ok(Outcome { messages: self.messages.len(), exchanges: books.answered.len(), trips: books.trips })
    }

    fn check_records(&self, block: &[u8]) -> Result<(), String> {
        let mut templates = vec![String::new()];
        let mut problem = None;
        let mut answered = self.books.answered.iter();
        decode_block::<TraceError>(&mut Records::default(), 1, block, |record| {
            match record {
                Record::Template { text, .. } => templates.push(String::from_utf8_lossy(text).into_owned()),
                Record::Exchange(exchange) => {
                    let check =
                        Check { messages: &self.messages, templates: &templates, hasher: &self.hasher };
                    let compared = match answered.next() {
                        Some(unit) => unit.compare(exchange, &check),
                        None => Err(format!("an exchange too many: {exchange:?}")),
                    };
                    problem = problem.take().or(compared.err());
                }
                _ => {}
            }
            Ok(())
        })
        .map_err(|error| error.to_string())?;
        match (problem, answered.next()) {
            (Some(problem), _) => Err(problem),
            (None, Some(unit)) => Err(format!("an exchange is missing: {unit:?}")),
            (None, None) => Ok(()),
        }
    }
}

/// A request for encryption is answered by the gateway.
fn is_for_server(message: &Message) -> bool {
    !matches!(&message.kind, Kind::Connect(entries) if entries.is_empty())
}
