//! What a statement is for, as far as its template tells.

use onetrip_sql::{Facts, Lifted, Name, Shape, StatementKind};

/// What a statement is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Purpose {
    /// Anything not named here.
    #[default]
    Work,
    /// Reads rows and changes nothing.
    Read,
    /// Sees whether the server answers.
    Ping,
    /// Shows a setting.
    Show,
    /// Changes a setting of the session.
    Set,
    /// Gives the session back all of its settings, as a pool does between two uses.
    Reset,
    /// Asks the system catalogue, or the session about itself.
    LookUp,
    /// Changes a setting by a function, `set_config`: a ROLLBACK undoes it.
    SetByCall,
    /// Takes the next value of a sequence.
    NextValue,
    /// Works on a large object.
    LargeObject(ObjectCall),
}

/// One call of the large-object functions that work on an open object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectCall {
    Open,
    Read,
    /// Asks for or changes the position.
    Seek,
    Close,
    Write,
}

impl Purpose {
    /// Whether nothing outlives a transaction that ran it and was rolled back, and nothing is undone.
    pub(super) fn only_reads(self) -> bool {
        matches!(self, Self::Read | Self::Ping | Self::Show | Self::LookUp)
    }
}

/// Functions that tell about the session or the catalogue.
const SESSION_FUNCTIONS: &[&str] = &[
    "connection_id",
    "current_database",
    "current_schema",
    "current_schemas",
    "current_setting",
    "current_user",
    "database",
    "format_type",
    "has_schema_privilege",
    "has_table_privilege",
    "inet_client_addr",
    "inet_server_addr",
    "inet_server_port",
    "obj_description",
    "pg_advisory_unlock_all",
    "pg_backend_pid",
    "pg_encoding_to_char",
    "pg_get_constraintdef",
    "pg_get_indexdef",
    "pg_get_serial_sequence",
    "pg_get_viewdef",
    "pg_is_in_recovery",
    "pg_my_temp_schema",
    "pg_postmaster_start_time",
    "session_user",
    "set_config",
    "system_user",
    "to_regclass",
    "to_regtype",
    "user",
    "version",
];
/// The same without parentheses.
const SESSION_WORDS: &[&str] =
    &["current_catalog", "current_role", "current_schema", "current_user", "session_user", "user"];
/// System variables that tell what became of the last statement, which is work.
const VARIABLES_OF_RESULTS: &[&str] =
    &["error_count", "identity", "insert_id", "last_insert_id", "warning_count"];
/// Functions that change something although the statement's words only read.
const CHANGING_FUNCTIONS: &[&str] = &[
    "get_lock",
    "last_insert_id",
    "nextval",
    "pg_current_xact_id",
    "release_all_locks",
    "release_lock",
    "set_config",
    "setval",
    "sleep",
    "txid_current",
];
const CHANGING_PREFIXES: &[&str] =
    &["pg_advisory_", "pg_try_advisory_", "pg_notify", "pg_sleep", "pg_terminate_", "pg_cancel_", "dblink"];
/// Views of what goes on in the server, and contents that live in a system table: asking for them is work.
const WORK_PREFIXES: &[&str] = &[
    "pg_stat",
    "pg_locks",
    "pg_largeobject",
    "pg_replication",
    "pg_cursors",
    "pg_prepared",
    "global_status",
    "innodb_",
    "processlist",
    "profiling",
    "session_status",
    "user_statistics",
];
/// Words of MySQL's SHOW that name settings, or what became of the last statement.
const SHOWN_SETTINGS: &[&str] = &["variables", "warnings", "errors"];
/// The same of what goes on in the server.
const SHOWN_ACTIVITY: &[&str] = &[
    "processlist",
    "status",
    "engine",
    "binlog",
    "relaylog",
    "profile",
    "profiles",
    "open",
    "explain",
    "replicas",
    "locks",
];
/// The same of definitions.
const SHOWN_DEFINITIONS: &[&str] = &[
    "character",
    "charset",
    "collation",
    "columns",
    "create",
    "databases",
    "engines",
    "events",
    "fields",
    "function",
    "grants",
    "index",
    "indexes",
    "keys",
    "plugins",
    "procedure",
    "schemas",
    "tables",
    "triggers",
];

/// Words of MySQL's SET before what other sessions see, too.
const OUTSIDE_SESSION: &[&str] =
    &["global", "persist", "persist_only", "@@global", "@@persist", "@@persist_only"];

