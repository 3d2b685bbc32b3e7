//! A client of raw messages, and a server over a temporary file.
#![allow(dead_code, unreachable_pub)] // each test file uses its part

use std::io::{Read, Write};
use std::net::TcpStream;

use onetrip_embed::{ServeOptions, Server};
use onetrip_wire::pg::{
    DataRow, ErrorResponse, FrameHeader, PROTOCOL_3_0, ParameterDescription, ProtocolVersion, RowDescription,
    encode_startup, frame,
};

/// A server, its file, and the directory that goes with them.
pub struct Fixture {
    pub server: Server,
    pub directory: tempfile::TempDir,
}

impl Fixture {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut ServeOptions)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = ServeOptions::new(directory.path().join("test.db"));
        options.durability = onetrip_embed::Durability::Off;
        change(&mut options);
        Self { server: Server::start(options).unwrap(), directory }
    }

    pub fn client(&self) -> Client {
        Client::connect(self)
    }

    /// A client, and the packet that cancels what it runs.
    pub fn client_with_key(&self) -> (Client, Vec<u8>) {
        let mut client = Client::open(self);
        client.start(PROTOCOL_3_0, &[("user", "ann")]);
        let greeting = client.until_ready();
        let key = greeting.iter().find(|message| message.tag == b'K').unwrap();
        let cancel = [&[0, 0, 0, 16, 4, 210, 22, 46], &key.body[..]].concat();
        (client, cancel)
    }
}

/// One message of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub tag: u8,
    pub body: Vec<u8>,
}

impl Message {
    /// The columns of a DataRow as text.
    pub fn row(&self) -> Vec<Option<String>> {
        let row = DataRow::decode(&self.body).unwrap();
        row.columns
            .iter()
            .map(|value| value.map(|value| String::from_utf8_lossy(value).into_owned()))
            .collect()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).trim_end_matches('\0').to_owned()
    }

    pub fn sqlstate(&self) -> String {
        let error = ErrorResponse::decode(&self.body).unwrap();
        String::from_utf8(error.sqlstate().unwrap().to_vec()).unwrap()
    }

    /// Names and type identifiers of a RowDescription.
    pub fn columns(&self) -> Vec<(String, u32)> {
        let description = RowDescription::decode(&self.body).unwrap();
        description
            .columns()
            .map(|column| (String::from_utf8_lossy(column.name).into_owned(), column.type_oid))
            .collect()
    }

    pub fn parameter_types(&self) -> Vec<u32> {
        ParameterDescription::decode(&self.body).unwrap().oids().collect()
    }
}

/// A connection that sends what it is told.
pub struct Client {
    pub stream: TcpStream,
    out: Vec<u8>,
}

impl Client {
    pub fn open(fixture: &Fixture) -> Self {
        let stream = TcpStream::connect(fixture.server.local_addr()).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        Self { stream, out: Vec::new() }
    }

    pub fn connect(fixture: &Fixture) -> Self {
        let mut client = Self::open(fixture);
        client.start(PROTOCOL_3_0, &[("user", "ann"), ("database", "shop")]);
        let greeting = client.until_ready();
        assert_eq!(greeting.first().map(|message| message.tag), Some(b'R'), "{greeting:?}");
        client
    }

    pub fn start(&mut self, version: ProtocolVersion, parameters: &[(&str, &str)]) {
        let pairs = parameters.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        encode_startup(&mut self.out, version, pairs);
        self.send();
    }

    pub fn send(&mut self) {
        self.stream.write_all(&self.out).unwrap();
        self.out.clear();
    }

    /// The bytes of the messages that `build` makes, not sent.
    pub fn encoded(&mut self, build: impl FnOnce(&mut Self)) -> Vec<u8> {
        build(self);
        std::mem::take(&mut self.out)
    }

    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub fn message(&mut self) -> Message {
        self.try_message().expect("the server closed the connection")
    }

    /// `None` at the end of the stream.
    pub fn try_message(&mut self) -> Option<Message> {
        let mut header = [0; 5];
        self.stream.read_exact(&mut header).ok()?;
        let header = FrameHeader::peek(&header, u32::MAX >> 1).unwrap().unwrap();
        let mut body = vec![0; header.body_len as usize];
        self.stream.read_exact(&mut body).ok()?;
        Some(Message { tag: header.tag, body })
    }

    /// Everything up to ReadyForQuery, that one included.
    pub fn until_ready(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        while let Some(message) = self.try_message() {
            let is_ready = message.tag == b'Z';
            messages.push(message);
            if is_ready {
                break;
            }
        }
        messages
    }

