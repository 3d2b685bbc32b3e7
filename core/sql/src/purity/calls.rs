//! Which statements call functions by name, as far as their words tell.

use super::builtin::function_digest;

/// Words in front of a parenthesis that call nothing.
const KEYWORDS: [&str; 62] = [
    "all",
    "and",
    "any",
    "array",
    "as",
    "between",
    "bigint",
    "bit",
    "by",
    "case",
    "cast",
    "char",
    "character",
    "check",
    "columns",
    "conflict",
    "cross",
    "cube",
    "decimal",
    "default",
    "distinct",
    "else",
    "except",
    "exists",
    "extract",
    "filter",
    "float",
    "from",
    "grouping",
    "having",
    "ilike",
    "in",
    "insert",
    "int",
    "intersect",
    "interval",
    "join",
    "lateral",
    "like",
    "limit",
    "materialized",
    "not",
    "numeric",
    "offset",
    "on",
    "or",
    "over",
    "returning",
    "rollup",
    "row",
    "select",
    "set",
    "sets",
    "some",
    "then",
    "union",
    "unnest",
    "using",
    "values",
    "varchar",
    "when",
    "where",
];

/// Functions of the server's own that a statement does not only read with, and that change no catalogue.
const BUILTIN: [&str; 22] = [
    "array_agg",
    "clock_timestamp",
    "currval",
    "gen_random_uuid",
    "json_agg",
    "jsonb_agg",
    "lastval",
    "nextval",
    "pg_advisory_lock",
    "pg_advisory_unlock",
    "pg_advisory_unlock_all",
    "pg_advisory_xact_lock",
    "pg_backend_pid",
    "pg_notify",
    "pg_sleep",
    "pg_try_advisory_lock",
    "pg_try_advisory_xact_lock",
    "random",
    "set_config",
    "setval",
    "string_agg",
    "txid_current",
];

/// Whether a statement may call a function of a user by its name. `template` is its text without comments and literals.
/// What looks like a call is one: the name of a table with its columns behind INTO apart.
///
/// ```
/// use onetrip_sql::purity::may_call;
///
/// assert!(!may_call(b"INSERT INTO app.emp (id, at) VALUES ($1, now()) ON CONFLICT (id) DO NOTHING"));
/// assert!(may_call(b"INSERT INTO emp VALUES (tidy ($1))"));
/// ```
pub fn may_call(template: &[u8]) -> bool {
    let mut from = 0;
    while let Some(place) = memchr::memchr(b'(', &template[from..]).map(|place| from + place) {
        let (before, name) = split_name(&template[..place]);
        if is_call(before, name) {
            return true;
        }
        from = place + 1;
    }
    false
}

/// Whether a statement names a table of the system's catalogue, or a schema that may hold one, so that it may write there.
/// What is called is none, nor is a schema in front of what is called.
///
/// ```
/// use onetrip_sql::purity::names_catalogue;
///
/// assert!(names_catalogue(b"UPDATE pg_catalog . PG_CLASS SET relname = $1"));
/// assert!(!names_catalogue(b"INSERT INTO pgbench_history SELECT pg_catalog.pg_backend_pid()"));
/// ```
pub fn names_catalogue(template: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || !byte.is_ascii();
    let mut from = 0;
    while let Some(at) = memchr::memchr2(b'p', b'P', &template[from..]).map(|at| from + at) {
        from = at + 1;
        let is_begin = at == 0 || !is_part(&template[at - 1]);
        let length = template[at..].iter().take_while(|byte| is_part(byte)).count();
        let (word, rest) = template[at..].split_at(length);
        let is_reserved = word.get(..3).is_some_and(|begin| begin.eq_ignore_ascii_case(b"pg_"));
        if !is_begin || !is_reserved {
            continue;
        }
        from = at + length;
        let rest = rest.strip_prefix(b"\"").unwrap_or(rest).trim_ascii_start();
        if !(rest.starts_with(b"(") || rest.starts_with(b".")) {
            return true;
        }
    }
    // What is written by code points is not read here.
    memchr::memmem::find(template, b"&\"").is_some()
}

/// The name at the end of a text, with its schema, and what is in front of it.
fn split_name(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii_end();
    let mut start = text.len();
    let mut is_quoted = false;
    while let Some(byte) = start.checked_sub(1).map(|place| text[place]) {
        let is_part =
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.' | b'"') || !byte.is_ascii();
        if !is_part && !is_quoted {
            break;
        }
        is_quoted ^= byte == b'"';
        start -= 1;
    }
    (&text[..start], &text[start..])
}

fn is_call(before: &[u8], name: &[u8]) -> bool {
    if name.is_empty() || name.starts_with(b"$") || name.iter().all(u8::is_ascii_digit) {
        return false; // a parenthesis, a parameter or a number
    }
    let lower = name.to_ascii_lowercase();
    let Ok(lower) = std::str::from_utf8(&lower) else { return true };
    let (_, word) = split_name(before);
    if word.eq_ignore_ascii_case(b"into") {
        return false;
    }
    let bare = lower.strip_prefix("pg_catalog.").unwrap_or(lower);
    let is_known = KEYWORDS.contains(&bare) || BUILTIN.contains(&bare) || function_digest(bare).is_some();
    !is_known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_call_is_one() {
        for text in [
            "SELECT f()",
            "SELECT a.f ($1)",
            "SELECT \"f\"($1)",
            "SELECT \"my f\" ($1)",
            "UPDATE t SET v = F($1)",
            "INSERT INTO t SELECT id FROM made($1)",
            "INSERT INTO t (id) VALUES (lower(f($1)))",
            "SELECT \"now\"()",
        ] {
            assert!(may_call(text.as_bytes()), "{text}");
        }
        for text in [
            "SELECT 1",
            "INSERT INTO t (id, v) VALUES ($1, $2), ($3, $4)",
            "INSERT INTO \"T\" (id) VALUES (pg_catalog.now(), nextval($1))",
            "UPDATE t SET (a, b) = ($1, $2) WHERE id IN ($3, ...) AND (v = $4 OR v = ANY ($5))",
            "DELETE FROM t WHERE EXISTS (SELECT FROM s WHERE count (*) > 0)",
        ] {
            assert!(!may_call(text.as_bytes()), "{text}");
        }
    }
}
