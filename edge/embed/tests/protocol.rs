//! The protocol by raw messages: what is answered to what, and where the session stands after it.

mod support;

use std::time::Duration;

use onetrip_embed::{Login, User};
use onetrip_wire::pg::{NegotiateProtocolVersion, ProtocolVersion};
use support::{Client, Fixture, rows_of, tags};

#[test]
fn a_start_tells_settings_and_key_and_refuses_encryption_once_each() {
    let fixture = Fixture::new();
    let mut client = Client::open(&fixture);
    client.send_raw(&[0, 0, 0, 8, 4, 210, 22, 47]); // SSLRequest
    let mut answer = [0];
    std::io::Read::read_exact(&mut client.stream, &mut answer).unwrap();
    assert_eq!(answer, *b"N");
    client.start(ProtocolVersion { major: 3, minor: 0 }, &[("user", "ann")]);
    let greeting = client.until_ready();
    assert_eq!(tags(&greeting), "RSSSSSSSSSSSSSKZ");
    assert!(greeting.iter().any(|message| message.text() == "TimeZone\0UTC"));
}

#[test]
fn newer_protocols_are_negotiated_down_and_unknown_options_named() {
    let fixture = Fixture::new();
    let mut client = Client::open(&fixture);
    client.start(ProtocolVersion { major: 3, minor: 9999 }, &[("user", "ann"), ("_pq_.test", "1")]);
    let first = client.message();
    assert_eq!(first.tag, b'v');
    let negotiated = NegotiateProtocolVersion::decode(&first.body).unwrap();
    assert_eq!(negotiated.version, ProtocolVersion { major: 3, minor: 0 });
    assert_eq!(negotiated.unknown_options, [b"_pq_.test"]);
    assert_eq!(client.until_ready().last().unwrap().tag, b'Z');
}

#[test]
fn a_failed_transaction_takes_nothing_but_its_end() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.run("CREATE TABLE t (id int PRIMARY KEY)");
    let status = |messages: Vec<support::Message>| messages.last().unwrap().text();
    assert_eq!(status(client.query("BEGIN")), "T");
    assert_eq!(status(client.query("INSERT INTO t VALUES (1)")), "T");
    assert_eq!(client.error("INSERT INTO t VALUES (1)"), "23505");
    assert_eq!(client.error("SELECT 1"), "25P02");
    assert_eq!(status(client.query("SELECT 1")), "E");
    let commit = client.query("COMMIT");
    assert_eq!((commit[0].text(), commit[1].text()), ("ROLLBACK".to_owned(), "I".to_owned()));
    assert_eq!(client.rows("SELECT count(*) FROM t"), ["0"]);
}

#[test]
fn savepoints_revive_a_failed_transaction() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.run("CREATE TABLE t (id int PRIMARY KEY); BEGIN; INSERT INTO t VALUES (1); SAVEPOINT s");
    assert_eq!(client.error("INSERT INTO t VALUES (1)"), "23505");
    client.run("ROLLBACK TO s; INSERT INTO t VALUES (2); RELEASE s; COMMIT");
    assert_eq!(client.rows("SELECT id FROM t ORDER BY id"), ["1", "2"]);
    assert_eq!(client.error("SAVEPOINT s"), "25P01");
}

#[test]
fn statements_of_one_query_share_a_transaction() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.run("CREATE TABLE t (id int PRIMARY KEY)");
    assert_eq!(client.error("INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)"), "23505");
    assert_eq!(client.rows("SELECT count(*) FROM t"), ["0"]);
    assert_eq!(tags(&client.query("")), "IZ");
    assert_eq!(tags(&client.query(" ; ; ")), "IZ");
}

#[test]
fn a_pipeline_up_to_sync_is_one_transaction_and_an_error_skips_to_sync() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.run("CREATE TABLE t (id int PRIMARY KEY)");
    client.parse("ins", "INSERT INTO t VALUES ($1)", &[]).sync();
    for value in ["1", "1", "2"] {
        client.bind("", "ins", &[Some(value)], 0).execute("", 0);
    }
    client.framed(b'Q', b"SELECT 1\0"); // passed over too, and owes no ReadyForQuery
    let messages = client.sync();
    assert_eq!(tags(&messages), "2C2EZ");
    assert_eq!(messages.last().unwrap().text(), "I");
    assert_eq!(client.rows("SELECT count(*) FROM t"), ["0"]);
}

