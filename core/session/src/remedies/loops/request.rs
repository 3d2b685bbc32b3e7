//! What a program asks for, in bytes that are equal only if the answers may be.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::RandomState;
use memchr::memmem;
use onetrip_ledger::Remedy;
use onetrip_loops::{Column, Form, Guess, Value};
use onetrip_sql::{Lifter, LiteralKind};
use onetrip_wire::pg::{Bind, Format, Formats, Oid};
use smallvec::SmallVec;

use crate::contract::SOURCE_BYTES_MAX;
use crate::services::flights::{Example, Flights, Request, format_of};
use crate::statements::Learned;

/// Values of one statement that are looked at; one with more is not guessed.
const VALUES_MAX: usize = 64;

/// By which protocol, and what is the same in every run of it.
#[derive(Debug, Clone)]
pub(super) enum Way {
    /// A simple query; the latest text, and where its literals are.
    Simple { text: Commented, literals: SmallVec<[(Range<usize>, Form); 8]> },
    /// An extended group.
    Extended {
        text: Commented,
        types: SmallVec<[Oid; 8]>,
        /// Format codes of parameters and results, as Bind has them.
        parameter_codes: Vec<u8>,
        result_codes: Vec<u8>,
        describes: bool,
        /// The program's own prepared statement that it runs; none where each run parses the text.
        prepared: Option<Own>,
    },
}

/// A text that the program has sent, and where in it are comments of which no server can make anything.
#[derive(Debug, Clone)]
pub(super) struct Commented {
    pub(super) bytes: Vec<u8>,
    comments: SmallVec<[Range<usize>; 2]>,
}

/// Other bytes at a place of a text.
type Change<'v> = (Range<usize>, &'v [u8]);

/// A prepared statement of the program's. It keeps what its Parse made of literals, types and tables: its answers are not
/// those of another with the same text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Own {
    pub(super) name: Box<[u8]>,
    /// Tells it from every other that the session has prepared.
    serial: u64,
}

/// How the statements of a session that may be guessed are written, by the numbers of their examples.
#[derive(Debug, Default)]
pub(super) struct Ways {
    of: HashMap<u32, Way, RandomState>,
    lifter: Lifter,
}

impl Ways {
    pub(super) fn get(&self, example: u32) -> Option<&Way> {
        self.of.get(&example)
    }

    /// The example of this name, made if there is none yet.
    fn place(&mut self, flights: &mut Flights, name: &[u8], template: u32, way: Way) -> Option<u32> {
        let example = match flights.find_example(name) {
            Some(example) => example,
            None => flights.add_example(Remedy::Loops, name, &way.kin(name), template)?,
        };
        self.of.insert(example, way); // with the latest literals, or the latest statement of this text
        Some(example)
    }

    /// A simple query, if its literals are plain.
    pub(super) fn simple<'a>(
        &mut self,
        flights: &mut Flights,
        text: &'a [u8],
        template: u32,
    ) -> Option<Request<'a>> {
        if text.len() > SOURCE_BYTES_MAX {
            return None;
        }
        let lifted = self.lifter.lift(text, true);
        let mut literals = SmallVec::new();
        let mut values = SmallVec::new();
        for literal in lifted.literals() {
            let start = (literal.source.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
            let range = start..start + literal.source.len();
            let (range, form) = match literal.kind {
                LiteralKind::Integer | LiteralKind::Decimal => (range, Form::Number),
                LiteralKind::String if literal.source.first() == Some(&b'\'') => {
                    (range.start + 1..range.end - 1, Form::Quoted)
                }
                _ => return None,
            };
            let bytes = text.get(range.clone())?;
            if form == Form::Quoted && bytes.split(|byte| *byte == b'\'').count() % 2 == 0 {
                return None; // a literal in several pieces
            }
            literals.push((range, form));
            values.push(Value { bytes: Some(bytes), form });
        }
        if values.len() > VALUES_MAX {
            return None;
        }
        let name = [b"Q", lifted.template()].concat();
        let commented = Commented { bytes: text.to_vec(), comments: lifted.idle_comments().collect() };
        let key = simple_key(&commented.key());
        let example = self.place(flights, &name, template, Way::Simple { text: commented, literals })?;
        Some(Request { example, key, values, begins: false, names: false })
    }

    fn commented(&mut self, text: &[u8]) -> Commented {
        let may_have = memmem::find(text, b"/*").is_some() || memmem::find(text, b"--").is_some();
        let comments = match may_have {
            true => self.lifter.lift(text, true).idle_comments().collect(),
            false => SmallVec::new(),
        };
        Commented { bytes: text.to_vec(), comments }
    }

    /// An extended group that binds `bind` to a statement with this text; `types` are those that its Parse declares,
    /// `learned` is what the server has told of it.
    pub(super) fn extended<'a>(
        &mut self,
        flights: &mut Flights,
        (text, prepared): (&[u8], Option<(&[u8], u64)>),
        types: SmallVec<[Oid; 8]>,
        bind: &Bind<'a>,
        describes: bool,
        (template, learned): (u32, Option<&Learned>),
    ) -> Option<Request<'a>> {
        if bind.parameters.len() > VALUES_MAX {
            return None;
        }
        let told = learned.map_or(&[][..], |learned| &learned.types);
        let type_of = |types: &[Oid], position| types.get(position).copied().filter(|oid| *oid != 0);
        let mut values = SmallVec::new();
        for (position, bytes) in bind.parameters.iter().enumerate() {
            let form = match bind.parameter_formats.of(position) {
                Format::Text => Form::Text,
                Format::Binary => {
                    let declared = type_of(&types, position).or_else(|| type_of(told, position));
                    Form::Binary(declared.unwrap_or(0))
                }
            };
            values.push(Value { bytes, form });
        }
        let prepared = prepared.map(|(name, serial)| Own { name: name.into(), serial });
        let way = Way::Extended {
            text: self.commented(text),
            types,
            parameter_codes: bind.parameter_formats.codes().to_vec(),
            result_codes: bind.result_formats.codes().to_vec(),
            describes,
            prepared,
        };
        let mut name = Vec::with_capacity(text.len() + 64);
        way.put_name(&mut name);
        let mut key = name.clone();
        way.put_serial(&mut key);
        let example = self.place(flights, &name, template, way)?;
        if let Some(example) = flights.example_mut(example) {
            describe(example, learned, bind.result_formats);
        }
        put_values(&mut key, bind.parameters.iter());
        Some(Request { example, key, values, begins: false, names: false })
    }
}

