//! TLS with clients: the certificate that the gateway shows them.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::{ALPN, TlsError, provider};

/// How TLS is spoken with clients.
#[derive(Clone, Debug)]
pub struct TlsAcceptor {
    config: Arc<ServerConfig>,
    certificate: CertificateDer<'static>,
}

impl TlsAcceptor {
    /// Shows a certificate made now, which no client can verify: `sslmode=require` is content with it.
    ///
    /// # Errors
    /// A build without the feature `tls`.
    #[cfg(feature = "tls")]
    pub fn with_own_certificate() -> Result<Self, TlsError> {
        let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let made = rcgen::generate_simple_self_signed(names)
            .map_err(|error| TlsError::OwnCertificate(error.to_string()))?;
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        Self::new(vec![made.cert.der().clone()], key)
    }

    /// Shows a certificate made now, which no client can verify: `sslmode=require` is content with it.
    ///
    /// # Errors
    /// A build without the feature `tls`.
    #[cfg(not(feature = "tls"))]
    pub fn with_own_certificate() -> Result<Self, TlsError> {
        Err(TlsError::LeftOut)
    }

    /// Shows the certificate of a PEM file, with its chain.
    ///
    /// # Errors
    /// Files that cannot be read or do not fit together.
    pub fn with_files(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error: rustls::pki_types::pem::Error| TlsError::OwnFile { path, reason: error.to_string() }
        };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
        let chain = chain.map_err(failed(certificate))?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(failed(key))?;
        if chain.is_empty() {
            let reason = "there is no certificate in it".to_owned();
            return Err(TlsError::OwnFile { path: certificate.to_owned(), reason });
        }
        Self::new(chain, key)
    }

    fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Self, TlsError> {
        let certificate = chain.first().cloned().ok_or(TlsError::Versions)?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider()?))
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(TlsError::Configuration)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(TlsError::Configuration)?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        // PostgreSQL resumes no sessions.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        Ok(Self { config: Arc::new(config), certificate })
    }

    /// What rustls is given.
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }

    /// The certificate that clients see.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }
}