    pub fn query(&mut self, text: &str) -> Vec<Message> {
        frame(&mut self.out, b'Q', |out| put_str(out, text));
        self.send();
        self.until_ready()
    }

    /// Runs statements that must not fail.
    pub fn run(&mut self, text: &str) {
        let messages = self.query(text);
        if let Some(error) = messages.iter().find(|message| message.tag == b'E') {
            panic!("{text}: {}", error.text());
        }
    }

    /// The rows of a query that must not fail, columns joined by `|`.
    pub fn rows(&mut self, text: &str) -> Vec<String> {
        let messages = self.query(text);
        if let Some(error) = messages.iter().find(|message| message.tag == b'E') {
            panic!("{text}: {}", error.text());
        }
        rows_of(&messages)
    }

    /// The SQLSTATE of a query that must fail.
    pub fn error(&mut self, text: &str) -> String {
        let messages = self.query(text);
        let error = messages.iter().find(|message| message.tag == b'E');
        error.unwrap_or_else(|| panic!("no error: {text}: {messages:?}")).sqlstate()
    }

    pub fn parse(&mut self, name: &str, text: &str, types: &[u32]) -> &mut Self {
        frame(&mut self.out, b'P', |out| {
            put_str(out, name);
            put_str(out, text);
            out.extend_from_slice(&(types.len() as u16).to_be_bytes());
            types.iter().for_each(|oid| out.extend_from_slice(&oid.to_be_bytes()));
        });
        self
    }

    /// Parameters in text format; results in the given format for all columns.
    pub fn bind(
        &mut self,
        portal: &str,
        name: &str,
        values: &[Option<&str>],
        result_format: u16,
    ) -> &mut Self {
        let values: Vec<_> = values.iter().map(|value| value.map(str::as_bytes)).collect();
        self.bind_bytes(portal, name, (0, &values), result_format)
    }

    pub fn bind_bytes(
        &mut self,
        portal: &str,
        name: &str,
        (format, values): (u16, &[Option<&[u8]>]),
        result_format: u16,
    ) -> &mut Self {
        frame(&mut self.out, b'B', |out| {
            put_str(out, portal);
            put_str(out, name);
            out.extend_from_slice(&[0, 1]);
            out.extend_from_slice(&format.to_be_bytes());
            out.extend_from_slice(&(values.len() as u16).to_be_bytes());
            for value in values {
                match value {
                    None => out.extend_from_slice(&(-1i32).to_be_bytes()),
                    Some(value) => {
                        out.extend_from_slice(&(value.len() as u32).to_be_bytes());
                        out.extend_from_slice(value);
                    }
                }
            }
            out.extend_from_slice(&[0, 1]);
            out.extend_from_slice(&result_format.to_be_bytes());
        });
        self
    }

    pub fn describe(&mut self, kind: u8, name: &str) -> &mut Self {
        frame(&mut self.out, b'D', |out| {
            out.push(kind);
            put_str(out, name);
        });
        self
    }

    pub fn execute(&mut self, portal: &str, limit: u32) -> &mut Self {
        frame(&mut self.out, b'E', |out| {
            put_str(out, portal);
            out.extend_from_slice(&limit.to_be_bytes());
        });
        self
    }

    pub fn close(&mut self, kind: u8, name: &str) -> &mut Self {
        frame(&mut self.out, b'C', |out| {
            out.push(kind);
            put_str(out, name);
        });
        self
    }

    pub fn bare(&mut self, tag: u8) -> &mut Self {
        frame(&mut self.out, tag, |_| {});
        self
    }

    pub fn framed(&mut self, tag: u8, body: &[u8]) -> &mut Self {
        frame(&mut self.out, tag, |out| out.extend_from_slice(body));
        self
    }

    pub fn sync(&mut self) -> Vec<Message> {
        self.bare(b'S').send();
        self.until_ready()
    }
}

pub fn put_str(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

pub fn tags(messages: &[Message]) -> String {
    messages.iter().map(|message| char::from(message.tag)).collect()
}

pub fn rows_of(messages: &[Message]) -> Vec<String> {
    let rows = messages.iter().filter(|message| message.tag == b'D');
    rows.map(|row| {
        let columns: Vec<_> =
            row.row().into_iter().map(|value| value.unwrap_or_else(|| "NULL".to_owned())).collect();
        columns.join("|")
    })
    .collect()
}
