//! The same files read by tshark: what both say of each packet, connection and statement must be alike.
//!
//! The traffic is real: pgbench and psql at a PostgreSQL, and two drivers at a MariaDB, captured by tcpdump on the loopback
//! interface. Losses, reordering, duplicates and cuts are made by editing its packets, so that each is known. Where this user
//! may not capture packets, the tests say so and compare nothing.

mod common;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use common::split;
use common::tcpdump::Tcpdump;
use onetrip_capture::{Capture, CaptureConfig, CaptureFile, Marks};
use onetrip_ledger::trace::{Records, decode_block};
use onetrip_ledger::{Record, Steps, TraceError, UnitKind};
use onetrip_mysqlserver::{Kind, MysqlServer, repository};
use onetrip_pgserver::PgServer;
use onetrip_sql::{Lifter, MysqlMode};

/// Captures that are made until the kernel has dropped no packet of one, and brought all in order.
const TRIES: usize = 5;
/// Edited captures of each kind.
const SEEDS: u64 = 4;
const BIN: &str = "/usr/lib/postgresql/15/bin";
const FIELDS: [&str; 9] = [
    "tcp.analysis.retransmission",
    "tcp.analysis.fast_retransmission",
    "tcp.analysis.spurious_retransmission",
    "tcp.analysis.out_of_order",
    "tcp.analysis.lost_segment",
    "tcp.analysis.ack_lost_segment",
    "tcp.analysis.keep_alive",
    "tcp.analysis.zero_window",
    "tcp.analysis.duplicate_ack",
];

/// Texts and prepared statements, rows that a segment does not hold, errors, and statements that are sent piece by piece.
const MYSQL_PROGRAM: &str = "
import sys, mysql.connector, pymysql
host, port, user, password, database = sys.argv[1:]
at = dict(host=host, port=int(port), user=user, password=password, database=database)
with pymysql.connect(**at, autocommit=True) as connection, connection.cursor() as cursor:
    cursor.execute('CREATE TABLE books (id INT PRIMARY KEY, title TEXT)')
    for number in range(40):
        cursor.execute('INSERT INTO books VALUES (%s, %s)', (number, 'x' * 300))
    for number in range(100):
        cursor.execute('SELECT title FROM books WHERE id = %s', (number,))
    cursor.execute('SELECT a.id, b.title FROM books a, books b')
    cursor.execute('SELECT %s', ('y' * 100_000,))
    try:
        cursor.execute('SELECT 1 FROM nowhere')
    except pymysql.err.ProgrammingError:
        pass
with mysql.connector.connect(**at, use_pure=True, ssl_disabled=True) as connection:
    with connection.cursor(prepared=True) as cursor:
        for number in range(40):
            cursor.execute('SELECT title FROM books WHERE id = %s', (number,))
            cursor.fetchall()
";

/// What the name of a command of MySQL's that has no text begins with.
const NO_TEXT: &str = "/* COM_";

/// A capture, if the kernel had room for all of it.
struct Made {
    port: u16,
    file: Option<Vec<u8>>,
}

/// What is spoken in a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Postgres,
    Mysql,
}

impl Protocol {
    /// As tshark calls it.
    fn name(self) -> &'static str {
        match self {
            Self::Postgres => "pgsql",
            Self::Mysql => "mysql",
        }
    }

    fn template(self, text: &str) -> String {
        let mut lifter = Lifter::new();
        let lifted = match self {
            Self::Postgres => lifter.lift(text.as_bytes(), true),
            Self::Mysql => lifter.lift_mysql(text.as_bytes(), MysqlMode::default()),
        };
        String::from_utf8_lossy(lifted.template()).into_owned()
    }

    fn config(self, port: u16) -> CaptureConfig {
        match self {
            Self::Postgres => CaptureConfig { postgres_ports: vec![port], ..CaptureConfig::default() },
            Self::Mysql => CaptureConfig { mysql_ports: vec![port], ..CaptureConfig::default() },
        }
    }
}

type Captured = OnceLock<Option<(u16, Vec<u8>)>>;

/// A real capture: the server's port and the file's bytes; `None` where none can be made.
fn real() -> Option<&'static (u16, Vec<u8>)> {
    static CAPTURE: Captured = OnceLock::new();
    CAPTURE.get_or_init(|| whole(postgres)).as_ref()
}

