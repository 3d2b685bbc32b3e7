//! Histories of transactions that append to lists and read them, and the anomalies in them.
//!
//! Every appended value occurs once, so a list that was read tells which versions came before it (Adya's dependencies, as
//! Elle infers them):
//!
//! | edge | from | to |
//! |---|---|---|
//! | `ww` | who appended a value | who appended the next one |
//! | `wr` | who appended the last value of a list | who read the list |
//! | `rw` | who read a list | who appended the next value |
//! | `real` | who was answered its COMMIT | who began after that |
//!
//! Snapshot isolation with real time forbids each cycle in which no two `rw` follow one another; READ COMMITTED forbids
//! those of `ww` and `wr` alone.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// What a transaction did to a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    Append { list: i64, value: i64 },
    Read { list: i64, values: Vec<i64> },
}

/// One transaction.
#[derive(Debug, Clone)]
pub(crate) struct Transaction {
    pub(crate) operations: Vec<Operation>,
    pub(crate) is_committed: bool,
    /// Before its BEGIN was sent.
    pub(crate) begun: Instant,
    /// After its COMMIT was answered.
    pub(crate) ended: Instant,
}

/// What no isolation level, or not this one, allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Anomaly {
    /// A value that was never committed was read.
    AbortedRead { list: i64, value: i64 },
    /// A list was read in the midst of a transaction that appended more to it.
    IntermediateRead { list: i64, value: i64 },
    /// Two lists that were read cannot be versions of one.
    IncompatibleOrder { list: i64 },
    /// A transaction does not see what it has appended, or loses sight of what it has read.
    Internal { list: i64 },
    /// Transactions, by number, that all come before each other.
    Cycle(Vec<usize>),
}

/// How much may go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    ReadCommitted,
    Snapshot,
}

/// The anomalies of a history at a level.
pub(crate) fn anomalies(history: &[Transaction], level: Level) -> Vec<Anomaly> {
    let mut found = Vec::new();
    let orders = orders(history, &mut found);
    found.extend(unfounded_reads(history));
    if level == Level::Snapshot {
        found.extend(history.iter().filter(|one| one.is_committed).flat_map(internal));
    }
    found.extend(cycle(&edges(history, &orders, level), history.len()).map(Anomaly::Cycle));
    found
}

/// Who appended each value.
fn writers(history: &[Transaction]) -> BTreeMap<i64, usize> {
    let appends = history.iter().enumerate().flat_map(|(number, transaction)| {
        transaction.operations.iter().filter_map(move |operation| match operation {
            Operation::Append { value, .. } => Some((*value, number)),
            Operation::Read { .. } => None,
        })
    });
    appends.collect()
}

/// The longest version of each list that a committed transaction has read.
fn orders(history: &[Transaction], found: &mut Vec<Anomaly>) -> BTreeMap<i64, Vec<i64>> {
    let mut orders = BTreeMap::<i64, Vec<i64>>::new();
    for operation in history.iter().filter(|one| one.is_committed).flat_map(|one| &one.operations) {
        let Operation::Read { list, values } = operation else { continue };
        let longest = orders.entry(*list).or_default();
        let shared = longest.len().min(values.len());
        if longest[..shared] != values[..shared] {
            found.push(Anomaly::IncompatibleOrder { list: *list });
        }
        if values.len() > longest.len() {
            longest.clone_from(values);
        }
    }
    orders
}

/// Values that were read and should not have been.
fn unfounded_reads(history: &[Transaction]) -> Vec<Anomaly> {
    let writers = writers(history);
    let mut found = Vec::new();
    for (reader, transaction) in history.iter().enumerate().filter(|(_, one)| one.is_committed) {
        for operation in &transaction.operations {
            let Operation::Read { list, values } = operation else { continue };
            for value in values {
                let is_committed = writers.get(value).is_some_and(|writer| history[*writer].is_committed);
                let is_own = writers.get(value) == Some(&reader);
                if !is_committed && !is_own {
                    found.push(Anomaly::AbortedRead { list: *list, value: *value });
                }
            }
            let Some(last) = values.last() else { continue };
            let Some(writer) = writers.get(last).filter(|writer| **writer != reader) else { continue };
            let appended = appended(&history[*writer], *list);
            if appended.last() != Some(last) {
                found.push(Anomaly::IntermediateRead { list: *list, value: *last });
            }
        }
    }
    found
}

/// What a transaction appended to a list.
fn appended(transaction: &Transaction, list: i64) -> Vec<i64> {
    let value = |operation: &Operation| match operation {
        Operation::Append { list: to, value } if *to == list => Some(*value),
        _ => None,
    };
    transaction.operations.iter().filter_map(value).collect()
}

