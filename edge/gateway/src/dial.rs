//! Connecting to the database, by libpq's rules.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use onetrip_link::LinkSpec;
use onetrip_login::TlsAnswer;
use onetrip_target::address::{Address, AddressError, candidates};
use onetrip_target::tls::{TlsPlan, connector};
use onetrip_target::{Conninfo, Host, HostName, Protocol};
use onetrip_wire::pg::{CancelRequest, encode_cancel_request, encode_ssl_request};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::GatewayError;
use crate::address::ListenAddress;
use crate::channel::HandshakeError;
use crate::error::descriptors_hint;
use crate::leg::Leg;
use crate::links::{LinkOutcome, Links};
use crate::socket::Socket;

/// Wait for one address where the settings give none.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Wait for each step of a cancel request.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// Connects to the database; made once per gateway.
#[derive(Debug)]
pub(crate) struct Dialer {
    conninfo: Conninfo,
    tls: Option<TlsPlan>,
    links: Option<Links>,
    /// Where the gateway itself listens: no database is there.
    own: Arc<OnceLock<Vec<ListenAddress>>>,
}

/// A server that was reached, for reaching it again.
#[derive(Debug, Clone)]
pub(crate) struct Upstream {
    dialer: Arc<Dialer>,
    host: Host,
    address: Address,
    tls: bool,
}

/// A cancel request failed.
#[derive(Debug)]
pub(crate) struct CancelError {
    pub(crate) reason: io::Error,
    /// It may still arrive.
    pub(crate) may_have_been_sent: bool,
}

/// Trips that a dialled connection spent before its first message, with their times.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DialTimes {
    /// The names' addresses were looked up; `None` where addresses were given.
    pub(crate) lookup: Option<Duration>,
    /// TCP's handshake.
    pub(crate) connect: Duration,
    /// SSLRequest and its answer.
    pub(crate) request: Option<Duration>,
    /// TLS's handshake.
    pub(crate) handshake: Option<Duration>,
}

impl Dialer {
    /// Dials over a simulated link where one is given.
    pub(crate) fn new(conninfo: Conninfo, link: Option<LinkSpec>) -> Result<Self, GatewayError> {
        // Where the settings of a MySQL server leave it open, the client speaks TLS with the server itself, if it does.
        let tls = if conninfo.passes_tls { None } else { connector(&conninfo)? };
        let links = link.map(|spec| Links::new(spec, conninfo.keepalives));
        Ok(Self { conninfo, tls, links, own: Arc::default() })
    }

    /// Another database, as far away.
    pub(crate) fn leading_to(&self, conninfo: Conninfo) -> Result<Self, GatewayError> {
        let link = self.links.as_ref().map(|links| links.spec().clone());
        Ok(Self { own: Arc::clone(&self.own), ..Self::new(conninfo, link)? })
    }

    /// The gateway listens here; to be told before the first connection comes.
    pub(crate) fn listens_at(&self, own: Vec<ListenAddress>) {
        // There is one gateway, and it is told once.
        let _ = self.own.set(own);
    }

    fn leads_back(&self, address: &Address) -> bool {
        self.own.get().is_some_and(|own| own.iter().any(|own| own.is_reached_by(address)))
    }

    /// What the database speaks.
    pub(crate) fn protocol(&self) -> Protocol {
        self.conninfo.protocol
    }

    /// Whether the client is to speak no TLS with the database through the gateway.
    pub(crate) fn ends_tls(&self) -> bool {
        !self.conninfo.passes_tls
    }

    /// Whether the server speaks first, and TLS comes after its greeting.
    fn greets_first(&self) -> bool {
        self.conninfo.protocol == Protocol::Mysql
    }

    /// How long a server may take to be reached, or for a step of opening a session.
    fn patience(&self) -> Duration {
        self.conninfo.connect_timeout.unwrap_or(CONNECT_TIMEOUT)
    }

