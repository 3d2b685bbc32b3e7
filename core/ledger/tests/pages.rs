//! Pages that explain findings. `UPDATE_DOCS=1 cargo test -p onetrip-ledger --test pages` writes `docs/findings` anew.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use onetrip_ledger::findings::{CONCEPTS, page};
use onetrip_ledger::judge::Limit;
use onetrip_ledger::{Code, Driver, Mutes};

const SECTIONS: [&str; 8] = [
    "What it costs",
    "How it is proven",
    "What it does not claim",
    "Bad",
    "Good",
    "When to ignore it",
    "Mute it, or hold it to a budget",
    "Fix by driver",
];

fn documents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings")
}

/// The table of contents.
fn index() -> String {
    let mut index =
        "# Findings\n\nWhat onetrip reports, a page each; `onetrip explain CODE` prints them.\n\n\
        | code | finding |\n|---|---|\n"
            .to_owned();
    for code in Code::ALL {
        writeln!(index, "| [{code}]({code}.md) | {} |", code.title()).unwrap();
    }
    index
}

/// Contents of the code blocks of a page in this language.
fn blocks<'p>(page: &'p str, language: &str) -> Vec<&'p str> {
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap_or_default()).collect()
}

#[test]
fn the_documents_are_what_explain_prints() {
    let pages = Code::ALL.map(|code| (format!("{code}.md"), page(code)));
    let mut stale = Vec::new();
    let others = [("README.md".to_owned(), index()), ("../concepts.md".to_owned(), CONCEPTS.to_owned())];
    for (name, expected) in pages.into_iter().chain(others) {
        let path = documents().join(&name);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::create_dir_all(documents()).unwrap();
            fs::write(&path, &expected).unwrap();
        }
        if fs::read_to_string(&path).unwrap_or_default() != expected {
            stale.push(name);
        }
    }
    assert!(stale.is_empty(), "stale in docs/findings, write them anew with UPDATE_DOCS=1: {stale:?}");
}

#[test]
fn every_page_has_its_sections_in_order_and_fits_a_terminal() {
    for code in Code::ALL {
        let page = page(code);
        let found: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(found, SECTIONS, "{code}");
        assert_eq!(page.lines().next(), Some(format!("# {code}: {}", code.title()).as_str()));
        for line in page.lines() {
            assert!(line.chars().count() <= 100, "{code}: {line}");
        }
        assert_eq!(page.matches("```").count() % 2, 0, "{code}: a code block is not closed");
        assert!(page.contains("13 ms"), "{code}: no price");
    }
}

#[test]
fn mute_rules_and_budgets_of_the_pages_are_valid_and_about_their_own_code() {
    for code in Code::ALL {
        let page = page(code);
        let rules = blocks(&page, "toml");
        assert!(!rules.is_empty(), "{code} shows no rule");
        for rules in rules {
            Mutes::parse(rules).unwrap_or_else(|error| panic!("{code}: {error}"));
            assert!(rules.contains(&format!("code = \"{code}\"")), "{code}: {rules}");
        }
        let budgets: Vec<&str> =
            page.split("--budget ").skip(1).filter_map(|rest| rest.split('`').next()).collect();
        assert!(budgets.iter().any(|budget| budget.starts_with(code.as_str())), "{code}: {budgets:?}");
        for budget in budgets {
            budget.parse::<Limit>().unwrap_or_else(|error| panic!("{code}: {error}"));
        }
    }
}

/// An ORM that updates a row at a time is not helped by an INSERT of many.
#[test]
fn advice_for_updates_names_no_insert() {
    for code in [Code::RowByRow, Code::CommitPerRow] {
        for driver in Driver::all() {
            let fix = driver.fix_of_changes(code).to_lowercase();
            let inserts = ["insert", "copy", "bulk_create", "bulkcreate", "createmany", "push_values"];
            assert!(inserts.iter().all(|word| !fix.contains(word)), "{}: {fix}", driver.key());
        }
    }
}

#[test]
fn fixes_are_named_for_drivers_and_the_general_one_comes_last() {
    let page = page(Code::Sequence);
    let fixes = page.split("## Fix by driver").nth(1).unwrap();
    let items: Vec<&str> = fixes.lines().filter(|line| line.starts_with("- ")).collect();
    assert!(items.iter().any(|item| item.starts_with("- **psycopg 3**: ") && item.contains("pipeline")));
    assert!(items.last().is_some_and(|item| item.starts_with("- **others**: ")), "{items:?}");
}
