//! Deterministic simulation: a client and a server of MySQL on a virtual clock, seeded, by the thousand, and ten planted bugs
//! that it has to find. What has to be booked is known to who makes up the conversation.

use onetrip_ledger::{Exchange, Outcome, TransactionStatus, UnitKind};
use onetrip_session::Verdict;
use onetrip_wire::mysql::dialogue::Side;
use onetrip_wire::mysql::packet;

use crate::stage::{
    BIGINT, Books, NO_SUCH_TABLE, OK, PLAIN, Stage, TEXT, binary_row, column, execute, greeting, login,
    of_statement, prepare, prepared, query, row,
};

const CLOSE: u8 = 0x19;
const PING: u8 = 0x0e;
const IN_TRANSACTION: u8 = 0x01;
const AUTOCOMMIT: u8 = 0x02;
const MORE_RESULTS: u8 = 0x08;

/// A bug that a session could have, planted at its edges: what it is shown is not what passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bug {
    GreetingNotSeen,
    CommandNotSeen,
    CloseNotSeen,
    AnswerNotSeen,
    ErrorTakenForOk,
    RowLost,
    MoreResultsForgotten,
    TransactionForgotten,
    /// Of a packet that comes in pieces, one is lost.
    PieceLost,
    /// Two pieces change places.
    PiecesSwapped,
}

/// What a packet is, for the bugs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Greeting,
    Command,
    Close,
    Ok,
    Error,
    Row,
    End,
    Other,
}

#[derive(Debug, Clone)]
struct Packet {
    what: What,
    sequence: u8,
    payload: Vec<u8>,
}

/// What has to be booked of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Booked {
    kind: UnitKind,
    starts_trip: bool,
    bytes: (u64, u64),
    text: String,
    parameters: Vec<u64>,
    rows: u64,
    outcome: Outcome,
    status: TransactionStatus,
}

/// A command with its answer.
struct Act {
    commands: Vec<Packet>,
    answer: Vec<Packet>,
    booked: Booked,
}

/// A client that makes up commands, and the server that answers them.
struct World {
    random: fastrand::Rng,
    hasher: onetrip_ledger::ValueHasher,
    is_in_transaction: bool,
    /// Prepared statements by their numbers, with the texts of their templates.
    statements: Vec<(u32, String)>,
    next_statement: u32,
}

fn sized(packets: &[Packet]) -> u64 {
    packets.iter().map(|packet| packet.payload.len() as u64 + 4).sum()
}

impl World {
    fn status(&self) -> u8 {
        AUTOCOMMIT | if self.is_in_transaction { IN_TRANSACTION } else { 0 }
    }

    fn end(&self, more: bool) -> Packet {
        let flags = self.status() | if more { MORE_RESULTS } else { 0 };
        Packet { what: What::End, sequence: 0, payload: vec![0xfe, 0, 0, flags, 0] }
    }

    /// One result set, in text or in binary.
    fn rows(&mut self, count: u64, is_binary: bool, more: bool) -> Vec<Packet> {
        let other = |payload| Packet { what: What::Other, sequence: 0, payload };
        let kind = if is_binary { BIGINT } else { TEXT };
        let mut packets = vec![other(vec![1]), other(column("c", kind)), self.end(false)];
        packets[2].what = What::Other;
        for _ in 0..count {
            let number = self.random.i64(0..1_000_000);
            let payload = if is_binary { binary_row(&[number]) } else { row(&[&number.to_string()]) };
            packets.push(Packet { what: What::Row, sequence: 0, payload });
        }
        packets.push(self.end(more));
        packets
    }

    fn okay(&self) -> Packet {
        let mut payload = OK.to_vec();
        payload[3] = self.status();
        Packet { what: What::Ok, sequence: 0, payload }
    }

