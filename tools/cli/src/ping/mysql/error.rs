use std::io;

use onetrip_target::ConninfoError;
use onetrip_target::address::AddressError;
use onetrip_target::tls::TlsError;

use super::PasswordOrigin;
use crate::mysql::LoginError;

/// Why there is no session, or no longer. The texts say what to do.
#[derive(Debug, thiserror::Error)]
pub(in crate::ping) enum MysqlPingError {
    #[error("no user is named\n\twrite it into the URL, or set MYSQL_USER")]
    NoUser,
    #[error(transparent)]
    Settings(#[from] ConninfoError),
    #[error("onetrip ping reaches MySQL by TCP: give host and port")]
    UnixSocket,
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error("cannot reach the database at {host}")]
    Connect {
        host: String,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("the server at {host} has no TLS, and the settings demand it")]
    NoTls { host: String },
    #[error(
        "what answers at {host} is not MySQL or MariaDB\n\tcheck host and port (MySQL's is 3306 by default)"
    )]
    NotMysql { host: String },
    /// It said no, or something that was not understood.
    #[error("the server at {host} {verb}: {source}{}", line(advice.as_deref()))]
    Login { host: String, verb: &'static str, source: LoginError, advice: Option<String> },
    #[error(
        "the server at {host} closed the connection without an answer ({source})\n\tis it a MySQL server, and are we allowed to reach it?"
    )]
    Silent {
        host: String,
        #[source]
        source: io::Error,
    },
    #[error("the server at {host} closed the connection ({source})\n\tits log says why")]
    Lost {
        host: String,
        #[source]
        source: io::Error,
    },
    #[error(
        "the server at {host} gave no answer within {seconds} s{}",
        line(silent.then_some("is it a MySQL server? connect_timeout sets a longer wait"))
    )]
    Late { host: String, seconds: u64, silent: bool },
}

impl MysqlPingError {
    /// A login that failed, or a statement.
    pub(super) fn login(host: String, source: LoginError, password: PasswordOrigin) -> Self {
        let (verb, advice) = match &source {
            LoginError::Refused { code, .. } => ("refuses", advice(*code, password)),
            LoginError::Unsupported(_) => (
                "cannot be logged in to",
                Some(
                    "onetrip ping knows mysql_native_password, caching_sha2_password and, under TLS, \
                     mysql_clear_password: use an account with one of them"
                        .into(),
                ),
            ),
            LoginError::NeedsTls(_) => (
                "cannot be logged in to",
                Some(
                    "use ssl-mode=REQUIRED, or, if nobody can listen on the way, allowPublicKeyRetrieval=true for \
                     caching_sha2_password"
                        .into(),
                ),
            ),
            LoginError::BadKey => ("cannot be logged in to", None),
            LoginError::Protocol(_) => ("broke the protocol", None),
        };
        Self::Login { host, verb, source, advice }
    }
}

/// What to do about an error of the server, by its number.
fn advice(code: u16, password: PasswordOrigin) -> Option<String> {
    let advice = match code {
        1045 | 1698 => {
            return Some(match password {
                PasswordOrigin::Nowhere => {
                    "no password was given: write it into the URL, or set MYSQL_PWD".into()
                }
                PasswordOrigin::Text => "check user and password (this one came from the URL)".into(),
                PasswordOrigin::Variable(name) => {
                    format!("check user and password (this one came from {name})")
                }
            });
        }
        1044 | 1049 => "name another database in the URL",
        1040 | 1203 => "close idle sessions, or raise max_connections",
        1129 => "FLUSH HOSTS on the server lets this machine in again",
        1130 => "an account has to let this machine in",
        3159 => "the server wants TLS: use ssl-mode=REQUIRED",
        _ => return None,
    };
    Some(advice.into())
}

/// A further line, if there is one.
fn line(text: Option<&str>) -> String {
    text.map_or_else(String::new, |text| format!("\n\t{text}"))
}
