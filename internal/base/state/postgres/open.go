// Package postgres stores the state of several servers in one PostgreSQL database. [Open] returns
// a [state.Store].
//
// Each open store is a replica: a row with a heartbeat by the clock of the database. Work that has an
// owner, a claim or a running task, carries the id and the fence of its replica. A replica without a
// heartbeat is presumed dead: another one deletes its row, and in the same transaction loses its claims
// and fails its tasks. If it comes back, it cannot end what it had started, and takes a new id.
//
// The statements are functions of the schema, so that a hot operation is one round trip. Listeners hear
// of changes at other replicas by NOTIFY; a poll each second makes up for lost notifications. What is
// not in the store has messages.
package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mcpd/mcpd/internal/base/state"
)

// Timeouts. A method returns an error after opTimeout, and PostgreSQL ends its statement.
const (
	opTimeout   = 4 * time.Second
	beatTimeout = 3 * time.Second
	beatEvery   = 2 * time.Second
	pollEvery   = time.Second
	// deadAfter is the time without a heartbeat after which bury_1 presumes a replica dead.
	deadAfter = state.DeadAfter
)

// hooks are the hooks of tests.
type hooks struct {
	// steps replace the migrations.
	steps []string
	// waiting is called when a claim starts to wait for another one.
	waiting func()
	// frozen stops the heartbeat. The test calls beat itself.
	frozen bool
	// noListen does without notifications, and noPoll without the regular poll.
	noListen, noPoll bool
	// counters replaces maxCounters.
	counters int
}

