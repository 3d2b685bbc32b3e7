use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use onetrip_ledger::trace::{TRACE_STREAM, TraceHeader};
use onetrip_ledger::{Analyzer, Moment, StreamEncoder, ValueHasher};
use onetrip_link::LinkSpec;
use onetrip_session::{Common, IsolationLevel, LobPolicy, Remedies, SessionError, Texts, Verify};
use onetrip_target::Conninfo;
use onetrip_target::tls::TlsAcceptor;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::LocalSet;

use crate::GatewayError;
use crate::address::ListenAddress;
use crate::cancel::Cancels;
use crate::connection::serve;
use crate::dial::Dialer;
use crate::error::{descriptors_hint, with_causes};
use crate::links::LinkOutcome;
use crate::notice::{Kind, Peer, notice, tell_left_out};
use crate::opening::Client;
use crate::recorder::{Recorded, Recorder, RecorderThread};
use crate::socket::{CLIENT_KEEPALIVES, Socket};
use crate::spin::SpinLimit;

/// Accepted connections that wait for a thread to take them.
const ACCEPTED_MAX: usize = 128;
/// How long connections may take to say their last words.
const LAST_WORDS_MAX: Duration = Duration::from_secs(2);
/// How long the trace's file may take nothing before it is left as it is.
const TRACE_PATIENCE: Duration = Duration::from_secs(2);
/// Threads that look up names, for each worker.
const LOOKUPS_MAX: usize = 16;
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
    accepted: AtomicU64,
    /// Connections that are open.
    open: AtomicU64,
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
        let runtime = runtime()?;
        let (listener, address) = Listener::bind(&config.listen, &runtime)?;
        let file = match &address {
            ListenAddress::Unix(path) => place_of(path).map(|place| (path.clone(), place)),
            ListenAddress::Tcp(_) => None,
        };
        let also = config.also_listen.map(also_listen).transpose()?;
        let trace = config.trace.as_deref().map(|path| (path, TraceHeader::now(config.keep_values)));
        let recorder = RecorderThread::start(trace, origin.take_block())?;
        let (stop, stopped) = watch::channel(Stop::No);
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
        Ok(Self { address, shared, file, stop, threads, recorder, command: config.command })
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
        self.remove_socket();
    }

    /// Ends all connections, with 57P01, and returns what was seen.
    pub fn stop(self) -> Outcome {
        self.stop_within(TRACE_PATIENCE)
    }

    /// The same; a trace whose file takes nothing for so long is left as it is.
    pub fn stop_within(self, trace_patience: Duration) -> Outcome {
        let _ = self.stop.send(Stop::Now);
        self.remove_socket();
        for thread in self.threads {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
        let Recorded { analyzer, trace_error } = self.recorder.finish(trace_patience);
        let links = self.shared.dialer().stop_links();
        tell_left_out();
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

/// A thread that serves connections.
struct Worker {
    shared: Arc<Shared>,
    recorder: Recorder,
}

impl Worker {
    fn start(
        self,
        mut accepted: mpsc::Receiver<Accepted>,
        mut stopped: watch::Receiver<Stop>,
    ) -> Result<JoinHandle<()>, GatewayError> {
        let runtime = runtime()?;
        spawn("onetrip-worker", move || {
            let tasks = LocalSet::new();
            let live = Rc::new(Live::default());
            let stops = stopped.clone();
            let serving = async {
                while let Some(accepted) = accepted.recv().await {
                    self.serve(accepted, stops.clone(), &live);
                }
                live.all_gone().await;
            };
            tasks.block_on(&runtime, async {
                tokio::select! {
                    () = serving => return,
                    _ = stopped.wait_for(|stop| *stop == Stop::Now) => {}
                }
                // Those that are slow to take their last words go without.
                let _ = tokio::time::timeout(LAST_WORDS_MAX, live.all_gone()).await;
            });
            // Dropping the tasks ends their books.
            drop(tasks);
        })
    }

    fn serve(&self, accepted: Accepted, stop: watch::Receiver<Stop>, live: &Rc<Live>) {
        let number = self.shared.next_number.fetch_add(1, Ordering::Relaxed);
        let (shared, recorder) = (Arc::clone(&self.shared), self.recorder.clone());
        let peer = Peer { number, address: accepted.peer };
        let alive = Alive::new(Rc::clone(live), Arc::clone(&self.shared));
        tokio::task::spawn_local(async move {
            let _alive = alive;
            let socket = match accepted.into_socket() {
                Ok(socket) => socket,
                Err(error) => {
                    return notice(Kind::Accept, Some(peer), &format!("the client was lost: {error}"));
                }
            };
            match serve(Client { socket, peer }, shared, recorder, stop).await {
                // A client that vanishes is its own affair.
                Ok(()) | Err(GatewayError::Socket { side: "client", .. }) => {}
                Err(error) => notice(kind_of(&error), Some(peer), &with_causes(&error)),
            }
        });
    }
}

/// Tasks of a worker that have not ended.
#[derive(Debug, Default)]
struct Live {
    count: Cell<usize>,
    one_gone: Notify,
}

impl Live {
    async fn all_gone(&self) {
        while self.count.get() > 0 {
            self.one_gone.notified().await;
        }
    }
}

/// One of them.
struct Alive {
    live: Rc<Live>,
    shared: Arc<Shared>,
}

impl Alive {
    fn new(live: Rc<Live>, shared: Arc<Shared>) -> Self {
        live.count.set(live.count.get() + 1);
        shared.open.fetch_add(1, Ordering::Relaxed);
        Self { live, shared }
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.live.count.set(self.live.count.get() - 1);
        self.shared.open.fetch_sub(1, Ordering::Relaxed);
        self.live.one_gone.notify_one();
    }
}

/// What a connection's end is about.
fn kind_of(error: &GatewayError) -> Kind {
    match error {
        GatewayError::Session(SessionError::Client(_) | SessionError::BindingMissed)
        | GatewayError::ClientTls { .. }
        | GatewayError::NoProtocol
        | GatewayError::NoTls => Kind::Client,
        GatewayError::Dial(_) | GatewayError::Descriptors { .. } | GatewayError::Tls(_) => Kind::Dial,
        _ => Kind::Server,
    }
}

/// A listening socket of either kind.
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A connection that no runtime has yet.
struct Accepted {
    stream: AcceptedStream,
    /// Where the client is; `None` on a Unix socket.
    peer: Option<SocketAddr>,
}

enum AcceptedStream {
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
                remove_stale(path).map_err(failed)?;
                let listener = UnixListener::bind(path).map_err(failed)?;
                Ok((Self::Unix(listener), address.clone()))
            }
        }
    }

    async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                Ok(Accepted { stream: AcceptedStream::Tcp(stream.into_std()?), peer: Some(peer) })
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok(Accepted { stream: AcceptedStream::Unix(stream.into_std()?), peer: None })
            }
        }
    }
}

