//! A watched conversation whose both sides are played by hand.

use onetrip_ledger::trace::{Records, decode_block};
use onetrip_ledger::{Analyzer, Exchange, Moment, Mutes, Record, Summary, TraceError, UnitKind, ValueHasher};
use onetrip_session::{MysqlConfig, MysqlSession};
use onetrip_wire::mysql::dialogue::Side;
use onetrip_wire::mysql::{Compression, pack, packet, put_lenenc_bytes};

/// What both sides can do where a test says nothing else.
pub(crate) const PLAIN: u64 = 0x8_8201;
pub(crate) const CONNECT_ATTRS: u64 = 1 << 20;
pub(crate) const COMPRESS: u64 = 1 << 5;
pub(crate) const TLS: u64 = 1 << 11;
/// An OK packet, with autocommit.
pub(crate) const OK: &[u8] = b"\0\0\0\x02\0\0\0";
pub(crate) const END: &[u8] = b"\xfe\0\0\x02\0";
pub(crate) const NO_SUCH_TABLE: &[u8] = b"\xff\x7a\x04#42S02Table 'x' doesn't exist";
/// Types of columns.
pub(crate) const BIGINT: u8 = 8;
pub(crate) const TEXT: u8 = 253;

/// Time between two steps, in nanoseconds: longer than a client needs to react.
const STEP_NS: u64 = 100_000;

pub(crate) struct Stage {
    pub(crate) session: MysqlSession,
    pub(crate) hasher: ValueHasher,
    pub(crate) now: u64,
    /// What both sides have sent.
    pub(crate) sent: Vec<(Side, Vec<u8>)>,
    pub(crate) is_packed: bool,
}

/// What the books hold in the end.
pub(crate) struct Books {
    pub(crate) exchanges: Vec<Exchange>,
    pub(crate) templates: Vec<String>,
    pub(crate) parameters: Vec<(String, String)>,
    /// Names of columns that may be keys.
    pub(crate) columns: Vec<String>,
    pub(crate) lost_bytes: u64,
    pub(crate) summary: Summary,
}

pub(crate) fn config(hasher: &ValueHasher) -> MysqlConfig {
    MysqlConfig {
        hasher: hasher.clone(),
        keep_values: false,
        hides_tls: false,
        common: Default::default(),
        texts: Default::default(),
    }
}

impl Stage {
    /// The server is reached and says nothing yet.
    pub(crate) fn connected() -> Self {
        let hasher = ValueHasher::new();
        let mut session = MysqlSession::new(config(&hasher));
        session.connected(Moment(0));
        Self { session, hasher, now: 0, sent: Vec::new(), is_packed: false }
    }

    /// The client is let in, and a trace keeps values.
    pub(crate) fn keeping_values() -> Self {
        let hasher = ValueHasher::new();
        let mut session = MysqlSession::new(MysqlConfig { keep_values: true, ..config(&hasher) });
        session.connected(Moment(0));
        let mut stage = Self { session, hasher, now: 0, sent: Vec::new(), is_packed: false };
        stage.server(&[(0, &greeting(PLAIN))]);
        stage.client(&[(1, &login(PLAIN, &[]))]);
        stage.server(&[(2, OK)]);
        stage
    }

    /// The server has greeted.
    pub(crate) fn greeted(capabilities: u64) -> Self {
        let mut stage = Self::connected();
        stage.server(&[(0, &greeting(capabilities))]);
        stage
    }

    /// The client is let in.
    pub(crate) fn serving() -> Self {
        let mut stage = Self::greeted(PLAIN);
        stage.client(&[(1, &login(PLAIN, &[]))]);
        stage.server(&[(2, OK)]);
        stage
    }

    /// The client sends packets at once.
    pub(crate) fn client(&mut self, packets: &[(u8, &[u8])]) -> &mut Self {
        self.packets(Side::Client, packets)
    }

    /// The server does.
    pub(crate) fn server(&mut self, packets: &[(u8, &[u8])]) -> &mut Self {
        self.packets(Side::Server, packets)
    }

