//! Watched MySQL conversations: what is booked of each, by bytes made by hand.

mod bounds;
mod findings;
mod secured;
mod simulation;
mod stage;

use onetrip_ledger::{Moment, NoSession, Obstacle, Outcome, Steps, TransactionStatus, UnitKind};
use onetrip_session::{MysqlConfig, MysqlSession, Refused, Unseen, Verdict};
use onetrip_wire::mysql::dialogue::Side;

use stage::{
    BIGINT, COMPRESS, CONNECT_ATTRS, END, NO_SUCH_TABLE, OK, PLAIN, Stage, TEXT, TLS, binary_row, column,
    column_of, execute, fetch, greeting, login, of_statement, prepare, prepared, query, result, row, slices,
};

#[test]
fn the_greeting_and_the_login_are_a_trip_each() {
    let stage = Stage::serving();
    assert!(stage.session.is_serving() && stage.session.is_at_rest());
    let sent: Vec<u64> = stage.sent.iter().map(|(_, bytes)| bytes.len() as u64).collect();
    let books = stage.books();
    assert_eq!((books.summary.trips.connect, books.summary.trips.work()), (2, 0));
    assert_eq!((books.summary.connections, books.summary.sessions), (1, 1));
    let bytes = books.exchanges.iter().map(|exchange| (exchange.bytes_sent, exchange.bytes_received));
    assert_eq!(bytes.collect::<Vec<_>>(), [(0, sent[0]), (sent[1], sent[2])]);
    assert_eq!(
        books.parameters[..2],
        [("protocol", "mysql"), ("user", "me")].map(|(a, b)| (a.into(), b.into()))
    );
    assert_eq!((books.summary.undecoded, books.summary.unanswered, books.summary.unasked_replies), (0, 0, 0));
}

#[test]
fn each_question_within_a_login_is_one_more() {
    let mut stage = Stage::greeted(PLAIN);
    stage.client(&[(1, &login(PLAIN, &[]))]).server(&[(2, b"\xfecaching_sha2_password\0challenge\0")]);
    stage.client(&[(3, b"answer")]).server(&[(4, b"\x01\x04")]);
    stage.client(&[(5, b"\x02")]).server(&[(6, b"\x01key")]);
    stage.client(&[(7, b"secret")]).server(&[(8, OK)]);
    let total: u64 = stage.sent.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    let books = stage.books();
    assert_eq!((books.summary.trips.connect, books.summary.trips.work()), (5, 0));
    assert_eq!(books.summary.bytes_sent + books.summary.bytes_received, total);
    // What the server remembers it grants without a further question.
    let mut stage = Stage::greeted(PLAIN);
    stage.client(&[(1, &login(PLAIN, &[]))]).server(&[(2, b"\x01\x03"), (3, OK)]);
    assert_eq!(stage.books().summary.trips.connect, 2);
}

#[test]
fn of_what_a_client_says_of_itself_its_librarys_words_are_kept() {
    let capabilities = PLAIN | CONNECT_ATTRS;
    let mut stage = Stage::greeted(capabilities);
    let attributes = [("_client_name", "pymysql"), ("token", "s3cret"), ("program_name", "nightly")];
    stage.client(&[(1, &login(capabilities, &attributes))]).server(&[(2, OK)]);
    stage.turn(&query("SELECT 1"), &[OK]);
    let books = stage.books();
    let kept: Vec<&str> = books.parameters.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(kept, ["protocol", "user", "database", "_client_name", "program_name"]);
    assert_eq!(
        books.summary.scopes.iter().map(|scope| scope.label.as_str()).collect::<Vec<_>>(),
        ["nightly"]
    );
}

