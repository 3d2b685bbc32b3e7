//! The installed MariaDB, and sessions that run prepared statements on it. It runs without tables of grants, so it
//! asks for no password.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Statement, Value};
use tempfile::TempDir;

use super::Plays;
use crate::LabError;
use crate::client::Answer;
use crate::database::process::{command, free_port, own_directory};
use crate::plan::{Act, Kind, Plan, Request};
use crate::workload::Sum;

const PROGRAMS: [&str; 3] = ["/usr/sbin/mariadbd", "/usr/bin/mariadbd", "/usr/libexec/mariadbd"];
/// Longest wait for the server to accept sessions.
const START_MAX: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);
/// Longest packet that a client sends.
const PACKET_MAX: usize = 1 << 20;
/// Longest silence of the server.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// An empty data directory is enough where nobody is asked for grants.
const OPTIONS: [&str; 8] = [
    "--skip-grant-tables",
    "--skip-networking=0",
    "--bind-address=127.0.0.1",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-log-file-size=4M",
    "--innodb-buffer-pool-size=32M",
    "--max-connections=200",
    "--skip-log-bin",
];

/// A running server.
#[derive(Debug)]
pub(in crate::run) struct Server {
    process: Child,
    address: SocketAddr,
    version: String,
    _directory: TempDir,
}

/// A session.
#[derive(Debug)]
pub(super) struct Player {
    connection: Conn,
    /// The plan's statements.
    prepared: Vec<Statement>,
}

impl Server {
    /// Starts it, or says why it is not there.
    pub(super) fn start() -> Result<Result<Self, String>, LabError> {
        let Some(program) = PROGRAMS.iter().map(PathBuf::from).find(|program| program.exists()) else {
            return Ok(Err("mariadb is not installed".to_owned()));
        };
        let (directory, account) = own_directory()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let mut mariadbd = command("KILL", account.as_deref(), &program, directory.path());
        mariadbd.arg("--no-defaults").args(OPTIONS);
        mariadbd.arg(format!("--datadir={}", directory.path().display()));
        // Servers that share one remove each other's temporary tables.
        mariadbd.arg(format!("--tmpdir={}", directory.path().display()));
        mariadbd.arg(format!("--socket={}", directory.path().join("socket").display()));
        mariadbd.arg(format!("--port={}", address.port()));
        let log = std::fs::File::create(directory.path().join("log")).map_err(|error| failed(&error))?;
        mariadbd.stdout(Stdio::null()).stderr(log);
        let process = mariadbd.spawn().map_err(|error| failed(&error))?;
        let mut server = Self { process, address, version: String::new(), _directory: directory };
        server.version = server.wait_until_ready()?;
        Ok(Ok(server))
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    pub(super) fn process(&self) -> u32 {
        self.process.id()
    }

    fn wait_until_ready(&mut self) -> Result<String, LabError> {
        let began = Instant::now();
        loop {
            let ended = self.process.try_wait().map_err(|error| failed(&error))?;
            match Player::connect(self.address) {
                Ok(mut player) => return player.version(),
                Err(error) if ended.is_some() || began.elapsed() > START_MAX => return Err(error),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its data go with its directory. Both fail when it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Player {
    pub(super) fn connect(address: SocketAddr) -> Result<Self, LabError> {
        // What is known need not be asked for, and a socket of the same machine would leave the simulated path out.
        let options = OptsBuilder::new()
            .ip_or_hostname(Some(address.ip().to_string()))
            .tcp_port(address.port())
            .user(Some("root"))
            .prefer_socket(false)
            .max_allowed_packet(Some(PACKET_MAX))
            .read_timeout(Some(SILENCE_MAX));
        let connection = Conn::new(options).map_err(|error| failed(&error))?;
        Ok(Self { connection, prepared: Vec::new() })
    }

    fn version(&mut self) -> Result<String, LabError> {
        let version = self.connection.query_first("SELECT version()").map_err(|error| failed(&error))?;
        version.ok_or_else(|| failed(&"it does not say its version"))
    }

    fn execute(&mut self, statement: usize, request: &Request, answer: &mut Answer) -> Result<(), LabError> {
        answer.flights += 1;
        let rows = self.connection.exec_iter(&self.prepared[statement], ());
        for row in rows.map_err(|error| failed(&error))? {
            let row = row.map_err(|error| failed(&error))?;
            answer.rows += 1;
            answer.sum += request.sum.map_or(0, |sum| number_of(sum, row.as_ref(0)));
        }
        Ok(())
    }
}

/// A whole number, or the length of a string.
fn number_of(sum: Sum, value: Option<&Value>) -> i64 {
    match (sum, value) {
        (Sum::Length, Some(Value::Bytes(bytes))) => bytes.len() as i64,
        (Sum::Number, Some(Value::Int(number))) => *number,
        (Sum::Number, Some(Value::UInt(number))) => i64::try_from(*number).unwrap_or(i64::MAX),
        _ => 0,
    }
}

impl Plays for Player {
    fn play(&mut self, plan: &Plan) -> Result<Answer, LabError> {
        let mut answer = Answer::default();
        for text in plan.statements.iter().skip(self.prepared.len()) {
            self.prepared.push(self.connection.prep(text).map_err(|error| failed(&error))?);
        }
        for act in &plan.acts {
            let Act::Flight(requests) = act else { return Err(failed(&"only executions can be had here")) };
            for request in requests {
                let Kind::Execute { statement, .. } = request.kind else {
                    return Err(failed(&"only executions can be had here"));
                };
                self.execute(statement, request, &mut answer)?;
            }
        }
        Ok(answer)
    }

    fn memory_max(&self) -> usize {
        0
    }
}

fn failed(reason: &dyn std::fmt::Display) -> LabError {
    LabError::Database(format!("mariadb: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_whole_numbers_or_lengths() {
        assert_eq!(number_of(Sum::Number, Some(&Value::Int(-1))), -1);
        assert_eq!(number_of(Sum::Number, Some(&Value::UInt(513))), 513);
        assert_eq!(number_of(Sum::Length, Some(&Value::Bytes(b"abc".to_vec()))), 3);
        assert_eq!(number_of(Sum::Length, None), 0);
    }
}
