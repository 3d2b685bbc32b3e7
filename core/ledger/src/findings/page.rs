use std::fmt::Write as _;

use super::Code;
use crate::Driver;

/// No line of a page is wider, but for those of code blocks that cannot be broken.
const LINE_MAX: usize = 100;

/// The page that explains a finding, as Markdown: what it is, what it costs, how it is proven, examples, when to
/// ignore it, and what to change, by driver.
pub fn page(code: Code) -> String {
    let mut page = format!("# {code}: {}\n\n{}\n## Fix by driver\n\n", code.title(), body(code));
    page += &list(|driver| driver.fix(code));
    if Driver::UNKNOWN.fix_of_changes(code) != Driver::UNKNOWN.fix(code) {
        page += "\nWhere rows are updated or deleted:\n\n";
        page += &list(|driver| driver.fix_of_changes(code));
    }
    page
}

/// Code that makes a finding, and the same without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Example {
    /// What makes it.
    pub before: &'static str,
    /// What does the same in fewer trips.
    pub after: &'static str,
}

/// The example of a finding's page that names a driver, if there is one. Of each language, the first bad block belongs to the
/// first good one, and so on.
pub(super) fn example(code: Code, driver: Driver) -> Option<Example> {
    let fence = driver.language()?.fence();
    let (_, examples) = body(code).split_once("\n## Bad\n")?;
    let (bad, rest) = examples.split_once("\n## Good\n")?;
    let good = rest.split("\n## ").next()?;
    let examples = blocks(bad, fence).into_iter().zip(blocks(good, fence));
    let mut examples = examples.map(|(before, after)| Example { before, after });
    examples.find(|example| example.before.contains(driver.name()))
}

/// The blocks of code in a language.
fn blocks<'t>(text: &'t str, fence: &str) -> Vec<&'t str> {
    let begin = format!("```{fence}\n");
    text.split(begin.as_str()).skip(1).filter_map(|rest| rest.split("\n```").next()).collect()
}

fn body(code: Code) -> &'static str {
    match code {
        Code::Loop => include_str!("pages/OT001.md"),
        Code::RowByRow => include_str!("pages/OT002.md"),
        Code::CommitPerRow => include_str!("pages/OT003.md"),
        Code::TinyFetch => include_str!("pages/OT004.md"),
        Code::Repeated => include_str!("pages/OT005.md"),
        Code::TransactionAlone => include_str!("pages/OT006.md"),
        Code::PreparePerRun => include_str!("pages/OT007.md"),
        Code::ConnectionPerQuery => include_str!("pages/OT008.md"),
        Code::OnePerValue => include_str!("pages/OT009.md"),
        Code::LobChatter => include_str!("pages/OT010.md"),
        Code::SessionChatter => include_str!("pages/OT011.md"),
        Code::Sequence => include_str!("pages/OT012.md"),
        Code::ReadBeforeWrite => include_str!("pages/OT013.md"),
        Code::SequenceTrip => include_str!("pages/OT014.md"),
        Code::ExistsThenInsert => include_str!("pages/OT015.md"),
        Code::RollbackOfRead => include_str!("pages/OT016.md"),
    }
}

/// A list of the advice, drivers that share theirs in one item; that of unknown drivers comes last.
fn list(fix_of: impl Fn(Driver) -> &'static str) -> String {
    let general = fix_of(Driver::UNKNOWN);
    let mut items: Vec<(Vec<&str>, &str)> = Vec::new();
    for driver in Driver::all() {
        let fix = fix_of(driver);
        match items.iter_mut().find(|(_, known)| *known == fix) {
            Some((drivers, _)) => drivers.push(driver.name()),
            None if fix != general => items.push((vec![driver.name()], fix)),
            None => {}
        }
    }
    items.push((vec![if items.is_empty() { "any driver" } else { "others" }], general));
    let mut list = String::new();
    for (drivers, fix) in items {
        item(&mut list, &format!("**{}**: {fix}", drivers.join(", ")));
    }
    list
}

/// Appends an item of a list, wrapped.
fn item(list: &mut String, text: &str) {
    let mut line = "-".to_owned();
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > LINE_MAX {
            let _ = writeln!(list, "{line}");
            line = " ".to_owned();
        }
        let _ = write!(line, " {word}");
    }
    let _ = writeln!(list, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_is_of_its_driver() {
        let of = |code, key| example(code, Driver::of_key(key).unwrap());
        let loop_ = of(Code::Loop, "django").unwrap();
        assert!(loop_.before.starts_with("# Django: ") && loop_.before.ends_with("])"), "{}", loop_.before);
        assert!(loop_.after.contains(".prefetch_related(\"books\")"));
        assert!(of(Code::Loop, "pgx").unwrap().after.contains("ANY($1)"));
        let second = of(Code::Loop, "psycopg3").unwrap();
        assert!(second.before.starts_with("# psycopg 3") && second.after.contains("ANY(%s)"), "{second:?}");
        // Of its language, but of others' drivers.
        assert_eq!(of(Code::Loop, "asyncpg"), None);
        assert_eq!(of(Code::Loop, "libpq"), None);
        let told = |code| Driver::all().filter(|driver| example(code, *driver).is_some()).count();
        for code in Code::ALL {
            assert!(told(code) > 0, "{code} has no example of any driver");
        }
    }
}
