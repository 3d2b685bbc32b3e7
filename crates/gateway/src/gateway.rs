use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use onetrip_ledger::trace::{TRACE_STREAM, TraceHeader};
use onetrip_ledger::{Analyzer, Moment, StreamEncoder, TraceError, ValueHasher};
use onetrip_link::LinkSpec;
use onetrip_session::{Common, IsolationLevel, LobPolicy, Remedies, Verify};
use onetrip_target::Conninfo;
use onetrip_target::tls::TlsAcceptor;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, watch};
use tokio::task::LocalSet;

use crate::GatewayError;
use crate::address::ListenAddress;
use crate::cancel::Cancels;
use crate::connection::serve;
use crate::dial::Dialer;
use crate::links::LinkOutcome;
use crate::notice::notice;
use crate::recorder::{Recorded, Recorder, RecorderThread};
use crate::socket::Socket;
use crate::spin::SpinLimit;

/// Accepted connections that wait for a thread to take them.
const ACCEPTED_MAX: usize = 128;
/// Pause after a failed accept, such as one for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

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
    /// Threads that move bytes; `None` for one per core.
    pub threads: Option<usize>,
    /// What may answer before the database.
    pub remedies: Remedies,
    /// Which answers from memory are run for real as well.
    pub verify: Option<Verify>,
    /// How much of large objects is read ahead.
    pub lobs: LobPolicy,
    /// What a BEGIN without a level gets, where the client did not choose.
    pub isolation: Option<IsolationLevel>,
    /// A distance to put between the gateway and the database.
    pub link: Option<LinkSpec>,
    /// TLS for clients that ask for it; `None` tells them that there is none.
    pub client_tls: Option<TlsAcceptor>,
}

impl GatewayConfig {
    /// Longest spin that does not cost more than it saves.
    pub const SPIN: Duration = Duration::from_micros(100);

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
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
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

/// What a gateway has seen.
#[derive(Debug)]
pub struct Outcome {
    /// All its records, counted.
    pub analyzer: Analyzer,
    /// Clients that connected, also those that never sent a startup packet.
    pub accepted: u64,
    /// Why the trace is not complete, if it is not.
    pub trace_error: Option<TraceError>,
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
    pub(crate) common: Arc<Common>,
    pub(crate) client_tls: Option<TlsAcceptor>,
    pub(crate) spin: SpinLimit,
    pub(crate) cancels: Cancels,
    dialer: RwLock<Arc<Dialer>>,
    accepted: AtomicU64,
    next_number: AtomicU32,
}

impl Shared {
    /// What connects to the database.
    pub(crate) fn dialer(&self) -> Arc<Dialer> {
        Arc::clone(&self.dialer.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The time on the trace's clock.
    pub(crate) fn now(&self) -> Moment {
        Moment(self.started.elapsed().as_nanos() as u64)
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
            common: Arc::default(),
            client_tls: config.client_tls,
            spin: SpinLimit::new(config.spin),
            cancels: Cancels::default(),
            dialer: RwLock::new(Arc::new(Dialer::new(config.upstream, config.link)?)),
            accepted: AtomicU64::new(0),
            next_number: AtomicU32::new(1),
        });
        let runtime = runtime()?;
        let (listener, address) = Listener::bind(&config.listen, &runtime)?;
        let also = config.also_listen.map(also_listen).transpose()?;
        let trace = config.trace.as_deref().map(|path| (path, TraceHeader::now(config.keep_values)));
        let recorder = RecorderThread::start(trace, origin.take_block())?;
        let (stop, stopped) = watch::channel(false);
        let mut threads = Vec::new();
        let mut senders = Vec::new();
        for _ in 0..workers {
            let (sender, receiver) = mpsc::channel(ACCEPTED_MAX);
            senders.push(sender);
            let worker = Worker { shared: Arc::clone(&shared), recorder: recorder.recorder() };
            threads.push(worker.start(receiver, stopped.clone())?);
        }
        for (listener, runtime) in also.into_iter().chain([(listener, runtime)]) {
            let (senders, accepting, stopped) = (senders.clone(), Arc::clone(&shared), stopped.clone());
            let accept = move || runtime.block_on(accept(listener, senders, accepting, stopped));
            threads.push(spawn("onetrip-accept", accept)?);
        }
        Ok(Self { address, shared, stop, threads, recorder, command: config.command })
    }

