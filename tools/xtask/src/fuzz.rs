//! Fuzz targets on the stable toolchain. The `libfuzzer-sys` crate links libFuzzer's own driver, and rustc's LLVM
//! counts branches on request. Only the address sanitizer needs a nightly toolchain and cargo-fuzz, and the targets
//! are safe Rust.

use std::collections::HashSet;
use std::fs;
use std::num::NonZero;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::sources::Packages;
use crate::spent::{Built, Spent};
use crate::steps::Spec;
use crate::{charge, root, target_directory};

/// Inputs per target in CI: counted, so that a busy machine runs as many.
const SMOKE_RUNS: u64 = 10_000;
/// In CI the same inputs each time: a failure there is of the change that is checked.
const SMOKE_SEED: u32 = 1;
const MEMORY_MB_MAX: u32 = 4096;
/// One input that takes longer is a failure.
const INPUT_SECONDS_MAX: u32 = 60;
/// What runs rustc, so that it counts branches and comparisons in the crates of this repository, and in these alone.
const COUNTS: &str = "scripts/instrumented";

/// Which targets run, and for how long.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Targets to run; all of them by default.
    targets: Vec<String>,
    /// Seconds per target, with new inputs each time; kept inputs go to fuzz/corpus.
    #[arg(long, conflicts_with = "runs")]
    seconds: Option<u64>,
    /// Seconds of processor time per target, with those of earlier runs on the same sources: stop it at any time, run it
    /// again, and it goes on. fuzz/spent.json has what each target has had.
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["seconds", "runs"])]
    total: Option<u64>,
    /// Prints the processor time that each target has had as its sources are now, and runs nothing.
    #[arg(long, conflicts_with_all = ["seconds", "runs", "total"])]
    status: bool,
    /// Inputs per target, the same each time.
    #[arg(long, default_value_t = SMOKE_RUNS)]
    runs: u64,
}

impl Options {
    fn smoke() -> Self {
        Self { targets: Vec::new(), seconds: None, total: None, status: false, runs: SMOKE_RUNS }
    }

    pub(crate) fn for_seconds(seconds: u64) -> Self {
        Self { seconds: Some(seconds), ..Self::smoke() }
    }
}

/// Each target with a fixed number of inputs.
pub(crate) fn smoke() -> Result<()> {
    run(&Options::smoke())
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let known = targets()?;
    if let Some(unknown) = options.targets.iter().find(|name| !known.contains(name)) {
        bail!("there is no fuzz target {unknown:?}. There are: {}", known.join(", "));
    }
    let is_chosen = |name: &&String| options.targets.is_empty() || options.targets.contains(name);
    let chosen: Vec<&str> = known.iter().filter(is_chosen).map(String::as_str).collect();
    build(&chosen)?;
    if options.total.is_some() || options.status {
        let packages = Packages::read()?;
        let built = |target: &&str| -> Result<Built> {
            Ok(Built { target: (*target).to_owned(), sources: packages.hash_of(target)? })
        };
        let builds: Vec<Built> = chosen.iter().map(built).collect::<Result<_>>()?;
        let spent = Spent::read(root().join("fuzz/spent.json"))?;
        let total = options.total.map(Duration::from_secs);
        return go_on(spent, &builds, total, |target, slice| {
            run_target(target, How::Seconds(slice.as_secs().max(1)))
        });
    }
    let how = options.seconds.map_or(How::Inputs(options.runs), How::Seconds);
    told(&failing(&chosen, processors(), |target| run_target(target, how))?)
}

/// Those of `targets` that fail, in their order; as many run at once as there are `workers`.
fn failing<'a>(
    targets: &[&'a str],
    workers: usize,
    runs_well: impl Fn(&str) -> Result<bool> + Sync,
) -> Result<Vec<&'a str>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut failed = Vec::new();
        loop {
            let place = next.fetch_add(1, Relaxed);
            let Some(target) = targets.get(place).copied() else { return Ok(failed) };
            if !runs_well(target)? {
                failed.push((place, target));
            }
        }
    };
    let mut failed = std::thread::scope(|scope| -> Result<Vec<_>> {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let parts = workers.into_iter().map(|worker| worker.join().expect("a worker does not panic"));
        parts.collect::<Result<Vec<_>>>().map(|parts| parts.concat())
    })?;
    failed.sort_unstable();
    Ok(failed.into_iter().map(|(_, target)| target).collect())
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Runs each target until it has had so much processor time, the one that has had least first; then says what each has had.
fn go_on(
    mut spent: Spent,
    builds: &[Built],
    total: Option<Duration>,
    mut run: impl FnMut(&str, Duration) -> Result<bool>,
) -> Result<()> {
    let mut failed = HashSet::new();
    while let Some((built, slice)) = total.and_then(|total| spent.next(builds, total, &failed)) {
        let before = charge::of_the_ended()?;
        if !run(&built.target, slice)? {
            failed.insert(built.target.clone());
            continue;
        }
        let taken = charge::of_the_ended()?.saturating_sub(before);
        if taken.is_zero() {
            bail!("{} takes no time", built.target);
        }
        spent.add(built, taken)?;
    }
    for built in builds {
        println!("fuzz: {:24} {:8.0} s", built.target, spent.of(built).as_secs_f64());
    }
    let mut failed: Vec<&str> = failed.iter().map(String::as_str).collect();
    failed.sort_unstable();
    told(&failed)
}

