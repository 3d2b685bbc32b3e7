package main

import (
	"context"
	"database/sql"
	"os"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/driver/pgdriver"
)

type bunAuthor struct {
	bun.BaseModel `bun:"table:authors,alias:author"`

	ID    int `bun:"id,pk"`
	Name  string
	Books []*bunBook `bun:"rel:has-many,join:id=author_id"`
}

type bunBook struct {
	bun.BaseModel `bun:"table:books,alias:book"`

	ID       int `bun:"id,pk"`
	AuthorID int
	Title    string
	Price    string
}

type bunLog struct {
	bun.BaseModel `bun:"table:log,alias:log"`

	ID      int64 `bun:"id,pk,autoincrement"`
	Message string
}

type bunAccount struct {
	bun.BaseModel `bun:"table:accounts,alias:account"`

	ID      int `bun:"id,pk"`
	Balance int
}

type bunTag struct {
	bun.BaseModel `bun:"table:tags,alias:tag"`

	ID   int64 `bun:"id,pk,autoincrement"`
	Name string
}

// bunActs are the acts of Bun, over its own driver. Each fixed act does what Bun's advice says
// (core/ledger/src/stacks/data).
func bunActs() map[string]act {
	return map[string]act{
		"bad_OT001":          bunOpened(bunBooksOfEach),
		"fixed_OT001":        bunOpened(bunBooksOfAll),
		"bad_OT002":          bunInTx(bunInsertEach),
		"fixed_OT002":        bunInTx(bunInsertAll),
		"bad_OT002_update":   bunInTx(bunUpdateEach),
		"fixed_OT002_update": bunInTx(bunUpdateAll),
		"bad_OT003":          bunOpened(bunInsertEach),
		"fixed_OT003":        bunOpened(bunInsertAll),
		"bad_OT005":          bunInTx(bunRepeat(10)),
		"fixed_OT005":        bunInTx(bunRepeat(1)),
		"bad_OT009":          bunOpened(bunBalanceOfEach),
		"fixed_OT009":        bunOpened(bunBalanceOfAll),
		"bad_OT013":          bunInTx(bunReadThenWrite),
		"fixed_OT013":        bunInTx(bunAddOne),
		"bad_OT015":          bunInTx(bunLookUpThenInsert),
		"fixed_OT015":        bunInTx(bunInsertUnlessThere),
	}
}

type bunWork func(ctx context.Context, on bun.IDB)

func bunOpened(work bunWork) act {
	return func(ctx context.Context) {
		pool := sql.OpenDB(pgdriver.NewConnector(
			pgdriver.WithAddr(os.Getenv("PGHOST")+":"+os.Getenv("PGPORT")),
			pgdriver.WithUser(os.Getenv("PGUSER")),
			pgdriver.WithPassword(os.Getenv("PGPASSWORD")),
			pgdriver.WithDatabase(os.Getenv("PGDATABASE")),
			pgdriver.WithInsecure(true),
		))
		defer pool.Close()
		pool.SetMaxOpenConns(1)
		work(ctx, bun.NewDB(pool, pgdialect.New()))
	}
}

func bunInTx(work bunWork) act {
	return bunOpened(func(ctx context.Context, on bun.IDB) {
		check(on.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			work(ctx, tx)
			return nil
		}))
	})
}

func bunBooksOfEach(ctx context.Context, on bun.IDB) {
	var authors []bunAuthor
	check(on.NewSelect().Model(&authors).Order("id").Scan(ctx))
	for _, author := range authors {
		var books []bunBook
		check(on.NewSelect().Model(&books).Where("author_id = ?", author.ID).Scan(ctx))
		expect(len(books), booksPerAuthor)
	}
}

func bunBooksOfAll(ctx context.Context, on bun.IDB) {
	var authors []bunAuthor
	check(on.NewSelect().Model(&authors).Relation("Books").Scan(ctx))
	expect(len(authors), authorCount)
	for _, author := range authors {
		expect(len(author.Books), booksPerAuthor)
	}
}

func bunLogs() []bunLog {
	var rows []bunLog
	for _, text := range messages()[:few] {
		rows = append(rows, bunLog{Message: text})
	}
	return rows
}

func bunInsertEach(ctx context.Context, on bun.IDB) {
	for _, row := range bunLogs() {
		row := row
		sqlExec(on.NewInsert().Model(&row).Exec(ctx))
	}
}

func bunInsertAll(ctx context.Context, on bun.IDB) {
	rows := bunLogs()
	sqlExec(on.NewInsert().Model(&rows).Exec(ctx))
}

func bunFewAccounts(ctx context.Context, on bun.IDB) []bunAccount {
	var accounts []bunAccount
	check(on.NewSelect().Model(&accounts).Order("id").Limit(few).Scan(ctx))
	for i := range accounts {
		accounts[i].Balance++
	}
	return accounts
}

func bunUpdateEach(ctx context.Context, on bun.IDB) {
	for _, account := range bunFewAccounts(ctx, on) {
		account := account
		sqlExec(on.NewUpdate().Model(&account).WherePK().Exec(ctx))
	}
}

func bunUpdateAll(ctx context.Context, on bun.IDB) {
	accounts := bunFewAccounts(ctx, on)
	expect(sqlExec(on.NewUpdate().Model(&accounts).Column("balance").Bulk().Exec(ctx)), int64(few))
}

func bunRepeat(times int) bunWork {
	return func(ctx context.Context, on bun.IDB) {
		for i := 0; i < times; i++ {
			author := bunAuthor{ID: 140}
			check(on.NewSelect().Model(&author).WherePK().Scan(ctx))
			expect(author.Name, "author 140")
		}
	}
}

func bunBalanceOfEach(ctx context.Context, on bun.IDB) {
	for _, id := range accountIDs[:12] {
		account := bunAccount{ID: id}
		check(on.NewSelect().Model(&account).WherePK().Scan(ctx))
	}
}

func bunBalanceOfAll(ctx context.Context, on bun.IDB) {
	var accounts []bunAccount
	check(on.NewSelect().Model(&accounts).Where("id IN (?)", bun.In(accountIDs[:12])).Scan(ctx))
	expect(len(accounts), 12)
}

func bunReadThenWrite(ctx context.Context, on bun.IDB) {
	for _, id := range accountIDs[:few] {
		account := bunAccount{ID: id}
		check(on.NewSelect().Model(&account).WherePK().For("UPDATE").Scan(ctx))
		account.Balance++
		sqlExec(on.NewUpdate().Model(&account).WherePK().Exec(ctx))
	}
}

func bunAddOne(ctx context.Context, on bun.IDB) {
	for _, id := range accountIDs[:few] {
		account := bunAccount{ID: id}
		addOne := on.NewUpdate().Model(&account).Set("balance = balance + 1").WherePK().Returning("balance")
		sqlExec(addOne.Exec(ctx))
		expect(account.Balance > 0, true)
	}
}

func bunLookUpThenInsert(ctx context.Context, on bun.IDB) {
	for _, name := range unseen()[:few] {
		var tag bunTag
		err := on.NewSelect().Model(&tag).Where("name = ?", name).Scan(ctx)
		expect(err, sql.ErrNoRows)
		sqlExec(on.NewInsert().Model(&bunTag{Name: name}).Exec(ctx))
	}
}

func bunInsertUnlessThere(ctx context.Context, on bun.IDB) {
	for _, name := range unseen()[:few] {
		sqlExec(on.NewInsert().Model(&bunTag{Name: name}).On("CONFLICT DO NOTHING").Exec(ctx))
	}
}
