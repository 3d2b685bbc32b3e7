//! Labels of work, and the requests of each.

use std::collections::HashMap;

use crate::ScopeTotals;

/// Scopes counted apart, at most; further ones are counted as work without a scope.
const SCOPES_MAX: usize = 10_000;
/// Requests told apart in all scopes, at most.
const REQUESTS_MAX: usize = 1_000_000;

/// Labels of work under one id each; zero is work without a scope.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    ids: HashMap<Box<str>, u32>,
    list: Vec<Scope>,
    /// Requests of all scopes.
    requests: usize,
    /// Some label has no id of its own.
    is_full: bool,
}

#[derive(Debug, Default)]
struct Scope {
    totals: ScopeTotals,
    /// Trips by request.
    requests: HashMap<u64, u32>,
}

impl Scopes {
    /// The id of a label: zero for work without one, and where there are too many.
    pub(super) fn intern(&mut self, label: &[u8]) -> u32 {
        self.scope_mut(0);
        let label = String::from_utf8_lossy(label);
        if label.is_empty() {
            return 0;
        }
        if let Some(id) = self.ids.get(label.as_ref()) {
            return *id;
        }
        if self.list.len() >= SCOPES_MAX {
            self.is_full = true;
            return 0;
        }
        let id = self.list.len() as u32;
        let totals = ScopeTotals { label: label.clone().into_owned(), ..ScopeTotals::default() };
        self.list.push(Scope { totals, requests: HashMap::new() });
        self.ids.insert(label.into(), id);
        id
    }

    /// A trip of this scope and request is over.
    pub(super) fn add_trip(&mut self, id: u32, request: u64, waited_ns: u64) {
        let totals = &mut self.scope_mut(id).totals;
        totals.trips += 1;
        totals.waited_ns += waited_ns;
        if let Some(trips) = self.request_mut(id, request) {
            *trips += 1;
        }
    }

    /// Statements of this scope and request were run. Returns whether both are told apart.
    pub(super) fn add_statements(&mut self, id: u32, request: u64, count: u64) -> bool {
        self.scope_mut(id).totals.statements += count;
        let is_told = request == 0 || self.request_mut(id, request).is_some();
        is_told && (id != 0 || !self.is_full)
    }

    pub(super) fn label(&self, id: u32) -> String {
        self.list.get(id as usize).map(|scope| scope.totals.label.clone()).unwrap_or_default()
    }

    /// What all scopes spent, most trips first.
    pub(super) fn totals(&self) -> Vec<ScopeTotals> {
        let used = self.list.iter().filter(|scope| scope.totals.trips + scope.totals.statements > 0);
        let mut totals: Vec<_> = used.map(Scope::totals).collect();
        totals.sort_by(|a, b| (b.trips, &a.label).cmp(&(a.trips, &b.label)));
        totals
    }

    fn scope_mut(&mut self, id: u32) -> &mut Scope {
        if self.list.is_empty() {
            self.list.push(Scope::default());
        }
        &mut self.list[id as usize]
    }

    /// Trips of a request, for adding to them; `None` for none, and where there are too many.
    fn request_mut(&mut self, id: u32, request: u64) -> Option<&mut u32> {
        if request == 0 {
            return None;
        }
        let is_full = self.requests >= REQUESTS_MAX;
        let is_new = !self.scope_mut(id).requests.contains_key(&request);
        if is_new && is_full {
            return None;
        }
        self.requests += usize::from(is_new);
        Some(self.scope_mut(id).requests.entry(request).or_default())
    }
}

impl Scope {
    fn totals(&self) -> ScopeTotals {
        let mut trips: Vec<u64> = self.requests.values().map(|trips| u64::from(*trips)).collect();
        trips.sort_unstable();
        ScopeTotals {
            requests: trips.len() as u64,
            request_trips_median: trips.get(trips.len() / 2).copied().unwrap_or_default(),
            request_trips_max: trips.last().copied().unwrap_or_default(),
            ..self.totals.clone()
        }
    }
}