/// Lists of which a transaction sees two versions that differ by more than its own appends.
fn internal(transaction: &Transaction) -> Vec<Anomaly> {
    let mut expected = BTreeMap::<i64, Vec<i64>>::new();
    let mut unread = BTreeMap::<i64, Vec<i64>>::new();
    let mut found = Vec::new();
    for operation in &transaction.operations {
        match operation {
            Operation::Append { list, value } => match expected.get_mut(list) {
                Some(values) => values.push(*value),
                None => unread.entry(*list).or_default().push(*value),
            },
            Operation::Read { list, values } => {
                let own = unread.remove(list).unwrap_or_default();
                let is_as_expected = match expected.get(list) {
                    Some(expected) => expected == values,
                    None => values.ends_with(&own),
                };
                if !is_as_expected {
                    found.push(Anomaly::Internal { list: *list });
                }
                expected.insert(*list, values.clone());
            }
        }
    }
    found
}

/// Whether an edge is an `rw`, and where it leads.
type Edges = Vec<BTreeSet<(bool, usize)>>;

fn edges(history: &[Transaction], orders: &BTreeMap<i64, Vec<i64>>, level: Level) -> Edges {
    let writers = writers(history);
    let mut edges = Edges::new();
    edges.resize(history.len(), BTreeSet::new());
    let mut add = |from: Option<&usize>, to: Option<&usize>, is_rw: bool| {
        if let (Some(from), Some(to)) = (from, to) {
            if from != to && history[*from].is_committed && history[*to].is_committed {
                edges[*from].insert((is_rw, *to));
            }
        }
    };
    for order in orders.values() {
        for pair in order.windows(2) {
            add(writers.get(&pair[0]), writers.get(&pair[1]), false);
        }
    }
    for (reader, transaction) in history.iter().enumerate() {
        for operation in &transaction.operations {
            let Operation::Read { list, values } = operation else { continue };
            if let Some(last) = values.last() {
                add(writers.get(last), Some(&reader), false);
            }
            let next = orders.get(list).and_then(|order| order.get(values.len()));
            if let Some(next) = next.filter(|_| level == Level::Snapshot) {
                add(Some(&reader), writers.get(next), true);
            }
        }
    }
    if level == Level::Snapshot {
        for (from, first) in history.iter().enumerate() {
            let later = history.iter().enumerate().filter(|(_, second)| second.begun > first.ended);
            later.for_each(|(to, _)| add(Some(&from), Some(&to), false));
        }
    }
    edges
}

/// A cycle in which no two `rw` follow one another, the shortest from any transaction.
///
/// A place is a transaction and whether an `rw` led there: from such a place no `rw` leads on.
fn cycle(edges: &Edges, count: usize) -> Option<Vec<usize>> {
    let starts = (0..count).flat_map(|number| [(number, false), (number, true)]);
    let found = starts.filter_map(|start| way_back(edges, start));
    found.min_by_key(Vec::len)
}

