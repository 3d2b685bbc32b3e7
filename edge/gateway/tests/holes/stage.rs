//! Where a program runs, what it sees there, and how that is compared.
//!
//! Each program runs on databases of its own: directly, directly again, and through gateways that are 5 ms and 40 ms away
//! from the server; on PostgreSQL 15 and 18, all at the same time.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use onetrip_gateway::{Common, Gateway, GatewayConfig, Remedies};
use onetrip_link::LinkSpec;
use onetrip_wire::pg::backend;

use super::messages::{shown, values};
use crate::common::client::{Endpoint, PATIENCE, RawClient};
use crate::common::messages::*;
use crate::common::server::{Server, config, endpoint_of};
use crate::common::transcript::Message;

/// Versions of the server.
pub(crate) const VERSIONS: [&str; 2] = ["15", "18"];
/// Round trips between the gateways and the server.
pub(crate) const DISTANCES_MS: [u64; 2] = [5, 40];
/// Longest time that a gateway may take to learn what it needs; a machine may be busy.
const LEARNT_WITHIN: Duration = Duration::from_secs(15);
/// Lines shown around a difference.
const SHOWN_MAX: usize = 6;

/// What runs on a stage.
pub(crate) type Act<'a> = dyn Fn(&Stage) + Sync + 'a;

/// A program with its name.
pub(crate) type Program<'a> = (&'a str, &'a Act<'a>);

/// A database of one run, and the way to it.
pub(crate) struct Stage {
    pub(crate) server: &'static Server,
    pub(crate) database: String,
    endpoint: Endpoint,
    /// Round trip to the server; none if the way is direct.
    distance: Option<Duration>,
    common: Option<Arc<Common>>,
    seen: RefCell<Vec<String>>,
}

/// A session of a program; what it gets is what the program sees.
pub(crate) struct Session<'a> {
    pub(crate) stage: &'a Stage,
    name: &'static str,
    pub(crate) client: RawClient,
}

/// Where the database of a stage is, and what lies before it.
pub(crate) struct Path<'a> {
    pub(crate) server: &'static Server,
    /// The server, or what the program or its gateway connects to in its place.
    pub(crate) port: u16,
    pub(crate) database: &'a str,
}

/// The server of this version that these tests share.
pub(crate) fn server(version: &str) -> &'static Server {
    static SERVERS: [OnceLock<Server>; VERSIONS.len()] = [const { OnceLock::new() }; VERSIONS.len()];
    let place = VERSIONS.iter().position(|one| *one == version).expect("a version of these tests");
    SERVERS[place].get_or_init(|| start_server(version))
}

/// A server that only one test uses.
pub(crate) fn start_server(version: &str) -> Server {
    Server::start(&["--version", version, "--auth", "trust", "--set", "max_connections=200"])
}

/// Runs a statement directly; panics if it fails.
pub(crate) fn administer(server: &Server, database: &str, text: &str) {
    let mut client = RawClient::session(&server.direct(), database);
    client.query(text);
    assert!(client.errors().is_empty(), "{text}: {:?}", client.errors());
}

/// A gateway with all exact remedies before this port, so far away.
pub(crate) fn gateway_at(server: &Server, port: u16, distance: Duration) -> Gateway {
    // What is on its way is not the session's memory.
    let link = Some(LinkSpec { buffer: 1 << 20, ..LinkSpec::with_rtt(distance) });
    let upstream = server.upstream_by(port);
    let threads = Some(1);
    Gateway::start(GatewayConfig { remedies: Remedies::exact(), link, threads, ..config(upstream) })
        .expect("the gateway starts")
}

impl Stage {
    pub(crate) fn direct(path: &Path<'_>) -> Self {
        Self {
            server: path.server,
            database: path.database.to_owned(),
            endpoint: Endpoint::tcp(path.port),
            distance: None,
            common: None,
            seen: RefCell::default(),
        }
    }

    pub(crate) fn through(gateway: &Gateway, path: &Path<'_>, distance: Duration) -> Self {
        let (endpoint, common) = (endpoint_of(gateway), Some(gateway.common()));
        Self { endpoint, common, distance: Some(distance), ..Self::direct(path) }
    }

    /// Whether no gateway is in the way.
    pub(crate) fn is_direct(&self) -> bool {
        self.distance.is_none()
    }

    /// Where the program connects.
    pub(crate) fn endpoint(&self) -> Endpoint {
        self.endpoint.clone()
    }

