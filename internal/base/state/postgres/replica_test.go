package postgres

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcpd/mcpd/internal/base/state"
)

var (
	ann = state.Owner{ID: "ann", Kind: "key"}
	bob = state.Owner{ID: "bob"}
)

// nonce returns a unique nonce.
func nonce(n int) state.Nonce { return state.Nonce{byte(n), byte(n >> 8), 1} }

func soon() time.Time { return time.Now().Add(time.Hour) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// replicas opens stores in one new schema. Their heartbeat is frozen.
func replicas(t testing.TB, n int, o state.Options) []*store {
	t.Helper()
	url := newURL(t)
	stores := make([]*store, n)
	for i := range stores {
		stores[i] = opened(t, state.Database{URL: url}, o, hooks{frozen: true})
	}
	return stores
}

func opened(t testing.TB, c state.Database, o state.Options, h hooks) *store {
	t.Helper()
	s, err := open(c, o, 0, h)
	check(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// win claims a new nonce.
func win(t testing.TB, s state.Store, n int) {
	t.Helper()
	if c, err := s.Claim(context.Background(), ann, nonce(n), soon()); err != nil || !c.Won {
		t.Fatalf("first claim: won %v, %v", c.Won, err)
	}
}

// outcome is the result of a claim.
type outcome struct {
	state.Claim
	err error
}

// join returns the result of another claim of a nonce.
func join(s state.Store, n int) <-chan outcome {
	got := make(chan outcome, 1)
	go func() {
		c, err := s.Claim(context.Background(), ann, nonce(n), soon())
		got <- outcome{c, err}
	}()
	return got
}

func wantOutcome(t testing.TB, got outcome, answer string, err error) {
	t.Helper()
	if got.Won || string(got.Answer) != answer || !errors.Is(got.err, err) {
		t.Errorf("claim: won %v, %q, %v; want %q, %v", got.Won, got.Answer, got.err, answer, err)
	}
}

// wantUsage compares the counted usage with the records.
func wantUsage(t testing.TB, s *store) {
	t.Helper()
	c, err := pgx.ConnectConfig(t.Context(), s.config.Copy())
	check(t, err)
	defer c.Close(context.Background())
	rows, err := c.Query(t.Context(), s.q(`WITH records AS (SELECT 1 AS kind, owner, size FROM {s}.claims UNION ALL SELECT 2, owner, size FROM {s}.journals
			UNION ALL SELECT 3, owner, size FROM {s}.tasks UNION ALL SELECT 4, space, size FROM {s}.pairs),
		real AS (SELECT kind, owner, count(*) AS n, sum(size) AS b FROM records GROUP BY 1, 2 UNION ALL SELECT kind, '', count(*), sum(size) FROM records GROUP BY 1)
		SELECT format('kind %s: %s records of %s bytes, counted %s of %s', coalesce(r.kind, u.kind), n, b, count, bytes) FROM real r FULL JOIN {s}.usage u ON u.kind = r.kind AND u.owner = r.owner
		WHERE coalesce(n, 0) <> coalesce(count, 0) OR coalesce(b, 0) <> coalesce(bytes, 0)`))
	check(t, err)
	wrong, err := pgx.CollectRows(rows, pgx.RowTo[string])
	check(t, err)
	for _, text := range wrong {
		t.Error(text)
	}
}

func TestClaim_oneReplicaWins(t *testing.T) {
	stores := replicas(t, 3, state.Options{})
	for n := range 5 {
		var all sync.WaitGroup
		won := make(chan struct{}, 64)
		for i := range 64 {
			all.Go(func() {
				s := stores[i%len(stores)]
				c, err := s.Claim(context.Background(), ann, nonce(n), soon())
				switch {
				case err != nil:
					t.Error(err)
				case c.Won:
					won <- struct{}{}
					if err := s.Finish(nonce(n), []byte("done")); err != nil {
						t.Error(err)
					}
				case string(c.Answer) != "done":
					t.Errorf("answer %q", c.Answer)
				}
			})
		}
		all.Wait()
		if len(won) != 1 {
			t.Fatalf("%d claims won", len(won))
		}
	}
	wantUsage(t, stores[0])
}

func TestClaim_hearsOfOtherReplica(t *testing.T) {
	for name, h := range map[string]hooks{"notification": {frozen: true, noPoll: true}, "poll": {frozen: true, noListen: true}} {
		t.Run(name, func(t *testing.T) {
			url := newURL(t)
			a := opened(t, state.Database{URL: url}, state.Options{}, hooks{frozen: true})
			waiting := make(chan struct{}, 10)
			h.waiting = func() { waiting <- struct{}{} }
			b := opened(t, state.Database{URL: url}, state.Options{}, h)
			for n, end := range []func() error{
				func() error { return a.Finish(nonce(0), []byte("done")) },
				func() error { return a.Lose(nonce(1)) },
				func() error { return a.Close() },
			} {
				win(t, a, n)
				got := join(b, n)
				<-waiting
				check(t, end())
				want, err := "", state.ErrLost
				if n == 0 {
					want, err = "done", nil
				}
				wantOutcome(t, <-got, want, err)
			}
		})
	}
}

// forget makes a replica forget a claim that it has won, as if the result of the statement had not arrived.
func forget(s *store, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.flights, nonce(n))
}

func TestClaim_releasedIfUnknown(t *testing.T) {
	stores := replicas(t, 2, state.Options{})
	a, b := stores[0], stores[1]
	win(t, a, 1)
	win(t, a, 2)
	forget(a, 1)
	got := join(b, 1)
	awaitWaiter(b, 1)
	check(t, a.beat())
	if o := <-got; !o.Won || o.err != nil {
		t.Errorf("claim of a replica that does not know it: won %v, %v", o.Won, o.err)
	}
	check(t, b.Finish(nonce(1), []byte("done")))
	wantOutcome(t, <-join(a, 1), "done", nil)
	check(t, a.Finish(nonce(2), []byte("done")))
	wantOutcome(t, <-join(b, 2), "done", nil)
	wantUsage(t, a)
}

// The replica may claim again after a release that has not arrived in time.
func TestClaim_lateReleaseDoesNothing(t *testing.T) {
	a := replicas(t, 1, state.Options{})[0]
	win(t, a, 1)
	forget(a, 1)
	a.mu.Lock()
	a.clock = a.clock.Add(-releaseTime)
	a.mu.Unlock()
	check(t, a.release())
	win(t, a, 1)
	check(t, a.Finish(nonce(1), []byte("done")))
}

func TestClaim_notStoredForOtherReplica(t *testing.T) {
	stores := replicas(t, 2, state.Options{Claims: state.Limits{Bytes: 3 << 10}})
	win(t, stores[0], 1)
	got := join(stores[0], 1)
	var full *state.FullError
	awaitWaiter(stores[0], 1)
	if err := stores[0].Finish(nonce(1), make([]byte, 4<<10)); !errors.As(err, &full) {
		t.Errorf("large answer: %v", err)
	}
	if g := <-got; len(g.Answer) != 4<<10 || g.err != nil {
		t.Errorf("the waiter got %d bytes, %v", len(g.Answer), g.err)
	}
	wantOutcome(t, <-join(stores[1], 1), "", state.ErrNotStored)
	wantUsage(t, stores[0])
}

// awaitWaiter returns once a claim waits for the end of another one.
func awaitWaiter(s *store, n int) {
	for {
		s.mu.Lock()
		f := s.flights[nonce(n)]
		joined := f != nil && f.waiters > 0 && f.phase != claiming
		s.mu.Unlock()
		if joined {
			return
		}
		runtime.Gosched()
	}
}

func TestReplica_presumedDead(t *testing.T) {
	stores := replicas(t, 2, state.Options{})
	a, b := stores[0], stores[1]
	win(t, a, 1)
	win(t, a, 2)
	win(t, a, 3)
	there, here := join(b, 1), join(a, 2)
	awaitWaiter(b, 1)
	awaitWaiter(a, 2)
	running, err := a.CreateTask(state.Task{Owner: ann, TTL: time.Hour})
	check(t, err)
	waits, err := a.CreateTask(state.Task{Owner: ann, TTL: time.Hour})
	check(t, err)
	_, err = a.UpdateTask(ann, waits.ID, ask)
	check(t, err)
	changes, stop, err := b.WatchTask(ann, running.ID)
	check(t, err)
	defer stop()

	silence(t, a)
	check(t, b.beat())
	wantOutcome(t, <-there, "", state.ErrLost)
	<-changes
	if got, err := b.Task(ann, running.ID); err != nil || got.Status != state.Failed || got.Message == "" {
		t.Errorf("task of the dead replica: %s, %q, %v", got.Status, got.Message, err)
	}
	if err := a.Finish(nonce(1), []byte("late")); !errors.Is(err, state.ErrPresumedDead) {
		t.Errorf("finish: %v", err)
	}
	if err := a.Lose(nonce(3)); !errors.Is(err, state.ErrPresumedDead) {
		t.Errorf("lose: %v", err)
	}
	if got, err := a.UpdateTask(ann, running.ID, finish); !errors.Is(err, state.ErrPresumedDead) || !errors.Is(err, state.ErrEnded) || got.Status != state.Failed {
		t.Errorf("update: %s, %v", got.Status, err)
	}
	wantOutcome(t, <-join(b, 1), "", state.ErrLost)

	// New work goes on under a new id, and the waiters of the old work hear of its end.
	before := a.me
	win(t, a, 4)
	wantOutcome(t, <-here, "", state.ErrLost)
	if err := a.Finish(nonce(2), []byte("late")); !errors.Is(err, state.ErrPresumedDead) {
		t.Errorf("finish: %v", err)
	}
	if a.me.id == before.id || a.me.fence <= before.fence {
		t.Errorf("replica %v after %v", a.me, before)
	}
	check(t, a.Finish(nonce(4), []byte("done")))
	wantOutcome(t, <-join(b, 4), "done", nil)
	if _, err := b.UpdateTask(ann, waits.ID, resume); err != nil {
		t.Errorf("a waiting task does not continue: %v", err)
	}
	silence(t, b)
	check(t, a.beat())
	if got, err := a.Task(ann, waits.ID); err != nil || got.Status != state.Failed {
		t.Errorf("continued task of the other dead replica: %s, %v", got.Status, err)
	}
	if _, err := b.CreateTask(state.Task{Owner: ann, TTL: time.Hour}); err != nil {
		t.Errorf("new task: %v", err)
	}
	wantUsage(t, a)
}

// Changes of tasks.
func ask(t *state.Task) error {
	t.Status, t.Requests, t.Held = state.InputRequired, []byte("{}"), []byte("held")
	return nil
}

func resume(t *state.Task) error {
	t.Status, t.Requests, t.Held = state.Working, nil, nil
	return nil
}

func finish(t *state.Task) error {
	t.Status, t.Result = state.Completed, []byte("{}")
	return nil
}

func TestReplica_heartbeat(t *testing.T) {
	stores := replicas(t, 3, state.Options{})
	win(t, stores[0], 1)
	silence(t, stores[0])
	check(t, stores[0].beat()) // just in time
	silence(t, stores[1])
	check(t, stores[2].beat())
	check(t, stores[1].beat())
	check(t, stores[0].Finish(nonce(1), []byte("done")))
	if len(stores[0].former) != 0 || len(stores[1].former) != 1 {
		t.Errorf("presumed dead: %v, %v", stores[0].former, stores[1].former)
	}
}

func TestReplica_regularHeartbeat(t *testing.T) {
	t.Parallel()
	url := newURL(t)
	a := opened(t, state.Database{URL: url}, state.Options{}, hooks{frozen: true})
	b := opened(t, state.Database{URL: url}, state.Options{}, hooks{})
	win(t, a, 1)
	got := join(b, 1)
	awaitWaiter(b, 1)
	silence(t, a)
	wantOutcome(t, <-got, "", state.ErrLost)
}

// A replica that could not reach the database itself gives the others time.
func TestReplica_awayItself(t *testing.T) {
	stores := replicas(t, 2, state.Options{})
	win(t, stores[0], 1)
	silence(t, stores[0])
	stores[1].mu.Lock()
	stores[1].beaten = time.Now().Add(-time.Minute)
	stores[1].mu.Unlock()
	check(t, stores[1].beat())
	check(t, stores[0].beat())
	check(t, stores[0].Finish(nonce(1), nil))
}

func TestTask_otherReplica(t *testing.T) {
	stores := replicas(t, 2, state.Options{})
	a, b := stores[0], stores[1]
	task, err := a.CreateTask(state.Task{Owner: ann, Tool: "t", TTL: time.Hour})
	check(t, err)
	if got, err := b.Task(ann, task.ID); err != nil || got.Tool != "t" || !got.Created.Equal(task.Created) {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := b.Task(bob, task.ID); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("task of another owner: %v", err)
	}
	changes, stop, err := b.WatchTask(ann, task.ID)
	check(t, err)
	defer stop()
	_, err = a.UpdateTask(ann, task.ID, ask)
	check(t, err)
	<-changes
	_, err = b.UpdateTask(ann, task.ID, func(t *state.Task) error { t.Status = state.Cancelled; return nil })
	check(t, err)
	<-changes
	if _, err := a.UpdateTask(ann, task.ID, finish); !errors.Is(err, state.ErrEnded) || errors.Is(err, state.ErrPresumedDead) {
		t.Errorf("update of a cancelled task: %v", err)
	}
}

func TestTask_changesInTurn(t *testing.T) {
	stores := replicas(t, 3, state.Options{})
	task, err := stores[0].CreateTask(state.Task{Owner: ann, TTL: time.Hour})
	check(t, err)
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			if _, err := stores[i%3].UpdateTask(ann, task.ID, func(t *state.Task) error { t.Held = append(t.Held, 1); return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got, err := stores[1].Task(ann, task.ID); err != nil || len(got.Held) != 24 {
		t.Errorf("%d changes, %v", len(got.Held), err)
	}
}

func TestPair_otherReplica(t *testing.T) {
	stores := replicas(t, 3, state.Options{})
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			for range 10 {
				if err := increase(stores[i%3], "n"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got, err := stores[0].Pair("space", "n"); err != nil || string(got.Value) != "120" {
		t.Errorf("%q, %v", got.Value, err)
	}
	wantUsage(t, stores[0])
}

// increase increments the number under a key.
func increase(s state.Store, key string) error {
	return s.ChangePair("space", key, state.Room{Keys: 100, Bytes: 1 << 20}, func(old state.Pair, _ time.Time) (state.Pair, error) {
		n, _ := strconv.Atoi(string(old.Value)) // 0 without a value
		return state.Pair{Value: strconv.AppendInt(nil, int64(n)+1, 10)}, nil
	})
}

func TestLimits_allReplicas(t *testing.T) {
	o := state.Options{
		Claims: state.Limits{Count: 10, OwnerCount: 7}, Journals: state.Limits{Bytes: 10 << 10, OwnerBytes: 7 << 10},
		Tasks: state.Limits{Count: 10, OwnerCount: 7}, Pairs: state.Limits{Count: 10},
	}
	stores := replicas(t, 3, o)
	for name, add := range map[string]func(s *store, owner state.Owner, n int) error{
		"claims": func(s *store, owner state.Owner, n int) error {
			_, err := s.Claim(context.Background(), owner, nonce(n), soon())
			return err
		},
		"journals": func(s *store, owner state.Owner, n int) error { return s.PutJournal(owner, nonce(n), soon(), nil) },
		"tasks": func(s *store, owner state.Owner, _ int) error {
			_, err := s.CreateTask(state.Task{Owner: owner, TTL: time.Hour})
			return err
		},
		"pairs": func(s *store, owner state.Owner, n int) error {
			err := s.ChangePair(owner.ID, strconv.Itoa(n), state.Room{Keys: 7, Bytes: 1 << 20}, func(state.Pair, time.Time) (state.Pair, error) { return state.Pair{Value: []byte("1")}, nil })
			if errors.Is(err, state.ErrRoom) {
				return &state.FullError{}
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			added := make(chan state.Owner, 100)
			for _, owner := range []state.Owner{ann, bob} {
				var all sync.WaitGroup
				for n := range 24 {
					all.Go(func() {
						err := add(stores[n%3], owner, n+int(owner.ID[0])<<5)
						if full := (*state.FullError)(nil); errors.As(err, &full) {
							return
						}
						if err != nil {
							t.Error(err)
						}
						added <- owner
					})
				}
				all.Wait()
			}
			close(added)
			count := map[state.Owner]int{}
			for owner := range added {
				count[owner]++
			}
			if count[ann] != 7 || count[bob] != 3 {
				t.Errorf("%d of ann and %d of bob, want 7 and 3", count[ann], count[bob])
			}
		})
	}
	wantUsage(t, stores[0])
}

// Replicas sweep, add and die at the same time without waiting for each other.
func TestSweep_concurrent(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var mu sync.Mutex
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	stores := replicas(t, 3, state.Options{Now: clock})
	for round := range 3 {
		var all sync.WaitGroup
		for i := range 60 {
			all.Go(func() {
				s, owner := stores[i%3], []state.Owner{ann, bob}[i/3%2]
				var err error
				switch i % 5 {
				case 0:
					err = s.PutJournal(owner, nonce(100*round+i), clock().Add(time.Minute), nil)
				case 1:
					_, err = s.CreateTask(state.Task{Owner: owner, TTL: time.Minute})
				case 2:
					err = s.Sweep()
				case 3:
					err = increase(s, strconv.Itoa(i))
				case 4:
					_, err = s.Claim(context.Background(), owner, nonce(100*round+i), clock().Add(time.Minute))
					if err == nil {
						err = s.Finish(nonce(100*round+i), make([]byte, 2<<10))
					}
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		mu.Lock()
		now = now.Add(time.Hour)
		mu.Unlock()
	}
	check(t, stores[0].Sweep())
	wantUsage(t, stores[0])
}

func TestKeys_shared(t *testing.T) {
	stores := replicas(t, 3, state.Options{})
	keys := make([]state.Key, len(stores))
	var all sync.WaitGroup
	for i, s := range stores {
		all.Go(func() {
			var err error
			if keys[i], err = s.SealingKey(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if slices.ContainsFunc(keys, func(k state.Key) bool { return k != keys[0] }) || keys[0].ID == 0 {
		t.Fatalf("keys %v", keys)
	}
	execute(t, stores[0], `UPDATE {s}.keys SET made = made - 90000000`) // more than a day ago
	check(t, stores[0].loadKeys())
	sealer := state.NewSealer(stores[0], nil)
	text, err := sealer.Seal(state.State{Owner: ann})
	check(t, err)
	if _, err := state.NewSealer(stores[1], nil).Open(text, state.Want{Owner: ann}); err != nil {
		t.Errorf("a state sealed with the new key of another replica: %v", err)
	}
	if _, err := stores[1].KeyByID(77); !errors.Is(err, state.ErrTampered) {
		t.Errorf("unknown key: %v", err)
	}
}
