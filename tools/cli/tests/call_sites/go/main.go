// A loop over database/sql: a comment marks the line that its finding has to name.
package main

import (
	"database/sql"
	"database/sql/driver"
	"log"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/lib/pq"
	"onetrip/callsites"
)

func titles(database *sql.DB, author int) (count int) {
	rows, err := database.Query("SELECT title FROM book WHERE author_id = $1", author) // OT001
	check(err)
	defer rows.Close()
	for rows.Next() {
		count++
	}
	return count
}

func note(database *sql.DB, body string) {
	_, err := database.Exec("INSERT INTO note (body) VALUES ($1)", body)
	check(err)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func connector() driver.Connector {
	if len(os.Args) > 1 && os.Args[1] == "pgx" {
		config, err := pgx.ParseConfig("")
		check(err)
		return stdlib.GetConnector(*config)
	}
	connector, err := pq.NewConnector("sslmode=disable")
	check(err)
	return connector
}

func main() {
	database := sql.OpenDB(callsites.Wrap(connector()))
	defer database.Close()
	database.SetMaxOpenConns(1)
	var authors []int
	rows, err := database.Query("SELECT id FROM author ORDER BY id")
	check(err)
	for rows.Next() {
		var author int
		check(rows.Scan(&author))
		authors = append(authors, author)
	}
	check(rows.Err())
	for _, author := range authors {
		titles(database, author)
	}
	for range authors {
		note(database, "read")
	}
}
