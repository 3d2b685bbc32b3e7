//! TLS with the secrets of a key log: records in, what they carry out.
//!
//! ```text
//!             ServerHello                Finished, or a traffic key fits
//!   Hello ------------------> Handshake ---------------------------------> Traffic      TLS 1.3
//!     |
//!     +-- ServerHello --> Clear -- ChangeCipherSpec --> Traffic                         TLS 1.2
//! ```
//!
//! A record is believed where its key opens it, so nothing is guessed. After a gap the next record that opens is looked
//! for, with the numbers that it can have.

mod keylog;
mod keys;

use std::sync::Arc;

use onetrip_ledger::{Moment, StreamEncoder, UnitKind};

pub use keylog::{KeyLog, KeyLogError};

use self::keylog::{RANDOM_BYTES, Secrets};
use self::keys::{Opener, Suite};
use crate::tcp::{Chunk, Way};
use crate::turns::Turns;

const HEADER_BYTES: usize = 5;
/// Longest record: 16 KiB of content, and what TLS 1.2 allows ciphers to add.
const RECORD_BYTES_MAX: usize = HEADER_BYTES + (16 << 10) + 2_048;
/// Shortest record with a key: a tag, and one byte that tells its type.
const SEALED_BYTES_MIN: u64 = 17;
/// Bytes that are decrypted to find out which record comes after a gap, at most.
const TRIED_BYTES_MAX: usize = 1 << 20;
/// Small buffers are kept for the next record.
const KEPT_BYTES_MAX: usize = 2_048;
const CHANGE_CIPHER_SPEC: u8 = 20;
const HANDSHAKE: u8 = 22;
const DATA: u8 = 23;
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const FINISHED: u8 = 20;
const KEY_UPDATE: u8 = 24;
const APPLICATION_PROTOCOLS: u16 = 16;
const SUPPORTED_VERSIONS: u16 = 43;
const TLS_12: u16 = 0x0303;
const TLS_13: u16 = 0x0304;
/// The random number of a ServerHello that asks for another ClientHello (RFC 8446, 4.1.3).
const RETRY: [u8; RANDOM_BYTES] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
    0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// Why a session stays closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closed;

/// One connection's TLS.
#[derive(Debug)]
pub(crate) struct Tls {
    log: Arc<KeyLog>,
    client_random: Option<[u8; RANDOM_BYTES]>,
    session: Option<Session>,
    sides: [Side; 2],
    plain: Vec<u8>,
    /// Its turns, which open the connection.
    pub(crate) handshake: Turns,
}

/// What the ServerHello has settled.
#[derive(Debug, Clone, Copy)]
struct Session {
    suite: Suite,
    is_13: bool,
}

/// One direction.
#[derive(Debug, Default)]
struct Side {
    /// Bytes of a record that is not whole.
    buffer: Vec<u8>,
    keys: Keys,
    /// The number of its next record under these keys.
    number: u64,
    /// Records that a gap may have held: the framing is lost.
    missed: Option<u64>,
    messages: Messages,
}

#[derive(Debug, Default)]
enum Keys {
    /// What comes is not encrypted, or no key of it is known yet.
    #[default]
    Clear,
    /// TLS 1.2: those that ChangeCipherSpec brings into use.
    Next(Box<Opener>),
    /// TLS 1.3: those of the handshake, and those after it.
    Handshake(Option<Box<Opener>>, Box<Traffic>),
    Traffic(Box<Traffic>),
}

#[derive(Debug)]
struct Traffic {
    opener: Opener,
    /// What the next keys are made of; TLS 1.2 has none.
    secret: Box<[u8]>,
}

/// Follows handshake messages by their headers, however records cut them.
#[derive(Debug, Default)]
struct Messages {
    header: [u8; 4],
    known: usize,
    left: usize,
}

impl Messages {
    /// Takes the next bytes; whether a message of this type ends in them.
    fn ends(&mut self, mut bytes: &[u8], wanted: u8) -> bool {
        let mut found = false;
        while !bytes.is_empty() {
            if self.known < self.header.len() {
                self.header[self.known] = bytes[0];
                self.known += 1;
                bytes = &bytes[1..];
                let [_, a, b, c] = self.header;
                self.left = u32::from_be_bytes([0, a, b, c]) as usize;
            }
            if self.known == self.header.len() {
                let part = self.left.min(bytes.len());
                self.left -= part;
                bytes = &bytes[part..];
                if self.left == 0 {
                    found |= self.header[0] == wanted;
                    self.known = 0;
                }
            }
        }
        found
    }
}

