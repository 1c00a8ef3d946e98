package engine_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/base/postgrestest"
)

// tallyStore is a simple shared store: it counts the calls of the burst, which never recovers, and the
// names of places.
type tallyStore struct {
	mu     sync.Mutex
	spent  map[string]int
	places map[string]map[string]bool
	asked  []call.LimitCharge // all charges of Take
}

func newTallyStore() *tallyStore {
	return &tallyStore{spent: map[string]int{}, places: map[string]map[string]bool{}}
}

func (l *tallyStore) Take(_ context.Context, charges []call.LimitCharge) (call.LimitVerdict, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = append(l.asked, charges...)
	for i, c := range charges {
		switch {
		case c.Calls > 0 && l.spent[c.Key] >= c.Burst:
			return call.LimitVerdict{Over: i, Wait: c.Per / time.Duration(c.Calls)}, nil
		case c.Concurrency > 0 && len(l.places[c.Key]) >= c.Concurrency:
			return call.LimitVerdict{Over: i, Busy: true}, nil
		}
	}
	for _, c := range charges {
		if c.Calls > 0 {
			l.spent[c.Key]++
		}
		if c.Place != "" {
			if l.places[c.Key] == nil {
				l.places[c.Key] = map[string]bool{}
			}
			l.places[c.Key][c.Place] = true
		}
	}
	return call.LimitVerdict{Taken: true}, nil
}

func (l *tallyStore) Release(_ context.Context, charges []call.LimitCharge) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range charges {
		delete(l.places[c.Key], c.Place)
	}
	return nil
}

// held counts the occupied places.
func (l *tallyStore) held() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, places := range l.places {
		n += len(places)
	}
	return n
}

const limitSecret = "0123456789abcdef0123456789abcdef"

// sharedLimits returns the options of a store.
func sharedLimits(store call.LimitStore) *call.SharedLimits {
	return &call.SharedLimits{Store: store, Secret: []byte(limitSecret), Timeout: time.Minute}
}

const fiftyAnHour = "limit \"fifty\" {\n  key   = \"principal.id\"\n  rate  = \"60/h\"\n  burst = 50\n}\n"

func TestLimitStore_twoServers(t *testing.T) {
	store := newTallyStore()
	var servers []*engine.Server
	for range 2 {
		servers = append(servers, server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", echo), Config: files("mcpd.hcl", fiftyAnHour)}, Limits: sharedLimits(store)}))
	}
	var let, refused atomic.Int64
	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			for range 20 {
				switch got := outcomeCode(servers[i%2].Execute(t.Context(), callBy("ada", "echo", `{"n":1}`))); got {
				case "ok":
					let.Add(1)
				case "POLICY_DENIED: over the limit of 60 calls an hour; try again in 60 s":
					refused.Add(1)
				default:
					t.Error(got)
				}
			}
		})
	}
	callers.Wait()
	if let.Load() != 50 || refused.Load() != 110 {
		t.Errorf("%d calls passed and %d were rejected, want 50 and 110", let.Load(), refused.Load())
	}
	if got := outcomeCode(servers[0].Execute(t.Context(), callBy("bob", "echo", `{"n":1}`))); got != "ok" {
		t.Errorf("another caller: %s", got)
	}
}

