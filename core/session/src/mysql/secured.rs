//! TLS or a Unix socket to the database, for a client that has neither: numbers of packets, and passwords.
//!
//! ```text
//!           request for TLS         OK or ERR            COM_CHANGE_USER
//!   Hello ------------------> Login ---------> Over --------------------> Login
//!                              |  ^
//!     the password is asked for|  | the password itself goes to the database
//!                              v  |
//!                           Wanted --the client asks for a key--> KeySent
//! ```
//!
//! The request for TLS takes a number on the server's leg that the client knows nothing of. Until the login is over, numbers
//! differ by it. A client without TLS encrypts its password under a public key. A server under TLS has none to show and wants the
//! password itself. So the gateway shows a key of its own, and decrypts. A Unix socket is as safe as TLS to a server.
//! So the gateway does the same, without TLS, for a client by TCP and a server by a Unix socket.
//!
//! Source: MySQL Internals, "Connection Phase", "Caching SHA-2 Pluggable Authentication" and "SHA-256 Pluggable
//! Authentication". Both ways are not verified on 8.x.

use std::fmt;
use std::sync::Arc;

use onetrip_wire::mysql::dialogue::{Event, Side};
use onetrip_wire::mysql::{
    AuthMoreData, AuthSwitch, CachingSha2, Capabilities, ChangeUser, ClientHello, HEADER_BYTES, Handshake,
    PacketHeader, SslRequest, command, packet, server,
};

/// Bytes of a challenge; what may follow is a closing NUL.
const CHALLENGE_BYTES: usize = 20;
/// Longest payload with a password, encrypted or not.
const PASSWORD_BYTES_MAX: usize = 4096;
/// No password is so long, and nothing that RSA has encrypted is shorter.
const ENCRYPTED_BYTES_MIN: usize = 256;
/// The flags that a login begins with.
const FLAGS_BYTES: usize = 4;
/// In their second byte: TLS is spoken.
const SSL_FLAG: u8 = (Capabilities::SSL.0 >> 8) as u8;
/// Payloads by which a client asks for a key.
const SHA2_KEY: u8 = 2;
const SHA256_KEY: u8 = 1;

/// A key pair under which clients without TLS send their passwords to the gateway. It may take time to make.
pub trait PasswordKey: fmt::Debug + Send + Sync {
    /// The public key in PEM form; `None` if there is none.
    fn public_pem(&self) -> Option<&[u8]>;
    /// What was encrypted with it by RSA and OAEP; `None` if it was not.
    fn decrypt(&self, encrypted: &[u8]) -> Option<Vec<u8>>;
}

/// What a server that has begun to speak says of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsOffer {
    /// More bytes must come first.
    Wait,
    /// It has TLS.
    Yes,
    /// It has none.
    No,
    /// It refuses the client.
    Refused,
    /// It does not greet as MySQL and MariaDB do.
    Unknown,
}

/// What a client that has begun to log in wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hello {
    /// More bytes must come first.
    Wait,
    /// To log in: these bytes begin TLS with the server for it.
    Request(Vec<u8>),
    /// What cannot be. The session has words for the client.
    Refused,
}

/// Why a client's login does not go on.
pub(super) const OWN_TLS: &str = "the gateway speaks TLS with the database itself, and none with clients of MySQL: set \
                                  ssl-mode=DISABLED at the client";
const NOT_A_LOGIN: &str =
    "this login cannot be passed on over TLS: it is not that of a client of MySQL 4.1 or later";
const SHA256_AT_ONCE: &str = "sha256_password works over the gateway's TLS only if it is not the client's first choice: use \
                              an account with caching_sha2_password";
const NO_KEY: &str = "the gateway has no key for a password: use an account with mysql_native_password, or leave TLS to the \
                      client";
const OTHER_KEY: &str = "the password is encrypted with a key that is not the gateway's: let the client ask for the key \
                         (get-server-public-key, allowPublicKeyRetrieval=true)";
const NOT_DECRYPTED: &str = "the password cannot be decrypted";

