//! TLS by libpq's `sslmode` rules: handshakes in memory with certificates made for the occasion.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use onetrip_target::tls::{ALPN, TlsError, TlsPlan, connector};
use onetrip_target::{Conninfo, Environment, Host};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, IsCa, Issuer, KeyIdMethod,
    KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber, date_time_ymd,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{Acceptor, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use tempfile::TempDir;

/// An authority with a directory that is a home directory as well.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: rcgen::Certificate,
    home: TempDir,
}

struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    certificate_pem: String,
    key_pem: String,
}

impl Authority {
    fn new() -> Self {
        Self::named("authority")
    }

    fn named(name: &str) -> Self {
        let mut params = named(name, &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self { issuer: Issuer::new(params, key), certificate, home: tempfile::tempdir().unwrap() }
    }

    fn issue(&self, params: CertificateParams) -> Identity {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity::of(&certificate, &key)
    }

    /// Writes the root to a file and returns its path.
    fn root(&self) -> String {
        self.file("root.pem", &self.certificate.pem())
    }

    fn file(&self, name: &str, content: &str) -> String {
        let path = self.home.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn plan(&self, text: &str) -> Result<TlsPlan, TlsError> {
        connector(&self.conninfo(text)).map(|plan| plan.expect("a plan"))
    }

    fn conninfo(&self, text: &str) -> Conninfo {
        let mut environment = Environment::default();
        environment.home = Some(self.home.path().to_path_buf());
        Conninfo::parse(text, &environment).unwrap()
    }

    /// The failure, in the words of [`TlsPlan::explain`], of a handshake with `server`.
    fn handshake(&self, text: &str, server: &Identity) -> Result<Agreed, String> {
        let conninfo = self.conninfo(text);
        let plan = connector(&conninfo).unwrap().expect("a plan");
        let host = &conninfo.hosts[0];
        shake(&plan, host, &server.config(None)).map_err(|error| plan.explain(host, error).to_string())
    }
}

impl Identity {
    fn of(certificate: &rcgen::Certificate, key: &KeyPair) -> Self {
        Self {
            certificate: certificate.der().clone(),
            key: PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap(),
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        }
    }

    fn config(&self, clients: Option<&Authority>) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.certificate.der().clone()).unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let chain = vec![self.certificate.clone()];
        let resolver = builder.with_cert_resolver(Arc::new(Fixed(chain, self.key.clone_key())));
        let mut config = resolver;
        config.alpn_protocols = vec![ALPN.to_vec()];
        Arc::new(config)
    }
}

/// Presents one certificate whatever it looks like; rustls's own resolver refuses version 1.
#[derive(Debug)]
struct Fixed(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

impl rustls::server::ResolvesServerCert for Fixed {
    fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<rustls::sign::CertifiedKey>> {
        let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&self.1).ok()?;
        Some(Arc::new(rustls::sign::CertifiedKey::new(self.0.clone(), key)))
    }
}

/// What both sides agreed on.
#[derive(Debug)]
struct Agreed {
    announced: Option<String>,
    alpn: Option<Vec<u8>>,
    client_certificates: usize,
}

/// Drives a handshake in memory; the error is the client's.
fn shake(plan: &TlsPlan, host: &Host, config: &Arc<ServerConfig>) -> Result<Agreed, rustls::Error> {
    let mut client = plan.start(host).unwrap();
    let mut acceptor = Acceptor::default();
    let mut flight = Vec::new();
    client.write_tls(&mut flight).unwrap();
    acceptor.read_tls(&mut flight.as_slice()).unwrap();
    let accepted = acceptor.accept().map_err(|(error, _)| error)?.expect("a whole hello");
    let announced = accepted.client_hello().server_name().map(str::to_owned);
    let mut server = accepted.into_connection(Arc::clone(config)).map_err(|(error, _)| error)?;
    while client.is_handshaking() || server.is_handshaking() {
        let mut flight = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut flight).unwrap();
        }
        feed(&mut client, &flight)?;
        flight.clear();
        while client.wants_write() {
            client.write_tls(&mut flight).unwrap();
        }
        let mut rest = flight.as_slice();
        while !rest.is_empty() {
            server.read_tls(&mut rest).unwrap();
            server.process_new_packets()?;
        }
    }
    Ok(Agreed {
        announced,
        alpn: client.alpn_protocol().map(<[u8]>::to_vec),
        client_certificates: server.peer_certificates().map_or(0, <[_]>::len),
    })
}

