//! Parameter values that are kept.

use smallvec::SmallVec;

use crate::value::{Form, Value};

/// Parameters beyond this are not looked at: the statement is then no part of a loop.
pub(crate) const VALUES_MAX: usize = 16;

/// Bytes of one statement's parameters that are kept; beyond it the statement is no part of a loop.
pub(crate) const BYTES_MAX: usize = 1024;

/// A value's form, and where its bytes start and how many there are; `None` is NULL.
type Slot = (Form, Option<(u16, u16)>);

/// The parameters of one statement.
#[derive(Debug, Default)]
pub(crate) struct Values {
    slots: SmallVec<[Slot; 4]>,
    bytes: SmallVec<[u8; 64]>,
}

impl Values {
    /// Whether these can be kept.
    pub(crate) fn fit(values: &[Value<'_>]) -> bool {
        values.len() <= VALUES_MAX
            && values.iter().map(|value| value.bytes.map_or(0, <[u8]>::len)).sum::<usize>() <= BYTES_MAX
    }

    /// Replaces them; by none if they do not fit.
    pub(crate) fn set(&mut self, values: &[Value<'_>]) {
        self.slots.clear();
        self.bytes.clear();
        if !Self::fit(values) {
            return;
        }
        for value in values {
            let place = value.bytes.map(|bytes| {
                let start = self.bytes.len() as u16;
                self.bytes.extend_from_slice(bytes);
                (start, bytes.len() as u16)
            });
            self.slots.push((value.form, place));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn get(&self, position: usize) -> Option<Value<'_>> {
        let (form, place) = *self.slots.get(position)?;
        let bytes = place.map(|(start, length)| &self.bytes[usize::from(start)..usize::from(start + length)]);
        Some(Value { bytes, form })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_they_were() {
        let given = [
            Value { bytes: Some(b"42"), form: Form::Number },
            Value { bytes: None, form: Form::Text },
            Value { bytes: Some(b""), form: Form::Quoted },
        ];
        let mut values = Values::default();
        values.set(&given);
        assert_eq!((0..3).map(|position| values.get(position).unwrap()).collect::<Vec<_>>(), given);
        assert_eq!(values.get(3), None);
    }
}
