//! How a connection begins: logins, TLS, several servers, and what is said when it does not.

mod common;

use std::str::FromStr;

use common::Server;
use onetrip_client::blocking::Client;
use onetrip_client::{Config, ConnectError, Error};

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

#[test]
fn the_first_server_that_will_do_is_taken() {
    let server = Server::shared();
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
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
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
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
    client.set_timeout(Some(std::time::Duration::from_millis(50)));
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