fn feed(client: &mut rustls::ClientConnection, mut flight: &[u8]) -> Result<(), rustls::Error> {
    while !flight.is_empty() {
        client.read_tls(&mut flight).unwrap();
        client.process_new_packets()?;
    }
    Ok(())
}

/// Parameters of a certificate with a common name and alternative names.
fn named(common_name: &str, alternatives: &[&str]) -> CertificateParams {
    let alternatives: Vec<_> = alternatives.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(alternatives).unwrap();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params
}

#[track_caller]
fn says(result: Result<Agreed, String>, parts: &[&str]) {
    let said = result.expect_err("a failure");
    for part in parts {
        assert!(said.contains(part), "{part:?} is not in: {said}");
    }
}

#[test]
fn a_certificate_of_the_named_root_passes_every_mode() {
    let authority = Authority::new();
    let server = authority.issue(named("ignored", &["db.example"]));
    for mode in ["allow", "prefer", "require", "verify-ca", "verify-full"] {
        let text = format!("host=db.example sslmode={mode} sslrootcert={}", authority.root());
        let agreed = authority.handshake(&text, &server).unwrap();
        assert_eq!(agreed.announced.as_deref(), Some("db.example"));
        assert_eq!(agreed.alpn.as_deref(), Some(ALPN));
    }
}

#[test]
fn a_certificate_of_another_root_fails_wherever_there_is_a_root_file() {
    let (authority, stranger) = (Authority::new(), Authority::named("stranger"));
    let server = stranger.issue(named("db.example", &["db.example"]));
    for mode in ["prefer", "require", "verify-ca", "verify-full"] {
        let text = format!("host=db.example sslmode={mode} sslrootcert={}", authority.root());
        says(
            authority.handshake(&text, &server),
            &[
                "SSL error: certificate verify failed",
                "db.example:5432 does not lead to a trusted root",
                "root.pem",
                "sslrootcert",
            ],
        );
    }
}

#[test]
fn a_root_of_the_right_name_with_another_key_fails() {
    let authority = Authority::new();
    let server = Authority::new().issue(named("db.example", &["db.example"]));
    let text = format!("host=db.example sslmode=verify-ca sslrootcert={}", authority.root());
    says(authority.handshake(&text, &server), &["is not signed by the root of that name"]);
}

#[test]
fn without_a_root_file_require_accepts_any_certificate() {
    let (authority, stranger) = (Authority::new(), Authority::named("stranger"));
    let mut expired = named("else.example", &["else.example"]);
    expired.not_after = date_time_ymd(2020, 1, 1);
    let server = stranger.issue(expired);
    authority.handshake("host=db.example sslmode=require", &server).unwrap();
    authority.handshake("host=db.example sslmode=prefer", &server).unwrap();
}

#[test]
fn the_root_file_of_the_home_directory_makes_require_check_the_chain() {
    let (authority, stranger) = (Authority::new(), Authority::named("stranger"));
    authority.file(".postgresql/root.crt", &(stranger.certificate.pem() + &authority.certificate.pem()));
    let good = authority.issue(named("else", &["else.example"]));
    let other = stranger.issue(named("else", &["else.example"]));
    let third = Authority::named("third").issue(named("db.example", &["db.example"]));
    let text = "host=db.example sslmode=require";
    authority.handshake(text, &good).unwrap();
    authority.handshake(text, &other).unwrap();
    says(authority.handshake(text, &third), &["does not lead to a trusted root"]);
}

#[test]
fn verify_full_wants_the_hosts_name_and_verify_ca_does_not() {
    let authority = Authority::new();
    let server = authority.issue(named("x", &["a.example", "b.example"]));
    let text = |mode| format!("host=db.example sslmode={mode} sslrootcert={}", authority.root());
    authority.handshake(&text("verify-ca"), &server).unwrap();
    says(
        authority.handshake(&text("verify-full"), &server),
        &[
            "server certificate for \"a.example\" (and 1 other names) does not match host name \"db.example\"",
            "sslmode=verify-ca",
        ],
    );
}

