package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mcpd/mcpd/internal/base/postgrestest"
	"github.com/mcpd/mcpd/internal/base/state"
)

func resultKey(n int) (key [32]byte) {
	copy(key[:], fmt.Sprintf("result %d", n))
	return key
}

// wantResult checks a result; "" means none.
func wantResult(t testing.TB, s *store, n int, want string, age time.Duration) {
	t.Helper()
	data, got, err := s.Result(resultKey(n))
	if err != nil || string(data) != want || got != age {
		t.Errorf("result %d is %.40q of age %v, %v; want %.40q of age %v", n, data, got, err, want, age)
	}
}

// wantResultUsage compares the usage with the results, and returns their number.
func wantResultUsage(t testing.TB, s *store) (n int) {
	t.Helper()
	var counted, size, used int64
	check(t, s.do(func(ctx context.Context, c *pgxpool.Conn) error {
		return c.QueryRow(ctx, s.q(`SELECT (SELECT count(*) FROM {s}.results), (SELECT coalesce(sum(size), 0)::bigint FROM {s}.results),
			coalesce((SELECT count FROM {s}.result_usage), 0), coalesce((SELECT bytes FROM {s}.result_usage), 0)`)).Scan(&n, &size, &counted, &used)
	}))
	if int64(n) != counted || size != used {
		t.Errorf("%d results of %d bytes, counted %d of %d", n, size, counted, used)
	}
	return n
}

// setClock is a clock that a test sets.
type setClock struct{ millis atomic.Int64 }

func (c *setClock) Now() time.Time          { return time.UnixMilli(c.millis.Load()) }
func (c *setClock) advance(d time.Duration) { c.millis.Add(d.Milliseconds()) }

func TestResults_expire(t *testing.T) {
	clock := &setClock{}
	clock.advance(time.Hour)
	all := replicas(t, 2, state.Options{Now: clock.Now})
	a, b := all[0], all[1]
	wantResult(t, b, 1, "", 0)
	check(t, a.PutResult(resultKey(1), []byte("one"), 2*time.Second, time.Minute))
	wantResult(t, b, 1, "one", 2*time.Second)
	clock.advance(50 * time.Second)
	wantResult(t, b, 1, "one", 52*time.Second)
	// The result that expires last stays.
	check(t, b.PutResult(resultKey(1), []byte("newer"), time.Second, time.Minute))
	check(t, a.PutResult(resultKey(1), []byte("slower"), 2*time.Second, time.Minute))
	wantResult(t, a, 1, "newer", time.Second)
	check(t, a.PutResult(resultKey(2), []byte("late"), time.Minute, time.Minute))
	wantResult(t, a, 2, "", 0)
	if n := wantResultUsage(t, a); n != 1 {
		t.Errorf("%d results, want 1", n)
	}
	clock.advance(-time.Hour + time.Minute)
	wantResult(t, a, 1, "", 0) // the clock was set back
	clock.advance(time.Hour - time.Minute + 59*time.Second)
	wantResult(t, a, 1, "", 0)
	check(t, b.Sweep())
	if n := wantResultUsage(t, a); n != 0 {
		t.Errorf("%d results are left", n)
	}
	if err := a.PutResult(resultKey(1), make([]byte, state.MaxResult+1), 0, time.Minute); err == nil {
		t.Error("a result that is too large is stored")
	}
	large := bytes.Repeat([]byte("x"), state.MaxResult)
	check(t, a.PutResult(resultKey(1), large, 0, time.Minute))
	wantResult(t, b, 1, string(large), 0)
}