/// The same of a MariaDB.
fn real_mysql() -> Option<&'static (u16, Vec<u8>)> {
    static CAPTURE: Captured = OnceLock::new();
    CAPTURE.get_or_init(|| whole(mariadb)).as_ref()
}

fn whole(capture: impl Fn() -> Option<Made>) -> Option<(u16, Vec<u8>)> {
    for _ in 0..TRIES {
        if let Made { port, file: Some(file) } = capture()? {
            return Some((port, file));
        }
    }
    panic!("the kernel has dropped packets of {TRIES} captures, or brought some out of order");
}

fn mariadb() -> Option<Made> {
    let server = MysqlServer::start(Kind::MariaDb, &[]);
    let at = &server.at;
    let tcpdump = Tcpdump::start(at.port)?;
    let done = Command::new(repository().join(".venv/bin/python"))
        .args(["-c", MYSQL_PROGRAM, &at.host, &at.port.to_string(), &at.user, &at.password, &at.database])
        .output()
        .expect("Python's packages are installed (scripts/setup test)");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(Made { port: at.port, file: tcpdump.stop() })
}

fn postgres() -> Option<Made> {
    let server = PgServer::start(&["--auth", "scram-sha-256"]);
    let tcpdump = Tcpdump::start(server.at.port)?;
    let run = |program: &str, arguments: &[&str]| {
        let done = Command::new(format!("{BIN}/{program}"))
            .args(arguments)
            .env("PGHOST", &server.at.host)
            .env("PGPORT", server.at.port.to_string())
            .env("PGUSER", &server.at.user)
            .env("PGPASSWORD", &server.at.password)
            .env("PGDATABASE", "postgres")
            .env("PGSSLMODE", "disable")
            .output()
            .expect("PostgreSQL's programs are installed");
        assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
    };
    run("pgbench", &["-i", "-q"]);
    run("pgbench", &["-n", "-M", "prepared", "-t", "40", "-c", "2"]);
    run("pgbench", &["-n", "-S", "-M", "simple", "-t", "100"]);
    run("psql", &["-c", "SELECT 'x' || 1 FROM nowhere", "-c", "SELECT relname, relkind FROM pg_class"]);
    let port = server.at.port;
    Some(Made { port, file: tcpdump.stop().filter(|file| is_in_order(file, port)) })
}

/// Whether all segments came in order: on a busy machine, data of COPY may not. tshark then takes no message behind it for one.
fn is_in_order(file: &[u8], port: u16) -> bool {
    let said = ours(file, port, Protocol::Postgres);
    ["tcp.analysis.out_of_order", "tcp.analysis.lost_segment"]
        .iter()
        .all(|field| said.frames.get(field).is_none_or(Vec::is_empty))
}

fn join(header: &[u8], packets: &[Vec<u8>]) -> Vec<u8> {
    [header, &packets.concat()].concat()
}

/// Whether a packet of an Ethernet link has the SYN flag.
fn is_handshake(packet: &[u8]) -> bool {
    packet.get(16 + 14 + 20 + 13).is_some_and(|flags| flags & 2 != 0)
}

/// Whether a packet is a SYN, or the client's first one behind both: where that is missing, tshark takes the server's greeting
/// for the end of the handshake. `answered` has the clients' ports whose SYN was answered last.
fn is_of_handshake(packet: &[u8], answered: &mut HashSet<u16>) -> bool {
    let tcp = &packet[16 + 14 + 20..];
    let [source, destination] = [0, 2].map(|at| u16::from_be_bytes([tcp[at], tcp[at + 1]]));
    let is_syn = is_handshake(packet);
    if is_syn && tcp[13] & 16 != 0 {
        answered.insert(destination);
    }
    is_syn || answered.remove(&source)
}

/// What a reader says of a file.
#[derive(Debug, Default, PartialEq)]
struct Said {
    /// Frames by field.
    frames: BTreeMap<&'static str, Vec<usize>>,
    /// Initial round-trip times of the connections, in microseconds.
    rtts: Vec<u64>,
    /// Templates by how often their text was sent.
    statements: BTreeMap<String, u64>,
    /// Bytes that the capture missed, and those whose meaning is unknown; ours only.
    missed_bytes: u64,
    unknown_bytes: u64,
}

