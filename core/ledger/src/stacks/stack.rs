//! What a file of `data/` says.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex_lite::Regex;
use serde::Deserialize;

use super::recogniser::{Language, Startup};
use super::{Driver, files};
use crate::Code;

/// Bytes of a statement's text that are looked at: shapes show themselves in the beginning.
const LOOKED_AT_MAX: usize = 2048;

/// A driver or ORM.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stack {
    /// The name that its users know.
    pub(super) name: String,
    /// Language of its programs; none where programs of several use it.
    pub(super) language: Option<Language>,
    /// Drivers of another language that an ORM uses beneath it, by key.
    #[serde(default)]
    over: Vec<String>,
    /// It is named where no other is known by its startup packet.
    #[serde(default)]
    fallback: bool,
    /// It may prove a password in C, where its programs run in a language that takes longer.
    #[serde(default)]
    pub(super) quick_proof: bool,
    /// What to change where it says nothing itself is what this one says.
    pub(super) like: Option<String>,
    /// Any of these startup packets is its own.
    #[serde(default)]
    startup: Vec<StartupMark>,
    /// Any of these names of prepared statements is its own.
    #[serde(default)]
    statement_names: Vec<Pattern>,
    /// Shapes of statements that it writes: templates, in which literals are `$n` and blanks are one. It takes two.
    #[serde(default)]
    statements: Vec<Pattern>,
    /// Shapes that others write, too: one tells that a connection is that of an ORM which was seen before.
    #[serde(default)]
    confirming: Vec<Pattern>,
    /// What to change, by code.
    #[serde(default)]
    pub(super) fixes: BTreeMap<Code, String>,
    /// What to change instead where the rows of a loop are updated or deleted, by code.
    #[serde(default)]
    pub(super) changes: BTreeMap<Code, String>,
    /// What to change in a queue's worker that takes a job by one statement and changes it by the next.
    pub(super) worker: Option<String>,
}

/// A startup packet: all that is said must hold.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StartupMark {
    /// Names of its first parameters, in order.
    #[serde(default)]
    first: Vec<String>,
    /// Name of its last parameter.
    last: Option<String>,
    /// Names that it has not.
    #[serde(default)]
    without: Vec<String>,
    /// Names that it has, with their values.
    #[serde(default)]
    has: BTreeMap<String, Pattern>,
    /// Whether the client has asked for TLS or GSSAPI before.
    asks_encryption: Option<bool>,
}

/// A regular expression, compiled when the file is read.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Pattern(Regex);

impl TryFrom<String> for Pattern {
    type Error = regex_lite::Error;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Regex::new(&text).map(Self)
    }
}

static STACKS: LazyLock<Vec<Stack>> = LazyLock::new(|| {
    let read = |(key, text): &(&str, &str)| match toml::from_str(text) {
        Ok(stack) => stack,
        // A test reads all of them.
        Err(error) => panic!("stacks/data/{key}.toml: {error}"),
    };
    files::FILES.iter().map(read).collect()
});

pub(super) fn of(driver: Driver) -> &'static Stack {
    &STACKS[usize::from(driver.0)]
}

/// ORMs that a template may come from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Marks {
    /// Those that alone write it so.
    pub(super) own: Vec<Driver>,
    /// Those that write it as others do.
    pub(super) confirming: Vec<Driver>,
}

/// Looks for shapes in a template.
pub(crate) fn marks_of(template: &str) -> Marks {
    let mut end = template.len().min(LOOKED_AT_MAX);
    while !template.is_char_boundary(end) {
        end -= 1;
    }
    let text = &template[..end];
    let matching = |patterns: &[Pattern]| patterns.iter().any(|Pattern(pattern)| pattern.is_match(text));
    let with = |patterns: fn(&Stack) -> &[Pattern]| {
        Driver::all().filter(|driver| matching(patterns(of(*driver)))).collect()
    };
    Marks { own: with(|stack| &stack.statements), confirming: with(|stack| &stack.confirming) }
}

/// The driver that names prepared statements like this.
pub(super) fn of_statement_name(name: &str) -> Option<Driver> {
    only(|stack| stack.statement_names.iter().any(|Pattern(it)| it.is_match(name)))
}

/// The driver that opens connections like this; none if it may be one of several.
pub(super) fn of_startup(startup: &Startup<'_>) -> Option<Driver> {
    let is_met = |stack: &Stack| stack.startup.iter().any(|mark| mark.is_met(startup));
    only(|stack| !stack.fallback && is_met(stack)).or_else(|| only(|stack| stack.fallback && is_met(stack)))
}

/// The one of which this is true; none if it is true of several.
fn only(is_its: impl Fn(&Stack) -> bool) -> Option<Driver> {
    let mut found = Driver::all().filter(|driver| is_its(of(*driver)));
    found.next().filter(|_| found.next().is_none())
}

impl Stack {
    pub(super) fn is_orm(&self) -> bool {
        !self.statements.is_empty()
    }

    /// Whether an ORM may use this driver beneath it, in a program of this language.
    pub(super) fn may_be_over(&self, driver: Driver, program: Option<Language>) -> bool {
        let is_named = self.over.iter().any(|key| key == driver.key());
        let beneath = of(driver).language.or(program);
        is_named || self.language.is_none_or(|own| beneath.is_none_or(|beneath| own == beneath))
    }
}

impl StartupMark {
    fn is_met(&self, startup: &Startup<'_>) -> bool {
        let names = || startup.parameters.iter().map(|(name, _)| *name);
        let is = |name: &[u8], expected: &String| name == expected.as_bytes();
        let has = |(name, Pattern(value)): (&String, &Pattern)| {
            let found = startup.parameters.iter().find(|(key, _)| is(key, name));
            found.is_some_and(|(_, text)| std::str::from_utf8(text).is_ok_and(|text| value.is_match(text)))
        };
        names().count() >= self.first.len()
            && self.first.iter().zip(names()).all(|(expected, name)| is(name, expected))
            && self.last.as_ref().is_none_or(|last| names().next_back().is_some_and(|name| is(name, last)))
            && !self.without.iter().any(|other| names().any(|name| is(name, other)))
            && self.has.iter().all(has)
            && self.asks_encryption.is_none_or(|asks| asks == startup.asked_encryption)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_can_be_read_and_says_how_to_know_the_stack() {
        for driver in Driver::all() {
            let stack = of(driver);
            let marks = stack.startup.len() + stack.statement_names.len() + stack.statements.len();
            let is_told_by_code = ["unknown", "libpq", "psycopg2"].contains(&driver.key());
            assert!(marks > 0 || is_told_by_code, "{}", driver.key());
            assert!(stack.over.iter().all(|key| Driver::of_key(key).is_some()), "{:?}", stack.over);
        }
        assert_eq!(Driver::UNKNOWN.key(), "unknown");
        assert!(Code::ALL.iter().all(|code| of(Driver::UNKNOWN).fixes.contains_key(code)));
        assert!(of(Driver::UNKNOWN).worker.is_some());
        let likes: Vec<_> = Driver::all().filter_map(|driver| of(driver).like.as_deref()).collect();
        assert!(!likes.is_empty() && likes.iter().all(|key| Driver::of_key(key).is_some()), "{likes:?}");
    }

    #[test]
    fn an_orm_has_a_language_and_a_fix_for_its_loops() {
        for driver in Driver::all().filter(|driver| driver.is_orm()) {
            assert!(of(driver).language.is_some(), "{}", driver.key());
            assert!(of(driver).fixes.contains_key(&Code::Loop), "{}", driver.key());
        }
    }
}
