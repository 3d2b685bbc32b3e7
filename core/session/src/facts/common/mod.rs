//! What the sessions of one gateway share.

mod descriptions;
mod fence;

use std::sync::{Mutex, PoisonError};

use onetrip_loops::Edges;

use super::Knowledge;
use crate::tally::Tally;

pub(crate) use descriptions::{Asked, Description, Descriptions, Said, key};
pub(crate) use fence::CONFIRMED_WITHIN;
pub use fence::Fence;

/// What the sessions of one gateway share.
#[derive(Debug, Default)]
pub struct Common {
    /// What is known of its databases.
    pub knowledge: Knowledge,
    /// What was answered and is not over.
    pub fence: Fence,
    /// What its sessions have spent.
    pub tally: Tally,
    /// Which statements take their values from which results.
    pub(crate) edges: Mutex<Edges>,
    /// How its servers describe statements.
    pub(crate) descriptions: Descriptions,
}

impl Common {
    /// What its sessions have learnt about loops: hints alone, for what a program gets is decided without them.
    pub fn learned(&self) -> Edges {
        self.edges.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes over what others have learnt, for transactions that begin from now on.
    pub fn learn(&self, edges: &Edges) {
        self.edges.lock().unwrap_or_else(PoisonError::into_inner).absorb(edges);
    }
}
