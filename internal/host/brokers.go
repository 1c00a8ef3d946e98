// Package host carries out the privileged operations of scripts. A [RunHost] is the
// scripting.Host of one run of one script. It has the grants of the script's definition and
// nothing else, checks every operation against them, and passes it to a broker. In tests,
// [Mocks] answer instead.
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

// Brokers are shared by all calls of a server.
type Brokers struct {
	Egress   *egress.Pool
	Values   *kv.Broker
	Secrets  *secrets.Store
	Files    *files.Broker
	Programs *execs.Broker
	SQL      *sqldb.Broker
	// Modules is nil if the program provides none.
	Modules *gomodule.Broker
	// Audit writes an event that is not a call. If it returns an error, the event must not
	// happen.
	Audit  func(event string, attributes map[string]string) error
	Logger *slog.Logger

	tokens  *oauth.Broker
	open    func() (state.Store, error)
	publish func(topic state.Topic, names ...string)
}

// Options configure brokers.
type Options struct {
	// LookupEnv reads an environment variable, for secrets and env grants.
	LookupEnv func(name string) (string, bool)
	// OpenStore opens the store of kv values and tokens.
	OpenStore func() (state.Store, error)
	// Publish sends messages to the other replicas, without blocking. [Brokers.Receive] handles
	// messages of others. Nil sends nothing.
	Publish func(topic state.Topic, names ...string)
	// Drivers are the drivers for sql grants, by database kind. Close closes them.
	Drivers map[string]sqldb.Driver
	// Supervisor is the command that runs programs (see [execs.Broker]).
	Supervisor []string
	// Traceparent returns the traceparent (W3C Trace Context) for requests in a context. If
	// nil, none is sent.
	Traceparent func(context.Context) (traceparent string)
	// Audit writes an event that is not a call, before it happens if possible. If it returns an
	// error, the event must not happen. Nil writes nothing.
	Audit  func(event string, attributes map[string]string) error
	Logger *slog.Logger
}

// NewBrokers returns brokers. Their results have secrets redacted.
func NewBrokers(o Options) Brokers {
	if o.Audit == nil {
		o.Audit = func(string, map[string]string) error { return nil }
	}
	if o.Publish == nil {
		o.Publish = func(state.Topic, ...string) {}
	}
	var store *secrets.Store // fetches tokens through the pool, which resolves secrets
	pool := egress.New(egress.Options{
		Resolve:        func(ctx context.Context, name string) (string, error) { return store.Resolve(ctx, name) },
		Redact:         func(b []byte) []byte { return store.RedactBytes(b) },
		OnUnauthorized: func(ctx context.Context, name string) { store.ReportUnauthorized(ctx, name) }, Traceparent: o.Traceparent, Logger: o.Logger,
	})
	tokens := oauth.New(oauth.Options{
		Transport:    func(c oauth.Client) http.RoundTripper { return pool.Transport(c.Grant()) },
		OnTokenAdded: func(client, user string) error { return o.Audit(EventTokenJoined, tokenAttributes(client, user)) }, OnTokenLost: o.tokenLost,
	})
	store = secrets.New(secrets.Options{LookupEnv: o.LookupEnv, Tokens: tokens, NewVault: newVaultFunc(o.OpenStore, func(row string) { o.Publish(state.TokenChanged, row) })})
	return Brokers{
		Egress: pool, Secrets: store, Audit: o.Audit, Logger: o.Logger, tokens: tokens, open: o.OpenStore, publish: o.Publish,
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
