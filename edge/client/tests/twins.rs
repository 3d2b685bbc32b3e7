//! The two shells of the client are twins. Where both wait for the same, the one for programs that await is the source, and
//! the blocking one is made from it:
//!
//! ```sh
//! UPDATE_TWINS=1 cargo test -p onetrip-client --test twins
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is made; the other files of the shells are what waits, and what only one of them can have.
const FILES: [&str; 10] = [
    "bulk.rs",
    "client.rs",
    "copy.rs",
    "cursor.rs",
    "lob.rs",
    "pipeline.rs",
    "pool.rs",
    "portal.rs",
    "rows.rs",
    "run.rs",
];

/// Before an item that blocking programs have from the standard library; it ends with the item's last brace.
const AWAITING_ONLY: &str = "// Awaiting only: ";

/// Calls that make parameters which may cross threads into parameters: blocking programs need none.
const CONVERSIONS: [&str; 2] = ["with_request(request, |request| ", "with_params(parameters, |parameters| "];

/// What is written otherwise, in this order.
const WORDS: [(&str, &str); 9] = [
    ("async fn ", "fn "),
    (".await", ""),
    ("(dyn Param + Sync)", "dyn Param"),
    ("dyn Param + Sync", "dyn Param"),
    ("(impl Sets + Sync)", "impl Sets"),
    ("Request::sync(", "Request::new("),
    ("onetrip_client::aio::", "onetrip_client::blocking::"),
    ("aio::Client", "blocking::Client"),
    ("{Client, with_params}", "Client"),
];

#[test]
fn the_blocking_shell_is_what_the_awaiting_one_says() {
    let updates = std::env::var_os("UPDATE_TWINS").is_some();
    for name in FILES {
        let source = fs::read_to_string(shell("aio").join(name)).unwrap();
        let made = blocking_of(name, &source);
        let path = shell("blocking").join(name);
        if updates {
            fs::write(&path, &made).unwrap();
            let formatted = Command::new("rustfmt").args(["--edition", "2024"]).arg(&path).status().unwrap();
            assert!(formatted.success(), "rustfmt {name}");
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            squeezed(&found) == squeezed(&made),
            "blocking/{name} is not what aio/{name} makes: change that one, then \
             UPDATE_TWINS=1 cargo test -p onetrip-client --test twins"
        );
    }
}

#[test]
fn a_call_of_one_shell_is_one_of_the_other_or_has_a_reason() {
    let (awaiting, blocking) = (calls("aio"), calls("blocking"));
    assert!(awaiting.contains("Client::execute") && blocking.contains("LobReader: Read"), "calls are found");
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/twins.toml")).unwrap();
    let table: toml::Table = text.parse().unwrap();
    let mut differences = BTreeSet::new();
    for (shell, own, others) in [("aio", &awaiting, &blocking), ("blocking", &blocking, &awaiting)] {
        differences.extend(own.difference(others).map(|call| format!("{shell} {call}")));
    }
    let mut reasons = BTreeSet::new();
    for entry in table["only"].as_array().unwrap() {
        let word = |name: &str| entry[name].as_str().unwrap().to_owned();
        assert!(word("why").len() > 10, "{entry}: a reason");
        assert!(reasons.insert(format!("{} {}", word("shell"), word("call"))), "{entry}: it is there twice");
    }
    let unexplained: Vec<_> = differences.difference(&reasons).collect();
    assert!(
        unexplained.is_empty(),
        "only one shell has {unexplained:?}: give both, or a reason in tests/twins.toml"
    );
    let stale: Vec<_> = reasons.difference(&differences).collect();
    assert!(stale.is_empty(), "tests/twins.toml has reasons for what is not so: {stale:?}");
}

