//! The same conversation with every kind of server: PostgreSQL, old and new, by itself, through PgBouncer and through the
//! gateway with all exact remedies; and `onetrip serve`.

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroU32;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use common::Server;
use onetrip_client::blocking::{Client, LobSource};
use onetrip_client::core::{Fetch, OutputSource};
use onetrip_client::{Bulk, Error, OnError, Outcome, Param, TransactionStatus};
use onetrip_gateway::{Gateway, GatewayConfig, Remedies};
use onetrip_target::{Conninfo, Environment};

/// What the conversation may rest on.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// PostgreSQL, and a session for each connection.
    Sessions,
    /// PostgreSQL, and a session for each transaction.
    Transactions,
    /// `onetrip serve`, which has no large objects, no arrays as rows and no COPY to the client.
    Embedded,
}

/// Has every part of the client talk to the server at `url`.
fn converse(url: &str, kind: Kind) {
    let mut client = Client::connect(url).unwrap_or_else(|error| panic!("{url}: {error}"));
    client.script("DROP TABLE IF EXISTS kept").unwrap();
    client.script("CREATE TABLE kept (id int PRIMARY KEY, words text)").unwrap();
    statements(&mut client);
    for on_error in [OnError::Abort, OnError::Continue] {
        for in_transaction in [false, true] {
            for position in 0..4 {
                block(&mut client, on_error, in_transaction, position);
            }
        }
    }
    parts(&mut client);
    copies(&mut client, kind);
    bulk(&mut client, kind);
    if kind != Kind::Embedded {
        large_object(&mut client);
    }
    if kind != Kind::Transactions {
        output(&mut client, kind);
    }
    cancels(&mut client);
    let mut other = Client::connect(url).unwrap();
    assert_eq!(other.execute("SELECT id FROM kept", &[]).unwrap(), 0, "{url}");
    client.script("DROP TABLE kept").unwrap();
}

fn statements(client: &mut Client) {
    for _ in 0..3 {
        let mut rows = client.query("SELECT $1::int + 1, $2::text", &[&41, &"zwölf"]).unwrap();
        let row = rows.next_row().unwrap().unwrap();
        assert_eq!((row.get::<i32>(0).unwrap(), row.get::<&str>(1).unwrap()), (42, "zwölf"));
        drop(rows);
        let error = client.execute("SELECT id FROM nowhere", &[]).unwrap_err();
        assert_eq!(error.sqlstate(), Some("42P01"));
    }
    let read = "SELECT * FROM kept";
    client.execute(read, &[]).unwrap();
    client.script("ALTER TABLE kept ADD more int").unwrap();
    assert_eq!(client.query(read, &[]).unwrap().columns().len(), 3, "a changed result is healed");
    client.begin().unwrap();
    client.execute("INSERT INTO kept (id) VALUES ($1)", &[&7]).unwrap();
    client.rollback().unwrap();
}

/// A block of three whose operation at `position` fails; none does at the fourth.
fn block(client: &mut Client, on_error: OnError, in_transaction: bool, position: usize) {
    if in_transaction {
        client.begin().unwrap();
    }
    let mut pipeline = client.pipeline(on_error).unwrap();
    let insert = "INSERT INTO kept (id, words) VALUES ($1, $2)";
    let mut operations = Vec::new();
    for at in 0..3 {
        let id = i32::try_from(at).unwrap();
        operations.push(match at == position {
            true => pipeline.execute("SELECT id FROM nowhere", &[]).unwrap(),
            false => pipeline.execute(insert, &[&id, &"words"]).unwrap(),
        });
    }
    let outcomes = pipeline.end().unwrap();
    for (at, operation) in operations.iter().enumerate() {
        let outcome = outcomes.get(*operation).unwrap();
        let is_right = match (on_error, at.cmp(&position)) {
            _ if position == 3 => matches!(outcome, Outcome::Done(_)),
            (_, std::cmp::Ordering::Equal) => matches!(outcome, Outcome::Failed(_)),
            (OnError::Continue, _) => matches!(outcome, Outcome::Done(_)),
            (OnError::Abort, std::cmp::Ordering::Greater) => matches!(outcome, Outcome::Aborted { .. }),
            (OnError::Abort, _) if in_transaction => matches!(outcome, Outcome::Done(_)),
            (OnError::Abort, _) => matches!(outcome, Outcome::Undone { .. }),
        };
        assert!(is_right, "{on_error:?} {in_transaction} {position}: {outcome:?} at {at}");
    }
    let is_lost = position < 3 && on_error == OnError::Abort;
    if in_transaction {
        let status = if is_lost { TransactionStatus::Failed } else { TransactionStatus::Active };
        assert_eq!(client.transaction_status(), status);
        assert_eq!(client.commit().is_err(), is_lost);
    }
    let expected = if is_lost { 0 } else { 3 - u64::from(position < 3) };
    assert_eq!(client.execute("DELETE FROM kept", &[]).unwrap(), expected, "{on_error:?} {position}");
}

