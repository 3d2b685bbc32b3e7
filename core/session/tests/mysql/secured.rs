//! A login under TLS that the gateway speaks with the server: a client, the session, and a server's end, by hand.

use std::sync::Arc;

use onetrip_ledger::{Moment, UnitKind, ValueHasher};
use onetrip_session::{Hello, MysqlConfig, MysqlSession, PasswordKey, SessionError, TlsOffer, Verdict};
use onetrip_wire::mysql::{PAYLOAD_MAX, packet};

use crate::stage::{self, Books, OK, PLAIN, TLS, greeting, login, query};

const CHALLENGE: &[u8] = b"challengchallenge123";
const NATIVE: &[u8] = b"mysql_native_password";
const SHA2: &[u8] = b"caching_sha2_password";
const PEM: &[u8] = b"-----BEGIN PUBLIC KEY-----\n";
const OTHER_SEQUENCE: u8 = 7;

/// "Encrypts" by bytes that are turned over, and 300 zeros, as long as RSA's.
#[derive(Debug)]
struct Key;

fn encrypt(clear: &[u8]) -> Vec<u8> {
    let mixed = clear.iter().zip(CHALLENGE.iter().cycle()).map(|(one, other)| !(one ^ other));
    let mut out: Vec<u8> = mixed.collect();
    out.resize(300, 0);
    out
}

impl PasswordKey for Key {
    fn public_pem(&self) -> Option<&[u8]> {
        Some(PEM)
    }

    fn decrypt(&self, encrypted: &[u8]) -> Option<Vec<u8>> {
        let end = encrypted.iter().position(|byte| *byte == 0)?;
        (encrypted.len() == 300).then(|| encrypted[..end].iter().map(|byte| !byte).collect())
    }
}

struct Secured {
    session: MysqlSession,
    hasher: ValueHasher,
    now: u64,
    /// Bytes come in pieces of so many.
    piece: usize,
}

fn framed(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet(&mut bytes, sequence, |out| out.extend_from_slice(payload));
    bytes
}

fn named(mut payload: Vec<u8>, way: &[u8]) -> Vec<u8> {
    payload.truncate(payload.len() - NATIVE.len() - 1);
    payload.extend_from_slice(way);
    payload.push(0);
    payload
}

fn switch(way: &[u8]) -> Vec<u8> {
    [b"\xfe", way, b"\0", CHALLENGE, b"\0"].concat()
}

impl Secured {
    /// TLS has begun, and the client's login is there.
    fn begun(way: &[u8], piece: usize) -> Self {
        let hasher = ValueHasher::new();
        let config = MysqlConfig { hides_tls: true, ..stage::config(&hasher) };
        let mut secured = Self { session: MysqlSession::new(config), hasher, now: 0, piece };
        let session = &mut secured.session;
        session.connected(Moment(0));
        let offers = framed(0, &named(greeting(PLAIN | TLS), way));
        assert_eq!(MysqlSession::tls_offer(&offers[..20]), TlsOffer::Wait);
        assert_eq!(MysqlSession::tls_offer(&offers), TlsOffer::Yes);
        session.secure(Arc::new(Key));
        assert_eq!(session.handle_server(Moment(1), &offers), Verdict::Replace(offers.len()));
        assert_eq!(std::mem::take(session.to_client()), framed(0, &named(greeting(PLAIN), way)));
        assert_eq!(session.may_need_key(), way != NATIVE);
        let hello = framed(1, &named(login(PLAIN, &[]), way));
        assert_eq!(session.hello(Moment(2), &hello[..35]), Hello::Wait);
        let Hello::Request(request) = session.hello(Moment(2), &hello) else { panic!("no request") };
        let mut expected = framed(1, &hello[4..36]);
        expected[5] |= 8;
        assert_eq!(request, expected, "the head of the login, with the flag of TLS");
        session.tls_began(Moment(3), &request);
        let mut passed = framed(2, &hello[4..]);
        passed[5] |= 8;
        assert_eq!(secured.client(&hello), (passed, Vec::new()));
        secured
    }

    /// A server by a Unix socket has greeted, and the client's login is there.
    fn by_socket(way: &[u8], flags: u64, piece: usize) -> Self {
        let hasher = ValueHasher::new();
        let session = MysqlSession::new(stage::config(&hasher));
        let mut secured = Self { session, hasher, now: 0, piece };
        secured.session.connected(Moment(0));
        secured.session.lend_key(Arc::new(Key));
        let offers = framed(0, &named(greeting(PLAIN | TLS), way));
        assert_eq!(secured.server(&offers), offers, "the greeting passes");
        assert_eq!(secured.session.may_need_key(), way != NATIVE);
        let hello = framed(1, &named(login(PLAIN | flags, &[]), way));
        assert_eq!(secured.client(&hello), (hello, Vec::new()), "and so does the login");
        secured
    }

