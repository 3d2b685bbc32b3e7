//! What `Auto` asks about a table before many sets go another way than one by one, and that nothing which changes between two
//! calls lets it write or fail otherwise.

mod common;

use common::Server;
use common::sets::{FEW, MANY, SOME, insert_ids, shared_table, text};
use onetrip_client::blocking::Client;
use onetrip_client::types::Type;
use onetrip_client::{Bulk, Param, TransactionStatus, Typed};

/// Makes the function of a trigger that tells how many rows it sees. Tests that make it at once wait for each other: the server
/// refuses to replace a function that another session is replacing.
const COUNTING: &str = "SELECT pg_advisory_xact_lock(1);
     CREATE OR REPLACE FUNCTION counting() RETURNS trigger LANGUAGE plpgsql AS $$
     BEGIN EXECUTE format('SELECT count(*) FROM %I', TG_TABLE_NAME) INTO NEW.seen; RETURN NEW; END $$";

#[test]
fn a_guard_finds_what_another_session_has_changed() {
    for begins in [false, true] {
        for (count, known) in [(FEW, Bulk::Copy), (SOME, Bulk::Unnest), (MANY, Bulk::Copy)] {
            let mut client = shared_table("guarded", "id int, seen bigint");
            let mut other = Client::connect(&Server::shared().url()).unwrap();
            let insert = |client: &mut Client| {
                client.script("TRUNCATE guarded").unwrap();
                let before = client.core().trips();
                let done = insert_ids(client, "guarded", count, begins).unwrap();
                let trips = client.core().trips() - before;
                assert_eq!(done.rows, u64::try_from(count).unwrap());
                if begins {
                    assert_eq!(client.transaction_status(), TransactionStatus::Active);
                    client.commit().unwrap();
                }
                (done.way, trips)
            };
            let place = format!("{count} sets, begins: {begins}");
            insert(&mut client);
            assert_eq!(insert(&mut client), (known, 1), "{place}");
            other.script(COUNTING).unwrap();
            other
                .script(
                    "CREATE TRIGGER seen BEFORE INSERT ON guarded FOR EACH ROW EXECUTE FUNCTION counting()",
                )
                .unwrap();
            let (way, trips) = insert(&mut client);
            assert_eq!(way, Bulk::Pipeline, "{place}: the guard fails, and the sets go one by one");
            // Many go in pieces: the server may have answered one before the next is made, which counts as a trip.
            assert!(trips == 2 || trips > 2 && count == MANY, "{place}: {trips} trips");
            let sum = "SELECT sum(seen)::text FROM guarded";
            assert_eq!(
                text(&mut client, sum),
                (i64::from(count) * i64::from(count - 1) / 2).to_string(),
                "{place}"
            );
            let (way, _) = insert(&mut client);
            assert_eq!(way, Bulk::Pipeline, "{place}: it is known now");
            // What has failed before the sets leaves nothing behind.
            assert_eq!(client.execute("SELECT FROM guarded", &[]).unwrap(), u64::try_from(count).unwrap());
        }
    }
    shared_table("guarded", "id int").script("DROP TABLE guarded").unwrap();
}

#[test]
fn a_guard_finds_that_a_name_means_another_table() {
    for count in [FEW, SOME, MANY] {
        let mut client = shared_table("shadowed", "id int");
        client.script("DROP SCHEMA IF EXISTS nearer CASCADE; CREATE SCHEMA nearer").unwrap();
        client.script("SET search_path = nearer, public").unwrap();
        for way in [Bulk::Pipeline, if count == SOME { Bulk::Unnest } else { Bulk::Copy }] {
            // The first sets of so many are asked about in a trip of their own.
            let done = insert_ids(&mut client, "shadowed", count, false).unwrap();
            assert!(done.way == way || count == MANY, "{count} sets: {:?}", done.way);
        }
        // A statement that is prepared goes on to mean the table that it meant.
        Client::connect(&Server::shared().url())
            .unwrap()
            .script("CREATE TABLE nearer.shadowed (id int)")
            .unwrap();
        let done = insert_ids(&mut client, "shadowed", count, false).unwrap();
        assert_eq!(done.way, Bulk::Pipeline, "{count} sets");
        let found =
            "SELECT (SELECT count(*) FROM public.shadowed) || ' ' || (SELECT count(*) FROM nearer.shadowed)";
        assert_eq!(text(&mut client, found), format!("{} 0", 3 * count), "{count} sets");
    }
    let mut client = shared_table("shadowed", "id int");
    client.script("DROP SCHEMA nearer CASCADE; DROP TABLE shadowed").unwrap();
}