/// Reads what a lifted statement is for.
pub(super) fn purpose_of(lifted: &Lifted<'_>, shape: &Shape<'_>) -> Purpose {
    let facts = lifted.facts();
    match facts.kind {
        StatementKind::Empty => Purpose::Ping,
        StatementKind::Show => show(lifted.template(), shape),
        StatementKind::Set if !sets_settings(lifted.template()) => Purpose::Work,
        StatementKind::Set if lifted.name().is_some_and(is_own_setting) => Purpose::Work,
        StatementKind::Reset | StatementKind::Discard if facts.all => Purpose::Reset,
        StatementKind::Set | StatementKind::Reset | StatementKind::Discard => Purpose::Set,
        StatementKind::Multi if resets_session(facts, shape) => Purpose::Reset,
        StatementKind::Select if shape.is_next_value => Purpose::NextValue,
        StatementKind::Select
            if !facts.writes && !facts.into && !facts.locks_rows && !shape.locks_in_share_mode =>
        {
            select(facts, shape)
        }
        StatementKind::Other => object_call(shape).map_or(Purpose::Work, Purpose::LargeObject),
        _ => Purpose::Work,
    }
}

/// What MySQL's SHOW asks for. PostgreSQL's names a setting.
fn show(template: &[u8], shape: &Shape<'_>) -> Purpose {
    let asks = |words: &[&str]| words_of(template).any(|word| is_one_of(word, words));
    match () {
        () if asks(SHOWN_SETTINGS) => Purpose::Show,
        () if asks(&["table"]) => Purpose::LookUp, // `SHOW TABLE STATUS`
        // What goes on in the server: asking for it is work.
        () if asks(SHOWN_ACTIVITY) => Purpose::Work,
        // `SHOW COLUMNS FROM books`, `SHOW CREATE TABLE books`: what a table is like is asked of the catalogue.
        () if !shape.tables.is_empty() || asks(SHOWN_DEFINITIONS) => Purpose::LookUp,
        () => Purpose::Show,
    }
}

/// Whether a SET is of settings of the session: not MariaDB's `SET STATEMENT … FOR` a statement, nor a variable of the user's,
/// which is data, nor what MySQL keeps for other sessions, which is administration.
fn sets_settings(template: &[u8]) -> bool {
    let mut words = words_of(template).skip(1);
    let (set, next) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let is_of_user = set.starts_with(b"@") && !set.starts_with(b"@@");
    let gives_default_role = is_one_of(set, &["default"]) && is_one_of(next, &["role"]);
    let is_of_server = is_one_of(set, OUTSIDE_SESSION)
        // `SET sql_mode = '', GLOBAL max_connections = 5`; a list of PostgreSQL's may have such a name.
        || template.split(|byte| *byte == b',').skip(1).any(|part| {
            part.contains(&b'=') && words_of(part).next().is_some_and(|word| is_one_of(word, OUTSIDE_SESSION))
        });
    !is_one_of(set, &["statement", "password"]) && !is_of_user && !gives_default_role && !is_of_server
}

/// Words of a statement; names keep their `@`.
fn words_of(template: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_mark = |byte: &u8| !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'@'));
    template.split(is_mark).filter(|word| !word.is_empty())
}

/// Whether a word is one of these, which have no capitals.
pub(super) fn is_one_of(word: &[u8], known: &[&str]) -> bool {
    known.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}

/// Whether a table is one of the system's own.
pub(super) fn is_catalogue(table: Name<'_>) -> bool {
    let folded = folded(table);
    folded.starts_with("pg_") || folded.starts_with("information_schema.")
}

fn select(facts: &Facts, shape: &Shape<'_>) -> Purpose {
    let calls: Vec<String> = shape.calls.iter().map(|call| last_part(*call)).collect();
    if !facts.has_from {
        return without_from(shape, &calls);
    }
    let object_functions = |call: &String| object_function(call).is_some();
    if calls.iter().any(|call| is_changing(call) || object_functions(call)) {
        return Purpose::Work;
    }
    let asks_catalogue = shape.tables.first().is_some_and(|table| is_definition(*table))
        // The names that a WITH gives are no tables.
        && (shape.has_with || shape.tables.iter().all(|table| is_definition(*table)));
    if asks_catalogue { Purpose::LookUp } else { Purpose::Read }
}