fn told(failed: &[&str]) -> Result<()> {
    if !failed.is_empty() {
        bail!("fuzz targets failed: {}; their inputs are in fuzz/artifacts", failed.join(", "));
    }
    Ok(())
}

/// The targets, as the package of fuzz targets names them.
fn targets() -> Result<Vec<String>> {
    let text = fs::read_to_string(root().join("fuzz/Cargo.toml")).context("fuzz/Cargo.toml")?;
    let manifest: toml::Table = toml::from_str(&text).context("fuzz/Cargo.toml")?;
    let programs = manifest.get("bin").and_then(toml::Value::as_array).context("there are no targets")?;
    let names = programs.iter().filter_map(|program| program.get("name")?.as_str().map(str::to_owned));
    Ok(names.collect())
}

/// In the workspace's target directory, so that crates of others are those of the tests. All crates of the workspace are
/// named, for each of them may choose features of others.
fn build(targets: &[&str]) -> Result<()> {
    let chosen: String = targets.iter().map(|target| format!(" --bin {target}")).collect();
    let command = format!("build --quiet --locked --workspace --features onetrip-fuzz/targets{chosen}");
    let spec = Spec::cargo(&command)
        .with("RUSTC_WORKSPACE_WRAPPER", root().join(COUNTS).display().to_string())
        .with("CARGO_INCREMENTAL", "0");
    if !spec.command().status()?.success() {
        bail!("fuzz targets do not build: {command}");
    }
    Ok(())
}

/// How long a target runs.
#[derive(Clone, Copy)]
enum How {
    /// With new inputs each time.
    Seconds(u64),
    /// The same each time.
    Inputs(u64),
}

/// Whether no input failed.
fn run_target(target: &str, how: How) -> Result<bool> {
    let artifacts = root().join("fuzz/artifacts").join(target);
    fs::create_dir_all(&artifacts)?;
    let mut command = Command::new(target_directory().join("debug").join(target));
    command
        .current_dir(root().join("fuzz"))
        .arg("-len_control=0")
        .arg("-verbosity=0")
        .arg(format!("-rss_limit_mb={MEMORY_MB_MAX}"))
        .arg(format!("-timeout={INPUT_SECONDS_MAX}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()));
    match how {
        How::Seconds(seconds) => {
            println!("fuzz: {target}, for {seconds} s");
            let corpus = root().join("fuzz/corpus").join(target);
            fs::create_dir_all(&corpus)?;
            command.arg(format!("-max_total_time={seconds}")).arg(corpus);
        }
        How::Inputs(runs) => {
            println!("fuzz: {target}, {runs} inputs");
            command.arg(format!("-runs={runs}")).arg(format!("-seed={SMOKE_SEED}"));
        }
    }
    Ok(command.status().with_context(|| format!("cannot run {target}"))?.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_runs_once_and_those_that_fail_are_told_in_order() {
        let ran = std::sync::Mutex::new(Vec::new());
        let failed = failing(&["a", "bad", "b", "worse", "c"], 2, |target| {
            ran.lock().expect("nobody panics").push(target.to_owned());
            Ok(target.len() == 1)
        });
        assert_eq!(failed.expect("all of them run"), ["bad", "worse"]);
        let mut ran = ran.into_inner().expect("nobody panics");
        ran.sort_unstable();
        assert_eq!(ran, ["a", "b", "bad", "c", "worse"]);
        let error = failing(&["a"], 2, |_| bail!("it does not start")).expect_err("it does not").to_string();
        assert_eq!(error, "it does not start");
    }

    #[test]
    fn processor_time_is_booked_until_all_is_spent_and_a_target_that_fails_is_told() {
        let _turn = crate::CHILDREN.lock();
        let path = std::env::temp_dir().join(format!("xtask-goes-on-{}.json", std::process::id()));
        let builds =
            ["a", "b", "bad"].map(|target| Built { target: target.to_owned(), sources: "1".to_owned() });
        let total = Duration::from_millis(50);
        let mut ran = Vec::new();
        let spins = "n=0; while [ $n -lt 50000 ]; do n=$((n+1)); done";
        let result =
            go_on(Spent::read(path.clone()).expect("none is there"), &builds, Some(total), |target, _| {
                ran.push(target.to_owned());
                Ok(target != "bad" && Command::new("sh").args(["-c", spins]).status()?.success())
            });
        let error = result.expect_err("one has failed").to_string();
        assert!(error.contains("failed: bad;"), "{error}");
        assert_eq!(ran.iter().filter(|target| *target == "bad").count(), 1);
        let spent = Spent::read(path.clone()).expect("it is written");
        assert!(spent.of(&builds[0]) >= total && spent.of(&builds[1]) >= total);
        // All is spent: none of these runs again.
        go_on(spent, &builds[..2], Some(total), |_, _| bail!("it runs")).expect("there is nothing to do");
        fs::remove_file(path).expect("it is there");
    }
}