impl Tls {
    /// A session whose first byte is yet to come.
    pub(crate) fn new(log: Arc<KeyLog>) -> Self {
        Self {
            log,
            client_random: None,
            session: None,
            sides: Default::default(),
            plain: Vec::new(),
            handshake: Turns::default(),
        }
    }

    /// Whether the client still waits for the server's part of the handshake.
    pub(crate) fn is_opening(&self) -> bool {
        match self.session {
            None => true,
            Some(Session { is_13: true, .. }) => false,
            Some(_) => self.sides.iter().any(|side| !matches!(side.keys, Keys::Traffic(_))),
        }
    }

    /// The client sent something: a turn of the handshake, until that is over. `has_read` as of [`Turns::client`].
    pub(crate) fn client_turn(
        &mut self,
        now: Moment,
        chunk: Chunk<'_>,
        has_read: bool,
        stream: &mut StreamEncoder,
    ) {
        if self.is_opening() {
            self.handshake.client(now, chunk.bytes(), UnitKind::Connect, 0, has_read, stream);
        } else {
            self.handshake.settle(stream);
        }
    }

    /// Bytes of the client that no whole record came of, and the turns so far.
    pub(crate) fn into_unread(mut self) -> (Vec<u8>, Turns) {
        (std::mem::take(&mut self.sides[Way::Up as usize].buffer), self.handshake)
    }