#[test]
fn sets_go_one_by_one_where_the_server_has_forgotten_their_statement() {
    let mut client = shared_table("forgotten", "id int");
    let insert = |client: &mut Client| {
        let done = insert_ids(client, "forgotten", SOME, false).unwrap();
        assert_eq!(done.rows, u64::try_from(SOME).unwrap());
        done.way
    };
    assert_eq!((insert(&mut client), insert(&mut client)), (Bulk::Pipeline, Bulk::Unnest));
    // The client does not see it, as behind a pooler that changes servers.
    client.script("DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$").unwrap();
    let ways: Vec<Bulk> = (0..3).map(|_| insert(&mut client)).collect();
    assert_eq!(
        ways,
        [Bulk::Pipeline, Bulk::Pipeline, Bulk::Unnest],
        "one call finds out, and one asks again"
    );
    assert_eq!(text(&mut client, "SELECT count(*)::text FROM forgotten"), (5 * SOME).to_string());
    client.script("DROP TABLE forgotten").unwrap();
}

#[test]
fn a_value_that_does_not_fit_is_told_and_the_table_stays_known() {
    let mut client = shared_table("fitting", "id int");
    let insert = |client: &mut Client, first: &str| {
        let values: Vec<String> =
            (0..FEW).map(|id| if id == 0 { first.to_owned() } else { id.to_string() }).collect();
        let sets: Vec<[&dyn Param; 1]> = values.iter().map(|value| [value as &dyn Param]).collect();
        let statement = "INSERT INTO fitting (id) VALUES ($1)";
        client.execute_many_by(Bulk::Auto, statement, sets.iter().map(|set| &set[..])).map(|done| done.way)
    };
    assert_eq!(insert(&mut client, "1").unwrap(), Bulk::Pipeline);
    assert_eq!(insert(&mut client, "1").unwrap(), Bulk::Copy);
    let failed = insert(&mut client, "one").unwrap_err();
    assert_eq!((failed.set, failed.error.sqlstate()), (Some(0), Some("22P02")), "{failed}");
    // It is asked about once more, as the guard has not run.
    let ways: Vec<Bulk> = (0..2).map(|_| insert(&mut client, "1").unwrap()).collect();
    assert_eq!(ways[1], Bulk::Copy, "{ways:?}");
    assert_eq!(text(&mut client, "SELECT count(*)::text FROM fitting"), (4 * FEW).to_string());
    client.script("DROP TABLE fitting").unwrap();
}

#[test]
fn auto_fails_as_one_by_one_where_copy_would_fail_otherwise() {
    // COPY reads all rows before it looks for the first one's key, and checks references at its end.
    let mut client = Client::connect(&Server::shared().url()).unwrap();
    for (bad, expected) in [
        ([("7", "1"), ("9", "x")], (7, "23505")),
        ([("2007", "3"), ("9", "x")], (7, "23503")),
        ([("2007", "1"), ("9", "x")], (50, "22P02")),
    ] {
        for way in [Bulk::Pipeline, Bulk::Auto] {
            client
                .script(
                    "DROP TABLE IF EXISTS failing, failing2; CREATE TABLE failing2 (id int PRIMARY KEY);
                     INSERT INTO failing2 VALUES (1);
                     CREATE TABLE failing (id int PRIMARY KEY, other int REFERENCES failing2)",
                )
                .unwrap();
            let insert = |client: &mut Client, from: i32, bad: &[(&str, &str)]| {
                let mut rows: Vec<(String, String)> =
                    (from..from + FEW).map(|id| (id.to_string(), "1".to_owned())).collect();
                for ((id, other), at) in bad.iter().zip([7, 50]) {
                    rows[at] = ((*id).to_owned(), (*other).to_owned());
                }
                let sets: Vec<[&dyn Param; 2]> =
                    rows.iter().map(|(id, other)| [id as &dyn Param, other as &dyn Param]).collect();
                let statement = "INSERT INTO failing (id, other) VALUES ($1, $2)";
                client.execute_many_by(way, statement, sets.iter().map(|set| &set[..]))
            };
            for call in 0..2 {
                insert(&mut client, call * FEW, &[]).unwrap();
            }
            let failed = insert(&mut client, 1000, &bad).unwrap_err();
            let found = (failed.set, failed.error.sqlstate());
            let (set, code) = expected;
            assert_eq!(found, (Some(set), Some(code)), "{way:?}: {failed}");
            assert_eq!(client.execute("SELECT FROM failing", &[]).unwrap(), 2 * u64::try_from(FEW).unwrap());
        }
    }
    client.script("DROP TABLE failing, failing2").unwrap();
}

