//! How a connection begins: logins, TLS, several servers, and what is said when it does not.

mod common;

use std::fs::Permissions;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use common::Server;
use onetrip_client::blocking::Client;
use onetrip_client::{Config, ConnectError, Error};
use onetrip_target::{Conninfo, Environment};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

fn failure(url: &str) -> String {
    match Client::connect(url) {
        Err(Error::Connect(error)) => error.to_string(),
        other => panic!("{url}: {other:?}"),
    }
}

#[test]
fn each_way_of_logging_in_works_and_a_wrong_password_does_not() {
    for method in ["scram-sha-256", "md5", "password"] {
        let settings: &[&str] = if method == "md5" {
            &["--auth", method, "--set", "password_encryption=md5"]
        } else {
            &["--auth", method]
        };
        let server = Server::start(settings);
        // A password that initdb has stored as SCRAM is asked for as SCRAM, whatever pg_hba.conf says about MD5.
        let mut client = Client::connect(&server.url()).unwrap();
        if method == "md5" {
            client.execute("ALTER ROLE onetrip PASSWORD 'onetrip-secret'", &[]).unwrap();
            client = Client::connect(&format!("{}&require_auth=md5", server.url())).unwrap();
        }
        assert_eq!(client.execute("SELECT 1", &[]).unwrap(), 1, "{method}");
        let wrong = server.url().replace("onetrip-secret", "guessed");
        assert!(failure(&wrong).contains("password authentication failed"), "{method}");
        let none = server.url().replace(":onetrip-secret", "") + "&passfile=/nowhere";
        assert!(failure(&none).contains("asks for a password"), "{method}");
        let forbidden = format!("{}&require_auth=none", server.url());
        assert!(failure(&forbidden).contains("require_auth does not allow"), "{method}");
    }
}

#[test]
fn tls_is_checked_and_bound_as_far_as_the_settings_say() {
    let server = Server::start(&["--ssl"]);
    let ca = server.at.ca.clone().expect("it has certificates");
    let with = |words: &str| server.url().replace("sslmode=disable", words);
    let checked = format!("sslmode=verify-full&sslrootcert={}", ca.display());
    for words in ["sslmode=require", "sslmode=prefer", "sslmode=require&channel_binding=require", &checked] {
        let mut client = Client::connect(&with(words)).unwrap();
        let mut rows = client.query("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", &[]).unwrap();
        assert!(rows.next_row().unwrap().unwrap().get::<bool>(0).unwrap(), "{words}");
        drop(rows);
        let large = "x".repeat(300_000);
        let mut pipeline = client.pipeline(onetrip_client::OnError::Abort).unwrap();
        let operations: Vec<_> =
            (0..20).map(|_| pipeline.execute("SELECT $1::text", &[&large]).unwrap()).collect();
        let mut outcomes = pipeline.end().unwrap();
        for operation in operations {
            assert_eq!(outcomes.take(operation).unwrap().rows.unwrap().len(), 1, "six megabytes each way");
        }
    }
    let unknown = Server::start(&["--ssl"]);
    let other = unknown.at.ca.clone().expect("it has certificates");
    let words = format!("sslmode=verify-ca&sslrootcert={}", other.display());
    assert!(failure(&with(&words)).contains("certificate"), "{}", failure(&with(&words)));
    let plain = with("sslmode=disable&channel_binding=require");
    assert!(failure(&plain).contains("channel_binding"), "{}", failure(&plain));
    let refused = Server::shared().url().replace("sslmode=disable", "sslmode=require");
    assert!(failure(&refused).contains("does not support SSL"));
}

