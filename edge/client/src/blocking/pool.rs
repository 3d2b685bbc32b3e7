use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Client;
use crate::core::Cursors;
use crate::{Config, ConnectError, Error};

/// Connections that are used in turn. Neither check-out nor check-in makes a trip: what has to be put right travels
/// with the next user's first statement.
#[derive(Debug, Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: Arc<Config>,
    size_max: usize,
    /// A connection that was idle for longer is closed rather than given out.
    idle_max: Duration,
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The last returned is the first given out, so that the rest can grow old.
    idle: Vec<(Client, Instant)>,
    /// Idle ones and those that are in use.
    size: usize,
}

impl Pool {
    /// A pool of at most `size_max` connections; it begins empty. Idle ones live for `idle_max`.
    pub fn new(config: impl Into<Arc<Config>>, size_max: usize, idle_max: Duration) -> Self {
        let state = Mutex::new(State::default());
        let size_max = size_max.max(1);
        let shared = Shared { config: config.into(), size_max, idle_max, state, returned: Condvar::new() };
        Self { shared: Arc::new(shared) }
    }

    /// Takes a connection; opens one if none is idle, and waits at most this long if there are too many.
    ///
    /// # Errors
    /// [`Error::Connect`], also where none became free in time.
    pub fn get(&self, wait: Duration) -> Result<Pooled, Error> {
        let deadline = Instant::now() + wait;
        let mut state = self.shared.lock();
        loop {
            while let Some((mut client, since)) = state.idle.pop() {
                if since.elapsed() < self.shared.idle_max && client.is_usable() {
                    return Ok(Pooled { client: Some(client), shared: Arc::clone(&self.shared) });
                }
                state.size -= 1;
            }
            if state.size < self.shared.size_max {
                state.size += 1;
                break;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ConnectError::TimedOut { host: "the pool".to_owned() }.into());
            }
            state = self.shared.returned.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        match Client::connect_with(Arc::clone(&self.shared.config)) {
            Ok(client) => Ok(Pooled { client: Some(client), shared: Arc::clone(&self.shared) }),
            Err(error) => {
                self.shared.lock().size -= 1;
                self.shared.returned.notify_one();
                Err(error)
            }
        }
    }

    /// Connections that are open: idle, and in use.
    pub fn size(&self) -> (usize, usize) {
        let state = self.shared.lock();
        (state.idle.len(), state.size - state.idle.len())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection of a [`Pool`]; it goes back when it is dropped. A transaction that is left open is rolled back.
#[derive(Debug)]
pub struct Pooled {
    client: Option<Client>,
    shared: Arc<Shared>,
}

impl Deref for Pooled {
    type Target = Client;

    fn deref(&self) -> &Client {
        match &self.client {
            Some(client) => client,
            None => unreachable!("it is taken by drop alone"),
        }
    }
}

impl DerefMut for Pooled {
    fn deref_mut(&mut self) -> &mut Client {
        match &mut self.client {
            Some(client) => client,
            None => unreachable!("it is taken by drop alone"),
        }
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let put_back = self.client.take().and_then(|mut client| client.put_back().then_some(client));
        match put_back {
            Some(client) => state.idle.push((client, Instant::now())),
            None => state.size -= 1,
        }
        drop(state);
        self.shared.returned.notify_one();
    }
}

impl Client {
    /// Whether the server has not said goodbye meanwhile. Asks nobody.
    fn is_usable(&mut self) -> bool {
        self.exchange_now();
        self.core.is_usable()
    }

    /// Makes the session ready for somebody else, without waiting; false where that cannot be.
    fn put_back(&mut self) -> bool {
        self.timeout = None;
        self.cursors = Cursors::default();
        let is_ready = self.core.hand_over().is_ok();
        if self.core.has_output() {
            self.exchange_now();
        }
        is_ready && !self.core.is_lost()
    }
}
