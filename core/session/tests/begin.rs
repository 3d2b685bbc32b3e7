//! The remedy `begin`, rule by rule: each test here is the one that goes red when its rule is left out of the build.

mod common;

use common::server::{Server, messages};
use common::{
    Pair, bind, complete, error, execute, message, notification, parameter, parse, query, ready, row, sync,
};
use onetrip_ledger::{Moment, Remedy};
use onetrip_session::{Remedies, Rule, SessionError};
use onetrip_wire::pg::{PROTOCOL_3_0, encode_startup};

/// What the gateway says in place of the server.
fn begun() -> Vec<u8> {
    [complete("BEGIN"), ready(b'T')].concat()
}

/// This remedy alone.
fn begin() -> Remedies {
    [Remedy::Begin].into_iter().collect()
}

fn primary() -> Pair {
    Pair::remedied(begin(), Some("off"))
}

/// Sends a text and says whether it was answered at once.
fn is_answered(pair: &mut Pair, text: &str) -> bool {
    !pair.told(&query(text)).is_empty()
}

#[test]
fn a_begin_is_answered_and_sent_at_once_and_what_the_server_says_to_it_is_dropped() {
    let mut pair = primary();
    assert_eq!(pair.told(&query("BEGIN")), begun());
    let mut server = Server::default();
    let sent = pair.client(b"").unwrap();
    assert!(sent.windows(6).any(|bytes| bytes == b"BEGIN\0"), "sent at once");
    assert_eq!(pair.server(&server.takes(&sent)).unwrap(), b"", "the client has its answer");
    let rest = pair.client(b"").unwrap();
    assert_eq!(pair.server(&server.takes(&rest)).unwrap(), b"");
    assert_eq!(server.ready, 1, "the server is where a simple query leaves it");
    pair.turn(&[query("SELECT 1")], &[row(b"1"), complete("SELECT 1"), ready(b'T')]);
    pair.turn(&[query("COMMIT")], &[complete("COMMIT"), ready(b'I')]);
    let books = pair.books();
    let work: Vec<_> = books.exchanges.iter().filter(|exchange| !exchange.statements.is_empty()).collect();
    assert_eq!(work.iter().map(|one| one.starts_trip).collect::<Vec<_>>(), [false, true, true]);
    assert_eq!(books.summary.removed.get(&Remedy::Begin), Some(&1));
    assert_eq!(books.summary.trips.work(), 2);
}

#[test]
fn a_client_that_is_quick_has_its_statement_behind_the_begin() {
    let mut pair = primary();
    pair.told(&query("start transaction read only"));
    let sent = pair.client(&query("SELECT 1")).unwrap();
    assert!(sent.ends_with(&query("SELECT 1")));
    let said = Server::default().takes(&sent);
    assert_eq!(pair.server(&said).unwrap(), [complete("SELECT 1"), ready(b'T')].concat());
    assert_eq!(pair.client(b"").unwrap(), b"", "the statement's own end is enough");
}

#[test]
fn extended_groups_go_behind_a_begin_as_well() {
    let mut pair = primary();
    pair.told(&query("BEGIN"));
    let group = [parse("s", "SELECT 1"), bind("", "s", &[]), execute(""), sync()].concat();
    let sent = pair.client(&group).unwrap();
    assert!(sent.ends_with(&group));
    let reply = [message(b'1', b""), message(b'2', b""), complete("SELECT 1"), ready(b'T')].concat();
    assert_eq!(pair.server(&Server::default().takes(&sent)).unwrap(), reply);
    pair.turn(&[query("ROLLBACK")], &[complete("ROLLBACK"), ready(b'I')]);
}

#[test]
fn without_remedies_nothing_is_answered() {
    let mut pair = Pair::remedied("none".parse().unwrap(), Some("off"));
    pair.turn(&[query("BEGIN")], &[complete("BEGIN"), ready(b'T')]);
}

#[test]
fn where_the_server_is_near_nothing_is_answered_because_nothing_is_gained() {
    let mut pair = primary();
    pair.session.path_measured(Moment(0), 150, 40);
    pair.turn(&[query("BEGIN")], &[complete("BEGIN"), ready(b'T')]);
}

/// B1.
#[test]
fn only_a_begin_that_cannot_fail_is_answered() {
    for text in ["BEGIN; SELECT 1 / 0", "BEGIN READ", "BEGINN", "BEGIN ISOLATION LEVEL SNAPSHOT"] {
        assert!(!is_answered(&mut primary(), text), "{text}");
    }
}