    /// Cuts the simulated links and tells what they carried.
    pub(crate) fn stop_links(&self) -> Vec<LinkOutcome> {
        self.links.as_ref().map_or_else(Vec::new, Links::stop)
    }

    /// Connects to an address, over the link where there is one.
    async fn connect(&self, address: &Address) -> io::Result<Socket> {
        match &self.links {
            None => {
                let socket = connect(address).await?;
                socket.watch(&self.conninfo.keepalives);
                Ok(socket)
            }
            Some(links) => connect(&Address::Tcp(links.near_end(address).await?)).await,
        }
    }

    /// A leg knows of the link that it goes over.
    fn over_link(&self, leg: Leg) -> Leg {
        match &self.links {
            None => leg,
            Some(links) => leg.over(links.spec()),
        }
    }

    /// Tries all addresses in order; the first that answers is taken.
    pub(crate) async fn dial(self: &Arc<Self>) -> Result<(Leg, Upstream, DialTimes), GatewayError> {
        let has_names = self.conninfo.hosts.iter().any(is_looked_up);
        let started = tokio::time::Instant::now();
        let found = if has_names {
            let resolving = Arc::clone(self);
            let looked_up = tokio::task::spawn_blocking(move || resolving.candidates());
            looked_up.await.map_err(|error| GatewayError::Start(io::Error::other(error)))?
        } else {
            self.candidates() // nobody has to be asked
        };
        let lookup = has_names.then(|| started.elapsed());
        let mut failures = String::new();
        let mut no_descriptor = None;
        for (host, address) in found {
            let reached = match address {
                Ok(address) => self.reach(&host, address).await,
                Err(unreached) => Err(unreached),
            };
            match reached {
                Ok((leg, upstream, times)) => return Ok((leg, upstream, DialTimes { lookup, ..times })),
                Err(Unreached::NoDescriptor(error)) => no_descriptor = Some(error),
                Err(Unreached::Said(failure)) => {
                    let separator = if failures.is_empty() { "" } else { "\n" };
                    // Writing to a string cannot fail.
                    let _ = write!(failures, "{separator}{failure}");
                }
            }
        }
        // What the other addresses said is not known to be so with a descriptor.
        Err(no_descriptor.map_or(GatewayError::Dial(failures), |source| GatewayError::Descriptors { source }))
    }

    fn candidates(&self) -> Vec<(Host, Result<Address, Unreached>)> {
        let found = candidates(&self.conninfo);
        found.map(|(host, address)| (host.clone(), address.map_err(unresolved))).collect()
    }

    async fn reach(
        self: &Arc<Self>,
        host: &Host,
        address: Address,
    ) -> Result<(Leg, Upstream, DialTimes), Unreached> {
        if self.leads_back(&address) {
            return Err(Unreached::Said(format!("the server at {host} is this gateway itself")));
        }
        let limit = self.patience();
        let plan = self.tls.as_ref().filter(|plan| plan.applies_to(host) && !plan.starts_plain());
        let plan = plan.filter(|_| !self.greets_first());
        let upstream =
            |tls| Upstream { dialer: Arc::clone(self), host: host.clone(), address: address.clone(), tls };
        let words = |error: io::Error| match descriptors_hint(&error) {
            Some(_) => Unreached::NoDescriptor(error),
            None => {
                let hint = connect_hint(&error);
                Unreached::Said(format!("connection to server at {host} failed: {error}{hint}"))
            }
        };
        let bounded = async {
            let mut times = DialTimes::default();
            let started = tokio::time::Instant::now();
            let socket = self.connect(&address).await.map_err(words)?;
            times.connect = started.elapsed();
            let Some(plan) = plan else { return Ok((Leg::plain(socket), upstream(false), times)) };
            match secure(plan, host, socket, &mut times).await {
                Ok(Some(leg)) => Ok((leg, upstream(true), times)),
                Ok(None) => {
                    // What libpq does when TLS is preferred and fails: once more, plain.
                    let socket = self.connect(&address).await.map_err(words)?;
                    Ok((Leg::plain(socket), upstream(false), times))
                }
                Err(Secured::Plain(socket)) => Ok((Leg::plain(socket), upstream(false), times)),
                Err(Secured::Failed(failure)) => Err(Unreached::Said(failure)),
            }
        };
        match timeout(limit, bounded).await {
            Ok(reached) => reached.map(|(leg, upstream, times)| (self.over_link(leg), upstream, times)),
            Err(_) => {
                let what = format!("no answer within {} s", limit.as_secs());
                Err(Unreached::Said(format!("connection to server at {host} failed: {what}")))
            }
        }
    }
}

