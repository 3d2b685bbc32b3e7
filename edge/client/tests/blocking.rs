//! The blocking client against a real server.

mod common;

use common::Server;
use onetrip_client::blocking::Client;
use onetrip_client::core::{Codec, Request};
use onetrip_client::{Config, Error, OnError, Outcome, Retry, Usage};

fn client() -> Client {
    Client::connect(&Server::shared().url()).expect("the server lets us in")
}

#[test]
fn values_go_in_and_come_back() {
    let mut client = client();
    for _ in 0..2 {
        // The first time the parameters travel as text, the second time in binary.
        let mut rows = client
            .query(
                "SELECT $1::int4 + 1, $2::text, $3::bytea, $4::float8, $5::bool, $6::int8",
                &[&41, &"zwölf", &&b"\0\xff"[..], &1.5, &true, &None::<i64>],
            )
            .unwrap();
        assert_eq!(rows.columns().len(), 6);
        let row = rows.next_row().unwrap().expect("one row");
        assert_eq!(row.get::<i32>(0).unwrap(), 42);
        assert_eq!(row.get::<&str>(1).unwrap(), "zwölf");
        assert_eq!(row.get::<&[u8]>(2).unwrap(), b"\0\xff");
        assert_eq!(row.get::<f64>(3).unwrap(), 1.5);
        assert!(row.get::<bool>(4).unwrap());
        assert_eq!(row.get::<Option<i64>>(5).unwrap(), None);
        assert!(row.get::<i64>(0).is_err(), "int4 is not read as eight bytes");
        assert!(rows.next_row().unwrap().is_none());
    }
}

#[test]
fn an_error_leaves_the_connection_usable() {
    let mut client = client();
    let error = client.execute("SELECT nothing", &[]).unwrap_err();
    assert_eq!(error.sqlstate(), Some("42703"));
    assert_eq!(error.server().unwrap().position(), Some(8));
    assert_eq!(client.execute("SELECT 1", &[]).unwrap(), 1);
    let error = client.execute("SELECT $1::int", &[&"seven"]).unwrap_err();
    assert_eq!(error.sqlstate(), Some("22P02"));
    assert_eq!(client.execute("SELECT $1::int", &[&"7"]).unwrap(), 1);
    let error = client.execute("SELECT $1::int", &[]).unwrap_err();
    assert_eq!(error.sqlstate(), Some("08P01"), "{error}");
}

#[test]
fn a_select_of_nothing_has_rows_without_columns() {
    let mut client = client();
    let nothing = client.run(&Request::new("SELECT FROM generate_series(1, 2)", &[]), false).unwrap();
    let rows = nothing.rows.expect("it returns rows");
    assert_eq!((rows.columns().len(), rows.len()), (0, 2));
    assert!(client.run(&Request::new("SET lock_timeout TO 0", &[]), false).unwrap().rows.is_none());
}

#[test]
fn statements_and_messages_are_converted_by_the_callers_codec() {
    // A byte of LATIN1 is the number of its character.
    fn encode(_: &str, text: &str) -> Option<Vec<u8>> {
        text.chars().map(|sign| u8::try_from(u32::from(sign)).ok()).collect()
    }
    fn decode(_: &str, said: &[u8]) -> Option<String> {
        Some(said.iter().copied().map(char::from).collect())
    }
    let mut client = client();
    client.set_codec(Codec { encode, decode });
    client.execute("SET client_encoding TO latin1", &[]).unwrap();
    let done = client.run(&Request::new("SELECT 'ä'::text AS \"ö\", 1, NULL", &[]), false).unwrap();
    let mut rows = done.rows.expect("it returns rows");
    assert_eq!(&*rows.columns()[0].name, "ö");
    rows.convert(|_, _, value| {
        let is_other = !value.is_ascii();
        Ok::<_, Error>(decode("LATIN1", value).filter(|_| is_other).map(String::into_bytes))
    })
    .unwrap();
    let row = rows.rows().next().expect("one row");
    assert_eq!((row.get::<&str>(0).unwrap(), row.get::<i32>(1).unwrap()), ("ä", 1));
    assert_eq!(row.get::<Option<&str>>(2).unwrap(), None);
    let done = client.run_script("SELECT 'ä' = chr(228)", false).unwrap().remove(0);
    assert_eq!(done.rows.expect("rows").rows().next().unwrap().value(0).unwrap(), Some(&b"t"[..]));
    let error = client.execute("SELECT * FROM \"ü\"", &[]).unwrap_err();
    assert!(error.server().unwrap().message().contains('ü'), "{error}");
}

#[test]
fn rows_that_nobody_reads_are_in_nobodys_way() {
    let mut client = client();
    let mut rows = client.query("SELECT generate_series(1, 100000)", &[]).unwrap();
    assert_eq!(rows.next_row().unwrap().unwrap().get::<i32>(0).unwrap(), 1);
    assert_eq!(client.execute("SELECT 1", &[]).unwrap(), 1);
}