#[test]
fn names_match_as_in_libpq() {
    let authority = Authority::new();
    let root = authority.root();
    let fits = |host: &str, common_name: &str, alternatives: &[&str]| {
        let text = format!("host={host} sslmode=verify-full sslrootcert={root}");
        authority.handshake(&text, &authority.issue(named(common_name, alternatives))).is_ok()
    };
    assert!(fits("DB.example", "x", &["db.EXAMPLE"]));
    assert!(fits("db.example", "x", &["*.example"]));
    assert!(!fits("a.db.example", "x", &["*.example"]));
    assert!(fits("10.0.0.1", "x", &["10.0.0.1"]));
    assert!(fits("::1", "x", &["::1"]));
    assert!(!fits("10.0.0.2", "x", &["10.0.0.1"]));
    // The common name counts only where no alternative name is of the host's kind.
    assert!(fits("db.example", "db.example", &[]));
    assert!(fits("db.example", "*.example", &["10.0.0.1"]));
    assert!(fits("10.0.0.1", "10.0.0.1", &["db.example"]));
    assert!(!fits("db.example", "db.example", &["else.example"]));
    assert!(!fits("10.0.0.1", "10.0.0.1", &["10.0.0.2"]));
    assert!(!fits("example", "*", &[]));
    assert!(!fits("10.0.0.1", "*.0.0.1", &[]));
}

#[test]
fn a_certificate_out_of_its_time_fails_with_the_day() {
    let authority = Authority::new();
    let text = format!("host=db.example sslmode=verify-ca sslrootcert={}", authority.root());
    let mut params = named("db.example", &["db.example"]);
    params.not_after = date_time_ymd(2020, 1, 2);
    says(
        authority.handshake(&text, &authority.issue(params)),
        &["certificate verify failed", "has expired on 2020-01-02"],
    );
    let mut params = named("db.example", &["db.example"]);
    params.not_before = date_time_ymd(2999, 1, 2);
    says(authority.handshake(&text, &authority.issue(params)), &["is valid only from 2999-01-02", "clock"]);
}

#[test]
fn a_revoked_certificate_fails_where_a_list_is_given() {
    let authority = Authority::new();
    let mut params = named("db.example", &["db.example"]);
    params.serial_number = Some(SerialNumber::from(77_u64));
    let server = authority.issue(params);
    let list = CertificateRevocationListParams {
        this_update: date_time_ymd(2020, 1, 1),
        next_update: date_time_ymd(2999, 1, 1),
        crl_number: SerialNumber::from(1_u64),
        issuing_distribution_point: None,
        revoked_certs: vec![RevokedCertParams {
            serial_number: SerialNumber::from(77_u64),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        }],
        key_identifier_method: KeyIdMethod::Sha256,
    };
    let list = authority.file("revoked.pem", &list.signed_by(&authority.issuer).unwrap().pem().unwrap());
    let text = format!("host=db.example sslmode=verify-ca sslrootcert={}", authority.root());
    authority.handshake(&text, &server).unwrap();
    says(authority.handshake(&format!("{text} sslcrl={list}"), &server), &["is revoked"]);
}

#[test]
fn a_self_signed_certificate_may_be_its_own_root() {
    let authority = Authority::new();
    for is_ca in [IsCa::NoCa, IsCa::ExplicitNoCa, IsCa::Ca(BasicConstraints::Unconstrained)] {
        let mut params = named("db.example", &[]);
        params.is_ca = is_ca;
        let key = KeyPair::generate().unwrap();
        let server = Identity::of(&params.self_signed(&key).unwrap(), &key);
        let root = authority.file("own.pem", &server.certificate_pem);
        let text = |host| format!("host={host} sslmode=verify-full sslrootcert={root}");
        authority.handshake(&text("db.example"), &server).unwrap();
        says(authority.handshake(&text("else.example"), &server), &["for \"db.example\" does not match"]);
        let other = format!("host=db.example sslmode=verify-ca sslrootcert={}", authority.root());
        says(authority.handshake(&other, &server), &["does not lead to a trusted root"]);
    }
    let mut expired = named("db.example", &[]);
    expired.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    expired.not_after = date_time_ymd(2020, 1, 2);
    let key = KeyPair::generate().unwrap();
    let server = Identity::of(&expired.self_signed(&key).unwrap(), &key);
    let root = authority.file("own.pem", &server.certificate_pem);
    let text = format!("host=db.example sslmode=verify-full sslrootcert={root}");
    says(authority.handshake(&text, &server), &["has expired on 2020-01-02"]);
}

