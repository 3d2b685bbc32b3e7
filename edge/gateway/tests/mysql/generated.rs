//! Generated sessions: commands in any order, alone and several at once, whole and cut off. Bytes are the same on both sides
//! of the gateway, and what is counted is what the client's own dialogue counts.
//!
//! `ONETRIP_MYSQL_SESSIONS=5000` plays so many on each server.

use fastrand::Rng;
use onetrip_mysqlserver::Kind;
use onetrip_wire::mysql::packet;

use crate::raw::RawClient;
use crate::tap::{From, Tap};
use crate::{Watching, alone, open_server};

/// Sessions on each server where nothing else is said.
const SESSIONS: u64 = 150;

const TEXTS: [&str; 16] = [
    "SELECT 1",
    "SELECT id, name FROM made WHERE id > 2 ORDER BY id",
    "SELECT * FROM made",
    "SELECT * FROM nowhere",
    "SELEC 1",
    "",
    "INSERT INTO made (name) VALUES ('it\\'s'), (\"two\"), (NULL)",
    "UPDATE made SET name = 'x' WHERE id % 3 = 0",
    "DELETE FROM made WHERE id > 40",
    "START TRANSACTION",
    "COMMIT",
    "ROLLBACK",
    "SELECT 1; SELECT 2, 3; UPDATE made SET name = 'y' WHERE id = 1; SELECT * FROM nowhere; SELECT 4",
    "SELECT REPEAT('r', 70000), REPEAT('s', 300)",
    "SET @a = 5, autocommit = 1",
    "SELECT /* why */ SQL_NO_CACHE 'a # b', `id` FROM made -- end",
];
const PREPARED: [(&str, usize); 7] = [
    ("SELECT id, name FROM made WHERE id > ?", 1),
    ("SELECT ? + 1, 'fixed', ?", 2),
    ("INSERT INTO made (name) VALUES (?)", 1),
    ("SELECT id FROM made", 0),
    ("SELECT * FROM nowhere WHERE a = ?", 1),
    ("DO ?", 1),
    ("CALL gives(?)", 1),
];

fn pick<T: Copy>(random: &mut Rng, of: &[T]) -> T {
    of[random.usize(..of.len())]
}

/// A statement that was prepared, and the number of its parameters.
type Prepared = (u32, usize);

/// One session; its end is the client's.
fn play(random: &mut Rng, client: &mut RawClient) {
    let mut statements: Vec<Prepared> = Vec::new();
    for _ in 0..random.u64(..14) {
        match random.u64(..12) {
            0..=3 => {
                client.query(pick(random, &TEXTS));
            }
            4 | 5 => {
                let (text, parameters) = pick(random, &PREPARED);
                client.prepared = 0;
                client.turn(&[b"\x16", text.as_bytes()].concat());
                statements.extend((client.prepared != 0).then_some((client.prepared, parameters)));
            }
            6..=8 => run_prepared(random, client, &mut statements),
            9 => several_at_once(random, client),
            10 => {
                // COM_PING, COM_STATISTICS, COM_INIT_DB, COM_FIELD_LIST, and what no server knows.
                client.turn(pick(
                    random,
                    &[&b"\x0e"[..], b"\x09", b"\x02onetrip", b"\x04made\0", b"\x02nowhere", b"\x1d"],
                ));
            }
            _ => load_file(random, client),
        }
    }
}

fn run_prepared(random: &mut Rng, client: &mut RawClient, statements: &mut Vec<Prepared>) {
    if statements.is_empty() {
        return;
    }
    let at = random.usize(..statements.len());
    let (statement, parameters) = statements[at];
    let of_statement = |code: u8| [&[code][..], &statement.to_le_bytes()].concat();
    match random.u64(..8) {
        0 => {
            client.send(0, &of_statement(0x19));
            statements.swap_remove(at);
        }
        1 => {
            client.turn(&of_statement(0x1a));
        }
        2 if parameters > 0 => {
            client.send(0, &[&of_statement(0x18)[..], b"\0\0sent ahead"].concat());
        }
        way => {
            let wants_cursor = way == 3;
            let mut body = of_statement(0x17);
            body.push(u8::from(wants_cursor));
            body.extend_from_slice(&1u32.to_le_bytes());
            if parameters > 0 {
                body.extend_from_slice(&[0, 1]);
                (0..parameters).for_each(|_| body.extend_from_slice(&[8, 0]));
                (0..parameters).for_each(|_| body.extend_from_slice(&random.u64(..50).to_le_bytes()));
            }
            if client.turn(&body).opened_cursor {
                for _ in 0..random.u64(..4) {
                    client.turn(&[&of_statement(0x1c)[..], &3u32.to_le_bytes()].concat());
                }
            }
        }
    }
}