    /// Where it listens, with the port that it got.
    pub fn address(&self) -> &ListenAddress {
        &self.address
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

    /// Ends all connections and returns what was seen.
    pub fn stop(self) -> Outcome {
        // Without receivers there is nobody left to stop.
        let _ = self.stop.send(true);
        for thread in self.threads {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
        if let ListenAddress::Unix(path) = &self.address {
            // Somebody may have removed it already.
            let _ = std::fs::remove_file(path);
        }
        let Recorded { analyzer, trace_error } = self.recorder.finish();
        let links = self.shared.dialer().stop_links();
        Outcome { analyzer, accepted: self.shared.accepted.load(Ordering::Relaxed), trace_error, links }
    }
}

/// A thread that serves connections.
struct Worker {
    shared: Arc<Shared>,
    recorder: Recorder,
}

impl Worker {
    fn start(
        self,
        mut accepted: mpsc::Receiver<Accepted>,
        mut stopped: watch::Receiver<bool>,
    ) -> Result<JoinHandle<()>, GatewayError> {
        let runtime = runtime()?;
        spawn("onetrip-worker", move || {
            let tasks = LocalSet::new();
            let serving = async {
                while let Some(accepted) = accepted.recv().await {
                    self.serve(accepted);
                }
            };
            tasks.block_on(&runtime, async {
                tokio::select! {
                    () = serving => {}
                    _ = stopped.wait_for(|stopped| *stopped) => {}
                }
            });
            // Dropping the tasks ends their books.
            drop(tasks);
        })
    }

    fn serve(&self, accepted: Accepted) {
        let number = self.shared.next_number.fetch_add(1, Ordering::Relaxed);
        let (shared, recorder) = (Arc::clone(&self.shared), self.recorder.clone());
        tokio::task::spawn_local(async move {
            let socket = match accepted.into_socket() {
                Ok(socket) => socket,
                Err(error) => return notice(&format!("a client was lost: {error}")),
            };
            match serve(socket, number, shared, recorder).await {
                // A client that vanishes is its own affair.
                Ok(()) | Err(GatewayError::Socket { side: "client", .. }) => {}
                Err(error) => notice(&explain(&error)),
            }
        });
    }
}

/// An error with its causes, on one line.
fn explain(error: &GatewayError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        let words = next.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = next.source();
    }
    text
}

/// A listening socket of either kind.
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A connection that no runtime has yet.
enum Accepted {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

impl Listener {
    fn bind(address: &ListenAddress, runtime: &Runtime) -> Result<(Self, ListenAddress), GatewayError> {
        let _context = runtime.enter();
        let failed = |source| GatewayError::Listen { address: address.to_string(), source };
        match address {
            ListenAddress::Tcp(at) => {
                let listener = std::net::TcpListener::bind(at).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                let bound = listener.local_addr().map_err(failed)?;
                Ok((Self::Tcp(TcpListener::from_std(listener).map_err(failed)?), ListenAddress::Tcp(bound)))
            }
            ListenAddress::Unix(path) => {
                remove_stale(path);
                let listener = UnixListener::bind(path).map_err(failed)?;
                Ok((Self::Unix(listener), address.clone()))
            }
        }
    }

    async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(listener) => listener.accept().await?.0.into_std().map(Accepted::Tcp),
            Self::Unix(listener) => listener.accept().await?.0.into_std().map(Accepted::Unix),
        }
    }
}

impl Accepted {
    fn into_socket(self) -> io::Result<Socket> {
        match self {
            Self::Tcp(stream) => tokio::net::TcpStream::from_std(stream).map(Socket::from),
            Self::Unix(stream) => tokio::net::UnixStream::from_std(stream).map(Socket::from),
        }
    }
}

/// Removes a socket that nobody listens at any more.
fn remove_stale(path: &std::path::Path) {
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    if std::os::unix::net::UnixStream::connect(path).is_err_and(refused) {
        // If it cannot be removed, listening fails and says so.
        let _ = std::fs::remove_file(path);
    }
}

/// Hands connections to the workers in turn.
async fn accept(
    listener: Listener,
    workers: Vec<mpsc::Sender<Accepted>>,
    shared: Arc<Shared>,
    mut stopped: watch::Receiver<bool>,
) {
    for worker in workers.iter().cycle() {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        match accepted {
            Ok(accepted) => {
                shared.accepted.fetch_add(1, Ordering::Relaxed);
                if worker.send(accepted).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                notice(&format!("cannot accept a connection: {error}"));
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
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

/// A second listener, with the runtime that its socket belongs to.
fn also_listen(path: PathBuf) -> Result<(Listener, Runtime), GatewayError> {
    let runtime = runtime()?;
    let (listener, _) = Listener::bind(&ListenAddress::Unix(path), &runtime)?;
    Ok((listener, runtime))
}

/// A runtime of one thread that looks at its sockets at every turn, so that a spinning task sees what comes.
fn runtime() -> Result<Runtime, GatewayError> {
    Builder::new_current_thread().enable_all().event_interval(1).build().map_err(GatewayError::Start)
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, GatewayError> {
    thread::Builder::new().name(name.into()).spawn(body).map_err(GatewayError::Start)
}
