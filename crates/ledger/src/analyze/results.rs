use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::OnceLock;

use super::event::{Event, Run};
use crate::Moment;

/// Results of one connection that a loop may walk; one per template, so that a loop's body does not push out its source.
const KEPT_PER_CONNECTION: usize = 32;
/// Results of all connections that another connection's loop may walk.
const KEPT_GLOBALLY: usize = 64;
/// Most values kept per connection.
const VALUES_MAX: usize = 256 * 1024;

/// Rows of an earlier result, as far as their columns may be keys.
#[derive(Debug)]
pub(super) struct ResultSet {
    /// The same for all pieces of a result that was fetched in pieces.
    pub(super) id: u64,
    pub(super) template: u32,
    pub(super) request: u64,
    pub(super) completed_at: Moment,
    pub(super) columns: Arc<[String]>,
    pub(super) width: usize,
    values: Vec<u32>,
    /// Cells ordered by value, then position: made when the first loop looks.
    index: OnceLock<Vec<(u32, u32)>>,
}

impl ResultSet {
    /// Rows at or after `from` whose column `column` has this value.
    pub(super) fn rows_with(&self, value: u32, column: usize, from: usize) -> Option<usize> {
        self.cells(value)
            .map(|cell| (cell / self.width, cell % self.width))
            .find_map(|(row, found)| (found == column && row >= from).then_some(row))
    }

    /// Whether any cell has this value.
    pub(super) fn has(&self, value: u32) -> bool {
        self.cells(value).next().is_some()
    }

    /// Whether the cell at `row` and `column` has this value.
    pub(super) fn is(&self, row: usize, column: usize, value: u32) -> bool {
        self.values.get(row * self.width + column) == Some(&value)
    }

    fn cells(&self, value: u32) -> impl Iterator<Item = usize> {
        let index = self.index.get_or_init(|| {
            let mut cells: Vec<_> =
                self.values.iter().zip(0u32..).map(|(value, cell)| (*value, cell)).collect();
            cells.sort_unstable();
            cells
        });
        let start = index.partition_point(|(found, _)| *found < value);
        index[start..].iter().take_while(move |(found, _)| *found == value).map(|(_, cell)| *cell as usize)
    }
}

/// The latest results that a loop's parameters may come from.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// Latest first.
    results: VecDeque<Arc<ResultSet>>,
    values: usize,
}

impl Recent {
    /// Latest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<ResultSet>> {
        self.results.iter()
    }

    fn put(&mut self, result: Arc<ResultSet>, kept: usize, same: impl Fn(&ResultSet) -> bool) {
        if let Some(position) = self.results.iter().position(|old| same(old)) {
            self.remove(position);
        }
        self.values += result.values.len();
        self.results.push_front(result);
        while self.results.len() > kept || (self.values > VALUES_MAX && self.results.len() > 1) {
            self.remove(self.results.len() - 1);
        }
    }

    fn remove(&mut self, position: usize) {
        if let Some(old) = self.results.remove(position) {
            self.values -= old.values.len();
        }
    }
}

/// Keeps what results may be walked, on their own connection and from others.
#[derive(Debug, Default)]
pub(super) struct ResultStore {
    next_id: u64,
    pub(super) everywhere: Recent,
}

impl ResultStore {
    /// Keeps the result of `run` where it has rows to walk.
    pub(super) fn keep(&mut self, own: &mut Recent, event: &Event<'_>, run: &Run<'_>) {
        let width = usize::from(run.statement.key_columns);
        let Some(columns) = run.columns.filter(|columns| width > 0 && columns.len() == width) else { return };
        let earlier = run.continues().then(|| own.iter().find(|old| old.template == run.template)).flatten();
        let (id, mut values) = match earlier {
            Some(earlier) if earlier.width == width => (earlier.id, earlier.values.clone()),
            _ => {
                self.next_id += 1;
                (self.next_id, Vec::new())
            }
        };
        values.extend_from_slice(run.results);
        values.truncate(VALUES_MAX / width * width);
        if values.len() < 2 * width {
            return;
        }
        let result = Arc::new(ResultSet {
            id,
            template: run.template,
            request: event.exchange.request,
            completed_at: event.exchange.last_reply_at,
            columns: Arc::clone(columns),
            width,
            values,
            index: OnceLock::new(),
        });
        let template = run.template;
        self.everywhere.put(Arc::clone(&result), KEPT_GLOBALLY, |old| old.id == id);
        own.put(result, KEPT_PER_CONNECTION, |old| old.template == template);
    }
}
