//! The tiers: which commands each step has, and how long it may take.
//!
//! A budget is minutes on the two cores of CI, from a clean clone. A test that does not fit into its step's budget
//! belongs to `nightly`.

use std::ffi::OsStr;
use std::fmt;
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::Result;
use nix::sys::statvfs::{FsFlags, Statvfs, statvfs};
use nix::unistd::{AccessFlags, access};

use crate::{fuzz, links, root, suites, tools};

/// Commands with one budget.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) budget: Duration,
    /// Later steps cannot run without it.
    pub(crate) others_need_it: bool,
    pub(crate) acts: Vec<Act>,
}

/// One thing that a step does. All of a step's acts run, also when one fails.
pub(crate) enum Act {
    Command(Spec),
    /// Commands that mostly wait run side by side: each line of output begins with the number of its command.
    Beside([Spec; 2]),
    /// What this program does itself, with the command that does the same.
    Inner(&'static str, fn() -> Result<()>),
}

impl Act {
    /// The act as one would type it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Command(spec) => spec.to_string(),
            Self::Beside([one, other]) => format!("{one} & {other} & wait"),
            Self::Inner(command, _) => (*command).to_owned(),
        }
    }
}

/// A command that runs in the repository's root.
#[derive(Clone)]
pub(crate) struct Spec {
    program: String,
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
}

impl Spec {
    pub(crate) fn new<I: AsRef<str>>(program: &str, arguments: impl IntoIterator<Item = I>) -> Self {
        let arguments = arguments.into_iter().map(|argument| argument.as_ref().to_owned()).collect();
        Self { program: program.to_owned(), arguments, environment: Vec::new() }
    }

