//! Both sides of a connection, understood: bytes in, events out. No I/O, no clock, nothing of findings.
//!
//! ```text
//!   Greeting --server--> Response --client--> Commands --command--> (awaited, in order) --reply--> Commands
//!                           |                    |
//!                           +-- TLS: Over        +-- not understood: Over (Lost)
//! ```
//!
//! A unit is what the client sends before it may wait: the login (0), then each command. A round trip is a wait: a unit
//! that is sent while another waits for its answer shares that one's trip. An answer to a login's further question is a
//! trip of its own, and so is a file that the server wants.

mod answers;
mod awaited;
mod commands;
mod event;
mod talk;

pub use event::{Command, Event, Lost, LostReason, Reply, ReplyKind, Row, Side, Statement};

use self::talk::Talk;
use super::capabilities::Capabilities;
#[cfg(feature = "compression")]
use super::compressed::Unpacker;
use super::packet::{Payload, Payloads};

/// Bounds of what a [`Dialogue`] keeps, and what it is to expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Bytes kept of a command that does not come in one piece.
    pub command_bytes_max: usize,
    /// Bytes kept of a row that does not come in one piece.
    pub row_bytes_max: usize,
    /// Bytes of a payload that has to be known whole, such as a greeting or a column's definition.
    pub control_bytes_max: usize,
    /// Commands that may wait for their answers.
    pub awaited_max: usize,
    /// Prepared statements that are remembered; of further ones it is not known what prepared them.
    pub statements_max: usize,
    /// Whether the bytes behind a request for TLS are given decrypted. If not, they are not looked at.
    pub is_decrypted: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            command_bytes_max: 1 << 20,
            row_bytes_max: 4 << 10,
            control_bytes_max: 256 << 10,
            awaited_max: 65_536,
            statements_max: 65_536,
            is_decrypted: false,
        }
    }
}

/// One connection.
///
/// Whatever the bytes are, it does not panic; what it does not understand ends it with [`Event::Lost`]. Rows that come in one
/// piece are not copied.
#[derive(Debug)]
pub struct Dialogue {
    client: Stream,
    server: Stream,
    talk: Talk,
}

/// One direction.
#[derive(Debug, Default)]
struct Stream {
    /// Bytes given before those at hand.
    offset: u64,
    payloads: Payloads,
    #[cfg(feature = "compression")]
    unpacker: Option<Unpacker>,
}

impl Dialogue {
    /// A connection from its first byte on.
    pub fn new(settings: Settings) -> Self {
        Self { client: Stream::default(), server: Stream::default(), talk: Talk::new(settings) }
    }

    /// A connection that is past its login, at a moment when nothing is awaited and neither side is within a packet.
    /// `capabilities` are those that both sides set.
    pub fn joined(settings: Settings, capabilities: Capabilities) -> Self {
        let mut dialogue = Self::new(settings);
        dialogue.talk.join(capabilities);
        dialogue.resume(false);
        dialogue
    }

    /// The same where the login is not known: what both sides set shows as they use it, but for compression, which they have
    /// not.
    pub fn supposed(settings: Settings) -> Self {
        let mut dialogue = Self::new(settings);
        dialogue.talk.suppose();
        dialogue.resume(false);
        dialogue
    }

    /// What follows a request for TLS is given decrypted, whatever the settings say.
    pub fn is_given_decrypted(&mut self) {
        self.talk.is_given_decrypted();
    }

    /// What both sides can do; nothing before the login.
    pub fn capabilities(&self) -> Capabilities {
        self.talk.capabilities()
    }

    /// Round trips so far.
    pub fn trips(&self) -> u64 {
        self.talk.trips()
    }

    /// Units whose answers are not complete.
    pub fn awaited(&self) -> usize {
        self.talk.awaited()
    }

    /// Where and why it was lost, if it was.
    pub fn lost(&self) -> Option<Lost> {
        self.talk.lost()
    }