    /// A session of the program.
    pub(crate) fn session(&self, name: &'static str) -> Session<'_> {
        self.session_with(name, &[])
    }

    /// The same, with other parameters in its startup packet.
    pub(crate) fn session_with(&self, name: &'static str, parameters: &[(&str, &str)]) -> Session<'_> {
        self.opened(name, &self.endpoint, parameters)
    }

    /// A session of somebody who is directly connected.
    pub(crate) fn elsewhere(&self, name: &'static str) -> Session<'_> {
        self.opened(name, &self.server.direct(), &[])
    }

    fn opened(&self, name: &'static str, endpoint: &Endpoint, more: &[(&str, &str)]) -> Session<'_> {
        let mut parameters = vec![("user", "onetrip"), ("database", &self.database)];
        for (key, value) in more {
            parameters.retain(|(name, _)| name != key);
            parameters.push((key, value));
        }
        let mut client = RawClient::connect(endpoint);
        client.send(&startup_with(&parameters));
        client.await_count(backend::READY_FOR_QUERY, 1);
        Session { stage: self, name, client }
    }

    /// The program thinks for so long that whatever is under way arrives. Directly nothing is.
    pub(crate) fn thinks(&self) {
        if let Some(distance) = self.distance {
            thread::sleep(distance * 2 + Duration::from_millis(20));
        }
    }

    /// Trips that the sessions of the gateway have taken so far.
    fn trips(&self) -> u64 {
        self.common.as_ref().map_or(0, |common| common.tally.counts().work_trips)
    }

    /// Notes something that is to be compared.
    pub(crate) fn note(&self, line: String) {
        self.seen.borrow_mut().push(line);
    }

    /// What was seen since the last call.
    pub(crate) fn take_seen(&self) -> Vec<String> {
        self.seen.take()
    }
}

impl Session<'_> {
    /// Repeats something harmless until the gateway serves it. It is not compared; directly it is not done.
    pub(crate) fn settles(&mut self, what: &str, is_served: impl Fn(&mut Self) -> bool) {
        let deadline = Instant::now() + LEARNT_WITHIN;
        let seen = self.stage.take_seen();
        while !self.stage.is_direct() && !is_served(self) {
            let tried = self.stage.take_seen().join("\n");
            let database = &self.stage.database;
            assert!(
                Instant::now() < deadline,
                "{database}: {what} is not served; the last try saw\n{tried}\nafter {seen:#?}"
            );
            self.stage.thinks();
        }
        self.stage.seen.replace(seen);
    }

    /// Does something that is not compared.
    pub(crate) fn unseen(&mut self, act: impl FnOnce(&mut Self)) {
        let seen = self.stage.take_seen();
        act(self);
        self.stage.seen.replace(seen);
    }

    /// A simple query.
    pub(crate) fn says(&mut self, text: &str) -> Vec<Message> {
        self.exchange(text, &query(text))
    }

    /// Several, each for itself.
    pub(crate) fn says_all(&mut self, texts: &[&str]) {
        for text in texts {
            self.says(text);
        }
    }

    /// Sends messages and waits for the next ReadyForQuery, or the end of the session.
    pub(crate) fn exchange(&mut self, shown_as: &str, bytes: &[u8]) -> Vec<Message> {
        self.exchange_within(shown_as, bytes, PATIENCE)
    }

    /// The same; no longer than `limit`.
    pub(crate) fn exchange_within(&mut self, shown_as: &str, bytes: &[u8], limit: Duration) -> Vec<Message> {
        let (before, ready) = (self.client.len(), self.client.count(backend::READY_FOR_QUERY));
        self.client.send(bytes);
        self.stage.note(format!("{}: {shown_as}", self.name));
        let is_over = self.client.waits_until(limit, |transcript, ended| {
            ended || transcript.count(backend::READY_FOR_QUERY) > ready
        });
        let messages = self.client.messages_from(before);
        messages.iter().for_each(|message| self.stage.note(format!("    {}", shown(message))));
        if !is_over {
            self.stage.note("    no answer".to_owned());
        } else if self.client.count(backend::READY_FOR_QUERY) == ready {
            self.stage.note("    the session has ended".to_owned());
        }
        messages
    }

    /// Whether this took no trip. Always true of a direct program.
    pub(crate) fn is_served(&mut self, shown_as: &str, bytes: &[u8]) -> bool {
        let before = self.stage.trips();
        self.exchange(shown_as, bytes);
        self.stage.trips() == before
    }

    /// Whether this query took no trip.
    pub(crate) fn is_told(&mut self, text: &str) -> bool {
        self.is_served(text, &query(text))
    }

    /// The first column of a query's rows.
    pub(crate) fn column(&mut self, text: &str) -> Vec<String> {
        rows(&self.says(text)).into_iter().map(|mut row| row.remove(0)).collect()
    }

    /// The number of the process that serves it.
    pub(crate) fn process(&mut self) -> String {
        let messages = self.client.query("SELECT pg_backend_pid()");
        rows(&messages)[0][0].clone()
    }
}

/// The rows among messages.
pub(crate) fn rows(messages: &[Message]) -> Vec<Vec<String>> {
    messages.iter().filter(|message| message.tag == backend::DATA_ROW).map(values).collect()
}

/// The way of a run, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Direct,
    DirectAgain,
    Through(u64),
}

const WAYS: [Way; 4] =
    [Way::Direct, Way::DirectAgain, Way::Through(DISTANCES_MS[0]), Way::Through(DISTANCES_MS[1])];

/// What a test of a hole is made of.
pub(crate) struct Hole<'a> {
    /// Begins the names of its databases.
    pub(crate) name: &'a str,
    /// Makes what the programs need, in a fresh database.
    pub(crate) setup: &'a str,
    pub(crate) programs: &'a [Program<'a>],
}

