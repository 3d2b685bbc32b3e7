//! One cell: counted, then timed, and its answer looked at every time.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use onetrip_gateway::{Gateway, GatewayConfig, ListenAddress, Remedies};
use onetrip_ledger::{Mutes, Summary};
use onetrip_link::{LinkSpec, Relay};

use super::frame::{Frame, Prepared, Trips, WARM_UP_MAX};
use super::matrix::Place;
use super::peer::{Destination, Played};
use super::round::{Beside, Round};
use super::team::Team;
use crate::LabError;
use crate::cell::{Allocated, Cell};
use crate::cpu::ServerCpu;
use crate::database::{Database, Session};
use crate::plan::{Act, Kind, Plan};
use crate::workload::Extent;

/// How long replies are held while trips of several simple queries are counted.
const SETTLE: Duration = Duration::from_millis(5);
/// What a gateway may ask of the server in a short run: what is removed there must not depend on how busy the machine is.
const QUESTION_BURST: Duration = Duration::from_secs(60);

/// Cells on a database that speaks PostgreSQL's protocol.
pub(super) struct Bench<'a> {
    pub(super) frame: Frame<'a>,
    pub(super) database: &'a Database,
}

impl Bench<'_> {
    /// The cell, or why it is left out.
    pub(super) fn measure(&self, place: &Place<'_>) -> Result<Result<Cell, String>, LabError> {
        let (prepared, mut cell) = match self.frame.prepare(place)? {
            Ok(both) => both,
            Err(why) => return Ok(Err(why)),
        };
        if !place.way.program.is_empty() {
            return self.measure_program(&prepared, cell);
        }
        match &place.way.remedies {
            Some(remedies) => self.measure_remedies(&prepared, remedies, &mut cell)?,
            None => {
                self.count(&prepared, &mut cell)?;
                self.time(&prepared, &mut cell)?;
            }
        }
        Ok(Ok(cell))
    }

    /// Counts a round of new sessions through a gateway.
    fn count(&self, prepared: &Prepared<'_>, cell: &mut Cell) -> Result<(), LabError> {
        let settle = if prepared.plans.iter().any(has_joined_queries) { SETTLE } else { Duration::ZERO };
        let conninfo = self.database.conninfo.clone();
        let gateway = Gateway::start(GatewayConfig { settle, ..GatewayConfig::new(conninfo) })?;
        let (mut players, _) = self.players(prepared, address_of(&gateway)?)?;
        self.before_round(prepared)?;
        let round = players.play(&prepared.plans)?;
        self.look_at_answers(prepared, &round)?;
        if let Trips::Exactly(trips) = prepared.trips {
            // What the program itself sees: a second count, which the gateway has no part in.
            let flights = round.answers.iter().map(|answer| answer.flights).max().unwrap_or(0);
            prepared.compare("the number of its flights", trips as i64, flights as i64)?;
        }
        players.close();
        let summary = gateway.stop().analyzer.finish(&Mutes::default()).summary;
        self.book(prepared, &summary, cell)
    }

    fn book(&self, prepared: &Prepared<'_>, summary: &Summary, cell: &mut Cell) -> Result<(), LabError> {
        let (least, most) = (summary.trips.at_least() - summary.trips.connect, summary.trips.work());
        if summary.gaps.has_loss() {
            let expected = "all of them".to_owned();
            return Err(LabError::WrongTrips { cell: prepared.place.name(), expected, found: most });
        }
        prepared.book_trips(cell, least, most)?;
        cell.removed = summary.removed.values().sum();
        (cell.bytes_sent, cell.bytes_received) = (summary.bytes_sent, summary.bytes_received);
        Ok(())
    }

    /// Times rounds of sessions that have been warmed up by one.
    fn time(&self, prepared: &Prepared<'_>, cell: &mut Cell) -> Result<(), LabError> {
        let (address, relay) = far(self.database.address, prepared.place.rtt)?;
        let (mut players, mut gauge) = self.players(prepared, address)?;
        let began = Instant::now();
        for round in 0..=prepared.rounds {
            if prepared.has_enough(cell, began) {
                break;
            }
            self.before_round(prepared)?;
            let beside = Beside::start(self.database, &prepared.beside)?;
            let wal = self.wal(&mut gauge)?;
            let server = self.database.cpu();
            let (used, allocated) = (server.used(), self.allocated());
            let played = players.play(&prepared.plans)?;
            let server_cpu = server.since(&used, played.cpu);
            let allocated = self.allocated().zip(allocated).map(|(after, before)| after.since(before));
            let wal = self.wal(&mut gauge)?.zip(wal).map(|(after, before)| after.saturating_sub(before));
            let beside = beside.finish()?;
            self.look_at_answers(prepared, &played)?;
            // A long first round is warm-up enough, and is kept.
            if round == 0 && played.time < WARM_UP_MAX {
                continue;
            }
            cell.beside_ns.extend(beside);
            cell.wal_bytes.extend(wal);
            cell.allocated = allocated.or(cell.allocated);
            book_round(cell, &played, server_cpu);
        }
        cell.beside_ns = thinned(std::mem::take(&mut cell.beside_ns));
        cell.memory_max = players.memory_max();
        players.close();
        gauge.close();
        drop(relay);
        Ok(())
    }

    /// Counts and times rounds, each with a gateway and sessions of its own, as a program that is started anew.
    fn measure_remedies(
        &self,
        prepared: &Prepared<'_>,
        remedies: &str,
        cell: &mut Cell,
    ) -> Result<(), LabError> {
        let remedies: Remedies =
            remedies.parse().map_err(|error| self.frame.wrong(format!("remedies: {error}")))?;
        let began = Instant::now();
        for _ in 0..prepared.rounds {
            if prepared.has_enough(cell, began) {
                break;
            }
            self.before_round(prepared)?;
            let link = (!prepared.place.rtt.is_zero()).then(|| LinkSpec::with_rtt(prepared.place.rtt));
            let conninfo = self.database.conninfo.clone();
            let question_burst = match self.frame.options.extent {
                Extent::Short => QUESTION_BURST,
                Extent::Normal | Extent::Full => GatewayConfig::QUESTION_BURST,
            };
            let config = GatewayConfig { link, remedies, question_burst, ..GatewayConfig::new(conninfo) };
            let gateway = Gateway::start(config)?;
            let (mut players, gauge) = self.players(prepared, address_of(&gateway)?)?;
            let server = self.database.cpu();
            let used = server.used();
            let played = players.play(&prepared.plans)?;
            let server_cpu = server.since(&used, played.cpu);
            self.look_at_answers(prepared, &played)?;
            cell.memory_max = cell.memory_max.max(players.memory_max());
            players.close();
            gauge.close();
            let summary = gateway.stop().analyzer.finish(&Mutes::default()).summary;
            self.book(prepared, &summary, cell)?;
            book_round(cell, &played, server_cpu);
        }
        Ok(())
    }

    fn measure_program(
        &self,
        prepared: &Prepared<'_>,
        mut cell: Cell,
    ) -> Result<Result<Cell, String>, LabError> {
        let peer = match self.frame.peer(prepared)? {
            Ok(peer) => peer,
            Err(why) => return Ok(Err(why)),
        };
        let scripts = prepared.plans.iter().map(Plan::script).collect::<Result<Vec<_>, _>>();
        let scripts = scripts.map_err(|reason| self.frame.wrong(reason))?;
        let login = Some(&self.database.login);
        let gateway = Gateway::start(GatewayConfig::new(self.database.conninfo.clone()))?;
        self.before_round(prepared)?;
        let destination = Destination { address: address_of(&gateway)?, login };
        let mut peers = peer.start(&scripts, destination, self.frame.stopped)?;
        let counted = peers.round()?;
        peers.finish()?;
        let summary = gateway.stop().analyzer.finish(&Mutes::default()).summary;
        prepared.look_at_programs(&counted)?;
        self.check(prepared, 1)?;
        self.book(prepared, &summary, &mut cell)?;
        let (address, relay) = far(self.database.address, prepared.place.rtt)?;
        self.before_round(prepared)?;
        let mut peers = peer.start(&scripts, Destination { address, login }, self.frame.stopped)?;
        let began = Instant::now();
        for round in 0..=prepared.rounds {
            if prepared.has_enough(&cell, began) {
                break;
            }
            let server = self.database.cpu();
            let used = server.used();
            let played = peers.round()?;
            let server_cpu = server.since(&used, Duration::ZERO);
            prepared.look_at_programs(&played)?;
            self.check(prepared, round as i64 + 1)?;
            if round > 0 {
                book_programs(&mut cell, &played, server_cpu);
            }
        }
        peers.finish()?;
        drop(relay);
        Ok(Ok(cell))
    }

    /// The cell's sessions, and one beside them for what is not counted.
    fn players(&self, prepared: &Prepared<'_>, address: SocketAddr) -> Result<(Team<'_>, Session), LabError> {
        let (kind, sessions) = (prepared.place.way.client, prepared.plans.len());
        let team = Team::connect(kind, sessions, (self.database, address), self.frame.stopped)?;
        Ok((team, self.database.session()?))
    }

    fn before_round(&self, prepared: &Prepared<'_>) -> Result<(), LabError> {
        let before = self.frame.before(prepared, self.database.engine)?;
        if before.is_empty() {
            return Ok(());
        }
        let mut session = self.database.session()?;
        for statement in &before {
            session.ask(statement)?;
        }
        session.close();
        Ok(())
    }

    /// What this process has allocated; only of servers in it is that the server's.
    fn allocated(&self) -> Option<Allocated> {
        let counted =
            self.frame.options.allocated.filter(|_| self.database.cpu() == ServerCpu::InThisProcess);
        counted.map(|counted| counted())
    }

    fn wal(&self, gauge: &mut Session) -> Result<Option<u64>, LabError> {
        if !self.database.has_wal() {
            return Ok(None);
        }
        let found = gauge.ask("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')")?;
        Ok(found.and_then(|bytes| bytes.parse().ok()))
    }

    fn look_at_answers(&self, prepared: &Prepared<'_>, round: &Round) -> Result<(), LabError> {
        prepared.look_at_answers(round)?;
        self.check(prepared, 1)
    }

    /// Looks at the tables after so many rounds.
    fn check(&self, prepared: &Prepared<'_>, rounds: i64) -> Result<(), LabError> {
        self.frame.check(prepared, rounds, |query| {
            let mut session = self.database.session()?;
            let found = session.ask(query)?;
            session.close();
            Ok(found.and_then(|number| number.parse().ok()).unwrap_or(i64::MIN))
        })
    }
}

