//! A session between a client and a server that are played by hand. Each test program uses a part of it.
#![allow(dead_code)]

pub(crate) mod objects;
pub(crate) mod server;
pub(crate) mod walk;
pub(crate) mod wire;

use std::sync::Arc;
use std::time::Duration;

use onetrip_ledger::trace::{Records, decode_block};
use onetrip_ledger::{Analyzer, Exchange, Moment, Mutes, Record, Summary, TraceError, ValueHasher};
use onetrip_session::{
    Common, LobPolicy, Opening, Remedies, Session, SessionConfig, SessionError, Verdict, Verify,
};
use onetrip_wire::pg::{PROTOCOL_3_0, encode_startup, frame};

/// The key that clients get.
pub(crate) const SHOWN_KEY: [u8; 4] = *b"mine";

/// The process that serves a session, as the server says it first.
pub(crate) const PROCESS_ID: u32 = 4711;

/// What names of the session's own are made of.
pub(crate) const PRIVATE: [u8; 8] = *b"not told";

pub(crate) struct Pair {
    pub(crate) session: Session,
    pub(crate) hasher: ValueHasher,
    now: u64,
    up: Vec<u8>,
    down: Vec<u8>,
}

/// What a session decides about bytes of the client's, whether it has sent its startup packet or not.
pub(crate) fn decide(session: &mut Session, now: Moment, input: &[u8]) -> Result<Verdict, SessionError> {
    if !session.is_opening() {
        return session.handle_client(now, input);
    }
    Ok(match session.handle_opening(now, input)? {
        Opening::Wait => Verdict::Wait,
        Opening::Answer(bytes) | Opening::Connect(bytes) | Opening::Cancel { bytes, .. } => {
            Verdict::Replace(bytes)
        }
    })
}

/// What the books hold in the end.
pub(crate) struct Books {
    pub(crate) exchanges: Vec<Exchange>,
    pub(crate) templates: Vec<String>,
    /// Names and values of the startup packet.
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) summary: Summary,
}

impl Pair {
    /// A session whose client has just connected.
    pub(crate) fn opening() -> Self {
        Self::with(Remedies::default(), Arc::default(), None)
    }

    fn with(remedies: Remedies, common: Arc<Common>, verify: Option<Verify>) -> Self {
        Self::with_lobs(remedies, common, verify, Arc::default())
    }

    fn with_lobs(
        remedies: Remedies,
        common: Arc<Common>,
        verify: Option<Verify>,
        lobs: Arc<LobPolicy>,
    ) -> Self {
        let hasher = ValueHasher::new();
        let config = SessionConfig {
            hasher: hasher.clone(),
            cancel_key: SHOWN_KEY,
            keep_values: false,
            remedies,
            common,
            verify,
            lobs,
            isolation: None,
            question_burst: Duration::from_secs(60),
            texts: Default::default(),
            private: PRIVATE,
            overflow: None,
        };
        Self { session: Session::new(config), hasher, now: 0, up: Vec::new(), down: Vec::new() }
    }

    /// A session whose client has sent its startup packet.
    pub(crate) fn entering() -> Self {
        let mut pair = Self::opening();
        pair.client(&startup()).expect("a good packet");
        pair
    }

    /// A session whose client has been let in.
    pub(crate) fn serving() -> Self {
        let mut pair = Self::entering();
        pair.server(&[message(b'R', &[0; 4]), ready(b'I')].concat()).expect("good messages");
        pair
    }

    /// A session with remedies whose client has been let in, by a server that says what it is.
    pub(crate) fn remedied(remedies: Remedies, in_hot_standby: Option<&str>) -> Self {
        Self::remedied_as(&startup(), remedies, in_hot_standby)
    }

    /// The same with this startup packet.
    pub(crate) fn remedied_as(packet: &[u8], remedies: Remedies, in_hot_standby: Option<&str>) -> Self {
        Self::remedied_among(Arc::default(), packet, remedies, in_hot_standby)
    }

