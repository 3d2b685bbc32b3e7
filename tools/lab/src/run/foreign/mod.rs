//! Servers that do not speak PostgreSQL's protocol. MariaDB's trips are counted by a gateway, as PostgreSQL's are; those of
//! the others by who speaks when, not by what is said.

mod derby;
mod echo;
mod mariadb;

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use onetrip_gateway::{Gateway, GatewayConfig};
use onetrip_ledger::{Mutes, Summary};

use super::cell::{address_of, book_programs, book_round, far};
use super::frame::{Frame, Prepared, WARM_UP_MAX};
use super::matrix::Place;
use super::peer::{Destination, Played};
use super::round::{Plays, play_round};
use super::turns::{Counted, Turns};
use crate::LabError;
use crate::cell::{Allocated, Cell};
use crate::cpu::ServerCpu;
use crate::workload::Engine;

/// One of them, running as long as this is.
#[derive(Debug)]
pub(super) enum Foreign {
    Mariadb(mariadb::Server),
    Derby(derby::Server),
    Echo(echo::Server),
}

impl Foreign {
    /// Starts it, or says why it is not there.
    pub(super) fn open(engine: Engine, clients: Option<&Path>) -> Result<Result<Self, String>, LabError> {
        Ok(match engine {
            Engine::Mariadb => mariadb::Server::start()?.map(Self::Mariadb),
            Engine::Derby => derby::Server::start(clients)?.map(Self::Derby),
            Engine::Echo | Engine::Embedded | Engine::Postgresql => {
                echo::Server::start().map(Self::Echo).map(Ok)?
            }
        })
    }

    pub(super) fn description(&self) -> String {
        match self {
            Self::Mariadb(server) => {
                format!("the installed MariaDB, started on port {}", server.address().port())
            }
            Self::Derby(server) => {
                format!("Apache Derby's network server, started on port {}", server.address().port())
            }
            Self::Echo(_) => "a server that sends bytes back".to_owned(),
        }
    }

    pub(super) fn version(&self) -> &str {
        match self {
            Self::Mariadb(server) => server.version(),
            Self::Derby(server) => server.version(),
            Self::Echo(_) => "two system calls for each answer",
        }
    }

    /// Makes tables.
    pub(super) fn set_up(&self, statements: &[String]) -> Result<(), LabError> {
        match self {
            Self::Mariadb(server) => server.set_up(statements),
            Self::Derby(_) | Self::Echo(_) => Ok(()),
        }
    }

    /// The cell, or why it is left out.
    pub(super) fn measure(
        &self,
        frame: Frame<'_>,
        place: &Place<'_>,
    ) -> Result<Result<Cell, String>, LabError> {
        let (prepared, mut cell) = match frame.prepare(place)? {
            Ok(both) => both,
            Err(why) => return Ok(Err(why)),
        };
        if !place.way.program.is_empty() {
            return self.measure_program(frame, &prepared, cell);
        }
        match self {
            Self::Mariadb(_) => {
                self.measure_players(frame, &prepared, mariadb::Player::connect, &mut cell)?
            }
            Self::Echo(_) => self.measure_players(frame, &prepared, echo::Player::connect, &mut cell)?,
            Self::Derby(_) => return Err(frame.wrong("Derby is asked by a program".to_owned())),
        }
        Ok(Ok(cell))
    }

    fn engine(&self) -> Engine {
        match self {
            Self::Mariadb(_) => Engine::Mariadb,
            Self::Derby(_) => Engine::Derby,
            Self::Echo(_) => Engine::Echo,
        }
    }

    fn before_round(&self, frame: Frame<'_>, prepared: &Prepared<'_>) -> Result<(), LabError> {
        match frame.before(prepared, self.engine())?.as_slice() {
            [] => Ok(()),
            before => self.set_up(before),
        }
    }

    /// Looks at the tables after a round.
    fn check(&self, frame: Frame<'_>, prepared: &Prepared<'_>) -> Result<(), LabError> {
        let Self::Mariadb(server) = self else { return Ok(()) };
        frame.check(prepared, 1, |query| server.ask(query))
    }

    fn address(&self) -> SocketAddr {
        match self {
            Self::Mariadb(server) => server.address(),
            Self::Derby(server) => server.address(),
            Self::Echo(server) => server.address(),
        }
    }

    fn cpu(&self) -> ServerCpu {
        match self {
            Self::Mariadb(server) => ServerCpu::Of(server.process()),
            Self::Derby(server) => ServerCpu::Of(server.process()),
            Self::Echo(_) => ServerCpu::InThisProcess,
        }
    }

