use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustix::fd::BorrowedFd;

use crate::control::{Control, stopped};
use crate::pacer::Pacer;
use crate::spec::LinkSpec;
use crate::stats::LinkStats;
use crate::target::{Prepare, Target};

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
        Ok(Self { control: Arc::new(Control::new()?) })
    }

    /// Asks for the end; returns at once.
    pub fn trigger(&self) {
        self.control.stop();
    }
}
