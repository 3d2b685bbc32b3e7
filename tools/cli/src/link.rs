use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result};
use onetrip_gateway::LinkOutcome;
use onetrip_link::{HumanDuration, LinkSpec, Relay, Target};

use crate::args::LinkCommandOptions;
use crate::exit::ExitCode;
use crate::stop;

/// Wait for each of several addresses when one is chosen.
const TRY_TIMEOUT: Duration = Duration::from_secs(2);
/// Lateness beyond this part of the round-trip time is worth a warning.
const LATENESS_PARTS: u32 = 20;

/// The far end of a link: `HOST:PORT`, or the path of a unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FarEnd {
    /// A name with all its addresses, at least one.
    Tcp(Vec<SocketAddr>),
    Unix(PathBuf),
}

impl FromStr for FarEnd {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains('/') {
            return Ok(Self::Unix(text.into()));
        }
        match text.to_socket_addrs().map(Iterator::collect::<Vec<_>>) {
            Ok(addresses) if !addresses.is_empty() => Ok(Self::Tcp(addresses)),
            Ok(_) => Err("that name has no address".to_owned()),
            Err(error) => Err(format!("{error}; write HOST:PORT or the path of a unix socket")),
        }
    }
}

impl FarEnd {
    /// The address that answers; the first where none does.
    fn target(&self) -> io::Result<Target> {
        match self {
            Self::Unix(path) => Ok(Target::Unix(path.clone())),
            Self::Tcp(addresses) => {
                let answers =
                    |address: &&SocketAddr| TcpStream::connect_timeout(address, TRY_TIMEOUT).is_ok();
                let chosen = addresses.iter().find(answers);
                if chosen.is_none() {
                    eprintln!("onetrip: nobody listens at the far end yet");
                }
                chosen.or(addresses.first()).copied().map(Target::Tcp).ok_or_else(|| {
                    io::Error::new(io::ErrorKind::AddrNotAvailable, "the far end has no address")
                })
            }
        }
    }
}

/// `onetrip link`.
pub(crate) fn link(options: &LinkCommandOptions) -> Result<ExitCode> {
    let spec = options.link.spec().unwrap_or_default();
    let target = options.to.target()?;
    let to = match &target {
        Target::Tcp(address) => address.to_string(),
        Target::Unix(path) => path.display().to_string(),
    };
    let listener =
        TcpListener::bind(options.listen).with_context(|| format!("cannot listen at {}", options.listen))?;
    let mut stop = stop::Waiter::new()?;
    let relay = Relay::start_on(spec.clone(), listener, target).context("cannot start the link")?;
    eprintln!("onetrip: link from {} to {to}: {spec}; Ctrl-C stops and reports", relay.local_addr());
    stop.wait();
    println!("{}", relay.stop().context("the link had ended")?);
    Ok(ExitCode::SUCCESS)
}

/// Says that times will be those of a distance which is not there.
pub(crate) fn announce(spec: Option<&LinkSpec>) {
    if let Some(spec) = spec {
        eprintln!("onetrip: simulated link in front of the database: {spec}");
    }
}

/// Says how well links kept their schedule: what the times in a report are worth.
pub(crate) fn tell(links: &[LinkOutcome], spec: Option<&LinkSpec>) {
    for LinkOutcome { to, stats } in links {
        match stats {
            Err(error) => eprintln!("onetrip: the simulated link to {to} had ended: {error}"),
            Ok(stats) => {
                let late = stats.error_at(0.99);
                let is_much = spec.is_some_and(|spec| late > spec.rtt / LATENESS_PARTS);
                let warning = if is_much { "; this machine is too busy for exact times" } else { "" };
                eprintln!(
                    "onetrip: the simulated link to {to} sent {} times, 99 % of them at most {} late{warning}",
                    stats.releases(),
                    HumanDuration(Duration::from_micros(late.as_micros().try_into().unwrap_or(u64::MAX)))
                );
            }
        }
    }
}
