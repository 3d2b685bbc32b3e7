//! The core against a model of the server, without sockets or time: any pipeline, with errors anywhere, its bytes cut
//! into any pieces both ways. What the outcomes say has to be what the model has done.

use std::collections::{BTreeSet, HashMap};

use onetrip_client::core::{Connection, Opening, Request, Security, Step};
use onetrip_client::{Config, OnError, OperationId, Outcome};
use onetrip_target::{Conninfo, Environment};
use onetrip_wire::pg::*;
use proptest::prelude::*;

/// What one operation of a generated pipeline does.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Act {
    /// Writes its own number.
    Write,
    /// Fails in Parse, in Bind, or while it runs.
    FailParse,
    FailBind,
    FailRun,
    /// Closes a statement on the way: another text than those before.
    WriteAnew,
    Begin,
    Commit,
    Rollback,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => Just(Act::Write),
        1 => Just(Act::FailParse),
        1 => Just(Act::FailBind),
        1 => Just(Act::FailRun),
        2 => Just(Act::WriteAnew),
        1 => Just(Act::Begin),
        1 => Just(Act::Commit),
        1 => Just(Act::Rollback),
    ]
}

/// A server with statements, one set of numbers for a table, transactions and one name for savepoints.
#[derive(Debug, Default)]
struct Model {
    input: Vec<u8>,
    output: Vec<u8>,
    statements: HashMap<Vec<u8>, String>,
    bound: Option<(String, Option<u32>)>,
    committed: BTreeSet<u32>,
    /// What this transaction sees; `None` outside of one.
    working: Option<BTreeSet<u32>>,
    savepoints: Vec<BTreeSet<u32>>,
    in_block: bool,
    has_failed: bool,
    skips: bool,
    executes: usize,
    /// Which Execute, counted from one, a cancel request hits.
    interrupted: usize,
}

type Refused = &'static str;

impl Model {
    fn receive(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        while let Some(header) = FrameHeader::peek(&self.input, 1 << 30) {
            let length = header.unwrap().frame_len();
            if self.input.len() < length {
                return;
            }
            let frame: Vec<u8> = self.input.drain(..length).collect();
            self.message(frame[0], &frame[HEADER_BYTES..]);
        }
    }

    fn message(&mut self, tag: u8, body: &[u8]) {
        if tag == frontend::SYNC {
            return self.sync();
        }
        if self.skips {
            return;
        }
        let done = match tag {
            frontend::PARSE => self.parse(Parse::decode(body).unwrap()),
            frontend::BIND => self.bind(Bind::decode(body).unwrap()),
            frontend::EXECUTE => self.execute(),
            frontend::DESCRIBE => {
                self.output.extend_from_slice(b"t\0\0\0\x06\0\0n\0\0\0\x04");
                Ok(())
            }
            frontend::CLOSE => {
                if let StatementOrPortal::Statement(name) = StatementOrPortal::decode(body).unwrap() {
                    self.statements.remove(name);
                }
                frame(&mut self.output, backend::CLOSE_COMPLETE, |_| {});
                Ok(())
            }
            frontend::FLUSH => Ok(()),
            other => panic!("the client sent {}", other as char),
        };
        if let Err(sqlstate) = done {
            let error = ErrorFields { severity: Severity::Error, sqlstate, message: "refused", hint: None };
            encode_error(&mut self.output, error);
            self.skips = true;
            if self.in_block {
                self.has_failed = true;
            } else {
                self.working = None;
            }
        }
    }

    fn check_failed(&self, text: &str) -> Result<(), Refused> {
        if self.has_failed && !text.starts_with("ROLLBACK") && text != "COMMIT" {
            Err("25P02")
        } else {
            Ok(())
        }
    }

    fn parse(&mut self, parse: Parse<'_>) -> Result<(), Refused> {
        let text = String::from_utf8(parse.text.to_vec()).unwrap();
        self.check_failed(&text)?;
        if text.starts_with("FAIL PARSE") {
            return Err("42601");
        }
        assert!(parse.statement.is_empty() || !self.statements.contains_key(parse.statement), "42P05");
        self.statements.insert(parse.statement.to_vec(), text);
        frame(&mut self.output, backend::PARSE_COMPLETE, |_| {});
        Ok(())
    }

    fn bind(&mut self, bind: Bind<'_>) -> Result<(), Refused> {
        let text = self.statements.get(bind.statement).ok_or("26000")?.clone();
        self.check_failed(&text)?;
        let value = bind.parameters.iter().next().flatten();
        let number = value.map(|value| std::str::from_utf8(value).unwrap().parse().map_err(|_| "22P02"));
        self.bound = Some((text, number.transpose()?));
        frame(&mut self.output, backend::BIND_COMPLETE, |_| {});
        Ok(())
    }