#[test]
fn a_text_query_is_a_trip_with_its_template_values_rows_and_bytes() {
    let mut stage = Stage::serving();
    let rows = [row(&["7", "Ann"]), row(&["8", "Bob"])];
    let answer = result(&[("id", BIGINT), ("name", TEXT)], &rows, b"\xfe\0\0\x03\0");
    stage.turn(&query("SELECT id, name FROM `emp` WHERE dept = 'a\\'b' AND n > 5 # why"), &slices(&answer));
    let bytes: Vec<u64> = stage.sent.iter().rev().take(2).map(|(_, bytes)| bytes.len() as u64).collect();
    let (first, second) = (stage.hasher.hash(b"a'b"), stage.hasher.hash(b"5"));
    let books = stage.books();
    assert_eq!(books.work(), [(UnitKind::Query, true)]);
    let exchange = books.last();
    assert_eq!(books.text(exchange), "SELECT id, name FROM `emp` WHERE dept = $1 AND n > $2");
    assert_eq!(exchange.parameters, [first, second]);
    assert_eq!((exchange.bytes_sent, exchange.bytes_received), (bytes[1], bytes[0]));
    let statement = exchange.statements[0];
    assert_eq!((statement.rows, statement.steps, statement.outcome), (2, Steps::EXECUTE, Outcome::Done));
    assert_eq!((statement.key_columns, statement.results), (2, 4));
    assert_eq!(exchange.status, TransactionStatus::Active);
    assert_eq!(exchange.obstacle, Some(Obstacle::WatchedOnly));
}

#[test]
fn a_prepared_statement_has_the_template_and_values_of_its_text() {
    let mut stage = Stage::serving();
    let one = |end: &[u8]| result(&[("name", TEXT)], &[row(&["Ann"])], end);
    stage.turn(&query("SELECT name FROM emp WHERE a = 1 AND id = 7"), &slices(&one(END)));
    let described = [prepared(3, 1, 1), column("?", TEXT), END.to_vec(), column("name", TEXT), END.to_vec()];
    stage.turn(&prepare("SELECT name FROM emp WHERE a = 1 AND id = ?"), &slices(&described));
    let mut answer = result(&[("name", TEXT)], &[], END);
    answer.insert(3, b"\0\0\x03Ann".to_vec());
    stage.turn(&execute(3, 0, &[7]), &slices(&answer));
    // Nothing answers it: its bytes go with the next command.
    stage.client(&[(0, &of_statement(0x19, 3))]);
    stage.turn(b"\x0e", &[OK]);
    let books = stage.books();
    let work = [UnitKind::Query, UnitKind::Group, UnitKind::Group, UnitKind::Query].map(|kind| (kind, true));
    assert_eq!(books.work(), work);
    let [.., text, preparing, running, ping] = &books.exchanges[..] else { panic!("all are there") };
    assert_eq!((books.text(text), books.text(preparing)), (books.text(running), books.text(running)));
    assert_eq!(text.parameters, running.parameters);
    assert_eq!(preparing.statements[0].steps, Steps::PREPARE | Steps::DESCRIBE);
    assert_eq!((running.statements[0].steps, running.statements[0].rows), (Steps::BIND | Steps::EXECUTE, 1));
    assert_eq!((ping.bytes_sent, books.text(ping)), (9 + 5, "/* COM_PING */"));
}

#[test]
fn values_are_kept_as_texts_where_that_is_asked_for() {
    let mut stage = Stage::keeping_values();
    stage.turn(&query("SELECT 'Ann', 7"), &[OK]);
    let described =
        [prepared(1, 0, 3), column("?", TEXT), column("?", TEXT), column("?", TEXT), END.to_vec()];
    stage.turn(&prepare("INSERT INTO t VALUES (?, ?, ?, 'fixed')"), &slices(&described));
    // A number, NULL and a double, which has no text here.
    let types = [BIGINT, 0, TEXT, 0, 5, 0];
    let run =
        [&b"\x17\x01\0\0\0\0\x01\0\0\0\x02\x01"[..], &types, &7i64.to_le_bytes(), &0.5f64.to_le_bytes()];
    stage.turn(&run.concat(), &[b"\0\x01\0\x02\0\0\0"]);
    let books = stage.books();
    let kept = |exchange: &onetrip_ledger::Exchange| -> Vec<String> {
        let texts = exchange.parameter_texts.iter();
        texts.map(|text| String::from_utf8_lossy(text).into_owned()).collect()
    };
    let [.., text, _, ran] = &books.exchanges[..] else { panic!("all are there") };
    assert_eq!(kept(text), ["Ann", "7"]);
    assert_eq!(kept(ran), ["7", "NULL", "(binary)", "(in the text)"]);
    assert_eq!((ran.parameters[0], ran.parameters[1]), (text.parameters[1], 0));
}

