//! A connection of our own to the database, for telling what a trip costs.
//!
//! It speaks the plainest PostgreSQL there is: log in, then one simple query at a time, each of them one trip.

mod conversation;
mod error;
mod opening;
mod times;

use std::sync::Arc;
use std::time::Duration;

use onetrip_login::{Channel, ChannelBinding, Dialogue, Heard, Login, Method};
use onetrip_target::address::Address;
use onetrip_target::{Conninfo, RequireAuth, Secret, passfile};
use onetrip_wire::pg::{PROTOCOL_3_0, backend, frame, frontend};
use tokio::time::{Instant, timeout};

use crate::dial::{DialTimes, Dialer, Upstream};
use conversation::Conversation;
use error::{Applicant, PasswordOrigin};

pub use error::{PingError, ServerMessage};
pub use opening::{Opening, OpeningStep, Step};
pub use times::{PathTimes, Spread};

/// Wait for an answer where the settings have no `connect_timeout`.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Wait while saying good-bye.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(1);
/// Name of the session where the settings give none.
const APPLICATION_NAME: &str = "onetrip ping";
/// The statement whose trips are measured.
const STATEMENT: &[u8] = b"SELECT 1\0";

/// A session on which trips are measured.
#[derive(Debug)]
pub struct Ping {
    conversation: Conversation,
    about: PingedServer,
    /// Longest wait for one answer.
    limit: Duration,
    query: Vec<u8>,
}

/// Who answered, and as whom we are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PingedServer {
    /// The host as it was given, with the port.
    pub host: String,
    /// Where it was found, if that is not what was given.
    pub address: Option<String>,
    /// `server_version`, if the server told it.
    pub version: Option<String>,
    /// Version of TLS, such as `1.3`; `None` on a plain connection.
    pub tls: Option<&'static str>,
    /// How we logged in: `trust` where the server asked for nothing.
    pub method: &'static str,
    /// The role.
    pub user: String,
    /// The database.
    pub database: String,
}

impl Ping {
    /// Connects and logs in. `opening` tells the trips spent so far, also after an error and while this waits.
    ///
    /// # Errors
    /// All of [`PingError`].
    pub async fn connect(conninfo: Conninfo, opening: &mut Opening) -> Result<Self, PingError> {
        let user = conninfo.role()?.to_owned();
        let database = conninfo.dbname.clone().unwrap_or_else(|| user.clone());
        let limit = conninfo.connect_timeout.unwrap_or(ANSWER_TIMEOUT);
        if conninfo.extra.get("channel_binding") == Some("require") {
            return Err(PingError::ChannelBinding);
        }
        let dialer = Arc::new(Dialer::new(conninfo.clone(), None)?);
        let (leg, upstream, times) = dialer.dial().await?;
        let tls = leg.tls_version();
        note_dialled(opening, &upstream, times, leg.handshake_trips());
        let mut ping = Self {
            conversation: Conversation::new(leg, upstream.host().to_string()),
            about: PingedServer {
                host: upstream.host().to_string(),
                address: upstream.found_at(),
                version: None,
                tls,
                method: "trust",
                user: user.clone(),
                database,
            },
            limit,
            query: query_message(),
        };
        // libpq also goes on without a file that it cannot use; the server may ask for no password.
        let (password, unusable) = match passfile::password_for(&conninfo, upstream.host()) {
            Ok(password) => (password, None),
            Err(error) => (None, Some(error)),
        };
        let origin = match &password {
            None => PasswordOrigin::Nowhere,
            Some(_) if conninfo.password.is_some() => PasswordOrigin::WrittenOut,
            Some(_) => PasswordOrigin::File,
        };
        let applicant = Applicant {
            host: ping.about.host.clone(),
            user: ping.about.user.clone(),
            password: origin,
            unusable,
        };
        let login = login(&conninfo, &ping.about, password);
        let method = match timeout(limit, ping.log_in(login, &applicant, opening)).await {
            Ok(done) => done?,
            Err(_) => return Err(ping.conversation.late(limit)),
        };
        ping.about.method = match method {
            None => "trust",
            Some(Method::Cleartext) => "cleartext password",
            Some(method) => method.name(),
        };
        Ok(ping)
    }

    /// Who answered.
    pub fn server(&self) -> &PingedServer {
        &self.about
    }

    /// One `SELECT 1`, from sending it to the last byte of its answer.
    ///
    /// # Errors
    /// A server that answers with an error, with nonsense, too late or not at all.
    pub async fn trip(&mut self) -> Result<Duration, PingError> {
        match timeout(self.limit, self.query()).await {
            Ok(done) => done,
            Err(_) => Err(self.conversation.late(self.limit)),
        }
    }

