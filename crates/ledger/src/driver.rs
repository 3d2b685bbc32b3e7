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
    /// psycopg2, or another program over libpq's simple protocol.
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
}

impl Driver {
    /// The name that its users know.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown driver",
            Self::Psql => "psql",
            Self::Pgbench => "pgbench",
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
        }
    }

    /// An ORM hides the driver beneath it, because its fixes are the ones to name.
    fn is_orm(self) -> bool {
        matches!(self, Self::SqlAlchemy | Self::Django | Self::Hibernate)
    }
}

/// What is known of one connection's client, gathered as it comes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recogniser {
    driver: Driver,
    startup: Startup,
}

#[derive(Debug, Clone, Copy, Default)]
struct Startup {
    client_encoding: bool,
    extra_float_digits: Option<u8>,
    date_style: bool,
}

impl Recogniser {
    /// Reads the startup parameters.
    pub(crate) fn startup(&mut self, parameters: &[(&[u8], &[u8])]) {
        let get = |name: &[u8]| {
            parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
        };
        self.startup = Startup {
            client_encoding: get(b"client_encoding").is_some(),
            extra_float_digits: get(b"extra_float_digits").and_then(|value| value.first().copied()),
            date_style: get(b"datestyle").is_some(),
        };
        self.driver = match get(b"application_name") {
            Some(b"psql") => Driver::Psql,
            Some(b"pgbench") => Driver::Pgbench,
            Some(b"PostgreSQL JDBC Driver") => Driver::Pgjdbc,
            _ if self.startup.date_style && get(b"TimeZone").is_some() => Driver::Pgjdbc,
            _ if self.startup.date_style && self.startup.extra_float_digits == Some(b'2') => Driver::LibPq,
            _ => Driver::Unknown,
        };
    }

    /// Reads the name of a prepared statement.
    pub(crate) fn statement_name(&mut self, name: &[u8]) {
        let known = match name {
            [b'_', b'p', b'g', b'3', b'_', ..] => Driver::Psycopg3,
            name if name.starts_with(b"__asyncpg_") => Driver::Asyncpg,
            name if name.starts_with(b"stmtcache_")
                || name.starts_with(b"stmt_")
                || name.starts_with(b"lrupsc_") =>
            {
                Driver::Pgx
            }
            [b'S', b'_', digit, ..] if digit.is_ascii_digit() => Driver::Pgjdbc,
            _ => return,
        };
        self.set_driver(known);
    }

    /// Reads a template that was run, and whether it came with the extended protocol.
    pub(crate) fn statement(&mut self, text: &str, grouped: bool) {
        if self.driver.is_orm() {
            return;
        }
        if text.contains("e1_0.id") || text.contains("1_0.") && text.starts_with("select ") {
            self.driver = Driver::Hibernate;
        } else if text.contains("set_config('TimeZone'")
            || text.starts_with("SELECT \"") && text.contains("\".\"")
        {
            self.driver = Driver::Django;
        } else if text.starts_with("select pg_catalog.version()")
            || text.contains(" AS anon_1")
            || text.contains("_1, ") && text.contains(" AS ") && text.contains("\nFROM ")
        {
            self.driver = Driver::SqlAlchemy;
        } else if self.driver == Driver::Unknown {
            self.driver = self.by_protocol(grouped);
        }
    }

    fn by_protocol(&self, grouped: bool) -> Driver {
        match (grouped, self.startup.client_encoding) {
            (false, false) => Driver::Psycopg2,
            (true, true) if self.startup.extra_float_digits.is_none() => Driver::NodePg,
            _ => Driver::Unknown,
        }
    }

    /// Who it seems to be.
    pub(crate) fn driver(&self) -> Driver {
        self.driver
    }

    fn set_driver(&mut self, known: Driver) {
        if !self.driver.is_orm() {
            self.driver = known;
        }
    }
}
