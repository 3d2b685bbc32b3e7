//! What a client sends, with what the server will make of it.

use onetrip_wire::pg::{Bind, Execute, Parse, StatementOrPortal, frame, frontend};

/// Name of the portal or statement, and the text it stands for.
pub(crate) const TEXTS: [&str; 5] = [
    "SELECT pay FROM emp WHERE id = $1",
    "INSERT INTO log VALUES ($1, $2)",
    "SELECT id, name FROM dept",
    "UPDATE emp SET pay = $1 WHERE id = $2",
    "COPY log FROM STDIN",
];
/// Position of the COPY among [`TEXTS`].
pub(crate) const COPY_TEXT: usize = 4;

/// One message of a client.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) bytes: Vec<u8>,
    pub(crate) kind: Kind,
    /// What it runs, if it runs something.
    pub(crate) run: Option<Run>,
}

/// A statement on its way through Query or Execute.
#[derive(Debug, Clone, Default)]
pub(crate) struct Run {
    /// Its template: literals lifted.
    pub(crate) template: String,
    /// Values of its parameters, if they were given in the unit that runs it.
    pub(crate) parameters: Vec<String>,
    /// The message that bound them; a Query gives them itself.
    pub(crate) bound_by: Option<usize>,
    pub(crate) row_limit: u32,
}

/// What a message is, and how it will end.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Connect(Vec<Entry>),
    Query(Vec<Answer>),
    Execute(Answer),
    /// Parse, Bind, Describe and Close: fails, or is answered with these tags.
    Step {
        tag: u8,
        replies: &'static [u8],
        fails: bool,
    },
    Sync {
        fails: bool,
    },
    Flush,
    FunctionCall {
        fails: bool,
    },
    CopyData,
    CopyEnd {
        fails: bool,
    },
}

/// What the server says to a packet of the start-up.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Entry {
    AuthenticationOk,
    CleartextPassword,
    Sasl,
    SaslContinue,
    SaslFinal,
    Settled,
}

/// What one statement is answered with.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Rows {
        rows: u64,
        suspended: bool,
        fails: bool,
    },
    Command {
        rows: u64,
    },
    Empty,
    CopyOut {
        rows: u64,
    },
    /// Reads COPY data; an error comes when so many pieces have been read.
    CopyIn {
        rows: u64,
        fails_after: Option<u64>,
    },
    Fails,
    /// The server says why and is gone.
    Dies,
}

impl Kind {
    /// Whether a server that takes the message answers it.
    pub(crate) fn owes(&self) -> bool {
        !matches!(self, Self::Flush | Self::CopyData | Self::CopyEnd { .. })
    }
}

impl Message {
    fn new(tag: u8, kind: Kind, body: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut bytes = Vec::new();
        frame(&mut bytes, tag, body);
        Self { bytes, kind, run: None }
    }

    pub(crate) fn query(text: &str, run: Run, answers: Vec<Answer>) -> Self {
        let message = Self::new(frontend::QUERY, Kind::Query(answers), |out| {
            out.extend_from_slice(text.as_bytes());
            out.push(0);
        });
        Self { run: Some(run), ..message }
    }

    pub(crate) fn parse(name: &str, text: &str, fails: bool) -> Self {
        let mut body = [name.as_bytes(), b"\0", text.as_bytes(), b"\0"].concat();
        body.extend_from_slice(&[0, 0]);
        let mut bytes = Vec::new();
        Parse::decode(&body).expect("a well-formed Parse").encode(&mut bytes);
        Self { bytes, kind: Kind::Step { tag: frontend::PARSE, replies: b"1", fails }, run: None }
    }

    pub(crate) fn bind(portal: &str, name: &str, parameters: &[String], fails: bool) -> Self {
        let mut body = [portal.as_bytes(), b"\0", name.as_bytes(), b"\0", &[0, 0]].concat();
        body.extend_from_slice(&(parameters.len() as u16).to_be_bytes());
        for value in parameters {
            body.extend_from_slice(&(value.len() as u32).to_be_bytes());
            body.extend_from_slice(value.as_bytes());
        }
        body.extend_from_slice(&[0, 0]);
        let mut bytes = Vec::new();
        Bind::decode(&body).expect("a well-formed Bind").encode(&mut bytes);
        Self { bytes, kind: Kind::Step { tag: frontend::BIND, replies: b"2", fails }, run: None }
    }

    pub(crate) fn describe(target: StatementOrPortal<'_>, fails: bool) -> Self {
        let replies: &[u8] = match target {
            StatementOrPortal::Statement(_) => b"tT",
            StatementOrPortal::Portal(_) => b"n",
        };
        Self::named(frontend::DESCRIBE, target, replies, fails)
    }

    pub(crate) fn close(target: StatementOrPortal<'_>, fails: bool) -> Self {
        Self::named(frontend::CLOSE, target, b"3", fails)
    }

    fn named(tag: u8, target: StatementOrPortal<'_>, replies: &'static [u8], fails: bool) -> Self {
        let mut bytes = Vec::new();
        target.encode(tag, &mut bytes);
        Self { bytes, kind: Kind::Step { tag, replies, fails }, run: None }
    }

    pub(crate) fn execute(portal: &str, run: Run, answer: Answer) -> Self {
        let mut bytes = Vec::new();
        let row_limit = std::num::NonZeroU32::new(run.row_limit);
        Execute { portal: portal.as_bytes(), row_limit }.encode(&mut bytes);
        Self { bytes, kind: Kind::Execute(answer), run: Some(run) }
    }

    pub(crate) fn sync(fails: bool) -> Self {
        Self::new(frontend::SYNC, Kind::Sync { fails }, |_| {})
    }

    pub(crate) fn flush() -> Self {
        Self::new(frontend::FLUSH, Kind::Flush, |_| {})
    }

    pub(crate) fn function_call(fails: bool) -> Self {
        let message = Self::new(frontend::FUNCTION_CALL, Kind::FunctionCall { fails }, |out| {
            out.extend_from_slice(&[0, 0, 3, 0xb9, 0, 0, 0, 0, 0, 0]);
        });
        Self { run: Some(Run { template: "lo_close()".into(), ..Run::default() }), ..message }
    }

    pub(crate) fn copy_data(bytes: usize) -> Self {
        Self::new(frontend::COPY_DATA, Kind::CopyData, |out| out.resize(out.len() + bytes, b'x'))
    }

    pub(crate) fn copy_done() -> Self {
        Self::new(frontend::COPY_DONE, Kind::CopyEnd { fails: false }, |_| {})
    }

    pub(crate) fn copy_fail() -> Self {
        Self::new(frontend::COPY_FAIL, Kind::CopyEnd { fails: true }, |out| {
            out.extend_from_slice(b"enough\0")
        })
    }

    /// A packet of the start-up.
    pub(crate) fn connect(bytes: Vec<u8>, entries: Vec<Entry>) -> Self {
        Self { bytes, kind: Kind::Connect(entries), run: None }
    }
}
