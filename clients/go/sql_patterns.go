package main

import (
	"context"
	"database/sql"

	"github.com/lib/pq"
)

// INV_READ of libpq-fs.h: database/sql has no large objects, the server's functions are called.
const readOnly = 0x40000

// addPatterns adds the findings from OT009 on.
func addPatterns(acts map[string]act, on func(sqlWork) act) {
	acts["bad_OT009"] = on(sqlBalanceOfEach)
	acts["fixed_OT009"] = on(sqlBalanceOfAll)
	acts["bad_OT010"] = on(sqlInTx(sqlReadByPortions))
	acts["fixed_OT010"] = on(sqlInTx(sqlReadWhole))
	acts["bad_OT011"] = on(sqlTenTimes(sqlPingFirst))
	acts["fixed_OT011"] = on(sqlTenTimes(sqlCountAuthors))
	acts["bad_OT012"] = on(sqlPages)
	acts["fixed_OT012"] = on(sqlPagesByOne)
	acts["bad_OT013"] = on(sqlInTx(sqlReadThenWrite))
	acts["fixed_OT013"] = on(sqlInTx(sqlWriteReturning))
	acts["bad_OT014"] = on(sqlInTx(sqlNextvalEach))
	acts["fixed_OT014"] = on(sqlInTx(sqlInsertReturning))
	acts["bad_OT015"] = on(sqlInTx(sqlLookUpThenInsert))
	acts["fixed_OT015"] = on(sqlInTx(sqlInsertUnlessThere))
	acts["bad_OT016"] = on(sqlTenTimes(sqlReadInTx))
	acts["fixed_OT016"] = on(sqlTenTimes(sqlReadWithoutTx))
}

func sqlTenTimes(work sqlWork) sqlWork {
	return func(ctx context.Context, db *sql.DB) {
		for i := 0; i < 10; i++ {
			work(ctx, db)
		}
	}
}

func sqlBalanceOfEach(ctx context.Context, db *sql.DB) {
	for _, id := range accountIDs[:12] {
		var balance int
		check(db.QueryRowContext(ctx, selectBalance, id).Scan(&balance))
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

// sqlPages prepares first: otherwise each query would take two trips, which is OT007.
func sqlPages(ctx context.Context, db *sql.DB) {
	var statements []*sql.Stmt
	for _, query := range authorPage {
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

// sqlPagesByOne asks for all three in one statement: database/sql cannot pipeline.
func sqlPagesByOne(ctx context.Context, db *sql.DB) {
	statement, err := db.PrepareContext(ctx, `
		SELECT name, string_agg(title, ', '), max(price)::text
		FROM authors JOIN books ON author_id = authors.id
		WHERE authors.id = $1 GROUP BY authors.id`)
	check(err)
	defer statement.Close()
	for _, author := range pageAuthors {
		var name, titles, price string
		check(statement.QueryRowContext(ctx, author).Scan(&name, &titles, &price))
	}
}

func sqlReadThenWrite(ctx context.Context, tx *sql.Tx) {
	for _, id := range accountIDs {
		var balance int
		check(tx.QueryRowContext(ctx, lockBalance, id).Scan(&balance))
		sqlExec(tx.ExecContext(ctx, writeBalance, balance+1, id))
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

func sqlLookUpThenInsert(ctx context.Context, tx *sql.Tx) {
	for _, name := range unseen() {
		var id int64
		expect(tx.QueryRowContext(ctx, tagIDs, name).Scan(&id), sql.ErrNoRows)
		sqlExec(tx.ExecContext(ctx, insertTag, name))
	}
}

func sqlInsertUnlessThere(ctx context.Context, tx *sql.Tx) {
	for _, name := range unseen() {
		sqlExec(tx.ExecContext(ctx, addTag, name))
	}
}

// sqlReadInTx leaves the end of the transaction to the usual deferred Rollback.
func sqlReadInTx(ctx context.Context, db *sql.DB) {
	tx, err := db.BeginTx(ctx, nil)
	check(err)
	defer tx.Rollback()
	sqlTwoReads(ctx, tx)
}

func sqlReadWithoutTx(ctx context.Context, db *sql.DB) {
	sqlTwoReads(ctx, db)
}

func sqlTwoReads(ctx context.Context, on sqlQuerier) {
	var text string
	check(on.QueryRowContext(ctx, countAuthors).Scan(&text))
	check(on.QueryRowContext(ctx, "SELECT max(price)::text FROM books").Scan(&text))
}
