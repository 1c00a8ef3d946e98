// Package host does for scripts what they may not do themselves. A [Call] is
// the scripting.Host of one run of one body: it holds the grants of that body's
// definition and nothing else, checks every operation against them, and hands
// it to the broker that does it. [Mocks] answer instead when the run is a test.
package host

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/host/egress"
	"github.com/mcpd/mcpd/internal/host/execs"
	"github.com/mcpd/mcpd/internal/host/files"
	"github.com/mcpd/mcpd/internal/host/gomodule"
	"github.com/mcpd/mcpd/internal/host/kv"
	"github.com/mcpd/mcpd/internal/host/oauth"
	"github.com/mcpd/mcpd/internal/host/secrets"
	"github.com/mcpd/mcpd/internal/host/sqldb"
)

// Brokers are what all calls of a server share.
type Brokers struct {
	Egress   *egress.Pool
	Values   *kv.Broker
	Secrets  *secrets.Store
	Files    *files.Broker
	Programs *execs.Broker
	SQL      *sqldb.Broker
	// Modules is nil where the program gives scripts none.
	Modules *gomodule.Broker
	// Audit writes down what is no call; an error means that it may not happen.
	Audit  func(event string, attributes map[string]string) error
	Logger *slog.Logger

	tokens *oauth.Broker
	open   func() (state.Store, error)
}

// Options say what brokers are made of.
type Options struct {
	// LookupEnv reads a variable of the environment, for secrets and env grants.
	LookupEnv func(name string) (string, bool)
	// Open returns where values are kept.
	OpenStore func() (state.Store, error)
	// Drivers run the statements of sql grants, by the kinds of databases; Close closes them.
	Drivers map[string]sqldb.Driver
	// Supervisor runs programs (see [execs.Broker]).
	Supervisor []string
	// Propagate returns the traceparent (W3C Trace Context) that requests of a context
	// carry on; nil for none.
	Traceparent func(context.Context) (traceparent string)
	// Audit writes down what is no call, an event and its attributes: before it happens
	// where that can be, and an error means that it may not. Nil writes nothing down.
	Audit  func(event string, attributes map[string]string) error
	Logger *slog.Logger
}

// NewBrokers returns brokers of which no answer holds a secret.
func NewBrokers(o Options) Brokers {
	if o.Audit == nil {
		o.Audit = func(string, map[string]string) error { return nil }
	}
	var store *secrets.Store // reads tokens through the pool, which puts secrets into requests
	pool := egress.New(egress.Options{
		Resolve:        func(ctx context.Context, name string) (string, error) { return store.Resolve(ctx, name) },
		Redact:         func(b []byte) []byte { return store.RedactBytes(b) },
		OnUnauthorized: func(ctx context.Context, name string) { store.ReportUnauthorized(ctx, name) }, Traceparent: o.Traceparent, Logger: o.Logger,
	})
	tokens := oauth.New(oauth.Options{
		Transport:    func(c oauth.Client) http.RoundTripper { return pool.Transport(c.Grant()) },
		OnTokenAdded: func(client, user string) error { return o.Audit(EventTokenJoined, tokenAttributes(client, user)) }, OnTokenLost: o.tokenLost,
	})
	store = secrets.New(secrets.Options{LookupEnv: o.LookupEnv, Tokens: tokens, NewVault: newVaultFunc(o.OpenStore)})
	return Brokers{
		Egress: pool, Secrets: store, Audit: o.Audit, Logger: o.Logger, tokens: tokens, open: o.OpenStore,
		Values:   kv.New(o.OpenStore, o.Logger),
		Files:    &files.Broker{Redact: store.RedactBytes, Logger: o.Logger},
		Programs: &execs.Broker{Supervisor: o.Supervisor, Resolve: store.Resolve, Redact: store.RedactBytes, Logger: o.Logger},
		SQL:      sqldb.New(sqldb.Options{Drivers: o.Drivers, Resolve: store.Resolve, Redact: store.RedactBytes, Logger: o.Logger}),
	}
}

// Close closes all connections of the brokers.
func (b Brokers) Close() error {
	b.tokens.Close()
	return errors.Join(b.Egress.Close(), b.SQL.Close())
}
