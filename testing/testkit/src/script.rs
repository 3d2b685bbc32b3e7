//! One session's part of a program: statements put into messages in the ways drivers do it.

use crate::messages::*;
use crate::random::Random;
use crate::step::{Patience, Program, Step, Wait};
use onetrip_wire::pg::frontend;
use std::time::Duration;

/// int8.
pub const INT8: u32 = 20;
/// int4.
pub const INT4: u32 = 23;
/// text.
pub const TEXT: u32 = 25;

/// A parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A whole number.
    Int(i64),
    /// A text.
    Text(String),
    /// NULL.
    Null,
}

impl Value {
    fn literal(&self) -> String {
        match self {
            Self::Int(number) => number.to_string(),
            Self::Text(text) => format!("'{}'", text.replace('\'', "''")),
            Self::Null => "NULL".to_owned(),
        }
    }

    fn bytes(&self, oid: u32, is_binary: bool) -> Option<Vec<u8>> {
        match self {
            Self::Int(number) if is_binary && oid == INT4 => Some((*number as i32).to_be_bytes().to_vec()),
            Self::Int(number) if is_binary => Some(number.to_be_bytes().to_vec()),
            Self::Int(number) => Some(number.to_string().into_bytes()),
            Self::Text(text) => Some(text.clone().into_bytes()),
            Self::Null => None,
        }
    }
}

/// A statement with `$1`, `$2`.
#[derive(Debug, Clone)]
pub struct Statement {
    /// With `$1`, `$2` for the values.
    pub text: String,
    /// In the order of their numbers.
    pub values: Vec<Value>,
}

impl Statement {
    /// A text and its values.
    pub fn new(text: &str, values: &[Value]) -> Self {
        Self { text: text.to_owned(), values: values.to_vec() }
    }

    /// The text with its values in it.
    pub fn inlined(&self) -> String {
        let numbered = self.values.iter().enumerate();
        numbered.fold(self.text.clone(), |text, (place, value)| {
            text.replace(&format!("${}", place + 1), &value.literal())
        })
    }
}

/// How a driver sends a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A simple query with literals: psycopg2, MySQL-like habits.
    Simple,
    /// Parse, Bind, Describe, Execute, Sync: psycopg 3, lib/pq.
    Unnamed,
    /// Parse, Describe, Sync; then Bind, Execute, Sync, without a name: pgx, tokio-postgres.
    Split,
    /// The same with a name, prepared once: pgx, asyncpg.
    Named,
    /// Parse with a name in the first Execute's group: pgjdbc.
    NamedTogether,
}

/// How a program speaks, the same for all of a loop.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// Into which messages a statement goes.
    pub form: Form,
    /// Parameters' type as declared in Parse; `None` leaves it to the server, with parameters as text.
    pub declared: Option<u32>,
    /// Values and results are binary.
    pub is_binary: bool,
}

impl Manner {
    /// One of the ways.
    pub fn any(random: &mut Random) -> Self {
        const FORMS: [Form; 5] = [Form::Simple, Form::Unnamed, Form::Split, Form::Named, Form::NamedTogether];
        let form = random.pick(&FORMS);
        let declared = random.pick(&[None, Some(INT4), Some(INT8), Some(INT8)]);
        Self { form, declared, is_binary: declared.is_some() && random.one_in(2) }
    }

    /// Simple queries.
    pub const SIMPLE: Self = Self { form: Form::Simple, declared: None, is_binary: false };
}

/// What one session does, in blocks that nothing comes between.
#[derive(Debug)]
pub struct Script {
    session: usize,
    blocks: Vec<Vec<Step>>,
    /// Statements that were prepared, by text and manner; a name may have been taken away since.
    prepared: Vec<(String, String)>,
    names: usize,
    is_joined: bool,
    /// Nobody changes tables in this program.
    is_calm: bool,
}

impl Script {
    /// A session that does nothing yet.
    pub fn new(session: usize) -> Self {
        Self { session, blocks: Vec::new(), prepared: Vec::new(), names: 0, is_joined: false, is_calm: false }
    }

    /// For a program in which nobody changes tables.
    pub fn calm(self, is_calm: bool) -> Self {
        Self { is_calm, ..self }
    }

    /// Whether nobody changes tables in this program.
    pub fn is_calm(&self) -> bool {
        self.is_calm
    }

    /// The number of the session.
    pub fn session(&self) -> usize {
        self.session
    }

    /// Any bytes.
    pub fn send(&mut self, bytes: Vec<u8>, wait: Wait, shown: impl Into<String>) {
        self.push(Step::new(self.session, bytes, wait, shown));
    }

    /// A step, maybe of another session.
    pub fn push(&mut self, step: Step) {
        match self.blocks.last_mut() {
            Some(block) if self.is_joined => block.push(step),
            _ => self.blocks.push(vec![step]),
        }
    }

