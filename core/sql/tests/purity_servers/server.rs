//! Real PostgreSQL servers, and what they say of their catalogues.

use std::cell::RefCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use onetrip_pgserver::PgServer;
use onetrip_sql::purity::{Catalogue, Findings, Impure, Needs, Pure, Survey, Wanted};
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

/// What is known of a database, to a session with a search path; what is not is looked up.
pub(crate) struct Known {
    catalogue: RefCell<Catalogue<()>>,
    client: RefCell<Client>,
    pub(crate) search_path: Vec<Box<str>>,
}

impl Known {
    pub(crate) fn check(&self, needs: &Needs) -> Result<Pure, Impure> {
        let mut catalogue = self.catalogue.borrow_mut();
        let wanted = catalogue.wanted(needs, |()| true);
        if !wanted.is_empty() {
            catalogue.absorb(survey(&mut self.client.borrow_mut(), wanted), ());
        }
        assert!(catalogue.wanted(needs, |()| true).is_empty(), "all that is asked for is found out");
        catalogue.check(needs, &self.search_path)
    }
}

/// What a session knows, looked up by another one: nothing of it depends on the session but the search path.
pub(crate) fn catalogue(client: &mut Client) -> Known {
    let path = column(client, "SELECT unnest(pg_catalog.current_schemas(true))");
    let place = rows(client, "SELECT pg_catalog.inet_server_port(), pg_catalog.current_database()");
    let (port, dbname) = (place[0].get(0).expect("a port"), place[0].get(1).expect("a database"));
    let settings = format!("host=127.0.0.1 port={port} user=onetrip dbname={dbname}");
    let own = Client::connect(&settings, NoTls).unwrap_or_else(|error| panic!("{dbname}: {error}"));
    Known {
        catalogue: RefCell::default(),
        client: RefCell::new(own),
        search_path: path.into_iter().map(Box::from).collect(),
    }
}

/// Asks a server until everything that is wanted is known.
pub(crate) fn survey(client: &mut Client, wanted: Wanted) -> Findings {
    let mut survey = Survey::new(wanted);
    loop {
        let questions = survey.questions();
        if questions.is_empty() {
            return survey.finish().expect("all rows came");
        }
        for question in questions {
            let parameter = question.parameter.map(|text| format!("'{}'", text.replace('\'', "''")));
            let sql = question.lookup.sql().replace("$1", parameter.as_deref().unwrap_or("$1"));
            for row in rows(client, &sql) {
                let columns: Vec<_> = (0..row.len()).map(|at| row.get(at).map(str::as_bytes)).collect();
                survey.row(question.lookup, &columns).unwrap_or_else(|error| panic!("{error}: {sql}"));
            }
        }
    }
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
