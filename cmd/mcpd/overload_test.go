package main

import (
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// goodput is what came of calls within a time.
type goodput struct {
	good, refused, late atomic.Int64
	other               sync.Map // what else, by its text
}

// call calls the tool that works, over REST, which tells refusals by their status.
func (g *goodput) call(b *bombs) {
	began := time.Now()
	request, err := b.request(http.MethodPost, "/mcp/execute", []byte(`{"tool":"work","arguments":{}}`), nil)
	if err != nil {
		g.other.Store(err.Error(), true)
		return
	}
	response, err := b.client.Do(request)
	if err != nil {
		g.other.Store(err.Error(), true)
		return
	}
	_ = response.Body.Close()
	switch {
	case response.StatusCode == http.StatusOK:
		g.good.Add(1)
	case response.StatusCode == http.StatusServiceUnavailable && response.Header.Get("Retry-After") != "":
		g.refused.Add(1)
		if time.Since(began) > 100*time.Millisecond {
			g.late.Add(1)
		}
	default:
		g.other.Store(response.Status, true)
	}
}

// TestUnderTenTimesTheLoadTheWorkGoesOn: goodput stays at four fifths of its
// peak, and what is too much is refused at once.
func TestUnderTenTimesTheLoadTheWorkGoesOn(t *testing.T) {
	if os.Getenv("MCPD_LONG") == "" {
		t.Skip("SKIPPED: set MCPD_LONG")
	}
	const span = 5 * time.Second
	b := serveBombs(t)
	b.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}
	var peak goodput
	var all sync.WaitGroup
	end := time.Now().Add(span)
	for range 8 {
		all.Go(func() {
			for time.Now().Before(end) {
				peak.call(b)
			}
		})
	}
	all.Wait()
	offered := 10 * peak.good.Load()
	var loaded goodput
	began := time.Now()
	for i := range offered {
		time.Sleep(time.Until(began.Add(span * time.Duration(i) / time.Duration(offered))))
		all.Go(func() { loaded.call(b) })
	}
	all.Wait()
	took := time.Since(began)
	good := float64(loaded.good.Load()) * span.Seconds() / took.Seconds()
	t.Logf("peak %d in %s; of %d offered in %s %d were good, %.0f%% of the peak, and %d refused, %d of them late",
		peak.good.Load(), span, offered, took, loaded.good.Load(), 100*good/float64(peak.good.Load()), loaded.refused.Load(), loaded.late.Load())
	if good < 0.8*float64(peak.good.Load()) {
		t.Error("goodput falls below 80 % of the peak")
	}
	if loaded.late.Load() > loaded.refused.Load()/100 {
		t.Error("refusals are not made at once")
	}
	for _, g := range []*goodput{&peak, &loaded} {
		g.other.Range(func(what, _ any) bool {
			t.Errorf("a call ended with %v", what)
			return true
		})
	}
}