func TestLimitStore_opaqueKeys(t *testing.T) {
	const config = "limit \"by_number\" {\n  key = \"principal.id + string(args.n)\"\n  rate = \"10/m\"\n  concurrency = 3\n}\n"
	told := func(config, who, n string, secret string) call.LimitCharge {
		store := newTallyStore()
		limits := sharedLimits(store)
		limits.Secret = []byte(secret)
		s := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", echo), Config: files("mcpd.hcl", config)}, Limits: limits})
		if got := outcomeCode(s.Execute(t.Context(), callBy(who, "echo", `{"n":`+n+`}`))); got != "ok" {
			t.Fatal(got)
		}
		if len(store.asked) != 1 || store.held() != 0 {
			t.Fatalf("asked %+v, and %d places are held", store.asked, store.held())
		}
		return store.asked[0]
	}
	first := told(config, "ada", "4711", limitSecret)
	if text := fmt.Sprintf("%+v", first); strings.Contains(text, "ada") || strings.Contains(text, "4711") || !regexp.MustCompile(`^[\w-]{43}$`).MatchString(first.Key) {
		t.Errorf("the charges are %s", text)
	}
	want := call.LimitCharge{Limit: "by_number", Key: first.Key, Calls: 10, Per: time.Minute, Burst: 10, Concurrency: 3, Place: first.Place, Hold: 65 * time.Second}
	if diff := cmp.Diff(want, first); diff != "" || first.Place == "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, c := range []struct {
		name, config, who, n, secret string
		same                         bool
	}{
		{"another server", config, "ada", "4711", limitSecret, true},
		{"another burst", strings.Replace(config, "concurrency = 3", "burst = 2", 1), "ada", "4711", limitSecret, true},
		{"another argument", config, "ada", "4712", limitSecret, false},
		{"another caller", config, "bob", "4711", limitSecret, false},
		{"another rate", strings.Replace(config, "10/m", "11/m", 1), "ada", "4711", limitSecret, false},
		{"another name", strings.Replace(config, "by_number", "by_count", 1), "ada", "4711", limitSecret, false},
		{"another expression with the same value", strings.Replace(config, " + ", " + '' + ", 1), "ada", "4711", limitSecret, false},
		{"another secret", config, "ada", "4711", strings.ToUpper(limitSecret), false},
	} {
		got := told(c.config, c.who, c.n, c.secret)
		if (got.Key == first.Key) != c.same {
			t.Errorf("%s: the same key: %v, want %v", c.name, !c.same, c.same)
		}
		if got.Place == first.Place {
			t.Errorf("%s: the place has the name of another place", c.name)
		}
	}
}

// A place is released after the call, or after Take timed out. Local concurrency is counted in the
// process.
func TestLimitStore_releases(t *testing.T) {
	store := newTallyStore()
	s := unloaded(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", "limit \"two\" {\n  concurrency = 2\n}\n")}, Limits: sharedLimits(store)})
	entered, leave := make(chan struct{}), make(chan struct{})
	goTool(t, s, "slow", func(context.Context) (string, error) {
		entered <- struct{}{}
		<-leave
		return "done", nil
	})
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() { wantOutcome(t, s.Execute(t.Context(), toolCall("slow", `{}`)), `"done"`) })
		<-entered
	}
	wantOutcome(t, s.Execute(t.Context(), toolCall("slow", `{}`)), "POLICY_DENIED: over the limit of 2 calls at once; try again in 1 s")
	if store.held() != 2 {
		t.Errorf("%d places are held, want 2", store.held())
	}
	close(leave)
	running.Wait()
	if store.held() != 0 {
		t.Errorf("%d places are held after all calls", store.held())
	}
}

func TestLimitStore_localConcurrency(t *testing.T) {
	store := newTallyStore()
	s := server(t, engine.Options{
		Files: engine.Files{
			Tools:  files("t.hcl", strings.Replace(echo, "run =", "limits { concurrency = 1 }\nrun =", 1)),
			Config: files("mcpd.hcl", fiftyAnHour),
		},
		Limits: sharedLimits(store),
	})
	for range 3 {
		if got := outcomeCode(s.Execute(t.Context(), callBy("ada", "echo", `{"n":1}`))); got != "ok" {
			t.Fatal(got)
		}
	}
	for _, c := range store.asked {
		if c.Limit != "fifty" {
			t.Errorf("the store got %q", c.Limit)
		}
	}
	if len(store.asked) != 3 {
		t.Errorf("the store got %d charges, want 3", len(store.asked))
	}
}

