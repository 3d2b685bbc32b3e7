//! `docs/safety.md` shows the rules that the code has.

use std::fs;
use std::path::Path;

use onetrip_session::Rule;

const MARKS: (&str, &str) = (
    "<!-- rules: made by `UPDATE_DOCS=1 cargo test -p onetrip-session --test safety_doc` -->\n",
    "<!-- end of rules -->",
);

fn table() -> String {
    let mut table = String::from("\n| rule | what it says | test |\n|---|---|---|\n");
    for rule in Rule::ALL {
        table.push_str(&format!("| {} | {} | `{}` |\n", rule.name(), rule.text(), rule.test()));
    }
    table.push('\n');
    table
}

#[test]
fn the_table_of_rules_is_the_codes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/safety.md");
    let text = fs::read_to_string(&path).expect("the document is there");
    let (before, rest) = text.split_once(MARKS.0).expect("the first mark is there");
    let (shown, after) = rest.split_once(MARKS.1).expect("the second mark is there");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let text = [before, MARKS.0, &table(), MARKS.1, after].concat();
        fs::write(&path, text).expect("the document can be written");
    } else {
        assert_eq!(shown, table(), "run the command in the document's mark");
    }
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
    let text = fs::read_to_string(root.join("docs/safety.md")).expect("the document is there");
    let (_, holes) = text.split_once("## The holes that were found").expect("it has the list");
    let rows = holes.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let rows: Vec<&str> = rows.take_while(|line| line.starts_with('|')).collect();
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
