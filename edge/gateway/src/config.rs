use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use onetrip_link::LinkSpec;
use onetrip_session::{IsolationLevel, LobPolicy, Remedies, Verify};
use onetrip_target::Conninfo;
use onetrip_target::tls::TlsAcceptor;

use crate::address::ListenAddress;

/// What a gateway is told.
#[derive(Debug, Clone)]
pub struct GatewayConfig {
    /// Where clients connect.
    pub listen: ListenAddress,
    /// A Unix socket where they can connect, too.
    pub also_listen: Option<PathBuf>,
    /// Where the database is, and how to speak TLS with it.
    pub upstream: Conninfo,
    /// Where to write the trace.
    pub trace: Option<PathBuf>,
    /// Keep parameters' values in the trace, not only their hashes.
    pub keep_values: bool,
    /// Hold replies for so long, so that units which a client sends without waiting are seen to share a trip.
    pub settle: Duration,
    /// Longest spin before a thread parks; zero for none.
    pub spin: Duration,
    /// Names of the program that is run behind the gateway and of its first arguments, empty where there is none; they
    /// go into the trace, so they must hold no secrets.
    pub command: String,
    /// Threads that move bytes, at most: more than one only where one is busy. `None` for one per core.
    pub threads: Option<usize>,
    /// What may answer before the database.
    pub remedies: Remedies,
    /// Which answers from memory are run for real as well.
    pub verify: Option<Verify>,
    /// How much of large objects is read ahead.
    pub lobs: LobPolicy,
    /// What a BEGIN without a level gets, where the client did not choose.
    pub isolation: Option<IsolationLevel>,
    /// Time on the server that a session's own questions may take at once; over time, they take a twentieth of it.
    pub question_burst: Duration,
    /// A distance to put between the gateway and the database.
    pub link: Option<LinkSpec>,
    /// TLS for clients that ask for it; `None` tells them that there is none.
    pub client_tls: Option<TlsAcceptor>,
}

impl GatewayConfig {
    /// Longest spin that does not cost more than it saves.
    pub const SPIN: Duration = Duration::from_micros(100);

    /// To learn of a database takes a few rounds of questions.
    pub const QUESTION_BURST: Duration = Duration::from_millis(100);

    /// Observes the database `upstream` from a free port of this machine.
    pub fn new(upstream: Conninfo) -> Self {
        Self {
            listen: ListenAddress::Tcp(SocketAddr::from(([127, 0, 0, 1], 0))),
            also_listen: None,
            upstream,
            trace: None,
            keep_values: false,
            settle: Duration::ZERO,
            spin: Self::SPIN,
            command: String::new(),
            threads: None,
            remedies: Remedies::default(),
            verify: None,
            lobs: LobPolicy::default(),
            isolation: None,
            question_burst: Self::QUESTION_BURST,
            link: None,
            client_tls: None,
        }
    }
}
