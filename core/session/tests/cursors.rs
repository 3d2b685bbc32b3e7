//! The remedy `cursors`, rule by rule: each test here is the one that goes red when its rule is left out of the build.

mod common;

use common::server::Server;
use common::walk::Walks;
use common::wire::Wire;
use common::{bind, complete, error, message, parse, query, ready, sync};
use onetrip_ledger::Remedy;
use onetrip_session::{Rule, SessionError};

const WALK: &str = "SELECT name FROM emp WHERE walked = 1";

fn reader(server: Server) -> Wire {
    Wire::new(std::sync::Arc::default(), [Remedy::Cursors], server)
}

/// A program that has begun a transaction and read one piece of ten rows.
fn opened(server: Server) -> Wire {
    let mut wire = reader(server);
    open(&mut wire);
    wire
}

fn open(wire: &mut Wire) {
    wire.turn(&query("BEGIN"));
    let described = message(b'D', b"Pp\0");
    let opens = [parse("", WALK), bind("p", "", &[]), described, piece(10), sync()].concat();
    let told = wire.turn(&opens);
    assert!(told.ends_with(&[message(b's', b""), ready(b'T')].concat()), "{}", told.escape_ascii());
}

fn reads(wire: &mut Wire, rows: u32) -> Vec<u8> {
    wire.turn(&[piece(rows), sync()].concat())
}

/// Reads so many pieces of ten rows; how many of them came from memory.
fn served(mut wire: Wire, pieces: u32) -> u64 {
    for _ in 0..pieces {
        reads(&mut wire, 10);
    }
    wire.pair.books().summary.removed.get(&Remedy::Cursors).copied().unwrap_or(0)
}

fn piece(rows: u32) -> Vec<u8> {
    message(b'E', &[b"p\0", &rows.to_be_bytes()[..]].concat())
}

/// What a server says that nobody reads ahead of.
fn direct(walks: &mut Walks, rows: u32) -> Vec<u8> {
    let mut said = Vec::new();
    match walks.reads(b"p", rows, &mut said) {
        Ok(count) => [said, Walks::ends(count, rows), ready(b'T')].concat(),
        Err(error) => [said, error, ready(b'E')].concat(),
    }
}

#[test]
fn pieces_come_from_memory_as_the_server_would_send_them() {
    let mut wire = opened(Server::default());
    let mut walks = Walks::default();
    walks.opens(b"p");
    direct(&mut walks, 10);
    for rows in [10, 10, 10, 3, 10, 1, 25, 10, 10, 10, 10, 10, 0] {
        assert_eq!(reads(&mut wire, rows), direct(&mut walks, rows), "{rows} rows");
    }
    assert_eq!(wire.turn(&query("COMMIT")), [complete("COMMIT"), ready(b'I')].concat());
    let books = wire.pair.books();
    assert!(books.summary.removed[&Remedy::Cursors] >= 8, "{:?}", books.summary.removed);
    assert!(books.summary.trips.work() <= 8, "{}", books.summary.trips.work());
}

#[test]
fn a_group_that_is_not_at_its_end_gets_no_sync_of_the_sessions_own() {
    let mut wire = opened(Server::default());
    let flush = || message(b'H', b"");
    let mut walks = Walks::default();
    walks.opens(b"p");
    direct(&mut walks, 10);
    for _ in 0..2 {
        assert_eq!(reads(&mut wire, 10), direct(&mut walks, 10));
    }
    assert!(wire.server.walks.places[&b"p"[..]] > 30, "it is ahead");
    let before = wire.server.ready;
    for _ in 0..4 {
        let told = wire.turn(&[piece(10), flush()].concat());
        let said = direct(&mut walks, 10);
        assert_eq!(told, said[..said.len() - ready(b'T').len()], "from memory or not, and no ReadyForQuery");
    }
    assert_eq!(wire.server.ready, before, "a Sync reports parameters that the program has not asked for");
    assert_eq!(wire.turn(&sync()), ready(b'T'));
}

#[test]
fn a_result_of_which_one_piece_is_read_costs_nothing() {
    // What it takes to read ahead is asked for once, of the first results that could be: names first, then their columns.
    let mut wire = opened(Server::default());
    assert_eq!(wire.server.walks.pieces, 1);
    wire.turn(&query("COMMIT"));
    open(&mut wire);
    wire.turn(&query("COMMIT"));
    wire.server.texts.clear();
    wire.server.walks.pieces = 0;
    open(&mut wire);
    wire.turn(&query("COMMIT"));
    assert_eq!(wire.server.walks.pieces, 1);
    assert!(wire.server.texts.iter().all(|text| !text.starts_with("SAVEPOINT")));
}

