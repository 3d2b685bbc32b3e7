// Made from aio/pool.rs by tests/twins.rs: change that one.
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Client;
use super::permits::{Permit, Permits};
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
    /// A connection that was idle for longer is closed rather than given out.
    idle_max: Duration,
    /// One for each connection that may be in use.
    permits: Permits,
    /// The last returned is the first given out, so that the rest can grow old.
    idle: Mutex<Vec<(Client, Instant)>>,
}

impl Pool {
    /// A pool of at most `size_max` connections; it begins empty. Idle ones live for `idle_max`.
    pub fn new(config: impl Into<Arc<Config>>, size_max: usize, idle_max: Duration) -> Self {
        let permits = Permits::new(size_max);
        let shared = Shared { config: config.into(), idle_max, permits, idle: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// Takes a connection; opens one if none is idle, and waits at most this long if there are too many.
    ///
    /// # Errors
    /// [`Error::Connect`], also where none became free in time.
    pub fn get(&self, wait: Duration) -> Result<Pooled, Error> {
        let Some(permit) = self.shared.permits.take(wait) else {
            return Err(ConnectError::TimedOut { host: "the pool".to_owned() }.into());
        };
        let client = match self.shared.take_idle() {
            Some(client) => client,
            None => Client::connect_with(Arc::clone(&self.shared.config))?,
        };
        Ok(Pooled { client: Some(client), shared: Arc::clone(&self.shared), _permit: permit })
    }

    /// Connections that are open: idle, and in use.
    pub fn size(&self) -> (usize, usize) {
        (self.shared.lock().len(), self.shared.permits.in_use())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Vec<(Client, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_idle(&self) -> Option<Client> {
        let mut idle = self.lock();
        while let Some((mut client, since)) = idle.pop() {
            if since.elapsed() < self.idle_max && client.is_usable() {
                return Some(client);
            }
        }
        None
    }
}

/// A connection of a [`Pool`]; it goes back when it is dropped. A transaction that is left open is rolled back.
#[derive(Debug)]
pub struct Pooled {
    client: Option<Client>,
    shared: Arc<Shared>,
    /// Given back after the connection, which is dropped before it.
    _permit: Permit,
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
        if let Some(client) = self.client.take().and_then(|mut client| client.put_back().then_some(client)) {
            self.shared.lock().push((client, Instant::now()));
        }
    }
}