/// The way to log in that is being gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    CachingSha2,
    Sha256,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// TLS is not there yet, or the client's login has not passed.
    Hello,
    Login,
    /// The server wants the password itself. This byte asks for a key.
    Wanted(u8),
    /// The client has the gateway's key.
    KeySent,
    Over,
}

/// The packet at hand of one side.
#[derive(Debug, Default)]
struct Packet {
    /// Bytes of it that are still to come.
    left: usize,
    /// Its payload goes on in the next one.
    is_continued: bool,
}

/// What becomes of bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Wait,
    /// So many pass as they are.
    Pass(usize),
    /// In place of so many, the other side gets these.
    Instead(usize, Vec<u8>),
    /// So many are for the gateway, which answers.
    Answer(usize, Vec<u8>),
    /// So many end the login: the client hears why, in a packet of this number.
    Refuse(usize, u8, &'static str),
}

#[derive(Debug)]
pub(super) struct Secured {
    key: Arc<dyn PasswordKey>,
    /// By TLS, and not by a Unix socket.
    is_tls: bool,
    stage: Stage,
    /// What a number of the client's is more on the server's leg.
    shift: u8,
    client: Packet,
    server: Packet,
    way: Way,
    challenge: Vec<u8>,
}

impl Secured {
    /// The server has to greet.
    pub(super) fn new(key: Arc<dyn PasswordKey>, is_tls: bool) -> Self {
        Self {
            key,
            is_tls,
            stage: Stage::Hello,
            shift: 0,
            client: Packet::default(),
            server: Packet::default(),
            way: Way::Other,
            challenge: Vec::new(),
        }
    }

    /// TLS is there: its request had a number.
    pub(super) fn began(&mut self) {
        self.shift = 1;
    }

    /// Bytes of the client's, on their way to the server.
    pub(super) fn client(&mut self, input: &[u8]) -> Step {
        if self.client.left > 0 || self.stage == Stage::Over {
            return pass(&mut self.client, self.stage, input);
        }
        let Some(header) = PacketHeader::peek(input) else { return Step::Wait };
        match self.stage {
            Stage::Wanted(_) | Stage::KeySent => {
                let length = header.payload_len as usize;
                if length > PASSWORD_BYTES_MAX {
                    return Step::Refuse(HEADER_BYTES, header.sequence.wrapping_add(1), NOT_DECRYPTED);
                }
                match input.get(HEADER_BYTES..header.packet_len()) {
                    Some(payload) => self.password(header, payload),
                    None => Step::Wait,
                }
            }
            Stage::Hello => {
                let Some(begin) = input.get(..HEADER_BYTES + FLAGS_BYTES) else { return Step::Wait };
                let mut begin = self.numbered(begin, self.shift);
                let flags = &mut begin[HEADER_BYTES + 1];
                if self.is_tls {
                    *flags |= SSL_FLAG;
                } else if *flags & SSL_FLAG != 0 {
                    // TLS is the client's own: what follows is not to be read.
                    self.stage = Stage::Over;
                    return Step::Pass(input.len());
                }
                self.stage = Stage::Login;
                self.client.begin(header, FLAGS_BYTES);
                Step::Instead(begin.len(), begin)
            }
            Stage::Login | Stage::Over => {
                self.client.begin(header, 0);
                Step::Instead(HEADER_BYTES, self.numbered(&input[..HEADER_BYTES], self.shift))
            }
        }
    }

    /// Bytes of the server's, on their way to the client.
    pub(super) fn server(&mut self, input: &[u8]) -> Step {
        if self.server.left > 0 || self.stage == Stage::Over {
            return pass(&mut self.server, self.stage, input);
        }
        let Some(header) = PacketHeader::peek(input) else { return Step::Wait };
        let first = input.get(HEADER_BYTES);
        if first.is_none() && header.payload_len > 0 {
            return Step::Wait;
        }
        let begins = !self.server.is_continued;
        self.server.begin(header, 0);
        let numbered = self.numbered(&input[..HEADER_BYTES], self.shift.wrapping_neg());
        if begins && matches!(first, Some(&(server::OK | server::ERR))) {
            (self.stage, self.shift) = (Stage::Over, 0);
        }
        Step::Instead(HEADER_BYTES, numbered)
    }

