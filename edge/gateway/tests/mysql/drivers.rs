//! Programs of real drivers: their bytes are the same on both sides of the gateway, their trips are counted exactly, and
//! their loops are found.

use std::process::Command;

use onetrip_ledger::{Code, Obstacle, Summary};
use onetrip_mysqlserver::{Address, Kind, MysqlServer, repository};

use crate::tap::{From, Tap};
use crate::{Watching, alone, closed_server, python};

/// Runs a program through a gateway with a tap on either side, and holds them against each other.
fn check_program(
    at: &Address,
    name: &str,
    is_compressed: bool,
    make: impl FnOnce(u16) -> Command,
) -> Summary {
    let behind = Tap::start(at.port);
    let gateway = Watching::start(behind.port);
    let before = Tap::start(gateway.port);
    let output =
        make(before.port).output().expect("the program starts; `scripts/setup test` installs drivers");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    let summary = gateway.summary();
    let (before, behind) = (before.tapes(), behind.tapes());
    assert_eq!(before.len(), behind.len(), "{name}: connections");
    let (mut turns, mut bytes) = (0, 0);
    for (one, other) in before.iter().zip(&behind) {
        for from in [From::Client, From::Server] {
            assert!(one.bytes_of(from) == other.bytes_of(from), "{name}: bytes of the {from:?} differ");
            bytes += one.bytes_of(from).len() as u64;
        }
        turns += other.turns();
    }
    assert!(!summary.gaps.has_loss() && summary.undecoded == 0, "{name}: all is understood");
    assert_eq!(summary.connections, before.len() as u64, "{name}");
    // The greeting comes without a turn of the client's.
    assert_eq!(summary.trips.total, turns + summary.connections, "{name}: trips");
    let counted = summary.bytes_sent + summary.bytes_received;
    // COM_QUIT is nobody's, five bytes of each connection.
    let unbooked = bytes.saturating_sub(counted);
    assert!(is_compressed || unbooked <= 5 * summary.connections, "{name}: {unbooked} bytes of {bytes}");
    println!("{name}: {} trips, {bytes} bytes", summary.trips.total);
    summary
}

/// The programs that the dialogue is tested with.
fn check_acts(kind: Kind, drivers: &[&str]) {
    let _alone = alone();
    let server = match kind {
        Kind::MariaDb => closed_server(),
        Kind::Mysql56 => &MysqlServer::start(kind, &[]),
    };
    let Address { host, user, password, database, .. } = &server.at;
    let script = |name: &str| repository().join("core/wire/tests/mysql_servers").join(name);
    for driver in drivers {
        let directory = std::env::temp_dir().join(format!("onetrip-gateway-{}-{driver}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let is_compressed = driver.ends_with("compressed");
        let summary = check_program(&server.at, &format!("{kind:?} {driver}"), is_compressed, |port| {
            let port = port.to_string();
            if *driver == "mysql2" {
                let mut node = Command::new("node");
                node.arg(script("acts.mjs")).arg(repository().join("clients/node"));
                node.args([host, &port, user, password, database]);
                // mysql2 sends MySQL 5.6 no password the second time.
                node.args((kind == Kind::MariaDb).then_some("again"));
                return node;
            }
            let mut program = Command::new(repository().join(".venv/bin/python"));
            program
                .arg(script("acts.py"))
                .arg(driver)
                .args([host, &port, user, password, database])
                .arg(&directory);
            program
        });
        assert!(summary.statements > 20, "{}", summary.statements);
        let known = match *driver {
            "pymysql" => "pymysql",
            "mysql2" => "mysql2-node",
            _ => "mysql-connector",
        };
        assert!(summary.drivers.keys().all(|driver| driver.key() == known), "{:?}", summary.drivers);
        std::fs::remove_dir_all(&directory).expect("it is ours");
    }
}

#[test]
fn bytes_and_trips_of_drivers_are_the_same_before_mariadb() {
    check_acts(Kind::MariaDb, &["pymysql", "connector", "connector-compressed", "mysql2"]);
}

#[test]
fn bytes_and_trips_of_drivers_are_the_same_before_mysql() {
    check_acts(Kind::Mysql56, &["pymysql", "connector", "connector-compressed", "mysql2"]);
}

/// A program of `programs.py`, on tables of its own.
fn watched(name: &str) -> Summary {
    let _alone = alone();
    let at = &closed_server().at;
    let made = python("schema", at, at.port, &[]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let gateway = Watching::start(at.port);
    let output = python(name, at, gateway.port, &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    gateway.summary()
}

#[test]
fn pymysql_connects_by_the_trips_that_are_known_of_it() {
    let summary = watched("connect");
    // The greeting and the login; then SET NAMES and SET autocommit.
    assert_eq!((summary.trips.connect, summary.trips.work(), summary.statements), (2, 2, 2));
    assert!(summary.findings.is_empty(), "{:?}", summary.findings);
}

#[test]
fn a_loop_is_found_and_its_join_is_not() {
    let summary = watched("loop");
    let [finding] = summary.findings.as_slice() else { panic!("{:?}", summary.findings) };
    assert_eq!((finding.code, finding.trips, finding.avoidable), (Code::Loop, 40, 39));
    assert_eq!(finding.statements[0], "SELECT `what` FROM `order_lines` WHERE `order_id` = $1");
    assert!(finding.left.contains_key(&Obstacle::WatchedOnly));
    assert_eq!((finding.driver.key(), summary.drivers.len()), ("pymysql", 1));
    assert!(finding.fix.contains("WHERE id IN %s"), "{}", finding.fix);
    assert_eq!(summary.trips.work(), 2 + 1 + 40);
    let summary = watched("joined");
    assert!(summary.findings.is_empty(), "{:?}", summary.findings);
}

#[test]
fn rows_written_one_by_one_are_found_and_a_batch_is_not() {
    let summary = watched("row_by_row");
    let finding = summary.findings.iter().find(|finding| finding.code == Code::RowByRow);
    let finding = finding.unwrap_or_else(|| panic!("{:?}", summary.findings));
    assert_eq!((finding.trips, finding.avoidable), (30, 29));
    let summary = watched("at_once");
    assert!(summary.findings.iter().all(|finding| finding.code != Code::RowByRow), "{:?}", summary.findings);
}
