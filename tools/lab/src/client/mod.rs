//! A session that sends exactly what a plan says, in exactly as many writes: also what no client should send. It
//! represents other people's drivers. The lab's own questions use onetrip's client (`database/session.rs`).
//!
//! Requests of a flight leave in one write. A run of executions ends in one Sync, and a simple query has its own.
//! Replies are read while a flight is still being written, so that two full buffers cannot block each other.

mod login;
mod play;
mod rows;

use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use onetrip_wire::pg::{
    Bind, ErrorResponse, Execute, Formats, FrameHeader, HEADER_BYTES, Parse, StatementOrPortal, Values,
    frame, frontend,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::SendFlags;

pub(crate) use login::Login;
pub(crate) use play::{Answer, Player};
pub(crate) use rows::Rows;

use crate::LabError;

/// Longest message that a server may send: 1 GiB, as PostgreSQL's.
const MESSAGE_BYTES_MAX: u32 = 1 << 30;
/// A read asks for at least this much.
const READ_BYTES: usize = 64 << 10;
/// Longest silence of a server; longer than any statement of a workload.
const SILENCE_MAX: Duration = Duration::from_secs(600);
/// Beginning of a statement that an error shows.
const SHOWN_CHARACTERS: usize = 60;

/// One session.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    output: Vec<u8>,
    /// Bytes received; those before `read` are used up.
    input: Vec<u8>,
    read: usize,
    filled: usize,
    /// Statements that are prepared, by their place in the plan.
    prepared: Vec<bool>,
    /// Most bytes that were held at once for messages and rows.
    memory_max: usize,
}

impl Client {
    /// Opens a session.
    pub(crate) fn connect(address: SocketAddr, login: &Login) -> Result<Self, LabError> {
        let stream = TcpStream::connect(address).map_err(LabError::Connection)?;
        stream.set_nodelay(true).map_err(LabError::Connection)?;
        stream.set_read_timeout(Some(SILENCE_MAX)).map_err(LabError::Connection)?;
        let mut client = Self {
            stream,
            output: Vec::new(),
            input: Vec::new(),
            read: 0,
            filled: 0,
            prepared: Vec::new(),
            memory_max: 0,
        };
        login::log_in(&mut client, login)?;
        Ok(client)
    }

    /// Says good-bye.
    pub(crate) fn close(mut self) {
        frame(&mut self.output, frontend::TERMINATE, |_| ());
        // The session is over in either case.
        let _ = self.send(0);
    }

    fn put_query(&mut self, text: &str) {
        frame(&mut self.output, frontend::QUERY, |out| {
            out.extend_from_slice(text.as_bytes());
            out.push(0);
        });
    }

    /// Prepares a statement if it is not, under the name `sN`, or in any case where the name is empty.
    fn put_parse(&mut self, place: usize, name: &[u8], text: &str) {
        let is_known = self.prepared.get(place).copied().unwrap_or(false);
        if name.is_empty() || !is_known {
            Parse::untyped(name, text.as_bytes()).encode(&mut self.output);
        }
        if !name.is_empty() {
            if self.prepared.len() <= place {
                self.prepared.resize(place + 1, false);
            }
            self.prepared[place] = true;
        }
    }

    /// Binds; `values` are as they stand in a message.
    fn put_bind(
        &mut self,
        portal: &[u8],
        statement: &[u8],
        values: &[u8],
        binary: bool,
    ) -> Result<(), LabError> {
        let codes: &[u8] = if binary { &[0, 1] } else { &[] };
        let bind = Bind {
            portal,
            statement,
            parameter_formats: Formats::default(),
            parameters: Values::decode(values)?,
            result_formats: Formats::of_codes(codes),
        };
        bind.encode(&mut self.output);
        Ok(())
    }

    /// Asks for the columns of what was bound, as libpq does every time.
    fn put_describe(&mut self, portal: &[u8]) {
        StatementOrPortal::Portal(portal).encode(frontend::DESCRIBE, &mut self.output);
    }

