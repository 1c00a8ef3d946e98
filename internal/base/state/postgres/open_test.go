package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcpd/mcpd/internal/base/postgrestest"
	"github.com/mcpd/mcpd/internal/base/state"
)

// wantRefused checks that a store is not opened, and that the error has a reason and no password.
func wantRefused(t testing.TB, c state.Database, h hooks, why ...string) {
	t.Helper()
	s, err := open(c, state.Options{}, 0, h)
	if err == nil {
		s.Close()
		t.Fatalf("the store was opened; want %q", why)
	}
	for _, text := range why {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q; want %q", err, text)
		}
	}
	for _, secret := range []string{postgrestest.Password, "hunter2", "p%40ss"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("error with the password: %q", err)
		}
	}
}

func TestOpen_refused(t *testing.T) {
	server := shared.Server(t, os.Getenv(needed))
	place := "127.0.0.1:" + server.Port
	for name, c := range map[string]struct {
		url string
		why []string
	}{
		"wrong password":       {"postgres://app:hunter2@" + place + "/postgres", []string{place + "/postgres", "rejects the user or the password"}},
		"no database":          {server.URL("absent", ""), []string{place + "/absent", "does not exist"}},
		"nothing listens":      {"postgres://app:hunter2@127.0.0.1:1/postgres", []string{"127.0.0.1:1/postgres", "cannot be reached"}},
		"read-only":            {server.URL("postgres", "schema=test_ro&default_transaction_read_only=on"), []string{place, "read-only"}},
		"another scheme":       {"mysql://app:hunter2@localhost/x", []string{"postgres://USER:PASSWORD@HOST:PORT/DATABASE"}},
		"no URL":               {"postgres://app:hunter2@local host/%zz", []string{"postgres://USER:PASSWORD@HOST:PORT/DATABASE"}},
		"unknown option":       {"postgres://app:hunter2@localhost/x?sslmode=maybe", []string{"option"}},
		"bad options":          {server.URL("postgres", "schema=A;B"), []string{"the URL is not"}},
		"bad schema":           {server.URL("postgres", "schema=Upper"), []string{"lower-case"}},
		"without sslmode":      {"postgres://app:hunter2@db.example/x", []string{"sslmode=verify-full"}},
		"one remote host":      {"postgres://app:hunter2@localhost,db.example/x", []string{"sslmode=verify-full"}},
		"schema of the system": {server.URL("postgres", "schema=pg_catalog"), []string{"schema"}},
	} {
		t.Run(name, func(t *testing.T) {
			wantRefused(t, state.Database{URL: c.url}, hooks{}, c.why...)
		})
	}
}

func TestOpen_unavailable(t *testing.T) {
	server := shared.Server(t, os.Getenv(needed))
	for url, want := range map[string]bool{
		"postgres://app:hunter2@127.0.0.1:1/postgres": true,
		server.URL("absent", ""):                      false,
		"mysql://app:hunter2@localhost/x":             false,
	} {
		if _, err := Open(state.Database{URL: url}, state.Options{}, 0); err == nil || errors.Is(err, state.ErrUnavailable) != want {
			t.Errorf("%v: unavailable is not %t", err, want)
		}
	}
}

// An attempt with TLS and one without fail alike, and the error says so once.
func TestOpen_repeatsNoCause(t *testing.T) {
	_, err := Open(state.Database{URL: "postgres://app:hunter2@127.0.0.1:1/postgres?sslmode=prefer"}, state.Options{}, 0)
	if text := fmt.Sprint(err); strings.Count(text, "refused") != 1 || strings.Contains(text, "failed to connect") || strings.Contains(text, "\n") {
		t.Errorf("%q", text)
	}
}