func TestLimitStore_laterLeg(t *testing.T) {
	store := newTallyStore()
	s := unloaded(t, engine.Options{Limits: sharedLimits(store), Files: engine.Files{Tools: files("t.hcl", `
policy "all" {
  requires_approval = "true"
  reason            = "Slow"
}
limit "rate" { rate = "1/h" }
limit "both" {
  rate        = "2/h"
  concurrency = 1
}
`)}})
	goTool(t, s, "slow", func(context.Context) (string, error) { return "done", nil })
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := toolCall("slow", `{}`)
	first.Resume = respondWith(mustAsk(t, s.Execute(t.Context(), first)), "accept")
	wantOutcome(t, s.Execute(t.Context(), first), `"done"`)
	var got []string
	for _, c := range store.asked {
		got = append(got, fmt.Sprint(c.Limit, " ", c.Calls, " ", c.Concurrency))
	}
	if diff := cmp.Diff([]string{"rate 1 0", "both 2 1", "both 0 1"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if store.held() != 0 {
		t.Errorf("%d places are held", store.held())
	}
}

func TestLimitStore_reload(t *testing.T) {
	store, config := newTallyStore(), files("mcpd.hcl", fiftyAnHour)
	s := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", echo), Config: config}, Limits: sharedLimits(store)})
	for i := range 51 {
		if i == 25 {
			config["mcpd.hcl"].Data = []byte(fiftyAnHour + "limit \"other\" { rate = \"1000/s\" }\n")
			if _, err := s.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := outcomeCode(s.Execute(t.Context(), callBy("ada", "echo", `{"n":1}`))); (got == "ok") != (i < 50) {
			t.Fatalf("call %d: %s", i, got)
		}
	}
}

func TestLimitStore_options(t *testing.T) {
	for want, limits := range map[string]*call.SharedLimits{
		"new server: the limit store is nil":                                      {Secret: []byte(limitSecret)},
		"new server: the limit secret has 15 bytes; use at least 16 random bytes": {Store: newTallyStore(), Secret: []byte(limitSecret[:15])},
		"new server: the limit timeout is negative":                               {Store: newTallyStore(), Secret: []byte(limitSecret), Timeout: -1},
	} {
		if _, err := engine.New(engine.Options{Name: "test", Limits: limits}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A store in Options wins over the database with the state.
func TestLimitStore_database(t *testing.T) {
	t.Parallel()
	database := postgrestest.Start(t, os.Getenv("MCPD_NEED_POSTGRES"))
	options := engine.Options{
		Files:    engine.Files{Tools: files("t.hcl", echo), Config: files("mcpd.hcl", "limit \"scarce\" {\n  key  = \"principal.id\"\n  rate = \"3/h\"\n}\n")},
		StateURL: database.URL("postgres", ""),
	}
	a, b := server(t, options), server(t, options)
	options.Limits = sharedLimits(newTallyStore())
	own := server(t, options)
	// A busy database may not answer within the time for a count. The next caller tries again.
	for attempt := 0; ; attempt++ {
		var got []string
		for _, s := range []*engine.Server{a, b, a, a, b} {
			got = append(got, outcomeCode(s.Execute(t.Context(), callBy(fmt.Sprint("ada", attempt), "echo", `{"n":1}`))))
		}
		if slices.Contains(got, uncounted) && attempt < 50 {
			continue
		}
		const over = "POLICY_DENIED: over the limit of 3 calls an hour"
		if !slices.Equal(got[:3], []string{"ok", "ok", "ok"}) || !strings.HasPrefix(got[3], over) || !strings.HasPrefix(got[4], over) {
			t.Errorf("attempt %d: %q", attempt, got)
		}
		break
	}
	if got := outcomeCode(own.Execute(t.Context(), callBy("ada", "echo", `{"n":1}`))); got != "ok" {
		t.Error(got)
	}
	if err := database.Stop(); err != nil {
		t.Fatal(err)
	}
	r := a.Execute(t.Context(), callBy("ada", "echo", `{"n":1}`))
	if outcomeCode(r) != uncounted || !r.Err.Limited || r.Err.RetryAfter != time.Second {
		t.Errorf("without the database: %+v", r.Err)
	}
}
