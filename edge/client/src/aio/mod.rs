//! The connection with a socket of tokio's around it, for async programs.
//!
//! Every future may be dropped. What was sent stays sent, and the next call reads and discards what nobody waits for.
//!
//! The files that [`blocking`] has, too, are written here. Those of [`blocking`] are made from these: see
//! `tests/twins.rs`.

mod bulk;
mod client;
mod copy;
mod cursor;
mod lob;
mod permits;
mod pipeline;
mod pool;
mod portal;
mod rows;
mod run;
mod socket;
mod timeout;

use std::str::FromStr;
use std::sync::Arc;

use onetrip_target::Host;

use crate::core::{Connection, Cursors, Notification};
use crate::{Config, Error, Param, Retry, blocking};
use blocking::Canceller;

pub use crate::Outcomes;
pub use crate::core::{Cursor, Lob, LobSource};
pub use copy::{CopyIn, CopyOut};
pub use lob::{LobReader, LobWriter};
pub use pipeline::Pipeline;
pub use pool::{Pool, Pooled};
pub use rows::Rows;

use socket::Socket;
use timeout::Patience;

/// A statement to run, whose parameters may cross threads: by [`Request::sync`](crate::core::Request::sync).
pub type Request<'a> = crate::core::Request<'a, dyn Param + Sync + 'a>;

/// A session with a server.
///
/// ```no_run
/// # async fn shop() -> Result<(), onetrip_client::Error> {
/// let mut client = onetrip_client::aio::Client::connect("postgres://ann@db.example/shop").await?;
/// let mut rows = client.query("SELECT id, name FROM item WHERE price < $1", &[&10]).await?;
/// while let Some(row) = rows.next_row().await? {
///     println!("{} {}", row.get::<i32>(0)?, row.get::<&str>(1)?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Client {
    core: Connection,
    socket: Socket,
    config: Arc<Config>,
    host: Host,
    canceller: Option<Canceller>,
    patience: Patience,
    cursors: Cursors,
}

impl Client {
    /// Connects by a URL or keyword/value text; what it leaves open comes from PG* variables, as with libpq.
    ///
    /// Looking names up, TLS and hashing passwords happen on a thread of tokio's for blocking work.
    ///
    /// # Errors
    /// [`Error::Connect`].
    pub async fn connect(text: &str) -> Result<Self, Error> {
        Self::connect_with(Config::from_str(text)?).await
    }

    /// Connects by settings.
    ///
    /// # Errors
    /// [`Error::Connect`].
    pub async fn connect_with(config: impl Into<Arc<Config>>) -> Result<Self, Error> {
        let config = config.into();
        let for_thread = Arc::clone(&config);
        let opened = tokio::task::spawn_blocking(move || blocking::Client::connect_with(for_thread)).await;
        // The task ends early only where the runtime does.
        let client = opened.map_err(|_| Error::Closed)??;
        let canceller = client.canceller();
        // Nobody has an `Ender` of it.
        let (core, socket, host) = client.into_parts().ok_or(Error::Closed)?;
        let failed = |error: std::io::Error| Error::Lost { retry: Retry::Safe, cause: Some(error.into()) };
        Ok(Self {
            core,
            socket: Socket::new(socket).map_err(failed)?,
            config,
            host,
            canceller,
            patience: Patience::default(),
            cursors: Cursors::default(),
        })
    }

    /// The next notification; waits for one, however long that takes.
    ///
    /// # Errors
    /// A connection that has ended.
    pub async fn notification(&mut self) -> Result<Notification, Error> {
        self.settle().await?;
        self.patience.forget();
        loop {
            while self.core.next_event()?.is_some() {}
            if let Some(notification) = self.core.take_notification() {
                return Ok(notification);
            }
            self.exchange().await;
        }
    }

    /// What interrupts this session; its call blocks until the server has taken the request.
    pub fn canceller(&self) -> Option<Canceller> {
        self.canceller.clone()
    }

    /// A call begins: it waits for a cancel request of the one before, so that this one is not hit.
    async fn begin_call(&mut self) {
        if let Err(error) = self.patience.begin().await {
            self.core.lost(Some(error));
        }
    }

    /// Sends what fits now, and takes nothing in.
    fn send_soon(&mut self) {
        if let Err(error) = self.socket.send(&mut self.core) {
            self.core.lost(Some(error));
        }
    }

    /// Sends and receives what is possible without waiting.
    fn exchange_now(&mut self) {
        if let Err(error) = self.socket.exchange_now(&mut self.core) {
            self.core.lost(Some(error));
        }
    }
}

/// What a pool asks and tells.
impl Client {
    /// Whether the server has not said goodbye meanwhile. Asks nobody.
    fn is_usable(&mut self) -> bool {
        if let Err(error) = self.socket.receive_unseen(&mut self.core) {
            self.core.lost(Some(error));
        }
        self.core.is_usable()
    }

    /// Makes the session ready for somebody else, without waiting; false where that cannot be.
    fn put_back(&mut self) -> bool {
        self.cursors = Cursors::default();
        self.set_timeout(None);
        let is_ready = self.core.hand_over().is_ok() && !self.patience.has_request();
        if self.core.has_output() {
            self.exchange_now();
        }
        is_ready && !self.core.is_lost()
    }
}

/// A request whose parameters may cross threads is a request.
fn with_request<T>(request: &Request<'_>, work: impl FnOnce(&crate::core::Request<'_>) -> T) -> T {
    let Request { text, parameters, format, portal, row_limit, copy, keeps } = *request;
    with_params(parameters, |parameters| {
        work(&crate::core::Request { text, parameters, format, portal, row_limit, copy, keeps })
    })
}

/// Parameters that may cross threads are parameters.
fn with_params<T>(parameters: &[&(dyn Param + Sync)], work: impl FnOnce(&[&dyn Param]) -> T) -> T {
    const FEW: usize = 16;
    if parameters.len() <= FEW {
        let mut few: [&dyn Param; FEW] = [&0i32; FEW];
        for (place, parameter) in few.iter_mut().zip(parameters) {
            *place = *parameter;
        }
        return work(&few[..parameters.len()]);
    }
    let many: Vec<&dyn Param> = parameters.iter().map(|parameter| *parameter as &dyn Param).collect();
    work(&many)
}
