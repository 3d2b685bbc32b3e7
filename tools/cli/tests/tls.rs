//! TLS on the client's leg, with libpq as the client.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use common::onetrip;
use onetrip_pgserver::PgServer;
use serde_json::Value;

/// `onetrip gateway` on a free port, ended when dropped.
struct Gateway {
    process: Child,
    address: String,
}

impl Gateway {
    fn start(server: &PgServer, upstream: &str, options: &[&str]) -> Self {
        let upstream = format!("postgres://127.0.0.1:{}/postgres{upstream}", server.at.port);
        let mut command = onetrip();
        command.args(["gateway", "--listen", "127.0.0.1:0", "--upstream", &upstream]).args(options);
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = Vec::new();
        let errors = process.stderr.as_mut().unwrap();
        while !line.ends_with(b"\n") {
            let mut byte = [0];
            assert_eq!(errors.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&line));
            line.push(byte[0]);
        }
        let line = String::from_utf8(line).unwrap();
        let address = line.split("listening at ").nth(1).unwrap().split(',').next().unwrap().to_owned();
        Self { process, address }
    }

    fn port(&self) -> &str {
        self.address.rsplit(':').next().unwrap()
    }

    fn psql(&self, settings: &str) -> Output {
        let dsn = format!(
            "host=localhost hostaddr=127.0.0.1 port={} user=onetrip password=onetrip-secret dbname=postgres {settings}",
            self.port()
        );
        let mut command = Command::new("psql");
        command.env("HOME", "/nonexistent").args(["-qAtX", &dsn, "-c", "\\conninfo", "-c", "SELECT 41 + 1"]);
        command.output().unwrap()
    }

    /// Ends it; what it said.
    fn stop(mut self) -> String {
        assert!(
            Command::new("kill").args(["-INT", &self.process.id().to_string()]).status().unwrap().success()
        );
        let mut said = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        self.process.wait().unwrap();
        said
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn assert_works(done: &Output, says: &str) {
    let output = text(&done.stdout);
    assert!(output.ends_with("42\n") && output.contains(says), "{output}{}", text(&done.stderr));
}

fn certificate(directory: &Path) -> (PathBuf, PathBuf) {
    let (certificate, key) = (directory.join("own.crt"), directory.join("own.key"));
    let mut openssl = Command::new("openssl");
    openssl.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]);
    openssl.args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]);
    openssl.arg("-keyout").arg(&key).arg("-out").arg(&certificate);
    assert!(openssl.stderr(Stdio::null()).status().unwrap().success());
    (certificate, key)
}

#[test]
fn require_works_with_a_certificate_made_at_start_and_verify_is_told_the_way_out() {
    let server = PgServer::start(&[]);
    let gateway = Gateway::start(&server, "", &["--tls"]);
    for protocol in ["", "ssl_max_protocol_version=TLSv1.2"] {
        assert_works(&gateway.psql(&format!("sslmode=require {protocol}")), "SSL connection");
    }
    assert!(!text(&gateway.psql("sslmode=disable").stdout).contains("SSL connection"));
    let refused = gateway.psql("sslmode=verify-full sslrootcert=/etc/ssl/certs/ca-certificates.crt");
    assert!(!refused.status.success());
    let said = gateway.stop();
    assert!(said.contains("verify-ca or verify-full") && said.contains("--tls-cert"), "{said}");

    // libpq verifies with sslmode=require, too, where it has a root certificate.
    let gateway = Gateway::start(&server, "", &["--tls"]);
    let refused = gateway.psql("sslmode=require sslrootcert=/etc/ssl/certs/ca-certificates.crt");
    assert!(!refused.status.success());
    let said = gateway.stop();
    assert!(said.contains("sslmode=require and no root certificate"), "{said}");

    let directory = tempfile::tempdir().unwrap();
    let (certificate, key) = certificate(directory.path());
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let gateway = Gateway::start(&server, "", &["--tls-cert", certificate, "--tls-key", key]);
    assert_works(&gateway.psql(&format!("sslmode=verify-full sslrootcert={certificate}")), "SSL connection");
}

#[test]
fn without_the_switch_clients_are_told_that_there_is_no_tls() {
    let server = PgServer::start(&[]);
    let gateway = Gateway::start(&server, "", &[]);
    assert!(!gateway.psql("sslmode=require").status.success());
    assert!(gateway.psql("sslmode=prefer").status.success());
}

