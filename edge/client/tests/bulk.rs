//! Many sets of parameters: every way writes the same rows, says which set failed, and keeps all or nothing.

mod common;

use std::time::Duration;

use common::{Server, Turns};
use onetrip_client::blocking::Client;
use onetrip_client::types::Type;
use onetrip_client::{Bulk, BulkError, Error, Param, TransactionStatus, Typed, Usage};

const WAYS: [Bulk; 4] = [Bulk::Auto, Bulk::Pipeline, Bulk::Unnest, Bulk::Copy];
/// Enough for `Auto` to choose COPY.
const MANY: i32 = 4000;
/// For these it chooses arrays.
const SOME: i32 = 400;
/// And for these COPY, as soon as it knows the table.
const FEW: i32 = 60;
const TABLE: &str =
    "CREATE TEMP TABLE bulk (id int PRIMARY KEY CHECK (id >= 0), a numeric(10,2), b varchar(9),
     c bytea, d timestamptz, e bool, f float8, g jsonb, h int[])";
const INSERT: &str = "INSERT INTO bulk (id, a, b, c, d, e, f, g) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
const KEYS: &str = "INSERT INTO bulk (id) VALUES ($1)";

fn client() -> Client {
    let mut client = Client::connect(&Server::shared().url()).unwrap();
    client.script(TABLE).unwrap();
    client
}

/// Everything that text and COPY escape.
fn words(id: i32) -> Option<String> {
    let strange = ["a\tb\nc", "\\N", "\"\\,{}", "NULL", "", "\\.", "ü\r'x", "\\x41"];
    let index = usize::try_from(id).unwrap() % (strange.len() + 1);
    strange.get(index).map(|text| (*text).to_owned())
}

