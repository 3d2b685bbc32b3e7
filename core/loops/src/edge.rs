//! How one template's parameters follow from another's rows.

use smallvec::SmallVec;

use crate::canonical::{Cell, hash_of, integer_of_binary, integer_of_text, is_same};
use crate::filter::Filter;
use crate::flight::Slot;
use crate::frame::Frame;
use crate::history::History;
use crate::rendering::render;
use crate::value::{Form, Value};
use crate::values::Values;

/// Sources that are kept in mind for one parameter.
pub(crate) const CANDIDATES_MAX: usize = 8;

/// Where a parameter's value may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// A column of the row; `up` levels above it, of the row that the frame's own statement came from.
    Column { up: u8, column: u16 },
    /// A parameter of the statement whose result is walked.
    Parameter { index: u16 },
    /// That parameter of the loop's first statement, and so much more each time (pages by OFFSET, counted loops).
    Step { index: u16, step: i64 },
    /// As in the loop's last statement of this template.
    Same,
}

/// Which rows of a frame the statements walk; what comes first is believed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Walk {
    /// One after the other.
    Rows,
    /// The last one alone: the next page of a list by key.
    Last,
    /// None: a counter goes on.
    Steps,
}

/// A place in a loop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) frame: &'a Frame,
    pub(crate) row: u32,
    pub(crate) parent: Option<(&'a Frame, u32)>,
    /// The loop's last values of the template; none yet if it is empty.
    pub(crate) last: Option<&'a Values>,
}

impl<'a> At<'a> {
    fn cell(&self, source: Source) -> Option<Cell<'a>> {
        match source {
            Source::Column { up: 0, column } => self.frame.cell(self.row, column),
            Source::Column { column, .. } => self.parent.and_then(|(frame, row)| frame.cell(row, column)),
            Source::Parameter { index } | Source::Step { index, .. } => {
                let value = self.frame.parameters.get(usize::from(index))?;
                value.bytes.map(|bytes| Cell::of_parameter(value.form, bytes))
            }
            Source::Same => None,
        }
    }

    /// Whether the source gives exactly this value here.
    fn gives(&self, source: Source, position: usize, value: Value<'_>, scratch: &mut Vec<u8>) -> bool {
        if source == Source::Same {
            return self.last.is_none_or(|last| last.get(position).is_some_and(|last| is_same(last, value)));
        }
        scratch.clear();
        value.bytes.is_some_and(|bytes| self.write(source, value, scratch) && scratch == bytes)
    }

    /// Appends what the source, which is not `Same`, gives here, written like the example.
    fn write(&self, source: Source, example: Value<'_>, out: &mut Vec<u8>) -> bool {
        let step = match source {
            Source::Step { step, .. } => match step.checked_mul(i64::from(self.row) + 1) {
                Some(step) => step,
                None => return false,
            },
            _ => 0,
        };
        self.cell(source).is_some_and(|cell| render(cell, step, example, out))
    }
}

/// From one template's rows to another template: learnt from examples, narrowed by every further one.
#[derive(Debug, Clone)]
pub(crate) struct Edge {
    /// Key of the template whose rows are walked.
    pub(crate) from: u64,
    /// Key of the template that is sent.
    pub(crate) to: u64,
    pub(crate) walk: Walk,
    pub(crate) places: Vec<SmallVec<[Source; 4]>>,
    /// Seen twice in one loop, with different values.
    pub(crate) is_confirmed: bool,
    /// Statements in a row that it could not explain.
    pub(crate) failures: u32,
    pub(crate) history: History,
    pub(crate) filter: Filter,
}

impl Edge {
    /// What one example may mean: `None` if no parameter comes from the row.
    pub(crate) fn learn(
        from: u64,
        to: u64,
        walk: Walk,
        at: At<'_>,
        values: &[Value<'_>],
        scratch: &mut Vec<u8>,
    ) -> Option<Self> {
        let mut edge = Self {
            from,
            to,
            walk,
            places: Vec::with_capacity(values.len()),
            is_confirmed: false,
            failures: 0,
            history: History::default(),
            filter: Filter::default(),
        };
        for value in values {
            let mut candidates = SmallVec::new();
            if value.bytes.is_some() {
                match walk {
                    Walk::Rows | Walk::Last => learn_sources(at, *value, &mut candidates, scratch),
                    Walk::Steps => learn_step(at, edge.places.len(), *value, &mut candidates, scratch),
                }
            }
            candidates.truncate(CANDIDATES_MAX - 1);
            candidates.push(Source::Same);
            edge.places.push(candidates);
        }
        edge.moves().then_some(edge)
    }

    /// The same for the statement in another form, of whose loops nothing is known.
    pub(crate) fn in_form(&self, to: u64) -> Self {
        Self { to, failures: 0, history: History::default(), ..self.clone() }
    }

    /// Whether a parameter changes from row to row.
    pub(crate) fn moves(&self) -> bool {
        self.places.iter().flatten().any(|candidate| candidate.is_moving())
    }

    /// The first parameter that comes from a column of the row, and the column.
    pub(crate) fn anchor(&self) -> Option<(usize, u16)> {
        self.places.iter().enumerate().find_map(|(position, candidates)| {
            candidates.iter().find_map(|candidate| match candidate {
                Source::Column { up: 0, column } => Some((position, *column)),
                _ => None,
            })
        })
    }

    /// Whether all parameters may come from this place.
    pub(crate) fn fits(&self, at: At<'_>, values: &[Value<'_>], scratch: &mut Vec<u8>) -> bool {
        self.places.len() == values.len()
            && self.places.iter().zip(values).enumerate().all(|(position, (candidates, value))| {
                candidates.iter().any(|candidate| at.gives(*candidate, position, *value, scratch))
            })
    }