fn several_at_once(random: &mut Rng, client: &mut RawClient) {
    let (mut bytes, count) = (Vec::new(), 2 + random.usize(..4));
    for _ in 0..count {
        let text = pick(random, &TEXTS[..12]);
        packet(&mut bytes, 0, |out| {
            out.push(3);
            out.extend_from_slice(text.as_bytes());
        });
    }
    let due = client.replies.len() + count;
    client.send_raw(&bytes);
    while client.replies.len() < due {
        assert!(client.read(), "the server goes on");
    }
}

fn load_file(random: &mut Rng, client: &mut RawClient) {
    client.query("LOAD DATA LOCAL INFILE 'any' INTO TABLE made (name)");
    if !std::mem::take(&mut client.asked_for_file) {
        return; // it failed
    }
    let pieces = random.u8(..3);
    (0..pieces).for_each(|number| client.send(2 + number, b"of a file\nanother\n"));
    client.send(2 + pieces, b"");
    client.answer();
}

fn check(kind: Kind, seed: u64) {
    let _alone = alone();
    let sessions = std::env::var("ONETRIP_MYSQL_SESSIONS").ok().and_then(|count| count.parse().ok());
    let sessions: u64 = sessions.unwrap_or(SESSIONS);
    let server = &open_server(kind).at;
    let mut direct = RawClient::connect(server.port, &server.database);
    direct.query("DROP TABLE IF EXISTS made");
    direct.query("CREATE TABLE made (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40))");
    direct.query("DROP PROCEDURE IF EXISTS gives");
    direct.query("CREATE PROCEDURE gives(OUT x INT) BEGIN SELECT 1; SET x = 5; END");
    let behind = Tap::start(server.port);
    let gateway = Watching::start(behind.port);
    let before = Tap::start(gateway.port);
    let (mut trips, mut units, mut cut_off) = (0, 0, 0);
    for session in 0..sessions {
        let mut random = Rng::with_seed(seed + session);
        let mut client = RawClient::connect(before.port, &server.database);
        play(&mut random, &mut client);
        let is_cut_off = random.u64(..4) == 0;
        if is_cut_off {
            client.send_cut_off(b"\x03SELECT 'never whole'", 9);
        } else {
            client.send(0, b"\x01");
        }
        client.ends();
        while client.read() {}
        cut_off += u64::from(is_cut_off);
        trips += 1 + client.trips();
        units += client.replies.len() as u64;
    }
    let summary = gateway.summary();
    let (before, behind) = (before.tapes(), behind.tapes());
    assert_eq!((before.len() as u64, behind.len() as u64), (sessions, sessions));
    for (number, (one, other)) in before.iter().zip(&behind).enumerate() {
        for from in [From::Client, From::Server] {
            assert!(
                one.bytes_of(from) == other.bytes_of(from),
                "session {number}: bytes of the {from:?} differ"
            );
        }
    }
    assert_eq!((summary.connections, summary.sessions), (sessions, sessions));
    assert_eq!(summary.trips.total, trips, "trips");
    assert!(!summary.gaps.has_loss() && summary.undecoded == 0 && summary.unasked_replies == 0);
    assert!(cut_off > 0 && units > sessions, "{cut_off} of {sessions} were cut off");
    println!("{kind:?}: {sessions} sessions, {trips} trips, {units} answers, {cut_off} cut off");
}

#[test]
fn generated_sessions_are_the_same_on_both_sides_before_mariadb() {
    check(Kind::MariaDb, 1_000_000);
}

#[test]
fn generated_sessions_are_the_same_on_both_sides_before_mysql() {
    check(Kind::Mysql56, 2_000_000);
}
