//! The installed MariaDB, and sessions that run statements on it, prepared ones and texts. It runs without tables of grants,
//! so it asks for no password.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use mysql::prelude::{Protocol, Queryable};
use mysql::{Conn, OptsBuilder, Params, QueryResult, Row, Statement, Value};
use onetrip_target::{Conninfo, Environment};
use tempfile::TempDir;

use super::Plays;
use crate::LabError;
use crate::client::Answer;
use crate::database::process::{command, free_port, own_directory};
use crate::plan::{Act, Kind, Parameter, Plan, Request};
use crate::workload::Sum;

const PROGRAMS: [&str; 3] = ["/usr/sbin/mariadbd", "/usr/bin/mariadbd", "/usr/libexec/mariadbd"];
const USER: &str = "root";
const DATABASE: &str = "lab";
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
    /// The plan's statements that were run with values of their own.
    prepared: Vec<Option<Statement>>,
    /// Rows that the plan keeps.
    kept: Vec<Row>,
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

    /// Makes tables.
    pub(super) fn set_up(&self, statements: &[String]) -> Result<(), LabError> {
        let mut player = Player::connect(self.address)?;
        statements
            .iter()
            .try_for_each(|text| player.connection.query_drop(text).map_err(|error| failed(&error)))
    }

    /// The number that a statement gives.
    pub(super) fn ask(&self, statement: &str) -> Result<i64, LabError> {
        let mut player = Player::connect(self.address)?;
        let found = player.connection.query_first(statement).map_err(|error| failed(&error))?;
        found.ok_or_else(|| failed(&"a question without an answer"))
    }

    /// Where a gateway reaches it.
    pub(super) fn conninfo(&self) -> Result<Conninfo, LabError> {
        let url = format!("mysql://{USER}@{}/{DATABASE}?ssl-mode=DISABLED", self.address);
        Conninfo::parse(&url, &Environment::default()).map_err(|error| failed(&error))
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
            match Player::open(self.address, None) {
                Ok(mut player) => return player.begin(),
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
        Self::open(address, Some(DATABASE))
    }

    fn open(address: SocketAddr, database: Option<&str>) -> Result<Self, LabError> {
        // What is known need not be asked for, and a socket of the same machine would leave the simulated path out.
        let options = OptsBuilder::new()
            .ip_or_hostname(Some(address.ip().to_string()))
            .tcp_port(address.port())
            .user(Some(USER))
            .db_name(database)
            .prefer_socket(false)
            .max_allowed_packet(Some(PACKET_MAX))
            .read_timeout(Some(SILENCE_MAX));
        let connection = Conn::new(options).map_err(|error| failed(&error))?;
        Ok(Self { connection, prepared: Vec::new(), kept: Vec::new() })
    }

    /// Makes the database, and returns the server's version.
    fn begin(&mut self) -> Result<String, LabError> {
        let connection = &mut self.connection;
        connection.query_drop(format!("CREATE DATABASE {DATABASE}")).map_err(|error| failed(&error))?;
        let version = connection.query_first("SELECT version()").map_err(|error| failed(&error))?;
        version.ok_or_else(|| failed(&"it does not say its version"))
    }

    /// Runs a request, for one of the kept rows if it has a place.
    fn run(
        &mut self,
        plan: &Plan,
        request: &Request,
        place: Option<usize>,
        answer: &mut Answer,
    ) -> Result<(), LabError> {
        answer.flights += 1;
        let mut kept = Vec::new();
        let Self { connection, prepared, kept: rows, .. } = self;
        match &request.kind {
            Kind::Query(text) => {
                read(
                    connection.query_iter(text).map_err(|error| failed(&error))?,
                    request,
                    answer,
                    &mut kept,
                )?;
            }
            Kind::Execute { statement, parameters, .. } => {
                let text = &plan.statements[*statement];
                if let [Parameter::Kept(column)] = parameters.as_slice() {
                    let text = text.replacen('?', &listed(rows, *column)?, 1);
                    let result = connection.query_iter(text).map_err(|error| failed(&error))?;
                    read(result, request, answer, &mut kept)?;
                } else {
                    let known =
                        prepared.get_mut(*statement).ok_or_else(|| failed(&"an unknown statement"))?;
                    let statement = match known {
                        Some(statement) => &*statement,
                        None => &*known.insert(connection.prep(text).map_err(|error| failed(&error))?),
                    };
                    let values = parameters.iter().map(|parameter| value_of(parameter, rows, place));
                    let values = values.collect::<Result<Vec<_>, _>>()?;
                    let values = if values.is_empty() { Params::Empty } else { Params::Positional(values) };
                    let result = connection.exec_iter(statement, values).map_err(|error| failed(&error))?;
                    read(result, request, answer, &mut kept)?;
                }
            }
        }
        if request.keep {
            self.kept = kept;
        }
        Ok(())
    }
}