    /// The same beside others.
    pub(crate) fn remedied_among(
        common: Arc<Common>,
        packet: &[u8],
        remedies: Remedies,
        in_hot_standby: Option<&str>,
    ) -> Self {
        Self::with(remedies, common, None).let_in(packet, in_hot_standby)
    }

    /// The same, where answers from memory are verified.
    pub(crate) fn verified(remedies: Remedies, verify: Verify) -> Self {
        Self::with(remedies, Arc::default(), Some(verify)).let_in(&startup(), Some("off"))
    }

    /// The same, where large objects are read ahead by this policy.
    pub(crate) fn reading_ahead(
        packet: &[u8],
        remedies: Remedies,
        verify: Option<Verify>,
        lobs: LobPolicy,
    ) -> Self {
        Self::with_lobs(remedies, Arc::default(), verify, Arc::new(lobs)).let_in(packet, Some("off"))
    }

    fn let_in(self, packet: &[u8], in_hot_standby: Option<&str>) -> Self {
        let mut pair = self;
        pair.client(packet).expect("a good packet");
        pair.session.path_measured(Moment(0), 13_000, 13_000);
        let standby = in_hot_standby.map(|value| parameter("in_hot_standby", value)).unwrap_or_default();
        let encoding = [parameter("client_encoding", "UTF8"), parameter("server_encoding", "UTF8")].concat();
        let key = message(b'K', &[&PROCESS_ID.to_be_bytes()[..], b"real"].concat());
        let welcome = [message(b'R', &[0; 4]), standby, encoding, key, ready(b'I')].concat();
        pair.server(&welcome).expect("good messages");
        pair
    }

    /// The client sends; what goes on to the server, with what the session had ready for it.
    pub(crate) fn client(&mut self, bytes: &[u8]) -> Result<Vec<u8>, SessionError> {
        self.up.extend_from_slice(bytes);
        self.now += 100_000;
        let mut out = std::mem::take(self.session.to_server());
        loop {
            let used = match decide(&mut self.session, Moment(self.now), &self.up)? {
                Verdict::Wait | Verdict::Hold => {
                    out.append(self.session.to_server());
                    return Ok(out);
                }
                Verdict::Forward(bytes) => {
                    out.extend_from_slice(&self.up[..bytes]);
                    bytes
                }
                Verdict::Replace(bytes) => bytes,
            };
            self.up.drain(..used);
            out.append(self.session.to_server());
        }
    }

    /// The server sends; what goes on to the client.
    pub(crate) fn server(&mut self, bytes: &[u8]) -> Result<Vec<u8>, SessionError> {
        self.down.extend_from_slice(bytes);
        self.now += 100_000;
        let mut out = std::mem::take(self.session.to_client());
        loop {
            let used = match self.session.handle_server(Moment(self.now), &self.down)? {
                Verdict::Wait | Verdict::Hold => return Ok(out),
                Verdict::Forward(bytes) => {
                    out.extend_from_slice(&self.down[..bytes]);
                    bytes
                }
                Verdict::Replace(bytes) => bytes,
            };
            self.down.drain(..used);
            out.append(self.session.to_client());
        }
    }

    /// The client sends; what it is told at once.
    pub(crate) fn told(&mut self, sent: &[u8]) -> Vec<u8> {
        let for_server = self.client(sent).expect("good messages");
        let told = self.server(b"").expect("good messages");
        self.session.to_server().splice(0..0, for_server);
        told
    }

    /// Time passes.
    pub(crate) fn wait(&mut self, nanos: u64) {
        self.now += nanos;
    }

    /// One turn that must come through unchanged.
    pub(crate) fn turn(&mut self, sent: &[Vec<u8>], answered: &[Vec<u8>]) {
        let (sent, answered) = (sent.concat(), answered.concat());
        assert_eq!(self.client(&sent).expect("good messages"), sent);
        assert_eq!(self.server(&answered).expect("good messages"), answered);
    }

