//! The `onetrip` command: flags to one validated value, then a library call.

mod allocator;
mod args;
mod demo;
mod distance;
mod explain;
mod export;
mod gateway;
mod judge;
mod lab;
mod link;
mod output;
mod ping;
mod report;
mod run;
mod serve;
mod stop;
mod trace;
mod tune;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};

#[global_allocator]
static ALLOCATOR: allocator::Counting = allocator::Counting;

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(options) => run::run(&options),
        Command::Gateway(options) => gateway::gateway(&options),
        Command::Report(options) => report::report(&options),
        Command::Forecast(options) => distance::forecast(&options),
        Command::Explain(options) => explain::explain(&options),
        Command::Export(options) => export::export(&options),
        Command::Serve(options) => serve::serve(&options),
        Command::Demo(options) => demo::demo(&options),
        Command::Ping(options) => ping::ping(&options),
        Command::Link(options) => link::link(&options),
        Command::Lab(options) => lab::lab(&options),
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