/// R1.
#[test]
fn only_a_result_that_is_proven_to_be_read_only_is_read_ahead() {
    assert!(served(opened(Server::default()), 5) > 0);
    let special = Server { is_special: true, ..Server::default() };
    assert_eq!(served(opened(special), 5), 0, "its tables may be temporary ones");
}

/// R2.
#[test]
fn a_result_that_settings_shape_is_not_read_ahead() {
    for shaped in [1184, 701, 17, 16_500] {
        let walks = Walks { oid: shaped, ..Walks::default() };
        assert_eq!(served(opened(Server { walks, ..Server::default() }), 5), 0, "{shaped}");
    }
}

/// R3.
#[test]
fn a_statement_that_depends_on_a_place_finds_it() {
    let walk = |is_scrollable| {
        let walks = Walks { is_scrollable, ..Walks::default() };
        let mut wire = reader(Server { walks, ..Server::default() });
        wire.turn(&query("BEGIN"));
        wire.turn(&query(&format!("DECLARE c CURSOR FOR {WALK}")));
        for _ in 0..4 {
            wire.turn(&query("FETCH 10 FROM c"));
        }
        wire
    };
    let mut wire = walk(true);
    assert!(wire.server.walks.places[&b"c"[..]] > 40, "it is ahead");
    wire.turn(&query("UPDATE emp SET name = 'x' WHERE CURRENT OF c"));
    assert_eq!(wire.server.walks.places[&b"c"[..]], 40, "it was put back");
    wire.turn(&query("FETCH 10 FROM c"));
    assert_eq!(wire.server.walks.places[&b"c"[..]], 50, "and is not read ahead again");
    assert_eq!(
        walk(false).server.walks.places[&b"c"[..]],
        40,
        "one that cannot be put back is not read ahead"
    );
    let mut wire = opened(Server::default());
    (0..2).for_each(|_| drop(reads(&mut wire, 10)));
    assert!(wire.server.walks.places[&b"p"[..]] > 30, "it is ahead");
    assert_eq!(wire.tries(&query("FETCH 1 FROM \"p\"")), Err(SessionError::CursorsBroke));
    assert_read_ahead_where_it_may_be();
    assert_found_without_a_name();
}

/// R4.
#[test]
fn a_serializable_transaction_reads_what_it_asks_for() {
    let mut wire = opened(Server { level: "repeatable read", ..Server::default() });
    let mut place = || {
        (0..2).for_each(|_| drop(reads(&mut wire, 10)));
        let place = wire.server.walks.places[&b"p"[..]];
        wire.turn(&query("COMMIT"));
        wire.server.level = "serializable";
        open(&mut wire);
        place
    };
    assert!(place() > 30, "it is ahead");
    assert_eq!(place(), 30, "nor by what was found out at another level");
}

/// R5.
#[test]
fn an_error_ahead_is_told_when_the_program_comes_to_it() {
    let failing = || {
        let walks = Walks { fails_at: Some(45), ..Walks::default() };
        let mut wire = opened(Server { walks, ..Server::default() });
        assert!(
            (0..3).all(|_| wire.tries(&[piece(10), sync()].concat()).is_ok()),
            "it has not come to the error"
        );
        wire
    };
    let mut wire = failing();
    assert_eq!(wire.server.status, b'T', "the transaction is as it was");
    let told = wire.turn(&[piece(10), sync()].concat());
    let ended = [error("ERROR", "22012", "division by zero"), ready(b'E')].concat();
    assert!(told.starts_with(&common::row(b"41")) && told.ends_with(&ended), "{}", told.escape_ascii());
    assert_eq!(wire.server.status, b'E', "on the server too");
    assert_eq!(failing().turn(&query("COMMIT")), [complete("COMMIT"), ready(b'I')].concat());
}

/// R6.
#[test]
fn what_is_ahead_has_bounds() {
    const WIDTH: usize = 20_000;
    let walks = Walks { rows: 2000, width: WIDTH, ..Walks::default() };
    let mut wire = opened(Server { walks, ..Server::default() });
    for delivered in 2..60 {
        reads(&mut wire, 10);
        let ahead = (wire.server.walks.pieces - delivered) as usize;
        assert!(ahead * 10 * WIDTH <= 1024 * 1024, "{ahead} pieces ahead of {delivered}");
        assert!(ahead <= 2 * delivered as usize);
    }
}

