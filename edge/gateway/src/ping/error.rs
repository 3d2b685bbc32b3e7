use std::fmt;
use std::io;

use onetrip_login::LoginError;
use onetrip_target::ConninfoError;
use onetrip_target::passfile::PassfileError;
use onetrip_wire::pg::ErrorResponse;

use crate::GatewayError;

/// Why there is no session, or no longer. The texts say what to do.
#[derive(Debug, thiserror::Error)]
pub enum PingError {
    /// Settings that name no role.
    #[error(transparent)]
    Settings(#[from] ConninfoError),
    /// No address answered, or TLS did not come about.
    #[error(transparent)]
    Dial(#[from] GatewayError),
    /// The server said no.
    #[error("the server at {host} refuses: {said}{}", line(advice.as_deref()))]
    Refused {
        /// The server.
        host: String,
        /// Its own words.
        said: Box<ServerMessage>,
        /// What to do, where that is known.
        advice: Option<String>,
    },
    /// A password is asked for and none was given.
    #[error(
        "the server at {host} asks for the password of \"{user}\" ({method}), and none was given\n\tset PGPASSWORD, \
         write it into the URL, or add a line to ~/.pgpass{}",
        line(unusable.as_deref())
    )]
    NoPassword {
        /// The server.
        host: String,
        /// The role.
        user: String,
        /// How the password would be used.
        method: &'static str,
        /// Why the password file cannot be used, if there is one.
        unusable: Option<String>,
    },
    /// A method that ping does not speak.
    #[error(
        "the server at {host} asks for {method}; onetrip ping knows trust, cleartext, MD5 and SCRAM-SHA-256 only\n\t\
         use a role for which pg_hba.conf names one of them"
    )]
    Unsupported {
        /// The server.
        host: String,
        /// What it asks for.
        method: String,
    },
    /// The settings forbid the method that the server asks for.
    #[error("the server at {host} asks for {method}, which require_auth forbids; nothing was sent")]
    Forbidden {
        /// The server.
        host: String,
        /// What it asks for.
        method: &'static str,
    },
    /// The settings demand channel binding.
    #[error(
        "onetrip ping has no channel binding: set channel_binding=prefer (or PGCHANNELBINDING=prefer) for it"
    )]
    ChannelBinding,
    /// The server did not prove by SCRAM that it knows the password.
    #[error("the server at {host} could not prove that it knows the password: it may be somebody else's")]
    Impostor {
        /// The server.
        host: String,
    },
    /// Something else answers there.
    #[error(
        "what answers at {host} is not PostgreSQL\n\tcheck host and port (PostgreSQL's is 5432 by default)"
    )]
    NotPostgres {
        /// Where.
        host: String,
    },
    /// The connection was closed before a word was said.
    #[error(
        "the server at {host} closed the connection without an answer ({source})\n\tis it a PostgreSQL server, and are \
         we allowed to reach it?"
    )]
    Silent {
        /// The server.
        host: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The connection ended.
    #[error("the server at {host} closed the connection ({source})\n\tits log says why")]
    Lost {
        /// The server.
        host: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The server said something that means nothing.
    #[error("the server at {host} broke the protocol: {what}")]
    Protocol {
        /// The server.
        host: String,
        /// What it did.
        what: String,
    },
    /// No answer in time.
    #[error(
        "the server at {host} gave no answer within {seconds} s{}",
        line(silent.then_some("is it a PostgreSQL server? connect_timeout sets a longer wait"))
    )]
    Late {
        /// The server.
        host: String,
        /// How long we waited.
        seconds: u64,
        /// It has never said anything.
        silent: bool,
    },
}

/// Where the password came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PasswordOrigin {
    /// There is none.
    Nowhere,
    WrittenOut,
    File,
}

impl PasswordOrigin {
    fn words(self) -> &'static str {
        match self {
            Self::Nowhere => "nowhere",
            Self::WrittenOut => "the URL, PGPASSWORD or the service file",
            Self::File => "the password file",
        }
    }
}

/// Who logs in where, as far as errors speak of it.
#[derive(Debug)]
pub(super) struct Applicant {
    pub(super) host: String,
    pub(super) user: String,
    pub(super) password: PasswordOrigin,
    /// Why the password file cannot be used, if there is one.
    pub(super) unusable: Option<PassfileError>,
}

