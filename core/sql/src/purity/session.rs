//! What a session of onetrip asks its server about itself.

use std::borrow::Cow;

/// A question about the session that asks it. A server that is not PostgreSQL knows it by its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionQuestion {
    /// Whatever the session has set: a plan that is found fast, no wait for a lock, a limit, and no end of the session by an error,
    /// until the transaction ends. Each row tells what a setting was before: the first the session's own limit, the second
    /// whether errors end it.
    Plain,
    /// The session's own state, in one row: the schemas that its search path comes to, its role, whether it has temporary
    /// objects, listens, or is told what the server logs, the identity of its database, and the process that serves it.
    State,
    /// A digest of its settings, whether its transactions are deferrable unless they say otherwise, and how long ago its process
    /// has read the server's configuration, in microseconds.
    Settings,
    /// Whether it has statements that SQL has made.
    Names,
    /// Whether its cursor of this name goes backward.
    Cursor(String),
}

const PLAIN: &str = "SELECT pg_catalog.current_setting(plain.name), \
     pg_catalog.set_config(plain.name, plain.value, true) FROM (VALUES \
     ('statement_timeout', '200ms'), ('exit_on_error', 'off'), ('lock_timeout', '2ms'), ('enable_indexscan', 'on'), \
     ('enable_seqscan', 'on'), ('enable_nestloop', 'on'), ('enable_hashjoin', 'on'), ('enable_bitmapscan', 'on'), \
     ('max_parallel_workers_per_gather', '0')) AS plain (name, value)";

/// A search path that names pg_temp would make the temporary schema.
const STATE: &str = "SELECT CASE WHEN pg_catalog.current_setting('search_path') OPERATOR(pg_catalog.~~*) '%pg_temp%' \
     THEN NULL ELSE pg_catalog.current_schemas(true)::pg_catalog.text END, \
     CURRENT_USER::pg_catalog.text, \
     (pg_catalog.pg_my_temp_schema() OPERATOR(pg_catalog.<>) 0::pg_catalog.oid \
     OR EXISTS (SELECT FROM pg_catalog.pg_listening_channels()) \
     OR pg_catalog.current_setting('client_min_messages') OPERATOR(pg_catalog.~) '^(log|debug)')::pg_catalog.text, \
     (SELECT pg_catalog.concat(control.system_identifier, '/', d.oid) FROM pg_catalog.pg_control_system() AS control, \
     pg_catalog.pg_database AS d WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()), \
     pg_catalog.pg_backend_pid()::pg_catalog.text";

/// All settings that a session may change, but for those that surely change no answer to a Parse: they bound time and
/// memory, choose among plans, name the program, or write logs.
const SETTINGS: &str = "SELECT pg_catalog.concat(pg_catalog.sum(pg_catalog.hashtextextended(\
     pg_catalog.concat_ws('=', s.name, s.setting), 0))), \
     pg_catalog.current_setting('default_transaction_deferrable'), \
     (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() \
     OPERATOR(pg_catalog.-) pg_catalog.pg_conf_load_time()) \
     OPERATOR(pg_catalog.*) 1000000::pg_catalog.float8)::pg_catalog.int8::pg_catalog.text FROM pg_catalog.pg_settings AS s \
     WHERE s.context OPERATOR(pg_catalog.=) ANY ('{user,superuser}') \
     AND NOT s.name OPERATOR(pg_catalog.~) '^(enable_|cpu_|jit|geqo|log_|track_|vacuum_|autovacuum_|gin_|debug_parallel_)' \
     AND NOT s.name OPERATOR(pg_catalog.~) '(_timeout|_cost|_limit|_collapse_limit|_io_concurrency|_flush_after)$' \
     AND NOT s.name OPERATOR(pg_catalog.=) ANY ('{application_name,work_mem,maintenance_work_mem,temp_buffers,\
     effective_cache_size,hash_mem_multiplier,logical_decoding_work_mem,synchronous_commit,commit_delay,\
     commit_siblings,plan_cache_mode,constraint_exclusion,cursor_tuple_fraction,default_statistics_target,\
     max_parallel_workers,max_parallel_workers_per_gather,max_parallel_maintenance_workers,\
     min_parallel_table_scan_size,min_parallel_index_scan_size,parallel_leader_participation,\
     default_transaction_deferrable,default_transaction_isolation,default_transaction_read_only,\
     tcp_keepalives_count,tcp_keepalives_idle,tcp_keepalives_interval,tcp_user_timeout,seed,wal_compression,\
     client_connection_check_interval,stats_fetch_consistency}')";

const NAMES: &str =
    "SELECT EXISTS (SELECT FROM pg_catalog.pg_prepared_statements AS s WHERE s.from_sql)::pg_catalog.text";

/// What comes before and behind the name of a cursor.
const CURSOR: (&str, &str) = (
    "SELECT c.is_scrollable::pg_catalog.text FROM pg_catalog.pg_cursors AS c \
     WHERE c.name OPERATOR(pg_catalog.=) '",
    "'::pg_catalog.text",
);

impl SessionQuestion {
    /// The statement.
    pub fn sql(&self) -> Cow<'static, str> {
        match self {
            Self::Plain => PLAIN.into(),
            Self::State => STATE.into(),
            Self::Settings => SETTINGS.into(),
            Self::Names => NAMES.into(),
            Self::Cursor(name) => [CURSOR.0, &name.replace('\'', "''"), CURSOR.1].concat().into(),
        }
    }

    /// How many columns its rows have.
    pub fn column_count(&self) -> usize {
        match self {
            Self::Plain => 2,
            Self::State => 5,
            Self::Settings => 3,
            Self::Names | Self::Cursor(_) => 1,
        }
    }

    /// The question with this text.
    pub fn of_sql(sql: &str) -> Option<Self> {
        let cursor = sql.strip_prefix(CURSOR.0).and_then(|rest| rest.strip_suffix(CURSOR.1));
        if let Some(name) = cursor {
            return Some(Self::Cursor(name.replace("''", "'")));
        }
        [Self::Plain, Self::State, Self::Settings, Self::Names].into_iter().find(|one| one.sql() == sql)
    }

    /// Names and values of the settings that [`Self::Plain`] makes, in the order of its rows.
    pub fn plain_settings() -> impl Iterator<Item = (&'static str, &'static str)> {
        let pairs = PLAIN.split_once("(VALUES").map_or("", |(_, pairs)| pairs);
        let mut quoted = pairs.split('\'').skip(1).step_by(2);
        std::iter::from_fn(move || Some((quoted.next()?, quoted.next()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_known_by_its_text() {
        use SessionQuestion as Q;
        for question in [Q::Plain, Q::State, Q::Settings, Q::Names, Q::Cursor("a'b".to_owned())] {
            assert_eq!(Q::of_sql(&question.sql()), Some(question));
        }
        assert_eq!(Q::of_sql("SELECT 1"), None);
    }

    #[test]
    fn plain_settings_are_those_of_the_text() {
        let settings: Vec<_> = SessionQuestion::plain_settings().collect();
        let told = [("statement_timeout", "200ms"), ("exit_on_error", "off")];
        assert_eq!(settings[..2], told, "the first rows tell what these were before");
        assert_eq!(settings.last(), Some(&("max_parallel_workers_per_gather", "0")));
    }
}
