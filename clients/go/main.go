// Runs one act of a Go driver: `go-client pgx|pgx-sql|libpq ACT`.
//
// The connection comes from the PG* environment. Nothing is printed on success.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
)

// What the seeded tables hold (clients/schema.sql).
const (
	authorCount    = 12
	booksPerAuthor = 3
	loopCount      = 10
	walkRows       = 50
	tableRows      = 200
	writeRows      = 20
)

var accountIDs = []int{
	311, 324, 338, 347, 359, 366, 372, 385, 394, 408,
	419, 423, 437, 446, 458, 469, 471, 483, 495, 502,
}

const (
	authorsQuery  = "SELECT id, name FROM authors ORDER BY id"
	booksOf       = "SELECT title, price::text FROM books WHERE author_id = $1 ORDER BY id"
	booksOfAll    = "SELECT title FROM books WHERE author_id = ANY($1)"
	insertLog     = "INSERT INTO log (message) VALUES ($1)"
	updateAccount = "UPDATE accounts SET balance = balance + $1 WHERE id = $2"
	selectValue   = "SELECT v FROM t WHERE id = $1"
)

type act func(ctx context.Context)

var drivers = map[string]map[string]act{
	"pgx":     pgxActs,
	"pgx-sql": sqlActs("pgx"),
	"libpq":   sqlActs("postgres"),
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

func usage() int {
	fmt.Fprintln(os.Stderr, "usage: go-client pgx|pgx-sql|libpq ACT|--list")
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