#[test]
fn a_cursor_is_opened_by_one_trip_and_read_by_one_for_each_piece() {
    let mut stage = Stage::serving();
    stage.turn(
        &prepare("SELECT id FROM emp"),
        &slices(&[prepared(1, 1, 0), column("id", BIGINT), END.to_vec()]),
    );
    stage.turn(&execute(1, 1, &[]), &slices(&[vec![1], column("id", BIGINT), b"\xfe\0\0\x42\0".to_vec()]));
    let piece = |from: i64, end: &[u8]| [binary_row(&[from]), binary_row(&[from + 1]), end.to_vec()];
    stage.turn(&fetch(1, 2), &slices(&piece(1, b"\xfe\0\0\x42\0")));
    stage.turn(&fetch(1, 2), &slices(&piece(3, b"\xfe\0\0\x82\0")));
    let books = stage.books();
    assert_eq!(books.summary.trips.work(), 4);
    let [.., opened, first, second] = &books.exchanges[..] else { panic!("all are there") };
    let of = |exchange: &onetrip_ledger::Exchange| {
        let statement = exchange.statements[0];
        (statement.rows, statement.row_limit, statement.suspended, statement.results)
    };
    assert_eq!([opened, first, second].map(of), [(0, 0, false, 0), (2, 2, true, 2), (2, 2, false, 2)]);
    assert_eq!(first.statements[0].template, opened.statements[0].template);
}

#[test]
fn several_statements_of_one_text_are_one_trip_with_all_their_rows() {
    let mut stage = Stage::serving();
    let more = b"\xfe\0\0\x0a\0";
    let mut answer = result(&[("1", BIGINT)], &[row(&["1"])], more);
    answer.push(b"\0\x03\0\x0a\0\0\0".to_vec()); // three rows changed, and more follows
    answer.extend(result(&[("2", BIGINT)], &[row(&["2"]), row(&["3"])], END));
    stage.turn(&query("SELECT 1; UPDATE t SET a = 2; SELECT 3"), &slices(&answer));
    let books = stage.books();
    assert_eq!(books.work(), [(UnitKind::Query, true)]);
    assert_eq!(books.last().statements[0].rows, 1 + 3 + 2);
    assert_eq!(books.text(books.last()), "SELECT $1; UPDATE t SET a = $2; SELECT $3");
}

#[test]
fn a_file_that_the_server_asks_for_is_a_trip_of_its_own() {
    for pieces in [&[&b"1,a\n"[..], b"2,b\n"][..], &[]] {
        let mut stage = Stage::serving();
        stage.client(&[(0, &query("LOAD DATA LOCAL INFILE 'x.csv' INTO TABLE t"))]);
        stage.server(&[(1, b"\xfbx.csv")]);
        let mut packets: Vec<(u8, &[u8])> = (2..).zip(pieces.iter().copied()).collect();
        packets.push((2 + pieces.len() as u8, b""));
        stage.client(&packets).server(&[(3 + pieces.len() as u8, b"\0\x02\0\x02\0\0\0")]);
        let total: u64 = stage.sent.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        let books = stage.books();
        assert_eq!(books.work(), [(UnitKind::Query, true), (UnitKind::CopyIn, true)]);
        let [.., asking, data] = &books.exchanges[..] else { panic!("both are there") };
        assert_eq!((asking.statements[0].rows, data.statements[0].rows), (0, 2));
        assert_eq!(asking.statements[0].template, data.statements[0].template);
        assert_eq!(data.bytes_sent, pieces.iter().map(|piece| piece.len() as u64 + 4).sum::<u64>() + 4);
        assert_eq!(books.summary.bytes_sent + books.summary.bytes_received, total);
    }
}

