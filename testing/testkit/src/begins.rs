//! BEGIN and its kin, in an order of chance.

use crate::random::Random;
use crate::script::Script;

/// Ways to end.
const ENDS: [&str; 6] = ["COMMIT", "ROLLBACK", "END", "COMMIT AND CHAIN", "ABORT", "ROLLBACK AND CHAIN"];

/// What comes between a session's begins and ends.
#[derive(Debug, Clone, Copy)]
pub struct Begins<'a> {
    /// Ways to begin.
    pub begins: &'a [&'a str],
    /// Statements; `@` stands for `number`.
    pub statements: &'a [&'a str],
    /// A number that is the session's own.
    pub number: usize,
}

impl Begins<'_> {
    /// Adds a statement: one that begins, one that ends, or another.
    pub fn step(&self, script: &mut Script, random: &mut Random) {
        let text = match random.below(10) {
            0..=2 => "BEGIN".to_owned(),
            3 => random.pick(self.begins).to_owned(),
            4..=6 => random.pick(&ENDS).to_owned(),
            _ => random.pick(self.statements).replace('@', &self.number.to_string()),
        };
        script.grouped(random, &text);
    }
}
