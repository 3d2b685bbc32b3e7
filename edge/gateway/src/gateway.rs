use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use onetrip_ledger::trace::{TRACE_STREAM, TraceHeader};
use onetrip_ledger::{Analyzer, Moment, StreamEncoder, ValueHasher};
use onetrip_link::LinkSpec;
use onetrip_session::{Common, IsolationLevel, LobPolicy, Remedies, Texts, Verify};
use onetrip_target::Conninfo;
use onetrip_target::tls::TlsAcceptor;
use tokio::sync::watch;

use crate::GatewayError;
use crate::address::ListenAddress;
use crate::cancel::Cancels;
use crate::dial::Dialer;
use crate::door::{Door, Listening};
use crate::engine::Engine;
use crate::links::LinkOutcome;
use crate::notice::tell_the_rest;
use crate::recorder::{Recorded, Recorder, RecorderThread};
use crate::spin::SpinLimit;

/// How long connections may take to say their last words.
pub(crate) const LAST_WORDS_MAX: Duration = Duration::from_secs(2);
/// How long the trace's file may take nothing before it is left as it is.
const TRACE_PATIENCE: Duration = Duration::from_secs(2);

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

/// A running gateway.
#[derive(Debug)]
pub struct Gateway {
    address: ListenAddress,
    shared: Arc<Shared>,
    /// The socket's file, and its place in the file system: only that is removed.
    file: Option<(PathBuf, (u64, u64))>,
    stop: watch::Sender<Stop>,
    engine: Arc<Engine>,
    doors: Vec<JoinHandle<()>>,
    recorder: RecorderThread,
    command: String,
}

/// Gives a gateway its database after it was started. The gateway cannot stop before this is dropped.
#[derive(Debug)]
pub struct Leader {
    shared: Arc<Shared>,
    recorder: Recorder,
    command: String,
}

impl Leader {
    /// Connections from now on lead to this database, and so does the report.
    ///
    /// # Errors
    /// TLS settings that cannot be used.
    pub fn lead_to(&self, upstream: Conninfo) -> Result<(), GatewayError> {
        let mut stream = origin(&upstream, self.shared.settle, &self.command);
        let mut dialer = self.shared.dialer.write().unwrap_or_else(PoisonError::into_inner);
        *dialer = Arc::new(dialer.leading_to(upstream)?);
        self.recorder.take_last(TRACE_STREAM, &mut stream);
        Ok(())
    }
}

/// Whether connections go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    No,
    /// No new ones; each ends when nothing is under way on it.
    Draining,
    Now,
}

/// What a gateway has seen.
#[derive(Debug)]
pub struct Outcome {
    /// All its records, counted.
    pub analyzer: Analyzer,
    /// Clients that connected, also those that never sent a startup packet.
    pub accepted: u64,
    /// Why the trace does not hold the whole run, if it does not; the counts do.
    pub trace_error: Option<String>,
    /// What the simulated links carried, if there were any.
    pub links: Vec<LinkOutcome>,
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    started: Instant,
    pub(crate) hasher: ValueHasher,
    pub(crate) keep_values: bool,
    pub(crate) settle: Duration,
    pub(crate) remedies: Remedies,
    pub(crate) verify: Option<Verify>,
    pub(crate) lobs: Arc<LobPolicy>,
    pub(crate) isolation: Option<IsolationLevel>,
    pub(crate) question_burst: Duration,
    pub(crate) common: Arc<Common>,
    pub(crate) texts: Arc<Texts>,
    pub(crate) client_tls: Option<TlsAcceptor>,
    pub(crate) spin: SpinLimit,
    pub(crate) cancels: Cancels,
    dialer: RwLock<Arc<Dialer>>,
    pub(crate) accepted: AtomicU64,
    /// Connections that are open.
    open: AtomicU64,
    pub(crate) next_number: AtomicU32,
}

