//! Sockets around sessions, which a few threads serve by turns.

mod connection;
mod crew;
mod input;
mod registry;
mod replay;
mod scram;
mod startup;
mod wire;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use crate::database;
use crate::error::EmbedError;
use crate::options::ServeOptions;
use connection::Context;
use crew::{Changes, Crew};
use registry::STOP_MAX;
pub use replay::replay;

/// What a server did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServeStats {
    /// Connections that were accepted, those for cancelling and refused ones included.
    pub connections: u64,
    /// Sessions that were started.
    pub sessions: u64,
    /// Messages that sessions were sent.
    pub messages: u64,
    /// How often a session was about to wait for something but its client's next message, so that another thread went on
    /// with the others.
    pub hand_overs: u64,
    /// How often another thread went on with the others because a session took long.
    pub take_overs: u64,
}

/// Ends a server from any thread, or from a signal handler's thread.
#[derive(Debug, Clone)]
pub struct Shutdown {
    event: Arc<OwnedFd>,
}

impl Shutdown {
    /// A handle that no server listens to yet.
    ///
    /// # Errors
    /// [`EmbedError::System`] where the system is out of file descriptors.
    pub fn new() -> Result<Self, EmbedError> {
        let event = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| EmbedError::System(error.into()))?;
        Ok(Self { event: Arc::new(event) })
    }

    /// Asks [`serve`] to end; it does once its connections are closed, which takes a few seconds at most.
    pub fn stop(&self) {
        // Fails only when the counter is full, and then the server is being told already.
        let _ = rustix::io::write(&*self.event, &1u64.to_ne_bytes());
    }
}

/// Serves a database on a listening socket until `shutdown` says otherwise.
///
/// # Errors
/// [`EmbedError::Open`] where the file is no SQLite database or cannot be opened, [`EmbedError::Listen`] where the
/// socket fails, [`EmbedError::System`] where the system refuses random bytes.
pub fn serve(
    options: ServeOptions,
    listener: TcpListener,
    shutdown: &Shutdown,
) -> Result<ServeStats, EmbedError> {
    let first = database::open(&options, true)
        .and_then(|connection| {
            connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))?;
            Ok(connection)
        })
        .map_err(|error| EmbedError::Open { path: options.database.clone(), error })?;
    listener.set_nonblocking(true).map_err(EmbedError::Listen)?;
    let context = Arc::new(Context::new(options).map_err(EmbedError::System)?);
    let crew = Crew::new().map_err(EmbedError::System)?;
    let accepted = accept_all(&listener, shutdown, &context, &crew);
    let stopped = Instant::now();
    context.registry.close_all();
    drop(first); // the write-ahead log is folded into the file by the last one to close
    crew.stop(STOP_MAX.saturating_sub(stopped.elapsed()));
    accepted?;
    let Changes { hand_overs, take_overs } = crew.changes();
    Ok(ServeStats { hand_overs, take_overs, ..context.registry.stats() })
}

fn accept_all(
    listener: &TcpListener,
    shutdown: &Shutdown,
    context: &Arc<Context>,
    crew: &Arc<Crew>,
) -> Result<(), EmbedError> {
    loop {
        let mut polled =
            [PollFd::new(listener, PollFlags::IN), PollFd::from_borrowed_fd(shutdown.as_fd(), PollFlags::IN)];
        match poll(&mut polled, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(EmbedError::Listen(error.into())),
        }
        if !polled[1].revents().is_empty() {
            return Ok(());
        }
        match listener.accept() {
            Ok((stream, _)) => {
                if context.registry.has_room() {
                    start_login(stream, context, crew);
                }
            }
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(EmbedError::Listen(error)),
        }
    }
}

/// Whether accepting may work again: the client left, or the system is short of something.
fn is_passing(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    if matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)) {
        std::thread::sleep(std::time::Duration::from_millis(50));
        return true;
    }
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted
    )
}

fn start_login(stream: TcpStream, context: &Arc<Context>, crew: &Arc<Crew>) {
    let stream = Arc::new(stream);
    let ticket = context.registry.enter(Some(Arc::clone(&stream)));
    let (context, crew, at) = (Arc::clone(context), Arc::clone(crew), Arc::clone(crew));
    // Where no thread can be had, the closure is dropped and with it the connection and its ticket.
    let _ = at.run(move || connection::open(&context, &crew, stream, ticket));
}

impl Shutdown {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&*self.event)
    }
}

/// A server in this process, on a thread of its own.
#[derive(Debug)]
pub struct Server {
    local_addr: SocketAddr,
    shutdown: Shutdown,
    thread: Option<JoinHandle<Result<ServeStats, EmbedError>>>,
}

impl Server {
    /// Listens on [`ServeOptions::listen`] and serves from another thread. When this returns, clients can connect.
    ///
    /// # Errors
    /// Those of [`serve`] that show at once: the file, the address.
    pub fn start(options: ServeOptions) -> Result<Self, EmbedError> {
        // The address first: where it is taken, no file is made.
        let listener = TcpListener::bind(options.listen).map_err(EmbedError::Listen)?;
        let local_addr = listener.local_addr().map_err(EmbedError::Listen)?;
        database::open(&options, true)
            .map_err(|error| EmbedError::Open { path: options.database.clone(), error })?;
        let shutdown = Shutdown::new()?;
        let theirs = shutdown.clone();
        let thread = std::thread::Builder::new()
            .name("onetrip-serve".to_owned())
            .spawn(move || serve(options, listener, &theirs))
            .map_err(EmbedError::System)?;
        Ok(Self { local_addr, shutdown, thread: Some(thread) })
    }

    /// Where clients connect to.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Closes all connections and waits for their threads.
    ///
    /// # Errors
    /// What [`serve`] ended with.
    pub fn stop(mut self) -> Result<ServeStats, EmbedError> {
        self.shutdown.stop();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            _ => Ok(ServeStats::default()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shutdown.stop();
        if let Some(thread) = self.thread.take() {
            // A panic there was reported by the panic hook.
            let _ = thread.join();
        }
    }
}