    /// A command, and its answer.
    pub(crate) fn turn(&mut self, command: &[u8], answer: &[&[u8]]) -> &mut Self {
        self.client(&[(0, command)]);
        let answer: Vec<(u8, &[u8])> = (1..).zip(answer.iter().copied()).collect();
        self.server(&answer)
    }

    /// All that follows is compressed.
    pub(crate) fn pack(&mut self) -> &mut Self {
        self.is_packed = true;
        self
    }

    fn packets(&mut self, side: Side, packets: &[(u8, &[u8])]) -> &mut Self {
        let mut bytes = Vec::new();
        for (sequence, payload) in packets {
            packet(&mut bytes, *sequence, |out| out.extend_from_slice(payload));
        }
        if self.is_packed {
            let plain = std::mem::take(&mut bytes);
            pack(&mut bytes, Compression::Zlib, 1, 0, &plain);
        }
        self.bytes(side, &bytes)
    }

    pub(crate) fn bytes(&mut self, side: Side, bytes: &[u8]) -> &mut Self {
        self.now += STEP_NS;
        self.see(side, bytes);
        self.sent.push((side, bytes.to_vec()));
        self
    }

    pub(crate) fn see(&mut self, side: Side, bytes: &[u8]) {
        match side {
            Side::Client => self.session.see_client(Moment(self.now), bytes),
            Side::Server => self.session.see_server(Moment(self.now), bytes),
        }
    }

    /// Ends the conversation.
    pub(crate) fn books(mut self) -> Books {
        self.session.close(Moment(self.now));
        let block = self.session.stream().take_block();
        let mut books = Books {
            exchanges: Vec::new(),
            templates: vec!["(none)".to_owned()],
            parameters: Vec::new(),
            columns: Vec::new(),
            lost_bytes: 0,
            summary: Summary::default(),
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        decode_block::<TraceError>(&mut Records::default(), 1, &block, |record| {
            match record {
                Record::Exchange(exchange) => books.exchanges.push(exchange.clone()),
                Record::Template { text: template, .. } => books.templates.push(text(template)),
                Record::Opened { parameters, .. } => {
                    books.parameters =
                        parameters.iter().map(|(name, value)| (text(name), text(value))).collect();
                }
                Record::Columns { names, .. } => {
                    books.columns.extend(names.iter().map(|name| text(name)));
                }
                Record::Lost { bytes } => books.lost_bytes += bytes,
                _ => {}
            }
            Ok(())
        })
        .expect("whole records");
        let mut analyzer = Analyzer::new();
        analyzer.block(1, &block).expect("whole records");
        books.summary = analyzer.finish(&Mutes::default()).summary;
        books
    }
}

impl Books {
    /// Kinds of the units after the session was open, and whether each started a trip.
    pub(crate) fn work(&self) -> Vec<(UnitKind, bool)> {
        let work = self.exchanges.iter().filter(|exchange| exchange.kind != UnitKind::Connect);
        work.map(|exchange| (exchange.kind, exchange.starts_trip)).collect()
    }

    /// The last exchange.
    pub(crate) fn last(&self) -> &Exchange {
        self.exchanges.last().expect("there is one")
    }

