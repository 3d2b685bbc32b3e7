//! Sessions that no driver would send: errors in every place, COPY that ends badly, messages cut in two, servers that
//! die. Each is run direct, direct again and through the gateway, and the server's bytes are compared.

mod common;

use std::time::Duration;

use common::client::RawClient;
use common::messages::*;
use common::proxy::{Cancelling, Manner, Proxy};
use common::replay::{Script, Step, assert_faithful, assert_faithful_through, replay};
use common::server::{RunningGateway, Server, config, conninfo};
use common::transcript::{Message, SINGLE_BYTE, Transcript};
use onetrip_wire::pg::{ErrorResponse, backend};

/// Long enough for half a message to arrive alone.
const SHORT: Duration = Duration::from_millis(1);

/// Messages of one extended group, none of which fails.
fn good_group() -> Vec<Vec<u8>> {
    vec![
        parse("s", "SELECT v, 10 / $1::int FROM t WHERE id < 4"),
        describe_statement("s"),
        bind("p", "s", &[b"2"]),
        describe_portal("p"),
        execute("p", 2),
        execute("p", 0),
        close_portal("p"),
        close_statement("s"),
    ]
}

/// A message for the same place of the group that fails there, with a name.
fn failing(position: usize) -> Vec<(&'static str, Vec<u8>)> {
    match position {
        0 => {
            vec![("a syntax error", parse("s", "SELEKT")), ("a malformed Parse", message(b'P', b"s\0no end"))]
        }
        1 => vec![
            ("an unknown statement", describe_statement("nobody")),
            ("a bad kind", message(b'D', b"Zs\0")),
        ],
        2 => vec![
            ("a wrong number of parameters", bind("p", "s", &[])),
            ("a parameter of the wrong type", bind("p", "s", &[b"two"])),
            ("a malformed Bind", message(b'B', b"p\0s\0\0\x09")),
        ],
        3 => vec![("an unknown portal", describe_portal("nobody"))],
        4 => vec![("an unknown portal to run", execute("nobody", 0))],
        5 => vec![("a malformed Execute", message(b'E', b"p"))],
        6 => vec![("a malformed Close", message(b'C', b""))],
        _ => vec![("a Sync with a body", message(b'S', b"body"))],
    }
}

/// Errors at every position of an extended group, alone and in a transaction, with more work behind them.
fn groups_with_errors(dbname: &str) -> Vec<Script> {
    let mut scripts = Vec::new();
    for position in 0..good_group().len() {
        for (what, bad) in failing(position) {
            for begin in ["SELECT 'no transaction'", "BEGIN"] {
                let mut group = good_group();
                group[position] = bad.clone();
                let group = [group.concat(), query("SELECT 'skipped or not'"), sync()].concat();
                let name = format!("{what} at {position} after {begin}");
                let opened = Script::session(name, dbname).exchange(query(begin));
                let alone = opened.clone().send(group.clone()).send(sync());
                let piped = opened.send([group, run_unnamed("SELECT 3"), sync(), query("ROLLBACK")].concat());
                scripts.extend([alone.send(terminate()), piped.send(terminate())]);
            }
        }
    }
    let run_time = [
        parse("", "SELECT 10 / $1::int"),
        bind("", "", &[b"0"]),
        execute("", 0),
        run_unnamed("SELECT 1"),
        sync(),
    ];
    scripts.push(
        Script::session("an error while running", dbname).exchange(run_time.concat()).send(terminate()),
    );
    let mid_result = [
        parse("", "SELECT 10 / (3 - x) FROM generate_series(1, 5) x"),
        bind("", "", &[]),
        execute("", 0),
        sync(),
    ];
    scripts.push(Script::session("an error amid rows", dbname).exchange(mid_result.concat()));
    scripts
}

