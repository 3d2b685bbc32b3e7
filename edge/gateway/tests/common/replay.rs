//! Sessions as lists of steps, run direct twice and through the gateway, and compared.

use std::thread;
use std::time::Duration;

use onetrip_ledger::Mutes;
use onetrip_wire::pg::backend;

use super::client::{Endpoint, RawClient};
use super::messages;
use super::server::{RunningGateway, Server};
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

impl Script {
    /// A session of the servers' superuser that is ready for queries.
    pub(crate) fn session(name: impl Into<String>, dbname: &str) -> Self {
        let opened = Self::new(name).send(messages::startup(dbname));
        opened.awaits(backend::READY_FOR_QUERY, 1)
    }

    /// A client that has connected and sent nothing.
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), steps: Vec::new() }
    }

    pub(crate) fn send(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.then(Step::Send(bytes.into()))
    }

    /// Waits for so many messages with this tag.
    pub(crate) fn awaits(self, tag: u8, count: usize) -> Self {
        self.then(Step::Await { tag, count })
    }

    /// Sends and waits for one more ReadyForQuery than before.
    pub(crate) fn exchange(self, bytes: impl Into<Vec<u8>>) -> Self {
        let ready = |step: &Step| match step {
            Step::Await { tag: backend::READY_FOR_QUERY, count } => Some(*count),
            _ => None,
        };
        let before = self.steps.iter().rev().find_map(ready).unwrap_or(0);
        self.send(bytes).awaits(backend::READY_FOR_QUERY, before + 1)
    }

    pub(crate) fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Everything that it sends.
    pub(crate) fn sent(&self) -> Vec<u8> {
        let sent = self.steps.iter().filter_map(|step| match step {
            Step::Send(bytes) | Step::SendBytewise(bytes) => Some(bytes.as_slice()),
            _ => None,
        });
        sent.collect::<Vec<_>>().concat()
    }
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

/// Runs the scripts in order on fresh databases: direct, direct again, through a gateway that observes, and through
/// one with remedies. Panics on any difference that is not in `may_differ.rs`, all scripts first. Returns how many
/// trips the remedies removed.
pub(crate) fn assert_faithful(server: &Server, dbname: &str, scripts: &[Script]) -> u64 {
    assert_faithful_through(vec![server.gateway(), server.remedied_gateway()], server, dbname, scripts)
}

/// As [`assert_faithful`], through these gateways.
pub(crate) fn assert_faithful_through(
    gateways: Vec<RunningGateway>,
    server: &Server,
    dbname: &str,
    scripts: &[Script],
) -> u64 {
    let run = |endpoint: &Endpoint| -> Vec<Transcript> {
        server.fresh_database(dbname);
        let replay = |script| replay(script, endpoint, server, dbname);
        scripts.iter().map(replay).collect()
    };
    let (first, second) = (run(&server.direct()), run(&server.direct()));
    let through: Vec<_> = gateways.iter().map(|gateway| run(&gateway.endpoint())).collect();
    server.psql("postgres", &format!("DROP DATABASE {dbname} WITH (FORCE)"));
    let mut differences = Vec::new();
    for (position, script) in scripts.iter().enumerate() {
        if let Some(difference) = first[position].difference(&second[position]) {
            differences.push(format!("{}: two direct runs, {difference}", script.name));
            continue;
        }
        for (number, through) in through.iter().enumerate() {
            if let Some(difference) = first[position].difference(&through[position]) {
                differences.push(format!("{}: direct against gateway {number}, {difference}", script.name));
            }
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
    let count = |gateway: RunningGateway| {
        let outcome = gateway.stop();
        assert_eq!(outcome.accepted, scripts.len() as u64, "every script went through the gateway");
        outcome.analyzer.finish(&Mutes::default()).summary.removed.values().sum::<u64>()
    };
    gateways.into_iter().map(count).sum()
}
