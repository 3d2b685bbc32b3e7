//! The `onetrip` command: flags to one validated value, then a library call. The program and the Python package call
//! [`main`].

mod allocator;
mod args;
mod control;
mod demo;
mod distance;
mod exit;
mod explain;
mod export;
mod gateway;
mod judge;
#[cfg(feature = "lab")]
mod lab;
mod link;
mod output;
mod pages;
mod ping;
mod ready;
mod report;
mod run;
mod serve;
mod stop;
mod trace;
#[cfg(feature = "lab")]
mod tune;

use std::ffi::OsString;

use clap::Parser;

pub use crate::allocator::CountingAllocator;
use crate::args::{Cli, Command};
use crate::exit::ExitCode;

/// Does what the arguments say, the program's name first; what to exit with.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let command = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli.command,
        Err(told) => {
            // Nobody may be there to read it.
            let _ = told.print();
            return u8::try_from(told.exit_code()).unwrap_or(1);
        }
    };
    run(command).code()
}

fn run(command: Command) -> ExitCode {
    let done = match command {
        Command::Run(options) => run::run(&options),
        Command::Gateway(options) => gateway::gateway(&options),
        Command::Report(options) => report::report(&options),
        Command::Forecast(options) => distance::forecast(&options),
        Command::Explain(options) => explain::explain(&options),
        Command::Export(options) => export::export(&options),
        Command::Serve(options) => serve::serve(&options),
        Command::Demo(options) => demo::demo(&options),
        Command::Ping(options) => ping::ping(&options),
        Command::Ready(options) => ready::ready(&options),
        Command::Link(options) => link::link(&options),
        #[cfg(feature = "lab")]
        Command::Lab(options) => lab::lab(&options),
        Command::Completions(options) => pages::completions(&options),
        Command::Man(options) => pages::man(&options),
    };
    done.unwrap_or_else(|error| {
        eprintln!("onetrip: {error:#}");
        ExitCode::from(exit_code_of(&error))
    })
}

/// What shells and `env` exit with for such a failure; 1 for all others.
fn exit_code_of(error: &anyhow::Error) -> u8 {
    error.downcast_ref::<onetrip_target::launch::LaunchError>().map_or(1, |launch| launch.exit_code())
}