// The server rejects the connection for a reason that has no advice.
func TestOpen_rejectedConnection(t *testing.T) {
	server := shared.Server(t, os.Getenv(needed))
	admin, err := pgx.Connect(t.Context(), server.URL("postgres", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(t.Context())
	if _, err := admin.Exec(t.Context(), `CREATE ROLE full_up LOGIN PASSWORD 'hunter2' CONNECTION LIMIT 0`); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(server.URL("postgres", ""))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("full_up", "hunter2")
	_, err = Open(state.Database{URL: u.String()}, state.Options{}, 0)
	if text := fmt.Sprint(err); !strings.Contains(text, "too many connections for role") || strings.Contains(text, "failed to connect") || strings.Contains(text, "\n") || strings.Contains(text, "hunter2") {
		t.Errorf("%q", text)
	}
}

func TestOpen_otherFleet(t *testing.T) {
	url := newURL(t)
	opened(t, state.Database{URL: url, Fleet: "shop"}, state.Options{}, hooks{})
	wantRefused(t, state.Database{URL: url, Fleet: "crm"}, hooks{}, `"shop"`, `"crm"`)
	opened(t, state.Database{URL: url, Fleet: "shop"}, state.Options{}, hooks{})
}

func TestOpen_otherProgram(t *testing.T) {
	url := newURL(t)
	s := opened(t, state.Database{URL: url}, state.Options{}, hooks{})
	execute(t, s, `DROP TABLE {s}.migrations`)
	wantRefused(t, state.Database{URL: url}, hooks{}, "belongs to another program")
}

func TestOpen_migrations(t *testing.T) {
	url := newURL(t)
	before := opened(t, state.Database{URL: url}, state.Options{}, hooks{frozen: true})
	win(t, before, 1)
	check(t, before.Finish(nonce(1), []byte("done")))
	win(t, before, 2)
	next := append(append([]string(nil), migrations...), `ALTER TABLE {s}.claims ADD COLUMN note text; CREATE TABLE {s}.more (x int)`)
	failing := append(append([]string(nil), next...), `CREATE TABLE {s}.other (x int)`, `CREATE TABLE {s}.other (y int)`)
	wantRefused(t, state.Database{URL: url}, hooks{steps: failing}, "already exists")
	after := opened(t, state.Database{URL: url}, state.Options{}, hooks{steps: next, frozen: true})
	opened(t, state.Database{URL: url}, state.Options{}, hooks{steps: next, frozen: true})
	wantOutcome(t, <-join(after, 1), "done", nil)

	// The version before works on beside the new one, but does not start again.
	got := join(after, 2)
	check(t, before.Finish(nonce(2), []byte("old")))
	wantOutcome(t, <-got, "old", nil)
	win(t, before, 3)
	wantRefused(t, state.Database{URL: url}, hooks{}, "newer version")
}

// A program beside the servers neither creates nor upgrades the schema.
func TestOpen_existing(t *testing.T) {
	url := newURL(t)
	wantRefused(t, state.Database{URL: url, Existing: true}, hooks{}, "no state of this version (0 of")
	s := opened(t, state.Database{URL: url, Fleet: "shop"}, state.Options{}, hooks{})
	opened(t, state.Database{URL: url, Existing: true}, state.Options{}, hooks{})
	execute(t, s, `DELETE FROM {s}.migrations WHERE version > 1`)
	wantRefused(t, state.Database{URL: url, Existing: true}, hooks{}, "no state of this version (1 of")
}

func TestOpen_concurrent(t *testing.T) {
	url := newURL(t)
	made := make(chan error, 8)
	for range cap(made) {
		go func() {
			s, err := open(state.Database{URL: url}, state.Options{}, 0, hooks{})
			if err == nil {
				err = s.Close()
			}
			made <- err
		}()
	}
	for range cap(made) {
		check(t, <-made)
	}
}

func TestOpen_encrypted(t *testing.T) {
	url := newURL(t)
	plain := opened(t, state.Database{URL: url}, state.Options{}, hooks{})
	check(t, increase(plain, "old"))
	_, err := plain.SealingKey()
	check(t, err)
	wantRefused(t, state.Database{URL: url, Keys: []string{"first secret"}}, hooks{}, "not encrypted")
	execute(t, plain, `DELETE FROM {s}.keys`)
	first := opened(t, state.Database{URL: url, Keys: []string{"first secret"}}, state.Options{}, hooks{})
	if _, err := first.Pair("space", "old"); err == nil {
		t.Error("a server with a key reads a plain value")
	}
	execute(t, plain, `DELETE FROM {s}.pairs`)
	k, err := first.SealingKey()
	check(t, err)
	check(t, increase(first, "old"))
	check(t, increase(first, "old"))
	win(t, first, 1)
	check(t, first.Finish(nonce(1), []byte("an answer")))
	check(t, first.PutJournal(ann, nonce(1), soon(), []byte("a journal")))
	task, err := first.CreateTask(state.Task{Owner: ann, Tool: "a tool", TTL: time.Hour})
	check(t, err)
	dump := stored(t, first)
	for _, text := range [][]byte{k.Secret[:], []byte("an answer"), []byte("a journal"), []byte("a tool")} {
		if bytes.Contains(dump, text) {
			t.Errorf("%q is stored in clear", text)
		}
	}
	wantRefused(t, state.Database{URL: url}, hooks{}, "another key")
	wantRefused(t, state.Database{URL: url, Keys: []string{"wrong secret"}}, hooks{}, "another key")
	second := opened(t, state.Database{URL: url, Keys: []string{"second secret", "first secret"}}, state.Options{}, hooks{})
	if got, err := second.KeyByID(k.ID); err != nil || got != k {
		t.Errorf("key after a rotation: %v", err)
	}
	wantOutcome(t, <-join(second, 1), "an answer", nil)
	if got, err := second.Pair("space", "old"); err != nil || string(got.Value) != "2" {
		t.Errorf("value after a rotation: %q, %v", got.Value, err)
	}
	if got, err := second.Task(ann, task.ID); err != nil || got.Tool != "a tool" {
		t.Errorf("task after a rotation: %+v, %v", got, err)
	}
	// A row cannot be moved to another place.
	execute(t, second, `UPDATE {s}.pairs SET digest = '\x00'`)
	execute(t, second, `UPDATE {s}.pairs SET digest = sha256('other')`)
	if _, err := second.Pair("space", "other"); err == nil {
		t.Error("a moved value was read")
	}
}

// stored returns all bytes of the tables.
func stored(t testing.TB, s *store) []byte {
	t.Helper()
	c, err := pgx.ConnectConfig(t.Context(), s.config.Copy())
	check(t, err)
	defer c.Close(context.Background())
	var all []byte
	for _, column := range []string{"secret FROM {s}.keys", "answer FROM {s}.claims WHERE answer IS NOT NULL", "data FROM {s}.journals", "data FROM {s}.tasks", "value FROM {s}.pairs"} {
		rows, err := c.Query(t.Context(), s.q("SELECT "+column))
		check(t, err)
		found, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		check(t, err)
		all = append(all, bytes.Join(found, nil)...)
	}
	return all
}

func TestStore_databaseRestart(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t, os.Getenv(needed))
	c := state.Database{URL: server.URL("postgres", "")}
	a, b := opened(t, c, state.Options{}, hooks{frozen: true}), opened(t, c, state.Options{}, hooks{frozen: true})
	win(t, a, 1)
	win(t, a, 2)
	win(t, a, 3)
	task, err := a.CreateTask(state.Task{Owner: ann, TTL: time.Hour})
	check(t, err)
	changes, stop, err := b.WatchTask(ann, task.ID)
	check(t, err)
	defer stop()
	got, lost := join(b, 1), join(b, 2)
	awaitWaiter(b, 1)
	awaitWaiter(b, 2)
	check(t, server.Stop())
	errs := map[string]error{"Finish": a.Finish(nonce(2), []byte("unstored")), "Lose": a.Lose(nonce(3)), "ChangePair": increase(a, "n"), "Sweep": a.Sweep(), "beat": a.beat()}
	_, errs["Task"] = a.Task(ann, task.ID)
	_, errs["UpdateTask"] = a.UpdateTask(ann, task.ID, ask)
	_, errs["Claim"] = a.Claim(t.Context(), ann, nonce(4), soon())
	for method, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "127.0.0.1:"+server.Port) || strings.Contains(err.Error(), postgrestest.Password) {
			t.Errorf("%s without a database: %v", method, err)
		}
	}
	check(t, server.Restart())
	win(t, a, 5)
	check(t, a.Finish(nonce(1), []byte("done")))
	wantOutcome(t, <-got, "done", nil)
	check(t, a.beat()) // stores the ends
	check(t, b.beat())
	wantOutcome(t, <-lost, "", state.ErrNotStored)
	wantOutcome(t, <-join(b, 3), "", state.ErrLost)
	win(t, b, 4) // it did not run
	_, err = a.UpdateTask(ann, task.ID, ask)
	check(t, err)
	<-changes
	wantUsage(t, a)
}

