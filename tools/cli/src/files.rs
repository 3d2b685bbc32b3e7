//! The files of one command: what it writes must be none of those that it reads, and no two of what it writes the same.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

/// Links that are followed, as many as the kernel follows.
const LINKS_MAX: usize = 40;

/// What a command reads and writes, each with the name that its user knows it by.
#[derive(Default)]
pub(crate) struct Files {
    all: Vec<Named>,
}

struct Named {
    what: String,
    path: PathBuf,
    is_written: bool,
}

impl Files {
    /// A file that is read.
    pub(crate) fn reads(self, what: &str, path: Option<&Path>) -> Self {
        self.with(what, path, false)
    }

    /// A file that is written, or read and written.
    pub(crate) fn writes(self, what: &str, path: Option<&Path>) -> Self {
        self.with(what, path, true)
    }

    fn with(mut self, what: &str, path: Option<&Path>, is_written: bool) -> Self {
        self.all.extend(path.map(|path| Named { what: what.to_owned(), path: path.to_owned(), is_written }));
        self
    }

    /// Fails, before anything is written, if one file would be written over another.
    pub(crate) fn check(&self) -> Result<()> {
        for (place, first) in self.all.iter().enumerate() {
            for second in &self.all[place + 1..] {
                if (first.is_written || second.is_written) && is_same(&first.path, &second.path) {
                    let (written, other) = if second.is_written { (second, first) } else { (first, second) };
                    bail!(
                        "{} is {} and {}, and would be overwritten; name another file",
                        written.path.display(),
                        other.what,
                        written.what
                    );
                }
            }
        }
        Ok(())
    }
}

/// Whether two paths lead to one file. Terminals, pipes and /dev/null can be written to twice.
fn is_same(first: &Path, second: &Path) -> bool {
    match (fs::metadata(first), fs::metadata(second)) {
        (Ok(first), Ok(second)) => {
            first.is_file() && (first.dev(), first.ino()) == (second.dev(), second.ino())
        }
        (Err(_), Err(_)) => resolved(first) == resolved(second),
        _ => false,
    }
}

/// Where a file will be that is not there yet.
fn resolved(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&path) {
            Ok(target) => path = directory_of(&path).join(target),
            Err(_) => break,
        }
    }
    let directory = directory_of(&path);
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    directory.join(path.file_name().unwrap_or_default())
}

/// The directory that a file is in, or will be.
pub(crate) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_is_known_by_any_path() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("a"), "a").unwrap();
        fs::hard_link(path("a"), path("hard")).unwrap();
        std::os::unix::fs::symlink("a", path("soft")).unwrap();
        std::os::unix::fs::symlink("new", path("dangling")).unwrap();
        fs::create_dir(path("sub")).unwrap();
        for (first, second) in [
            ("a", "a"),
            ("a", "hard"),
            ("soft", "a"),
            ("a", "sub/../a"),
            ("new", "sub/../new"),
            ("dangling", "new"),
        ] {
            assert!(is_same(&path(first), &path(second)), "{first} {second}");
        }
        for (first, second) in [("a", "new"), ("new", "other"), ("sub/new", "new")] {
            assert!(!is_same(&path(first), &path(second)), "{first} {second}");
        }
        assert!(!is_same(Path::new("/dev/null"), Path::new("/dev/null")));
    }

    #[test]
    fn what_is_read_may_be_read_twice_and_is_not_written() {
        let path = Some(Path::new("/nonexistent/x"));
        let read = Files::default().reads("the trace", path).reads("--compare", path);
        assert!(read.check().is_ok());
        let said = read.writes("--output", path).check().unwrap_err().to_string();
        assert_eq!(
            said,
            "/nonexistent/x is the trace and --output, and would be overwritten; name another file"
        );
    }
}
