//! The installed MariaDB, and a client that runs prepared statements on it.
//!
//! The protocol is MySQL's: packets of a length (three bytes), a number and a body; `HandshakeV10`, `HandshakeResponse41`,
//! `COM_STMT_PREPARE` and `COM_STMT_EXECUTE` with binary rows (MariaDB Knowledge Base, "Client/Server Protocol"). Without
//! tables of grants no password is asked for.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

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
/// Longest packet that a client takes.
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

const COM_QUIT: u8 = 0x01;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;
const OK: u8 = 0x00;
const END: u8 = 0xfe;
/// LONG_PASSWORD, PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH, DEPRECATE_EOF.
const CAPABILITIES: u32 = 0x1 | 0x200 | 0x8000 | 0x8_0000 | 0x100_0000;
const UTF8MB4: u8 = 45;

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
    stream: TcpStream,
    version: String,
    output: Vec<u8>,
    input: Vec<u8>,
    read: usize,
    filled: usize,
    /// Numbers of the plan's statements.
    prepared: Vec<u32>,
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
                Ok(player) => return Ok(player.version.clone()),
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
        let stream = TcpStream::connect(address).map_err(LabError::Connection)?;
        stream.set_nodelay(true).map_err(LabError::Connection)?;
        stream.set_read_timeout(Some(SILENCE_MAX)).map_err(LabError::Connection)?;
        let (output, input) = (Vec::new(), vec![0; 16 << 10]);
        let mut player =
            Self { stream, version: String::new(), output, input, read: 0, filled: 0, prepared: Vec::new() };
        player.log_in()?;
        Ok(player)
    }

    fn log_in(&mut self) -> Result<(), LabError> {
        let hello = self.packet()?;
        let text = hello.get(1..).unwrap_or_default().split(|byte| *byte == 0).next().unwrap_or_default();
        let version = String::from_utf8_lossy(text).into_owned();
        // MariaDB says 5.5.5 first, for clients that know no other.
        self.version = version.strip_prefix("5.5.5-").unwrap_or(&version).to_owned();
        self.output.extend_from_slice(&[0; 4]);
        self.output.extend_from_slice(&CAPABILITIES.to_le_bytes());
        self.output.extend_from_slice(&(PACKET_MAX as u32).to_le_bytes());
        self.output.push(UTF8MB4);
        self.output.extend_from_slice(&[0; 23]);
        self.output.extend_from_slice(b"root\0\0mysql_native_password\0");
        self.send(1)?;
        match self.packet()?.first() {
            Some(&OK) => Ok(()),
            _ => Err(failed(&"it refuses the login")),
        }
    }

    fn prepare(&mut self, text: &str) -> Result<u32, LabError> {
        self.output.extend_from_slice(&[0, 0, 0, 0, COM_STMT_PREPARE]);
        self.output.extend_from_slice(text.as_bytes());
        self.send(0)?;
        let reply = self.packet()?;
        let (Some(&OK), Some(number), Some(&[columns, 0, 0, 0])) =
            (reply.first(), reply.get(1..5), reply.get(5..9))
        else {
            return Err(failed(&format!("it refuses {text:?}: {}", String::from_utf8_lossy(&reply))));
        };
        let number = number.try_into().map(u32::from_le_bytes).unwrap_or_default();
        for _ in 0..columns {
            self.packet()?;
        }
        Ok(number)
    }

    fn execute(&mut self, statement: u32, request: &Request, answer: &mut Answer) -> Result<(), LabError> {
        self.output.extend_from_slice(&[0, 0, 0, 0, COM_STMT_EXECUTE]);
        self.output.extend_from_slice(&statement.to_le_bytes());
        self.output.extend_from_slice(&[0, 1, 0, 0, 0]);
        self.send(0)?;
        answer.flights += 1;
        let unexpected = || failed(&"it answers an execution with something else than a column");
        if self.next()?.as_slice(&self.input) != [1] {
            return Err(unexpected());
        }
        self.next()?;
        loop {
            let packet = self.next()?;
            match packet.as_slice(&self.input) {
                // A row: its head, a bitmap of a byte, a value.
                [OK, _, value @ ..] => {
                    answer.rows += 1;
                    answer.sum += request.sum.map_or(0, |sum| number_of(sum, value));
                }
                [END, ..] => return Ok(()),
                _ => return Err(unexpected()),
            }
        }
    }

    fn send(&mut self, number: u8) -> Result<(), LabError> {
        let length = (self.output.len() - 4) as u32;
        self.output[..3].copy_from_slice(&length.to_le_bytes()[..3]);
        self.output[3] = number;
        self.stream.write_all(&self.output).map_err(LabError::Connection)?;
        self.output.clear();
        Ok(())
    }

    fn packet(&mut self) -> Result<Vec<u8>, LabError> {
        let packet = self.next()?;
        Ok(packet.as_slice(&self.input).to_vec())
    }

    /// Where the next packet's body is, all of which has been received. It stays there until the next call.
    fn next(&mut self) -> Result<Place, LabError> {
        loop {
            if let [a, b, c, _, ..] = self.input[self.read..self.filled] {
                let length = u32::from_le_bytes([a, b, c, 0]) as usize;
                if length > PACKET_MAX {
                    return Err(failed(&"a packet is too long"));
                }
                let (start, end) = (self.read + 4, self.read + 4 + length);
                if end <= self.filled {
                    self.read = end;
                    return Ok(Place { start, end });
                }
                self.make_room(4 + length);
            } else {
                self.make_room(4);
            }
            let bytes = self.stream.read(&mut self.input[self.filled..]).map_err(LabError::Connection)?;
            if bytes == 0 {
                return Err(LabError::Connection(io::ErrorKind::UnexpectedEof.into()));
            }
            self.filled += bytes;
        }
    }

    fn make_room(&mut self, frame: usize) {
        self.input.copy_within(self.read..self.filled, 0);
        self.filled -= self.read;
        self.read = 0;
        if self.input.len() < frame {
            self.input.resize(frame, 0);
        }
    }
}

