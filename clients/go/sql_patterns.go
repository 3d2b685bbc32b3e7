package main

import (
	"context"
	"database/sql"

	"github.com/lib/pq"
)

// INV_READ of libpq-fs.h: database/sql has no large objects, the server's functions are called.
const readOnly = 0x40000

// patterns are the findings from OT009 on, for every server.
func (d dialect) patterns() map[string]act {
	return map[string]act{
		"bad_OT009":   d.opened(d.balanceOfEach),
		"bad_OT011":   d.opened(sqlTenTimes(sqlPingFirst)),
		"fixed_OT011": d.opened(sqlTenTimes(sqlCountAuthors)),
		"bad_OT012":   d.opened(d.pages),
		"fixed_OT012": d.opened(d.pagesByOne),
		"bad_OT013":   d.opened(sqlInTx(d.readThenWrite)),
		"bad_OT015":   d.opened(sqlInTx(d.lookUpThenInsert)),
		"fixed_OT015": d.opened(sqlInTx(d.insertUnlessThere)),
		"bad_OT016":   d.opened(sqlTenTimes(d.readInTx)),
		"fixed_OT016": d.opened(sqlTenTimes(d.readWithoutTx)),
	}
}

func (d dialect) postgresPatterns() map[string]act {
	return map[string]act{
		"fixed_OT009": d.opened(sqlBalanceOfAll),
		"bad_OT010":   d.opened(sqlInTx(sqlReadByPortions)),
		"fixed_OT010": d.opened(sqlInTx(sqlReadWhole)),
		"fixed_OT013": d.opened(sqlInTx(sqlWriteReturning)),
		"bad_OT014":   d.opened(sqlInTx(sqlNextvalEach)),
		"fixed_OT014": d.opened(sqlInTx(sqlInsertReturning)),
	}
}

func sqlTenTimes(work sqlWork) sqlWork {
	return func(ctx context.Context, db *sql.DB) {
		for i := 0; i < 10; i++ {
			work(ctx, db)
		}
	}
}

func (d dialect) balanceOfEach(ctx context.Context, db *sql.DB) {
	for _, id := range accountIDs[:12] {
		var balance int
		check(db.QueryRowContext(ctx, d.text(selectBalance), id).Scan(&balance))
	}
}

func sqlBalanceOfAll(ctx context.Context, db *sql.DB) {
	query := "SELECT id, balance FROM accounts WHERE id = ANY($1)"
	expect(sqlCountRows(db.QueryContext(ctx, query, pq.Array(accountIDs[:12]))), 12)
}

func sqlReadByPortions(ctx context.Context, tx *sql.Tx) {
	for _, id := range fileIDs {
		var content, handle, closed int
		var read []byte
		check(tx.QueryRowContext(ctx, selectContent, id).Scan(&content))
		check(tx.QueryRowContext(ctx, "SELECT lo_open($1, $2)", content, readOnly).Scan(&handle))
		for len(read) < len(fileContent) {
			var portion []byte
			query := "SELECT loread($1, $2)"
			check(tx.QueryRowContext(ctx, query, handle, filePortion).Scan(&portion))
			read = append(read, portion...)
		}
		check(tx.QueryRowContext(ctx, "SELECT lo_close($1)", handle).Scan(&closed))
		expect(string(read), fileContent)
	}
}

func sqlReadWhole(ctx context.Context, tx *sql.Tx) {
	for _, id := range fileIDs {
		var read []byte
		check(tx.QueryRowContext(ctx, readContent, id).Scan(&read))
		expect(string(read), fileContent)
	}
}

func sqlPingFirst(ctx context.Context, db *sql.DB) {
	check(db.PingContext(ctx))
	sqlCountAuthors(ctx, db)
}

func sqlCountAuthors(ctx context.Context, db *sql.DB) {
	var count int
	check(db.QueryRowContext(ctx, countAuthors).Scan(&count))
	expect(count, authorCount)
}

// pages prepares first: otherwise each query would take two trips, which is OT007.
func (d dialect) pages(ctx context.Context, db *sql.DB) {
	var statements []*sql.Stmt
	for _, query := range d.authorPage {
		statement, err := db.PrepareContext(ctx, query)
		check(err)
		defer statement.Close()
		statements = append(statements, statement)
	}
	for _, author := range pageAuthors {
		for _, statement := range statements {
			var text string
			check(statement.QueryRowContext(ctx, author).Scan(&text))
		}
	}
}

// pagesByOne asks for all three in one statement: database/sql cannot pipeline.
func (d dialect) pagesByOne(ctx context.Context, db *sql.DB) {
	statement, err := db.PrepareContext(ctx, d.wholePage)
	check(err)
	defer statement.Close()
	for _, author := range pageAuthors {
		var name, titles, price string
		check(statement.QueryRowContext(ctx, author).Scan(&name, &titles, &price))
	}
}

func (d dialect) readThenWrite(ctx context.Context, tx *sql.Tx) {
	for _, id := range accountIDs {
		var balance int
		check(tx.QueryRowContext(ctx, d.text(lockBalance), id).Scan(&balance))
		sqlExec(tx.ExecContext(ctx, d.text(writeBalance), balance+1, id))
	}
}

func sqlWriteReturning(ctx context.Context, tx *sql.Tx) {
	for _, id := range accountIDs {
		var balance int
		check(tx.QueryRowContext(ctx, updateAccount+" RETURNING balance", 1, id).Scan(&balance))
	}
}

func sqlNextvalEach(ctx context.Context, tx *sql.Tx) {
	for _, text := range messages() {
		var id int64
		check(tx.QueryRowContext(ctx, nextTicket).Scan(&id))
		sqlExec(tx.ExecContext(ctx, insertTicket, id, text))
	}
}

func sqlInsertReturning(ctx context.Context, tx *sql.Tx) {
	for _, text := range messages() {
		var id int64
		check(tx.QueryRowContext(ctx, addTicket, text).Scan(&id))
	}
}

func (d dialect) lookUpThenInsert(ctx context.Context, tx *sql.Tx) {
	for _, name := range unseen() {
		var id int64
		expect(tx.QueryRowContext(ctx, d.text(tagIDs), name).Scan(&id), sql.ErrNoRows)
		sqlExec(tx.ExecContext(ctx, d.text(insertTag), name))
	}
}

func (d dialect) insertUnlessThere(ctx context.Context, tx *sql.Tx) {
	for _, name := range unseen() {
		sqlExec(tx.ExecContext(ctx, d.addTag, name))
	}
}

// readInTx leaves the end of the transaction to the usual deferred Rollback.
func (d dialect) readInTx(ctx context.Context, db *sql.DB) {
	tx, err := db.BeginTx(ctx, nil)
	check(err)
	defer tx.Rollback()
	d.twoReads(ctx, tx)
}

func (d dialect) readWithoutTx(ctx context.Context, db *sql.DB) {
	d.twoReads(ctx, db)
}

func (d dialect) twoReads(ctx context.Context, on sqlQuerier) {
	var text string
	check(on.QueryRowContext(ctx, countAuthors).Scan(&text))
	check(on.QueryRowContext(ctx, d.text("SELECT max(price)::text FROM books")).Scan(&text))
}
