//! Which protocol a database speaks, and what connection settings have by it.

use std::fmt;

/// Which protocol a database speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// PostgreSQL's.
    #[default]
    Postgres,
    /// That of MySQL and MariaDB.
    Mysql,
}

/// Schemes of URLs before an optional `+driver`: libpq's two and those of Django, dj-database-url, django-environ and
/// Ecto; those of MySQL's and MariaDB's own clients, and of Rails, ODBC's bridges and `mysql2` of Ruby and Node.
const SCHEMES: [(&str, Protocol); 10] = [
    ("postgres", Protocol::Postgres),
    ("postgresql", Protocol::Postgres),
    ("postgis", Protocol::Postgres),
    ("pgsql", Protocol::Postgres),
    ("psql", Protocol::Postgres),
    ("ecto", Protocol::Postgres),
    ("mysql", Protocol::Mysql),
    ("mariadb", Protocol::Mysql),
    ("mysql2", Protocol::Mysql),
    ("mysqlgis", Protocol::Mysql),
];
/// Names within JDBC URLs.
const OF_JDBC: [(&str, Protocol); 3] =
    [(":postgresql:", Protocol::Postgres), (":mysql:", Protocol::Mysql), (":mariadb:", Protocol::Mysql)];

impl Protocol {
    /// All of them.
    pub(crate) const ALL: [Self; 2] = [Self::Postgres, Self::Mysql];

    /// The port where its servers listen if nobody says otherwise.
    pub const fn port(self) -> u16 {
        match self {
            Self::Postgres => 5432,
            Self::Mysql => 3306,
        }
    }

    /// What the text before `://` means.
    pub(crate) fn of_scheme(scheme: &str) -> Option<Self> {
        // Another library's name may stand before it: `r2dbc:pool:postgresql://`.
        let own = scheme.rsplit(':').next().unwrap_or(scheme);
        let own = own.split('+').next().unwrap_or(own);
        SCHEMES.iter().find(|(name, _)| *name == own).map(|(_, protocol)| *protocol)
    }

    /// What a JDBC URL means, and the length of what stands before its server; a wrapper may stand between
    /// (`jdbc:p6spy:postgresql:`).
    pub(crate) fn of_jdbc(url: &str) -> Option<(Self, usize)> {
        let found = OF_JDBC.iter().filter_map(|(name, protocol)| {
            let position = url.find(name)?;
            Some((*protocol, position + name.len()))
        });
        found.min_by_key(|(_, end)| *end)
    }

    /// Words in variables' names that mean it.
    pub(crate) fn words(self) -> &'static [&'static str] {
        match self {
            Self::Postgres => &["PG", "POSTGRES"],
            Self::Mysql => &["MYSQL", "MARIADB"],
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Postgres => "PostgreSQL",
            Self::Mysql => "MySQL",
        })
    }
}