/// A packet's body in the input.
#[derive(Debug, Clone, Copy)]
struct Place {
    start: usize,
    end: usize,
}

impl Place {
    fn as_slice(self, input: &[u8]) -> &[u8] {
        &input[self.start..self.end]
    }
}

/// A whole number in its binary form, or the length of a string of fewer than 251 bytes.
fn number_of(sum: Sum, value: &[u8]) -> i64 {
    match sum {
        Sum::Length => value.first().map_or(0, |length| i64::from(*length)),
        Sum::Number => value.iter().rev().fold(0, |number, byte| number << 8 | i64::from(*byte)),
    }
}

impl Plays for Player {
    fn play(&mut self, plan: &Plan) -> Result<Answer, LabError> {
        let mut answer = Answer::default();
        for text in plan.statements.iter().skip(self.prepared.len()) {
            let number = self.prepare(text)?;
            self.prepared.push(number);
        }
        for act in &plan.acts {
            let Act::Flight(requests) = act else { return Err(failed(&"only executions can be had here")) };
            for request in requests {
                let Kind::Execute { statement, .. } = request.kind else {
                    return Err(failed(&"only executions can be had here"));
                };
                self.execute(self.prepared[statement], request, &mut answer)?;
            }
        }
        Ok(answer)
    }

    fn memory_max(&self) -> usize {
        self.input.len() + self.output.capacity()
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        // The session is over in either case.
        let _ = self.stream.write_all(&[1, 0, 0, 0, COM_QUIT]);
    }
}

fn failed(reason: &dyn std::fmt::Display) -> LabError {
    LabError::Database(format!("mariadb: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_values_are_numbers_of_any_width_and_strings_with_their_length() {
        assert_eq!(number_of(Sum::Number, &[1]), 1);
        assert_eq!(number_of(Sum::Number, &[1, 2, 0, 0]), 513);
        assert_eq!(number_of(Sum::Length, b"\x03abc"), 3);
    }
}