#[test]
fn portals_give_rows_in_portions_until_they_are_done() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.parse("", "SELECT * FROM generate_series(1, 5) AS n", &[]).bind("p", "", &[], 0);
    client.execute("p", 2).execute("p", 3).execute("p", 2);
    let messages = client.sync();
    assert_eq!(tags(&messages), "12DDsDDDsCZ");
    assert_eq!(messages[messages.len() - 2].text(), "SELECT 0");
    assert_eq!(rows_of(&messages), ["1", "2", "3", "4", "5"]);
    client.execute("p", 0); // it ended with its transaction
    assert_eq!(client.sync()[0].sqlstate(), "34000");
}

#[test]
fn one_statement_serves_several_portals_at_once() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.parse("s", "SELECT n + $1::int FROM generate_series(1, 3) AS n", &[]);
    client.bind("a", "s", &[Some("10")], 0).bind("b", "s", &[Some("20")], 0);
    client.execute("a", 1).execute("b", 1).execute("a", 1).execute("b", 0).execute("a", 0);
    assert_eq!(rows_of(&client.sync()), ["11", "21", "12", "22", "23", "13"]);
}

#[test]
fn statements_are_described_before_the_first_row_with_parameters_typed_by_use() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.run("CREATE TABLE t (id int PRIMARY KEY, name text, price numeric(8,2), at timestamptz, ok bool)");
    client.parse("", "SELECT id, price * 2 AS twice, upper(name), count(*) OVER () FROM t WHERE id = $1 AND ok = $2 AND at < $3 AND name = ANY($4) LIMIT $5", &[]);
    let messages = client.describe(b'S', "").sync();
    assert_eq!(tags(&messages), "1tTZ");
    assert_eq!(messages[1].parameter_types(), [23, 16, 1184, 1009, 20]);
    let columns = messages[2].columns();
    let expected = [("id", 23), ("twice", 1700), ("upper", 25), ("count", 20)];
    assert_eq!(columns, expected.map(|(name, oid)| (name.to_owned(), oid)));
    client.parse("", "INSERT INTO t (id, name, price) VALUES ($1, $2, $3)", &[]);
    let messages = client.describe(b'S', "").sync();
    assert_eq!(tags(&messages), "1tnZ");
    assert_eq!(messages[1].parameter_types(), [23, 25, 1700]);
}

#[test]
fn binary_parameters_come_back_in_binary() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    let numeric: &[u8] = &[0, 2, 0, 0, 0, 0, 0, 1, 0, 12, 0x13, 0x88]; // 12.5: no trailing zeros are stored
    let cases: [(u32, &[u8]); 14] = [
        (16, &[1]),
        (21, &[0xff, 0xfe]),
        (23, &[0, 0, 1, 0]),
        (20, &[0x80, 0, 0, 0, 0, 0, 0, 0]),
        (25, "blåbær".as_bytes()),
        (1043, b"abc"),
        (700, &[0x3d, 0xcc, 0xcc, 0xcd]),
        (701, &[0x3f, 0xb9, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9a]),
        (1700, numeric),
        (1082, &[0, 0, 0x22, 0x40]),
        (1114, &[0, 2, 0x9a, 0xbc, 0xde, 0xf0, 0x12, 0x34]),
        (1184, &[0, 2, 0x9a, 0xbc, 0xde, 0xf0, 0x12, 0x34]),
        (17, &[0, 1, 0xff]),
        (1007, &[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 7]),
    ];
    for (oid, bytes) in cases {
        client.parse("", "SELECT $1", &[oid]).bind_bytes("", "", (1, &[Some(bytes)]), 1).describe(b'P', "");
        let messages = client.execute("", 0).sync();
        assert_eq!(tags(&messages), "12TDCZ", "type {oid}: {messages:?}");
        assert_eq!(messages[2].columns()[0].1, oid);
        let row = onetrip_wire::pg::DataRow::decode(&messages[3].body).unwrap();
        assert_eq!(row.columns.iter().next().unwrap().unwrap(), bytes, "type {oid}");
    }
}

