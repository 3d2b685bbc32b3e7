use super::{Record, TraceError, tags};
use crate::{
    Cut, Exchange, Moment, Obstacle, Outcome, Remedy, Statement, Steps, TransactionStatus, UnitKind,
};

/// Two years: no trace spans more, and sums of such times do not overflow.
const NANOS_LIMIT: u64 = 1 << 56;
/// More bytes, rows or replies than one session can see.
const AMOUNT_LIMIT: u64 = 1 << 48;

/// Reads the records of one block in order. The exchange that it lends is reused from record to record.
#[derive(Debug, Default)]
pub struct Records {
    exchange: Exchange,
    /// What was cut of the exchange that comes next.
    cut: Cut,
}

/// Calls `each` for every record of a block; records of unknown kinds are passed over, as newer writers add them.
pub fn decode_block<E: From<TraceError>>(
    records: &mut Records,
    stream: u32,
    payload: &[u8],
    mut each: impl FnMut(Record<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let malformed = |reason| TraceError::Malformed { stream, reason };
    let mut rest = payload;
    records.cut = Cut::default();
    while let Some((&tag, after)) = rest.split_first() {
        let (length, after) = after.split_first_chunk::<4>().ok_or(malformed("a record has no length"))?;
        let length = u32::from_le_bytes(*length) as usize;
        let (body, after) =
            after.split_at_checked(length).ok_or(malformed("a record is longer than its block"))?;
        rest = after;
        if let Some(record) = records.decode(tag, Cursor { rest: body }).map_err(malformed)? {
            each(record)?;
        }
    }
    Ok(())
}

type Decoded<T> = Result<T, &'static str>;

impl Records {
    fn decode<'a>(&'a mut self, tag: u8, mut body: Cursor<'a>) -> Decoded<Option<Record<'a>>> {
        Ok(Some(match tag {
            tags::OPENED => {
                let at = body.moment()?;
                let count = body.u8()?;
                let pairs = (0..count).map(|_| Ok((body.bytes()?, body.bytes()?)));
                Record::Opened { at, parameters: pairs.collect::<Decoded<_>>()? }
            }
            tags::TEMPLATE => Record::Template { id: body.u32()?, text: body.rest },
            tags::SCOPE => Record::Scope { id: body.u32()?, label: body.rest },
            tags::COLUMNS => {
                let id = body.u32()?;
                let mut names = Vec::new();
                while !body.rest.is_empty() {
                    names.push(body.bytes()?);
                }
                Record::Columns { id, names }
            }
            tags::EXCHANGE => {
                body.exchange(&mut self.exchange)?;
                self.exchange.cut = std::mem::take(&mut self.cut);
                Record::Exchange(&self.exchange)
            }
            tags::PATH => Record::Path { at: body.moment()?, rtt_us: body.u32()?, rtt_min_us: body.u32()? },
            tags::STATEMENT_NAME => Record::StatementName(body.rest),
            tags::CLOSED => Record::Closed {
                at: body.moment()?,
                unasked_replies: body.amount()?,
                undecoded: body.amount()?,
                unanswered: body.amount()?,
            },
            tags::ORIGIN => Record::Origin {
                program: body.bytes()?,
                upstream: body.bytes()?,
                settle: body.nanos()?,
                command: body.bytes()?,
            },
            tags::IMPURE => Record::Impure { id: body.u32()?, because: body.rest },
            tags::DIFFERED => Record::Differed {
                template: body.u32()?,
                at: body.amount()?,
                texts: [body.bytes()?, body.bytes()?, body.bytes()?],
            },
            tags::VERIFIED => Record::Verified { answers: body.amount()?, differed: body.amount()? },
            tags::LOST => Record::Lost { bytes: body.amount()? },
            tags::END => {
                Record::End { place: if body.rest.is_empty() { None } else { Some(body.amount()?) } }
            }
            tags::MAY_NOT_END => Record::MayNotEnd { template: body.u32()?, failures: body.amount()? },
            tags::ENTERED => Record::Entered,
            tags::REFUSED => Record::Refused { sqlstate: body.array()?, message: body.rest },
            tags::CUT => {
                self.cut = body.cut()?;
                return Ok(None);
            }
            _ => return Ok(None),
        }))
    }
}

struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Decoded<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(count).ok_or("a record ends inside a field")?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or("a record ends inside a field")?;
        self.rest = rest;
        Ok(*head)
    }

    /// Numbers of one length, and how many there are in front.
    fn words<const N: usize>(&mut self) -> Decoded<impl ExactSizeIterator<Item = [u8; N]> + use<'a, N>> {
        let bytes = usize::try_from(self.varint()?).ok().and_then(|count| count.checked_mul(N));
        let words = self.take(bytes.ok_or("a record ends inside a field")?)?;
        Ok(words.chunks_exact(N).map(|word| std::array::from_fn(|at| word[at])))
    }

    fn u8(&mut self) -> Decoded<u8> {
        Ok(self.array::<1>()?[0])
    }

    fn varint(&mut self) -> Decoded<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err("a number has more than ten bytes")
    }

    fn moment(&mut self) -> Decoded<Moment> {
        self.nanos().map(Moment)
    }

    fn nanos(&mut self) -> Decoded<u64> {
        self.below(NANOS_LIMIT)
    }

    /// Bytes, rows, replies.
    fn amount(&mut self) -> Decoded<u64> {
        self.below(AMOUNT_LIMIT)
    }

    fn below(&mut self, limit: u64) -> Decoded<u64> {
        Some(self.varint()?)
            .filter(|number| *number < limit)
            .ok_or("a number is beyond what a session can reach")
    }

    fn u32(&mut self) -> Decoded<u32> {
        self.varint()?.try_into().map_err(|_| "a number does not fit its field")
    }

    fn bytes(&mut self) -> Decoded<&'a [u8]> {
        let length = usize::try_from(self.varint()?).map_err(|_| "a length does not fit memory")?;
        self.take(length)
    }

    fn outcome(&mut self) -> Decoded<Outcome> {
        match self.u8()? {
            0 => Ok(Outcome::Done),
            1 => Ok(Outcome::Failed(self.array()?)),
            2 => Ok(Outcome::Skipped),
            _ => Err("an outcome is undefined"),
        }
    }

    fn cut(&mut self) -> Decoded<Cut> {
        Ok(Cut {
            statements: self.amount()?,
            failed: self.amount()?,
            rows: self.amount()?,
            values: self.amount()?,
            untold: self.amount()?,
            unscoped: self.amount()?,
        })
    }

    fn exchange(&mut self, exchange: &mut Exchange) -> Decoded<()> {
        exchange.clear();
        exchange.kind = *UnitKind::ALL.get(usize::from(self.u8()?)).ok_or("a unit's kind is undefined")?;
        let flags = self.u8()?;
        exchange.starts_trip = flags & 1 != 0;
        exchange.may_share = flags & 2 != 0;
        let keeps_values = flags & 4 != 0;
        let (by_remedy, has_obstacle) = (flags & 32 != 0, flags & 64 != 0);
        exchange.status = match flags >> 3 & 3 {
            0 => TransactionStatus::Idle,
            1 => TransactionStatus::Active,
            2 => TransactionStatus::Failed,
            _ => return Err("a transaction status is undefined"),
        };
        if by_remedy {
            let place = usize::from(self.u8()?).checked_sub(1);
            let remedy = place.and_then(|place| Remedy::ALL.get(place)).ok_or("a remedy is undefined")?;
            exchange.remedy = Some(*remedy);
        }
        if has_obstacle {
            let place = usize::from(self.u8()?).checked_sub(1);
            let obstacle =
                place.and_then(|place| Obstacle::TOLD.get(place)).ok_or("an obstacle is undefined")?;
            exchange.obstacle = Some(*obstacle);
        }
        exchange.outcome = self.outcome()?;
        exchange.sent_at = self.moment()?;
        exchange.first_reply_at = Moment(exchange.sent_at.0 + self.nanos()?);
        exchange.last_reply_at = Moment(exchange.first_reply_at.0 + self.nanos()?);
        exchange.bytes_sent = self.amount()?;
        exchange.bytes_received = self.amount()?;
        exchange.scope = self.u32()?;
        exchange.request = u64::from_le_bytes(self.array()?);
        for _ in 0..self.varint()? {
            exchange.statements.push(self.statement()?);
        }
        exchange.parameters.extend(self.words()?.map(u64::from_le_bytes));
        exchange.results.extend(self.words()?.map(u32::from_le_bytes));
        if keeps_values {
            for _ in 0..exchange.parameters.len() {
                exchange.parameter_texts.push(self.bytes()?.to_vec());
            }
        }
        check_shares(exchange)
    }

    fn statement(&mut self) -> Decoded<Statement> {
        let template = self.u32()?;
        let steps = self.u8()?;
        let outcome = self.outcome()?;
        let rows = self.amount()?;
        let row_limit = self.u32()?;
        let parameters = self.u32()?.try_into().map_err(|_| "a statement has too many parameters")?;
        let columns = self.u32()?;
        let key_columns = self.u32()?.try_into().map_err(|_| "a statement has too many columns")?;
        let results = self.u32()?;
        let result_digest = u64::from_le_bytes(self.array()?);
        Ok(Statement {
            template,
            steps: Steps(steps & 0x7f),
            rows,
            row_limit,
            suspended: steps & 0x80 != 0,
            outcome,
            parameters,
            columns,
            key_columns,
            results,
            result_digest,
        })
    }
}

/// The statements' shares must add up to what the exchange holds, so that readers may slice without checking.
fn check_shares(exchange: &Exchange) -> Decoded<()> {
    let parameters: usize =
        exchange.statements.iter().map(|statement| usize::from(statement.parameters)).sum();
    let results: usize = exchange.statements.iter().map(|statement| statement.results as usize).sum();
    if parameters != exchange.parameters.len() || results != exchange.results.len() {
        return Err("the statements' shares do not add up");
    }
    let even = |statement: &Statement| match statement.key_columns {
        0 => statement.results == 0,
        columns => statement.results % u32::from(columns) == 0,
    };
    if exchange.statements.iter().all(even) { Ok(()) } else { Err("a result has a part of a row") }
}