#[test]
fn an_error_has_its_state_and_the_transaction_stays_as_it_was() {
    let mut stage = Stage::serving();
    stage.turn(&query("START TRANSACTION"), &[b"\0\0\0\x03\0\0\0"]);
    stage.turn(&query("SELECT * FROM x"), &[NO_SUCH_TABLE]);
    stage.turn(&prepare("SELECT * FROM x"), &[NO_SUCH_TABLE]);
    let books = stage.books();
    let [.., failed, not_prepared] = &books.exchanges[..] else { panic!("both are there") };
    for exchange in [failed, not_prepared] {
        assert_eq!(exchange.outcome, Outcome::Failed(*b"42S02"));
        assert_eq!(exchange.statements[0].outcome, Outcome::Failed(*b"42S02"));
        assert_eq!(exchange.status, TransactionStatus::Active);
    }
    assert_eq!(books.summary.errors_by_state, [("42S02".to_owned(), 2)]);
}

#[test]
fn commands_that_are_sent_without_waiting_share_a_trip() {
    let mut stage = Stage::serving();
    stage.client(&[(0, &query("DO 1")), (0, &query("DO 2")), (0, &query("DO 3"))]);
    stage.server(&[(1, OK), (1, OK), (1, OK)]);
    stage.turn(&query("DO 4"), &[OK]);
    let books = stage.books();
    assert_eq!(books.work().iter().map(|unit| unit.1).collect::<Vec<_>>(), [true, false, false, true]);
    assert_eq!(books.summary.trips.work(), 2);
}

#[test]
fn a_statement_that_was_just_prepared_is_known_before_its_answer() {
    let mut stage = Stage::serving();
    stage.client(&[(0, &prepare("SELECT ?")), (0, &execute(u32::MAX, 0, &[7]))]);
    stage.server(&[
        (1, &prepared(9, 1, 1)),
        (2, &column("?", TEXT)),
        (3, END),
        (4, &column("?", TEXT)),
        (5, END),
    ]);
    let mut answer = result(&[("?", BIGINT)], &[binary_row(&[7])], END);
    answer.truncate(5);
    let answer: Vec<(u8, &[u8])> = (1..).zip(answer.iter().map(Vec::as_slice)).collect();
    stage.server(&answer);
    let seven = stage.hasher.hash(b"7");
    let books = stage.books();
    assert_eq!(books.work(), [(UnitKind::Group, true), (UnitKind::Group, false)]);
    assert_eq!((books.text(books.last()), books.last().parameters.as_slice()), ("SELECT $1", &[seven][..]));
}

#[test]
fn a_value_that_was_sent_ahead_is_not_compared() {
    let mut stage = Stage::serving();
    stage.turn(
        &prepare("INSERT INTO t VALUES (?, ?)"),
        &slices(&[prepared(1, 0, 2), column("?", TEXT), column("?", TEXT), END.to_vec()]),
    );
    let long = [&b"\x18\x01\0\0\0\x00\0"[..], &[b'x'; 1000]].concat();
    stage.client(&[(0, &long)]);
    let run = [&b"\x17\x01\0\0\0\0\x01\0\0\0\0\x01"[..], &[252, 0, BIGINT, 0], &7i64.to_le_bytes()].concat();
    stage.turn(&run, &[b"\0\x01\0\x02\0\0\0"]);
    let seven = stage.hasher.hash(b"7");
    let books = stage.books();
    assert_eq!(books.summary.trips.work(), 2);
    assert_eq!(books.last().parameters, [0, seven]);
    assert_eq!(books.last().bytes_sent, (long.len() + 4 + run.len() + 4) as u64);
    assert_eq!(books.summary.undecoded, 0);
}

#[test]
fn what_follows_a_compressed_login_is_understood_and_its_bytes_are_those_on_the_wire() {
    let capabilities = PLAIN | COMPRESS;
    let mut stage = Stage::greeted(capabilities);
    stage.client(&[(1, &login(capabilities, &[]))]).server(&[(2, OK)]).pack();
    let text = format!("SELECT '{}'", "a".repeat(5000));
    let rows: Vec<_> = (0..100).map(|number| row(&[&number.to_string()])).collect();
    stage.turn(&query(&text), &slices(&result(&[("a", BIGINT)], &rows, END)));
    stage.turn(b"\x0e", &[OK]);
    let books = stage.books();
    assert_eq!(books.summary.trips.work(), 2);
    let [.., asked, _] = &books.exchanges[..] else { panic!("both are there") };
    assert_eq!(asked.statements[0].rows, 100);
    // Seven bytes of header, and 5,000 times the same letter.
    assert!((20..200).contains(&asked.bytes_sent), "{} bytes of {}", asked.bytes_sent, text.len());
    assert!(asked.bytes_received < 1_000, "{} bytes of 100 rows", asked.bytes_received);
    assert_eq!(books.lost_bytes, 0);
}

