//! `onetrip ping` and `onetrip ready` against MariaDB and MySQL 5.6, and against what is neither.

mod common;

use std::io::Write;
use std::net::TcpListener;
use std::process::{Command, Output};
use std::thread;

use common::onetrip;
use onetrip_mysqlserver::{Certificate, Kind, MysqlServer};
use serde_json::Value;

fn ping(target: &str) -> Command {
    let mut command = onetrip();
    for name in ["MYSQL_PWD", "MYSQL_PASSWORD", "MYSQL_USER", "MYSQL_DATABASE"] {
        command.env_remove(name);
    }
    command.args(["ping", target, "-n", "20", "--format", "json"]);
    command
}

/// Pings that must succeed.
fn report(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What a failing command says.
fn complaint(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{}", String::from_utf8_lossy(&output.stdout));
    said(&output)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn opening(report: &Value) -> Vec<(String, u64)> {
    let steps = report["opening"]["steps"].as_array().unwrap().iter();
    let steps =
        steps.map(|step| (step["step"].as_str().unwrap().to_owned(), step["trips"].as_u64().unwrap()));
    steps.filter(|(_, trips)| *trips > 0).collect()
}

fn named(steps: &[(&str, u64)]) -> Vec<(String, u64)> {
    steps.iter().map(|(name, trips)| ((*name).to_owned(), *trips)).collect()
}

#[test]
fn each_trip_of_opening_a_session_is_told_by_real_servers() {
    for (kind, product) in [(Kind::MariaDb, "MariaDB"), (Kind::Mysql56, "5.6.")] {
        let server = MysqlServer::start(kind, &[]);
        let port = server.at.port;
        let target = format!("mysql://onetrip@127.0.0.1:{port}/onetrip");
        let told = report(ping(&target).env("MYSQL_PWD", "onetrip-secret"));
        assert_eq!(opening(&told), named(&[("tcp_connect", 1), ("greeting", 1), ("login", 1)]), "{kind:?}");
        assert_eq!((&told["opening"]["trips"], &told["trips"]), (&3.into(), &20.into()));
        assert!(told["server_version"].as_str().unwrap().contains(product), "{told:#}");
        assert_eq!(told["authentication"], "mysql_native_password");
        assert_eq!((&told["user"], &told["database"]), (&"onetrip".into(), &"onetrip".into()));
        assert!(told["ms"]["trip"]["min"].as_f64().unwrap() > 0.0);
        // The password from the URL, and no database.
        let bare = report(&mut ping(&format!("mysql://onetrip:onetrip-secret@127.0.0.1:{port}")));
        assert_eq!(bare["database"], Value::Null);

        let wrong = complaint(ping(&target).env("MYSQL_PWD", "wrong"));
        assert!(wrong.contains("Access denied for user 'onetrip'") && wrong.contains("MYSQL_PWD"), "{wrong}");
        let none = complaint(&mut ping(&target));
        assert!(none.contains("no password was given"), "{none}");
        let nowhere = format!("mysql://onetrip:onetrip-secret@127.0.0.1:{port}/nowhere");
        assert!(complaint(&mut ping(&nowhere)).contains("Unknown database 'nowhere'"));
        let tls = complaint(&mut ping(&format!("{target}?ssl-mode=REQUIRED")));
        assert!(kind == Kind::Mysql56 || tls.contains("has no TLS"), "{tls}");

        let address = format!("127.0.0.1:{port}");
        // To be refused is an answer, each time.
        for _ in 0..3 {
            let ready = onetrip().args(["ready", &address, "--mysql"]).output().unwrap();
            assert!(ready.status.success(), "{}", said(&ready));
        }
        let text = onetrip().args(["ping", "-n", "3", &target]).env("MYSQL_PWD", "onetrip-secret").output();
        let text = String::from_utf8(text.unwrap().stdout).unwrap();
        let greeting = text.lines().find(|line| line.starts_with("  greeting ")).unwrap_or_default();
        assert_eq!(greeting.split_whitespace().nth(1), Some("1"), "{text}");
        assert!(text.contains("SELECT 1, 3 times in "), "{text}");
        assert!(text.contains("Trips of MySQL are not split"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}

#[test]
fn tls_costs_its_trips_and_checks_what_it_is_told_to_check() {
    let directory = std::env::temp_dir().join(format!("onetrip-mysql-ping-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let made = Certificate::make(&directory);
    let ([shown, key], certificate) = (made.options(), made.file);
    let server = MysqlServer::start(Kind::MariaDb, &[&shown, &key]);
    let port = server.at.port;
    let target = |more: &str| format!("mysql://onetrip:onetrip-secret@localhost:{port}/onetrip{more}");
    let expected = [("tcp_connect", 1), ("greeting", 1), ("tls_handshake", 1), ("login", 1)];
    for more in ["", "?ssl-mode=REQUIRED", &format!("?ssl-mode=VERIFY_IDENTITY&ssl-ca={certificate}")] {
        let told = report(&mut ping(&target(more)));
        assert_eq!((opening(&told), &told["tls"]), (named(&expected), &"1.3".into()), "{more}");
    }
    let plain = report(&mut ping(&target("?ssl-mode=DISABLED")));
    assert_eq!((&plain["tls"], &plain["opening"]["trips"]), (&Value::Null, &3.into()));
    let unknown = complaint(&mut ping(&target("?ssl-mode=VERIFY_CA")));
    assert!(unknown.contains("certificate"), "{unknown}");
    std::fs::remove_dir_all(&directory).unwrap();
}

/// Something that greets every connection with these words.
fn stranger(words: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = stream.unwrap().write_all(words);
        }
    });
    port
}

#[test]
fn what_is_not_mysql_is_recognised() {
    let ssh = stranger(b"SSH-2.0-OpenSSH_9.2\r\n\x1a\0\0\0\x09abcdefghijklmnopqrstuvwxyz");
    let is_none = complaint(&mut ping(&format!("mysql://ann:pw@127.0.0.1:{ssh}/shop")));
    assert!(is_none.contains("MySQL"), "{is_none}");
    let full = stranger(b"\x17\0\0\0\xff\x10\x04Too many connections");
    let refused = complaint(&mut ping(&format!("mysql://ann:pw@127.0.0.1:{full}/shop")));
    assert!(refused.contains("Too many connections") && refused.contains("max_connections"), "{refused}");
    let refused = complaint(onetrip().args(["ready", &format!("127.0.0.1:{full}"), "--mysql"]));
    assert!(refused.contains("refuses: Too many connections"), "{refused}");
    let closes = complaint(&mut ping(&format!("mysql://ann:pw@127.0.0.1:{}/shop", stranger(b""))));
    assert!(closes.contains("closed the connection without an answer"), "{closes}");
}
