//! Where a program was connected, and what to say if that was not the gateway.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use onetrip_gateway::Gateway;
use onetrip_report::Redirected;
use onetrip_target::Conninfo;
use onetrip_target::intercept::Seen;
use onetrip_target::launch::{
    ClosedSince, ClosedThere, Redirect, connections_of, database_ports, is_database_port, leads_to,
};

/// Places that are named where none of them was the gateway.
const PLACES_SHOWN: usize = 8;
/// Places that are kept to be compared with the database's.
const PLACES_KEPT: usize = 64;
/// How often it is looked where a program is connected: at first, since many are short, and later on.
const LOOK_EVERY: RangeInclusive<Duration> = Duration::from_millis(5)..=Duration::from_millis(200);
/// Within these bounds, a look every fiftieth of the time that the program has run, and a twentieth of the time for looking.
const LOOKS: u32 = 50;
const LOOK_SHARE: u32 = 20;
/// How often connections are looked for that were closed: the kernel knows them for a minute.
const CLOSED_EVERY: Duration = Duration::from_secs(20);

/// What is seen of a program's connections now and then.
pub(crate) struct Sights {
    open: BTreeSet<SocketAddr>,
    closed: Option<ClosedSince>,
    /// The ports of the database.
    ports: BTreeSet<u16>,
    /// Places with such a port, all through the run.
    at_databases: BTreeSet<SocketAddr>,
}

impl Sights {
    /// Nothing is seen yet. Where each connection is asked about, those that were closed are known by that.
    pub(crate) fn new(database: &Conninfo, is_led: bool) -> Self {
        let closed = (!is_led).then(|| ClosedSince::now(database_ports(database))).flatten();
        let ports = database.hosts.iter().map(|host| host.port).collect();
        Self { open: BTreeSet::new(), closed, ports, at_databases: BTreeSet::new() }
    }

    /// Looks where the program is connected: anywhere while no client has come, and then past the gateway. The shortest
    /// connections are missed. While no client has come, they are seen among those that were closed.
    pub(crate) async fn look(&mut self, program: Option<u32>, gateway: &Gateway) {
        let Some(program) = program else { return pending().await };
        let begun = Instant::now();
        let mut closed_at = begun;
        loop {
            let looked = Instant::now();
            let seen = connections_of(program);
            let is_unseen = gateway.accepted() == 0;
            if self.at_databases.len() < PLACES_KEPT {
                self.at_databases.extend(seen.iter().filter(|place| self.ports.contains(&place.port())));
            }
            if is_unseen && self.open.len() < PLACES_SHOWN {
                self.open.extend(seen);
            }
            if is_unseen && closed_at.elapsed() >= CLOSED_EVERY {
                self.closed.iter_mut().for_each(ClosedSince::look);
                closed_at = Instant::now();
            }
            let pause = (begun.elapsed() / LOOKS).max(looked.elapsed() * LOOK_SHARE);
            tokio::time::sleep(pause.clamp(*LOOK_EVERY.start(), *LOOK_EVERY.end())).await;
        }
    }

    /// All of it, once the program has ended.
    pub(crate) fn at_the_end(mut self, gateway: &Gateway) -> SeenPlaces {
        // The gateway's own connections to the database are none of the program's.
        let mut closed = self.closed.take().filter(|_| gateway.accepted() == 0);
        closed.iter_mut().for_each(ClosedSince::look);
        let at_databases = if gateway.accepted() > 0 { self.at_databases } else { BTreeSet::new() };
        SeenPlaces {
            at_databases,
            open: self.open,
            closed: closed.map(|closed| closed.servers()).unwrap_or_default(),
        }
    }
}

/// Where a program connected, as far as is known.
pub(crate) enum Places {
    /// All places, for each connection was asked about.
    Led(Seen),
    /// Those that were seen now and then.
    Seen(SeenPlaces),
}

pub(crate) struct SeenPlaces {
    /// The program was connected there, at a port of the database, in a run that others went through the gateway in.
    at_databases: BTreeSet<SocketAddr>,
    /// The program was connected there.
    open: BTreeSet<SocketAddr>,
    /// Somebody on this machine was, while the program ran.
    closed: BTreeMap<SocketAddr, ClosedThere>,
}

impl SeenPlaces {
    fn is_empty(&self) -> bool {
        self.open.is_empty() && self.closed.is_empty()
    }

