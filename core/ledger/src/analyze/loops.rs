//! OT001: proves that parameters walk the rows of an earlier result.
//!
//! The rule is a joint match over at least three consecutive runs of one template. All parameters that vary come from one and
//! the same row of one earlier result, each from a fixed column, and the rows increase. One equal small number proves
//! nothing, and three small numbers in order prove little: any list has the ids 1, 2, 3. So the names of columns and tables must
//! say that a parameter is meant for what the column has. The result must be at hand: of the same request or transaction, or
//! not many exchanges ago. Where the names tell nothing, the loop must begin right behind the result and leave no row out. What
//! pages through a result (LIMIT, OFFSET, the last key seen) proves nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;

use super::book::{Book, Fate, Key, Sighting};
use super::claims::{Claims, TripNumber};
use super::client::{Client, Unsettled};
use super::event::{Event, Place, Run};
use super::hash::Table;
use super::relations::{Relation, relation};
use super::results::{Recent, ResultSet};
use super::spots::Spots;
use super::templates::{Named, Templates};
use super::would::Reach;
use crate::findings::{Code, Evidence, Spot};
use crate::{Driver, Moment, Obstacle};

/// Runs that a proof needs.
const PROOF_RUNS: usize = 3;
/// Runs of a template that are remembered while no source is known.
const HISTORY: usize = 16;
/// How far ahead of the last matched row the next one may be: loops that skip rows skip few.
const STRIDE_MAX: usize = 32;
/// Other exchanges that a loop's body may have between two rows, and that may come between the result and its loop: where a
/// foreign key says what is meant, where one table's own key does, and what may come before the loop where no name does.
const BODY_OF_REFERENCE: u64 = 64;
const BODY_MAX: u64 = 16;
const APART_MAX: u64 = 3;
/// After so many runs without a source, looking for one costs more than it finds: look every fourth time.
const EAGER_RUNS: u64 = 12;
/// Templates followed per connection.
const FOLLOWED_MAX: usize = 512;
/// Runs without a loop of their own that are kept until the end, and walks that they are held against.
const LEFTOVER_MAX: usize = 65_536;
const WALKS_MAX: usize = 16;
/// Rows of a result after which remedies surely foresee the next one: two show the loop, one guess after another shows that it
/// goes on.
const FORESEEN_AFTER: u64 = 4;
/// Results that a loop walked lately, at most.
const INSTANCES_REMEMBERED: usize = 64;
/// A pattern that was broken by more than one in eight matches is chance.
const MATCHES_PER_STRAY: u64 = 8;

/// One run of a reading statement in its own trip, or in none because a remedy answered it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading<'a, 'e> {
    pub(super) event: &'a Event<'e>,
    pub(super) run: &'a Run<'e>,
    pub(super) trip: Option<TripNumber>,
    pub(super) client: Client,
}

/// Whether a run is part of a proven loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Walking {
    No,
    /// With this run the loop is proven.
    Began,
    On,
}

/// Where loops are booked.
#[derive(Debug)]
pub(super) struct Books<'a> {
    pub(super) edges: &'a mut Edges,
    pub(super) claims: &'a mut Claims,
}

/// Loops of one connection.
#[derive(Debug, Default)]
pub(super) struct Loops {
    followed: Table<u32, Followed>,
}

#[derive(Debug, Default)]
struct Followed {
    history: VecDeque<Execution>,
    runs: u64,
    /// Few templates have one.
    walk: Option<Box<Walk>>,
}

#[derive(Debug, Clone)]
struct Execution {
    /// A remedy took it out if there is none.
    trip: Option<TripNumber>,
    obstacle: Option<Obstacle>,
    /// Whether it could have been answered from memory.
    memory: Reach,
    parameters: SmallVec<[u64; 2]>,
    place: Place,
    sent_at: Moment,
    request: u64,
    waited_ns: u64,
    wire_ns: u64,
}

/// A loop that is proven and may go on.
#[derive(Debug, Clone)]
struct Walk {
    source: Arc<ResultSet>,
    /// Which parameter comes from which column.
    sources: Vec<(usize, usize)>,
    first_row: usize,
    last_row: usize,
    /// Rows of this result that the loop took.
    taken: u64,
    last_place: Place,
    relation: Relation,
}

