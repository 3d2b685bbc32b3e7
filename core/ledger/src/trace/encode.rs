use super::tags;
use crate::exchange::EXCHANGE_BYTES_MAX;
use crate::{Cut, Exchange, Moment, Obstacle, Outcome, Remedy, Statement};

/// Encodes the records of one stream into a block.
///
/// It allocates only to grow the block, not per record.
#[derive(Debug, Default)]
pub struct StreamEncoder {
    block: Vec<u8>,
}

impl StreamEncoder {
    /// Bytes encoded since the last [`Self::take_block`].
    pub fn len(&self) -> usize {
        self.block.len()
    }

    /// Whether nothing is encoded.
    pub fn is_empty(&self) -> bool {
        self.block.is_empty()
    }

    /// Hands over what is encoded.
    pub fn take_block(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.block)
    }

    /// Gives back a block that could not be handed on; what was encoded since comes behind it.
    pub fn recycle_unsent(&mut self, mut block: Vec<u8>) {
        block.append(&mut self.block);
        self.block = block;
    }

    /// A client opened a session.
    pub fn opened<'p>(&mut self, at: Moment, parameters: impl IntoIterator<Item = (&'p [u8], &'p [u8])>) {
        self.record(tags::OPENED, |out| {
            put_varint(out, at.0);
            let mut count = 0u8;
            let count_at = out.len();
            out.push(0);
            for (name, value) in parameters.into_iter().take(usize::from(u8::MAX)) {
                put_bytes(out, name);
                put_bytes(out, value);
                count += 1;
            }
            out[count_at] = count;
        });
    }

    /// Defines a template.
    pub fn template(&mut self, id: u32, text: &[u8]) {
        self.definition(tags::TEMPLATE, id, text);
    }

    /// Defines a scope.
    pub fn scope(&mut self, id: u32, label: &[u8]) {
        self.definition(tags::SCOPE, id, label);
    }

    /// Defines the key-like columns of a result.
    pub fn columns<'n>(&mut self, id: u32, names: impl IntoIterator<Item = &'n [u8]>) {
        self.record(tags::COLUMNS, |out| {
            put_varint(out, id.into());
            for name in names {
                put_bytes(out, name);
            }
        });
    }

    /// What the kernel knows of the path.
    pub fn path(&mut self, at: Moment, rtt_us: u32, rtt_min_us: u32) {
        self.record(tags::PATH, |out| {
            put_varint(out, at.0);
            put_varint(out, rtt_us.into());
            put_varint(out, rtt_min_us.into());
        });
    }

    /// Name of the first named statement.
    pub fn statement_name(&mut self, name: &[u8]) {
        self.record(tags::STATEMENT_NAME, |out| out.extend_from_slice(name));
    }

    /// The session ended.
    pub fn closed(&mut self, at: Moment, unasked_replies: u64, undecoded: u64, unanswered: u64) {
        self.record(tags::CLOSED, |out| {
            for number in [at.0, unasked_replies, undecoded, unanswered] {
                put_varint(out, number);
            }
        });
    }

    /// Who wrote the trace and how.
    pub fn origin(&mut self, program: &[u8], upstream: &[u8], settle: u64, command: &[u8]) {
        self.record(tags::ORIGIN, |out| {
            put_bytes(out, program);
            put_bytes(out, upstream);
            put_varint(out, settle);
            put_bytes(out, command);
        });
    }

    /// Why statements of a template are not known to only read; once per template.
    pub fn impure(&mut self, id: u32, because: &str) {
        self.definition(tags::IMPURE, id, because.as_bytes());
    }

    /// An answer from memory differed from the server's at this byte: the unit, the answer and the server's.
    pub fn differed(&mut self, template: u32, at: u64, texts: [&[u8]; 3]) {
        self.record(tags::DIFFERED, |out| {
            put_varint(out, template.into());
            put_varint(out, at);
            texts.into_iter().for_each(|text| put_bytes(out, text));
        });
    }

    /// Answers from memory that were run for real as well, and how many of them differed.
    pub fn verified(&mut self, answers: u64, differed: u64) {
        self.record(tags::VERIFIED, |out| {
            put_varint(out, answers);
            put_varint(out, differed);
        });
    }

    /// A statement may never end at the level that the gateway has set: how often in a row it has failed, zero where it ran
    /// for long. The template may be zero.
    pub fn may_not_end(&mut self, template: u32, failures: u64) {
        self.record(tags::MAY_NOT_END, |out| {
            put_varint(out, template.into());
            put_varint(out, failures);
        });
    }

    /// Records that could not be kept.
    pub fn lost(&mut self, bytes: u64) {
        self.record(tags::LOST, |out| put_varint(out, bytes));
    }

    /// The server let the client in.
    pub fn entered(&mut self) {
        self.record(tags::ENTERED, |_| ());
    }

    /// The session did not come about.
    pub fn refused(&mut self, sqlstate: [u8; 5], message: &[u8]) {
        self.record(tags::REFUSED, |out| {
            out.extend_from_slice(&sqlstate);
            out.extend_from_slice(message);
        });
    }

    /// The writer ends the trace, in the block that begins after so many bytes of it; `None` where there is no file.
    pub fn end(&mut self, place: Option<u64>) {
        self.record(tags::END, |out| {
            if let Some(place) = place {
                put_varint(out, place);
            }
        });
    }

    /// A unit and its reply. Of one that is longer than [`EXCHANGE_BYTES_MAX`] the statements are counted only.
    pub fn exchange(&mut self, exchange: &Exchange) {
        let begin = self.block.len();
        self.put_exchange(exchange);
        if self.block.len() - begin > EXCHANGE_BYTES_MAX {
            self.block.truncate(begin);
            self.put_exchange(&without_statements(exchange));
        }
    }

    fn put_exchange(&mut self, exchange: &Exchange) {
        if !exchange.cut.is_nothing() {
            let Cut { statements, failed, rows, values, untold, unscoped } = exchange.cut;
            self.record(tags::CUT, |out| {
                for amount in [statements, failed, rows, values, untold, unscoped] {
                    put_varint(out, amount);
                }
            });
        }
        self.record(tags::EXCHANGE, |out| put_exchange(out, exchange));
    }

    fn definition(&mut self, tag: u8, id: u32, text: &[u8]) {
        self.record(tag, |out| {
            put_varint(out, id.into());
            out.extend_from_slice(text);
        });
    }

    fn record(&mut self, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
        let out = &mut self.block;
        out.push(tag);
        let length_at = out.len();
        out.extend_from_slice(&[0; 4]);
        body(out);
        let length = (out.len() - length_at - 4) as u32;
        out[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// The exchange with all its statements counted as cut.
fn without_statements(exchange: &Exchange) -> Exchange {
    let mut cut = exchange.cut;
    for statement in &exchange.statements {
        cut.statements += u64::from(statement.is_run());
        cut.failed += u64::from(matches!(statement.outcome, Outcome::Failed(_)));
        cut.rows += statement.rows;
    }
    cut.values += exchange.parameters.len() as u64;
    Exchange {
        statements: Vec::new(),
        parameters: Vec::new(),
        results: Vec::new(),
        parameter_texts: Vec::new(),
        cut,
        ..*exchange
    }
}

/// A unit and its reply.
fn put_exchange(out: &mut Vec<u8>, exchange: &Exchange) {
    out.push(exchange.kind as u8);
    out.push(
        u8::from(exchange.starts_trip)
            | u8::from(exchange.may_share) << 1
            | u8::from(!exchange.parameter_texts.is_empty()) << 2
            | (exchange.status as u8) << 3
            | u8::from(exchange.remedy.is_some()) << 5
            | u8::from(exchange.obstacle.is_some()) << 6,
    );
    if let Some(remedy) = exchange.remedy {
        let place = Remedy::ALL.iter().position(|known| *known == remedy);
        out.push(place.map_or(0, |place| place as u8 + 1));
    }
    if let Some(obstacle) = exchange.obstacle {
        let place = Obstacle::TOLD.iter().position(|known| *known == obstacle);
        out.push(place.map_or(0, |place| place as u8 + 1));
    }
    put_outcome(out, exchange.outcome);
    put_varint(out, exchange.sent_at.0);
    put_varint(out, exchange.first_reply_at.since(exchange.sent_at));
    put_varint(out, exchange.last_reply_at.since(exchange.first_reply_at));
    put_varint(out, exchange.bytes_sent);
    put_varint(out, exchange.bytes_received);
    put_varint(out, exchange.scope.into());
    out.extend_from_slice(&exchange.request.to_le_bytes());
    put_varint(out, exchange.statements.len() as u64);
    for statement in &exchange.statements {
        put_statement(out, statement);
    }
    put_varint(out, exchange.parameters.len() as u64);
    put_words(out, exchange.parameters.iter().map(|value| value.to_le_bytes()));
    put_varint(out, exchange.results.len() as u64);
    put_words(out, exchange.results.iter().map(|value| value.to_le_bytes()));
    for text in &exchange.parameter_texts {
        put_bytes(out, text);
    }
}

fn put_statement(out: &mut Vec<u8>, statement: &Statement) {
    put_varint(out, statement.template.into());
    out.push(statement.steps.0 | u8::from(statement.suspended) << 7);
    put_outcome(out, statement.outcome);
    put_varint(out, statement.rows);
    put_varint(out, statement.row_limit.into());
    put_varint(out, statement.parameters.into());
    put_varint(out, statement.columns.into());
    put_varint(out, statement.key_columns.into());
    put_varint(out, statement.results.into());
    out.extend_from_slice(&statement.result_digest.to_le_bytes());
}

fn put_outcome(out: &mut Vec<u8>, outcome: Outcome) {
    match outcome {
        Outcome::Done => out.push(0),
        Outcome::Failed(sqlstate) => {
            out.push(1);
            out.extend_from_slice(&sqlstate);
        }
        Outcome::Skipped => out.push(2),
    }
}

/// LEB128, as in DWARF: seven bits a byte, lowest first.
fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Numbers of one length, as they are.
fn put_words<const N: usize>(out: &mut Vec<u8>, words: impl ExactSizeIterator<Item = [u8; N]>) {
    let begin = out.len();
    out.resize(begin + N * words.len(), 0);
    for (place, word) in out[begin..].chunks_exact_mut(N).zip(words) {
        place.copy_from_slice(&word);
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}