impl Shared {
    /// What connects to the database.
    pub(crate) fn dialer(&self) -> Arc<Dialer> {
        Arc::clone(&self.dialer.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The time on the trace's clock.
    pub(crate) fn now(&self) -> Moment {
        self.moment(Instant::now())
    }

    /// A time on the trace's clock.
    pub(crate) fn moment(&self, at: Instant) -> Moment {
        Moment(at.saturating_duration_since(self.started).as_nanos() as u64)
    }

    /// When it is so late on the trace's clock; `None` where that is never.
    pub(crate) fn instant(&self, at: Moment) -> Option<Instant> {
        self.started.checked_add(Duration::from_nanos(at.0))
    }
}

impl Gateway {
    /// Listens and serves, on threads of its own, until [`Self::stop`].
    ///
    /// # Errors
    ///
    /// An address that cannot be listened at, TLS settings that cannot be used, a trace that cannot be created.
    pub fn start(config: GatewayConfig) -> Result<Self, GatewayError> {
        let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let workers = config.threads.unwrap_or(cores).max(1);
        let mut origin = origin(&config.upstream, config.settle, &config.command);
        let shared = Arc::new(Shared {
            started: Instant::now(),
            hasher: ValueHasher::new(),
            keep_values: config.keep_values,
            settle: config.settle,
            remedies: config.remedies,
            verify: config.verify,
            lobs: Arc::new(config.lobs),
            isolation: config.isolation,
            question_burst: config.question_burst,
            common: Arc::default(),
            texts: Arc::default(),
            client_tls: config.client_tls,
            spin: SpinLimit::new(config.spin),
            cancels: Cancels::default(),
            dialer: RwLock::new(Arc::new(Dialer::new(config.upstream, config.link)?)),
            accepted: AtomicU64::new(0),
            open: AtomicU64::new(0),
            next_number: AtomicU32::new(1),
        });
        let (listening, address) = Listening::bind(&config.listen)?;
        let file = match &address {
            ListenAddress::Unix(path) => place_of(path).map(|place| (path.clone(), place)),
            ListenAddress::Tcp(_) => None,
        };
        let also = config.also_listen.map(Listening::bind_unix).transpose()?;
        let trace = config.trace.as_deref().map(|path| (path, TraceHeader::now(config.keep_values)));
        let recorder = RecorderThread::start(trace, origin.take_block())?;
        let engine = Arc::new(Engine::start(workers, Arc::clone(&shared), recorder.recorder())?);
        let (stop, stopped) = watch::channel(Stop::No);
        let door = Door {
            shared: Arc::clone(&shared),
            recorder: recorder.recorder(),
            engine: Arc::clone(&engine),
            stop: stopped,
        };
        let all = also.into_iter().chain([listening]);
        let doors = all.map(|listening| door.clone().open(listening)).collect::<Result<_, _>>()?;
        Ok(Self { address, shared, file, stop, engine, doors, recorder, command: config.command })
    }

    /// Where it listens, with the port that it got.
    pub fn address(&self) -> &ListenAddress {
        &self.address
    }

    /// The time on the trace's clock.
    pub fn now(&self) -> Moment {
        self.shared.now()
    }

    /// What gives it another database.
    pub fn leader(&self) -> Leader {
        let (shared, recorder) = (Arc::clone(&self.shared), self.recorder.recorder());
        Leader { shared, recorder, command: self.command.clone() }
    }

    /// What its sessions share: the counts so far are in there.
    pub fn common(&self) -> Arc<Common> {
        Arc::clone(&self.shared.common)
    }

    /// Clients that have connected so far.
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::Relaxed)
    }

    /// Connections that are open now.
    pub fn open_connections(&self) -> u64 {
        self.shared.open.load(Ordering::Relaxed)
    }

    /// Accepts no more clients; each connection ends with 57P01 when nothing is under way on it. [`Self::stop`] ends
    /// those that are left.
    pub fn drain(&self) {
        // Without receivers there is nobody left to stop.
        let _ = self.stop.send(Stop::Draining);
        self.engine.stop(Stop::Draining);
        self.remove_socket();
    }

    /// Ends all connections, with 57P01, and returns what was seen.
    pub fn stop(self) -> Outcome {
        self.stop_within(TRACE_PATIENCE)
    }

    /// The same; a trace whose file takes nothing for so long is left as it is.
    pub fn stop_within(self, trace_patience: Duration) -> Outcome {
        let _ = self.stop.send(Stop::Now);
        self.engine.stop(Stop::Now);
        self.remove_socket();
        for door in self.doors {
            if let Err(panic) = door.join() {
                std::panic::resume_unwind(panic);
            }
        }
        self.engine.finish();
        drop(self.engine);
        let Recorded { analyzer, trace_error } = self.recorder.finish(trace_patience);
        let links = self.shared.dialer().stop_links();
        tell_the_rest();
        Outcome { analyzer, accepted: self.shared.accepted.load(Ordering::Relaxed), trace_error, links }
    }

    /// Removes the file of our socket, if it is still ours.
    fn remove_socket(&self) {
        if let Some((path, place)) = &self.file {
            if place_of(path) == Some(*place) {
                // Somebody may just have removed it.
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

/// Where a file is, whatever it is called.
fn place_of(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|found| (found.dev(), found.ino()))
}

/// A connection that is open, as long as this lives.
#[derive(Debug)]
pub(crate) struct Alive(Arc<Shared>);

impl Alive {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        shared.open.fetch_add(1, Ordering::Relaxed);
        Self(shared)
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The trace's record of where this run leads.
fn origin(upstream: &Conninfo, settle: Duration, command: &str) -> StreamEncoder {
    let mut origin = StreamEncoder::default();
    let program = concat!("onetrip ", env!("CARGO_PKG_VERSION"));
    let address = upstream.address();
    origin.origin(program.as_bytes(), address.as_bytes(), settle.as_nanos() as u64, command.as_bytes());
    origin
}

pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, GatewayError> {
    thread::Builder::new().name(name.into()).spawn(body).map_err(GatewayError::Start)
}
