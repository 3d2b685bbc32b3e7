//! What a ping has measured: who answered, what each step to a session took, and each trip after it.

use std::time::Duration;

use onetrip_gateway::{Opening, OpeningStep, PathTimes, PingedServer, Step};

/// What was measured so far.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// Hosts and ports, as they were given.
    pub(super) target: String,
    /// `None` until the session is open.
    pub(super) server: Option<About>,
    /// Of PostgreSQL, what it took until the session could be used.
    pub(super) opening: Opening,
    /// Of MySQL, the same.
    pub(super) mysql: Vec<Line>,
    pub(super) trips: Vec<Duration>,
    /// `None` on a unix socket, of MySQL, and where the kernel does not tell.
    pub(super) path: Option<PathTimes>,
}

impl Measured {
    /// What it took until the session could be used.
    pub(super) fn lines(&self) -> Vec<Line> {
        self.opening.steps().iter().map(Line::of).chain(self.mysql.iter().copied()).collect()
    }

    /// Trips that one session can make one after the other in a second; `None` before the first.
    pub(super) fn trips_per_second(&self) -> Option<f64> {
        let time: Duration = self.trips.iter().sum();
        let is_measurable = !time.is_zero();
        is_measurable.then(|| self.trips.len() as f64 / time.as_secs_f64())
    }
}

/// Who answered, and as whom we are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct About {
    pub(super) product: &'static str,
    /// The host as it was given, with the port.
    pub(super) host: String,
    /// Where it was found, if that is not what was given.
    pub(super) address: Option<String>,
    pub(super) version: Option<String>,
    /// Version of TLS, such as `1.3`; `None` on a plain connection.
    pub(super) tls: Option<&'static str>,
    /// How we logged in.
    pub(super) method: &'static str,
    pub(super) user: String,
    pub(super) database: Option<String>,
}

impl From<&PingedServer> for About {
    fn from(server: &PingedServer) -> Self {
        let PingedServer { host, address, version, tls, method, user, database } = server.clone();
        Self { product: "PostgreSQL", host, address, version, tls, method, user, database: Some(database) }
    }
}

/// One kind of work on the way to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    /// For people.
    pub(super) name: &'static str,
    /// For programs.
    pub(super) key: &'static str,
    /// Round trips; zero for work that needs none.
    pub(super) trips: u32,
    pub(super) time: Duration,
}

impl Line {
    pub(super) const fn new(name: &'static str, key: &'static str, trips: u32, time: Duration) -> Self {
        Self { name, key, trips, time }
    }

    fn of(step: &OpeningStep) -> Self {
        let (name, key) = match step.step {
            Step::Lookup => ("name look-up", "name_lookup"),
            Step::TcpConnect => ("TCP connect", "tcp_connect"),
            Step::SocketConnect => ("socket connect", "socket_connect"),
            Step::TlsRequest => ("TLS request", "tls_request"),
            Step::TlsHandshake => ("TLS handshake", "tls_handshake"),
            Step::Startup => ("startup", "startup"),
            Step::Authentication => ("authentication", "authentication"),
            Step::Hashing => ("(own work: hashing)", "own_hashing"),
        };
        Self::new(name, key, step.trips, step.time)
    }
}