/// Proven patterns of all connections: which template walks which.
#[derive(Debug, Default)]
pub(super) struct Edges {
    edges: Table<Key, Edge>,
    /// Latest walks by the template that was run, for the share of a loop that other connections took.
    walks: Table<u32, VecDeque<(Key, Walk)>>,
    /// With its template, and when its connection was opened.
    leftover: Vec<(u32, Execution, Moment)>,
    unsettled: Unsettled,
}

#[derive(Debug, Default)]
struct Edge {
    scope: u32,
    spots: Spots,
    /// Trips that walked.
    matches: u64,
    fate: Fate,
    strays: u64,
    waited_ns: u64,
    wire_ns: u64,
    /// Results walked, and the latest of them: walks of one result on several connections are one loop.
    instances: u64,
    latest: VecDeque<u64>,
    last_at: Moment,
    longest: Option<Longest>,
}

#[derive(Debug)]
struct Longest {
    first_row: usize,
    last_row: usize,
    sources: Vec<(u16, String)>,
}

impl Edge {
    /// Adds what was booked of the same loop under another key.
    fn merge(&mut self, more: Self) {
        if self.scope == 0 {
            self.scope = more.scope;
        }
        self.spots.extend(more.spots);
        self.matches += more.matches;
        self.fate.merge(more.fate);
        self.strays += more.strays;
        self.waited_ns += more.waited_ns;
        self.wire_ns += more.wire_ns;
        // Walks of one result on several connections are one loop.
        let shared = more.latest.iter().filter(|id| self.latest.contains(id)).count() as u64;
        self.instances += more.instances.saturating_sub(shared);
        self.latest.extend(more.latest);
        self.latest.truncate(INSTANCES_REMEMBERED);
        self.last_at = self.last_at.max(more.last_at);
        let length = |longest: &Longest| longest.last_row - longest.first_row;
        if more.longest.as_ref().map(length) > self.longest.as_ref().map(length) {
            self.longest = more.longest;
        }
    }
}

impl Loops {
    /// Takes one more run of a reading statement; tells whether it is part of a proven loop.
    pub(super) fn take(
        &mut self,
        reading: Reading<'_, '_>,
        own: &Recent,
        everywhere: &Recent,
        templates: &Templates,
        books: Books<'_>,
    ) -> Walking {
        let Reading { event, run, trip, client } = reading;
        let Books { edges, claims } = books;
        if run.parameters.is_empty() || run.continues() {
            return Walking::No;
        }
        if self.followed.len() >= FOLLOWED_MAX && !self.followed.contains_key(&run.template) {
            self.followed.clear();
        }
        let followed = self.followed.entry(run.template).or_default();
        let execution = Execution {
            trip,
            obstacle: event.obstacle,
            memory: event.would.memory,
            parameters: SmallVec::from_slice(run.parameters),
            place: event.place,
            sent_at: event.exchange.sent_at,
            request: event.exchange.request,
            waited_ns: event.exchange.duration(),
            wire_ns: event.wire_ns,
        };
        let key = |source: &ResultSet| Key {
            code: Code::Loop,
            template: run.template,
            source: source.template,
            client,
        };
        if followed.goes_on((&execution, event.opened_at), own, edges, &key, event.scope) {
            trip.map(|trip| claims.claim_for_loop(trip));
            return Walking::On;
        }
        followed.remember(execution);
        let is_looked_at = followed.runs <= EAGER_RUNS || followed.runs % 4 == 0;
        if !is_looked_at {
            return Walking::No;
        }
        let likely = [own, everywhere].into_iter().filter(|results| results.may_have(run.parameters));
        let sources = likely.flat_map(Recent::iter).filter(|source| source.template != run.template);
        let proven = sources.into_iter().find_map(|source| followed.prove(source, run.template, templates));
        let Some((mut walk, from)) = proven else { return Walking::No };
        let key = key(&walk.source);
        let known = followed.history.iter().skip(from);
        let mut is_free = |trip| claims.claim_for_loop(trip);
        for execution in known.filter(|execution| execution.trip.is_none_or(&mut is_free)) {
            edges.matched(key, event.scope, &walk, (execution, event.opened_at));
            walk.taken += 1;
        }
        followed.history.clear();
        edges.remember(run.template, key, &walk);
        followed.walk = Some(Box::new(walk));
        Walking::Began
    }

    /// The connection is over: what it ran without a loop of its own may be its share of a loop of several connections.
    pub(super) fn end(&mut self, edges: &mut Edges, claims: &Claims) {
        for (template, followed) in self.followed.drain() {
            let room = LEFTOVER_MAX.saturating_sub(edges.leftover.len());
            let unclaimed = followed
                .history
                .into_iter()
                .filter(|execution| execution.trip.is_some_and(|trip| claims.is_free(trip)))
                .take(room);
            edges.leftover.extend(unclaimed.map(|execution| (template, execution, claims.opened_at())));
        }
    }
}

