//! Which statements are proven to only read, and what has to be looked up for that.

use std::sync::Arc;

use onetrip_ledger::Moment;
use onetrip_sql::purity::{self, Catalogue, Columns, Impure, Needs, ObjectName, Pure, Wanted};
use onetrip_wire::pg::Oid;

use super::{Database, Facts, Stamp, State};
use crate::rules::Rule;

/// Templates that may wait for their proof; with more, none is proven.
pub(crate) const UNPROVEN_MAX: usize = 64;
/// Templates of one session whose verdict is kept.
const TEMPLATES_MAX: usize = 4096;
/// Bytes of texts that wait to be looked into.
const TEXTS_BYTES_MAX: usize = 1024 * 1024;

/// What is known of a template.
#[derive(Debug, Default)]
pub(super) enum Statement {
    /// Its text was not seen, or there was no room for it.
    #[default]
    Unseen,
    /// It was not looked into.
    Seen {
        text: Box<[u8]>,
        /// It was met by [`Facts::comes_again`].
        was_met: bool,
    },
    Reads {
        needs: Arc<Needs>,
        judged: Option<Judged>,
    },
    /// Its text tells that it may do more than read.
    Unsafe(Arc<Impure>),
}

/// Tables by the names that a statement uses, and their columns.
pub(crate) type Tables = Vec<(ObjectName, Arc<Columns>)>;

/// A verdict, and what it rests on.
#[derive(Debug)]
pub(super) struct Judged {
    verdict: Result<Arc<Pure>, Arc<Impure>>,
    /// The oldest of what is known of its names.
    stamp: Stamp,
    search_path: Arc<[Box<str>]>,
}

/// Whether a statement does nothing but read the snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Reads,
    /// It may do more.
    MayAct,
    /// Something has to be looked up first.
    Open,
}

impl Facts {
    /// A statement of this template goes to the server, and only reads if the catalogue says so.
    pub(crate) fn read(&mut self, template: u32) {
        if !self.unproven.contains(&template) && self.unproven.len() <= UNPROVEN_MAX {
            self.unproven.push(template);
        }
    }

    /// A text of a statement that may only read: it is looked into when that matters.
    pub(crate) fn see(&mut self, template: u32, text: &[u8]) {
        let position = template as usize;
        if template == 0 || position >= TEMPLATES_MAX {
            return;
        }
        if self.statements.len() <= position {
            self.statements.resize_with(position + 1, Statement::default);
        }
        if let (Statement::Unseen, true) =
            (&self.statements[position], self.texts_bytes + text.len() <= TEXTS_BYTES_MAX)
        {
            self.texts_bytes += text.len();
            self.statements[position] = Statement::Seen { text: text.into(), was_met: false };
        }
    }

    /// Whether this was asked of the template before, or its text needs not be looked into any more.
    pub(crate) fn comes_again(&mut self, template: u32) -> bool {
        match self.statements.get_mut(template as usize) {
            Some(Statement::Seen { was_met, .. }) => std::mem::replace(was_met, true),
            _ => true,
        }
    }

    /// Looks into the text of a template, once.
    fn look_into(&mut self, template: u32) -> Option<&mut Statement> {
        let statement = self.statements.get_mut(template as usize)?;
        if let Statement::Seen { text, .. } = statement {
            self.texts_bytes -= text.len();
            let text = std::str::from_utf8(text).map_err(|_| Impure::NotParsed);
            let needs = text.and_then(purity::read);
            *statement = match needs.map(|needs| (needs.refusal(), needs)) {
                Ok((None, needs)) => Statement::Reads { needs: Arc::new(needs), judged: None },
                Ok((Some(because), _)) | Err(because) => Statement::Unsafe(Arc::new(because)),
            };
        }
        Some(statement)
    }

    /// What the text of this template leaves open, if it may only read.
    pub(crate) fn needs_of(&mut self, template: u32) -> Option<Arc<Needs>> {
        match self.look_into(template)? {
            Statement::Reads { needs, .. } => Some(Arc::clone(needs)),
            Statement::Unseen | Statement::Seen { .. } | Statement::Unsafe(_) => None,
        }
    }