    /// Text of the first statement of an exchange.
    pub(crate) fn text(&self, exchange: &Exchange) -> &str {
        &self.templates[exchange.statements[0].template as usize]
    }
}

pub(crate) fn greeting(capabilities: u64) -> Vec<u8> {
    let mut greeting = b"\x0a10.11.6-MariaDB\0\x07\0\0\0challeng\0".to_vec();
    greeting.extend_from_slice(&capabilities.to_le_bytes()[..2]);
    greeting.extend_from_slice(b"\x2d\x02\0");
    greeting.extend_from_slice(&capabilities.to_le_bytes()[2..4]);
    greeting.extend_from_slice(b"\x15\0\0\0\0\0\0\0\0\0\0challenge123\0mysql_native_password\0");
    greeting
}

pub(crate) fn login(capabilities: u64, attributes: &[(&str, &str)]) -> Vec<u8> {
    let mut response = (capabilities as u32).to_le_bytes().to_vec();
    response.extend_from_slice(&[0; 28]);
    response.extend_from_slice(b"me\0\x01amysql_native_password\0");
    if capabilities & CONNECT_ATTRS != 0 {
        let mut pairs = Vec::new();
        for text in attributes.iter().flat_map(|(name, value)| [name, value]) {
            put_lenenc_bytes(&mut pairs, text.as_bytes());
        }
        put_lenenc_bytes(&mut response, &pairs);
    }
    response
}

pub(crate) fn query(text: &str) -> Vec<u8> {
    [b"\x03", text.as_bytes()].concat()
}

pub(crate) fn prepare(text: &str) -> Vec<u8> {
    [b"\x16", text.as_bytes()].concat()
}

/// A prepared statement is run with numbers.
pub(crate) fn execute(statement: u32, flags: u8, numbers: &[i64]) -> Vec<u8> {
    let mut body = vec![0x17];
    body.extend_from_slice(&statement.to_le_bytes());
    body.push(flags);
    body.extend_from_slice(&1u32.to_le_bytes());
    if !numbers.is_empty() {
        body.extend(std::iter::repeat_n(0, numbers.len().div_ceil(8)));
        body.push(1);
        numbers.iter().for_each(|_| body.extend_from_slice(&[BIGINT, 0]));
        numbers.iter().for_each(|number| body.extend_from_slice(&number.to_le_bytes()));
    }
    body
}

pub(crate) fn fetch(statement: u32, rows: u32) -> Vec<u8> {
    [&b"\x1c"[..], &statement.to_le_bytes(), &rows.to_le_bytes()].concat()
}

pub(crate) fn of_statement(code: u8, statement: u32) -> Vec<u8> {
    [&[code][..], &statement.to_le_bytes()].concat()
}

pub(crate) fn prepared(statement: u32, columns: u16, parameters: u16) -> Vec<u8> {
    [&b"\0"[..], &statement.to_le_bytes(), &columns.to_le_bytes(), &parameters.to_le_bytes(), b"\0\0\0"]
        .concat()
}

/// A column of a table.
pub(crate) fn column(name: &str, column_type: u8) -> Vec<u8> {
    column_of("d", name, column_type)
}

/// A column of a table in a database; of none, if it is an expression.
pub(crate) fn column_of(database: &str, name: &str, column_type: u8) -> Vec<u8> {
    let mut body = b"\x03def".to_vec();
    put_lenenc_bytes(&mut body, database.as_bytes());
    body.extend_from_slice(b"\0\0");
    put_lenenc_bytes(&mut body, name.as_bytes());
    body.extend_from_slice(b"\0\x0c\x2d\0\0\0\0\0");
    body.extend_from_slice(&[column_type, 0, 0, 0, 0, 0]);
    body
}

/// A row of texts.
pub(crate) fn row(values: &[&str]) -> Vec<u8> {
    let mut body = Vec::new();
    values.iter().for_each(|value| put_lenenc_bytes(&mut body, value.as_bytes()));
    body
}

/// A row of numbers in binary.
pub(crate) fn binary_row(numbers: &[i64]) -> Vec<u8> {
    let mut body = vec![0];
    body.extend(std::iter::repeat_n(0, (numbers.len() + 2).div_ceil(8)));
    numbers.iter().for_each(|number| body.extend_from_slice(&number.to_le_bytes()));
    body
}

/// The packets of a result of texts.
pub(crate) fn result(columns: &[(&str, u8)], rows: &[Vec<u8>], end: &[u8]) -> Vec<Vec<u8>> {
    let mut packets = vec![vec![columns.len() as u8]];
    packets.extend(columns.iter().map(|(name, column_type)| column(name, *column_type)));
    packets.push(END.to_vec());
    packets.extend(rows.iter().cloned());
    packets.push(end.to_vec());
    packets
}

pub(crate) fn slices(packets: &[Vec<u8>]) -> Vec<&[u8]> {
    packets.iter().map(Vec::as_slice).collect()
}
