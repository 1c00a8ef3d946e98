// Package sqldb runs the statements of sql grants on their databases.
//
// A [Broker] runs a statement that a grant names, with values for its parameters,
// which are bound and never become a part of its text. It keeps connections, by
// the hash of the grant, until nobody has used them for a while; files that calls
// choose are opened for each statement anew, from the file that was checked, and
// only read. What a statement may do is enforced by the database: SQLite by
// package sqldb/sqlite, PostgreSQL by transactions that only read. A statement ends with
// its call, and its answer is bounded in rows and bytes.
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
	// Drivers are those that the program has, by the kinds of grants. The broker closes them.
	Drivers map[string]Driver
	// Resolve returns the value of a secret. Its error is for the operator's log.
	Resolve func(ctx context.Context, secret string) (string, error)
	// Redact takes what no script may see out of the texts and bytes of a row.
	Redact func([]byte) []byte
	// Logger gets what the operator should know.
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

// Do does the operation that a script asks for by the name of its method, and
// returns the answer, both JSON:
//
//	open   {"path"}                          {}
//	query  {"path","statement","params"}     {"columns":[name],"rows":[[value]]}
//	exec   {"path","statement","params"}     {"changes"}
//
// Params are values by name. A value is null, a boolean, a number, a string,
// {"base64": text} for bytes or, as a parameter, {"integer": text}. The error is
// always a [*scripting.HostError]: INVALID for what is malformed and what the
// database takes for a mistake, OUTSIDE_ROOT and NOT_GRANTED for what the grant
// does not cover, NOT_FOUND, DENIED, TOO_LARGE, TIMEOUT, and UNAVAILABLE.
func (b *Broker) Do(ctx context.Context, d Database, method string, payload []byte) ([]byte, error) {
	r, err := d.Parse(method, payload)
	if err != nil {
		return nil, err
	}
	driver := b.options.Drivers[d.Driver]
	if driver == nil {
		return nil, Fault(scripting.Unavailable, r.Name, "the program has no driver of the database")
	}
	a := &Answer{name: r.Name, maxRows: d.MaxRows, redact: b.options.Redact}
	if err := b.run(ctx, d, r, a); err != nil {
		b.options.Logger.DebugContext(ctx, "a statement failed", slog.String("grant", d.Name), slog.String("statement", r.Name),
			slog.String("error", err.Error()))
		return nil, explain(ctx, driver, r, err)
	}
	return a.encoded(method)
}

func (b *Broker) run(ctx context.Context, d Database, r *Request, a *Answer) error {
	if d.PathFromCall {
		driver, ok := b.options.Drivers[d.Driver].(FileDriver)
		if !ok {
			return Fault(scripting.Unavailable, r.Name, "the driver of the database reads no file that a call chooses")
		}
		return readChosen(ctx, driver, d.SQL, r, a)
	}
	p, release, ok := b.lease(d)
	if !ok {
		return Fault(scripting.Unavailable, r.Name, "the server is stopping")
	}
	defer release()
	c, err := p.take(ctx)
	if err != nil {
		return err
	}
	err = c.Run(ctx, r, a)
	p.give(c)
	return err
}

func (a *Answer) encoded(method string) ([]byte, error) {
	switch method {
	case "open":
		return []byte("{}"), nil
	case "exec":
		return json.Marshal(map[string]int64{"changes": a.Changes})
	}
	return json.Marshal(map[string]any{"columns": a.Columns, "rows": a.Rows})
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

// Deadline is how long an operation may still take, at most a day.
func Deadline(ctx context.Context) time.Duration {
	at, ok := ctx.Deadline()
	if !ok {
		return 24 * time.Hour
	}
	return time.Until(at)
}
