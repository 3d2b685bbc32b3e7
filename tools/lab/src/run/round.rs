//! A round: all sessions play their plans at once, and another one does its own work beside them.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Barrier, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::LabError;
use crate::client::{Answer, Client, Player};
use crate::cpu;
use crate::database::Database;
use crate::plan::Plan;

/// How often the session beside has something to do.
const BESIDE_INTERVAL: Duration = Duration::from_millis(5);
/// Times of it that are kept for each round: more than eight minutes.
const BESIDE_MAX: usize = 100_000;

/// A session that can play plans.
pub(super) trait Plays: Send {
    /// Plays the plan once.
    fn play(&mut self, plan: &Plan) -> Result<Answer, LabError>;
    /// Most bytes that it has held at once; zero where it cannot tell.
    fn memory_max(&self) -> usize;
}

impl Plays for Player<'_> {
    fn play(&mut self, plan: &Plan) -> Result<Answer, LabError> {
        Player::play(self, plan)
    }

    fn memory_max(&self) -> usize {
        Player::memory_max(self)
    }
}

/// What a round came to.
pub(super) struct Round {
    /// From the first session's start to the last one's end.
    pub(super) time: Duration,
    /// CPU time of all sessions' threads.
    pub(super) cpu: Duration,
    pub(super) answers: Vec<Answer>,
}

/// One session's part.
pub(super) struct Part {
    pub(super) began: Instant,
    pub(super) ended: Instant,
    pub(super) cpu: Duration,
    pub(super) answer: Answer,
}

/// Lets each player play its plan, all at once.
pub(super) fn play_round<P: Plays>(players: &mut [P], plans: &[Plan]) -> Result<Round, LabError> {
    let barrier = Barrier::new(players.len());
    let parts: Vec<Result<Part, LabError>> = thread::scope(|scope| {
        let barrier = &barrier;
        let threads: Vec<_> = players
            .iter_mut()
            .zip(plans)
            .map(|(player, plan)| {
                scope.spawn(move || {
                    barrier.wait();
                    play(player, plan)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let parts = parts.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(Round::of(parts))
}
fn play(player: &mut impl Plays, plan: &Plan) -> Result<Part, LabError> {
    let (began, used) = (Instant::now(), cpu::of_this_thread());
    let answer = player.play(plan)?;
    Ok(Part { began, ended: Instant::now(), cpu: cpu::of_this_thread().saturating_sub(used), answer })
}

impl Round {
    pub(super) fn of(parts: Vec<Part>) -> Self {
        let began = parts.iter().map(|part| part.began).min();
        let ended = parts.iter().map(|part| part.ended).max();
        Self {
            time: began.zip(ended).map(|(began, ended)| ended.duration_since(began)).unwrap_or_default(),
            cpu: parts.iter().map(|part| part.cpu).sum(),
            answers: parts.into_iter().map(|part| part.answer).collect(),
        }
    }
}

/// A session without distance that does its own work at a fixed rate until the round is over.
///
/// The rate stays when a statement has to wait: what was due meanwhile is counted from when it was due. Otherwise one long wait
/// would be one sample among thousands of short ones, and a percentile would hide it.
pub(super) struct Beside {
    end: Arc<OnceLock<Instant>>,
    thread: Option<JoinHandle<Result<Vec<u64>, LabError>>>,
}

impl Beside {
    /// Starts it; with an empty plan there is none.
    pub(super) fn start(database: &Database, plan: &Plan) -> Result<Self, LabError> {
        let end = Arc::new(OnceLock::new());
        if plan.acts.is_empty() {
            return Ok(Self { end, thread: None });
        }
        let session = database.player()?;
        let (known_end, plan) = (Arc::clone(&end), plan.clone());
        let thread = thread::Builder::new().name("onetrip-beside".into());
        let thread = thread.spawn(move || work_beside(session, &plan, &known_end));
        Ok(Self { end, thread: Some(thread.map_err(LabError::Connection)?) })
    }

    /// Lets it do what is due, ends it, and returns what each of its acts took from when it was due, in nanoseconds.
    pub(super) fn finish(mut self) -> Result<Vec<u64>, LabError> {
        self.end.get_or_init(Instant::now);
        let Some(thread) = self.thread.take() else { return Ok(Vec::new()) };
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // After an error there is nobody to join it; it ends by itself.
        self.end.get_or_init(Instant::now);
    }
}

fn work_beside(session: Client, plan: &Plan, end: &OnceLock<Instant>) -> Result<Vec<u64>, LabError> {
    let never = AtomicBool::new(false);
    let mut player = Player::new(session, &never);
    let mut times = Vec::new();
    let mut due = Instant::now();
    for act in (0..plan.acts.len()).cycle().take(BESIDE_MAX) {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if end.get().is_some_and(|end| due > *end) {
            break;
        }
        player.play_act(plan, act)?;
        times.push(due.elapsed().as_nanos() as u64);
        due += BESIDE_INTERVAL;
    }
    player.close();
    Ok(times)
}
