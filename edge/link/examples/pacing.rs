//! How well the relay keeps its schedule on this machine: release errors at 1 and 8 connections, with the processors
//! idle and with one busy loop per processor.
//!
//! `cargo run --release -p onetrip-link --example pacing -- [RTT [TRIPS [SIZE]]]` (default: 5ms 1000 100B)

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use onetrip_link::{ByteSize, HumanDuration, LinkSpec, LinkStats, Relay};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let rtt: HumanDuration = arguments.next().as_deref().unwrap_or("5ms").parse()?;
    let trips: usize = arguments.next().as_deref().unwrap_or("1000").parse()?;
    let size: ByteSize = arguments.next().as_deref().unwrap_or("100B").parse()?;
    let processors = thread::available_parallelism()?.get();
    let server = echo_server()?;
    println!("rtt {rtt}, {trips} trips of {size} per connection, {processors} processors; times in µs");
    println!(
        "{:>11} {:>10} {:>8} {:>8} {:>8} {:>8} {:>8} {:>6} {:>9} {:>9} {:>8} {:>8}",
        "connections",
        "busy loops",
        "releases",
        "median",
        "p90",
        "p99",
        "max",
        "stalls",
        "left out",
        "preempted",
        "direct",
        "added"
    );
    for (connections, loops) in [(1, 0), (8, 0), (1, processors), (8, processors)] {
        let load = Load::start(loops);
        let direct = median(trip_times(server, connections, trips.min(1000), size.0)?);
        let relay = Relay::start(LinkSpec::with_rtt(rtt.0), server)?;
        let through = median(trip_times(relay.local_addr(), connections, trips, size.0)?);
        drop(load);
        print_row(connections, loops, &relay.stop()?, direct, through.saturating_sub(rtt.0));
    }
    Ok(())
}

fn print_row(connections: usize, loops: usize, stats: &LinkStats, direct: Duration, added: Duration) {
    let micros = |duration: Duration| format!("{:.1}", duration.as_secs_f64() * 1e6);
    println!(
        "{connections:>11} {loops:>10} {:>8} {:>8} {:>8} {:>8} {:>8} {:>6} {:>9} {:>9} {:>8} {:>8}",
        stats.releases(),
        micros(stats.error_at(0.5)),
        micros(stats.error_at(0.9)),
        micros(stats.error_at(0.99)),
        micros(stats.error_max()),
        stats.stalls.count,
        stats.stalled,
        stats.preemptions.count,
        micros(direct),
        micros(added),
    );
}

/// Request and answer of `size` bytes, `trips` times on each of `connections` at once.
fn trip_times(
    server: SocketAddr,
    connections: usize,
    trips: usize,
    size: usize,
) -> io::Result<Vec<Duration>> {
    let clients: Vec<_> =
        (0..connections).map(|_| thread::spawn(move || client(server, trips, size))).collect();
    let mut times = Vec::with_capacity(connections * trips);
    for client in clients {
        times.extend(client.join().map_err(|_| io::Error::other("a client panicked"))??);
    }
    Ok(times)
}

fn client(server: SocketAddr, trips: usize, size: usize) -> io::Result<Vec<Duration>> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_nodelay(true)?;
    let mut bytes = vec![0; size];
    let mut trip = || {
        let start = Instant::now();
        stream.write_all(&bytes)?;
        stream.read_exact(&mut bytes)?;
        Ok(start.elapsed())
    };
    (0..trips).map(|_| trip()).collect()
}

fn echo_server() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || echo(stream));
        }
    });
    Ok(address)
}

fn echo(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = vec![0; 64 << 10];
    loop {
        match stream.read(&mut bytes)? {
            0 => return Ok(()),
            count => stream.write_all(&bytes[..count])?,
        }
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Threads that do nothing, with all their might.
struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Load {
    fn start(loops: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let spin = |_| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || while !stop.load(Ordering::Relaxed) {})
        };
        let threads = (0..loops).map(spin).collect();
        Self { stop, threads }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A busy loop has nothing to panic about.
            let _ = thread.join();
        }
    }
}
