//! How much of large objects is read ahead, where the gateway, the connection, a statement or a column says so: what the
//! server is asked for, and what the program gets from memory.

mod common;

use common::objects::{FIRST, READ, close, open, read, seek};
use common::server::{EMPLOYEES, PHOTOS, Server};
use common::wire::Wire;
use common::{Pair, bind, execute, message, parse, query, ready, startup, startup_with, sync};
use onetrip_ledger::Remedy;
use onetrip_session::{LobPolicy, LobPrefetch};

const LEVELS: [&str; 2] = ["read committed", "repeatable read"];

/// What the options of the gateway say.
fn policy(said: &[&str]) -> LobPolicy {
    said.iter().map(|one| one.parse::<LobPrefetch>().expect("a policy")).collect()
}

/// A session in a transaction that has read an object, so that others may be read ahead.
fn begun(level: &'static str, packet: &[u8], said: &[&str], first: &[&str]) -> Wire {
    let remedies = [Remedy::Begin, Remedy::Lobs].into_iter().collect();
    let pair = Pair::reading_ahead(packet, remedies, None, policy(said));
    let mut wire = Wire { pair, server: Server { level, ..Server::default() } };
    for text in first {
        wire.turn(&query(text));
    }
    // What the first of them finds out about these texts is of use to the second.
    let mut wire = wire.warmed().warmed();
    // The columns of a table are looked up when it first delivers an object.
    for text in ["BEGIN", PHOTOS, "COMMIT"] {
        wire.turn(&query(text));
    }
    wire.turn(&query("BEGIN"));
    read_object(&mut wire, FIRST - 1, 1);
    wire
}

/// What a call returns in a transaction.
fn value(bytes: &[u8]) -> Vec<u8> {
    [message(b'V', &[&(bytes.len() as u32).to_be_bytes(), bytes].concat()), ready(b'T')].concat()
}

fn object(oid: u32) -> Vec<u8> {
    (0..100 + oid).map(|at| (at * 7 + oid) as u8).collect()
}

/// Opens, reads so many bytes and closes, and looks at each answer.
fn read_object(wire: &mut Wire, oid: u32, count: i32) {
    let bytes = object(oid);
    let wanted = &bytes[..bytes.len().min(count as usize)];
    assert_eq!(wire.turn(&open(oid, READ)), value(&0i32.to_be_bytes()));
    assert_eq!(wire.turn(&read(0, count)), value(wanted));
    assert_eq!(wire.turn(&close(0)), value(&0i32.to_be_bytes()));
}

/// Reads the objects whose oids a result has delivered.
fn read_all(wire: &mut Wire, count: i32) {
    (1..=EMPLOYEES).for_each(|number| read_object(wire, 3 * number, count));
}

/// Bytes that the server was asked for since this call, by each `loread`.
fn asked(wire: &Wire, since: usize) -> Vec<i64> {
    let reads = wire.server.objects.calls[since..].iter().filter_map(|call| call.strip_prefix("read "));
    reads.map(|read| read.split_once(' ').and_then(|(_, count)| count.parse().ok()).unwrap_or(-1)).collect()
}

fn calls(wire: &Wire) -> usize {
    wire.server.objects.calls.len()
}

/// Calls of the program's that did not start a trip.
fn served(wire: Wire) -> u64 {
    wire.pair.books().summary.removed.get(&Remedy::Lobs).copied().unwrap_or(0)
}

/// The server is sent nothing but what the program sent.
fn reads_nothing_ahead(mut wire: Wire, what: &str) {
    let before = calls(&wire);
    read_all(&mut wire, 1000);
    let wanted: Vec<String> = (1..=EMPLOYEES)
        .flat_map(|number| {
            [format!("open {} {READ}", 3 * number), "read 0 1000".to_owned(), "close 0".to_owned()]
        })
        .collect();
    assert_eq!(wire.server.objects.calls[before..], wanted, "{what}");
}

/// Of each object so many bytes are asked for ahead of the program, which reads as many: at least so many calls are
/// answered from memory.
fn reads_ahead(mut wire: Wire, bytes: i64, least: u64, what: &str) {
    let before = calls(&wire);
    read_all(&mut wire, bytes as i32);
    let asked = asked(&wire, before);
    assert_eq!(asked, [bytes].repeat(EMPLOYEES as usize), "{what}");
    let served = served(wire);
    assert!(served >= least, "{what}: {served} from memory");
}

