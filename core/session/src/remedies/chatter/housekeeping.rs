//! Statements that put a session's settings and other state in order, and that no server refuses the second time
//! (rule K1).

use crate::reading::grammar;

/// Longest text that is looked into, in bytes.
const LENGTH_MAX: usize = 512;

/// What such a statement is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// Sets a parameter.
    Sets(String),
    /// Sets a parameter back to what the configuration says, now and later.
    SetsBack(String),
    /// Sets all parameters back.
    SetsAll,
    /// The same, and takes prepared statements away.
    DiscardsAll,
    /// Shows a parameter.
    Shows(String),
    /// Takes cursors, channels or advisory locks away.
    Frees,
    /// The same, by a function that is called without its schema.
    Calls,
}

impl Act {
    /// Whether this one's answer may be another after `other` was run.
    pub(super) fn depends_on(&self, other: &Self) -> bool {
        let parameter = |act: &Self| match act {
            Self::Sets(name) | Self::SetsBack(name) | Self::Shows(name) => Some(name.clone()),
            _ => None,
        };
        let is_setting =
            |act: &Self| matches!(act, Self::Sets(_) | Self::SetsBack(_) | Self::SetsAll | Self::DiscardsAll);
        if !is_setting(other) {
            return false;
        }
        match (parameter(self), parameter(other)) {
            (Some(mine), Some(others)) => mine == others,
            (None, _) => is_setting(self),
            (Some(_), None) => true,
        }
    }
}

/// Parameters that every role may set, that take their value as it is written, and whose check looks at no catalogue and
/// no other parameter.
const PARAMETERS: [&str; 40] = [
    "application_name",
    "backend_flush_after",
    "bytea_output",
    "client_min_messages",
    "commit_siblings",
    "constraint_exclusion",
    "cursor_tuple_fraction",
    "datestyle",
    "default_statistics_target",
    TRANSACTIONS[0],
    TRANSACTIONS[1],
    TRANSACTIONS[2],
    "effective_cache_size",
    "enable_bitmapscan",
    "enable_hashjoin",
    "enable_indexscan",
    "enable_mergejoin",
    "enable_nestloop",
    "enable_seqscan",
    "extra_float_digits",
    "from_collapse_limit",
    "geqo",
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
    "intervalstyle",
    "jit",
    "join_collapse_limit",
    "lock_timeout",
    "log_statement_sample_rate",
    "maintenance_work_mem",
    "max_parallel_workers_per_gather",
    "plan_cache_mode",
    "quote_all_identifiers",
    "random_page_cost",
    "row_security",
    "search_path",
    "statement_timeout",
    "synchronous_commit",
    "timezone",
    "work_mem",
];

const TRANSACTIONS: [&str; 3] =
    ["default_transaction_deferrable", "default_transaction_isolation", "default_transaction_read_only"];

