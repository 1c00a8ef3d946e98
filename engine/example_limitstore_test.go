package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing/fstest"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

// window is a store that counts the calls of each time window, and the holders of places. It
// simulates a shared store: there each method would be an atomic script with the clock of the
// store.
type window struct {
	began  time.Time
	mu     sync.Mutex
	calls  map[string]int                  // by key and window
	places map[string]map[string]time.Time // by key and place: when the place ends
}

func (w *window) Take(_ context.Context, charges []call.LimitCharge) (call.LimitVerdict, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	verdict := call.LimitVerdict{Taken: true}
	for i, c := range charges {
		for place, ends := range w.places[c.Key] {
			if now.After(ends) {
				delete(w.places[c.Key], place) // its server was killed
			}
		}
		switch {
		case c.Calls > 0 && w.calls[w.name(c, now)] >= c.Calls:
			if wait := c.Per - now.Sub(w.began)%c.Per; wait > verdict.Wait {
				verdict = call.LimitVerdict{Over: i, Wait: wait}
			}
		case c.Concurrency > 0 && len(w.places[c.Key]) >= c.Concurrency && verdict.Taken:
			verdict = call.LimitVerdict{Over: i, Busy: true}
		}
	}
	if !verdict.Taken {
		return verdict, nil
	}
	for _, c := range charges {
		if c.Calls > 0 {
			w.calls[w.name(c, now)]++ // in Redis with an expiry of Per
		}
		if c.Place != "" {
			if w.places[c.Key] == nil {
				w.places[c.Key] = map[string]time.Time{}
			}
			w.places[c.Key][c.Place] = now.Add(c.Hold)
		}
	}
	return verdict, nil
}

func (w *window) Release(_ context.Context, charges []call.LimitCharge) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range charges {
		delete(w.places[c.Key], c.Place)
	}
	return nil
}

func (w *window) name(c call.LimitCharge, now time.Time) string {
	return fmt.Sprint(c.Key, " ", now.Sub(w.began)/c.Per)
}

// Two servers with a shared store enforce one limit together.
func ExampleOptions_limits() {
	tools := fstest.MapFS{"hello.hcl": {Data: []byte(`
tool "hello" { run = "return 'hello'" }
limit "scarce" { rate = "3/h" }
`), Mode: 0o644}}
	limits := &call.SharedLimits{
		Store:  &window{began: time.Now(), calls: map[string]int{}, places: map[string]map[string]time.Time{}},
		Secret: []byte("sixteen bytes that are random"),
	}
	var servers []*engine.Server
	for range 2 {
		s, err := engine.New(engine.Options{Name: "example", Files: engine.Files{Tools: tools}, Limits: limits})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer s.Close(context.Background())
		servers = append(servers, s)
	}
	for i := range 5 {
		r := servers[i%2].Execute(context.Background(), call.Request{Name: "hello"})
		if r.Err != nil {
			fmt.Println(r.Err.Code, r.Err.Limited, r.Err.RetryAfter > 0)
			continue
		}
		fmt.Println(string(r.Value))
	}
	// Output:
	// "hello"
	// "hello"
	// "hello"
	// POLICY_DENIED true true
	// POLICY_DENIED true true
}