/// Two results side by side, read ahead and by a few rows.
fn parts(client: &mut Client) {
    client.script("INSERT INTO kept (id) SELECT * FROM generate_series(1, 1500)").unwrap();
    client.begin().unwrap();
    let read = "SELECT id FROM kept ORDER BY id";
    let all = client.open_cursor(read, &[], Fetch::Auto).unwrap();
    let few = client.open_cursor(read, &[], Fetch::Rows(NonZeroU32::new(400).unwrap())).unwrap();
    for expected in 1..=1500 {
        for cursor in [&all, &few] {
            let row = client.next_row(cursor).unwrap().unwrap();
            assert_eq!(row.get::<i32>(0).unwrap(), expected);
        }
    }
    assert!(client.next_row(&all).unwrap().is_none() && client.next_row(&few).unwrap().is_none());
    client.rollback().unwrap();
    client.execute("DELETE FROM kept", &[]).unwrap();
}

fn copies(client: &mut Client, kind: Kind) {
    let mut copy = client.copy_in("COPY kept (id, words) FROM STDIN").unwrap();
    for id in 0..1000 {
        writeln!(copy, "{id}\twords").unwrap();
    }
    assert_eq!(copy.finish().unwrap(), 1000);
    if kind != Kind::Embedded {
        let mut text = String::new();
        client.copy_out("COPY kept TO STDOUT").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text.lines().count(), 1000);
    }
    drop(client.copy_in("COPY kept (id, words) FROM STDIN").unwrap().send(b"5000\tgiven up\n"));
    assert_eq!(client.execute("DELETE FROM kept", &[]).unwrap(), 1000);
}

fn bulk(client: &mut Client, kind: Kind) {
    let ids: Vec<i32> = (0..1200).collect();
    let sets: Vec<[&dyn Param; 2]> = ids.iter().map(|id| [id as &dyn Param, &"words"]).collect();
    let insert = "INSERT INTO kept (id, words) VALUES ($1, $2)";
    for way in [Bulk::Auto, Bulk::Pipeline, Bulk::Unnest, Bulk::Copy] {
        if way == Bulk::Unnest && kind == Kind::Embedded {
            continue;
        }
        let done = client.execute_many_by(way, insert, sets.iter().map(|set| &set[..])).unwrap();
        assert_eq!(done.rows, 1200, "{way:?}");
        let again = client.execute_many_by(way, insert, sets.iter().map(|set| &set[..])).unwrap_err();
        assert_eq!(again.error.sqlstate(), Some("23505"), "{way:?}");
        if kind != Kind::Embedded || way == Bulk::Pipeline {
            assert_eq!(again.set, Some(0), "{way:?}");
        }
        assert_eq!(client.execute("DELETE FROM kept", &[]).unwrap(), 1200, "{way:?}");
    }
}

fn large_object(client: &mut Client) {
    let wanted: Vec<u8> = (0..300_000u32).map(|at| (at / 7) as u8).collect();
    client.begin().unwrap();
    let oid = client.create_large_object().unwrap();
    let mut writer = client.write_large_object(oid, 0).unwrap();
    writer.write_all(&wanted).unwrap();
    writer.finish().unwrap();
    let mut lob = client.prefetch(&[(LobSource::Object(oid), None)], None).unwrap().remove(0);
    let mut read = Vec::new();
    client.read_lob(&mut lob).read_to_end(&mut read).unwrap();
    assert!(read == wanted);
    client.rollback().unwrap();
}

fn output(client: &mut Client, kind: Kind) {
    client.lines().unwrap();
    if kind == Kind::Embedded {
        assert!(client.collect_output(OutputSource::Functions).unwrap());
        client.execute("SELECT put_line('from here')", &[]).unwrap();
        assert_eq!(client.lines().unwrap(), ["from here"]);
        return; // it knows no LISTEN
    }
    client.execute("DO $$ BEGIN RAISE NOTICE 'from here'; END $$", &[]).unwrap();
    assert_eq!(client.lines().unwrap(), ["from here"]);
    client.script("LISTEN news").unwrap();
    client.script("NOTIFY news, 'x'").unwrap();
    let heard = client.notification(Duration::from_secs(10)).unwrap();
    assert_eq!(heard.expect("it was sent").payload, "x");
}

