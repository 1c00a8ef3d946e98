package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mcpd/mcpd/internal/language/grant"
)

// errDSN reports an invalid DSN. The error of the parser could contain parts of it.
var errDSN = errors.New("the dsn is invalid")

// Configure returns the connection configuration of a grant. A DSN that is one secret is parsed
// as libpq does. In any other DSN the secrets are user and password; the rest comes from the
// file, and nothing from elsewhere.
func Configure(ctx context.Context, g grant.SQL, resolve Resolver) (*pgconn.Config, error) {
	text, err := resolveDSN(ctx, g, resolve)
	if err != nil {
		return nil, err
	}
	if g.Address == "" {
		config, err := pgconn.ParseConfig(text)
		if err != nil {
			return nil, errDSN
		}
		applySafetySettings(config, g.Write)
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
	applySafetySettings(config, g.Write)
	return config, nil
}

// Resolver returns the value of a secret.
type Resolver = func(ctx context.Context, secret string) (string, error)

// resolveDSN returns the DSN with its secrets, escaped if they are parts of it.
func resolveDSN(ctx context.Context, g grant.SQL, resolve Resolver) (string, error) {
	var text strings.Builder
	for _, part := range g.DSN.Parts {
		if part.Secret == "" {
			text.WriteString(part.Literal)
			continue
		}
		value, err := resolve(ctx, part.Secret)
		if err != nil {
			return "", fmt.Errorf("resolve secret of dsn: %w", err)
		}
		if g.Address != "" {
			value = escape(value)
		}
		text.WriteString(value)
	}
	return text.String(), nil
}

// escape escapes every byte, so that a URL parser cannot interpret the value.
func escape(value string) string {
	var b strings.Builder
	for i := range len(value) {
		fmt.Fprintf(&b, "%%%02x", value[i])
	}
	return b.String()
}

// isolatedSettings are the defaults of the settings that pgconn would otherwise take from
// environment variables and from files in the home directory.
func isolatedSettings() map[string]string {
	return map[string]string{
		"sslmode": "prefer", "sslcert": "", "sslkey": "", "sslrootcert": "", "sslpassword": "", "sslcertmode": "allow", "sslsni": "1", "sslnegotiation": "",
		"passfile": "", "krbsrvname": "", "krbspn": "", "connect_timeout": "0", "target_session_attrs": "any", "min_protocol_version": "", "max_protocol_version": "",
		"channel_binding": "", "require_auth": "", "application_name": "", "timezone": "", "options": "",
	}
}

// parse returns the configuration for a DSN with a fixed address. It sets everything that
// pgconn would take from elsewhere.
func parse(dsn *url.URL, address string) (*pgconn.Config, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || dsn.User == nil || dsn.User.Username() == "" {
		return nil, errDSN
	}
	settingsOfDSN := map[string]string{}
	for name, values := range dsn.Query() {
		settingsOfDSN[name] = values[len(values)-1]
	}
	// After the options, so that none can change the address.
	settingsOfDSN["host"], settingsOfDSN["port"], settingsOfDSN["database"] = host, port, strings.TrimPrefix(dsn.Path, "/")
	settingsOfDSN["user"] = dsn.User.Username()
	settingsOfDSN["password"], _ = dsn.User.Password()
	settings := isolatedSettings()
	maps.Copy(settings, settingsOfDSN)
	config, err := pgconn.ParseConfig(keywords(settings))
	if err != nil {
		config, err = withoutService(settings)
	}
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(config.RuntimeParams, func(name, _ string) bool { return settingsOfDSN[name] == "" })
	return config, nil
}

// withoutService parses settings when the environment may name a service (PGSERVICE) that
// cannot be read. All its settings are overridden, but pgconn reads it anyway unless another
// one is named: here an empty one.
func withoutService(settings map[string]string) (*pgconn.Config, error) {
	const service = "none"
	f, err := os.CreateTemp("", "mcpd-pgservice-*")
	if err != nil {
		return nil, fmt.Errorf("create an empty service file: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.WriteString("[" + service + "]\n")
	if err := cmp.Or(err, f.Close()); err != nil {
		return nil, fmt.Errorf("write an empty service file: %w", err)
	}
	settings["service"], settings["servicefile"] = service, f.Name()
	config, err := pgconn.ParseConfig(keywords(settings))
	if err != nil {
		return nil, errDSN
	}
	return config, nil
}

// keywords formats settings as keyword/value pairs (section 34.1.1.1 of the PostgreSQL 17
// manual), quoted so that none can be misread.
func keywords(settings map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&b, "%s='%s' ", name, strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(settings[name]))
	}
	return b.String()
}