impl Followed {
    /// Lets a proven loop take its next row, or begin again on a newer result of the same source.
    fn goes_on(
        &mut self,
        (execution, opened_at): (&Execution, Moment),
        own: &Recent,
        edges: &mut Edges,
        key: &impl Fn(&ResultSet) -> Key,
        scope: u32,
    ) -> bool {
        let Some(walk) = self.walk.as_mut().filter(|walk| walk.is_near(execution)) else {
            self.walk = None;
            return false;
        };
        let newer = own.iter().find(|result| result.template == walk.source.template);
        if let Some(newer) = newer.filter(|newer| !Arc::ptr_eq(newer, &walk.source)) {
            let same_result = newer.id == walk.source.id;
            let from = if same_result { walk.last_row } else { 0 };
            if let Some(row) = walk.row_in(newer, execution, from) {
                walk.source = Arc::clone(newer);
                if !same_result {
                    walk.first_row = row;
                    walk.taken = 0;
                }
                walk.take(row, execution);
                edges.matched(key(&walk.source), scope, walk, (execution, opened_at));
                return true;
            }
        }
        let source = Arc::clone(&walk.source);
        if let Some(row) = walk.row_in(&source, execution, walk.last_row) {
            walk.take(row, execution);
            edges.matched(key(&source), scope, walk, (execution, opened_at));
            return true;
        }
        if let Some(row) = walk.row_in(&source, execution, 0) {
            if row <= walk.first_row {
                // The program walks the same rows once more: another loop over one result.
                walk.first_row = row;
                walk.taken = 0;
                walk.take(row, execution);
                edges.began_again(key(&source));
                edges.matched(key(&source), scope, walk, (execution, opened_at));
                return true;
            }
            edges.strayed(key(&source));
        }
        self.walk = None;
        self.runs = 0;
        false
    }

    fn remember(&mut self, execution: Execution) {
        let is_another = |last: &Execution| {
            last.request != execution.request || !is_near(last.place, &execution, BODY_OF_REFERENCE)
        };
        if self.history.back().is_some_and(is_another) {
            self.history.clear();
        }
        self.runs += 1;
        // Before the next one: its room stays as it is.
        if self.history.len() >= HISTORY {
            self.history.pop_front();
        }
        // Many templates are run once or twice: there is no room for more than is there.
        if self.history.len() == self.history.capacity() {
            self.history.reserve_exact(self.history.len().max(1));
        }
        self.history.push_back(execution);
    }

    /// Looks for the longest run of remembered executions, up to the latest, that walks `source`.
    fn prove(&self, source: &Arc<ResultSet>, template: u32, templates: &Templates) -> Option<(Walk, usize)> {
        let latest = self.history.back()?;
        if self.history.len() < PROOF_RUNS || (source.request != 0 && source.request != latest.request) {
            return None;
        }
        if !latest.parameters.iter().any(|value| *value != 0 && source.has(*value as u32)) {
            return None;
        }
        (0..=self.history.len() - PROOF_RUNS).find_map(|from| {
            let walked: Vec<&Execution> = self.history.range(from..).collect();
            if walked[0].sent_at < source.completed_at {
                return None;
            }
            let mut walk = walk(source, &walked)?;
            let names = (templates.named(source.template), templates.named(template));
            walk.relation = meant(&walk, &walked, names)?;
            Some((walk, from))
        })
    }
}

/// How names speak for the walk, if that and the places of the runs are enough for a proof.
fn meant(walk: &Walk, walked: &[&Execution], (lists, reads): (&Named, &Named)) -> Option<Relation> {
    let (first, last) = (walked.first()?, walked.last()?);
    let source = &walk.source;
    let relation_of = |(parameter, column): &(usize, usize)| {
        let column = source.columns.get(*column).map_or("", String::as_str);
        let targets = reads.compared.iter().filter(|(position, _)| position == parameter);
        targets.map(|(_, target)| relation(lists, column, reads, target)).max().unwrap_or(Relation::None)
    };
    let keys = walk.sources.iter().filter(|(parameter, _)| !reads.bounds.contains(parameter));
    // Without a key the rows are paged through.
    let relation = keys.map(relation_of).max()?;
    let is_own = source.place.connection == first.place.connection;
    let in_context = source.request != 0
        || (source.place.shares_transaction(first.place) && first.place.shares_transaction(last.place));
    let body = walked.windows(2).map(|pair| pair[1].place.since(pair[0].place)).max().unwrap_or(0);
    let within = |most: u64| is_own && body <= most && source.unused_for(first.place) <= most;
    let is_proven = match relation {
        Relation::Refers => in_context || !is_own || within(BODY_OF_REFERENCE),
        Relation::Same => in_context || within(BODY_MAX),
        Relation::None => {
            let leaves_none_out = walk.last_row - walk.first_row + 1 == walked.len();
            leaves_none_out && within(BODY_MAX) && source.unused_for(first.place) <= APART_MAX
        }
    };
    is_proven.then_some(relation)
}

