//! A session that waits, or takes long, keeps no other one waiting. On one core all of them share one leader, so without
//! a hand-over the others would wait for as long.
//!
//! On a machine that others share, the lookout may relieve a leader before it hands over by itself. So counts of
//! hand-overs are of several attempts.

mod support;

use std::io::Read;
use std::time::Duration;

use onetrip_embed::{Durability, ServeStats};
use onetrip_wire::pg::frame;
use rustix::thread::{CpuSet, sched_setaffinity};
use support::{Client, Fixture, put_str, tags};

const ATTEMPTS: usize = 5;

/// A server that may have one leader.
fn on_one_core(change: impl FnOnce(&mut onetrip_embed::ServeOptions)) -> Fixture {
    let mut core = CpuSet::new();
    core.set(rustix::thread::sched_getcpu());
    sched_setaffinity(None, &core).unwrap(); // of this test's thread, and of those that it starts
    Fixture::with(change)
}

fn ask(client: &mut Client, text: &str) {
    let query = client.encoded(|client| {
        let mut body = Vec::new();
        put_str(&mut body, text);
        client.framed(b'Q', &body);
    });
    client.send_raw(&query);
}

/// Whether the server has sent nothing to this client that it has not read.
fn is_waiting(client: &Client) -> bool {
    client.stream.set_nonblocking(true).unwrap();
    let peeked = client.stream.peek(&mut [0]);
    client.stream.set_nonblocking(false).unwrap();
    matches!(peeked, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
}

/// Two clients, neither of which is alone at the server.
fn two_clients(fixture: &Fixture) -> [Client; 2] {
    let mut clients = [fixture.client(), fixture.client()];
    // A session is ready a little before it can be found.
    for client in clients.iter_mut().rev() {
        client.run("SELECT 1");
    }
    clients
}

/// Whether others are served while `client` waits for the answer to this.
fn others_are_served(fixture: &Fixture, client: &mut Client, text: &str) {
    let mut others = two_clients(fixture);
    // No thread waits for this client alone any more.
    assert_eq!(client.rows("SELECT 1"), ["1"]);
    ask(client, text);
    for number in 0..10 {
        for other in &mut others {
            assert_eq!(other.rows(&format!("SELECT {number}")), [number.to_string()]);
        }
    }
    assert!(is_waiting(client), "{text} was done before the others");
}

fn stop(fixture: Fixture) -> ServeStats {
    fixture.server.stop().unwrap()
}

#[test]
fn a_lock_that_another_session_holds_delays_nobody_else() {
    let fixture = on_one_core(|options| options.lock_timeout = Duration::from_secs(600));
    let (mut holder, mut waiter) = (fixture.client(), fixture.client());
    holder.run("CREATE TABLE t (a int)");
    for _ in 0..ATTEMPTS {
        holder.run("BEGIN; INSERT INTO t VALUES (1)");
        others_are_served(&fixture, &mut waiter, "INSERT INTO t VALUES (2)");
        // The leader could not get to this either.
        holder.run("COMMIT");
        assert_eq!(tags(&waiter.until_ready()), "CZ");
    }
    assert_eq!(waiter.rows("SELECT sum(a) FROM t"), [(3 * ATTEMPTS).to_string()]);
    assert!(stop(fixture).hand_overs >= 1);
}

#[test]
fn a_sleep_delays_nobody_else_and_a_cancel_ends_it() {
    let fixture = on_one_core(|_| {});
    let (mut sleeper, cancel) = fixture.client_with_key();
    for _ in 0..ATTEMPTS {
        others_are_served(&fixture, &mut sleeper, "SELECT pg_sleep(600)");
        Client::open(&fixture).send_raw(&cancel);
        let messages = sleeper.until_ready();
        assert_eq!(messages.iter().find(|message| message.tag == b'E').unwrap().sqlstate(), "57014");
        assert_eq!(sleeper.rows("SELECT 1"), ["1"]);
    }
    assert!(stop(fixture).hand_overs >= 1);
}

#[test]
fn half_a_message_takes_no_thread_and_the_rest_completes_it() {
    let fixture = on_one_core(|_| {});
    let mut halves: Vec<Client> = (0..20).map(|_| fixture.client()).collect();
    let mut other = fixture.client();
    let query = other.encoded(|client| {
        client.framed(b'Q', b"SELECT 1\0");
    });
    for at in [1, 3, 7] {
        for client in &mut halves {
            client.send_raw(&query[..at]);
        }
        assert_eq!(other.rows("SELECT 2"), ["2"]);
        for client in &mut halves {
            assert!(is_waiting(client));
            client.send_raw(&query[at..]);
            assert_eq!(tags(&client.until_ready()), "TDCZ");
        }
    }
    assert_few_changes(&stop(fixture), 3 * halves.len());
}

/// A leader that waited for the rest of a message would be relieved at each of so many pauses.
fn assert_few_changes(stats: &ServeStats, pauses: usize) {
    assert!(stats.hand_overs == 0 && stats.take_overs < pauses as u64 / 2, "{stats:?}");
}

#[test]
fn a_copy_that_pauses_between_two_messages_takes_no_thread() {
    const COPIES: usize = 30;
    let fixture = on_one_core(|_| {});
    let [mut copying, mut other] = two_clients(&fixture);
    other.run("CREATE TABLE t (a int)");
    for _ in 0..COPIES {
        ask(&mut copying, "COPY t FROM STDIN");
        assert_eq!(copying.message().tag, b'G');
        copying.framed(b'd', b"1\n2").send();
        assert_eq!(other.rows("SELECT 2"), ["2"]);
        copying.framed(b'd', b"3\n").send();
        copying.bare(b'c').send();
        assert_eq!(tags(&copying.until_ready()), "CZ");
    }
    assert_eq!(other.rows("SELECT sum(a) FROM t"), [(24 * COPIES).to_string()]);
    assert_few_changes(&stop(fixture), COPIES);
}

#[test]
fn a_client_that_does_not_read_delays_nobody_else() {
    let fixture = on_one_core(|_| {});
    let mut client = fixture.client();
    let mut others = two_clients(&fixture);
    client.run("SELECT 1");
    // More than the buffers of both sockets hold.
    ask(&mut client, "SELECT repeat('x', 1000) FROM generate_series(1, 100000)");
    let mut byte = [0];
    client.stream.read_exact(&mut byte).unwrap();
    for _ in 0..10 {
        for other in &mut others {
            assert_eq!(other.rows("SELECT 2"), ["2"]);
        }
    }
    let mut header = [0; 4];
    client.stream.read_exact(&mut header).unwrap();
    let mut rest = vec![0; u32::from_be_bytes(header) as usize - 4];
    client.stream.read_exact(&mut rest).unwrap();
    let messages = client.until_ready();
    assert_eq!(messages.iter().filter(|message| message.tag == b'D').count(), 100_000);
    let stats = stop(fixture);
    assert!(stats.hand_overs + stats.take_overs >= 1, "{stats:?}");
}

#[test]
fn a_long_statement_delays_nobody_else() {
    for long in [
        // Many steps, and one step that takes long.
        "SELECT count(*) FROM generate_series(1, 1000000000)",
        "SELECT repeat('x', 4000000) ILIKE '%' || repeat('x', 2000) || 'y'",
    ] {
        let fixture = on_one_core(|_| {});
        let mut client = fixture.client();
        others_are_served(&fixture, &mut client, long);
        let stats = stop(fixture);
        assert!(stats.hand_overs == 0 && stats.take_overs >= 1, "{stats:?}");
    }
}

#[test]
fn a_commit_that_waits_for_the_disk_is_handed_over_and_reads_are_not() {
    let fixture = on_one_core(|options| options.durability = Durability::Full);
    let [mut client, _other] = two_clients(&fixture);
    client.run("CREATE TABLE t (a int)");
    for number in 0..ATTEMPTS {
        client.run(&format!("INSERT INTO t VALUES ({number})"));
        client.run("SELECT * FROM t");
        client.run("BEGIN");
        client.run("SELECT * FROM t");
        client.run("COMMIT");
    }
    let stats = stop(fixture);
    // One of the table, and one of each row.
    assert!((1..=1 + ATTEMPTS as u64).contains(&stats.hand_overs), "{stats:?}");
}

#[test]
fn a_wait_for_a_lock_heeds_cancel_and_timeout() {
    let fixture = on_one_core(|options| options.lock_timeout = Duration::from_secs(600));
    let mut holder = fixture.client();
    holder.run("CREATE TABLE t (a int)");
    holder.run("BEGIN; INSERT INTO t VALUES (1)");
    let (mut waiter, cancel) = fixture.client_with_key();
    ask(&mut waiter, "INSERT INTO t VALUES (2)");
    std::thread::sleep(Duration::from_millis(50));
    Client::open(&fixture).send_raw(&cancel);
    let messages = waiter.until_ready();
    assert_eq!(tags(&messages), "EZ");
    assert_eq!(messages[0].sqlstate(), "57014");
    waiter.run("SET statement_timeout = '20ms'");
    assert_eq!(waiter.error("INSERT INTO t VALUES (2)"), "57014");
    holder.run("ROLLBACK");
    waiter.run("INSERT INTO t VALUES (2)");
}

#[test]
fn idle_sessions_take_no_thread() {
    let fixture = on_one_core(|options| options.sessions_max = 100);
    let mut clients: Vec<Client> = (0..100).map(|_| fixture.client()).collect();
    clients.iter_mut().for_each(|client| client.run("SELECT 1"));
    // Threads of logins wait for the next one for a while, and other tests have some, too.
    let threads = session_threads();
    assert!(threads <= 50, "{threads} threads");
    drop(clients);
}

/// Threads of all servers of this process that sessions run on.
fn session_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "onetrip-session").count()
}

#[test]
fn what_came_with_the_startup_packet_is_answered() {
    let fixture = on_one_core(|_| {});
    let mut client = Client::open(&fixture);
    let mut bytes = Vec::new();
    onetrip_wire::pg::encode_startup(
        &mut bytes,
        onetrip_wire::pg::PROTOCOL_3_0,
        [(&b"user"[..], &b"ann"[..])],
    );
    frame(&mut bytes, b'Q', |out| put_str(out, "SELECT 1"));
    client.send_raw(&bytes);
    client.until_ready();
    assert_eq!(tags(&client.until_ready()), "TDCZ");
}