/// What a server that begins with TLS looks like: whoever says anything else first, or another protocol than
/// PostgreSQL's, is not let in. What is inside goes to a server without TLS.
fn direct_tls_before(server: &Server, certificates: &Path) -> u16 {
    let certificate = CertificateDer::from_pem_file(certificates.join("server.crt")).unwrap();
    let key = PrivateKeyDer::from_pem_file(certificates.join("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = builder.unwrap().with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    let config = Arc::new(config);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let target = (server.at.host.clone(), server.at.port);
    std::thread::spawn(move || {
        while let Ok((client, _)) = listener.accept() {
            let session = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut inside = rustls::StreamOwned::new(session, client);
            let has_protocol = inside.flush().is_ok() && inside.conn.alpn_protocol() == Some(b"postgresql");
            let upstream = TcpStream::connect((target.0.as_str(), target.1)).unwrap();
            if has_protocol {
                pass_both_ways(inside, upstream);
            }
        }
    });
    port
}

/// Until one side ends.
fn pass_both_ways(mut one: rustls::StreamOwned<rustls::ServerConnection, TcpStream>, mut other: TcpStream) {
    let step = Some(Duration::from_millis(2));
    one.sock.set_read_timeout(step).unwrap();
    other.set_read_timeout(step).unwrap();
    let mut buffer = vec![0; 1 << 16];
    let is_quiet = |error: &io::Error| [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind());
    loop {
        match one.read(&mut buffer) {
            Ok(count) if count > 0 => other.write_all(&buffer[..count]).unwrap(),
            Err(error) if is_quiet(&error) => {}
            _ => return,
        }
        match other.read(&mut buffer) {
            Ok(count) if count > 0 => one.write_all(&buffer[..count]).unwrap(),
            Err(error) if is_quiet(&error) => {}
            _ => return,
        }
    }
}

#[test]
fn tls_may_begin_without_being_asked_for() {
    let certified = Server::start(&["--ssl"]);
    let ca = certified.at.ca.clone().expect("it has certificates");
    let port = direct_tls_before(Server::shared(), ca.parent().unwrap());
    let with = |words: &str| Server::shared().url_at(port).replace("sslmode=disable", words);
    let checked = format!("sslmode=verify-full&sslrootcert={}", ca.display());
    let mut client = Client::connect(&with(&format!("{checked}&sslnegotiation=direct"))).unwrap();
    assert_eq!(client.execute("SELECT 1", &[]).unwrap(), 1);
    drop(client);
    // One that asks first is not understood by such a server.
    assert!(Client::connect(&with(&format!("{checked}&connect_timeout=5"))).is_err());
    // And PostgreSQL 15 does not understand one that does not ask.
    let early = certified.url().replace("sslmode=disable", &format!("{checked}&sslnegotiation=direct"));
    assert!(Client::connect(&early).is_err());
}

#[test]
fn services_and_password_files_are_read_as_libpq_reads_them() {
    let server = Server::start(&["--auth", "scram-sha-256"]);
    let at = &server.at;
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: String| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        path
    };
    let passwords = format!("elsewhere:*:*:*:wrong\n{}:{}:*:{}:{}\n", at.host, at.port, at.user, at.password);
    let passfile = file("passwords", passwords);
    let service = format!(
        "[other]\nhost=nowhere\n[shop]\nhost={}\nport={}\ndbname=postgres\nuser={}\nsslmode=disable\n",
        at.host, at.port, at.user
    );
    let service = file("services", service);
    let variables = |passfile: &Path| {
        let named = [("PGSERVICEFILE", service.clone()), ("PGPASSFILE", passfile.to_owned())];
        Environment::with_variables(named.into_iter().chain([("PGSERVICE", PathBuf::from("shop"))]))
    };
    let connect = |text: &str, passfile: &Path| {
        let conninfo = Conninfo::parse(text, &variables(passfile)).unwrap();
        Client::connect_with(Config::of(conninfo).unwrap())
    };
    assert_eq!(connect("connect_timeout=10", &passfile).unwrap().execute("SELECT 1", &[]).unwrap(), 1);
    let named = connect("service=shop application_name=named", &passfile).unwrap();
    assert_eq!(named.setting("application_name"), Some("named"));
    let without = connect("connect_timeout=10", &directory.path().join("nothing")).unwrap_err();
    assert!(without.to_string().contains("asks for a password"), "{without}");
}

#[test]
fn the_first_server_that_will_do_is_taken() {
    let server = Server::shared();
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let dsn = |attributes: &str| {
        format!(
            "host=127.0.0.1,127.0.0.1 port={closed},{} user=onetrip dbname=postgres sslmode=disable \
             target_session_attrs={attributes}",
            server.at.port
        )
    };
    for attributes in ["any", "read-write", "primary", "prefer-standby"] {
        let mut client = Client::connect(&dsn(attributes)).unwrap();
        assert_eq!(client.execute("SELECT 1", &[]).unwrap(), 1, "{attributes}");
    }
    for attributes in ["standby", "read-only"] {
        assert!(failure(&dsn(attributes)).contains("target_session_attrs"), "{attributes}");
    }
    assert!(failure(&dsn("nearest")).contains("target_session_attrs has to be"));
    assert!(failure("host=/nowhere user=ann").contains("cannot connect to /nowhere/.s.PGSQL.5432"));
    let socket = format!("host={} port={} user=onetrip", server.at.socket_dir.display(), server.at.port);
    let mut client = Client::connect(&format!("{socket} dbname=postgres")).unwrap();
    assert_eq!(client.execute("SELECT 1", &[]).unwrap(), 1, "by the unix socket");
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = format!("postgres://ann@127.0.0.1:{port}/shop?sslmode=disable&connect_timeout=2");
    match Client::connect(&url) {
        Err(Error::Connect(error)) => assert!(matches!(*error, ConnectError::TimedOut { .. }), "{error}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_server_of_an_older_protocol_is_met_where_it_is() {
    let url = Server::shared().url();
    let mut client = Client::connect(&format!("{url}&max_protocol_version=latest")).unwrap();
    assert_eq!(client.core().cancel_key().unwrap().packet().len(), 16, "the short key of protocol 3.0");
    assert_eq!(client.execute("SELECT 1", &[]).unwrap(), 1);
    let refused = failure(&format!("{url}&min_protocol_version=3.2"));
    assert!(refused.contains("no version of the protocol"), "{refused}");
    let newer = Server::start(&["--version", "18", "--auth", "trust"]);
    let mut client = Client::connect(&format!("{}&min_protocol_version=3.2", newer.url())).unwrap();
    assert!(client.core().cancel_key().unwrap().packet().len() > 16, "the longer key of 3.2");
    client.set_timeout(Some(Duration::from_millis(50)));
    assert_eq!(
        client.execute("SELECT pg_sleep(60)", &[]).unwrap_err().sqlstate(),
        Some("57014"),
        "it cancels"
    );
}

#[test]
fn settings_reach_the_session() {
    let mut config = Config::from_str(&format!("{}&application_name=shop", Server::shared().url())).unwrap();
    config.settings.push(("search_path".to_owned(), "pg_catalog".to_owned()));
    let mut client = Client::connect_with(config).unwrap();
    assert_eq!(client.setting("application_name"), Some("shop"));
    let mut rows = client.query("SHOW search_path", &[]).unwrap();
    assert_eq!(rows.next_row().unwrap().unwrap().text(0).unwrap(), Some("pg_catalog"));
    assert!(Config::from_str("postgres://h/d?pipelining=maybe").is_err());
}