#[test]
fn statements_survive_deallocation_and_a_changed_result() {
    let mut client = client();
    client.script("CREATE TEMP TABLE changing (a int); INSERT INTO changing VALUES (1)").unwrap();
    let read = "SELECT * FROM changing";
    assert_eq!(client.execute(read, &[]).unwrap(), 1);
    client.execute("DEALLOCATE ALL", &[]).unwrap();
    assert_eq!(client.execute(read, &[]).unwrap(), 1);
    client.execute("DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$", &[]).unwrap();
    assert_eq!(client.execute(read, &[]).unwrap(), 1, "26000 is healed");
    client.script("ALTER TABLE changing ADD b text DEFAULT 'x'").unwrap();
    let mut rows = client.query(read, &[]).unwrap();
    assert_eq!(rows.columns().len(), 2, "0A000 is healed");
    assert_eq!(rows.next_row().unwrap().unwrap().get::<&str>(1).unwrap(), "x");
}

#[test]
fn a_commit_that_fails_at_the_end_is_an_error_of_the_statement() {
    let mut client = client();
    client
        .script("CREATE TEMP TABLE late (a int UNIQUE DEFERRABLE INITIALLY DEFERRED); INSERT INTO late VALUES (1)")
        .unwrap();
    let error = client.execute("INSERT INTO late VALUES (1)", &[]).unwrap_err();
    assert_eq!(error.sqlstate(), Some("23505"));
    let mut pipeline = client.pipeline(OnError::Continue).unwrap();
    let failing = pipeline.execute("INSERT INTO late VALUES (1)", &[]).unwrap();
    let good = pipeline.execute("INSERT INTO late VALUES (2)", &[]).unwrap();
    let mut outcomes = pipeline.end().unwrap();
    assert_eq!(outcomes.take(failing).unwrap_err().sqlstate(), Some("23505"));
    assert_eq!(outcomes.take(good).unwrap().count(), 1);
}

#[test]
fn commit_of_a_failed_transaction_is_an_error() {
    let mut client = client();
    client.begin().unwrap();
    client.execute("SELECT 1/0", &[]).unwrap_err();
    assert!(matches!(client.commit(), Err(Error::RolledBack)));
    client.execute("SELECT 1", &[]).unwrap();
}

#[test]
fn pipelining_is_an_option_and_blocks_have_their_place() {
    let mut client = Client::connect(&format!("{}&pipelining=off", Server::shared().url())).unwrap();
    let error = client.pipeline(OnError::Abort).unwrap_err();
    assert!(matches!(error, Error::Usage(Usage::PipeliningOff)), "{error}");
    let error = client.execute("COPY nothing FROM STDIN", &[]).unwrap_err();
    assert!(matches!(error, Error::Usage(Usage::UseCopy)), "{error}");
    assert_eq!(client.execute("SELECT 1", &[]).unwrap(), 1);
}

#[test]
fn a_pipeline_gives_rows_before_it_ends_and_takes_a_trip_only_for_that() {
    let mut client = client();
    let mut pipeline = client.pipeline(OnError::Abort).unwrap();
    let first = pipeline.execute("SELECT generate_series(1, $1::int)", &[&3]).unwrap();
    assert!(matches!(pipeline.take(first), Err(Error::Usage(Usage::Unanswered))));
    pipeline.process(first).unwrap();
    let rows = pipeline.take(first).unwrap().rows.expect("it returns rows");
    let read: Vec<i32> = rows.rows().map(|row| row.get(0).unwrap()).collect();
    assert_eq!(read, [1, 2, 3]);
    let second = pipeline.execute("SELECT count(*) FROM pg_class WHERE false", &[]).unwrap();
    let empty = pipeline.execute("SELECT 1 WHERE false", &[]).unwrap();
    let mut outcomes = pipeline.end().unwrap();
    assert_eq!(outcomes.take(second).unwrap().count(), 1);
    assert_eq!(outcomes.take(empty).unwrap().rows.expect("no rows are rows too").len(), 0);
    assert!(matches!(outcomes.get(first), Some(Outcome::Taken)));
}

#[test]
fn copy_is_part_of_a_pipeline() {
    let mut client = client();
    client.script("CREATE TEMP TABLE copied (a int, b text)").unwrap();
    for (on_error, transaction) in
        [OnError::Abort, OnError::Continue].into_iter().flat_map(|mode| [(mode, false), (mode, true)])
    {
        client.script("TRUNCATE copied").unwrap();
        let mut pipeline = client.pipeline(on_error).unwrap();
        if transaction {
            pipeline.begin().unwrap();
        }
        let copied = pipeline.copy_in("COPY copied FROM STDIN", b"1\tone\n2\ttwo\n").unwrap();
        let counted = pipeline.execute("SELECT count(*) FROM copied", &[]).unwrap();
        if transaction {
            pipeline.commit().unwrap();
        }
        let mut outcomes = pipeline.end().unwrap();
        assert_eq!(outcomes.take(copied).unwrap().count(), 2);
        let rows = outcomes.take(counted).unwrap().rows.unwrap();
        assert_eq!(rows.rows().next().unwrap().get::<i64>(0).unwrap(), 2);
    }
    let mut pipeline = client.pipeline(OnError::Continue).unwrap();
    let refused = pipeline.copy_in("COPY copied FROM STDIN", b"x\tone\n").unwrap();
    let absent = pipeline.copy_in("COPY nothing FROM STDIN", b"1\tone\n").unwrap();
    let good = pipeline.copy_in("COPY copied FROM STDIN", b"3\tthree\n").unwrap();
    let mut outcomes = pipeline.end().unwrap();
    assert_eq!(outcomes.take(refused).unwrap_err().sqlstate(), Some("22P02"));
    assert_eq!(outcomes.take(absent).unwrap_err().sqlstate(), Some("42P01"));
    assert_eq!(outcomes.take(good).unwrap().count(), 1);
}