    /// What the kernel knows of the path by now; `None` on a unix socket.
    pub fn path_times(&self) -> Option<PathTimes> {
        self.conversation.path_times()
    }

    /// Says good-bye, so that the server's log has nothing to complain of.
    pub async fn close(mut self) {
        let mut farewell = Vec::new();
        frame(&mut farewell, frontend::TERMINATE, |_| {});
        // The measuring is done; a server that is gone needs no good-bye.
        let _ = timeout(FAREWELL_TIMEOUT, self.conversation.end(&farewell)).await;
    }

    async fn query(&mut self) -> Result<Duration, PingError> {
        self.conversation.send(&self.query).await?;
        loop {
            let message = self.conversation.message().await?;
            match message.tag {
                backend::READY_FOR_QUERY => return Ok(self.conversation.waited()),
                backend::ERROR_RESPONSE => return Err(self.conversation.refusal(&message)),
                backend::ROW_DESCRIPTION
                | backend::DATA_ROW
                | backend::COMMAND_COMPLETE
                | backend::PARAMETER_STATUS
                | backend::NOTICE_RESPONSE
                | backend::NOTIFICATION_RESPONSE => {}
                tag => return Err(self.conversation.unexpected(tag)),
            }
        }
    }

    /// Logs in; by which method, if the server asked for one.
    async fn log_in(
        &mut self,
        login: Login,
        applicant: &Applicant,
        opening: &mut Opening,
    ) -> Result<Option<Method>, PingError> {
        let mut step = Step::Startup;
        let mut output = Vec::new();
        let mut dialogue = Dialogue::start(login, &mut output);
        // Ping binds to no TLS connection, so it needs nobody's certificate.
        let channel = match self.about.tls {
            Some(_) => Channel::Tls { certificate: None },
            None => Channel::Plain,
        };
        self.conversation.send(&output).await?;
        loop {
            let message = self.conversation.message().await?;
            let (waited, started) = (self.conversation.waited(), Instant::now());
            output.clear();
            let body = self.conversation.body(&message);
            let heard = dialogue.handle(message.tag, body, channel, &mut output);
            match heard.map_err(|error| PingError::login(applicant, error))? {
                Heard::Question => {
                    opening.note(step, 1, waited);
                    if dialogue.method().is_some_and(Method::hashes) {
                        opening.note(Step::Hashing, 0, started.elapsed());
                    }
                    step = Step::Authentication;
                    self.conversation.send(&output).await?;
                }
                Heard::Setting(status) if status.name == b"server_version" => {
                    self.about.version = Some(error::printable(status.value));
                }
                Heard::Ready(_) => {
                    opening.note(step, 1, waited);
                    return Ok(dialogue.method());
                }
                Heard::Proof
                | Heard::LetIn
                | Heard::Version(_)
                | Heard::Key(_)
                | Heard::Setting(_)
                | Heard::Notice(_) => {}
            }
        }
    }
}

/// Logs in as libpq would, with a name of our own, and without channel binding.
fn login(conninfo: &Conninfo, about: &PingedServer, password: Option<Secret>) -> Login {
    let extra = |keyword: &str| conninfo.extra.get_nonempty(keyword);
    let fallback = extra("fallback_application_name").unwrap_or(APPLICATION_NAME);
    let name = conninfo.application_name.as_deref().filter(|name| !name.is_empty()).unwrap_or(fallback);
    let pairs = [
        ("database", Some(about.database.as_str())),
        ("application_name", Some(name)),
        ("options", conninfo.options.as_deref()),
    ];
    let pairs = pairs.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
    Login {
        user: about.user.clone(),
        password,
        parameters: pairs.collect(),
        versions: (PROTOCOL_3_0, PROTOCOL_3_0),
        require_auth: RequireAuth::parse(extra("require_auth").unwrap_or_default()),
        channel_binding: ChannelBinding::Disable,
    }
}

fn query_message() -> Vec<u8> {
    let mut query = Vec::new();
    frame(&mut query, frontend::QUERY, |out| out.extend_from_slice(STATEMENT));
    query
}

fn note_dialled(opening: &mut Opening, upstream: &Upstream, times: DialTimes, handshake_trips: u32) {
    if let Some(lookup) = times.lookup {
        opening.note(Step::Lookup, 0, lookup);
    }
    let connect = match upstream.address() {
        Address::Tcp(_) => Step::TcpConnect,
        Address::Unix(_) => Step::SocketConnect,
    };
    opening.note(connect, 1, times.connect);
    if let Some(request) = times.request {
        opening.note(Step::TlsRequest, 1, request);
    }
    if let Some(handshake) = times.handshake {
        opening.note(Step::TlsHandshake, handshake_trips, handshake);
    }
}
