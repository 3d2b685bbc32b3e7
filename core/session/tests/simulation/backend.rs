//! A PostgreSQL backend as the manual's "Message Flow" has it, without SQL: it takes a client's messages in order,
//! answers each as its script says, and keeps for every message what became of it.

use std::collections::VecDeque;

use onetrip_wire::pg::{
    Authentication, BackendKeyData, Column, CommandComplete, ErrorFields, Format, ParameterStatus,
    RowDescription, Severity, TransactionStatus, backend, encode_error, encode_ready_for_query, frame,
};

use crate::message::{Answer, Entry, Kind, Message};
use crate::random::Random;

/// The error that all scripted failures give.
pub(crate) const SQLSTATE: &str = "22012";
pub(crate) const REAL_KEY: &[u8] = b"real";
pub(crate) const PROCESS_ID: u32 = 4711;

/// One message of the server.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) tag: u8,
    pub(crate) bytes: Vec<u8>,
    /// The message that it answers.
    pub(crate) answers: Option<usize>,
}

/// What became of a client's message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    /// The reply that ended it: its last, or the error that made the server skip it. `None`: nothing was owed.
    pub(crate) ended_by: Option<usize>,
    pub(crate) skipped: bool,
}

/// What the backend is doing.
#[derive(Debug)]
enum State {
    Ready,
    /// An error was answered: everything up to Sync is skipped.
    Skipping {
        error: usize,
    },
    Copying(Copying),
    /// Gone; what would have been skipped never is answered either.
    Dead {
        skipping: Option<usize>,
    },
}

#[derive(Debug)]
struct Copying {
    message: usize,
    extended: bool,
    asked_by: usize,
    read: u64,
    rows: u64,
    fails_after: Option<u64>,
    then: VecDeque<Answer>,
}

#[derive(Debug)]
pub(crate) struct Backend {
    state: State,
    pub(crate) replies: Vec<Reply>,
    pub(crate) fates: Vec<Fate>,
    /// Replies below this number have left its output buffer.
    pub(crate) flushed: usize,
    noise: u64,
}

