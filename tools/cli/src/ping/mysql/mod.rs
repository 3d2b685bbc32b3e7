//! Ping of a MySQL or MariaDB server: logs in, then asks `SELECT 1` again and again, each of them one trip.

mod account;
mod error;
mod wire;

use std::time::Duration;

use onetrip_target::address::AddressError;
use onetrip_target::{Conninfo, Host, HostName};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout};

use super::measured::{About, Line};
use crate::mysql::{Applicant, Login, LoginError, Turn};
use wire::Wire;

pub(super) use account::{Account, PasswordOrigin};
pub(super) use error::MysqlPingError as Error;

/// Wait for an answer where the settings have no `connect_timeout`.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Wait while saying good-bye.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(1);
/// The statement whose trips are measured.
const STATEMENT: &[u8] = b"SELECT 1";

/// A session on which trips are measured.
#[derive(Debug)]
pub(super) struct MysqlPing {
    wire: Wire,
    login: Login,
    about: About,
    limit: Duration,
    origin: PasswordOrigin,
}

impl MysqlPing {
    /// Connects and logs in. `lines` tells the trips spent so far, also after an error and while this waits.
    pub(super) async fn connect(
        conninfo: &Conninfo,
        account: Account,
        lines: &mut Vec<Line>,
    ) -> Result<Self, Error> {
        let limit = account.limit.unwrap_or(ANSWER_TIMEOUT);
        let (host, socket) = dial(&conninfo.hosts, limit, lines).await?;
        let address = socket.peer_addr().map(|address| address.to_string()).ok();
        let named = host.to_string();
        let about = About {
            product: "MySQL",
            host: named.clone(),
            address: address.filter(|address| *address != named),
            version: None,
            tls: None,
            method: "",
            user: account.user.clone(),
            database: account.database.clone(),
        };
        let Account { user, password, database, may_ask_for_key, origin, .. } = account;
        let applicant = Applicant { user, password, database, may_ask_for_key };
        let mut ping = Self { wire: Wire::new(socket), login: Login::new(applicant), about, limit, origin };
        // TLS is used if the server has it, unless the text says otherwise.
        let plan =
            onetrip_target::tls::connector(&Conninfo { hosts: vec![host.clone()], ..conninfo.clone() })?;
        ping.greeting(lines).await?;
        if let Some(plan) = plan.filter(|_| ping.login.has_tls()) {
            let asked = ping.login.ask_for_tls().map_err(|error| ping.failed(error))?;
            let started = Instant::now();
            let shaken = timeout(limit, ping.wire.start_tls(&asked, plan.start(&host)?)).await;
            let trips = match shaken {
                Err(_) => return Err(ping.late(false)),
                Ok(Err(wire::HandshakeError::Io(source))) => return Err(ping.lost(source)),
                Ok(Err(wire::HandshakeError::Tls(error))) => return Err(plan.explain(&host, error).into()),
                Ok(Ok(trips)) => trips,
            };
            note(lines, Line::new("TLS handshake", "tls_handshake", trips, started.elapsed()));
            ping.about.tls = ping.wire.tls_version();
        } else if conninfo.sslmode.requires_tls() {
            return Err(Error::NoTls { host: ping.about.host });
        }
        ping.log_in(lines).await?;
        ping.about.method = ping.login.method();
        Ok(ping)
    }

    pub(super) fn about(&self) -> &About {
        &self.about
    }

    /// One `SELECT 1`, from sending it to the last byte of its answer.
    pub(super) async fn trip(&mut self) -> Result<Duration, Error> {
        let asked = self.login.ask(STATEMENT).map_err(|error| self.failed(error))?;
        let started = Instant::now();
        match self.turn(&asked).await? {
            Turn::Done => Ok(started.elapsed()),
            other => Err(self.failed(LoginError::Protocol(format!("{other:?} in place of rows")))),
        }
    }

    /// Says good-bye, so that the server's log has nothing to complain of.
    pub(super) async fn close(mut self) {
        let farewell = self.login.quit();
        // The measuring is done; a server that is gone needs no good-bye.
        let _ = timeout(FAREWELL_TIMEOUT, self.wire.send(&farewell)).await;
    }

