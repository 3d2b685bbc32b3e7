//! The files of `data/`, by key. Their order is that of lists in reports; the unknown driver comes first.

macro_rules! files {
    ($($key:literal)*) => { [$(($key, include_str!(concat!("data/", $key, ".toml")))),*] };
}

/// Key and text of each.
pub(super) const FILES: [(&str, &str); 40] = files! {
    "unknown"
    "psql"
    "pgbench"
    "libpq"
    "psycopg2"
    "psycopg3"
    "asyncpg"
    "sql-alchemy"
    "django"
    "pgjdbc"
    "hibernate"
    "pgx"
    "lib-pq"
    "node-pg"
    "tokio-postgres"
    "active-record"
    "bun"
    "dbd-pg"
    "dbix-class"
    "drizzle"
    "eloquent"
    "gorm"
    "jooq"
    "mikro-orm"
    "objection"
    "pdo"
    "peewee"
    "piccolo"
    "pony"
    "postgres-js"
    "prisma"
    "sequelize"
    "sqlx"
    "tortoise"
    "tryton"
    "typeorm"
    "mysql"
    "pymysql"
    "mysql-connector"
    "mysql2-node"
};