    /// Ends the session.
    pub(crate) fn books(mut self) -> Books {
        self.session.close(Moment(self.now));
        let block = self.session.stream().take_block();
        let mut exchanges = Vec::new();
        let mut templates = vec![String::new()];
        let mut parameters = Vec::new();
        let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        decode_block::<TraceError>(&mut Records::default(), 1, &block, |record| {
            match record {
                Record::Exchange(exchange) => exchanges.push(exchange.clone()),
                Record::Template { text, .. } => templates.push(words(text)),
                Record::Opened { parameters: all, .. } => {
                    parameters.extend(all.iter().map(|(name, value)| (words(name), words(value))));
                }
                _ => {}
            }
            Ok(())
        })
        .expect("own records read back");
        let mut analyzer = Analyzer::new();
        analyzer.block(1, &block).expect("own records read back");
        Books { exchanges, templates, parameters, summary: analyzer.finish(&Mutes::default()).summary }
    }
}

pub(crate) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame(&mut out, tag, |out| out.extend_from_slice(body));
    out
}

pub(crate) fn startup() -> Vec<u8> {
    let mut out = Vec::new();
    encode_startup(&mut out, PROTOCOL_3_0, [(&b"user"[..], &b"ann"[..])]);
    out
}

/// The startup packet with more parameters.
pub(crate) fn startup_with(parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    let all = [("user", "ann")].into_iter().chain(parameters.iter().copied());
    encode_startup(&mut out, PROTOCOL_3_0, all.map(|(name, value)| (name.as_bytes(), value.as_bytes())));
    out
}

pub(crate) fn ready(status: u8) -> Vec<u8> {
    message(b'Z', &[status])
}

pub(crate) fn parameter(name: &str, value: &str) -> Vec<u8> {
    message(b'S', &[name.as_bytes(), b"\0", value.as_bytes(), b"\0"].concat())
}

pub(crate) fn query(text: &str) -> Vec<u8> {
    message(b'Q', &[text.as_bytes(), b"\0"].concat())
}

pub(crate) fn parse(name: &str, text: &str) -> Vec<u8> {
    message(b'P', &[name.as_bytes(), b"\0", text.as_bytes(), b"\0\0\0"].concat())
}

/// Binds text values; results come as text.
pub(crate) fn bind(portal: &str, name: &str, values: &[&str]) -> Vec<u8> {
    let mut body = [portal.as_bytes(), b"\0", name.as_bytes(), b"\0\0\0"].concat();
    body.extend_from_slice(&(values.len() as u16).to_be_bytes());
    for value in values {
        body.extend_from_slice(&(value.len() as u32).to_be_bytes());
        body.extend_from_slice(value.as_bytes());
    }
    body.extend_from_slice(&[0, 0]);
    message(b'B', &body)
}

pub(crate) fn execute(portal: &str) -> Vec<u8> {
    message(b'E', &[portal.as_bytes(), &[0; 5]].concat())
}

pub(crate) fn error(severity: &str, sqlstate: &str, text: &str) -> Vec<u8> {
    let fields = format!("S{severity}\0V{severity}\0C{sqlstate}\0M{text}\0\0");
    message(b'E', fields.as_bytes())
}

pub(crate) fn notification() -> Vec<u8> {
    message(b'A', b"\0\0\0\x07news\0\0")
}

pub(crate) fn sync() -> Vec<u8> {
    message(b'S', b"")
}

pub(crate) fn complete(tag: &str) -> Vec<u8> {
    message(b'C', &[tag.as_bytes(), b"\0"].concat())
}

/// A row of one text column.
pub(crate) fn row(value: &[u8]) -> Vec<u8> {
    columns(&[Some(value)])
}

/// A row; `None` is NULL.
pub(crate) fn columns(values: &[Option<&[u8]>]) -> Vec<u8> {
    let mut body = (values.len() as u16).to_be_bytes().to_vec();
    for value in values {
        body.extend_from_slice(&value.map_or(-1, |value| value.len() as i32).to_be_bytes());
        body.extend_from_slice(value.unwrap_or_default());
    }
    message(b'D', &body)
}

pub(crate) fn notice() -> Vec<u8> {
    message(b'N', b"SNOTICE\0VNOTICE\0C42622\0Mcut\0\0")
}
