//! Servers that do not speak PostgreSQL's protocol: their trips are counted by who speaks when, not by what is said.

mod derby;
mod echo;
mod mariadb;

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use super::cell::{book_programs, book_round, far};
use super::frame::{Frame, Prepared, WARM_UP_MAX};
use super::matrix::Place;
use super::peer::{Destination, Played};
use super::round::{Plays, play_round};
use super::turns::{Counted, Turns};
use crate::LabError;
use crate::cpu::ServerCpu;
use crate::samples::{Allocated, Cell};
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
        match self {
            Self::Derby(server) => return self.measure_program(frame, &prepared, server, cell),
            Self::Mariadb(_) => {
                self.measure_players(frame, &prepared, mariadb::Player::connect, &mut cell)?
            }
            Self::Echo(_) => self.measure_players(frame, &prepared, echo::Player::connect, &mut cell)?,
        }
        Ok(Ok(cell))
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
        let turns = Turns::start(self.address())?;
        let mut players = all(turns.address())?;
        // The first round prepares.
        prepared.look_at_answers(&play_round(&mut players, &prepared.plans)?)?;
        let before = turns.counted();
        prepared.look_at_answers(&play_round(&mut players, &prepared.plans)?)?;
        book_turns(prepared, cell, turns.counted().since(before))?;
        let (address, _relay) = far(self.address(), prepared.place.rtt)?;
        let mut players = all(address)?;
        let began = Instant::now();
        for round in 0..=prepared.rounds {
            if prepared.has_enough(cell, began) {
                break;
            }
            let (server, counted) = (self.cpu(), || self.allocated(frame));
            let (used, allocated) = (server.used(), counted());
            let played = play_round(&mut players, &prepared.plans)?;
            let server_cpu = server.since(&used, played.cpu);
            let allocated = counted().zip(allocated).map(|(after, before)| after.since(before));
            prepared.look_at_answers(&played)?;
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
        server: &derby::Server,
        mut cell: Cell,
    ) -> Result<Result<Cell, String>, LabError> {
        let peer = match frame.peer(prepared)? {
            Ok(peer) => peer,
            Err(why) => return Ok(Err(why)),
        };
        // One program has all sessions: so many virtual machines would compile against each other.
        let look_at = |played: &[Played]| prepared.look_at_program(played);
        let turns = Turns::start(self.address())?;
        let destination = Destination { address: turns.address(), login: None };
        let script = [String::new()];
        let mut peers = peer.start(&script, destination, frame.stopped)?;
        look_at(&peers.round()?)?;
        let before = turns.counted();
        look_at(&peers.round()?)?;
        book_turns(prepared, &mut cell, turns.counted().since(before))?;
        peers.finish()?;
        let (address, _relay) = far(self.address(), prepared.place.rtt)?;
        let mut peers = peer.start(&script, Destination { address, login: None }, frame.stopped)?;
        let began = Instant::now();
        for round in 0..prepared.rounds + derby::WARM_UP_ROUNDS {
            if prepared.has_enough(&cell, began) {
                break;
            }
            let (used, allocated) = (self.cpu().used(), server.allocated()?);
            let played = peers.round()?;
            let server_cpu = self.cpu().since(&used, Duration::ZERO);
            look_at(&played)?;
            if round >= derby::WARM_UP_ROUNDS {
                cell.allocated = Some(server.allocated()?.since(allocated));
                book_programs(&mut cell, &played, server_cpu);
            }
        }
        peers.finish()?;
        Ok(Ok(cell))
    }

    fn allocated(&self, frame: Frame<'_>) -> Option<Allocated> {
        let counted = frame.options.allocated.filter(|_| self.cpu() == ServerCpu::InThisProcess);
        counted.map(|counted| counted())
    }
}

fn book_turns(prepared: &Prepared<'_>, cell: &mut Cell, counted: Counted) -> Result<(), LabError> {
    (cell.bytes_sent, cell.bytes_received) = (counted.sent, counted.received);
    prepared.book_trips(cell, counted.trips, counted.trips)
}