#[test]
fn bytes_behind_a_request_for_tls_are_refused() {
    let server = PgServer::start(&[]);
    let gateway = Gateway::start(&server, "", &["--tls"]);
    let mut client = TcpStream::connect(&gateway.address).unwrap();
    let mut request = vec![0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
    request.extend_from_slice(b"\0\0\0\x10\0\x03\0\0user\0x\0\0");
    client.write_all(&request).unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"E"), "{}", text(&answer));
    assert!(text(&answer).contains("received unencrypted data after SSL request"), "{}", text(&answer));
}

#[test]
fn scram_between_two_tls_connections_says_the_way_out_and_passes_with_the_databases_certificate() {
    let server = PgServer::start(&["--ssl", "--auth", "scram-sha-256"]);
    let gateway = Gateway::start(&server, "?sslmode=require", &["--tls"]);
    let refused = gateway.psql("sslmode=require");
    assert!(text(&refused.stderr).contains("--tls-cert"), "{}", text(&refused.stderr));
    assert_works(&gateway.psql("sslmode=require channel_binding=disable"), "SSL connection");
    assert_works(&gateway.psql("sslmode=disable"), "");
    drop(gateway);
    let plain = Gateway::start(&server, "?sslmode=disable", &["--tls"]);
    assert_works(&plain.psql("sslmode=require"), "SSL connection");
    drop(plain);

    let files = server.at.ca.as_ref().unwrap().parent().unwrap();
    let (certificate, key) = (files.join("server.crt"), files.join("server.key"));
    let options = ["--tls-cert", certificate.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
    let same = Gateway::start(&server, "?sslmode=require", &options);
    assert_works(&same.psql("sslmode=require channel_binding=require"), "SSL connection");
}

#[test]
fn a_program_that_is_led_here_logs_in_by_scram_over_tls_at_the_first_try() {
    let server = PgServer::start(&["--ssl", "--auth", "scram-sha-256"]);
    let (port, user, password) = (server.at.port, &server.at.user, &server.at.password);
    for sslmode in ["require", "prefer"] {
        let place = format!("host=127.0.0.1 port={port} user={user} password={password} sslmode={sslmode}");
        let done = onetrip()
            .args([
                "run",
                "--format",
                "json",
                "--upstream",
                &format!("127.0.0.1:{port}"),
                "--redirect",
                "psql",
            ])
            .args([&format!("{place} dbname=postgres"), "-XAtc", "SELECT 41 + 1"])
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", text(&done.stderr));
        // The report is on standard error, behind what is said before.
        let said = text(&done.stderr);
        let report: Value = serde_json::from_str(&said[said.find("\n{").unwrap()..]).unwrap();
        assert_eq!(text(&done.stdout), "42\n");
        let counts = ["opened", "let_in"].map(|count| report["connections"][count].as_u64());
        assert_eq!(counts, [Some(1); 2], "{report}");
    }
}

#[test]
fn tls_from_the_first_byte_needs_its_protocols_name() {
    let server = PgServer::start(&[]);
    let gateway = Gateway::start(&server, "", &["--tls"]);
    let script = format!(
        "import socket, ssl, struct
def shake(protocols):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if protocols: context.set_alpn_protocols(protocols)
    return context.wrap_socket(socket.create_connection(('127.0.0.1', {})))
start = b'\\0\\3\\0\\0user\\0onetrip\\0database\\0postgres\\0\\0'
s = shake(['postgresql'])
assert s.selected_alpn_protocol() == 'postgresql'
s.sendall(struct.pack('!i', len(start) + 4) + start)
assert s.recv(1) == b'R'
for protocols in ([], ['http/1.1']):
    try:
        s = shake(protocols)
        s.sendall(struct.pack('!i', len(start) + 4) + start)
        assert s.recv(1) == b''
    except OSError:
        pass
print('done')",
        gateway.port()
    );
    let done = Command::new("python3").args(["-c", &script]).output().unwrap();
    assert_eq!(text(&done.stdout), "done\n", "{}", text(&done.stderr));
    let said = gateway.stop();
    assert!(said.contains("without ALPN"), "{said}");

    let plain = Gateway::start(&server, "", &[]);
    let mut client = TcpStream::connect(&plain.address).unwrap();
    client.write_all(&[0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0]).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap(), 0, "it is closed without a word");
    let said = plain.stop();
    assert!(said.contains("start onetrip with --tls"), "{said}");
}
