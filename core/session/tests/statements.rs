//! The remedy `statements`, rule by rule: each rule has a test here that goes red when it is left out of the build.

mod common;

use std::sync::Arc;

use common::server::{Server, messages};
use common::wire::Wire;
use common::{Pair, bind, complete, error, execute, message, notice, parse, query, ready, startup, sync};
use onetrip_ledger::Remedy;
use onetrip_session::{Common, Rule, SessionError};

const READ: &str = "SELECT name FROM emp WHERE id = $1";
/// What a program prepares first: behind it the session's state and settings are known, and what [`READ`] reads.
const FIRST: &str = "SELECT name FROM emp WHERE id = $1 OR id = $1";
const WRITE: &str = "UPDATE emp SET name = 'x' WHERE id = $1";

const SECOND: u64 = 1_000_000_000;
/// In microseconds.
const DAY: u64 = 86_400_000_000;

/// A session beside others, of a program that has its state known.
fn among(common: &Arc<Common>) -> Wire {
    before(Server::default(), common)
}

/// The same before this server.
fn before(server: Server, common: &Arc<Common>) -> Wire {
    let mut wire = new(server, common);
    prepare_first(&mut wire);
    wire
}

/// The same, of a program that has sent nothing.
fn new(server: Server, common: &Arc<Common>) -> Wire {
    let remedies = [Remedy::Begin, Remedy::Commit, Remedy::Statements];
    Wire::new(Arc::clone(common), remedies, describing(server))
}

/// A server that describes the texts of this file.
fn describing(mut server: Server) -> Server {
    for text in [FIRST, READ, "SELECT touch($1)", "INSERT INTO emp VALUES ($1) RETURNING name"] {
        for text in [text.to_owned(), text.replace("$1", "7")] {
            server.describes.insert(text, (vec![23], Some(row_of("name"))));
        }
    }
    server.describes.insert(WRITE.to_owned(), (vec![23], None));
    server
}

/// The program prepares what makes the session's state known: the first time the server is asked for that, and the second
/// time, if the text was described before, for the names in it.
fn prepare_first(wire: &mut Wire) {
    for _ in 0..2 {
        wire.turn(&prepare("", FIRST));
        wire.turn(b"");
    }
}

/// A session of a gateway whose other session has been told of these texts.
fn after(texts: &[&str]) -> Wire {
    let common = Arc::default();
    let mut other = among(&common);
    for text in texts {
        other.turn(&prepare("", text));
        other.turn(b"");
    }
    among(&common)
}

/// Whether the program is answered at once; the server then takes what it was sent.
fn is_answered(wire: &mut Wire, sent: &[u8]) -> bool {
    let is_answered = wire.is_answered(sent);
    wire.turn(b"");
    is_answered
}

/// The body of a RowDescription of one text column.
fn row_of(name: &str) -> Vec<u8> {
    row_of_table(name, 0)
}

/// The same, of the first column of this table.
fn row_of_table(name: &str, table: u32) -> Vec<u8> {
    let of = [&table.to_be_bytes()[..], &u16::from(table > 0).to_be_bytes()].concat();
    [b"\0\x01", name.as_bytes(), b"\0", &of, &25u32.to_be_bytes(), &[0xff; 6], &[0; 2]].concat()
}

fn describe(name: &str) -> Vec<u8> {
    message(b'D', &[b"S", name.as_bytes(), b"\0"].concat())
}

/// Parse, Describe, Sync.
fn prepare(name: &str, text: &str) -> Vec<u8> {
    [parse(name, text), describe(name), sync()].concat()
}

/// Bind, Execute, Sync.
fn run(name: &str) -> Vec<u8> {
    [bind("", name, &["7"]), execute(""), sync()].concat()
}

/// What the server says to a Parse and a Describe.
fn described(row: Option<&str>) -> Vec<u8> {
    let row = match row {
        Some(name) => message(b'T', &row_of(name)),
        None => message(b'n', b""),
    };
    [message(b'1', b""), message(b't', b"\0\x01\0\0\0\x17"), row].concat()
}

/// What it says to its Bind and Execute.
fn ran(status: u8) -> Vec<u8> {
    [message(b'2', b""), complete("SELECT 1"), ready(status)].concat()
}

/// What PostgreSQL says when a result has changed between Parse and Bind.
fn changed(status: u8) -> Vec<u8> {
    let fields = "SERROR\0VERROR\0C0A000\0Mcached plan must not change result type\0\
                  Fplancache.c\0RRevalidateCachedQuery\0\0";
    [message(b'E', fields.as_bytes()), ready(status)].concat()
}

