package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// pgx describes a statement at its first use, then keeps it prepared.
var pgxActs = map[string]act{
	"connect":         pgxConnected(func(context.Context, *pgx.Conn) {}),
	"select_1":        pgxConnected(pgxSelects(1, 1)),
	"select_2":        pgxConnected(pgxSelects(2, 1)),
	"select_6":        pgxConnected(pgxSelects(6, 1)),
	"txn_1":           pgxConnected(pgxInTx(pgxTxSelects(1))),
	"txn_2":           pgxConnected(pgxInTx(pgxTxSelects(2))),
	"txn_empty":       pgxConnected(pgxInTx(func(context.Context, pgx.Tx) {})),
	"nested_txn":      pgxConnected(pgxInTx(pgxNested)),
	"batch_3":         pgxConnected(pgxBatches(1)),
	"batch_3_twice":   pgxConnected(pgxBatches(2)),
	"array_param":     pgxConnected(pgxArray),
	"ping":            pgxConnected(func(ctx context.Context, conn *pgx.Conn) { check(conn.Ping(ctx)) }),
	"pool_checkin":    pgxPoolCheckin,
	"cursor_50_by_10": pgxConnected(pgxInTx(pgxWalk(10, walkRows))),
	"n_plus_one_10":   pgxConnected(pgxInTx(pgxLoop(loopCount))),

	"bad_OT001":          pgxConnected(pgxLoopWithoutTx),
	"fixed_OT001":        pgxConnected(pgxAllBooks),
	"bad_OT002":          pgxConnected(pgxInTx(pgxInsertEach)),
	"bad_OT002_update":   pgxConnected(pgxInTx(pgxUpdateEach)),
	"fixed_OT002":        pgxConnected(pgxInTx(pgxInsertBatch)),
	"fixed_OT002_update": pgxConnected(pgxInTx(pgxUpdateBatch)),
	"bad_OT003":          pgxConnected(pgxInsertEachCommitting),
	"fixed_OT003":        pgxConnected(pgxCopy),
	"bad_OT004":          pgxConnected(pgxInTx(pgxWalk(10, tableRows))),
	"fixed_OT004":        pgxConnected(pgxInTx(pgxWalk(1000, tableRows))),
	"bad_OT005":          pgxConnected(pgxInTx(pgxRepeat(10))),
	"fixed_OT005":        pgxConnected(pgxInTx(pgxRepeat(1))),
	"bad_OT006":          pgxConnected(pgxTenTransactions),
	"fixed_OT006":        pgxConnected(pgxSelects(10, 7)),
	"bad_OT007":          pgxWithMode(pgx.QueryExecModeDescribeExec, pgxSelects(10, 7)),
	"fixed_OT007":        pgxWithMode(pgx.QueryExecModeExec, pgxSelects(10, 7)),
	"fixed_OT007_cache":  pgxConnected(pgxSelects(10, 7)),
	"bad_OT008":          pgxTenConnections,
	"fixed_OT008":        pgxConnected(pgxSelects(10, 7)),
}

type pgxWork func(ctx context.Context, conn *pgx.Conn)
type pgxTxWork func(ctx context.Context, tx pgx.Tx)

func pgxConnected(work pgxWork) act {
	return func(ctx context.Context) {
		conn, err := pgx.Connect(ctx, "")
		check(err)
		defer conn.Close(ctx)
		work(ctx, conn)
	}
}

func pgxWithMode(mode pgx.QueryExecMode, work pgxWork) act {
	return func(ctx context.Context) {
		config, err := pgx.ParseConfig("")
		check(err)
		config.DefaultQueryExecMode = mode
		conn, err := pgx.ConnectConfig(ctx, config)
		check(err)
		defer conn.Close(ctx)
		work(ctx, conn)
	}
}

func pgxInTx(work pgxTxWork) pgxWork {
	return func(ctx context.Context, conn *pgx.Conn) {
		tx, err := conn.Begin(ctx)
		check(err)
		work(ctx, tx)
		check(tx.Commit(ctx))
	}
}

// pgxQuerier is a connection or a transaction.
type pgxQuerier interface {
	Query(ctx context.Context, sql string, args ...interface{}) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...interface{}) pgx.Row
}

func pgxSelect(ctx context.Context, on pgxQuerier, id int) {
	var value string
	check(on.QueryRow(ctx, selectValue, id).Scan(&value))
	expect(value, fmt.Sprintf("value %d", id))
}

// pgxSelects asks for the ids step, 2*step, ... one by one.
func pgxSelects(count, step int) pgxWork {
	return func(ctx context.Context, conn *pgx.Conn) {
		for number := 1; number <= count; number++ {
			pgxSelect(ctx, conn, number*step)
		}
	}
}

func pgxTxSelects(count int) pgxTxWork {
	return func(ctx context.Context, tx pgx.Tx) {
		for number := 1; number <= count; number++ {
			pgxSelect(ctx, tx, number)
		}
	}
}

func pgxNested(ctx context.Context, tx pgx.Tx) {
	nested, err := tx.Begin(ctx)
	check(err)
	pgxSelect(ctx, nested, 1)
	check(nested.Commit(ctx))
}

func pgxBatches(times int) pgxWork {
	return func(ctx context.Context, conn *pgx.Conn) {
		for ; times > 0; times-- {
			batch := &pgx.Batch{}
			for _, text := range messages()[:3] {
				batch.Queue(insertLog, text)
			}
			check(conn.SendBatch(ctx, batch).Close())
		}
	}
}

