//! Which integration tests belong to which step, by the names of their files. The step `rust` runs every test that no
//! step names. So a new test runs in CI without being named anywhere.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::root;
use crate::steps::Spec;

/// Programs made by a generator, run direct and with remedies, on a model and on PostgreSQL.
const GENERATED: &[&str] = &["generated", "postgres", "remedies", "sessions"];
/// What others rely on: formats, reports, documents that are made from code, allocations, and who depends on whom.
const CONTRACTS: &[&str] = &[
    "allocations",
    "commands_doc",
    "explain",
    "golden",
    "guide",
    "house",
    "json_fields",
    "layers",
    "pages",
    "rows_doc",
    "safety_doc",
    "trace",
];
/// One of them, which runs the command.
pub(crate) const OF_COMMAND: &str = "explain";
/// The report's page, and what a browser makes of it.
const PAGES: &[&str] = &["browser", "html"];

/// The crate whose tests take as long as those of all others: with servers, they mostly wait.
const LONG: &str = "onetrip-gateway";

/// The names of all integration tests.
pub(crate) struct Suites {
    names: BTreeSet<String>,
    /// Those that the crate with the longest tests has.
    long: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
}

impl Suites {
    /// Asks cargo. A step that names a test which does not exist is an error.
    pub(crate) fn read() -> Result<Self> {
        let output = Spec::cargo("metadata --no-deps --format-version 1").command().output()?;
        if !output.status.success() {
            bail!("cargo metadata failed in {}", root().display());
        }
        let metadata: Metadata =
            serde_json::from_slice(&output.stdout).context("cargo metadata is not read")?;
        let mut suites = Self { names: BTreeSet::new(), long: BTreeSet::new() };
        for package in metadata.packages {
            let tests = package.targets.iter().filter(|target| target.kind.iter().any(|kind| kind == "test"));
            for test in tests {
                suites.names.insert(test.name.clone());
                if package.name == LONG {
                    suites.long.insert(test.name.clone());
                }
            }
        }
        for name in [GENERATED, CONTRACTS, PAGES].into_iter().flatten() {
            if !suites.names.contains(*name) {
                bail!("no crate has a test {name}.rs, which tools/xtask/src/suites.rs names");
            }
        }
        Ok(suites)
    }

    pub(crate) fn generated(&self) -> Spec {
        tests(GENERATED.iter().copied())
    }

    pub(crate) fn contracts(&self) -> Spec {
        tests(CONTRACTS.iter().copied())
    }

    pub(crate) fn pages(&self) -> Spec {
        tests(PAGES.iter().copied())
    }

    /// All that no other step names, in two halves that take about as long.
    pub(crate) fn rest(&self) -> [Spec; 2] {
        let named: BTreeSet<&str> = [GENERATED, CONTRACTS, PAGES].into_iter().flatten().copied().collect();
        let rest = || self.names.iter().map(String::as_str).filter(|name| !named.contains(name));
        let is_long = |name: &&str| self.long.contains(*name);
        [tests(rest().filter(is_long)), tests(rest().filter(|name| !is_long(name)))]
    }
}

fn tests<'a>(names: impl Iterator<Item = &'a str>) -> Spec {
    let mut arguments = vec!["test", "--locked", "--workspace", "--no-fail-fast"];
    arguments.extend(names.flat_map(|name| ["--test", name]));
    Spec::new("scripts/cargo", arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_belongs_to_one_step() {
        let _turn = crate::CHILDREN.lock();
        let suites = Suites::read().expect("cargo tells the tests");
        let [long, others] = suites.rest();
        let steps = [suites.generated(), suites.contracts(), suites.pages(), long, others];
        let shown = steps.map(|step| format!("{step} "));
        for name in &suites.names {
            let count = shown.iter().filter(|text| text.contains(&format!(" --test {name} "))).count();
            assert_eq!(count, 1, "{name}");
        }
    }
}
