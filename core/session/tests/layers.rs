//! Who knows whom inside the session: remedies do not know the core's fields, nor each other.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "layers/receivers.rs"]
mod receivers;

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
    &["statements", "refusal", "watching"],
    &["cursors"],
    &["loops"],
    &["lobs"],
];
/// What several remedies need, and that knows none of them.
const SERVICES: &str = "services";

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
    let remedies =
        REMEDIES.iter().flat_map(|own| own.iter().map(|module| (own[0], format!("remedies/{module}"))));
    for (own, module) in remedies.chain([("", SERVICES.to_owned())]) {
        let texts = files(&module);
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
        "facts/common/fence",
        "contract",
        "reading",
        "rules",
        "config/isolation",
    ];
    for module in modules {
        for (path, text) in files(module) {
            assert!(!text.contains("wire::pg"), "{}", path.display());
        }
    }
}

#[test]
fn the_watched_mysql_session_knows_no_message_and_no_session_of_postgresql() {
    let texts = files("mysql");
    assert!(texts.len() > 5, "{}", texts.len());
    for (path, text) in texts {
        for name in ["wire::pg", "crate::session", "crate::services", "crate::remedies", "reply_queue"] {
            assert!(!text.contains(name), "{}: {name}", path.display());
        }
    }
}

/// The folders, from the bottom: the modules that lie beside them belong to the first.
const LAYERS: [&str; 7] = ["session/core", "facts", "config", "services", "remedies", "session", "mysql"];

/// Which layer a file belongs to, by its path below `src`; none for the table of contents.
fn layer_of(file: &str) -> Option<usize> {
    // The core lies within the session's folder, because its fields are for the session alone.
    match LAYERS.iter().position(|layer| file.starts_with(&format!("{layer}/"))) {
        None if file == "lib.rs" => None,
        found => Some(found.unwrap_or(0)),
    }
}

/// The layers that a line of code names, by its path from the crate's root.
fn layers_named(line: &str) -> impl Iterator<Item = usize> {
    line.match_indices("crate::").map(|(at, found)| {
        let path = &line[at + found.len()..];
        if path.starts_with(|first: char| first.is_ascii_uppercase() || first == '{') {
            return LAYERS.len(); // by the table of contents, which is above all
        }
        let place = path.split(|next: char| !(next.is_alphanumeric() || "_:".contains(next))).next();
        let place = format!("{}/", place.unwrap_or_default().replace("::", "/"));
        layer_of(&place).unwrap_or(0)
    })
}

/// How far a line of code climbs out of its own module.
fn climbs(line: &str) -> usize {
    line.match_indices("super::").count()
}

#[test]
fn no_file_names_a_folder_above_its_own() {
    let mut looked_at = [0; LAYERS.len()];
    for (path, text) in files("") {
        let file = path.strip_prefix(sources()).expect("it is below").to_string_lossy().into_owned();
        let Some(own) = layer_of(&file) else { continue };
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for named in layers_named(line) {
                assert!(named <= own, "{file}: {line}");
                looked_at[own] += 1;
            }
            // What is beside a folder of a layer is reached from the crate's root, and so is seen above.
            let depth = file.matches('/').count() + usize::from(!file.ends_with("mod.rs"));
            let folders = LAYERS[own].matches('/').count() + 1;
            let is_inside = file.starts_with(LAYERS[own]);
            assert!(!is_inside || climbs(line) <= depth.saturating_sub(folders), "{file}: {line}");
        }
    }
    assert!(looked_at.iter().all(|count| *count > 1), "{looked_at:?}");
}

#[test]
fn a_name_from_above_is_seen() {
    let named = |line: &str| layers_named(line).collect::<Vec<_>>();
    assert_eq!(named("use crate::remedies::{Remedy, Texts};"), [4]);
    assert_eq!(named("    state: crate::session::core::Core, other: crate::facts::Facts,"), [0, 1]);
    assert_eq!(named("use crate::session::Observed;"), [5]);
    assert_eq!(named("fn of(session: &crate::Session, other: crate::units::Units)"), [7, 0]);
    assert_eq!(layer_of("session/core/mod.rs"), Some(0));
    assert_eq!(layer_of("session/client.rs"), Some(5));
    assert_eq!(layer_of("units.rs"), Some(0));
}