/// Whether a run may belong to a loop whose latest run was there.
fn is_near(last: Place, execution: &Execution, body_max: u64) -> bool {
    let in_request = execution.request != 0;
    in_request || last.shares_transaction(execution.place) || execution.place.since(last) <= body_max
}

impl Walk {
    fn is_near(&self, execution: &Execution) -> bool {
        let body_max = if self.relation == Relation::Refers { BODY_OF_REFERENCE } else { BODY_MAX };
        is_near(self.last_place, execution, body_max)
    }

    /// The loop takes a row.
    fn take(&mut self, row: usize, execution: &Execution) {
        self.last_row = row;
        self.taken += 1;
        self.last_place = execution.place;
    }

    /// The row of `source`, not before `from`, that gives all parameters that vary.
    fn row_in(&self, source: &ResultSet, execution: &Execution, from: usize) -> Option<usize> {
        let &(parameter, column) = self.sources.first()?;
        let value =
            |parameter: usize| execution.parameters.get(parameter).copied().filter(|value| *value != 0);
        let mut from = from;
        loop {
            let row = source.rows_with(value(parameter)? as u32, column, from)?;
            let joint = self.sources.iter().all(|(parameter, column)| {
                value(*parameter).is_some_and(|value| source.is(row, *column, value as u32))
            });
            if joint {
                return Some(row);
            }
            from = row + 1;
        }
    }
}

/// The joint match: parameters that vary among `executions`, and a column for each, such that increasing rows give them.
fn walk(source: &Arc<ResultSet>, executions: &[&Execution]) -> Option<Walk> {
    let first = executions.first()?;
    let same_shape = |execution: &&&Execution| execution.parameters.len() == first.parameters.len();
    if !executions.iter().all(|execution| same_shape(&execution)) {
        return None;
    }
    let varies = |parameter: &usize| {
        executions.iter().any(|execution| execution.parameters[*parameter] != first.parameters[*parameter])
    };
    let varying: Vec<usize> = (0..first.parameters.len()).filter(varies).collect();
    let lead = *varying.first()?;
    (0..source.width).find_map(|column| {
        let rows = rows_of(source, executions, lead, column)?;
        let mut sources = vec![(lead, column)];
        for &parameter in &varying[1..] {
            let gives = |column: &usize| {
                executions.iter().zip(&rows).all(|(execution, row)| {
                    let value = execution.parameters[parameter];
                    value != 0 && source.is(*row, *column, value as u32)
                })
            };
            sources.push((parameter, (0..source.width).find(gives)?));
        }
        let (first_row, last_row) = (*rows.first()?, *rows.last()?);
        let (source, last_place) = (Arc::clone(source), executions.last()?.place);
        Some(Walk { source, sources, first_row, last_row, taken: 0, last_place, relation: Relation::None })
    })
}

/// Strictly increasing rows, close to each other, whose `column` gives `parameter` of each execution.
fn rows_of(
    source: &ResultSet,
    executions: &[&Execution],
    parameter: usize,
    column: usize,
) -> Option<Vec<usize>> {
    let mut rows: Vec<usize> = Vec::with_capacity(executions.len());
    for execution in executions {
        let value = execution.parameters[parameter];
        let from = rows.last().map_or(0, |row| row + 1);
        let row = if value == 0 { None } else { source.rows_with(value as u32, column, from) }?;
        if !rows.is_empty() && row >= from + STRIDE_MAX {
            return None;
        }
        rows.push(row);
    }
    Some(rows)
}

impl Edges {
    fn edge(&mut self, key: Key) -> &mut Edge {
        let unsettled = &mut self.unsettled;
        self.edges.entry(key).or_insert_with(|| {
            unsettled.added(&key);
            Edge::default()
        })
    }

