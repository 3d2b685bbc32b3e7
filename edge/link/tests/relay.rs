//! Real sockets through a relay. Bounds on time are one-sided where a busy machine could break them.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown as Half, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use onetrip_link::{BitsPerSecond, LinkSpec, Relay, Shutdown, Target, serve};

fn ms(value: u64) -> Duration {
    Duration::from_millis(value)
}

/// Serves one connection in a thread.
fn server<T: Send + 'static>(
    work: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (SocketAddr, thread::JoinHandle<T>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (address, thread::spawn(move || work(listener.accept().unwrap().0)))
}

fn echo(mut stream: TcpStream) {
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(count) => stream.write_all(&buffer[..count]).unwrap(),
        }
    }
}

fn connect(relay: &Relay) -> TcpStream {
    let stream = TcpStream::connect(relay.local_addr()).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn trip(stream: &mut TcpStream) -> Duration {
    let start = Instant::now();
    stream.write_all(b"ping").unwrap();
    stream.read_exact(&mut [0; 4]).unwrap();
    start.elapsed()
}

/// Bytes that tell where they belong.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index ^ (index >> 8) ^ (index >> 16)) as u8).collect()
}

#[test]
fn a_trip_takes_the_round_trip_time_and_the_first_one_twice() {
    let (address, _) = server(echo);
    let relay = Relay::start(LinkSpec::with_rtt(ms(20)), address).unwrap();
    let start = Instant::now();
    let mut stream = connect(&relay);
    trip(&mut stream);
    let first = start.elapsed();
    let mut trips: Vec<Duration> = (0..21).map(|_| trip(&mut stream)).collect();
    trips.sort();
    assert!(first >= ms(40), "{first:?}");
    assert!(trips[0] >= ms(20), "{trips:?}");
    assert!(trips[10] < ms(25), "{trips:?}");
    let stats = relay.stop().unwrap();
    assert_eq!((stats.connections, stats.bytes_up, stats.bytes_down), (1, 22 * 4, 22 * 4));
    assert_eq!(stats.releases() + stats.stalled + stats.blocked, 2 * 22);
}

#[test]
fn a_server_that_speaks_first_is_heard_after_two_round_trips() {
    let (address, _) = server(|mut stream| stream.write_all(b"hello").unwrap());
    let relay = Relay::start(LinkSpec::with_rtt(ms(20)), address).unwrap();
    let start = Instant::now();
    connect(&relay).read_exact(&mut [0; 5]).unwrap();
    assert!(start.elapsed() >= ms(40));
}

#[test]
fn bytes_and_ends_of_stream_arrive_whole_in_both_directions() {
    let sent = pattern(3 << 20);
    let answer = sent.clone();
    let (address, served) = server(move |mut stream| {
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap(); // needs the client's FIN
        stream.write_all(&answer).unwrap();
        received
    });
    let link = LinkSpec { jitter: ms(1), buffer: 1 << 20, ..LinkSpec::with_rtt(ms(4)) };
    let relay = Relay::start(link, address).unwrap();
    let mut stream = connect(&relay);
    stream.write_all(&sent).unwrap();
    stream.shutdown(Half::Write).unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap(); // needs the server's
    assert!(received == sent, "{} bytes", received.len());
    assert!(served.join().unwrap() == sent);
}

#[test]
fn both_ends_may_write_at_once_through_a_small_buffer() {
    let sent = pattern(4 << 20);
    let (address, _) = server(echo);
    let relay = Relay::start(LinkSpec { buffer: 0, ..LinkSpec::with_rtt(ms(1)) }, address).unwrap();
    let stream = connect(&relay);
    let (mut reader, mut writer) = (stream.try_clone().unwrap(), stream);
    let written = sent.clone();
    let writing = thread::spawn(move || writer.write_all(&written).map(|()| writer));
    let mut received = vec![0; sent.len()];
    reader.read_exact(&mut received).unwrap();
    assert!(received == sent);
    writing.join().unwrap().unwrap();
}

