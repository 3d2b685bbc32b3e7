//! The program that tells: where the words of its command line lead, and what its environment gets.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use onetrip_target::launch::Redirect;

use crate::pytest::joined;

/// Words of a command line that are looked at: `poetry run python -X dev app.py`.
pub(super) const WORDS_MAX: usize = 8;

/// Where the program may be that a word names.
pub(super) fn places(word: &OsStr) -> Vec<PathBuf> {
    if Path::new(word).components().count() > 1 {
        return vec![PathBuf::from(word)];
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(word)).collect()
}

/// Puts a value before what a variable holds, for the program.
pub(super) fn put_first(redirect: &mut Redirect, variable: &str, first: OsString, separator: &str) {
    let set = redirect.set.iter().position(|(name, _)| name == variable);
    let rest = match set {
        Some(position) => Some(redirect.set.remove(position).1),
        None => std::env::var_os(variable),
    };
    redirect.set.push((variable.to_owned(), joined(first, separator, rest)));
}