#[test]
fn a_locator_alone_means_that_nothing_is_read_ahead() {
    for level in LEVELS {
        let mut wire = begun(level, &startup(), &["-1"], &[]);
        wire.turn(&query(PHOTOS));
        reads_nothing_ahead(wire, level);
    }
}

#[test]
fn a_length_comes_along_and_no_bytes() {
    for (level, least) in [("read committed", 3 * 58), ("repeatable read", 4 * 50)] {
        let mut wire = begun(level, &startup(), &["0"], &[]);
        wire.turn(&query(PHOTOS));
        let before = calls(&wire);
        for oid in (1..=EMPLOYEES).map(|number| 3 * number) {
            let bytes = object(oid);
            assert_eq!(wire.turn(&open(oid, READ)), value(&0i32.to_be_bytes()));
            assert_eq!(wire.turn(&seek(0, 0, 2)), value(&(bytes.len() as i64).to_be_bytes()));
            assert_eq!(wire.turn(&seek(0, 0, 0)), value(&0i64.to_be_bytes()));
            assert_eq!(wire.turn(&close(0)), value(&0i32.to_be_bytes()));
        }
        assert_eq!(asked(&wire, before), [0; 0]);
        read_object(&mut wire, 3, 1000);
        assert_eq!(asked(&wire, before), [1000], "what the program reads is the server's");
        let served = served(wire);
        assert!(served >= least, "{level}: {served} from memory");
    }
}

#[test]
fn a_number_of_bytes_comes_along_and_no_more() {
    // In REPEATABLE READ `lo_open` is answered from memory as well, once there is a loop.
    for (level, least) in [("read committed", 2 * 58), ("repeatable read", 3 * 50)] {
        let mut wire = begun(level, &startup(), &["64"], &[]);
        wire.turn(&query(PHOTOS));
        reads_ahead(wire, 64, least, level);
    }
}

#[test]
fn a_length_that_the_bytes_do_not_tell_comes_along_with_them() {
    let mut wire = begun("read committed", &startup(), &["64"], &[]);
    for oid in (1..=EMPLOYEES).map(|number| 3 * number) {
        let bytes = object(oid);
        wire.turn(&open(oid, READ));
        assert_eq!(wire.turn(&seek(0, 0, 2)), value(&(bytes.len() as i64).to_be_bytes()));
        wire.turn(&seek(0, 0, 0));
        assert_eq!(wire.turn(&read(0, 1000)), value(&bytes));
        wire.turn(&close(0));
    }
    let served = served(wire);
    assert!(served >= 3 * 58, "all but lo_open and loread, which asks for more: {served}");
}

#[test]
fn reading_on_takes_as_many_bytes_again() {
    let mut wire = begun("read committed", &startup(), &["20"], &[]);
    wire.turn(&open(FIRST, READ));
    let before = calls(&wire);
    let bytes = object(FIRST);
    for at in 0..10 {
        assert_eq!(wire.turn(&read(0, 10)), value(&bytes[10 * at..10 * at + 10]));
    }
    // Bytes 20..30 and 50..60 and so on are the program's own reads: the server's next twenty go behind each.
    assert_eq!(asked(&wire, before), [10, 20, 10, 20, 10, 20]);
}

#[test]
fn what_is_learnt_is_the_default_and_goes_by_what_the_program_reads() {
    for said in [&[][..], &["auto"], &["-1", "auto"]] {
        let mut wire = begun("repeatable read", &startup(), said, &[]);
        wire.turn(&query(PHOTOS));
        read_all(&mut wire, 1000);
        assert!(asked(&wire, 0).iter().filter(|count| **count == 2048).count() >= 50, "a page of each");
        assert!(served(wire) >= 3 * 50);
    }
}

