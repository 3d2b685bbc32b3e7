//! Sessions as lists of steps, run direct twice and through the gateway, and compared.

use std::thread;
use std::time::Duration;

use super::client::{Endpoint, RawClient};
use super::server::Server;
use super::transcript::Transcript;

/// What a client does next.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Send(Vec<u8>),
    /// One byte per write.
    SendBytewise(Vec<u8>),
    /// Wait until so many messages with this tag have come since the beginning.
    Await {
        tag: u8,
        count: usize,
    },
    Pause(Duration),
    /// Another, direct session runs a statement.
    Elsewhere(String),
}

/// What a client does from beginning to end. Then it closes its side and reads on until the server closes its own.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
}

/// Runs a script against a server or a gateway.
pub(crate) fn replay(script: &Script, endpoint: &Endpoint, server: &Server, dbname: &str) -> Transcript {
    let mut client = RawClient::connect(endpoint);
    for step in &script.steps {
        match step {
            Step::Send(bytes) => client.send(bytes),
            Step::SendBytewise(bytes) => bytes.iter().for_each(|byte| client.send(&[*byte])),
            Step::Await { tag, count } => client.await_count(*tag, *count),
            Step::Pause(pause) => thread::sleep(*pause),
            Step::Elsewhere(statement) => {
                RawClient::session(&server.direct(), dbname).query(statement);
            }
        }
    }
    client.finish()
}

/// Runs the scripts in order on three fresh databases: direct, direct again, through a gateway. Panics on any
/// difference that is not in `may_differ.rs`, all scripts first.
pub(crate) fn assert_faithful(server: &Server, dbname: &str, scripts: &[Script]) {
    let gateway = server.gateway();
    let run = |endpoint: &Endpoint| -> Vec<Transcript> {
        server.fresh_database(dbname);
        let replay = |script| replay(script, endpoint, server, dbname);
        scripts.iter().map(replay).collect()
    };
    let (first, second) = (run(&server.direct()), run(&server.direct()));
    let through = run(&gateway.endpoint());
    server.psql("postgres", &format!("DROP DATABASE {dbname} WITH (FORCE)"));
    let mut differences = Vec::new();
    for (position, script) in scripts.iter().enumerate() {
        if let Some(difference) = first[position].difference(&second[position]) {
            differences.push(format!("{}: two direct runs, {difference}", script.name));
        } else if let Some(difference) = first[position].difference(&through[position]) {
            differences.push(format!("{}: direct against gateway, {difference}", script.name));
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
    let outcome = gateway.stop();
    assert_eq!(outcome.accepted, scripts.len() as u64, "every script went through the gateway");
}