impl Hole<'_> {
    /// Panics if a program sees through a gateway what it does not see directly.
    pub(crate) fn assert_shut(&self) {
        self.assert_shut_on(&VERSIONS.map(|version| (version, server(version))));
    }

    /// The same on these servers, which run each way by itself if the programs change the server.
    pub(crate) fn assert_shut_on(&self, servers: &[(&str, &'static Server)]) {
        let differences: Vec<String> = thread::scope(|scope| {
            let runs: Vec<_> = servers
                .iter()
                .map(|(version, server)| {
                    let runs = WAYS.map(|way| (way, scope.spawn(move || self.run(version, server, way))));
                    (*version, runs)
                })
                .collect();
            runs.into_iter().flat_map(|(version, runs)| compared(version, runs.map(joined))).collect()
        });
        assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
    }

    /// What each program sees this way.
    fn run(&self, version: &str, server: &'static Server, way: Way) -> Vec<(String, Vec<String>)> {
        let label = match way {
            Way::Direct => "direct".to_owned(),
            Way::DirectAgain => "again".to_owned(),
            Way::Through(distance) => format!("{distance}_ms"),
        };
        let database = format!("{}_{version}_{label}", self.name);
        administer(server, "postgres", &format!("CREATE DATABASE {database}"));
        if !self.setup.is_empty() {
            administer(server, &database, self.setup);
        }
        let path = Path { server, port: server.at.port, database: &database };
        let run = |stage: &Stage| {
            let seen = self.programs.iter().map(|(name, program)| {
                program(stage);
                ((*name).to_owned(), stage.take_seen())
            });
            seen.collect()
        };
        let seen = match way {
            Way::Direct | Way::DirectAgain => run(&Stage::direct(&path)),
            Way::Through(distance) => {
                let distance = Duration::from_millis(distance);
                let gateway = gateway_at(server, server.at.port, distance);
                let seen = run(&Stage::through(&gateway, &path, distance));
                gateway.stop();
                seen
            }
        };
        administer(server, "postgres", &format!("DROP DATABASE {database} WITH (FORCE)"));
        seen
    }
}

type Seen = Vec<(String, Vec<String>)>;

fn joined((way, run): (Way, thread::ScopedJoinHandle<'_, Seen>)) -> (Way, Seen) {
    (way, run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

/// Differences of all runs from the first one.
fn compared(version: &str, runs: [(Way, Seen); WAYS.len()]) -> Vec<String> {
    let [(_, direct), others @ ..] = runs;
    let mut differences = Vec::new();
    for (way, seen) in others {
        for ((name, direct), (_, through)) in direct.iter().zip(&seen) {
            if let Some(difference) = difference(direct, through) {
                differences.push(format!("PostgreSQL {version}, {way:?}, {name}: {difference}"));
            }
        }
    }
    differences
}

/// Where two runs differ, in words.
pub(crate) fn difference(direct: &[String], other: &[String]) -> Option<String> {
    let place = (0..direct.len().max(other.len())).find(|place| direct.get(*place) != other.get(*place))?;
    let mut text = String::new();
    let from = place.saturating_sub(SHOWN_MAX);
    direct[from..place].iter().for_each(|line| write!(text, "\n      {line}").expect("a string grows"));
    for (mark, lines) in [("direct", direct), ("other", other)] {
        for line in lines.iter().skip(place).take(SHOWN_MAX) {
            write!(text, "\n  {mark}: {line}").expect("a string grows");
        }
    }
    Some(text)
}