#[test]
fn what_only_awaits_is_left_out_and_the_rest_keeps_its_words() {
    let source = "\
//! Of many things.

impl Client {
    /// Reads.
    /// A future that is dropped loses nothing.
    pub async fn read(&mut self, parameters: &[&(dyn Param + Sync)]) -> Result<(), Error> {
        with_request(request, |request| self.core.push(request, (1, 2)))?;
        self.other().await
    }

    // Awaiting only: std::io::Read has it.
    /// Reads all.
    pub async fn read_to_end(&mut self) {
        if true {
        }
    }

    fn last(&self) {}
}
";
    let made = blocking_of("read.rs", source);
    let expected = "\
//! Of many things.

impl Client {
    /// Reads.
    pub fn read(&mut self, parameters: &[&dyn Param]) -> Result<(), Error> {
        self.core.push(request, (1, 2))?;
        self.other()
    }

    fn last(&self) {}
}
";
    assert_eq!(made.split_once('\n').unwrap().1, expected);
    assert!(made.starts_with("// Made from aio/read.rs"));
}

/// The blocking file that a file for programs that await makes.
fn blocking_of(name: &str, source: &str) -> String {
    let mut made = format!("// Made from aio/{name} by tests/twins.rs: change that one.\n");
    let mut lines = source.lines().peekable();
    while let Some(line) = lines.next() {
        let text = line.trim_start();
        if text.starts_with(AWAITING_ONLY) {
            let end = format!("{}}}", &line[..line.len() - text.len()]);
            lines.by_ref().find(|line| *line == end).expect("the item ends");
            lines.next_if(|line| line.is_empty());
        } else if !(text.starts_with("/// ") && text.contains(" future ")) {
            made.push_str(line);
            made.push('\n');
        }
    }
    for call in CONVERSIONS {
        made = without_call(&made, call);
        let name = call.split_once('(').map_or(call, |(name, _)| name);
        made = made.replace(&format!(", {name}}};"), "};");
    }
    WORDS.iter().fold(made, |made, (awaiting, blocking)| made.replace(awaiting, blocking))
}

/// The text with what such calls are about in place of the calls.
fn without_call(text: &str, call: &str) -> String {
    let Some((before, rest)) = text.split_once(call) else { return text.to_owned() };
    let mut depth = 1;
    let end = rest.find(|sign: char| {
        depth += i32::from(sign == '(') - i32::from(sign == ')');
        depth == 0
    });
    let end = end.expect("the call ends");
    format!("{before}{}{}", &rest[..end], without_call(&rest[end + 1..], call))
}

/// What rustfmt leaves alone: it moves lines, and with them commas and braces.
fn squeezed(text: &str) -> String {
    text.chars().filter(|sign| !sign.is_whitespace() && !matches!(sign, ',' | '{' | '}')).collect()
}

fn shell(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(name)
}

/// The public types of a shell, their calls, and what they are to the standard library.
fn calls(name: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(shell(name)).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let mut owner = String::new();
        for line in text.lines() {
            if let Some(header) = line.strip_prefix("impl") {
                let header = if header.starts_with('<') { header.split_once('>').unwrap().1 } else { header };
                let (of_trait, of) = match header.split_once(" for ") {
                    Some((name, of)) => (Some(identifier(name)), identifier(of)),
                    None => (None, identifier(header)),
                };
                if let Some(of_trait) = of_trait.filter(|name| name != "Drop") {
                    found.insert(format!("{of}: {of_trait}"));
                }
                owner = of;
            }
            let words = line.trim_start().replace("async fn ", "fn ");
            if let Some(call) = words.strip_prefix("pub fn ").filter(|_| line.starts_with("    pub")) {
                found.insert(format!("{owner}::{}", identifier(call)));
            }
            for kind in ["pub struct ", "pub enum ", "pub type "] {
                found.extend(line.strip_prefix(kind).map(identifier));
            }
        }
    }
    found
}

fn identifier(text: &str) -> String {
    text.trim_start().chars().take_while(|sign| sign.is_alphanumeric() || *sign == '_').collect()
}