impl Upstream {
    /// A server that was reached, without TLS.
    #[cfg(test)]
    pub(crate) fn reached(dialer: Arc<Dialer>, host: Host, address: Address) -> Self {
        Self { dialer, host, address, tls: false }
    }

    /// The host that was reached.
    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// Where it was reached.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// How TLS is spoken with a server that has greeted; `None` where it is not.
    pub(crate) fn plan_after_greeting(&self) -> Option<&TlsPlan> {
        self.dialer.tls.as_ref().filter(|plan| self.dialer.greets_first() && plan.applies_to(&self.host))
    }

    /// How long the server may take for a step.
    pub(crate) fn patience(&self) -> Duration {
        self.dialer.patience()
    }

    /// The address that its name was looked up to; `None` where the address was given.
    pub(crate) fn found_at(&self) -> Option<String> {
        match &self.address {
            Address::Tcp(address) if is_looked_up(&self.host) => Some(address.to_string()),
            _ => None,
        }
    }

    /// Sends a cancel request on a connection of its own, as safe as the session's, and waits until the server
    /// closes it.
    pub(crate) async fn cancel(&self, process_id: u32, key: &[u8]) -> Result<(), CancelError> {
        let unsent = |reason| CancelError { reason, may_have_been_sent: false };
        let maybe = |reason| CancelError { reason, may_have_been_sent: true };
        let mut leg = match timeout(CANCEL_TIMEOUT, self.cancel_leg()).await {
            Ok(connected) => connected.map_err(unsent)?,
            Err(_) => return Err(unsent(io::ErrorKind::TimedOut.into())),
        };
        let mut request = Vec::new();
        encode_cancel_request(&mut request, CancelRequest { process_id, key });
        let carried = async {
            write_all(&mut leg, &request).await?;
            let mut rest = [0; 64];
            loop {
                match std::future::poll_fn(|cx| leg.poll_read(cx, &mut rest)).await {
                    Ok(0) => return Ok(()),
                    Ok(_) => {}
                    // The server resets what it has not read; it has read the request.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
        };
        match timeout(CANCEL_TIMEOUT, carried).await {
            Ok(done) => done.map_err(maybe),
            Err(_) => Err(maybe(io::ErrorKind::TimedOut.into())),
        }
    }

    async fn cancel_leg(&self) -> io::Result<Leg> {
        let socket = self.dialer.connect(&self.address).await?;
        match self.dialer.tls.as_ref().filter(|_| self.tls) {
            None => Ok(Leg::plain(socket)),
            Some(plan) => match secure(plan, &self.host, socket, &mut DialTimes::default()).await {
                Ok(Some(leg)) => Ok(leg),
                _ => Err(io::Error::other("TLS with the database failed")),
            },
        }
    }
}

/// Why an address was not reached.
enum Unreached {
    /// There was no file descriptor for it.
    NoDescriptor(io::Error),
    /// Anything else, in words.
    Said(String),
}

/// The resolver needs a descriptor, too. Without one it says that there is no such name. So one is asked for at once, before
/// somebody else gives one back.
fn unresolved(error: AddressError) -> Unreached {
    match File::open("/dev/null") {
        Err(error) if descriptors_hint(&error).is_some() => Unreached::NoDescriptor(error),
        _ => Unreached::Said(error.to_string()),
    }
}

/// How an attempt at TLS ended without it.
enum Secured {
    /// The server has no TLS, and plain will do.
    Plain(Socket),
    /// Nothing will do.
    Failed(String),
}

/// Asks for TLS and shakes hands; `None` asks for a new, plain connection.
async fn secure(
    plan: &TlsPlan,
    host: &Host,
    mut socket: Socket,
    times: &mut DialTimes,
) -> Result<Option<Leg>, Secured> {
    let failed =
        |error: io::Error| Secured::Failed(format!("connection to server at {host} failed: {error}"));
    if !plan.is_direct() {
        let started = tokio::time::Instant::now();
        let answer = ask_for_tls(&mut socket).await.map_err(failed)?;
        times.request = Some(started.elapsed());
        match TlsAnswer::of(answer) {
            Some(TlsAnswer::Yes) => {}
            Some(TlsAnswer::No) if plan.may_be_plain() => return Err(Secured::Plain(socket)),
            Some(TlsAnswer::No) => return Err(Secured::Failed(plan.refused_by_server(host).to_string())),
            Some(TlsAnswer::Error) if plan.may_be_plain() => return Ok(None),
            Some(TlsAnswer::Error) | None => {
                let what = "it answers the request for TLS with something else; is it a PostgreSQL server?";
                return Err(Secured::Failed(format!("connection to server at {host} failed: {what}")));
            }
        }
    }
    let tls = plan.start(host).map_err(|error| Secured::Failed(error.to_string()))?;
    let started = tokio::time::Instant::now();
    let shaken = Leg::start_tls(socket, tls).await;
    times.handshake = Some(started.elapsed());
    match shaken {
        Ok(leg) => Ok(Some(leg)),
        Err(_) if plan.may_be_plain() => Ok(None),
        Err(HandshakeError::Tls(error)) => Err(Secured::Failed(plan.explain(host, error).to_string())),
        Err(HandshakeError::Io(error)) => Err(failed(error)),
    }
}

async fn ask_for_tls(socket: &mut Socket) -> io::Result<u8> {
    let mut request = Vec::new();
    encode_ssl_request(&mut request);
    let mut sent = 0;
    while sent < request.len() {
        sent += std::future::poll_fn(|cx| socket.poll_write(cx, &request[sent..])).await?;
    }
    let mut answer = [0];
    // One byte and no more: what follows is TLS's own (CVE-2021-23222 is about reading on).
    match std::future::poll_fn(|cx| socket.poll_read(cx, &mut answer)).await? {
        0 => {
            let what = "it closed the connection without an answer; is it a PostgreSQL server?";
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, what))
        }
        _ => Ok(answer[0]),
    }
}

/// Whether a host's address has to be asked for.
fn is_looked_up(host: &Host) -> bool {
    match &host.name {
        HostName::Tcp { name, address } => address.is_none() && name.parse::<IpAddr>().is_err(),
        HostName::Unix(_) | HostName::Socket(_) => false,
    }
}

pub(crate) async fn connect(address: &Address) -> io::Result<Socket> {
    match address {
        Address::Tcp(address) => TcpStream::connect(address).await.map(Socket::from),
        Address::Unix(path) => UnixStream::connect(path).await.map(Socket::from),
    }
}

/// Sends all of `bytes`.
pub(crate) async fn write_all(leg: &mut Leg, bytes: &[u8]) -> io::Result<()> {
    let mut sent = 0;
    while sent < bytes.len() {
        sent += std::future::poll_fn(|cx| leg.poll_write(cx, &bytes[sent..])).await?;
    }
    std::future::poll_fn(|cx| leg.poll_flush(cx)).await
}

fn connect_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "\n\tIs the server running on that host and accepting TCP/IP connections?"
        }
        io::ErrorKind::NotFound => {
            "\n\tIs the server running locally and accepting connections on that socket?"
        }
        _ => "",
    }
}