fn copies(dbname: &str) -> Vec<Script> {
    let session = |name: &str| Script::session(name, dbname);
    let rows = |from: u32| {
        (from..from + 3).map(|id| copy_data(format!("{id}\tnew\n").as_bytes())).collect::<Vec<_>>().concat()
    };
    let copy = "COPY t FROM STDIN";
    let by_query = |name: &str| session(name).send(query(copy)).awaits(backend::COPY_IN_RESPONSE, 1);
    let extended = [parse("", copy), bind("", "", &[]), execute("", 0)].concat();
    let bad_row = copy_data(b"no number\tx\n");
    vec![
        by_query("COPY that ends well")
            .exchange([rows(1000), copy_done()].concat())
            .exchange(query("SELECT 1")),
        by_query("COPY aborted by the client").exchange([rows(1100), copy_fail("enough")].concat()),
        by_query("COPY aborted by the server, data follows")
            .exchange([rows(1200), bad_row.clone(), rows(1210), rows(1220), copy_done()].concat())
            .exchange(query("SELECT 1")),
        by_query("COPY that the server ends before the client says so")
            .send(bad_row.clone())
            .awaits(backend::READY_FOR_QUERY, 2)
            .send([rows(1300), copy_done()].concat())
            .awaits(backend::READY_FOR_QUERY, 2)
            .send(query("SELECT 1"))
            .awaits(backend::READY_FOR_QUERY, 3),
        by_query("COPY with Flush and Sync among its data")
            .exchange([rows(1400), flush(), rows(1410), sync(), flush(), copy_done()].concat())
            .exchange(query("SELECT count(*) FROM t")),
        by_query("COPY interrupted by a query").send([rows(1500), query("SELECT 1")].concat()),
        by_query("COPY left in its middle").send(rows(1600)),
        by_query("COPY left amid a message").send(rows(1700)).send(copy_data(b"1750\tcut\n")[..9].to_vec()),
        session("COPY with its data sent ahead")
            .exchange([query(copy), rows(1800), copy_done()].concat())
            .exchange(query("SELECT count(*) FROM t")),
        session("COPY aborted ahead").exchange([query(copy), rows(1900), copy_fail("no")].concat()),
        session("COPY into nothing with its data sent ahead")
            .exchange([query("COPY nothing FROM STDIN"), rows(2000), copy_done()].concat())
            .exchange(query("SELECT 1")),
        session("extended COPY with everything sent ahead")
            .exchange([extended.clone(), rows(2100), copy_done(), sync()].concat())
            .exchange(query("SELECT count(*) FROM t")),
        session("extended COPY, waiting for the server")
            .send([extended.clone(), flush()].concat())
            .awaits(backend::COPY_IN_RESPONSE, 1)
            .exchange([rows(2200), copy_done(), sync()].concat()),
        session("extended COPY with a Sync too early")
            .send([extended.clone(), sync()].concat())
            .awaits(backend::COPY_IN_RESPONSE, 1)
            .exchange([rows(2300), copy_done(), sync()].concat())
            .exchange(query("SELECT count(*) FROM t")),
        session("extended COPY aborted by the client")
            .send([extended.clone(), sync()].concat())
            .awaits(backend::COPY_IN_RESPONSE, 1)
            .exchange([rows(2400), copy_fail("enough"), sync()].concat()),
        session("extended COPY aborted by the server")
            .exchange([extended, rows(2500), bad_row, rows(2510), copy_done(), sync()].concat())
            .exchange(query("SELECT 1")),
        session("COPY out that fails")
            .exchange(query("COPY (SELECT 1 / (3 - x) FROM generate_series(1, 5) x) TO STDOUT")),
        session("COPY messages outside a COPY")
            .send([rows(1), copy_done(), copy_fail("what?"), query("SELECT 1")].concat())
            .awaits(backend::READY_FOR_QUERY, 2),
        session("two COPYs in one query")
            .send(query("COPY t FROM STDIN; COPY t FROM STDIN"))
            .awaits(backend::COPY_IN_RESPONSE, 1)
            .send([rows(2600), copy_done()].concat())
            .awaits(backend::COPY_IN_RESPONSE, 2)
            .exchange([rows(2700), copy_done()].concat()),
    ]
}

