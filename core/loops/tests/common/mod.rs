//! A program, a gateway and a server on a virtual clock: the program asks one statement after the other, the gateway
//! answers from memory or sends it on, the server answers in order after half a round trip each way.

#![allow(dead_code)]

use std::collections::VecDeque;
use std::time::Duration;

use onetrip_loops::{
    Answer, Arrival, Asking, Buffer, Column, Counters, Edges, Flight, Form, Format, Origin, Outcome,
    Predictor, Template, Ticket, Value,
};

pub(crate) const US: Duration = Duration::from_micros(1);
pub(crate) const MS: Duration = Duration::from_millis(1);

/// A value that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) bytes: Option<Vec<u8>>,
    pub(crate) form: Form,
}

impl Owned {
    pub(crate) fn borrowed(&self) -> Value<'_> {
        Value { bytes: self.bytes.as_deref(), form: self.form }
    }
}

pub(crate) fn text(value: impl ToString) -> Owned {
    Owned { bytes: Some(value.to_string().into_bytes()), form: Form::Text }
}

pub(crate) fn number(value: i64) -> Owned {
    Owned { bytes: Some(value.to_string().into_bytes()), form: Form::Number }
}

pub(crate) fn quoted(value: &str) -> Owned {
    Owned { bytes: Some(value.replace('\'', "''").into_bytes()), form: Form::Quoted }
}

pub(crate) fn int8(value: i64) -> Owned {
    Owned { bytes: Some(value.to_be_bytes().to_vec()), form: Form::Binary(20) }
}

pub(crate) fn null() -> Owned {
    Owned { bytes: None, form: Form::Text }
}

/// The integer that a value says, in whatever form.
pub(crate) fn integer(value: &Owned) -> i64 {
    let bytes = value.bytes.as_deref().unwrap_or_default();
    match value.form {
        Form::Binary(_) => i64::from_be_bytes(bytes.try_into().unwrap()),
        _ => std::str::from_utf8(bytes).unwrap().parse().unwrap(),
    }
}

pub(crate) type Cells = Vec<Option<Vec<u8>>>;

/// A result as the program gets it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Cells>,
}

impl Rows {
    pub(crate) fn new(columns: &[Column]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn with(mut self, row: &[Option<String>]) -> Self {
        self.rows.push(row.iter().map(|cell| cell.clone().map(String::into_bytes)).collect());
        self
    }

    /// The integer in a column, in whatever format.
    pub(crate) fn integer(&self, row: usize, column: usize) -> i64 {
        let bytes = self.rows[row][column].as_deref().unwrap();
        match (self.columns[column].format, bytes.len()) {
            (Format::Binary, 4) => i32::from_be_bytes(bytes.try_into().unwrap()).into(),
            (Format::Binary, _) => i64::from_be_bytes(bytes.try_into().unwrap()),
            (Format::Text, _) => std::str::from_utf8(bytes).unwrap().parse().unwrap(),
        }
    }

    pub(crate) fn text(&self, row: usize, column: usize) -> Option<&str> {
        self.rows[row][column].as_deref().map(|bytes| std::str::from_utf8(bytes).unwrap())
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for cell in self.rows.iter().flatten() {
            bytes.extend_from_slice(cell.as_deref().unwrap_or(b"NULL"));
            bytes.push(0);
        }
        bytes
    }
}

pub(crate) const INT4_TEXT: Column = Column { oid: 23, format: Format::Text };
pub(crate) const INT4: Column = Column { oid: 23, format: Format::Binary };
pub(crate) const TEXT: Column = Column { oid: 25, format: Format::Text };

type Server = Box<dyn Fn(u32, &[Owned]) -> Rows>;

struct Answered {
    at: Duration,
    ticket: Ticket,
    rows: Rows,
    is_guess: bool,
}

/// What it came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Times the program waited for the server.
    pub(crate) waits: u64,
    /// Statements of the program.
    pub(crate) asked: u64,
    /// Of these, sent to the server.
    pub(crate) real: u64,
}