    /// Takes what a side sent; `data` gets what it carries.
    ///
    /// # Errors
    ///
    /// The session cannot be opened: the key log does not have it, or it is no TLS that rustls speaks.
    pub(crate) fn take(
        &mut self,
        way: Way,
        chunk: Chunk<'_>,
        data: &mut impl FnMut(Chunk<'_>),
    ) -> Result<(), Closed> {
        let mut buffer = std::mem::take(&mut self.sides[way as usize].buffer);
        match chunk {
            Chunk::Unknown(bytes) => {
                if self.session.is_none() {
                    return Err(Closed); // what it holds settles everything
                }
                let missed = &mut self.sides[way as usize].missed;
                let lost = bytes + buffer.len() as u64;
                *missed = Some(missed.unwrap_or(0) + lost / (SEALED_BYTES_MIN + HEADER_BYTES as u64) + 2);
                buffer.clear();
                data(Chunk::Unknown(lost));
                Ok(())
            }
            Chunk::Known(bytes) => {
                buffer.extend_from_slice(bytes);
                let taken = self.records(way, &buffer, data);
                buffer.drain(..taken.unwrap_or(0));
                if !buffer.is_empty() || buffer.capacity() <= KEPT_BYTES_MAX {
                    self.sides[way as usize].buffer = buffer;
                }
                if self.plain.capacity() > KEPT_BYTES_MAX {
                    self.plain = Vec::new();
                }
                taken.map(|_| ())
            }
        }
    }

    /// Takes the records at the front; how many bytes they have.
    fn records(&mut self, way: Way, input: &[u8], data: &mut impl FnMut(Chunk<'_>)) -> Result<usize, Closed> {
        let mut used = 0;
        loop {
            let rest = &input[used..];
            if self.sides[way as usize].missed.is_some() {
                let (skipped, is_found) = self.search(way, rest);
                if skipped > 0 {
                    data(Chunk::Unknown(skipped as u64));
                }
                used += skipped;
                if !is_found {
                    return Ok(used);
                }
                continue;
            }
            let Some(header) = rest.first_chunk::<HEADER_BYTES>() else { return Ok(used) };
            let length = record_bytes(*header).ok_or(Closed)?;
            let Some(record) = rest.get(..length) else { return Ok(used) };
            self.record(way, *header, &record[HEADER_BYTES..], data)?;
            used += length;
        }
    }

    /// Looks for the next record that opens, after a gap: how many bytes are before it, and whether it is there.
    fn search(&mut self, way: Way, input: &[u8]) -> (usize, bool) {
        let side = &mut self.sides[way as usize];
        let missed = side.missed.unwrap_or(0);
        for place in 0..input.len() {
            let rest = &input[place..];
            if rest[0] != DATA || rest.get(1).is_some_and(|byte| *byte != 3) {
                continue;
            }
            let Some(header) = rest.first_chunk::<HEADER_BYTES>() else { return (place, false) };
            let Some(length) = record_bytes(*header) else { continue };
            let Some(record) = rest.get(..length) else { return (place, false) };
            let tries = missed.min((TRIED_BYTES_MAX / length) as u64);
            // Each with the number that it is at, and whether that is after the handshake.
            let openers = match &side.keys {
                Keys::Clear => return (input.len(), false),
                Keys::Next(opener) => [Some((&**opener, 0, true)), None],
                Keys::Handshake(first, then) => [
                    first.as_deref().map(|opener| (opener, side.number, false)),
                    Some((&then.opener, 0, true)),
                ],
                Keys::Traffic(traffic) => [Some((&traffic.opener, side.number, false)), None],
            };
            let body = &record[HEADER_BYTES..];
            let plain = &mut self.plain;
            let found = openers.into_iter().flatten().find_map(|(opener, first, is_after)| {
                let number = (first..=first + tries)
                    .find(|number| opener.open(*number, *header, body, plain).is_some())?;
                Some((number, is_after))
            });
            let Some((number, is_after)) = found else { continue };
            if is_after {
                side.goes_to_traffic();
            }
            side.number = number;
            side.missed = None;
            side.messages = Messages::default();
            return (place, true);
        }
        (input.len(), false)
    }

    fn record(
        &mut self,
        way: Way,
        header: [u8; HEADER_BYTES],
        body: &[u8],
        data: &mut impl FnMut(Chunk<'_>),
    ) -> Result<(), Closed> {
        let kind = header[0];
        let is_13 = self.session.is_some_and(|session| session.is_13);
        if matches!(self.sides[way as usize].keys, Keys::Clear) {
            return match (kind, way) {
                (HANDSHAKE, Way::Up) => self.client_hello(body),
                (HANDSHAKE, Way::Down) => self.server_hello(body),
                _ => Ok(()),
            };
        }
        let side = &mut self.sides[way as usize];
        if kind == CHANGE_CIPHER_SPEC {
            if let Keys::Next(_) = side.keys {
                side.goes_to_traffic();
            }
            return Ok(());
        }
        if matches!(side.keys, Keys::Next(_)) || (is_13 && kind != DATA) {
            return Ok(()); // the rest of the handshake in clear text, or an alert
        }
        match side.open(header, body, &mut self.plain) {
            Some(DATA) => {
                if !self.plain.is_empty() {
                    data(Chunk::Known(&self.plain));
                }
            }
            Some(HANDSHAKE) if is_13 => self.handshake(way),
            Some(_) => {}
            None if matches!(side.keys, Keys::Handshake(..)) => {} // early data, or a handshake without its secret
            None => {
                // Damage: what comes may open again.
                side.missed = Some(1);
                data(Chunk::Unknown(body.len() as u64));
            }
        }
        Ok(())
    }

    /// A handshake message that was encrypted is in `plain`.
    fn handshake(&mut self, way: Way) {
        let Some(session) = self.session else { return };
        let side = &mut self.sides[way as usize];
        match &mut side.keys {
            Keys::Handshake(..) => {
                if side.messages.ends(&self.plain, FINISHED) {
                    side.goes_to_traffic();
                }
            }
            Keys::Traffic(traffic) => {
                if side.messages.ends(&self.plain, KEY_UPDATE) {
                    let next = session.suite.next_secret(&traffic.secret);
                    if let Some((secret, opener)) = next
                        .and_then(|secret| session.suite.opener_13(&secret).map(|opener| (secret, opener)))
                    {
                        **traffic = Traffic { opener, secret };
                        side.number = 0;
                    }
                }
            }
            Keys::Clear | Keys::Next(_) => {}
        }
    }

    fn client_hello(&mut self, body: &[u8]) -> Result<(), Closed> {
        if self.client_random.is_some() || body.first() != Some(&CLIENT_HELLO) {
            return Ok(()); // another one after a retry has the same number
        }
        let random = body.get(6..).and_then(|rest| rest.first_chunk()).ok_or(Closed)?;
        self.log.secrets(random).ok_or(Closed)?;
        self.client_random = Some(*random);
        Ok(())
    }

    fn server_hello(&mut self, body: &[u8]) -> Result<(), Closed> {
        if body.first() != Some(&SERVER_HELLO) {
            return Ok(());
        }
        let client = self.client_random.ok_or(Closed)?;
        let hello = ServerHello::decode(body).ok_or(Closed)?;
        if hello.random == RETRY {
            return Ok(());
        }
        let is_13 = hello.version == TLS_13;
        if !is_13 && hello.version != TLS_12 {
            return Err(Closed);
        }
        let suite = Suite::of(hello.suite, is_13).ok_or(Closed)?;
        let log = Arc::clone(&self.log);
        let secrets = log.secrets(&client).ok_or(Closed)?;
        let keys = if is_13 {
            [keys_13(suite, secrets, 0)?, keys_13(suite, secrets, 1)?]
        } else {
            let master = secrets.master.as_deref().ok_or(Closed)?;
            let openers = suite.openers_12(master, &client, &hello.random).ok_or(Closed)?;
            openers.map(|opener| Keys::Next(Box::new(opener)))
        };
        for (side, keys) in self.sides.iter_mut().zip(keys) {
            side.keys = keys;
        }
        self.session = Some(Session { suite, is_13 });
        Ok(())
    }
}

impl Side {
    /// Opens the record that comes next. A side whose handshake is over opens with its next keys.
    fn open(&mut self, header: [u8; HEADER_BYTES], body: &[u8], plain: &mut Vec<u8>) -> Option<u8> {
        let opened = match &self.keys {
            Keys::Clear | Keys::Next(_) => None,
            Keys::Traffic(traffic) => traffic.opener.open(self.number, header, body, plain),
            Keys::Handshake(first, then) => {
                let known = first.as_ref().and_then(|opener| opener.open(self.number, header, body, plain));
                match known {
                    Some(kind) => Some(kind),
                    None => {
                        let kind = then.opener.open(0, header, body, plain)?;
                        self.goes_to_traffic();
                        Some(kind)
                    }
                }
            }
        };
        if opened.is_some() {
            self.number += 1;
        }
        opened
    }

    fn goes_to_traffic(&mut self) {
        self.keys = match std::mem::take(&mut self.keys) {
            Keys::Handshake(_, then) => Keys::Traffic(then),
            Keys::Next(opener) => {
                Keys::Traffic(Box::new(Traffic { opener: *opener, secret: Box::default() }))
            }
            keys => keys,
        };
        self.number = 0;
        self.messages = Messages::default();
    }
}

/// The keys of a side from its secrets.
fn keys_13(suite: Suite, secrets: &Secrets, side: usize) -> Result<Keys, Closed> {
    let secret = secrets.traffic[side].clone().ok_or(Closed)?;
    let traffic = Traffic { opener: suite.opener_13(&secret).ok_or(Closed)?, secret };
    let handshake = secrets.handshake[side].as_deref().and_then(|secret| suite.opener_13(secret));
    Ok(Keys::Handshake(handshake.map(Box::new), Box::new(traffic)))
}

/// Length of a record with its header; `None` where there is none.
fn record_bytes(header: [u8; HEADER_BYTES]) -> Option<usize> {
    let is_record = (CHANGE_CIPHER_SPEC..=DATA).contains(&header[0]) && header[1] == 3;
    let length = HEADER_BYTES + usize::from(u16::from_be_bytes([header[3], header[4]]));
    (is_record && length <= RECORD_BYTES_MAX).then_some(length)
}

/// Whether bytes are records of TLS, the last of which may be cut.
pub(crate) fn are_records(mut bytes: &[u8]) -> bool {
    let mut are_records = false;
    while let Some(header) = bytes.first_chunk::<HEADER_BYTES>() {
        let length = record_bytes(*header).filter(|_| (1..=4).contains(&header[2]));
        let Some(length) = length else { return false };
        are_records = true;
        bytes = bytes.get(length..).unwrap_or_default();
    }
    are_records && bytes.first().is_none_or(|kind| (CHANGE_CIPHER_SPEC..=DATA).contains(kind))
}

/// What matters of a ServerHello.
struct ServerHello {
    version: u16,
    random: [u8; RANDOM_BYTES],
    suite: u16,
}

impl ServerHello {
    fn decode(message: &[u8]) -> Option<Self> {
        let body = message.get(4..)?;
        let mut version = short(body)?;
        let random = *body.get(2..)?.first_chunk()?;
        let session_bytes = usize::from(*body.get(2 + RANDOM_BYTES)?);
        let rest = body.get(3 + RANDOM_BYTES + session_bytes..)?;
        let suite = short(rest)?;
        // A compression method, then the extensions and their length.
        if let Some(content) = extension(rest.get(5..).unwrap_or_default(), SUPPORTED_VERSIONS) {
            version = short(content)?;
        }
        Some(Self { version, random, suite })
    }
}

/// Whether a session's first record is a ClientHello that offers this application protocol (RFC 7301), as far as it is here.
pub(crate) fn offers(record: &[u8], protocol: &[u8]) -> bool {
    let mut names = offered(record).unwrap_or_default();
    while let Some((length, rest)) = names.split_first() {
        let Some((name, rest)) = rest.split_at_checked(usize::from(*length)) else { return false };
        if name == protocol {
            return true;
        }
        names = rest;
    }
    false
}

/// The list of application protocols in a ClientHello (RFC 8446, 4.1.2).
fn offered(record: &[u8]) -> Option<&[u8]> {
    let body = record.get(HEADER_BYTES..).filter(|body| body.first() == Some(&CLIENT_HELLO))?;
    // Type and length of the message, and the version; behind the random number are the session's, the cipher suites and
    // the compression methods.
    let rest = body.get(6 + RANDOM_BYTES..)?;
    let rest = rest.get(1 + usize::from(*rest.first()?)..)?;
    let rest = rest.get(2 + usize::from(short(rest)?)..)?;
    let rest = rest.get(1 + usize::from(*rest.first()?)..)?;
    extension(rest.get(2..)?, APPLICATION_PROTOCOLS)?.get(2..)
}

/// What the extension of this kind has, if it is here.
fn extension(mut extensions: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let (found, length) = (short(extensions)?, short(extensions.get(2..)?)?);
        let content = extensions.get(4..4 + usize::from(length))?;
        if found == kind {
            return Some(content);
        }
        extensions = &extensions[4 + usize::from(length)..];
    }
}

fn short(bytes: &[u8]) -> Option<u16> {
    bytes.first_chunk().map(|pair| u16::from_be_bytes(*pair))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record with a ClientHello of these extensions.
    fn hello(extensions: &[(u16, &[u8])]) -> Vec<u8> {
        let sized = |bytes: &[u8]| [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat();
        let extension = |(kind, content): &(u16, &[u8])| [&kind.to_be_bytes()[..], &sized(content)].concat();
        let extensions: Vec<u8> = extensions.iter().flat_map(extension).collect();
        let head = [&[3, 3][..], &[9; RANDOM_BYTES], &[4, 1, 2, 3, 4]].concat();
        let body = [head, sized(&[0x13, 1, 0x13, 2]), vec![1, 0], sized(&extensions)].concat();
        let message = [&[CLIENT_HELLO, 0][..], &sized(&body)].concat();
        [&[HANDSHAKE, 3, 1][..], &sized(&message)].concat()
    }

    #[test]
    fn a_hello_offers_the_protocols_that_it_names_and_no_others() {
        let names = b"\x00\x17\x08http/1.1\x0apostgresql\x02h2";
        let with = hello(&[(0, b"host"), (APPLICATION_PROTOCOLS, names), (43, b"\x02\x03\x04")]);
        for name in [&b"http/1.1"[..], b"postgresql", b"h2"] {
            assert!(offers(&with, name));
        }
        assert!(!offers(&with, b"postgres") && !offers(&with, b"ostgresql\x02"));
        assert!(!offers(&hello(&[(0, b"postgresql")]), b"postgresql"));
        // As far as it is here.
        let offered_from = (0..with.len()).find(|end| offers(&with[..*end], b"postgresql"));
        let names_end = with.len() - (4 + 3);
        assert_eq!(offered_from, Some(names_end));
        let mut other = with.clone();
        other[HEADER_BYTES] = SERVER_HELLO;
        assert!(!offers(&other, b"postgresql"));
    }
}
