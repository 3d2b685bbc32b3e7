package main

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"

	"github.com/go-sql-driver/mysql"
)

const interpolated = "_interpolated"

var parameter = regexp.MustCompile(`\$\d+`)

// mysqlText writes ? for the parameters, which come in order, and leaves out the casts.
func mysqlText(query string) string {
	return parameter.ReplaceAllString(strings.ReplaceAll(query, "::text", ""), "?")
}

// mysqlDialect is that of go-sql-driver/mysql; set changes the settings of the data source name.
func mysqlDialect(set func(config *mysql.Config)) dialect {
	config := mysql.NewConfig()
	config.User = os.Getenv("MYSQL_USER")
	config.Passwd = os.Getenv("MYSQL_PWD")
	config.Net = "tcp"
	config.Addr = net.JoinHostPort(os.Getenv("MYSQL_HOST"), os.Getenv("MYSQL_TCP_PORT"))
	config.DBName = os.Getenv("MYSQL_DATABASE")
	set(config)
	return dialect{
		driver: "mysql",
		source: config.FormatDSN(),
		text:   mysqlText,
		authorPage: []string{
			"SELECT name FROM authors WHERE id = ?",
			"SELECT group_concat(title) FROM books WHERE author_id = ?",
			"SELECT max(price) FROM books WHERE author_id = ?",
		},
		wholePage: `
			SELECT name, group_concat(title), max(price)
			FROM authors JOIN books ON author_id = authors.id
			WHERE authors.id = ? GROUP BY name`,
		addTag: "INSERT IGNORE INTO tags (name) VALUES (?)",
	}
}

// mysqlActs are the acts of database/sql over go-sql-driver/mysql. Where a name ends in _interpolated, the driver writes the
// values into the text; else it prepares each query with values.
func mysqlActs() map[string]act {
	d := mysqlDialect(func(*mysql.Config) {})
	written := mysqlDialect(func(config *mysql.Config) { config.InterpolateParams = true })
	acts := merged(d.costs(), d.findings(), d.patterns(), d.mysqlCosts(), d.mysqlFixed(), d.mysqlTraps())
	for name, act := range merged(written.costs(), written.findings(), written.patterns(), written.mysqlTraps()) {
		if mysqlHasValues[name] {
			acts[name+interpolated] = act
		}
	}
	return merged(acts, written.mysqlInterpolated())
}

// mysqlHasValues are acts that are worth a run with the values in the text.
var mysqlHasValues = map[string]bool{
	"select_1": true, "select_2": true, "txn_1": true, "txn_2": true, "prepared_3": true, "n_plus_one_10": true,
	"bad_OT001": true, "bad_OT002": true, "bad_OT002_update": true, "bad_OT003": true, "bad_OT005": true, "bad_OT006": true,
	"bad_OT008": true, "bad_OT009": true, "bad_OT013": true, "bad_OT015": true, "trap_chain": true, "trap_two_of_each": true,
}

func (d dialect) mysqlCosts() map[string]act {
	withSettings := mysqlDialect(func(config *mysql.Config) {
		config.Params = map[string]string{"time_zone": "'+00:00'", "sql_mode": "'ANSI'"}
	})
	withCharset := mysqlDialect(func(config *mysql.Config) { config.Params = map[string]string{"charset": "utf8mb4"} })
	asking := mysqlDialect(func(config *mysql.Config) { config.MaxAllowedPacket = 0 })
	return map[string]act{
		"connect_settings":           withSettings.opened(sqlConnect),
		"connect_charset":            withCharset.opened(sqlConnect),
		"connect_max_allowed_packet": asking.opened(sqlConnect),
		"txn_isolation":              d.opened(mysqlInTxAt(sql.TxOptions{Isolation: sql.LevelReadCommitted}, d.txSelects(1))),
		"txn_read_only":              d.opened(mysqlInTxAt(sql.TxOptions{ReadOnly: true}, d.txSelects(1))),
		"txn_prepared_3":             d.opened(d.txPrepared(3)),
		"savepoint":                  d.opened(sqlInTx(d.savepoint)),
		"literal_1":                  d.opened(mysqlLiteral),
		"pool_checkin":               d.opened(d.checkIn),
		"insert_rows_3":              d.opened(insertRows(3)),
	}
}

