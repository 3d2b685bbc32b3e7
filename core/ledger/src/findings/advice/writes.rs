//! Writes, and the reads that are there for them.

use crate::Driver;

pub(super) fn batch(driver: Driver) -> &'static str {
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

pub(super) fn commit(driver: Driver) -> &'static str {
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

pub(super) fn read_before_write(driver: Driver) -> &'static str {
    match driver {
        Driver::Django => "change the row at once: filter(pk=pk).update(balance=F(\"balance\") + amount)",
        Driver::SqlAlchemy => {
            "change the row at once: update(T).where(T.id == id).values(n=T.n + 1).returning(T.n)"
        }
        Driver::Hibernate => {
            "change the row at once: createMutationQuery(\"update T set n = n + 1 where id = :id\"), with no find() before it"
        }
        _ => {
            "change the row at once: UPDATE ... SET n = n + 1 WHERE id = ... RETURNING n; conditions go into its WHERE"
        }
    }
}

pub(super) fn sequence_trip(driver: Driver) -> &'static str {
    match driver {
        Driver::Django => "leave the key to the database: BigAutoField reads it by INSERT ... RETURNING",
        Driver::SqlAlchemy => {
            "leave the key to the database: an Identity() column, and insert(T).returning(T.id) or session.add_all()"
        }
        Driver::Hibernate => {
            "take many keys at once: @SequenceGenerator(allocationSize = 50) over a sequence with INCREMENT BY 50"
        }
        Driver::Pgjdbc => {
            "leave the key to the column's default: prepareStatement(sql, new String[] {\"id\"}) and getGeneratedKeys()"
        }
        Driver::LibPq => {
            "leave the key to the column's default: QueryRow(\"INSERT ... RETURNING id\").Scan(&id); LastInsertId() is not supported"
        }
        _ => {
            "let the column take its default and read the key by INSERT ... RETURNING, or take many keys at once: SELECT nextval(...) FROM generate_series(1, 50)"
        }
    }
}

pub(super) fn exists_then_insert(driver: Driver) -> &'static str {
    match driver {
        Driver::Django => {
            "let the database decide: bulk_create(rows, ignore_conflicts=True), or update_conflicts=True with unique_fields; get_or_create() asks first"
        }
        Driver::SqlAlchemy => {
            "let the database decide: sqlalchemy.dialects.postgresql.insert(T).on_conflict_do_nothing() or on_conflict_do_update()"
        }
        Driver::Hibernate => {
            "persist() what is known to be new, merge() asks first; else HQL `insert into T ... on conflict do nothing`, from Hibernate 6.5"
        }
        _ => {
            "let the database decide: INSERT ... ON CONFLICT DO NOTHING or DO UPDATE, with RETURNING for the key"
        }
    }
}