    /// What the client's bytes make for the server, and for the client.
    fn client(&mut self, bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
        self.feed(bytes, true).expect("it goes on")
    }

    /// What the server's bytes make for the client.
    fn server(&mut self, bytes: &[u8]) -> Vec<u8> {
        let (to_server, to_client) = self.feed(bytes, false).expect("it goes on");
        assert!(to_server.is_empty());
        to_client
    }

    fn feed(&mut self, bytes: &[u8], from_client: bool) -> Result<(Vec<u8>, Vec<u8>), SessionError> {
        let (mut kept, mut to_server, mut to_client) = (Vec::new(), Vec::new(), Vec::new());
        for piece in bytes.chunks(self.piece) {
            kept.extend_from_slice(piece);
            loop {
                self.now += 100_000;
                let verdict = match from_client {
                    true if kept.is_empty() => break,
                    true => self.session.handle_client(Moment(self.now), &kept)?,
                    false if kept.is_empty() => break,
                    false => self.session.handle_server(Moment(self.now), &kept),
                };
                match verdict {
                    Verdict::Wait => break,
                    Verdict::Forward(count) => {
                        let out = if from_client { &mut to_server } else { &mut to_client };
                        out.extend(kept.drain(..count));
                    }
                    Verdict::Replace(count) => drop(kept.drain(..count)),
                    Verdict::Hold => panic!("nothing is held"),
                }
                to_server.append(self.session.to_server());
                to_client.append(self.session.to_client());
            }
        }
        assert!(kept.is_empty(), "{kept:?} waits");
        Ok((to_server, to_client))
    }

    fn books(self) -> Books {
        let Self { session, hasher, now, .. } = self;
        stage::Stage { session, hasher, now, sent: Vec::new(), is_packed: false }.books()
    }
}

#[test]
fn numbers_differ_by_one_until_the_login_is_over_and_by_none_afterwards() {
    for piece in [1, 3, 64, 1 << 20] {
        let mut one = Secured::begun(NATIVE, piece);
        // Another way, what it says next, and the end.
        assert_eq!(one.server(&framed(3, &switch(b"client_ed25519"))), framed(2, &switch(b"client_ed25519")));
        assert_eq!(one.client(&framed(3, b"signed")), (framed(4, b"signed"), Vec::new()));
        assert_eq!(one.server(&framed(5, b"\x01more")), framed(4, b"\x01more"));
        assert_eq!(one.client(&framed(5, b"")), (framed(6, b""), Vec::new()));
        assert_eq!(one.server(&framed(7, OK)), framed(6, OK));
        for _ in 0..2 {
            assert_eq!(one.client(&framed(0, &query("DO 1"))).0, framed(0, &query("DO 1")));
            assert_eq!(one.server(&framed(1, OK)), framed(1, OK));
        }
        // Another user on the same connection asks for no TLS again.
        let user = [&b"\x11you\0\x01a\0\x2d\0"[..], NATIVE, b"\0"].concat();
        assert_eq!(one.client(&framed(0, &user)).0, framed(0, &user));
        assert_eq!(one.server(&framed(1, &switch(NATIVE))), framed(1, &switch(NATIVE)));
        assert_eq!(one.client(&framed(2, b"a")).0, framed(2, b"a"));
        assert_eq!(one.server(&framed(3, OK)), framed(3, OK));
        assert_eq!(one.client(&framed(0, &query("DO 2"))).0, framed(0, &query("DO 2")));
        assert_eq!(one.server(&framed(1, OK)), framed(1, OK));
        assert!(one.session.is_serving() && one.session.take_unseen().is_none());
        let books = one.books();
        let connects = books.exchanges.iter().filter(|unit| unit.kind == UnitKind::Connect).count();
        assert_eq!((connects, books.summary.statements), (4, 4), "the greeting, the login and two answers");
        assert_eq!((books.lost_bytes, books.summary.undecoded), (0, 0));
    }
}

#[test]
fn numbers_wrap_and_an_error_ends_the_login() {
    let mut one = Secured::begun(NATIVE, 1 << 20);
    for turn in 0..127_u8 {
        let number = 3_u8.wrapping_add(2 * turn);
        assert_eq!(one.server(&framed(number, b"\x01?")), framed(number.wrapping_sub(1), b"\x01?"));
        let answer = number; // what follows the server's number, as the client has it
        assert_eq!(one.client(&framed(answer, b"!")).0, framed(answer.wrapping_add(1), b"!"));
    }
    let denied = b"\xff\x15\x04#28000Access denied";
    assert_eq!(one.server(&framed(1, denied)), framed(0, denied));
    // Nothing is changed any more, whatever it is.
    assert_eq!(one.server(&framed(9, OK)), framed(9, OK));
}