#[test]
fn wrong_messages_are_errors_and_the_session_goes_on() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.bind("", "nix", &[], 0);
    assert_eq!(client.sync()[0].sqlstate(), "26000");
    client.parse("", "SELECT $1::int", &[]).bind("", "", &[], 0);
    assert_eq!(client.sync()[1].sqlstate(), "08P01");
    client.parse("", "SELECT $1::int", &[]).bind("", "", &[Some("five")], 0);
    assert_eq!(client.sync()[1].sqlstate(), "22P02");
    client.parse("a", "SELECT 1", &[]).parse("a", "SELECT 1", &[]);
    assert_eq!(client.sync()[1].sqlstate(), "42P05");
    client.parse("", "SELECT 1; SELECT 2", &[]);
    assert_eq!(client.sync()[0].sqlstate(), "42601");
    client.framed(b'B', &[1, 2, 3]);
    assert_eq!(client.sync()[0].sqlstate(), "08P01");
    client.close(b'S', "a").close(b'P', "nothing");
    assert_eq!(tags(&client.sync()), "33Z");
    client.framed(b'F', &[0; 8]).send();
    assert_eq!(tags(&client.until_ready()), "EZ");
    assert_eq!(client.rows("SELECT 1"), ["1"]);
    client.framed(b'?', &[]).send();
    assert_eq!(client.message().sqlstate(), "08P01");
    assert!(client.try_message().is_none());
}

#[test]
fn a_changed_result_type_is_told_and_not_served() {
    let fixture = Fixture::new();
    let (mut client, mut other) = (fixture.client(), fixture.client());
    client.run("CREATE TABLE t (a int)");
    client.parse("s", "SELECT * FROM t", &[]).bind("", "s", &[], 0).execute("", 0);
    assert_eq!(tags(&client.sync()), "12CZ");
    other.run("DROP TABLE t; CREATE TABLE t (a text); INSERT INTO t VALUES ('x')");
    client.bind("", "s", &[], 0).execute("", 0);
    assert_eq!(client.sync()[0].sqlstate(), "0A000");
    assert_eq!(client.rows("SELECT * FROM t"), ["x"]);
}

#[test]
fn a_cancel_request_ends_what_runs_and_nothing_later() {
    let fixture = Fixture::new();
    let mut client = Client::open(&fixture);
    client.start(ProtocolVersion { major: 3, minor: 0 }, &[("user", "ann")]);
    let greeting = client.until_ready();
    let key = greeting.iter().find(|message| message.tag == b'K').unwrap().body.clone();
    let cancel = [&[0, 0, 0, 16, 4, 210, 22, 46], key.as_slice()].concat();
    Client::open(&fixture).send_raw(&cancel); // nothing runs: it hits nothing
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(client.rows("SELECT 1"), ["1"]);
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let canceller = std::thread::spawn({
        let address = fixture.server.local_addr();
        move || {
            std::thread::sleep(Duration::from_millis(200));
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            std::io::Write::write_all(&mut stream, &cancel).unwrap();
        }
    });
    assert_eq!(client.error(endless), "57014");
    canceller.join().unwrap();
    assert_eq!(client.rows("SELECT 1"), ["1"]);
}

/// Statements that run for long: in SQLite's virtual machine, in a sort, in a function of this server's.
const LONG: [&str; 3] = [
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    "SELECT * FROM generate_series(1, 1000000000) AS n ORDER BY n % 1000, n",
    "SELECT pg_sleep(600)",
];

#[test]
fn a_cancel_request_ends_whatever_takes_long_in_both_protocols() {
    let fixture = Fixture::new();
    let mut client = Client::open(&fixture);
    client.start(ProtocolVersion { major: 3, minor: 0 }, &[("user", "ann")]);
    let greeting = client.until_ready();
    let key = greeting.iter().find(|message| message.tag == b'K').unwrap().body.clone();
    let cancel = [&[0, 0, 0, 16, 4, 210, 22, 46], key.as_slice()].concat();
    for text in LONG {
        for is_simple in [true, false] {
            let request = client.encoded(|client| {
                if is_simple {
                    client.framed(b'Q', format!("{text}\0").as_bytes());
                } else {
                    client.parse("", text, &[]).bind("", "", &[], 0).execute("", 0).bare(b'S');
                }
            });
            client.send_raw(&request);
            std::thread::sleep(Duration::from_millis(100));
            Client::open(&fixture).send_raw(&cancel);
            let messages = client.until_ready();
            let error = messages.iter().find(|message| message.tag == b'E').unwrap();
            assert_eq!(error.sqlstate(), "57014", "{text}");
            assert!(error.text().contains("due to user request"), "{text}");
            assert_eq!(client.rows("SELECT 1"), ["1"]);
        }
    }
}

