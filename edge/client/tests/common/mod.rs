//! What the client's tests share: real servers.
#![allow(dead_code)]

pub(crate) mod sets;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

pub(crate) use onetrip_pgserver::PgServer as Server;

/// A relay in front of a server that counts turns: pieces of the conversation that begin with the client after the
/// server has spoken.
#[derive(Debug)]
pub(crate) struct Turns {
    pub(crate) port: u16,
    count: Arc<AtomicUsize>,
}

impl Turns {
    pub(crate) fn before(server: &Server) -> Self {
        Self::far_from(server, Duration::ZERO)
    }

    /// A relay that keeps what comes for a while, each way.
    pub(crate) fn far_from(server: &Server, one_way: Duration) -> Self {
        Self::by_paths(server, move |_| one_way)
    }

    /// A relay whose connections, counted from zero, are as long as you say, each way.
    pub(crate) fn by_paths(server: &Server, one_way: impl Fn(usize) -> Duration + Send + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let count = Arc::new(AtomicUsize::new(0));
        let (counting, target) = (Arc::clone(&count), (server.at.host.clone(), server.at.port));
        std::thread::spawn(move || {
            for number in 0.. {
                let Ok((client, _)) = listener.accept() else { break };
                let one_way = one_way(number);
                let counting = Arc::clone(&counting);
                let upstream = TcpStream::connect((target.0.as_str(), target.1)).expect("the server listens");
                let spoke = Arc::new(AtomicBool::new(true));
                let (up, down) =
                    (upstream.try_clone().expect("a socket"), client.try_clone().expect("a socket"));
                let heard = Arc::clone(&spoke);
                std::thread::spawn(move || {
                    relay(client, up, one_way, || {
                        if heard.swap(false, Ordering::SeqCst) {
                            counting.fetch_add(1, Ordering::SeqCst);
                        }
                    });
                });
                std::thread::spawn(move || {
                    relay(upstream, down, one_way, || spoke.store(true, Ordering::SeqCst))
                });
            }
        });
        Self { port, count }
    }

    /// The turns that some work takes.
    pub(crate) fn of<T>(&self, work: impl FnOnce() -> T) -> usize {
        let before = self.so_far();
        work();
        self.so_far() - before
    }

    /// All turns until now.
    pub(crate) fn so_far(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

/// Passes bytes on; each time some came, `came` is told before they go out.
fn relay(mut from: TcpStream, mut to: TcpStream, one_way: Duration, came: impl Fn()) {
    let mut buffer = vec![0; 1 << 20];
    loop {
        match from.read(&mut buffer) {
            Ok(count) if count > 0 => {
                came();
                std::thread::sleep(one_way);
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