#[test]
fn of_a_client_that_speaks_tls_with_the_server_it_is_said_that_nothing_is_seen() {
    let mut stage = Stage::greeted(PLAIN | TLS);
    let request = [&0x8_8a01u32.to_le_bytes()[..], &[0; 28]].concat();
    stage.client(&[(1, &request)]);
    assert_eq!(stage.session.take_unseen(), Some(Unseen::Tls));
    assert_eq!(stage.session.take_unseen(), None);
    stage.bytes(Side::Client, b"\x16\x03\x01 hello").bytes(Side::Server, b"\x16\x03\x03 hello");
    assert!(stage.session.is_serving() && !stage.session.is_full() && !stage.session.is_at_rest());
    let books = stage.books();
    assert_eq!((books.summary.connections, books.summary.sessions, books.summary.trips.total), (1, 0, 1));
    assert_eq!(books.lost_bytes, 36 + 9 + 9);
    assert!(books.summary.gaps.has_loss(), "no budget is taken for kept");
    assert_eq!(books.summary.no_session(), Some(NoSession::Unreadable));
}

#[test]
fn tls_is_taken_out_of_the_greeting_where_that_is_asked_for_and_nothing_else_is() {
    let hasher = onetrip_ledger::ValueHasher::new();
    let framed = |payload: &[u8]| {
        let mut bytes = Vec::new();
        onetrip_wire::mysql::packet(&mut bytes, 0, |out| out.extend_from_slice(payload));
        bytes
    };
    let config = || MysqlConfig { hides_tls: true, ..stage::config(&hasher) };
    let (with, without) = (framed(&greeting(PLAIN | TLS)), framed(&greeting(PLAIN)));
    let mut session = MysqlSession::new(config());
    session.connected(Moment(0));
    for cut in [0, 3, 20, with.len() - 1] {
        assert_eq!(session.handle_server(Moment(1), &with[..cut]), Verdict::Wait);
    }
    // What follows waits for its turn.
    let both = [&with[..], b"more"].concat();
    assert_eq!(session.handle_server(Moment(1), &both), Verdict::Replace(with.len()));
    assert_eq!(std::mem::take(session.to_client()), without);
    session.see_client(Moment(2), &[&b"\x3b\0\0\x01"[..], &login(PLAIN, &[])].concat());
    assert_eq!(session.handle_server(Moment(3), &framed(OK)), Verdict::Forward(OK.len() + 4));
    // A server that says something else says it as it is.
    for said in [&b"\xff\x10\x04Too many connections"[..], b"nonsense"] {
        let mut session = MysqlSession::new(config());
        session.connected(Moment(0));
        assert_eq!(session.handle_server(Moment(1), &framed(said)), Verdict::Forward(said.len() + 4));
    }
    let mut session = MysqlSession::new(config());
    session.connected(Moment(0));
    assert_eq!(session.handle_server(Moment(1), b"220 mail"), Verdict::Forward(8));
}

#[test]
fn what_is_not_understood_ends_the_watching_and_is_counted_as_lost() {
    let mut stage = Stage::serving();
    stage.turn(&query("DO 1"), &[OK]);
    stage.server(&[(0, OK)]); // nobody asked
    let said = stage.session.take_unseen().expect("it is said").to_string();
    assert!(said.contains("nothing was asked"), "{said}");
    stage.turn(&query("DO 2"), &[OK]);
    let books = stage.books();
    assert_eq!((books.summary.trips.work(), books.lost_bytes), (1, 11 + 9 + 11));
}

