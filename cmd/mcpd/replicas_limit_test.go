//go:build unix

package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The limit that the clients share.
const (
	sharedPer         = 40 * time.Millisecond // between two calls
	sharedBurst       = 5
	sharedConcurrency = 3
)

// limitedTools are two tools with limits. The witness of the first one sees when its calls have started and
// when they are about to end; with meet, a call waits there until as many calls run as the limit allows.
var limitedTools = fmt.Sprintf(`
tool "limited" {
  timeout = "30s"
  input "id" { type = string }
  input "meet" { type = bool }
  allow {
    http "witness" {
      hosts            = [%%[1]q]
      methods          = ["POST"]
      private_networks = true
    }
  }
  run = <<JS
    await http.witness.post("http://%%[1]s/begin/" + input.id);
    if (input.meet) await http.witness.post("http://%%[1]s/meet/" + input.id);
    await new Promise((done) => setTimeout(done, 60));
    await http.witness.post("http://%%[1]s/end/" + input.id);
    return input.id;
  JS
}

limit "shared" {
  tools       = ["limited"]
  rate        = "%d/s"
  burst       = %d
  concurrency = %d
}

tool "lenient" {
  run = "return 'counted';"
}

limit "lenient" {
  tools            = ["lenient"]
  rate             = "1000/s"
  on_store_failure = "allow"
}
`, time.Second/sharedPer, sharedBurst, sharedConcurrency)

// A limitedCall is a call of the tool limited, with the times of the clock that the database has, too. The
// database allowed it after sent and before begun. It counted as running from begun to ended.
type limitedCall struct {
	sent, begun, ended time.Time
	begins             int
}

// A span is the time of a fault.
type span struct{ from, to time.Time }

// limitWitness sees the effects of the tool limited.
type limitWitness struct {
	*httptest.Server

	mu    sync.Mutex
	calls map[string]*limitedCall
	// crashes are the crashes of the database, which resets the rates. forgotten are the faults in which
	// running calls may not count, until a time after them.
	crashes, forgotten []span
	meeting            int
	met                chan struct{}
}

func newLimitWitness(t *testing.T) *limitWitness {
	w := &limitWitness{calls: map[string]*limitedCall{}, met: make(chan struct{})}
	w.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		event, id, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if event == "meet" {
			w.meet(r)
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		c := w.calls[id]
		if c == nil {
			c = &limitedCall{} // check reports it
			w.calls[id] = c
		}
		if event == "begin" {
			c.begun = wallTime()
			c.begins++
		} else {
			c.ended = wallTime()
		}
	}))
	t.Cleanup(w.Close)
	return w
}

// wallTime returns the time without a monotonic reading: two programs compare it.
func wallTime() time.Time { return time.Now().Round(0) }

// meet returns when as many calls run as the limit allows.
func (w *limitWitness) meet(r *http.Request) {
	w.mu.Lock()
	if w.meeting++; w.meeting >= sharedConcurrency && !isClosed(w.met) {
		close(w.met)
	}
	w.mu.Unlock()
	select {
	case <-w.met:
	case <-r.Context().Done():
		w.mu.Lock()
		defer w.mu.Unlock()
		w.meeting--
	}
}