    /// Keeps the sources that this example, which fits, allows. Whether a parameter that moves with the rows differs
    /// from the last one: only then is it evidence.
    pub(crate) fn narrow(&mut self, at: At<'_>, values: &[Value<'_>], scratch: &mut Vec<u8>) -> bool {
        let mut is_evidence = false;
        for (position, (candidates, value)) in self.places.iter_mut().zip(values).enumerate() {
            candidates.retain(|candidate| at.gives(*candidate, position, *value, scratch));
            let differs =
                at.last.and_then(|last| last.get(position)).is_some_and(|last| !is_same(last, *value));
            is_evidence |= differs && candidates.iter().any(Source::is_moving);
        }
        is_evidence
    }

    /// Appends the values of a guess to `values`, and where their bytes are in `bytes`. False if one is NULL or cannot
    /// be written.
    pub(crate) fn write(&self, at: At<'_>, bytes: &mut Vec<u8>, values: &mut Vec<Slot>) -> bool {
        let Some(last) = at.last.filter(|last| last.len() == self.places.len()) else {
            return false;
        };
        for (position, candidates) in self.places.iter().enumerate() {
            let (Some(candidate), Some(example)) = (candidates.first(), last.get(position)) else {
                return false;
            };
            let start = bytes.len() as u32;
            if *candidate == Source::Same {
                bytes.extend_from_slice(example.bytes.unwrap_or_default());
            } else if !at.write(*candidate, example, bytes) {
                return false;
            }
            let is_null = *candidate == Source::Same && example.bytes.is_none();
            values.push((example.form, (!is_null).then(|| (start, bytes.len() as u32 - start))));
        }
        true
    }
}

impl Source {
    fn is_moving(&self) -> bool {
        matches!(self, Source::Column { up: 0, .. } | Source::Step { .. })
    }
}

/// Columns of the row first, then of the row above, then parameters: in this order they are believed.
fn learn_sources(at: At<'_>, value: Value<'_>, found: &mut SmallVec<[Source; 4]>, scratch: &mut Vec<u8>) {
    let Some(hash) = hash_of(value) else {
        return;
    };
    let mut consider = |source: Source| {
        if at.gives(source, 0, value, scratch) {
            found.push(source);
        }
    };
    for column in (0..at.frame.columns() as u16).filter(|column| at.frame.may_be(at.row, *column, hash)) {
        consider(Source::Column { up: 0, column });
    }
    if let Some((parent, row)) = at.parent {
        for column in (0..parent.columns() as u16).filter(|column| parent.may_be(row, *column, hash)) {
            consider(Source::Column { up: 1, column });
        }
    }
    for index in 0..at.frame.parameters.len() as u16 {
        consider(Source::Parameter { index });
    }
}

fn learn_step(
    at: At<'_>,
    position: usize,
    value: Value<'_>,
    found: &mut SmallVec<[Source; 4]>,
    scratch: &mut Vec<u8>,
) {
    let index = position as u16;
    let Some(before) = at.frame.parameters.get(position).filter(|before| before.form == value.form) else {
        return;
    };
    let (Some(from), Some(to)) = (integer_of(before), integer_of(value)) else {
        return;
    };
    let Some(step) = to.checked_sub(from).filter(|step| *step != 0) else {
        return;
    };
    let source = Source::Step { index, step };
    if at.gives(source, position, value, scratch) {
        found.push(source);
    }
}

fn integer_of(value: Value<'_>) -> Option<i64> {
    let bytes = value.bytes?;
    match value.form {
        Form::Binary(0 | 20 | 21 | 23) => integer_of_binary(bytes),
        Form::Binary(_) => None,
        _ => integer_of_text(bytes),
    }
}
