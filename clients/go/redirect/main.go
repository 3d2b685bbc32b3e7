// pgx with its database in the code: the arguments are HOST PORT.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"
)

func main() {
	ctx := context.Background()
	url := fmt.Sprintf("postgres://onetrip:onetrip-secret@%s:%s/postgres", os.Args[1], os.Args[2])
	connection, err := pgx.Connect(ctx, url)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer connection.Close(ctx)
	var answer int
	if err := connection.QueryRow(ctx, "SELECT 41 + 1").Scan(&answer); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(answer)
}