/// Everything else that the protocol has.
fn oddities(dbname: &str) -> Vec<Script> {
    let session = |name: &str| Script::session(name, dbname);
    let lower = 870; // pg_proc: lower(text)
    let division = 154; // int4div
    vec![
        session("function calls")
            .exchange(function_call(lower, &[b"ABC"]))
            .exchange(function_call(division, &[b"1", b"0"]))
            .exchange(function_call(999_999, &[]))
            .exchange([function_call(lower, &[b"X"]), query("SELECT 1")].concat())
            .exchange(query("BEGIN"))
            .exchange(function_call(division, &[b"1", b"0"]))
            .exchange(function_call(lower, &[b"ABC"])),
        session("function calls skipped after an error")
            .send([parse("", "SELEKT"), function_call(lower, &[b"X"]), sync(), function_call(lower, &[b"Y"])].concat())
            .awaits(backend::READY_FOR_QUERY, 3),
        session("notifications to itself").exchange(query("LISTEN a; NOTIFY a, 'one'; NOTIFY a, 'two'")),
        session("a notification while idle")
            .exchange(query("LISTEN a"))
            .then(Step::Elsewhere("NOTIFY a, 'from elsewhere'".into()))
            .awaits(backend::NOTIFICATION_RESPONSE, 1)
            .exchange(query("SELECT 1")),
        session("notices of all kinds").exchange(query(
            "SET client_min_messages = debug1; DO $$ BEGIN FOR i IN 1..50 LOOP RAISE NOTICE 'n %', i; END LOOP; \
             RAISE WARNING 'w'; RAISE INFO 'i'; RAISE DEBUG 'd'; END $$; ROLLBACK",
        )),
        session("parameters changed and changed back")
            .exchange(query("BEGIN; SET TimeZone = 'Asia/Tokyo'; SET DateStyle = 'German'"))
            .exchange(query("ROLLBACK"))
            .exchange([parse("", "SET application_name = 'x'"), bind("", "", &[]), execute("", 0), sync()].concat())
            .exchange(query("SET standard_conforming_strings = off; SELECT 'a\\'b'; RESET ALL")),
        session("empty queries").exchange(query("")).exchange(query(";;")).exchange([run_unnamed(""), sync()].concat()),
        session("an error amid several statements").exchange(query("SELECT 1; SELECT 1/0; SELECT 2")).exchange(query("")),
        session("a query without its closing zero").send(message(b'Q', b"SELECT 1")),
        session("two portals in turn")
            .exchange(query("BEGIN"))
            .exchange([
                parse("s", "SELECT id FROM t ORDER BY id"), bind("a", "s", &[]), bind("b", "s", &[]),
                execute("a", 2), execute("b", 1), execute("a", 3), execute("b", 0), execute("a", 0), sync(),
            ].concat())
            .exchange(query("FETCH 1 FROM a; CLOSE b; COMMIT")),
        session("flushes without a Sync")
            .send([parse("", "SELECT 1"), flush()].concat())
            .awaits(backend::PARSE_COMPLETE, 1)
            .send([describe_statement(""), flush()].concat())
            .awaits(backend::ROW_DESCRIPTION, 1)
            .send([bind("", "", &[]), flush()].concat())
            .awaits(backend::BIND_COMPLETE, 1)
            .send([execute("", 0), flush()].concat())
            .awaits(backend::COMMAND_COMPLETE, 1)
            .exchange(sync()),
        session("an error seen by a flush, then ignored messages")
            .send([parse("", "SELEKT"), flush()].concat())
            .awaits(backend::ERROR_RESPONSE, 1)
            .send([bind("", "", &[]), flush(), execute("", 0), query("SELECT 1")].concat())
            .exchange(sync())
            .exchange(query("SELECT 2")),
        session("Syncs alone").exchange([sync(), sync(), sync()].concat()).awaits(backend::READY_FOR_QUERY, 4),
        session("DISCARD ALL in a pipeline").exchange([
            parse("s", "SELECT 1"), sync(), run_unnamed("DISCARD ALL"), sync(), bind("", "s", &[]), execute("", 0), sync(),
        ].concat()).awaits(backend::READY_FOR_QUERY, 4),
        session("prepared by SQL, run by the protocol")
            .exchange(query("PREPARE p AS SELECT $1::int + 1"))
            .exchange([bind("", "p", &[b"4"]), describe_portal(""), execute("", 0), sync()].concat())
            .exchange(query("DEALLOCATE ALL"))
            .exchange([describe_statement("p"), sync()].concat()),
        session("two-phase commit").exchange(query("BEGIN")).exchange(query("PREPARE TRANSACTION 'x'")).exchange(query("ROLLBACK PREPARED 'x'")),
        session("a cached plan whose result changes")
            .exchange(query("CREATE TABLE changing (a int)"))
            .exchange([parse("s", "SELECT * FROM changing"), sync()].concat())
            .exchange(query("ALTER TABLE changing ADD b int"))
            .exchange([bind("", "s", &[]), execute("", 0), sync()].concat()),
        session("an unknown message type").send(message(b'y', b"what")),
        session("a message of the server's").send(message(b'Z', b"I")),
        session("bytes behind Terminate").send([query("SELECT 1"), terminate(), query("SELECT 2")].concat()),
        session("Terminate inside a transaction").exchange(query("BEGIN; LOCK TABLE t")).send(terminate()),
        session("a statement that times out").exchange(query("SET statement_timeout = 20")).exchange(query("SELECT pg_sleep(5)")),
        session("a session that is idle too long").exchange(query("SET idle_session_timeout = 20")).awaits(backend::ERROR_RESPONSE, 1),
        session("a transaction that is idle too long")
            .exchange(query("SET idle_in_transaction_session_timeout = 20"))
            .exchange(query("BEGIN"))
            .awaits(backend::ERROR_RESPONSE, 1),
        session("a session that ends itself").send(query("SELECT 1; SELECT pg_terminate_backend(pg_backend_pid()); SELECT 2")),
        session("a session that ends itself inside a pipeline").send([
            run_unnamed("SELECT pg_terminate_backend(pg_backend_pid())"), sync(), run_unnamed("SELECT 2"), sync(),
        ].concat()),
        session("a session ended from elsewhere while idle")
            .exchange(query("SET application_name = 'victim'"))
            .then(Step::Elsewhere(TERMINATE_VICTIM.into()))
            .awaits(backend::ERROR_RESPONSE, 1)
            .send(query("SELECT 1")),
        session("a session ended from elsewhere at work")
            .exchange(query("SET application_name = 'victim'"))
            .send(query("SELECT 1; SELECT pg_sleep(10)"))
            .then(Step::Pause(Duration::from_millis(50)))
            .then(Step::Elsewhere(TERMINATE_VICTIM.into())),
        session("a session ended from elsewhere amid COPY")
            .exchange(query("SET application_name = 'victim'"))
            .send(query("COPY t FROM STDIN"))
            .awaits(backend::COPY_IN_RESPONSE, 1)
            .send(copy_data(b"7000\tx\n"))
            .then(Step::Pause(Duration::from_millis(50)))
            .then(Step::Elsewhere(TERMINATE_VICTIM.into()))
            .awaits(backend::ERROR_RESPONSE, 1),
    ]
}

