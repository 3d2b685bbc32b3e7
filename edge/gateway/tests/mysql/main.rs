//! MySQL and MariaDB through the gateway, with real servers: every byte is the same on both of its sides, trips are those
//! that turn-taking shows, and what is counted is what was sent.

mod counts;
mod drivers;
mod generated;
mod peers;
mod raw;
mod sha2;
mod tap;
mod tls;

use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use onetrip_gateway::{Gateway, GatewayConfig, ListenAddress};
use onetrip_ledger::{Mutes, Summary};
use onetrip_mysqlserver::{Address, Kind, MysqlServer, repository};
use onetrip_target::{Conninfo, Environment};

const KINDS: [Kind; 2] = [Kind::MariaDb, Kind::Mysql56];

/// A server that lets everybody in.
fn open_server(kind: Kind) -> &'static MysqlServer {
    static MARIADB: OnceLock<MysqlServer> = OnceLock::new();
    static MYSQL: OnceLock<MysqlServer> = OnceLock::new();
    let server = if kind == Kind::MariaDb { &MARIADB } else { &MYSQL };
    server.get_or_init(|| MysqlServer::start(kind, &["--skip-grant-tables"]))
}

/// A server with a password.
fn closed_server() -> &'static MysqlServer {
    static SERVER: OnceLock<MysqlServer> = OnceLock::new();
    SERVER.get_or_init(|| MysqlServer::start(Kind::MariaDb, &[]))
}

/// A gateway before a port of this machine.
struct Watching {
    gateway: Gateway,
    port: u16,
}

impl Watching {
    fn start(server_port: u16) -> Self {
        Self::before(&format!("mysql://127.0.0.1:{server_port}"))
    }

    fn before(upstream: &str) -> Self {
        let upstream = Conninfo::parse(upstream, &Environment::default()).expect("settings");
        let config = GatewayConfig { spin: Duration::ZERO, ..GatewayConfig::new(upstream) };
        let gateway = Gateway::start(config).expect("the gateway starts");
        let ListenAddress::Tcp(address) = *gateway.address() else { panic!("it listens at a port") };
        Self { gateway, port: address.port() }
    }

    /// What it has seen, once all connections have ended.
    fn summary(self) -> Summary {
        let patience = std::time::Instant::now();
        while self.gateway.open_connections() > 0 && patience.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.gateway.stop().analyzer.finish(&Mutes::default()).summary
    }
}

/// Runs a program of `programs.py` against a port.
fn python(name: &str, at: &Address, port: u16, options: &[&str]) -> Output {
    let Address { host, user, password, database, .. } = at;
    let mut command = Command::new(repository().join(".venv/bin/python"));
    command.arg(repository().join("edge/gateway/tests/mysql/programs.py"));
    command.args([name, host, &port.to_string(), user, password, database]).args(options);
    command.output().expect("python runs; `scripts/setup test` installs it")
}

/// Tests that change a server's tables, one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
