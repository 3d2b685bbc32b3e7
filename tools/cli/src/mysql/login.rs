use onetrip_target::Secret;
use onetrip_wire::mysql::dialogue::{Dialogue, Event, Settings, Side};
use onetrip_wire::mysql::{
    AuthMoreData, AuthSwitch, CachingSha2, Capabilities, ErrPacket, HandshakeResponse, Query, SslRequest,
    packet,
};

use super::answers::{Way, as_it_is, encrypted};

/// Longest packet that we take, as we say.
const PACKET_BYTES_MAX: u32 = 1 << 24;
/// `utf8mb4_general_ci`, which every server since 5.5 has.
const CHARACTER_SET: u8 = 45;
/// Bytes without a meaning in what a client says first.
const RESERVED: [u8; 23] = [0; 23];
/// A payload that asks for the server's public key.
const ASK_FOR_KEY: u8 = 2;
/// COM_QUIT.
const QUIT: u8 = 1;
/// Put in front of MariaDB's version for the replicas of old.
const OLD_REPLICAS: &str = "5.5.5-";

/// Who logs in.
#[derive(Debug, Default)]
pub(crate) struct Applicant {
    pub(crate) user: String,
    pub(crate) password: Option<Secret>,
    pub(crate) database: Option<String>,
    /// Without TLS, the password may be encrypted with a key that the server sends: nobody vouches for it.
    pub(crate) may_ask_for_key: bool,
}

/// A connection, from the greeting to the end of the login and on.
#[derive(Debug)]
pub(crate) struct Login {
    dialogue: Dialogue,
    applicant: Applicant,
    server: Capabilities,
    version: String,
    challenge: Vec<u8>,
    way: Way,
    /// Number of our next packet.
    sequence: u8,
    is_encrypted: bool,
}

/// What the server's bytes have come to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// More must come.
    Wait,
    /// The server has greeted.
    Greeted,
    /// It asks; this is the answer.
    Say(Vec<u8>),
    /// It has answered all that was asked: the login, or a statement.
    Done,
}

/// Why there is no session, or no longer.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum LoginError {
    #[error("{message} (error {code})")]
    Refused { code: u16, message: String },
    #[error("it asks for {0}")]
    Unsupported(String),
    /// The password would have to be sent so that others can read it.
    #[error("it asks for the password itself ({0}), which is not sent without TLS")]
    NeedsTls(&'static str),
    #[error("its public key cannot be used")]
    BadKey,
    #[error("{0}")]
    Protocol(String),
}

/// Of an event, what outlives it.
enum Heard {
    Greeting,
    Switch(Vec<u8>, Vec<u8>),
    More(Vec<u8>),
    Replied,
}

impl Login {
    /// Nothing has been said yet.
    pub(crate) fn new(applicant: Applicant) -> Self {
        let settings = Settings { is_decrypted: true, ..Settings::default() };
        Self {
            dialogue: Dialogue::new(settings),
            applicant,
            server: Capabilities::default(),
            version: String::new(),
            challenge: Vec::new(),
            way: Way::Native,
            sequence: 1,
            is_encrypted: false,
        }
    }

    /// Version of the server, as it says.
    pub(crate) fn version(&self) -> &str {
        self.version.strip_prefix(OLD_REPLICAS).unwrap_or(&self.version)
    }