/// Reads all rows of a result, and keeps them if that is asked for.
fn read<P: Protocol>(
    result: QueryResult<'_, '_, '_, P>,
    request: &Request,
    answer: &mut Answer,
    kept: &mut Vec<Row>,
) -> Result<(), LabError> {
    for row in result {
        let row = row.map_err(|error| failed(&error))?;
        answer.rows += 1;
        let last = row.len().checked_sub(1).and_then(|last| row.as_ref(last));
        answer.sum += request.sum.map_or(0, |sum| number_of(sum, last));
        if request.keep {
            kept.push(row);
        }
    }
    Ok(())
}

/// A parameter's value.
fn value_of(parameter: &Parameter, rows: &[Row], place: Option<usize>) -> Result<Value, LabError> {
    match (parameter, place) {
        (Parameter::Fixed(text), _) => Ok(Value::Bytes(text.as_bytes().to_vec())),
        (Parameter::Column(column), Some(place)) => {
            let value = rows.get(place).and_then(|row| row.as_ref(*column));
            value.cloned().ok_or_else(|| failed(&"a row without that column"))
        }
        _ => Err(failed(&"such a value cannot be had here")),
    }
}

/// A column of the kept rows, as a list of whole numbers for IN.
fn listed(rows: &[Row], column: usize) -> Result<String, LabError> {
    let number = |row: &Row| row.as_ref(column).and_then(number_in).map(|number| number.to_string());
    let numbers = rows.iter().map(number).collect::<Option<Vec<_>>>();
    numbers.map(|numbers| numbers.join(",")).ok_or_else(|| failed(&"only whole numbers can be listed"))
}

fn number_in(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        Value::UInt(number) => i64::try_from(*number).ok(),
        Value::Bytes(digits) => std::str::from_utf8(digits).ok()?.parse().ok(),
        _ => None,
    }
}

/// A whole number, or the length of a string.
fn number_of(sum: Sum, value: Option<&Value>) -> i64 {
    match (sum, value) {
        (Sum::Length, Some(Value::Bytes(bytes))) => bytes.len() as i64,
        (Sum::Number, Some(value)) => number_in(value).unwrap_or(0),
        _ => 0,
    }
}

impl Plays for Player {
    fn play(&mut self, plan: &Plan) -> Result<Answer, LabError> {
        let mut answer = Answer::default();
        self.prepared.resize_with(plan.statements.len(), || None);
        for act in &plan.acts {
            match act {
                Act::Flight(requests) => {
                    let [request] = requests.as_slice() else {
                        return Err(failed(&"clients send one by one"));
                    };
                    self.run(plan, request, None, &mut answer)?;
                }
                Act::ForEach { request, rows_max, per_trip: 1 } => {
                    for place in 0..self.kept.len().min(*rows_max) {
                        self.run(plan, request, Some(place), &mut answer)?;
                    }
                }
                Act::ForEach { .. } | Act::Fetch(_) | Act::Exchange { .. } => {
                    return Err(failed(&"that cannot be had here"));
                }
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
        assert_eq!(number_of(Sum::Number, Some(&Value::Bytes(b"-7".to_vec()))), -7);
        assert_eq!(number_of(Sum::Length, Some(&Value::Bytes(b"abc".to_vec()))), 3);
        assert_eq!(number_of(Sum::Length, None), 0);
    }
}