#[test]
fn a_statement_that_another_session_has_seen_is_told_and_runs_in_one_trip() {
    let mut wire = after(&[READ]);
    let told = [described(Some("name")), ready(b'I')].concat();
    assert_eq!(wire.pair.told(&prepare("", READ)), told);
    let sent = wire.pair.client(&run("")).unwrap();
    assert!(sent.ends_with(&run("")), "sent behind it at once");
    let said = wire.server.takes(&sent);
    assert_eq!(wire.pair.server(&said).unwrap(), ran(b'I'), "what was told is not said again");
    assert_eq!(wire.turn(&prepare("", READ)), told);
    assert_eq!(wire.turn(&run("")), ran(b'I'));
    let books = wire.pair.books();
    // The first statement takes a trip when it comes first, and none when it comes again.
    assert_eq!(books.summary.removed.get(&Remedy::Statements), Some(&(1 + 2)));
    assert_eq!(books.summary.trips.work(), 1 + 2);
}

#[test]
fn a_transaction_takes_a_trip_for_each_of_its_statements_and_no_more() {
    let mut wire = after(&[READ]);
    assert!(!wire.pair.told(&query("BEGIN")).is_empty());
    for _ in 0..2 {
        assert!(!wire.pair.told(&prepare("", READ)).is_empty());
        assert_eq!(wire.turn(&run("")), ran(b'T'));
    }
    assert!(is_answered(&mut wire, &query("COMMIT")));
    assert_eq!((wire.server.ran, wire.server.status), (2, b'I'));
    assert_eq!(wire.pair.books().summary.trips.work(), 1 + 2, "the first statement takes one");
}

#[test]
fn a_group_that_flush_ends_and_a_parse_without_describe_are_told_as_well() {
    let mut wire = after(&[READ, "SELECT touch($1)"]);
    let flushed = [parse("one", READ), describe("one"), message(b'H', b"")].concat();
    assert_eq!(wire.pair.told(&flushed), described(Some("name")));
    assert_eq!(wire.turn(&run("one")), ran(b'I'));
    let alone = [parse("two", "SELECT touch($1)"), sync()].concat();
    assert_eq!(wire.pair.told(&alone), [message(b'1', b""), ready(b'I')].concat());
    let portal = [bind("", "two", &["7"]), message(b'D', b"P\0"), execute(""), sync()].concat();
    let row = message(b'T', &row_of("name"));
    let told = [message(b'2', b""), row, complete("SELECT 1"), ready(b'I')].concat();
    assert_eq!(wire.turn(&portal), told);
    assert_eq!(wire.server.ran, 2);
}

#[test]
fn what_the_server_has_not_accepted_waits_for_it() {
    let mut wire = after(&[READ]);
    for text in ["SELECT nmae FROM emp", "SELECT name FROM emp WHERE id = $1 "] {
        assert!(!is_answered(&mut wire, &[parse("", text), sync()].concat()), "{text}");
    }
    let typed = message(b'P', &[b"\0", READ.as_bytes(), b"\0\0\x01\0\0\0\x14"].concat());
    assert!(!is_answered(&mut wire, &[typed, describe(""), sync()].concat()), "a parameter of another type");
    let mut wire = after(&[]);
    wire.server.refuses.insert(READ.to_owned(), error("ERROR", "42P01", "no emp"));
    wire.turn(&prepare("", READ));
    assert!(!is_answered(&mut wire, &prepare("", READ)), "it was refused before");
}

#[test]
fn a_description_that_came_with_a_notice_is_not_told() {
    let common = Arc::default();
    let mut other = among(&common);
    other.pair.client(&prepare("", READ)).unwrap();
    let said = [notice(), described(Some("name")), ready(b'I')].concat();
    assert_eq!(other.pair.server(&said).unwrap(), said);
    assert!(!is_answered(&mut among(&common), &prepare("", READ)));
}

