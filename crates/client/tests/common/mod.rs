//! What the client's tests share: real servers.
#![allow(dead_code)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Where a server is, as `scripts/pgserver.py` tells it.
#[derive(Debug, Clone, serde::Deserialize)]
pub(crate) struct Address {
    pub(crate) port: u16,
    pub(crate) host: String,
    pub(crate) socket_dir: PathBuf,
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) ca: Option<PathBuf>,
}

/// A throw-away server; it ends when this value does, at the latest with the test process.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) at: Address,
    process: Child,
}

impl Server {
    /// Starts one; `arguments` are those of `scripts/pgserver.py`.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut process = Command::new("python3")
            .arg(repository.join("scripts/pgserver.py"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 runs");
        let mut line = String::new();
        let stdout = process.stdout.take().expect("its output is a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("it says where it is");
        let at = serde_json::from_str(&line).expect("pgserver.py prints an address (or says above why not)");
        Self { at, process }
    }

    /// PostgreSQL 15 that lets everybody in; one per test binary.
    pub(crate) fn shared() -> &'static Self {
        static SERVER: OnceLock<Server> = OnceLock::new();
        SERVER.get_or_init(|| Self::start(&["--auth", "trust", "--set", "max_connections=200"]))
    }

    /// A URL without TLS, with room for more parameters behind it.
    pub(crate) fn url(&self) -> String {
        self.url_at(self.at.port)
    }

    /// The same by another port.
    pub(crate) fn url_at(&self, port: u16) -> String {
        let Address { user, password, host, .. } = &self.at;
        format!("postgres://{user}:{password}@{host}:{port}/postgres?sslmode=disable")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // It stops by itself once its input is closed.
        let _ = self.process.wait();
    }
}

/// A relay in front of a server that counts turns: pieces of the conversation that begin with the client after the
/// server has spoken.
#[derive(Debug)]
pub(crate) struct Turns {
    pub(crate) port: u16,
    count: Arc<AtomicUsize>,
}

impl Turns {
    pub(crate) fn before(server: &Server) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let count = Arc::new(AtomicUsize::new(0));
        let (counting, target) = (Arc::clone(&count), (server.at.host.clone(), server.at.port));
        std::thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                let counting = Arc::clone(&counting);
                let upstream = TcpStream::connect((target.0.as_str(), target.1)).expect("the server listens");
                let spoke = Arc::new(AtomicBool::new(true));
                let (up, down) =
                    (upstream.try_clone().expect("a socket"), client.try_clone().expect("a socket"));
                let heard = Arc::clone(&spoke);
                std::thread::spawn(move || {
                    relay(client, up, || {
                        if heard.swap(false, Ordering::SeqCst) {
                            counting.fetch_add(1, Ordering::SeqCst);
                        }
                    });
                });
                std::thread::spawn(move || relay(upstream, down, || spoke.store(true, Ordering::SeqCst)));
            }
        });
        Self { port, count }
    }

    /// The turns that some work takes.
    pub(crate) fn of<T>(&self, work: impl FnOnce() -> T) -> usize {
        let before = self.count.load(Ordering::SeqCst);
        work();
        self.count.load(Ordering::SeqCst) - before
    }
}

/// Passes bytes on; each time some came, `came` is told before they go out.
fn relay(mut from: TcpStream, mut to: TcpStream, came: impl Fn()) {
    let mut buffer = vec![0; 1 << 20];
    loop {
        match from.read(&mut buffer) {
            Ok(count) if count > 0 => {
                came();
                if to.write_all(&buffer[..count]).is_err() {
                    break;
                }
            }
            _ => break,
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