/// B2.
#[test]
fn a_begin_inside_a_transaction_or_behind_an_error_waits_for_the_server() {
    let mut pair = primary();
    pair.turn(&[query("SELECT 1; BEGIN")], &[complete("SELECT 1"), complete("BEGIN"), ready(b'T')]);
    assert!(!is_answered(&mut pair, "BEGIN"), "the answer has a warning");
    let mut pair = primary();
    pair.client(&query("SELECT pg_sleep(1)")).unwrap();
    assert!(!is_answered(&mut pair, "BEGIN"), "its answer would overtake another");
    let mut pair = primary();
    pair.client(&[parse("s", "SELEKT"), message(b'H', b"")].concat()).unwrap();
    pair.server(&error("ERROR", "42601", "syntax error")).unwrap();
    assert!(!is_answered(&mut pair, "BEGIN"), "the server skips it");
    let mut pair = primary();
    pair.turn(&[query("SELECT 1; BEGIN")], &[complete("SELECT 1"), complete("BEGIN"), ready(b'T')]);
    pair.turn(&[query("SELECT 1 / 0")], &[error("ERROR", "22012", "division by zero"), ready(b'E')]);
    assert!(!is_answered(&mut pair, "SAVEPOINT a1"), "it fails like everything else");
    assert!(!is_answered(&mut primary(), "SAVEPOINT a1"), "there is no transaction");
}

/// B3.
#[test]
fn a_client_that_pipelines_is_answered_by_the_server() {
    let mut pair = primary();
    let sent = [query("BEGIN"), query("SELECT 1")].concat();
    assert_eq!(pair.client(&sent).unwrap(), sent);
}

/// B4.
#[test]
fn what_the_server_says_unasked_keeps_its_place() {
    let mut pair = primary();
    pair.told(&query("BEGIN"));
    let sent = pair.client(&query("SELECT 1")).unwrap();
    let zone = parameter("TimeZone", "UTC");
    let said = [notification(), zone.clone(), Server::default().takes(&sent)].concat();
    let later = [complete("SELECT 1"), zone, ready(b'T')].concat();
    assert_eq!(pair.server(&said).unwrap(), later, "as if it had come later");
    pair.client(&query("COMMIT")).unwrap();
    let ended = pair.server(&[complete("COMMIT"), ready(b'I')].concat()).unwrap();
    assert_eq!(ended, [complete("COMMIT"), notification(), ready(b'I')].concat());
    assert!(!is_answered(&mut pair, "BEGIN"), "the session listens");

    let mut pair = primary();
    pair.told(&query("BEGIN"));
    let many = notification().repeat(100_000);
    assert_eq!(pair.server(&many), Err(SessionError::TooMuchKept), "what is kept has a bound");
    assert!(pair.session.to_client().starts_with(b"E"), "and the client is told");
}

/// What the server says before it ends the session is not kept: there is no later answer that it could come with.
#[test]
fn the_last_words_of_a_server_are_passed_on() {
    let mut pair = primary();
    pair.told(&query("BEGIN"));
    let zone = parameter("TimeZone", "UTC");
    let crash = message(b'N', b"SWARNING\0VWARNING\0C57P02\0Mterminating connection\0\0");
    let said = pair.server(&[zone.clone(), crash.clone()].concat()).unwrap();
    assert!(said == [zone, crash].concat() || !Rule::Asynchronous.is_kept());
}

/// B5.
#[test]
fn a_standby_is_asked_before_it_writes() {
    for text in ["BEGIN READ WRITE", "BEGIN ISOLATION LEVEL SERIALIZABLE"] {
        for unsure in [Some("on"), None] {
            assert!(!is_answered(&mut Pair::remedied(begin(), unsure), text), "{text}");
        }
        assert!(is_answered(&mut primary(), text), "{text}");
    }
    assert!(is_answered(&mut Pair::remedied(begin(), Some("on")), "BEGIN READ ONLY"));
}

/// B6.
#[test]
fn nothing_runs_behind_a_begin_that_failed() {
    let group = [parse("", "INSERT"), bind("", "", &[]), execute(""), sync()].concat();
    for insert in [query("INSERT"), group] {
        let mut pair = primary();
        pair.told(&query("BEGIN"));
        let sent = pair.client(&insert).unwrap();
        let mut server = Server { begin_fails: true, ..Server::default() };
        server.takes(&sent);
        assert_eq!(server.ran, 0, "the server was sent {}", sent.escape_ascii());
    }
}

/// B7.
#[test]
fn a_second_unit_waits_for_the_begin() {
    let mut pair = primary();
    pair.told(&query("BEGIN"));
    let unit = [parse("", "INSERT"), bind("", "", &[]), execute(""), sync()].concat();
    let sent = pair.client(&unit.repeat(3)).unwrap();
    assert_eq!(messages(&sent).filter(|(tag, _)| *tag == b'S').count(), 1);
    assert_eq!(pair.client(b"").unwrap(), b"", "nothing more until the server has spoken");
    pair.server(&Server::default().takes(&sent)).unwrap();
    assert_eq!(pair.client(b"").unwrap(), unit.repeat(2));
}

