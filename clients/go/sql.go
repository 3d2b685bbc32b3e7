package main

import (
	"context"
	"database/sql"
	"fmt"

	_ "github.com/jackc/pgx/v5/stdlib" // registers "pgx"
	"github.com/lib/pq"                // registers "postgres"
)

// sqlActs are the acts of database/sql over the driver registered under that name.
// A pool of one connection, so that the trips of an act are those of one session.
func sqlActs(driver string) map[string]act {
	on := func(work sqlWork) act { return sqlOpened(driver, work) }
	acts := map[string]act{
		"connect":         on(func(ctx context.Context, db *sql.DB) { check(db.PingContext(ctx)) }),
		"select_1":        on(sqlSelects(1, 1)),
		"select_2":        on(sqlSelects(2, 1)),
		"txn_1":           on(sqlInTx(sqlTxSelects(1))),
		"txn_2":           on(sqlInTx(sqlTxSelects(2))),
		"txn_empty":       on(sqlInTx(func(context.Context, *sql.Tx) {})),
		"prepared_3":      on(sqlPrepared(3, 1)),
		"array_param":     on(sqlArray),
		"cursor_50_by_10": on(sqlInTx(sqlWalk(10, walkRows))),
		"n_plus_one_10":   on(sqlInTx(sqlLoop(loopCount))),
		"ping_twice":      on(sqlPingTwice),
	}
	if driver == "postgres" {
		addFindings(acts, on)
	}
	return acts
}

func addFindings(acts map[string]act, on func(sqlWork) act) {
	acts["bad_OT001"] = on(sqlInTx(sqlLoop(authorCount)))
	acts["fixed_OT001"] = on(sqlInTx(sqlAllBooks))
	acts["bad_OT002"] = on(sqlInTx(sqlInsertEach))
	acts["bad_OT002_update"] = on(sqlInTx(sqlUpdateEach))
	acts["fixed_OT002"] = on(sqlInTx(sqlCopy))
	acts["fixed_OT002_update"] = on(sqlInTx(sqlUpdateAll))
	acts["bad_OT003"] = on(sqlInsertEachCommitting)
	acts["fixed_OT003"] = on(sqlInTx(sqlCopy))
	acts["bad_OT004"] = on(sqlInTx(sqlWalk(10, tableRows)))
	acts["fixed_OT004"] = on(sqlInTx(sqlWalk(1000, tableRows)))
	acts["bad_OT005"] = on(sqlInTx(sqlRepeat(10)))
	acts["fixed_OT005"] = on(sqlInTx(sqlRepeat(1)))
	acts["bad_OT006"] = on(sqlTenTransactions)
	acts["fixed_OT006"] = on(sqlPrepared(10, 7))
	acts["bad_OT007"] = on(sqlSelects(10, 7))
	acts["fixed_OT007"] = on(sqlPrepared(10, 7))
	acts["fixed_OT007_binary"] = func(ctx context.Context) {
		sqlOpenedAs("postgres", "sslmode=disable binary_parameters=yes", sqlSelects(10, 7))(ctx)
	}
	acts["bad_OT008"] = sqlTenConnections
	acts["fixed_OT008"] = on(sqlSelects(10, 7))
	addPatterns(acts, on)
}

type sqlWork func(ctx context.Context, db *sql.DB)
type sqlTxWork func(ctx context.Context, tx *sql.Tx)

func sqlOpened(driver string, work sqlWork) act {
	if driver == "postgres" { // whose default, sslmode=require, a plain server refuses
		return sqlOpenedAs(driver, "sslmode=disable", work)
	}
	return sqlOpenedAs(driver, "", work)
}

func sqlOpenedAs(driver, source string, work sqlWork) act {
	return func(ctx context.Context) {
		db, err := sql.Open(driver, source)
		check(err)
		defer db.Close()
		db.SetMaxOpenConns(1)
		work(ctx, db)
	}
}

func sqlInTx(work sqlTxWork) sqlWork {
	return func(ctx context.Context, db *sql.DB) {
		tx, err := db.BeginTx(ctx, nil)
		check(err)
		work(ctx, tx)
		check(tx.Commit())
	}
}

// sqlQuerier is a pool or a transaction.
type sqlQuerier interface {
	QueryRowContext(ctx context.Context, query string, args ...interface{}) *sql.Row
}

func sqlSelect(ctx context.Context, on sqlQuerier, id int) {
	var value string
	check(on.QueryRowContext(ctx, selectValue, id).Scan(&value))
	expect(value, fmt.Sprintf("value %d", id))
}

// sqlSelects asks for the ids step, 2*step, ... one by one.
func sqlSelects(count, step int) sqlWork {
	return func(ctx context.Context, db *sql.DB) {
		for number := 1; number <= count; number++ {
			sqlSelect(ctx, db, number*step)
		}
	}
}

func sqlTxSelects(count int) sqlTxWork {
	return func(ctx context.Context, tx *sql.Tx) {
		for number := 1; number <= count; number++ {
			sqlSelect(ctx, tx, number)
		}
	}
}

