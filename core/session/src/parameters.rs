//! Parameters of one statement, as keyed hashes.

use onetrip_ledger::{Exchange, ValueHash};

/// Bytes of a parameter's text that a trace keeps.
const KEPT_VALUE_BYTES_MAX: usize = 256;

/// Values of one statement on their way into an exchange. It is kept, so that collecting them needs no allocation.
#[derive(Debug, Default)]
pub(crate) struct Parameters {
    hashes: Vec<ValueHash>,
    /// Empty where a trace keeps no values.
    texts: Vec<Vec<u8>>,
}

impl Parameters {
    pub(crate) fn clear(&mut self) {
        self.hashes.clear();
        self.texts.clear();
    }

    pub(crate) fn push(&mut self, hash: ValueHash, text: &[u8], keep_text: bool) {
        self.hashes.push(hash);
        if keep_text {
            self.texts.push(text[..text.len().min(KEPT_VALUE_BYTES_MAX)].to_vec());
        }
    }

    pub(crate) fn hashes(&self) -> &[ValueHash] {
        &self.hashes
    }

    pub(crate) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Bytes that they take in an exchange, in memory and in a trace.
    pub(crate) fn bytes(&self) -> usize {
        let texts = self.texts.iter().map(|text| text.len() + size_of::<Vec<u8>>());
        self.hashes.len() * size_of::<ValueHash>() + texts.sum::<usize>()
    }

    /// Moves them to an exchange as those of its statement `slot`, which has to be its last so far.
    pub(crate) fn append_to(&mut self, exchange: &mut Exchange, slot: u16) {
        let Some(statement) = exchange.statements.get_mut(usize::from(slot)) else { return };
        statement.parameters += self.hashes.len() as u16;
        exchange.parameters.extend_from_slice(&self.hashes);
        exchange.parameter_texts.append(&mut self.texts);
    }
}
