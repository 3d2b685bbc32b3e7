//! Who knows whom inside the session: remedies do not know the core's fields, nor each other.

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
/// What goes by the flights of `loops` is still known to both.
const KNOWN: [(&str, &str); 1] = [("loops", "lobs")];

#[test]
fn no_remedy_names_the_cores_fields() {
    let peeks = fs::read_to_string(sources().join("remedies/peek.rs")).expect("it is there");
    let count = peeks.matches("let _ = &cx.core.").count();
    let built = Command::new(env!("CARGO"))
        .args(["rustc", "--offline", "--quiet", "--package", "onetrip-session", "--lib"])
        .args(["--profile", "check", "--", "--cfg", "onetrip_peek"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(!built.status.success(), "it compiles");
    let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("error[")).collect();
    assert!(errors.iter().all(|error| error.starts_with("error[E0616]")), "{said}");
    assert_eq!(errors.len(), count, "each of them is private: {said}");
}

#[test]
fn no_remedy_names_another() {
    for own in REMEDIES {
        let texts: Vec<_> = own.iter().flat_map(|module| files(&format!("remedies/{module}"))).collect();
        assert!(!texts.is_empty(), "{own:?}");
        for other in REMEDIES.iter().filter(|other| **other != own).flat_map(|other| other.iter()) {
            if KNOWN
                .iter()
                .any(|(one, two)| (own[0], *other) == (*one, *two) || (own[0], *other) == (*two, *one))
            {
                continue;
            }
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