#[test]
fn a_connection_says_it_in_its_startup_packet_or_by_set() {
    let options = startup_with(&[("options", "-c onetrip.lob_prefetch=-1")]);
    for level in LEVELS {
        for (packet, said, first) in [
            (&options, "auto", &[][..]),
            (&options, "4000", &[]),
            (&startup(), "4000", &["SET onetrip.lob_prefetch = -1"]),
            (
                &startup(),
                "auto",
                &["SET onetrip.lob_prefetch = 0", "SET SESSION onetrip.lob_prefetch TO '-1'"],
            ),
            (&options, "auto", &["SET onetrip.lob_prefetch = 64", "RESET ALL"]),
            (&options, "auto", &["SET onetrip.lob_prefetch = 64", "DISCARD ALL"]),
            (&options, "auto", &["BEGIN", "SET onetrip.lob_prefetch = 64", "ROLLBACK"]),
            (&options, "auto", &["BEGIN", "SET LOCAL onetrip.lob_prefetch = 64", "COMMIT"]),
        ] {
            reads_nothing_ahead(begun(level, packet, &[said], first), &format!("{said} {first:?}"));
        }
        let first = ["SET onetrip.lob_prefetch = 64"];
        let mut wire = begun(level, &options, &["-1"], &first);
        wire.turn(&query(PHOTOS));
        reads_ahead(wire, 64, 2 * 58, "SET");
        let mut wire =
            begun(level, &startup(), &["64"], &["SELECT set_config('onetrip.lob_prefetch', '0', false)"]);
        wire.turn(&query(PHOTOS));
        reads_ahead(wire, 64, 2 * 58, "what is not known leaves the gateway's");
    }
}

#[test]
fn a_setting_of_a_transaction_holds_for_it() {
    let mut wire = begun("read committed", &startup(), &["-1"], &[]);
    wire.turn(&query("SET LOCAL onetrip.lob_prefetch = 64"));
    let before = calls(&wire);
    for number in 1..=10 {
        wire.turn(&open(3 * number, READ));
        assert!(wire.is_answered(&read(0, 64)), "from memory");
        wire.turn(b"");
        wire.turn(&close(0));
    }
    assert_eq!(asked(&wire, before), [64; 10]);
    wire.turn(&query("COMMIT"));
    wire.turn(&query("BEGIN"));
    read_object(&mut wire, FIRST, 64);
    let before = calls(&wire);
    read_object(&mut wire, FIRST, 64);
    let wanted = [format!("open {FIRST} {READ}"), "read 0 64".to_owned(), "close 0".to_owned()];
    assert_eq!(wire.server.objects.calls[before..], wanted);
}

#[test]
fn a_statement_says_it_of_the_objects_that_it_delivers() {
    for level in LEVELS {
        let text = format!("{PHOTOS} /* onetrip.lob_prefetch=-1 */");
        let bound = [parse("", &text), bind("", "", &[]), execute(""), sync()].concat();
        let described = [parse("s", &text), message(b'D', b"Ss\0"), sync()].concat();
        let again = [bind("", "s", &[]), execute(""), sync()].concat();
        for (sent, what) in [
            (vec![query(&text)], "simple"),
            (vec![query(PHOTOS), query(&text)], "the last that delivered them counts"),
            (vec![described, again], "prepared"),
        ] {
            let mut wire = begun(level, &startup(), &["4000"], &["SET onetrip.lob_prefetch = 64"]);
            sent.iter().for_each(|sent| drop(wire.turn(sent)));
            reads_nothing_ahead(wire, what);
        }
        let mut wire = begun(level, &startup(), &["-1"], &[]);
        wire.turn(&query(&text.replace("-1", "64")));
        reads_ahead(wire, 64, 2 * 58, "64");
        let mut wire = begun(level, &startup(), &["64"], &[]);
        wire.turn(&query(&text));
        wire.turn(&query(PHOTOS));
        reads_ahead(wire, 64, 2 * 58, "it does not speak for another");
        let mut wire = begun(level, &startup(), &["64"], &[]);
        wire.turn(&bound); // without a description nobody knows what the rows are
        reads_ahead(wire, 64, 2 * 58, "not described");
    }
}

#[test]
fn a_column_says_it_whatever_others_say() {
    for level in LEVELS {
        let text = format!("{PHOTOS} /* onetrip.lob_prefetch=4000 */");
        for said in [&["emp.photo=-1"][..], &["0", "public.emp.photo=-1"], &["emp.photo=7", "emp.photo=-1"]] {
            let mut wire = begun(level, &startup(), said, &["SET onetrip.lob_prefetch = 64"]);
            wire.turn(&query(&text));
            reads_nothing_ahead(wire, said[0]);
        }
        for said in ["emp.id=-1", "other.emp.photo=-1", "salary.photo=-1"] {
            let mut wire = begun(level, &startup(), &[said, "64"], &[]);
            wire.turn(&query(PHOTOS));
            reads_ahead(wire, 64, 2 * 58, said);
        }
    }
}