const TERMINATE_VICTIM: &str =
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'victim'";

/// First packets, good and bad, that the server answers.
fn openings(dbname: &str) -> Vec<Script> {
    let user = ("user", "onetrip");
    let with = |name: &str, parameters: &[(&str, &str)]| Script::new(name).send(startup_with(parameters));
    let long = "x".repeat(10_004 - startup_with(&[user, ("options", "")]).len());
    let version = |minor: u8| {
        let mut packet = startup(dbname);
        packet[7] = minor;
        packet
    };
    vec![
        with("no user", &[("database", dbname)]),
        with("an unknown user", &[("user", "nobody"), ("database", dbname)]),
        with("an unknown database", &[user, ("database", "nothing")]),
        with("no parameters", &[]),
        with("an unknown parameter", &[user, ("database", dbname), ("no_such_parameter", "1")]),
        with("a bad value", &[user, ("database", dbname), ("client_encoding", "KLINGON")]),
        with("the longest packet", &[user, ("options", &long)]),
        with(
            "options",
            &[
                user,
                ("database", dbname),
                ("options", "-c search_path=x -c geqo=off"),
                ("application_name", "a"),
            ],
        )
        .awaits(backend::READY_FOR_QUERY, 1)
        .exchange(query("SHOW search_path; SHOW geqo; SHOW application_name")),
        with("a replication session", &[user, ("database", dbname), ("replication", "database")])
            .awaits(backend::READY_FOR_QUERY, 1)
            .exchange(query("SHOW wal_level"))
            .exchange(query("IDENTIFY_SYSTEM")),
        Script::new("SSLRequest")
            .send(ssl_request())
            .awaits(SINGLE_BYTE, 1)
            .send(startup(dbname))
            .awaits(b'Z', 1),
        Script::new("protocol 3.2").send(version(2)).awaits(b'Z', 1).exchange(query("SELECT 1")),
        Script::new("protocol 3.255").send(version(255)).awaits(b'Z', 1),
        with("protocol extensions", &[user, ("database", dbname), ("_pq_.one", "1"), ("_pq_.two", "2")])
            .awaits(b'Z', 1),
        Script::new("queries sent ahead").send(
            [startup(dbname), query("SELECT 1"), run_unnamed("SELECT 2"), sync(), terminate()].concat(),
        ),
        Script::new("nothing at all"),
    ]
}

