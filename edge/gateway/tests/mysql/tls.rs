//! TLS that the gateway speaks with the database: clients without TLS work as they would without it, and what cannot be kept
//! is refused in words.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use onetrip_mysqlserver::{Certificate, Kind, MysqlServer, repository};
use onetrip_target::{Conninfo, Environment};
use onetrip_wire::mysql::{HEADER_BYTES, Handshake, PacketHeader, packet};

use crate::raw::RawClient;
use crate::tap::{From, Tap};
use crate::{Watching, alone, open_server, python};

/// The certificate of all servers here.
pub(crate) fn certificate() -> &'static Certificate {
    static MADE: OnceLock<Certificate> = OnceLock::new();
    MADE.get_or_init(|| {
        let directory = std::env::temp_dir().join(format!("onetrip-mysql-tls-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        Certificate::make(&directory)
    })
}

/// The root of somebody else's.
fn other_root() -> String {
    repository().join("edge/target/tests/certificates/manual-root.pem").display().to_string()
}

/// A server that takes no connection without TLS.
fn server(options: &[&str]) -> MysqlServer {
    let [shown, key] = certificate().options();
    let own = [&shown, &key, "--require-secure-transport=ON"];
    MysqlServer::start(Kind::MariaDb, &own.into_iter().chain(options.iter().copied()).collect::<Vec<_>>())
}

fn with_password() -> &'static MysqlServer {
    static SERVER: OnceLock<MysqlServer> = OnceLock::new();
    let authority = format!("--ssl-ca={}", certificate().file);
    SERVER.get_or_init(|| server(&[&authority]))
}

fn without_password() -> &'static MysqlServer {
    static SERVER: OnceLock<MysqlServer> = OnceLock::new();
    SERVER.get_or_init(|| server(&["--skip-grant-tables"]))
}

