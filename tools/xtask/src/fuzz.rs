//! Fuzz targets on the stable toolchain: libFuzzer's own driver is linked in by the `libfuzzer-sys` crate, and rustc's
//! LLVM counts branches when it is asked to. Only the address sanitizer needs a nightly toolchain and cargo-fuzz; the targets
//! are safe Rust.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::steps::Spec;
use crate::{root, target_directory};

/// Inputs per target in CI: counted, so that a busy machine runs as many.
const SMOKE_RUNS: u64 = 20_000;
/// In CI the same inputs each time: a failure there is of the change that is checked.
const SMOKE_SEED: u32 = 1;
const MEMORY_MB_MAX: u32 = 4096;
/// One input that takes longer is a failure.
const INPUT_SECONDS_MAX: u32 = 60;
/// How branches and comparisons are counted; these are the options of cargo-fuzz.
const INSTRUMENTED: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
];

/// Which targets run, and for how long.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Targets to run; all of them by default.
    targets: Vec<String>,
    /// Seconds per target, with new inputs each time; kept inputs go to fuzz/corpus.
    #[arg(long, conflicts_with = "runs")]
    seconds: Option<u64>,
    /// Inputs per target, the same each time.
    #[arg(long, default_value_t = SMOKE_RUNS)]
    runs: u64,
}

impl Options {
    pub(crate) fn for_seconds(seconds: u64) -> Self {
        Self { targets: Vec::new(), seconds: Some(seconds), runs: SMOKE_RUNS }
    }
}

/// Each target with a fixed number of inputs.
pub(crate) fn smoke() -> Result<()> {
    run(&Options { targets: Vec::new(), seconds: None, runs: SMOKE_RUNS })
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let known = targets()?;
    if let Some(unknown) = options.targets.iter().find(|name| !known.contains(name)) {
        bail!("there is no fuzz target {unknown:?}. There are: {}", known.join(", "));
    }
    let machine = host()?;
    build(&machine)?;
    let chosen = known.iter().filter(|name| options.targets.is_empty() || options.targets.contains(name));
    let mut failed = Vec::new();
    for target in chosen {
        if !run_target(&machine, target, options)? {
            failed.push(target.as_str());
        }
    }
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

/// The machine that rustc builds for by default.
fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot run rustc")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned).context("rustc does not say which machine it is on")
}

/// With a machine named, so that programs which build others are not instrumented.
fn build(machine: &str) -> Result<()> {
    let command =
        format!("build --quiet --locked --profile fuzz --target {machine} --manifest-path fuzz/Cargo.toml");
    let spec = Spec::cargo(&command)
        .with("RUSTFLAGS", INSTRUMENTED.join(" "))
        .with("CARGO_TARGET_DIR", target_directory().join("fuzz").display().to_string());
    if !spec.command().status()?.success() {
        bail!("fuzz targets do not build: {command}");
    }
    Ok(())
}

/// Whether no input failed.
fn run_target(machine: &str, target: &str, options: &Options) -> Result<bool> {
    let program = target_directory().join("fuzz").join(machine).join("fuzz").join(target);
    let artifacts = root().join("fuzz/artifacts").join(target);
    fs::create_dir_all(&artifacts)?;
    let mut command = Command::new(program);
    command
        .current_dir(root().join("fuzz"))
        .arg("-len_control=0")
        .arg("-verbosity=0")
        .arg(format!("-rss_limit_mb={MEMORY_MB_MAX}"))
        .arg(format!("-timeout={INPUT_SECONDS_MAX}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()));
    match options.seconds {
        Some(seconds) => {
            println!("fuzz: {target}, for {seconds} s");
            let corpus = root().join("fuzz/corpus").join(target);
            fs::create_dir_all(&corpus)?;
            command.arg(format!("-max_total_time={seconds}")).arg(corpus);
        }
        None => {
            println!("fuzz: {target}, {} inputs", options.runs);
            command.arg(format!("-runs={}", options.runs)).arg(format!("-seed={SMOKE_SEED}"));
        }
    }
    Ok(command.status().with_context(|| format!("cannot run {target}"))?.success())
}