/// Every message of a session cut at every byte, and nothing after it.
fn half_messages(dbname: &str) -> Vec<Script> {
    let mut scripts = Vec::new();
    let opening = startup(dbname);
    for cut in (1..opening.len()).step_by(5) {
        scripts.push(Script::new(format!("a startup packet cut at {cut}")).send(&opening[..cut]));
    }
    for whole in [
        query("SELECT 1"),
        parse("s", "SELECT 1"),
        bind("", "s", &[b"1"]),
        execute("", 0),
        sync(),
        terminate(),
    ] {
        for cut in 1..whole.len() {
            let name = format!("{} cut at {cut}", char::from(whole[0]));
            scripts
                .push(Script::session(name, dbname).send([&query("SELECT 0")[..], &whole[..cut]].concat()));
        }
    }
    scripts
}

#[test]
fn errors_at_every_position_of_an_extended_group_are_the_same_through_the_gateway() {
    assert_faithful(Server::shared(), "gen_groups", &groups_with_errors("gen_groups"));
}

#[test]
fn copies_that_end_well_or_badly_are_the_same_through_the_gateway() {
    assert_faithful(Server::shared(), "gen_copies", &copies("gen_copies"));
}

#[test]
fn the_rest_of_the_protocol_is_the_same_through_the_gateway() {
    assert_faithful(Server::shared(), "gen_oddities", &oddities("gen_oddities"));
}

#[test]
fn the_rest_of_the_protocol_is_the_same_with_postgresql_18() {
    let server = Server::with_acts_template("18");
    let scripts = [oddities("gen_oddities"), copies("gen_oddities")].concat();
    assert_faithful(&server, "gen_oddities", &scripts);
}

#[test]
fn first_packets_get_the_same_answers_through_the_gateway() {
    assert_faithful(Server::shared(), "gen_openings", &openings("gen_openings"));
}

#[test]
fn gssapi_encryption_is_declined_and_the_session_begins() {
    // Directly, a server built with GSSAPI says yes and wants a ticket; the gateway has none to show.
    let server = Server::shared();
    let gateway = server.gateway();
    let script = Script::new("GSSENCRequest, SSLRequest")
        .send(gssenc_request())
        .awaits(SINGLE_BYTE, 1)
        .send(ssl_request())
        .awaits(SINGLE_BYTE, 2)
        .send(startup("postgres"))
        .exchange(query("SELECT 1"))
        .send(terminate());
    let seen = replay(&script, &gateway.endpoint(), server, "postgres");
    assert!(seen.with_tag(SINGLE_BYTE).all(|answer| answer.body == b"N"));
    assert!(seen.tags().ends_with("KZTDCZ"), "{}", seen.tags());
}

#[test]
fn messages_cut_short_end_a_session_as_they_do_directly() {
    assert_faithful(Server::shared(), "gen_halves", &half_messages("gen_halves"));
}

/// A session with most kinds of messages, nothing of which waits for anything.
fn rich_session(dbname: &str) -> Vec<u8> {
    let group = [good_group().concat(), sync()].concat();
    let failed = [parse("", "SELEKT"), bind("", "", &[]), execute("", 0), sync()].concat();
    let copy = [query("COPY log (message) FROM STDIN"), copy_data(b"x\n"), copy_fail("no")].concat();
    [startup(dbname), query("SELECT 1"), group, failed, copy, function_call(870, &[b"A"]), terminate()]
        .concat()
}

