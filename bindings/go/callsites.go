// Package callsites tells `onetrip run` which line of a Go program sends each statement.
//
// It wraps a connector of database/sql:
//
//	connector, err := pq.NewConnector(url)
//	database := sql.OpenDB(callsites.Wrap(connector))
//
// Without `onetrip run --call-sites on` around the program, Wrap returns the connector as it is. With it, each call of the
// driver that may wait for the database is told over a socket of onetrip's own. Nothing is added to what goes between client
// and database: statements, prepared statements and trips stay the same. Whatever fails here ends the telling, not the program.
//
// A connection that sql.Conn.Raw hands out is then this package's; its method Unwrap gives the driver's.
package callsites

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	// variable holds the path of the socket.
	variable = "ONETRIP_CALLS"
	// Frames of one site, and bytes of its text.
	framesMax     = 5
	frameBytesMax = 200
	// Frames that are looked at for one of the program's.
	depthMax = 100
	// A socket that takes nothing for so long is given up.
	patience = 50 * time.Millisecond
	// clockMonotonic is CLOCK_MONOTONIC of Linux, by which onetrip and its programs tell times.
	clockMonotonic = 1
)

// Wrap returns a connector that tells onetrip of the calls of its connections; the connector itself, if nobody asks for them.
func Wrap(connector driver.Connector) driver.Connector {
	path := os.Getenv(variable)
	if path == "" {
		return connector
	}
	return &wrapped{connector, newTeller(path)}
}

type wrapped struct {
	driver.Connector
	teller *teller
}

func (w *wrapped) Connect(ctx context.Context) (driver.Conn, error) {
	begun, site := now(), siteHere()
	inner, err := w.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	conn := &conn{inner, w.teller, w.teller.connections.Add(1)}
	w.teller.tell("open", conn.number, begun, site)
	return conn, nil
}

// conn is a connection. database/sql asks a connection for optional methods; those that the driver's lacks answer as
// database/sql wants it for a driver without them.
type conn struct {
	driver.Conn
	teller *teller
	number uint64
}

// Unwrap returns the driver's own connection.
func (c *conn) Unwrap() driver.Conn { return c.Conn }

// tells of a call that begins now, when the function that it returns is called.
func (c *conn) tells() func() {
	begun, site := now(), siteHere()
	return func() { c.teller.tell("call", c.number, begun, site) }
}

func (c *conn) Ping(ctx context.Context) error {
	if inner, ok := c.Conn.(driver.Pinger); ok {
		defer c.tells()()
		return inner.Ping(ctx)
	}
	return nil
}

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if inner, ok := c.Conn.(driver.QueryerContext); ok {
		defer c.tells()()
		return inner.QueryContext(ctx, query, args)
	}
	return nil, driver.ErrSkip
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if inner, ok := c.Conn.(driver.ExecerContext); ok {
		defer c.tells()()
		return inner.ExecContext(ctx, query, args)
	}
	return nil, driver.ErrSkip
}

func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	defer c.tells()()
	var inner driver.Stmt
	var err error
	if prepares, ok := c.Conn.(driver.ConnPrepareContext); ok {
		inner, err = prepares.PrepareContext(ctx, query)
	} else {
		inner, err = c.Conn.Prepare(query)
	}
	if err != nil {
		return nil, err
	}
	return &stmt{inner, c}, nil
}

func (c *conn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	defer c.tells()()
	var inner driver.Tx
	var err error
	if begins, ok := c.Conn.(driver.ConnBeginTx); ok {
		inner, err = begins.BeginTx(ctx, options)
	} else if options.ReadOnly || options.Isolation != 0 {
		return nil, fmt.Errorf("the driver knows neither isolation levels nor read-only transactions")
	} else {
		inner, err = c.Conn.Begin() //nolint:staticcheck // as database/sql does for such a driver
	}
	if err != nil {
		return nil, err
	}
	return &tx{inner, c}, nil
}

func (c *conn) ResetSession(ctx context.Context) error {
	if inner, ok := c.Conn.(driver.SessionResetter); ok {
		defer c.tells()()
		return inner.ResetSession(ctx)
	}
	return nil
}

func (c *conn) IsValid() bool {
	if inner, ok := c.Conn.(driver.Validator); ok {
		return inner.IsValid()
	}
	return true
}

func (c *conn) CheckNamedValue(value *driver.NamedValue) error {
	if inner, ok := c.Conn.(driver.NamedValueChecker); ok {
		return inner.CheckNamedValue(value)
	}
	return driver.ErrSkip
}

type tx struct {
	driver.Tx
	conn *conn
}

func (t *tx) Commit() error {
	defer t.conn.tells()()
	return t.Tx.Commit()
}

func (t *tx) Rollback() error {
	defer t.conn.tells()()
	return t.Tx.Rollback()
}

type stmt struct {
	driver.Stmt
	conn *conn
}

