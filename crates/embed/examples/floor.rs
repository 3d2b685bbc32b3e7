//! What a statement costs over a blocking TCP echo of equal bytes: `cargo run --release --example floor`.
//!
//! Client and servers are threads of this process, all on one core. Rounds of both alternate; the ratio is that of
//! the medians.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use onetrip_embed::{ServeOptions, Server};
use onetrip_wire::pg::{PROTOCOL_3_0, encode_startup, frame};
use rustix::thread::{CpuSet, sched_setaffinity};

const ROUNDS: usize = 15;
const TRIPS: u32 = 20_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut core = CpuSet::new();
    core.set(0);
    sched_setaffinity(None, &core)?;
    let directory = std::env::temp_dir().join(format!("onetrip-floor-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let server = Server::start(ServeOptions::new(directory.join("floor.db")))?;
    for (name, text) in [("VALUES (1)", "VALUES (1)"), ("point select", "SELECT v FROM t WHERE id = 7")] {
        let mut client = connect(&server)?;
        if name == "point select" {
            simple(
                &mut client,
                "CREATE TABLE t (id int PRIMARY KEY, v varchar(100)); INSERT INTO t SELECT n, 'value ' || n FROM generate_series(1, 1000) AS n",
            )?;
        }
        let (request, reply_len) = prepare(&mut client, text)?;
        let mut echo = echo_server(request.len(), reply_len)?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            theirs.push(round(&mut echo, &request, reply_len)?);
            ours.push(round(&mut client, &request, reply_len)?);
        }
        let (ours, theirs) = (median(&mut ours), median(&mut theirs));
        println!(
            "{name}: {ours:.2} us, echo of {} + {reply_len} bytes {theirs:.2} us, ratio {:.3}",
            request.len(),
            theirs / ours
        );
    }
    server.stop()?;
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

fn connect(server: &Server) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(server.local_addr())?;
    stream.set_nodelay(true)?;
    let mut out = Vec::new();
    encode_startup(&mut out, PROTOCOL_3_0, [(&b"user"[..], &b"floor"[..])]);
    stream.write_all(&out)?;
    until_ready(&mut stream)?;
    Ok(stream)
}

fn simple(stream: &mut TcpStream, text: &str) -> std::io::Result<()> {
    let mut out = Vec::new();
    frame(&mut out, b'Q', |out| put(out, text));
    stream.write_all(&out)?;
    until_ready(stream).map(drop)
}

fn put(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// Prepares the statement; gives the bytes of one execution and the length of its reply.
fn prepare(stream: &mut TcpStream, text: &str) -> std::io::Result<(Vec<u8>, usize)> {
    let mut out = Vec::new();
    frame(&mut out, b'P', |out| {
        put(out, "s");
        put(out, text);
        out.extend_from_slice(&[0, 0]);
    });
    frame(&mut out, b'S', |_| {});
    stream.write_all(&out)?;
    until_ready(stream)?;
    let mut request = Vec::new();
    frame(&mut request, b'B', |out| {
        put(out, "");
        put(out, "s");
        out.extend_from_slice(&[0, 0, 0, 0, 0, 0]);
    });
    frame(&mut request, b'E', |out| {
        put(out, "");
        out.extend_from_slice(&[0; 4]);
    });
    frame(&mut request, b'S', |_| {});
    stream.write_all(&request)?;
    let reply_len = until_ready(stream)?;
    Ok((request, reply_len))
}

/// Reads up to ReadyForQuery; gives the bytes read.
fn until_ready(stream: &mut TcpStream) -> std::io::Result<usize> {
    let mut total = 0;
    loop {
        let mut header = [0; 5];
        stream.read_exact(&mut header)?;
        let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize - 4;
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        total += 5 + length;
        match header[0] {
            b'Z' => return Ok(total),
            b'E' => return Err(std::io::Error::other(String::from_utf8_lossy(&body).into_owned())),
            _ => {}
        }
    }
}

fn echo_server(request_len: usize, reply_len: usize) -> std::io::Result<TcpStream> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let stream = TcpStream::connect(listener.local_addr()?)?;
    stream.set_nodelay(true)?;
    let (mut server, _) = listener.accept()?;
    server.set_nodelay(true)?;
    std::thread::spawn(move || {
        let (mut request, reply) = (vec![0; request_len], vec![0; reply_len]);
        while server.read_exact(&mut request).is_ok() && server.write_all(&reply).is_ok() {}
    });
    Ok(stream)
}

/// Microseconds a trip.
fn round(stream: &mut TcpStream, request: &[u8], reply_len: usize) -> std::io::Result<f64> {
    let mut reply = vec![0; reply_len];
    let start = Instant::now();
    for _ in 0..TRIPS {
        stream.write_all(request)?;
        stream.read_exact(&mut reply)?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e6 / f64::from(TRIPS))
}

fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}
