// The story loop of pgx: `story loop|reads COUNT`. A statement is described at its first use, then kept prepared.
package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	employeesQuery = "SELECT id, name FROM emp ORDER BY id"
	salaryQuery    = "SELECT amount FROM salary WHERE emp_id = $1"
)

type employee struct {
	ID   int32
	Name string
}

func loop(ctx context.Context, conn *pgx.Conn, count int) ([]string, error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback(ctx)
	rows, err := tx.Query(ctx, employeesQuery)
	if err != nil {
		return nil, err
	}
	employees, err := pgx.CollectRows(rows, pgx.RowToStructByPos[employee])
	if err != nil {
		return nil, err
	}
	if count < len(employees) {
		employees = employees[:count]
	}
	var lines []string
	for _, one := range employees {
		lines = append(lines, fmt.Sprintf("%d %s", one.ID, one.Name))
		if lines, err = appendSalaries(ctx, tx, one.ID, lines); err != nil {
			return nil, err
		}
	}
	return lines, tx.Commit(ctx)
}

func appendSalaries(ctx context.Context, tx pgx.Tx, id int32, lines []string) ([]string, error) {
	rows, err := tx.Query(ctx, salaryQuery, id)
	if err != nil {
		return nil, err
	}
	amounts, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	for _, amount := range amounts {
		lines = append(lines, strconv.Itoa(int(amount)))
	}
	return lines, err
}

func reads(ctx context.Context, conn *pgx.Conn, count int) (lines []string, err error) {
	for number := 1; number <= count; number++ {
		err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) (err error) {
			lines, err = appendSalaries(ctx, tx, int32(100+3*number), lines)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return lines, nil
}

func run(act string, count int) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, "")
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	work := map[string]func(context.Context, *pgx.Conn, int) ([]string, error){"loop": loop, "reads": reads}[act]
	began := time.Now()
	lines, err := work(ctx, conn, count)
	if err != nil {
		return err
	}
	milliseconds := float64(time.Since(began).Microseconds()) / 1000
	checksum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	fmt.Printf("%.1f %x\n", milliseconds, checksum[:8])
	return nil
}

func main() {
	count, err := 0, error(nil)
	if len(os.Args) == 3 {
		count, err = strconv.Atoi(os.Args[2])
	}
	if len(os.Args) != 3 || err != nil || os.Args[1] != "loop" && os.Args[1] != "reads" {
		fmt.Fprintln(os.Stderr, "usage: story loop|reads COUNT")
		os.Exit(2)
	}
	if err := run(os.Args[1], count); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