#[test]
fn certificates_by_the_manuals_recipe_pass() {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/certificates");
    let read = |name: &str| fs::read_to_string(files.join(name)).unwrap();
    let server = Identity {
        certificate: CertificateDer::from_pem_slice(read("manual-server.pem").as_bytes()).unwrap(),
        key: PrivateKeyDer::from_pem_slice(read("manual-server.key").as_bytes()).unwrap(),
        certificate_pem: read("manual-server.pem"),
        key_pem: read("manual-server.key"),
    };
    let authority = Authority::new();
    let root = files.join("manual-root.pem");
    let text = |host| format!("host={host} sslmode=verify-full sslrootcert={}", root.display());
    authority.handshake(&text("db.example"), &server).unwrap();
    authority.handshake(&(text("db.example") + " ssl_max_protocol_version=TLSv1.2"), &server).unwrap();
    says(authority.handshake(&text("else.example"), &server), &["for \"db.example\" does not match"]);
    let other = format!("host=db.example sslmode=verify-ca sslrootcert={}", authority.root());
    says(authority.handshake(&other, &server), &["does not lead to a trusted root"]);
    authority.handshake("host=db.example sslmode=require", &server).unwrap();
    let mut forged = server.certificate.to_vec();
    *forged.last_mut().unwrap() ^= 1;
    let forger = Identity {
        certificate: forged.into(),
        key: server.key.clone_key(),
        certificate_pem: String::new(),
        key_pem: String::new(),
    };
    says(authority.handshake(&text("db.example"), &forger), &["does not lead to a trusted root"]);
    // The certificate alone proves nothing: whoever shows it must have its key.
    let thief = Identity { key: authority.issue(named("x", &[])).key, ..server };
    says(authority.handshake(&text("db.example"), &thief), &["certificate verify failed"]);
}

#[test]
fn the_name_is_announced_unless_it_is_an_address_or_unwanted() {
    let authority = Authority::new();
    let server = authority.issue(named("x", &["x"]));
    let announced = |text: &str| authority.handshake(text, &server).unwrap().announced;
    assert_eq!(announced("host=my_db sslmode=require").as_deref(), Some("my_db"));
    assert_eq!(announced("host=db.example hostaddr=10.0.0.1 sslmode=require").as_deref(), Some("db.example"));
    assert_eq!(announced("host=10.0.0.1 sslmode=require"), None);
    assert_eq!(announced("host=::1 sslmode=require"), None);
    assert_eq!(announced("host=db.example sslmode=require sslsni=0"), None);
    assert_eq!(announced("host=-a..b- sslmode=require"), None);
    let text = format!("host=-a..b- sslmode=verify-full sslrootcert={}", authority.root());
    let conninfo = authority.conninfo(&text);
    let plan = connector(&conninfo).unwrap().unwrap();
    assert!(matches!(plan.start(&conninfo.hosts[0]), Err(TlsError::HostName { .. })));
}

#[test]
fn a_client_certificate_is_shown_to_a_server_that_asks() {
    let authority = Authority::new();
    let server = authority.issue(named("db.example", &["db.example"]));
    let client = authority.issue(named("ada", &[]));
    let (certificate, key) =
        (authority.file("c.pem", &client.certificate_pem), authority.file("k.pem", &client.key_pem));
    let shown = |text: &str| {
        let conninfo = authority.conninfo(text);
        let plan = connector(&conninfo).unwrap().unwrap();
        shake(&plan, &conninfo.hosts[0], &server.config(Some(&authority)))
            .map(|agreed| agreed.client_certificates)
    };
    let text = format!("host=db.example sslmode=require sslcert={certificate} sslkey={key}");
    assert_eq!(shown(&text), Ok(1));
    assert!(shown("host=db.example sslmode=require").is_err());
    assert!(shown(&format!("{text} sslcertmode=disable")).is_err());
    let der = authority.file("k.pk8", "");
    fs::write(&der, client.key.secret_der()).unwrap();
    assert_eq!(shown(&format!("host=db.example sslmode=require sslcert={certificate} sslkey={der}")), Ok(1));
    authority.file(".postgresql/postgresql.crt", &client.certificate_pem);
    authority.file(".postgresql/postgresql.key", &client.key_pem);
    assert_eq!(shown("host=db.example sslmode=require"), Ok(1));
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let authority = Authority::new();
    let client = authority.issue(named("ada", &[]));
    let certificate = authority.file("c.pem", &client.certificate_pem);
    let garbage = authority.file("garbage", "garbage");
    let fails = |text: &str| authority.plan(&format!("host=db {text}")).expect_err(text).to_string();
    let missing = fails("sslmode=verify-full");
    assert!(missing.contains(".postgresql/root.crt\" does not exist"), "{missing}");
    assert!(missing.contains("sslrootcert=system"), "{missing}");
    assert!(fails("sslmode=verify-ca sslrootcert=/no/root").contains("\"/no/root\" does not exist"));
    assert!(fails(&format!("sslrootcert={garbage}")).contains("holds nothing usable"));
    assert!(
        fails(&format!("sslrootcert={}", authority.home.path().display())).contains("could not read root")
    );
    assert!(fails(&format!("sslrootcert={} sslcrl={garbage}", authority.root())).contains("revocation list"));
    assert!(fails(&format!("sslrootcert={} sslcrldir=/x", authority.root())).contains("sslcrldir"));
    assert!(fails(&format!("sslcert={garbage}")).contains("certificate file"));
    assert!(
        fails(&format!("sslcert={certificate}")).contains("certificate present, but not private key file")
    );
    let key = |content: &str| format!("sslcert={certificate} sslkey={}", authority.file("k.pem", content));
    assert!(fails(&key("garbage")).contains("private key file"));
    assert!(fails(&key("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n")).contains("is encrypted"));
    assert!(fails(&key(&authority.issue(named("x", &[])).key_pem)).contains("does not match"));
    let open = authority.file("k.pem", &client.key_pem);
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(fails(&format!("sslcert={certificate} sslkey={open}")).contains("group or world access"));
    assert!(fails("ssl_max_protocol_version=TLSv1.1").contains("no TLS version"));
    assert!(fails("sslnegotiation=direct").contains("weak sslmode \"prefer\""));
    let mut homeless = authority.conninfo("host=db sslmode=verify-ca");
    homeless.certificates = None;
    assert!(matches!(connector(&homeless), Err(TlsError::NoHome)));
}