    fn execute(&mut self) -> Result<(), Refused> {
        let (text, number) = self.bound.clone().ok_or("34000")?;
        self.executes += 1;
        if self.executes == self.interrupted {
            return Err("57014");
        }
        self.check_failed(&text)?;
        let mut tag = text.split(' ').next().unwrap().to_owned();
        let current = self.working.get_or_insert_with(|| self.committed.clone()).clone();
        match text.as_str() {
            "BEGIN" => self.in_block = true,
            "COMMIT" | "ROLLBACK" => {
                if text == "COMMIT" && !self.has_failed {
                    self.committed = current;
                } else {
                    tag = "ROLLBACK".to_owned();
                }
                self.leave();
            }
            text if text.starts_with("ROLLBACK TO") => {
                self.working = Some(self.savepoints.last().ok_or("3B001")?.clone());
                self.has_failed = false;
            }
            text if text.starts_with("SAVEPOINT") => {
                assert!(self.savepoints.is_empty(), "savepoints do not pile up");
                if !self.in_block {
                    return Err("25P01");
                }
                self.savepoints.push(current);
            }
            text if text.starts_with("RELEASE") => drop(self.savepoints.pop().ok_or("3B001")?),
            "FAIL RUN" => return Err("23514"),
            _ => drop(self.working.get_or_insert_default().insert(number.unwrap())),
        }
        CommandComplete { tag: tag.as_bytes() }.encode(&mut self.output);
        Ok(())
    }

    fn leave(&mut self) {
        (self.in_block, self.has_failed, self.working) = (false, false, None);
        self.savepoints.clear();
    }

    fn sync(&mut self) {
        self.skips = false;
        if !self.in_block {
            if let Some(working) = self.working.take() {
                self.committed = working;
            }
        }
        let status = match (self.in_block, self.has_failed) {
            (false, _) => TransactionStatus::Idle,
            (true, false) => TransactionStatus::Active,
            (true, true) => TransactionStatus::Failed,
        };
        encode_ready_for_query(&mut self.output, status);
    }
}

fn open(statements: usize) -> Connection {
    let environment = Environment::default();
    let conninfo = Conninfo::parse("postgres://ann@db/shop?sslmode=disable", &environment).unwrap();
    let mut config = Config::of(conninfo).unwrap();
    config.limits.statements = statements;
    let host = config.conninfo.hosts[0].clone();
    let login = config.login(&host).unwrap();
    let mut opening = Opening::new(host, login, Security::Plain, config.limits).unwrap();
    let count = opening.output().len();
    opening.sent(count);
    let mut welcome = Vec::new();
    Authentication::Ok.encode(&mut welcome);
    encode_ready_for_query(&mut welcome, TransactionStatus::Idle);
    opening.input_space()[..welcome.len()].copy_from_slice(&welcome);
    assert_eq!(opening.received(welcome.len()).unwrap(), Step::Open);
    opening.into_connection()
}

/// Moves some bytes each way.
fn turn(core: &mut Connection, model: &mut Model, sent: usize, received: usize) {
    let output = core.output();
    let count = sent.min(output.len());
    model.receive(&output[..count]);
    core.sent(count);
    let space = core.input_space();
    let count = received.min(model.output.len()).min(space.len());
    space[..count].copy_from_slice(&model.output[..count]);
    model.output.drain(..count);
    core.received(count).unwrap();
    while core.next_event().unwrap().is_some() {}
}

fn settle(core: &mut Connection, model: &mut Model, pieces: &mut impl Iterator<Item = (usize, usize)>) {
    for _ in 0..100_000 {
        if core.is_settled() {
            return;
        }
        let (sent, received) = pieces.next().unwrap();
        turn(core, model, sent, received);
    }
    panic!("the conversation does not end");
}

fn push(core: &mut Connection, act: Act, number: u32, own: Option<OnError>) -> OperationId {
    let anew = format!("WRITE {number}");
    let text = match act {
        Act::Write => "WRITE",
        Act::WriteAnew => anew.as_str(),
        Act::FailParse => "FAIL PARSE",
        Act::FailBind => return core.push(&Request::new("WRITE", &[&"none"]), own).unwrap(),
        Act::FailRun => "FAIL RUN",
        Act::Begin => return core.push(&Request::new("BEGIN", &[]), own).unwrap(),
        Act::Commit => return core.push(&Request::new("COMMIT", &[]), own).unwrap(),
        Act::Rollback => return core.push(&Request::new("ROLLBACK", &[]), own).unwrap(),
    };
    let text_of_number = number.to_string();
    core.push(&Request::new(text, &[&text_of_number]), own).unwrap()
}