func TestResults_bounds(t *testing.T) {
	clock := &setClock{}
	clock.advance(time.Hour)
	s := replicas(t, 1, state.Options{Now: clock.Now, Results: state.Limits{Count: 3, Bytes: 20_000}})[0]
	put := func(n, size int) {
		t.Helper()
		clock.advance(time.Millisecond)
		check(t, s.PutResult(resultKey(n), bytes.Repeat([]byte{'x'}, size), 0, time.Duration(100-n)*time.Minute))
	}
	exist := func(want ...int) {
		t.Helper()
		if n := wantResultUsage(t, s); n != len(want) {
			t.Errorf("%d results, want %d", n, len(want))
		}
		for _, n := range want {
			if data, _, err := s.Result(resultKey(n)); err != nil || data == nil {
				t.Errorf("result %d is missing: %v", n, err)
			}
		}
	}
	for n := 1; n <= 4; n++ {
		put(n, 10)
	}
	exist(2, 3, 4)
	put(5, 19_300)
	exist(4, 5)
	put(6, 19_000)
	exist(6)
	put(6, 10) // expires later
	put(7, 10)
	exist(6, 7)
}

// Nobody who can write to the database, but does not know the key, can plant a result or prolong one.
func TestResults_authenticated(t *testing.T) {
	clock := &setClock{}
	clock.advance(time.Hour)
	database := state.Database{URL: newURL(t), Keys: []string{"the key"}}
	s := opened(t, database, state.Options{Now: clock.Now}, hooks{frozen: true})
	row := func(n int) []byte {
		key := resultKey(n)
		return s.cipher.name("result", key[:])
	}
	stored := func(n int) (data []byte) {
		check(t, s.do(func(ctx context.Context, c *pgxpool.Conn) error {
			return c.QueryRow(ctx, s.q(`SELECT data FROM {s}.results WHERE key = $1`), row(n)).Scan(&data)
		}))
		return data
	}
	check(t, s.PutResult(resultKey(1), []byte("a result"), 0, time.Minute))
	check(t, s.PutResult(resultKey(2), []byte("another"), 0, time.Minute))
	if good := stored(1); bytes.Contains(good, []byte("result")) || bytes.Contains(row(1), []byte("result")) {
		t.Error("the result or its key is readable")
	}
	flipped := stored(1)
	flipped[len(flipped)-1] ^= 1
	other := newCipher([]string{"another key"})
	for name, data := range map[string][]byte{
		"empty": {}, "short": {encryptedForm}, "plain": append([]byte{plainForm}, "\x00\x00\x00\x00\x00\x36\xee\x80planted"...),
		"of another row": stored(2), "flipped": flipped, "cut": flipped[:20], "of another key": other.seal("result", string(row(1)), []byte("12345678planted")),
		"without a time": s.cipher.seal("result", string(row(1)), []byte("1234567")), "of another table": s.cipher.seal("pair", string(row(1)), []byte("12345678planted")),
		"of the future": s.cipher.seal("result", string(row(1)), []byte("\x7f\xff\xff\xff\xff\xff\xff\xffplanted")),
		"of the past":   s.cipher.seal("result", string(row(1)), []byte("\x80\x00\x00\x00\x00\x00\x00\x00planted")),
		"huge":          bytes.Repeat([]byte{encryptedForm}, 4<<20),
	} {
		execute(t, s, `UPDATE {s}.results SET data = $1 WHERE key = $2`, data, row(1))
		t.Run(name, func(t *testing.T) { wantResult(t, s, 1, "", 0) })
	}
	execute(t, s, `UPDATE {s}.results SET expires = expires + 3600000`)
	clock.advance(2 * time.Minute)
	wantResult(t, s, 2, "another", 2*time.Minute) // the age says that it has expired

	// A replica with the key before a rotation shares nothing with those with the new one.
	next := opened(t, state.Database{URL: database.URL, Keys: []string{"new key", "the key"}}, state.Options{Now: clock.Now}, hooks{frozen: true})
	check(t, s.PutResult(resultKey(3), []byte("of the old key"), 0, time.Minute))
	wantResult(t, next, 3, "", 0)
}