fn cancels(client: &mut Client) {
    client.set_timeout(Some(Duration::from_millis(100)));
    let error = client.execute("SELECT pg_sleep(60)", &[]).unwrap_err();
    assert_eq!(error.sqlstate(), Some("57014"), "{error}");
    client.set_timeout(None);
    assert_eq!(client.execute("SELECT 1", &[]).unwrap(), 1);
}

/// PgBouncer in front of a server; it ends with this value, at the latest with this process.
struct Bouncer {
    process: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Bouncer {
    fn before(server: &Server, mode: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("pgbouncer.ini");
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={} user={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = {mode}\n\
             server_tls_sslmode = disable\nmin_pool_size = 0\ndefault_pool_size = 4\n",
            server.at.port, server.at.user
        );
        std::fs::write(&config, text).unwrap();
        let process = bouncer(&config).spawn().expect("PgBouncer is installed by scripts/setup test");
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "PgBouncer listens");
            std::thread::sleep(Duration::from_millis(10));
        }
        Self { process, port, _folder: folder }
    }
}

/// It refuses to run as root, and ends when its parent does.
fn bouncer(config: &Path) -> Command {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let folder = config.parent().unwrap();
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let is_root = std::fs::metadata(config).unwrap().uid() == 0;
    let mut command = Command::new("setpriv");
    command.arg("--pdeathsig=TERM");
    if is_root {
        command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]);
    }
    command.args(["--", "/usr/sbin/pgbouncer", "-q"]).arg(config);
    command.stderr(std::process::Stdio::null());
    command
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        // One that has ended by itself cannot be killed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn postgresql_15_is_spoken_with() {
    let server = Server::start(&["--auth", "trust"]);
    for cache in ["", "&statement_cache=0", "&statement_cache=2"] {
        converse(&format!("{}{cache}", server.url()), Kind::Sessions);
    }
}

#[test]
fn postgresql_18_is_spoken_with() {
    let server = Server::start(&["--version", "18", "--auth", "trust"]);
    for words in ["", "&statement_cache=0", "&max_protocol_version=latest"] {
        converse(&format!("{}{words}", server.url()), Kind::Sessions);
    }
}

#[test]
fn pgbouncer_is_spoken_through_in_both_modes() {
    let server = Server::start(&["--auth", "trust"]);
    let sessions = Bouncer::before(&server, "session");
    for cache in ["", "&statement_cache=0"] {
        converse(&format!("{}{cache}", server.url_at(sessions.port)), Kind::Sessions);
    }
    let transactions = Bouncer::before(&server, "transaction");
    let url = server.url_at(transactions.port);
    converse(&format!("{url}&statement_cache=0"), Kind::Transactions);
    // With statements that stay prepared a connection meets those of others: that is an error, and no wrong answer.
    let mut first = Client::connect(&url).unwrap();
    let mut second = Client::connect(&url).unwrap();
    assert_eq!(first.execute("SELECT 1", &[]).unwrap(), 1);
    let met = second.execute("SELECT 2", &[]);
    assert!(matches!(&met, Err(Error::Server(error)) if error.sqlstate() == "42P05"), "{met:?}");
}

#[test]
fn the_gateway_with_all_exact_remedies_is_spoken_through() {
    let server = Server::start(&["--auth", "trust"]);
    let upstream = Conninfo::parse(&server.url(), &Environment::default()).unwrap();
    let config = GatewayConfig { remedies: Remedies::exact(), ..GatewayConfig::new(upstream) };
    let gateway = Gateway::start(config).unwrap();
    let port: u16 = gateway.address().to_string().rsplit(':').next().unwrap().parse().unwrap();
    for cache in ["", "&statement_cache=0"] {
        converse(&format!("{}{cache}", server.url_at(port)), Kind::Sessions);
    }
    drop(gateway.stop());
}

#[test]
fn the_embedded_server_is_spoken_with() {
    let folder = tempfile::tempdir().unwrap();
    let options = onetrip_embed::ServeOptions::new(folder.path().join("test.db"));
    let server = onetrip_embed::Server::start(options).unwrap();
    for cache in ["", "&statement_cache=0"] {
        let url = format!("postgres://onetrip@{}/onetrip?sslmode=disable{cache}", server.local_addr());
        converse(&url, Kind::Embedded);
    }
}
