// The lab's work in pgx: statement by statement, and in batches.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	selectRow   = "SELECT id, note FROM items WHERE id = $1"
	insertOrder = "INSERT INTO orders VALUES ($1, 0)"
	updateStock = "UPDATE stock SET quantity = quantity + 1 WHERE id = $1"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if len(os.Args) != 5 {
		return fmt.Errorf("usage: %s pipeline-read|pipeline-dml blocking|batch N SESSION", os.Args[0])
	}
	batch := os.Args[2] == "batch"
	count, err := strconv.Atoi(os.Args[3])
	if err != nil {
		return err
	}
	session, err := strconv.Atoi(os.Args[4])
	if err != nil {
		return err
	}
	connection, err := pgx.Connect(ctx, "")
	if err != nil {
		return err
	}
	defer connection.Close(ctx)
	lines := bufio.NewScanner(os.Stdin)
	for turn := 0; lines.Scan(); turn++ {
		began, used := time.Now(), cpu()
		rows := 0
		if os.Args[1] == "pipeline-read" {
			rows, err = read(ctx, connection, count, session, batch)
		} else {
			err = write(ctx, connection, work{count, session, turn}, batch)
		}
		if err != nil {
			return err
		}
		fmt.Printf("{\"rows\": %d, \"ns\": %d, \"cpu_ns\": %d}\n", rows, time.Since(began).Nanoseconds(), cpu()-used)
	}
	return lines.Err()
}

// work is what a session does in a turn: keys and orders are its own.
type work struct{ count, session, turn int }

func read(ctx context.Context, connection *pgx.Conn, count, session int, batch bool) (int, error) {
	var note string
	var id int
	if !batch {
		for n := 0; n < count; n++ {
			if err := connection.QueryRow(ctx, selectRow, 1+(n*7919+session*131)%10000).Scan(&id, &note); err != nil {
				return 0, err
			}
		}
		return count, nil
	}
	together := &pgx.Batch{}
	for n := 0; n < count; n++ {
		together.Queue(selectRow, 1+(n*7919+session*131)%10000)
	}
	results := connection.SendBatch(ctx, together)
	for n := 0; n < count; n++ {
		if err := results.QueryRow().Scan(&id, &note); err != nil {
			return 0, err
		}
	}
	return count, results.Close()
}

func write(ctx context.Context, connection *pgx.Conn, its work, batch bool) error {
	together := &pgx.Batch{}
	do := func(text string, arguments ...any) error {
		if batch {
			together.Queue(text, arguments...)
			return nil
		}
		_, err := connection.Exec(ctx, text, arguments...)
		return err
	}
	if err := do("BEGIN"); err != nil {
		return err
	}
	for unit := 0; unit < its.count; unit++ {
		if err := do(insertOrder, its.session*1000000+its.turn*its.count+unit); err != nil {
			return err
		}
		for line := 0; line < 4; line++ {
			if err := do(updateStock, its.session*100+1+(unit*4+line)%100); err != nil {
				return err
			}
		}
	}
	if err := do("COMMIT"); err != nil {
		return err
	}
	if batch {
		return connection.SendBatch(ctx, together).Close()
	}
	return nil
}

// cpu is the process's CPU time in nanoseconds.
func cpu() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}
