//! caching_sha2_password through the gateway's TLS, and to a Unix socket, with a server by hand: what the published pages say (not
//! verified on 8.x).

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread;

use aws_lc_rs::rsa::{OAEP_SHA1_MGF1SHA1, OaepPublicEncryptingKey, PublicEncryptingKey};
use onetrip_wire::mysql::{Capabilities, HEADER_BYTES, Handshake, PacketHeader, Status, packet};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, SubjectPublicKeyInfoDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::Watching;
use crate::tls::certificate;

const CHALLENGE: &[u8; 20] = b"1234567890abcdefghij";
const OK: &[u8] = b"\0\0\0\x02\0\0\0";
const LOGIN_REST: &[u8] = b"ann\0\x20answer.answer.answer.answer.answcaching_sha2_password\0";

fn framed(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet(&mut bytes, sequence, |out| out.extend_from_slice(payload));
    bytes
}

fn packet_of(stream: &mut impl Read) -> (u8, Vec<u8>) {
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header).expect("a packet");
    let header = PacketHeader::peek(&header).expect("four bytes");
    let mut payload = vec![0; header.payload_len as usize];
    stream.read_exact(&mut payload).expect("its payload");
    (header.sequence, payload)
}

fn greeting() -> Vec<u8> {
    let can = Capabilities::LONG_PASSWORD
        | Capabilities::PROTOCOL_41
        | Capabilities::PLUGIN_AUTH
        | Capabilities::SECURE_CONNECTION
        | Capabilities::TRANSACTIONS
        | Capabilities::SSL;
    let greeting = Handshake {
        server_version: b"8.0.36",
        thread_id: 7,
        capabilities: can,
        character_set: 255,
        status: Status(2),
        challenge_start: &CHALLENGE[..8],
        challenge_end: b"90abcdefghij\0",
        challenge_len: 21,
        reserved: &[0; 10],
        plugin: Some(b"caching_sha2_password"),
    };
    let mut out = Vec::new();
    packet(&mut out, 0, |out| greeting.encode(out));
    out
}

/// A server that wants the password itself, since TLS is there. Gives what it heard.
fn serve(listener: TcpListener) -> Vec<(u8, Vec<u8>)> {
    let read = |path: &String| std::fs::read(path).expect("it was made");
    let own = certificate();
    let chain = vec![CertificateDer::from_pem_slice(&read(&own.file)).expect("a certificate")];
    let key = PrivateKeyDer::from_pem_slice(&read(&own.key)).expect("a key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("they fit");
    let (mut stream, _) = listener.accept().expect("the gateway comes");
    stream.write_all(&greeting()).expect("it is taken");
    let mut heard = vec![packet_of(&mut stream)];
    let mut stream = StreamOwned::new(ServerConnection::new(Arc::new(config)).expect("TLS"), stream);
    heard.push(packet_of(&mut stream));
    stream.write_all(&framed(3, b"\x01\x04")).expect("it is taken");
    heard.push(packet_of(&mut stream));
    stream.write_all(&framed(5, OK)).expect("it is taken");
    heard.push(packet_of(&mut stream));
    stream.write_all(&framed(1, OK)).expect("it is taken");
    heard
}

#[test]
fn a_password_under_the_gateways_key_reaches_the_server_under_tls() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    let server = thread::spawn(move || serve(listener));
    let root = &certificate().file;
    let gateway =
        Watching::before(&format!("mysql://localhost:{port}?ssl-mode=VERIFY_IDENTITY&ssl-ca={root}"));
    let offered = log_in(gateway.port);
    assert_eq!(offered & Capabilities::SSL.0, 0);

    let heard = server.join().expect("it has heard all");
    let [request, login, password, query] = heard.as_slice() else { panic!("{heard:?}") };
    let with_tls = (offered | Capabilities::SSL.0) as u32;
    assert_eq!((request.0, &request.1[..]), (1, &[&with_tls.to_le_bytes()[..], &[0; 28]].concat()[..]));
    assert_eq!((login.0, &login.1[..32], &login.1[32..]), (2, &request.1[..], LOGIN_REST));
    assert_eq!((password.0, &password.1[..]), (4, &b"s3cret\0"[..]));
    assert_eq!((query.0, &query.1[..]), (0, &b"\x03SELECT 1"[..]));
    let summary = gateway.summary();
    assert_eq!((summary.trips.connect, summary.statements, summary.undecoded), (3, 1, 0));
}

#[test]
fn a_password_under_the_gateways_key_reaches_a_server_by_its_unix_socket() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mysqld.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the gateway comes");
        let mut heard = Vec::new();
        stream.write_all(&greeting()).expect("it is taken");
        for answer in [framed(2, b"\x01\x04"), framed(4, OK), framed(1, OK)] {
            heard.push(packet_of(&mut stream));
            stream.write_all(&answer).expect("it is taken");
        }
        heard
    });
    let gateway = Watching::before(&format!("mysql://{}", path.display().to_string().replace('/', "%2F")));
    log_in(gateway.port);

    let heard = server.join().expect("it has heard all");
    let [login, password, query] = heard.as_slice() else { panic!("{heard:?}") };
    assert_eq!((login.0, &login.1[32..]), (1, LOGIN_REST));
    assert_eq!((password.0, &password.1[..]), (3, &b"s3cret\0"[..]));
    assert_eq!((query.0, &query.1[..]), (0, &b"\x03SELECT 1"[..]));
    let summary = gateway.summary();
    assert_eq!((summary.trips.connect, summary.statements, summary.undecoded), (3, 1, 0));
}

/// A client without TLS logs in by a password that it encrypts, and asks for something. Gives what it was offered.
fn log_in(port: u16) -> u64 {
    let mut client = TcpStream::connect(("127.0.0.1", port)).expect("the gateway listens");
    let (_, greeted) = packet_of(&mut client);
    let offered = Handshake::decode(&greeted).expect("a greeting").capabilities.0;
    let can = (offered & !Capabilities::SSL.0) as u32;
    client
        .write_all(&framed(1, &[&can.to_le_bytes()[..], &[0; 28], LOGIN_REST].concat()))
        .expect("it is taken");
    assert_eq!(packet_of(&mut client), (2, b"\x01\x04".to_vec()));
    client.write_all(&framed(3, b"\x02")).expect("it is taken");
    let (number, key) = packet_of(&mut client);
    assert_eq!((number, key[0]), (4, 1));
    let key = SubjectPublicKeyInfoDer::from_pem_slice(&key[1..]).expect("a key in PEM form");
    let key =
        OaepPublicEncryptingKey::new(PublicEncryptingKey::from_der(&key).expect("RSA's")).expect("a key");
    let mixed: Vec<u8> =
        b"s3cret\0".iter().zip(CHALLENGE.iter().cycle()).map(|(one, other)| one ^ other).collect();
    let mut encrypted = vec![0; key.ciphertext_size()];
    let encrypted = key.encrypt(&OAEP_SHA1_MGF1SHA1, &mixed, &mut encrypted, None).expect("it is short");
    client.write_all(&framed(5, encrypted)).expect("it is taken");
    assert_eq!(packet_of(&mut client), (6, OK.to_vec()));
    client.write_all(&framed(0, b"\x03SELECT 1")).expect("it is taken");
    assert_eq!(packet_of(&mut client), (1, OK.to_vec()));
    offered
}
