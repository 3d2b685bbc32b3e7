//! The sessions of a cell: the lab's own, or those of onetrip's client library, which wait in threads or all in one.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use futures_util::stream::{FuturesUnordered, TryStreamExt};
use onetrip_client::core::Fetch;
use onetrip_client::{Config, Format, Param, Written, aio, blocking};
use tokio::runtime::Runtime;

use super::round::{Part, Plays, Round, play_round};
use crate::LabError;
use crate::client::{Answer, Client, Player};
use crate::cpu;
use crate::database::Database;
use crate::plan::{Act, Kind, Parameter, Plan, Request};
use crate::workload::{ClientKind, Sum};

/// Every how many rows it is asked what a cursor holds.
const LOOK_EVERY: u64 = 64;

/// Sessions that play together.
pub(super) enum Team<'s> {
    Lab(Vec<Player<'s>>),
    Blocking(Vec<Blocking>),
    Aio(Aio),
}

/// A session of the library that waits in its thread.
pub(super) struct Blocking {
    client: blocking::Client,
    memory_max: usize,
}

/// Sessions of the library that all wait in one thread.
pub(super) struct Aio {
    runtime: Runtime,
    clients: Vec<aio::Client>,
}

impl<'s> Team<'s> {
    /// Opens so many sessions.
    pub(super) fn connect(
        kind: ClientKind,
        sessions: usize,
        (database, address): (&Database, SocketAddr),
        stopped: &'s AtomicBool,
    ) -> Result<Self, LabError> {
        let config = || database.config(address);
        Ok(match kind {
            ClientKind::Lab => {
                let player = |_| Ok(Player::new(Client::connect(address, &database.login)?, stopped));
                Self::Lab((0..sessions).map(player).collect::<Result<_, LabError>>()?)
            }
            ClientKind::Blocking => {
                let player = |_| {
                    let client = blocking::Client::connect_with(config()?)?;
                    Ok(Blocking { client, memory_max: 0 })
                };
                Self::Blocking((0..sessions).map(player).collect::<Result<_, LabError>>()?)
            }
            ClientKind::Aio => Self::Aio(Aio::connect(sessions, config)?),
        })
    }

    /// Lets each session play its plan, all at once.
    pub(super) fn play(&mut self, plans: &[Plan]) -> Result<Round, LabError> {
        match self {
            Self::Lab(players) => play_round(players, plans),
            Self::Blocking(players) => play_round(players, plans),
            Self::Aio(sessions) => sessions.play(plans),
        }
    }

    /// Most bytes that one of them has held; zero where they cannot tell.
    pub(super) fn memory_max(&self) -> u64 {
        let most = match self {
            Self::Lab(players) => players.iter().map(Plays::memory_max).max(),
            Self::Blocking(players) => players.iter().map(Plays::memory_max).max(),
            Self::Aio(_) => None,
        };
        most.unwrap_or(0) as u64
    }

    pub(super) fn close(self) {
        match self {
            Self::Lab(players) => players.into_iter().for_each(Player::close),
            Self::Blocking(players) => players.into_iter().for_each(|player| player.client.close()),
            Self::Aio(sessions) => drop(sessions),
        }
    }
}

impl Plays for Blocking {
    fn play(&mut self, plan: &Plan) -> Result<Answer, LabError> {
        let mut answer = Answer::default();
        for act in &plan.acts {
            match act {
                Act::Fetch(fetch) if fetch.each.is_empty() => {
                    self.read_ahead(plan, &fetch.request, &mut answer)?
                }
                act => match &single(act)?.kind {
                    Kind::Query(text) => self.client.script(text)?,
                    Kind::Execute { .. } => return Err(unfit()),
                },
            }
            answer.flights += 1;
        }
        Ok(answer)
    }

    fn memory_max(&self) -> usize {
        self.memory_max
    }
}

impl Blocking {
    fn read_ahead(&mut self, plan: &Plan, request: &Request, answer: &mut Answer) -> Result<(), LabError> {
        let Kind::Execute { statement, .. } = request.kind else { return Err(unfit()) };
        let cursor = self.client.open_cursor(&plan.statements[statement], &[], Fetch::Auto)?;
        while let Some(row) = self.client.next_row(&cursor)? {
            answer.rows += 1;
            answer.sum += length(request, row.values().last().flatten());
            if answer.rows % LOOK_EVERY == 1 {
                self.memory_max = self.memory_max.max(self.client.cursor_memory());
            }
        }
        self.client.close_cursor(cursor)?;
        Ok(())
    }
}

impl Aio {
    fn connect(sessions: usize, config: impl Fn() -> Result<Config, LabError>) -> Result<Self, LabError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(LabError::Connection)?;
        let mut clients = Vec::new();
        for _ in 0..sessions {
            clients.push(runtime.block_on(aio::Client::connect_with(config()?))?);
        }
        Ok(Self { runtime, clients })
    }

    fn play(&mut self, plans: &[Plan]) -> Result<Round, LabError> {
        let (began, used) = (Instant::now(), cpu::of_this_thread());
        let all: FuturesUnordered<_> =
            self.clients.iter_mut().zip(plans).map(|(client, plan)| play(client, plan)).collect();
        let answers: Vec<Answer> = self.runtime.block_on(all.try_collect())?;
        let cpu = cpu::of_this_thread().saturating_sub(used);
        let part =
            |answer| Part { began, ended: Instant::now(), cpu: cpu / plans.len().max(1) as u32, answer };
        Ok(Round::of(answers.into_iter().map(part).collect()))
    }
}

/// Plays a plan whose acts are one request each.
async fn play(client: &mut aio::Client, plan: &Plan) -> Result<Answer, LabError> {
    let mut answer = Answer::default();
    for act in &plan.acts {
        let request = single(act)?;
        answer.flights += 1;
        let (statement, parameters) = match &request.kind {
            Kind::Query(text) => {
                client.script(text).await?;
                continue;
            }
            Kind::Execute { statement, parameters, .. } => (&plan.statements[*statement], parameters),
        };
        let values = parameters.iter().map(written).collect::<Result<Vec<_>, _>>()?;
        let values: Vec<&(dyn Param + Sync)> = values.iter().map(|value| value as _).collect();
        let mut rows = client.query(statement, &values).await?;
        while let Some(row) = rows.next_row().await? {
            answer.rows += 1;
            answer.sum += length(request, row.values().last().flatten());
        }
    }
    Ok(answer)
}

/// A parameter as the workload's text of it.
fn written(parameter: &Parameter) -> Result<Written<'_>, LabError> {
    match parameter {
        Parameter::Fixed(text) => {
            Ok(Written { type_oid: 0, format: Format::Text, bytes: Some(text.as_bytes()) })
        }
        Parameter::Column(_) | Parameter::Kept(_) | Parameter::Last => Err(unfit()),
    }
}

/// What of a value goes into the answer: its values are binary, so that only lengths are the same for all clients.
fn length(request: &Request, value: Option<&[u8]>) -> i64 {
    let is_summed = matches!(request.sum, Some(Sum::Length));
    if is_summed { value.map_or(0, |value| value.len() as i64) } else { 0 }
}

fn single(act: &Act) -> Result<&Request, LabError> {
    match act {
        Act::Flight(requests) => match requests.as_slice() {
            [request] => Ok(request),
            _ => Err(unfit()),
        },
        Act::Fetch(_) | Act::ForEach { .. } | Act::Exchange { .. } => Err(unfit()),
    }
}

fn unfit() -> LabError {
    LabError::Database("the workload has a step that its client has no part in".to_owned())
}
