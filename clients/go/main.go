// Runs one act of a Go driver or mapper: `go-client pgx|pgx-sql|libpq|gorm|bun|sqlx|mysql ACT`.
//
// The connection comes from the PG* environment; that of mysql from MYSQL_*. Nothing is printed on success.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"
)

// What the seeded tables hold (clients/schema.sql).
const (
	authorCount    = 12
	booksPerAuthor = 3
	loopCount      = 10
	walkRows       = 50
	tableRows      = 200
	writeRows      = 20
	filePortion    = 100
)

var accountIDs = []int{
	311, 324, 338, 347, 359, 366, 372, 385, 394, 408,
	419, 423, 437, 446, 458, 469, 471, 483, 495, 502,
}

var (
	fileIDs     = []int{613, 627, 634}
	fileContent = strings.Repeat("0123456789", 30)
	pageAuthors = []int{112, 140, 175, 203}
	authorPage  = []string{
		"SELECT name FROM authors WHERE id = $1",
		"SELECT string_agg(title, ', ') FROM books WHERE author_id = $1",
		"SELECT max(price)::text FROM books WHERE author_id = $1",
	}
)

const (
	authorsQuery  = "SELECT id, name FROM authors ORDER BY id"
	booksOf       = "SELECT title, price::text FROM books WHERE author_id = $1 ORDER BY id"
	booksOfAll    = "SELECT title FROM books WHERE author_id = ANY($1)"
	insertLog     = "INSERT INTO log (message) VALUES ($1)"
	updateAccount = "UPDATE accounts SET balance = balance + $1 WHERE id = $2"
	selectValue   = "SELECT v FROM t WHERE id = $1"
	selectBalance = "SELECT balance FROM accounts WHERE id = $1"
	selectContent = "SELECT content FROM files WHERE id = $1"
	readContent   = "SELECT lo_get(content) FROM files WHERE id = $1"
	countAuthors  = "SELECT count(*) FROM authors"
	lockBalance   = "SELECT balance FROM accounts WHERE id = $1 FOR UPDATE"
	writeBalance  = "UPDATE accounts SET balance = $1 WHERE id = $2"
	nextTicket    = "SELECT nextval('tickets_id_seq')"
	insertTicket  = "INSERT INTO tickets (id, note) VALUES ($1, $2)"
	addTicket     = "INSERT INTO tickets (note) VALUES ($1) RETURNING id"
	tagIDs        = "SELECT id FROM tags WHERE name = $1"
	insertTag     = "INSERT INTO tags (name) VALUES ($1)"
	addTag        = "INSERT INTO tags (name) VALUES ($1) ON CONFLICT DO NOTHING"
)

type act func(ctx context.Context)

var drivers = map[string]map[string]act{
	"pgx":     merged(pgxActs, pgxPatterns),
	"pgx-sql": sqlActs("pgx"),
	"libpq":   sqlActs("postgres"),
	"gorm":    gormActs(),
	"bun":     bunActs(),
	"sqlx":    sqlxActs(),
	"mysql":   mysqlActs(),
}

func merged(tables ...map[string]act) map[string]act {
	all := map[string]act{}
	for _, table := range tables {
		for name, act := range table {
			all[name] = act
		}
	}
	return all
}

// check ends the act: main reports the panic as one line.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

func expect(actual, wanted interface{}) {
	if actual != wanted {
		panic(fmt.Errorf("got %v, wanted %v", actual, wanted))
	}
}

func messages() []string {
	texts := make([]string, writeRows)
	for i := range texts {
		texts[i] = fmt.Sprintf("message %d", i+1)
	}
	return texts
}

// unseen are names that no row has.
func unseen() []string {
	names := make([]string, writeRows)
	for i := range names {
		names[i] = fmt.Sprintf("unseen %d %d", time.Now().UnixNano(), i)
	}
	return names
}

func usage() int {
	fmt.Fprintln(os.Stderr, "usage: go-client pgx|pgx-sql|libpq|gorm|bun|sqlx|mysql ACT|--list")
	return 2
}

func run() (code int) {
	if len(os.Args) != 3 {
		return usage()
	}
	acts := drivers[os.Args[1]]
	if os.Args[2] == "--list" {
		fmt.Println(strings.Join(sortedNames(acts), "\n"))
		return 0
	}
	chosen, ok := acts[os.Args[2]]
	if !ok {
		return usage()
	}
	defer func() {
		if problem := recover(); problem != nil {
			fmt.Fprintf(os.Stderr, "%s %s: %v\n", os.Args[1], os.Args[2], problem)
			code = 1
		}
	}()
	chosen(context.Background())
	return 0
}

func sortedNames(acts map[string]act) []string {
	names := make([]string, 0, len(acts))
	for name := range acts {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func main() {
	os.Exit(run())
}
