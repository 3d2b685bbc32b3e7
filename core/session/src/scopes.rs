//! Scopes that programs name: in comments, settings and the application's name.

use std::collections::VecDeque;

use onetrip_ledger::{Exchange, Outcome, StreamEncoder};
use onetrip_sql::sqlcommenter::{Tags, trace_of};
use onetrip_sql::{Lifted, StatementKind};

use crate::canonical::Values;
use crate::names::{Names, UNTOLD_SCOPE};
use crate::tally::Tally;

/// Longest label of a scope, in bytes.
pub(crate) const LABEL_BYTES_MAX: usize = 200;
const SCOPE_SETTING: &[u8] = b"onetrip.scope";

/// What work is booked on. A statement's own comment wins over `SET onetrip.scope`, that over the scope of all sessions,
/// and that over application_name.
#[derive(Debug, Default)]
pub(crate) struct Scopes {
    set: u32,
    /// What units on their way set it to: their numbers, in order.
    coming: VecDeque<(u64, u32)>,
    common: u32,
    common_version: u64,
    application: u32,
    label: Vec<u8>,
    scratch: Vec<u8>,
}

impl Scopes {
    /// Puts a unit that names no scope itself on the current one, and counts its statements if there was no room for the
    /// label.
    pub(crate) fn settle(
        &mut self,
        exchange: &mut Exchange,
        tally: &Tally,
        names: &mut Names,
        stream: &mut StreamEncoder,
    ) {
        if exchange.scope == 0 {
            self.update(tally, names, stream);
            exchange.scope = self.current();
        }
        if exchange.scope == UNTOLD_SCOPE {
            exchange.scope = 0;
            exchange.cut.unscoped += exchange.statements.len() as u64 + exchange.cut.statements;
        }
    }

    /// The scope of a statement that names none itself.
    fn current(&self) -> u32 {
        let named = [self.set, self.common].into_iter().find(|scope| *scope != 0);
        named.unwrap_or(self.application)
    }

    /// This unit sets `onetrip.scope`, or resets it: zero.
    pub(crate) fn will_set(&mut self, unit: u64, scope: u32) {
        self.coming.push_back((unit, scope));
    }

    /// A unit is answered: what it sets holds for itself and those behind it, unless it failed.
    pub(crate) fn answered(&mut self, unit: u64, outcome: Outcome) {
        while let Some((number, scope)) = self.coming.front().copied().filter(|(number, _)| *number <= unit) {
            self.coming.pop_front();
            if number == unit && outcome == Outcome::Done {
                self.set = scope;
            }
        }
    }

    /// All sessions may have got another scope.
    fn update(&mut self, tally: &Tally, names: &mut Names, stream: &mut StreamEncoder) {
        if let Some(label) = tally.label_after(&mut self.common_version) {
            self.common = names.scope(&label, stream);
        }
    }

    /// The application's name became known or changed.
    pub(crate) fn application(&mut self, name: &[u8], names: &mut Names, stream: &mut StreamEncoder) {
        self.application = names.scope(&name[..name.len().min(LABEL_BYTES_MAX)], stream);
    }

    /// The scope and the request that a statement's comments name; zeros for none. Spans of one trace are one request.
    pub(crate) fn of_comments(
        &mut self,
        lifted: &Lifted<'_>,
        values: &Values,
        names: &mut Names,
        stream: &mut StreamEncoder,
    ) -> (u32, u64) {
        if lifted.comments().len() == 0 {
            return (0, 0);
        }
        let tags = Tags::find(lifted.comments());
        let request = tags.traceparent.map_or(0, |parent| {
            trace_of(parent.decode(&mut self.scratch)).map_or(0, |trace| values.literal(trace))
        });
        self.label.clear();
        let parts = match (tags.route, tags.controller, tags.action) {
            (Some(route), _, _) => [Some(route), None],
            (None, controller, action) => [controller, action],
        };
        for part in parts.into_iter().flatten() {
            if !self.label.is_empty() {
                self.label.push(b'#');
            }
            self.label.extend_from_slice(part.decode(&mut self.scratch));
        }
        self.label.truncate(LABEL_BYTES_MAX);
        (names.scope(&self.label, stream), request)
    }

    /// The scope that a statement sets for the session, if it sets one.
    pub(crate) fn of_setting(
        &mut self,
        lifted: &Lifted<'_>,
        names: &mut Names,
        stream: &mut StreamEncoder,
    ) -> Option<u32> {
        let is_scope = lifted.name().is_some_and(|name| name.is(SCOPE_SETTING));
        match lifted.kind() {
            StatementKind::Reset => (is_scope || lifted.facts().all).then_some(0),
            StatementKind::Discard => lifted.facts().all.then_some(0),
            StatementKind::Set if is_scope => {
                let label = match (lifted.setting_literal(), lifted.setting_word()) {
                    (Some(literal), _) => literal.value(&mut self.scratch).to_vec(),
                    (None, Some(word)) if !word.is(b"default") => word.as_written().to_vec(),
                    _ => Vec::new(),
                };
                Some(names.scope(&label[..label.len().min(LABEL_BYTES_MAX)], stream))
            }
            _ => None,
        }
    }
}