fn tshark(path: &Path, port: u16, protocol: Protocol) -> Said {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(path).args([
        "-d",
        &format!("tcp.port=={port},{}", protocol.name()),
        "-T",
        "fields",
        "-E",
        "separator=\u{1}",
    ]);
    command.args([
        "-E",
        "aggregator=\u{2}",
        "-e",
        "frame.number",
        "-e",
        "tcp.stream",
        "-e",
        "tcp.analysis.initial_rtt",
    ]);
    command.args(["-e", &format!("{}.query", protocol.name())]);
    for field in FIELDS {
        command.args(["-e", field]);
    }
    let done = command.stderr(Stdio::null()).output().expect("tshark is installed (scripts/setup test)");
    assert!(done.status.success());
    let mut said = Said::default();
    let mut rtts = BTreeMap::new();
    for line in String::from_utf8_lossy(&done.stdout).lines() {
        let cells: Vec<&str> = line.split('\u{1}').collect();
        if cells.len() < 4 + FIELDS.len() {
            continue; // a statement with a line feed in it goes on here
        }
        let frame: usize = cells[0].parse().expect("a number");
        if let Ok(rtt) = cells[2].parse::<f64>() {
            rtts.insert(cells[1].to_owned(), (rtt * 1e6).round() as u64);
        }
        for query in cells[3].split('\u{2}').filter(|query| !query.is_empty()) {
            *said.statements.entry(protocol.template(query)).or_default() += 1;
        }
        for (field, cell) in FIELDS.iter().zip(&cells[4..]) {
            if !cell.is_empty() {
                said.frames.entry(field).or_default().push(frame);
            }
        }
    }
    said.rtts = rtts.into_values().collect();
    said.rtts.sort_unstable();
    said
}

fn ours(file: &[u8], port: u16, protocol: Protocol) -> Said {
    let mut said = Said::default();
    let mut reader = CaptureFile::new();
    let mut capture = Capture::new(protocol.config(port));
    let mut texts: BTreeMap<(u32, u32), String> = BTreeMap::new();
    let mut records = Records::default();
    let mut book = |stream: u32, block: &[u8], statements: &mut BTreeMap<String, u64>| {
        decode_block::<TraceError>(&mut records, stream, block, |record| {
            match record {
                Record::Template { id, text } => {
                    texts.insert((stream, id), String::from_utf8_lossy(text).into_owned());
                }
                Record::Exchange(exchange) => {
                    let is_query = exchange.kind == UnitKind::Query;
                    for statement in &exchange.statements {
                        if is_query || statement.steps.has(Steps::PREPARE) {
                            let text = texts.get(&(stream, statement.template)).cloned().unwrap_or_default();
                            if !text.starts_with(NO_TEXT) {
                                *statements.entry(text).or_default() += 1;
                            }
                        }
                    }
                }
                _ => {}
            }
            Ok(())
        })
        .expect("own records");
    };
    let mut rest = file;
    let mut frame = 0;
    loop {
        while let Some(packet) = reader.next_packet().expect("a good file") {
            frame += 1;
            let marks =
                capture.packet(&packet, &mut |stream, block| book(stream, block, &mut said.statements));
            for (field, is_set) in FIELDS.iter().zip(cells(marks.unwrap_or_default())) {
                if is_set {
                    said.frames.entry(field).or_default().push(frame);
                }
            }
        }
        let count = rest.len().min(reader.room().len());
        if count == 0 {
            break;
        }
        reader.room()[..count].copy_from_slice(&rest[..count]);
        reader.filled(count);
        rest = &rest[count..];
    }
    let network = capture.finish(0, &mut |stream, block| book(stream, block, &mut said.statements));
    (said.missed_bytes, said.unknown_bytes) = (network.capture.missed_bytes, network.capture.unknown_bytes);
    said.rtts =
        network.paths.iter().filter_map(|named| named.path.initial_rtt_ns).map(|rtt| rtt / 1_000).collect();
    said.rtts.sort_unstable();
    said
}

