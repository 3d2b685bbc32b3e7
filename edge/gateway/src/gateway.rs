use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use onetrip_ledger::trace::{TRACE_STREAM, TraceHeader};
use onetrip_ledger::{Analyzer, Moment, StreamEncoder};
use onetrip_session::Common;
use onetrip_target::Conninfo;
use tokio::sync::watch;

use crate::GatewayError;
use crate::address::ListenAddress;
use crate::config::GatewayConfig;
use crate::door::{Door, Listening};
use crate::engine::Engine;
use crate::links::LinkOutcome;
use crate::notice::tell_the_rest;
use crate::recorder::{Recorded, Recorder, RecorderThread};
use crate::shared::{Shared, Stop};

/// How long what runs at the end may take to be cancelled.
const CANCEL_MAX: Duration = Duration::from_secs(2);
/// The same for a stop that is to wait for nobody.
const CANCEL_MAX_AT_ONCE: Duration = Duration::from_millis(500);

/// How long the trace's file may take nothing before it is left as it is.
const TRACE_PATIENCE: Duration = Duration::from_secs(2);

/// A running gateway.
#[derive(Debug)]
pub struct Gateway {
    address: ListenAddress,
    shared: Arc<Shared>,
    /// The socket's file, and its place in the file system: only that is removed.
    file: Option<(PathBuf, (u64, u64))>,
    stop: watch::Sender<Stop>,
    engine: Arc<Engine>,
    doors: Vec<JoinHandle<()>>,
    recorder: RecorderThread,
    command: String,
}

/// Gives a gateway its database after it was started. The gateway cannot stop before this is dropped.
#[derive(Debug)]
pub struct Leader {
    shared: Arc<Shared>,
    recorder: Recorder,
    command: String,
}

impl Leader {
    /// Connections from now on lead to this database, and so does the report.
    ///
    /// # Errors
    /// TLS settings that cannot be used.
    pub fn lead_to(&self, upstream: Conninfo) -> Result<(), GatewayError> {
        let mut stream = origin(&upstream, self.shared.settle, &self.command);
        self.shared.lead_to(upstream)?;
        self.recorder.take_last(TRACE_STREAM, &mut stream);
        Ok(())
    }
}

/// What a gateway has seen.
#[derive(Debug)]
pub struct Outcome {
    /// All its records, counted.
    pub analyzer: Analyzer,
    /// Clients that connected, also those that never sent a startup packet.
    pub accepted: u64,
    /// Why the trace does not hold the whole run, if it does not; the counts do.
    pub trace_error: Option<String>,
    /// What the simulated links carried, if there were any.
    pub links: Vec<LinkOutcome>,
}

impl Gateway {
    /// Listens and serves, on threads of its own, until [`Self::stop`].
    ///
    /// # Errors
    ///
    /// An address that cannot be listened at, TLS settings that cannot be used, a trace that cannot be created.
    pub fn start(config: GatewayConfig) -> Result<Self, GatewayError> {
        let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let workers = config.threads.unwrap_or(cores).max(1);
        let mut origin = origin(&config.upstream, config.settle, &config.command);
        let shared = Arc::new(Shared::new(&config)?);
        let (listening, address) = Listening::bind(&config.listen)?;
        let file = match &address {
            ListenAddress::Unix(path) => place_of(path).map(|place| (path.clone(), place)),
            ListenAddress::Tcp(_) => None,
        };
        let also = config.also_listen.map(Listening::bind_unix).transpose()?;
        let (also, also_at) = also.unzip();
        shared.dialer().listens_at(also_at.into_iter().chain([address.clone()]).collect());
        let trace = config.trace.as_deref().map(|path| (path, TraceHeader::now(config.keep_values)));
        let recorder = RecorderThread::start(trace, origin.take_block())?;
        let engine = Arc::new(Engine::start(workers, Arc::clone(&shared), recorder.recorder())?);
        let (stop, stopped) = watch::channel(Stop::No);
        let door = Door {
            shared: Arc::clone(&shared),
            recorder: recorder.recorder(),
            engine: Arc::clone(&engine),
            stop: stopped,
        };
        let all = also.into_iter().chain([listening]);
        let doors = all.map(|listening| door.clone().open(listening)).collect::<Result<_, _>>()?;
        Ok(Self { address, shared, file, stop, engine, doors, recorder, command: config.command })
    }

    /// Where it listens, with the port that it got.
    pub fn address(&self) -> &ListenAddress {
        &self.address
    }

    /// The time on the trace's clock.
    pub fn now(&self) -> Moment {
        self.shared.now()
    }

    /// What gives it another database.
    pub fn leader(&self) -> Leader {
        let (shared, recorder) = (Arc::clone(&self.shared), self.recorder.recorder());
        Leader { shared, recorder, command: self.command.clone() }
    }

    /// What its sessions share: the counts so far are in there.
    pub fn common(&self) -> Arc<Common> {
        Arc::clone(&self.shared.common)
    }

    /// Clients that have connected so far.
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::Relaxed)
    }

    /// Connections that are open now.
    pub fn open_connections(&self) -> u64 {
        self.shared.open()
    }

    /// Accepts no more clients; each connection ends with 57P01 when nothing is under way on it. [`Self::stop`] ends
    /// those that are left.
    pub fn drain(&self) {
        self.tell(Stop::Draining);
        self.remove_socket();
    }

    /// Tells all doors and workers.
    fn tell(&self, stop: Stop) {
        // Without receivers there is no door left to close.
        let _ = self.stop.send(stop);
        self.engine.stop(stop);
    }

    /// Cancels what runs, ends all connections, with 57P01, and returns what was seen. What cannot be cancelled in 2 s goes on
    /// in the database; its client is told so. With MySQL nothing is cancelled: that takes a login.
    pub fn stop(self) -> Outcome {
        self.end(CANCEL_MAX, TRACE_PATIENCE)
    }

    /// The same for those who do not want to wait: half a second for the cancelling. A trace whose file takes nothing is left as
    /// it is.
    pub fn stop_at_once(self) -> Outcome {
        self.end(CANCEL_MAX_AT_ONCE, Duration::ZERO)
    }

    fn end(self, cancel_max: Duration, trace_patience: Duration) -> Outcome {
        self.remove_socket();
        self.tell(Stop::Cancelling);
        self.shared.cancels.cancel_all(cancel_max);
        self.tell(Stop::Now);
        for door in self.doors {
            if let Err(panic) = door.join() {
                std::panic::resume_unwind(panic);
            }
        }
        self.engine.finish();
        drop(self.engine);
        let Recorded { analyzer, trace_error } = self.recorder.finish(trace_patience);
        let links = self.shared.dialer().stop_links();
        tell_the_rest();
        Outcome { analyzer, accepted: self.shared.accepted.load(Ordering::Relaxed), trace_error, links }
    }

    /// Removes the file of our socket, if it is still ours.
    fn remove_socket(&self) {
        if let Some((path, place)) = &self.file {
            if place_of(path) == Some(*place) {
                // Somebody may just have removed it.
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

/// Where a file is, whatever it is called.
fn place_of(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|found| (found.dev(), found.ino()))
}

/// The trace's record of where this run leads.
fn origin(upstream: &Conninfo, settle: Duration, command: &str) -> StreamEncoder {
    let mut origin = StreamEncoder::default();
    let program = concat!("onetrip ", env!("CARGO_PKG_VERSION"));
    let address = upstream.address();
    origin.origin(program.as_bytes(), address.as_bytes(), settle.as_nanos() as u64, command.as_bytes());
    origin
}