func (d dialect) mysqlFixed() map[string]act {
	committed := mysqlDialect(func(config *mysql.Config) {
		config.Params = map[string]string{"tx_isolation": "'READ-COMMITTED'"}
	})
	return map[string]act{
		"fixed_OT001":        d.opened(sqlInTx(mysqlAllBooks)),
		"fixed_OT002":        d.opened(sqlInTx(mysqlInsertAll)),
		"fixed_OT002_update": d.opened(sqlInTx(mysqlUpdateAll)),
		"fixed_OT003":        d.opened(insertRows(writeRows)),
		"bad_OT008_no_idle":  d.opened(d.keepingNone),
		"fixed_OT009":        d.opened(mysqlBalanceOfAll),
		"bad_OT011_set":      d.opened(sqlTenTimes(mysqlSetFirst)),
		"fixed_OT011_set":    committed.opened(sqlTenTimes(sqlCountAuthors)),
		"fixed_OT013":        d.opened(sqlInTx(d.updateEach)),
	}
}

// mysqlInterpolated are acts for which interpolateParams is the fix, and those that do not prepare by themselves.
func (d dialect) mysqlInterpolated() map[string]act {
	together := mysqlDialect(func(config *mysql.Config) {
		config.InterpolateParams = true
		config.MultiStatements = true
	})
	return map[string]act{
		"fixed_OT006_interpolated": d.opened(d.selects(10, 7)),
		"fixed_OT007_interpolated": d.opened(d.selects(10, 7)),
		"fixed_OT008_interpolated": d.opened(d.selects(10, 7)),
		"bad_OT012_interpolated":   d.opened(d.pagesUnprepared),
		"fixed_OT012_multi":        together.opened(together.pagesTogether),
	}
}

func sqlConnect(ctx context.Context, db *sql.DB) {
	conn, err := db.Conn(ctx)
	check(err)
	check(conn.Close())
}

func mysqlInTxAt(options sql.TxOptions, work sqlTxWork) sqlWork {
	return func(ctx context.Context, db *sql.DB) {
		tx, err := db.BeginTx(ctx, &options)
		check(err)
		work(ctx, tx)
		check(tx.Commit())
	}
}

// txPrepared runs a statement of the pool within a transaction.
func (d dialect) txPrepared(count int) sqlWork {
	return func(ctx context.Context, db *sql.DB) {
		statement, err := db.PrepareContext(ctx, d.text(selectValue))
		check(err)
		defer statement.Close()
		sqlInTx(func(ctx context.Context, tx *sql.Tx) {
			for number := 1; number <= count; number++ {
				var value string
				check(tx.StmtContext(ctx, statement).QueryRowContext(ctx, number).Scan(&value))
				expect(value, fmt.Sprintf("value %d", number))
			}
		})(ctx, db)
	}
}

func (d dialect) savepoint(ctx context.Context, tx *sql.Tx) {
	sqlExec(tx.ExecContext(ctx, "SAVEPOINT one"))
	d.selectOne(ctx, tx, 1)
	sqlExec(tx.ExecContext(ctx, "RELEASE SAVEPOINT one"))
}

// mysqlLiteral has no values, so that nothing is prepared.
func mysqlLiteral(ctx context.Context, db *sql.DB) {
	var value string
	check(db.QueryRowContext(ctx, "SELECT v FROM t WHERE id = 1").Scan(&value))
	expect(value, "value 1")
}

// checkIn gives a connection back to the pool and takes it again.
func (d dialect) checkIn(ctx context.Context, db *sql.DB) {
	for number := 1; number <= 2; number++ {
		conn, err := db.Conn(ctx)
		check(err)
		d.selectOne(ctx, conn, number)
		check(conn.Close())
	}
}

// keepingNone has a pool that closes each connection as soon as it is given back.
func (d dialect) keepingNone(ctx context.Context, db *sql.DB) {
	db.SetMaxIdleConns(0)
	d.selects(10, 7)(ctx, db)
}

// marks are as many parameters as there are values.
func marks(count int) string {
	return strings.TrimSuffix(strings.Repeat("?, ", count), ", ")
}

func anyOf(ids []int) []interface{} {
	values := make([]interface{}, len(ids))
	for i, id := range ids {
		values[i] = id
	}
	return values
}

func mysqlAllBooks(ctx context.Context, tx *sql.Tx) {
	ids := sqlAuthors(ctx, tx, authorCount)
	query := fmt.Sprintf("SELECT title FROM books WHERE author_id IN (%s)", marks(len(ids)))
	expect(sqlCountRows(tx.QueryContext(ctx, query, anyOf(ids)...)), authorCount*booksPerAuthor)
}