    /// How the login was done, by the protocol's name.
    pub(crate) fn method(&self) -> &'static str {
        self.way.name()
    }

    pub(crate) fn has_tls(&self) -> bool {
        self.server.has(Capabilities::SSL)
    }

    /// Begins TLS: the handshake follows these bytes at once.
    pub(crate) fn ask_for_tls(&mut self) -> Result<Vec<u8>, LoginError> {
        self.is_encrypted = true;
        let head = self.head();
        self.say(|out| head.encode(out))
    }

    /// Logs in.
    pub(crate) fn start(&mut self) -> Result<Vec<u8>, LoginError> {
        if !self.server.has(Capabilities::PROTOCOL_41) {
            return Err(LoginError::Unsupported("the protocol of before MySQL 4.1".into()));
        }
        let head = self.head();
        let answer = self.way.answer(self.password(), &self.challenge);
        let Applicant { user, database, .. } = &self.applicant;
        let (user, database) = (user.clone(), database.clone());
        let plugin = self.way.name().as_bytes();
        self.say(|out| {
            let response = HandshakeResponse {
                head,
                user: user.as_bytes(),
                answer: &answer,
                database: database.as_deref().map(str::as_bytes),
                plugin: head.capabilities.has(Capabilities::PLUGIN_AUTH).then_some(plugin),
                attributes: None,
                zstd_level: None,
            };
            response.encode(out);
        })
    }

    /// Asks a statement of a session that is open.
    pub(crate) fn ask(&mut self, text: &[u8]) -> Result<Vec<u8>, LoginError> {
        let capabilities = self.dialogue.capabilities();
        self.sequence = 0;
        self.say(|out| Query { attributes: None, text }.encode(out, capabilities))
    }

    /// Says good-bye.
    pub(crate) fn quit(&mut self) -> Vec<u8> {
        self.sequence = 0;
        self.say(|out| out.push(QUIT)).unwrap_or_default()
    }

    /// Takes bytes of the server's.
    pub(crate) fn hear(&mut self, bytes: &[u8]) -> Result<Turn, LoginError> {
        let (mut heard, mut failed) = (Vec::new(), None);
        let Self { dialogue, server, version, challenge, way, .. } = self;
        dialogue.take(Side::Server, bytes, |event| match event {
            Event::Greeting(greeting) => {
                *server = greeting.capabilities;
                *version = printable(greeting.server_version);
                *challenge = [greeting.challenge_start, greeting.challenge_end].concat();
                // An account that wants another way says so; ours without TLS never is the password itself.
                let named = greeting.plugin.and_then(Way::of).filter(|way| *way != Way::Clear);
                *way = named.unwrap_or(Way::Native);
                heard.push(Heard::Greeting);
            }
            Event::AuthSwitch(AuthSwitch::To { plugin, challenge }) => {
                heard.push(Heard::Switch(plugin.to_vec(), challenge.to_vec()));
            }
            Event::AuthSwitch(AuthSwitch::Old) => heard.push(Heard::Switch(Vec::new(), Vec::new())),
            Event::AuthData(Side::Server, body) => heard.push(Heard::More(body.to_vec())),
            Event::Failed(error) | Event::Unasked(error) => {
                failed.get_or_insert(refused(&error));
            }
            Event::Replied(_) => heard.push(Heard::Replied),
            Event::Lost(lost) => {
                failed.get_or_insert(LoginError::Protocol(lost.reason.to_string()));
            }
            _ => {}
        });
        if let Some(failed) = failed {
            return Err(failed);
        }
        let mut turn = Turn::Wait;
        for heard in heard {
            turn = match heard {
                Heard::Greeting => Turn::Greeted,
                Heard::Switch(plugin, challenge) => Turn::Say(self.switch(&plugin, challenge)?),
                Heard::More(body) => self.more(&body)?.map_or(Turn::Wait, Turn::Say),
                Heard::Replied => Turn::Done,
            };
        }
        Ok(turn)
    }

    fn switch(&mut self, plugin: &[u8], challenge: Vec<u8>) -> Result<Vec<u8>, LoginError> {
        let name = if plugin.is_empty() { "mysql_old_password".into() } else { printable(plugin) };
        self.way = Way::of(plugin).ok_or(LoginError::Unsupported(name))?;
        if self.way == Way::Clear && !self.is_encrypted {
            return Err(LoginError::NeedsTls(self.way.name()));
        }
        self.challenge = challenge;
        let answer = self.way.answer(self.password(), &self.challenge);
        self.reply(&answer)
    }

    /// What the way to log in says next; the answer, if it is our turn.
    fn more(&mut self, body: &[u8]) -> Result<Option<Vec<u8>>, LoginError> {
        let more = AuthMoreData::decode(body).map_err(|error| LoginError::Protocol(error.to_string()))?;
        if self.way != Way::CachingSha2 {
            return Err(LoginError::Protocol(format!("it goes on within {}", self.way.name())));
        }
        let answer = match more.caching_sha2() {
            CachingSha2::FastOk => {
                self.sequence = self.sequence.wrapping_add(1);
                return Ok(None);
            }
            CachingSha2::Full if self.is_encrypted => as_it_is(self.password()),
            CachingSha2::Full if self.applicant.may_ask_for_key => vec![ASK_FOR_KEY],
            CachingSha2::Full => return Err(LoginError::NeedsTls(self.way.name())),
            CachingSha2::PublicKey(key) => {
                encrypted(self.password(), &self.challenge, key).ok_or(LoginError::BadKey)?
            }
        };
        self.reply(&answer).map(Some)
    }

    /// An answer to the server's packet.
    fn reply(&mut self, answer: &[u8]) -> Result<Vec<u8>, LoginError> {
        self.sequence = self.sequence.wrapping_add(1);
        self.say(|out| out.extend_from_slice(answer))
    }

    fn say(&mut self, payload: impl FnOnce(&mut Vec<u8>)) -> Result<Vec<u8>, LoginError> {
        let mut bytes = Vec::new();
        self.sequence = packet(&mut bytes, self.sequence, payload);
        let mut lost = None;
        self.dialogue.take(Side::Client, &bytes, |event| {
            if let Event::Lost(why) = event {
                lost = Some(LoginError::Protocol(why.reason.to_string()));
            }
        });
        lost.map_or(Ok(bytes), Err)
    }

    fn head(&self) -> SslRequest<'static> {
        use Capabilities as Can;
        // The first says that MariaDB's own capabilities are not there.
        let mut wanted = Can::LONG_PASSWORD | Can::PROTOCOL_41 | Can::TRANSACTIONS | Can::SECURE_CONNECTION;
        wanted = wanted | (self.server & Can::PLUGIN_AUTH);
        if self.applicant.database.is_some() {
            wanted = wanted | Can::CONNECT_WITH_DB;
        }
        if self.is_encrypted {
            wanted = wanted | Can::SSL;
        }
        SslRequest {
            capabilities: wanted,
            packet_bytes_max: PACKET_BYTES_MAX,
            character_set: CHARACTER_SET,
            reserved: &RESERVED,
        }
    }

    fn password(&self) -> &[u8] {
        self.applicant.password.as_ref().map_or(&[], |password| password.reveal().as_bytes())
    }
}