// Open opens the store, and creates its schema if it is missing. While the database cannot be reached, it
// tries again for patience. No error contains a password.
func Open(d state.Database, o state.Options, patience time.Duration) (state.Store, error) {
	s, err := open(d, o, patience, hooks{})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func open(d state.Database, o state.Options, patience time.Duration, h hooks) (*store, error) {
	config, schema, err := parse(d.URL)
	if err != nil {
		return nil, fmt.Errorf("open the state store: %w", err)
	}
	if h.steps == nil {
		h.steps = migrations
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := newStore(config, schema, o, h)
	s.cipher = newCipher(d.Keys)
	until := time.Now().Add(patience)
	for {
		err := s.start(d)
		if err == nil {
			s.run()
			return s, nil
		}
		if isPermanent(err) || time.Now().After(until) {
			s.cancel()
			s.closePools()
			err = fmt.Errorf("open the state store: %w", err)
			if !isPermanent(err) {
				err = unavailableError{err}
			}
			return nil, err
		}
		time.Sleep(min(100*time.Millisecond, max(0, time.Until(until))))
	}
}

// start prepares the schema, reads the keys and registers the replica.
func (s *store) start(d state.Database) error {
	err := s.do(func(ctx context.Context, c *pgxpool.Conn) error {
		return migrate(ctx, c.Conn(), s.schema, d, s.hooks.steps)
	})
	if err == nil {
		err = s.loadKeys()
	}
	if err == nil {
		err = s.firstMessage()
	}
	if err == nil {
		err = s.register()
	}
	if err == nil {
		err = s.removeDead("")
	}
	return err
}

// errURL does not contain the URL, which has a password.
var errURL = errors.New("the URL is not of the form postgres://USER:PASSWORD@HOST:PORT/DATABASE")

// schemaName is a name that needs no quotes, with room for the prefix of the channel.
var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,47}$`)

// parse returns the configuration of the pool and the name of the schema.
func parse(text string) (config *pgxpool.Config, schema string, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Opaque != "" {
		return nil, "", errURL
	}
	options, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, "", errURL
	}
	schema = cmp.Or(options.Get("schema"), "mcpd")
	options.Del("schema")
	if !schemaName.MatchString(schema) || strings.HasPrefix(schema, "pg_") {
		return nil, "", errors.New("the schema in the URL is not a name of at most 48 lower-case letters, digits and _")
	}
	if !options.Has("pool_max_conns") {
		options.Set("pool_max_conns", "8")
	}
	u.RawQuery = options.Encode()
	if config, err = pgxpool.ParseConfig(u.String()); err != nil {
		return nil, "", fmt.Errorf("%w, or has an option that libpq does not know", errURL)
	}
	hosts := []string{config.ConnConfig.Host}
	for _, other := range config.ConnConfig.Fallbacks {
		hosts = append(hosts, other.Host)
	}
	for _, host := range hosts {
		if !options.Has("sslmode") && !isLocal(host) {
			return nil, "", fmt.Errorf("the URL needs sslmode, since %s is not this machine: sslmode=verify-full, or disable without TLS", host)
		}
	}
	if !options.Has("connect_timeout") {
		config.ConnConfig.ConnectTimeout = opTimeout
	}
	for name, value := range map[string]string{
		"default_transaction_isolation": "read committed", "statement_timeout": millis(opTimeout), "lock_timeout": millis(opTimeout),
		"idle_in_transaction_session_timeout": millis(opTimeout), "client_encoding": "UTF8", "search_path": "pg_catalog",
	} {
		config.ConnConfig.RuntimeParams[name] = value
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "mcpd"
	}
	return config, schema, nil
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// isLocal reports whether a host is this machine.
func isLocal(host string) bool {
	address := net.ParseIP(host)
	return strings.HasPrefix(host, "/") || host == "localhost" || address != nil && address.IsLoopback()
}

// address names the database in errors.
func address(c *pgx.ConnConfig) string {
	return net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))) + "/" + c.Database
}

// permanentError is an error that waiting does not change.
type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

// unavailableError is a [state.ErrUnavailable] with the text of its cause.
type unavailableError struct{ error }

func (e unavailableError) Unwrap() []error { return []error{e.error, state.ErrUnavailable} }

func isPermanent(err error) bool {
	if permanent := (permanentError{}); errors.As(err, &permanent) {
		return true
	}
	switch code := sqlState(err); code {
	case "3D000", "25006", "42501":
		return true
	default:
		return strings.HasPrefix(code, "28")
	}
}

// sqlState returns the code of an error of PostgreSQL, or "".
func sqlState(err error) string {
	if failure := (*pgconn.PgError)(nil); errors.As(err, &failure) {
		return failure.Code
	}
	return ""
}

// isLost reports whether the connection of an operation was lost, which a new one may replace.
func isLost(err error) bool {
	if connecting := (*pgconn.ConnectError)(nil); err == nil || errors.As(err, &connecting) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	switch code := sqlState(err); code {
	case "57P01", "57P02", "57P03", "57P05", "25P03":
		return true
	case "":
		failure := net.Error(nil)
		return errors.As(err, &failure) || pgconn.SafeToRetry(err) || errors.Is(err, pgconn.ErrConnClosed) || strings.Contains(err.Error(), "EOF")
	default:
		return strings.HasPrefix(code, "08")
	}
}

// explain adds the database and advice to an error.
func (s *store) explain(err error) error {
	if err == nil {
		return nil
	}
	if s.ctx.Err() != nil {
		return state.ErrClosed
	}
	if permanent := (permanentError{}); errors.As(err, &permanent) {
		return fmt.Errorf("PostgreSQL at %s: %w", s.address, err)
	}
	if connecting := (*pgconn.ConnectError)(nil); errors.As(err, &connecting) {
		err = causeError{connecting.Unwrap()}
	}
	advice := ""
	switch code := sqlState(err); {
	case strings.HasPrefix(code, "28"):
		advice = "it rejects the user or the password"
	case code == "3D000":
		advice = "the database does not exist"
	case code == "25006":
		advice = "it is read-only"
	case code == "42501":
		advice = "the role lacks rights on the schema or the database"
	case code == "57014" || errors.Is(err, context.DeadlineExceeded):
		advice = "it did not respond in time"
	case code == "":
		advice = "it cannot be reached"
	default:
		return fmt.Errorf("PostgreSQL at %s: %w", s.address, err)
	}
	return fmt.Errorf("PostgreSQL at %s: %s: %w", s.address, advice, err)
}

// causeError is the error of connecting to several addresses, or to one with and without TLS, whose text has
// each cause once.
type causeError struct{ error }

func (e causeError) Unwrap() error { return e.error }

func (e causeError) Error() string {
	var causes []string
	for line := range strings.Lines(e.error.Error()) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(causes, line) {
			causes = append(causes, line)
		}
	}
	return strings.Join(causes, "; ")
}

// register adds the row of this replica, under a new id. If the replica has an address for others, they
// know it at once: its sessions are reachable.
func (s *store) register() error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	made := replica{id: rand.Text()}
	column, value, args := "", "", []any{made.id, host}
	if info := s.sealedLastInfo(made); info != nil {
		column, value, args = ", info", ", $3", append(args, info)
	}
	var now int64
	sent := time.Now()
	err = s.doWithin(s.beatPool, opTimeout, func(ctx context.Context, c *pgxpool.Conn) error {
		return c.QueryRow(ctx, s.q(`INSERT INTO {s}.replicas (id, host, beat`+column+`) VALUES ($1, $2, {s}.clock_1(NULL)`+value+`) ON CONFLICT (id) DO UPDATE SET beat = {s}.clock_1(NULL)
			RETURNING fence, beat`), args...).Scan(&made.fence, &now)
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.me = made
	s.setClock(now, sent)
	return nil
}
