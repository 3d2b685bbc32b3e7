//! Packets made by hand: one PostgreSQL conversation, and files of it in every dress.

#![allow(dead_code, missing_docs, unreachable_pub)]

pub mod mysql;
pub mod tcpdump;
pub mod tls13;

use onetrip_capture::{Capture, CaptureConfig, CaptureFile};
use onetrip_ledger::network::NetworkSummary;
use onetrip_ledger::{Analyzer, Mutes, Summary};

pub const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 1], 40_000);
pub const SERVER: ([u8; 4], u16) = ([10, 0, 0, 2], 5432);
pub const SYN: u8 = 2;
pub const ACK: u8 = 16;
pub const FIN: u8 = 1;
pub const RST: u8 = 4;
const START_NS: u64 = 1_700_000_000_000_000_000;

/// Bytes of the header of a pcap file.
const HEADER_BYTES: usize = 24;

/// Header and packets of a pcap file in this machine's byte order.
pub fn split(file: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let (header, mut rest) = file.split_at(HEADER_BYTES);
    let mut packets = Vec::new();
    while rest.len() >= 16 {
        let length = u32::from_le_bytes([rest[8], rest[9], rest[10], rest[11]]) as usize;
        let (packet, after) = rest.split_at(16 + length);
        packets.push(packet.to_vec());
        rest = after;
    }
    (header.to_vec(), packets)
}

/// One packet on its way.
#[derive(Debug, Clone)]
pub struct Frame {
    pub at_ns: u64,
    /// From the IP header on.
    pub ip: Vec<u8>,
    /// Bytes that were captured of it; all where it is longer.
    pub snaplen: usize,
}

/// Both ends of one connection.
#[derive(Debug, Clone)]
pub struct Talk {
    pub frames: Vec<Frame>,
    pub now_ns: u64,
    client_next: u32,
    server_next: u32,
    port: u16,
    server_port: u16,
}

impl Default for Talk {
    fn default() -> Self {
        Self::from_port(CLIENT.1)
    }
}

impl Talk {
    pub fn from_port(port: u16) -> Self {
        // The client's numbers wrap around early.
        let (client_next, server_next) = (u32::MAX - 40, 7_000);
        Self { frames: Vec::new(), now_ns: START_NS, client_next, server_next, port, server_port: SERVER.1 }
    }

    pub fn to_port(server_port: u16) -> Self {
        Self { server_port, ..Self::default() }
    }

    pub fn wait_us(&mut self, microseconds: u64) {
        self.now_ns += microseconds * 1_000;
    }

    /// SYN, SYN and ACK, ACK: as seen at the client's side of a path of 1 ms.
    pub fn handshake(&mut self) {
        self.handshake_seen_at(1_000, 10);
    }

    /// The same so many microseconds from the server, and from the client.
    pub fn handshake_seen_at(&mut self, server_us: u64, client_us: u64) {
        self.segment(true, SYN, &[]);
        self.client_next = self.client_next.wrapping_add(1);
        self.wait_us(server_us);
        self.segment(false, SYN | ACK, &[]);
        self.server_next = self.server_next.wrapping_add(1);
        self.wait_us(client_us);
        self.segment(true, ACK, &[]);
    }

    /// A handshake whose SYN has data, as of TCP Fast Open: the server takes it.
    pub fn fast_open(&mut self, data: &[u8]) {
        self.segment(true, SYN, data);
        self.client_next = self.client_next.wrapping_add(1 + data.len() as u32);
        self.wait_us(1_000);
        self.segment(false, SYN | ACK, &[]);
        self.server_next = self.server_next.wrapping_add(1);
        self.wait_us(10);
        self.segment(true, ACK, &[]);
    }

    pub fn client(&mut self, data: &[u8]) {
        self.wait_us(100);
        self.segment(true, ACK, data);
        self.client_next = self.client_next.wrapping_add(data.len() as u32);
    }

    /// What the client sends so many microseconds after the last segment.
    pub fn client_at_once(&mut self, data: &[u8], microseconds: u64) {
        self.wait_us(microseconds);
        self.segment(true, ACK, data);
        self.client_next = self.client_next.wrapping_add(data.len() as u32);
    }