fn cells(marks: Marks) -> [bool; 9] {
    [
        marks.retransmission,
        marks.fast_retransmission,
        marks.spurious_retransmission,
        marks.out_of_order,
        marks.lost_segment,
        marks.ack_lost_segment,
        marks.keep_alive,
        marks.zero_window,
        marks.duplicate_ack,
    ]
}

fn compare(file: &[u8], port: u16, protocol: Protocol, compares_statements: bool) {
    // Kept where the test fails, so that the difference can be looked at.
    let directory = tempfile::tempdir().expect("a directory").keep();
    let path = directory.join("edited.pcap");
    std::fs::write(&path, file).expect("room for a file");
    let (mut one, mut other) = (tshark(&path, port, protocol), ours(file, port, protocol));
    if !compares_statements {
        one.statements.clear();
        other.statements.clear();
    }
    assert_eq!(one.rtts, other.rtts, "initial round-trip times in {}", path.display());
    assert_eq!(one.statements, other.statements, "statements");
    for field in FIELDS {
        let of = |said: &Said| said.frames.get(field).cloned().unwrap_or_default();
        assert_eq!(of(&one), of(&other), "frames with {field}: tshark's and ours, in {}", path.display());
    }
    std::fs::remove_dir_all(&directory).expect("it is there");
}

#[test]
fn of_a_real_capture_tshark_says_the_same() {
    let Some((port, file)) = real() else { return };
    assert!(split(file).1.len() > 500, "there is something to compare");
    compare(file, *port, Protocol::Postgres, true);
}

#[test]
fn of_a_real_capture_of_mysql_tshark_says_the_same() {
    let Some((port, file)) = real_mysql() else { return };
    assert!(split(file).1.len() > 300, "there is something to compare");
    compare(file, *port, Protocol::Mysql, true);
}

#[test]
fn of_mysqls_frames_that_the_capture_missed_the_turns_are_counted_and_no_statement_is_guessed() {
    let Some((port, file)) = real_mysql() else { return };
    let (header, packets) = split(file);
    let whole = ours(file, *port, Protocol::Mysql);
    assert_eq!(whole.unknown_bytes, 0);
    for seed in 0..SEEDS {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut kept = packets.clone();
        let mut is_answered = HashSet::new();
        kept.retain(|packet| is_of_handshake(packet, &mut is_answered) || random.u8(..30) != 0);
        let edited = join(&header, &kept);
        compare(&edited, *port, Protocol::Mysql, false);
        let said = ours(&edited, *port, Protocol::Mysql);
        assert!(said.unknown_bytes >= said.missed_bytes);
        for (text, count) in said.statements.iter().filter(|(text, _)| !text.is_empty()) {
            assert!(whole.statements.get(text).is_some_and(|known| known >= count), "{text}: {count} times");
        }
    }
}

#[test]
fn of_duplicates_and_swapped_neighbours_tshark_says_the_same() {
    let Some((port, file)) = real() else { return };
    let (header, packets) = split(file);
    for seed in 0..SEEDS {
        compare(&join(&header, &disordered(&packets, seed)), *port, Protocol::Postgres, false);
    }
}

#[test]
fn of_frames_that_the_capture_missed_tshark_says_the_same() {
    let Some((port, file)) = real() else { return };
    let (header, packets) = split(file);
    for seed in 0..SEEDS {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut kept = packets.clone();
        kept.retain(|_| random.u8(..30) != 0);
        compare(&join(&header, &kept), *port, Protocol::Postgres, false);
    }
}