#[test]
fn no_depth_and_no_size_blocks_both_ends() {
    let mut client = client();
    let large = "x".repeat(100_000);
    let mut pipeline = client.pipeline(OnError::Abort).unwrap();
    let mut operations = Vec::new();
    for _ in 0..300 {
        // Three hundred times 100 kB each way: more than all buffers on the path hold.
        operations.push(pipeline.execute("SELECT $1::text", &[&large]).unwrap());
    }
    let mut outcomes = pipeline.end().unwrap();
    for operation in operations {
        let rows = outcomes.take(operation).unwrap().rows.unwrap();
        assert_eq!(rows.rows().next().unwrap().get::<&str>(0).unwrap().len(), large.len());
    }
}

#[test]
fn large_requests_with_small_answers_are_not_waited_for() {
    let mut client = client();
    client.script("CREATE TEMP TABLE large (a text)").unwrap();
    let large = "x".repeat(700_000);
    let mut pipeline = client.pipeline(OnError::Abort).unwrap();
    for _ in 0..10 {
        // The server keeps these answers back until the end: nobody may wait for them before.
        pipeline.execute("INSERT INTO large VALUES ($1)", &[&large]).unwrap();
    }
    pipeline.end().unwrap().check().unwrap();
    let mut copy = client.copy_in("COPY large FROM STDIN").unwrap();
    let row = format!("{large}\n");
    for _ in 0..10 {
        copy.send(row.as_bytes()).unwrap();
    }
    assert_eq!(copy.finish().unwrap(), 10);
}

#[test]
fn rows_that_a_block_cannot_keep_are_thrown_away_and_it_says_so() {
    let mut config: Config = Server::shared().url().parse().unwrap();
    config.limits.bytes = 1 << 20;
    let mut client = Client::connect_with(config).unwrap();
    let mut pipeline = client.pipeline(OnError::Abort).unwrap();
    let large = pipeline.execute("SELECT repeat('x', 1000) FROM generate_series(1, 5000)", &[]).unwrap();
    let small = pipeline.execute("SELECT 1", &[]).unwrap();
    let mut outcomes = pipeline.end().unwrap();
    let error = outcomes.take(large).unwrap_err();
    assert!(matches!(error, Error::RowsTooLarge { limit: 0x10_0000 }), "{error}");
    assert_eq!(error.retry(), Retry::Ran);
    assert_eq!(outcomes.take(small).unwrap().count(), 1);
    let mut pipeline = client.pipeline(OnError::Abort).unwrap();
    let large = pipeline.execute("SELECT repeat('x', 1000) FROM generate_series(1, 5000)", &[]).unwrap();
    pipeline.execute("SELECT 1/0", &[]).unwrap();
    let error = pipeline.end().unwrap().take(large).unwrap_err();
    assert!(matches!(error, Error::Undone { .. }), "it ran, and was undone: {error}");
    let error = client.execute("SELECT $1::text", &[&"x".repeat(2 << 20)]).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }) && error.retry() == Retry::Safe, "{error}");
    assert_eq!(client.execute("SELECT 1", &[]).unwrap(), 1);
}

#[test]
fn a_call_that_takes_too_long_is_cancelled() {
    let mut client = client();
    client.set_timeout(Some(std::time::Duration::from_millis(50)));
    let error = client.execute("SELECT pg_sleep(60)", &[]).unwrap_err();
    assert_eq!(error.sqlstate(), Some("57014"), "{error}");
    client.set_timeout(None);
    assert_eq!(client.execute("SELECT 1", &[]).unwrap(), 1);
}

#[test]
fn notices_and_notifications_arrive() {
    let mut client = client();
    client.execute("DO $$ BEGIN RAISE NOTICE 'hear this'; END $$", &[]).unwrap();
    assert_eq!(client.take_notice().unwrap().message(), "hear this");
    client.execute("DO $$ BEGIN FOR i IN 1..3 LOOP RAISE NOTICE 'line %', i; END LOOP; END $$", &[]).unwrap();
    assert_eq!(client.lines().unwrap(), ["line 1", "line 2", "line 3"]);
    client.script("LISTEN news").unwrap();
    let mut other = self::client();
    other.execute("SELECT pg_notify('news', 'something')", &[]).unwrap();
    let heard = client.notification(std::time::Duration::from_secs(10)).unwrap().expect("it was sent");
    assert_eq!((heard.channel.as_str(), heard.payload.as_str()), ("news", "something"));
    assert!(client.notification(std::time::Duration::from_millis(1)).unwrap().is_none());
}