func pgxArray(ctx context.Context, conn *pgx.Conn) {
	var count int
	query := "SELECT count(*) FROM authors WHERE id = ANY($1)"
	check(conn.QueryRow(ctx, query, []int{101, 105, 112}).Scan(&count))
	expect(count, 3)
}

func pgxPooled(work func(ctx context.Context, pool *pgxpool.Pool)) act {
	return func(ctx context.Context) {
		pool, err := pgxpool.New(ctx, "pool_min_conns=0 pool_max_conns=1")
		check(err)
		defer pool.Close()
		work(ctx, pool)
	}
}

func pgxPoolCheckin(ctx context.Context) {
	pool, err := pgxpool.New(ctx, "pool_min_conns=0 pool_max_conns=1")
	check(err)
	defer pool.Close()
	conn, err := pool.Acquire(ctx)
	check(err)
	pgxSelect(ctx, conn.Conn(), 1)
	conn.Release()
}

// pgxWalk uses a cursor by SQL: the driver itself has none.
func pgxWalk(fetchSize, rowCount int) pgxTxWork {
	return func(ctx context.Context, tx pgx.Tx) {
		query := "DECLARE walk CURSOR FOR SELECT id, v FROM t WHERE id <= %d ORDER BY id"
		_, err := tx.Exec(ctx, fmt.Sprintf(query, rowCount))
		check(err)
		total := 0
		for {
			rows, err := tx.Query(ctx, fmt.Sprintf("FETCH %d FROM walk", fetchSize))
			check(err)
			fetched := countRows(rows)
			total += fetched
			if fetched == 0 {
				break
			}
		}
		expect(total, rowCount)
		_, err = tx.Exec(ctx, "CLOSE walk")
		check(err)
	}
}

func countRows(rows pgx.Rows) int {
	count := 0
	for rows.Next() {
		count++
	}
	check(rows.Err())
	return count
}

func pgxAuthors(ctx context.Context, on pgxQuerier, limit int) []int {
	rows, err := on.Query(ctx, authorsQuery+" LIMIT $1", limit)
	check(err)
	var ids []int
	for rows.Next() {
		var id int
		var name string
		check(rows.Scan(&id, &name))
		ids = append(ids, id)
	}
	check(rows.Err())
	expect(len(ids), limit)
	return ids
}

func pgxBooksOfEach(ctx context.Context, on pgxQuerier, limit int) {
	for _, id := range pgxAuthors(ctx, on, limit) {
		rows, err := on.Query(ctx, booksOf, id)
		check(err)
		expect(countRows(rows), booksPerAuthor)
	}
}

func pgxLoop(limit int) pgxTxWork {
	return func(ctx context.Context, tx pgx.Tx) { pgxBooksOfEach(ctx, tx, limit) }
}

func pgxLoopWithoutTx(ctx context.Context, conn *pgx.Conn) {
	pgxBooksOfEach(ctx, conn, authorCount)
}

func pgxAllBooks(ctx context.Context, conn *pgx.Conn) {
	rows, err := conn.Query(ctx, booksOfAll, pgxAuthors(ctx, conn, authorCount))
	check(err)
	expect(countRows(rows), authorCount*booksPerAuthor)
}

func pgxInsertEach(ctx context.Context, tx pgx.Tx) {
	for _, text := range messages() {
		_, err := tx.Exec(ctx, insertLog, text)
		check(err)
	}
}

func pgxUpdateEach(ctx context.Context, tx pgx.Tx) {
	for _, id := range accountIDs {
		done, err := tx.Exec(ctx, updateAccount, 1, id)
		check(err)
		expect(done.RowsAffected(), int64(1))
	}
}

func pgxInsertBatch(ctx context.Context, tx pgx.Tx) {
	batch := &pgx.Batch{}
	for _, text := range messages() {
		batch.Queue(insertLog, text)
	}
	check(tx.SendBatch(ctx, batch).Close())
}

func pgxUpdateBatch(ctx context.Context, tx pgx.Tx) {
	batch := &pgx.Batch{}
	for _, id := range accountIDs {
		batch.Queue(updateAccount, 1, id)
	}
	check(tx.SendBatch(ctx, batch).Close())
}

func pgxInsertEachCommitting(ctx context.Context, conn *pgx.Conn) {
	for _, text := range messages() {
		_, err := conn.Exec(ctx, insertLog, text)
		check(err)
	}
}

func pgxCopy(ctx context.Context, conn *pgx.Conn) {
	rows := pgx.CopyFromSlice(writeRows, func(i int) ([]interface{}, error) {
		return []interface{}{messages()[i]}, nil
	})
	copied, err := conn.CopyFrom(ctx, pgx.Identifier{"log"}, []string{"message"}, rows)
	check(err)
	expect(copied, int64(writeRows))
}

func pgxRepeat(times int) pgxTxWork {
	return func(ctx context.Context, tx pgx.Tx) {
		for i := 0; i < times; i++ {
			var name string
			check(tx.QueryRow(ctx, "SELECT name FROM authors WHERE id = $1", 140).Scan(&name))
			expect(name, "author 140")
		}
	}
}

func pgxTenTransactions(ctx context.Context, conn *pgx.Conn) {
	for number := 1; number <= 10; number++ {
		id := number * 7
		pgxInTx(func(ctx context.Context, tx pgx.Tx) { pgxSelect(ctx, tx, id) })(ctx, conn)
	}
}

func pgxTenConnections(ctx context.Context) {
	for number := 1; number <= 10; number++ {
		id := number * 7
		pgxConnected(func(ctx context.Context, conn *pgx.Conn) { pgxSelect(ctx, conn, id) })(ctx)
	}
}