/// B8.
#[test]
fn a_begin_that_fails_ends_the_session() {
    let mut pair = primary();
    pair.told(&query("BEGIN"));
    let fatal = error("FATAL", "57P01", "terminating connection due to administrator command");
    assert_eq!(pair.server(&fatal).unwrap(), fatal, "the server's own words");

    let mut pair = primary();
    pair.told(&query("BEGIN"));
    let timeout = error("ERROR", "57014", "canceling statement due to statement timeout");
    assert_eq!(pair.server(&timeout), Err(SessionError::BeginRefused));
    let told = pair.session.to_client().escape_ascii().to_string();
    assert!(told.contains("FATAL") && told.contains("08006") && told.contains("statement timeout"), "{told}");

    let mut pair = primary();
    pair.told(&query("BEGIN"));
    let sent = pair.client(&query("SELECT 1")).unwrap();
    let said = Server::default().takes(&sent);
    let other = said.windows(5).position(|bytes| bytes == b"BEGIN").expect("the server confirms");
    let wrong = [&said[..other], b"COMIT", &said[other + 5..]].concat();
    assert_eq!(pair.server(&wrong), Err(SessionError::BeginRefused), "no transaction after all");
}

/// B9.
#[test]
fn a_cancel_waits_for_the_begin() {
    let mut pair = primary();
    assert!(pair.session.may_cancel());
    pair.told(&query("BEGIN"));
    assert!(!pair.session.is_waiting(), "the client waits for nothing");
    let sent = pair.client(b"").unwrap();
    pair.client(&query("SELECT pg_sleep(1)")).unwrap();
    assert!(pair.session.is_waiting() && !pair.session.may_cancel());
    pair.server(&Server::default().takes(&sent)).unwrap();
    assert!(pair.session.may_cancel());
}

/// B10.
#[test]
fn only_the_last_savepoint_is_released() {
    /// A transaction in which `texts` were run after two savepoints.
    fn with(texts: &[Vec<u8>]) -> (Pair, Server) {
        let (mut pair, mut server) = (primary(), Server::default());
        for text in ["BEGIN", "SAVEPOINT a1", "SAVEPOINT \"b1\""] {
            assert!(is_answered(&mut pair, text), "{text}");
        }
        for text in texts {
            let sent = pair.client(text).unwrap();
            pair.server(&server.takes(&sent)).unwrap();
        }
        (pair, server)
    }
    let read = || query("SELECT 1");
    let (mut pair, mut server) = with(&[read(), read()]);
    assert!(is_answered(&mut pair, "RELEASE SAVEPOINT b1"));
    assert!(is_answered(&mut pair, "RELEASE A1"), "one behind another");
    let sent = pair.client(&read()).unwrap();
    assert_eq!(pair.server(&server.takes(&sent)).unwrap(), [complete("SELECT 1"), ready(b'T')].concat());
    assert_eq!(pair.books().summary.removed.get(&Remedy::Begin), Some(&5));

    let ends = [parse("end", "ROLLBACK TO a1"), sync()].concat();
    for (what, texts) in [
        ("not the last", vec![read()]),
        ("rolled back", vec![query("ROLLBACK TO SAVEPOINT a1")]),
        ("another transaction", vec![query("COMMIT AND CHAIN")]),
        ("two statements in a text", vec![query("SELECT 1; RELEASE b1")]),
        ("prepared, and perhaps run", vec![ends]),
    ] {
        let name = if what == "not the last" { "a1" } else { "b1" };
        let (mut pair, _) = with(&texts);
        assert!(!is_answered(&mut pair, &format!("RELEASE {name}")), "{what}");
    }
}

/// B11.
#[test]
fn a_replication_connection_waits_for_the_server() {
    let mut packet = Vec::new();
    let parameters = [(&b"user"[..], &b"ann"[..]), (b"replication", b"database")];
    encode_startup(&mut packet, PROTOCOL_3_0, parameters);
    let mut pair = Pair::remedied_as(&packet, begin(), Some("off"));
    assert!(!is_answered(&mut pair, "BEGIN READ ONLY ISOLATION LEVEL REPEATABLE READ"));
}

#[test]
fn every_rule_names_a_test_of_this_file() {
    let here = include_str!("begin.rs");
    for rule in Rule::ALL.into_iter().filter(|rule| rule.name().starts_with('B')) {
        assert!(here.contains(&format!("/// {}.\n#[test]\nfn {}()", rule.name(), rule.test())), "{rule:?}");
    }
}