fn way_back(edges: &Edges, start: (usize, bool)) -> Option<Vec<usize>> {
    let mut came_from = BTreeMap::from([(start, start)]);
    let mut reached = std::collections::VecDeque::from([start]);
    while let Some(place) = reached.pop_front() {
        let (number, was_rw) = place;
        for (is_rw, to) in edges[number].iter().filter(|(is_rw, _)| !(*is_rw && was_rw)) {
            let next = (*to, *is_rw);
            if next == start {
                let mut path = vec![number];
                let mut at = place;
                while at != start {
                    at = came_from[&at];
                    path.push(at.0);
                }
                path.reverse();
                return Some(path);
            }
            if let Entry::Vacant(vacant) = came_from.entry(next) {
                vacant.insert(place);
                reached.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Transactions that all overlap, or none.
    fn history(transactions: &[(bool, Vec<Operation>)], overlap: bool) -> Vec<Transaction> {
        let start = Instant::now();
        let at = |number: usize, part: u64| {
            let number = if overlap { 0 } else { number as u64 };
            start + Duration::from_millis(number * 10 + part)
        };
        let transaction =
            |(number, (is_committed, operations)): (usize, &(bool, Vec<Operation>))| Transaction {
                operations: operations.clone(),
                is_committed: *is_committed,
                begun: at(number, 0),
                ended: at(number, 5),
            };
        transactions.iter().enumerate().map(transaction).collect()
    }

    fn append(list: i64, value: i64) -> Operation {
        Operation::Append { list, value }
    }

    fn read(list: i64, values: &[i64]) -> Operation {
        Operation::Read { list, values: values.to_vec() }
    }

    fn found(transactions: &[(bool, Vec<Operation>)], level: Level) -> Vec<Anomaly> {
        anomalies(&history(transactions, true), level)
    }

    #[test]
    fn a_history_in_which_all_goes_well_has_no_anomalies() {
        let transactions = [
            (true, vec![append(1, 10), append(1, 11), append(2, 20)]),
            (true, vec![read(1, &[10, 11]), read(2, &[20]), append(1, 12)]),
            (true, vec![read(1, &[10, 11, 12]), read(2, &[20])]),
            (true, vec![read(1, &[]), read(2, &[])]),
            (false, vec![read(1, &[10]), append(1, 13)]),
        ];
        assert_eq!(found(&transactions, Level::Snapshot), []);
    }

    #[test]
    fn an_aborted_read_is_found() {
        let transactions = [(false, vec![append(1, 10)]), (true, vec![read(1, &[10])])];
        let expected = [Anomaly::AbortedRead { list: 1, value: 10 }];
        assert_eq!(found(&transactions, Level::ReadCommitted), expected);
    }

    #[test]
    fn an_intermediate_read_is_found() {
        let transactions = [(true, vec![append(1, 10), append(1, 11)]), (true, vec![read(1, &[10])])];
        let found = found(&transactions, Level::ReadCommitted);
        assert_eq!(found, [Anomaly::IntermediateRead { list: 1, value: 10 }]);
    }

    #[test]
    fn two_orders_of_one_list_are_found() {
        let appends = (true, vec![append(1, 10), append(2, 0)]);
        let transactions = [
            appends,
            (true, vec![append(1, 11)]),
            (true, vec![read(1, &[10, 11])]),
            (true, vec![read(1, &[11, 10])]),
        ];
        assert!(found(&transactions, Level::ReadCommitted).contains(&Anomaly::IncompatibleOrder { list: 1 }));
    }

    #[test]
    fn a_circle_of_information_is_found() {
        let transactions =
            [(true, vec![append(1, 10), read(2, &[20])]), (true, vec![append(2, 20), read(1, &[10])])];
        assert_eq!(found(&transactions, Level::ReadCommitted), [Anomaly::Cycle(vec![0, 1])]);
    }

    #[test]
    fn a_lost_update_is_found_where_snapshots_are_promised_and_only_there() {
        let transactions = [
            (true, vec![read(1, &[]), append(1, 10)]),
            (true, vec![read(1, &[]), append(1, 11)]),
            (true, vec![read(1, &[10, 11])]),
        ];
        assert_eq!(found(&transactions, Level::Snapshot), [Anomaly::Cycle(vec![0, 1])]);
        assert_eq!(found(&transactions, Level::ReadCommitted), []);
    }

    #[test]
    fn a_reader_that_sees_half_of_a_transaction_is_found() {
        let transactions = [
            (true, vec![append(1, 10), append(2, 20)]),
            (true, vec![read(1, &[10]), read(2, &[])]),
            (true, vec![read(2, &[20])]),
        ];
        assert_eq!(found(&transactions, Level::Snapshot), [Anomaly::Cycle(vec![0, 1])]);
    }

    #[test]
    fn write_skew_is_what_snapshots_allow() {
        let transactions = [
            (true, vec![read(1, &[]), read(2, &[]), append(1, 10)]),
            (true, vec![read(1, &[]), read(2, &[]), append(2, 20)]),
            (true, vec![read(1, &[10]), read(2, &[20])]),
        ];
        assert_eq!(found(&transactions, Level::Snapshot), []);
    }

    #[test]
    fn a_long_fork_is_found() {
        let transactions = [
            (true, vec![append(1, 10)]),
            (true, vec![append(2, 20)]),
            (true, vec![read(1, &[10]), read(2, &[])]),
            (true, vec![read(1, &[]), read(2, &[20])]),
            (true, vec![read(1, &[10]), read(2, &[20])]),
        ];
        assert!(matches!(found(&transactions, Level::Snapshot)[..], [Anomaly::Cycle(_)]));
    }

    #[test]
    fn a_read_of_what_was_over_when_it_began_is_found() {
        let transactions =
            [(true, vec![append(1, 10)]), (true, vec![read(1, &[])]), (true, vec![read(1, &[10])])];
        assert_eq!(anomalies(&history(&transactions, true), Level::Snapshot), []);
        let found = anomalies(&history(&transactions, false), Level::Snapshot);
        assert_eq!(found, [Anomaly::Cycle(vec![0, 1])]);
    }

    #[test]
    fn a_transaction_that_does_not_see_its_own_append_is_found() {
        let transactions = [(true, vec![read(1, &[]), append(1, 10), read(1, &[])])];
        assert!(found(&transactions, Level::Snapshot).contains(&Anomaly::Internal { list: 1 }));
    }
}
