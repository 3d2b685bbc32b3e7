//! What one client may take from the others: time of the processor, places before login, memory, and files.

mod support;

use std::time::Duration;

use onetrip_wire::pg::PROTOCOL_3_0;
use support::{Client, Fixture, tags};

/// Single calls, which SQLite does not look behind. The first of them once took nine seconds and 1.4 GiB.
const LONG_CALLS: [&str; 8] = [
    "SELECT array_length(string_to_array(repeat('x,', 15000000), ','), 1)",
    "SELECT array_to_string(string_to_array(repeat('x,', 15000000), ','), '')",
    "SELECT count(*) FROM unnest(string_to_array(repeat('x,', 15000000), ','))",
    "SELECT 'y' = ANY(string_to_array(repeat('x,', 15000000), ','))",
    "SELECT length(translate(repeat('x', 60000000), repeat('y', 1000000), 'z'))",
    "SELECT ('{' || repeat('1,', 15000000) || '1}')::int[]",
    ENDLESS,
    // Many short ones: each row is looked at by itself.
    "SELECT count(*) FROM generate_series(1, 100000000) AS n WHERE repeat('x', 500 + n % 2) ~ '(x{1,10}){1,10}y'",
];

/// Eight thousand million steps.
const ENDLESS: &str = "SELECT repeat('x', 4000000) ILIKE '%' || repeat('x', 2000) || 'y'";

#[test]
fn functions_that_read_long_values_heed_timeout_cancel_and_stop() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    for call in LONG_CALLS {
        client.run("SET statement_timeout = '20ms'");
        assert_eq!(client.error(call), "57014", "{call}");
        client.run("SET statement_timeout = 0");
        assert_eq!(client.rows("SELECT 1"), ["1"]);
    }
    let (mut client, cancel) = fixture.client_with_key();
    client.framed(b'Q', format!("{ENDLESS}\0").as_bytes()).send();
    std::thread::sleep(Duration::from_millis(100));
    Client::open(&fixture).send_raw(&cancel);
    let messages = client.until_ready();
    let error = messages.iter().find(|message| message.tag == b'E');
    assert_eq!(error.map(support::Message::sqlstate).as_deref(), Some("57014"));

    client.framed(b'Q', format!("{ENDLESS}\0").as_bytes()).send();
    std::thread::sleep(Duration::from_millis(100));
    fixture.server.stop().unwrap();
    // It goes when the last session has closed the file.
    assert!(!fixture.directory.path().join("test.db-wal").exists());
}

#[test]
fn a_regular_expression_that_could_not_be_stopped_is_refused() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    let begun = std::time::Instant::now();
    for call in [
        "SELECT repeat('x', 4000000) ~ '(x{1,100}){1,100}y'",
        "SELECT repeat('x', 60000000) ~ 'xy'",
        "SELECT repeat('x', 4000000) !~* '(x{1,100}){1,100}y'",
    ] {
        assert_eq!(client.error(call), "2201B", "{call}");
    }
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    assert_eq!(client.rows("SELECT (repeat('x', 100000) || 'y') ~ 'xy$'"), ["t"]);
    assert_eq!(client.rows("SELECT 'ab' ~ '^(a|b){1,9}$' AND 'AB' ~* 'b' AND NOT 'ab' ~ '^b'"), ["t"]);
    assert_eq!(client.error("SELECT 'a' ~ '('"), "2201B");
}

#[test]
fn an_array_is_refused_before_it_takes_more_than_a_value_may() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    let before = peak_kib();
    assert_eq!(client.error("SELECT string_to_array(repeat('x,', 30000000), ',')"), "54000");
    // The text of 60 MB, once more as SQLite's value, and up to 64 MiB of the array in a buffer that doubles.
    assert!(peak_kib() - before < 400 << 10, "{} KiB", peak_kib() - before);
}