#[test]
fn a_statement_ends_at_its_timeout_and_its_transaction_fails() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.run("SET statement_timeout = 50");
    for text in LONG {
        client.run("BEGIN");
        let messages = client.query(text);
        let error = messages.iter().find(|message| message.tag == b'E').unwrap();
        assert_eq!(error.sqlstate(), "57014", "{text}");
        assert!(error.text().contains("due to statement timeout"), "{text}");
        assert_eq!(client.error("SELECT 1"), "25P02");
        client.run("ROLLBACK");
    }
    assert_eq!(client.rows("SHOW statement_timeout"), ["50ms"]);
    assert_eq!(client.error("SET statement_timeout = 'soon'"), "22023");
    client.run("BEGIN; SET LOCAL statement_timeout = 0; SELECT pg_sleep(0.1); COMMIT");
    assert_eq!(client.error("SELECT pg_sleep(600)"), "57014");
    client.run("RESET statement_timeout; SELECT pg_sleep(0.1)");
}

#[test]
fn a_server_stops_although_a_client_sleeps() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.framed(b'Q', b"SELECT pg_sleep(600)\0").send();
    std::thread::sleep(Duration::from_millis(100));
    fixture.server.stop().unwrap();
}

#[test]
fn copy_takes_text_and_reports_the_line_of_an_error() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.run("CREATE TABLE t (id int PRIMARY KEY, name text)");
    client.framed(b'Q', b"COPY t FROM STDIN\0").framed(b'd', b"1\tone\n2\tt").framed(b'd', b"wo\n3\t\\N\n");
    client.bare(b'c').send();
    let messages = client.until_ready();
    assert_eq!(tags(&messages), "GCZ");
    assert_eq!(messages[1].text(), "COPY 3");
    assert_eq!(client.rows("SELECT name FROM t ORDER BY id"), ["one", "two", "NULL"]);
    client.framed(b'Q', b"COPY t FROM STDIN\0").framed(b'd', b"4\tfour\nx\tfive\n").bare(b'c').send();
    let messages = client.until_ready();
    assert_eq!(tags(&messages), "GEZ");
    assert_eq!(messages[1].sqlstate(), "22P02");
    assert_eq!(client.rows("SELECT count(*) FROM t"), ["3"]);
}

#[test]
fn scram_lets_in_who_knows_the_password() {
    let fixture = Fixture::with(|options| {
        options.login = Login::Scram(vec![User { name: "ann".to_owned(), password: "secret".to_owned() }]);
    });
    let mut client = Client::open(&fixture);
    client.start(ProtocolVersion { major: 3, minor: 0 }, &[("user", "ann")]);
    let offer = client.message();
    assert_eq!(offer.text(), "\0\0\0\nSCRAM-SHA-256");
    client.framed(b'p', b"SCRAM-SHA-256\0\0\0\0\x0cn,,n=,r=abcd").send();
    let first = client.message();
    assert!(first.text().contains("r=abcd"), "{first:?}");
    let nonce = first.text().split("r=").nth(1).unwrap().split(',').next().unwrap().to_owned();
    let forged = format!("c=biws,r={nonce},p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    client.framed(b'p', forged.as_bytes()).send();
    assert_eq!(client.message().sqlstate(), "28P01");
    assert!(client.try_message().is_none());
}

#[test]
fn one_session_too_many_is_told_so() {
    let fixture = Fixture::with(|options| options.sessions_max = 1);
    let _first = fixture.client();
    let mut second = Client::open(&fixture);
    second.start(ProtocolVersion { major: 3, minor: 0 }, &[("user", "ann")]);
    let messages = second.until_ready();
    assert_eq!(messages.last().unwrap().sqlstate(), "53300");
}

#[test]
fn a_server_that_stops_closes_its_sessions_and_counts_them() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.run("CREATE TABLE t (a int)");
    let stats = fixture.server.stop().unwrap();
    assert_eq!((stats.connections, stats.sessions, stats.messages), (1, 1, 1));
    assert!(client.try_message().is_none());
}

#[test]
fn a_copy_passes_over_sync_and_flush_and_ends_at_a_message_that_does_not_belong_there() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.run("CREATE TABLE t (a int)");
    client.parse("", "COPY t FROM STDIN", &[]).bind("", "", &[], 0).execute("", 0).bare(b'S').bare(b'H');
    let messages = client.framed(b'd', b"1\n2\n").bare(b'c').sync();
    assert_eq!(tags(&messages), "12GCZ");
    client.parse("", "COPY t FROM STDIN", &[]).bind("", "", &[], 0).execute("", 0);
    let messages = client.framed(b'd', b"3\n").bind("", "", &[], 0).execute("", 0).sync();
    assert_eq!(tags(&messages), "12GEZ");
    assert_eq!(messages[3].sqlstate(), "08P01");
    assert_eq!(client.rows("SELECT a FROM t"), ["1", "2"]);
}
