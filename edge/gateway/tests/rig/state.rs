//! What a program leaves behind.

use std::time::{Duration, Instant};

use onetrip_wire::pg::{DataRow, backend};

use super::lane::Lane;
use crate::common::client::{Endpoint, RawClient};

/// Names of statements, cursors and savepoints that are a gateway's own begin with this.
const PRIVATE: &str = "onetrip";
/// How long a gateway may take to end what it has begun by itself, on a machine that has other work.
const REST: Duration = Duration::from_secs(4);

/// Facts, one a line.
pub(crate) type State = Vec<String>;

/// What a session is asked in the end: its prepared statements, its cursors, its settings.
pub(crate) const STATEMENTS: &str = "SELECT name, statement, parameter_types, from_sql FROM pg_prepared_statements \
    WHERE name NOT LIKE 'onetrip%' ORDER BY name";
pub(crate) const CURSORS: &str = "SELECT name, statement, is_holdable, is_binary, is_scrollable FROM pg_cursors \
    WHERE name NOT LIKE 'onetrip%' AND name <> '' ORDER BY name";
// Without transaction_isolation and its kin, as in families/settings.rs.
pub(crate) const SETTINGS: &str = "SELECT name, setting FROM pg_settings WHERE source = 'session' AND name NOT LIKE 'transaction\\_%' \
    UNION ALL SELECT 'listens', pg_listening_channels() UNION ALL SELECT 'role', current_user \
    UNION ALL SELECT 'temporary', relname FROM pg_class WHERE relnamespace = pg_my_temp_schema() AND relkind = 'r' ORDER BY 1, 2";

/// A direct session that looks, and makes everything as it was, between programs. One is for many of them: a session's first
/// questions about the catalogue cost more than all others.
#[derive(Debug)]
pub(crate) struct Observer {
    client: RawClient,
}

impl Observer {
    pub(crate) fn open(direct: &Endpoint, database: &str) -> Self {
        Self { client: RawClient::session(direct, database) }
    }

    /// The processes that serve the sessions of these names, the latest of each name.
    pub(crate) fn processes(&mut self, names: &[String]) -> Vec<i32> {
        const LATEST: &str = "SELECT DISTINCT ON (application_name) application_name, pid FROM pg_stat_activity \
            WHERE datname = current_database() ORDER BY application_name, backend_start DESC";
        let deadline = Instant::now() + REST;
        loop {
            let found = self.rows(LATEST);
            let of_name = |name: &String| {
                let process = |row: &String| row.strip_prefix(name)?.strip_prefix('|')?.parse().ok();
                found.iter().find_map(process)
            };
            if let Some(processes) = names.iter().map(of_name).collect() {
                return processes;
            }
            assert!(Instant::now() < deadline, "some of {names:?} have no process: {found:?}");
        }
    }

    /// Whether a process waits for another session. `pg_safe_snapshot_blocking_pids` knows nobody if the process has had a
    /// serializable transaction that others still overlap: it looks at that one (`GetSafeSnapshotBlockingPids`).
    pub(crate) fn waits(&mut self, process: i32) -> bool {
        let waits = format!(
            "SELECT cardinality(pg_blocking_pids({process})) \
             + (SELECT count(*) FROM pg_stat_get_activity({process}) WHERE wait_event = 'SafeSnapshot')"
        );
        self.rows(&waits).first().is_some_and(|count| count != "0")
    }

