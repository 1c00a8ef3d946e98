package mcp_test

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
)

// pumpDuration serves calls of a tool. takes returns the duration of each call. All
// calls have arrived before the first is served. pumped returns the total time.
func pumpDuration(t *testing.T, calls int, takes func(number int) time.Duration) time.Duration {
	t.Helper()
	var started, served, reading atomic.Int64
	tool := mcptest.Tools()[0]
	tool.Run = func(context.Context, call.Request) call.Result {
		time.Sleep(takes(int(started.Add(1))))
		return mcptest.Text("")
	}
	s, _ := newServer(t, mcp.Options{}, tool)
	var received recorder
	conn := s.Connect(mcp.Peer{Principal: identity.Anonymous()}, received.send)
	start, left := time.Now(), calls
	conn.Pump(t.Context(), func() ([]byte, func(), bool) {
		if reading.Add(1) != 1 {
			t.Error("two goroutines read at once")
		}
		defer reading.Add(-1)
		if left == 0 {
			return nil, nil, false
		}
		left--
		return request(left, "tools/call", `"name":"hello"`), func() { served.Add(1) }, true
	})
	conn.Close()
	if got := len(received.all()); got != calls || served.Load() != int64(calls) {
		t.Errorf("%d responses and %d served texts of %d calls", got, served.Load(), calls)
	}
	return time.Since(start)
}

func TestPump_slowCallsRunConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := pumpDuration(t, 200, func(int) time.Duration { return time.Second })
		if took > time.Second+10*time.Millisecond {
			t.Errorf("200 calls of one second took %s", took)
		}
	})
}

// TestPump_quickCallsAmongSlowCalls: each slow call delays reading once, for at
// most two milliseconds.
func TestPump_quickCallsAmongSlowCalls(t *testing.T) {
	for every := 2; every < 6; every++ {
		synctest.Test(t, func(t *testing.T) {
			const calls = 120
			took := pumpDuration(t, calls, func(number int) time.Duration {
				if number%every == 0 {
					return time.Minute
				}
				return 0
			})
			if most := time.Minute + calls/2*2*time.Millisecond; took > most {
				t.Errorf("with every %dth call slow all took %s", every, took)
			}
		})
	}
}

// TestPump_servesQuickCallsInline: a quick call starts no goroutine.
func TestPump_servesQuickCallsInline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if took := pumpDuration(t, 500, func(int) time.Duration { return 0 }); took != 0 {
			t.Errorf("calls without delay took %s", took)
		}
		// One after another, because each takes less than the takeover delay.
		if took := pumpDuration(t, 2, func(int) time.Duration { return 500 * time.Microsecond }); took != time.Millisecond {
			t.Errorf("two calls of half a millisecond took %s", took)
		}
	})
}

// TestPump_servesInlineForOneCaller: the goroutine that reads also serves slow
// calls, if the client sends each after the response to the last one, and not if
// all have arrived.
func TestPump_servesInlineForOneCaller(t *testing.T) {
	for think, want := range map[time.Duration]int{50 * time.Microsecond: 40, 0: 1} {
		synctest.Test(t, func(t *testing.T) {
			var inline atomic.Int64
			left := 40
			tool := mcptest.Tools()[0]
			tool.Run = func(context.Context, call.Request) call.Result {
				stack := make([]byte, 64<<10)
				if strings.Contains(string(stack[:runtime.Stack(stack, false)]), "serveInline") {
					inline.Add(1)
				}
				time.Sleep(200 * time.Microsecond)
				return mcptest.Text("")
			}
			s, _ := newServer(t, mcp.Options{}, tool)
			responses := make(chan struct{}, 40)
			conn := s.Connect(mcp.Peer{Principal: identity.Anonymous()}, func(mcp.Frame) error { responses <- struct{}{}; return nil })
			conn.Pump(t.Context(), func() ([]byte, func(), bool) {
				if think > 0 && left < 40 {
					<-responses
				}
				time.Sleep(think)
				left--
				return request(left, "tools/call", `"name":"hello"`), nil, left >= 0
			})
			conn.Close()
			if inline := int(inline.Load()); inline != want {
				t.Errorf("%d of 40 calls served by the reader, with a pause of %s, want %d", inline, think, want)
			}
		})
	}
}
