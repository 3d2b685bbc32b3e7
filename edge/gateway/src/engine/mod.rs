//! The engine: threads that serve connections whose both legs are there, each in one loop of its own.
//!
//! ```text
//!  door (tokio: TLS, login, dialling) --connection--> worker: wait, receive, decide, send; no task and no waker per message
//!                                                       |  a worker that is busy shares its connections with others
//!                                                       '--batch of records, every 50 ms--> recorder
//! ```
//!
//! There is one worker at first. Both legs of a connection are always with one worker.

mod connection;
mod inbox;
mod load;
mod worker;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

pub(crate) use connection::Connection;

use crate::GatewayError;
use crate::recorder::Recorder;
use crate::shared::{Shared, Stop, spawn};
use connection::Served;
use inbox::{Errand, Inbox};
use load::Load;
use worker::Worker;

/// All workers.
#[derive(Debug)]
pub(crate) struct Engine {
    crew: Arc<Crew>,
}

/// What workers know of each other.
#[derive(Debug)]
struct Crew {
    shared: Arc<Shared>,
    recorder: Recorder,
    /// There are no more workers than this.
    most: usize,
    hands: Mutex<Hands>,
}

#[derive(Debug)]
struct Hands {
    list: Vec<Hand>,
    /// What new ones are told first.
    stop: Stop,
    is_closed: bool,
}

/// A worker, as others see it.
#[derive(Debug)]
struct Hand {
    inbox: Arc<Inbox>,
    load: Arc<Load>,
    thread: Option<JoinHandle<()>>,
}

impl Engine {
    /// Starts with one worker; there are never more than `most`.
    pub(crate) fn start(most: usize, shared: Arc<Shared>, recorder: Recorder) -> Result<Self, GatewayError> {
        let hands = Mutex::new(Hands { list: Vec::new(), stop: Stop::No, is_closed: false });
        let crew = Arc::new(Crew { shared, recorder, most, hands });
        Crew::grow(&crew, &mut crew.hands())?;
        Ok(Self { crew })
    }

    /// Serves a connection from now on.
    pub(crate) fn serve(&self, connection: Box<dyn Served>) {
        let hands = self.crew.hands();
        let now = Instant::now();
        if let Some(hand) = hands.list.iter().min_by_key(|hand| hand.load.at(now)) {
            hand.load.comes();
            hand.inbox.send(Errand::Serve(connection));
        }
    }

    /// Connections do not go on as they did.
    pub(crate) fn stop(&self, stop: Stop) {
        let mut hands = self.crew.hands();
        hands.stop = stop;
        hands.list.iter().for_each(|hand| hand.inbox.send(Errand::Stop(stop)));
    }

    /// No connections come any more. Waits until the last has ended; to be called after a stop.
    pub(crate) fn finish(&self) {
        self.close();
        loop {
            let threads: Vec<_> =
                self.crew.hands().list.iter_mut().filter_map(|hand| hand.thread.take()).collect();
            if threads.is_empty() {
                return;
            }
            for thread in threads {
                if let Err(panic) = thread.join() {
                    std::panic::resume_unwind(panic);
                }
            }
        }
    }

    fn close(&self) {
        let mut hands = self.crew.hands();
        hands.is_closed = true;
        hands.list.iter().for_each(|hand| hand.inbox.send(Errand::Close));
    }
}

/// If nobody can stop the connections any more, all are to stop.
impl Drop for Engine {
    fn drop(&mut self) {
        self.stop(Stop::Now);
        self.close();
    }
}

impl Crew {
    /// A panic elsewhere leaves the list whole.
    fn hands(&self) -> MutexGuard<'_, Hands> {
        self.hands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts one more worker.
    fn grow(crew: &Arc<Self>, hands: &mut Hands) -> Result<(), GatewayError> {
        let (worker, inbox, load) = Worker::new(Arc::clone(crew)).map_err(GatewayError::Start)?;
        if hands.stop != Stop::No {
            inbox.send(Errand::Stop(hands.stop));
        }
        let thread = spawn("onetrip-worker", move || worker.run())?;
        hands.list.push(Hand { inbox, load, thread: Some(thread) });
        Ok(())
    }

    /// Who takes connections from a worker that is busy: one that has much less to do, else a new one.
    fn helper(crew: &Arc<Self>, busy: &Arc<Inbox>, now: Instant) -> Option<(Arc<Inbox>, Arc<Load>)> {
        let mut hands = crew.hands();
        if hands.stop != Stop::No || hands.is_closed {
            return None;
        }
        let others = hands.list.iter().filter(|hand| !Arc::ptr_eq(&hand.inbox, busy));
        let idlest = others.min_by_key(|hand| hand.load.at(now));
        if !idlest.is_some_and(|hand| hand.load.is_free(now)) {
            // Without another thread this one goes on alone.
            if hands.list.len() >= crew.most || Self::grow(crew, &mut hands).is_err() {
                return None;
            }
            return hands.list.last().map(|hand| (Arc::clone(&hand.inbox), Arc::clone(&hand.load)));
        }
        idlest.map(|hand| (Arc::clone(&hand.inbox), Arc::clone(&hand.load)))
    }
}

#[cfg(test)]
#[path = "sharing_tests.rs"]
mod sharing_tests;