/// What the statements of `text` are about; `None` if one of them is anything else.
pub(super) fn acts(text: &[u8]) -> Option<Vec<Act>> {
    // Nearly every text ends here, and nothing has been allocated.
    let verb = grammar::first_word(text);
    if text.len() > LENGTH_MAX || !VERBS.iter().any(|known| verb.eq_ignore_ascii_case(known.as_bytes())) {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?;
    if text.contains("--") || text.contains("/*") {
        return None; // a comment may hold anything
    }
    let acts = text.split(';').map(|part| part.trim_matches(grammar::is_space));
    let mut all = Vec::new();
    for part in acts.filter(|part| !part.is_empty()) {
        match characteristics(part) {
            Some(parameters) => all.extend(parameters?.into_iter().map(Act::Sets)),
            None => all.push(act(part)?),
        }
    }
    (!all.is_empty()).then_some(all)
}

/// What such a text begins with.
const VERBS: [&str; 7] = ["SET", "RESET", "SHOW", "DISCARD", "CLOSE", "UNLISTEN", "SELECT"];

fn act(text: &str) -> Option<Act> {
    let upper = text.to_ascii_uppercase();
    let words: Vec<&str> = grammar::words(&upper).collect();
    match words.as_slice() {
        ["DISCARD", "ALL"] => Some(Act::DiscardsAll),
        ["CLOSE", "ALL"] | ["UNLISTEN", "*"] => Some(Act::Frees),
        ["SELECT", "PG_CATALOG.PG_ADVISORY_UNLOCK_ALL()"] => Some(Act::Frees),
        ["SELECT", "PG_ADVISORY_UNLOCK_ALL()"] => Some(Act::Calls),
        ["RESET", "ALL"] => Some(Act::SetsAll),
        ["RESET", name] => parameter(name).map(Act::SetsBack),
        ["SHOW", name] => parameter(name).map(Act::Shows),
        ["SET", "SESSION", ..] => sets(after_words(text, 2)?),
        ["SET", ..] => sets(after_words(text, 1)?),
        _ => None,
    }
}

/// The parameters that `SET SESSION CHARACTERISTICS` sets, where that is what the text is; none inside where a mode of it is
/// not known.
fn characteristics(text: &str) -> Option<Option<Vec<String>>> {
    let upper = text.to_ascii_uppercase();
    let words: Vec<&str> = grammar::words(&upper).collect();
    let ["SET", "SESSION", "CHARACTERISTICS", "AS", "TRANSACTION", modes @ ..] = words.as_slice() else {
        return None;
    };
    // A comma stands between modes, and only there is it a word of its own.
    let modes = modes.join(" ").replace(',', " , ");
    let modes: Vec<&str> = grammar::words(&modes).collect();
    if modes.is_empty() || grammar::modes(&modes).is_none() {
        return Some(None);
    }
    let [deferrable, isolation, read_only] = TRANSACTIONS;
    let has = |word| modes.contains(&word);
    let set = [
        (deferrable, has("DEFERRABLE")),
        (isolation, has("ISOLATION")),
        (read_only, has("ONLY") || has("WRITE")),
    ];
    Some(Some(set.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name.to_owned()).collect()))
}

/// What follows so many words.
fn after_words(text: &str, count: usize) -> Option<&str> {
    (0..count).try_fold(text, |rest, _| {
        rest.split_once(grammar::is_space).map(|(_, after)| after.trim_start_matches(grammar::is_space))
    })
}

/// A parameter and its value.
fn sets(text: &str) -> Option<Act> {
    let upper = text.to_ascii_uppercase();
    let mut words = grammar::words(&upper);
    if words.next() == Some("TIME") && words.next() == Some("ZONE") {
        return given("timezone".to_owned(), after_words(text, 2)?);
    }
    let is_word = |character: char| character.is_ascii_alphabetic() || character == '_';
    let (name, rest) = text.split_at(text.find(|character| !is_word(character))?);
    let rest = rest.trim_start_matches(grammar::is_space);
    let value = match rest.strip_prefix('=') {
        Some(value) => value,
        None => {
            let (to, value) = rest.split_once(grammar::is_space)?;
            to.eq_ignore_ascii_case("to").then_some(value)?
        }
    };
    given(parameter(name)?, value)
}

/// Sets a parameter to what is written.
fn given(parameter: String, value: &str) -> Option<Act> {
    let is_word = |word: &str| value.trim_matches(grammar::is_space).eq_ignore_ascii_case(word);
    match is_word("default") || is_word("local") {
        true => Some(Act::SetsBack(parameter)),
        false => is_value(value).then_some(Act::Sets(parameter)),
    }
}

/// A parameter of the list.
fn parameter(name: &str) -> Option<String> {
    let name = name.to_ascii_lowercase();
    PARAMETERS.contains(&name.as_str()).then_some(name)
}

