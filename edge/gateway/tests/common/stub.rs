//! A server that is none: it lets everybody in, answers every Query with a row of its text's last word, and fails as it is told to.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use onetrip_target::Conninfo;

use super::server::conninfo;

/// How it treats those who ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Manner {
    #[default]
    Answers,
    /// Neither reads nor writes until it is told otherwise.
    StandsStill,
    /// Sends its answers byte by byte.
    IsSlow,
    /// Answers with what is no message.
    TalksNonsense,
    /// Hangs up in the midst of an answer.
    HangsUp,
}

#[derive(Debug, Default)]
struct Shared {
    manner: Mutex<Manner>,
    changed: Condvar,
}

#[derive(Debug)]
pub(crate) struct Stub {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

impl Stub {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let shared = Arc::<Shared>::default();
        let theirs = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&theirs);
                // A client that leaves ends its thread.
                thread::spawn(move || serve(&stream, &shared));
            }
        });
        Self { port, shared }
    }

    pub(crate) fn upstream(&self) -> Conninfo {
        conninfo(&format!("postgres://onetrip@127.0.0.1:{}/postgres?sslmode=disable", self.port))
    }

    pub(crate) fn becomes(&self, manner: Manner) {
        *self.shared.manner.lock().unwrap_or_else(PoisonError::into_inner) = manner;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    /// How it is now; waits while it stands still.
    fn manner(&self) -> Manner {
        let mut manner = self.manner.lock().unwrap_or_else(PoisonError::into_inner);
        while *manner == Manner::StandsStill {
            manner = self.changed.wait(manner).unwrap_or_else(PoisonError::into_inner);
        }
        *manner
    }
}

fn serve(mut stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    stream.read_exact(&mut vec![0; u32::from_be_bytes(length) as usize - 4])?;
    shared.manner();
    stream.write_all(b"R\0\0\0\x08\0\0\0\0K\0\0\0\x0c\0\0\0\x07\0\0\0\x07Z\0\0\0\x05I")?;
    loop {
        let mut header = [0; 5];
        stream.read_exact(&mut header)?;
        let mut body = vec![0; u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize - 4];
        stream.read_exact(&mut body)?;
        if header[0] != b'Q' {
            return Ok(()); // Terminate
        }
        let answer = answer(&body);
        match shared.manner() {
            Manner::IsSlow => {
                for byte in answer.chunks(1) {
                    stream.write_all(byte)?;
                    thread::sleep(Duration::from_millis(1));
                }
            }
            Manner::TalksNonsense => stream.write_all(b"\xff\xff\xff\xff\xff\xff")?,
            Manner::HangsUp => {
                stream.write_all(&answer[..answer.len() - 3])?;
                return stream.shutdown(Shutdown::Both);
            }
            _ => stream.write_all(&answer)?,
        }
    }
}

fn answer(text: &[u8]) -> Vec<u8> {
    let text = text.strip_suffix(b"\0").unwrap_or(text);
    let word = text.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    let word = word.strip_prefix(b"'").and_then(|word| word.strip_suffix(b"'")).unwrap_or(word);
    let mut out = Vec::new();
    let mut message = |tag: u8, body: &[u8]| {
        out.push(tag);
        out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        out.extend_from_slice(body);
    };
    message(b'T', b"\0\x01c\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0");
    message(b'D', &[b"\0\x01", &(word.len() as u32).to_be_bytes()[..], word].concat());
    message(b'C', b"SELECT 1\0");
    message(b'Z', b"I");
    out
}
