//! Cancel requests through the gateway: they reach the statement they were meant for, and never a later one.

mod common;

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use common::client::{Endpoint, RawClient, errors};
use common::messages::*;
use common::proxy::{Cancelling, Manner, Proxy};
use common::server::{RunningGateway, Server, config, conninfo, repository};
use common::transcript::{Message, Transcript};
use common::wait_until;
use onetrip_gateway::{GatewayConfig, Remedies};
use onetrip_link::LinkSpec;
use onetrip_target::Conninfo;
use onetrip_wire::pg::{ErrorResponse, backend};

const DELAY: Duration = Duration::from_millis(50);

/// A gateway whose cancel requests pass a proxy.
fn gateway_behind(cancelling: Cancelling) -> (RunningGateway, Proxy) {
    let proxy = Proxy::start(Server::shared().direct(), Manner { cancelling, reply_chunk: None });
    (RunningGateway::start(config(upstream_of(&proxy))), proxy)
}

fn upstream_of(proxy: &Proxy) -> Conninfo {
    conninfo(&format!("postgres://onetrip@127.0.0.1:{}/postgres?sslmode=disable", proxy.port))
}

/// Sends a cancel request and waits until its connection is closed, as libpq does.
fn cancel(endpoint: &Endpoint, request: &[u8]) {
    let mut connection = RawClient::connect(endpoint);
    connection.send(request);
    assert_eq!(connection.transcript().tags(), "", "a cancel request has no answer");
}

fn was_cancelled(reply: &[Message]) -> bool {
    let code =
        |message: &Message| ErrorResponse::decode(&message.body).ok().and_then(|error| error.sqlstate());
    reply.iter().any(|message| message.tag == backend::ERROR_RESPONSE && code(message) == Some(*b"57014"))
}

/// One round: a cancel is on its way upstream when its statement ends by itself; the next one follows at once.
fn second_statement_behind_a_delayed_cancel(endpoint: &Endpoint, proxy: &Proxy, lock: u32) -> Vec<Message> {
    let mut holder = RawClient::session(&Server::shared().direct(), "postgres");
    holder.query(&format!("SELECT pg_advisory_lock({lock})"));
    let mut session = RawClient::session(endpoint, "postgres");
    let before = proxy.cancels();
    session.send(&query(&format!("SELECT pg_advisory_xact_lock({lock})")));
    thread::sleep(Duration::from_millis(5));
    let mut messenger = RawClient::connect(endpoint);
    messenger.send(&session.cancel_request());
    wait_until("the cancel's arrival at the proxy", || proxy.cancels() > before);
    holder.send(&query(&format!("SELECT pg_advisory_unlock({lock})")));
    session.await_count(backend::READY_FOR_QUERY, 2);
    session.query("SELECT pg_sleep(0.1)")
}

#[test]
fn a_cancel_delayed_on_its_way_never_hits_the_second_statement() {
    let (gateway, proxy) = gateway_behind(Cancelling::Delayed(DELAY));
    for round in 0..30 {
        let reply = second_statement_behind_a_delayed_cancel(&gateway.endpoint(), &proxy, 4000 + round);
        assert!(!was_cancelled(&reply), "round {round}: {reply:?}");
        assert!(reply.iter().any(|message| message.tag == backend::COMMAND_COMPLETE), "{reply:?}");
    }
}

#[test]
fn nothing_of_the_sessions_own_goes_while_a_cancel_is_on_its_way() {
    let server = Server::shared();
    server.psql("postgres", "CREATE TABLE waited_for AS SELECT generate_series(1, 9) id");
    // It is on its way for long enough on a busy machine, too.
    let manner = Manner { cancelling: Cancelling::Delayed(40 * DELAY), reply_chunk: None };
    let proxy = Proxy::start(server.direct(), manner);
    let link = Some(LinkSpec::with_rtt(Duration::from_millis(2)));
    let plain = config(upstream_of(&proxy));
    let gateway = RunningGateway::start(GatewayConfig { remedies: Remedies::exact(), link, ..plain });
    let mut session = RawClient::session(&gateway.endpoint(), "postgres");
    let mut holder = RawClient::session(&server.direct(), "postgres");
    session.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
    holder.query("BEGIN; LOCK TABLE waited_for");
    session.send(&query("SELECT id FROM waited_for WHERE id = 1"));
    let counts = |what: &str| {
        server.psql("postgres", &format!("SELECT count(*) FROM pg_stat_activity WHERE {what}")).trim() == "1"
    };
    wait_until("the statement's wait for the lock", || counts("wait_event_type = 'Lock'"));
    let mut messenger = RawClient::connect(&gateway.endpoint());
    messenger.send(&session.cancel_request());
    wait_until("the cancel's arrival at the proxy", || proxy.cancels() == 1);
    holder.query("ROLLBACK");
    session.await_count(backend::READY_FOR_QUERY, 3);
    let asks = || counts("query LIKE 'RELEASE SAVEPOINT onetrip%'");
    thread::sleep(DELAY);
    assert!(!asks(), "the cancel would meet a question");
    messenger.transcript();
    wait_until("a question when the cancel has arrived", asks);
}