/// Acts that fit: transactions begin outside of one and end inside of one.
fn fitting(acts: Vec<(Act, Option<OnError>)>) -> Vec<(Act, Option<OnError>)> {
    let mut in_transaction = false;
    acts.into_iter()
        .filter(|(act, _)| match act {
            Act::Begin => !std::mem::replace(&mut in_transaction, true),
            Act::Commit | Act::Rollback => std::mem::replace(&mut in_transaction, false),
            _ => true,
        })
        .collect()
}

fn mode() -> impl Strategy<Value = OnError> {
    prop_oneof![Just(OnError::Abort), Just(OnError::Continue)]
}

/// Runs a block against the model; what is left open is committed, or rolled back where that cannot be.
fn run(
    acts: &[(Act, Option<OnError>)],
    block: OnError,
    cache: usize,
    pieces: &[(usize, usize)],
    flushes: u16,
    model: &mut Model,
) -> Vec<Outcome> {
    let mut core = open(cache);
    let mut pieces = pieces.iter().copied().cycle();
    core.begin_block(block).unwrap();
    let mut operations = Vec::new();
    for (number, (act, own)) in (0..).zip(acts) {
        if core.needs_barrier(*own) {
            core.put_barrier();
            settle(&mut core, model, &mut pieces);
        }
        operations.push(push(&mut core, *act, number, *own));
        if flushes & 1 << number != 0 {
            core.request_replies();
            let (sent, received) = pieces.next().unwrap();
            turn(&mut core, model, sent, received);
        }
    }
    core.end_block().unwrap();
    settle(&mut core, model, &mut pieces);
    model.interrupted = 0;
    if core.transaction_status() != TransactionStatus::Idle {
        let text = if core.transaction_status() == TransactionStatus::Failed { "ROLLBACK" } else { "COMMIT" };
        core.submit(&Request::new(text, &[])).unwrap();
        core.sync();
        settle(&mut core, model, &mut pieces);
    }
    operations.iter().map(|id| core.outcome(*id).unwrap().clone()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn outcomes_say_what_the_server_has_done(
        acts in proptest::collection::vec((act(), proptest::option::weighted(0.2, mode())), 1..14),
        block in mode(),
        cache in 0usize..4,
        pieces in proptest::collection::vec((1usize..60, 1usize..60), 1..20),
        flushes in any::<u16>(),
    ) {
        let acts = fitting(acts);
        let mut model = Model::default();
        let outcomes = run(&acts, block, cache, &pieces, flushes, &mut model);
        check(&acts, block, &outcomes, &model.committed)?;
    }

    #[test]
    fn outcomes_are_true_whatever_a_cancel_hits(
        acts in proptest::collection::vec((act(), proptest::option::weighted(0.2, mode())), 1..14),
        block in mode(),
        cache in 0usize..4,
        pieces in proptest::collection::vec((1usize..60, 1usize..60), 1..20),
        interrupted in 1usize..40,
    ) {
        let acts = fitting(acts);
        let mut model = Model { interrupted, ..Model::default() };
        let outcomes = run(&acts, block, cache, &pieces, 0, &mut model);
        check_claims(&acts, block, &outcomes, &model.committed)?;
    }
}

/// What has to be in the table, from the outcomes alone.
fn check(
    acts: &[(Act, Option<OnError>)],
    block: OnError,
    outcomes: &[Outcome],
    committed: &BTreeSet<u32>,
) -> Result<(), TestCaseError> {
    let mut expected = BTreeSet::new();
    let mut pending: Option<BTreeSet<u32>> = None;
    // Operations that no Sync follows yet: a BEGIN takes them into its transaction.
    let mut implicit = BTreeSet::new();
    let mut is_lost = false;
    let mut stopped = false;
    for (number, ((act, own), outcome)) in (0..).zip(acts.iter().zip(outcomes)) {
        let is_done = matches!(outcome, Outcome::Done(_));
        let fails = matches!(act, Act::FailParse | Act::FailBind | Act::FailRun);
        prop_assert!(!matches!(outcome, Outcome::Waiting(_) | Outcome::Taken), "{number}: {outcomes:?}");
        prop_assert!(!(fails && is_done), "{number}: {outcomes:?}");
        if stopped {
            prop_assert!(
                matches!(outcome, Outcome::Aborted { .. }),
                "{number} after a stop: {acts:?} {outcomes:?}"
            );
            continue;
        }
        let goes_on = own.unwrap_or(block) == OnError::Continue;
        if goes_on {
            implicit.clear();
        }
        if fails {
            prop_assert!(matches!(outcome, Outcome::Failed(_)), "{number} fails: {acts:?} {outcomes:?}");
            if !goes_on {
                stopped = true;
                is_lost |= pending.is_some();
            }
            continue;
        }
        prop_assert!(
            is_done || matches!(outcome, Outcome::Undone { .. }),
            "{number} runs: {acts:?} {outcomes:?}"
        );
        match act {
            Act::Begin => {
                expected.retain(|number| !implicit.contains(number));
                pending = Some(std::mem::take(&mut implicit));
            }
            Act::Commit => expected.extend(pending.take().into_iter().flatten()),
            Act::Rollback => pending = None,
            _ if is_done => {
                if pending.is_none() && !goes_on {
                    implicit.insert(number);
                }
                pending.as_mut().unwrap_or(&mut expected).insert(number);
            }
            _ => {}
        }
    }
    if !is_lost {
        expected.extend(pending.into_iter().flatten());
    }
    prop_assert_eq!(committed, &expected, "{:?} {:?} {:?}", block, acts, outcomes);
    Ok(())
}

/// Whatever happened: an operation that claims to hold is in the table, and one that claims not to is not.
fn check_claims(
    acts: &[(Act, Option<OnError>)],
    block: OnError,
    outcomes: &[Outcome],
    committed: &BTreeSet<u32>,
) -> Result<(), TestCaseError> {
    // Done in the explicit transaction that is open; and in the implicit one, which a BEGIN takes in.
    let mut open: Option<BTreeSet<u32>> = None;
    let mut implicit = BTreeSet::new();
    // A COMMIT or ROLLBACK did not run: its transaction is still open, and what comes next is of it.
    let mut is_left_open = false;
    for (number, ((act, own), outcome)) in (0..).zip(acts.iter().zip(outcomes)) {
        let is_done = matches!(outcome, Outcome::Done(_));
        let is_write = matches!(act, Act::Write | Act::WriteAnew);
        let goes_on = own.unwrap_or(block) == OnError::Continue;
        prop_assert!(!matches!(outcome, Outcome::Waiting(_) | Outcome::Taken), "{number}: {outcomes:?}");
        prop_assert!(
            is_done || !committed.contains(&number),
            "{number} holds: {block:?} {acts:?} {outcomes:?}"
        );
        if open.is_none() && goes_on {
            implicit.clear();
        }
        match act {
            Act::Begin if is_done => open = Some(std::mem::take(&mut implicit)),
            Act::Commit | Act::Rollback => {
                is_left_open = !is_done;
                let ended = open.take().filter(|_| is_done);
                let holds = *act == Act::Commit;
                let is_true = ended.into_iter().flatten().all(|number| committed.contains(&number) == holds);
                prop_assert!(is_true, "up to {number}: {block:?} {acts:?} {outcomes:?} {committed:?}");
            }
            _ if is_write && is_done => {
                let is_taken = open.is_some() || (!goes_on && is_taken_in(acts, outcomes, number));
                let is_lasting = is_taken || is_left_open || committed.contains(&number);
                prop_assert!(
                    is_lasting,
                    "{number} does not hold: {block:?} {acts:?} {outcomes:?} {committed:?}"
                );
                match &mut open {
                    Some(open) => drop(open.insert(number)),
                    None if !goes_on => drop(implicit.insert(number)),
                    None => {}
                }
            }
            _ => {}
        }
    }
    Ok(())
}

#[test]
fn what_follows_a_cancelled_commit_is_of_its_transaction() {
    use Act::{Begin, Commit, Rollback, Write};
    let acts = [Begin, Write, Commit, Write, Begin, Write, Write, Rollback].map(|act| (act, None));
    let mut model = Model { interrupted: 7, ..Model::default() };
    let outcomes = run(&acts, OnError::Continue, 0, &[(1, 1)], 0, &mut model);
    assert!(
        matches!(outcomes[2], Outcome::Failed(_)) && matches!(outcomes[6], Outcome::Done(_)),
        "{outcomes:?}"
    );
    check_claims(&acts, OnError::Continue, &outcomes, &model.committed).unwrap();
    assert!(model.committed.is_empty(), "the ROLLBACK is that transaction's");
}

/// Whether a BEGIN after the operation may have taken it into its transaction.
fn is_taken_in(acts: &[(Act, Option<OnError>)], outcomes: &[Outcome], number: u32) -> bool {
    let later = acts.iter().zip(outcomes).skip(number as usize);
    later.into_iter().any(|((act, _), outcome)| *act == Act::Begin && matches!(outcome, Outcome::Done(_)))
}