#[test]
fn a_guard_sees_a_trigger_whatever_operators_the_program_has() {
    let mut client = shared_table("fooled", "id int, seen bigint");
    client
        .script(
            "DROP SCHEMA IF EXISTS own CASCADE; CREATE SCHEMA own;
             CREATE FUNCTION own.never(oid, oid) RETURNS bool LANGUAGE sql AS 'SELECT false';
             CREATE FUNCTION own.always(text, text) RETURNS bool LANGUAGE sql AS 'SELECT true';
             CREATE OPERATOR own.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = own.never);
             CREATE OPERATOR own.~~ (LEFTARG = text, RIGHTARG = text, FUNCTION = own.always);
             CREATE FUNCTION own.count(int) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
             SET search_path = own, pg_catalog, public",
        )
        .unwrap();
    let mut other = Client::connect(&Server::shared().url()).unwrap();
    other.script(COUNTING).unwrap();
    let ways: Vec<Bulk> =
        (0..2).map(|_| insert_ids(&mut client, "fooled", FEW, false).unwrap().way).collect();
    assert_eq!(ways, [Bulk::Pipeline, Bulk::Copy]);
    other
        .script("CREATE TRIGGER seen BEFORE INSERT ON fooled FOR EACH ROW EXECUTE FUNCTION counting()")
        .unwrap();
    assert_eq!(insert_ids(&mut client, "fooled", FEW, false).unwrap().way, Bulk::Pipeline);
    client.script("RESET search_path; DROP TABLE fooled; DROP SCHEMA own CASCADE").unwrap();
}

#[test]
fn what_the_pipeline_refuses_no_other_way_lets_in() {
    let mut client = Client::connect(&Server::shared().url()).unwrap();
    let cases = [
        // A partition whose rows refer to the whole: later rows of the same call do not count.
        (
            "CREATE TABLE odd_whole (id int PRIMARY KEY, up int REFERENCES odd_whole) PARTITION BY RANGE (id);
             CREATE TABLE odd PARTITION OF odd_whole FOR VALUES FROM (0) TO (100000)",
            "INSERT INTO odd (id, up) VALUES ($1, $2)",
            "23503",
        ),
        // A domain that forbids NULL, of a column that gets nothing.
        (
            "CREATE DOMAIN odd_whole AS int CHECK (VALUE IS NOT NULL); CREATE TABLE odd (id int, up int, d odd_whole)",
            "INSERT INTO odd (id, up) VALUES ($1, $2)",
            "23514",
        ),
    ];
    let drop = "DROP TABLE IF EXISTS odd_whole, odd CASCADE; DROP DOMAIN IF EXISTS odd_whole";
    for (setup, statement, code) in cases {
        for count in [FEW, SOME, MANY] {
            client.script(&format!("{drop}; {setup}")).unwrap();
            let rows: Vec<(i32, i32)> = (0..count).map(|id| (id, (id + 1) % count)).collect();
            let sets: Vec<[&dyn Param; 2]> =
                rows.iter().map(|(id, up)| [id as &dyn Param, up as &dyn Param]).collect();
            for call in 0..3 {
                let failed = client.execute_many(statement, sets.iter().map(|set| &set[..])).unwrap_err();
                assert_eq!(
                    failed.error.sqlstate(),
                    Some(code),
                    "call {call}, {count} sets of {statement}: {failed}"
                );
            }
        }
        client.script(drop).unwrap();
    }
}

#[test]
fn text_for_an_interval_of_one_field_is_read_as_a_parameter_is() {
    let mut client = shared_table("years", "a interval year");
    for call in 0..3 {
        let one: Vec<[&dyn Param; 1]> = (0..FEW).map(|_| [&"1" as &dyn Param]).collect();
        let statement = "INSERT INTO years (a) VALUES ($1)";
        client.execute_many(statement, one.iter().map(|set| &set[..])).unwrap();
        let found = "SELECT string_agg(DISTINCT a::text, '|') || count(*) FROM years";
        assert_eq!(text(&mut client, found), format!("00:00:00{}", (call + 1) * FEW));
    }
    client.script("DROP TABLE years").unwrap();
}

