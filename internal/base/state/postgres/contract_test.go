package postgres

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/base/postgrestest"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/base/state/statetest"
)

var shared postgrestest.Shared

// needed makes missing databases errors.
const needed = "MCPD_NEED_POSTGRES"

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := shared.Remove(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}))
}

// schemas counts the schemas of tests.
var schemas atomic.Int64

// newURL returns the URL of a new schema.
func newURL(t testing.TB) string {
	return shared.Server(t, os.Getenv(needed)).URL("postgres", fmt.Sprintf("schema=test_%d", schemas.Add(1)))
}

// execute runs a statement beside a store; {s} is its schema.
func execute(t testing.TB, s *store, text string, args ...any) {
	t.Helper()
	c, err := pgx.ConnectConfig(context.Background(), s.config.Copy())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	if _, err := c.Exec(context.Background(), s.q(text), args...); err != nil {
		t.Fatal(err)
	}
}

func TestPostgreSQL_contract(t *testing.T) {
	shared.Server(t, os.Getenv(needed))
	d := databases{urls: map[*store]string{}, waiting: map[*store]chan struct{}{}}
	statetest.Suite{New: d.New, Restart: d.Restart, Crash: d.Crash, Waiting: d.Waiting}.Run(t)
}

// databases creates stores in schemas of the shared server.
type databases struct {
	mu      sync.Mutex
	urls    map[*store]string
	waiting map[*store]chan struct{}
}

func (d *databases) open(t testing.TB, url string, o state.Options) state.Store {
	t.Helper()
	waiting := make(chan struct{}, 1000)
	s, err := open(state.Database{URL: url}, o, 0, hooks{frozen: true, waiting: func() { waiting <- struct{}{} }})
	if err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.urls[s], d.waiting[s] = url, waiting
	return s
}

func (d *databases) url(s state.Store) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.urls[s.(*store)]
}

func (d *databases) New(t testing.TB, o state.Options) state.Store { return d.open(t, newURL(t), o) }

func (d *databases) Restart(t testing.TB, s state.Store, o state.Options) state.Store {
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return d.open(t, d.url(s), o)
}

// Crash opens the store while the one before is without a heartbeat.
func (d *databases) Crash(t testing.TB, s state.Store, o state.Options) state.Store {
	silence(t, s.(*store))
	return d.open(t, d.url(s), o)
}

// silence makes the last heartbeat of a store long ago.
func silence(t testing.TB, s *store) {
	t.Helper()
	execute(t, s, `UPDATE {s}.replicas SET beat = beat - 3600000 WHERE id = $1`, s.me.id)
}

func (d *databases) Waiting(s state.Store) {
	d.mu.Lock()
	waiting := d.waiting[s.(*store)]
	d.mu.Unlock()
	<-waiting
}
