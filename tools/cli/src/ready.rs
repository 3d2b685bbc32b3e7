use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::examples;
use crate::exit::ExitCode;
use crate::mysql::{Applicant, Login, LoginError, Turn};
use crate::values::{duration, socket_address};

/// CancelRequest for process 0, which no server has: it is read, and the connection closed, without a session.
const CANCEL_NOBODY: [u8; 16] = [0, 0, 0, 16, 0x04, 0xd2, 0x16, 0x2e, 0, 0, 0, 0, 0, 0, 0, 0];
/// A user that no MySQL server has. A connection that ends before its login counts against `max_connect_errors`, and one
/// that is refused does not.
const NOBODY: &str = "onetrip-ready";
const READ_BYTES: usize = 4096;

#[derive(Debug, Args)]
#[command(before_help = examples::READY, after_help = "\
Opens no session and is not counted as a trip. For the health checks of containers and services.

With --mysql, it logs in as a user that does not exist: if the server refuses this user, it answers. Connections that end \
before the login would look like an attack to the server. A gateway counts that connection.")]
pub(crate) struct ReadyOptions {
    /// Where it listens
    #[arg(value_name = "HOST:PORT", default_value = "127.0.0.1:6432", value_parser = socket_address)]
    address: SocketAddr,
    /// A gateway for MySQL, or a MySQL or MariaDB server listens there
    #[arg(long)]
    mysql: bool,
    /// How long to wait
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = duration)]
    timeout: Duration,
}

/// `onetrip ready`.
pub(crate) fn ready(options: &ReadyOptions) -> Result<ExitCode> {
    let ReadyOptions { address, mysql, timeout } = *options;
    if timeout.is_zero() {
        bail!("--timeout must be more than nothing");
    }
    let failed = || format!("{address} does not answer");
    let mut stream = TcpStream::connect_timeout(&address, timeout).with_context(failed)?;
    stream.set_read_timeout(Some(timeout)).with_context(failed)?;
    if mysql {
        return match greet(&mut stream) {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(NotReady::Io(error)) => Err(in_time(error, timeout)).with_context(failed),
            Err(NotReady::Refused(error)) => bail!("{address} refuses: {error}"),
            Err(NotReady::Other(error)) => bail!("{address} is not a MySQL or MariaDB server: {error}"),
        };
    }
    stream.write_all(&CANCEL_NOBODY).with_context(failed)?;
    match stream.read(&mut [0; 1]) {
        Ok(0) => Ok(ExitCode::SUCCESS),
        Ok(_) => bail!(
            "{address} is not a PostgreSQL server: it answers a cancel request. Use --mysql if it is MySQL's or MariaDB's"
        ),
        Err(error) => Err(in_time(error, timeout)).with_context(failed),
    }
}

/// The system's words for a time that is over say nothing of it.
fn in_time(error: io::Error, timeout: Duration) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            let seconds = timeout.as_secs_f64();
            io::Error::new(io::ErrorKind::TimedOut, format!("nothing came within {seconds} s"))
        }
        _ => error,
    }
}

/// Why it is not ready.
enum NotReady {
    Io(io::Error),
    /// It said so in place of a greeting.
    Refused(LoginError),
    Other(LoginError),
}

/// Takes the greeting of a MySQL server, and has it refuse a login.
fn greet(stream: &mut TcpStream) -> Result<(), NotReady> {
    let mut login = Login::new(Applicant { user: NOBODY.into(), ..Applicant::default() });
    let mut input = [0; READ_BYTES];
    loop {
        let bytes = match stream.read(&mut input).map_err(NotReady::Io)? {
            0 => return Err(NotReady::Io(io::ErrorKind::UnexpectedEof.into())),
            bytes => &input[..bytes],
        };
        let is_greeted = !login.version().is_empty();
        let said = match login.hear(bytes) {
            Ok(Turn::Wait) => continue,
            Ok(Turn::Greeted) => login.start().map_err(NotReady::Other)?,
            Ok(Turn::Say(answer)) => answer,
            Ok(Turn::Done) => return stream.write_all(&login.quit()).map_err(NotReady::Io),
            Err(LoginError::Protocol(why)) => return Err(NotReady::Other(LoginError::Protocol(why))),
            Err(error) if !is_greeted => return Err(NotReady::Refused(error)),
            Err(_) => return Ok(()),
        };
        stream.write_all(&said).map_err(NotReady::Io)?;
    }
}