#[test]
fn the_same_delay_without_the_gateway_does_hit_the_second_statement() {
    // What the test above would see if the gateway did not hold the second statement.
    let manner = Manner { cancelling: Cancelling::Delayed(DELAY), reply_chunk: None };
    let proxy = Proxy::start(Server::shared().direct(), manner);
    let endpoint = Endpoint::tcp(proxy.port);
    // On a busy machine a round may take longer than the delay, and the first statement be hit.
    let hit = |lock| was_cancelled(&second_statement_behind_a_delayed_cancel(&endpoint, &proxy, lock));
    assert!((5000..5010).any(hit));
}

#[test]
fn a_cancel_at_any_moment_of_a_statement_spares_the_next_one() {
    let (gateway, _proxy) = gateway_behind(Cancelling::Delayed(Duration::from_millis(2)));
    let mut session = RawClient::session(&gateway.endpoint(), "postgres");
    let request = session.cancel_request();
    let mut first_was_cancelled = 0;
    for round in 0..120_u64 {
        // Multiples of a prime, to meet the 8 ms of the statement at ever other moments, before and after its end.
        let offset = Duration::from_micros(round * 1_237 % 12_000);
        let (endpoint, request) = (gateway.endpoint(), request.clone());
        let messenger = thread::spawn(move || {
            thread::sleep(offset);
            cancel(&endpoint, &request);
        });
        let first = session.query("SELECT pg_sleep(0.008)");
        messenger.join().expect("the cancel connection ends");
        first_was_cancelled += u32::from(was_cancelled(&first));
        let second = session.query("SELECT pg_sleep(0.004)");
        assert!(!was_cancelled(&second), "round {round}, offset {offset:?}: {second:?}");
    }
    assert!(
        (1..120).contains(&first_was_cancelled),
        "{first_was_cancelled} of 120: no offset met the border"
    );
}

/// What a session gets when the cancel comes in the middle of `work`.
fn cancelled(endpoint: &Endpoint, work: &[u8], begun: (u8, usize)) -> Transcript {
    let mut session = RawClient::session(endpoint, "postgres");
    session.send(work);
    session.await_count(begun.0, begun.1);
    thread::sleep(Duration::from_millis(30));
    cancel(endpoint, &session.cancel_request());
    if begun.0 == backend::READY_FOR_QUERY {
        // In COPY in, the server looks at a cancel only when the next data comes.
        session.await_count(backend::ERROR_RESPONSE, 1);
    }
    session.send(&[copy_data(b"1\n"), copy_done(), sync(), query("SELECT 'goes on'"), terminate()].concat());
    session.finish()
}

#[test]
fn cancelled_work_of_every_kind_looks_the_same_through_the_gateway() {
    let server = Server::shared();
    let gateway = server.gateway();
    let long = "SELECT pg_sleep(10)";
    let copy = "CREATE TEMP TABLE c (a int); COPY c FROM STDIN";
    let ready = (backend::READY_FOR_QUERY, 1);
    let cases = [
        ("a query", query(long), ready),
        ("the second of several statements", query("SELECT 1; SELECT pg_sleep(10); SELECT 2"), ready),
        (
            "an extended group",
            [run_unnamed("SELECT 1"), run_unnamed(long), run_unnamed("SELECT 2"), sync()].concat(),
            ready,
        ),
        (
            "a pipeline",
            [run_unnamed(long), sync(), run_unnamed("SELECT 2"), sync(), query("SELECT 3")].concat(),
            ready,
        ),
        ("a flushed group", [run_unnamed(long), flush()].concat(), ready),
        ("COPY in", query(copy), (backend::COPY_IN_RESPONSE, 1)),
        ("COPY out", query("COPY (SELECT x, pg_sleep(1) FROM generate_series(1, 9) x) TO STDOUT"), ready),
        ("a transaction", query("BEGIN; SELECT pg_sleep(10)"), ready),
    ];
    for (what, work, begun) in cases {
        let direct = cancelled(&server.direct(), &work, begun);
        assert_eq!(errors(&direct)[0].1, "57014", "{what}: {direct:?}");
        let through = cancelled(&gateway.endpoint(), &work, begun);
        assert_eq!(direct.difference(&through), None, "{what}");
    }
}