/// R7.
#[test]
fn a_program_that_is_served_from_memory_is_not_idle() {
    let mut wire = opened(Server::default());
    (0..5).for_each(|_| drop(reads(&mut wire, 10)));
    assert_eq!(wire.server.walks.places[&b"p"[..]], 95, "all is in memory");
    let before = wire.server.ready;
    (0..300).for_each(|_| drop(reads(&mut wire, 1)));
    let heard = wire.server.ready - before;
    assert!((1..20).contains(&heard), "the server heard {heard} times");
}

/// R8.
#[test]
fn a_transaction_in_another_state_ends_the_session() {
    let mut wire = reader(Server::default());
    wire.turn(&query("BEGIN"));
    wire.turn(&query(&format!("DECLARE c CURSOR FOR {WALK}")));
    (0..3).for_each(|_| drop(wire.turn(&query("FETCH 10 FROM c"))));
    wire.turn(&[parse("", "SELECT 1"), sync()].concat());
    wire.server.status = b'I';
    assert_eq!(wire.tries(&query("FETCH 10 FROM c")), Err(SessionError::CursorsBroke));
    let told = wire.pair.session.to_client().escape_ascii().to_string();
    assert!(told.contains("FATAL") && told.contains("08006"), "{told}");
}

/// R9.
#[test]
fn no_function_finds_a_cursor_further_on() {
    let server = Server { moves_cursors: true, ..Server::default() };
    assert_eq!(served(opened(server), 5), 0);
}

#[test]
fn a_cursor_of_which_the_end_was_told_is_behind_it_and_not_on_its_last_row() {
    let mut wire = declared("c CURSOR FOR");
    (0..10).for_each(|_| drop(wire.turn(&query("FETCH 10 FROM c"))));
    wire.turn(&query("FETCH BACKWARD 1 FROM c"));
    assert!(wire.server.texts.iter().all(|text| !text.starts_with("MOVE")), "{:?}", wire.server.texts);
}

/// Only one that can be put back, or that its driver declares for itself.
fn assert_read_ahead_where_it_may_be() {
    let ahead = |how: &str, name: &str, is_scrollable| {
        let walks = Walks { is_scrollable, ..Walks::default() };
        let mut wire = declared_on(Server { walks, ..Server::default() }, how);
        (0..4).for_each(|_| drop(wire.turn(&query(&format!("FETCH 10 FROM {name}")))));
        wire.server.walks.places[name.trim_matches('"').as_bytes()] > 40
    };
    assert!(ahead("c CURSOR FOR", "c", true) && !ahead("c CURSOR FOR", "c", false));
    assert!(!ahead("c NO SCROLL CURSOR FOR", "c", true));
    assert!(ahead("_django_curs_1_sync_1 NO SCROLL CURSOR FOR", "_django_curs_1_sync_1", false));
    assert!(
        !ahead("_django_curs_1 CURSOR FOR", "_django_curs_1", false),
        "its driver does not declare it so"
    );
}

/// A name that is a parameter, and a statement that is run later without any.
fn assert_found_without_a_name() {
    let mut wire = declared("c CURSOR FOR");
    (0..4).for_each(|_| drop(wire.turn(&query("FETCH 10 FROM c"))));
    assert!(wire.server.walks.places[&b"c"[..]] > 40);
    wire.turn(&[parse("", "SELECT cursor_to_xml($1, 1, false, false, '')"), sync()].concat());
    wire.turn(&[bind("", "", &["c"]), message(b'E', b"\0\0\0\0\0"), sync()].concat());
    assert_eq!(wire.server.walks.places[&b"c"[..]], 40);
    let mut wire = declared("c CURSOR FOR");
    wire.turn(&query("PREPARE u AS UPDATE emp SET name = 'x' WHERE CURRENT OF c"));
    (0..4).for_each(|_| drop(wire.turn(&query("FETCH 10 FROM c"))));
    assert_eq!(wire.server.walks.places[&b"c"[..]], 40, "EXECUTE u finds it there");
}

/// A program that has begun a transaction and declared a cursor.
fn declared(how: &str) -> Wire {
    declared_on(Server::default(), how)
}

fn declared_on(server: Server, how: &str) -> Wire {
    let mut wire = reader(server);
    wire.turn(&query("BEGIN"));
    wire.turn(&query(&format!("DECLARE {how} {WALK}")));
    wire
}

#[test]
fn every_rule_names_a_test_of_this_file() {
    let here = include_str!("cursors.rs");
    for rule in Rule::ALL.into_iter().filter(|rule| rule.name().starts_with('R')) {
        assert!(here.contains(&format!("/// {}.\n#[test]\nfn {}()", rule.name(), rule.test())), "{rule:?}");
    }
}