    /// Takes what the conversation on the server's leg tells.
    pub(super) fn note(&mut self, event: &Event<'_>) {
        match event {
            Event::Greeting(greeting) => self.greeted(greeting),
            Event::Login(login) => self.way = login.plugin.map_or(self.way, Way::of),
            Event::AuthSwitch(AuthSwitch::To { plugin, challenge }) => {
                self.way = Way::of(plugin);
                self.challenge = challenge[..challenge.len().min(CHALLENGE_BYTES)].to_vec();
                if self.way == Way::Sha256 && self.stage == Stage::Login {
                    self.stage = Stage::Wanted(SHA256_KEY);
                }
            }
            Event::AuthSwitch(AuthSwitch::Old) => self.way = Way::Other,
            Event::AuthData(Side::Server, body) => {
                let more = AuthMoreData::decode(body).map(|more| more.caching_sha2());
                if self.way == Way::CachingSha2 && self.stage == Stage::Login && more == Ok(CachingSha2::Full)
                {
                    self.stage = Stage::Wanted(SHA2_KEY);
                }
            }
            _ => {}
        }
    }

    /// Whether the server may ask for a password itself.
    pub(super) fn may_need_key(&self) -> bool {
        self.way != Way::Other
    }

    /// Whether another login begins on the same connection; the way that it names is noted.
    pub(super) fn begins_again(&mut self, event: &Event<'_>, capabilities: Capabilities) -> bool {
        let Event::Command(user) = event else { return false };
        if user.code != command::CHANGE_USER || self.stage != Stage::Over {
            return false;
        }
        if let Some(more) = ChangeUser::decode(user.payload, capabilities).ok().and_then(|user| user.more) {
            self.way = more.plugin.map_or(self.way, Way::of);
        }
        true
    }

    /// It does, without a request for TLS. Where its packets are not to be had one by one, it passes as it is.
    pub(super) fn begin_again(&mut self, has_packets: bool) {
        if has_packets {
            (self.client, self.server) = (Packet::default(), Packet::default());
            self.stage = Stage::Login;
        }
    }

    fn greeted(&mut self, greeting: &Handshake<'_>) {
        self.way = greeting.plugin.map_or(Way::Other, Way::of);
        self.challenge = [greeting.challenge_start, greeting.challenge_end].concat();
        self.challenge.truncate(CHALLENGE_BYTES);
    }

    /// The client's answer to a server that wants its password.
    fn password(&mut self, header: PacketHeader, payload: &[u8]) -> Step {
        let taken = header.packet_len();
        let refuse = |why| Step::Refuse(taken, header.sequence.wrapping_add(1), why);
        let clear = match self.stage {
            Stage::Wanted(asks) if payload == [asks] => {
                let Some(pem) = self.key.public_pem() else { return refuse(NO_KEY) };
                let mut answer = Vec::new();
                let next = header.sequence.wrapping_add(1);
                packet(&mut answer, next, |out| AuthMoreData { data: pem }.encode(out));
                self.stage = Stage::KeySent;
                return Step::Answer(taken, answer);
            }
            Stage::KeySent => {
                // Its question and the key's packet are unknown to the server.
                self.shift = self.shift.wrapping_sub(2);
                match self.key.decrypt(payload).and_then(|mixed| unmixed(mixed, &self.challenge)) {
                    Some(clear) => clear,
                    None => return refuse(NOT_DECRYPTED),
                }
            }
            // A client by a Unix socket sends it as it is.
            _ if payload.len() < ENCRYPTED_BYTES_MIN => payload.to_vec(),
            _ => return refuse(OTHER_KEY),
        };
        self.stage = Stage::Login;
        let mut out = Vec::new();
        packet(&mut out, header.sequence.wrapping_add(self.shift), |out| out.extend_from_slice(&clear));
        Step::Instead(taken, out)
    }