#[test]
fn a_statement_that_comes_while_the_state_is_asked_for_waits_for_that_and_not_for_its_own_trip() {
    let common = Arc::default();
    among(&common).turn(&prepare("", READ));
    let remedies = [Remedy::Statements].into_iter().collect();
    let mut pair = Pair::remedied_among(common, &startup(), remedies, Some("off"));
    let mut server = describing(Server::default());
    let sent = pair.client(&prepare("", FIRST)).unwrap();
    assert_eq!(sent, prepare("", FIRST), "no question before it, nor with it");
    pair.server(&server.takes(&sent)).unwrap();
    let asked = pair.client(b"").unwrap();
    assert!(!asked.is_empty(), "the next one can be answered");
    assert_eq!(pair.client(&prepare("", READ)).unwrap(), b"", "held");
    let said = pair.server(&server.takes(&asked)).unwrap();
    assert_eq!(said, b"");
    let told = pair.told(b"");
    assert_eq!(told, [described(Some("name")), ready(b'I')].concat());
}

/// S1.
#[test]
fn only_what_may_run_at_once_is_described_early() {
    let (calls, returns) = ("SELECT touch($1)", "INSERT INTO emp VALUES ($1) RETURNING name");
    let mut wire = after(&[READ, WRITE, calls, returns]);
    assert!(!is_answered(&mut wire, &prepare("", calls)), "a function that is not built in");
    assert!(!is_answered(&mut wire, &prepare("", returns)), "rows of which the description may change");
    for text in [READ, WRITE] {
        assert!(is_answered(&mut wire, &prepare("", text)), "{text}");
    }
}

/// S2.
#[test]
fn a_transaction_fails_on_both_sides() {
    for waits in [false, true] {
        let mut wire = after(&[READ]);
        wire.server.describes.insert(READ.to_owned(), (vec![23], Some(row_of("other"))));
        wire.turn(&query("BEGIN"));
        assert!(!wire.pair.told(&prepare("", READ)).is_empty());
        if waits {
            wire.turn(b"");
        }
        assert_eq!(wire.turn(&run("")), changed(b'E'));
        assert_eq!(wire.server.status, b'E');
    }
}

#[test]
fn a_result_that_is_another_now_is_not_passed_on() {
    let mut wire = after(&[READ]);
    wire.server.describes.insert(READ.to_owned(), (vec![23], Some(row_of("other"))));
    assert!(!wire.pair.told(&prepare("", READ)).is_empty());
    assert_eq!(wire.turn(&run("")), changed(b'I'));
    assert!(!is_answered(&mut wire, &prepare("", READ)), "what was known is forgotten");
    assert_eq!(wire.turn(&run("")), ran(b'I'));
}

#[test]
fn a_table_that_was_made_anew_with_the_same_columns_is_read_as_the_server_reads_it() {
    let mut wire = after(&[READ]);
    let anew = row_of_table("name", 20_003);
    wire.server.describes.insert(READ.to_owned(), (vec![23], Some(anew.clone())));
    assert!(!wire.pair.told(&prepare("", READ)).is_empty());
    assert_eq!(wire.turn(&run("")), ran(b'I'), "PostgreSQL compares names and types, not tables");
    let told = wire.turn(&prepare("", READ));
    assert!(told.windows(anew.len()).any(|part| part == anew), "what was known is forgotten");
}

#[test]
fn what_was_said_in_a_database_of_the_same_name_that_is_gone_is_not_told() {
    let common = Arc::default();
    among(&common).turn(&prepare("", READ));
    assert!(is_answered(&mut among(&common), &prepare("", READ)));
    let anew = Server { database: "16385", ..Server::default() };
    assert!(!is_answered(&mut before(anew, &common), &prepare("", READ)));
}

#[test]
fn a_statement_that_was_told_and_is_another_fails_whenever_it_is_bound() {
    let mut wire = after(&[READ]);
    wire.server.describes.insert(READ.to_owned(), (vec![23], Some(row_of("other"))));
    assert!(is_answered(&mut wire, &prepare("one", READ)));
    for _ in 0..2 {
        assert_eq!(wire.turn(&run("one")), changed(b'I'), "as long as it is another");
    }
    wire.server.describes.insert(READ.to_owned(), (vec![23], Some(row_of("name"))));
    for _ in 0..2 {
        assert_eq!(wire.turn(&run("one")), ran(b'I'), "it is what it was");
    }
    assert_eq!(wire.turn(&query("SELECT 1")), [complete("SELECT 1"), ready(b'I')].concat());
}

