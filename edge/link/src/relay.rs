use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{BorrowedFd, OwnedFd};

use crate::pacer::Pacer;
use crate::spec::LinkSpec;
use crate::stats::LinkStats;

/// Where a relay's connections lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A TCP service.
    Tcp(SocketAddr),
    /// A unix socket; the link's distance is added all the same.
    Unix(PathBuf),
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl From<PathBuf> for Target {
    fn from(path: PathBuf) -> Self {
        Self::Unix(path)
    }
}

/// Sets options on a socket that will connect to the target.
pub(crate) type Prepare = Box<dyn Fn(BorrowedFd<'_>) + Send>;

/// A simulated link in the background: connections to [`local_addr`](Self::local_addr) reach the target as if it were
/// as far away as the spec says. Dropping it cuts its connections.
#[derive(Debug)]
pub struct Relay {
    local_addr: SocketAddr,
    shutdown: Shutdown,
    pacer: Option<JoinHandle<io::Result<LinkStats>>>,
}

impl Relay {
    /// Listens on a free port of 127.0.0.1. Fails if the system refuses a socket or a thread; whether the target
    /// answers shows only when a client connects.
    pub fn start(spec: LinkSpec, target: impl Into<Target>) -> io::Result<Self> {
        Self::start_on(spec, TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?, target)
    }

    /// Like [`start`](Self::start), on a listener of the caller's.
    pub fn start_on(spec: LinkSpec, listener: TcpListener, target: impl Into<Target>) -> io::Result<Self> {
        Self::start_with(spec, listener, target.into(), Box::new(|_| ()))
    }

    /// Like [`start`](Self::start), where each socket to the target gets options before it connects.
    pub fn start_prepared(
        spec: LinkSpec,
        target: impl Into<Target>,
        prepare: impl Fn(BorrowedFd<'_>) + Send + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        Self::start_with(spec, listener, target.into(), Box::new(prepare))
    }

    fn start_with(
        spec: LinkSpec,
        listener: TcpListener,
        target: Target,
        prepare: Prepare,
    ) -> io::Result<Self> {
        let local_addr = listener.local_addr()?;
        let shutdown = Shutdown::new()?;
        let pacer = spawn(spec, listener, target, prepare, &shutdown)?;
        Ok(Self { local_addr, shutdown, pacer: Some(pacer) })
    }

    /// Where clients connect.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// What happened so far. Fails if the relay's thread has ended on an error, which [`stop`](Self::stop) tells.
    pub fn stats(&self) -> io::Result<LinkStats> {
        self.shutdown.control.ask()
    }

    /// Cuts all connections, ends the thread and returns what happened, or why the relay had ended before.
    pub fn stop(mut self) -> io::Result<LinkStats> {
        self.shutdown.trigger();
        match self.pacer.take() {
            Some(pacer) => join(pacer),
            None => Err(stopped()),
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shutdown.trigger();
        if let Some(pacer) = self.pacer.take() {
            // Nobody is left to hear of an error.
            let _ = join(pacer);
        }
    }
}

/// Relays the connections of `listener` to `target` over a link until `shutdown` is triggered; then cuts those that
/// are left and returns what happened. Fails if the system refuses a thread or its event queue.
pub fn serve(
    spec: LinkSpec,
    listener: TcpListener,
    target: impl Into<Target>,
    shutdown: &Shutdown,
) -> io::Result<LinkStats> {
    join(spawn(spec, listener, target.into(), Box::new(|_| ()), shutdown)?)
}

fn spawn(
    spec: LinkSpec,
    listener: TcpListener,
    target: Target,
    prepare: Prepare,
    shutdown: &Shutdown,
) -> io::Result<JoinHandle<io::Result<LinkStats>>> {
    let pacer = Pacer::new(spec, listener, (target, prepare), Arc::clone(&shutdown.control))?;
    thread::Builder::new().name("onetrip-link".to_owned()).spawn(move || pacer.run())
}

fn join(pacer: JoinHandle<io::Result<LinkStats>>) -> io::Result<LinkStats> {
    pacer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Ends [`serve`] from another thread. One belongs to one call of `serve`; clones trigger the same.
#[derive(Debug, Clone)]
pub struct Shutdown {
    control: Arc<Control>,
}

impl Shutdown {
    /// Fails if the system has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let control = Control { wake, stop: AtomicBool::new(false), asked: Mutex::new(Some(Vec::new())) };
        Ok(Self { control: Arc::new(control) })
    }

    /// Asks for the end; returns at once.
    pub fn trigger(&self) {
        self.control.stop.store(true, Ordering::Release);
        self.control.wake();
    }
}

/// What other threads want from a pacer.
#[derive(Debug)]
pub(crate) struct Control {
    wake: OwnedFd,
    stop: AtomicBool,
    /// Who waits for statistics; `None` once the pacer has ended.
    asked: Mutex<Option<Vec<Sender<LinkStats>>>>,
}

impl Control {
    /// Becomes readable when there is something to look at.
    pub(crate) fn wake_fd(&self) -> &OwnedFd {
        &self.wake
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Makes the descriptor unreadable again and returns who waits for statistics.
    pub(crate) fn take_asked(&self) -> Vec<Sender<LinkStats>> {
        // An empty counter (EAGAIN) only means that nobody woke us.
        let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// From now on nobody will be answered.
    pub(crate) fn close(&self) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn ask(&self) -> io::Result<LinkStats> {
        let (answer, answered) = mpsc::channel();
        match self.asked.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(asked) => asked.push(answer),
            None => return Err(stopped()),
        }
        self.wake();
        answered.recv().map_err(|_| stopped())
    }

    fn wake(&self) {
        // It can only fail when the counter is full (EAGAIN), and then the pacer is awake already.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

fn stopped() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the link's relay has stopped")
}
