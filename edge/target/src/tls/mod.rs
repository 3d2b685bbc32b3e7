//! TLS to the server, by libpq's `sslmode` rules, on rustls.
//!
//! libpq checks the chain whenever it finds a root certificate file, in every mode that speaks TLS: `require` with
//! such a file is `verify-ca`. Only `verify-full` checks the host name.

mod acceptor;
mod error;
mod files;
mod legacy;
mod names;
mod password_key;
mod verifier;
mod words;

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{IpAddr, Ipv4Addr, ServerName};
use rustls::{ClientConfig, ClientConnection, SupportedProtocolVersion};

pub use acceptor::TlsAcceptor;
pub use error::TlsError;
pub use password_key::PasswordKey;

use crate::{Conninfo, Host, HostName, Protocol, SslMode};
use verifier::Verifier;
use words::Words;

/// The protocol that PostgreSQL 17 expects in TLS's ALPN.
pub const ALPN: &[u8] = b"postgresql";

/// How the connections of one [`Conninfo`] speak TLS. Files are read once, when the plan is made.
#[derive(Clone, Debug)]
pub struct TlsPlan {
    config: Arc<ClientConfig>,
    sslmode: SslMode,
    words: &'static Words,
    direct: bool,
    /// Where the trusted roots come from, for messages; `None` if the certificate is not checked.
    roots: Option<String>,
}

/// Makes the plan; `None` where TLS can never be used: `disable`, unix sockets only, or `allow` and `prefer` in a build
/// without the feature `tls`.
///
/// # Errors
/// Certificates, keys or settings that cannot be used.
pub fn connector(conninfo: &Conninfo) -> Result<Option<TlsPlan>, TlsError> {
    let usable = conninfo.sslmode != SslMode::Disable && !conninfo.hosts.iter().all(Host::is_unix);
    let is_left_out = cfg!(not(feature = "tls")) && !conninfo.sslmode.requires_tls();
    if usable && !is_left_out { TlsPlan::new(conninfo).map(Some) } else { Ok(None) }
}

#[cfg(feature = "tls")]
fn provider() -> Result<CryptoProvider, TlsError> {
    Ok(rustls::crypto::aws_lc_rs::default_provider())
}

#[cfg(not(feature = "tls"))]
fn provider() -> Result<CryptoProvider, TlsError> {
    Err(TlsError::LeftOut)
}

impl TlsPlan {
    fn new(conninfo: &Conninfo) -> Result<Self, TlsError> {
        let sslmode = conninfo.sslmode;
        let direct = conninfo.extra.get("sslnegotiation") == Some("direct");
        if direct && !sslmode.requires_tls() {
            return Err(TlsError::WeakDirect { sslmode });
        }
        let provider = Arc::new(provider()?);
        let trust = files::trust(conninfo, &provider)?;
        let roots = trust.as_ref().map(|trust| trust.origin.clone());
        let verifier = Verifier {
            trust,
            checks_name: sslmode == SslMode::VerifyFull,
            algorithms: provider.signature_verification_algorithms,
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions(conninfo)?)
            .map_err(TlsError::Configuration)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match files::client_certificate(conninfo)? {
            None => builder.with_no_client_auth(),
            Some(client) => builder
                .with_client_auth_cert(client.chain, client.key)
                .map_err(|source| TlsError::ClientKey { path: client.key_path, source })?,
        };
        if conninfo.protocol == Protocol::Postgres {
            config.alpn_protocols = vec![ALPN.to_vec()];
        }
        config.enable_sni = conninfo.sslsni;
        // PostgreSQL resumes no sessions, and a resumed one would cost other trips than a program's own.
        config.resumption = Resumption::disabled();
        Ok(Self { config: Arc::new(config), sslmode, words: Words::of(conninfo.protocol), direct, roots })
    }

    /// Whether TLS is used with this host at all: never on unix sockets.
    pub fn applies_to(&self, host: &Host) -> bool {
        !host.is_unix()
    }

    /// Whether the first attempt is plain (`allow`).
    pub fn starts_plain(&self) -> bool {
        self.sslmode == SslMode::Allow
    }

    /// Whether a plain connection will do when the server has no TLS or TLS fails (`allow`, `prefer`). After a
    /// failure the plain attempt is a new connection.
    pub fn may_be_plain(&self) -> bool {
        !self.sslmode.requires_tls()
    }

    /// Whether TLS begins at once, without SSLRequest (`sslnegotiation=direct`, PostgreSQL 17).
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    /// Begins TLS with a host. The handshake is driven by the caller; [`TlsPlan::explain`] words its failure.
    ///
    /// # Errors
    /// `verify-full` with a name that no certificate can have, or a state of rustls that forbids connections.
    pub fn start(&self, host: &Host) -> Result<ClientConnection, TlsError> {
        ClientConnection::new(Arc::clone(&self.config), self.server_name(host)?)
            .map_err(TlsError::Configuration)
    }

    /// What libpq would say about a failed handshake, and what to do about it.
    pub fn explain(&self, host: &Host, error: rustls::Error) -> TlsError {
        error::explain(host, self.words, self.roots.as_deref(), error)
    }

    /// What libpq says when the server answers SSLRequest with "no" and plain will not do.
    pub fn refused_by_server(&self, host: &Host) -> TlsError {
        self.words.not_supported(host, self.sslmode)
    }

    fn server_name(&self, host: &Host) -> Result<ServerName<'static>, TlsError> {
        // An address is announced to nobody, so it can stand for a name that TLS cannot spell.
        let unnamed = ServerName::IpAddress(IpAddr::V4(Ipv4Addr::from([0; 4])));
        let HostName::Tcp { name, .. } = &host.name else { return Ok(unnamed) };
        match ServerName::try_from(name.clone()) {
            Ok(name) => Ok(name),
            Err(_) if self.sslmode == SslMode::VerifyFull => {
                Err(TlsError::HostName { host: name.clone(), weaker: self.words.chain_only })
            }
            Err(_) => Ok(unnamed),
        }
    }
}

/// The TLS versions that libpq's settings allow; from 1.2 on unless they say otherwise.
fn versions(conninfo: &Conninfo) -> Result<Vec<&'static SupportedProtocolVersion>, TlsError> {
    const ORDER: [&str; 4] = ["TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"];
    let place = |keyword: &str, default: usize| match conninfo.extra.get_nonempty(keyword) {
        None => Ok(default),
        Some(word) => {
            ORDER.iter().position(|version| version.eq_ignore_ascii_case(word)).ok_or(TlsError::Versions)
        }
    };
    let allowed = place("ssl_min_protocol_version", 2)?..=place("ssl_max_protocol_version", 3)?;
    let known = [(2, &rustls::version::TLS12), (3, &rustls::version::TLS13)];
    let versions: Vec<_> =
        known.into_iter().filter(|(place, _)| allowed.contains(place)).map(|(_, version)| version).collect();
    if versions.is_empty() { Err(TlsError::Versions) } else { Ok(versions) }
}
