//! Who knows whom inside the session: remedies do not know the core's fields, nor each other.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// A module's files, itself or in its folder.
fn files(module: &str) -> Vec<(PathBuf, String)> {
    let place = sources().join(module);
    let mut found = vec![place.with_extension("rs")];
    let mut folders = vec![place];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path => found.push(path),
            }
        }
    }
    found.into_iter().filter_map(|path| fs::read_to_string(&path).ok().map(|text| (path, text))).collect()
}

/// The remedies, by the modules that each has in `remedies`.
const REMEDIES: [&[&str]; 7] = [
    &["begin"],
    &["commit"],
    &["chatter"],
    &["statements", "refusal", "watching", "descriptions"],
    &["cursors"],
    &["loops"],
    &["lobs"],
];
/// What several remedies need, and that knows none of them.
const SERVICES: [&str; 5] = ["flights", "shadow", "unseen", "fence", "own"];

#[test]
fn no_remedy_can_name_fields_that_are_not_its_own() {
    let peeks = fs::read_to_string(sources().join("remedies/peek.rs")).expect("it is there");
    // Of what a remedy gets, each field is private; and there is no remedy in it.
    let (fields, others) = peeks.split_once("fn peek_at_others").expect("there are both");
    let counts =
        [("E0616", fields), ("E0609", others)].map(|(code, text)| (code, text.matches("let _ =").count()));
    let built = Command::new(env!("CARGO"))
        .args(["rustc", "--offline", "--quiet", "--package", "onetrip-session", "--lib"])
        .args(["--profile", "check", "--", "--cfg", "onetrip_peek"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(!built.status.success(), "it compiles");
    let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("error[")).collect();
    for (code, count) in counts {
        let of_code = errors.iter().filter(|error| error.starts_with(&format!("error[{code}]")));
        assert_eq!(of_code.count(), count, "{code}: {said}");
    }
    assert_eq!(errors.len(), counts.iter().map(|(_, count)| count).sum::<usize>(), "{said}");
}

#[test]
fn no_remedy_names_another() {
    for own in REMEDIES {
        let texts: Vec<_> = own.iter().flat_map(|module| files(&format!("remedies/{module}"))).collect();
        assert!(!texts.is_empty(), "{own:?}");
        for other in REMEDIES.iter().filter(|other| **other != own).flat_map(|other| other.iter()) {
            for (path, text) in &texts {
                let names = [format!("remedies::{other}"), format!("super::{other}::")];
                // A module of its own folder may be called like a remedy.
                let found = names.iter().find(|name| text.contains(name.as_str()));
                let is_own = path.parent().is_some_and(|folder| folder.join(format!("{other}.rs")).exists())
                    && path.parent() != Some(&sources().join("remedies"));
                assert!(found.is_none() || is_own, "{}: {found:?}", path.display());
            }
        }
    }
}

/// A session has a field for each remedy, by the name of its first module.
fn fields_of_others(own: &str) -> impl Iterator<Item = String> {
    let fields = REMEDIES.iter().map(|modules| modules[0]).filter(move |field| *field != own);
    fields.flat_map(|field| [format!("self.{field}."), format!("self.{field};"), format!("self.{field},")])
}

#[test]
fn no_remedy_and_no_service_touches_a_remedy_that_is_not_it() {
    let remedies = REMEDIES.iter().flat_map(|own| own.iter().map(|module| (own[0], *module)));
    for (own, module) in remedies.chain(SERVICES.map(|service| ("", service))) {
        let texts = files(&format!("remedies/{module}"));
        assert!(!texts.is_empty(), "{module}");
        for (path, text) in texts {
            let found = fields_of_others(own).find(|field| text.contains(field));
            assert!(found.is_none(), "{}: {found:?}", path.display());
        }
    }
}

/// The functions that a file's `impl` blocks offer to others.
fn offered(text: &str) -> impl Iterator<Item = &str> {
    let starts = ["    pub(crate) fn ", "    pub(super) fn ", "    pub fn "];
    text.lines().filter_map(move |line| {
        let rest = starts.iter().find_map(|start| line.strip_prefix(start))?;
        rest.split(['(', '<']).next()
    })
}

#[test]
fn no_remedy_asks_a_session_for_what_another_does() {
    let mut defined: HashMap<String, usize> = HashMap::new();
    for (_, text) in files("") {
        offered(&text).for_each(|name| *defined.entry(name.to_owned()).or_default() += 1);
    }
    let remedies = REMEDIES.map(|own| -> Vec<(PathBuf, String)> {
        own.iter().flat_map(|module| files(&format!("remedies/{module}"))).collect()
    });
    let mut looked_at = 0;
    for own in &remedies {
        let names = own.iter().flat_map(|(_, text)| offered(text));
        // A name that several modules have says nothing about which is meant.
        for name in names.filter(|name| defined[*name] == 1) {
            looked_at += 1;
            let (called, made) = (format!("self.{name}("), format!("fn {name}("));
            for other in remedies.iter().filter(|other| *other != own) {
                let has_its_own = other.iter().any(|(_, text)| text.contains(&made));
                let caller = other.iter().find(|(_, text)| !has_its_own && text.contains(&called));
                assert!(caller.is_none(), "{name}: {:?}", caller.map(|(path, _)| path));
            }
        }
    }
    assert!(looked_at > 50, "{looked_at}");
}

#[test]
fn what_a_second_protocol_will_use_knows_no_message_of_postgresql() {
    let modules = [
        "events",
        "slots",
        "tally",
        "texts",
        "parameters",
        "own_names",
        "facts/changes",
        "facts/names",
        "facts/path",
        "facts/settings",
        "facts/transaction",
        "remedies/fence",
        "reading",
        "rules",
        "remedies/isolation",
    ];
    for module in modules {
        for (path, text) in files(module) {
            assert!(!text.contains("wire::pg"), "{}", path.display());
        }
    }
}

#[test]
fn the_core_knows_no_remedy() {
    for module in [
        "session/core",
        "reply_queue",
        "units",
        "statements",
        "slots",
        "names",
        "scopes",
        "parameters",
        "canonical",
        "reading",
    ] {
        for (path, text) in files(module) {
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            assert!(!code.contains("crate::remedies"), "{}", path.display());
        }
    }
}