/// Everything between the program and the server, and the server.
pub(crate) struct Sim {
    pub(crate) predictor: Predictor,
    pub(crate) buffer: Buffer,
    pub(crate) now: Duration,
    pub(crate) told: Told,
    pub(crate) round_trip: Duration,
    pub(crate) execution: Duration,
    /// The program's own time for each statement.
    pub(crate) think: Duration,
    /// Flights as they left: how many guesses each.
    pub(crate) flights: Vec<usize>,
    /// Guesses as they left, in order.
    pub(crate) sent: Vec<(u32, Vec<Owned>)>,
    flight: Flight,
    server: Server,
    server_free_at: Duration,
    answers: VecDeque<Answered>,
    is_failing: bool,
    /// What the program's own statements seem to take longer; then nothing is known of guesses.
    noise: Option<Duration>,
}

impl Sim {
    pub(crate) fn new(
        edges: Edges,
        round_trip: Duration,
        server: impl Fn(u32, &[Owned]) -> Rows + 'static,
    ) -> Self {
        let mut predictor = Predictor::new(edges);
        predictor.set_round_trip(round_trip);
        Self {
            predictor,
            buffer: Buffer::new(),
            now: Duration::from_secs(1),
            told: Told::default(),
            round_trip,
            execution: 40 * US,
            think: 100 * US,
            flights: Vec::new(),
            sent: Vec::new(),
            flight: Flight::default(),
            server: Box::new(server),
            server_free_at: Duration::ZERO,
            answers: VecDeque::new(),
            is_failing: false,
            noise: None,
        }
    }

    /// Nothing is guessed.
    pub(crate) fn only_observe(&mut self) {
        self.predictor.set_round_trip(Duration::ZERO);
    }

    /// Only the program's own statements are measured, and badly.
    pub(crate) fn measure_badly(&mut self, noise: Duration) {
        self.noise = Some(noise);
    }

    /// From here on the server refuses every guess.
    pub(crate) fn refuse_guesses(&mut self) {
        self.is_failing = true;
    }

    /// The program's statement and its answer.
    pub(crate) fn query(&mut self, template: u32, values: &[Owned]) -> Rows {
        self.run(template, values, true)
    }

    /// The same for one that the server has to see.
    pub(crate) fn query_for_real(&mut self, template: u32, values: &[Owned]) -> Rows {
        self.run(template, values, false)
    }

    /// A read that is not known to be pure.
    pub(crate) fn read_unproven(&mut self, template: u32, values: &[Owned]) -> Rows {
        self.now += self.think;
        self.deliver_until(self.now);
        self.told.asked += 1;
        self.told.waits += 1;
        self.told.real += 1;
        let borrowed: Vec<Value<'_>> = values.iter().map(Owned::borrowed).collect();
        let ticket = self.predictor.source(&Arrival { template: known_as(template), values: &borrowed });
        let rows = self.execute(ticket, template, values, false);
        while self.answers.iter().any(|answer| answer.ticket == ticket) {
            self.deliver_next();
        }
        rows
    }

    fn run(&mut self, template: u32, values: &[Owned], may_serve: bool) -> Rows {
        self.now += self.think;
        self.told.asked += 1;
        self.deliver_until(self.now);
        let request = request(template, values);
        if may_serve {
            if let Some(reply) = self.ask_memory(&request) {
                let rows = (self.server)(template, values);
                assert_eq!(rows.bytes(), reply, "memory answers as the server would");
                return rows;
            }
        }
        self.told.waits += 1;
        self.told.real += 1;
        let borrowed: Vec<Value<'_>> = values.iter().map(Owned::borrowed).collect();
        let arrival = Arrival { template: known_as(template), values: &borrowed };
        let ticket = self.predictor.statement(self.now, &arrival);
        self.buffer.expect(self.now, ticket, &request, Origin::Program);
        let rows = self.execute(ticket, template, values, false);
        self.plan();
        while self.answers.iter().any(|answer| answer.ticket == ticket) {
            self.deliver_next();
        }
        rows
    }

