//! Sessions that append to lists and read them at random. A read is a loop: the lists of a group first, then each list by
//! its key, so that remedies of loops have something to do.

use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use onetrip_wire::pg::{DataRow, ErrorResponse, backend};

use super::history::{Operation, Transaction};
use crate::common::client::{Endpoint, RawClient};
use crate::common::messages::*;
use crate::common::transcript::Message;
use crate::rig::random::Random;
use crate::rig::script::{Form, INT8, Manner, Statement, Value, bind_all, parse_typed};

const GROUPS: i64 = 3;
const LISTS_PER_GROUP: i64 = 4;
/// A program does something else now and then.
const THINK_MAX: Duration = Duration::from_millis(3);

/// The tables.
pub(crate) fn schema() -> String {
    let lists = GROUPS * LISTS_PER_GROUP;
    format!(
        "CREATE TABLE groups (list bigint PRIMARY KEY, grp int NOT NULL);
        CREATE TABLE lists (id bigint PRIMARY KEY, items text NOT NULL);
        INSERT INTO groups SELECT 100 + 7 * k, k % {GROUPS} FROM generate_series(0, {lists} - 1) k;
        INSERT INTO lists SELECT list, '' FROM groups;"
    )
}

/// How a history is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) sessions: u64,
    /// Of each session.
    pub(crate) transactions: usize,
    pub(crate) level: &'static str,
    pub(crate) seed: u64,
}

/// Runs the load; what every transaction did and saw.
pub(crate) fn record(load: Load, endpoint: &Endpoint, database: &str) -> Vec<Transaction> {
    let values = AtomicI64::new(1);
    thread::scope(|scope| {
        let session = |number: u64| {
            let values = &values;
            scope.spawn(move || {
                let random = Random::new(load.seed.wrapping_mul(1000) + number);
                let client = RawClient::session(endpoint, database);
                let mut session =
                    Session { client, random, manner: manner(number), values, is_prepared: [false; 2] };
                (0..load.transactions).map(|_| session.transaction(load.level)).collect::<Vec<_>>()
            })
        };
        let sessions: Vec<_> = (0..load.sessions).map(session).collect();
        sessions.into_iter().flat_map(|session| session.join().expect("a session does not panic")).collect()
    })
}

/// Each session speaks as another driver does.
fn manner(session: u64) -> Manner {
    let form = [Form::Simple, Form::Named, Form::Unnamed][session as usize % 3];
    Manner { form, declared: Some(INT8), is_binary: session % 2 == 1 }
}

struct Session<'a> {
    client: RawClient,
    random: Random,
    manner: Manner,
    values: &'a AtomicI64,
    is_prepared: [bool; 2],
}

/// The server refuses to go on with the transaction.
struct Refused;