#[test]
fn the_first_set_fails_of_a_table_that_never_was() {
    let mut client = Client::connect(&Server::shared().url()).unwrap();
    for count in [FEW, SOME, MANY] {
        for begins in [false, true] {
            let failed = insert_ids(&mut client, "never_was", count, begins).unwrap_err();
            assert_eq!((failed.set, failed.error.sqlstate()), (Some(0), Some("42P01")), "{count}: {failed}");
            if begins {
                client.rollback().unwrap();
            }
        }
    }
}

#[test]
fn the_first_set_fails_of_a_table_that_is_gone() {
    for count in [FEW, SOME, MANY] {
        let mut client = shared_table("gone", "id int");
        for _ in 0..2 {
            insert_ids(&mut client, "gone", count, false).unwrap();
        }
        Client::connect(&Server::shared().url()).unwrap().script("DROP TABLE gone").unwrap();
        let failed = insert_ids(&mut client, "gone", count, false).unwrap_err();
        assert_eq!((failed.set, failed.error.sqlstate()), (Some(0), Some("42P01")), "{count} sets");
    }
}

#[test]
fn a_transaction_that_keeps_its_snapshot_goes_one_by_one() {
    let mut client = shared_table("kept_back", "id int, seen bigint");
    let mut other = Client::connect(&Server::shared().url()).unwrap();
    other.script(COUNTING).unwrap();
    // What is asked by an older snapshot does not show a trigger that runs all the same.
    client.script("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class").unwrap();
    other
        .script("CREATE TRIGGER seen BEFORE INSERT ON kept_back FOR EACH ROW EXECUTE FUNCTION counting()")
        .unwrap();
    let done = insert_ids(&mut client, "kept_back", MANY, false).unwrap();
    assert_eq!((done.way, done.rows), (Bulk::Pipeline, 4000));
    assert_eq!(text(&mut client, "SELECT sum(seen)::text FROM kept_back"), "7998000");
    client.rollback().unwrap();
    client.script("DROP TABLE kept_back").unwrap();
}

#[test]
fn who_may_not_ask_about_a_table_goes_one_by_one() {
    let server = Server::shared();
    let mut owner = Client::connect(&server.url()).unwrap();
    owner.script("DROP DATABASE IF EXISTS closed").unwrap();
    owner.script("CREATE DATABASE closed").unwrap();
    let url = server.url().replace("/postgres?", "/closed?");
    let mut owner_there = Client::connect(&url).unwrap();
    owner_there
        .script(
            "REVOKE SELECT ON pg_catalog.pg_trigger FROM PUBLIC;
             DROP ROLE IF EXISTS asking; CREATE ROLE asking;
             CREATE TABLE plain (id int); GRANT ALL ON plain TO asking",
        )
        .unwrap();
    let mut client = Client::connect(&url).unwrap();
    client.script("SET ROLE asking").unwrap();
    for begins in [false, true, false] {
        for count in [150, MANY] {
            let done = insert_ids(&mut client, "plain", count, begins).unwrap();
            assert_eq!((done.way, done.rows), (Bulk::Pipeline, u64::try_from(count).unwrap()));
            if begins {
                client.commit().unwrap();
            }
        }
    }
    assert_eq!(client.execute("SELECT FROM plain", &[]).unwrap(), 3 * 4150);
    drop((client, owner_there));
    owner.script("DROP DATABASE closed WITH (FORCE)").unwrap();
    owner.script("DROP ROLE asking").unwrap();
}

#[test]
fn a_guard_finds_that_a_column_has_another_type() {
    let mut client = shared_table("retyped", "id int");
    let ids: Vec<i32> = (0..FEW).collect();
    let typed: Vec<Typed<'_>> = ids.iter().map(|id| Typed(&Type::INT4, id)).collect();
    let sets: Vec<[&dyn Param; 1]> = typed.iter().map(|value| [value as &dyn Param]).collect();
    let insert = |client: &mut Client| {
        let statement = "INSERT INTO retyped (id) VALUES ($1)";
        client.execute_many_by(Bulk::Auto, statement, sets.iter().map(|set| &set[..])).map(|done| done.way)
    };
    assert_eq!((insert(&mut client).unwrap(), insert(&mut client).unwrap()), (Bulk::Pipeline, Bulk::Copy));
    let mut other = Client::connect(&Server::shared().url()).unwrap();
    // Four bytes of the one are four of the other.
    other.script("ALTER TABLE retyped ALTER id TYPE float4").unwrap();
    assert_eq!(insert(&mut client).unwrap(), Bulk::Pipeline);
    assert_eq!(text(&mut client, "SELECT max(id)::text FROM retyped"), (FEW - 1).to_string());
    client.script("DROP TABLE retyped").unwrap();
}