#[test]
fn a_server_that_does_not_let_the_client_in_is_quoted() {
    let mut stage = Stage::connected();
    stage.server(&[(0, b"\xff\x10\x04Too many connections")]);
    let books = stage.books();
    assert_eq!(books.summary.refusals[0].message, "Too many connections");
    assert_eq!((books.summary.connections, books.summary.sessions, books.summary.trips.connect), (1, 0, 1));
    assert_eq!(books.summary.refusals[0].sqlstate, "HY000");
    let mut stage = Stage::greeted(PLAIN);
    stage.client(&[(1, &login(PLAIN, &[]))]);
    stage.server(&[(2, b"\xff\x15\x04#28000Access denied for user 'me'@'localhost'")]);
    let books = stage.books();
    let refusal = &books.summary.refusals[0];
    assert_eq!((refusal.sqlstate.as_str(), refusal.sessions), ("28000", 1));
    assert_eq!((books.summary.connections, books.summary.sessions), (1, 0));
}

#[test]
fn a_client_that_cannot_be_led_on_is_told_why_before_a_greeting_only() {
    let hasher = onetrip_ledger::ValueHasher::new();
    let mut session = MysqlSession::new(stage::config(&hasher));
    session.refuse(Refused::Other, "onetrip cannot reach the database");
    assert_eq!(session.to_client()[..7], *b"\x24\0\0\0\xff\x51\x04");
    assert!(session.to_client().ends_with(b"onetrip cannot reach the database"));
    let mut full = MysqlSession::new(stage::config(&hasher));
    full.refuse(Refused::Full, "too many");
    assert_eq!(full.to_client()[4..7], *b"\xff\x10\x04", "ER_CON_COUNT_ERROR");
    let mut stage = Stage::serving();
    stage.session.refuse(Refused::Stopping, "the gateway is shutting down");
    assert!(stage.session.to_client().is_empty(), "it would be taken for an answer");
}

