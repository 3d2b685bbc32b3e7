//! OT010.

use onetrip_ledger::{Code, Evidence, UnitKind};

use crate::traffic::{Traffic, found};

/// The calls of one way to reach large objects.
struct Calls {
    kind: UnitKind,
    open: &'static str,
    read: &'static str,
    write: &'static str,
    close: &'static str,
}

/// libpq and pgjdbc.
const BY_FUNCTION: Calls = Calls {
    kind: UnitKind::FunctionCall,
    open: "lo_open($1, $2)",
    read: "loread($1, $2)",
    write: "lowrite($1, $2)",
    close: "lo_close($1)",
};
/// pgx and everyone else.
const BY_SQL: Calls = Calls {
    kind: UnitKind::Group,
    open: "select lo_open($1, $2)",
    read: "select loread($1, $2)",
    write: "select lowrite($1, $2)",
    close: "select lo_close($1)",
};

/// Three objects in one transaction; `work` gets the number by which the server knows the open object.
fn three_objects(calls: &Calls, work: impl Fn(&mut Traffic, u64)) -> Traffic {
    let mut traffic = Traffic::new();
    traffic.begin();
    traffic.kind = calls.kind;
    for object in 0..3 {
        let handle = 500 + object;
        traffic.value(calls.open, &[90_000 + object, 262_144], handle);
        work(&mut traffic, handle);
        traffic.shares = false;
        traffic.run(calls.close, &[handle]);
    }
    traffic.kind = UnitKind::Query;
    traffic.commit();
    traffic
}

fn read_in_three(calls: &Calls) -> Traffic {
    three_objects(calls, |traffic, handle| {
        for _ in 0..3 {
            traffic.run(calls.read, &[handle, 2_048]);
        }
    })
}

#[test]
fn all_calls_on_an_object_but_one_are_avoidable() {
    for calls in [BY_FUNCTION, BY_SQL] {
        let findings = read_in_three(&calls).findings();
        assert_eq!(found(&findings), [(Code::LobChatter, 12)], "{}", calls.read);
        assert_eq!(findings[0].evidence, Evidence::Objects { objects: 3, calls: 15 });
    }
}

#[test]
fn an_object_that_is_read_by_one_statement_is_no_finding() {
    let mut traffic = Traffic::new();
    for file in 0..3 {
        traffic.run("SELECT lo_get(content) FROM files WHERE id = $1", &[31 - file]);
    }
    assert_eq!(traffic.found(), []);
}

#[test]
fn objects_that_are_written_or_not_read_are_no_finding() {
    let written = three_objects(&BY_FUNCTION, |traffic, handle| {
        traffic.run(BY_FUNCTION.read, &[handle, 2_048]);
        traffic.run(BY_FUNCTION.write, &[handle, 7]);
    });
    assert_eq!(written.avoidable(Code::LobChatter), 0);
    let untouched = three_objects(&BY_FUNCTION, |_, _| {});
    assert_eq!(untouched.avoidable(Code::LobChatter), 0);
}

#[test]
fn calls_on_objects_that_were_not_seen_to_open_are_no_finding() {
    let mut traffic = Traffic::new();
    traffic.begin();
    for _ in 0..20 {
        traffic.run(BY_SQL.read, &[999, 2_048]);
    }
    traffic.commit();
    assert_eq!(traffic.avoidable(Code::LobChatter), 0);
}

#[test]
fn pieces_that_share_a_trip_cost_one() {
    let pipelined = three_objects(&BY_SQL, |traffic, handle| {
        for piece in 0..3 {
            traffic.shares = piece > 0;
            traffic.run(BY_SQL.read, &[handle, 2_048]);
        }
    });
    assert_eq!(pipelined.found(), [(Code::LobChatter, 6)], "open, the first piece, close: two of three");
}