    /// The answer that is there, or on its way.
    fn ask_memory(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        let mut has_waited = false;
        loop {
            let asking = Asking {
                now: self.now,
                in_transaction: true,
                is_pure: true,
                all_rows: true,
                nothing_ahead: true,
                age_max: onetrip_loops::AGE_MAX,
            };
            match self.buffer.ask(request, &asking) {
                Answer::Serve(ticket, reply) => {
                    let reply = reply.to_vec();
                    self.told.waits += u64::from(has_waited);
                    self.predictor.served(self.now, ticket);
                    self.plan();
                    return Some(reply);
                }
                Answer::Wait(_) => {
                    has_waited = true;
                    assert!(self.deliver_next(), "what is waited for is on its way");
                }
                Answer::Forward(_) => return None,
            }
        }
    }

    /// A statement that is not pure.
    pub(crate) fn write(&mut self) {
        self.now += self.think;
        self.deliver_until(self.now);
        self.predictor.flush();
        self.buffer.flush();
        self.server_free_at = self.server_free_at.max(self.now + self.round_trip / 2) + self.execution;
        let done = self.server_free_at + self.round_trip / 2;
        self.told.waits += 1;
        self.told.asked += 1;
        self.told.real += 1;
        self.deliver_until(done);
        self.now = done;
    }

    /// COMMIT.
    pub(crate) fn commit(&mut self) {
        while self.deliver_next() {}
        self.predictor.transaction_ended();
        self.buffer.flush();
        let Counters { guesses, hits, wasted, .. } = self.predictor.counters();
        assert_eq!(guesses, hits + wasted, "every guess was a hit or wasted");
        assert_eq!(self.sent.len() as u64, guesses);
        self.now += self.round_trip;
    }

    pub(crate) fn counters(&self) -> Counters {
        self.predictor.counters()
    }

    /// Fails unless the law holds: wasted guesses are at most `start` or the hits.
    pub(crate) fn assert_law(&self, start: u64) {
        let Counters { hits, wasted, .. } = self.counters();
        assert!(wasted <= start.max(hits), "{:?} with a start of {start}", self.counters());
    }

    fn plan(&mut self) {
        let mut flight = std::mem::take(&mut self.flight);
        self.predictor.plan(&mut flight);
        if !flight.is_empty() {
            self.flights.push(flight.len());
        }
        for guess in flight.guesses() {
            let values: Vec<Owned> = guess
                .values()
                .map(|value| Owned { bytes: value.bytes.map(<[u8]>::to_vec), form: value.form })
                .collect();
            let request = request(guess.template, &values);
            assert!(self.buffer.expect(self.now, guess.ticket, &request, Origin::Guess), "there is room");
            self.execute(guess.ticket, guess.template, &values, true);
            self.sent.push((guess.template, values));
        }
        self.flight = flight;
    }

    fn execute(&mut self, ticket: Ticket, template: u32, values: &[Owned], is_guess: bool) -> Rows {
        let rows = (self.server)(template, values);
        self.server_free_at = self.server_free_at.max(self.now + self.round_trip / 2) + self.execution;
        let at = self.server_free_at + self.round_trip / 2;
        self.answers.push_back(Answered { at, ticket, rows: rows.clone(), is_guess });
        rows
    }

    fn deliver_until(&mut self, when: Duration) {
        let before = self.now;
        while self.answers.front().is_some_and(|answer| answer.at <= when) {
            self.deliver_next();
        }
        self.now = self.now.max(before).max(when);
    }

    /// The next answers reach the gateway, all that come together; it may send more.
    fn deliver_next(&mut self) -> bool {
        let Some(first) = self.answers.front().map(|answer| answer.at) else {
            return false;
        };
        let before = self.now;
        self.now = self.now.max(first);
        while self.answers.front().is_some_and(|answer| answer.at <= first + 5 * US) {
            let answer = self.answers.pop_front().unwrap();
            self.take(&answer);
        }
        if before < first {
            self.plan();
        } else {
            self.now = before;
            self.plan();
        }
        true
    }

