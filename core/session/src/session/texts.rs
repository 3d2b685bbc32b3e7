//! What the text of a statement says: looked into once, where that came before as well.

use std::borrow::Cow;
use std::sync::Arc;

use onetrip_ledger::{Moment, Remedy};
use onetrip_sql::purity::names_catalogue;
use onetrip_sql::{Lifter, StatementKind};

use super::core::Core;
use super::{PARAMETERS_MAX, Session};
use crate::events::Event;
use crate::reading::{
    Change, Deferral, Effect, cursor_use, deallocated, deferral, kept_template, leaves_savepoints,
    makes_cursor_code, of_comments, sets_prefetch_alone,
};
use crate::readings::{Looked, Reading, are_kept};
use crate::rules::Rule;
use crate::scopes::Scopes;
use crate::statements::{Mark, Text, row_limit};

impl Session {
    /// Looks into a statement's text: its template, what its comments say, and its literals as parameters. What is found is
    /// for a run of it now, or, if `is_kept`, for later ones.
    pub(crate) fn read_text(&mut self, text: &[u8], is_kept: bool) -> Text {
        if self.core.is_cut {
            self.core.parameters.clear();
            // How it goes on was not captured.
            return Text { effect: Effect::MayDefine, makes_cursor_code: true, ..Text::default() };
        }
        // Remedies make more of a text than it says by itself.
        let Some(read) = self.config.texts.read().filter(|_| self.core.is_passive) else {
            return self.look_into(text, is_kept, None);
        };
        let settings = &self.facts.settings;
        let mode = u8::from(settings.has_standard_strings())
            | u8::from(self.config.keep_values) << 1
            | (settings.charset() as u8) << 2;
        match read.statements.look(mode, text) {
            Looked::Known(reading) => self.as_before(&reading),
            Looked::Again => self.look_into(text, is_kept, Some(mode)),
            Looked::New => self.look_into(text, is_kept, None),
        }
    }

    /// What was found in a text, for one more run of it.
    fn as_before(&mut self, reading: &Reading<Text>) -> Text {
        let Core { names, stream, values, parameters, .. } = &mut self.core;
        parameters.clear();
        for value in reading.values() {
            parameters.push(values.literal(value), value, self.config.keep_values);
        }
        let template = names.template(&reading.template, stream);
        Text { template, ..reading.found.clone() }
    }