    async fn greeting(&mut self, lines: &mut Vec<Line>) -> Result<(), Error> {
        let started = Instant::now();
        match self.turn(&[]).await? {
            Turn::Greeted => {}
            _ => return Err(Error::NotMysql { host: self.about.host.clone() }),
        }
        note(lines, Line::new("greeting", "greeting", 1, started.elapsed()));
        let version = self.login.version();
        self.about.product = if version.contains("MariaDB") { "MariaDB" } else { "MySQL" };
        self.about.version = Some(version.to_owned());
        Ok(())
    }

    async fn log_in(&mut self, lines: &mut Vec<Line>) -> Result<(), Error> {
        let mut said = self.login.start().map_err(|error| self.failed(error))?;
        let mut line = Line::new("login", "login", 1, Duration::ZERO);
        loop {
            let started = Instant::now();
            let turn = self.turn(&said).await?;
            note(lines, Line { time: started.elapsed(), ..line });
            match turn {
                Turn::Say(answer) => said = answer,
                Turn::Done => return Ok(()),
                Turn::Wait | Turn::Greeted => {
                    return Err(self.failed(LoginError::Protocol("it greets again".into())));
                }
            }
            line = Line::new("authentication", "authentication", 1, Duration::ZERO);
        }
    }

    /// Sends, and waits until the server has said all that it has to say to it.
    async fn turn(&mut self, said: &[u8]) -> Result<Turn, Error> {
        match timeout(self.limit, self.exchange(said)).await {
            Ok(done) => done,
            Err(_) => Err(self.late(self.about.version.is_none())),
        }
    }

    async fn exchange(&mut self, said: &[u8]) -> Result<Turn, Error> {
        self.wire.send(said).await.map_err(|source| self.lost(source))?;
        loop {
            let bytes = self.wire.read().await;
            let heard = match bytes {
                Ok(bytes) => self.login.hear(bytes),
                Err(source) => return Err(self.lost(source)),
            };
            match heard {
                Ok(Turn::Wait) => {}
                Ok(turn) => return Ok(turn),
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    fn failed(&self, error: LoginError) -> Error {
        let host = self.about.host.clone();
        match error {
            LoginError::Protocol(_) if self.about.version.is_none() => Error::NotMysql { host },
            error => Error::login(host, error, self.origin),
        }
    }

    fn lost(&self, source: std::io::Error) -> Error {
        let host = self.about.host.clone();
        match &self.about.version {
            None => Error::Silent { host, source },
            Some(_) => Error::Lost { host, source },
        }
    }

    fn late(&self, silent: bool) -> Error {
        Error::Late { host: self.about.host.clone(), seconds: self.limit.as_secs(), silent }
    }
}

/// Tries all addresses in order; the first that answers is taken.
async fn dial(hosts: &[Host], limit: Duration, lines: &mut Vec<Line>) -> Result<(Host, TcpStream), Error> {
    let mut failed = None;
    for host in hosts {
        let HostName::Tcp { name, address } = &host.name else { continue };
        let started = Instant::now();
        let found = match address.or_else(|| name.parse().ok()) {
            Some(address) => vec![(address, host.port).into()],
            None => match lookup_host((name.as_str(), host.port)).await {
                Ok(found) => {
                    note(lines, Line::new("name look-up", "name_lookup", 0, started.elapsed()));
                    found.collect()
                }
                Err(source) => {
                    failed = Some(AddressError::Lookup { name: name.clone(), source }.into());
                    continue;
                }
            },
        };
        for address in found {
            let started = Instant::now();
            let connected = match timeout(limit, TcpStream::connect(address)).await {
                Ok(connected) => connected.and_then(|socket| socket.set_nodelay(true).map(|()| socket)),
                Err(_) => Err(std::io::ErrorKind::TimedOut.into()),
            };
            match connected {
                Ok(socket) => {
                    note(lines, Line::new("TCP connect", "tcp_connect", 1, started.elapsed()));
                    return Ok((host.clone(), socket));
                }
                Err(source) => failed = Some(Error::Connect { host: host.to_string(), source }),
            }
        }
    }
    Err(failed.unwrap_or(Error::UnixSocket))
}

/// Adds to what is known of a step.
fn note(lines: &mut Vec<Line>, line: Line) {
    match lines.iter_mut().find(|known| known.key == line.key) {
        Some(known) => {
            known.trips += line.trips;
            known.time += line.time;
        }
        None => lines.push(line),
    }
}