fn without_from(shape: &Shape<'_>, calls: &[String]) -> Purpose {
    if shape.is_constant {
        return Purpose::Ping;
    }
    if let Some(call) = object_call(shape) {
        return Purpose::LargeObject(call);
    }
    if shape.variables.iter().any(|variable| VARIABLES_OF_RESULTS.contains(&last_part(*variable).as_str())) {
        return Purpose::Work;
    }
    let all = |names: &[&str]| calls.iter().all(|call| names.contains(&call.as_str()));
    if calls.iter().any(|call| call == "nextval") {
        let is_plain = all(&["nextval", "pg_get_serial_sequence", "cast"]);
        return if is_plain { Purpose::NextValue } else { Purpose::Work };
    }
    let asks_session = !calls.is_empty()
        || !shape.variables.is_empty()
        || shape.names.iter().any(|name| SESSION_WORDS.contains(&folded(*name).as_str()));
    match asks_session && all(SESSION_FUNCTIONS) {
        true if calls.iter().any(|call| call == "set_config") => Purpose::SetByCall,
        true => Purpose::LookUp,
        false => Purpose::Work,
    }
}

/// `SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL` and its like: what pools send at check-in.
fn resets_session(facts: &Facts, shape: &Shape<'_>) -> bool {
    let is_part = |kind: &StatementKind| {
        matches!(
            kind,
            StatementKind::Set
                | StatementKind::Reset
                | StatementKind::Discard
                | StatementKind::Show
                | StatementKind::Unlisten
                | StatementKind::CloseCursor
                | StatementKind::Select
        )
    };
    let parts = facts.parts();
    let resets = parts.iter().any(|kind| matches!(kind, StatementKind::Reset | StatementKind::Discard));
    let asks_session = shape.calls.iter().all(|call| SESSION_FUNCTIONS.contains(&last_part(*call).as_str()));
    let is_whole = facts.part_count as usize == parts.len();
    is_whole && resets && parts.iter().all(is_part) && asks_session && !facts.has_from && !facts.writes
}

fn object_call(shape: &Shape<'_>) -> Option<ObjectCall> {
    let [call] = shape.calls.as_slice() else { return None };
    object_function(&last_part(*call))
}

fn object_function(name: &str) -> Option<ObjectCall> {
    match name {
        "lo_open" => Some(ObjectCall::Open),
        "loread" => Some(ObjectCall::Read),
        "lo_lseek" | "lo_lseek64" | "lo_tell" | "lo_tell64" => Some(ObjectCall::Seek),
        "lo_close" => Some(ObjectCall::Close),
        "lowrite" | "lo_truncate" | "lo_truncate64" => Some(ObjectCall::Write),
        _ => None,
    }
}

fn is_changing(call: &str) -> bool {
    CHANGING_FUNCTIONS.contains(&call) || CHANGING_PREFIXES.iter().any(|prefix| call.starts_with(prefix))
}

