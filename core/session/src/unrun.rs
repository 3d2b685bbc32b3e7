//! Statements that a unit of the client's parses, describes or binds, and does not run.

use onetrip_sql::StatementKind;
use smallvec::SmallVec;

use crate::reading::{Effect, has_no_query};
use crate::statements::Text;

/// Of one unit, so many are told apart.
const TEXTS_MAX: usize = 16;

/// What matters of one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unrun {
    pub(crate) template: u32,
    pub(crate) effect: Effect,
}

/// Those of the unit that is being read.
#[derive(Debug, Default)]
pub(crate) struct UnrunTexts {
    texts: SmallVec<[Unrun; 2]>,
}

impl UnrunTexts {
    /// A statement is parsed, described or bound.
    pub(crate) fn read(&mut self, text: &Text) {
        let effect = match text.effect {
            Effect::Read | Effect::WritesRows | Effect::MayDefine => text.effect,
            // The query of a PREPARE is not looked into before it runs.
            Effect::Unknown if text.kind != StatementKind::Prepare && !has_no_query(text.kind) => text.effect,
            _ => return,
        };
        self.add(Unrun { template: text.template, effect });
    }

    /// One is bound of which nothing is known.
    pub(crate) fn read_unseen(&mut self) {
        self.add(Unrun { template: 0, effect: Effect::Unknown });
    }

    fn add(&mut self, unrun: Unrun) {
        if self.texts.contains(&unrun) {
            return;
        }
        match self.texts.len() < TEXTS_MAX {
            true => self.texts.push(unrun),
            false => self.texts[TEXTS_MAX - 1] = Unrun { template: 0, effect: Effect::Unknown },
        }
    }

    /// One is run: what that does is seen there.
    pub(crate) fn run(&mut self, text: &Text) {
        self.texts.retain(|unrun| unrun.template != text.template || unrun.template == 0);
    }

    /// The unit is over: those that it has not run.
    pub(crate) fn take(&mut self) -> SmallVec<[Unrun; 2]> {
        std::mem::take(&mut self.texts)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(template: u32, effect: Effect, kind: StatementKind) -> Text {
        Text { template, effect, kind, ..Text::default() }
    }

    #[test]
    fn what_is_run_and_what_has_no_query_within_is_none_of_them() {
        let mut unit = UnrunTexts::default();
        let (one, two) = (
            text(1, Effect::Read, StatementKind::Select),
            text(2, Effect::WritesRows, StatementKind::Insert),
        );
        for text in [
            &one,
            &two,
            &one,
            &text(3, Effect::Unknown, StatementKind::Set),
            &text(4, Effect::End, StatementKind::Commit),
        ] {
            unit.read(text);
        }
        unit.run(&one);
        assert_eq!(unit.take()[..], [Unrun { template: 2, effect: Effect::WritesRows }]);
        assert!(unit.is_empty());
    }

    #[test]
    fn more_than_can_be_told_apart_may_do_anything() {
        let mut unit = UnrunTexts::default();
        for template in 1..100 {
            unit.read(&text(template, Effect::Read, StatementKind::Select));
        }
        let texts = unit.take();
        assert_eq!((texts.len(), texts[TEXTS_MAX - 1].effect), (TEXTS_MAX, Effect::Unknown));
    }
}
