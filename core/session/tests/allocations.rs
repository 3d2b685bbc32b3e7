//! A warm session does not allocate per message; only the block of records grows, until it is taken.

mod common;

use std::cell::Cell;

use common::{Pair, bind, complete, execute, message, parse, query, ready, row, sync};
use onetrip_heap::{ALLOCATIONS, LIVE};
use onetrip_ledger::Moment;
use onetrip_session::{Session, Verdict};

/// Messages that a client sends over and over, and what it gets.
struct Turn {
    sent: Vec<u8>,
    answered: Vec<u8>,
}

impl Turn {
    fn new(sent: &[Vec<u8>], answered: &[Vec<u8>]) -> Self {
        Self { sent: sent.concat(), answered: answered.concat() }
    }

    /// Goes through the session as a driver does it.
    fn run(&self, session: &mut Session, now: &mut u64) {
        *now += 50_000;
        let mut at = 0;
        while at < self.sent.len() {
            match session.handle_client(Moment(*now), &self.sent[at..]) {
                Ok(Verdict::Forward(bytes)) => at += bytes,
                other => panic!("{other:?}"),
            }
        }
        *now += 50_000;
        at = 0;
        while at < self.answered.len() {
            match session.handle_server(Moment(*now), &self.answered[at..]) {
                Ok(Verdict::Forward(bytes)) => at += bytes,
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Empties the block of records and keeps its room.
fn forget_records(session: &mut Session) {
    let mut block = session.stream().take_block();
    block.clear();
    session.stream().recycle_unsent(block);
}

/// Allocations of `count` turns of a session that has seen twice as many.
fn allocations(prepare: &Turn, turns: &[Turn], count: usize) -> usize {
    let mut session = Pair::serving().session;
    let mut now = 1_000_000;
    prepare.run(&mut session, &mut now);
    let cold = ALLOCATIONS.with(Cell::get);
    for _ in 0..2 * count {
        turns.iter().for_each(|turn| turn.run(&mut session, &mut now));
    }
    assert!(ALLOCATIONS.with(Cell::get) > cold, "the counter counts");
    forget_records(&mut session);
    let warm = ALLOCATIONS.with(Cell::get);
    for _ in 0..count {
        turns.iter().for_each(|turn| turn.run(&mut session, &mut now));
    }
    ALLOCATIONS.with(Cell::get) - warm
}

/// A RowDescription of integer columns.
fn description(columns: u16) -> Vec<u8> {
    let mut body = columns.to_be_bytes().to_vec();
    for number in 0..columns {
        body.extend_from_slice(format!("c{number}\0").as_bytes());
        body.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 23, 0, 4, 255, 255, 255, 255, 0, 0]);
    }
    message(b'T', &body)
}

/// A row of integer columns in binary form.
fn wide_row(columns: u16) -> Vec<u8> {
    let mut body = columns.to_be_bytes().to_vec();
    for number in 0..columns {
        body.extend_from_slice(&[0, 0, 0, 4]);
        body.extend_from_slice(&u32::from(number).to_be_bytes());
    }
    message(b'D', &body)
}

/// A Bind that asks for each column's format.
fn bind_with_formats(name: &str, values: &[&str], columns: u16) -> Vec<u8> {
    let plain = bind("", name, values);
    let mut body = plain[5..plain.len() - 2].to_vec();
    body.extend_from_slice(&columns.to_be_bytes());
    for number in 0..columns {
        body.extend_from_slice(&(number % 2).to_be_bytes());
    }
    message(b'B', &body)
}

#[test]
fn prepared_executions_do_not_allocate() {
    for (parameters, columns) in [(1, 1), (10, 8), (60, 40)] {
        let places: Vec<String> = (1..=parameters).map(|number| format!("${number}")).collect();
        let text = format!("SELECT * FROM f({})", places.join(", "));
        let types = [&(parameters as u16).to_be_bytes()[..], &[0, 0, 0, 23].repeat(parameters)].concat();
        let prepare = Turn::new(
            &[parse("s", &text), message(b'D', b"Ss\0"), sync()],
            &[message(b'1', b""), message(b't', &types), description(columns), ready(b'I')],
        );
        let values = vec!["10001"; parameters];
        let turn = Turn::new(
            &[bind_with_formats("s", &values, columns), execute(""), sync()],
            &[message(b'2', b""), wide_row(columns), wide_row(columns), complete("SELECT 2"), ready(b'I')],
        );
        assert_eq!(allocations(&prepare, &[turn], 500), 0, "{parameters} parameters, {columns} columns");
    }
}

#[test]
fn statements_parsed_anew_each_time_do_not_allocate() {
    let prepare = Turn::new(&[], &[]);
    let turn = Turn::new(
        &[
            parse("", "SELECT id, name FROM emp WHERE dept = $1 AND pay > 100 AND id <> 7"),
            bind("", "", &["7"]),
            message(b'D', b"P\0"),
            execute(""),
            sync(),
        ],
        &[
            message(b'1', b""),
            message(b'2', b""),
            description(2),
            wide_row(2),
            complete("SELECT 1"),
            ready(b'T'),
        ],
    );
    assert_eq!(allocations(&prepare, &[turn], 500), 0);
}

#[test]
fn simple_queries_do_not_allocate() {
    for literals in [1, 12, 60] {
        let list = vec!["'x'"; literals].join(", ");
        let text = format!("SELECT f({list}) /* route='shop' */");
        let prepare = Turn::new(&[], &[]);
        let turn = Turn::new(
            &[query(&text)],
            &[description(1), row(b"12345"), row(b"12346"), complete("SELECT 2"), ready(b'I')],
        );
        let failing = Turn::new(&[query(&text)], &[message(b'E', b"C22012\0\0"), ready(b'I')]);
        assert_eq!(allocations(&prepare, &[turn, failing], 500), 0, "{literals} literals");
    }
}

#[test]
fn pipelines_copy_data_and_notices_do_not_allocate() {
    let group = || [bind("", "s", &["1"]), execute("")].concat();
    let answer = || [message(b'2', b""), complete("INSERT 0 1")].concat();
    let prepare =
        Turn::new(&[parse("s", "INSERT INTO t VALUES ($1)"), sync()], &[message(b'1', b""), ready(b'I')]);
    let pipeline = Turn::new(
        &[group().repeat(20), sync(), group(), sync()],
        &[answer().repeat(20), ready(b'I'), answer(), ready(b'I')],
    );
    let copy = Turn::new(&[query("COPY t FROM STDIN")], &[message(b'G', &[0; 3])]);
    let data = Turn::new(
        &[message(b'd', b"1\n").repeat(100), message(b'c', b"")],
        &[message(b'N', b"SNOTICE\0Mso\0\0"), complete("COPY 100"), ready(b'I')],
    );
    let skipped = Turn::new(&[group().repeat(12), sync()], &[message(b'E', b"C22012\0\0"), ready(b'I')]);
    assert_eq!(allocations(&prepare, &[pipeline, copy, data, skipped], 100), 0);
}

#[test]
fn a_long_conversation_stays_within_its_memory() {
    let mut session = Pair::serving().session;
    let mut now = 1_000_000;
    let mut live = Vec::new();
    for number in 0..60_000 {
        let portal = format!("C_{}", number % 7);
        Turn::new(
            &[
                query(&format!("SELECT {number}, '{number}'")),
                parse("", "SELECT pay FROM emp WHERE id = $1"),
                bind(&portal, "", &[&number.to_string()]),
                execute(&portal),
                sync(),
            ],
            &[
                complete("SELECT 1"),
                ready(b'I'),
                message(b'1', b""),
                message(b'2', b""),
                row(number.to_string().as_bytes()),
                complete("SELECT 1"),
                ready(b'I'),
            ],
        )
        .run(&mut session, &mut now);
        if session.stream().len() > 32 * 1024 {
            session.stream().take_block();
        }
        if number % 20_000 == 19_999 {
            session.stream().take_block();
            live.push(LIVE.with(Cell::get));
        }
    }
    let growth = live[2] - live[0];
    assert!(growth < 4_096, "{growth} bytes more after 40,000 further turns");
}