    /// Waits until all sessions of the program are over, or with a pooler below run nothing. A gateway ends a client's
    /// connection at once, and the server still runs the statement that waited for another session, or is still sent what
    /// was answered early: it may write what the next program finds.
    pub(crate) fn await_rest(&mut self, is_pooled: bool) {
        let others = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() \
            AND backend_type = 'client backend'";
        let busy = format!("{others}{}", if is_pooled { " AND state <> 'idle'" } else { "" });
        let deadline = Instant::now() + REST;
        while !self.rows(&busy).is_empty() {
            if Instant::now() > deadline {
                self.rows(&format!("SELECT pg_terminate_backend(pid, 5000) FROM ({busy}) busy"));
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Forgets what it has been told.
    pub(crate) fn forget(&mut self) {
        self.client.forget();
    }

    /// The rows of a query, columns joined by bars.
    pub(crate) fn rows(&mut self, text: &str) -> Vec<String> {
        let messages = self.client.query(text);
        let row = |body: &[u8]| {
            let row = DataRow::decode(body).expect("a row");
            let value = |value: Option<&[u8]>| {
                value.map_or("NULL".to_owned(), |value| String::from_utf8_lossy(value).into_owned())
            };
            row.columns.iter().map(value).collect::<Vec<_>>().join("|")
        };
        assert!(
            messages.iter().all(|message| message.tag != backend::ERROR_RESPONSE),
            "{text}: {messages:?}"
        );
        messages
            .iter()
            .filter(|message| message.tag == backend::DATA_ROW)
            .map(|message| row(&message.body))
            .collect()
    }
}

/// Status and locks of the sessions, once they rest; through a gateway also once they are as `expected`, if ever.
pub(crate) fn open(observer: &mut Observer, lanes: &[Lane], expected: Option<&State>) -> State {
    let deadline = Instant::now() + REST;
    loop {
        let mut state = State::new();
        let mut rests = true;
        let processes = lanes.iter().map(|lane| lane.process.to_string()).collect::<Vec<_>>().join(",");
        let activity = observer.rows(&format!(
            "SELECT pid, state FROM pg_stat_activity WHERE pid IN ({processes}) AND datname = current_database()"
        ));
        let locks = observer.rows(&locks(&processes));
        for (number, lane) in lanes.iter().enumerate() {
            let own = format!("{}|", lane.process);
            let of_lane = |lines: &[String]| -> Vec<String> {
                lines.iter().filter_map(|line| Some(line.strip_prefix(&own)?.to_owned())).collect()
            };
            let activity = of_lane(&activity);
            let status = activity.first().map_or("gone", String::as_str);
            let said = match lane.status() {
                b'I' => "idle",
                b'T' => "idle in transaction",
                _ => "idle in transaction (aborted)",
            };
            rests &= lane.is_blocked() || lane.is_amid_group() || lane.has_ended() || status == said;
            state.push(format!("session {number}: {status}"));
            state.extend(of_lane(&locks).into_iter().map(|lock| format!("session {number}: lock {lock}")));
        }
        let is_expected = expected.is_none_or(|expected| expected.starts_with(&state));
        if (rests && is_expected) || Instant::now() > deadline {
            return state;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Locks by relation and mode; of transactions and advisory locks, too. Those of serializable reads outlive their
/// transactions for as long as any other of the server overlaps them, and are left out; so are those of schemas, as which
/// a temporary one is there already or not is left to chance, and those of indexes, as which of them a plan uses is the
/// planner's choice: who locks an index has locked its table.
fn locks(processes: &str) -> String {
    format!(
        "SELECT l.pid, l.locktype, coalesce(n.nspname || '.' || c.relname, ''), l.mode, l.granted, \
         CASE WHEN l.locktype = 'advisory' THEN l.classid || '/' || l.objid || '/' || l.objsubid END, count(*) \
         FROM pg_locks l LEFT JOIN pg_class c ON c.oid = l.relation LEFT JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE l.pid IN ({processes}) AND l.locktype NOT IN ('virtualxid', 'spectoken') \
         AND l.mode <> 'SIReadLock' AND c.relkind IS DISTINCT FROM 'i' \
         AND l.classid IS DISTINCT FROM 'pg_namespace'::regclass AND (n.nspname IS DISTINCT FROM \
         'pg_catalog' OR c.relname = 'pg_largeobject') AND coalesce(n.nspname, '') NOT LIKE 'pg_t%' GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6"
    )
}

/// Tables, sequences and what else outlives sessions.
pub(crate) fn closed(observer: &mut Observer) -> State {
    let tables = observer.rows(
        "SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname), c.relkind FROM pg_class c JOIN pg_namespace n \
         ON n.oid = c.relnamespace WHERE n.nspname IN ('public', 'other') AND c.relkind IN ('r', 'S') ORDER BY 1",
    );
    let part = |table: &String| match table.split_once('|') {
        Some((name, "S")) => {
            format!("SELECT '{name}', last_value || ' ' || is_called, 1::bigint FROM {name}")
        }
        Some((name, _)) => format!("SELECT '{name}', t::text, count(*) FROM {name} t GROUP BY t::text"),
        None => unreachable!("two columns were asked for"),
    };
    let parts: Vec<String> = tables.iter().map(part).collect();
    let all = format!("{} ORDER BY 1, 2", parts.join(" UNION ALL "));
    let mut state = if parts.is_empty() { State::new() } else { observer.rows(&all) };
    state.extend(observer.rows(
        "SELECT 'advisory', l.mode, l.objid, a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid) \
         JOIN pg_database d ON d.oid = l.database WHERE d.datname = current_database() AND l.locktype = 'advisory' \
         ORDER BY 2, 3, 4",
    ));
    state.extend(
        observer.rows("SELECT 'object', oid, md5(lo_get(oid)) FROM pg_largeobject_metadata ORDER BY oid"),
    );
    state.extend(observer.rows("SELECT 'prepared transactions', count(*) FROM pg_prepared_xacts"));
    state.retain(|line| !line.contains(PRIVATE));
    state
}