    /// What `steps` adds comes right behind what was last.
    pub fn joined(&mut self, steps: impl FnOnce(&mut Self)) {
        let was_joined = std::mem::replace(&mut self.is_joined, true);
        steps(self);
        self.is_joined = was_joined;
    }

    /// Nothing comes between the steps that `steps` adds.
    pub fn block(&mut self, steps: impl FnOnce(&mut Self)) {
        self.blocks.push(Vec::new());
        self.joined(steps);
    }

    /// A simple query of another session, right behind what was last.
    pub fn elsewhere(&mut self, session: usize, text: &str) {
        let step = Step::new(session, query(text), Wait::Ready(1), text);
        self.joined(|script| script.push(step));
    }

    /// Simple queries.
    pub fn simple(&mut self, text: &str) {
        self.send(query(text), Wait::Ready(1), text);
    }

    /// One that ends by itself.
    pub fn ending(&mut self, text: &str) {
        let step = Step::new(self.session, query(text), Wait::Ready(1), text);
        self.push(Step { patience: Patience::Ends, ..step });
    }

    /// So much time passes before the last step.
    pub fn pause_before_last(&mut self, pause: Duration) {
        if let Some(step) = self.blocks.last_mut().and_then(|block| block.last_mut()) {
            step.pause = pause;
            step.shown = format!("after {pause:?} {}", step.shown);
        }
    }

    /// A statement without parameters, in any form.
    pub fn any(&mut self, random: &mut Random, text: &str) {
        match random.below(4) {
            0 => self.send([run_unnamed(text), sync()].concat(), Wait::Ready(1), format!("extended {text}")),
            _ => self.simple(text),
        }
    }

    /// One statement in any of the groups of messages that BEGIN and its kin come in, alone or with others.
    pub fn grouped(&mut self, random: &mut Random, text: &str) {
        let (bytes, ready, form) = match random.below(12) {
            0 => ([run_unnamed(text), sync()].concat(), 1, "extended"),
            1 => ([parse("s", text), bind("p", "s", &[]), sync()].concat(), 1, "prepared"),
            2 => ([bind("", "s", &[]), execute("", 0), close_statement("s"), sync()].concat(), 1, "run s"),
            3 => ([query(text), query("SELECT 'behind'")].concat(), 2, "pipelined"),
            4 => ([run_unnamed(text), sync(), run_unnamed("SELECT 7"), sync()].concat(), 2, "groups"),
            5 => ([bind("", "", &[]), execute("", 0), sync()].concat(), 1, "run unnamed"),
            _ => (query(text), 1, "simple"),
        };
        self.send(bytes, Wait::Ready(ready), format!("{form} {text}"));
    }

    /// The end of a transaction, mostly COMMIT.
    pub fn end_transaction(&mut self, random: &mut Random) {
        self.simple(random.pick(&["COMMIT", "COMMIT", "COMMIT", "ROLLBACK", "END"]));
    }

    /// What `write` makes for this session: one statement, which commits by itself, or some in a transaction.
    pub fn writes(&mut self, random: &mut Random, write: fn(&mut Random, usize) -> String) {
        if !random.one_in(3) {
            let text = write(random, self.session);
            return self.any(random, &text);
        }
        self.simple(random.pick(&["BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"]));
        for _ in 0..random.within(1..3) {
            let text = write(random, self.session);
            self.simple(&text);
        }
        self.end_transaction(random);
    }

    /// What may come between any two statements of a program: something that `write` makes for this session, an error, or
    /// one of these texts.
    pub fn interruption(
        &mut self,
        random: &mut Random,
        texts: &[&str],
        write: fn(&mut Random, usize) -> String,
    ) {
        match random.below(14) {
            0..=2 => {
                let text = write(random, self.session);
                self.any(random, &text);
            }
            3 => {
                // An error that a savepoint takes back.
                self.simple("SAVEPOINT guard");
                self.simple("SELECT 1 / 0");
                self.simple("ROLLBACK TO guard");
            }
            4 if random.one_in(3) => self.simple("SELECT no_such_column"),
            5 if random.one_in(2) => {
                self.simple("DISCARD ALL");
                self.forget();
            }
            _ => {
                let text = random.pick(texts);
                if text.contains(';') {
                    self.simple(text); // several statements are for simple queries
                } else {
                    self.any(random, text);
                }
                if text == "DEALLOCATE ALL" && random.one_in(2) {
                    self.forget();
                }
            }
        }
    }