    /// Looks into a statement's text. What is found is kept for others that read it in this mode, if it depends on nothing else.
    fn look_into(&mut self, text: &[u8], is_kept: bool, mode: Option<u8>) -> Text {
        let is_passive = self.core.is_passive;
        let Core { lifter, names, stream, scopes, values, scratch, parameters, .. } = &mut self.core;
        let mut scanner = self.config.texts.scanner(lifter);
        let settings = &self.facts.settings;
        // Remedies compare names in texts with those in messages: they look into what came.
        let wide = settings.charset().widened(text);
        let looked_into = if is_passive { &wide } else { text };
        let lifted = scanner.get().lift(looked_into, settings.has_standard_strings());
        let mut of_wide = None;
        let shown = match &wide {
            Cow::Owned(wide) if !is_passive => {
                of_wide.insert(Lifter::new()).lift(wide, settings.has_standard_strings())
            }
            _ => lifted,
        };
        parameters.clear();
        for literal in shown.literals().take(PARAMETERS_MAX) {
            let value = literal.value(scratch);
            parameters.push(values.literal(value), value, self.config.keep_values);
        }
        let (scope, request) = scopes.of_comments(&lifted, values, names, stream);
        let kept = if self.config.keep_values { shown.template().into() } else { kept_template(&shown) };
        let template = names.template(&kept, stream);
        let has_lobs = self.config.remedies.has(Remedy::Lobs);
        let is_of_session = has_lobs && sets_prefetch_alone(&lifted);
        use StatementKind as S;
        let may_write = lifted.facts().writes || lifted.kind() == S::Copy;
        let writes_catalogue = may_write && names_catalogue(lifted.template());
        let effect = match lifted.kind() {
            _ if is_of_session => Effect::Nothing,
            _ if lifted.facts().into || writes_catalogue => Effect::MayDefine,
            S::Select | S::With if lifted.facts().writes => Effect::WritesRows,
            kind => Effect::of(kind),
        };
        if effect == Effect::Read && !self.config.remedies.is_none() {
            self.facts.see(template, text);
        }
        let may_run = matches!(effect, Effect::Read | Effect::WritesRows | Effect::Unknown)
            && !self.config.remedies.is_none();
        let calls = may_run && names.may_call(template, lifted.template());
        let prefetch = has_lobs.then(|| of_comments(&lifted)).flatten();
        let changes_prefetch = has_lobs.then(|| Change::of(&lifted, scratch)).flatten();
        let has_cursors = self.config.remedies.has(Remedy::Cursors);
        // These make, read and close none by name; what else they do matters to results that are followed when they run.
        let is_plain =
            matches!(lifted.kind(), S::Select | S::Values | S::With) || lifted.kind().is_row_write();
        let may_matter = has_cursors && (is_kept || !is_plain || self.acting.cursors.follows_any());
        let used = may_matter.then(|| cursor_use(&lifted, text)).flatten();
        // What is written into the catalogue may be a parameter.
        let makes_cursor_code = has_cursors
            && effect == Effect::MayDefine
            && (writes_catalogue
                || makes_cursor_code(lifted.kind(), text)
                || (lifted.kind() == S::Execute && self.acting.cursors.has_prepared_code()));
        if let Some(query) = used.as_ref().and_then(|(_, query)| *query) {
            self.facts.see(template, query.as_bytes());
        }
        let read = Text {
            template,
            effect,
            calls,
            row_limit: row_limit(&lifted),
            scope,
            sets_scope: Scopes::of_setting(scopes, &lifted, names, stream),
            request,
            leaves_savepoints: leaves_savepoints(lifted.kind()),
            kind: lifted.kind(),
            deferral: if effect == Effect::Begin { deferral(text) } else { Deferral::None },
            cursor: used.map(|(used, _)| Arc::new(used)),
            makes_cursor_code,
            deallocates: deallocated(&lifted),
            has_harmless_types: true,
            prefetch,
            changes_prefetch,
        };
        // Comments name scopes, whose numbers are the connection's own.
        let is_of_text = lifted.comments().len() == 0 && are_kept(read.kind);
        if let Some((mode, common)) = mode.filter(|_| is_of_text).zip(self.config.texts.read()) {
            let mut reading = Reading::new(mode, text, &kept, read.clone());
            lifted.literals().take(PARAMETERS_MAX).for_each(|literal| reading.push(literal.value(scratch)));
            common.statements.keep(reading);
        }
        drop(scanner);
        if read.kind == StatementKind::Set {
            self.tell(&Event::SetRead(text));
        }
        read
    }

    /// Whether the objects that a prepared statement reads are those that its text names now, as far as that can matter: it
    /// keeps those of its Parse as long as these are there, even if there is another of that name further in front (rule
    /// P4).
    pub(crate) fn is_as_parsed(&mut self, now: Moment, name: &[u8]) -> bool {
        if self.config.remedies.is_none() || !Rule::Pure.is_kept() {
            return true;
        }
        let Some(prepared) = self.core.prepared.get(name) else { return false };
        let parsed = prepared.parsed.as_deref();
        let (template, found_then) = (prepared.text.template, parsed.and_then(|parsed| parsed.found.clone()));
        let is_of_parse = self.facts.changes().is_as_at(parsed.map_or(Mark::default(), |parsed| parsed.at));
        if is_of_parse && found_then.is_some() {
            return true;
        }
        let found = match self.facts.has_state() && self.only_reads(now, template) {
            true => self.facts.relations_of(template),
            false => None,
        };
        if is_of_parse {
            if let Some(prepared) = self.core.prepared.get_mut(name) {
                prepared.parsed.get_or_insert_default().found = found;
            }
            return true;
        }
        if found.is_none() && found_then.is_some() && self.needs_facts() {
            self.facts.miss_state();
            self.facts.want_proof(now, template);
        }
        found.is_some() && found == found_then
    }

    /// What a text does, as far as it tells, and its template.
    pub(crate) fn effect_of(&mut self, text: &[u8]) -> (Effect, u32) {
        let text = self.read_text(text, false);
        (text.effect, text.template)
    }
}
