package main

import (
	"context"
	"fmt"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

// Rows that the acts of mappers write one by one: enough for each finding.
const few = 8

// Authors, Books and so on are the tables of clients/schema.sql.
type gormAuthor struct {
	ID    int
	Name  string
	Books []gormBook `gorm:"foreignKey:AuthorID"`
}

type gormBook struct {
	ID       int
	AuthorID int
	Title    string
	Price    string
}

type gormLog struct {
	ID      int64
	Message string
}

type gormAccount struct {
	ID      int
	Balance int
}

type gormTag struct {
	ID   int64
	Name string
}

func (gormAuthor) TableName() string  { return "authors" }
func (gormBook) TableName() string    { return "books" }
func (gormLog) TableName() string     { return "log" }
func (gormAccount) TableName() string { return "accounts" }
func (gormTag) TableName() string     { return "tags" }

// gormActs are the acts of GORM, over pgx. Each fixed act does what GORM's advice says (core/ledger/src/stacks/data).
func gormActs() map[string]act {
	return map[string]act{
		"bad_OT001":           gormOpened(gormBooksOfEach),
		"fixed_OT001":         gormOpened(gormBooksOfAll),
		"bad_OT002":           gormInTx(gormInsertEach),
		"fixed_OT002":         gormInTx(gormInsertAll),
		"fixed_OT002_batches": gormInTx(gormInsertBatches),
		"bad_OT002_update":    gormInTx(gormUpdateEach),
		"fixed_OT002_update":  gormInTx(gormUpdateAll),
		"bad_OT003":           gormOpened(gormInsertEach),
		"fixed_OT003":         gormOpened(gormInsertAll),
		"bad_OT005":           gormInTx(gormRepeat(10)),
		"fixed_OT005":         gormInTx(gormRepeat(1)),
		"bad_OT009":           gormOpened(gormBalanceOfEach),
		"fixed_OT009":         gormOpened(gormBalanceOfAll),
		"bad_OT013":           gormInTx(gormReadThenWrite),
		"fixed_OT013":         gormInTx(gormAddOne),
		"bad_OT015":           gormInTx(gormFirstOrCreate),
		"fixed_OT015":         gormInTx(gormInsertUnlessThere),
	}
}

func gormOpened(work func(db *gorm.DB)) act {
	return func(context.Context) {
		db, err := gorm.Open(postgres.Open(""), &gorm.Config{Logger: logger.Discard})
		check(err)
		pool, err := db.DB()
		check(err)
		defer pool.Close()
		pool.SetMaxOpenConns(1)
		work(db)
	}
}

func gormInTx(work func(tx *gorm.DB)) act {
	return gormOpened(func(db *gorm.DB) {
		check(db.Transaction(func(tx *gorm.DB) error {
			work(tx)
			return nil
		}))
	})
}

func gormBooksOfEach(db *gorm.DB) {
	var authors []gormAuthor
	check(db.Order("id").Find(&authors).Error)
	for i := range authors {
		var books []gormBook
		check(db.Model(&authors[i]).Association("Books").Find(&books))
		expect(len(books), booksPerAuthor)
	}
}

func gormBooksOfAll(db *gorm.DB) {
	var authors []gormAuthor
	check(db.Preload("Books").Find(&authors).Error)
	expect(len(authors), authorCount)
	for _, author := range authors {
		expect(len(author.Books), booksPerAuthor)
	}
}

func gormLogs() []gormLog {
	var rows []gormLog
	for _, text := range messages()[:few] {
		rows = append(rows, gormLog{Message: text})
	}
	return rows
}

func gormInsertEach(db *gorm.DB) {
	for _, row := range gormLogs() {
		row := row
		check(db.Create(&row).Error)
	}
}

func gormInsertAll(db *gorm.DB) {
	rows := gormLogs()
	check(db.Create(&rows).Error)
}

func gormInsertBatches(db *gorm.DB) {
	check(db.CreateInBatches(gormLogs(), 1000).Error)
}

func gormUpdateEach(db *gorm.DB) {
	var accounts []gormAccount
	check(db.Order("id").Limit(few).Find(&accounts).Error)
	for i := range accounts {
		accounts[i].Balance++
		check(db.Save(&accounts[i]).Error)
	}
}

func gormUpdateAll(db *gorm.DB) {
	done := db.Model(&gormAccount{}).Where("id IN ?", accountIDs[:few]).Update("balance", gorm.Expr("balance + 1"))
	check(done.Error)
	expect(done.RowsAffected, int64(few))
}

func gormRepeat(times int) func(db *gorm.DB) {
	return func(db *gorm.DB) {
		for i := 0; i < times; i++ {
			var author gormAuthor
			check(db.First(&author, 140).Error)
			expect(author.Name, "author 140")
		}
	}
}

func gormBalanceOfEach(db *gorm.DB) {
	for _, id := range accountIDs[:12] {
		var account gormAccount
		check(db.First(&account, id).Error)
	}
}

func gormBalanceOfAll(db *gorm.DB) {
	var accounts []gormAccount
	check(db.Find(&accounts, accountIDs[:12]).Error)
	expect(len(accounts), 12)
}

func gormReadThenWrite(db *gorm.DB) {
	for _, id := range accountIDs[:few] {
		var account gormAccount
		check(db.Clauses(clause.Locking{Strength: "UPDATE"}).First(&account, id).Error)
		account.Balance++
		check(db.Save(&account).Error)
	}
}

func gormAddOne(db *gorm.DB) {
	for _, id := range accountIDs[:few] {
		done := db.Model(&gormAccount{}).Where("id = ?", id).Update("balance", gorm.Expr("balance + 1"))
		check(done.Error)
		expect(done.RowsAffected, int64(1))
	}
}

func gormFirstOrCreate(db *gorm.DB) {
	for _, name := range unseen()[:few] {
		var tag gormTag
		check(db.FirstOrCreate(&tag, gormTag{Name: name}).Error)
		if tag.ID == 0 {
			panic(fmt.Errorf("no tag %s", name))
		}
	}
}

func gormInsertUnlessThere(db *gorm.DB) {
	for _, name := range unseen()[:few] {
		check(db.Clauses(clause.OnConflict{DoNothing: true}).Create(&gormTag{Name: name}).Error)
	}
}