func TestOpen_waitsForDatabase(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t, os.Getenv(needed))
	check(t, server.Stop())
	started := make(chan error, 1)
	go func() { started <- server.Restart() }()
	s, err := open(state.Database{URL: server.URL("postgres", "")}, state.Options{}, time.Minute, hooks{})
	check(t, err)
	defer s.Close()
	check(t, <-started)
	win(t, s, 1)
}

func TestClaim_expiresByDatabase(t *testing.T) {
	stores := replicas(t, 2, state.Options{})
	_, err := stores[0].Claim(t.Context(), ann, nonce(1), time.Now().Add(-time.Second))
	if !errors.Is(err, state.ErrExpired) {
		t.Errorf("claim: %v", err)
	}
	if d := time.Since(stores[0].Now()).Abs(); d > time.Minute {
		t.Errorf("the clock of the database is %v off", d)
	}
}

// BenchmarkClaim wins and finishes claims, with a server that does not wait for the disk.
func BenchmarkClaim(b *testing.B) {
	ever := state.Limits{Count: 1 << 30, Bytes: 1 << 60, OwnerCount: 1 << 30, OwnerBytes: 1 << 60}
	s := replicas(b, 1, state.Options{Claims: ever})[0]
	answer := make([]byte, 200)
	n := 0
	for b.Loop() {
		n++
		nonce := state.Nonce{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24), 1}
		if c, err := s.Claim(b.Context(), ann, nonce, soon()); err != nil || !c.Won {
			b.Fatal(c.Won, err)
		}
		if err := s.Finish(nonce, answer); err != nil {
			b.Fatal(err)
		}
	}
}
