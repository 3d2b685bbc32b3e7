//! The remedy `chatter`, rule by rule: each test here is the one that goes red when its rule is left out of the build.

mod common;

use std::sync::Arc;

use common::server::Server;
use common::wire::Wire;
use common::{bind, complete, error, execute, message, parse, query, ready, sync};
use onetrip_ledger::Remedy;
use onetrip_session::{Rule, SessionError};

const READ: &str = "SELECT name FROM emp WHERE id = 7";
/// What asyncpg sends when a connection goes back to its pool.
const RESET: &str = "SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;";

/// A session that has run these texts, and whose state is known before and behind them.
fn with(server: Server, texts: &[&str]) -> Wire {
    let mut wire = Wire::new(Arc::default(), [Remedy::Chatter, Remedy::Commit], server);
    make_known(&mut wire);
    for text in texts {
        wire.turn(&query(text));
    }
    make_known(&mut wire);
    wire
}

/// The program reads in transactions, until the end of one is answered because the session's state is known: where that was
/// of no use before, the server is asked for it less and less often. Without that rule an end tells nothing.
fn make_known(wire: &mut Wire) {
    const TRANSACTIONS_MAX: usize = 70;
    for _ in 0..TRANSACTIONS_MAX {
        wire.turn(&query("BEGIN"));
        wire.turn(&query(READ));
        let is_known = wire.is_answered(&query("COMMIT"));
        wire.turn(b"");
        if is_known && Rule::OnlyReads.is_kept() {
            return;
        }
    }
}

/// Whether the last of these texts is answered before the server has been sent it.
fn is_answered(texts: &[&str]) -> bool {
    let Some((last, before)) = texts.split_last() else { return false };
    with(Server::default(), before).is_answered(&query(last))
}

#[test]
fn a_reset_that_changes_nothing_is_answered_at_once_and_sent_along() {
    let mut wire = with(Server::default(), &[READ, RESET, READ, "BEGIN", READ, "COMMIT", READ]);
    let told = [complete("SELECT 1"), ready(b'I')].concat();
    for _ in 0..3 {
        assert_eq!(wire.pair.told(&query(RESET)), told);
        let sent = wire.pair.client(b"").unwrap();
        assert_eq!(sent, query(RESET), "sent along as it is");
        let said = wire.server.takes(&sent);
        assert_eq!(wire.pair.server(&said).unwrap(), b"", "the program has its answer");
        assert_eq!(wire.turn(&query(READ)), told);
    }
    assert_eq!(wire.pair.books().summary.removed.get(&Remedy::Chatter), Some(&3));
}

#[test]
fn a_pool_that_resets_its_connection_has_the_sessions_state_asked_for() {
    if !Rule::Neutral.is_kept() || !Rule::Builtin.is_kept() {
        return;
    }
    let mut wire = Wire::new(Arc::default(), [Remedy::Chatter], Server::default());
    for _ in 0..20 {
        wire.turn(&query(READ));
        wire.turn(&query(RESET));
    }
    let asked = wire.server.texts.iter().filter(|text| text.contains("current_schemas")).count();
    assert_eq!(asked, 2, "once to know whose function it calls, and once behind it");
    assert_eq!(wire.pair.books().summary.removed.get(&Remedy::Chatter), Some(&18), "all but the first two");
}

#[test]
fn several_go_behind_each_other() {
    let texts = ["SET work_mem = '1MB'", "SET jit = off", "SHOW jit", "SET search_path TO a, b"];
    let mut wire = with(Server::default(), &texts);
    for text in texts {
        assert!(wire.is_answered(&query(text)), "{text}");
    }
    assert_eq!(wire.turn(&query(READ)), [complete("SELECT 1"), ready(b'I')].concat());
}

#[test]
fn an_extended_group_is_answered_as_it_was() {
    let mut wire = with(Server::default(), &[]);
    let run = [bind("", "", &[]), execute(""), sync()].concat();
    let group = [parse("", "SET statement_timeout = 5000"), run].concat();
    let told = [message(b'1', b""), message(b'2', b""), complete("SELECT 1"), ready(b'I')].concat();
    assert_eq!(wire.turn(&group), told);
    assert_eq!(wire.pair.told(&group), told);
}

#[test]
fn a_setting_that_is_prepared_is_answered_as_well() {
    let mut wire = with(Server::default(), &[]);
    let run = |name: &str| [bind("", name, &[]), execute(""), sync()].concat();
    wire.turn(&[parse("path", "SET search_path TO a"), sync()].concat());
    wire.turn(&[parse("limit", "SET statement_timeout = 5000"), sync()].concat());
    for name in ["path", "limit", "path", "limit"] {
        wire.turn(&run(name));
    }
    assert!(wire.is_answered(&run("path")) && wire.is_answered(&run("limit")));
}