impl Backend {
    /// `noise`: how often it says what nobody asked for, once in so many replies; zero is never.
    pub(crate) fn new(noise: u64) -> Self {
        Self { state: State::Ready, replies: Vec::new(), fates: Vec::new(), flushed: 0, noise }
    }

    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, State::Dead { .. })
    }

    /// Takes the next message, number `index` of the connection.
    pub(crate) fn take(&mut self, index: usize, message: &Message, random: &mut Random) {
        assert_eq!(index, self.fates.len());
        self.fates.push(Fate::default());
        match std::mem::replace(&mut self.state, State::Ready) {
            State::Dead { skipping: Some(error) } if !matches!(message.kind, Kind::Sync { .. }) => {
                self.state = State::Dead { skipping: Some(error) };
                self.skip_message(index, &message.kind, error);
            }
            State::Dead { .. } => self.state = State::Dead { skipping: None },
            State::Copying(copying) => self.read_copy(copying, index, &message.kind, random),
            State::Skipping { error } if !matches!(message.kind, Kind::Sync { .. }) => {
                self.state = State::Skipping { error };
                self.skip_message(index, &message.kind, error);
            }
            State::Skipping { .. } | State::Ready => self.run(index, &message.kind, random),
        }
        if random.once_in(4) && !self.is_dead() {
            self.flushed = self.replies.len(); // the buffer was full
        }
    }

    fn skip_message(&mut self, index: usize, kind: &Kind, error: usize) {
        if kind.owes() {
            self.fates[index] = Fate { ended_by: Some(error), skipped: true };
        }
    }

    fn run(&mut self, index: usize, kind: &Kind, random: &mut Random) {
        match kind {
            Kind::Connect(entries) => self.enter(index, entries),
            Kind::Query(answers) => self.query(index, answers.iter().cloned().collect(), random),
            Kind::Execute(answer) => self.execute(index, answer.clone(), random),
            Kind::Step { fails: true, .. } => self.fail_group(index, random),
            Kind::Step { replies, .. } => {
                for tag in *replies {
                    self.plain(*tag, index, random);
                }
                self.end(index);
            }
            Kind::Sync { fails } => {
                if *fails {
                    self.error(index, Severity::Error, random);
                }
                self.ready(index, random);
            }
            Kind::FunctionCall { fails } => {
                if *fails {
                    self.error(index, Severity::Error, random);
                } else {
                    self.plain(backend::FUNCTION_CALL_RESPONSE, index, random);
                }
                self.ready(index, random);
            }
            Kind::Flush => self.flushed = self.replies.len(),
            Kind::CopyData | Kind::CopyEnd { .. } => {}
        }
    }

    fn enter(&mut self, index: usize, entries: &[Entry]) {
        for entry in entries {
            let mut bytes = Vec::new();
            match entry {
                Entry::AuthenticationOk => Authentication::Ok.encode(&mut bytes),
                Entry::CleartextPassword => Authentication::CleartextPassword.encode(&mut bytes),
                Entry::Sasl => {
                    Authentication::Sasl { mechanisms: b"SCRAM-SHA-256\0\0" }.encode(&mut bytes);
                }
                Entry::SaslContinue => Authentication::SaslContinue(b"r=nonce").encode(&mut bytes),
                Entry::SaslFinal => Authentication::SaslFinal(b"v=proof").encode(&mut bytes),
                Entry::Settled => {
                    ParameterStatus { name: b"standard_conforming_strings", value: b"on" }.encode(&mut bytes);
                    self.push(backend::PARAMETER_STATUS, std::mem::take(&mut bytes), Some(index));
                    BackendKeyData { process_id: PROCESS_ID, key: REAL_KEY }.encode(&mut bytes);
                    self.push(backend::BACKEND_KEY_DATA, std::mem::take(&mut bytes), Some(index));
                    encode_ready_for_query(&mut bytes, TransactionStatus::Idle);
                }
            }
            let tag = bytes[0];
            self.push(tag, bytes, Some(index));
        }
        self.end(index);
        self.flushed = self.replies.len();
    }

    fn query(&mut self, index: usize, mut answers: VecDeque<Answer>, random: &mut Random) {
        while let Some(answer) = answers.pop_front() {
            match self.answer(index, answer, true, random) {
                Ended::Done => {}
                Ended::Failed => break,
                Ended::Died => return,
                Ended::Copying(copying) => {
                    let copying = Copying { extended: false, then: answers, ..copying };
                    return self.begin_copy(copying, random);
                }
            }
        }
        self.ready(index, random);
    }

    fn execute(&mut self, index: usize, answer: Answer, random: &mut Random) {
        match self.answer(index, answer, false, random) {
            Ended::Done => self.end(index),
            Ended::Failed => self.skip(index),
            Ended::Died => {
                self.end(index);
                self.state = State::Dead { skipping: self.fates[index].ended_by };
            }
            Ended::Copying(copying) => self.begin_copy(Copying { extended: true, ..copying }, random),
        }
    }

    fn answer(&mut self, index: usize, answer: Answer, described: bool, random: &mut Random) -> Ended {
        match answer {
            Answer::Rows { rows, suspended, fails } => {
                if described {
                    self.describe_rows(index, random);
                }
                for row in 0..rows {
                    self.row(index, row, random);
                }
                if fails {
                    self.error(index, Severity::Error, random);
                    return Ended::Failed;
                }
                if suspended {
                    self.plain(backend::PORTAL_SUSPENDED, index, random);
                } else {
                    self.complete(index, &format!("SELECT {rows}"), random);
                }
            }
            Answer::Command { rows } => self.complete(index, &format!("INSERT 0 {rows}"), random),
            Answer::Empty => self.plain(backend::EMPTY_QUERY_RESPONSE, index, random),
            Answer::CopyOut { rows } => {
                self.plain(backend::COPY_OUT_RESPONSE, index, random);
                for _ in 0..rows {
                    self.plain(backend::COPY_DATA, index, random);
                }
                self.plain(backend::COPY_DONE, index, random);
                self.complete(index, &format!("COPY {rows}"), random);
            }
            Answer::CopyIn { rows, fails_after } => {
                self.plain(backend::COPY_IN_RESPONSE, index, random);
                self.flushed = self.replies.len();
                let asked_by = self.replies.len() - 1;
                return Ended::Copying(Copying {
                    message: index,
                    extended: false,
                    asked_by,
                    read: 0,
                    rows,
                    fails_after,
                    then: VecDeque::new(),
                });
            }
            Answer::Fails => {
                self.error(index, Severity::Error, random);
                return Ended::Failed;
            }
            Answer::Dies => {
                self.error(index, Severity::Fatal, random);
                self.state = State::Dead { skipping: None };
                return Ended::Died;
            }
        }
        Ended::Done
    }

    fn begin_copy(&mut self, copying: Copying, random: &mut Random) {
        if copying.fails_after == Some(0) {
            return self.fail_copy(&copying, random);
        }
        self.state = State::Copying(copying);
    }

    fn read_copy(&mut self, mut copying: Copying, index: usize, kind: &Kind, random: &mut Random) {
        match kind {
            Kind::CopyData => {
                copying.read += 1;
                if copying.fails_after == Some(copying.read) {
                    return self.fail_copy(&copying, random);
                }
                self.state = State::Copying(copying);
            }
            Kind::CopyEnd { fails: true } => self.fail_copy(&copying, random),
            Kind::CopyEnd { fails: false } => {
                self.complete(copying.message, &format!("COPY {}", copying.rows), random);
                if copying.extended {
                    self.end(copying.message);
                } else {
                    self.query(copying.message, copying.then, random);
                }
            }
            Kind::Sync { .. } => {
                self.fates[index].ended_by = Some(copying.asked_by);
                self.state = State::Copying(copying);
            }
            Kind::Flush => self.state = State::Copying(copying),
            other => panic!("a script sends {other:?} into COPY data"),
        }
    }

    fn fail_copy(&mut self, copying: &Copying, random: &mut Random) {
        self.error(copying.message, Severity::Error, random);
        if copying.extended {
            self.skip(copying.message);
        } else {
            self.ready(copying.message, random);
        }
    }

    fn fail_group(&mut self, index: usize, random: &mut Random) {
        self.error(index, Severity::Error, random);
        self.skip(index);
    }

    /// The message's group has failed with the reply just given.
    fn skip(&mut self, index: usize) {
        self.end(index);
        self.state = State::Skipping { error: self.fates[index].ended_by.unwrap_or_default() };
    }

    /// The last reply that answers the message was its last.
    fn end(&mut self, index: usize) {
        self.fates[index].ended_by = self.replies.iter().rposition(|reply| reply.answers == Some(index));
    }

    fn ready(&mut self, index: usize, random: &mut Random) {
        let statuses = [TransactionStatus::Idle, TransactionStatus::Active, TransactionStatus::Failed];
        let mut bytes = Vec::new();
        encode_ready_for_query(&mut bytes, *random.pick(&statuses));
        self.say(backend::READY_FOR_QUERY, bytes, index, random);
        self.end(index);
        self.flushed = self.replies.len();
    }

    fn error(&mut self, index: usize, severity: Severity, random: &mut Random) {
        let mut bytes = Vec::new();
        let error = ErrorFields { severity, sqlstate: SQLSTATE, message: "it failed", hint: None };
        encode_error(&mut bytes, error);
        self.say(backend::ERROR_RESPONSE, bytes, index, random);
        self.flushed = self.replies.len();
    }

    fn complete(&mut self, index: usize, tag: &str, random: &mut Random) {
        let mut bytes = Vec::new();
        CommandComplete { tag: tag.as_bytes() }.encode(&mut bytes);
        self.say(backend::COMMAND_COMPLETE, bytes, index, random);
    }

    fn describe_rows(&mut self, index: usize, random: &mut Random) {
        let mut bytes = Vec::new();
        RowDescription::encode(&mut bytes, [column(b"id"), column(b"dept")]);
        self.say(backend::ROW_DESCRIPTION, bytes, index, random);
    }

    fn row(&mut self, index: usize, row: u64, random: &mut Random) {
        let value = row.to_string();
        let mut bytes = Vec::new();
        frame(&mut bytes, backend::DATA_ROW, |out| {
            out.extend_from_slice(&[0, 2]);
            out.extend_from_slice(&(value.len() as u32).to_be_bytes());
            out.extend_from_slice(value.as_bytes());
            out.extend_from_slice(&[0xff; 4]);
        });
        self.say(backend::DATA_ROW, bytes, index, random);
    }

    /// A message whose body tells nothing.
    fn plain(&mut self, tag: u8, index: usize, random: &mut Random) {
        if tag == backend::ROW_DESCRIPTION {
            return self.describe_rows(index, random);
        }
        let mut bytes = Vec::new();
        frame(&mut bytes, tag, |out| match tag {
            backend::PARAMETER_DESCRIPTION => out.extend_from_slice(&[0, 1, 0, 0, 0, 25]),
            backend::COPY_IN_RESPONSE | backend::COPY_OUT_RESPONSE => out.extend_from_slice(&[0, 0, 0]),
            backend::FUNCTION_CALL_RESPONSE => out.extend_from_slice(&[0, 0, 0, 1, b'7']),
            backend::COPY_DATA => out.extend_from_slice(b"1\t2\n"),
            _ => {}
        });
        self.say(tag, bytes, index, random);
    }

    /// Answers, with what nobody asked for before and behind.
    fn say(&mut self, tag: u8, bytes: Vec<u8>, index: usize, random: &mut Random) {
        self.make_noise(random);
        self.push(tag, bytes, Some(index));
        if tag != backend::COPY_IN_RESPONSE {
            self.make_noise(random);
        }
    }

    /// A notice, a notification or a changed setting.
    pub(crate) fn make_noise(&mut self, random: &mut Random) {
        if !random.once_in(self.noise) {
            return;
        }
        let mut bytes = Vec::new();
        match random.below(20) {
            0 => frame(&mut bytes, backend::NOTICE_RESPONSE, |out| {
                out.extend_from_slice(b"SNOTICE\0M");
                out.resize(out.len() + 70_000, b'm'); // longer than what is looked into
                out.extend_from_slice(b"\0\0");
            }),
            1..10 => {
                frame(&mut bytes, backend::NOTICE_RESPONSE, |out| {
                    out.extend_from_slice(b"SNOTICE\0C00000\0Mso\0\0");
                });
            }
            10..15 => ParameterStatus { name: b"TimeZone", value: b"UTC" }.encode(&mut bytes),
            _ => frame(&mut bytes, backend::NOTIFICATION_RESPONSE, |out| {
                out.extend_from_slice(b"\0\0\0\x07jobs\0\0");
            }),
        }
        self.push(bytes[0], bytes, None);
    }

    fn push(&mut self, tag: u8, bytes: Vec<u8>, answers: Option<usize>) {
        self.replies.push(Reply { tag, bytes, answers });
    }
}

enum Ended {
    Done,
    Failed,
    Died,
    Copying(Copying),
}

fn column(name: &[u8]) -> Column<'_> {
    Column {
        name,
        table: 0,
        attribute: 0,
        type_oid: 23,
        type_len: 4,
        type_modifier: -1,
        format: Format::Text,
    }
}