#[test]
fn a_cancel_with_a_wrong_key_does_nothing() {
    let server = Server::shared();
    let (gateway, proxy) = gateway_behind(Cancelling::Delayed(Duration::ZERO));
    let mut session = RawClient::session(&gateway.endpoint(), "postgres");
    let right = session.cancel_request();
    session.send(&query("SELECT pg_sleep(0.3)"));
    for byte in 8..16 {
        let mut wrong = right.clone();
        wrong[byte] ^= 1;
        cancel(&gateway.endpoint(), &wrong);
    }
    // The key is the gateway's own: shown to the server itself it opens nothing.
    cancel(&server.direct(), &right);
    session.await_count(backend::READY_FOR_QUERY, 2);
    assert_eq!(session.errors(), []);
    assert_eq!(proxy.cancels(), 0, "nothing of this is the database's business");
}

#[test]
fn a_cancel_to_an_idle_session_does_nothing() {
    let (gateway, proxy) = gateway_behind(Cancelling::Delayed(Duration::ZERO));
    let mut session = RawClient::session(&gateway.endpoint(), "postgres");
    for _ in 0..3 {
        cancel(&gateway.endpoint(), &session.cancel_request());
        assert!(!was_cancelled(&session.query("SELECT pg_sleep(0.01)")));
    }
    assert_eq!(proxy.cancels(), 0, "there was nothing to cancel");
    let gone = session.cancel_request();
    session.send(&terminate());
    session.transcript();
    cancel(&gateway.endpoint(), &gone);
}

#[test]
fn a_cancel_that_never_arrives_holds_the_session_only_so_long() {
    let (gateway, proxy) = gateway_behind(Cancelling::Swallowed);
    let mut session = RawClient::session(&gateway.endpoint(), "postgres");
    session.send(&query("SELECT pg_sleep(0.2)"));
    let mut messenger = RawClient::connect(&gateway.endpoint());
    messenger.send(&session.cancel_request());
    wait_until("the cancel's arrival at the proxy", || proxy.cancels() == 1);
    session.await_count(backend::READY_FOR_QUERY, 2);
    assert_eq!(session.errors(), [], "the statement itself is not touched");
    // Nobody knows what the lost request will hit, so no further statement may run in this session.
    session.send(&query("SELECT 'too dangerous'"));
    let held = Instant::now();
    let others = RawClient::session(&gateway.endpoint(), "postgres").query("SELECT 1");
    assert!(others.iter().any(|message| message.tag == backend::DATA_ROW), "others are served meanwhile");
    assert!(session.ends_within(Duration::from_secs(15)), "the session is held for ever");
    assert!(held.elapsed() > Duration::from_secs(1), "a slow cancel deserves some patience");
    let refused = session.errors();
    assert_eq!((refused[0].0.as_str(), refused[0].1.as_str()), ("FATAL", "57P01"), "{refused:?}");
    assert!(messenger.ends_within(Duration::from_secs(1)), "the cancel connection is let go, too");
}

#[test]
fn half_a_cancel_request_does_nothing() {
    let server = Server::shared();
    let gateway = server.gateway();
    let mut session = RawClient::session(&gateway.endpoint(), "postgres");
    let request = session.cancel_request();
    session.send(&query("SELECT pg_sleep(0.2)"));
    for cut in 1..request.len() {
        let mut messenger = RawClient::connect(&gateway.endpoint());
        messenger.send(&request[..cut]);
        messenger.finish();
    }
    session.await_count(backend::READY_FOR_QUERY, 2);
    assert_eq!(session.errors(), []);
}

/// A client of libpq 18 that asks for protocol 3.2, works, is cancelled, and works again.
const CLIENT_OF_3_2: &str = "
import psycopg, threading
link = psycopg.connect('max_protocol_version=3.2', autocommit=True)
assert link.execute('SELECT 1').fetchall() == [(1,)]
threading.Timer(0.2, link.cancel_safe).start()
try:
    link.execute('SELECT pg_sleep(10)')
except psycopg.errors.QueryCanceled:
    print('cancelled', link.execute('SELECT 2').fetchall())
";

#[test]
fn a_client_of_protocol_3_2_is_negotiated_down_and_can_cancel() {
    let server = Server::start(&["--version", "18", "--auth", "trust"]);
    let gateway = server.gateway();
    let mut python = Command::new(repository().join(".venv/bin/python"));
    gateway.endpoint().point(&mut python, "postgres");
    let output = python.args(["-c", CLIENT_OF_3_2]).output().expect("python runs; run scripts/setup test");
    let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    assert_eq!(words(&output.stdout), "cancelled [(2,)]", "{}", words(&output.stderr));
    // The same words on the wire: 3.0 is all there is, whatever the server behind would offer.
    let mut packet = startup("postgres");
    packet[7] = 2;
    let mut client = RawClient::connect(&gateway.endpoint());
    client.send(&packet);
    client.await_count(backend::READY_FOR_QUERY, 1);
    let seen = client.so_far();
    let negotiated = seen.with_tag(backend::NEGOTIATE_PROTOCOL_VERSION).next().expect("it is told");
    assert_eq!(negotiated.body, [0, 3, 0, 0, 0, 0, 0, 0]);
}
