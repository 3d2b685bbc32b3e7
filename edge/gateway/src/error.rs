use std::error::Error;
use std::io;

use onetrip_ledger::TraceError;
use onetrip_session::SessionError;
use onetrip_target::tls::TlsError;
use rustix::process::{Resource, getrlimit};

/// Why the gateway, or one connection through it, cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The listening address cannot be used.
    #[error("cannot listen at {address}: {source}{}", listen_hint(source))]
    Listen {
        /// The address asked for.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// No address of the database answered. One line per address.
    #[error("{0}")]
    Dial(String),
    /// There is no file descriptor for a connection to the database.
    #[error(
        "onetrip is out of file descriptors, so it cannot connect to the database: {source}. {}",
        descriptors_hint(source).unwrap_or_default()
    )]
    Descriptors {
        /// What the system said.
        source: io::Error,
    },
    /// The settings for TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The trace file cannot be created.
    #[error("cannot write the trace: {0}")]
    Trace(#[from] TraceError),
    /// The conversation broke.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A client and the gateway cannot agree on TLS.
    #[error("a client and the gateway cannot speak TLS: {source}{}", tls_hint(source))]
    ClientTls {
        /// What rustls says.
        source: rustls::Error,
    },
    /// A client began with TLS, and did not say what is to follow.
    #[error(
        "a client began with TLS without ALPN \"postgresql\", which PostgreSQL refuses: let it ask for TLS first (sslnegotiation=postgres)"
    )]
    NoProtocol,
    /// A client's first byte is TLS's, and the gateway offers none.
    #[error(
        "a client began with TLS, which is not offered: start onetrip with --tls, or let the client ask first (sslnegotiation=postgres)"
    )]
    NoTls,
    /// A socket failed.
    #[error("{side}: {source}")]
    Socket {
        /// Whose socket.
        side: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The gateway ends while the connection opens. The client has been told.
    #[error("the gateway is shutting down")]
    Stopping,
    /// A thread or a runtime cannot be made.
    #[error("cannot start the gateway: {0}")]
    Start(#[source] io::Error),
}

/// How there come to be more file descriptors, if the system refused one.
pub(crate) fn descriptors_hint(error: &io::Error) -> Option<String> {
    match error.raw_os_error()? {
        libc::EMFILE => {
            let limit = getrlimit(Resource::Nofile).current;
            let now = limit.map_or(String::new(), |limit| format!(" of {limit}"));
            Some(format!("Raise onetrip's limit{now}: `ulimit -n`, or LimitNOFILE in its service's unit."))
        }
        libc::ENFILE => Some("Raise the system's limit: sysctl fs.file-max.".to_owned()),
        _ => None,
    }
}

fn tls_hint(error: &rustls::Error) -> &'static str {
    use rustls::AlertDescription::{
        BadCertificate, CertificateExpired, CertificateUnknown, UnknownCA, UnsupportedCertificate,
    };
    match error {
        // libpq verifies with sslmode=require, too, where it has a root certificate.
        rustls::Error::AlertReceived(
            BadCertificate | CertificateExpired | CertificateUnknown | UnknownCA | UnsupportedCertificate,
        ) => {
            "; it checks certificates (sslmode=verify-ca or verify-full, or a root certificate in sslrootcert or \
             ~/.postgresql/root.crt): start onetrip with --tls-cert and --tls-key of a certificate that it trusts, or \
             let it connect with sslmode=require and no root certificate"
        }
        _ => "",
    }
}

fn listen_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        // With a file in the way, the words are ours.
        _ if error.get_ref().is_some() => "",
        io::ErrorKind::AddrInUse => {
            "; something listens there already: choose another port, or 0 for a free one"
        }
        io::ErrorKind::PermissionDenied => "; ports below 1024 need privileges: choose a higher one",
        _ => "",
    }
}

pub(crate) fn client_failed(source: io::Error) -> GatewayError {
    GatewayError::Socket { side: "client", source }
}

pub(crate) fn server_failed(source: io::Error) -> GatewayError {
    GatewayError::Socket { side: "database", source }
}

/// Whether whoever is at the other end has gone, and nothing else is wrong.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof
    )
}

/// An error with its causes on one line, none told twice.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.contains(&words) {
            let separator = if text.is_empty() { "" } else { ": " };
            text.push_str(&format!("{separator}{words}"));
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Told(&'static str, #[source] Option<Box<Told>>);

    #[test]
    fn causes_follow_on_the_same_line_and_none_is_told_twice() {
        let cause = |words, of| Some(Box::new(Told(words, of)));
        let error = Told("cannot start: no such file", cause("no such file", cause("really", None)));
        assert_eq!(with_causes(&error), "cannot start: no such file: really");
    }
}
