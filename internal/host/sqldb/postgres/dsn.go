package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mcpd/mcpd/internal/language/grant"
)

// errDSN is that a dsn cannot be read. What the parser says could hold parts of it.
var errDSN = errors.New("the dsn cannot be read")

// Configure returns how PostgreSQL is reached for a grant. A dsn that is one
// secret is read as libpq reads it. In another the secrets are the user and the
// password: the rest is what the file says, and nothing comes from elsewhere.
func Configure(ctx context.Context, g grant.SQL, resolve Resolver) (*pgconn.Config, error) {
	text, err := resolved(ctx, g, resolve)
	if err != nil {
		return nil, err
	}
	if g.Address == "" {
		config, err := pgconn.ParseConfig(text)
		if err != nil {
			return nil, errDSN
		}
		harden(config, g.Write)
		return config, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, errDSN
	}
	config, err := parse(u, g.Address)
	if err != nil {
		return nil, err
	}
	harden(config, g.Write)
	return config, nil
}

// Resolver returns the value of a secret.
type Resolver = func(ctx context.Context, secret string) (string, error)

// resolved returns the dsn with its secrets, escaped where they are parts of it.
func resolved(ctx context.Context, g grant.SQL, resolve Resolver) (string, error) {
	var text strings.Builder
	for _, part := range g.DSN.Parts {
		if part.Secret == "" {
			text.WriteString(part.Literal)
			continue
		}
		value, err := resolve(ctx, part.Secret)
		if err != nil {
			return "", fmt.Errorf("resolve the secret of the dsn: %w", err)
		}
		if g.Address != "" {
			value = escape(value)
		}
		text.WriteString(value)
	}
	return text.String(), nil
}

// escape writes every byte so that no URL can read it as anything else.
func escape(value string) string {
	var b strings.Builder
	for i := range len(value) {
		fmt.Fprintf(&b, "%%%02x", value[i])
	}
	return b.String()
}