    /// Closes a portal, whether or not it is there.
    fn put_close(&mut self, portal: &[u8]) {
        StatementOrPortal::Portal(portal).encode(frontend::CLOSE, &mut self.output);
    }

    fn put_execute(&mut self, portal: &[u8], row_limit: Option<std::num::NonZeroU32>) {
        Execute { portal, row_limit }.encode(&mut self.output);
    }

    fn put_sync(&mut self) {
        frame(&mut self.output, frontend::SYNC, |_| ());
    }

    /// Writes all that was put, and reads what comes meanwhile. `held` are bytes held elsewhere.
    fn send(&mut self, held: usize) -> Result<(), LabError> {
        self.note_memory(held);
        let mut sent = 0;
        while sent < self.output.len() {
            match rustix::net::send(
                &self.stream,
                &self.output[sent..],
                SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
            ) {
                Ok(bytes) => sent += bytes,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => self.wait_to_write(held)?,
                Err(error) => return Err(LabError::Connection(error.into())),
            }
        }
        self.output.clear();
        Ok(())
    }

    fn wait_to_write(&mut self, held: usize) -> Result<(), LabError> {
        let mut polled = [PollFd::from_borrowed_fd(self.stream.as_fd(), PollFlags::IN | PollFlags::OUT)];
        match poll(&mut polled, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(LabError::Connection(error.into())),
        }
        if polled[0].revents().contains(PollFlags::IN) {
            self.receive(held)?;
        }
        Ok(())
    }

    /// The header of the next message, all of which has been received.
    fn next_header(&mut self) -> Result<FrameHeader, LabError> {
        loop {
            let waiting = &self.input[self.read..self.filled];
            match FrameHeader::peek(waiting, MESSAGE_BYTES_MAX).transpose()? {
                Some(header) if waiting.len() >= header.frame_len() => return Ok(header),
                Some(header) => self.make_room(header.frame_len()),
                None => self.make_room(HEADER_BYTES),
            }
            self.receive(0)?;
        }
    }

    /// The message's body.
    fn body(&self, header: &FrameHeader) -> &[u8] {
        &self.input[self.read + HEADER_BYTES..self.read + header.frame_len()]
    }

    /// Goes on behind the message.
    fn skip(&mut self, header: &FrameHeader) {
        self.read += header.frame_len();
    }

    /// Room for a message of this size from where it begins.
    fn make_room(&mut self, frame: usize) {
        if self.read > 0 {
            self.input.copy_within(self.read..self.filled, 0);
            self.filled -= self.read;
            self.read = 0;
        }
        let wanted = frame.max(self.filled + READ_BYTES);
        if self.input.len() < wanted {
            self.input.resize(wanted, 0);
        }
    }

    fn receive(&mut self, held: usize) -> Result<(), LabError> {
        if self.filled == self.input.len() {
            self.make_room(0);
        }
        let room = &mut self.input[self.filled..];
        let bytes = loop {
            match self.stream.read(room) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => break done.map_err(LabError::Connection)?,
            }
        };
        if bytes == 0 {
            return Err(LabError::Connection(io::ErrorKind::UnexpectedEof.into()));
        }
        self.filled += bytes;
        self.note_memory(held);
        Ok(())
    }

    fn note_memory(&mut self, held: usize) {
        self.memory_max = self.memory_max.max(held + self.input.len() + self.output.len());
    }
}

/// The error that a server answered a statement with.
fn refusal(statement: &str, body: &[u8]) -> Result<LabError, LabError> {
    let error = ErrorResponse::decode(body)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(LabError::Refused {
        statement: statement.chars().take(SHOWN_CHARACTERS).collect(),
        sqlstate: error.sqlstate().map(|state| text(&state)).unwrap_or_default(),
        message: text(error.message()),
    })
}