fn insert_all(client: &mut Client, way: Bulk, count: i32) -> Result<onetrip_client::BulkDone, BulkError> {
    let rows: Vec<_> = (0..count)
        .map(|id| {
            let bytes = vec![b'\\', u8::try_from(id % 251).unwrap(), 0];
            (id, f64::from(id) / 3.0, words(id), (id % 2 == 0).then_some(bytes))
        })
        .collect();
    let day = "2026-11-22 01:02:03+00";
    let sets: Vec<[&dyn Param; 8]> = rows
        .iter()
        .map(|(id, number, words, bytes)| {
            let row: [&dyn Param; 8] =
                [id, number, words, bytes, &day, &true, number, &r#"{"a": [1, "\"x\""]}"#];
            row
        })
        .collect();
    client.execute_many_by(way, INSERT, sets.iter().map(|set| &set[..]))
}

fn insert_keys(client: &mut Client, way: Bulk, keys: &[i32]) -> Result<onetrip_client::BulkDone, BulkError> {
    let sets: Vec<[&dyn Param; 1]> = keys.iter().map(|key| [key as &dyn Param]).collect();
    client.execute_many_by(way, KEYS, sets.iter().map(|set| &set[..]))
}

fn text(client: &mut Client, query: &str) -> String {
    let mut rows = client.query(query, &[]).unwrap();
    rows.next_row().unwrap().unwrap().get::<Option<String>>(0).unwrap().unwrap_or_default()
}

#[test]
fn every_way_writes_the_same_rows() {
    let mut client = client();
    let mut written = Vec::new();
    for way in WAYS {
        client.script("TRUNCATE bulk").unwrap();
        // bytes have no text form, which COPY needs where nobody has asked for the types.
        let done = insert_all(&mut client, way, MANY);
        if way == Bulk::Copy {
            let failed = done.unwrap_err();
            assert!(matches!(failed.error, Error::Parameter { number: 4, .. }), "{failed}");
            assert_eq!(failed.set, Some(0), "{failed}");
            continue;
        }
        let done = done.unwrap();
        assert_eq!(done.rows, 4000, "{way:?}");
        let chosen = if way == Bulk::Auto { Bulk::Copy } else { way };
        assert_eq!(done.way, chosen);
        let all = "SELECT string_agg(bulk::text, '|' ORDER BY id) FROM bulk";
        written.push(text(&mut client, all));
    }
    assert!(written[0].contains("666.33"), "a numeric(10,2)");
    assert!(written.iter().all(|rows| *rows == written[0]));
}

#[test]
fn copies_and_arrays_are_a_trip_and_auto_asks_once_in_one_more() {
    let turns = Turns::before(Server::shared());
    let mut client = Client::connect(&Server::shared().url_at(turns.port)).unwrap();
    client.script(TABLE).unwrap();
    let keys: Vec<i32> = (0..MANY).collect();
    for (way, first, later) in
        [(Bulk::Pipeline, 1, 1), (Bulk::Unnest, 1, 1), (Bulk::Copy, 1, 1), (Bulk::Auto, 2, 1)]
    {
        if way == Bulk::Auto {
            // A session that has seen no distance yet.
            client = Client::connect(&Server::shared().url_at(turns.port)).unwrap();
            client.script(TABLE).unwrap();
        }
        for trips in [first, later] {
            client.script("TRUNCATE bulk").unwrap();
            // What leaves in several pieces may be answered in between, which is no wait.
            let (keys, spare) = if way == Bulk::Auto { (&keys[..], 1) } else { (&keys[..50], 0) };
            let taken = turns.of(|| insert_keys(&mut client, way, keys).unwrap());
            assert!((trips..=trips + spare).contains(&taken), "{way:?}: {taken} trips");
        }
    }
    let few =
        turns.of(|| assert_eq!(insert_keys(&mut client, Bulk::Auto, &[MANY]).unwrap().way, Bulk::Pipeline));
    assert_eq!(few, 1, "few sets are not asked about");
    let mut fresh = Client::connect(&Server::shared().url_at(turns.port)).unwrap();
    fresh.script(TABLE).unwrap();
    let taken = turns.of(|| insert_keys(&mut fresh, Bulk::Unnest, &keys[..50]).unwrap());
    assert_eq!(taken, 2, "the types have to be known first");
}

#[test]
fn far_from_the_server_auto_asks_only_where_it_saves_a_trip() {
    let far = Turns::far_from(Server::shared(), Duration::from_millis(8));
    let mut client = Client::connect(&Server::shared().url_at(far.port)).unwrap();
    client.script(TABLE).unwrap();
    while client.core().round_trip().is_none() {
        client.execute("SELECT 1", &[]).unwrap();
    }
    assert!(client.core().round_trip() >= Some(Duration::from_millis(16)));
    let keys: Vec<i32> = (0..30_000).collect();
    let (few, all) = (&keys[..4000], &keys[..]);
    // The pipeline asks beside its sets; from then on a guard travels along.
    for (sets, way) in [(few, Bulk::Pipeline), (few, Bulk::Copy), (all, Bulk::Copy)] {
        client.script("TRUNCATE bulk").unwrap();
        let before = client.core().trips();
        assert_eq!(insert_keys(&mut client, Bulk::Auto, sets).unwrap().way, way);
        assert_eq!(client.core().trips() - before, 1, "{} sets", sets.len());
        assert_eq!(client.execute("SELECT FROM bulk", &[]).unwrap(), sets.len() as u64);
    }
    client.script("CREATE TEMP TABLE other (id int)").unwrap();
    let sets: Vec<[&dyn Param; 1]> = all.iter().map(|key| [key as &dyn Param]).collect();
    let before = client.core().trips();
    let insert = "INSERT INTO other (id) VALUES ($1)";
    assert_eq!(client.execute_many(insert, sets.iter().map(|set| &set[..])).unwrap(), 30_000);
    assert_eq!(client.core().trips() - before, 2, "so many sets are worth a question");
}

/// A table of its own name, which other sessions see, too.
fn shared_table(name: &str, columns: &str) -> Client {
    let mut client = Client::connect(&Server::shared().url()).unwrap();
    client.script(&format!("DROP TABLE IF EXISTS {name} CASCADE; CREATE TABLE {name} ({columns})")).unwrap();
    client
}

fn insert_ids(
    client: &mut Client,
    table: &str,
    count: i32,
    begins: bool,
) -> Result<onetrip_client::BulkDone, BulkError> {
    struct Ids(Vec<i32>);
    impl onetrip_client::core::Sets for Ids {
        fn count(&self) -> usize {
            self.0.len()
        }
        fn width(&self, _: usize) -> usize {
            1
        }
        fn value(&self, set: usize, _: usize) -> &dyn Param {
            &self.0[set]
        }
    }
    let statement = format!("INSERT INTO {table} (id) VALUES ($1)");
    client.run_many(Bulk::Auto, &statement, &Ids((0..count).collect()), begins)
}

/// What rows for a row's trigger to see before it.
const COUNTING: &str = "CREATE OR REPLACE FUNCTION counting() RETURNS trigger LANGUAGE plpgsql AS $$
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
fn sets_are_not_escaped_byte_by_byte_where_bytes_are_parts_of_characters() {
    let mut client = client();
    client.script("SET client_encoding TO SJIS").unwrap();
    for way in [Bulk::Copy, Bulk::Unnest] {
        let failed = insert_keys(&mut client, way, &[1]).unwrap_err();
        assert!(matches!(failed.error, Error::Usage(Usage::Encoding)), "{failed}");
    }
    let keys: Vec<i32> = (0..MANY).collect();
    assert_eq!(insert_keys(&mut client, Bulk::Auto, &keys).unwrap().way, Bulk::Pipeline);
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
fn the_set_that_failed_is_told_and_nothing_is_kept() {
    for in_transaction in [false, true] {
        for way in WAYS {
            for at in [0, 1, 1234, MANY - 1] {
                let mut client = client();
                if in_transaction {
                    client.begin().unwrap();
                }
                let mut keys: Vec<i32> = (0..MANY).collect();
                keys[usize::try_from(at).unwrap()] = -1;
                let failed = insert_keys(&mut client, way, &keys).unwrap_err();
                let place = format!("{way:?} at {at}, in a transaction: {in_transaction}: {failed}");
                assert_eq!(failed.error.sqlstate(), Some("23514"), "{place}");
                // Arrays are one statement: in a transaction it cannot be tried again to find out.
                let is_told = way != Bulk::Unnest || !in_transaction;
                let told = is_told.then(|| usize::try_from(at).unwrap());
                assert_eq!(failed.set, told, "{place}");
                if in_transaction {
                    assert_eq!(client.transaction_status(), TransactionStatus::Failed, "{place}");
                    client.rollback().unwrap();
                }
                assert_eq!(client.execute("SELECT FROM bulk", &[]).unwrap(), 0, "{place}");
            }
        }
    }
}

#[test]
fn the_commit_of_all_sets_fails_none_of_them() {
    let mut client = client();
    client
        .script("CREATE TEMP TABLE late (id int UNIQUE DEFERRABLE INITIALLY DEFERRED); INSERT INTO late VALUES (1500)")
        .unwrap();
    let keys: Vec<i32> = (0..MANY).collect();
    for way in WAYS {
        let sets: Vec<[&dyn Param; 1]> = keys.iter().map(|key| [key as &dyn Param]).collect();
        let insert = "INSERT INTO late (id) VALUES ($1)";
        let failed = client.execute_many_by(way, insert, sets.iter().map(|set| &set[..])).unwrap_err();
        assert_eq!((failed.error.sqlstate(), failed.set), (Some("23505"), None), "{way:?}");
        assert_eq!(client.execute("SELECT FROM late", &[]).unwrap(), 1, "{way:?}");
    }
}

#[test]
fn auto_goes_one_by_one_where_another_way_could_differ() {
    let keys: Vec<i32> = (0..MANY).collect();
    let way_of = |setup: &str, expected: Bulk| {
        // A session that has seen no distance yet.
        let mut client = client();
        client.script("DROP TABLE IF EXISTS special, target; DROP VIEW IF EXISTS view").unwrap();
        client.script("CREATE TABLE special (id int, more int)").unwrap();
        client.script(setup).unwrap();
        let sets: Vec<[&dyn Param; 1]> = keys.iter().map(|key| [key as &dyn Param]).collect();
        let insert = "INSERT INTO special (id) VALUES ($1)";
        let done = client.execute_many_by(Bulk::Auto, insert, sets.iter().map(|set| &set[..])).unwrap();
        assert_eq!((done.rows, done.way), (4000, expected), "{setup}");
        assert_eq!(client.execute("SELECT FROM special", &[]).unwrap(), 4000, "{setup}");
    };
    way_of("SELECT 1", Bulk::Copy);
    way_of("ALTER TABLE special ADD own int GENERATED ALWAYS AS IDENTITY", Bulk::Unnest);
    way_of("ALTER TABLE special ENABLE ROW LEVEL SECURITY", Bulk::Unnest);
    way_of(
        "CREATE TABLE target (id int);
         CREATE RULE also AS ON INSERT TO special DO ALSO INSERT INTO target VALUES (NEW.id)",
        Bulk::Pipeline,
    );
    way_of(
        "CREATE OR REPLACE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
         CREATE TRIGGER seen AFTER INSERT ON special EXECUTE FUNCTION nothing()",
        Bulk::Pipeline,
    );
    way_of(
        "ALTER TABLE special ADD PRIMARY KEY (id), ADD FOREIGN KEY (more) REFERENCES special (id)",
        Bulk::Pipeline,
    );
    way_of(
        "DROP TABLE special; CREATE TABLE special (id int) PARTITION BY RANGE (id);
         CREATE TABLE part PARTITION OF special DEFAULT",
        Bulk::Pipeline,
    );
    client().script("DROP TABLE special").unwrap();
}

#[test]
fn a_statement_that_is_no_plain_insertion_goes_one_by_one() {
    let mut client = client();
    let keys: Vec<i32> = (0..MANY).collect();
    let sets: Vec<[&dyn Param; 1]> = keys.iter().map(|key| [key as &dyn Param]).collect();
    let sets = || sets.iter().map(|set| &set[..]);
    let returning = "INSERT INTO bulk (id) VALUES ($1) RETURNING id";
    let done = client.execute_many_by(Bulk::Auto, returning, sets()).unwrap();
    assert_eq!((done.rows, done.way), (4000, Bulk::Pipeline));
    for way in [Bulk::Unnest, Bulk::Copy] {
        let failed = client.execute_many_by(way, returning, sets()).unwrap_err();
        assert!(matches!(failed.error, Error::Usage(Usage::NotPlainInsert)), "{failed}");
    }
    let nameless = client.execute_many_by(Bulk::Copy, "INSERT INTO bulk VALUES ($1)", sets()).unwrap_err();
    assert!(matches!(nameless.error, Error::Usage(Usage::NotPlainInsert)), "COPY would want all columns");
    let none: [&[&dyn Param]; 0] = [];
    for way in WAYS {
        assert_eq!(client.execute_many_by(way, KEYS, none).unwrap().rows, 0, "{way:?} of nothing");
    }
}

#[test]
fn values_of_several_kinds_find_their_way() {
    let mut client = client();
    let ids: Vec<i32> = (0..MANY).collect();
    // Of a type of their own; and one that differs from the others.
    let typed: Vec<Typed<'_>> = ids.iter().map(|id| Typed(&Type::INT4, id)).collect();
    let mut sets: Vec<[&dyn Param; 1]> = typed.iter().map(|value| [value as &dyn Param]).collect();
    let done = client.execute_many_by(Bulk::Auto, KEYS, sets.iter().map(|set| &set[..])).unwrap();
    assert_eq!((done.rows, done.way), (4000, Bulk::Copy));
    client.script("TRUNCATE bulk").unwrap();
    let long = Typed(&Type::INT8, &1500i64);
    sets[1500] = [&long];
    let done = client.execute_many_by(Bulk::Auto, KEYS, sets.iter().map(|set| &set[..])).unwrap();
    assert_eq!(done.rows, 4000);
    let sum = "SELECT sum(id)::text FROM bulk";
    assert_eq!(text(&mut client, sum), "7998000");
    client.script("TRUNCATE bulk").unwrap();
    let failed = client.execute_many_by(Bulk::Unnest, KEYS, sets.iter().map(|set| &set[..])).unwrap_err();
    assert_eq!(failed.set, Some(1500), "{failed}");
    assert_eq!(client.execute("SELECT FROM bulk", &[]).unwrap(), 0, "what was sent before is taken back");
}

/// Writes rows of typed values into a table with these columns, by a way; and what they are then.
fn typed_rows(client: &mut Client, columns: &str, way: Bulk, count: i32) -> (Bulk, String) {
    client.script(&format!("DROP TABLE IF EXISTS typed; CREATE TABLE typed ({columns})")).unwrap();
    let insert = "INSERT INTO typed (small, \"B c\", f, raw, t, flag) VALUES ($1, $2, $3, $4, $5, $6)";
    let mut last = Bulk::Auto;
    for call in 0..3 {
        let rows: Vec<_> = (0..count)
            .map(|id| {
                let small = i16::try_from((id - count / 2) % 30_000).unwrap();
                (
                    small,
                    id - count / 2,
                    f64::from(id) / 3.0,
                    vec![b'\\', u8::try_from(id % 251).unwrap()],
                    words(id),
                    id % 3 == 0,
                )
            })
            .collect();
        let typed: Vec<_> = rows
            .iter()
            .map(|(small, id, f, raw, words, flag)| {
                let raw: Option<&Vec<u8>> = (*id % 7 != 0).then_some(raw);
                (Typed(&Type::INT2, small), Typed(&Type::INT4, id), Typed(&Type::FLOAT8, f), raw, words, flag)
            })
            .collect();
        let sets: Vec<[&dyn Param; 6]> = typed
            .iter()
            .map(|(small, id, f, raw, words, flag)| {
                let row: [&dyn Param; 6] = [small, id, f, raw, *words, *flag];
                row
            })
            .collect();
        last = client.execute_many_by(way, insert, sets.iter().map(|set| &set[..])).unwrap().way;
        assert_eq!(
            client.execute("SELECT FROM typed", &[]).unwrap(),
            u64::try_from((call + 1) * count).unwrap()
        );
    }
    let digest = "SELECT md5(string_agg(typed::text, '|' ORDER BY \"B c\", small, f)) FROM typed";
    (last, text(client, digest))
}

#[test]
fn values_with_types_of_their_own_go_by_copy_where_these_are_the_columns() {
    for (columns, way) in [
        ("small int2, \"B c\" int4, f float8, raw bytea, t text, flag bool", Bulk::Copy),
        // Columns in another order than the statement's; larger numbers, and limits of types.
        (
            "flag bool, t varchar(9), other int DEFAULT 7, raw bytea, f float8, \"B c\" int8, small int8",
            Bulk::Copy,
        ),
        // INSERT has to cast.
        ("small int2, \"B c\" numeric(10, 2), f float8, raw bytea, t text, flag bool", Bulk::Unnest),
        ("small int2, \"B c\" int4, f float4, raw bytea, t text, flag bool", Bulk::Unnest),
        ("small text, \"B c\" int4, f float8, raw bytea, t text, flag bool", Bulk::Unnest),
    ] {
        for count in [FEW, MANY] {
            // A session that has seen no table of that name.
            let mut client = Client::connect(&Server::shared().url()).unwrap();
            let (_, expected) = typed_rows(&mut client, columns, Bulk::Pipeline, count);
            let (found_way, found) = typed_rows(&mut client, columns, Bulk::Auto, count);
            assert_eq!((found_way, found), (way, expected), "{count} sets, {columns}");
            client.script("DROP TABLE typed").unwrap();
        }
    }
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

#[test]
fn a_set_that_cannot_be_written_leaves_nothing_behind() {
    for way in WAYS {
        let mut client = client();
        let ids: Vec<i32> = (0..MANY).collect();
        let mut sets: Vec<&[&dyn Param]> = Vec::new();
        let rows: Vec<[&dyn Param; 2]> = ids.iter().map(|id| [id as &dyn Param, &"x"]).collect();
        sets.extend(rows.iter().map(|row| &row[..]));
        sets[1800] = &rows[1800][..1];
        let failed = client
            .execute_many_by(way, "INSERT INTO bulk (id, b) VALUES ($1, $2)", sets.iter().copied())
            .unwrap_err();
        assert_eq!(failed.set, Some(1800), "{way:?} {failed}");
        assert_eq!(client.execute("SELECT FROM bulk", &[]).unwrap(), 0, "{way:?}");
    }
}

#[test]
#[cfg(feature = "aio")]
fn the_client_that_awaits_has_the_same_ways() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut client = onetrip_client::aio::Client::connect(&Server::shared().url()).await.unwrap();
        client.script(TABLE).await.unwrap();
        let mut keys: Vec<i32> = (0..MANY).collect();
        for way in WAYS {
            client.script("TRUNCATE bulk").await.unwrap();
            let sets: Vec<[&(dyn Param + Sync); 1]> =
                keys.iter().map(|key| [key as &(dyn Param + Sync)]).collect();
            let done = client.execute_many_by(way, KEYS, sets.iter().map(|set| &set[..])).await.unwrap();
            assert_eq!(done.rows, 4000, "{way:?}");
        }
        keys[77] = 76;
        let sets: Vec<[&(dyn Param + Sync); 1]> =
            keys.iter().map(|key| [key as &(dyn Param + Sync)]).collect();
        client.script("TRUNCATE bulk").await.unwrap();
        let failed = client.execute_many(KEYS, sets.iter().map(|set| &set[..])).await.unwrap_err();
        assert_eq!((failed.set, failed.error.sqlstate()), (Some(77), Some("23505")));
        assert_eq!(client.execute("SELECT FROM bulk", &[]).await.unwrap(), 0);
    });
}
