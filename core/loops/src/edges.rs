//! All that is learned about loops.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use smallvec::SmallVec;

use crate::edge::{Edge, Walk};

/// Edges that are kept.
pub const EDGES_MAX: usize = 1024;

/// Edges of one template that are kept.
const PER_TEMPLATE_MAX: usize = 8;

/// Which statements follow from which results: keyed by the templates' stable keys, so that what one session learnt
/// is good for another. A plain value: clone it, or [`Edges::absorb`] another.
#[derive(Debug, Clone, Default)]
pub struct Edges {
    edges: Vec<Edge>,
    by_target: HashMap<u64, SmallVec<[u32; 4]>, RandomState>,
    by_origin: HashMap<u64, SmallVec<[u32; 4]>, RandomState>,
}

impl Edges {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.edges.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    /// Whether statements of `to` are known to walk the rows of `from`.
    pub fn is_known(&self, from: u64, to: u64) -> bool {
        self.of_target(to)
            .iter()
            .any(|edge| self.get(*edge).is_some_and(|edge| edge.from == from && edge.is_confirmed))
    }

    /// Takes over what `other` has confirmed and knows more about. Doing it again changes nothing.
    pub fn absorb(&mut self, other: &Self) {
        for edge in other.edges.iter().filter(|edge| edge.is_confirmed) {
            match self.find(edge.from, edge.to, edge.walk) {
                None => _ = self.insert(edge.clone()),
                Some(mine) => {
                    let mine = &mut self.edges[mine as usize];
                    if !mine.is_confirmed || mine.history.weight() < edge.history.weight() {
                        *mine = edge.clone();
                    }
                }
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Edge> {
        self.edges.iter()
    }

    /// Adds one; `None` if there are too many.
    pub(crate) fn insert(&mut self, edge: Edge) -> Option<u32> {
        if self.is_full(edge.to) {
            return None;
        }
        let position = self.edges.len() as u32;
        self.by_target.entry(edge.to).or_default().push(position);
        self.by_origin.entry(edge.from).or_default().push(position);
        self.edges.push(edge);
        Some(position)
    }

    /// Whether no more edges to this template can be kept.
    pub(crate) fn is_full(&self, to: u64) -> bool {
        self.edges.len() >= EDGES_MAX || self.of_target(to).len() >= PER_TEMPLATE_MAX
    }

    /// Puts an edge to the same template in the place of one that came to nothing.
    pub(crate) fn replace(&mut self, position: u32, edge: Edge) {
        let Some(old) = self.edges.get_mut(position as usize) else {
            return;
        };
        let (old_from, new_from) = (old.from, edge.from);
        *old = edge;
        if let Some(of_origin) = self.by_origin.get_mut(&old_from) {
            of_origin.retain(|other| *other != position);
        }
        self.by_origin.entry(new_from).or_default().push(position);
    }

    /// Makes room where too much of what was seen once came to nothing. Positions change: no loop may be running.
    pub fn tidy(&mut self) {
        let is_crowded = self.edges.len() >= EDGES_MAX / 2
            || self.by_target.values().any(|edges| edges.len() >= PER_TEMPLATE_MAX);
        if !is_crowded {
            return;
        }
        let mut kept = std::mem::take(self).edges;
        kept.retain(|edge| edge.is_confirmed);
        if kept.len() >= EDGES_MAX / 2 {
            kept.sort_by_key(|edge| std::cmp::Reverse(edge.history.weight()));
            kept.truncate(EDGES_MAX / 4);
        }
        for edge in kept {
            self.insert(edge);
        }
    }

    pub(crate) fn get(&self, position: u32) -> Option<&Edge> {
        self.edges.get(position as usize)
    }

    pub(crate) fn get_mut(&mut self, position: u32) -> Option<&mut Edge> {
        self.edges.get_mut(position as usize)
    }

    pub(crate) fn find(&self, from: u64, to: u64, walk: Walk) -> Option<u32> {
        self.of_target(to)
            .iter()
            .copied()
            .find(|position| self.get(*position).is_some_and(|edge| edge.from == from && edge.walk == walk))
    }

    /// Edges to a template.
    pub(crate) fn of_target(&self, to: u64) -> &[u32] {
        self.by_target.get(&to).map_or(&[], |edges| edges)
    }

    /// Edges from a template's rows.
    pub(crate) fn of_origin(&self, from: u64) -> &[u32] {
        self.by_origin.get(&from).map_or(&[], |edges| edges)
    }
}