func (s *stmt) Close() error {
	defer s.conn.tells()()
	return s.Stmt.Close()
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	defer s.conn.tells()()
	if inner, ok := s.Stmt.(driver.StmtQueryContext); ok {
		return inner.QueryContext(ctx, args)
	}
	values, err := unnamed(ctx, args)
	if err != nil {
		return nil, err
	}
	return s.Stmt.Query(values) //nolint:staticcheck // as database/sql does for such a driver
}

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	defer s.conn.tells()()
	if inner, ok := s.Stmt.(driver.StmtExecContext); ok {
		return inner.ExecContext(ctx, args)
	}
	values, err := unnamed(ctx, args)
	if err != nil {
		return nil, err
	}
	return s.Stmt.Exec(values) //nolint:staticcheck // as database/sql does for such a driver
}

func (s *stmt) CheckNamedValue(value *driver.NamedValue) error {
	if inner, ok := s.Stmt.(driver.NamedValueChecker); ok {
		return inner.CheckNamedValue(value)
	}
	return s.conn.CheckNamedValue(value)
}

func (s *stmt) ColumnConverter(index int) driver.ValueConverter {
	if inner, ok := s.Stmt.(driver.ColumnConverter); ok { //nolint:staticcheck // a driver may have it alone
		return inner.ColumnConverter(index)
	}
	return driver.DefaultParameterConverter
}

// unnamed are the values for a driver that knows no names and no context.
func unnamed(ctx context.Context, args []driver.NamedValue) ([]driver.Value, error) {
	values := make([]driver.Value, len(args))
	for place, arg := range args {
		if arg.Name != "" {
			return nil, fmt.Errorf("the driver does not know named parameters")
		}
		values[place] = arg.Value
	}
	return values, ctx.Err()
}

// now is the time of CLOCK_MONOTONIC, in nanoseconds.
func now() int64 {
	var at syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&at)), 0); errno != 0 {
		return 0
	}
	return at.Nano()
}

var (
	module  = mainModule()
	root, _ = os.Getwd()
)

// mainModule is the path of the module that the program was built from; "" if it does not say.
func mainModule() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Path
	}
	return ""
}

// packageOf is the package of a function: its path has slashes, what follows has none.
func packageOf(function string) string {
	last := strings.LastIndexByte(function, '/') + 1
	name, _, _ := strings.Cut(function[last:], ".")
	return function[:last] + name
}

// siteHere are the program's frames, the innermost first, as JSON; "" if there is none.
func siteHere() string {
	var counters [depthMax]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(2, counters[:])])
	var own []string
	for len(own) < framesMax {
		frame, more := frames.Next()
		if isProgram(frame) {
			file := frame.File
			if relative, err := filepath.Rel(root, file); err == nil && !strings.HasPrefix(relative, "..") {
				file = relative
			}
			function := frame.Function[strings.LastIndexByte(frame.Function, '/')+1:]
			_, function, _ = strings.Cut(function, ".")
			shown := fmt.Sprintf("%s:%d in %s", file, frame.Line, function)
			if len(shown) > frameBytesMax {
				shown = strings.ToValidUTF8(shown[len(shown)-frameBytesMax:], "")
			}
			own = append(own, shown)
		}
		if !more {
			break
		}
	}
	if len(own) == 0 {
		return ""
	}
	text, err := json.Marshal(own)
	if err != nil {
		return ""
	}
	return string(text)
}

// isProgram tells whether a frame is in package main or in the program's own module. The standard library and other modules are
// not the program's.
func isProgram(frame runtime.Frame) bool {
	name := packageOf(frame.Function)
	return name == "main" || module != "" && (name == module || strings.HasPrefix(name, module+"/"))
}

// teller is the socket, and what was told. A program may end at any time, so what is told goes out at once.
type teller struct {
	connections atomic.Uint64
	mutex       sync.Mutex
	// Nil once it has failed.
	socket net.Conn
	sites  map[string]int
}

func newTeller(path string) *teller {
	socket, err := net.Dial("unix", path)
	if err != nil {
		socket = nil
	}
	return &teller{socket: socket, sites: map[string]int{}}
}

// tell says that a call is over.
func (t *teller) tell(kind string, connection uint64, begun int64, site string) {
	ended := now()
	if site == "" && kind != "open" {
		return
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.socket == nil {
		return
	}
	lines, number := "", "-"
	if site != "" {
		known, isKnown := t.sites[site]
		if !isKnown {
			known = len(t.sites)
			t.sites[site] = known
			lines = fmt.Sprintf("site %d %s\n", known, site)
		}
		number = fmt.Sprint(known)
	}
	lines += fmt.Sprintf("%s %d %d %d %s\n", kind, connection, begun, ended, number)
	_ = t.socket.SetWriteDeadline(time.Now().Add(patience))
	if _, err := t.socket.Write([]byte(lines)); err != nil {
		_ = t.socket.Close()
		t.socket = nil
	}
}
