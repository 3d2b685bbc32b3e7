//! Results that are read in pieces, as far as the tests need them.

use std::collections::{HashMap, HashSet};

use super::{columns, complete, error, message};

/// The one result that there is, and where each portal stands in it.
#[derive(Debug)]
pub(crate) struct Walks {
    pub(crate) rows: u32,
    /// Length of a value, in bytes.
    pub(crate) width: usize,
    /// This row fails.
    pub(crate) fails_at: Option<u32>,
    /// Type of the columns.
    pub(crate) oid: u32,
    /// Whether cursors go backward.
    pub(crate) is_scrollable: bool,
    /// Pieces that were read.
    pub(crate) pieces: u32,
    pub(crate) places: HashMap<Vec<u8>, u32>,
    pub(crate) failed: HashSet<Vec<u8>>,
}

impl Default for Walks {
    fn default() -> Self {
        Self {
            rows: 95,
            width: 1,
            fails_at: None,
            oid: 25,
            is_scrollable: true,
            pieces: 0,
            places: HashMap::new(),
            failed: HashSet::new(),
        }
    }
}

impl Walks {
    pub(crate) fn opens(&mut self, portal: &[u8]) {
        self.places.insert(portal.to_vec(), 0);
        self.failed.remove(portal);
    }

    /// A text that reads the result.
    pub(crate) fn is_walk(text: &str) -> bool {
        text.contains("FROM emp WHERE walked")
    }

    pub(crate) fn describes(&self) -> Vec<u8> {
        let mut body = [&1u16.to_be_bytes()[..], b"name\0", &[0; 6]].concat();
        body.extend_from_slice(&self.oid.to_be_bytes());
        body.extend_from_slice(&[0xff; 6]);
        body.extend_from_slice(&[0; 2]);
        message(b'T', &body)
    }

    /// The next rows of a portal, without what ends them. Returns how many, or the error.
    pub(crate) fn reads(&mut self, portal: &[u8], limit: u32, said: &mut Vec<u8>) -> Result<u32, Vec<u8>> {
        let Some(place) = self.places.get_mut(portal) else {
            return Err(error("ERROR", "34000", "portal does not exist"));
        };
        if self.failed.contains(portal) {
            return Err(error("ERROR", "55000", "portal cannot be run"));
        }
        self.pieces += 1;
        let wanted = if limit == 0 { u32::MAX } else { limit };
        let mut count = 0;
        while count < wanted && *place < self.rows {
            *place += 1;
            if self.fails_at == Some(*place) {
                self.failed.insert(portal.to_vec());
                return Err(error("ERROR", "22012", "division by zero"));
            }
            let value = format!("{:01$}", *place, self.width);
            said.extend(columns(&[Some(value.as_bytes())]));
            count += 1;
        }
        Ok(count)
    }

    /// What ends a piece of so many rows.
    pub(crate) fn ends(count: u32, limit: u32) -> Vec<u8> {
        if limit > 0 && count == limit { message(b's', b"") } else { complete(&format!("SELECT {count}")) }
    }
}