    /// A statement with parameters.
    pub fn run(&mut self, statement: &Statement, manner: Manner) {
        let shown = |what: &str| format!("{what} {} {manner:?}", statement.inlined());
        let text = &statement.text;
        match manner.form {
            Form::Simple => self.simple(&statement.inlined()),
            Form::Unnamed => {
                let parse = parse_typed("", text, &types(statement, manner));
                let bytes = [parse, bind_all("", "", statement, manner), describe_portal("")].concat();
                self.send([bytes, execute("", 0), sync()].concat(), Wait::Ready(1), shown("extended"));
            }
            Form::Split => {
                self.prepare("", statement, manner);
                self.bind("", statement, manner);
            }
            Form::Named => {
                let name = match self.name_of(text) {
                    Some(name) => name,
                    None => {
                        let name = self.new_name(text);
                        self.prepare(&name, statement, manner);
                        name
                    }
                };
                self.bind(&name, statement, manner);
            }
            Form::NamedTogether => {
                let known = self.name_of(text);
                let name = known.clone().unwrap_or_else(|| self.new_name(text));
                let parse = match known {
                    Some(_) => Vec::new(),
                    None => [parse_typed(&name, text, &types(statement, manner)), describe_statement(&name)]
                        .concat(),
                };
                let bytes = [parse, bind_all("", &name, statement, manner), describe_portal("")].concat();
                self.send(
                    [bytes, execute("", 0), sync()].concat(),
                    Wait::Ready(1),
                    shown(&format!("as {name}")),
                );
            }
        }
    }

    /// Parse, Describe, Sync.
    pub fn prepare(&mut self, name: &str, statement: &Statement, manner: Manner) {
        let parse = parse_typed(name, &statement.text, &types(statement, manner));
        let bytes = [parse, describe_statement(name), sync()].concat();
        self.send(bytes, Wait::Ready(1), format!("prepare {name:?} {}", statement.text));
    }

    /// Bind, Execute, Sync.
    pub fn bind(&mut self, name: &str, statement: &Statement, manner: Manner) {
        let bytes = [bind_all("", name, statement, manner), execute("", 0), sync()].concat();
        self.send(
            bytes,
            Wait::Ready(1),
            format!("bind {name:?} {:?} of {}", statement.values, statement.text),
        );
    }

    /// The program forgets what it has prepared, as after DISCARD ALL.
    pub fn forget(&mut self) {
        self.prepared.clear();
    }

    fn name_of(&self, text: &str) -> Option<String> {
        let known = self.prepared.iter().find(|(prepared, _)| prepared == text);
        known.map(|(_, name)| name.clone())
    }

    fn new_name(&mut self, text: &str) -> String {
        self.names += 1;
        let name = format!("stmt_{}", self.names);
        self.prepared.push((text.to_owned(), name.clone()));
        name
    }
}

/// Joins the sessions' parts: blocks in the order of each, otherwise by chance.
pub fn interleave(random: &mut Random, scripts: Vec<Script>) -> Program {
    let sessions = scripts.len();
    let mut parts: Vec<_> = scripts.into_iter().map(|script| script.blocks.into_iter()).collect();
    let mut steps = Vec::new();
    loop {
        let left: Vec<usize> = parts.iter().map(ExactSizeIterator::len).collect();
        if left.iter().sum::<usize>() == 0 {
            return Program { sessions, steps };
        }
        let part = random.weighted(&left);
        // Loops are loops because little comes between their statements.
        for _ in 0..random.within(1..5) {
            steps.extend(parts[part].next().unwrap_or_default());
        }
    }
}

/// Parse with declared types.
pub fn parse_typed(name: &str, text: &str, types: &[u32]) -> Vec<u8> {
    let mut body = [c_str(name), c_str(text)].concat();
    body.extend_from_slice(&(types.len() as u16).to_be_bytes());
    types.iter().for_each(|oid| body.extend_from_slice(&oid.to_be_bytes()));
    message(frontend::PARSE, &body)
}

/// Bind of a statement's values.
pub fn bind_all(portal: &str, name: &str, statement: &Statement, manner: Manner) -> Vec<u8> {
    let format = [0, 1, 0, u8::from(manner.is_binary)];
    let mut body = [c_str(portal), c_str(name), format.to_vec()].concat();
    body.extend_from_slice(&(statement.values.len() as u16).to_be_bytes());
    for value in &statement.values {
        match value.bytes(manner.declared.unwrap_or(INT4), manner.is_binary) {
            None => body.extend_from_slice(&u32::MAX.to_be_bytes()),
            Some(bytes) => {
                body.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
                body.extend_from_slice(&bytes);
            }
        }
    }
    body.extend_from_slice(&format);
    message(frontend::BIND, &body)
}

fn types(statement: &Statement, manner: Manner) -> Vec<u32> {
    let Some(declared) = manner.declared else { return Vec::new() };
    let oid = |value: &Value| if matches!(value, Value::Text(_)) { TEXT } else { declared };
    statement.values.iter().map(oid).collect()
}