    /// The server's next segment follows this.
    pub fn server_has_sent(&mut self, data: &[u8]) {
        self.server_next = self.server_next.wrapping_add(data.len() as u32);
    }

    /// A part of what the client sends, at once after the part before.
    pub fn client_piece(&mut self, data: &[u8]) {
        self.wait_us(2);
        self.segment(true, ACK, data);
        self.client_next = self.client_next.wrapping_add(data.len() as u32);
    }

    pub fn server(&mut self, data: &[u8]) {
        self.wait_us(1_200);
        self.segment(false, ACK, data);
        self.server_next = self.server_next.wrapping_add(data.len() as u32);
    }

    /// The bytes that the client has sent last, once more.
    pub fn client_again(&mut self, data: &[u8]) {
        self.client_next = self.client_next.wrapping_sub(data.len() as u32);
        self.segment(true, ACK, data);
        self.client_next = self.client_next.wrapping_add(data.len() as u32);
    }

    /// Full segments that the server sends at once and the client acknowledges at once.
    pub fn server_round(&mut self, segments: usize, data: &[u8]) {
        for piece in data.chunks(data.len() / segments) {
            self.wait_us(2);
            self.segment(false, ACK, piece);
            self.server_next = self.server_next.wrapping_add(piece.len() as u32);
            self.segment(true, ACK, &[]);
        }
    }

    /// The client says how much it takes.
    pub fn client_takes(&mut self, window: u16) {
        self.segment_with(true, ACK, window, &[]);
    }

    /// Takes back what ended it, as if it went on.
    pub fn reopen(&mut self, frames: usize) {
        self.frames.truncate(frames);
        self.client_next = self.client_next.wrapping_sub(6);
        self.server_next = self.server_next.wrapping_sub(1);
    }

    pub fn end(&mut self) {
        self.client(&message(b'X', b""));
        self.close();
    }

    /// Both sides end the connection, the client first.
    pub fn close(&mut self) {
        self.segment(true, ACK | FIN, &[]);
        self.client_next = self.client_next.wrapping_add(1);
        self.wait_us(1_000);
        self.segment(false, ACK | FIN, &[]);
        self.server_next = self.server_next.wrapping_add(1);
        self.segment(true, ACK, &[]);
    }

    pub fn segment(&mut self, from_client: bool, flags: u8, data: &[u8]) {
        self.segment_with(from_client, flags, 65_535, data);
    }

    /// A segment whose sender takes so much.
    fn segment_with(&mut self, from_client: bool, flags: u8, window: u16, data: &[u8]) {
        let (client, server) = ((CLIENT.0, self.port), (SERVER.0, self.server_port));
        let (source, destination, sequence, acknowledged) = match from_client {
            true => (client, server, self.client_next, self.server_next),
            false => (server, client, self.server_next, self.client_next),
        };
        let acknowledged = if flags & ACK == 0 { 0 } else { acknowledged };
        let ip = packet(source, destination, sequence, acknowledged, flags, window, data);
        self.frames.push(Frame { at_ns: self.now_ns, ip, snaplen: usize::MAX });
    }

    /// Logs in: startup, AuthenticationOk, ReadyForQuery.
    pub fn log_in(&mut self) {
        self.handshake();
        self.start_up();
    }

    /// The startup packet and its answer.
    pub fn start_up(&mut self) {
        self.client(&startup());
        self.let_in();
    }

    /// The answer to a startup packet.
    pub fn let_in(&mut self) {
        self.server(&[message(b'R', &[0, 0, 0, 0]), ready(b'I')].concat());
    }

    /// One simple query and its reply of one row.
    pub fn query(&mut self, text: &str) {
        self.client(&query(text));
        self.server(&reply("1"));
    }
}

pub fn startup() -> Vec<u8> {
    let mut startup = vec![0, 3, 0, 0];
    startup.extend_from_slice(b"user\0ada\0database\0shop\0\0");
    [&(startup.len() as u32 + 4).to_be_bytes()[..], &startup].concat()
}

pub fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

pub fn ready(status: u8) -> Vec<u8> {
    message(b'Z', &[status])
}

pub fn query(text: &str) -> Vec<u8> {
    message(b'Q', &[text.as_bytes(), b"\0"].concat())
}