#[test]
fn after_gaps_in_copy_data_every_statement_is_known_that_tshark_knows() {
    let Some((port, file)) = real() else { return };
    let (header, packets) = split(file);
    let whole = ours(file, *port, Protocol::Postgres);
    // Only COPY data makes a client's segments so long.
    let is_copy =
        |packet: &Vec<u8>| packet.len() > 4_000 && packet[16 + 14 + 20 + 2..][..2] == port.to_be_bytes();
    // A segment that was sent twice leaves no gap where one of the two is missing.
    let is_sent_once = |packet: &Vec<u8>| {
        let sent = segment(packet);
        packets.iter().filter(|other| overlap(sent, segment(other))).count() == 1
    };
    let places: Vec<usize> = (0..packets.len())
        .filter(|place| is_copy(&packets[*place]) && is_sent_once(&packets[*place]))
        .collect();
    assert!(places.len() > 10, "pgbench -i copies its rows");
    for seed in 0..2 * SEEDS {
        let mut random = fastrand::Rng::with_seed(seed);
        let first = places[random.usize(..places.len() - 4)];
        let count = random.usize(1..=3);
        let kept = [&packets[..first], &packets[first + count..]].concat();
        let edited = join(&header, &kept);
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("edited.pcap");
        std::fs::write(&path, &edited).expect("room for a file");
        let (theirs, ours) =
            (tshark(&path, *port, Protocol::Postgres), ours(&edited, *port, Protocol::Postgres));
        assert!(ours.missed_bytes > 4_000, "{} packets from {first} on", count);
        let unknown = ours.missed_bytes..ours.missed_bytes + 4_000;
        assert!(unknown.contains(&ours.unknown_bytes), "{} of {}", ours.unknown_bytes, ours.missed_bytes);
        assert_eq!(ours.statements, whole.statements, "none of them was in what is missing");
        for (text, count) in &theirs.statements {
            assert!(ours.statements.get(text).is_some_and(|known| known >= count), "{text}: {count} times");
        }
    }
}

/// A packet's source port, the sequence number of its first byte, and how many bytes it carries.
fn segment(packet: &[u8]) -> (u16, u32, u32) {
    let (ip, tcp) = (&packet[16 + 14..], &packet[16 + 14 + 20..]);
    let number = |at: usize| u32::from_be_bytes([tcp[at], tcp[at + 1], tcp[at + 2], tcp[at + 3]]);
    let length = u16::from_be_bytes([ip[2], ip[3]]) as u32 - 20 - u32::from(tcp[12] >> 4) * 4;
    (u16::from_be_bytes([tcp[0], tcp[1]]), number(4), length)
}

/// Whether two segments carry a byte of one stream in common.
fn overlap(
    (port, first, length): (u16, u32, u32),
    (other_port, other_first, other_length): (u16, u32, u32),
) -> bool {
    let begins_in = |at: u32, from: u32, length: u32| at.wrapping_sub(from) < length;
    port == other_port
        && (begins_in(first, other_first, other_length) || begins_in(other_first, first, length))
}

/// Packets twice, and packets after later ones.
fn disordered(packets: &[Vec<u8>], seed: u64) -> Vec<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut packets = packets.to_vec();
    let mut place = 1;
    while place + 40 < packets.len() {
        let packet = packets[place].clone();
        if is_handshake(&packet) {
            place += 1; // nobody sends before the answer to a SYN
            continue;
        }
        match random.u8(..2) {
            0 => {
                // Sent again: a copy by the capture would have the same IP identification.
                let mut again = packet;
                again[16 + 14 + 4] ^= 0x80;
                packets.insert(place + 1, again);
            }
            _ => {
                packets.remove(place);
                let later = place + 3 + random.usize(..20);
                packets.insert(later, packet);
            }
        }
        place += 25 + random.usize(..40);
    }
    // Their times stay in order, as if the network had done it.
    let mut times: Vec<[u8; 8]> = packets.iter().filter_map(|packet| packet.first_chunk().copied()).collect();
    times.sort_by_key(|time| {
        let part = |at: usize| u32::from_le_bytes([time[at], time[at + 1], time[at + 2], time[at + 3]]);
        (part(0), part(4))
    });
    for (packet, time) in packets.iter_mut().zip(times) {
        packet[..8].copy_from_slice(&time);
    }
    packets
}

#[test]
fn of_cut_packets_tshark_says_the_same() {
    let Some((port, file)) = real() else { return };
    let (header, packets) = split(file);
    let cut: Vec<_> = packets
        .into_iter()
        .map(|mut packet| {
            let captured = (packet.len() - 16).min(90);
            packet.truncate(16 + captured);
            packet[8..12].copy_from_slice(&(captured as u32).to_le_bytes());
            packet
        })
        .collect();
    compare(&join(&header, &cut), *port, Protocol::Postgres, false);
}
