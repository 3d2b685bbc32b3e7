//! The certificates, keys and lists that libpq's settings name.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};

use super::TlsError;
use super::verifier::Trust;
use super::words::Words;
use crate::{Conninfo, Protocol, RootCertificates};

/// A client certificate with its key.
pub(super) struct ClientCertificate {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
    pub(super) key_path: PathBuf,
}

/// What the server's certificate must lead to; `None` if it is not checked.
pub(super) fn trust(conninfo: &Conninfo, provider: &Arc<CryptoProvider>) -> Result<Option<Trust>, TlsError> {
    let Some((origin, roots)) = roots(conninfo)? else { return Ok(None) };
    let unusable = || TlsError::Content {
        what: "root certificate file",
        path: PathBuf::from(&origin),
        expected: "it must hold certificates in PEM form",
    };
    let mut store = RootCertStore::empty();
    let (added, _) = store.add_parsable_certificates(roots.iter().cloned());
    if added == 0 {
        return Err(unusable());
    }
    let lists = revocation_lists(conninfo)?;
    let has_lists = !lists.is_empty();
    let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider))
        .with_crls(lists)
        .build()
        .map_err(|_| unusable())?;
    Ok(Some(Trust { chain, roots, has_revocation_lists: has_lists, origin }))
}

/// The client certificate of `sslcert`, or libpq's default. A file that does not exist is no certificate.
pub(super) fn client_certificate(conninfo: &Conninfo) -> Result<Option<ClientCertificate>, TlsError> {
    const WHAT: &str = "certificate file";
    let path = conninfo.sslcert.clone().or_else(|| conninfo.default_certificate_file("postgresql.crt"));
    let allowed = conninfo.extra.get("sslcertmode") != Some("disable");
    // To libpq, a file that is not there is no certificate.
    let is_mysql = conninfo.protocol == Protocol::Mysql;
    let Some(path) = path.filter(|path| allowed && (is_mysql || path.exists())) else { return Ok(None) };
    let chain = certificates(&read(WHAT, &path)?);
    if chain.is_empty() {
        let expected = "it must hold the client's certificate in PEM form";
        return Err(TlsError::Content { what: WHAT, path, expected });
    }
    let default = || conninfo.certificates.as_ref().map(|directory| directory.join("postgresql.key"));
    let own = || if is_mysql { Some(path.clone()) } else { default() };
    let key_path = conninfo.sslkey.clone().or_else(own).ok_or(TlsError::NoHome)?;
    let key = private_key(&key_path)?;
    Ok(Some(ClientCertificate { chain, key, key_path }))
}

/// Where the roots come from, and the roots.
fn roots(conninfo: &Conninfo) -> Result<Option<(String, Vec<CertificateDer<'static>>)>, TlsError> {
    let path = match &conninfo.sslrootcert {
        Some(RootCertificates::System) => {
            let roots = rustls_native_certs::load_native_certs().certs;
            let origin = "the system's roots".to_owned();
            return if roots.is_empty() { Err(TlsError::SystemRoots) } else { Ok(Some((origin, roots))) };
        }
        Some(RootCertificates::File(path)) => Some(path.clone()),
        None => conninfo.certificates.as_ref().map(|directory| directory.join("root.crt")),
    };
    let is_mysql = conninfo.protocol == Protocol::Mysql;
    match path {
        Some(path) if path.exists() => {
            let roots = certificates(&read("root certificate file", &path)?);
            Ok(Some((path.to_string_lossy().into_owned(), roots)))
        }
        // To libpq, a file that is not there is no root.
        _ if !(conninfo.sslmode.requires_root() || (is_mysql && path.is_some())) => Ok(None),
        Some(path) => Err(Words::of(conninfo.protocol).root_missing(path, conninfo.sslmode)),
        None => Err(TlsError::NoHome),
    }
}

fn revocation_lists(conninfo: &Conninfo) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    const WHAT: &str = "certificate revocation list";
    if conninfo.extra.get_nonempty("sslcrldir").is_some() {
        return Err(TlsError::CrlDirectory);
    }
    let named = conninfo.extra.get_nonempty("sslcrl").map(PathBuf::from);
    let Some(path) = named.or_else(|| conninfo.default_certificate_file("root.crl")) else {
        return Ok(Vec::new());
    };
    let lists: Vec<_> =
        CertificateRevocationListDer::pem_slice_iter(&read(WHAT, &path)?).filter_map(Result::ok).collect();
    if lists.is_empty() {
        let expected = "it must hold revocation lists in PEM form";
        return Err(TlsError::Content { what: WHAT, path, expected });
    }
    Ok(lists)
}

/// A key in PEM form, or in DER form as JDBC's `.pk8` files are.
fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    const WHAT: &str = "private key file";
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(TlsError::ClientKeyMissing { path: path.to_path_buf() });
        }
        Err(source) => return Err(TlsError::Unreadable { what: WHAT, path: path.to_path_buf(), source }),
    };
    let forbidden = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    if metadata.mode() & forbidden != 0 {
        return Err(TlsError::ClientKeyAccess { path: path.to_path_buf() });
    }
    let content = read(WHAT, path)?;
    if let Ok(key) = PrivateKeyDer::from_pem_slice(&content) {
        return Ok(key);
    }
    if content.windows(9).any(|window| window == b"ENCRYPTED") {
        return Err(TlsError::ClientKeyEncrypted { path: path.to_path_buf() });
    }
    PrivateKeyDer::try_from(content).map_err(|_| TlsError::Content {
        what: WHAT,
        path: path.to_path_buf(),
        expected: "it must hold the client's key in PEM or PKCS#8 DER form",
    })
}

fn certificates(pem: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem).filter_map(Result::ok).collect()
}

fn read(what: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::Unreadable { what, path: path.to_path_buf(), source })
}
