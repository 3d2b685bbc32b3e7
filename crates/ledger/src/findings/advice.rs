use super::Code;
use crate::Driver;

/// What to change, named for the driver or ORM.
pub fn advice(code: Code, driver: Driver) -> &'static str {
    match code {
        Code::Loop => loop_advice(driver),
        Code::RowByRow => batch_advice(driver),
        Code::CommitPerRow => commit_advice(driver),
        Code::TinyFetch => fetch_advice(driver),
        Code::Repeated => repeat_advice(driver),
        Code::TransactionAlone => transaction_advice(driver),
        Code::PreparePerRun => prepare_advice(driver),
        Code::ConnectionPerQuery => connection_advice(driver),
        Code::OnePerValue => "ask once for all values: WHERE id = ANY(array of the values)",
        Code::LobChatter => "read the whole object in one trip: SELECT lo_get(oid), or a bytea column",
        Code::SessionChatter => {
            "set options when the connection opens, ping only after long idling, and keep what the catalogue said"
        }
        Code::Sequence => "send the statements together: a pipeline or batch, or one statement with joins",
        Code::ReadBeforeWrite => "change the row at once: UPDATE ... SET ... WHERE ... RETURNING",
        Code::SequenceTrip => {
            "let the column take its default and read the key by INSERT ... RETURNING, or take many keys at once"
        }
        Code::ExistsThenInsert => "let the database decide: INSERT ... ON CONFLICT DO NOTHING or DO UPDATE",
        Code::RollbackOfRead => {
            "read in autocommit, so that handing the connection back has nothing to roll back"
        }
    }
}

fn loop_advice(driver: Driver) -> &'static str {
    match driver {
        Driver::Django => {
            "load the children with the list: select_related() for a foreign key, prefetch_related() for a set"
        }
        Driver::SqlAlchemy => {
            "load the children with the list: options(selectinload(Parent.children)) or joinedload()"
        }
        Driver::Hibernate => {
            "load the children with the list: JOIN FETCH in the query, or @BatchSize on the association"
        }
        Driver::Psycopg2 | Driver::Psycopg3 => {
            "ask once for all rows: WHERE id = ANY(%s) with a list, or a JOIN with the first query"
        }
        Driver::Asyncpg | Driver::Pgx | Driver::NodePg => {
            "ask once for all rows: WHERE id = ANY($1) with an array, or a JOIN with the first query"
        }
        Driver::LibPq => {
            "ask once for all rows: WHERE id = ANY($1) with pq.Array(ids), or a JOIN with the first query"
        }
        Driver::TokioPostgres => {
            "ask once for all rows: WHERE id = ANY($1) with a Vec or slice, or a JOIN with the first query"
        }
        Driver::Pgjdbc => {
            "ask once for all rows: WHERE id = ANY(?) with connection.createArrayOf(), or a JOIN with the first query"
        }
        _ => "ask once for all rows: WHERE id = ANY(array of the ids), or a JOIN with the first query",
    }
}

fn batch_advice(driver: Driver) -> &'static str {
    match driver {
        Driver::Django => {
            "write many rows at once: Model.objects.bulk_create(rows) or bulk_update(rows, fields)"
        }
        Driver::SqlAlchemy => {
            "write many rows at once: session.add_all(rows) with one flush, or session.execute(insert(T), rows)"
        }
        Driver::Hibernate => {
            "set hibernate.jdbc.batch_size=50 and hibernate.order_inserts=true, and reWriteBatchedInserts=true in the URL"
        }
        Driver::Psycopg2 => {
            "psycopg2's executemany() is a loop: use psycopg2.extras.execute_values(), or COPY by copy_expert()"
        }
        Driver::Psycopg3 => {
            "use cursor.executemany(), which pipelines, or `with cursor.copy(...)`; or wrap the loop in `with conn.pipeline():`"
        }
        Driver::Asyncpg => "use connection.executemany() or copy_records_to_table()",
        Driver::Pgjdbc => {
            "use addBatch() and executeBatch(), with reWriteBatchedInserts=true in the URL for inserts"
        }
        Driver::Pgx => "queue the rows in a pgx.Batch and SendBatch(), or use CopyFrom()",
        Driver::LibPq => {
            "insert many rows in one statement (INSERT ... SELECT FROM unnest($1, $2)), or use pq.CopyIn()"
        }
        Driver::NodePg => {
            "insert many rows in one statement: INSERT ... SELECT * FROM unnest($1::int[], $2::text[])"
        }
        _ => "write many rows in one statement or one batch: multi-row VALUES, unnest() of arrays, or COPY",
    }
}

fn commit_advice(driver: Driver) -> &'static str {
    match driver {
        Driver::Django => "put the loop into `with transaction.atomic():` and write with bulk_create()",
        Driver::SqlAlchemy => "commit once after the loop, and add the rows with session.add_all()",
        Driver::Hibernate => "make the loop one transaction and set hibernate.jdbc.batch_size",
        Driver::Psycopg2 => {
            "make it one transaction (autocommit off, commit after the loop) and one statement: execute_values()"
        }
        Driver::Psycopg3 => "put it into `with conn.transaction():` and write with executemany()",
        Driver::Asyncpg => "put it into `async with connection.transaction():` and write with executemany()",
        Driver::Pgjdbc => "setAutoCommit(false), addBatch() per row, executeBatch() and one commit()",
        Driver::Pgx => {
            "queue the rows in one pgx.Batch inside one transaction: pool.BeginTx, SendBatch, Commit"
        }
        Driver::LibPq => "use one transaction: db.Begin(), one prepared or multi-row INSERT, tx.Commit()",
        Driver::NodePg => "BEGIN once, write all rows in one statement with unnest(), COMMIT once",
        _ => {
            "write all rows in one transaction, and many rows per statement: each commit also waits for the disk"
        }
    }
}

fn fetch_advice(driver: Driver) -> &'static str {
    match driver {
        Driver::Django => "raise iterator(chunk_size=...) to 2000, its default, or more",
        Driver::SqlAlchemy => "raise execution_options(yield_per=...) to 1000 or more",
        Driver::Hibernate => "raise setFetchSize() or hibernate.jdbc.fetch_size to 1000",
        Driver::Psycopg2 | Driver::Psycopg3 => "raise cursor.itersize (or fetchmany's size) to 1000 or more",
        Driver::Asyncpg => "raise cursor(prefetch=...) to 1000 or more, or fetch() the whole result",
        Driver::Pgjdbc => "raise setFetchSize() or defaultRowFetchSize to 1000, or set adaptiveFetch=true",
        Driver::NodePg => "read more rows per cursor.read(), or set batchSize of pg-query-stream to 1000",
        _ => "fetch 1000 rows or more at a time",
    }
}

fn repeat_advice(driver: Driver) -> &'static str {
    match driver {
        Driver::Django => "keep the object: pass it on, or use select_related(); Django has no identity map",
        Driver::SqlAlchemy => "use session.get(), which answers from the identity map, or keep the object",
        Driver::Hibernate => "use find() by id, which answers from the session, or keep the object",
        _ => "ask once and keep the answer for as long as the transaction or the request lasts",
    }
}

fn transaction_advice(driver: Driver) -> &'static str {
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

fn prepare_advice(driver: Driver) -> &'static str {
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

fn connection_advice(driver: Driver) -> &'static str {
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