impl Accepted {
    fn into_socket(self) -> io::Result<Socket> {
        let socket = match self.stream {
            AcceptedStream::Tcp(stream) => tokio::net::TcpStream::from_std(stream).map(Socket::from),
            AcceptedStream::Unix(stream) => tokio::net::UnixStream::from_std(stream).map(Socket::from),
        };
        socket.inspect(|socket| socket.watch(&CLIENT_KEEPALIVES))
    }
}

/// Removes a socket that nobody listens at any more, and nothing else.
fn remove_stale(path: &Path) -> io::Result<()> {
    let Ok(found) = path.symlink_metadata() else { return Ok(()) };
    if !found.file_type().is_socket() {
        let what = "a file that is no socket is there, and it is not removed: choose another path";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
    }
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    if std::os::unix::net::UnixStream::connect(path).is_err_and(refused) {
        // If it cannot be removed, listening fails and says so.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// Hands connections to the workers in turn.
async fn accept(
    listener: Listener,
    workers: Vec<mpsc::Sender<Accepted>>,
    shared: Arc<Shared>,
    mut stopped: watch::Receiver<Stop>,
) {
    for worker in workers.iter().cycle() {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.wait_for(|stop| *stop != Stop::No) => return,
        };
        match accepted {
            Ok(accepted) => {
                shared.accepted.fetch_add(1, Ordering::Relaxed);
                if worker.send(accepted).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                let hint = descriptors_hint(&error).map_or(String::new(), |hint| format!(". {hint}"));
                notice(Kind::Accept, None, &format!("cannot accept a connection: {error}{hint}"));
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
    let mut builder = Builder::new_current_thread();
    builder.enable_all().event_interval(1).max_blocking_threads(LOOKUPS_MAX);
    builder.build().map_err(GatewayError::Start)
}

pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, GatewayError> {
    thread::Builder::new().name(name.into()).spawn(body).map_err(GatewayError::Start)
}