// mysqlInsert is a statement that writes so many messages, and their texts.
func mysqlInsert(count int) (string, []interface{}) {
	var values []interface{}
	for _, text := range messages()[:count] {
		values = append(values, text)
	}
	rows := strings.TrimSuffix(strings.Repeat("(?), ", count), ", ")
	return "INSERT INTO log (message) VALUES " + rows, values
}

func insertRows(count int) sqlWork {
	return func(ctx context.Context, db *sql.DB) {
		query, values := mysqlInsert(count)
		expect(sqlExec(db.ExecContext(ctx, query, values...)), int64(count))
	}
}

func mysqlInsertAll(ctx context.Context, tx *sql.Tx) {
	query, values := mysqlInsert(writeRows)
	expect(sqlExec(tx.ExecContext(ctx, query, values...)), int64(writeRows))
}

func mysqlUpdateAll(ctx context.Context, tx *sql.Tx) {
	query := fmt.Sprintf("UPDATE accounts SET balance = balance + 1 WHERE id IN (%s)", marks(len(accountIDs)))
	expect(sqlExec(tx.ExecContext(ctx, query, anyOf(accountIDs)...)), int64(writeRows))
}

func mysqlBalanceOfAll(ctx context.Context, db *sql.DB) {
	query := fmt.Sprintf("SELECT id, balance FROM accounts WHERE id IN (%s)", marks(12))
	expect(sqlCountRows(db.QueryContext(ctx, query, anyOf(accountIDs[:12])...)), 12)
}

func mysqlSetFirst(ctx context.Context, db *sql.DB) {
	sqlExec(db.ExecContext(ctx, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"))
	sqlCountAuthors(ctx, db)
}

// pagesUnprepared asks three times for each author.
func (d dialect) pagesUnprepared(ctx context.Context, db *sql.DB) {
	for _, author := range pageAuthors {
		for _, query := range d.authorPage {
			var text string
			check(db.QueryRowContext(ctx, query, author).Scan(&text))
		}
	}
}

// pagesTogether sends the three queries in one text, which multiStatements allows.
func (d dialect) pagesTogether(ctx context.Context, db *sql.DB) {
	text := strings.Join(d.authorPage, "; ")
	for _, author := range pageAuthors {
		rows, err := db.QueryContext(ctx, text, author, author, author)
		check(err)
		results := 0
		for more := true; more; more = rows.NextResultSet() {
			for rows.Next() {
				var value string
				check(rows.Scan(&value))
				results++
			}
		}
		check(rows.Err())
		check(rows.Close())
		expect(results, len(d.authorPage))
	}
}

// ---- traps: what looks avoidable and is not

func (d dialect) mysqlTraps() map[string]act {
	return map[string]act{
		"trap_chain":               d.opened(d.chain),
		"trap_two_of_each":         d.opened(d.twoOfEach),
		"trap_prepared_per_worker": d.preparedPerWorker,
	}
}

// chain asks for what each answer names.
func (d dialect) chain(ctx context.Context, db *sql.DB) {
	number := 713
	for i := 0; i < 10; i++ {
		check(db.QueryRowContext(ctx, "SELECT next FROM links WHERE id = ?", number).Scan(&number))
	}
	expect(number, 713)
}

// twoOfEach are too few to be a loop.
func (d dialect) twoOfEach(ctx context.Context, db *sql.DB) {
	for _, author := range pageAuthors[:2] {
		expect(sqlCountRows(db.QueryContext(ctx, d.text(booksOf), author)), booksPerAuthor)
	}
}

// preparedPerWorker runs a *sql.Stmt on four connections at once. database/sql prepares it again on each that it meets.
func (d dialect) preparedPerWorker(ctx context.Context) {
	db, err := sql.Open(d.driver, d.source)
	check(err)
	defer db.Close()
	statement, err := db.PrepareContext(ctx, d.text(selectValue))
	check(err)
	defer statement.Close()
	var open []*sql.Rows // each keeps its connection until it is closed
	for worker := 1; worker <= 4; worker++ {
		rows, err := statement.QueryContext(ctx, worker)
		check(err)
		open = append(open, rows)
	}
	for _, rows := range open {
		expect(sqlCountRows(rows, nil), 1)
	}
}
