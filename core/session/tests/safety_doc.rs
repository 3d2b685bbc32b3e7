//! `docs/safety.md` shows the rules that the code has.

use std::fs;
use std::path::Path;

use onetrip_session::Rule;

/// The rows of the table behind a heading.
fn rows<'a>(text: &'a str, heading: &str) -> Vec<&'a str> {
    let (_, behind) = text.split_once(heading).expect("it has the heading");
    let rows = behind.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    rows.take_while(|line| line.starts_with('|')).collect()
}

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/safety.md");
    fs::read_to_string(path).expect("the document is there")
}

#[test]
fn each_rule_of_the_code_has_its_row_in_order() {
    let text = document();
    let shown = rows(&text, "## The rules\n").into_iter().map(|row| {
        let columns: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [name, says, test] = columns[..] else { panic!("three columns: {row}") };
        assert!(says.len() > 40 && says.ends_with('.'), "{name} says what it requires, in sentences");
        (name.to_owned(), test.to_owned())
    });
    let of_code = Rule::ALL.map(|rule| (rule.name().to_owned(), format!("`{}`", rule.test())));
    assert_eq!(shown.collect::<Vec<_>>(), of_code);
}

/// All sources below a folder, as one text.
fn sources(folder: &Path, out: &mut String) {
    for entry in fs::read_dir(folder).expect("it is a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            out.push_str(&fs::read_to_string(&path).expect("a source is text"));
        }
    }
}

#[test]
fn every_hole_names_a_test_that_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = document();
    let rows = rows(&text, "## The holes that were found");
    let mut tests = String::new();
    for folder in ["core/session", "core/sql/tests", "edge/gateway/tests"] {
        sources(&root.join(folder), &mut tests);
    }
    assert!(rows.len() > 40, "{}", rows.len());
    for row in rows {
        let name = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default().trim_matches('`');
        assert!(tests.contains(&format!("fn {name}()")), "no test {name:?}: {row}");
    }
}
