//! Many sets of parameters: every way writes the same rows, says which set failed, and keeps all or nothing.

mod common;

use std::time::Duration;

use common::sets::{FEW, MANY, text};
use common::{Server, Turns};
use onetrip_client::blocking::Client;
use onetrip_client::types::Type;
use onetrip_client::{Bulk, BulkError, Error, Param, TransactionStatus, Typed, Usage};

const WAYS: [Bulk; 4] = [Bulk::Auto, Bulk::Pipeline, Bulk::Unnest, Bulk::Copy];
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
