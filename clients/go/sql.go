package main

import (
	"context"
	"database/sql"
	"fmt"

	_ "github.com/jackc/pgx/v5/stdlib" // registers "pgx"
	"github.com/lib/pq"                // registers "postgres"
)

// dialect is a driver of database/sql, and what it has written differently.
type dialect struct {
	driver, source string
	// text makes what the driver takes of a statement for PostgreSQL.
	text func(query string) string
	// authorPage are queries of which each could go without the others; wholePage asks for all.
	authorPage []string
	wholePage  string
	// addTag inserts a name unless it is there.
	addTag string
}

// postgresDialect is that of the driver registered under that name.
func postgresDialect(driver string) dialect {
	source := ""
	if driver == "postgres" { // whose default, sslmode=require, a plain server refuses
		source = "sslmode=disable"
	}
	return dialect{
		driver:     driver,
		source:     source,
		text:       func(query string) string { return query },
		authorPage: authorPage,
		wholePage: `
			SELECT name, string_agg(title, ', '), max(price)::text
			FROM authors JOIN books ON author_id = authors.id
			WHERE authors.id = $1 GROUP BY authors.id`,
		addTag: addTag,
	}
}

// sqlActs are the acts of database/sql over a driver of PostgreSQL.
func sqlActs(driver string) map[string]act {
	d := postgresDialect(driver)
	acts := d.costs()
	acts["array_param"] = d.opened(sqlArray)
	acts["cursor_50_by_10"] = d.opened(sqlInTx(sqlWalk(10, walkRows)))
	if driver == "postgres" {
		return merged(acts, d.findings(), d.postgresFindings(), d.patterns(), d.postgresPatterns())
	}
	return acts
}

// costs are acts that show what the driver spends.
func (d dialect) costs() map[string]act {
	return map[string]act{
		"connect":       d.opened(func(ctx context.Context, db *sql.DB) { check(db.PingContext(ctx)) }),
		"select_1":      d.opened(d.selects(1, 1)),
		"select_2":      d.opened(d.selects(2, 1)),
		"txn_1":         d.opened(sqlInTx(d.txSelects(1))),
		"txn_2":         d.opened(sqlInTx(d.txSelects(2))),
		"txn_empty":     d.opened(sqlInTx(func(context.Context, *sql.Tx) {})),
		"prepared_3":    d.opened(d.prepared(3, 1)),
		"n_plus_one_10": d.opened(sqlInTx(d.loop(loopCount))),
		"ping_twice":    d.opened(sqlPingTwice),
	}
}

// findings are acts with findings up to OT008, for every server.
func (d dialect) findings() map[string]act {
	return map[string]act{
		"bad_OT001":        d.opened(sqlInTx(d.loop(authorCount))),
		"bad_OT002":        d.opened(sqlInTx(d.insertEach)),
		"bad_OT002_update": d.opened(sqlInTx(d.updateEach)),
		"bad_OT003":        d.opened(d.insertEachCommitting),
		"bad_OT005":        d.opened(sqlInTx(d.repeat(10))),
		"fixed_OT005":      d.opened(sqlInTx(d.repeat(1))),
		"bad_OT006":        d.opened(d.tenTransactions),
		"fixed_OT006":      d.opened(d.prepared(10, 7)),
		"bad_OT007":        d.opened(d.selects(10, 7)),
		"fixed_OT007":      d.opened(d.prepared(10, 7)),
		"bad_OT008":        d.tenConnections,
		"fixed_OT008":      d.opened(d.selects(10, 7)),
	}
}

