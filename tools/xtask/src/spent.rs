//! Processor time that each fuzz target has had, kept between runs, in a file of the repository: so much time is spent on
//! several days, perhaps on several machines. It holds for one state of what the target is built from. A target with other
//! sources begins at zero.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// A target that runs is asked so often whether that was all: what a run that is ended loses at most.
pub(crate) const SLICE: Duration = Duration::from_secs(60);

/// The file, and what it says.
pub(crate) struct Spent {
    path: PathBuf,
    targets: BTreeMap<String, Had>,
}

#[derive(Default, Serialize, Deserialize)]
struct Had {
    /// Hash of what it was built from.
    sources: String,
    seconds: f64,
}

/// A target as it is built now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Built {
    pub(crate) target: String,
    /// Hash of what it is built from.
    pub(crate) sources: String,
}

impl Spent {
    /// A file that is not there says nothing; one that is damaged is an error, for it may stand for hours.
    pub(crate) fn read(path: PathBuf) -> Result<Self> {
        let targets = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).with_context(|| path.display().to_string())?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        Ok(Self { path, targets })
    }

    /// What the target has had as it is now.
    pub(crate) fn of(&self, built: &Built) -> Duration {
        match self.targets.get(&built.target) {
            Some(had) if had.sources == built.sources => Duration::from_secs_f64(had.seconds.max(0.0)),
            _ => Duration::ZERO,
        }
    }

    /// Books time and writes the file.
    pub(crate) fn add(&mut self, built: &Built, time: Duration) -> Result<()> {
        let seconds = (self.of(built) + time).as_secs_f64();
        self.targets.insert(built.target.clone(), Had { sources: built.sources.clone(), seconds });
        let new = self.path.with_extension("new");
        fs::write(&new, serde_json::to_string_pretty(&self.targets)? + "\n")
            .context("cannot keep what was spent")?;
        fs::rename(&new, &self.path).context("cannot keep what was spent")
    }

    /// Which target runs next, and for how long: the one that has had least, until each has had `total`.
    pub(crate) fn next<'b>(
        &self,
        builds: &'b [Built],
        total: Duration,
        failed: &HashSet<String>,
    ) -> Option<(&'b Built, Duration)> {
        let unfinished =
            builds.iter().filter(|built| !failed.contains(&built.target) && self.of(built) < total);
        let built = unfinished.min_by_key(|built| self.of(built))?;
        Some((built, (total - self.of(built)).min(SLICE)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOTAL: Duration = Duration::from_secs(100);

    fn built(target: &str, sources: &str) -> Built {
        Built { target: target.to_owned(), sources: sources.to_owned() }
    }

    /// A file of this test's own, gone afterwards.
    struct File(PathBuf);

    impl File {
        fn new(test: &str) -> Self {
            Self(std::env::temp_dir().join(format!("xtask-{test}-{}.json", std::process::id())))
        }

        fn spent(&self) -> Spent {
            Spent::read(self.0.clone()).expect("it is read")
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            // It may not have been written.
            let _ = fs::remove_file(&self.0);
        }
    }

    #[test]
    fn each_target_runs_until_it_has_had_all_of_its_time_also_by_another_run() {
        let file = File::new("goes_on");
        let builds = [built("a", "1"), built("b", "1")];
        let (mut order, none) = (Vec::new(), HashSet::new());
        // Each turn is a run of its own, as if the one before had been ended.
        while let Some((next, slice)) = file.spent().next(&builds, TOTAL, &none) {
            order.push((next.target.clone(), slice.as_secs()));
            file.spent().add(next, slice).expect("it is written");
        }
        let expected = [("a", 60), ("b", 60), ("a", 40), ("b", 40)];
        assert_eq!(order, expected.map(|(target, seconds)| (target.to_owned(), seconds)));
        assert!(file.spent().next(&builds, TOTAL * 2, &none).is_some(), "more was asked for");
    }

    #[test]
    fn a_target_of_other_sources_begins_anew_and_the_others_do_not() {
        let file = File::new("anew");
        for target in ["a", "b"] {
            file.spent().add(&built(target, "1"), TOTAL).expect("it is written");
        }
        let spent = file.spent();
        assert_eq!((spent.of(&built("a", "2")), spent.of(&built("b", "1"))), (Duration::ZERO, TOTAL));
        let builds = [built("a", "2"), built("b", "1")];
        assert_eq!(spent.next(&builds, TOTAL, &HashSet::new()), Some((&builds[0], SLICE)));
    }

    #[test]
    fn a_target_that_failed_does_not_run_again() {
        let file = File::new("failed");
        let builds = [built("a", "1")];
        assert_eq!(file.spent().next(&builds, TOTAL, &HashSet::from(["a".to_owned()])), None);
    }

    #[test]
    fn a_file_that_is_damaged_is_not_taken_for_none() {
        let file = File::new("damaged");
        fs::write(&file.0, "{").expect("there is room");
        assert!(Spent::read(file.0.clone()).is_err());
    }
}
