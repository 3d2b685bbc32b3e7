//! A client that sends packets by hand, to a server that lets everybody in.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use onetrip_wire::mysql::dialogue::{Dialogue, Event, Reply, Settings, Side};
use onetrip_wire::mysql::{Capabilities, PAYLOAD_MAX, packet};

/// What it can do: multiple statements and results, files, and no password.
const CAPABILITIES: u32 = 0x000f_8281;
const CONNECT_WITH_DB: u32 = 8;

#[derive(Debug)]
pub(crate) struct RawClient {
    pub(crate) stream: TcpStream,
    dialogue: Dialogue,
    /// Answers so far, the login's first.
    pub(crate) replies: Vec<Reply>,
    /// The statement that was prepared last.
    pub(crate) prepared: u32,
    pub(crate) asked_for_file: bool,
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

impl RawClient {
    /// Connects and logs in.
    pub(crate) fn connect(port: u16, database: &str) -> Self {
        let mut client = Self::greeted(port);
        client.log_in(database);
        client.answer();
        client
    }

    /// Says who it is; the answer is yet to come.
    pub(crate) fn log_in(&mut self, database: &str) {
        let mut response = (CAPABILITIES | CONNECT_WITH_DB).to_le_bytes().to_vec();
        response.extend_from_slice(&(64u32 << 20).to_le_bytes());
        response.push(45);
        response.extend_from_slice(&[0; 23]);
        response.extend_from_slice(b"root\0\0");
        response.extend_from_slice(database.as_bytes());
        response.extend_from_slice(b"\0mysql_native_password\0");
        self.send(1, &response);
    }

    /// Connects, and reads the greeting.
    pub(crate) fn greeted(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("somebody listens");
        stream.set_nodelay(true).expect("a TCP socket");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("an option");
        let mut client = Self {
            stream,
            dialogue: Dialogue::new(Settings::default()),
            replies: Vec::new(),
            prepared: 0,
            asked_for_file: false,
            sent: 0,
            received: 0,
        };
        while client.dialogue.capabilities() == Capabilities::default() && client.received == 0 {
            client.read();
        }
        client
    }

    /// A command and its answer.
    pub(crate) fn turn(&mut self, command: &[u8]) -> Reply {
        self.send(0, command);
        self.answer()
    }

    pub(crate) fn query(&mut self, text: &str) -> Reply {
        self.turn(&[b"\x03", text.as_bytes()].concat())
    }

    pub(crate) fn send(&mut self, sequence: u8, payload: &[u8]) {
        assert!(payload.len() < 4 * PAYLOAD_MAX);
        let mut bytes = Vec::new();
        packet(&mut bytes, sequence, |out| out.extend_from_slice(payload));
        self.send_raw(&bytes);
    }

    /// Sends packets in one write.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        self.dialogue.take(Side::Client, bytes, |_| ());
        self.sent += bytes.len() as u64;
        self.stream.write_all(bytes).expect("it is taken");
    }

    /// Sends the first bytes of a packet; what is missing never comes.
    pub(crate) fn send_cut_off(&mut self, payload: &[u8], bytes: usize) {
        let mut whole = Vec::new();
        packet(&mut whole, 0, |out| out.extend_from_slice(payload));
        self.stream.write_all(&whole[..bytes]).expect("it is taken");
    }

    /// Round trips so far, the greeting left out.
    pub(crate) fn trips(&self) -> u64 {
        self.dialogue.trips()
    }

    /// Reads until one more answer is whole, or the server asks for a file.
    pub(crate) fn answer(&mut self) -> Reply {
        let before = self.replies.len();
        while self.replies.len() == before && !self.asked_for_file {
            assert!(self.read(), "the server goes on");
        }
        *self.replies.last().expect("there was a login")
    }

    /// Reads some; false at the end.
    pub(crate) fn read(&mut self) -> bool {
        let mut buffer = vec![0; 256 << 10];
        let count = self.stream.read(&mut buffer).expect("it does not hang");
        self.received += count as u64;
        let Self { dialogue, replies, prepared, asked_for_file, .. } = self;
        dialogue.take(Side::Server, &buffer[..count], |event| match event {
            Event::Replied(reply) => replies.push(reply),
            Event::Prepared(ok) => *prepared = ok.statement,
            Event::FileWanted(_) => *asked_for_file = true,
            Event::Lost(lost) => panic!("{lost}"),
            _ => {}
        });
        count > 0
    }

    /// Says that nothing more comes.
    pub(crate) fn ends(&self) {
        self.stream.shutdown(Shutdown::Write).expect("it is open");
    }
}
