//! Names of results' columns, one list for all connections that get such results.

use std::collections::HashSet;
use std::sync::Arc;

/// Bytes of all lists that are shared, at most; a further one is its connection's own.
const BYTES_MAX: usize = 4 << 20;

/// Lists of names that connections share.
#[derive(Debug, Default)]
pub(super) struct Columns {
    lists: HashSet<Arc<[String]>>,
    bytes: usize,
}

impl Columns {
    /// The list of these names.
    pub(super) fn intern(&mut self, names: &[&[u8]]) -> Arc<[String]> {
        let names: Vec<String> =
            names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        if let Some(known) = self.lists.get(names.as_slice()) {
            return Arc::clone(known);
        }
        let bytes: usize = names.iter().map(|name| size_of::<String>() + name.len()).sum();
        let list: Arc<[String]> = names.into();
        if self.bytes + bytes <= BYTES_MAX {
            self.bytes += bytes;
            self.lists.insert(Arc::clone(&list));
        }
        list
    }
}