    /// `scripts/cargo` with arguments that are separated by spaces.
    pub(crate) fn cargo(arguments: &str) -> Self {
        Self::new("scripts/cargo", arguments.split_whitespace())
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    pub(crate) fn command(&self) -> Command {
        let root = root();
        let mut command = if self.program.contains('/') {
            Command::new(root.join(&self.program))
        } else {
            Command::new(&self.program)
        };
        command.args(&self.arguments).current_dir(&root).env("CARGO", root.join("scripts/cargo"));
        // Cargo has told this program about its own package, which is nobody else's business.
        for (name, _) in std::env::vars_os() {
            if is_of_own_package(&name) {
                command.env_remove(name);
            }
        }
        command.envs(memory().map(|directory| ("TMPDIR", directory)));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// A directory in memory for what tests throw away, unless the environment names another. A server makes 300 files for a
/// database, which takes long on a disk where as many were deleted a moment ago: the tests of holes took twice the time there.
fn memory() -> Option<&'static str> {
    const DIRECTORY: &str = "/dev/shm";
    const BYTES_MIN: u64 = 8 << 30;
    static IS_THERE: LazyLock<bool> = LazyLock::new(|| {
        let has_room = |found: Statvfs| {
            let free = found.blocks_available().saturating_mul(found.fragment_size());
            free >= BYTES_MIN && !found.flags().contains(FsFlags::ST_NOEXEC)
        };
        std::env::var_os("TMPDIR").is_none()
            && access(DIRECTORY, AccessFlags::W_OK).is_ok()
            && statvfs(DIRECTORY).is_ok_and(has_room)
    });
    IS_THERE.then_some(DIRECTORY)
}

fn is_of_own_package(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.environment {
            write!(f, "{name}='{value}' ")?;
        }
        write!(f, "{}", self.program)?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {argument}"))
    }
}

fn step(name: &'static str, minutes: u64, what: &'static str, acts: Vec<Act>) -> Step {
    Step { name, what, budget: Duration::from_secs(minutes * 60), others_need_it: false, acts }
}

/// What the commands of later steps find in ONETRIP: the command that the step `build` has built.
fn built_onetrip() -> String {
    crate::target_directory().join("debug/onetrip").display().to_string()
}

fn run(spec: Spec) -> Act {
    Act::Command(spec)
}

fn cargo(arguments: &str) -> Act {
    run(Spec::cargo(arguments))
}

fn clippy(arguments: &str) -> Result<Act> {
    Ok(cargo(&format!("clippy --locked {arguments}{}", tools::options_of_clippy()?)))
}

/// What needs no server: for each change, before it is committed. `has_command` says that onetrip was built from these sources
/// just now.
pub(crate) fn check(has_command: bool) -> Result<Vec<Step>> {
    let mut acts = vec![
        cargo("fmt --all --check"),
        clippy("--workspace --all-targets")?,
        Act::Inner("cargo xtask links", links::check),
    ];
    if !has_command {
        // The linter of prose asks it for its texts. With a test that runs it, cargo builds it as the unit tests need its
        // libraries; `cargo build` would choose other features for them, and compile them once more.
        acts.push(cargo(&format!(
            "test --locked --workspace --lib --bins --test {} --no-run",
            suites::OF_COMMAND
        )));
    }
    acts.extend(tools::checks()?);
    acts.push(cargo("test --locked --workspace --no-fail-fast --lib --bins"));
    Ok(vec![step(
        "check",
        5,
        "format, lints, licences, types, links, prose, unit tests without servers",
        acts,
    )])
}

/// What CI runs. The tests of each step are all that no other step names (`suites`). Where the step `build` does not run,
/// a command that needs onetrip builds it: what an earlier run has left may be older than the sources.
pub(crate) fn test(builds: bool) -> Result<Vec<Step>> {
    let suites = suites::Suites::read()?;
    let with_onetrip = |spec: Spec| if builds { spec.with("ONETRIP", built_onetrip()) } else { spec };
    let build = Step {
        others_need_it: true,
        ..step(
            "build",
            10,
            "the command and all tests",
            // The command among them: built alone, with fewer features, it would be compiled once more.
            vec![cargo("test --locked --workspace --no-run")],
        )
    };
    let mut steps = vec![build];
    steps.extend(check(builds)?);
    steps.extend([
        step(
            "rust",
            15,
            "tests of every crate, with real servers",
            vec![
                Act::Beside(suites.rest().map(with_onetrip)),
                cargo("test --locked --workspace --no-fail-fast --doc"),
                // Parquet is not a default feature: its writer, and DuckDB's reading of it.
                cargo("test --locked -p onetrip-export --features parquet --test parquet"),
            ],
        ),
        step(
            "python",
            5,
            "the package, as installed by pip",
            vec![run(with_onetrip(Spec::new("scripts/test-python", [""; 0])))],
        ),
        step(
            "drivers",
            12,
            "programs of real drivers and stacks",
            vec![run(with_onetrip(Spec::new("scripts/drivers", [""; 0])))],
        ),
        step("generated", 6, "generated programs: same results with remedies", vec![run(suites.generated())]),
        step(
            "contracts",
            3,
            "formats, reports, made documents, who depends on whom",
            vec![run(suites.contracts())],
        ),
        step("fuzz", 4, "each fuzz target for a while", vec![Act::Inner("cargo xtask fuzz", fuzz::smoke)]),
        step("packages", 8, "the source package, and the page in a browser", packages(&suites)?),
    ]);
    Ok(steps)
}

fn packages(suites: &suites::Suites) -> Result<Vec<Act>> {
    // Pictures of the page, to look at.
    let screenshots = crate::target_directory().join("screenshots").display().to_string();
    Ok(vec![
        // The command with as little as it can be built with.
        clippy("-p onetrip --no-default-features")?,
        run(suites.pages().with("ONETRIP_SCREENSHOTS", screenshots)),
        Act::Inner("pip install -r scripts/check-tools.txt", tools::fetch),
        run(Spec::new("scripts/test-sdist", [""; 0])),
    ])
}

/// What takes hours.
pub(crate) fn nightly() -> Result<Vec<Step>> {
    let programs = |name: &'static str, count: &str| {
        run(Spec::cargo(&format!("test --locked --release -p onetrip-model --test {name}"))
            .with("ONETRIP_PROGRAMS", count))
    };
    let target = crate::target_directory();
    let python = target.join("python-venv/bin/python").display().to_string();
    let onetrip = target.join("release/onetrip").display().to_string();
    let soak = Spec::new(&python, ["scripts/soak", "--seconds", "600", "--onetrip", &onetrip]);
    let stacks = Spec::new("scripts/drivers", ["--nightly"]).with("ONETRIP", onetrip.clone());
    Ok(vec![
        Step {
            others_need_it: true,
            ..step("build", 30, "the command as released", vec![cargo("build --locked --release -p onetrip")])
        },
        step("drivers", 5, "programs of stacks that take long to start", vec![run(stacks)]),
        step(
            "programs",
            20,
            "long generated programs",
            vec![programs("sessions", "30000"), programs("postgres", "1500")],
        ),
        step(
            "pythons",
            40,
            "the Python package's tests on CPython 3.10, 3.12, 3.13 and 3.14",
            vec![run(Spec::new("scripts/test-pythons", [""; 0]))],
        ),
        step(
            "spark",
            15,
            "contrib/spark on a Parquet export finds what the analyzer finds",
            vec![run(Spec::new("scripts/test-spark", [""; 0]))],
        ),
        step(
            "faults",
            20,
            "what happens when something around the gateway fails",
            vec![run(Spec::new("make", ["faults"]))],
        ),
        step(
            "soak",
            20,
            "clients of several kinds for ten minutes: nothing is lost, nothing grows",
            vec![run(Spec::new("scripts/test-python", ["--collect-only", "-q"])), run(soak)],
        ),
        step(
            "fuzz",
            45,
            "each fuzz target for two minutes",
            vec![Act::Inner("cargo xtask fuzz --seconds 120", || {
                fuzz::run(&fuzz::Options::for_seconds(120))
            })],
        ),
        step(
            "packages",
            90,
            "everything that is shipped, installed and used on a bare Debian (as root)",
            vec![run(Spec::new("scripts/dist", [""; 0])), run(Spec::new("scripts/test-dist", [""; 0]))],
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tiers_have_the_budgets_that_contributing_states() {
        let _turn = crate::CHILDREN.lock();
        let text = std::fs::read_to_string(root().join("CONTRIBUTING.md")).expect("it is there");
        for step in test(true).expect("cargo tells the tests") {
            let row = format!("| `{}` | {} |", step.name, step.budget.as_secs() / 60);
            assert!(text.contains(&row), "CONTRIBUTING.md lacks {row}");
        }
    }

    #[test]
    fn a_command_is_shown_as_it_can_be_typed() {
        let spec = Spec::cargo("test  --doc").with("ONETRIP_PROGRAMS", "5");
        assert_eq!(spec.to_string(), "ONETRIP_PROGRAMS='5' scripts/cargo test --doc");
    }
}