    /// Whether a side's last byte so far is within a packet.
    pub fn is_inside(&self, side: Side) -> bool {
        let stream = match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        };
        #[cfg(feature = "compression")]
        if stream.unpacker.as_ref().is_some_and(Unpacker::is_inside) {
            return true;
        }
        stream.payloads.is_inside()
    }

    /// Takes bytes of one side and tells what they mean. All are taken.
    pub fn take(&mut self, side: Side, bytes: &[u8], mut on: impl FnMut(Event<'_>)) {
        let mut input = bytes;
        while !input.is_empty() && !self.talk.is_over() {
            let taken = self.take_some(side, &mut input, &mut on);
            if let Err(reason) = taken {
                let offset = self.stream(side).offset + (bytes.len() - input.len()) as u64;
                self.talk.lose(Lost { side, offset, reason }, &mut on);
            }
        }
        let stream = self.stream(side);
        stream.offset += bytes.len() as u64;
        #[cfg(feature = "compression")]
        if let Some(unpacker) = &mut stream.unpacker {
            unpacker.rest();
        }
    }

    /// Bytes of one side are not known. Returns how many of them are outside the packet at hand: with any, the dialogue has to
    /// [resume](Self::resume) before it takes more. What the others hide is left out of what is told of their payload.
    pub fn miss(&mut self, side: Side, bytes: u64, mut on: impl FnMut(Event<'_>)) -> u64 {
        let stream = self.stream(side);
        stream.offset += bytes;
        #[cfg(feature = "compression")]
        if stream.unpacker.is_some() {
            return bytes;
        }
        let outside = stream.payloads.miss(bytes);
        if outside < bytes && !self.talk.is_over() {
            // Its end may have been reached.
            let talk = &mut self.talk;
            let payloads = match side {
                Side::Client => &mut self.client.payloads,
                Side::Server => &mut self.server.payloads,
            };
            if let Err(reason) = take_payload(talk, side, payloads, &mut &[][..], None, &mut on) {
                let offset = self.stream(side).offset;
                self.talk.lose(Lost { side, offset, reason }, &mut on);
            }
        }
        outside
    }

    /// Goes on past the login, where nothing is awaited and the next byte of each side begins a packet. What is prepared is
    /// known as before if `knows_statements`.
    pub fn resume(&mut self, knows_statements: bool) {
        for stream in [&mut self.client, &mut self.server] {
            stream.payloads = Payloads::default();
            #[cfg(feature = "compression")]
            {
                stream.unpacker = self.talk.compression().map(Unpacker::new);
            }
        }
        self.talk.resume(knows_statements);
    }

    fn stream(&mut self, side: Side) -> &mut Stream {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// Takes one payload, or one compressed packet of them.
    fn take_some(
        &mut self,
        side: Side,
        input: &mut &[u8],
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), LostReason> {
        let talk = &mut self.talk;
        let (stream, begun) = match side {
            Side::Client => (&mut self.client, None),
            Side::Server => (&mut self.server, self.client.payloads.begun()),
        };
        #[cfg(feature = "compression")]
        if let Some(unpacker) = &mut stream.unpacker {
            if let Some(mut piece) = unpacker.next(input)? {
                while !piece.is_empty() && !talk.is_over() {
                    take_payload(talk, side, &mut stream.payloads, &mut piece, begun, on)?;
                }
            }
            return Ok(());
        }
        if side == Side::Server && begun.is_none() && !stream.payloads.is_inside() {
            talk.rows(input, on);
            if input.is_empty() {
                return Ok(());
            }
        }
        take_payload(talk, side, &mut stream.payloads, input, begun, on)?;
        if self.talk.starts_compression() {
            self.start_compression()?;
        }
        Ok(())
    }

    #[cfg(feature = "compression")]
    fn start_compression(&mut self) -> Result<(), LostReason> {
        if self.client.payloads.is_inside() {
            return Err(LostReason::OutOfTurn);
        }
        let compression = self.talk.compression();
        self.client.unpacker = compression.map(Unpacker::new);
        self.server.unpacker = compression.map(Unpacker::new);
        Ok(())
    }

    #[cfg(not(feature = "compression"))]
    fn start_compression(&mut self) -> Result<(), LostReason> {
        Err(LostReason::Compressed)
    }
}

/// Takes a payload of a side. `begun` is what the other side is still sending, if that is the client.
fn take_payload(
    talk: &mut Talk,
    side: Side,
    payloads: &mut Payloads,
    input: &mut &[u8],
    begun: Option<Payload<'_>>,
    on: &mut dyn FnMut(Event<'_>),
) -> Result<(), LostReason> {
    let kept = talk.kept(side);
    let keep_max = |first| kept.bytes_max(first);
    match payloads.next(input, talk.is_numbered(), keep_max)? {
        Some(payload) => {
            if let Some(begun) = begun {
                talk.answered_early(begun, payload, on)?;
            }
            talk.take(side, payload, on)
        }
        None => Ok(()),
    }
}
