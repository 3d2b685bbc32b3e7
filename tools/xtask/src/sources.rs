//! What a fuzz target is built from: its own file, and the crates of this repository that it names, with all that they use.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::root;
use crate::steps::Spec;

/// The packages of the workspace, and who uses whom.
#[derive(Deserialize)]
pub(crate) struct Packages {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    /// None if it is of this repository.
    source: Option<String>,
    manifest_path: PathBuf,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    /// `dev` is for tests alone.
    kind: Option<String>,
}

impl Dependency {
    fn is_for_tests_alone(&self) -> bool {
        self.dep_kinds.iter().all(|kind| kind.kind.as_deref() == Some("dev"))
    }
}

impl Packages {
    /// Asks cargo.
    pub(crate) fn read() -> Result<Self> {
        let command = "metadata --locked --format-version 1";
        let output = Spec::cargo(command).command().output().context("cannot run cargo metadata")?;
        if !output.status.success() {
            bail!("cargo {command} failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        serde_json::from_slice(&output.stdout).context("cargo metadata is not read")
    }

    /// A hash of all that decides what the target does: the same on each machine, until a compiler comes with another hasher.
    pub(crate) fn hash_of(&self, target: &str) -> Result<String> {
        let file = root().join("fuzz/fuzz_targets").join(format!("{target}.rs"));
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let mut hasher = DefaultHasher::new();
        hasher.write(text.as_bytes());
        for package in self.used_by(&text) {
            hasher.write(package.name.as_bytes());
            match package.source {
                Some(_) => hasher.write(package.version.as_bytes()),
                None => {
                    hash_crate(package.manifest_path.parent().context("a crate has a folder")?, &mut hasher)?
                }
            }
        }
        Ok(format!("{:016x}", hasher.finish()))
    }

    /// The packages that a text names as crates of this repository, and all that these use, by name and version.
    fn used_by(&self, text: &str) -> Vec<&Package> {
        let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
        let words: BTreeSet<&str> = text.split(|character| !is_word(character)).collect();
        let is_named = |package: &&Package| {
            package.source.is_none() && words.contains(package.name.replace('-', "_").as_str())
        };
        let uses: BTreeMap<&str, &[Dependency]> =
            self.resolve.nodes.iter().map(|node| (node.id.as_str(), &node.deps[..])).collect();
        let mut todo: Vec<&str> =
            self.packages.iter().filter(is_named).map(|package| package.id.as_str()).collect();
        let mut used = BTreeSet::new();
        while let Some(id) = todo.pop() {
            if used.insert(id) {
                let used_here = uses.get(id).into_iter().copied().flatten();
                todo.extend(used_here.filter(|it| !it.is_for_tests_alone()).map(|it| it.pkg.as_str()));
            }
        }
        let mut found: Vec<&Package> =
            self.packages.iter().filter(|package| used.contains(package.id.as_str())).collect();
        found.sort_by_key(|package| (&package.name, &package.version));
        found
    }
}

/// The crate's manifest and sources, in the order of their paths; its tests decide nothing.
fn hash_crate(folder: &Path, hasher: &mut DefaultHasher) -> Result<()> {
    let mut files = vec![folder.join("Cargo.toml")];
    let mut folders = vec![folder.join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.extend([folder.join("build.rs")].into_iter().filter(|path| path.exists()));
    files.sort();
    for file in files {
        let name = file.strip_prefix(folder).unwrap_or(&file);
        hasher.write(name.to_string_lossy().as_bytes());
        hasher.write(&fs::read(&file).with_context(|| file.display().to_string())?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, is_ours: bool, folder: &Path) -> Package {
        Package {
            id: name.to_owned(),
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            source: (!is_ours).then(|| "registry".to_owned()),
            manifest_path: folder.join("Cargo.toml"),
        }
    }

    #[test]
    fn a_target_is_of_the_crates_that_it_names_and_of_what_they_use() {
        let folder = Path::new("/nowhere");
        let dependency = |name: &str, kind: Option<&str>| Dependency {
            pkg: name.to_owned(),
            dep_kinds: vec![Kind { kind: kind.map(str::to_owned) }],
        };
        let node = |id: &str, names: &[&str]| Node {
            id: id.to_owned(),
            deps: names.iter().map(|name| dependency(name, None)).collect(),
        };
        let mut wire = node("one-wire", &[]);
        wire.deps.push(dependency("one-cli", Some("dev")));
        let packages = Packages {
            packages: [("one-wire", true), ("one-sql", true), ("memchr", false), ("one-cli", true)]
                .map(|(name, is_ours)| package(name, is_ours, folder))
                .into(),
            resolve: Resolve {
                nodes: vec![
                    node("one-sql", &["one-wire", "memchr"]),
                    wire,
                    node("memchr", &[]),
                    node("one-cli", &["one-sql"]),
                ],
            },
        };
        let names = |text: &str| -> Vec<&str> {
            packages.used_by(text).iter().map(|package| package.name.as_str()).collect()
        };
        assert_eq!(names("use one_sql::Lifter; memchr(b'a', x);"), ["memchr", "one-sql", "one-wire"]);
        assert_eq!(names("use one_wire::pg;"), ["one-wire"]);
        assert!(names("fn main() {}").is_empty());
    }

    #[test]
    fn a_crate_is_told_from_another_by_names_and_bytes_of_its_sources() {
        let home = tempfile::tempdir().expect("a folder");
        let hash = || {
            let mut hasher = DefaultHasher::new();
            hash_crate(home.path(), &mut hasher).expect("it is read");
            hasher.finish()
        };
        fs::create_dir_all(home.path().join("src/inner")).expect("it is made");
        fs::create_dir_all(home.path().join("tests")).expect("it is made");
        fs::write(home.path().join("Cargo.toml"), "[package]").expect("it is written");
        fs::write(home.path().join("src/inner/a.rs"), "1").expect("it is written");
        let first = hash();
        fs::write(home.path().join("tests/a.rs"), "2").expect("it is written");
        assert_eq!(hash(), first, "tests decide nothing");
        fs::write(home.path().join("src/inner/a.rs"), "2").expect("it is written");
        let second = hash();
        assert_ne!(second, first);
        fs::rename(home.path().join("src/inner/a.rs"), home.path().join("src/inner/b.rs"))
            .expect("it is there");
        assert_ne!(hash(), second);
    }
}
