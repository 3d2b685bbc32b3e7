//! Settings in the terms of the drivers that have them.
//!
//! Sources: pgjdbc's documentation of `defaultRowFetchSize` and cursor-based results; psycopg 3's and psycopg 2's of
//! server-side cursors; Oracle's JDBC developer's guide, "Prefetching of LOB data"; onetrip's own docs/client.md.

use super::{Choice, Prefetch, Task};

/// A line for each driver: its name, and what to write.
pub fn settings(task: &Task, choice: &Choice) -> Vec<(&'static str, String)> {
    let fetch = choice.fetch;
    let all = fetch >= task.rows;
    let or_all = if all { " (or leave it: everything at once is its default)" } else { "" };
    let mut lines = vec![
        ("pgjdbc", format!("connection.setAutoCommit(false); statement.setFetchSize({fetch}){or_all}")),
        ("psycopg", format!("cursor = connection.cursor(\"name\"); cursor.itersize = {fetch}{or_all}")),
        ("Oracle JDBC", format!("statement.setFetchSize({fetch})")),
        ("onetrip", onetrip_fetch(fetch, all)),
    ];
    if task.lob_bytes > 0 {
        let (size, how) = match choice.prefetch {
            Prefetch::Nothing => {
                ("-1".to_owned(), "SELECT the key only, and the content of a row when it is asked for")
            }
            Prefetch::Length => (
                "0".to_owned(),
                "SELECT the key and octet_length(content), and the content of a row when it is asked for",
            ),
            Prefetch::Whole => (task.lob_bytes.to_string(), "SELECT the content with the row"),
        };
        lines.push(("Oracle JDBC", format!("((OracleStatement) statement).setLobPrefetchSize({size})")));
        lines.push(("PostgreSQL, any driver", how.to_owned()));
        let prefetch = match choice.prefetch {
            Prefetch::Nothing => "Locator".to_owned(),
            Prefetch::Length => "Length".to_owned(),
            Prefetch::Whole => format!("First({})", task.lob_bytes),
        };
        lines.push(("onetrip", format!("client.prefetch(&sources, Some(Prefetch::{prefetch}))")));
        // What a driver is told stands together, in the order above.
        let order = ["pgjdbc", "psycopg", "PostgreSQL, any driver", "Oracle JDBC", "onetrip"];
        lines.sort_by_key(|(driver, _)| order.iter().position(|known| known == driver));
    }
    lines
}

/// A result that comes at once needs no cursor.
fn onetrip_fetch(fetch: u64, all: bool) -> String {
    if all {
        return "client.query(text, &[])".to_owned();
    }
    format!("client.open_cursor(text, &[], Fetch::Rows(NonZeroU32::new({fetch}).unwrap())), or Fetch::Auto")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn settings_are_what_a_programmer_can_write_down() {
        let task = Task {
            rows: 1_000,
            row_bytes: 20,
            lob_bytes: 4_000,
            share_percent: 100,
            rtt: Duration::from_millis(1),
            bits_per_second: 1_000_000_000,
            memory: 1 << 20,
        };
        let lines = settings(&task, &task.predict(100, Prefetch::Whole));
        assert!(
            lines.iter().any(|(driver, line)| *driver == "pgjdbc" && line.ends_with("setFetchSize(100)"))
        );
        assert!(lines.iter().any(|(_, line)| line.contains("setLobPrefetchSize(4000)")));
        assert!(lines.iter().any(|(_, line)| line.contains("Prefetch::First(4000)")));
        let plain = Task { lob_bytes: 0, ..task };
        assert_eq!(settings(&plain, &plain.predict(100, Prefetch::Nothing)).len(), 4);
        let all = settings(&plain, &plain.predict(1_000, Prefetch::Nothing));
        assert!(all.contains(&("onetrip", "client.query(text, &[])".to_owned())));
    }
}
