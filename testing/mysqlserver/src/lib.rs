//! Throw-away MariaDB and MySQL servers for tests, started by `scripts/mysqlserver.py`.
//!
//! What goes wrong ends the test: these functions panic, and the script has said on standard error why.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The repository's root.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the crate is in a repository")
}

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Debian's MariaDB.
    MariaDb,
    /// Oracle's MySQL 5.6, from npm.
    Mysql56,
}

/// Where a server is, and how to log in.
#[derive(Debug, Clone)]
pub struct Address {
    /// Of TCP.
    pub port: u16,
    /// Of TCP.
    pub host: String,
    /// Its unix socket.
    pub socket: PathBuf,
    /// Who may do everything.
    pub user: String,
    /// That user's.
    pub password: String,
    /// A database without tables.
    pub database: String,
    /// The server's process.
    pub pid: u32,
}

/// A running server; it ends when this value does, at the latest with the test process.
#[derive(Debug)]
pub struct MysqlServer {
    /// Where it is.
    pub at: Address,
    process: Child,
}

impl MysqlServer {
    /// Starts one; `options` are the server's own.
    pub fn start(kind: Kind, options: &[&str]) -> Self {
        let name = match kind {
            Kind::MariaDb => "mariadb",
            Kind::Mysql56 => "mysql-5.6",
        };
        let mut process = Command::new("python3")
            .arg(repository().join("scripts/mysqlserver.py"))
            .args(["--kind", name])
            .args(options.iter().map(|option| format!("--option={option}")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 runs");
        let mut line = String::new();
        let stdout = process.stdout.take().expect("its output is a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("it says where it is");
        let at = Address::read(&line).expect("mysqlserver.py prints an address (or says above why not)");
        Self { at, process }
    }
}

/// A certificate of `localhost` that signs itself, and its key, in PEM form.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// The file of the certificate, which is its own root.
    pub file: String,
    /// That of its key.
    pub key: String,
}

impl Certificate {
    /// Makes one by openssl. A server that runs as another user can read it.
    pub fn make(directory: &Path) -> Self {
        let at = |name: &str| directory.join(name).display().to_string();
        let made = Self { file: at("cert.pem"), key: at("key.pem") };
        let openssl = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
            .args(["-addext", "subjectAltName=DNS:localhost", "-keyout", &made.key, "-out", &made.file])
            .output()
            .expect("openssl runs");
        assert!(openssl.status.success(), "{}", String::from_utf8_lossy(&openssl.stderr));
        let chmod = Command::new("chmod").args(["-R", "a+rX"]).arg(directory).status();
        assert!(chmod.expect("it runs").success());
        made
    }

    /// What a server shows it by.
    pub fn options(&self) -> [String; 2] {
        [format!("--ssl-cert={}", self.file), format!("--ssl-key={}", self.key)]
    }
}

impl Address {
    fn read(line: &str) -> Option<Self> {
        let value: serde_json::Value = serde_json::from_str(line).ok()?;
        let text = |name: &str| value.get(name)?.as_str().map(str::to_owned);
        Some(Self {
            port: value.get("port")?.as_u64()?.try_into().ok()?,
            host: text("host")?,
            socket: text("socket")?.into(),
            user: text("user")?,
            password: text("password")?,
            database: text("database")?,
            pid: value.get("pid")?.as_u64()?.try_into().ok()?,
        })
    }
}

impl Drop for MysqlServer {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // A server that does not stop is reported by mysqlserver.py.
        let _ = self.process.wait();
    }
}
