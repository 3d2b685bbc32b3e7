//! The dialogue against real servers: what drivers say to MariaDB and to MySQL 5.6 is understood to the last
//! packet, and round trips are those that turn-taking shows.

mod recording;
mod relay;

use std::path::PathBuf;
use std::process::Command;

use onetrip_mysqlserver::{Address, Kind, MysqlServer, repository};
use relay::Relay;

/// Lets a program speak with the server through the relay, and holds the dialogue against what the program saw.
fn check_program(at: &Address, name: &str, make: impl FnOnce(u16) -> Command) {
    let relay = Relay::start(at.port, 1);
    let output =
        make(relay.port).output().expect("the program starts; `scripts/setup test` installs drivers");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {error}");
    let seen: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it prints what it saw");
    for recording in relay.recordings() {
        let understood = recording.check();
        assert_eq!(Some(understood.rows_of("/*act*/")), seen["rows"].as_u64(), "{name}: rows");
        assert_eq!(Some(understood.errors_of("/*act*/")), seen["errors"].as_u64(), "{name}: errors");
        println!("{name}: {} trips, {} commands", understood.trips, understood.codes.len());
    }
}

fn script(name: &str) -> PathBuf {
    repository().join("core/wire/tests/mysql_servers").join(name)
}

fn check_drivers(kind: Kind) {
    let server = MysqlServer::start(kind, &[]);
    let Address { host, user, password, database, .. } = &server.at;
    for driver in ["pymysql", "connector", "connector-compressed"] {
        let directory =
            std::env::temp_dir().join(format!("onetrip-acts-{}-{kind:?}-{driver}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        check_program(&server.at, &format!("{kind:?} {driver}"), |port| {
            let mut python = Command::new(repository().join(".venv/bin/python"));
            python.arg(script("acts.py")).args([driver, host, &port.to_string(), user, password, database]);
            python.arg(&directory);
            python
        });
        std::fs::remove_dir_all(&directory).expect("it is ours");
    }
    check_program(&server.at, &format!("{kind:?} mysql2"), |port| {
        let mut node = Command::new("node");
        node.arg(script("acts.mjs")).arg(repository().join("clients/node"));
        node.args([host, &port.to_string(), user, password, database]);
        // mysql2 sends MySQL 5.6 no password the second time.
        node.args((kind == Kind::MariaDb).then_some("again"));
        node
    });
}

#[test]
fn what_drivers_say_to_mariadb_is_understood() {
    check_drivers(Kind::MariaDb);
}

#[test]
fn what_drivers_say_to_mysql_is_understood() {
    check_drivers(Kind::Mysql56);
}