#[test]
fn a_parse_that_fails_after_all_fails_its_bind_and_nothing_runs() {
    let refused = error("ERROR", "42P01", "no emp");
    for (text, status) in [(READ, b'I'), (WRITE, b'I'), (READ, b'T'), (WRITE, b'T')] {
        for flushed in [false, true] {
            for waits in [false, true] {
                let mut wire = after(&[text]);
                wire.server.refuses.insert(text.to_owned(), refused.clone());
                if status == b'T' {
                    wire.turn(&query("BEGIN"));
                }
                let end = if flushed { message(b'H', b"") } else { sync() };
                let sent = [parse("", text), describe(""), end].concat();
                assert!(!wire.pair.told(&sent).is_empty());
                if waits {
                    wire.turn(b"");
                }
                let failed = if status == b'T' { b'E' } else { b'I' };
                let told = wire.turn(&run(""));
                assert_eq!(told, [refused.clone(), ready(failed)].concat(), "{text} {flushed} {waits}");
                assert_eq!((wire.server.ran, wire.server.status), (0, failed));
                if status == b'I' {
                    let told = [complete("SELECT 1"), ready(b'I')].concat();
                    assert_eq!(wire.turn(&query("SELECT 1")), told, "the session goes on");
                    wire.turn(&[parse("two", text), sync()].concat());
                }
            }
        }
    }
}

#[test]
fn a_program_that_cannot_be_told_loses_its_session() {
    let mut wire = after(&[READ]);
    wire.server.refuses.insert(READ.to_owned(), error("ERROR", "42P01", "no emp"));
    wire.turn(&query("BEGIN"));
    assert!(is_answered(&mut wire, &prepare("", READ)));
    assert_eq!(wire.pair.client(&query("SELECT 1")), Err(SessionError::StatementRefused));
    let told = wire.pair.server(b"").unwrap();
    assert!(told.windows(11).any(|text| text == b"VFATAL\0C080"), "{}", told.escape_ascii());
    let mut wire = after(&[READ]);
    wire.server.refuses.insert(READ.to_owned(), error("ERROR", "42P01", "no emp"));
    assert!(is_answered(&mut wire, &prepare("", READ)));
    let twice = [bind("", "", &["7"]), execute(""), execute(""), sync()].concat();
    assert_eq!(wire.pair.client(&twice), Err(SessionError::StatementRefused));
}

#[test]
fn a_statement_is_made_again_when_the_server_takes_it_again() {
    for flushed in [false, true] {
        let mut wire = after(&[WRITE]);
        wire.server.refuses.insert(WRITE.to_owned(), error("ERROR", "42P01", "no emp"));
        let end = if flushed { message(b'H', b"") } else { sync() };
        wire.pair.told(&[parse("one", WRITE), describe("one"), end].concat());
        for _ in 0..2 {
            let told = [error("ERROR", "42P01", "no emp"), ready(b'I')].concat();
            assert_eq!(wire.turn(&run("one")), told);
        }
        wire.server.refuses.clear();
        for _ in 0..2 {
            assert_eq!(wire.turn(&run("one")), ran(b'I'), "direct, the statement was there all the time");
        }
        assert_eq!(wire.server.ran, 2);
    }
}

/// S3.
#[test]
fn only_what_was_said_of_late_in_the_same_place_is_told() {
    let common = Arc::default();
    let mut other = among(&common);
    let mut wire = among(&common);
    other.turn(&prepare("", READ));
    other.turn(&query("ALTER TABLE emp ADD COLUMN age int"));
    assert!(!is_answered(&mut wire, &prepare("", READ)), "the catalogue may have changed");
    wire.pair.wait(SECOND);
    assert!(!is_answered(&mut wire, &prepare("", READ)), "what its names mean is asked again");
    assert!(is_answered(&mut wire, &prepare("", READ)), "nothing has changed since");
    wire.pair.wait(61 * SECOND);
    prepare_first(&mut wire);
    assert!(!is_answered(&mut wire, &prepare("", READ)), "that was long ago");
    wire.turn(&query("BEGIN"));
    wire.turn(&query("SET search_path TO other"));
    assert!(!is_answered(&mut wire, &prepare("", READ)), "names may mean something else");
}

