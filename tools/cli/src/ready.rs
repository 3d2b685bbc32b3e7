use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::args::{duration, socket_address};
use crate::exit::ExitCode;

/// CancelRequest for process 0, which no server has: it is read, and the connection closed, without a session.
const CANCEL_NOBODY: [u8; 16] = [0, 0, 0, 16, 0x04, 0xd2, 0x16, 0x2e, 0, 0, 0, 0, 0, 0, 0, 0];

#[derive(Debug, Args)]
#[command(after_help = "\
Opens no session and is not counted as a trip. For the health checks of containers and services.")]
pub(crate) struct ReadyOptions {
    /// Where it listens
    #[arg(value_name = "HOST:PORT", default_value = "127.0.0.1:6432", value_parser = socket_address)]
    address: SocketAddr,
    /// How long to wait
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = duration)]
    timeout: Duration,
}

/// `onetrip ready`.
pub(crate) fn ready(options: &ReadyOptions) -> Result<ExitCode> {
    let ReadyOptions { address, timeout } = *options;
    if timeout.is_zero() {
        bail!("--timeout must be more than nothing");
    }
    let failed = || format!("{address} does not answer");
    let mut stream = TcpStream::connect_timeout(&address, timeout).with_context(failed)?;
    stream.set_read_timeout(Some(timeout)).with_context(failed)?;
    stream.write_all(&CANCEL_NOBODY).with_context(failed)?;
    match stream.read(&mut [0; 1]) {
        Ok(0) => Ok(ExitCode::SUCCESS),
        Ok(_) => bail!(
            "{address} is no PostgreSQL server: it answers a cancel request. Before MySQL, check that the port accepts \
             connections"
        ),
        Err(error) => Err(error).with_context(failed),
    }
}
