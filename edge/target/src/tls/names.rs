//! libpq's comparison of a host with the names in a certificate. It is wider than webpki's: where no alternative name
//! is of the host's kind, the subject's common name counts.

use rustls::pki_types::{CertificateDer, ServerName};
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::der::oid::db::rfc4519::COMMON_NAME;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// Compares; the error is the names that the certificate has.
pub(super) fn check(certificate: &CertificateDer<'_>, host: &ServerName<'_>) -> Result<(), Vec<String>> {
    let certificate = Certificate::from_der(certificate).map_err(|_| Vec::new())?;
    let alternatives = match certificate.tbs_certificate.get::<SubjectAltName>() {
        Ok(found) => found.map(|(_, alternatives)| alternatives.0).unwrap_or_default(),
        Err(_) => return Err(Vec::new()),
    };
    let mut names = Vec::new();
    let mut uses_common_name = true;
    for alternative in &alternatives {
        match alternative {
            GeneralName::DnsName(name) => {
                uses_common_name &= matches!(host, ServerName::IpAddress(_));
                if fits(name.as_str(), host) {
                    return Ok(());
                }
                names.push(name.to_string());
            }
            GeneralName::IpAddress(octets) => {
                uses_common_name &= !matches!(host, ServerName::IpAddress(_));
                let address = address(octets.as_bytes());
                if address.is_some() && address == host_address(host) {
                    return Ok(());
                }
                names.extend(address.map(|address| address.to_string()));
            }
            _ => {}
        }
    }
    if let Some(name) = common_name(&certificate).filter(|_| uses_common_name) {
        if fits(&name, host) {
            return Ok(());
        }
        names.push(name);
    }
    Err(names)
}

/// Equal but for case, or a wildcard for the first label alone.
fn fits(pattern: &str, host: &ServerName<'_>) -> bool {
    let host_text = host.to_str();
    if pattern.contains('\0') {
        return false;
    }
    if pattern.eq_ignore_ascii_case(&host_text) {
        return true;
    }
    let Some(suffix) = pattern.strip_prefix('*').filter(|suffix| suffix.len() > 1 && suffix.starts_with('.'))
    else {
        return false;
    };
    let is_name = matches!(host, ServerName::DnsName(_));
    let parts = host_text.find('.').map(|dot| host_text.split_at(dot));
    is_name && parts.is_some_and(|(first, rest)| !first.is_empty() && rest.eq_ignore_ascii_case(suffix))
}

/// The first common name of the subject.
fn common_name(certificate: &Certificate) -> Option<String> {
    let subject = &certificate.tbs_certificate.subject;
    let mut attributes = subject.0.iter().flat_map(|part| part.0.iter());
    let name = attributes.find(|attribute| attribute.oid == COMMON_NAME)?;
    String::from_utf8(name.value.value().to_vec()).ok()
}

fn host_address(host: &ServerName<'_>) -> Option<std::net::IpAddr> {
    match host {
        ServerName::IpAddress(address) => Some((*address).into()),
        _ => None,
    }
}

fn address(octets: &[u8]) -> Option<std::net::IpAddr> {
    match octets.len() {
        4 => <[u8; 4]>::try_from(octets).ok().map(Into::into),
        16 => <[u8; 16]>::try_from(octets).ok().map(Into::into),
        _ => None,
    }
}
