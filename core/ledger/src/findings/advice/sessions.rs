//! Connections, transactions and prepared statements.

use crate::Driver;

pub(super) fn transaction(driver: Driver) -> &'static str {
    match driver {
        Driver::Django => "leave single statements outside atomic(): Django is in autocommit by default",
        Driver::SqlAlchemy => "for reads use an engine with isolation_level=\"AUTOCOMMIT\"",
        Driver::Hibernate | Driver::Pgjdbc => {
            "setAutoCommit(true) for single statements; pgjdbc sends BEGIN with the first statement, COMMIT cannot travel with the last"
        }
        Driver::Psycopg2 => "connection.autocommit = True for single statements",
        Driver::Psycopg3 => {
            "autocommit=True for single statements, or `with conn.pipeline():` around the transaction"
        }
        Driver::Asyncpg => "leave single statements outside connection.transaction()",
        Driver::Pgx => {
            "leave single statements outside Begin(), or queue begin, statements and commit in one pgx.Batch"
        }
        Driver::LibPq => "leave single statements outside db.Begin()",
        Driver::NodePg => "leave single statements outside BEGIN/COMMIT",
        _ => "leave single statements to autocommit, or pipeline BEGIN and COMMIT with them",
    }
}

pub(super) fn prepare(driver: Driver) -> &'static str {
    match driver {
        Driver::LibPq => {
            "db.Prepare() once and reuse the *sql.Stmt; or binary_parameters=yes in the URL, which needs one trip; or move to pgx"
        }
        Driver::Pgx => {
            "keep the default QueryExecModeCacheStatement; behind a pooler without prepared statements use QueryExecModeExec"
        }
        Driver::Asyncpg => {
            "do not set statement_cache_size=0, and keep the connection: the cache is per connection"
        }
        Driver::Psycopg3 => {
            "do not deallocate between runs, and keep the connection: prepared statements are per connection"
        }
        Driver::Pgjdbc | Driver::Hibernate => {
            "keep the PreparedStatement or the connection, and do not set prepareThreshold=-1"
        }
        Driver::NodePg => "give the query a name, so that it is prepared once per connection",
        Driver::TokioPostgres => "keep what prepare() returned, or use query_typed(), which needs one trip",
        _ => "prepare once per connection and run it many times, or send text and parameters in one trip",
    }
}

pub(super) fn connection(driver: Driver) -> &'static str {
    match driver {
        Driver::Django => "set CONN_MAX_AGE, or OPTIONS {\"pool\": True} with psycopg 3",
        Driver::SqlAlchemy => "create one engine per process and keep its pool (not NullPool)",
        Driver::Hibernate | Driver::Pgjdbc => "use a pool such as HikariCP",
        Driver::Psycopg2 => "keep one connection, or psycopg2.pool.ThreadedConnectionPool",
        Driver::Psycopg3 => "keep one connection, or psycopg_pool.ConnectionPool",
        Driver::Asyncpg => "use asyncpg.create_pool()",
        Driver::Pgx => "use pgxpool.New() once per process",
        Driver::LibPq => "open one sql.DB per process and let it keep connections (SetMaxIdleConns)",
        Driver::NodePg => "use one pg.Pool per process",
        Driver::Psql => "send the statements to one psql: a file with -f, or several -c",
        _ => "keep one connection, or use a pool",
    }
}

pub(super) fn chatter(driver: Driver) -> &'static str {
    match driver {
        Driver::Django => {
            "CONN_HEALTH_CHECKS pings once per request: leave it False on a reliable path; settings go into OPTIONS {\"options\": \"-c ...\"}"
        }
        Driver::SqlAlchemy => {
            "pool_pre_ping=True pings at each checkout: prefer pool_recycle=...; settings go into connect_args"
        }
        Driver::Psycopg2 => {
            "do not send SELECT 1 before each use; settings go into connect(options=\"-c search_path=app\")"
        }
        Driver::Psycopg3 => {
            "ConnectionPool(check=...) pings at each checkout: leave it out; settings go into the conninfo, options='-c ...'"
        }
        Driver::Asyncpg => {
            "the pool resets at each release: create_pool(reset=...) can leave that out where no session state is left; settings go into server_settings, and type look-ups are made once per connection, so keep it"
        }
        Driver::Pgjdbc | Driver::Hibernate => {
            "HikariCP pings what idled for 500 ms: raise com.zaxxer.hikari.aliveBypassWindowMs and set keepaliveTime; settings go into the URL (currentSchema, options) instead of setSchema() per use"
        }
        Driver::Pgx => {
            "do not Ping() before each use: the pool pings what idled for a second; settings go into RuntimeParams of the config"
        }
        Driver::LibPq => {
            "do not db.Ping() before each use: database/sql tries another connection where one turns out to be bad; settings go into the URL (search_path=app)"
        }
        Driver::NodePg => {
            "do not send SELECT 1 before each use; settings go into the Pool's options: \"-c search_path=app\""
        }
        Driver::TokioPostgres => {
            "do not send an empty query before each use; settings go into Config::options(\"-c search_path=app\")"
        }
        _ => {
            "set options when the connection opens, ping only after long idling, and keep what the catalogue said"
        }
    }
}

pub(super) fn rollback_of_read(driver: Driver) -> &'static str {
    match driver {
        Driver::Django => "leave reads outside atomic(): Django is in autocommit by default",
        Driver::SqlAlchemy => {
            "read by an engine with isolation_level=\"AUTOCOMMIT\": handing the connection back then has nothing to roll back"
        }
        Driver::Psycopg2 => "connection.autocommit = True for connections that only read",
        Driver::Psycopg3 => {
            "autocommit=True for connections that only read; for a pool, kwargs={\"autocommit\": True}"
        }
        Driver::Asyncpg => "read outside connection.transaction()",
        Driver::Pgjdbc | Driver::Hibernate => {
            "setAutoCommit(true) for reads; HikariCP with autoCommit=false rolls back at each close() what was left open"
        }
        Driver::Pgx => "read on the pool itself, outside Begin() and its deferred Rollback()",
        Driver::LibPq => "read by db.Query(), outside Begin() and its deferred Rollback()",
        Driver::NodePg => "read by pool.query(), outside BEGIN",
        Driver::TokioPostgres => "read on the Client, outside transaction()",
        _ => "read in autocommit, so that handing the connection back has nothing to roll back",
    }
}