    /// Why statements of this template are not proven to only read, as far as that was looked at.
    pub(crate) fn impure(&self, template: u32) -> Option<Arc<Impure>> {
        if self.changes.acts_unrun() {
            return Some(Arc::new(Impure::ActsUnrun));
        }
        match self.statements.get(template as usize)? {
            Statement::Unsafe(because) => Some(Arc::clone(because)),
            Statement::Reads { judged, .. } => judged.as_ref()?.verdict.clone().err(),
            Statement::Unseen | Statement::Seen { .. } => None,
        }
    }

    /// The trace is told once why a template is not known to only read.
    pub(crate) fn tells_impure(&mut self, template: u32) -> bool {
        self.told_impure.insert(template)
    }

    /// Whether statements of this template are proven to do nothing but read the snapshot, as this session writes them.
    pub(crate) fn verdict(&mut self, now: Moment, template: u32) -> Verdict {
        if !self.settings.are_plain() {
            return Verdict::MayAct;
        }
        let epoch = self.changes.epoch();
        let search_path = match &self.state {
            State::Known(known) => known.search_path.clone(),
            State::Unknown | State::Asked | State::Pooled => None,
        };
        let database = self.database.clone();
        let acts = self.changes.acts(now);
        if acts.is_some_and(|acts| acts.parsed) && Rule::Unrun.is_kept() {
            return Verdict::MayAct;
        }
        let is_told = acts.is_some();
        let (needs, judged) = match self.look_into(template) {
            Some(Statement::Reads { needs, judged }) => (needs, judged),
            Some(Statement::Unsafe(_)) => return Verdict::MayAct,
            Some(Statement::Unseen | Statement::Seen { .. }) | None => return Verdict::MayAct,
        };
        let (Some(search_path), Some(database), true) = (search_path, database, is_told) else {
            return Verdict::Open;
        };
        let holds = judged
            .as_ref()
            .is_some_and(|judged| judged.stamp.is_fresh(now, epoch) && judged.search_path == search_path);
        if !holds {
            let catalogue = database.catalogue();
            let is_fresh = |stamp: Stamp| stamp.is_fresh(now, epoch);
            if !catalogue.wanted(needs, is_fresh).is_empty() {
                return Verdict::Open;
            }
            let Some(stamp) = catalogue.stamps(needs).min_by_key(|stamp| stamp.at) else {
                return Verdict::Open;
            };
            let verdict = catalogue.check(needs, &search_path).map(Arc::new).map_err(Arc::new);
            *judged = Some(Judged { verdict, stamp, search_path });
        }
        match judged {
            Some(Judged { verdict: Ok(_), .. }) => Verdict::Reads,
            Some(_) | None => Verdict::MayAct,
        }
    }

    /// What is known of a statement that is proven to only read.
    pub(crate) fn pure(&self, template: u32) -> Option<&Pure> {
        match self.statements.get(template as usize)? {
            Statement::Reads { judged: Some(Judged { verdict: Ok(pure), .. }), .. } => Some(pure),
            _ => None,
        }
    }

    /// What is known of them as [`Self::verdict`] says. What an open one takes is looked up.
    pub(crate) fn verdict_wanted(&mut self, now: Moment, template: u32) -> Verdict {
        let verdict = self.verdict(now, template);
        if verdict == Verdict::Open {
            self.want_proof(now, template);
        }
        verdict
    }

    /// The relations that a statement names which is proven to only read, by object id.
    pub(crate) fn relations_of(&self, template: u32) -> Option<Arc<[Oid]>> {
        Some(self.pure(template)?.named.iter().map(|(_, oid)| *oid).collect())
    }

    /// Statements of this template are worth a proof: what it takes is looked up.
    pub(crate) fn want_proof(&mut self, now: Moment, template: u32) {
        let epoch = self.changes.epoch();
        let Some(needs) = self.needs_of(template) else { return };
        let is_fresh = |stamp: Stamp| stamp.is_fresh(now, epoch) && !stamp.is_aging(now);
        let wanted = match &self.database {
            Some(database) => database.catalogue().wanted(&needs, is_fresh),
            None => Catalogue::<Stamp>::default().wanted(&needs, is_fresh),
        };
        self.want(wanted);
        self.want_acts(now);
    }

