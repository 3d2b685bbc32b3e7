//! pytest behind `onetrip run`: each test's trips are booked on its name, without the package `onetrip` in its environment.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use onetrip_target::launch::Redirect;

/// The plugin.
const PLUGIN: &str = include_str!("pytest_scopes.py");
/// Its module.
const MODULE: &str = "onetrip_pytest_scopes";
/// Words of a command line that are looked at for pytest: `poetry run python -X dev -m pytest`.
const WORDS_MAX: usize = 8;

/// Lets pytest load the plugin from `directory`, if the command is one. Returns what changed, for saying so.
pub(crate) fn name_tests(
    command: &[OsString],
    directory: &Path,
    redirect: &mut Redirect,
) -> std::io::Result<Option<String>> {
    if !is_pytest(command) {
        return Ok(None);
    }
    let modules = directory.join("pytest");
    std::fs::create_dir(&modules)?;
    std::fs::write(modules.join(format!("{MODULE}.py")), PLUGIN)?;
    let modules = joined(modules.into_os_string(), ":", std::env::var_os("PYTHONPATH"));
    let plugins = joined(MODULE.into(), ",", std::env::var_os("PYTEST_PLUGINS"));
    redirect.set.push(("PYTHONPATH".to_owned(), modules));
    redirect.set.push(("PYTEST_PLUGINS".to_owned(), plugins));
    Ok(Some(
        "PYTEST_PLUGINS and PYTHONPATH name a plugin that books each test's round trips on its name"
            .to_owned(),
    ))
}

/// Whether a command line runs pytest, by itself or by way of Python.
fn is_pytest(command: &[OsString]) -> bool {
    let words: Vec<&OsStr> = command.iter().take(WORDS_MAX).map(OsString::as_os_str).collect();
    let is_command = |word: &&OsStr| {
        let name = Path::new(word).file_name().and_then(OsStr::to_str).unwrap_or_default();
        matches!(name, "pytest" | "py.test" | "pytest-3")
    };
    let by_module = words.windows(2).any(|pair| pair[0] == "-m" && pair[1] == "pytest");
    by_module || words.iter().any(is_command)
}

pub(crate) fn joined(first: OsString, separator: &str, rest: Option<OsString>) -> OsString {
    match rest.filter(|rest| !rest.is_empty()) {
        None => first,
        Some(rest) => {
            let mut joined = first;
            joined.push(separator);
            joined.push(rest);
            joined
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pytest_is_known_by_its_name_however_it_is_run() {
        let is_known = |line: &str| is_pytest(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for line in
            ["pytest -q", ".venv/bin/pytest", "python -m pytest tests", "poetry run python -X dev -m pytest"]
        {
            assert!(is_known(line), "{line}");
        }
        for line in ["python app.py", "psql -c pytest=1", "make test", "python -m pytestless"] {
            assert!(!is_known(line), "{line}");
        }
    }
}