    /// The beginning of a packet with its number changed.
    fn numbered(&self, begin: &[u8], shift: u8) -> Vec<u8> {
        let mut begin = begin.to_vec();
        begin[HEADER_BYTES - 1] = begin[HEADER_BYTES - 1].wrapping_add(shift);
        begin
    }
}

impl Way {
    fn of(name: &[u8]) -> Self {
        match name {
            b"caching_sha2_password" => Self::CachingSha2,
            b"sha256_password" => Self::Sha256,
            _ => Self::Other,
        }
    }
}

impl Packet {
    /// A packet begins, of whose payload so much has been dealt with.
    fn begin(&mut self, header: PacketHeader, done: usize) {
        self.left = (header.payload_len as usize).saturating_sub(done);
        self.is_continued = header.is_continued();
    }
}

/// What is left of a packet passes, and all of it behind a login.
fn pass(packet: &mut Packet, stage: Stage, input: &[u8]) -> Step {
    if packet.left == 0 && stage == Stage::Over {
        return Step::Pass(input.len());
    }
    let here = packet.left.min(input.len());
    packet.left -= here;
    Step::Pass(here)
}

/// The password with its closing NUL, out of what was mixed with the challenge.
fn unmixed(mixed: Vec<u8>, challenge: &[u8]) -> Option<Vec<u8>> {
    if challenge.is_empty() {
        return None;
    }
    let clear: Vec<u8> = mixed.iter().zip(challenge.iter().cycle()).map(|(one, other)| one ^ other).collect();
    (clear.last() == Some(&0)).then_some(clear)
}

/// What the server's first bytes say of TLS.
pub(super) fn offer(input: &[u8]) -> TlsOffer {
    let Some(header) = PacketHeader::peek(input) else { return TlsOffer::Wait };
    if header.packet_len() > crate::contract::INSPECT_BYTES_MAX {
        return TlsOffer::Unknown;
    }
    let Some(body) = input.get(HEADER_BYTES..header.packet_len()) else { return TlsOffer::Wait };
    match Handshake::decode(body) {
        // What comes in the clear after a greeting is not the server's to say, and not to be taken for what TLS protects.
        Ok(greeting)
            if greeting.capabilities.has(Capabilities::SSL) && input.len() == header.packet_len() =>
        {
            TlsOffer::Yes
        }
        Ok(greeting) if greeting.capabilities.has(Capabilities::SSL) => TlsOffer::Unknown,
        Ok(_) => TlsOffer::No,
        Err(_) if body.first() == Some(&server::ERR) => TlsOffer::Refused,
        Err(_) => TlsOffer::Unknown,
    }
}

/// What the client's first bytes ask for: the request for TLS, or why there is none.
pub(super) fn request(input: &[u8]) -> Option<Result<Vec<u8>, &'static str>> {
    let header = PacketHeader::peek(input)?;
    let available = input.len().min(header.packet_len());
    let is_whole = available == header.packet_len();
    let payload = &input[HEADER_BYTES..available];
    let head = match SslRequest::peek(payload) {
        Ok(head) => head,
        Err(_) if is_whole => return Some(Err(NOT_A_LOGIN)),
        Err(_) => return None,
    };
    if head.capabilities.has(Capabilities::SSL) {
        return Some(Err(OWN_TLS));
    }
    if let (true, Ok(ClientHello::Response(login))) = (is_whole, ClientHello::decode(payload)) {
        if login.plugin.map(Way::of) == Some(Way::Sha256) && login.answer == [SHA256_KEY] {
            return Some(Err(SHA256_AT_ONCE));
        }
    }
    let head = SslRequest { capabilities: head.capabilities | Capabilities::SSL, ..head };
    let mut out = Vec::new();
    packet(&mut out, header.sequence, |out| head.encode(out));
    Some(Ok(out))
}