    /// What was closed at the first place that fits. It is not known that it was the program's, so it is not said.
    fn closed_at(&self, is_meant: impl Fn(&SocketAddr) -> bool, what: &str, way_out: &str) -> Option<String> {
        let (place, there) = self.closed.iter().find(|(place, _)| is_meant(place))?;
        let others = if there.has_earlier { "; there were others before it started" } else { "" };
        Some(match there.count {
            1 => format!(
                "While the program ran, a connection from this machine to {place}{what} was closed. Whose it was is \
                 not known{others}. If it was the program's{way_out}"
            ),
            count => format!(
                "While the program ran, {count} connections from this machine to {place}{what} were closed. Whose they \
                 were is not known{others}. If they were the program's{way_out}"
            ),
        })
    }
}

impl Places {
    pub(crate) fn redirected(&self) -> Option<Redirected> {
        match self {
            Self::Led(seen) => Some(Redirected {
                by: "seccomp",
                connections: Some(seen.places.values().map(|count| count.led).sum()),
            }),
            Self::Seen(_) => None,
        }
    }

    /// Where the program was connected to the database although others of its connections went through the gateway.
    pub(crate) fn past(&self, database: &Conninfo) -> Option<SocketAddr> {
        let seen = match self {
            Self::Seen(seen) if !seen.at_databases.is_empty() => &seen.at_databases,
            Self::Seen(_) | Self::Led(_) => return None,
        };
        let leads_there = leads_to(database);
        seen.iter().copied().find(leads_there)
    }

    fn names(&self) -> Vec<String> {
        match self {
            Self::Led(seen) => {
                let places = seen.places.keys().filter(|place| !place.is_of_the_system());
                places.take(PLACES_SHOWN).map(ToString::to_string).collect()
            }
            Self::Seen(seen) => seen.open.iter().take(PLACES_SHOWN).map(ToString::to_string).collect(),
        }
    }
}

/// What to say where all connections were asked about, and none began a session.
fn how_to_lead(seen: &Seen, names: &[String], gateway: &str) -> String {
    let led = seen.places.iter().filter(|(_, count)| count.led > 0);
    let led: Vec<String> = led.map(|(place, _)| place.to_string()).take(PLACES_SHOWN).collect();
    if !led.is_empty() {
        return format!(
            "The program's connections to {} were led to the gateway, but none of them began a session.",
            led.join(", ")
        );
    }
    let mut said = Vec::new();
    if !names.is_empty() {
        let names = names.join(", ");
        said.push(format!(
            "The program connected to {names}. If one of these is the database, name it with --upstream."
        ));
    }
    if seen.has_io_uring {
        said.push(format!(
            "The program uses io_uring, whose connections cannot be led or seen. If that is how it connects, put the \
             gateway's address into its settings (here it was {gateway}; --listen makes it a fixed one)."
        ));
    }
    if said.is_empty() {
        said.push("The program connected to nothing at all.".to_owned());
    }
    said.join(" ")
}

pub(crate) fn how_to_connect(
    redirect: &Redirect,
    gateway: &str,
    places: &Places,
    database: Option<&Conninfo>,
) -> String {
    let names = places.names();
    let seen = match places {
        Places::Led(seen) => return how_to_lead(seen, &names, gateway),
        Places::Seen(seen) => seen,
    };
    let mut said = Vec::new();
    if let Some(database) = database.filter(|_| !seen.is_empty()) {
        let leads_there = leads_to(database);
        if let Some(place) = seen.open.iter().find(|place| leads_there(place)) {
            return format!(
                "The program was connected to {place}, which is the database, past the gateway: its address stands in \
                 a file, in its code or among its arguments. Add --redirect, which leads there whatever its settings \
                 say."
            );
        }
        let way_out = ", add --redirect, which leads there whatever its settings say.";
        said.extend(seen.closed_at(leads_there, ", which is the database,", way_out));
    }
    if !names.is_empty() {
        let names = names.join(", ");
        said.push(format!(
            "The program was connected to {names}. If one of these is the database, run it with --upstream \
             HOST:PORT --redirect, which leads there whatever its settings say."
        ));
        return said.join(" ");
    }
    if said.is_empty() {
        let way_out = ", and if that is its database, run it with --upstream HOST:PORT --redirect.";
        said.extend(seen.closed_at(|place| is_database_port(place.port()), "", way_out));
    }
    let changed: Vec<&str> = redirect.notes.iter().map(|change| change.variable.as_str()).collect();
    said.push(format!(
        "The program did not use {}. If it keeps its settings in another variable, name that with --env NAME; if \
         they are in a file or in its code, add --redirect, or start `onetrip gateway` and put its address there \
         (here it was {gateway}).",
        if changed.is_empty() { "any variable that was set".to_owned() } else { changed.join(", ") }
    ));
    said.join(" ")
}