impl PingError {
    /// A login that failed.
    pub(super) fn login(applicant: &Applicant, error: LoginError) -> Self {
        let host = applicant.host.clone();
        match error {
            LoginError::Refused { body } => Self::refused(&host, &body, applicant.password),
            LoginError::NoPassword { method } => {
                let unusable = applicant.unusable.as_ref().map(ToString::to_string);
                Self::NoPassword { host, user: applicant.user.clone(), method, unusable }
            }
            LoginError::Forbidden { method, .. } => Self::Forbidden { host, method },
            LoginError::Unsupported { method } => Self::Unsupported { host, method },
            LoginError::Impostor => Self::Impostor { host },
            LoginError::Protocol(what) => Self::Protocol { host, what },
        }
    }

    /// What an ErrorResponse means, with advice.
    pub(super) fn refused(host: &str, body: &[u8], password: PasswordOrigin) -> Self {
        let host = host.to_owned();
        match ErrorResponse::decode(body) {
            Ok(response) => {
                let said = ServerMessage::new(&response);
                let advice = advice(&said, password);
                Self::Refused { host, said: Box::new(said), advice }
            }
            Err(error) => Self::Protocol { host, what: error.to_string() },
        }
    }
}

/// An error in the server's own words, fit for a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerMessage {
    /// `FATAL` or `ERROR`, as the server spells it.
    pub severity: String,
    /// SQLSTATE, where the server gave one.
    pub sqlstate: Option<String>,
    /// The message.
    pub message: String,
    /// The server's details and hint.
    pub more: Vec<String>,
}

impl ServerMessage {
    pub(super) fn new(response: &ErrorResponse<'_>) -> Self {
        let field = |letter| response.field(letter).map(printable);
        Self {
            severity: field(b'S').unwrap_or_else(|| "ERROR".to_owned()),
            sqlstate: response.sqlstate().map(|state| printable(&state)),
            message: printable(response.message()),
            more: [field(b'D'), field(b'H')].into_iter().flatten().collect(),
        }
    }

    pub(super) fn words(message: String) -> Self {
        Self { severity: "FATAL".to_owned(), sqlstate: None, message, more: Vec::new() }
    }
}

impl fmt::Display for ServerMessage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.severity, self.message)?;
        if let Some(sqlstate) = &self.sqlstate {
            write!(formatter, " ({sqlstate})")?;
        }
        self.more.iter().try_for_each(|more| write!(formatter, "\n\t{more}"))
    }
}

/// What to do about an error of the server, by its SQLSTATE.
fn advice(said: &ServerMessage, password: PasswordOrigin) -> Option<String> {
    let advice = match said.sqlstate.as_deref()? {
        "28P01" => {
            return Some(format!("check role and password (this one came from {})", password.words()));
        }
        "28000" if said.message.contains("no encryption") => {
            "pg_hba.conf has no line for this role, database and address without TLS: try sslmode=require"
        }
        "28000" => "pg_hba.conf has to let this role, database and address in, or the role does not exist",
        "3D000" => "name another database in the URL or in PGDATABASE",
        "53300" => "close idle sessions, or raise max_connections",
        "57P03" => "try again once the server accepts connections",
        _ => return None,
    };
    Some(advice.to_owned())
}

/// Text of a stranger without what could command a terminal.
pub(super) fn printable(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

/// A further line, if there is one.
fn line(text: Option<&str>) -> String {
    text.map_or_else(String::new, |text| format!("\n\t{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_words_cannot_command_a_terminal() {
        let body = b"SFATAL\0C28P01\0Mno\x1b[2Jway\0Hask\nme\0\0";
        let said = ServerMessage::new(&ErrorResponse::decode(body).unwrap());
        assert_eq!(said.to_string(), "FATAL: no [2Jway (28P01)\n\task me");
    }

    #[test]
    fn refusals_come_with_advice() {
        let said = |state: &str, message: &str| ServerMessage {
            severity: "FATAL".to_owned(),
            sqlstate: Some(state.to_owned()),
            message: message.to_owned(),
            more: Vec::new(),
        };
        let hba = said("28000", "no pg_hba.conf entry for host \"::1\", no encryption");
        let advice = |said: &ServerMessage| advice(said, PasswordOrigin::Nowhere);
        assert!(advice(&hba).unwrap().contains("sslmode=require"));
        assert!(advice(&said("3D000", "database \"x\" does not exist")).unwrap().contains("PGDATABASE"));
        assert_eq!(advice(&said("XX000", "?")), None);
    }
}
