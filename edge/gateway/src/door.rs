//! The door: clients are accepted, say who they are, and are given a leg to the database. Then a worker of the engine has
//! them. All that is rare happens here, on the runtime of the listener's thread: TLS handshakes, dialling, cancel requests.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use onetrip_target::Protocol;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::LocalSet;

use crate::GatewayError;
use crate::address::ListenAddress;
use crate::conversation::Conversation;
use crate::dial::Upstream;
use crate::engine::{Connection, Engine};
use crate::error::descriptors_hint;
use crate::leg::Leg;
use crate::notice::{Kind, Peer, notice, tell_end};
use crate::opening::{Client, Opened, Opening};
use crate::recorder::Recorder;
use crate::shared::{Alive, LAST_WORDS_MAX, Shared, Stop, spawn};
use crate::socket::{CLIENT_KEEPALIVES, Socket};

/// Threads that look up names, for each door.
const LOOKUPS_MAX: usize = 16;
/// Pause after a failed accept, such as one for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long a client may take for its startup packet, as PostgreSQL's `authentication_timeout`.
const OPENING_MAX: Duration = Duration::from_secs(60);
/// What a client that is not let in yet has sent before a stop is dealt with for so long: why it left is told then.
const LAST_BYTES: Duration = Duration::from_millis(100);

/// A listener, and what its clients are given to.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) shared: Arc<Shared>,
    pub(crate) recorder: Recorder,
    pub(crate) engine: Arc<Engine>,
    pub(crate) stop: watch::Receiver<Stop>,
}

impl Door {
    /// Lets clients in until a stop; ends when the last is with a worker, or gone.
    pub(crate) fn open(self, listening: Listening) -> Result<JoinHandle<()>, GatewayError> {
        spawn("onetrip-accept", move || {
            let Listening { listener, runtime } = listening;
            let opening = LocalSet::new();
            let mut stop = self.stop.clone();
            opening.block_on(&runtime, self.accept(listener));
            runtime.block_on(async {
                let patience = async {
                    // If nobody can say so any more, all are to stop.
                    let _ = stop.wait_for(|stop| *stop == Stop::Now).await;
                    tokio::time::sleep(LAST_WORDS_MAX).await;
                };
                tokio::select! {
                    () = opening => {}
                    // Those that are slow go without last words. Dropping them ends their books.
                    () = patience => {}
                }
            });
        })
    }