/// K1.
#[test]
fn only_what_nothing_may_have_changed_is_answered() {
    let set = "SET work_mem = '1MB'";
    assert!(!is_answered(&[set]) && is_answered(&[set, set]));
    assert!(is_answered(&[set, "SET jit = off", READ, set]));
    for (what, between) in [
        ("another value", "SET work_mem = '2MB'"),
        ("its default", "RESET work_mem"),
        ("all defaults", "DISCARD ALL"),
        ("a parameter of one's own", "SET a.b = 'c'"),
        ("a role", "SET ROLE other"),
        ("a function", "SELECT set_config('work_mem', '2MB', false)"),
        ("a function of a user", "SELECT touch()"),
        ("a write: a trigger may set it", "INSERT INTO emp VALUES (1)"),
        ("a block", "DO 'BEGIN END'"),
    ] {
        assert!(!is_answered(&[set, between, set]), "{what}");
    }
    assert!(!is_answered(&[RESET, set, RESET]), "what was set is set back");
    let show = "SHOW work_mem";
    assert!(!is_answered(&[set, show, "SET work_mem = '2MB'", show]), "it shows another value");
    assert!(!is_answered(&[set, RESET, set]), "what was set back is set");
    let special = Server { is_special: true, ..Server::default() };
    assert!(!with(special, &[set]).is_answered(&query(set)), "the session has temporary tables");
    let mut wire = with(Server::default(), &[set]);
    wire.turn(&query("BEGIN"));
    assert!(!wire.is_answered(&query(set)), "in a transaction");
    let mut wire = with(Server::default(), &[set]);
    wire.pair.client(&query(READ)).unwrap();
    assert!(!wire.is_answered(&query(set)), "something is under way");
}

#[test]
fn what_the_server_has_refused_or_remarked_on_is_not_answered() {
    let set = query("SET work_mem = '1kB'");
    for remark in [
        error("ERROR", "22023", "1 kB is outside the valid range"),
        [message(b'N', b"SWARNING\0C01000\0Mnot recommended\0\0"), complete("SET")].concat(),
    ] {
        let mut wire = with(Server::default(), &[]);
        wire.pair.client(&set).unwrap();
        wire.pair.server(&[remark, ready(b'I')].concat()).unwrap();
        wire.turn(b"");
        assert!(!wire.is_answered(&set));
    }
}

/// K2.
#[test]
fn a_function_that_may_be_a_users_waits_for_the_server() {
    let path = || Server { path: "{public,pg_catalog}", ..Server::default() };
    assert!(!with(path(), &[READ, RESET]).is_answered(&query(RESET)));
    let named = "SELECT pg_catalog.pg_advisory_unlock_all()";
    assert!(with(path(), &[READ, named]).is_answered(&query(named)));
}

/// K3.
#[test]
fn a_parameter_that_was_not_set_is_shown_by_the_server() {
    let show = "SHOW work_mem";
    assert!(!is_answered(&[show, show]));
    assert!(!is_answered(&["SET work_mem TO DEFAULT", show, show]), "its default may become another");
    let set = "SET work_mem = '1MB'";
    assert!(!is_answered(&[set, show]) && is_answered(&[set, show, show]));
}

/// The configuration has changed, and the server's answer to what was answered early says so.
#[test]
fn a_parameter_that_changes_behind_an_answer_comes_with_the_next_one() {
    let mut wire = with(Server::default(), &[READ, RESET]);
    assert!(wire.is_answered(&query(RESET)));
    let sent = wire.pair.client(b"").unwrap();
    assert_eq!(sent, query(RESET));
    let changed = message(b'S', b"TimeZone\0UTC\0");
    let said = [complete("SELECT 1"), changed.clone(), ready(b'I')].concat();
    assert_eq!(wire.pair.server(&said).unwrap(), b"", "the program waits for nothing");
    wire.pair.client(&query("SELECT 2")).unwrap();
    let next = wire.pair.server(&[complete("SELECT 1"), ready(b'I')].concat()).unwrap();
    assert_eq!(next, [complete("SELECT 1"), changed, ready(b'I')].concat());
}

/// K4.
#[test]
fn another_answer_ends_the_session() {
    for said in [[complete("RESET"), ready(b'I')].concat(), error("ERROR", "42501", "permission denied")] {
        let mut wire = with(Server::default(), &[READ, RESET]);
        assert!(wire.is_answered(&query(RESET)));
        wire.pair.client(b"").unwrap();
        assert_eq!(wire.pair.server(&said), Err(SessionError::ChatterRefused));
        let told = wire.pair.session.to_client().escape_ascii().to_string();
        assert!(told.contains("FATAL") && told.contains("08006"), "{told}");
    }
}