#[test]
fn a_session_split_at_any_byte_gets_the_same_answers() {
    let server = Server::shared();
    let gateway = server.gateway();
    let bytes = rich_session("acts_split");
    server.fresh_database("acts_split");
    let whole = Script::new("whole").send(bytes.clone());
    let expected = replay(&whole, &server.direct(), server, "acts_split");
    assert_eq!(expected.count(backend::READY_FOR_QUERY), 6, "{:?}", expected.tags());
    for split in 1..bytes.len() {
        let (first, second) = bytes.split_at(split);
        let script = Script::new("split").send(first).then(Step::Pause(SHORT)).send(second);
        let got = replay(&script, &gateway.endpoint(), server, "acts_split");
        assert_eq!(expected.difference(&got), None, "split at {split}");
    }
}

#[test]
fn a_session_sent_byte_by_byte_gets_the_same_answers() {
    let bytes = rich_session("gen_bytewise");
    let script = Script::new("byte by byte").then(Step::SendBytewise(bytes));
    assert_faithful(Server::shared(), "gen_bytewise", &[script]);
}

#[test]
fn replies_that_arrive_in_pieces_reach_the_client_whole() {
    let server = Server::shared();
    for chunk in [1, 7] {
        let manner = Manner { cancelling: Cancelling::Delayed(Duration::ZERO), reply_chunk: Some(chunk) };
        let proxy = Proxy::start(server.direct(), manner);
        let upstream =
            conninfo(&format!("postgres://onetrip@127.0.0.1:{}/postgres?sslmode=disable", proxy.port));
        let gateway = RunningGateway::start(config(upstream));
        let scripts =
            [copies("gen_pieces"), vec![Script::new("rich").send(rich_session("gen_pieces"))]].concat();
        assert_faithful_through(vec![gateway], server, "gen_pieces", &scripts);
    }
}

#[test]
fn pipelines_of_a_thousand_units_get_the_same_answers() {
    let db = "gen_pipelines";
    let statement =
        |number: usize| if number == 500 { "SELECT 1/0".to_owned() } else { format!("SELECT {number}") };
    let queries: Vec<u8> = (0..1000).flat_map(|number| query(&statement(number))).collect();
    let groups: Vec<u8> =
        (0..1000).flat_map(|number| [run_unnamed(&statement(number)), sync()].concat()).collect();
    let one_group: Vec<u8> =
        (0..1000).flat_map(|number| run_unnamed(&statement(number))).chain(sync()).collect();
    let scripts = [
        Script::session("a thousand queries", db).send(queries).awaits(b'Z', 1001),
        Script::session("a thousand groups", db).send(groups).awaits(b'Z', 1001),
        Script::session("one group of a thousand", db).send(one_group).awaits(b'Z', 2),
    ];
    assert_faithful(Server::shared(), db, &scripts);
}

/// Much of everything, in both directions.
fn large_sessions(db: &str) -> Vec<Script> {
    let five_megabytes = vec![b'x'; 5 << 20];
    let length = [
        parse("", "SELECT length($1::text), md5($1::text)"),
        bind("", "", &[&five_megabytes]),
        execute("", 0),
        sync(),
    ];
    let text = format!("SELECT length('{}')", "y".repeat(5 << 20));
    let copied: Vec<u8> =
        (0..50).flat_map(|_| copy_data(&[&five_megabytes[..200_000], b"\n"].concat())).collect();
    vec![
        Script::session("20 MB in rows", db)
            .exchange(query("SELECT x, repeat('r', 1000) FROM generate_series(1, 20000) x")),
        Script::session("20 MB in one value", db).exchange(query("SELECT repeat('v', 20 * 1024 * 1024)")),
        Script::session("20 MB copied out", db)
            .exchange(query("COPY (SELECT repeat('c', 1000000) FROM generate_series(1, 20)) TO STDOUT")),
        Script::session("a parameter of 5 MB", db).exchange(length.concat()),
        Script::session("a statement of 5 MB", db).exchange(query(&text)),
        Script::session("10 MB copied in", db)
            .send(query("COPY log (message) FROM STDIN"))
            .awaits(backend::COPY_IN_RESPONSE, 1)
            .exchange([copied, copy_done()].concat())
            .exchange(query("SELECT count(*), sum(length(message)) FROM log")),
    ]
}

