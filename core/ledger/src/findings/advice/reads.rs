//! Reads that one question could answer.

use crate::Driver;

pub(super) fn row_loop(driver: Driver) -> &'static str {
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

pub(super) fn repeat(driver: Driver) -> &'static str {
    match driver {
        Driver::Django => "keep the object: pass it on, or use select_related(); Django has no identity map",
        Driver::SqlAlchemy => "use session.get(), which answers from the identity map, or keep the object",
        Driver::Hibernate => "use find() by id, which answers from the session, or keep the object",
        _ => "ask once and keep the answer for as long as the transaction or the request lasts",
    }
}

pub(super) fn fetch(driver: Driver) -> &'static str {
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

pub(super) fn one_per_value(driver: Driver) -> &'static str {
    match driver {
        Driver::Django => "ask once for all values: Model.objects.in_bulk(ids), or filter(pk__in=ids)",
        Driver::SqlAlchemy => "ask once for all values: session.scalars(select(T).where(T.id.in_(ids)))",
        Driver::Hibernate => {
            "ask once for all values: session.byMultipleIds(T.class).multiLoad(ids), or where id in (:ids)"
        }
        Driver::Psycopg2 | Driver::Psycopg3 => "ask once for all values: WHERE id = ANY(%s) with a list",
        Driver::Asyncpg | Driver::Pgx | Driver::NodePg => {
            "ask once for all values: WHERE id = ANY($1) with an array"
        }
        Driver::LibPq => "ask once for all values: WHERE id = ANY($1) with pq.Array(ids)",
        Driver::TokioPostgres => "ask once for all values: WHERE id = ANY($1) with a Vec or slice",
        Driver::Pgjdbc => "ask once for all values: WHERE id = ANY(?) with connection.createArrayOf()",
        _ => "ask once for all values: WHERE id = ANY(array of the values)",
    }
}

pub(super) fn sequence(driver: Driver) -> &'static str {
    match driver {
        Driver::Django => {
            "ask in one query: select_related() for a parent, annotate() with aggregates or Subquery() for the rest"
        }
        Driver::SqlAlchemy => {
            "ask in one statement: select() of the others' scalar_subquery(), or a join; the engine cannot pipeline"
        }
        Driver::Hibernate => {
            "ask in one query: JOIN FETCH, or a select list of entities, sub-queries and aggregates"
        }
        Driver::Psycopg2 => {
            "ask in one statement with joins or sub-queries; psycopg2 cannot pipeline, psycopg 3 can"
        }
        Driver::Psycopg3 => "send them together: `with conn.pipeline():` around all of them, then fetch",
        Driver::Asyncpg => {
            "ask in one statement with joins or sub-queries; an asyncpg connection cannot pipeline"
        }
        Driver::Pgjdbc => {
            "ask in one statement with joins or sub-queries, or put all into one execute(), separated by semicolons, and use getMoreResults()"
        }
        Driver::Pgx => "queue them in one pgx.Batch and SendBatch()",
        Driver::LibPq => {
            "ask in one statement with joins or sub-queries; lib/pq cannot pipeline, pgx's Batch can"
        }
        Driver::NodePg => {
            "ask in one statement with joins or sub-queries, or Promise.all() on a Client with pipeline: true, where your pg has it"
        }
        Driver::TokioPostgres => {
            "poll the queries together: tokio::try_join!() of several client.query() sends them in one go"
        }
        _ => "send the statements together: a pipeline or batch, or one statement with joins",
    }
}

pub(super) fn large_object(driver: Driver) -> &'static str {
    match driver {
        Driver::Django => {
            "read the whole object in one trip: SELECT lo_get(oid); or keep it in a BinaryField, which is bytea"
        }
        Driver::SqlAlchemy => {
            "read the whole object in one trip: select(func.lo_get(T.content)); or keep it in a LargeBinary, which is bytea"
        }
        Driver::Hibernate => {
            "read the whole object in one trip: a native SELECT lo_get(content); or map byte[] without @Lob, which is bytea"
        }
        Driver::Psycopg2 => {
            "read the whole object in one trip: SELECT lo_get(%s) instead of connection.lobject(); or keep it in a bytea column"
        }
        Driver::Pgjdbc => {
            "read the whole object in one trip: SELECT lo_get(content) and getBytes(), instead of the LargeObject API or getBlob()"
        }
        Driver::Pgx => {
            "read the whole object in one trip: SELECT lo_get($1) scanned into []byte, instead of tx.LargeObjects()"
        }
        _ => "read the whole object in one trip: SELECT lo_get(oid), or a bytea column",
    }
}