    async fn accept(self, listener: Listener) {
        let mut stop = self.stop.clone();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = stop.wait_for(|stop| *stop != Stop::No) => return,
            };
            match accepted {
                Ok((socket, address)) => {
                    self.shared.accepted.fetch_add(1, Ordering::Relaxed);
                    self.let_in(socket, address);
                }
                Err(error) => {
                    let hint = descriptors_hint(&error).map_or(String::new(), |hint| format!(". {hint}"));
                    notice(Kind::Accept, None, &format!("cannot accept a connection: {error}{hint}"));
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn let_in(&self, socket: Socket, address: Option<SocketAddr>) {
        let number = self.shared.next_number.fetch_add(1, Ordering::Relaxed);
        let peer = Peer { number, address };
        let alive = Alive::new(Arc::clone(&self.shared));
        let door = self.clone();
        tokio::task::spawn_local(async move {
            tell_end(peer, &door.serve(Client { socket, peer, alive }).await);
        });
    }

    /// Opens a connection and gives it to a worker.
    async fn serve(self, client: Client) -> Result<(), GatewayError> {
        match self.shared.dialer().protocol() {
            Protocol::Postgres => self.serve_postgres(client).await,
            Protocol::Mysql => self.serve_mysql(client).await,
        }
    }

    /// The server speaks first, so it is dialled before the client has said anything.
    async fn serve_mysql(mut self, client: Client) -> Result<(), GatewayError> {
        let mut opening = Opening::watched(client, Arc::clone(&self.shared), self.recorder.clone());
        let dialled = tokio::select! {
            biased;
            dialled = opening.dial_and_secure() => dialled,
            _ = self.stop.wait_for(|stop| *stop != Stop::No) => Err(opening.refuse_for_stop()),
        };
        self.hand_over(opening, dialled).await
    }

    async fn serve_postgres(mut self, client: Client) -> Result<(), GatewayError> {
        let mut opening = Opening::new(client, Arc::clone(&self.shared), self.recorder.clone())?;
        let opened = tokio::select! {
            biased;
            opened = tokio::time::timeout(OPENING_MAX, opening.open()) => opened.unwrap_or(Ok(Opened::Gone)),
            () = stopped_for(LAST_BYTES, &mut self.stop) => Ok(Opened::Gone),
        };
        let dialled = match opened {
            Ok(Opened::Session) => tokio::select! {
                biased;
                dialled = opening.dial() => dialled,
                _ = self.stop.wait_for(|stop| *stop != Stop::No) => Err(opening.refuse_for_stop()),
            },
            Ok(Opened::Cancel(shown)) => {
                // However long that takes: given up on its way, it would hold its session.
                opening.shared.cancels.carry(shown, opening.peer).await;
                return Ok(());
            }
            Ok(Opened::Gone) => {
                // Some drivers ask for encryption on a connection of its own, and that is a trip all the same.
                opening.end_books();
                return Ok(());
            }
            Err(error) => Err(error),
        };
        if let Ok((server, _)) = &dialled {
            opening.reached(server);
        }
        self.hand_over(opening, dialled).await
    }

    /// Gives a connection to a worker, or tells its client why there is none.
    async fn hand_over<C: Conversation>(
        self,
        mut opening: Opening<C>,
        dialled: Result<(Leg, Upstream), GatewayError>,
    ) -> Result<(), GatewayError> {
        match dialled {
            Ok((server, upstream)) => {
                self.engine.serve(Box::new(Connection::new(opening, server, upstream)?));
                Ok(())
            }
            Err(error) => {
                opening.say_last_words().await;
                opening.end_books();
                match error {
                    GatewayError::Stopping => Ok(()),
                    error => Err(error),
                }
            }
        }
    }
}

/// Waits until all are to stop, and then for so long.
async fn stopped_for(time: Duration, stop: &mut watch::Receiver<Stop>) {
    // If nobody can say so any more, all are to stop.
    let _ = stop.wait_for(|stop| *stop != Stop::No).await;
    tokio::time::sleep(time).await;
}

/// A listening socket with the runtime that it belongs to.
pub(crate) struct Listening {
    listener: Listener,
    runtime: Runtime,
}

impl Listening {
    /// Returns also where it listens, with the port that it got.
    pub(crate) fn bind(address: &ListenAddress) -> Result<(Self, ListenAddress), GatewayError> {
        let mut builder = Builder::new_current_thread();
        let runtime =
            builder.enable_all().max_blocking_threads(LOOKUPS_MAX).build().map_err(GatewayError::Start)?;
        let (listener, bound) = Listener::bind(address, &runtime)?;
        Ok((Self { listener, runtime }, bound))
    }

    /// A Unix socket, and where it is.
    pub(crate) fn bind_unix(path: PathBuf) -> Result<(Self, ListenAddress), GatewayError> {
        Self::bind(&ListenAddress::Unix(path))
    }
}

/// A listening socket of either kind.
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
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

    /// A client, and where it is; that is `None` on a Unix socket.
    async fn accept(&self) -> io::Result<(Socket, Option<SocketAddr>)> {
        let (socket, address) = match self {
            Self::Tcp(listener) => {
                listener.accept().await.map(|(stream, peer)| (Socket::from(stream), Some(peer)))?
            }
            Self::Unix(listener) => {
                listener.accept().await.map(|(stream, _)| (Socket::from(stream), None))?
            }
        };
        socket.watch(&CLIENT_KEEPALIVES);
        Ok((socket, address))
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
