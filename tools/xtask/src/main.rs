//! `cargo xtask`: the tiers of checks with a time budget for each step, and what generates documents and proves
//! rules.
//!
//! It builds nothing of onetrip itself. Each step is a command that you can run by hand, and it is printed before it
//! runs.

mod charge;
mod documents;
mod fuzz;
mod links;
mod runner;
mod sources;
mod spent;
mod steps;
mod suites;
mod tools;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};

/// Runs the tiers of checks, makes documents and proves rules.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Format, lints, licences, types, links, prose and unit tests: nothing that needs a server (budget 5 minutes).
    Check,
    /// Everything that CI runs. A step that takes more than 1.5 times its budget fails.
    Test(Selection),
    /// Takes hours: long generated programs, faults, the soak, fuzzing, and packages on a bare Debian.
    Nightly(Selection),
    /// Leaves out each rule of the remedies once, then runs programs by the ten thousand (`scripts/prove`).
    Prove {
        /// Options of `scripts/prove`, such as `--status`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
    /// Writes the documents that are made from code: docs/findings and the rules of docs/safety.md.
    Docs,
    /// Writes the lists of PostgreSQL's built-ins that only read, from what PostgreSQL 15 and 18 say of themselves.
    Purity,
    /// Checks that each link of the documents leads to a file, and to a heading of it, and that the book lists each page.
    Links,
    /// Runs fuzz targets. It needs neither a nightly toolchain nor cargo-fuzz.
    Fuzz(fuzz::Options),
}

#[derive(clap::Args)]
struct Selection {
    /// Steps to run; all of them by default.
    steps: Vec<String>,
    /// Prints the steps with their budgets and commands, and runs nothing.
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<()> {
    match task {
        Task::Check => runner::run("check", steps::check(false)?),
        Task::Test(selection) => selection.run("test", steps::test(selection.has("build"))?),
        Task::Nightly(selection) => selection.run("nightly", steps::nightly()?),
        Task::Prove { options } => documents::prove(&options),
        Task::Docs => documents::write(),
        Task::Purity => documents::write_purity(),
        Task::Links => links::check(),
        Task::Fuzz(options) => fuzz::run(&options),
    }
}

impl Selection {
    fn has(&self, step: &str) -> bool {
        self.steps.is_empty() || self.steps.iter().any(|name| name == step)
    }

    fn run(&self, tier: &str, mut steps: Vec<steps::Step>) -> Result<()> {
        for name in &self.steps {
            if !steps.iter().any(|step| step.name == name) {
                let known: Vec<_> = steps.iter().map(|step| step.name).collect();
                bail!("{tier} has no step {name:?}. It has: {}", known.join(", "));
            }
        }
        steps.retain(|step| self.has(step.name));
        if self.list {
            runner::list(&steps);
            return Ok(());
        }
        runner::run(tier, steps)
    }
}

/// The runner waits for all children of the process, so tests that start some take turns.
#[cfg(test)]
static CHILDREN: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// The repository's root.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map_or_else(|| here.to_owned(), Path::to_owned)
}

/// Where cargo puts what it builds.
fn target_directory() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => root().join(directory),
        None => root().join("target"),
    }
}
