//! What shows that a finding is there, in one sentence.

use onetrip_ledger::{Code, Evidence, Finding};

use crate::clean::{clean, cut};
use crate::number::{count, counted};

/// Columns of a source statement inside a sentence.
const SOURCE_MAX: usize = 64;
/// Columns of a column's name.
const NAME_MAX: usize = 40;

/// The proof, in words that are safe to show.
pub(crate) fn proof(finding: &Finding) -> String {
    match &finding.evidence {
        Evidence::Walk { sources, rows } => walk(finding, sources, *rows),
        Evidence::Rows { rows, transactions } => format!(
            "{} in {}, {}",
            counted(*rows, "row", "rows"),
            counted(*transactions, "transaction", "transactions"),
            counted(finding.trips, "trip", "trips")
        ),
        Evidence::Fetches { size, rows } => format!(
            "{} at a time, {} in {}",
            counted(*size, "row", "rows"),
            counted(*rows, "row", "rows"),
            counted(finding.trips, "trip", "trips")
        ),
        Evidence::Repeats { distinct, runs } => format!(
            "run {} with {}; the result was the same each time",
            counted(*runs, "time", "times"),
            counted(*distinct, "set of values", "different sets of values")
        ),
        Evidence::Alone { begins, commits, transactions } => format!(
            "{} with trips of their own, in {}",
            listed(&[(*begins, "BEGIN", "BEGINs"), (*commits, "COMMIT", "COMMITs")]),
            counted(*transactions, "transaction", "transactions")
        ),
        Evidence::Prepares { prepares, runs } => format!(
            "{} only to prepare, for {} of a statement that was prepared already",
            counted(*prepares, "trip", "trips"),
            counted(*runs, "run", "runs")
        ),
        Evidence::Connections { connections, connect_trips } => format!(
            "{} one after another, {} to open them",
            counted(*connections, "connection", "connections"),
            counted(*connect_trips, "trip", "trips")
        ),
        Evidence::Values { distinct, runs } => format!(
            "run {} with {}, which come from no earlier result",
            counted(*runs, "time", "times"),
            counted(*distinct, "set of values", "different sets of values")
        ),
        Evidence::Objects { objects, calls } => format!(
            "{} read by {}, each with a trip of its own",
            counted(*objects, "large object", "large objects"),
            counted(*calls, "call", "calls")
        ),
        Evidence::Chatter { pings, settings, lookups } => {
            let parts = [
                (*pings, "ping", "pings"),
                (*settings, "setting", "settings"),
                (*lookups, "look-up of the catalogue", "look-ups of the catalogue"),
            ];
            format!("{} with trips of their own", listed(&parts))
        }
        Evidence::Groups { groups, statements } => format!(
            "{} in {}; none of them needs the result of another of its group",
            counted(*statements, "read", "reads"),
            counted(*groups, "group", "groups")
        ),
        Evidence::Pairs { pairs } => pair(finding.code, *pairs),
        Evidence::CheckIns { rollbacks, reads } => format!(
            "{}, each with a trip of its own, after {} and nothing else",
            counted(*rollbacks, "ROLLBACK", "ROLLBACKs"),
            counted(*reads, "read", "reads")
        ),
    }
}

/// How many there are of each, without those of which there are none.
fn listed(parts: &[(u64, &str, &str)]) -> String {
    let known: Vec<String> = parts
        .iter()
        .filter(|(number, ..)| *number > 0)
        .map(|(n, one, many)| counted(*n, one, many))
        .collect();
    match known.as_slice() {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        known => known.concat(),
    }
}

fn pair(code: Code, pairs: u64) -> String {
    let times = counted(pairs, "time", "times");
    match code {
        Code::ReadBeforeWrite => format!("{times} the row that was read was changed next, by the same key"),
        Code::SequenceTrip => format!("{times} the value of the sequence went into a later INSERT"),
        Code::ExistsThenInsert => {
            format!("{times} no row was found and one with these values was inserted next")
        }
        _ => format!("{times} one statement was run for the next"),
    }
}

fn walk(finding: &Finding, sources: &[(u16, String)], rows: (u64, u64)) -> String {
    let of = match finding.statements.get(1) {
        Some(source) => format!("of `{}`", cut(source, SOURCE_MAX)),
        None => "of an earlier result".into(),
    };
    let values: Vec<_> = sources
        .iter()
        .map(|(parameter, column)| match clean(column) {
            name if name.is_empty() => format!("parameter {parameter} = a column"),
            name => format!("parameter {parameter} = column {}", cut(&name, NAME_MAX)),
        })
        .collect();
    let longest = match finding.occurrences {
        0 | 1 => String::new(),
        loops => format!(", in the longest of {} loops", count(loops)),
    };
    let values = if values.is_empty() { "parameters from rows".into() } else { values.join(", ") };
    format!("{values} {of}, rows {}–{}{longest}", count(rows.0), count(rows.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_leave_out_what_there_is_none_of() {
        let chatter = |pings, settings, lookups| {
            listed(&[(pings, "ping", "pings"), (settings, "SET", "SETs"), (lookups, "look-up", "look-ups")])
        };
        assert_eq!(chatter(10, 0, 0), "10 pings");
        assert_eq!(chatter(0, 1, 2), "1 SET and 2 look-ups");
        assert_eq!(chatter(3, 1, 2), "3 pings, 1 SET and 2 look-ups");
    }
}