/// S3. What a transaction has set for itself ends with it: with ROLLBACK, with an error, with SET LOCAL at a unit's end.
#[test]
fn what_was_said_under_settings_that_end_with_their_transaction_is_not_told_behind_it() {
    let set = [parse("", "SET LOCAL search_path TO other"), bind("", "", &[]), execute("")].concat();
    let described = [parse("one", READ), describe("one")].concat();
    let fails = [parse("", "SELECT fails()"), bind("", "", &[]), execute("")].concat();
    let ends: [&[Vec<u8>]; 6] = [
        &[query("BEGIN"), query("SET search_path TO other"), prepare("one", READ), query("ROLLBACK")],
        &[query("BEGIN"), query("SET LOCAL search_path TO other"), prepare("one", READ), query("COMMIT")],
        &[[&*set, &described, &sync()].concat()],
        &[[&*set, &described, &*fails, &sync()].concat()],
        // The program does not wait: the setting is sent behind what is described, and before that is answered.
        &[[prepare("one", READ), query("SET search_path TO other")].concat()],
        // A function may set it as well, which is not known when it is called.
        &[query("BEGIN"), query("SELECT touch(7)"), prepare("one", READ), query("COMMIT")],
    ];
    let is_told = ends.map(|units| {
        let mut wire = among(&Arc::default());
        wire.server.refuses.insert("SELECT fails()".to_owned(), error("ERROR", "42883", "no fails()"));
        wire.server.describes.insert(READ.to_owned(), (vec![23], Some(row_of("other"))));
        for unit in units {
            wire.turn(unit);
        }
        for _ in 0..2 {
            wire.turn(b"");
        }
        wire.server.describes.insert(READ.to_owned(), (vec![23], Some(row_of("name"))));
        prepare_first(&mut wire);
        wire.is_answered(&prepare("two", READ))
    });
    assert_eq!(is_told, [false; 6], "what another path meant is told");
}

/// S3. The server may read its configuration anew between a Parse and the question for the settings.
#[test]
fn what_was_said_before_a_configuration_was_read_anew_is_not_told() {
    let is_told = [DAY, 5_000].map(|configured_for| {
        let common = Arc::default();
        // Settings were not asked for, but what functions may do.
        Wire::new(Arc::clone(&common), [Remedy::Begin, Remedy::Commit], describing(Server::default()))
            .warmed();
        let mut wire = new(Server { configured_for, ..Server::default() }, &common);
        wire.pair.wait(SECOND);
        let sent = wire.pair.client(&prepare("", READ)).expect("good messages");
        wire.pair.wait(SECOND / 100);
        let answered = wire.server.takes(&sent);
        wire.pair.server(&answered).expect("good messages");
        wire.turn(b"");
        let mut other = new(Server::default(), &common);
        other.pair.wait(SECOND + SECOND / 100);
        prepare_first(&mut other);
        other.is_answered(&prepare("", READ))
    });
    assert_eq!(is_told, [true, false]);
}

/// S3. Each of the server's processes reads a configuration for itself: what is known of all sessions is over when one has.
#[test]
fn a_configuration_that_is_read_anew_ends_what_is_known_of_all_sessions() {
    let is_told = [DAY, 5_000].map(|configured_for| {
        let common = Arc::default();
        let mut wire = among(&common);
        wire.turn(&prepare("", READ));
        let mut other = new(Server { configured_for, ..Server::default() }, &common);
        for session in [&mut wire, &mut other] {
            session.pair.wait(SECOND / 100);
        }
        prepare_first(&mut other);
        wire.is_answered(&prepare("", READ))
    });
    assert_eq!(is_told, [true, false]);
}

/// S4.
#[test]
fn a_name_that_may_be_in_use_waits_for_the_server() {
    let mut wire = after(&[READ]);
    wire.server.has_sql_statements = true;
    wire.turn(&query("PREPARE one AS SELECT 1"));
    assert!(!is_answered(&mut wire, &prepare("one", READ)), "the server may say 42P05");
    wire.turn(&query("DEALLOCATE one"));
    assert!(!is_answered(&mut wire, &prepare("two", READ)), "one is there as far as is known");
    wire.server.has_sql_statements = false;
    for _ in 0..2 {
        wire.turn(&query("DEALLOCATE ALL"));
        wire.turn(&prepare("three", READ));
        wire.turn(&query("SELECT 1"));
    }
    assert!(is_answered(&mut wire, &prepare("four", READ)), "the server was asked");
    assert!(!is_answered(&mut wire, &prepare("four", READ)), "it is there");
    wire.turn(&[parse("", "SELECT 1"), message(b'C', b"Sfour\0"), sync()].concat());
    assert!(is_answered(&mut wire, &prepare("four", READ)), "it is not");
    wire.turn(&[query("DEALLOCATE ALL"), parse("five", READ), sync()].concat());
    assert!(!is_answered(&mut wire, &prepare("five", READ)), "it was made behind what took the others away");
}