    /// Some command; the statements that it may run were prepared before the group of commands that it is in.
    fn act(&mut self, known: &[(u32, String)]) -> Act {
        let mut commands = Vec::new();
        let may_close = self.statements.len() > known.len().max(2) && self.random.u8(..) < 60;
        if may_close {
            let (number, _) = self.statements.pop().expect("there is one");
            commands.push(Packet { what: What::Close, sequence: 0, payload: of_statement(CLOSE, number) });
        }
        let (table, number) = (self.random.u8(0..5), self.random.u32(0..1000));
        let count = u64::from(self.random.u8(0..20));
        let template = format!("SELECT name FROM t{table} WHERE id = $1");
        let hashed = vec![self.hasher.hash(number.to_string().as_bytes())];
        let (mut kind, mut rows, mut outcome) = (UnitKind::Query, 0, Outcome::Done);
        let (command, answer, text, parameters) = match self.random.u8(0..8) {
            0 => {
                self.is_in_transaction = !self.is_in_transaction;
                let text = if self.is_in_transaction { "START TRANSACTION" } else { "COMMIT" };
                (query(text), vec![self.okay()], text.to_owned(), Vec::new())
            }
            1 => {
                outcome = Outcome::Failed(*b"42S02");
                let error = Packet { what: What::Error, sequence: 0, payload: NO_SUCH_TABLE.to_vec() };
                (query(&template.replace("$1", &number.to_string())), vec![error], template, hashed)
            }
            2 => (vec![PING], vec![self.okay()], "/* COM_PING */".to_owned(), Vec::new()),
            3 => {
                kind = UnitKind::Group;
                let statement = self.next_statement;
                self.next_statement += 1;
                let other = |payload| Packet { what: What::Other, sequence: 0, payload };
                let mut answer = vec![other(prepared(statement, 1, 1)), other(column("?", TEXT))];
                answer.extend([self.end(false), other(column("name", TEXT)), self.end(false)]);
                answer.iter_mut().for_each(|packet| packet.what = What::Other);
                self.statements.push((statement, template.clone()));
                (prepare(&template.replace("$1", "?")), answer, template, Vec::new())
            }
            4 if !known.is_empty() => {
                (kind, rows) = (UnitKind::Group, count);
                let (statement, text) = known[self.random.usize(0..known.len())].clone();
                let answer = self.rows(count, true, false);
                (execute(statement, 0, &[i64::from(number)]), answer, text, hashed)
            }
            5 => {
                let more = u64::from(self.random.u8(0..5));
                rows = count + more;
                let mut answer = self.rows(count, false, true);
                answer.extend(self.rows(more, false, false));
                let text = format!("{template}; SELECT $2");
                let sent = text.replace("$1", &number.to_string()).replace("$2", "5");
                (query(&sent), answer, text, [hashed, vec![self.hasher.hash(b"5")]].concat())
            }
            _ => {
                rows = count;
                let answer = self.rows(count, false, false);
                (query(&template.replace("$1", &number.to_string())), answer, template, hashed)
            }
        };
        commands.push(Packet { what: What::Command, sequence: 0, payload: command });
        let answer: Vec<Packet> =
            (1..).zip(answer).map(|(sequence, packet)| Packet { sequence, ..packet }).collect();
        let status = if self.is_in_transaction { TransactionStatus::Active } else { TransactionStatus::Idle };
        let bytes = (sized(&commands), sized(&answer));
        let booked = Booked { kind, starts_trip: true, bytes, text, parameters, rows, outcome, status };
        Act { commands, answer, booked }
    }
}

/// What the session sees of packets.
fn seen(packets: &[Packet], bug: Option<Bug>) -> Vec<Packet> {
    let mut packets = packets.to_vec();
    let mut lose = |what: What| packets.retain(|packet| packet.what != what);
    match bug {
        Some(Bug::GreetingNotSeen) => lose(What::Greeting),
        Some(Bug::CommandNotSeen) => lose(What::Command),
        Some(Bug::CloseNotSeen) => lose(What::Close),
        Some(Bug::AnswerNotSeen) => lose(What::Ok),
        Some(Bug::RowLost) => {
            if let Some(at) = packets.iter().position(|packet| packet.what == What::Row) {
                packets.remove(at);
                packets[at..].iter_mut().for_each(|packet| packet.sequence -= 1);
            }
        }
        Some(Bug::ErrorTakenForOk) => {
            let errors = packets.iter_mut().filter(|packet| packet.what == What::Error);
            errors.for_each(|packet| packet.payload = OK.to_vec());
        }
        Some(Bug::MoreResultsForgotten) => {
            let ends = packets.iter_mut().filter(|packet| packet.what == What::End);
            ends.for_each(|packet| packet.payload[3] &= !MORE_RESULTS);
        }
        Some(Bug::TransactionForgotten) => {
            let ends = packets.iter_mut().filter(|packet| matches!(packet.what, What::End | What::Ok));
            ends.for_each(|packet| packet.payload[3] &= !IN_TRANSACTION);
        }
        Some(Bug::PieceLost | Bug::PiecesSwapped) | None => {}
    }
    packets
}

/// Shows packets in pieces, each some time after the one before.
fn pass(stage: &mut Stage, side: Side, packets: &[Packet], random: &mut fastrand::Rng, bug: Option<Bug>) {
    let mut bytes = Vec::new();
    for Packet { sequence, payload, .. } in seen(packets, bug) {
        packet(&mut bytes, sequence, |out| out.extend_from_slice(&payload));
    }
    let mut pieces = Vec::new();
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(random.usize(1..=rest.len().min(200)));
        pieces.push(piece);
        rest = after;
    }
    if pieces.len() > 2 {
        match bug {
            Some(Bug::PieceLost) => drop(pieces.remove(1)),
            Some(Bug::PiecesSwapped) => pieces.swap(0, 1),
            _ => {}
        }
    }
    for piece in pieces {
        stage.now += random.u64(0..50_000);
        match side {
            Side::Client => stage.see(side, piece),
            Side::Server => {
                let verdict = stage.session.handle_server(onetrip_ledger::Moment(stage.now), piece);
                assert_eq!(verdict, Verdict::Forward(piece.len()), "all bytes pass");
            }
        }
    }
}

