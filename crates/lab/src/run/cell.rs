//! One cell: counted, then timed, and its answer looked at every time.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use minijinja::value::Value;
use onetrip_gateway::{Gateway, GatewayConfig, ListenAddress, Remedies};
use onetrip_ledger::{Mutes, Summary};
use onetrip_link::{LinkSpec, Relay};

use super::RunOptions;
use super::matrix::Place;
use super::peer::{Peer, Played};
use super::round::{Beside, Round, play_round};
use crate::LabError;
use crate::client::{Client, Player};
use crate::database::Database;
use crate::formula::Formulas;
use crate::plan::{Act, Kind, Plan, Planner};
use crate::samples::Cell;
use crate::workload::{Extent, Formula, Workload};

/// A cell that would wait longer than this for its trips alone runs in full extent only.
const WAIT_MAX: Duration = Duration::from_secs(150);
/// After so long a cell gets no more rounds.
const ROUNDS_MAX: Duration = Duration::from_secs(12);
/// A first round that takes longer is no warm-up but counts.
const WARM_UP_MAX: Duration = Duration::from_secs(3);
/// How long replies are held while trips of several simple queries are counted.
const SETTLE: Duration = Duration::from_millis(5);

/// What every cell of a run needs.
pub(super) struct Bench<'a> {
    pub(super) workload: &'a Workload,
    pub(super) options: &'a RunOptions,
    pub(super) database: &'a Database,
    pub(super) formulas: &'a Formulas,
    pub(super) stopped: &'a AtomicBool,
}

/// What a cell's plan comes to.
struct Prepared<'p> {
    place: &'p Place<'p>,
    planner: Planner<'p>,
    /// One for each session.
    plans: Vec<Plan>,
    beside: Plan,
    rows: u64,
    sum: Option<i64>,
    trips: Trips,
    rounds: usize,
}

/// Trips that one session may take in a round.
#[derive(Clone, Copy)]
enum Trips {
    Exactly(u64),
    AtMost(u64),
    /// A real driver decides.
    Any,
}