/// S5.
#[test]
fn parameters_have_the_types_that_were_told() {
    let mut wire = after(&[WRITE]);
    wire.pair.told(&prepare("", WRITE));
    let sent = wire.pair.client(b"").unwrap();
    let typed = [b"\0", WRITE.as_bytes(), b"\0\0\x01\0\0\0\x17"].concat();
    assert_eq!(messages(&sent).next(), Some((b'P', &typed[..])));
    assert_eq!(messages(&sent).map(|(tag, _)| tag).collect::<Vec<_>>(), b"PDS");
    // What the server says to these types confirms nothing about the text without them.
    let mut wire = after(&[READ]);
    wire.pair.wait(30 * SECOND);
    prepare_first(&mut wire);
    assert!(is_answered(&mut wire, &prepare("", READ)));
    wire.pair.wait(31 * SECOND);
    prepare_first(&mut wire);
    assert!(!is_answered(&mut wire, &prepare("", READ)) || !Rule::SameKey.is_kept());
}

/// S8.
#[test]
fn a_parse_that_may_wait_for_a_safe_snapshot_is_not_answered() {
    const DEFERRABLE: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE";
    let serializable = || {
        let mut wire = after(&[READ]);
        wire.server.level = "serializable";
        wire
    };
    for begins in [&[DEFERRABLE][..], &["BEGIN", DEFERRABLE], &["BEGIN DEFERRABLE"]] {
        let mut wire = serializable();
        begins.iter().for_each(|text| drop(wire.turn(&query(text))));
        assert!(!is_answered(&mut wire, &prepare("", READ)), "{begins:?}");
    }
    let mut wire = serializable();
    wire.turn(&query("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY"));
    assert!(is_answered(&mut wire, &prepare("", READ)), "it waits for nobody");
    let mut wire = serializable();
    wire.turn(&query(DEFERRABLE));
    wire.turn(&prepare("", READ));
    wire.turn(&run(""));
    assert!(is_answered(&mut wire, &prepare("", READ)), "the snapshot is there");
    let common = Arc::default();
    among(&common).turn(&prepare("", READ));
    let mut wire = before(Server { is_deferrable: true, ..Server::default() }, &common);
    assert!(!is_answered(&mut wire, &prepare("", READ)), "as if BEGIN had said it");
}

/// S7.
#[test]
fn a_statement_that_was_taken_away_is_not_answered() {
    let end = [bind("", "end", &[]), execute(""), sync()].concat();
    let reads = query("SELECT name FROM emp WHERE id = 7");
    let with_end = || {
        let mut wire = after(&[READ]);
        wire.turn(&[parse("end", "COMMIT"), sync()].concat());
        wire.turn(&query("BEGIN"));
        wire.turn(&reads);
        wire
    };
    for text in ["DEALLOCATE other", "DEALLOCATE end1", "DEALLOCATE PREPARE \"End\""] {
        let mut wire = with_end();
        wire.turn(&query(text));
        assert!(is_answered(&mut wire, &end), "{text}");
    }
    for text in ["DEALLOCATE \"a\"\"b\"", "DEALLOCATE ALL", "DEALLOCATE \"end\""] {
        let mut wire = with_end();
        wire.turn(&query(text));
        assert!(!is_answered(&mut wire, &end), "{text}");
    }
}

#[test]
fn deallocate_leaves_the_sessions_state_as_it_is() {
    let reads = query("SELECT name FROM emp WHERE id = 7");
    for text in ["DEALLOCATE pdo_stmt_00000001", "DEALLOCATE ALL"] {
        let mut wire = after(&[READ]);
        wire.turn(&query("BEGIN"));
        wire.turn(&reads);
        wire.turn(&query(text));
        assert!(is_answered(&mut wire, &query("COMMIT")), "{text}");
        assert!(is_answered(&mut wire, &prepare("one", READ)), "{text}: no name was made by SQL");
    }
}

/// S6.
#[test]
fn nothing_but_its_bind_goes_behind_a_statement_that_was_told() {
    let mut wire = after(&[READ]);
    wire.pair.told(&prepare("", READ));
    let sent = wire.pair.client(&query("SELECT 2")).unwrap();
    assert_eq!(messages(&sent).map(|(tag, _)| tag).collect::<Vec<_>>(), b"PDS", "it is held");
    let said = wire.server.takes(&sent);
    wire.pair.server(&said).unwrap();
    assert_eq!(wire.pair.client(b"").unwrap(), query("SELECT 2"));
    assert!(Rule::OnlyItsBind.is_kept());
}