/// Bytes that a program can write over `link` to one that does not read.
fn accepted_by(link: LinkSpec) -> usize {
    let (leave, left) = std::sync::mpsc::channel::<()>();
    let (address, served) = server(move |_unread| left.recv().is_err());
    let relay = Relay::start(link, address).unwrap();
    let mut stream = connect(&relay);
    stream.set_write_timeout(Some(ms(500))).unwrap();
    let block = vec![0; 64 << 10];
    let mut accepted = 0usize;
    while accepted < 256 << 20 {
        match stream.write(&block) {
            Ok(count) => accepted += count,
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                break;
            }
        }
    }
    drop(leave);
    assert!(served.join().unwrap());
    accepted
}

/// The kernel's own buffers on both legs come on top of the link's: 20 MiB by its defaults, more on some machines.
const KERNEL_BYTES_MAX: usize = 44 << 20;

#[test]
fn a_reader_that_stops_stops_the_writer_at_the_buffer() {
    let accepted = accepted_by(LinkSpec { buffer: 256 << 10, ..LinkSpec::default() });
    assert!(accepted < (256 << 10) + KERNEL_BYTES_MAX, "{accepted} bytes");
}

#[test]
fn a_reader_that_stops_stops_the_writer_at_the_window() {
    let accepted = accepted_by(LinkSpec::with_rtt(ms(4)));
    assert!(accepted < (4 << 20) + KERNEL_BYTES_MAX, "{accepted} bytes");
    let without = accepted_by(LinkSpec { tcp_window: false, ..LinkSpec::with_rtt(ms(4)) });
    assert!(without >= 64 << 20, "a path without a window holds as much as `buffer`: {without} bytes");
}

#[test]
fn one_idle_reader_does_not_stop_the_other_connections() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let _unread = listener.accept().unwrap();
        echo(listener.accept().unwrap().0);
    });
    let relay = Relay::start(LinkSpec { buffer: 128 << 10, ..LinkSpec::default() }, address).unwrap();
    let mut stuck = connect(&relay);
    stuck.set_write_timeout(Some(ms(200))).unwrap();
    while stuck.write(&[0; 1 << 16]).is_ok() {}
    let mut stream = connect(&relay);
    let sent = pattern(1 << 20);
    let mut writer = stream.try_clone().unwrap();
    let written = sent.clone();
    let writing = thread::spawn(move || writer.write_all(&written));
    let mut received = vec![0; sent.len()];
    stream.read_exact(&mut received).unwrap();
    assert!(received == sent);
    writing.join().unwrap().unwrap();
}

#[test]
fn nobody_at_the_target_is_news_after_one_round_trip() {
    let nobody = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let relay = Relay::start(LinkSpec::with_rtt(ms(30)), nobody).unwrap();
    let start = Instant::now();
    let outcome = connect(&relay).read(&mut [0; 1]);
    assert!(start.elapsed() >= ms(30) && start.elapsed() < ms(3000), "{:?}", start.elapsed());
    assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(relay.stop().unwrap().refused, 1);
}

#[test]
fn a_reset_travels_to_the_other_end() {
    let (address, served) = server(|mut stream| {
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.read_exact(&mut [0; 4]).unwrap();
        stream.read(&mut [0; 1]).map_err(|error| error.kind())
    });
    let relay = Relay::start(LinkSpec::with_rtt(ms(10)), address).unwrap();
    let mut stream = connect(&relay);
    stream.write_all(b"ping").unwrap();
    thread::sleep(ms(30));
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    drop(stream);
    assert_eq!(served.join().unwrap(), Err(io::ErrorKind::ConnectionReset));
}

#[test]
fn a_writer_hears_that_its_reader_has_closed() {
    let (address, _) = server(drop);
    let relay = Relay::start(LinkSpec::with_rtt(ms(10)), address).unwrap();
    let mut stream = connect(&relay);
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    let start = Instant::now();
    let error = loop {
        if let Err(error) = stream.write_all(b"more") {
            break error;
        }
        assert!(start.elapsed() < Duration::from_secs(5), "still writing to a closed connection");
        thread::sleep(ms(1));
    };
    assert!(matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset), "{error}");
    assert!(start.elapsed() >= ms(10), "the news needs a round trip");
}