func sqlPrepared(count, step int) sqlWork {
	return func(ctx context.Context, db *sql.DB) {
		statement, err := db.PrepareContext(ctx, selectValue)
		check(err)
		defer statement.Close()
		for number := 1; number <= count; number++ {
			var value string
			check(statement.QueryRowContext(ctx, number*step).Scan(&value))
			expect(value, fmt.Sprintf("value %d", number*step))
		}
	}
}

func sqlPingTwice(ctx context.Context, db *sql.DB) {
	check(db.PingContext(ctx))
	check(db.PingContext(ctx))
}

func sqlArray(ctx context.Context, db *sql.DB) {
	var count int
	query := "SELECT count(*) FROM authors WHERE id = ANY($1)"
	check(db.QueryRowContext(ctx, query, pq.Array([]int{101, 105, 112})).Scan(&count))
	expect(count, 3)
}

func sqlCountRows(rows *sql.Rows, err error) int {
	check(err)
	defer rows.Close()
	count := 0
	for rows.Next() {
		count++
	}
	check(rows.Err())
	return count
}

// sqlWalk uses a cursor by SQL: database/sql has none.
func sqlWalk(fetchSize, rowCount int) sqlTxWork {
	return func(ctx context.Context, tx *sql.Tx) {
		query := "DECLARE walk CURSOR FOR SELECT id, v FROM t WHERE id <= %d ORDER BY id"
		sqlExec(tx.ExecContext(ctx, fmt.Sprintf(query, rowCount)))
		total := 0
		for {
			fetched := sqlCountRows(tx.QueryContext(ctx, fmt.Sprintf("FETCH %d FROM walk", fetchSize)))
			total += fetched
			if fetched == 0 {
				break
			}
		}
		expect(total, rowCount)
		sqlExec(tx.ExecContext(ctx, "CLOSE walk"))
	}
}

func sqlExec(done sql.Result, err error) int64 {
	check(err)
	affected, err := done.RowsAffected()
	check(err)
	return affected
}

func sqlAuthors(ctx context.Context, tx *sql.Tx, limit int) []int {
	rows, err := tx.QueryContext(ctx, fmt.Sprintf("%s LIMIT %d", authorsQuery, limit))
	check(err)
	defer rows.Close()
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

func sqlLoop(limit int) sqlTxWork {
	return func(ctx context.Context, tx *sql.Tx) {
		for _, id := range sqlAuthors(ctx, tx, limit) {
			expect(sqlCountRows(tx.QueryContext(ctx, booksOf, id)), booksPerAuthor)
		}
	}
}

func sqlAllBooks(ctx context.Context, tx *sql.Tx) {
	ids := sqlAuthors(ctx, tx, authorCount)
	count := sqlCountRows(tx.QueryContext(ctx, booksOfAll, pq.Array(ids)))
	expect(count, authorCount*booksPerAuthor)
}

func sqlInsertEach(ctx context.Context, tx *sql.Tx) {
	for _, text := range messages() {
		sqlExec(tx.ExecContext(ctx, insertLog, text))
	}
}

func sqlUpdateEach(ctx context.Context, tx *sql.Tx) {
	for _, id := range accountIDs {
		expect(sqlExec(tx.ExecContext(ctx, updateAccount, 1, id)), int64(1))
	}
}

func sqlUpdateAll(ctx context.Context, tx *sql.Tx) {
	query := "UPDATE accounts SET balance = balance + 1 WHERE id = ANY($1)"
	expect(sqlExec(tx.ExecContext(ctx, query, pq.Array(accountIDs))), int64(writeRows))
}

func sqlCopy(ctx context.Context, tx *sql.Tx) {
	statement, err := tx.PrepareContext(ctx, pq.CopyIn("log", "message"))
	check(err)
	for _, text := range messages() {
		sqlExec(statement.ExecContext(ctx, text))
	}
	sqlExec(statement.ExecContext(ctx)) // flushes
	check(statement.Close())
}

func sqlInsertEachCommitting(ctx context.Context, db *sql.DB) {
	for _, text := range messages() {
		sqlExec(db.ExecContext(ctx, insertLog, text))
	}
}

func sqlRepeat(times int) sqlTxWork {
	return func(ctx context.Context, tx *sql.Tx) {
		for i := 0; i < times; i++ {
			var name string
			query := "SELECT name FROM authors WHERE id = $1"
			check(tx.QueryRowContext(ctx, query, 140).Scan(&name))
			expect(name, "author 140")
		}
	}
}

func sqlTenTransactions(ctx context.Context, db *sql.DB) {
	for number := 1; number <= 10; number++ {
		id := number * 7
		sqlInTx(func(ctx context.Context, tx *sql.Tx) { sqlSelect(ctx, tx, id) })(ctx, db)
	}
}

func sqlTenConnections(ctx context.Context) {
	for number := 1; number <= 10; number++ {
		id := number * 7
		sqlOpened("postgres", func(ctx context.Context, db *sql.DB) { sqlSelect(ctx, db, id) })(ctx)
	}
}