/// Plays a conversation, which may end at any moment, and compares the books.
fn simulate(seed: u64, groups: usize, bug: Option<Bug>) -> Result<usize, String> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut stage = Stage::connected();
    let mut world = World {
        random: fastrand::Rng::with_seed(!seed),
        hasher: stage.hasher.clone(),
        is_in_transaction: false,
        statements: Vec::new(),
        next_statement: 1,
    };
    let one = |what, sequence, payload: Vec<u8>| [Packet { what, sequence, payload }];
    pass(&mut stage, Side::Server, &one(What::Greeting, 0, greeting(PLAIN)), &mut random, bug);
    pass(&mut stage, Side::Client, &one(What::Other, 1, login(PLAIN, &[])), &mut random, bug);
    pass(&mut stage, Side::Server, &one(What::Other, 2, OK.to_vec()), &mut random, bug);
    let mut expected = Vec::new();
    for _ in 0..random.usize(1..=groups) {
        let known = world.statements.clone();
        let mut acts: Vec<Act> = (0..random.usize(1..4)).map(|_| world.act(&known)).collect();
        // What is sent without waiting shares a trip. What is never answered belongs to the command under way.
        for place in 1..acts.len() {
            let closes = acts[place].commands.iter().filter(|packet| packet.what == What::Close);
            let closed = sized(&closes.cloned().collect::<Vec<_>>());
            acts[place].booked.starts_trip = false;
            acts[place].booked.bytes.0 -= closed;
            acts[place - 1].booked.bytes.0 += closed;
        }
        let commands: Vec<Packet> = acts.iter().flat_map(|act| act.commands.clone()).collect();
        let answers: Vec<Packet> = acts.iter().flat_map(|act| act.answer.clone()).collect();
        stage.now += 1_000_000;
        pass(&mut stage, Side::Client, &commands, &mut random, bug);
        stage.now += 1_000_000;
        pass(&mut stage, Side::Server, &answers, &mut random, bug);
        expected.extend(acts.into_iter().map(|act| act.booked));
    }
    compare(&stage.books(), &expected)?;
    Ok(expected.len())
}

fn compare(books: &Books, expected: &[Booked]) -> Result<(), String> {
    let summary = &books.summary;
    let odd = (books.lost_bytes, summary.undecoded, summary.unanswered, summary.unasked_replies);
    if odd != (0, 0, 0, 0) {
        return Err(format!("lost, not decoded, not answered, not asked for: {odd:?}"));
    }
    if summary.trips.connect != 2 {
        return Err(format!("{} trips to connect", summary.trips.connect));
    }
    let work: Vec<&Exchange> =
        books.exchanges.iter().filter(|exchange| exchange.kind != UnitKind::Connect).collect();
    for (place, exchange) in work.iter().enumerate() {
        let booked = Booked {
            kind: exchange.kind,
            starts_trip: exchange.starts_trip,
            bytes: (exchange.bytes_sent, exchange.bytes_received),
            text: books.text(exchange).to_owned(),
            parameters: exchange.parameters.clone(),
            rows: exchange.statements[0].rows,
            outcome: exchange.outcome,
            status: exchange.status,
        };
        if Some(&booked) != expected.get(place) {
            return Err(format!("command {place}: {booked:?} instead of {:?}", expected.get(place)));
        }
    }
    if work.len() != expected.len() {
        return Err(format!("{} commands instead of {}", work.len(), expected.len()));
    }
    Ok(())
}

#[test]
fn thousands_of_conversations_are_booked_as_who_made_them_up_knows() {
    let mut commands = 0;
    for seed in 0..3_000 {
        commands += simulate(seed, 8, None).unwrap_or_else(|problem| panic!("seed {seed}: {problem}"));
    }
    assert!(commands > 20_000, "only {commands} commands");
}

#[test]
fn long_conversations_are_booked_right() {
    for seed in 100_000..100_050 {
        simulate(seed, 200, None).unwrap_or_else(|problem| panic!("seed {seed}: {problem}"));
    }
}

#[test]
fn each_planted_bug_is_found() {
    let bugs = [
        Bug::GreetingNotSeen,
        Bug::CommandNotSeen,
        Bug::CloseNotSeen,
        Bug::AnswerNotSeen,
        Bug::ErrorTakenForOk,
        Bug::RowLost,
        Bug::MoreResultsForgotten,
        Bug::TransactionForgotten,
        Bug::PieceLost,
        Bug::PiecesSwapped,
    ];
    for bug in bugs {
        assert!((0..200).any(|seed| simulate(seed, 6, Some(bug)).is_err()), "{bug:?} is not found");
    }
}
