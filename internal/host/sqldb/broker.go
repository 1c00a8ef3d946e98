// Package sqldb runs the statements of sql grants.
//
// A [Broker] runs a statement that a grant names. Parameter values are bound, and never become
// part of its text. It pools connections by the hash of the grant, and closes idle ones. Files
// chosen by calls are opened for each statement, from the checked file, read-only. The database
// enforces what a statement may do: SQLite through package sqldb/sqlite, PostgreSQL through
// read-only transactions. A statement ends with its call, and its result is limited in rows and
// bytes.
package sqldb

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// Options configure a [Broker].
type Options struct {
	// Drivers are the drivers of the program, by kind. The broker closes them.
	Drivers map[string]Driver
	// Resolve returns the value of a secret. Its errors are logged.
	Resolve func(ctx context.Context, secret string) (string, error)
	// Redact redacts texts and bytes of a row.
	Redact func([]byte) []byte
	// Logger receives messages for the operator.
	Logger *slog.Logger
}

// Broker runs statements. It is safe for concurrent use.
type Broker struct {
	options Options

	mu     sync.Mutex
	pools  map[key]*pool
	closed bool
}

// New returns a Broker. Close it when the server stops.
func New(o Options) *Broker {
	return &Broker{options: o, pools: map[key]*pool{}}
}

// Do carries out an operation by its method name and returns the result, both JSON:
//
//	open   {"path"}                          {}
//	query  {"path","statement","params"}     {"columns":[name],"rows":[[value]]}
//	exec   {"path","statement","params"}     {"changes"}
//
// Params are values by name. A value is null, a boolean, a number, a string, {"base64": text}
// for bytes or, as a parameter, {"integer": text}. The error is always a
// [*scripting.HostError]: INVALID for a malformed operation and for errors in the statement,
// OUTSIDE_ROOT and NOT_GRANTED for an operation outside of the grant, NOT_FOUND, DENIED,
// TOO_LARGE, TIMEOUT, and UNAVAILABLE.
func (b *Broker) Do(ctx context.Context, d Database, method string, payload []byte) ([]byte, error) {
	r, err := d.Parse(method, payload)
	if err != nil {
		return nil, err
	}
	driver := b.options.Drivers[d.Driver]
	if driver == nil {
		return nil, NewHostError(scripting.Unavailable, r.Name, "the program has no driver for the database")
	}
	a := &Rows{name: r.Name, maxRows: d.MaxRows, redact: b.options.Redact}
	if err := b.run(ctx, d, r, a); err != nil {
		b.options.Logger.DebugContext(ctx, "statement failed", slog.String("grant", d.Name), slog.String("statement", r.Name),
			slog.String("error", err.Error()))
		return nil, explain(ctx, driver, r, err)
	}
	return a.encode(method)
}

func (b *Broker) run(ctx context.Context, d Database, r *Query, a *Rows) error {
	if d.PathFromCall {
		driver, ok := b.options.Drivers[d.Driver].(FileDriver)
		if !ok {
			return NewHostError(scripting.Unavailable, r.Name, "the driver of the database does not support files that a call chooses")
		}
		return queryFile(ctx, driver, d.SQL, r, a)
	}
	p, release, ok := b.lease(d)
	if !ok {
		return NewHostError(scripting.Unavailable, r.Name, "the server is stopping")
	}
	defer release()
	c, err := p.get(ctx)
	if err != nil {
		return err
	}
	err = c.Run(ctx, r, a)
	p.put(c)
	return err
}

func (r *Rows) encode(method string) ([]byte, error) {
	switch method {
	case "open":
		return []byte("{}"), nil
	case "exec":
		return json.Marshal(map[string]int64{"changes": r.Changes})
	}
	return json.Marshal(map[string]any{"columns": r.Columns, "rows": r.Rows})
}

// Close closes all connections and refuses further operations.
func (b *Broker) Close() error {
	b.mu.Lock()
	b.closed = true
	pools := b.pools
	b.pools = map[key]*pool{}
	b.mu.Unlock()
	for _, p := range pools {
		p.idle.Stop()
		p.close()
	}
	var failed error
	for _, driver := range b.options.Drivers {
		failed = errors.Join(failed, driver.Close())
	}
	return failed
}

// Deadline returns the remaining time of an operation, at most a day.
func Deadline(ctx context.Context) time.Duration {
	at, ok := ctx.Deadline()
	if !ok {
		return 24 * time.Hour
	}
	return time.Until(at)
}
