//! PgBouncer, the pooler that most people have.

use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::client::PATIENCE;
use super::server::Server;

/// What each session of the server runs first.
const HAS_TEMPORARY: &str = "CREATE TEMP TABLE of_pooler(); DROP TABLE of_pooler";

/// PgBouncer in front of a server; it ends with this.
pub(crate) struct PgBouncer {
    process: Child,
    pub(crate) port: u16,
    _directory: tempfile::TempDir,
}

impl PgBouncer {
    /// `mode` is session or transaction; so many sessions of the server are shared. Each has had a temporary table, for
    /// notices tell whether its schema is there, and which session one gets is chance.
    pub(crate) fn start_in(mode: &str, sessions: usize, server: &Server) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let port = TcpListener::bind(("127.0.0.1", 0))
            .and_then(|one| one.local_addr())
            .expect("a port is free")
            .port();
        let configuration = directory.path().join("pgbouncer.ini");
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={} user={} connect_query='{HAS_TEMPORARY}'\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = any\npool_mode = {mode}\ndefault_pool_size = {sessions}\n\
             ignore_startup_parameters = extra_float_digits\nlog_connections = 0\nlog_disconnections = 0\n",
            server.at.port, server.at.user
        );
        std::fs::write(&configuration, text).expect("it can be written");
        std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).expect("it is ours");
        let mut command = Command::new("/usr/sbin/pgbouncer");
        command.arg(&configuration).stdout(Stdio::null()).stderr(Stdio::null());
        if std::fs::metadata(&configuration).expect("it is there").uid() == 0 {
            command.uid(65_534); // it refuses to run as root
        }
        let process = command.spawn().expect("PgBouncer is installed (make test installs it)");
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "PgBouncer does not listen");
            thread::sleep(Duration::from_millis(10));
        }
        Self { process, port, _directory: directory }
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
