package main

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// pgxPatterns are the findings from OT009 on.
var pgxPatterns = map[string]act{
	"bad_OT009":   pgxConnected(pgxBalanceOfEach),
	"fixed_OT009": pgxConnected(pgxBalanceOfAll),
	"bad_OT010":   pgxConnected(pgxInTx(pgxReadByPortions)),
	"fixed_OT010": pgxConnected(pgxInTx(pgxReadWhole)),
	"bad_OT011":   pgxPooled(pgxTenRequests(pgxPingFirst)),
	"fixed_OT011": pgxPooled(pgxTenRequests(pgxCountAuthors)),
	"bad_OT012":   pgxConnected(pgxPages(pgxPage)),
	"fixed_OT012": pgxConnected(pgxPages(pgxPageInBatch)),
	"bad_OT013":   pgxConnected(pgxInTx(pgxReadThenWrite)),
	"fixed_OT013": pgxConnected(pgxInTx(pgxWriteReturning)),
	"bad_OT014":   pgxConnected(pgxInTx(pgxNextvalEach)),
	"fixed_OT014": pgxConnected(pgxInTx(pgxInsertReturning)),
	"bad_OT015":   pgxConnected(pgxInTx(pgxLookUpThenInsert)),
	"fixed_OT015": pgxConnected(pgxInTx(pgxInsertUnlessThere)),
	"bad_OT016":   pgxPooled(pgxTenRequests(pgxReadInTx)),
	"fixed_OT016": pgxPooled(pgxTenRequests(pgxReadWithoutTx)),
}

func pgxBalanceOfEach(ctx context.Context, conn *pgx.Conn) {
	for _, id := range accountIDs[:12] {
		var balance int
		check(conn.QueryRow(ctx, selectBalance, id).Scan(&balance))
	}
}

func pgxBalanceOfAll(ctx context.Context, conn *pgx.Conn) {
	query := "SELECT id, balance FROM accounts WHERE id = ANY($1)"
	rows, err := conn.Query(ctx, query, accountIDs[:12])
	check(err)
	expect(countRows(rows), 12)
}

func pgxReadByPortions(ctx context.Context, tx pgx.Tx) {
	objects := tx.LargeObjects()
	for _, id := range fileIDs {
		var content uint32
		check(tx.QueryRow(ctx, selectContent, id).Scan(&content))
		object, err := objects.Open(ctx, content, pgx.LargeObjectModeRead)
		check(err)
		read := make([]byte, len(fileContent))
		for from := 0; from < len(read); from += filePortion {
			_, err := object.Read(read[from : from+filePortion])
			check(err)
		}
		check(object.Close())
		expect(string(read), fileContent)
	}
}

func pgxReadWhole(ctx context.Context, tx pgx.Tx) {
	for _, id := range fileIDs {
		var read []byte
		check(tx.QueryRow(ctx, readContent, id).Scan(&read))
		expect(string(read), fileContent)
	}
}

// pgxTenRequests takes the connection from the pool for each.
func pgxTenRequests(request pgxWork) func(context.Context, *pgxpool.Pool) {
	return func(ctx context.Context, pool *pgxpool.Pool) {
		for i := 0; i < 10; i++ {
			conn, err := pool.Acquire(ctx)
			check(err)
			request(ctx, conn.Conn())
			conn.Release()
		}
	}
}

func pgxPingFirst(ctx context.Context, conn *pgx.Conn) {
	check(conn.Ping(ctx))
	pgxCountAuthors(ctx, conn)
}

func pgxCountAuthors(ctx context.Context, conn *pgx.Conn) {
	var count int
	check(conn.QueryRow(ctx, countAuthors).Scan(&count))
	expect(count, authorCount)
}

func pgxPages(page func(ctx context.Context, conn *pgx.Conn, author int)) pgxWork {
	return func(ctx context.Context, conn *pgx.Conn) {
		for _, author := range pageAuthors {
			page(ctx, conn, author)
		}
	}
}

func pgxPage(ctx context.Context, conn *pgx.Conn, author int) {
	for _, query := range authorPage {
		var text string
		check(conn.QueryRow(ctx, query, author).Scan(&text))
	}
}

func pgxPageInBatch(ctx context.Context, conn *pgx.Conn, author int) {
	batch := &pgx.Batch{}
	for _, query := range authorPage {
		batch.Queue(query, author)
	}
	check(conn.SendBatch(ctx, batch).Close())
}

func pgxReadThenWrite(ctx context.Context, tx pgx.Tx) {
	for _, id := range accountIDs {
		var balance int
		check(tx.QueryRow(ctx, lockBalance, id).Scan(&balance))
		_, err := tx.Exec(ctx, writeBalance, balance+1, id)
		check(err)
	}
}

func pgxWriteReturning(ctx context.Context, tx pgx.Tx) {
	for _, id := range accountIDs {
		var balance int
		check(tx.QueryRow(ctx, updateAccount+" RETURNING balance", 1, id).Scan(&balance))
	}
}

func pgxNextvalEach(ctx context.Context, tx pgx.Tx) {
	for _, text := range messages() {
		var id int64
		check(tx.QueryRow(ctx, nextTicket).Scan(&id))
		_, err := tx.Exec(ctx, insertTicket, id, text)
		check(err)
	}
}

func pgxInsertReturning(ctx context.Context, tx pgx.Tx) {
	for _, text := range messages() {
		var id int64
		check(tx.QueryRow(ctx, addTicket, text).Scan(&id))
	}
}

func pgxLookUpThenInsert(ctx context.Context, tx pgx.Tx) {
	for _, name := range unseen() {
		var id int64
		err := tx.QueryRow(ctx, tagIDs, name).Scan(&id)
		expect(err, pgx.ErrNoRows)
		_, err = tx.Exec(ctx, insertTag, name)
		check(err)
	}
}

func pgxInsertUnlessThere(ctx context.Context, tx pgx.Tx) {
	for _, name := range unseen() {
		_, err := tx.Exec(ctx, addTag, name)
		check(err)
	}
}

// pgxReadInTx leaves the end of the transaction to the usual deferred Rollback.
func pgxReadInTx(ctx context.Context, conn *pgx.Conn) {
	tx, err := conn.Begin(ctx)
	check(err)
	defer tx.Rollback(ctx)
	pgxTwoReads(ctx, tx)
}

func pgxReadWithoutTx(ctx context.Context, conn *pgx.Conn) {
	pgxTwoReads(ctx, conn)
}

func pgxTwoReads(ctx context.Context, on pgxQuerier) {
	var text string
	check(on.QueryRow(ctx, "SELECT count(*)::text FROM authors").Scan(&text))
	check(on.QueryRow(ctx, "SELECT max(price)::text FROM books").Scan(&text))
}
