//! Plays a plan on a session.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use onetrip_wire::pg::{CommandComplete, backend};

use super::{Client, Rows, refusal};
use crate::LabError;
use crate::plan::{Act, Fetch, Kind, Parameter, Plan, Request};
use crate::workload::Sum;

/// The portal that results are fetched from in pieces.
const PORTAL: &[u8] = b"pieces";

/// What a program has read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) rows: u64,
    pub(crate) sum: i64,
    /// Flights that it has sent: trips, as the program itself sees them.
    pub(crate) flights: u64,
}

/// A session that plays plans, and what it remembers between their acts.
#[derive(Debug)]
pub(crate) struct Player<'s> {
    client: Client,
    stopped: &'s AtomicBool,
    kept: Rows,
    reply: Rows,
    last: Vec<u8>,
    values: Vec<u8>,
    /// Name of the statement that is being bound.
    name: Vec<u8>,
    answer: Answer,
}

/// A row that a request is for.
#[derive(Clone, Copy)]
struct For<'r> {
    rows: &'r Rows,
    row: usize,
}

impl<'s> Player<'s> {
    pub(crate) fn new(client: Client, stopped: &'s AtomicBool) -> Self {
        Self {
            client,
            stopped,
            kept: Rows::default(),
            reply: Rows::default(),
            last: Vec::new(),
            values: Vec::new(),
            name: Vec::new(),
            answer: Answer::default(),
        }
    }

    /// Most bytes that it has held at once.
    pub(crate) fn memory_max(&self) -> usize {
        self.client.memory_max
    }

    pub(crate) fn close(self) {
        self.client.close();
    }

    /// Plays the plan once.
    pub(crate) fn play(&mut self, plan: &Plan) -> Result<Answer, LabError> {
        self.answer = Answer::default();
        for act in 0..plan.acts.len() {
            self.play_act(plan, act)?;
        }
        Ok(self.answer)
    }

    /// Plays one act, which the plan has to have.
    pub(crate) fn play_act(&mut self, plan: &Plan, act: usize) -> Result<(), LabError> {
        match &plan.acts[act] {
            Act::Flight(requests) => self.flight(plan, requests.iter().map(|request| (request, None))),
            Act::Fetch(fetch) => self.fetch(plan, fetch),
            Act::Exchange { .. } => Err(LabError::Database("a database does not send bytes back".to_owned())),
            Act::ForEach { request, rows_max, per_trip } => {
                let kept = std::mem::take(&mut self.kept);
                let done = self.for_each(plan, request, &kept, (*rows_max, *per_trip));
                self.kept = kept;
                done
            }
        }
    }

    fn for_each(
        &mut self,
        plan: &Plan,
        request: &Request,
        rows: &Rows,
        (rows_max, per_trip): (usize, usize),
    ) -> Result<(), LabError> {
        let count = rows.len().min(rows_max);
        for first in (0..count).step_by(per_trip) {
            let these = first..count.min(first + per_trip);
            self.flight(plan, these.map(|row| (request, Some(For { rows, row }))))?;
        }
        Ok(())
    }

