// The lab's work in pgx: statement by statement, and in batches.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
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
		return fmt.Errorf("usage: %s pipeline-read|pipeline-dml|pipeline-oltp blocking|batch N SESSION", os.Args[0])
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
	var told []statement
	if os.Args[1] == "pipeline-oltp" {
		if told, err = listen(lines); err != nil {
			return err
		}
	}
	for turn := 0; lines.Scan(); turn++ {
		began, used := time.Now(), cpu()
		rows := 0
		switch os.Args[1] {
		case "pipeline-read":
			rows, err = read(ctx, connection, count, session, batch)
		case "pipeline-oltp":
			rows, err = play(ctx, connection, told, count, batch)
		default:
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

// statement is one that the lab tells.
type statement struct {
	text   string
	values []any
}

// listen reads what the lab tells first: a statement a line, its values behind tabs, up to an empty line.
func listen(lines *bufio.Scanner) ([]statement, error) {
	var told []statement
	for lines.Scan() && lines.Text() != "" {
		words := strings.Split(lines.Text(), "\t")
		this := statement{text: words[0]}
		for _, word := range words[1:] {
			value, err := strconv.Atoi(word)
			if err != nil {
				return nil, err
			}
			this.values = append(this.values, value)
		}
		told = append(told, this)
	}
	return told, lines.Err()
}

func play(ctx context.Context, connection *pgx.Conn, told []statement, count int, batch bool) (int, error) {
	all := 0
	for turn := 0; turn < count; turn++ {
		rows, err := 0, error(nil)
		if batch {
			rows, err = together(ctx, connection, told)
		} else {
			rows, err = inTurn(ctx, connection, told)
		}
		if err != nil {
			return 0, err
		}
		all += rows
	}
	return all, nil
}

func inTurn(ctx context.Context, connection *pgx.Conn, told []statement) (int, error) {
	all := 0
	for _, this := range told {
		if len(this.values) == 0 {
			if _, err := connection.Exec(ctx, this.text); err != nil {
				return 0, err
			}
			continue
		}
		rows, err := counted(connection.Query(ctx, this.text, this.values...))
		if err != nil {
			return 0, err
		}
		all += rows
	}
	return all, nil
}

func together(ctx context.Context, connection *pgx.Conn, told []statement) (int, error) {
	batch := &pgx.Batch{}
	for _, this := range told {
		batch.Queue(this.text, this.values...)
	}
	results := connection.SendBatch(ctx, batch)
	all := 0
	for range told {
		rows, err := counted(results.Query())
		if err != nil {
			return 0, err
		}
		all += rows
	}
	return all, results.Close()
}

func counted(rows pgx.Rows, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	all := 0
	for rows.Next() {
		all++
	}
	return all, rows.Err()
}

// cpu is the process's CPU time in nanoseconds.
func cpu() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}
