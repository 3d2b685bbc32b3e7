//! Counts of a client whose packets are made by hand: exact, on both servers.

use onetrip_mysqlserver::Kind;

use crate::raw::RawClient;
use crate::{KINDS, Watching, alone, open_server};

/// A prepared statement is run with a number, or with none; a cursor is asked for by the flag 1.
fn execute(statement: u32, flags: u8, number: Option<i64>) -> Vec<u8> {
    let mut body = vec![0x17];
    body.extend_from_slice(&statement.to_le_bytes());
    body.push(flags);
    body.extend_from_slice(&1u32.to_le_bytes());
    if let Some(number) = number {
        body.extend_from_slice(&[0, 1, 8, 0]);
        body.extend_from_slice(&number.to_le_bytes());
    }
    body
}

fn fetch(statement: u32, rows: u32) -> Vec<u8> {
    [&b"\x1c"[..], &statement.to_le_bytes(), &rows.to_le_bytes()].concat()
}

/// What a conversation comes to: trips to connect, trips of work, statements, rows and failures.
fn counted(kind: Kind, talk: impl FnOnce(&mut RawClient)) -> (u64, u64, u64, u64, u64) {
    let gateway = Watching::start(open_server(kind).at.port);
    let mut client = RawClient::connect(gateway.port, &open_server(kind).at.database);
    talk(&mut client);
    client.send(0, b"\x01");
    while client.read() {}
    let quit = 5;
    let (sent, received) = (client.sent - quit, client.received);
    drop(client);
    let summary = gateway.summary();
    assert_eq!((summary.connections, summary.sessions), (1, 1));
    assert_eq!((summary.bytes_sent, summary.bytes_received), (sent, received), "bytes");
    assert_eq!((summary.undecoded, summary.unanswered, summary.unasked_replies), (0, 0, 0));
    assert!(!summary.gaps.has_loss());
    let rows = summary.templates.iter().map(|template| template.rows).sum();
    let failed = summary.errors_by_state.iter().map(|(_, count)| count).sum();
    (summary.trips.connect, summary.trips.work(), summary.statements, rows, failed)
}

#[test]
fn a_connection_is_two_trips_and_a_query_is_one() {
    for kind in KINDS {
        assert_eq!(counted(kind, |_| ()), (2, 0, 0, 0, 0));
        let talk = |client: &mut RawClient| {
            client.query("SELECT 1 UNION SELECT 2");
        };
        assert_eq!(counted(kind, talk), (2, 1, 1, 2, 0));
    }
}

#[test]
fn a_prepared_statement_is_one_trip_more() {
    for kind in KINDS {
        let talk = |client: &mut RawClient| {
            client.turn(b"\x16SELECT ? + 1");
            let statement = client.prepared;
            for number in 0..3 {
                client.turn(&execute(statement, 0, Some(number)));
            }
            client.send(0, &[&b"\x19"[..], &statement.to_le_bytes()].concat());
            client.turn(b"\x0e");
        };
        // Its preparation is no run, and the ping is one.
        assert_eq!(counted(kind, talk), (2, 1 + 3 + 1, 3 + 1, 3, 0));
    }
}

#[test]
fn a_cursor_is_a_trip_for_each_piece() {
    let _alone = alone();
    for kind in KINDS {
        let talk = |client: &mut RawClient| {
            client.query("DROP TABLE IF EXISTS pieces");
            client.query("CREATE TABLE pieces (id INT PRIMARY KEY)");
            client.query("INSERT INTO pieces VALUES (1), (2), (3), (4), (5)");
            client.turn(b"\x16SELECT id FROM pieces");
            let statement = client.prepared;
            let opened = client.turn(&execute(statement, 1, None));
            assert!(opened.opened_cursor);
            let rows: Vec<u64> = (0..3).map(|_| client.turn(&fetch(statement, 2)).rows).collect();
            assert_eq!(rows, [2, 2, 1]);
        };
        assert_eq!(counted(kind, talk), (2, 3 + 1 + 1 + 3, 3 + 1 + 3, 5 + 5, 0));
    }
}

