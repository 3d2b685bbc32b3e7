//! Connections change workers while they are in use: in unit tests each worker counts as busy, so they do so all the time.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use onetrip_target::{Conninfo, Environment};

use crate::{Gateway, GatewayConfig, ListenAddress};

const CLIENTS: u32 = 6;
/// Time for several shares.
const USED_FOR: Duration = Duration::from_millis(1500);
const STARTUP: &[u8] = b"\0\0\0\x16\0\x03\0\0user\0onetrip\0\0";
/// AuthenticationOk, BackendKeyData, ReadyForQuery.
const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0K\0\0\0\x0c\0\0\0\x07\0\0\0\x07Z\0\0\0\x05I";

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag], &(body.len() as u32 + 4).to_be_bytes()[..], body].concat()
}

/// What the stub answers: a row with the statement, as long as it says, in pieces of several reads.
fn answer(text: &[u8]) -> Vec<u8> {
    let row = [&1_u16.to_be_bytes()[..], &(text.len() as u32).to_be_bytes(), text].concat();
    [message(b'D', &row), message(b'C', b"SELECT 1\0"), message(b'Z', b"I")].concat()
}

/// Answers each query with its own text.
fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.read_exact(&mut [0; STARTUP.len()])?;
    stream.write_all(WELCOME)?;
    loop {
        let mut header = [0; 5];
        stream.read_exact(&mut header)?;
        let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
        let mut text = vec![0; length - 4];
        stream.read_exact(&mut text)?;
        text.pop();
        stream.write_all(&answer(&text))?;
    }
}

fn use_for(time: Duration, client: u32, mut stream: TcpStream) -> u32 {
    stream.write_all(STARTUP).unwrap();
    stream.read_exact(&mut [0; WELCOME.len()]).unwrap();
    let until = Instant::now() + time;
    let mut count = 0;
    while Instant::now() < until {
        // From a few bytes to more than a buffer has room for, two in a flight.
        let texts = [count, count + 1].map(|number| {
            let length = if number % 50 == 0 { 200_000 } else { number as usize % 100 };
            format!("SELECT '{client} {number} {}'", "x".repeat(length)).into_bytes()
        });
        let flight: Vec<u8> =
            texts.iter().flat_map(|text| message(b'Q', &[text, &b"\0"[..]].concat())).collect();
        let mut writer = stream.try_clone().unwrap();
        let writing = thread::spawn(move || writer.write_all(&flight).unwrap());
        for text in &texts {
            let expected = answer(text);
            let mut came = vec![0; expected.len()];
            stream.read_exact(&mut came).unwrap();
            assert!(came == expected, "client {client}, statement {count}");
        }
        writing.join().unwrap();
        count += 2;
    }
    count
}

#[test]
fn connections_that_change_workers_lose_nothing_and_stay_in_order() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let upstream = format!(
        "postgres://onetrip@127.0.0.1:{}/postgres?sslmode=disable",
        listener.local_addr().unwrap().port()
    );
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that leaves ends its thread.
            thread::spawn(move || serve(stream));
        }
    });
    let upstream = Conninfo::parse(&upstream, &Environment::default()).unwrap();
    let config = GatewayConfig { threads: Some(3), spin: Duration::ZERO, ..GatewayConfig::new(upstream) };
    let gateway = Gateway::start(config).unwrap();
    let ListenAddress::Tcp(address) = *gateway.address() else { panic!("it listens at a port") };
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| thread::spawn(move || use_for(USED_FOR, client, TcpStream::connect(address).unwrap())))
        .collect();
    let counts: Vec<u32> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    assert!(counts.iter().all(|count| *count > 2), "{counts:?}");
    let workers = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let name =
        |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
    assert!(workers.map(name).filter(|name| name.trim() == "onetrip-worker").count() > 1, "they were shared");
    let outcome = gateway.stop();
    assert_eq!(outcome.accepted, u64::from(CLIENTS));
}