#[test]
fn parts_and_arrays_of_text_are_postgresqls() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    for (query, wanted) in [
        ("SELECT string_to_array('a,\"b\\,,c', ',')", "{a,\"\\\"b\\\\\",\"\",c}"),
        ("SELECT array_to_string(string_to_array('a,b,,c', ','), '-')", "a-b--c"),
        ("SELECT array_to_string('{1,NULL,3}'::int[], ',', '*')", "1,*,3"),
        ("SELECT cardinality(string_to_array('a,b', ','))", "2"),
        ("SELECT (string_to_array('a,b', ','))[2]", "b"),
        ("SELECT coalesce((string_to_array('a,b', ','))[3], 'none')", "none"),
        (
            "SELECT split_part('a,b,c', ',', 2) || split_part('a,b,c', ',', -1) || split_part('a,b,c', ',', 4)",
            "bc",
        ),
        (
            "SELECT split_part('abc', '', 1) || split_part('abc', '', -1) || split_part('abc', '', 2)",
            "abcabc",
        ),
        ("SELECT translate('12345', '1143', 'ax')", "a25"),
        ("SELECT 'a\\b' ILIKE 'A\\\\%' AND NOT 'ab' ILIKE '_'", "t"),
    ] {
        assert_eq!(client.rows(query), [wanted], "{query}");
    }
}

#[test]
fn clients_that_never_log_in_keep_nobody_out() {
    let fixture = Fixture::new();
    let mut silent: Vec<Client> = (0..150)
        .map(|_| {
            let mut client = Client::open(&fixture);
            client.send_raw(&[0]);
            client
        })
        .collect();
    let mut client = fixture.client();
    assert_eq!(client.rows("SELECT 1"), ["1"]);
    // The youngest still have their places.
    let last = silent.last_mut().unwrap();
    last.stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let read = std::io::Read::read(&mut last.stream, &mut [0]);
    assert!(read.is_err(), "{read:?}");
    assert_eq!(std::io::Read::read(&mut silent[0].stream, &mut [0]).unwrap_or(0), 0);
}

#[test]
fn sessions_take_no_places_of_logins() {
    let fixture = Fixture::with(|options| options.sessions_max = 3);
    let clients: Vec<_> = (0..3).map(|_| fixture.client()).collect();
    for _ in 0..40 {
        let mut client = Client::open(&fixture);
        client.start(PROTOCOL_3_0, &[("user", "ann")]);
        let messages = client.until_ready();
        assert_eq!(messages.last().unwrap().sqlstate(), "53300");
    }
    for mut client in clients {
        assert_eq!(client.rows("SELECT 1"), ["1"]);
    }
}

#[test]
fn a_login_has_one_deadline_however_it_is_cut_into_pieces() {
    let fixture = Fixture::with(|options| options.login_timeout = Duration::from_millis(500));
    let mut client = Client::open(&fixture);
    client.send_raw(&[0, 0, 1, 0, 0, 3, 0, 0]);
    client.stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut sent = 0;
    // A piece comes long before the deadline each time.
    let is_closed = (0..100).any(|_| {
        sent += 1;
        let is_refused = std::io::Write::write_all(&mut client.stream, b"x").is_err();
        is_refused || !matches!(&std::io::Read::read(&mut client.stream, &mut [0]),
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut))
    });
    assert!(is_closed, "{sent} pieces were taken");
    // A session has no such deadline.
    let mut client = fixture.client();
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(client.rows("SELECT 1"), ["1"]);
}

#[test]
fn prepared_statements_have_a_budget_of_bytes_and_the_session_outlives_it() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    let text = format!("SELECT '{}'", "x".repeat(1_000_000));
    let before = peak_kib();
    let refused = (0..150).find_map(|number| {
        let messages = client.parse(&format!("p{number}"), &text, &[]).sync();
        (tags(&messages) == "EZ").then(|| (number, messages[0].sqlstate()))
    });
    let (kept, sqlstate) = refused.expect("150 statements of 1 MB were kept");
    assert_eq!(sqlstate, "54000");
    assert!(kept >= 4, "{kept}");
    assert!(peak_kib() - before < 200 << 10, "{} KiB", peak_kib() - before);
    // What is closed makes room, by message and by SQL.
    client.close(b'S', "p0");
    assert_eq!(tags(&client.sync()), "3Z");
    assert_eq!(tags(&client.parse("again", &text, &[]).sync()), "1Z");
    client.run("DEALLOCATE again");
    assert_eq!(tags(&client.parse("again", &text, &[]).sync()), "1Z");
    assert_eq!(client.error(&format!("PREPARE q AS {text}")), "54000");
    client.run("DEALLOCATE ALL");
    client.run(&format!("PREPARE q AS {text}"));
    assert_eq!(client.rows("SELECT 1"), ["1"]);
}

