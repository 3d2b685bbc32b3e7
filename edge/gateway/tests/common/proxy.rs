//! A proxy between the gateway and the database that delays, swallows or chops.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use onetrip_wire::pg::{FrameHeader, HEADER_BYTES};

use super::client::Endpoint;

/// Second word of a CancelRequest.
const CANCEL_CODE: [u8; 4] = [0x04, 0xd2, 0x16, 0x2e];

/// What becomes of connections whose first packet is a CancelRequest.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cancelling {
    /// The request arrives so much later.
    Delayed(Duration),
    /// It is taken and never arrives; the connection stays open.
    Swallowed,
}

/// What a proxy does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    pub(crate) cancelling: Cancelling,
    /// Bytes per write towards the gateway; all at once if `None`.
    pub(crate) reply_chunk: Option<usize>,
}

/// A proxy on a port of its own; it lives as long as the test process.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) port: u16,
    cancels: Arc<AtomicUsize>,
}

impl Proxy {
    pub(crate) fn start(server: Endpoint, manner: Manner) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let cancels = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&cancels);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Endpoint::Tcp(address) = server else { break };
                let count = Arc::clone(&count);
                thread::spawn(move || {
                    let server = TcpStream::connect(address).expect("the server listens");
                    relay(&client, &server, manner, &count);
                });
            }
        });
        Self { port, cancels }
    }

    /// CancelRequests that came so far.
    pub(crate) fn cancels(&self) -> usize {
        self.cancels.load(Ordering::SeqCst)
    }
}

fn relay(client: &TcpStream, server: &TcpStream, manner: Manner, cancels: &AtomicUsize) {
    for stream in [client, server] {
        stream.set_nodelay(true).expect("a TCP socket");
    }
    let mut first = [0; 8];
    if { client }.read_exact(&mut first).is_err() {
        return;
    }
    if first[4..] == CANCEL_CODE {
        cancels.fetch_add(1, Ordering::SeqCst);
        match manner.cancelling {
            Cancelling::Delayed(delay) => thread::sleep(delay),
            Cancelling::Swallowed => {
                // Until the gateway gives up.
                let _ = { client }.read_to_end(&mut Vec::new());
                return;
            }
        }
    }
    if { server }.write_all(&first).is_err() {
        return;
    }
    thread::scope(|scope| {
        scope.spawn(|| carry(server, client, manner.reply_chunk));
        carry(client, server, None);
    });
}

fn carry(mut from: &TcpStream, mut into: &TcpStream, chunk: Option<usize>) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let mut pieces = buffer[..count].chunks(chunk.unwrap_or(count));
        if pieces.any(|piece| into.write_all(piece).is_err()) {
            break;
        }
    }
    // The other end may be gone.
    let _ = into.shutdown(Shutdown::Write);
}

/// A message with its header, a startup packet or another; none if the peer has gone.
pub(crate) fn read_message(mut from: &TcpStream, is_startup: bool) -> Option<Vec<u8>> {
    let mut message = vec![0; if is_startup { 4 } else { HEADER_BYTES }];
    from.read_exact(&mut message).ok()?;
    let before = message.len();
    let length = match is_startup {
        true => u32::from_be_bytes(message[..4].try_into().ok()?) as usize,
        false => FrameHeader::peek(&message, u32::MAX)?.ok()?.frame_len(),
    };
    message.resize(length, 0);
    from.read_exact(&mut message[before..]).ok()?;
    Some(message)
}