fn is_definition(table: Name<'_>) -> bool {
    let name = last_part(table);
    is_catalogue(table) && !WORK_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// `SET onetrip.scope = …` labels the work; it is there for this report.
fn is_own_setting(name: Name<'_>) -> bool {
    folded(name).starts_with("onetrip.")
}

fn folded(name: Name<'_>) -> String {
    String::from_utf8_lossy(&name.folded().collect::<Vec<u8>>()).into_owned()
}

/// A name without its schema. Quoted names with a dot in them are none of those that are looked for.
pub(super) fn last_part(name: Name<'_>) -> String {
    let folded = folded(name);
    folded.rsplit('.').next().unwrap_or(&folded).to_owned()
}

#[cfg(test)]
mod tests {
    use onetrip_sql::Lifter;

    use super::*;

    fn purpose(text: &str) -> Purpose {
        let mut lifter = Lifter::new();
        let lifted = lifter.lift(text.as_bytes(), true);
        purpose_of(&lifted, &Shape::of(lifted.template()))
    }

    fn all(expected: Purpose, texts: &[&str]) {
        for text in texts {
            assert_eq!(purpose(text), expected, "{text}");
        }
    }

    #[test]
    fn chatter_is_told_from_work() {
        all(Purpose::Ping, &["", "-- ping", ";", "SELECT 1", "select 'x' as alive"]);
        all(Purpose::Show, &["SHOW search_path", "show transaction isolation level"]);
        all(
            Purpose::Set,
            &["SET search_path TO app", "SET LOCAL statement_timeout = 5", "RESET role", "DISCARD PLANS"],
        );
        all(
            Purpose::Reset,
            &[
                "RESET ALL",
                "DISCARD ALL",
                "SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;",
            ],
        );
        all(
            Purpose::LookUp,
            &[
                "select pg_catalog.version()",
                "SELECT current_schema()",
                "SELECT current_user",
                "SELECT VERSION(), @@sql_mode AS m",
                "SELECT @@session.sql_mode, @@tx_isolation AS i",
                "SELECT connection_id()",
                "SHOW FULL FIELDS FROM books",
                "SELECT oid FROM pg_type WHERE typname = 'hstore'",
                "SELECT a.attname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid",
                "WITH RECURSIVE t(oid) AS (SELECT oid FROM pg_catalog.pg_type) SELECT * FROM t",
                "select * from information_schema.sequences",
            ],
        );
        all(Purpose::SetByCall, &["SELECT set_config('TimeZone', 'UTC', false)"]);
        all(
            Purpose::Work,
            &[
                "SELECT now()",
                "SELECT recompute_prices()",
                "SELECT version(), recompute_prices()",
                "SET onetrip.scope = 'nightly'",
                "SET search_path TO app; SELECT * FROM orders",
                "SELECT pg_advisory_lock(5)",
                "SELECT set_config(name, 'x', false) FROM settings",
                "SELECT 1 FROM orders FOR UPDATE",
                "SELECT @@last_insert_id",
                "SELECT @@warning_count, @@error_count",
                "SELECT last_insert_id()",
                "SELECT @own",
            ],
        );
    }

    #[test]
    fn what_mysql_shows_and_sets_is_told_apart() {
        all(Purpose::Show, &["SHOW VARIABLES LIKE 'a'", "SHOW SESSION VARIABLES", "SHOW WARNINGS"]);
        all(
            Purpose::Work,
            &[
                "SHOW FULL PROCESSLIST",
                "SHOW GLOBAL STATUS LIKE 'Threads%'",
                "SHOW ENGINE INNODB STATUS",
                "SHOW SLAVE STATUS",
                "SET STATEMENT max_statement_time=10 FOR UPDATE e SET n = 1",
                "SET PASSWORD FOR ann@localhost = PASSWORD('x')",
                "SET PASSWORD = 'x'",
                "SET GLOBAL max_connections = 5",
                "SET @@global.max_connections = 5",
                "set persist max_connections = 5",
                "SET @@PERSIST_ONLY.max_connections = 5",
                "SET sql_mode = '', GLOBAL max_connections = 5",
                "SET GLOBAL TRANSACTION ISOLATION LEVEL READ COMMITTED",
                "SET DEFAULT ROLE reader FOR ann",
                "SET @_ppp_0 = 5, @_ppp_1 = 0",
                "SELECT n FROM a WHERE id = 5 LOCK IN SHARE MODE",
            ],
        );
        all(
            Purpose::LookUp,
            &["SHOW CREATE TABLE a", "SHOW TABLES", "SHOW INDEX FROM a", "SHOW TABLE STATUS FROM shop"],
        );
        all(Purpose::Set, &["SET @@session.sql_mode = ''", "SET statement_timeout = 5", "SET NAMES utf8mb4"]);
        all(
            Purpose::Set,
            &["SET SESSION TRANSACTION READ ONLY", "SET ROLE reader", "SET a = 1, @@session.b = 2"],
        );
        all(
            Purpose::Set,
            &["SET search_path TO shop, global", "SET default_transaction_isolation = 'serializable'"],
        );
        all(Purpose::Read, &["SELECT * FROM information_schema.processlist"]);
    }

    #[test]
    fn reading_the_programs_own_tables_is_no_look_up() {
        all(
            Purpose::Read,
            &[
                "SELECT * FROM orders",
                "SELECT * FROM pg_stat_activity",
                "SELECT o.a FROM pg_class c JOIN orders o ON o.name = c.relname",
                "SELECT lo_get(content) FROM files WHERE id = 5",
            ],
        );
    }

    #[test]
    fn sequences_and_large_objects_are_known_by_their_functions() {
        all(
            Purpose::NextValue,
            &[
                "SELECT nextval('a_id_seq')",
                "select nextval ('a_id_seq')",
                "select next value for `shop`.`events_seq`",
                "SELECT pg_catalog.nextval(pg_get_serial_sequence('a', 'id'))",
            ],
        );
        all(Purpose::Work, &["SELECT nextval('s') FROM generate_series(1, 50)", "SELECT f(nextval('s'))"]);
        all(Purpose::LargeObject(ObjectCall::Open), &["select lo_open($1, $2)", "lo_open($1, $2)"]);
        all(Purpose::LargeObject(ObjectCall::Read), &["SELECT pg_catalog.loread(0, 8192)"]);
        all(Purpose::Work, &["SELECT lo_get(5)", "SELECT lo_open(a, b) FROM files"]);
    }
}