#[test]
fn large_results_and_parameters_pass_unchanged() {
    assert_faithful(Server::shared(), "gen_large", &large_sessions("gen_large"));
}

#[test]
fn nothing_changes_with_tls_on_the_way_to_the_database() {
    let server = Server::with_acts_template_and(&["--version", "15", "--ssl"]);
    let text = format!("postgres://onetrip@127.0.0.1:{}/postgres?sslmode=require", server.at.port);
    let gateway = RunningGateway::start(config(conninfo(&text)));
    let db = "gen_tls";
    let scripts = [copies(db), oddities(db), large_sessions(db)].concat();
    assert_faithful_through(vec![gateway], &server, db, &scripts);
}

#[test]
fn nothing_changes_while_the_gateway_settles_and_traces() {
    let server = Server::shared();
    let directory = tempfile::tempdir().expect("a directory");
    let mut config = config(server.upstream());
    config.settle = Duration::from_millis(2);
    config.trace = Some(directory.path().join("a.trace"));
    config.keep_values = true;
    let db = "gen_settle";
    let scripts = [copies(db), oddities(db)].concat();
    assert_faithful_through(vec![RunningGateway::start(config)], server, db, &scripts);
}

/// What a client sees of a session whose backend, and another's, is killed.
fn killed(server: &Server, through: &common::client::Endpoint) -> (Transcript, Transcript) {
    let bystander = RawClient::session(through, "postgres");
    let mut victim = RawClient::session(through, "postgres");
    victim.send(&query("SELECT 1; COPY (SELECT 1) TO PROGRAM 'kill -9 $PPID'; SELECT 2"));
    let seen = (victim.transcript(), bystander.transcript());
    let deadline = std::time::Instant::now() + common::client::PATIENCE;
    while RawClient::connect(&server.direct()).greeted("postgres").is_none() {
        assert!(std::time::Instant::now() < deadline, "the server does not recover");
    }
    seen
}

#[test]
fn a_backend_killed_by_the_system_looks_the_same_through_the_gateway() {
    // A server of its own: a killed backend takes all others down.
    let server = Server::start(&["--auth", "trust"]);
    let gateway = server.gateway();
    // A bystander that the kernel ends before it could write gets no warning, directly connected or not.
    let is_warned =
        |seen: &(Transcript, Transcript)| seen.1.with_tag(backend::NOTICE_RESPONSE).next().is_some();
    let warned = |through: &common::client::Endpoint| {
        let rounds = std::iter::repeat_with(|| killed(&server, through)).take(5);
        rounds.into_iter().find(is_warned).expect("PostgreSQL warns bystanders")
    };
    let (direct, through) = (warned(&server.direct()), warned(&gateway.endpoint()));
    assert_eq!(direct.0.difference(&through.0), None, "the victim");
    assert_eq!(direct.1.difference(&through.1), None, "the bystander");
    let warning = direct.1.with_tag(backend::NOTICE_RESPONSE).next().expect("PostgreSQL warns bystanders");
    assert_eq!(ErrorResponse::decode(&warning.body).expect("fields").sqlstate(), Some(*b"57P02"));
}

#[test]
fn a_changed_byte_is_found_by_the_comparison() {
    let server = Server::shared();
    let script = Script::session("any", "postgres").exchange(query("SELECT 1, now()"));
    let one = replay(&script, &server.direct(), server, "postgres");
    let two = replay(&script, &server.direct(), server, "postgres");
    assert_eq!(one.difference(&two), None);
    for position in 0..two.messages.len() {
        let mut changed = two.clone();
        let Message { tag, body } = &mut changed.messages[position];
        if *tag == backend::BACKEND_KEY_DATA {
            continue;
        }
        // The first value's last byte in a row, the last byte elsewhere.
        let at = if *tag == backend::DATA_ROW { 6 } else { body.len() - 1 };
        body[at] ^= 1;
        assert!(one.difference(&changed).is_some(), "message {position}: {:?}", changed.messages[position]);
    }
    let mut shorter = two.clone();
    shorter.messages.pop();
    assert!(one.difference(&shorter).is_some());
    let mut longer = two;
    longer.push(b"Z");
    assert!(one.difference(&longer).is_some());
}
