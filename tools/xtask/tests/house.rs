//! The layout: folders say what depends on what, one compiler is the oldest, and each folder has a line that explains it.

#[path = "house/imports.rs"]
mod imports;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

/// Each folder may depend on those before it and on itself. `testing` is only for tests.
const FOLDERS: [&str; 4] = ["core", "edge", "tools", "bindings"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn manifest(name: &str) -> Table {
    toml::from_str(&read(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn table<'a>(of: &'a Table, key: &str) -> Option<&'a Table> {
    of.get(key).and_then(Value::as_table)
}

/// The folders in a folder that are under version control: they have more in them than what is built.
fn folders(name: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut found: Vec<String> = entries
        .map(|entry| entry.expect("it can be read"))
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().expect("its name is UTF-8"))
        .filter(|name| !["target", "node_modules", "__pycache__"].contains(&name.as_str()))
        .collect();
    found.sort();
    found
}

/// Those of them that are crates, which is all but Go's modules.
fn crates(layer: &str) -> Vec<String> {
    let mut found = folders(layer);
    found.retain(|name| !root().join(layer).join(name).join("go.mod").exists());
    found
}

/// A crate's path, and the paths of the crates of ours that one table of its dependencies names.
fn dependencies(of: &str, kind: &str) -> Vec<String> {
    let workspace = manifest("Cargo.toml");
    let known =
        table(table(&workspace, "workspace").expect("it has one"), "dependencies").expect("it has some");
    let own = manifest(&format!("{of}/Cargo.toml"));
    let mut tables = vec![table(&own, kind)];
    for (_, target) in table(&own, "target").into_iter().flatten() {
        tables.push(target.as_table().and_then(|target| table(target, kind)));
    }
    let mut found = Vec::new();
    for (name, value) in tables.into_iter().flatten().flatten() {
        let path = match value.get("path").and_then(Value::as_str) {
            Some(path) => Some(path.trim_start_matches("../")),
            None => known.get(name).and_then(|known| known.get("path")).and_then(Value::as_str),
        };
        found.extend(path.filter(|path| *path != ".").map(str::to_owned));
    }
    found
}

fn folder(path: &str) -> &str {
    path.split('/').next().unwrap_or(path)
}

fn height(path: &str) -> usize {
    FOLDERS
        .iter()
        .position(|name| *name == folder(path))
        .unwrap_or_else(|| panic!("{path} is in no known folder"))
}

#[test]
fn no_crate_depends_upwards() {
    let mut count = 0;
    for layer in FOLDERS {
        for name in crates(layer) {
            let own = format!("{layer}/{name}");
            for kind in ["dependencies", "build-dependencies"] {
                for other in dependencies(&own, kind) {
                    assert_ne!(folder(&other), "testing", "{own} needs {other} outside of its tests");
                    assert!(height(&other) <= height(&own), "{own} depends on {other}, which is above it");
                    count += 1;
                }
            }
        }
    }
    assert!(count > 30, "only {count} dependencies were found");
}

#[test]
fn tests_of_the_core_need_nothing_above_it() {
    for name in crates("core") {
        for other in dependencies(&format!("core/{name}"), "dev-dependencies") {
            assert!(["core", "testing"].contains(&folder(&other)), "core/{name} tests with {other}");
        }
    }
    for name in crates("testing") {
        for other in dependencies(&format!("testing/{name}"), "dependencies") {
            assert!(["core", "testing"].contains(&folder(&other)), "testing/{name} needs {other}");
        }
    }
}

/// A crate's sources, by their paths below `src`, and their texts.
fn sources(of: &str) -> Vec<(String, String)> {
    let place = root().join(of).join("src");
    let (mut found, mut todo) = (Vec::new(), vec![place.clone()]);
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text =
                    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                let name =
                    path.strip_prefix(&place).expect("it is below").to_str().expect("its name is UTF-8");
                found.push((name.to_owned(), text));
            }
        }
    }
    found
}

#[test]
fn no_files_of_different_folders_of_a_crate_depend_on_each_other() {
    let (mut count, mut wrong) = (0, Vec::new());
    for layer in FOLDERS.into_iter().chain(["testing"]) {
        for name in crates(layer) {
            let own = format!("{layer}/{name}");
            let graph = imports::graph(&sources(&own));
            count += graph.values().map(BTreeSet::len).sum::<usize>();
            // Each pair is there both ways.
            let circles = imports::in_circles(&graph);
            let pairs = circles.into_iter().filter(|(one, other)| one < other);
            wrong.extend(pairs.map(|(one, other)| format!("{own}: {one} and {other}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 2_000, "only {count} dependencies were found");
}

/// Code that serves every protocol: it knows no more of one than names of drivers and texts for them, which are data.
const OF_ALL_PROTOCOLS: [(&str, &[&str]); 5] = [
    ("core/ledger", &["stacks/files.rs"]),
    ("core/loops", &[]),
    ("edge/link", &[]),
    ("tools/forecast", &[]),
    ("tools/report", &[]),
];

#[test]
fn what_serves_every_protocol_knows_the_name_of_no_second_one() {
    for (own, data) in OF_ALL_PROTOCOLS {
        let sources = sources(own);
        assert!(data.iter().all(|file| sources.iter().any(|(name, _)| name == file)), "{own}");
        for (name, text) in sources.iter().filter(|(name, _)| !data.contains(&name.as_str())) {
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            for line in lines {
                let line = line.to_ascii_lowercase();
                assert!(!line.contains("mysql") && !line.contains("mariadb"), "{own}/src/{name}: {line}");
            }
        }
    }
}

#[test]
fn one_compiler_is_the_oldest_everywhere() {
    let workspace = manifest("Cargo.toml");
    let package = table(table(&workspace, "workspace").expect("it has one"), "package").expect("it has one");
    let oldest = package.get("rust-version").and_then(Value::as_str).expect("it says so");
    assert_eq!(manifest("clippy.toml").get("msrv").and_then(Value::as_str), Some(oldest));
    assert!(read("scripts/setup").contains(&format!("\nRUST_MIN={oldest}\n")));
    for layer in FOLDERS.into_iter().chain(["testing"]) {
        for name in crates(layer) {
            let text = read(&format!("{layer}/{name}/Cargo.toml"));
            assert!(text.contains("\nrust-version.workspace = true\n"), "{layer}/{name}");
            assert!(text.contains("\n[lints]\nworkspace = true\n"), "{layer}/{name}");
        }
    }
}

#[test]
fn each_folder_of_programs_has_a_line_that_explains_it() {
    for place in ["clients", "bench"] {
        let readme = read(&format!("{place}/README.md"));
        for name in folders(place) {
            assert!(readme.contains(&format!("| `{name}/` | ")), "{place}/README.md has no row for {name}/");
        }
    }
}