/// Whether this is a value, or several with commas between them, each of one word or in quotes.
fn is_value(text: &str) -> bool {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(grammar::is_space);
        let Some(after) = without_item(rest) else { return false };
        rest = after.trim_start_matches(grammar::is_space);
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return rest.is_empty(),
        }
    }
}

/// What follows the first value.
fn without_item(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|first| matches!(first, '\'' | '"'));
    if let Some(quote) = quote {
        let (quoted, after) = text[1..].split_once(quote)?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:+-/ ,$".contains(&byte);
        // Two quotes beside each other are one of the value's.
        return (quoted.bytes().all(is_plain) && !after.starts_with(quote)).then_some(after);
    }
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "_.+-".contains(character);
    let end = text.find(|character| !is_plain(character)).unwrap_or(text.len());
    (end > 0).then(|| &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_resets_that_drivers_send_are_known() {
        let sets = |name: &str| Some(vec![Act::Sets(name.to_owned())]);
        for (text, expected) in [
            ("SET statement_timeout = 5000", sets("statement_timeout")),
            ("set Session search_path to \"$user\", public;", sets("search_path")),
            ("SET TIME ZONE 'Europe/Berlin'", sets("timezone")),
            ("SET application_name='my app'", sets("application_name")),
            ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", sets("default_transaction_read_only")),
            ("SET default_transaction_isolation TO 'repeatable read'", sets("default_transaction_isolation")),
            (
                "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE, NOT DEFERRABLE",
                Some(vec![
                    Act::Sets("default_transaction_deferrable".to_owned()),
                    Act::Sets("default_transaction_isolation".to_owned()),
                ]),
            ),
            ("RESET work_mem", Some(vec![Act::SetsBack("work_mem".to_owned())])),
            ("SET work_mem TO DEFAULT", Some(vec![Act::SetsBack("work_mem".to_owned())])),
            ("SHOW TimeZone", Some(vec![Act::Shows("timezone".to_owned())])),
            ("DISCARD ALL", Some(vec![Act::DiscardsAll])),
            (
                "SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;",
                Some(vec![Act::Calls, Act::Frees, Act::Frees, Act::SetsAll]),
            ),
        ] {
            assert_eq!(acts(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn what_may_fail_the_second_time_or_does_more_is_not() {
        for text in [
            "SET ROLE other",
            "SET SESSION AUTHORIZATION other",
            "SET LOCAL work_mem = '1MB'",
            "SET TRANSACTION READ ONLY",
            "SET my.setting = 1",
            "SET default_tablespace = x",
            "SET work_mem = '1MB', '2MB' FROM CURRENT",
            "SET application_name = 'it''s'",
            "SET application_name = 'a' -- 'b'",
            "SET application_name = E'a'",
            "SET application_name = 'a;b'",
            "SET search_path FROM CURRENT",
            "SET search_path",
            "SET",
            "DISCARD PLANS",
            "CLOSE c",
            "UNLISTEN c",
            "SHOW ALL",
            "SHOW server_version",
            "SELECT 1",
            "SELECT pg_advisory_unlock_all(), 1",
            "RESET ALL; SELECT 1",
            ";",
            "",
        ] {
            assert_eq!(acts(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_setting_matters_to_those_of_the_same_parameter_and_to_resets() {
        let one = |text: &str| acts(text.as_bytes()).unwrap().remove(0);
        let depends = |text: &str, other: &str| one(text).depends_on(&one(other));
        assert!(depends("SET work_mem = 1", "RESET work_mem"));
        assert!(depends("SHOW work_mem", "SET work_mem = 1") && depends("SHOW work_mem", "RESET ALL"));
        assert!(depends("RESET ALL", "SET work_mem = 1") && depends("SET work_mem = 1", "DISCARD ALL"));
        assert!(!depends("SET work_mem = 1", "SET jit = off") && !depends("SET jit = off", "SHOW jit"));
        assert!(!depends("CLOSE ALL", "RESET ALL") && !depends("RESET ALL", "CLOSE ALL"));
    }
}