/// Takes the columns of a result that was described before it was asked for.
fn describe(example: &mut Example, learned: Option<&Learned>, formats: Formats<'_>) {
    let types = learned.and_then(|learned| learned.columns.as_ref());
    if let (true, Some(types)) = (example.columns.is_empty(), types) {
        let columns = types.iter().enumerate();
        let column =
            |(position, oid): (usize, &Oid)| Column { oid: *oid, format: format_of(formats.of(position)) };
        example.columns = columns.map(column).collect();
    }
}

impl Way {
    /// What is the same in all forms of the statement: its text, or else its `name`.
    fn kin<'a>(&'a self, name: &'a [u8]) -> Cow<'a, [u8]> {
        match self {
            Self::Extended { text, .. } => text.key(),
            Self::Simple { .. } => Cow::Borrowed(name),
        }
    }

    /// What is the same in every run: equal only for the same statement in the same formats.
    fn put_name(&self, out: &mut Vec<u8>) {
        match self {
            Self::Simple { .. } => {}
            Self::Extended { text, types, parameter_codes, result_codes, describes, prepared: _ } => {
                out.push(b'E');
                out.push(u8::from(*describes));
                put_bytes(out, &text.key());
                out.extend_from_slice(&(types.len() as u32).to_be_bytes());
                types.iter().for_each(|oid| out.extend_from_slice(&oid.to_be_bytes()));
                put_bytes(out, parameter_codes);
                put_bytes(out, result_codes);
            }
        }
    }

    /// Which statement of the program's it runs.
    fn put_serial(&self, out: &mut Vec<u8>) {
        if let Self::Extended { prepared, .. } = self {
            let serial = prepared.as_ref().map_or(0, |own| own.serial);
            out.extend_from_slice(&serial.to_be_bytes());
        }
    }

    /// The request that a guess stands for: what it is kept under.
    pub(super) fn key_of(&self, guess: &Guess<'_>) -> Option<Vec<u8>> {
        match self {
            Self::Simple { text, literals } => {
                let no_comments = text.comments.iter().cloned().map(|comment| (comment, &b""[..]));
                let mut changes = values_at(literals, guess)?;
                changes.extend(no_comments);
                changes.sort_unstable_by_key(|(range, _)| range.start);
                text.with(changes).map(|text| simple_key(&text))
            }
            Self::Extended { .. } => {
                let mut key = Vec::new();
                self.put_name(&mut key);
                self.put_serial(&mut key);
                put_values(&mut key, guess.values().map(|value| value.bytes));
                Some(key)
            }
        }
    }

    /// The text of a guess at a simple query.
    pub(super) fn text_of(&self, guess: &Guess<'_>) -> Option<Vec<u8>> {
        let Self::Simple { text, literals } = self else { return None };
        text.with(values_at(literals, guess)?)
    }
}

impl Commented {
    /// The text without what comments say: it means what the text does to any server.
    fn key(&self) -> Cow<'_, [u8]> {
        let emptied = || self.with(self.comments.iter().cloned().map(|comment| (comment, &b""[..])));
        match self.comments.is_empty() {
            true => Cow::Borrowed(&self.bytes),
            false => emptied().map_or(Cow::Borrowed(&self.bytes), Cow::Owned),
        }
    }

    /// The text with other bytes at these places, which are in order.
    fn with<'v>(&self, changes: impl IntoIterator<Item = Change<'v>>) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(self.bytes.len() + 16);
        let mut copied = 0;
        for (range, bytes) in changes {
            out.extend_from_slice(self.bytes.get(copied..range.start)?);
            out.extend_from_slice(bytes);
            copied = range.end;
        }
        out.extend_from_slice(self.bytes.get(copied..)?);
        Some(out)
    }
}

/// The values of a guess, each where its literal is.
fn values_at<'g>(literals: &[(Range<usize>, Form)], guess: &Guess<'g>) -> Option<SmallVec<[Change<'g>; 8]>> {
    (literals.len() == guess.values().len()).then_some(())?;
    let places = literals.iter().zip(guess.values());
    places.map(|((range, _), value)| Some((range.clone(), value.bytes?))).collect()
}

fn simple_key(text: &[u8]) -> Vec<u8> {
    [b"Q", text].concat()
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

fn put_values<'v>(out: &mut Vec<u8>, values: impl Iterator<Item = Option<&'v [u8]>>) {
    for value in values {
        out.extend_from_slice(&value.map_or(-1, |value| value.len() as i32).to_be_bytes());
        out.extend_from_slice(value.unwrap_or_default());
    }
}

/// A guess's values as a Bind has them.
pub(super) fn encoded_values(guess: &Guess<'_>) -> Vec<u8> {
    let mut out = (guess.values().len() as u16).to_be_bytes().to_vec();
    put_values(&mut out, guess.values().map(|value| value.bytes));
    out
}