/// A RowDescription of one column `id` of type int4.
pub fn described() -> Vec<u8> {
    let column = [&b"id\0"[..], &[0; 6], &23_u32.to_be_bytes(), &[0, 4, 255, 255, 255, 255, 0, 0]].concat();
    message(b'T', &[&[0, 1][..], &column].concat())
}

/// A row of it.
pub fn row(value: &str) -> Vec<u8> {
    message(b'D', &[&[0, 1][..], &(value.len() as u32).to_be_bytes(), value.as_bytes()].concat())
}

/// A result of one such row.
pub fn reply(value: &str) -> Vec<u8> {
    [described(), row(value), message(b'C', b"SELECT 1\0"), ready(b'I')].concat()
}

/// An IPv4 packet with a TCP segment.
pub fn packet(
    source: ([u8; 4], u16),
    destination: ([u8; 4], u16),
    sequence: u32,
    acknowledged: u32,
    flags: u8,
    window: u16,
    data: &[u8],
) -> Vec<u8> {
    let tcp = tcp(source.1, destination.1, sequence, acknowledged, flags, window, data);
    let length = (20 + tcp.len()) as u16;
    let mut ip = vec![0x45, 0];
    ip.extend_from_slice(&length.to_be_bytes());
    ip.extend_from_slice(&[0, 1, 0x40, 0, 64, 6, 0, 0]);
    ip.extend_from_slice(&source.0);
    ip.extend_from_slice(&destination.0);
    ip.extend_from_slice(&tcp);
    ip
}

pub fn tcp(
    source: u16,
    destination: u16,
    sequence: u32,
    acknowledged: u32,
    flags: u8,
    window: u16,
    data: &[u8],
) -> Vec<u8> {
    let mut tcp = Vec::new();
    tcp.extend_from_slice(&source.to_be_bytes());
    tcp.extend_from_slice(&destination.to_be_bytes());
    tcp.extend_from_slice(&sequence.to_be_bytes());
    tcp.extend_from_slice(&acknowledged.to_be_bytes());
    tcp.extend_from_slice(&[0x50, flags]);
    tcp.extend_from_slice(&window.to_be_bytes());
    tcp.extend_from_slice(&[0, 0, 0, 0]);
    tcp.extend_from_slice(data);
    tcp
}

/// The link layer of a frame in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dress {
    Ethernet,
    Vlan,
    Cooked,
    Cooked2,
    Null,
    Raw,
}

impl Dress {
    pub const ALL: [Self; 6] =
        [Self::Ethernet, Self::Vlan, Self::Cooked, Self::Cooked2, Self::Null, Self::Raw];

    fn link(self) -> u32 {
        match self {
            Self::Ethernet | Self::Vlan => 1,
            Self::Cooked => 113,
            Self::Cooked2 => 276,
            Self::Null => 0,
            Self::Raw => 101,
        }
    }

    fn header(self) -> Vec<u8> {
        match self {
            Self::Ethernet => [&[0; 12][..], &[8, 0]].concat(),
            Self::Vlan => [&[0; 12][..], &[0x81, 0, 0, 7, 8, 0]].concat(),
            Self::Cooked => [&[0; 14][..], &[8, 0]].concat(),
            Self::Cooked2 => [&[8, 0][..], &[0; 18]].concat(),
            Self::Null => vec![2, 0, 0, 0],
            Self::Raw => Vec::new(),
        }
    }
}

/// A classic pcap file in either byte order.
pub fn pcap(frames: &[Frame], dress: Dress, is_big_endian: bool) -> Vec<u8> {
    let number = |value: u32| if is_big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    let short = |value: u16| if is_big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut file = number(0xa1b2_c3d4).to_vec();
    file.extend_from_slice(&short(2));
    file.extend_from_slice(&short(4));
    for value in [0, 0, 262_144, dress.link()] {
        file.extend_from_slice(&number(value));
    }
    for frame in frames {
        let bytes = [dress.header(), frame.ip.clone()].concat();
        let captured = &bytes[..bytes.len().min(frame.snaplen)];
        let fraction = (frame.at_ns % 1_000_000_000 / 1_000) as u32;
        for value in
            [(frame.at_ns / 1_000_000_000) as u32, fraction, captured.len() as u32, bytes.len() as u32]
        {
            file.extend_from_slice(&number(value));
        }
        file.extend_from_slice(captured);
    }
    file
}