#[test]
fn portals_have_a_budget_of_bytes_too() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.run("BEGIN");
    let value = "x".repeat(1_000_000);
    client.parse("s", "SELECT $1::text", &[]).sync();
    let refused = (0..200).find_map(|number| {
        let messages = client.bind(&format!("p{number}"), "s", &[Some(&value)], 0).sync();
        (tags(&messages) == "EZ").then(|| messages[0].sqlstate())
    });
    assert_eq!(refused.as_deref(), Some("54000"));
    client.run("ROLLBACK");
    assert_eq!(client.rows("SELECT 1"), ["1"]);
}

#[test]
fn what_sqlite_says_of_itself_and_its_files_is_out_of_reach() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.run("CREATE TABLE x (a text); CREATE TABLE sqlites (a int); INSERT INTO sqlites VALUES (7)");
    let path = fixture.directory.path().to_str().unwrap();
    for query in [
        "SELECT * FROM pragma_database_list",
        "SELECT * FROM \"PRAGMA_database_list\"",
        "SELECT * FROM main.pragma_database_list",
        "SELECT file FROM pragma_database_list()",
        "SELECT (SELECT file FROM pragma_database_list)",
        "SELECT 1 FROM x WHERE a IN (SELECT file FROM pragma_database_list)",
        "SELECT 1 WHERE 'a' IN pragma_database_list",
        "WITH q AS (SELECT * FROM pragma_database_list) SELECT * FROM q",
        "CREATE VIEW v AS SELECT * FROM pragma_database_list",
        "CREATE TABLE v AS SELECT * FROM pragma_database_list",
        "CREATE TEMP TABLE v AS SELECT file FROM pragma_database_list",
        "INSERT INTO x SELECT file FROM pragma_database_list",
        "UPDATE x SET a = p.file FROM pragma_database_list p",
        "DELETE FROM x USING pragma_database_list p WHERE a = p.file",
        "TABLE pragma_database_list",
        "COPY pragma_database_list TO STDOUT",
        "COPY (SELECT file FROM pragma_database_list) TO STDOUT",
        "EXPLAIN SELECT * FROM pragma_database_list",
        "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM pragma_database_list",
        "SELECT * FROM pragma_table_info('x')",
        "SELECT * FROM pragma_table_info",
        "SELECT * FROM pragma_temp_store_directory",
        "SELECT * FROM pragma_writable_schema(1)",
        "SELECT * FROM \"pragma_hard_heap_limit\"(1)",
        "SELECT * FROM sqlite_master",
        "SELECT * FROM temp.sqlite_schema",
        "SELECT * FROM dbstat",
        "UPDATE sqlite_master SET sql = 'x'",
        "VACUUM INTO 'copy.db'",
        "VACUUM main INTO 'copy.db'",
        "VACUUM \"main\" INTO 'copy.db'",
    ] {
        let messages = client.query(query);
        let is_refused = messages.iter().any(|message| message.tag == b'E');
        assert!(is_refused, "{query}: {messages:?}");
        assert!(messages.iter().all(|message| !message.text().contains(path)), "{query}");
    }
    assert_eq!(client.rows("SELECT a FROM sqlites"), ["7"]);
    assert_eq!(client.rows("SELECT relname FROM pg_class WHERE relname = 'x'"), ["x"]);
    let mut files: Vec<_> = std::fs::read_dir(path).unwrap().map(|file| file.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["test.db", "test.db-shm", "test.db-wal"]);
}

/// The most memory that this process has had, in KiB. Other tests of this file count too, so that bounds are wide.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}
