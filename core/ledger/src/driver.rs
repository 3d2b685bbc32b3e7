use serde::Serialize;

/// A client driver or ORM, as far as its traffic tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Driver {
    /// Not recognised.
    #[default]
    Unknown,
    /// PostgreSQL's own terminal.
    Psql,
    /// PostgreSQL's benchmark.
    Pgbench,
    /// Some driver over libpq.
    Libpq,
    /// psycopg2.
    Psycopg2,
    /// psycopg 3.
    Psycopg3,
    /// asyncpg.
    Asyncpg,
    /// SQLAlchemy, over any driver.
    SqlAlchemy,
    /// Django's ORM.
    Django,
    /// pgjdbc.
    Pgjdbc,
    /// Hibernate over pgjdbc.
    Hibernate,
    /// pgx.
    Pgx,
    /// lib/pq.
    LibPq,
    /// node-postgres.
    NodePg,
    /// tokio-postgres, and postgres over it.
    TokioPostgres,
}

impl Driver {
    /// All drivers that can be told apart, and the unknown one first.
    pub const ALL: [Self; 15] = [
        Self::Unknown,
        Self::Psql,
        Self::Pgbench,
        Self::Libpq,
        Self::Psycopg2,
        Self::Psycopg3,
        Self::Asyncpg,
        Self::SqlAlchemy,
        Self::Django,
        Self::Pgjdbc,
        Self::Hibernate,
        Self::Pgx,
        Self::LibPq,
        Self::NodePg,
        Self::TokioPostgres,
    ];

    /// The name that its users know.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown driver",
            Self::Psql => "psql",
            Self::Pgbench => "pgbench",
            Self::Libpq => "a libpq driver",
            Self::Psycopg2 => "psycopg2",
            Self::Psycopg3 => "psycopg 3",
            Self::Asyncpg => "asyncpg",
            Self::SqlAlchemy => "SQLAlchemy",
            Self::Django => "Django",
            Self::Pgjdbc => "pgjdbc",
            Self::Hibernate => "Hibernate",
            Self::Pgx => "pgx",
            Self::LibPq => "lib/pq",
            Self::NodePg => "node-postgres",
            Self::TokioPostgres => "tokio-postgres",
        }
    }

    /// An ORM hides the driver beneath it, because its fixes are the ones to name.
    fn is_orm(self) -> bool {
        matches!(self, Self::SqlAlchemy | Self::Django | Self::Hibernate)
    }
}

/// What is known of one connection's client, gathered as it comes.
///
/// Drivers over libpq look alike. Where the program is known to be Python's, one that never sends parameters apart
/// from the text is taken for psycopg2, one that does for psycopg 3.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recogniser {
    driver: Driver,
    is_libpq: bool,
}

/// Whether a command line runs Python, as far as its words tell.
pub(crate) fn is_python(command: &[u8]) -> bool {
    const TOOLS: [&[u8]; 9] = [
        b"pytest",
        b"gunicorn",
        b"uvicorn",
        b"celery",
        b"flask",
        b"django-admin",
        b"ipython",
        b"tox",
        b"nox",
    ];
    command.split(|byte| *byte == b' ').any(|word| {
        let name = word.rsplit(|byte| *byte == b'/').next().unwrap_or(word);
        name.starts_with(b"python") || name.ends_with(b".py") || TOOLS.contains(&name)
    })
}

impl Recogniser {
    /// Reads the startup parameters; `asked_encryption` tells whether the client asked for TLS or GSSAPI before.
    pub(crate) fn startup(&mut self, parameters: &[(&[u8], &[u8])], asked_encryption: bool) {
        let get = |name: &[u8]| {
            parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
        };
        let encoding = get(b"client_encoding");
        let date_style = get(b"datestyle").is_some();
        self.driver = match get(b"application_name") {
            Some(b"psql") => Driver::Psql,
            Some(b"pgbench") => Driver::Pgbench,
            Some(b"PostgreSQL JDBC Driver") => Driver::Pgjdbc,
            _ if encoding == Some(b"'utf-8'") => Driver::Asyncpg,
            _ if date_style && get(b"timezone").is_some() => Driver::Pgjdbc,
            _ if date_style && get(b"extra_float_digits") == Some(b"2") => Driver::LibPq,
            _ if parameters.first() == Some(&(b"client_encoding", b"UTF8")) => Driver::TokioPostgres,
            _ if encoding == Some(b"UTF8") && !asked_encryption => Driver::NodePg,
            _ => Driver::Unknown,
        };
        self.is_libpq =
            self.driver == Driver::Unknown && parameters.first().is_some_and(|(name, _)| *name == b"user");
    }

    /// An earlier connection of the same user to the same database turned out to be an ORM's.
    pub(crate) fn inherit(&mut self, orm: Driver) {
        self.driver = orm;
    }

    /// Reads the name of a prepared statement.
    pub(crate) fn statement_name(&mut self, name: &[u8]) {
        let begins = |prefix: &str| name.starts_with(prefix.as_bytes());
        let known = match name {
            _ if begins("_pg3_") => Driver::Psycopg3,
            _ if begins("__asyncpg_") => Driver::Asyncpg,
            _ if begins("stmtcache_") || begins("stmt_") || begins("lrupsc_") => Driver::Pgx,
            [b'S', b'_', digit, ..] if digit.is_ascii_digit() => Driver::Pgjdbc,
            _ => return,
        };
        if !self.driver.is_orm() {
            self.driver = known;
            self.is_libpq = known == Driver::Psycopg3;
        }
    }

    /// Reads a template that was run, and whether it came with its parameters apart.
    pub(crate) fn statement(&mut self, text: &str, grouped: bool, is_python: bool) {
        if self.driver.is_orm() {
            return;
        }
        if let Some(orm) = orm_of(text) {
            self.driver = orm;
        } else if self.is_libpq {
            self.driver = match (self.driver, is_python) {
                (Driver::Unknown, false) => Driver::Libpq,
                (Driver::Unknown, true) if !grouped => Driver::Psycopg2,
                (Driver::Unknown | Driver::Psycopg2, true) if grouped => Driver::Psycopg3,
                (known, _) => known,
            };
        }
    }

    /// Who it seems to be.
    pub(crate) fn driver(&self) -> Driver {
        self.driver
    }

    /// Who it seems to be, if that is an ORM.
    pub(crate) fn orm(&self) -> Option<Driver> {
        self.driver.is_orm().then_some(self.driver)
    }
}

/// The ORM that writes statements like this one.
fn orm_of(text: &str) -> Option<Driver> {
    let hibernate_alias = |text: &str| text.starts_with("select ") && text.contains("1_0.");
    if hibernate_alias(text) {
        Some(Driver::Hibernate)
    } else if text.starts_with("SELECT set_config($")
        || text.contains("_django_curs_")
        || text.starts_with("SELECT \"") && text.contains("\".\"")
    {
        Some(Driver::Django)
    } else if text == "select pg_catalog.version()" {
        Some(Driver::SqlAlchemy)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recognised(parameters: &[(&[u8], &[u8])]) -> Driver {
        let mut recogniser = Recogniser::default();
        recogniser.startup(parameters, false);
        recogniser.driver()
    }

    #[test]
    fn tokio_postgres_is_told_from_node_postgres_by_what_comes_first() {
        let user: (&[u8], &[u8]) = (b"user", b"ada");
        let encoding: (&[u8], &[u8]) = (b"client_encoding", b"UTF8");
        assert_eq!(recognised(&[encoding, user]), Driver::TokioPostgres);
        assert_eq!(recognised(&[user, encoding]), Driver::NodePg);
    }
}
