//! Patterns in made-up traffic: what must be found, with its exact count, and what must not.

mod arbitrary;
mod chatter;
mod connections;
mod fetches;
mod groups;
mod large_objects;
mod loops;
mod pairs;
mod prepares;
mod repeats;
mod traffic;
mod transactions;
mod values;
mod would;
mod writes;

use onetrip_ledger::{Analyzer, Code, Mutes};

use crate::traffic::{MILLISECOND, Traffic};

#[test]
fn muted_findings_are_gone_and_others_stay() {
    let mut traffic = Traffic::new();
    traffic.begin();
    for n in 0..20 {
        traffic.run("INSERT INTO log VALUES ($1)", &[1000 + n]);
    }
    for n in 0..20 {
        traffic.run("INSERT INTO audit VALUES ($1)", &[2000 + n]);
    }
    traffic.commit();
    let block = traffic.block();
    let with = |rules: &str| {
        let mut analyzer = Analyzer::new();
        analyzer.block(1, &block).unwrap();
        analyzer.finish(&Mutes::parse(rules).unwrap()).summary.findings.len()
    };
    assert_eq!(with(""), 2);
    assert_eq!(with("[[mute]]\nstatement = \"into AUDIT\"\nwhy = \"small\""), 1);
    assert_eq!(with("[[mute]]\ncode = \"ot002\""), 0);
    assert!(Mutes::parse("[[mute]]\nwhy = \"all\"").is_err());
    assert!(Mutes::parse("[[mute]]\ncode = \"OT999\"").is_err());
    assert!(Mutes::parse("[[mute]]\ncolour = \"red\"").is_err());
}

/// Writes row by row, repeated reads, reads one by one, and reads before their writes.
fn has_patterns(traffic: &mut Traffic, number: u64) {
    for n in 0..20 {
        traffic.run("INSERT INTO log (id) VALUES ($1)", &[1000 * number + n]);
    }
    for _ in 0..6 {
        traffic.run("SELECT name FROM shops WHERE id = $1", &[4711]);
    }
    for n in 0..15 {
        traffic.run("SELECT name FROM tags WHERE id = $1", &[90_000 + 7 * (n * n % 31)]);
    }
    for n in 0..5 {
        traffic.run("SELECT balance FROM accounts WHERE id = $1", &[50_000 + n]);
        traffic.run("UPDATE accounts SET balance = $1 WHERE id = $2", &[7, 50_000 + n]);
    }
}

/// What a slow machine, or a program that works between two statements, changes: nothing of what is within a transaction or a
/// request.
#[test]
fn within_a_transaction_or_a_request_no_finding_depends_on_time() {
    let found = |factor: u64, with_requests: bool| {
        let mut traffic = Traffic::new();
        for request in 1..=3 {
            traffic.request = if with_requests { request } else { 0 };
            if !with_requests {
                traffic.begin();
            }
            traffic.think *= factor;
            has_patterns(&mut traffic, request);
            traffic.think /= factor;
            if !with_requests {
                traffic.commit();
            }
            traffic.wait(10_000 * MILLISECOND);
        }
        traffic.found()
    };
    for with_requests in [false, true] {
        let at_once = found(1, with_requests);
        assert!(at_once.len() >= 4, "{at_once:?}");
        for factor in [5, 20, 1000, 20_000] {
            assert_eq!(found(factor, with_requests), at_once, "gaps times {factor}");
        }
    }
}

/// The same outside of both, for a program whose login took as much longer.
#[test]
fn a_run_with_all_its_gaps_longer_by_one_factor_has_the_same_findings() {
    let found = |factor: u64, login: fn(u64) -> Traffic, think: u64| {
        let mut traffic = login(4 * MILLISECOND * factor);
        traffic.think = think * factor;
        has_patterns(&mut traffic, 1);
        for author in [140, 133, 126, 119] {
            for table in ["authors", "books", "prices"] {
                traffic.run(&format!("SELECT * FROM {table} WHERE author = $1"), &[author]);
            }
            traffic.wait(30_000 * MILLISECOND * factor);
        }
        traffic.found()
    };
    let seen: fn(u64) -> Traffic = Traffic::logged_in;
    let unseen: fn(u64) -> Traffic = |_| Traffic::of_unseen_login();
    for (login, think, is_fast) in [
        (seen, MILLISECOND / 10, true),
        (seen, 3 * MILLISECOND, true),
        (seen, 5 * MILLISECOND, false),
        (seen, 50 * MILLISECOND, false),
        (unseen, MILLISECOND / 10, true),
        (unseen, 50 * MILLISECOND, true),
    ] {
        let at_once = found(1, login, think);
        let loops = at_once.iter().filter(|(code, _)| *code != Code::Repeated).count();
        assert_eq!(loops >= 4, is_fast, "{think} ns: {at_once:?}");
        assert!(is_fast || loops == 0, "{think} ns: {at_once:?}");
        for factor in [5, 20, 1000] {
            assert_eq!(found(factor, login, think), at_once, "{think} ns times {factor}");
        }
    }
}

/// Nothing tells the loop of a slow program from requests but how fast the program does something else.
#[test]
fn one_gap_is_a_loops_or_a_waits_by_what_the_program_needs_for_its_login() {
    let found = |proof_ns: u64| {
        let mut traffic = Traffic::logged_in(proof_ns);
        traffic.think = 9 * MILLISECOND;
        for n in 0..15 {
            traffic.run("SELECT name FROM tags WHERE id = $1", &[90_000 + 7 * (n * n % 31)]);
        }
        traffic.found()
    };
    assert_eq!(found(4 * MILLISECOND), []);
    assert_eq!(found(40 * MILLISECOND), [(Code::OnePerValue, 14)], "a busy machine");
}

/// Pools reset a session between two uses of a connection.
#[test]
fn a_pools_reset_between_two_statements_hides_nothing() {
    let found = |between: &[&str], think: u64| {
        let mut traffic = Traffic::new();
        let mut run = |text: &str, parameters: &[u64], rows: u64| {
            traffic.run_for(text, parameters, rows);
            traffic.think = think;
            between.iter().for_each(|text| traffic.run(text, &[]));
        };
        for _ in 0..8 {
            run("SELECT name FROM shops WHERE id = $1", &[4711], 1);
        }
        for n in 0..15 {
            run("SELECT name FROM tags WHERE id = $1", &[90_000 + 7 * (n * n % 31)], 1);
        }
        for n in 0..6 {
            run("SELECT balance FROM accounts WHERE id = $1", &[50_000 + n], 1);
            run("UPDATE accounts SET balance = $1 WHERE id = $2", &[7, 50_000 + n], 1);
        }
        traffic.found().into_iter().filter(|(code, _)| *code != Code::SessionChatter).collect::<Vec<_>>()
    };
    let alone = found(&[], MILLISECOND / 10);
    assert_eq!(alone.len(), 4, "{alone:?}");
    let of_asyncpg = "SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL";
    for between in [&["RESET ALL"][..], &["DISCARD ALL"], &[of_asyncpg]] {
        assert_eq!(found(between, MILLISECOND / 10), alone, "{between:?}");
    }
    // The gaps before and behind a reset are one.
    assert_eq!(found(&["RESET ALL"], 11 * MILLISECOND), []);
    // What is set back may have changed the next answer.
    let changed = found(&["SET search_path = other", "RESET ALL"], MILLISECOND / 10);
    assert!(changed.iter().all(|(code, _)| *code != Code::Repeated), "{changed:?}");
}
