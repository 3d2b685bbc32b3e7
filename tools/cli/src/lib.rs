//! The `onetrip` command: flags to one validated value, then a library call. The program and the Python package call
//! [`main`].

mod allocator;
#[cfg(feature = "capture")]
mod analyze;
mod args;
mod call_sites;
#[cfg(feature = "capture")]
mod capture;
mod control;
mod demo;
mod descriptors;
mod distance;
mod examples;
mod exit;
mod explain;
mod export;
mod files;
mod gateway;
mod judge;
#[cfg(feature = "lab")]
mod lab;
#[cfg(not(all(feature = "capture", feature = "embed", feature = "lab")))]
mod lacking;
mod learned;
mod link;
mod masked;
mod memory;
mod mysql;
mod output;
mod pages;
mod ping;
mod places;
mod progress;
mod pytest;
mod ready;
mod report;
mod run;
mod say;
#[cfg(feature = "embed")]
mod serve;
#[cfg(feature = "capture")]
mod sides;
mod stop;
mod trace;
#[cfg(feature = "lab")]
mod tune;
mod values;

use std::ffi::OsString;
use std::panic::AssertUnwindSafe;

use clap::Parser;

pub use crate::allocator::CountingAllocator;
use crate::args::{Cli, Command};
use crate::exit::ExitCode;
use crate::say::{explained, say};

/// Does what the arguments say, the program's name first; what to exit with.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let command = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli.command,
        Err(told) => {
            // Nobody may be there to read it.
            let _ = told.print();
            let is_failure = told.use_stderr();
            return if is_failure { ExitCode::FAILED } else { ExitCode::SUCCESS }.code();
        }
    };
    // What went wrong in a thread of its own was told there.
    let done = std::panic::catch_unwind(AssertUnwindSafe(|| run(command)));
    done.unwrap_or(ExitCode::FAILED).code()
}

fn run(command: Command) -> ExitCode {
    let done = match command {
        Command::Run(options) => run::run(&options),
        Command::Gateway(options) => gateway::gateway(&options),
        #[cfg(feature = "capture")]
        Command::Analyze(options) => analyze::analyze(&options),
        #[cfg(not(feature = "capture"))]
        Command::Analyze(_) => lacking::refuse("analyze", "capture"),
        #[cfg(feature = "capture")]
        Command::Capture(options) => capture::capture(options),
        #[cfg(not(feature = "capture"))]
        Command::Capture(_) => lacking::refuse("capture", "capture"),
        Command::Report(options) => report::report(&options),
        Command::Forecast(options) => distance::forecast(&options),
        Command::Explain(options) => explain::explain(&options),
        Command::Export(options) => export::export(&options),
        #[cfg(feature = "embed")]
        Command::Serve(options) => serve::serve(&options),
        #[cfg(not(feature = "embed"))]
        Command::Serve(_) => lacking::refuse("serve", "embed"),
        Command::Demo(options) => demo::demo(&options),
        Command::Ping(options) => ping::ping(&options),
        Command::Ready(options) => ready::ready(&options),
        Command::Link(options) => link::link(&options),
        #[cfg(feature = "lab")]
        Command::Lab(options) => lab::lab(&options),
        #[cfg(not(feature = "lab"))]
        Command::Lab(_) => lacking::refuse("lab", "lab"),
        Command::Completions(options) => pages::completions(&options),
        Command::Man(options) => pages::man(&options),
        Command::Texts => pages::texts(),
        Command::Reference => pages::reference(),
    };
    done.unwrap_or_else(|error| {
        say(explained(&error));
        exit_code_of(&error)
    })
}

/// What shells and `env` exit with for such a failure.
fn exit_code_of(error: &anyhow::Error) -> ExitCode {
    let launch = error.downcast_ref::<onetrip_target::launch::LaunchError>();
    launch.map_or(ExitCode::FAILED, |launch| launch.exit_code().into())
}
