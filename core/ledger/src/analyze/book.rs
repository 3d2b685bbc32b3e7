use std::collections::{BTreeMap, BTreeSet, HashMap};

use onetrip_sql::StatementKind;

use super::client::{Client, Unsettled};
use super::spots::Spots;
use super::templates::Templates;
use crate::findings::{Code, Evidence, Finding, Would};
use crate::{Driver, Mutes, Obstacle};

/// Times that a pattern has to be seen where one time may be chance.
const OCCURRENCES_MIN: u64 = 3;
/// Avoidable trips that make sequences of independent reads worth a word.
const GROUPED_MIN: u64 = 5;

/// What a finding is counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) code: Code,
    /// Template that is run too often, zero where the finding is not about one.
    pub(super) template: u32,
    /// Template of the loop's source, or zero.
    pub(super) source: u32,
    pub(super) client: Client,
}

/// One sighting of a pattern.
#[derive(Debug, Clone)]
pub(super) struct Sighting {
    pub(super) scope: u32,
    /// Some of its exchanges.
    pub(super) spots: Spots,
    pub(super) occurrences: u64,
    pub(super) trips: u64,
    pub(super) avoidable: u64,
    /// Time that all its trips took, in nanoseconds.
    pub(super) waited_ns: u64,
    /// The path's part of it.
    pub(super) wire_ns: u64,
    pub(super) evidence: Evidence,
    pub(super) fate: Fate,
}

/// What became of a pattern's trips.
#[derive(Debug, Clone, Default)]
pub(super) struct Fate {
    /// Taken out by remedies.
    pub(super) removed: u64,
    /// What remedies would have taken out, where they were off.
    pub(super) would: Would,
    /// Left, by what kept remedies from them.
    pub(super) left: BTreeMap<Obstacle, u64>,
}

impl Fate {
    /// One more trip is left.
    pub(super) fn leave(&mut self, obstacle: Option<Obstacle>) {
        if let Some(obstacle) = obstacle {
            *self.left.entry(obstacle).or_default() += 1;
        }
    }

    pub(super) fn merge(&mut self, more: Self) {
        self.removed += more.removed;
        self.would.add(more.would);
        for (obstacle, trips) in more.left {
            *self.left.entry(obstacle).or_default() += trips;
        }
    }
}

#[derive(Debug)]
struct Entry {
    sighting: Sighting,
    scopes: BTreeSet<u32>,
}

/// All findings so far, one entry per pattern, statement and driver.
#[derive(Debug, Default)]
pub(super) struct Book {
    entries: HashMap<Key, Entry>,
    unsettled: Unsettled,
}

impl Book {
    /// Adds a sighting to its entry.
    pub(super) fn add(&mut self, key: Key, sighting: Sighting) {
        let scope = sighting.scope;
        match self.entries.get_mut(&key) {
            Some(entry) => entry.sighting.merge(sighting),
            None => {
                self.unsettled.added(&key);
                self.entries.insert(key, Entry { sighting, scopes: BTreeSet::new() });
            }
        }
        if let Some(entry) = self.entries.get_mut(&key).filter(|_| scope != 0) {
            if entry.scopes.len() < Finding::SCOPES_MAX {
                entry.scopes.insert(scope);
            }
        }
    }

    /// The connection turns out to be this driver's: what was booked under it is the driver's.
    pub(super) fn settle(&mut self, number: u32, driver: Driver) {
        for (from, to) in self.unsettled.settle(number, driver) {
            let Some(Entry { sighting, scopes }) = self.entries.remove(&from) else { continue };
            match self.entries.get_mut(&to) {
                Some(entry) => {
                    entry.sighting.merge(sighting);
                    let room = Finding::SCOPES_MAX.saturating_sub(entry.scopes.len());
                    entry.scopes.extend(scopes.into_iter().take(room));
                }
                None => {
                    self.entries.insert(to, Entry { sighting, scopes });
                }
            }
        }
    }

    /// The findings that are worth a word, most avoidable time first, without those that `mutes` names.
    pub(super) fn findings(
        &self,
        templates: &Templates,
        scope: impl Fn(u32) -> String,
        mutes: &Mutes,
    ) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self
            .entries
            .iter()
            .filter(|(key, entry)| entry.sighting.avoidable > 0 && self.is_enough(key, entry))
            .map(|(key, entry)| entry.finding(key, templates, &scope))
            .filter(|finding| !mutes.mutes(finding))
            .collect();
        findings.sort_by(|a, b| {
            let rank = |finding: &Finding| (std::cmp::Reverse(finding.waited_ns), finding.code);
            rank(a).cmp(&rank(b)).then_with(|| a.statements.cmp(&b.statements))
        });
        findings
    }

    /// Whether there is enough of a pattern to be sure of it. What is seen once per page or request is counted over all
    /// statements of the driver.
    fn is_enough(&self, key: &Key, entry: &Entry) -> bool {
        let same = |other: &Key| other.code == key.code && other.client == key.client;
        let total = || {
            let entries = self.entries.iter().filter(|(other, _)| same(other));
            entries.map(|(_, entry)| entry.sighting.avoidable).sum::<u64>()
        };
        match key.code {
            Code::Sequence => total() >= GROUPED_MIN,
            Code::RollbackOfRead => total() >= OCCURRENCES_MIN,
            Code::ReadBeforeWrite | Code::SequenceTrip | Code::ExistsThenInsert => {
                entry.sighting.avoidable >= OCCURRENCES_MIN
            }
            _ => true,
        }
    }
}

impl Sighting {
    /// Adds another sighting of the same pattern.
    pub(super) fn merge(&mut self, more: Self) {
        self.spots.extend(more.spots);
        self.occurrences += more.occurrences;
        self.trips += more.trips;
        self.avoidable += more.avoidable;
        self.waited_ns += more.waited_ns;
        self.wire_ns += more.wire_ns;
        self.evidence.merge(more.evidence);
        self.fate.merge(more.fate);
    }
}

impl Entry {
    fn finding(&self, key: &Key, templates: &Templates, scope: impl Fn(u32) -> String) -> Finding {
        let Sighting { occurrences, trips, avoidable, waited_ns, wire_ns, .. } = self.sighting;
        let Sighting { evidence, fate, spots, .. } = &self.sighting;
        let share = |time: u64| (u128::from(time) * u128::from(avoidable) / u128::from(trips.max(1))) as u64;
        let statements = [key.template, key.source]
            .into_iter()
            .filter(|id| *id != 0)
            .map(|id| templates.text(id))
            .collect();
        let driver = key.client.driver();
        let is_worker = key.code == Code::ReadBeforeWrite && templates.facts(key.template).skips_locked;
        let fix = match templates.facts(key.template).kind {
            _ if is_worker => driver.fix_of_worker(),
            StatementKind::Update | StatementKind::Delete => driver.fix_of_changes(key.code),
            _ => driver.fix(key.code),
        };
        let is_impure = fate.left.contains_key(&Obstacle::Impure);
        Finding {
            code: key.code,
            statements,
            driver,
            scopes: self.scopes.iter().map(|id| scope(*id)).collect(),
            occurrences,
            trips,
            avoidable,
            removed: fate.removed,
            would: fate.would,
            left: fate.left.clone(),
            impure: templates.impure(key.template).filter(|_| is_impure).map(str::to_owned),
            waited_ns: share(waited_ns),
            wire_ns: share(wire_ns),
            evidence: evidence.clone(),
            spots: spots.to_vec(),
            sites: Vec::new(),
            fix: fix.to_owned(),
        }
    }
}