// Two replicas write the same few results, remove old ones and sweep.
func TestResults_parallel(t *testing.T) {
	all := replicas(t, 2, state.Options{Results: state.Limits{Count: 5, Bytes: 1 << 20}})
	var work sync.WaitGroup
	for i := range 8 {
		s := all[i%2]
		work.Go(func() {
			for n := range 60 {
				value := strings.Repeat("x", 1+(n*i)%50)
				// A busy machine may need longer than the store waits.
				if err := s.PutResult(resultKey((n*7+i)%12), []byte(value), 0, time.Duration(1+n%2*50)*time.Millisecond); err != nil && !errors.Is(err, errAway) && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				if n%20 == 0 {
					if err := s.sweepResults(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	work.Wait()
	if n := wantResultUsage(t, all[0]); n > 5 {
		t.Errorf("%d results", n)
	}
}

func TestResults_databaseAway(t *testing.T) {
	server := postgrestest.Start(t, os.Getenv(needed))
	s := opened(t, state.Database{URL: server.URL("postgres", "")}, state.Options{}, hooks{frozen: true})
	check(t, s.PutResult(resultKey(1), []byte("one"), 0, time.Hour))
	check(t, server.Kill())
	if _, _, err := s.Result(resultKey(1)); err == nil {
		t.Error("a result without a database")
	}
	// The next attempt is later.
	s.mu.Lock()
	s.resultsAgain = time.Now().Add(time.Hour)
	s.mu.Unlock()
	if _, _, err := s.Result(resultKey(1)); !errors.Is(err, errAway) {
		t.Errorf("the second attempt: %v", err)
	}
	if err := s.PutResult(resultKey(1), []byte("one"), 0, time.Hour); !errors.Is(err, errAway) {
		t.Errorf("the second attempt: %v", err)
	}
	check(t, server.Restart())
	s.mu.Lock()
	s.resultsAgain = time.Now()
	s.mu.Unlock()
	// A crash of the database removes all results.
	eventually(t, func() bool {
		data, _, err := s.Result(resultKey(1))
		return err == nil && data == nil
	})
	eventually(t, func() bool { return s.PutResult(resultKey(1), []byte("two"), 0, time.Hour) == nil })
	if n := wantResultUsage(t, s); n != 1 {
		t.Errorf("%d results", n)
	}
}

// While the database hangs, a call does not wait for it, and further calls do not try.
func TestResults_databaseHangs(t *testing.T) {
	s := replicas(t, 1, state.Options{})[0]
	check(t, s.PutResult(resultKey(1), []byte("one"), 0, time.Hour))
	locker, err := pgx.ConnectConfig(t.Context(), s.config.Copy())
	check(t, err)
	defer locker.Close(context.Background())
	_, err = locker.Exec(t.Context(), s.q(`BEGIN; LOCK TABLE {s}.results`))
	check(t, err)
	if _, _, err := s.Result(resultKey(1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a result of a locked table: %v", err)
	}
	s.mu.Lock()
	if s.resultsAgain.IsZero() {
		t.Error("the next call tries again")
	}
	s.resultsAgain = time.Now()
	s.mu.Unlock()
	// One call tries. Others do not, until it has succeeded.
	err = s.tryResults(func(context.Context, *pgxpool.Conn) error {
		if _, _, err := s.Result(resultKey(1)); !errors.Is(err, errAway) {
			t.Errorf("beside the attempt: %v", err)
		}
		return nil
	})
	check(t, err)
	_, err = locker.Exec(t.Context(), `ROLLBACK`)
	check(t, err)
	eventually(t, func() bool {
		data, _, err := s.Result(resultKey(1))
		return err == nil && string(data) == "one"
	})
}

// eventually waits until a condition holds.
func eventually(t testing.TB, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) { // the interval of the poll
		if time.Now().After(until) {
			t.Fatal("the condition does not hold")
		}
	}
}

func BenchmarkResults(b *testing.B) {
	s := opened(b, state.Database{URL: newURL(b), Keys: []string{"the key"}}, state.Options{}, hooks{})
	value := bytes.Repeat([]byte("x"), 1<<10)
	check(b, s.PutResult(resultKey(0), value, 0, time.Hour))
	b.Run("get", func(b *testing.B) {
		for b.Loop() {
			if data, _, err := s.Result(resultKey(0)); err != nil || data == nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("put", func(b *testing.B) {
		for n := 1; b.Loop(); n++ {
			check(b, s.PutResult(resultKey(n), value, 0, time.Hour))
		}
	})
}