    /// The connection turns out to be this driver's.
    pub(super) fn settle(&mut self, number: u32, driver: Driver) {
        for (from, to) in self.unsettled.settle(number, driver) {
            if let Some(edge) = self.edges.remove(&from) {
                self.edges.entry(to).or_default().merge(edge);
            }
            for (key, _) in self.walks.get_mut(&from.template).into_iter().flatten() {
                if *key == from {
                    *key = to;
                }
            }
        }
    }

    fn matched(&mut self, key: Key, scope: u32, walk: &Walk, (execution, opened_at): (&Execution, Moment)) {
        walk.source.used(execution.place);
        let edge = self.edge(key);
        if edge.scope == 0 {
            edge.scope = scope;
        }
        if !edge.latest.contains(&walk.source.id) {
            edge.instances += 1;
            edge.spots.add(Spot { opened_at, sent_at: execution.sent_at });
            edge.latest.push_back(walk.source.id);
            if edge.latest.len() > INSTANCES_REMEMBERED {
                edge.latest.pop_front();
            }
        }
        match execution.trip {
            Some(_) => {
                edge.matches += 1;
                edge.fate.leave(execution.obstacle);
                if walk.taken > FORESEEN_AFTER {
                    edge.fate.would.add(execution.memory.trip());
                }
                edge.waited_ns += execution.waited_ns;
                edge.wire_ns += execution.wire_ns;
            }
            None => edge.fate.removed += 1,
        }
        edge.last_at = edge.last_at.max(execution.sent_at);
        let length = walk.last_row - walk.first_row;
        if edge.longest.as_ref().is_none_or(|longest| longest.last_row - longest.first_row < length) {
            let name = |(parameter, column): &(usize, usize)| {
                (*parameter as u16 + 1, walk.source.columns.get(*column).cloned().unwrap_or_default())
            };
            match &mut edge.longest {
                Some(longest) => {
                    longest.first_row = walk.first_row;
                    longest.last_row = walk.last_row;
                }
                None => {
                    edge.longest = Some(Longest {
                        first_row: walk.first_row,
                        last_row: walk.last_row,
                        sources: walk.sources.iter().map(name).collect(),
                    });
                }
            }
        }
    }

    fn remember(&mut self, template: u32, key: Key, walk: &Walk) {
        let walks = self.walks.entry(template).or_default();
        walks.push_front((key, walk.clone()));
        walks.truncate(WALKS_MAX);
    }

    /// Adds to proven loops what other connections ran of them: too little there to be a proof by itself.
    fn take_leftover(&mut self) {
        for (template, execution, opened_at) in std::mem::take(&mut self.leftover) {
            let walks = self.walks.get(&template).into_iter().flatten();
            let shared = walks.clone().find(|(key, walk)| {
                let last_at = self.edges.get(key).map_or(Moment(0), |edge| edge.last_at);
                // As long after the last run as the whole loop took may be another connection's share.
                let took = last_at.since(walk.source.completed_at);
                execution.sent_at >= walk.source.completed_at
                    && execution.sent_at.0 <= last_at.0.saturating_add(took)
                    && walk.row_in(&walk.source, &execution, 0).is_some()
            });
            if let Some((key, walk)) = shared.cloned() {
                self.matched(key, 0, &walk, (&execution, opened_at));
            }
        }
    }

    fn began_again(&mut self, key: Key) {
        self.edge(key).instances += 1;
    }

    fn strayed(&mut self, key: Key) {
        self.edge(key).strays += 1;
    }

    /// Books what was proven: all rows of a loop but one are avoidable, because one query can answer them all.
    pub(super) fn book(&mut self, book: &mut Book) {
        self.take_leftover();
        for (key, edge) in &self.edges {
            let Some(longest) = &edge.longest else { continue };
            if edge.strays * MATCHES_PER_STRAY > edge.matches + edge.fate.removed {
                continue;
            }
            let rows = (longest.first_row as u64 + 1, longest.last_row as u64 + 1);
            book.add(
                *key,
                Sighting {
                    scope: edge.scope,
                    spots: edge.spots.clone(),
                    occurrences: edge.instances,
                    trips: edge.matches,
                    avoidable: edge.matches.saturating_sub(edge.instances),
                    waited_ns: edge.waited_ns,
                    wire_ns: edge.wire_ns,
                    fate: edge.fate.clone(),
                    evidence: Evidence::Walk { sources: longest.sources.clone(), rows },
                },
            );
        }
    }
}