#[test]
fn a_payload_of_many_packets_is_numbered_packet_by_packet() {
    let mut one = Secured::begun(NATIVE, 1 << 20);
    let long = vec![0; PAYLOAD_MAX + 5]; // its second packet begins like an OK packet
    assert!(
        one.server(&framed(3, &[b"\x01", &long[..]].concat())) == framed(2, &[b"\x01", &long[..]].concat())
    );
    assert!(one.client(&framed(4, &long)).0 == framed(5, &long));
    assert_eq!(one.server(&framed(7, OK)), framed(6, OK));
}

#[test]
fn a_password_that_the_server_wants_itself_is_decrypted_on_its_way() {
    for piece in [1, 1 << 20] {
        let mut one = Secured::begun(SHA2, piece);
        assert_eq!(one.server(&framed(3, b"\x01\x04")), framed(2, b"\x01\x04"));
        let key = framed(4, &[b"\x01", PEM].concat());
        assert_eq!(one.client(&framed(3, b"\x02")), (Vec::new(), key), "the gateway answers");
        let sent = framed(5, &encrypt(b"secret\0"));
        assert_eq!(one.client(&sent), (framed(4, b"secret\0"), Vec::new()));
        assert_eq!(one.server(&framed(5, OK)), framed(6, OK));
        assert_eq!(one.client(&framed(0, &query("DO 1"))).0, framed(0, &query("DO 1")));
        assert_eq!(one.server(&framed(1, OK)), framed(1, OK));
        // So it is for another user, without TLS's number in between.
        let user = [&b"\x11you\0\x01a\0\x2d\0"[..], SHA2, b"\0"].concat();
        one.client(&framed(0, &user));
        assert_eq!(one.server(&framed(1, b"\x01\x04")), framed(1, b"\x01\x04"));
        assert_eq!(one.client(&framed(2, b"\x02")).1, framed(3, &[b"\x01", PEM].concat()));
        assert_eq!(one.client(&framed(4, &encrypt(b"other\0"))).0, framed(2, b"other\0"));
        assert_eq!(one.server(&framed(3, OK)), framed(5, OK));
        assert!(one.session.take_unseen().is_none());
        let books = one.books();
        let connects = books.exchanges.iter().filter(|unit| unit.kind == UnitKind::Connect).count();
        assert_eq!(connects, 3, "the greeting, the login and the password: the gateway's key is no trip");
    }
}

#[test]
fn a_server_by_a_unix_socket_gets_the_password_itself() {
    for piece in [1, 1 << 20] {
        let mut one = Secured::by_socket(SHA2, 0, piece);
        assert_eq!(one.server(&framed(2, b"\x01\x04")), framed(2, b"\x01\x04"));
        let key = framed(4, &[b"\x01", PEM].concat());
        assert_eq!(one.client(&framed(3, b"\x02")), (Vec::new(), key), "the gateway answers");
        assert_eq!(one.client(&framed(5, &encrypt(b"secret\0"))).0, framed(3, b"secret\0"));
        assert_eq!(one.server(&framed(4, OK)), framed(6, OK));
        assert_eq!(one.client(&framed(0, &query("DO 1"))).0, framed(0, &query("DO 1")));
        assert_eq!(one.server(&framed(1, OK)), framed(1, OK));
        assert!(one.session.take_unseen().is_none());
        let books = one.books();
        let connects = books.exchanges.iter().filter(|unit| unit.kind == UnitKind::Connect).count();
        assert_eq!((connects, books.summary.statements), (3, 1));
    }
    let mut one = Secured::by_socket(SHA2, 0, 1 << 20);
    let both = [framed(2, b"\x01\x03"), framed(3, OK)].concat();
    assert_eq!(one.server(&both), both, "it remembers the password");
}

#[test]
fn a_client_that_speaks_tls_with_a_server_by_a_unix_socket_is_left_alone() {
    let hasher = ValueHasher::new();
    let session = MysqlSession::new(stage::config(&hasher));
    let mut one = Secured { session, hasher, now: 0, piece: 1 << 20 };
    one.session.connected(Moment(0));
    one.session.lend_key(Arc::new(Key));
    one.server(&framed(0, &named(greeting(PLAIN | TLS), SHA2)));
    let request = framed(1, &login(PLAIN | TLS, &[])[..32]);
    assert_eq!(one.client(&request), (request, Vec::new()));
    let hello = b"\x16\x03\x01\x02\x00\x01\x00";
    assert_eq!(one.client(hello).0, hello);
    assert_eq!(one.server(hello), hello);
}

#[test]
fn a_password_that_the_server_remembers_needs_no_key() {
    let mut one = Secured::begun(SHA2, 1 << 20);
    let both = [framed(3, b"\x01\x03"), framed(4, OK)].concat();
    assert_eq!(one.server(&both), [framed(2, b"\x01\x03"), framed(3, OK)].concat());
}