impl Session<'_> {
    fn transaction(&mut self, level: &str) -> Transaction {
        let begun = Instant::now();
        let mut operations = Vec::new();
        self.client.query(&format!("BEGIN ISOLATION LEVEL {level}"));
        let is_done = self.work(&mut operations).is_ok();
        let end = if !is_done || self.random.one_in(10) { "ROLLBACK" } else { "COMMIT" };
        let tag = self.client.query(end);
        let is_committed = tag.iter().any(|message| message.body == b"COMMIT\0");
        Transaction { operations, is_committed, begun, ended: Instant::now() }
    }

    fn work(&mut self, operations: &mut Vec<Operation>) -> Result<(), Refused> {
        for _ in 0..self.random.within(1..4) {
            match self.random.below(3) {
                0 => self.append(operations)?,
                _ => self.read(operations)?,
            }
        }
        Ok(())
    }

    /// One list grows, sometimes twice.
    fn append(&mut self, operations: &mut Vec<Operation>) -> Result<(), Refused> {
        let list = 100 + 7 * self.random.below((GROUPS * LISTS_PER_GROUP) as usize) as i64;
        for _ in 0..self.random.within(1..3) {
            let value = self.values.fetch_add(1, Ordering::SeqCst);
            operations.push(Operation::Append { list, value });
            self.ask(&format!("UPDATE lists SET items = items || ' ' || {value} WHERE id = {list}"))?;
        }
        Ok(())
    }

    /// The lists of a group, one by one; sometimes one grows in between.
    fn read(&mut self, operations: &mut Vec<Operation>) -> Result<(), Refused> {
        let group = self.random.below(GROUPS as usize) as i64;
        let grows = self.random.one_in(4);
        let of_group =
            Statement::new("SELECT list FROM groups WHERE grp = $1 ORDER BY list", &[Value::Int(group)]);
        for list in self.rows(0, &of_group)? {
            let list = self.number(&list);
            let by_key = Statement::new("SELECT items FROM lists WHERE id = $1", &[Value::Int(list)]);
            let rows = self.rows(1, &by_key)?;
            let items = String::from_utf8_lossy(rows.first().ok_or(Refused)?).into_owned();
            let values = items.split_whitespace().map(|item| item.parse().expect("a number")).collect();
            operations.push(Operation::Read { list, values });
            if self.random.one_in(6) {
                thread::sleep(THINK_MAX / (1 + self.random.below(4) as u32));
            }
            if grows && self.random.one_in(3) {
                self.append(operations)?;
            }
        }
        Ok(())
    }

    fn number(&self, value: &[u8]) -> i64 {
        match <[u8; 8]>::try_from(value) {
            Ok(bytes) if self.manner.is_binary && self.manner.form != Form::Simple => {
                i64::from_be_bytes(bytes)
            }
            _ => String::from_utf8_lossy(value).parse().expect("a number"),
        }
    }

    /// The first column of a statement's rows; `place` tells the program's two statements apart.
    fn rows(&mut self, place: usize, statement: &Statement) -> Result<Vec<Vec<u8>>, Refused> {
        let name = ["group", "list"][place];
        let parse = |name: &str| parse_typed(name, &statement.text, &[INT8]);
        let messages = match self.manner.form {
            Form::Simple => self.client.query(&statement.inlined()),
            Form::Named => {
                if !self.is_prepared[place] {
                    self.exchange(&[parse(name), describe_statement(name), sync()].concat());
                    self.is_prepared[place] = true;
                }
                self.exchange(&[bind_all("", name, statement, self.manner), execute("", 0), sync()].concat())
            }
            _ => {
                let bound = [parse(""), bind_all("", "", statement, self.manner), describe_portal("")];
                self.exchange(&[bound.concat(), execute("", 0), sync()].concat())
            }
        };
        refusal(&messages)?;
        let rows = messages.iter().filter(|message| message.tag == backend::DATA_ROW);
        let first = |message: &Message| {
            let row = DataRow::decode(&message.body).expect("a row");
            row.columns.iter().next().flatten().unwrap_or_default().to_vec()
        };
        Ok(rows.map(first).collect())
    }

    fn ask(&mut self, text: &str) -> Result<(), Refused> {
        let messages = self.client.query(text);
        refusal(&messages)
    }

    fn exchange(&mut self, bytes: &[u8]) -> Vec<Message> {
        let (before, ready) = (self.client.len(), self.client.count(backend::READY_FOR_QUERY));
        self.client.send(bytes);
        self.client.await_count(backend::READY_FOR_QUERY, ready + 1);
        self.client.messages_from(before)
    }
}

/// Nothing but a serialization failure or a deadlock may go wrong.
fn refusal(messages: &[Message]) -> Result<(), Refused> {
    let Some(error) = messages.iter().find(|message| message.tag == backend::ERROR_RESPONSE) else {
        return Ok(());
    };
    let error = ErrorResponse::decode(&error.body).expect("an error");
    let code = error.field(b'C').unwrap_or_default();
    assert!(matches!(code, b"40001" | b"40P01"), "{error:?}");
    Err(Refused)
}
