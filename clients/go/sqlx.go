package main

import (
	"context"

	"github.com/jmoiron/sqlx"
)

type sqlxAuthor struct {
	ID   int
	Name string
}

type sqlxLog struct {
	Message string
}

// sqlxActs are the acts of sqlx over pgx: the programmer writes each statement, so that pgx is what reports name, and
// pgx's advice is what each fixed act does (core/ledger/src/stacks/data) as far as database/sql can.
func sqlxActs() map[string]act {
	return map[string]act{
		"bad_OT001":          sqlxInTx(sqlxBooksOfEach),
		"fixed_OT001":        sqlxInTx(sqlxBooksOfAll),
		"bad_OT002":          sqlxInTx(sqlxInsertEach),
		"fixed_OT002":        sqlxInTx(sqlxInsertAll),
		"bad_OT002_update":   sqlxInTx(sqlxUpdateEach),
		"fixed_OT002_update": sqlxInTx(sqlxUpdateAll),
		"bad_OT009":          sqlxInTx(sqlxBalanceOfEach),
		"fixed_OT009":        sqlxInTx(sqlxBalanceOfAll),
		"bad_OT013":          sqlxInTx(sqlxReadThenWrite),
		"fixed_OT013":        sqlxInTx(sqlxWriteReturning),
	}
}

func sqlxInTx(work func(ctx context.Context, tx *sqlx.Tx)) act {
	return func(ctx context.Context) {
		db, err := sqlx.Open("pgx", "")
		check(err)
		defer db.Close()
		db.SetMaxOpenConns(1)
		tx, err := db.BeginTxx(ctx, nil)
		check(err)
		work(ctx, tx)
		check(tx.Commit())
	}
}

func sqlxAuthors(ctx context.Context, tx *sqlx.Tx) []int {
	var authors []sqlxAuthor
	check(tx.SelectContext(ctx, &authors, authorsQuery))
	expect(len(authors), authorCount)
	var ids []int
	for _, author := range authors {
		ids = append(ids, author.ID)
	}
	return ids
}

func sqlxBooksOfEach(ctx context.Context, tx *sqlx.Tx) {
	for _, id := range sqlxAuthors(ctx, tx) {
		var titles []string
		check(tx.SelectContext(ctx, &titles, "SELECT title FROM books WHERE author_id = $1", id))
		expect(len(titles), booksPerAuthor)
	}
}

func sqlxBooksOfAll(ctx context.Context, tx *sqlx.Tx) {
	var titles []string
	check(tx.SelectContext(ctx, &titles, booksOfAll, sqlxAuthors(ctx, tx)))
	expect(len(titles), authorCount*booksPerAuthor)
}

func sqlxLogs() []sqlxLog {
	var rows []sqlxLog
	for _, text := range messages()[:few] {
		rows = append(rows, sqlxLog{Message: text})
	}
	return rows
}

func sqlxInsertEach(ctx context.Context, tx *sqlx.Tx) {
	for _, row := range sqlxLogs() {
		sqlExec(tx.NamedExecContext(ctx, "INSERT INTO log (message) VALUES (:message)", row))
	}
}

// sqlxInsertAll writes all rows by one statement: sqlx repeats VALUES for a slice.
func sqlxInsertAll(ctx context.Context, tx *sqlx.Tx) {
	sqlExec(tx.NamedExecContext(ctx, "INSERT INTO log (message) VALUES (:message)", sqlxLogs()))
}

func sqlxUpdateEach(ctx context.Context, tx *sqlx.Tx) {
	for _, id := range accountIDs[:few] {
		expect(sqlExec(tx.ExecContext(ctx, updateAccount, 1, id)), int64(1))
	}
}

func sqlxUpdateAll(ctx context.Context, tx *sqlx.Tx) {
	query := "UPDATE accounts SET balance = balance + 1 WHERE id = ANY($1)"
	expect(sqlExec(tx.ExecContext(ctx, query, accountIDs[:few])), int64(few))
}

func sqlxBalanceOfEach(ctx context.Context, tx *sqlx.Tx) {
	for _, id := range accountIDs[:12] {
		var balance int
		check(tx.GetContext(ctx, &balance, selectBalance, id))
	}
}

func sqlxBalanceOfAll(ctx context.Context, tx *sqlx.Tx) {
	var balances []int
	check(tx.SelectContext(ctx, &balances, "SELECT balance FROM accounts WHERE id = ANY($1)", accountIDs[:12]))
	expect(len(balances), 12)
}

func sqlxReadThenWrite(ctx context.Context, tx *sqlx.Tx) {
	for _, id := range accountIDs[:few] {
		var balance int
		check(tx.GetContext(ctx, &balance, lockBalance, id))
		sqlExec(tx.ExecContext(ctx, writeBalance, balance+1, id))
	}
}

func sqlxWriteReturning(ctx context.Context, tx *sqlx.Tx) {
	for _, id := range accountIDs[:few] {
		var balance int
		check(tx.GetContext(ctx, &balance, updateAccount+" RETURNING balance", 1, id))
	}
}
