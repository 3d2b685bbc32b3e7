// pgx: 8 goroutines, each with a connection of a pool, 50 statements and 2 to 6 ms of thinking after each.
package main

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	workers    = 8
	statements = 50
)

func work(ctx context.Context, pool *pgxpool.Pool, worker int) error {
	random := rand.New(rand.NewSource(int64(worker)))
	for i := 0; i < statements; i++ {
		person := 7 * (1 + random.Intn(400))
		var total int64
		query := "SELECT sum(amount) FROM pay WHERE person = $1"
		if err := pool.QueryRow(ctx, query, person).Scan(&total); err != nil {
			return err
		}
		time.Sleep(2*time.Millisecond + time.Duration(random.Intn(4000))*time.Microsecond)
	}
	return nil
}

func run() error {
	ctx := context.Background()
	config, err := pgxpool.ParseConfig("")
	if err != nil {
		return err
	}
	config.MaxConns = workers
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := pool.Ping(ctx); err != nil {
		return err
	}
	var group sync.WaitGroup
	failures := make(chan error, workers)
	for worker := 0; worker < workers; worker++ {
		group.Add(1)
		go func(worker int) {
			defer group.Done()
			if err := work(ctx, pool, worker); err != nil {
				failures <- err
			}
		}(worker)
	}
	group.Wait()
	close(failures)
	return <-failures
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