    fn measure_players<P: Plays>(
        &self,
        frame: Frame<'_>,
        prepared: &Prepared<'_>,
        connect: impl Fn(SocketAddr) -> Result<P, LabError>,
        cell: &mut Cell,
    ) -> Result<(), LabError> {
        let all = |address| prepared.plans.iter().map(|_| connect(address)).collect::<Result<Vec<P>, _>>();
        self.count(prepared, cell, &|address, rounds| {
            self.before_round(frame, prepared)?;
            let mut players = all(address)?;
            (0..rounds)
                .try_for_each(|_| prepared.look_at_answers(&play_round(&mut players, &prepared.plans)?))
        })?;
        let (address, _relay) = far(self.address(), prepared.place.rtt)?;
        let mut players = all(address)?;
        let began = Instant::now();
        for round in 0..=prepared.rounds {
            if prepared.has_enough(cell, began) {
                break;
            }
            self.before_round(frame, prepared)?;
            let (server, counted) = (self.cpu(), || self.allocated(frame));
            let (used, allocated) = (server.used(), counted());
            let played = play_round(&mut players, &prepared.plans)?;
            let server_cpu = server.since(&used, played.cpu);
            let allocated = counted().zip(allocated).map(|(after, before)| after.since(before));
            prepared.look_at_answers(&played)?;
            self.check(frame, prepared)?;
            if round > 0 || played.time > WARM_UP_MAX {
                cell.allocated = allocated;
                book_round(cell, &played, server_cpu);
            }
        }
        cell.memory_max = players.iter().map(Plays::memory_max).max().unwrap_or(0) as u64;
        Ok(())
    }

    fn measure_program(
        &self,
        frame: Frame<'_>,
        prepared: &Prepared<'_>,
        mut cell: Cell,
    ) -> Result<Result<Cell, String>, LabError> {
        let peer = match frame.peer(prepared)? {
            Ok(peer) => peer,
            Err(why) => return Ok(Err(why)),
        };
        // One program has all sessions: so many virtual machines would compile against each other.
        let look_at = |played: &[Played]| prepared.look_at_program(played);
        let script = [String::new()];
        let begin = |address| peer.start(&script, Destination { address, login: None }, frame.stopped);
        self.count(prepared, &mut cell, &|address, rounds| {
            self.before_round(frame, prepared)?;
            let mut peers = begin(address)?;
            (0..rounds).try_for_each(|_| look_at(&peers.round()?))?;
            peers.finish()
        })?;
        let (address, _relay) = far(self.address(), prepared.place.rtt)?;
        let mut peers = begin(address)?;
        let warm_up = match self {
            Self::Derby(_) => derby::WARM_UP_ROUNDS,
            Self::Mariadb(_) | Self::Echo(_) => 1,
        };
        let began = Instant::now();
        for round in 0..prepared.rounds + warm_up {
            if prepared.has_enough(&cell, began) {
                break;
            }
            self.before_round(frame, prepared)?;
            let (used, allocated, start) = (self.cpu().used(), self.allocated_by_threads()?, Instant::now());
            let played = peers.round()?;
            let server_cpu = self.cpu().since(&used, Duration::ZERO);
            look_at(&played)?;
            self.check(frame, prepared)?;
            if round >= warm_up || start.elapsed() > WARM_UP_MAX {
                let after = self.allocated_by_threads()?;
                cell.allocated = after.zip(allocated).map(|(after, before)| after.since(before));
                book_programs(&mut cell, &played, server_cpu);
            }
        }
        peers.finish()?;
        Ok(Ok(cell))
    }

    /// Counts a round of sessions that have played one: what the second of two adds. `play` opens sessions at the address,
    /// plays so many rounds, and closes them.
    fn count(
        &self,
        prepared: &Prepared<'_>,
        cell: &mut Cell,
        play: &dyn Fn(SocketAddr, usize) -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        let both = self.counted(2, play)?;
        let counted = both.since(self.counted(1, play)?);
        (cell.bytes_sent, cell.bytes_received) = (counted.sent, counted.received);
        prepared.book_trips(cell, counted.trips, counted.trips)
    }

    fn counted(
        &self,
        rounds: usize,
        play: &dyn Fn(SocketAddr, usize) -> Result<(), LabError>,
    ) -> Result<Counted, LabError> {
        let Self::Mariadb(server) = self else {
            let turns = Turns::start(self.address())?;
            play(turns.address(), rounds)?;
            return Ok(turns.counted());
        };
        let gateway = Gateway::start(GatewayConfig::new(server.conninfo()?))?;
        play(address_of(&gateway)?, rounds)?;
        let Summary { trips, bytes_sent: sent, bytes_received: received, .. } =
            gateway.stop().analyzer.finish(&Mutes::default()).summary;
        Ok(Counted { trips: trips.work(), sent, received })
    }

    /// What the server's threads have allocated, where it tells.
    fn allocated_by_threads(&self) -> Result<Option<Allocated>, LabError> {
        match self {
            Self::Derby(server) => server.allocated().map(Some),
            Self::Mariadb(_) | Self::Echo(_) => Ok(None),
        }
    }

    fn allocated(&self, frame: Frame<'_>) -> Option<Allocated> {
        let counted = frame.options.allocated.filter(|_| self.cpu() == ServerCpu::InThisProcess);
        counted.map(|counted| counted())
    }
}