    /// Sends these requests in one write and reads all replies.
    fn flight<'r>(
        &mut self,
        plan: &Plan,
        requests: impl Iterator<Item = (&'r Request, Option<For<'r>>)> + Clone,
    ) -> Result<(), LabError> {
        let (mut syncs, mut is_open) = (0, false);
        for (request, row) in requests.clone() {
            match &request.kind {
                Kind::Query(text) => {
                    if std::mem::take(&mut is_open) {
                        self.client.put_sync();
                        syncs += 1;
                    }
                    self.client.put_query(text);
                    syncs += 1;
                }
                Kind::Execute { .. } => {
                    self.put_bound(plan, request, row, b"")?;
                    self.client.put_execute(b"", None);
                    is_open = true;
                }
            }
        }
        if is_open {
            self.client.put_sync();
            syncs += 1;
        }
        self.send()?;
        self.read_replies(plan, requests.map(|(request, _)| request), syncs).map(|_| ())
    }

    fn put_bound(
        &mut self,
        plan: &Plan,
        request: &Request,
        row: Option<For<'_>>,
        portal: &[u8],
    ) -> Result<(), LabError> {
        let Kind::Execute { statement, parameters, uncached, binary } = &request.kind else { return Ok(()) };
        self.name.clear();
        if !uncached {
            // Writing into memory does not fail.
            let _ = write!(self.name, "s{statement}");
        }
        self.client.put_parse(*statement, &self.name, &plan.statements[*statement]);
        self.values.clear();
        self.values.extend_from_slice(&(parameters.len() as u16).to_be_bytes());
        for parameter in parameters {
            let array;
            let value = match (parameter, row) {
                (Parameter::Fixed(text), _) => Some(text.as_bytes()),
                (Parameter::Last, _) => Some(self.last.as_slice()),
                (Parameter::Kept(column), _) => {
                    array = self.kept.array(*column)?;
                    Some(array.as_slice())
                }
                (Parameter::Column(column), Some(row)) => row.rows.value(row.row, *column)?,
                (Parameter::Column(_), None) => None,
            };
            let length = value.map_or(-1, |value| value.len() as i32);
            self.values.extend_from_slice(&length.to_be_bytes());
            self.values.extend_from_slice(value.unwrap_or_default());
        }
        self.client.put_bind(portal, &self.name, &self.values, *binary)?;
        self.client.put_describe(portal);
        Ok(())
    }

    fn fetch(&mut self, plan: &Plan, fetch: &Fetch) -> Result<(), LabError> {
        // One of an earlier fetch may still be there.
        self.client.put_close(PORTAL);
        self.put_bound(plan, &fetch.request, None, PORTAL)?;
        let mut piece = Rows::default();
        loop {
            self.client.put_execute(PORTAL, fetch.piece);
            self.client.put_sync();
            self.send()?;
            let is_all = self.read_replies(plan, std::iter::once(&fetch.request), 1)?;
            std::mem::swap(&mut piece, &mut self.reply);
            for row in (0..piece.len()).step_by(fetch.every) {
                for request in &fetch.each {
                    self.flight(plan, std::iter::once((request, Some(For { rows: &piece, row }))))?;
                }
            }
            if is_all {
                return Ok(());
            }
        }
    }

    fn send(&mut self) -> Result<(), LabError> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(LabError::Stopped);
        }
        self.answer.flights += 1;
        self.client.send(self.kept.held() + self.reply.held())
    }

    /// Reads up to the last of so many ReadyForQuery; tells whether the last request is done.
    fn read_replies<'r>(
        &mut self,
        plan: &Plan,
        mut requests: impl Iterator<Item = &'r Request>,
        syncs: usize,
    ) -> Result<bool, LabError> {
        let mut current = requests.next();
        let (mut ready, mut is_done, mut refused) = (0, true, None);
        self.reply.clear();
        while ready < syncs {
            let header = self.client.next_header()?;
            let body = self.client.body(&header);
            match header.tag {
                backend::DATA_ROW => self.reply.push(body),
                backend::COMMAND_COMPLETE | backend::PORTAL_SUSPENDED | backend::EMPTY_QUERY_RESPONSE => {
                    is_done = header.tag != backend::PORTAL_SUSPENDED;
                    if header.tag == backend::COMMAND_COMPLETE {
                        CommandComplete::decode(body)?;
                    }
                    if let Some(request) = current {
                        self.take_reply(request)?;
                    }
                    current = requests.next();
                    if current.is_some() {
                        self.reply.clear();
                    }
                }
                backend::ERROR_RESPONSE => {
                    let text = current.map_or("", |request| request.text(plan));
                    refused = Some(refusal(text, body)?);
                }
                backend::READY_FOR_QUERY => ready += 1,
                _ => {}
            }
            self.client.skip(&header);
        }
        let held = self.kept.held() + self.reply.held();
        self.client.note_memory(held);
        refused.map_or(Ok(is_done), Err)
    }

    /// Books what a request was answered with.
    fn take_reply(&mut self, request: &Request) -> Result<(), LabError> {
        self.answer.rows += self.reply.len() as u64;
        if let Some(sum) = request.sum {
            for row in 0..self.reply.len() {
                let value = self.reply.last_value(row)?.unwrap_or_default();
                self.answer.sum += match sum {
                    Sum::Length => value.len() as i64,
                    Sum::Number => {
                        std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
                    }
                };
            }
        }
        if self.reply.len() > 0 {
            self.last.clear();
            let first = self.reply.value(0, 0)?.unwrap_or_default();
            // A large object is no parameter of anything.
            self.last.extend_from_slice(&first[..first.len().min(64)]);
        }
        if request.keep {
            self.kept.clone_from(&self.reply);
        }
        Ok(())
    }
}