impl Bench<'_> {
    /// The cell, or why it is left out.
    pub(super) fn measure(&self, place: &Place<'_>) -> Result<Result<Cell, String>, LabError> {
        let wrong = |reason: String| LabError::Workload {
            workload: self.workload.name.clone(),
            reason: format!("{}: {reason}", place.name()),
        };
        let prepared = self.prepare(place).map_err(wrong)?;
        if let Some(why) = self.too_long(&prepared) {
            return Ok(Err(why));
        }
        let mut cell =
            Cell { at: place.at.clone(), sessions: prepared.plans.len() as u64, ..Cell::default() };
        let operations = prepared.planner.number(&place.way.operations).map_err(wrong)?;
        cell.operations = u64::try_from(operations).unwrap_or(0) * cell.sessions;
        cell.rows = prepared.rows * cell.sessions;
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

    fn prepare<'p>(&'p self, place: &'p Place<'p>) -> Result<Prepared<'p>, String> {
        let mut planner = Planner { formulas: self.formulas, variables: place.variables.clone() };
        let way = place.way;
        let sessions = way.sessions.as_ref().map_or(Ok(1), |sessions| planner.number(sessions))?;
        let mut plans = Vec::new();
        for session in 0..sessions.clamp(1, SESSIONS_MAX) {
            planner.variables.insert("session".to_owned(), Value::from(session));
            plans.push(planner.plan(&way.steps)?);
        }
        planner.variables.insert("session".to_owned(), Value::from(0));
        let beside = planner.plan(&way.beside)?;
        let count =
            |formula: &Formula| Ok::<u64, String>(u64::try_from(planner.number(formula)?).unwrap_or(0));
        let trips = match (&way.expect.trips, &way.expect.trips_max) {
            (Some(trips), _) => Trips::Exactly(count(trips)?),
            (None, Some(most)) => Trips::AtMost(count(most)?),
            (None, None) => Trips::Any,
        };
        let rows = count(&way.expect.rows)?;
        let rounds = count(self.workload.rounds.at(self.options.extent))?.max(1) as usize;
        let sum = way.expect.sum.as_ref().map(|sum| planner.number(sum)).transpose()?;
        Ok(Prepared { place, planner, plans, beside, rows, sum, trips, rounds })
    }

    fn too_long(&self, prepared: &Prepared<'_>) -> Option<String> {
        let (Trips::Exactly(trips) | Trips::AtMost(trips)) = prepared.trips else { return None };
        let wait = prepared.place.rtt.saturating_mul(u32::try_from(trips).unwrap_or(u32::MAX));
        (self.options.extent != Extent::Full && wait > WAIT_MAX)
            .then(|| format!("its trips would take {} s; --full runs it", wait.as_secs()))
    }

    /// Counts a round of new sessions through a gateway.
    fn count(&self, prepared: &Prepared<'_>, cell: &mut Cell) -> Result<(), LabError> {
        let settle = if prepared.plans.iter().any(has_joined_queries) { SETTLE } else { Duration::ZERO };
        let conninfo = self.database.conninfo.clone();
        let gateway = Gateway::start(GatewayConfig { settle, ..GatewayConfig::new(conninfo) })?;
        let (mut players, _) = self.players(prepared, address_of(&gateway)?)?;
        self.before_round(prepared)?;
        let round = play_round(&mut players, &prepared.plans)?;
        self.look_at_answers(prepared, &round)?;
        if let Trips::Exactly(trips) = prepared.trips {
            // What the program itself sees: a second count, which the gateway has no part in.
            let flights = round.answers.iter().map(|answer| answer.flights).max().unwrap_or(0);
            self.compare(prepared, "the number of its flights", trips as i64, flights as i64)?;
        }
        players.into_iter().for_each(Player::close);
        let summary = gateway.stop().analyzer.finish(&Mutes::default()).summary;
        self.book(prepared, &summary, cell)
    }

    fn book(&self, prepared: &Prepared<'_>, summary: &Summary, cell: &mut Cell) -> Result<(), LabError> {
        let sessions = prepared.plans.len() as u64;
        let (least, most) = (summary.trips.at_least() - summary.trips.connect, summary.trips.work());
        let (is_right, expected, found) = match prepared.trips {
            Trips::Exactly(trips) => {
                let trips = trips * sessions;
                ((least..=most).contains(&trips), trips.to_string(), trips.clamp(least, most))
            }
            Trips::AtMost(trips) => (most <= trips * sessions, format!("at most {}", trips * sessions), most),
            Trips::Any => (true, String::new(), most),
        };
        if !is_right || summary.lost_bytes > 0 {
            return Err(LabError::WrongTrips { cell: prepared.place.name(), expected, found });
        }
        cell.trips = cell.trips.max(found);
        cell.removed = summary.removed.values().sum();
        (cell.bytes_sent, cell.bytes_received) = (summary.bytes_sent, summary.bytes_received);
        Ok(())
    }

    /// Times rounds of sessions that have been warmed up by one.
    fn time(&self, prepared: &Prepared<'_>, cell: &mut Cell) -> Result<(), LabError> {
        let (address, relay) = self.far(prepared.place.rtt)?;
        let (mut players, mut gauge) = self.players(prepared, address)?;
        let began = Instant::now();
        for round in 0..=prepared.rounds {
            // A long first round is warm-up enough, and is kept.
            if round > 0 && began.elapsed() > ROUNDS_MAX && !cell.rounds_ns.is_empty() {
                break;
            }
            self.before_round(prepared)?;
            let beside = Beside::start(self.database, &prepared.beside)?;
            let wal = self.wal(&mut gauge)?;
            let played = play_round(&mut players, &prepared.plans)?;
            let wal = self.wal(&mut gauge)?.zip(wal).map(|(after, before)| after.saturating_sub(before));
            let beside = beside.finish()?;
            self.look_at_answers(prepared, &played)?;
            if round == 0 && played.time < WARM_UP_MAX {
                continue;
            }
            cell.beside_ns.extend(beside);
            cell.wal_bytes.extend(wal);
            cell.rounds_ns.push(nanoseconds(played.time));
            cell.cpu_ns.push(nanoseconds(played.cpu));
        }
        cell.beside_ns = thinned(std::mem::take(&mut cell.beside_ns));
        cell.memory_max = players.iter().map(Player::memory_max).max().unwrap_or(0) as u64;
        players.into_iter().for_each(Player::close);
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
        let remedies: Remedies = remedies.parse().map_err(|error| LabError::Workload {
            workload: self.workload.name.clone(),
            reason: format!("remedies: {error}"),
        })?;
        let began = Instant::now();
        for round in 0..prepared.rounds {
            if round > 0 && began.elapsed() > ROUNDS_MAX {
                break;
            }
            self.before_round(prepared)?;
            let link = (!prepared.place.rtt.is_zero()).then(|| LinkSpec::with_rtt(prepared.place.rtt));
            let conninfo = self.database.conninfo.clone();
            let remedies = remedies.clone();
            let gateway = Gateway::start(GatewayConfig { link, remedies, ..GatewayConfig::new(conninfo) })?;
            let (mut players, gauge) = self.players(prepared, address_of(&gateway)?)?;
            let played = play_round(&mut players, &prepared.plans)?;
            self.look_at_answers(prepared, &played)?;
            let memory = players.iter().map(Player::memory_max).max().unwrap_or(0) as u64;
            cell.memory_max = cell.memory_max.max(memory);
            players.into_iter().for_each(Player::close);
            gauge.close();
            let summary = gateway.stop().analyzer.finish(&Mutes::default()).summary;
            self.book(prepared, &summary, cell)?;
            cell.rounds_ns.push(nanoseconds(played.time));
            cell.cpu_ns.push(nanoseconds(played.cpu));
        }
        Ok(())
    }

    fn measure_program(
        &self,
        prepared: &Prepared<'_>,
        mut cell: Cell,
    ) -> Result<Result<Cell, String>, LabError> {
        let words = prepared.place.way.program.iter().map(|word| prepared.planner.fill(word));
        let words = words
            .collect::<Result<Vec<_>, _>>()
            .map_err(|reason| LabError::Workload { workload: self.workload.name.clone(), reason })?;
        let peer = match Peer::find(&words, self.options.clients.as_deref()) {
            Ok(peer) => peer,
            Err(why) => return Ok(Err(why)),
        };
        let gateway = Gateway::start(GatewayConfig::new(self.database.conninfo.clone()))?;
        self.before_round(prepared)?;
        let counted = peer.play(address_of(&gateway)?, &self.database.login, 0, self.stopped)?;
        let summary = gateway.stop().analyzer.finish(&Mutes::default()).summary;
        self.look_at_program(prepared, &counted)?;
        self.book(prepared, &summary, &mut cell)?;
        let (address, relay) = self.far(prepared.place.rtt)?;
        self.before_round(prepared)?;
        let timed = peer.play(address, &self.database.login, prepared.rounds, self.stopped)?;
        self.look_at_program(prepared, &timed)?;
        drop(relay);
        for round in timed.iter().skip(1) {
            cell.rounds_ns.push(round.ns);
            cell.cpu_ns.push(round.cpu_ns);
        }
        Ok(Ok(cell))
    }

    /// Where sessions connect that are so far away; the relay has to stay.
    fn far(&self, rtt: Duration) -> Result<(SocketAddr, Option<Relay>), LabError> {
        if rtt.is_zero() {
            return Ok((self.database.address, None));
        }
        let relay =
            Relay::start(LinkSpec::with_rtt(rtt), self.database.address).map_err(LabError::Connection)?;
        Ok((relay.local_addr(), Some(relay)))
    }

    /// The cell's sessions, and one beside them for what is not counted.
    fn players(
        &self,
        prepared: &Prepared<'_>,
        address: SocketAddr,
    ) -> Result<(Vec<Player<'_>>, Client), LabError> {
        let mut players = Vec::new();
        for _ in &prepared.plans {
            players.push(Player::new(Client::connect(address, &self.database.login)?, self.stopped));
        }
        Ok((players, self.database.session()?))
    }

    fn before_round(&self, prepared: &Prepared<'_>) -> Result<(), LabError> {
        if prepared.place.way.before.is_empty() {
            return Ok(());
        }
        let mut session = self.database.session()?;
        for statement in &prepared.place.way.before {
            session.ask(&self.filled(prepared, statement)?)?;
        }
        session.close();
        Ok(())
    }

    fn wal(&self, gauge: &mut Client) -> Result<Option<u64>, LabError> {
        if !self.database.has_wal() {
            return Ok(None);
        }
        let found = gauge.ask("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')")?;
        Ok(found.and_then(|bytes| bytes.parse().ok()))
    }

    fn look_at_answers(&self, prepared: &Prepared<'_>, round: &Round) -> Result<(), LabError> {
        for answer in &round.answers {
            self.compare(prepared, "the number of rows", prepared.rows as i64, answer.rows as i64)?;
            if let Some(sum) = prepared.sum {
                self.compare(prepared, "the sum of what was read", sum, answer.sum)?;
            }
        }
        self.check(prepared, 1)
    }

    fn look_at_program(&self, prepared: &Prepared<'_>, rounds: &[Played]) -> Result<(), LabError> {
        for round in rounds {
            self.compare(prepared, "the number of rows", prepared.rows as i64, round.rows as i64)?;
        }
        self.check(prepared, rounds.len() as i64)
    }

    /// Looks at the tables after so many rounds.
    fn check(&self, prepared: &Prepared<'_>, rounds: i64) -> Result<(), LabError> {
        let Some(check) = &prepared.place.way.expect.check else { return Ok(()) };
        let wrong = |reason| LabError::Workload { workload: self.workload.name.clone(), reason };
        let expected = prepared.planner.number(&check.gives).map_err(wrong)?;
        let mut session = self.database.session()?;
        let found = session.ask(&self.filled(prepared, &check.query)?)?;
        session.close();
        let found = found.and_then(|number| number.parse().ok()).unwrap_or(i64::MIN);
        self.compare(prepared, "what the tables hold", expected.saturating_mul(rounds), found)
    }

    fn compare(
        &self,
        prepared: &Prepared<'_>,
        what: &'static str,
        expected: i64,
        found: i64,
    ) -> Result<(), LabError> {
        if expected == found {
            return Ok(());
        }
        let (cell, expected, found) = (prepared.place.name(), expected.to_string(), found.to_string());
        Err(LabError::WrongAnswer { cell, what, expected, found })
    }

    fn filled(&self, prepared: &Prepared<'_>, template: &str) -> Result<String, LabError> {
        let wrong = |reason| LabError::Workload { workload: self.workload.name.clone(), reason };
        prepared.planner.fill(template).map_err(wrong)
    }
}

/// Waits of the session beside that a cell keeps.
const BESIDE_KEPT: usize = 1_000;
/// Most sessions at once.
const SESSIONS_MAX: i64 = 150;

/// Whether several simple queries share a flight: only then can a fast server make two trips of it.
fn has_joined_queries(plan: &Plan) -> bool {
    plan.acts.iter().any(|act| match act {
        Act::Flight(requests) => {
            requests.len() > 1 && requests.iter().any(|request| matches!(request.kind, Kind::Query(_)))
        }
        Act::Fetch(_) | Act::ForEach { .. } => false,
    })
}

fn address_of(gateway: &Gateway) -> Result<SocketAddr, LabError> {
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