fn refused(error: &ErrPacket<'_>) -> LoginError {
    LoginError::Refused { code: error.code, message: printable(error.message) }
}

/// Text of a stranger without what could command a terminal.
fn printable(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
    use aws_lc_rs::rsa::{KeySize, OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, PrivateDecryptingKey};
    use onetrip_wire::mysql::{Handshake, Info, OkPacket, Status};

    use super::*;

    const PASSWORD: &str = "a secret of more than twenty bytes";

    /// A server by hand, as far as the published pages go.
    fn greeting(plugin: &str, has_tls: bool) -> Vec<u8> {
        let mut can = Capabilities::LONG_PASSWORD | Capabilities::PROTOCOL_41 | Capabilities::PLUGIN_AUTH;
        can = can | Capabilities::SECURE_CONNECTION | Capabilities::TRANSACTIONS;
        if has_tls {
            can = can | Capabilities::SSL;
        }
        let greeting = Handshake {
            server_version: b"8.0.36",
            thread_id: 7,
            capabilities: can,
            character_set: 255,
            status: Status(2),
            challenge_start: b"12345678",
            challenge_end: b"90abcdefghij\0",
            challenge_len: 21,
            reserved: &[0; 10],
            plugin: Some(plugin.as_bytes()),
        };
        framed(0, |out| greeting.encode(out))
    }

    fn framed(sequence: u8, payload: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        packet(&mut out, sequence, payload);
        out
    }

    fn ok(sequence: u8) -> Vec<u8> {
        let ok = OkPacket {
            ends_rows: false,
            affected_rows: 0,
            last_insert_id: 0,
            status: Status(2),
            warnings: 0,
            info: Info::Plain(b""),
        };
        framed(sequence, |out| ok.encode(out))
    }

    fn more(sequence: u8, data: &[u8]) -> Vec<u8> {
        framed(sequence, |out| AuthMoreData { data }.encode(out))
    }

    fn login(may_ask_for_key: bool) -> Login {
        let password = Some(Secret::new(PASSWORD));
        Login::new(Applicant { user: "ann".into(), password, database: None, may_ask_for_key })
    }

    /// Past the server's greeting and our first answer.
    fn started(plugin: &str, may_ask_for_key: bool) -> Login {
        let mut login = login(may_ask_for_key);
        assert_eq!(login.hear(&greeting(plugin, false)), Ok(Turn::Greeted));
        let said = login.start().unwrap();
        assert_eq!(said[3], 1, "the packet's number");
        login
    }

    #[test]
    fn a_password_that_the_server_remembers_takes_one_trip() {
        let mut login = started("caching_sha2_password", false);
        assert_eq!(login.hear(&[more(2, &[3]), ok(3)].concat()), Ok(Turn::Done));
        assert_eq!((login.method(), login.version()), ("caching_sha2_password", "8.0.36"));
        let asked = login.ask(b"SELECT 1").unwrap();
        assert_eq!(asked, b"\x09\0\0\0\x03SELECT 1");
    }

    #[test]
    fn without_tls_the_password_goes_out_under_a_key_only_if_that_is_allowed() {
        let mut login = started("caching_sha2_password", false);
        let refused = LoginError::NeedsTls("caching_sha2_password");
        assert_eq!(login.hear(&more(2, &[4])), Err(refused));

        let mut login = started("caching_sha2_password", true);
        assert_eq!(login.hear(&more(2, &[4])), Ok(Turn::Say(b"\x01\0\0\x03\x02".to_vec())));
        let key = PrivateDecryptingKey::generate(KeySize::Rsa2048).unwrap();
        let public: PublicKeyX509Der<'_> = key.public_key().as_der().unwrap();
        let Ok(Turn::Say(said)) = login.hear(&more(4, &pem(public.as_ref()))) else { panic!("no answer") };
        assert_eq!((said[3], said.len()), (5, 4 + 256));
        let key = OaepPrivateDecryptingKey::new(key).unwrap();
        let mut plain = vec![0; key.min_output_size()];
        let plain = key.decrypt(&OAEP_SHA1_MGF1SHA1, &said[4..], &mut plain, None).unwrap();
        let challenge = b"1234567890abcdefghij".iter().cycle();
        let plain: Vec<u8> = plain.iter().zip(challenge).map(|(one, other)| one ^ other).collect();
        assert_eq!(plain, as_it_is(PASSWORD.as_bytes()));
        assert_eq!(login.hear(&ok(6)), Ok(Turn::Done));
    }

    #[test]
    fn under_tls_the_password_goes_out_as_it_is() {
        let mut login = login(false);
        assert_eq!(login.hear(&greeting("caching_sha2_password", true)), Ok(Turn::Greeted));
        assert!(login.has_tls());
        let asked = login.ask_for_tls().unwrap();
        assert_eq!((asked.len(), asked[3]), (4 + 32, 1));
        assert_eq!(login.start().unwrap()[3], 2);
        let Ok(Turn::Say(said)) = login.hear(&more(3, &[4])) else { panic!("no answer") };
        assert_eq!((said[3], &said[4..]), (4, &as_it_is(PASSWORD.as_bytes())[..]));
        assert_eq!(login.hear(&ok(5)), Ok(Turn::Done));
    }

    #[test]
    fn another_way_is_taken_if_it_is_known_and_safe() {
        let switch = |plugin: &str| {
            let switch = AuthSwitch::To { plugin: plugin.as_bytes(), challenge: b"abcdefghijklmnopqrst\0" };
            framed(2, |out| switch.encode(out))
        };
        let mut known = started("caching_sha2_password", false);
        let Ok(Turn::Say(said)) = known.hear(&switch("mysql_native_password")) else { panic!("no answer") };
        let answer = Way::Native.answer(PASSWORD.as_bytes(), b"abcdefghijklmnopqrst");
        assert_eq!((said[3], &said[4..]), (3, &answer[..]));
        assert_eq!(known.hear(&ok(4)), Ok(Turn::Done));
        for (plugin, error) in [
            ("client_ed25519", LoginError::Unsupported("client_ed25519".into())),
            ("mysql_clear_password", LoginError::NeedsTls("mysql_clear_password")),
        ] {
            assert_eq!(started("mysql_native_password", false).hear(&switch(plugin)), Err(error));
        }
    }

    #[test]
    fn what_is_no_server_of_mysql_is_an_error() {
        for bytes in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"\x04\0\0\0\x09abc"] {
            let heard = login(false).hear(bytes);
            assert!(matches!(heard, Ok(Turn::Wait) | Err(LoginError::Protocol(_))), "{heard:?}");
        }
        let refused = framed(0, |out| {
            ErrPacket { code: 1040, state: None, message: b"Too many\x1b connections" }.encode(out);
        });
        let message = "Too many  connections".to_owned();
        assert_eq!(login(false).hear(&refused), Err(LoginError::Refused { code: 1040, message }));
    }

    fn pem(der: &[u8]) -> Vec<u8> {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut out = b"-----BEGIN PUBLIC KEY-----\n".to_vec();
        for three in der.chunks(3) {
            let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
            let bits = bits << (8 * (3 - three.len()));
            for digit in 0..4 {
                let value = (bits >> (18 - 6 * digit)) as usize & 63;
                out.push(if digit > three.len() { b'=' } else { DIGITS[value] });
            }
        }
        out.extend_from_slice(b"\n-----END PUBLIC KEY-----\n");
        out
    }
}
