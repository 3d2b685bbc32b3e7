//! The limit for every server: one system call to read a question, one to write an answer of the same size as a
//! database's.
//!
//! A question begins with its own length and that of its answer, four bytes each. So it needs no other agreement.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::Plays;
use crate::LabError;
use crate::client::Answer;
use crate::plan::{Act, Plan};

/// Bytes of the two lengths.
const LENGTHS: usize = 8;
/// Longest question and longest answer.
const BYTES_MAX: usize = 1 << 16;

/// The server: a thread for each session.
#[derive(Debug)]
pub(in crate::run) struct Server {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
}

/// A session.
#[derive(Debug)]
pub(super) struct Player {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Server {
    pub(super) fn start() -> Result<Self, LabError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(LabError::Connection)?;
        let address = listener.local_addr().map_err(LabError::Connection)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_over);
        let named = || thread::Builder::new().name("onetrip-echo".into());
        let accept = move || {
            for stream in listener.incoming().flatten() {
                if told.load(Ordering::Relaxed) {
                    return;
                }
                // A session whose thread cannot be had, or that breaks, sees its connection end.
                let _ = named().spawn(move || answer(stream));
            }
        };
        named().spawn(accept).map_err(LabError::Connection)?;
        Ok(Self { address, is_over })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Its thread looks at that when somebody comes.
        let _ = TcpStream::connect(self.address);
    }
}

/// Answers until the client ends the connection.
fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; BYTES_MAX];
    let mut filled = 0;
    loop {
        let bytes = stream.read(&mut buffer[filled..])?;
        if bytes == 0 {
            return Ok(());
        }
        filled += bytes;
        let Some((ask, answer)) = lengths(&buffer[..filled]) else { continue };
        if ask > BYTES_MAX || answer > BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if filled >= ask {
            stream.write_all(&buffer[..answer])?;
            filled = 0;
        }
    }
}

fn lengths(question: &[u8]) -> Option<(usize, usize)> {
    let (ask, rest) = question.split_first_chunk::<4>()?;
    let (answer, _) = rest.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*ask) as usize, u32::from_be_bytes(*answer) as usize))
}

impl Player {
    pub(super) fn connect(address: SocketAddr) -> Result<Self, LabError> {
        let stream = TcpStream::connect(address).map_err(LabError::Connection)?;
        stream.set_nodelay(true).map_err(LabError::Connection)?;
        Ok(Self { stream, buffer: vec![0; BYTES_MAX] })
    }

    fn exchange(&mut self, ask: usize, answer: usize) -> io::Result<()> {
        if !(LENGTHS..=BYTES_MAX).contains(&ask) || answer > BYTES_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.buffer[..4].copy_from_slice(&(ask as u32).to_be_bytes());
        self.buffer[4..LENGTHS].copy_from_slice(&(answer as u32).to_be_bytes());
        self.stream.write_all(&self.buffer[..ask])?;
        self.stream.read_exact(&mut self.buffer[..answer])
    }
}

impl Plays for Player {
    fn play(&mut self, plan: &Plan) -> Result<Answer, LabError> {
        let mut done = Answer::default();
        for act in &plan.acts {
            let Act::Exchange { ask, answer, times } = act else {
                return Err(LabError::Database("only bytes for bytes can be had from an echo".to_owned()));
            };
            for _ in 0..*times {
                self.exchange(*ask, *answer).map_err(LabError::Connection)?;
            }
            done.rows += *times as u64;
            done.flights += *times as u64;
        }
        Ok(done)
    }

    fn memory_max(&self) -> usize {
        self.buffer.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_bytes_come_back_as_were_asked_for() {
        let server = Server::start().unwrap();
        let mut player = Player::connect(server.address()).unwrap();
        let plan = |act| {
            let mut plan = Plan::default();
            plan.acts.push(act);
            plan
        };
        let exchange = |ask, answer| plan(Act::Exchange { ask, answer, times: 3 });
        assert_eq!(player.play(&exchange(37, 70)).unwrap(), Answer { rows: 3, sum: 0, flights: 3 });
        assert_eq!(player.play(&exchange(8, 60_000)).unwrap().rows, 3);
        assert!(player.play(&exchange(7, 70)).is_err());
        assert!(player.play(&plan(Act::Flight(Vec::new()))).is_err());
    }
}