/// Adds a round to its cell.
pub(super) fn book_round(cell: &mut Cell, played: &Round, server_cpu: Option<u64>) {
    cell.rounds_ns.push(nanoseconds(played.time));
    cell.cpu_ns.push(nanoseconds(played.cpu));
    cell.server_cpu_ns.extend(server_cpu);
}

/// The same for a round of programs, which begin together.
pub(super) fn book_programs(cell: &mut Cell, played: &[Played], server_cpu: Option<u64>) {
    cell.rounds_ns.push(played.iter().map(|program| program.ns).max().unwrap_or(0));
    cell.cpu_ns.push(played.iter().map(|program| program.cpu_ns).sum());
    cell.server_cpu_ns.extend(server_cpu);
}

/// Waits of the session beside that a cell keeps.
const BESIDE_KEPT: usize = 1_000;

/// Whether several simple queries share a flight: only then can a fast server make two trips of it.
fn has_joined_queries(plan: &Plan) -> bool {
    plan.acts.iter().any(|act| match act {
        Act::Flight(requests) => {
            requests.len() > 1 && requests.iter().any(|request| matches!(request.kind, Kind::Query(_)))
        }
        Act::Fetch(_) | Act::ForEach { .. } | Act::Exchange { .. } => false,
    })
}

/// Where sessions connect that are so far away from the server; the relay has to stay.
pub(super) fn far(server: SocketAddr, rtt: Duration) -> Result<(SocketAddr, Option<Relay>), LabError> {
    if rtt.is_zero() {
        return Ok((server, None));
    }
    let relay = Relay::start(LinkSpec::with_rtt(rtt), server).map_err(LabError::Connection)?;
    Ok((relay.local_addr(), Some(relay)))
}

/// The port of a gateway.
pub(super) fn address_of(gateway: &Gateway) -> Result<SocketAddr, LabError> {
    match *gateway.address() {
        ListenAddress::Tcp(address) => Ok(address),
        ListenAddress::Unix(_) => Err(LabError::Database("the gateway listens at no port".to_owned())),
    }
}

/// The numbers in order of size, and of many only so many, evenly chosen: their quantiles stay.
fn thinned(mut numbers: Vec<u64>) -> Vec<u64> {
    numbers.sort_unstable();
    let all = numbers.len();
    if all <= BESIDE_KEPT {
        return numbers;
    }
    (0..BESIDE_KEPT).map(|place| numbers[(2 * place + 1) * all / (2 * BESIDE_KEPT)]).collect()
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Summary;

    #[test]
    fn many_waits_are_thinned_to_some_with_the_same_quantiles() {
        let thin = thinned((0..100_000).rev().collect());
        assert_eq!(thin.len(), BESIDE_KEPT);
        assert!(
            Summary::of(&thin).p99.abs_diff(99_000) < 200 && Summary::of(&thin).median.abs_diff(50_000) < 200
        );
        assert_eq!(thinned(vec![3, 1, 2]), [1, 2, 3]);
    }
}