func (d dialect) postgresFindings() map[string]act {
	binary := d
	binary.source += " binary_parameters=yes"
	return map[string]act{
		"fixed_OT001":        d.opened(sqlInTx(sqlAllBooks)),
		"fixed_OT002":        d.opened(sqlInTx(sqlCopy)),
		"fixed_OT002_update": d.opened(sqlInTx(sqlUpdateAll)),
		"fixed_OT003":        d.opened(sqlInTx(sqlCopy)),
		"bad_OT004":          d.opened(sqlInTx(sqlWalk(10, tableRows))),
		"fixed_OT004":        d.opened(sqlInTx(sqlWalk(1000, tableRows))),
		"fixed_OT007_binary": binary.opened(d.selects(10, 7)),
	}
}

type sqlWork func(ctx context.Context, db *sql.DB)
type sqlTxWork func(ctx context.Context, tx *sql.Tx)

// opened has a pool of one connection, so that the trips of an act are those of one session.
func (d dialect) opened(work sqlWork) act {
	return func(ctx context.Context) {
		db, err := sql.Open(d.driver, d.source)
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

func (d dialect) selectOne(ctx context.Context, on sqlQuerier, id int) {
	var value string
	check(on.QueryRowContext(ctx, d.text(selectValue), id).Scan(&value))
	expect(value, fmt.Sprintf("value %d", id))
}

// selects asks for the ids step, 2*step, ... one by one.
func (d dialect) selects(count, step int) sqlWork {
	return func(ctx context.Context, db *sql.DB) {
		for number := 1; number <= count; number++ {
			d.selectOne(ctx, db, number*step)
		}
	}
}

func (d dialect) txSelects(count int) sqlTxWork {
	return func(ctx context.Context, tx *sql.Tx) {
		for number := 1; number <= count; number++ {
			d.selectOne(ctx, tx, number)
		}
	}
}

func (d dialect) prepared(count, step int) sqlWork {
	return func(ctx context.Context, db *sql.DB) {
		statement, err := db.PrepareContext(ctx, d.text(selectValue))
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

func (d dialect) loop(limit int) sqlTxWork {
	return func(ctx context.Context, tx *sql.Tx) {
		for _, id := range sqlAuthors(ctx, tx, limit) {
			expect(sqlCountRows(tx.QueryContext(ctx, d.text(booksOf), id)), booksPerAuthor)
		}
	}
}

func sqlAllBooks(ctx context.Context, tx *sql.Tx) {
	ids := sqlAuthors(ctx, tx, authorCount)
	count := sqlCountRows(tx.QueryContext(ctx, booksOfAll, pq.Array(ids)))
	expect(count, authorCount*booksPerAuthor)
}

func (d dialect) insertEach(ctx context.Context, tx *sql.Tx) {
	for _, text := range messages() {
		sqlExec(tx.ExecContext(ctx, d.text(insertLog), text))
	}
}

func (d dialect) updateEach(ctx context.Context, tx *sql.Tx) {
	for _, id := range accountIDs {
		expect(sqlExec(tx.ExecContext(ctx, d.text(updateAccount), 1, id)), int64(1))
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

func (d dialect) insertEachCommitting(ctx context.Context, db *sql.DB) {
	for _, text := range messages() {
		sqlExec(db.ExecContext(ctx, d.text(insertLog), text))
	}
}

func (d dialect) repeat(times int) sqlTxWork {
	return func(ctx context.Context, tx *sql.Tx) {
		for i := 0; i < times; i++ {
			var name string
			query := d.text("SELECT name FROM authors WHERE id = $1")
			check(tx.QueryRowContext(ctx, query, 140).Scan(&name))
			expect(name, "author 140")
		}
	}
}

func (d dialect) tenTransactions(ctx context.Context, db *sql.DB) {
	for number := 1; number <= 10; number++ {
		id := number * 7
		sqlInTx(func(ctx context.Context, tx *sql.Tx) { d.selectOne(ctx, tx, id) })(ctx, db)
	}
}

func (d dialect) tenConnections(ctx context.Context) {
	for number := 1; number <= 10; number++ {
		id := number * 7
		d.opened(func(ctx context.Context, db *sql.DB) { d.selectOne(ctx, db, id) })(ctx)
	}
}