/// A block of a pcapng file.
pub fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().div_ceil(4) * 4;
    let length = (padded as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &vec![0; padded - body.len()], &length].concat()
}

/// The block at the front of a pcapng file.
pub fn section() -> Vec<u8> {
    block(0x0a0d_0d0a, &[&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat())
}

/// An interface whose clock is described by one byte; in microseconds without.
pub fn interface(dress: Dress, resolution: Option<u8>) -> Vec<u8> {
    let link = (dress.link() as u16).to_le_bytes();
    let mut body = [&link[..], &[0, 0], &262_144_u32.to_le_bytes()].concat();
    if let Some(resolution) = resolution {
        body.extend_from_slice(&[9, 0, 1, 0, resolution, 0, 0, 0, 0, 0, 0, 0]);
    }
    block(1, &body)
}

/// An enhanced packet block.
pub fn enhanced(frame: &Frame, dress: Dress, interface: u32, ticks: u64) -> Vec<u8> {
    let bytes = [dress.header(), frame.ip.clone()].concat();
    let captured = &bytes[..bytes.len().min(frame.snaplen)];
    let mut body = Vec::new();
    for value in [interface, (ticks >> 32) as u32, ticks as u32, captured.len() as u32, bytes.len() as u32] {
        body.extend_from_slice(&value.to_le_bytes());
    }
    body.extend_from_slice(captured);
    block(6, &body)
}

/// A pcapng file with two interfaces: every other packet is of the second, whose clock ticks in nanoseconds.
pub fn pcapng(frames: &[Frame], dress: Dress) -> Vec<u8> {
    let mut file = [section(), interface(dress, None), interface(dress, Some(9))].concat();
    for (place, frame) in frames.iter().enumerate() {
        let interface = place as u32 % 2;
        let ticks = if interface == 0 { frame.at_ns / 1_000 } else { frame.at_ns };
        file.extend_from_slice(&enhanced(frame, dress, interface, ticks));
    }
    file
}

/// What a file comes to, and why it could not be read to its end, if it could not. `piece` is how many bytes come at once.
pub fn read(file: &[u8], piece: usize) -> (Summary, NetworkSummary, Option<String>) {
    read_with(CaptureConfig::default(), file, piece)
}

/// The same with other settings.
pub fn read_with(
    config: CaptureConfig,
    file: &[u8],
    piece: usize,
) -> (Summary, NetworkSummary, Option<String>) {
    let mut reader = CaptureFile::new();
    let mut capture = Capture::new(config);
    let mut analyzer = Analyzer::new();
    let problem;
    let mut rest = file;
    'reading: loop {
        loop {
            match reader.next_packet() {
                Ok(Some(packet)) => {
                    capture.packet(&packet, &mut |stream, block| {
                        analyzer.block(stream, block).expect("own records")
                    });
                }
                Ok(None) => break,
                Err(error) => {
                    problem = Some(error.to_string());
                    break 'reading;
                }
            }
        }
        let count = piece.min(rest.len()).min(reader.room().len());
        if count == 0 {
            problem = reader.finish().err().map(|error| error.to_string());
            break;
        }
        reader.room()[..count].copy_from_slice(&rest[..count]);
        reader.filled(count);
        rest = &rest[count..];
    }
    let network = capture.finish(0, &mut |stream, block| analyzer.block(stream, block).expect("own records"));
    (analyzer.finish(&Mutes::default()).summary, network, problem)
}

/// The same of frames in a plain file.
pub fn analyze(frames: &[Frame]) -> (Summary, NetworkSummary) {
    analyze_with(CaptureConfig::default(), frames)
}

/// The same with other settings.
pub fn analyze_with(config: CaptureConfig, frames: &[Frame]) -> (Summary, NetworkSummary) {
    let (summary, network, problem) = read_with(config, &pcap(frames, Dress::Ethernet, false), 1 << 20);
    assert_eq!(problem, None);
    (summary, network)
}

/// Statements by their runs; those that are unknown have no text.
pub fn runs(summary: &Summary) -> Vec<(String, u64)> {
    let mut runs: Vec<_> =
        summary.templates.iter().map(|template| (template.text.clone(), template.executions)).collect();
    runs.sort();
    runs
}