#[test]
fn the_plan_says_when_plain_will_do() {
    let authority = Authority::new();
    assert!(connector(&authority.conninfo("host=db sslmode=disable")).unwrap().is_none());
    assert!(connector(&authority.conninfo("host=/tmp sslmode=require")).unwrap().is_none());
    let plan = |text: &str| authority.plan(&format!("host=db,/tmp {text}")).unwrap();
    let (allow, prefer, require) = (plan("sslmode=allow"), plan("sslmode=prefer"), plan("sslmode=require"));
    assert_eq!([&allow, &prefer, &require].map(TlsPlan::starts_plain), [true, false, false]);
    assert_eq!([&allow, &prefer, &require].map(TlsPlan::may_be_plain), [true, true, false]);
    assert!(!require.is_direct() && plan("sslmode=require sslnegotiation=direct").is_direct());
    assert!(require.applies_to(&Host::tcp("db", 1)) && !require.applies_to(&Host::unix("/tmp", 1)));
    let refused = require.refused_by_server(&Host::tcp("db", 5432)).to_string();
    assert!(refused.contains("server db:5432 does not support SSL, but SSL was required"), "{refused}");
}

#[test]
fn tls_versions_follow_the_settings() {
    let authority = Authority::new();
    let server = authority.issue(named("x", &["x"]));
    let works =
        |limits: &str| authority.handshake(&format!("host=db sslmode=require {limits}"), &server).is_ok();
    assert!(works("ssl_max_protocol_version=TLSv1.2"));
    assert!(works("ssl_min_protocol_version=TLSv1.3"));
    assert!(works("ssl_min_protocol_version=TLSv1"));
}

#[test]
fn garbage_in_place_of_tls_is_explained() {
    let authority = Authority::new();
    let plan = authority.plan("host=db sslmode=require").unwrap();
    let host = Host::tcp("db", 5432);
    let mut client = plan.start(&host).unwrap();
    let error = feed(&mut client, b"E garbage of some length").unwrap_err();
    let said = plan.explain(&host, error).to_string();
    assert!(said.contains("could not negotiate SSL with db:5432"), "{said}");
}

#[test]
fn the_systems_roots_trust_no_private_authority() {
    let authority = Authority::new();
    let server = authority.issue(named("db.example", &["db.example"]));
    let conninfo = authority.conninfo("host=db.example sslrootcert=system");
    // A system without roots says so when the plan is made.
    let Ok(plan) = connector(&conninfo) else { return };
    let host = &conninfo.hosts[0];
    let error = shake(&plan.unwrap(), host, &server.config(None)).unwrap_err();
    assert!(matches!(error, rustls::Error::InvalidCertificate(_)));
}
