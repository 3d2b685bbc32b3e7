//! Real PostgreSQL servers, and what they say of their catalogues.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use onetrip_pgserver::PgServer;
use onetrip_sql::purity::{CATALOGUE_QUERY, Catalogue};
use postgres::{Client, NoTls, SimpleQueryMessage, SimpleQueryRow};

/// A throw-away server of a major version.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) version: &'static str,
    server: PgServer,
}

/// PostgreSQL 15 and 18, one of each per test process.
pub(crate) fn servers() -> [&'static Server; 2] {
    static OLD: OnceLock<Server> = OnceLock::new();
    static NEW: OnceLock<Server> = OnceLock::new();
    [OLD.get_or_init(|| Server::start("15")), NEW.get_or_init(|| Server::start("18"))]
}

impl Server {
    fn start(version: &'static str) -> Self {
        Self { version, server: PgServer::start(&["--version", version, "--auth", "trust"]) }
    }

    pub(crate) fn connect(&self, dbname: &str) -> Client {
        let settings = format!("host=127.0.0.1 port={} user=onetrip dbname={dbname}", self.server.at.port);
        Client::connect(&settings, NoTls).unwrap_or_else(|error| panic!("{dbname}: {error}"))
    }

    /// A database of its own with these objects.
    pub(crate) fn database(&self, statements: &str) -> String {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("purity_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        self.connect("postgres").batch_execute(&format!("CREATE DATABASE {name}")).expect("a new database");
        self.connect(&name).batch_execute(statements).unwrap_or_else(|error| panic!("{error}: {statements}"));
        name
    }
}

/// The catalogue as this session sees it.
pub(crate) fn catalogue(client: &mut Client) -> Catalogue {
    let mut builder = Catalogue::builder();
    for row in rows(client, CATALOGUE_QUERY) {
        let columns: Vec<_> = (0..row.len()).map(|at| row.get(at).map(str::as_bytes)).collect();
        builder.row(&columns).expect("a row of the query");
    }
    builder.finish().expect("all rows came")
}

/// The rows of a statement that must not fail.
pub(crate) fn rows(client: &mut Client, statement: &str) -> Vec<SimpleQueryRow> {
    let messages = client.simple_query(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    let row = |message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    };
    messages.into_iter().filter_map(row).collect()
}

/// The rows as text, in an order of their own.
pub(crate) fn sorted(rows: &[SimpleQueryRow]) -> Vec<Vec<Option<String>>> {
    let line = |row: &SimpleQueryRow| (0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect();
    let mut lines: Vec<Vec<_>> = rows.iter().map(line).collect();
    lines.sort();
    lines
}

/// One column of text.
pub(crate) fn column(client: &mut Client, statement: &str) -> Vec<String> {
    rows(client, statement).iter().map(|row| row.get(0).unwrap_or_default().to_owned()).collect()
}