// call returns an act of a client: one call of the tool limited, which with meet waits for others.
func (w *limitWitness) call(c *fleetClient, meet bool) func(id string) error {
	return func(id string) error {
		w.mu.Lock()
		w.calls[id] = &limitedCall{sent: wallTime()}
		w.mu.Unlock()
		a, err := sendTo(c.front, "tools/call", fmt.Sprintf(`{"name":"limited","arguments":{"id":%q,"meet":%v}}`, id, meet))
		if err != nil {
			return err
		}
		if failure := a.failure(); failure != "" {
			return errors.New(failure)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.calls[id].ended.IsZero() {
			c.problem("call %s was acknowledged, and its effect did not happen", id)
		}
		return nil
	}
}

// noteCrash notes a crash of the database, which is back: running calls count again after at most four seconds.
func (w *limitWitness) noteCrash(from time.Time) {
	now := wallTime()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.crashes, w.forgotten = append(w.crashes, span{from, now}), append(w.forgotten, span{from, now.Add(10 * time.Second)})
}

// noteFault notes a fault that has ended. A replica without a heartbeat for ten seconds is presumed dead, and its
// running calls do not count until it is back.
func (w *limitWitness) noteFault(from time.Time) {
	now := wallTime()
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(from) > 9*time.Second {
		w.forgotten = append(w.forgotten, span{from, now.Add(10 * time.Second)})
	}
}

// checkAway calls each replica while the database is away: on_store_failure decides.
func (w *limitWitness) checkAway(c *fleetClient) {
	var all sync.WaitGroup
	for i, d := range c.direct() {
		if d == nil {
			continue
		}
		d.client = &http.Client{Transport: c.front.client.Transport, Timeout: patience}
		all.Go(func() {
			refused := *c
			refused.front = d
			id := fmt.Sprintf("away-%d-%d", i, time.Now().UnixNano())
			if err := w.call(&refused, false)(id); err == nil || !strings.Contains(err.Error(), "the server cannot count the call") {
				c.problem("without the database, replica %d answered call %s with %v", i, id, err)
			}
			a, err := sendTo(d, "tools/call", `{"name":"lenient","arguments":{}}`)
			if err != nil || a.failure() != "" {
				c.problem("without the database, replica %d refused a call with on_store_failure = allow: %v%s", i, err, a.failure())
			}
			c.end("calls without the database", "done")
		})
	}
	all.Wait()
}

// checkAll waits until as many calls run at once as the limit allows: no place is lost. c makes no other calls.
func (w *limitWitness) checkAll(c *fleetClient) {
	var all sync.WaitGroup
	for i := range sharedConcurrency {
		one := *c
		one.name = fmt.Sprintf("%s-all-%d", c.name, i)
		one.front = &daemon{url: c.front.url, client: &http.Client{Transport: c.front.client.Transport, Timeout: patience}}
		all.Go(func() { one.until("all places of the limit", w.call(&one, true)) })
	}
	all.Wait()
}

// check compares the effects with the bounds in docs/reference/limit.md.
func (w *limitWitness) check(f *fleet) {
	f.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	var calls []*limitedCall
	for id, c := range w.calls {
		switch {
		case c.begins > 1:
			f.Errorf("limited call %s happened %d times", id, c.begins)
		case c.begins == 1 && c.sent.IsZero():
			f.Errorf("limited call %s was never sent", id)
		case c.begins == 1 && strings.HasPrefix(id, "away-"):
			f.Errorf("limited call %s happened without the database", id)
		}
		if c.begins > 0 {
			calls = append(calls, c)
		}
	}
	if len(calls) < sharedBurst {
		f.Errorf("only %d limited calls happened", len(calls))
	}
	fullest, atOnce := w.checkRate(f, calls), w.checkConcurrency(f, calls)
	f.Logf("%d of %d limited calls happened, %.0f%% of the rate in the fullest window, and %d at once", len(calls), len(w.calls), 100*fullest, atOnce)
}

// checkRate checks each window from the request of one call to the start of another: the calls that were both
// sent and started in it were allowed in it. It returns the largest share of what a window allows.
func (w *limitWitness) checkRate(f *fleet, calls []*limitedCall) (fullest float64) {
	f.Helper()
	slices.SortFunc(calls, func(a, b *limitedCall) int { return b.sent.Compare(a.sent) })
	var begun []time.Time // of the calls that were sent in or after the one at hand, in order
	for _, c := range calls {
		at, _ := slices.BinarySearchFunc(begun, c.begun, time.Time.Compare)
		begun = slices.Insert(begun, at, c.begun)
		for i, to := range begun {
			allowed := sharedBurst*(1+overlaps(w.crashes, c.sent, to)) + int((to.Sub(c.sent)+time.Millisecond)/sharedPer)
			fullest = max(fullest, float64(i+1)/float64(allowed))
			if i+1 > allowed {
				f.Errorf("%d limited calls happened within %v, more than %d", i+1, to.Sub(c.sent), allowed)
				return fullest
			}
		}
	}
	return fullest
}

// checkConcurrency checks how many calls ran when each call started, of those that ended. It returns the
// largest number.
func (w *limitWitness) checkConcurrency(f *fleet, calls []*limitedCall) (atOnce int) {
	f.Helper()
	calls = slices.DeleteFunc(slices.Clone(calls), func(c *limitedCall) bool { return c.ended.IsZero() })
	slices.SortFunc(calls, func(a, b *limitedCall) int { return a.begun.Compare(b.begun) })
	var running []*limitedCall
	for _, c := range calls {
		running = append(slices.DeleteFunc(running, func(o *limitedCall) bool { return o.ended.Before(c.begun) }), c)
		atOnce = max(atOnce, len(running))
		if allowed := sharedConcurrency * (1 + overlaps(w.forgotten, c.begun, c.begun)); len(running) > allowed {
			slices.SortFunc(running, func(a, b *limitedCall) int { return cmp.Compare(a.begun.UnixNano(), b.begun.UnixNano()) })
			f.Errorf("%d limited calls ran at once, more than %d; the first one since %v", len(running), allowed, c.begun.Sub(running[0].begun))
			return atOnce
		}
	}
	return atOnce
}

// overlaps returns the number of spans with a time from one time to another.
func overlaps(spans []span, from, to time.Time) (n int) {
	for _, s := range spans {
		if !s.from.After(to) && !s.to.Before(from) {
			n++
		}
	}
	return n
}