#[test]
fn several_statements_of_one_text_are_one_trip() {
    for kind in KINDS {
        let talk = |client: &mut RawClient| {
            let reply = client.query("SELECT 1; SELECT 2 UNION SELECT 3; SET @a = 1");
            assert_eq!((reply.results, reply.rows), (3, 3));
        };
        assert_eq!(counted(kind, talk), (2, 1, 1, 3, 0));
    }
}

#[test]
fn commands_that_are_sent_at_once_share_a_trip() {
    for kind in KINDS {
        let talk = |client: &mut RawClient| {
            let mut all = Vec::new();
            for text in ["DO SLEEP(0.05)", "DO 2", "DO 3"] {
                onetrip_wire::mysql::packet(&mut all, 0, |out| {
                    out.push(3);
                    out.extend_from_slice(text.as_bytes());
                });
            }
            client.send_raw(&all);
            while client.replies.len() < 1 + 3 {
                assert!(client.read(), "the server goes on");
            }
        };
        let (connect, work, statements, ..) = counted(kind, talk);
        assert_eq!((connect, work, statements), (2, 1, 3));
    }
}

/// The server does not wait for the rest of a command that is too long for it.
#[test]
fn a_command_that_is_too_long_is_a_trip_that_fails() {
    let _alone = alone();
    for kind in KINDS {
        let mut direct = RawClient::connect(open_server(kind).at.port, &open_server(kind).at.database);
        direct.query("SET GLOBAL max_allowed_packet = 1048576");
        let gateway = Watching::start(open_server(kind).at.port);
        let mut client = RawClient::connect(gateway.port, &open_server(kind).at.database);
        client.query("DO 1");
        client.send_cut_off(&[&b"\x03SELECT '"[..], &[b'x'; 4_000_000], b"'"].concat(), 100_000);
        assert!(client.read(), "it is answered");
        client.ends();
        while client.read() {}
        direct.query("SET GLOBAL max_allowed_packet = 67108864");
        drop(client);
        let summary = gateway.summary();
        assert_eq!((summary.trips.work(), summary.unasked_replies), (2, 0), "{kind:?}");
        let texts: Vec<&str> = summary.templates.iter().map(|template| template.text.as_str()).collect();
        assert_eq!(texts, ["DO $1", "SELECT $1"], "{kind:?}");
        assert_eq!(summary.errors_by_state, [("08S01".to_owned(), 1)], "{kind:?}");
    }
}

#[test]
fn a_result_of_many_megabytes_is_one_trip() {
    for kind in KINDS {
        let talk = |client: &mut RawClient| {
            client.query("SET SESSION group_concat_max_len = 20000000");
            // One row of more than a packet takes, and many rows.
            assert_eq!(client.query("SELECT REPEAT('x', 17000000)").rows, 1);
            let ten = "SELECT 0 UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 \
                       UNION SELECT 7 UNION SELECT 8 UNION SELECT 9";
            let text =
                format!("SELECT REPEAT('y', 100) FROM ({ten}) a, ({ten}) b, ({ten}) c, ({ten}) d, ({ten}) e");
            assert_eq!(client.query(&text).rows, 100_000);
        };
        assert_eq!(counted(kind, talk), (2, 3, 3, 100_001, 0));
    }
}

#[test]
fn a_file_that_the_server_asks_for_is_one_trip_more() {
    let _alone = alone();
    for kind in KINDS {
        let talk = |client: &mut RawClient| {
            client.query("DROP TABLE IF EXISTS loaded");
            client.query("CREATE TABLE loaded (a INT)");
            client.query("LOAD DATA LOCAL INFILE 'any' INTO TABLE loaded");
            assert!(std::mem::take(&mut client.asked_for_file));
            client.send(2, b"1\n2\n");
            client.send(3, b"3\n");
            client.send(4, b"");
            assert_eq!(client.answer().affected_rows, 3);
        };
        // As of COPY, the rows come with the data, which is no run of its own.
        assert_eq!(counted(kind, talk), (2, 2 + 2, 3, 3, 0));
    }
}

#[test]
fn errors_are_counted_by_their_state() {
    for kind in KINDS {
        let talk = |client: &mut RawClient| {
            client.query("SELECT * FROM no_such_table");
            client.turn(b"\x16SELEC");
            client.query("SELECT 1");
        };
        assert_eq!(counted(kind, talk), (2, 3, 1, 1, 2));
    }
}