#[test]
fn the_older_way_asks_for_its_key_after_a_switch_and_is_refused_before() {
    let mut one = Secured::begun(NATIVE, 1 << 20);
    one.server(&framed(3, &switch(b"sha256_password")));
    assert_eq!(one.client(&framed(3, b"\x01")).1, framed(4, &[b"\x01", PEM].concat()));
    assert_eq!(one.client(&framed(5, &encrypt(b"secret\0"))).0, framed(4, b"secret\0"));
    assert_eq!(one.server(&framed(5, OK)), framed(6, OK));

    let mut asks = login(PLAIN, &[]);
    let answer = asks.len() - NATIVE.len() - 2;
    asks[answer] = 1;
    let (error, _) = refused_hello(&framed(1, &named(asks, b"sha256_password")));
    assert!(error.contains("use an account with caching_sha2_password"), "{error}");
}

/// What a client hears that says this, and how the books call it.
fn refused_hello(hello: &[u8]) -> (String, Books) {
    let hasher = ValueHasher::new();
    let config = MysqlConfig { hides_tls: true, ..stage::config(&hasher) };
    let mut session = MysqlSession::new(config);
    session.connected(Moment(0));
    session.secure(Arc::new(Key));
    session.handle_server(Moment(1), &framed(0, &greeting(PLAIN | TLS)));
    session.to_client().clear();
    assert_eq!(session.hello(Moment(2), hello), Hello::Refused);
    let said = std::mem::take(session.to_client());
    assert_eq!((said[3], &said[4..13]), (2, &b"\xff\x51\x04#HY000"[..]));
    let text = String::from_utf8(said[13..].to_vec()).expect("text");
    let stage = stage::Stage { session, hasher, now: 3, sent: Vec::new(), is_packed: false };
    (text, stage.books())
}

#[test]
fn what_cannot_be_passed_on_is_refused_in_words() {
    let (error, books) = refused_hello(&framed(1, &login(PLAIN | TLS, &[])[..32]));
    assert!(error.contains("none with clients of MySQL: set ssl-mode=DISABLED"), "{error}");
    assert_eq!((books.summary.connections, books.summary.sessions), (1, 0));
    let (error, _) = refused_hello(&framed(1, b"\x05\x24\0\0\0root\0"));
    assert!(error.contains("not that of a client of MySQL 4.1"), "{error}");

    for (answers, expected) in [
        (vec![framed(3, &[7; 256])], "encrypted with a key that is not the gateway's"),
        (vec![framed(3, b"\x02"), framed(5, b"nonsense")], "cannot be decrypted"),
        (vec![framed(3, &vec![1; 5000])], "cannot be decrypted"),
    ] {
        let mut one = Secured::begun(SHA2, 1 << 20);
        one.server(&framed(3, b"\x01\x04"));
        let mut ended = Ok((Vec::new(), Vec::new()));
        for answer in &answers {
            ended = one.feed(answer, true);
        }
        assert!(matches!(ended, Err(SessionError::PasswordKept(why)) if why.contains(expected)), "{ended:?}");
        assert!(one.session.to_server().is_empty(), "nothing of it goes on");
        let said = String::from_utf8_lossy(one.session.to_client()).into_owned();
        assert!(said.contains(expected), "{said}");
    }
    // One by a Unix socket is as safe as TLS, and sends it as it is.
    let mut one = Secured::begun(SHA2, 1 << 20);
    one.server(&framed(3, b"\x01\x04"));
    assert_eq!(one.client(&framed(3, b"secret\0")).0, framed(4, b"secret\0"));
}

#[test]
fn an_offer_of_tls_is_taken_only_from_a_greeting_alone() {
    let offer = |payload: &[u8]| MysqlSession::tls_offer(&framed(0, payload));
    assert_eq!(offer(&greeting(PLAIN)), TlsOffer::No);
    assert_eq!(offer(b"\xff\x10\x04Too many connections"), TlsOffer::Refused);
    assert_eq!(offer(b"nonsense"), TlsOffer::Unknown);
    assert_eq!(MysqlSession::tls_offer(b"220 mail.example ESMTP\r\n"), TlsOffer::Unknown);
    // What somebody on the way adds in the clear would be taken for what TLS protects.
    let more = [framed(0, &greeting(PLAIN | TLS)), framed(OTHER_SEQUENCE, OK)].concat();
    assert_eq!(MysqlSession::tls_offer(&more), TlsOffer::Unknown);
}

#[test]
fn a_stream_that_becomes_compressed_is_not_touched_after_the_login() {
    let mut one = Secured::begun(NATIVE, 1 << 20);
    assert_eq!(one.server(&framed(3, OK)), framed(2, OK));
    let packed = b"\x05\0\0\0\0\0\0\x01\0\0\0\x0e";
    assert_eq!(one.client(packed).0, packed);
}
