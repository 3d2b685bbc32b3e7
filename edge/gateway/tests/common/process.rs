//! A gateway in a process of its own: this test program, started once more.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use super::client::Endpoint;
use super::server::RunningGateway;

/// Starts a command that runs [`serve`], and tells where its gateway listens.
pub(crate) fn start(command: &mut Command) -> (Child, Endpoint) {
    let mut process =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs once more");
    let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let told = lines.filter_map(|line| line.strip_prefix("port=")?.parse().ok()).next();
    (process, Endpoint::tcp(told.expect("it says its port")))
}

/// Says where `gateway` listens, and serves until the process that has started this one is gone, or kills it.
pub(crate) fn serve(gateway: &RunningGateway) {
    println!("\nport={}", gateway.endpoint().port());
    std::io::stdin().read_to_end(&mut Vec::new()).expect("a pipe");
}