    fn take(&mut self, answer: &Answered) {
        if answer.is_guess && self.is_failing {
            self.predictor.failed(answer.ticket);
            return self.buffer.fail(answer.ticket);
        }
        if self.predictor.wants_rows(answer.ticket) {
            for row in &answer.rows.rows {
                self.predictor.result_row_as_sent(answer.ticket, &answer.rows.columns, &sent(row));
            }
        }
        let bytes = answer.rows.bytes();
        let measured = Outcome {
            execution: Some(self.execution + self.noise.unwrap_or_default()),
            bytes: bytes.len(),
            rows: answer.rows.rows.len() as u64,
        };
        let is_measured = self.noise.is_none() || !answer.is_guess;
        let outcome = if is_measured { measured } else { Outcome::default() };
        self.predictor.result_end(answer.ticket, outcome);
        self.buffer.append(answer.ticket, &bytes);
        self.buffer.complete(answer.ticket);
    }
}

/// What turns a template into another form of the same statement.
pub(crate) const OTHER_FORM: u32 = 1000;

/// The keys that all sessions know a template by.
pub(crate) fn known_as(id: u32) -> Template {
    Template { id, key: u64::from(id) * 1_000_003, kin: u64::from(id % OTHER_FORM) }
}

fn request(template: u32, values: &[Owned]) -> Vec<u8> {
    let mut request = template.to_be_bytes().to_vec();
    for value in values {
        request.extend_from_slice(format!("{:?}", value.form).as_bytes());
        match &value.bytes {
            None => request.push(0),
            Some(bytes) => {
                request.push(1);
                request.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
                request.extend_from_slice(bytes);
            }
        }
    }
    request
}

/// R: employees (emp_no, name, status, dept); T: salaries of one employee.
pub(crate) const PARENTS: u32 = 1;
pub(crate) const SALARIES: u32 = 2;
pub(crate) const TITLES: u32 = 3;

pub(crate) fn row(cells: &[&str]) -> Vec<Option<String>> {
    cells.iter().map(|cell| (!cell.is_empty()).then(|| (*cell).to_owned())).collect()
}

pub(crate) fn parents(rows: i64) -> Rows {
    let mut result = Rows::new(&[INT4_TEXT, TEXT, TEXT, INT4_TEXT]);
    for n in 0..rows {
        let status = if n % 3 == 0 { "left" } else { "here" };
        let dept = (n * 7 % 9 + 1).to_string();
        result = result.with(&row(&[&(10_001 + n).to_string(), &format!("name {n}"), status, &dept]));
    }
    result
}

/// Answers R with so many rows; any other template with rows made from its values.
pub(crate) fn company(rows: i64) -> impl Fn(u32, &[Owned]) -> Rows {
    let parents = parents(rows);
    move |template, values| match template {
        PARENTS => parents.clone(),
        _ => {
            let key = values.first().map_or(0, integer);
            let mut result = Rows::new(&[INT4_TEXT, INT4_TEXT, TEXT]);
            for year in 0..3 {
                result = result.with(&row(&[&(key * 31 % 977).to_string(), &(1990 + year).to_string(), "x"]));
            }
            result
        }
    }
}

pub(crate) fn sim(rows: i64) -> Sim {
    Sim::new(Edges::new(), 13 * MS, company(rows))
}

/// The plain loop, once.
pub(crate) fn story(sim: &mut Sim) {
    let employees = sim.query(PARENTS, &[]);
    for n in 0..employees.len() {
        sim.query(SALARIES, &[text(employees.integer(n, 0))]);
    }
    sim.commit();
}

/// A row as the server sends it.
pub(crate) fn sent(row: &[Option<Vec<u8>>]) -> Vec<u8> {
    let mut out = (row.len() as u16).to_be_bytes().to_vec();
    for value in row {
        out.extend_from_slice(&value.as_ref().map_or(-1, |value| value.len() as i32).to_be_bytes());
        out.extend_from_slice(value.as_deref().unwrap_or_default());
    }
    out
}