/// What a driver shows where it cannot connect.
fn complaint(upstream: &str) -> String {
    let gateway = Watching::before(upstream);
    let output = python("connect", &with_password().at, gateway.port, &[]);
    assert!(!output.status.success(), "{upstream}");
    let summary = gateway.summary();
    assert_eq!((summary.sessions, summary.refusals.len()), (0, 1), "{upstream}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_driver_that_prefers_tls_goes_without_through_each_mode_and_all_of_it_is_counted() {
    let _alone = alone();
    let at = &with_password().at;
    let root = &certificate().file;
    for (number, mode) in [
        "REQUIRED".to_owned(),
        "PREFERRED".to_owned(),
        format!("VERIFY_CA&ssl-ca={root}"),
        format!("VERIFY_IDENTITY&ssl-ca={root}"),
    ]
    .iter()
    .enumerate()
    {
        let upstream = format!("mysql://localhost:{}?ssl-mode={mode}", at.port);
        let program = if number == 0 { "schema" } else { "loop" };
        let gateway = Watching::before(&upstream);
        let output = python(program, at, gateway.port, &[]);
        assert!(output.status.success(), "{mode}: {}", String::from_utf8_lossy(&output.stderr));
        let summary = gateway.summary();
        assert_eq!((summary.connections, summary.sessions), (1, 1), "{mode}");
        assert_eq!(
            (summary.trips.connect, summary.undecoded),
            (2, 0),
            "{mode}: the handshake is none of its"
        );
        assert!(!summary.gaps.has_loss(), "{mode}");
        assert_eq!(summary.findings.len(), usize::from(program == "loop"), "{mode}");
    }
    // Another one that prefers it.
    let gateway = Watching::before(&format!("mysql://localhost:{}?ssl-mode=REQUIRED", at.port));
    let output = python("loop", at, gateway.port, &["tls-preferred"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary = gateway.summary();
    assert_eq!((summary.sessions, summary.findings.len(), summary.gaps.has_loss()), (1, 1, false));
}

#[test]
fn other_drivers_log_in_through_the_gateways_tls() {
    let _alone = alone();
    let at = &with_password().at;
    for driver in ["pymysql", "connector", "connector-compressed", "mysql2"] {
        let gateway = Watching::before(&format!("mysql://localhost:{}?ssl-mode=REQUIRED", at.port));
        let script = |name: &str| repository().join("core/wire/tests/mysql_servers").join(name);
        let directory =
            std::env::temp_dir().join(format!("onetrip-gateway-tls-{}-{driver}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let port = gateway.port.to_string();
        let settings = [&*at.host, &port, &at.user, &at.password, &at.database];
        let mut program = if driver == "mysql2" {
            let mut node = Command::new("node");
            node.arg(script("acts.mjs")).arg(repository().join("clients/node")).args(settings).arg("again");
            node
        } else {
            let mut python = Command::new(repository().join(".venv/bin/python"));
            python.arg(script("acts.py")).arg(driver).args(settings).arg(&directory);
            python
        };
        let output = program.output().expect("the program starts; `scripts/setup test` installs drivers");
        assert!(output.status.success(), "{driver}: {}", String::from_utf8_lossy(&output.stderr));
        let summary = gateway.summary();
        assert!(!summary.gaps.has_loss() && summary.undecoded == 0, "{driver}: all is understood");
        assert!(summary.statements > 20, "{driver}: {}", summary.statements);
        std::fs::remove_dir_all(&directory).expect("it is ours");
    }
}

const OTHERS: [(&str, &str); 2] = [
    (
        "mysqlclient",
        "import MySQLdb
cursor = MySQLdb.connect(**at).cursor()
cursor.execute(\"SHOW STATUS LIKE 'Ssl_cipher'\")
print(cursor.fetchone()[1])",
    ),
    (
        "asyncmy",
        "import asyncio, asyncmy
async def main():
    connection = await asyncmy.connect(**at)
    async with connection.cursor() as cursor:
        await cursor.execute(\"SHOW STATUS LIKE 'Ssl_cipher'\")
        print((await cursor.fetchone())[1])
asyncio.run(main())",
    ),
];

#[test]
fn the_server_sees_tls_of_drivers_that_speak_none() {
    let at = &with_password().at;
    for (driver, program) in OTHERS {
        let gateway = Watching::before(&format!("mysql://localhost:{}?ssl-mode=REQUIRED", at.port));
        let settings = format!(
            "at = dict(host='127.0.0.1', port={}, user='{}', password='{}', db='{}')\n",
            gateway.port, at.user, at.password, at.database
        );
        let mut python = Command::new(repository().join(".venv/bin/python"));
        let output = python.args(["-c", &(settings + program)]).output().expect("python runs");
        let (said, cipher) =
            (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
        assert!(output.status.success() && cipher.starts_with("TLS_"), "{driver}: {cipher}{said}");
        assert!(!gateway.summary().gaps.has_loss(), "{driver}");
    }
}

/// A client by hand, on a relay that writes down what passes.
fn played(port: u16, database: &str) -> (Vec<u8>, Vec<u8>) {
    let tap = Tap::start(port);
    let mut client = RawClient::connect(tap.port, database);
    client.query("SELECT 1, 'two', NULL");
    client.query(&format!("SELECT LENGTH('{}')", "x".repeat(100_000)));
    client.query("SELECT nothing FROM nowhere");
    client.turn(b"\x0e");
    client.query("SELECT seq FROM seq_1_to_5000");
    client.turn(&[&b"\x11root\0\0"[..], database.as_bytes(), b"\0\x2d\0mysql_native_password\0"].concat());
    client.query("SELECT 2");
    client.send(0, b"\x01");
    client.ends();
    while client.read() {}
    drop(client);
    let tapes = tap.tapes();
    (tapes[0].bytes_of(From::Client), tapes[0].bytes_of(From::Server))
}

/// The server's bytes with what each greeting has of its own taken out, and the flag of TLS.
fn common(bytes: &[u8]) -> Vec<u8> {
    let header = PacketHeader::peek(bytes).expect("a greeting");
    let greeting =
        Handshake::decode(&bytes[HEADER_BYTES..header.packet_len()]).expect("a greeting").without_tls();
    let end = vec![0; greeting.challenge_end.len()];
    let greeting = Handshake { thread_id: 0, challenge_start: &[0; 8], challenge_end: &end, ..greeting };
    let mut out = Vec::new();
    packet(&mut out, header.sequence, |out| greeting.encode(out));
    out.extend_from_slice(&bytes[header.packet_len()..]);
    out
}

#[test]
fn a_client_sees_the_same_bytes_as_without_tls_but_for_the_greetings_flag() {
    let plain = open_server(Kind::MariaDb);
    let (sent_directly, came_directly) = played(plain.at.port, &plain.at.database);
    let at = &without_password().at;
    let gateway = Watching::before(&format!("mysql://localhost:{}?ssl-mode=REQUIRED", at.port));
    let (sent, came) = played(gateway.port, &at.database);
    assert!(sent == sent_directly, "what the client sends");
    assert!(common(&came) == common(&came_directly), "what it gets");
    assert!(came.len() > 20_000, "{}", came.len());
    let summary = gateway.summary();
    assert_eq!((summary.undecoded, summary.gaps.has_loss(), summary.sessions), (0, false, 1));
}

#[test]
fn a_server_that_takes_no_login_without_tls_takes_it_through_the_gateway() {
    let at = &with_password().at;
    let direct = python("connect", at, at.port, &["no-tls"]);
    let said = String::from_utf8_lossy(&direct.stderr).into_owned();
    assert!(said.contains("Access denied"), "the same login without TLS: {said}");
    let gateway = Watching::before(&format!("mysql://localhost:{}?ssl-mode=REQUIRED", at.port));
    let output = python("connect", at, gateway.port, &["no-tls"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary = gateway.summary();
    assert_eq!((summary.sessions, summary.trips.connect, summary.gaps.has_loss()), (1, 2, false));
}

#[test]
fn a_kill_on_another_connection_goes_over_tls_too() {
    let at = &without_password().at;
    let gateway = Watching::before(&format!("mysql://localhost:{}?ssl-mode=REQUIRED", at.port));
    let mut victim = RawClient::connect(gateway.port, &at.database);
    victim.send(0, b"\x03SELECT /* tls victim */ SLEEP(60)");
    let mut other = RawClient::connect(gateway.port, &at.database);
    let started = std::time::Instant::now();
    let find = "SELECT ID INTO @it FROM information_schema.PROCESSLIST WHERE INFO LIKE '%tls victim%SLEEP(60)%' AND ID <> \
                CONNECTION_ID() LIMIT 1";
    while other.query(find).affected_rows == 0 {
        assert!(started.elapsed().as_secs() < 40, "the statement runs");
    }
    other.query("EXECUTE IMMEDIATE CONCAT('KILL QUERY ', @it)");
    victim.answer();
    assert!(started.elapsed().as_secs() < 50, "it was ended");
    drop((victim, other));
    gateway.summary();
}

#[test]
fn what_tls_cannot_keep_is_told_to_the_client() {
    let _alone = alone();
    let tls = with_password().at.port;
    let (root, other) = (&certificate().file, other_root());
    let plain = open_server(Kind::MariaDb).at.port;
    for (upstream, expected) in [
        (format!("mysql://localhost:{tls}?ssl-mode=VERIFY_CA&ssl-ca={other}"), "in ssl-ca"),
        (format!("mysql://localhost:{tls}?ssl-mode=REQUIRED&ssl-ca={other}"), "in ssl-ca"),
        (
            format!("mysql://127.0.0.1:{tls}?ssl-mode=VERIFY_IDENTITY&ssl-ca={root}"),
            "does not match host name \"127.0.0.1\"",
        ),
        (
            format!("mysql://localhost:{plain}?ssl-mode=REQUIRED"),
            "does not support SSL, but SSL was required: set ssl-mode=PREFERRED (now REQUIRED)",
        ),
    ] {
        let said = complaint(&upstream);
        assert!(
            said.contains("onetrip cannot reach the database") && said.contains(expected),
            "{upstream}: {said}"
        );
    }
    let parsed =
        Conninfo::parse("mysql://db?ssl-mode=VERIFY_CA&ssl-ca=/nowhere.pem", &Environment::default());
    let error = onetrip_target::tls::connector(&parsed.expect("settings")).expect_err("no file").to_string();
    assert!(
        error.contains("\"/nowhere.pem\" does not exist") && error.contains("ssl-mode (now VERIFY_CA)"),
        "{error}"
    );
}

#[test]
fn the_gateway_shows_its_certificate_to_a_server_that_asks_for_one() {
    let at = &with_password().at;
    // The certificate and its key in one file, which nobody else may read.
    let own = certificate();
    let both = Path::new(&own.file).with_file_name("both.pem");
    let read = |path: &String| std::fs::read(path).expect("it was made");
    std::fs::write(&both, [read(&own.file), read(&own.key)].concat()).expect("a file");
    std::fs::set_permissions(&both, Permissions::from_mode(0o600)).expect("it is ours");
    let program = |port: u16, user: &str, text: &str| {
        let mut python = Command::new(repository().join(".venv/bin/python"));
        let password = if user == at.user { &at.password } else { "" };
        let program = format!(
            "import pymysql\npymysql.connect(host='127.0.0.1', port={port}, user='{user}', password='{password}', ssl_disabled=True)\
             .cursor().execute('{text}')"
        );
        let output = python.args(["-c", &program]).output().expect("python runs");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let upstream = format!("mysql://localhost:{}?ssl-mode=REQUIRED", at.port);
    let (without, with) =
        (Watching::before(&upstream), Watching::before(&format!("{upstream}&ssl-cert={}", both.display())));
    assert_eq!(program(without.port, &at.user, "CREATE USER shown REQUIRE X509"), "");
    assert!(program(without.port, "shown", "SELECT 1").contains("Access denied"));
    assert_eq!(program(with.port, "shown", "SELECT 1"), "");
    let parsed = Conninfo::parse("mysql://db?ssl-cert=/nowhere.pem", &Environment::default());
    let error = onetrip_target::tls::connector(&parsed.expect("settings")).expect_err("no file").to_string();
    assert!(error.contains("could not read certificate file \"/nowhere.pem\""), "{error}");
    with.summary();
    without.summary();
}

#[test]
fn a_server_without_tls_is_spoken_to_without_it_where_tls_is_only_preferred() {
    let at = &open_server(Kind::MariaDb).at;
    let gateway = Watching::before(&format!("mysql://localhost:{}?ssl-mode=PREFERRED", at.port));
    let mut client = RawClient::connect(gateway.port, &at.database);
    assert_eq!(client.query("SELECT 1").rows, 1);
    drop(client);
    let summary = gateway.summary();
    assert_eq!((summary.sessions, summary.trips.total, summary.gaps.has_loss()), (1, 3, false));
}

/// MySQL 5.6 speaks TLS 1.1 at most, which rustls does not.
#[test]
fn a_server_with_old_tls_only_is_named_as_such() {
    let own = certificate();
    // It knows no other form of a key.
    let key = Path::new(&own.file).with_file_name("old-key.pem");
    let made =
        Command::new("openssl").args(["rsa", "-traditional", "-in", &own.key, "-out"]).arg(&key).output();
    assert!(made.expect("openssl runs").status.success());
    std::fs::set_permissions(&key, Permissions::from_mode(0o644)).expect("it is ours");
    let ([shown, _], key) = (own.options(), format!("--ssl-key={}", key.display()));
    let authority = format!("--ssl-ca={}", own.file);
    let old = MysqlServer::start(Kind::Mysql56, &[&shown, &key, &authority]);
    for mode in ["REQUIRED", "PREFERRED"] {
        let said = complaint(&format!("mysql://localhost:{}?ssl-mode={mode}", old.at.port));
        assert!(said.contains("TLS 1.2 or newer. Set ssl-mode=DISABLED"), "{mode}: {said}");
    }
}

#[test]
fn clients_that_leave_or_speak_tls_themselves_hang_nothing() {
    let at = &without_password().at;
    let gateway = Watching::before(&format!("mysql://localhost:{}?ssl-mode=REQUIRED", at.port));
    drop(RawClient::greeted(gateway.port));
    let mut client = RawClient::greeted(gateway.port);
    // A request for TLS, though none was offered.
    client.send(1, &[&0x000f_8a81_u32.to_le_bytes()[..], &[0; 28]].concat());
    while client.read() {}
    assert!(client.received > 100, "it was told why");
    drop(client);
    let summary = gateway.summary();
    assert_eq!((summary.connections, summary.sessions), (2, 0));
}
