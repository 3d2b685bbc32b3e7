use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Cli;
use crate::exit::ExitCode;
use crate::output::{Stream, print};

#[derive(Debug, Args)]
#[command(after_help = "\
For bash: onetrip completions bash > ~/.local/share/bash-completion/completions/onetrip")]
pub(crate) struct CompletionsOptions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManOptions {
    /// Where the pages go: onetrip.1 and one for each command
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
}

/// `onetrip completions SHELL`.
pub(crate) fn completions(options: &CompletionsOptions) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "onetrip", &mut script);
    let script = String::from_utf8(script).context("the completions are not text")?;
    print(Stream::Output, |_| script)?;
    Ok(ExitCode::SUCCESS)
}

/// `onetrip man DIRECTORY`.
pub(crate) fn man(options: &ManOptions) -> Result<ExitCode> {
    let written = std::fs::create_dir_all(&options.directory)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), &options.directory));
    written.with_context(|| format!("cannot write pages into {}", options.directory.display()))?;
    Ok(ExitCode::SUCCESS)
}