#[test]
fn bandwidth_is_shared_and_kept() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            thread::spawn(move || stream.write_all(&pattern(500_000)));
        }
    });
    // Two times 500 kB at 40 Mbit/s: 200 ms.
    let link = LinkSpec { bandwidth: BitsPerSecond::new(40_000_000), ..LinkSpec::with_rtt(ms(2)) };
    let relay = Relay::start(link, address).unwrap();
    let start = Instant::now();
    let readers = [connect(&relay), connect(&relay)].map(|mut stream| {
        thread::spawn(move || {
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            assert!(received == pattern(500_000));
        })
    });
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    let elapsed = start.elapsed();
    assert!(elapsed >= ms(200) && elapsed < ms(2000), "{elapsed:?}");
}

#[test]
fn a_burst_beyond_the_window_waits_for_its_acknowledgements() {
    let took = |tcp_window| {
        let (address, _) = server(|mut stream| stream.write_all(&pattern(100_000)));
        let relay = Relay::start(LinkSpec { tcp_window, ..LinkSpec::with_rtt(ms(20)) }, address).unwrap();
        let start = Instant::now();
        let mut received = Vec::new();
        connect(&relay).read_to_end(&mut received).unwrap();
        assert_eq!(received.len(), 100_000);
        start.elapsed()
    };
    assert!(took(false) >= ms(40));
    assert!(took(true) >= ms(80), "70 segments leave as 10, 20, 40: two round trips more");
}

#[test]
fn many_connections_share_the_pacer() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        listener.incoming().flatten().for_each(|stream| drop(thread::spawn(|| echo(stream))))
    });
    let relay = Relay::start(LinkSpec::with_rtt(ms(20)), address).unwrap();
    let mut streams: Vec<TcpStream> = (0..200).map(|_| connect(&relay)).collect();
    for _ in 0..3 {
        let start = Instant::now();
        for (index, stream) in streams.iter_mut().enumerate() {
            stream.write_all(&[index as u8; 100]).unwrap();
        }
        for (index, stream) in streams.iter_mut().enumerate() {
            let mut answer = [0; 100];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(answer, [index as u8; 100]);
        }
        assert!(start.elapsed() >= ms(20));
    }
    let stats = relay.stop().unwrap();
    assert_eq!((stats.connections, stats.bytes_up, stats.bytes_down), (200, 60_000, 60_000));
}

#[test]
fn a_unix_socket_can_be_the_target() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4];
        stream.read_exact(&mut request).unwrap();
        stream.write_all(&request).unwrap();
    });
    let relay = Relay::start(LinkSpec::with_rtt(ms(5)), path).unwrap();
    assert!(trip(&mut connect(&relay)) >= ms(10));
}

#[test]
fn serve_runs_until_it_is_shut_down() {
    let (address, _) = server(echo);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let local = listener.local_addr().unwrap();
    let shutdown = Shutdown::new().unwrap();
    let ending = shutdown.clone();
    let client = thread::spawn(move || {
        let mut stream = TcpStream::connect(local).unwrap();
        trip(&mut stream);
        ending.trigger();
        assert!(matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_)), "the connection is cut");
    });
    let stats = serve(LinkSpec::default(), listener, Target::Tcp(address), &shutdown).unwrap();
    client.join().unwrap();
    assert_eq!(stats.connections, 1);
}

#[test]
fn statistics_can_be_read_while_the_relay_runs() {
    let (address, _) = server(echo);
    let relay = Relay::start(LinkSpec::default(), address).unwrap();
    let mut stream = connect(&relay);
    trip(&mut stream);
    let stats = relay.stats().unwrap();
    assert_eq!((stats.bytes_up, stats.bytes_down), (4, 4));
}
