//! A round: all sessions play their plans at once, and another one does its own work beside them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::LabError;
use crate::client::{Answer, Player};
use crate::database::Database;
use crate::plan::Plan;

/// Times of the session beside that are kept for each round.
const BESIDE_MAX: usize = 10_000;

/// What a round came to.
pub(super) struct Round {
    /// From the first session's start to the last one's end.
    pub(super) time: Duration,
    /// CPU time of all sessions' threads.
    pub(super) cpu: Duration,
    pub(super) answers: Vec<Answer>,
}

/// One session's part.
struct Part {
    began: Instant,
    ended: Instant,
    cpu: Duration,
    answer: Answer,
}

/// Lets each player play its plan, all at once.
pub(super) fn play_round(players: &mut [Player<'_>], plans: &[Plan]) -> Result<Round, LabError> {
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
    let began = parts.iter().map(|part| part.began).min();
    let ended = parts.iter().map(|part| part.ended).max();
    Ok(Round {
        time: began.zip(ended).map(|(began, ended)| ended.duration_since(began)).unwrap_or_default(),
        cpu: parts.iter().map(|part| part.cpu).sum(),
        answers: parts.into_iter().map(|part| part.answer).collect(),
    })
}

fn play(player: &mut Player<'_>, plan: &Plan) -> Result<Part, LabError> {
    let (began, used) = (Instant::now(), thread_cpu());
    let answer = player.play(plan)?;
    Ok(Part { began, ended: Instant::now(), cpu: thread_cpu().saturating_sub(used), answer })
}

/// CPU time that this thread has used.
fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// A session without distance that does its work again and again until the round is over.
pub(super) struct Beside {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Vec<u64>, LabError>>>,
}

impl Beside {
    /// Starts it; with an empty plan there is none.
    pub(super) fn start(database: &Database, plan: &Plan, stopped: &AtomicBool) -> Result<Self, LabError> {
        let is_over = Arc::new(AtomicBool::new(stopped.load(Ordering::Relaxed)));
        if plan.acts.is_empty() {
            return Ok(Self { is_over, thread: None });
        }
        let session = database.session()?;
        let (over, plan) = (Arc::clone(&is_over), plan.clone());
        let thread = thread::Builder::new().name("onetrip-beside".into()).spawn(move || {
            let never = AtomicBool::new(false);
            let mut player = Player::new(session, &never);
            let mut times = Vec::new();
            for act in (0..plan.acts.len()).cycle() {
                if over.load(Ordering::Relaxed) || times.len() == BESIDE_MAX {
                    break;
                }
                let began = Instant::now();
                player.play_act(&plan, act)?;
                times.push(began.elapsed().as_nanos() as u64);
            }
            player.close();
            Ok(times)
        });
        Ok(Self { is_over, thread: Some(thread.map_err(LabError::Connection)?) })
    }

    /// Ends it and returns what each of its acts took, in nanoseconds.
    pub(super) fn finish(self) -> Result<Vec<u64>, LabError> {
        self.is_over.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread else { return Ok(Vec::new()) };
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
