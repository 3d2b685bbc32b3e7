//! What all connections of a gateway share.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use onetrip_ledger::{Moment, ValueHasher};
use onetrip_session::{Common, IsolationLevel, LobPolicy, Remedies, Texts, Verify};
use onetrip_target::Conninfo;
use onetrip_target::tls::TlsAcceptor;

use crate::GatewayError;
use crate::cancel::Cancels;
use crate::config::GatewayConfig;
use crate::dial::Dialer;
use crate::password_key::GatewayKey;
use crate::spin::SpinLimit;

/// How long connections may take to say their last words.
pub(crate) const LAST_WORDS_MAX: Duration = Duration::from_secs(2);

/// Whether connections go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    No,
    /// No new ones; each ends when nothing is under way on it.
    Draining,
    /// Nothing more is taken from clients, and what runs is cancelled; each ends when its client waits for nothing.
    Cancelling,
    Now,
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    started: Instant,
    pub(crate) hasher: ValueHasher,
    pub(crate) keep_values: bool,
    pub(crate) settle: Duration,
    pub(crate) remedies: Remedies,
    pub(crate) verify: Option<Verify>,
    pub(crate) lobs: Arc<LobPolicy>,
    pub(crate) isolation: Option<IsolationLevel>,
    pub(crate) question_burst: Duration,
    pub(crate) common: Arc<Common>,
    pub(crate) texts: Arc<Texts>,
    pub(crate) client_tls: Option<TlsAcceptor>,
    pub(crate) password_key: Arc<GatewayKey>,
    pub(crate) spin: SpinLimit,
    pub(crate) cancels: Cancels,
    dialer: RwLock<Arc<Dialer>>,
    pub(crate) accepted: AtomicU64,
    /// Connections that are open.
    open: AtomicU64,
    pub(crate) next_number: AtomicU32,
}

impl Shared {
    /// Nobody is connected yet.
    ///
    /// # Errors
    /// TLS settings that cannot be used.
    pub(crate) fn new(config: &GatewayConfig) -> Result<Self, GatewayError> {
        Ok(Self {
            started: Instant::now(),
            hasher: ValueHasher::new(),
            keep_values: config.keep_values,
            settle: config.settle,
            remedies: config.remedies,
            verify: config.verify,
            lobs: Arc::new(config.lobs.clone()),
            isolation: config.isolation,
            question_burst: config.question_burst,
            common: Arc::default(),
            texts: Arc::new(if config.remedies.is_none() { Texts::remembered() } else { Texts::default() }),
            client_tls: config.client_tls.clone(),
            password_key: Arc::default(),
            spin: SpinLimit::new(config.spin),
            cancels: Cancels::default(),
            dialer: RwLock::new(Arc::new(Dialer::new(config.upstream.clone(), config.link.clone())?)),
            accepted: AtomicU64::new(0),
            open: AtomicU64::new(0),
            next_number: AtomicU32::new(1),
        })
    }

    /// Connections that are open.
    pub(crate) fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// What is dialled from now on is another database.
    ///
    /// # Errors
    /// TLS settings that cannot be used.
    pub(crate) fn lead_to(&self, upstream: Conninfo) -> Result<(), GatewayError> {
        let mut dialer = self.dialer.write().unwrap_or_else(PoisonError::into_inner);
        *dialer = Arc::new(dialer.leading_to(upstream)?);
        Ok(())
    }

    /// What connects to the database.
    pub(crate) fn dialer(&self) -> Arc<Dialer> {
        Arc::clone(&self.dialer.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The time on the trace's clock.
    pub(crate) fn now(&self) -> Moment {
        self.moment(Instant::now())
    }

    /// A time on the trace's clock.
    pub(crate) fn moment(&self, at: Instant) -> Moment {
        Moment(at.saturating_duration_since(self.started).as_nanos() as u64)
    }

    /// When it is so late on the trace's clock; `None` where that is never.
    pub(crate) fn instant(&self, at: Moment) -> Option<Instant> {
        self.started.checked_add(Duration::from_nanos(at.0))
    }
}

/// A connection that is open, as long as this lives.
#[derive(Debug)]
pub(crate) struct Alive(Arc<Shared>);

impl Alive {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        shared.open.fetch_add(1, Ordering::Relaxed);
        Self(shared)
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A thread with a name.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, GatewayError> {
    thread::Builder::new().name(name.into()).spawn(body).map_err(GatewayError::Start)
}