    /// Templates that were sent and are not yet proven to only read; they are to be put back where they are still open.
    pub(crate) fn take_unproven(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.unproven)
    }

    /// The same, put back.
    pub(crate) fn put_unproven(&mut self, unproven: Vec<u32>) {
        self.unproven = unproven;
    }

    /// All that was sent is worth a proof.
    pub(crate) fn want_proofs(&mut self, now: Moment) {
        for template in self.unproven.clone() {
            self.want_proof(now, template);
        }
    }

    /// Something else is to be looked up.
    pub(crate) fn want(&mut self, wanted: Wanted) {
        if !wanted.is_empty() {
            self.wanted.add(wanted);
        }
    }

    /// How often something was sent that may have changed the session's state.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether a function of a user may know cursors by their names. Where that is not known, it is looked up.
    pub(crate) fn moves_cursors(&mut self, now: Moment) -> Option<bool> {
        let epoch = self.changes.epoch();
        let database = Arc::clone(self.database.as_ref()?);
        let wanted = database.catalogue().wanted_cursors(|stamp| stamp.is_fresh(now, epoch));
        if wanted.is_empty() {
            return Some(database.catalogue().moves_cursors());
        }
        self.want(wanted);
        None
    }

    /// Whether a function of a user may take strong locks. Where that is not known, it is looked up.
    pub(crate) fn takes_locks(&mut self, now: Moment) -> Option<bool> {
        self.want_acts(now);
        self.changes.acts(now).map(|acts| acts.called)
    }

    /// What functions of users may do is looked up, unless it is known.
    pub(crate) fn want_acts(&mut self, now: Moment) {
        if self.changes.wants_acts(now) {
            self.want(Wanted::of_acts());
        }
    }

    /// The tables that a statement names which is proven to only read, each with its columns. `None` while columns have
    /// to be looked up.
    ///
    /// # Errors
    ///
    /// A setting may shape a row of a view that it reads, or a row may fail.
    pub(crate) fn tables_of(&mut self, now: Moment, template: u32) -> Result<Option<Tables>, ()> {
        let Some(pure) = self.pure(template).filter(|pure| pure.has_steady_views) else { return Err(()) };
        let (named, epoch) = (pure.named.clone(), self.changes.epoch());
        let Some(database) = self.database.clone() else { return Ok(None) };
        let oids: Vec<Oid> = named.iter().map(|(_, oid)| *oid).collect();
        let wanted = database.catalogue().wanted_columns(&oids, |stamp| stamp.is_fresh(now, epoch));
        if !wanted.is_empty() {
            self.want(wanted);
            return Ok(None);
        }
        let catalogue = database.catalogue();
        let with_columns = |(name, oid): (ObjectName, Oid)| Some((name, Arc::clone(catalogue.columns(oid)?)));
        named.into_iter().map(with_columns).collect::<Option<Tables>>().map(Some).ok_or(())
    }

    /// Whether anything is to be looked up.
    pub(crate) fn wants_lookup(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// What is to be looked up; it is asked for now.
    pub(crate) fn take_wanted(&mut self) -> Wanted {
        std::mem::take(&mut self.wanted)
    }

    /// What is known of the database, once that is known.
    pub(crate) fn database(&self) -> Option<&Arc<Database>> {
        self.database.as_ref()
    }

    /// The columns of a relation, as they were once.
    pub(crate) fn columns(&self, relation: Oid) -> Option<Arc<Columns>> {
        self.database.as_ref()?.catalogue().columns(relation).cloned()
    }

    /// Has the columns of a relation looked up that were never known.
    pub(crate) fn want_columns(&mut self, relation: Oid) {
        let wanted = match &self.database {
            Some(database) => database.catalogue().wanted_columns(&[relation], |_| true),
            None => Catalogue::<Stamp>::default().wanted_columns(&[relation], |_| true),
        };
        self.want(wanted);
    }
}
