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