#[test]
fn a_reset_forgets_prepared_statements_and_both_modes_hold() {
    let mut stage = Stage::serving();
    stage.turn(&prepare("SELECT 1"), &slices(&[prepared(1, 1, 0), column("1", BIGINT), END.to_vec()]));
    // NO_BACKSLASH_ESCAPES and ANSI_QUOTES from here on.
    stage.turn(b"\x1f", &[b"\0\0\0\x02\x82\0\0"]);
    stage.turn(&execute(1, 0, &[]), &[b"\xff\xdb\x04#HY000Unknown prepared statement"]);
    stage.turn(&query(r#"SELECT "a" FROM t WHERE b = 'x\'"#), &[OK]);
    let books = stage.books();
    let [.., reset, unknown, quoted] = &books.exchanges[..] else { panic!("all are there") };
    assert_eq!((books.text(reset), books.text(unknown)), ("RESET ALL /* COM_RESET_CONNECTION */", "(none)"));
    assert_eq!(books.text(quoted), r#"SELECT "a" FROM t WHERE b = $1"#);
}

#[test]
fn what_gives_the_mode_back_at_its_end_leaves_it_as_it_was() {
    const ANSI_QUOTES: &[u8] = b"\0\0\0\x02\x80\0\0";
    let mut stage = Stage::serving();
    for text in ["CALL p()", "SET STATEMENT sql_mode='ANSI_QUOTES' FOR SELECT 1"] {
        stage.turn(&query(text), &[ANSI_QUOTES]);
        // MariaDB goes on to say so.
        stage.turn(&query(r#"SELECT "secret" FROM t"#), &[ANSI_QUOTES]);
        stage.turn(&query(r#"SELECT "secret" FROM t"#), &[OK]);
    }
    stage.turn(&query("SET sql_mode = 'ANSI_QUOTES'"), &[ANSI_QUOTES]);
    stage.turn(&query(r#"SELECT "name" FROM t"#), &[OK]);
    let books = stage.books();
    let with_texts = books.exchanges.iter().filter(|exchange| !exchange.statements.is_empty());
    let texts = with_texts.map(|exchange| books.text(exchange)).filter(|text| text.ends_with("FROM t"));
    assert_eq!(
        texts.collect::<Vec<_>>(),
        [&["SELECT $1 FROM t"; 4][..], &[r#"SELECT "name" FROM t"#]].concat()
    );
}

#[test]
fn the_books_do_not_depend_on_the_pieces_in_which_bytes_come() {
    let mut stage = Stage::serving();
    let rows: Vec<_> = (0..20).map(|number| row(&[&number.to_string(), "some text"])).collect();
    let answer = result(&[("id", BIGINT), ("name", TEXT)], &rows, END);
    stage.turn(&query("SELECT id, name FROM t WHERE a = 'some value' AND b = 17"), &slices(&answer));
    stage.turn(
        &prepare("SELECT ?"),
        &slices(&[prepared(1, 1, 1), column("?", TEXT), END.to_vec(), column("?", TEXT), END.to_vec()]),
    );
    stage.turn(&execute(1, 0, &[7]), &slices(&result(&[("?", BIGINT)], &[binary_row(&[7])], END)));
    let (sent, hasher) = (stage.sent.clone(), stage.hasher.clone());
    let whole = stage.books();
    let key = |exchange: &onetrip_ledger::Exchange| {
        let statements: Vec<_> =
            exchange.statements.iter().map(|one| (one.template, one.rows, one.results)).collect();
        let bytes = (exchange.bytes_sent, exchange.bytes_received);
        (
            exchange.kind,
            exchange.starts_trip,
            bytes,
            statements,
            exchange.parameters.clone(),
            exchange.results.clone(),
        )
    };
    for cut in [1, 3, 7, 50] {
        let mut again = Stage::connected();
        again.hasher = hasher.clone();
        again.session = MysqlSession::new(stage::config(&hasher));
        again.session.connected(Moment(0));
        for (side, bytes) in &sent {
            bytes.chunks(cut).for_each(|piece| {
                again.bytes(*side, piece);
            });
        }
        let again = again.books();
        let keys = |books: &stage::Books| books.exchanges.iter().map(key).collect::<Vec<_>>();
        assert_eq!(keys(&again), keys(&whole), "in pieces of {cut}");
    }
}

#[test]
fn a_greeting_that_comes_alone_is_a_client_that_left() {
    let mut stage = Stage::connected();
    stage.server(&[(0, &greeting(PLAIN))]);
    let books = stage.books();
    assert_eq!((books.summary.trips.total, books.summary.connections), (1, 1));
    assert_eq!(books.summary.no_session(), Some(NoSession::Left { clients: 1 }));
}

/// A server calls an expression by its text, and that may hold values.
#[test]
fn an_expressions_name_is_not_kept() {
    let mut stage = Stage::serving();
    let columns = [column("id", BIGINT), column_of("", "id+'s3cret'", BIGINT)];
    let answer =
        [vec![2], columns[0].clone(), columns[1].clone(), END.to_vec(), row(&["1", "2"]), END.to_vec()];
    stage.turn(&query("SELECT id, id+'s3cret' FROM t"), &slices(&answer));
    let books = stage.books();
    assert_eq!(books.columns, ["id", "(expression)"]);
    assert_eq!(books.last().statements[0].results, 2);
}

/// In these character sets a byte that looks like a backslash may be the second half of a character.
#[test]
fn a_quote_behind_half_a_character_ends_its_string() {
    let mut stage = Stage::serving();
    stage.turn(&query("SET NAMES 'sjis'"), &[OK]);
    let ask = [&query("SELECT id FROM t WHERE name='")[..], b"\x95\x5c", b"' AND pin='s3cret'"].concat();
    stage.turn(&ask, &[OK]);
    stage.turn(b"\x1f", &[OK]);
    stage.turn(&query("SELECT id FROM t WHERE name='\\' AND pin='"), &[OK]);
    let books = stage.books();
    let texts: Vec<&str> = books.exchanges[2..].iter().map(|exchange| books.text(exchange)).collect();
    assert_eq!(
        texts,
        [
            "SET NAMES $1",
            "SELECT id FROM t WHERE name=$1 AND pin=$2",
            "RESET ALL /* COM_RESET_CONNECTION */",
            "SELECT id FROM t WHERE name=$1"
        ]
    );
}
