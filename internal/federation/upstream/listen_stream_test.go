package upstream

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// brief is a server of the newest revision that ends its listen stream after a while, with
// these events.
type brief struct {
	statelessServer
	last string // ID is the id of the request
	// status is the status of later listen requests: 0 opens another stream, or calls second.
	status int
	// second answers the second listen request; nil opens another stream.
	second func(*http.Request) (*http.Response, error)

	mu    sync.Mutex
	asked []time.Time // times of listen requests
}

const lasts = time.Hour

func newBrief(last string, status int) *brief {
	b := &brief{last: last, status: status}
	b.can, b.answer = `"tools":{"listChanged":true}`, b.said
	return b
}

// RoundTrip rejects the stream, or calls the current server.
func (b *brief) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get(methodHeader) == methodListen {
		b.mu.Lock()
		b.asked = append(b.asked, time.Now())
		again, second := len(b.asked) > 1, len(b.asked) == 2 && b.second != nil
		b.mu.Unlock()
		if second {
			return b.second(r)
		}
		if again && b.status != 0 {
			return given(r, b.status, "text/plain", http.NoBody), nil
		}
	}
	return b.statelessServer.RoundTrip(r)
}

func (b *brief) said(m message) (body io.Reader, ends bool) {
	text := ""
	switch m.method {
	case methodListen:
		text = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{\"notifications\":{\"toolsListChanged\":true}}}\n\n"
		return io.MultiReader(strings.NewReader(text), pausing(lasts), strings.NewReader(strings.ReplaceAll(b.last, "ID", string(m.id)))), true
	case "tools/list":
		b.mu.Lock()
		defer b.mu.Unlock()
		text = fmt.Sprintf(`{"tools":[{"name":"n%d","inputSchema":{"type":"object"}}]}`, len(b.asked))
	case "resources/list", "resources/templates/list":
		text = `{"resources":[],"resourceTemplates":[]}`
	default:
		return strings.NewReader(""), false
	}
	return strings.NewReader(`data: {"jsonrpc":"2.0","id":` + string(m.id) + `,"result":` + text + "}\n\n"), true
}

// times returns the times of the listen requests.
func (b *brief) times() []time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.asked)
}

// pausing reads nothing, after a delay.
type pausing time.Duration

func (p pausing) Read([]byte) (int, error) {
	time.Sleep(time.Duration(p))
	return 0, io.EOF
}

// heard connects a pool to the server for a while, with a running call, and returns the final
// listing.
func (b *brief) heard(t *testing.T, during time.Duration) string {
	t.Helper()
	pool := NewPool(playedBy(b), func() {}, nil)
	pool.SetTargets([]Target{{Name: "x", URL: "http://brief.test/mcp"}})
	if err := pool.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := pool.Start(t.Context(), "x", Request{Method: MethodTool, Name: "n1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(during)
	synctest.Wait()
	if c.Ended() {
		_, err := c.Next(t.Context())
		t.Errorf("a call has ended with %v", err)
	}
	c.Cancel(context.Canceled)
	listing := pool.State("x").Listing
	pool.Close()
	if listing == nil {
		return "nothing"
	}
	time.Sleep(lasts) // until the streams have been read
	synctest.Wait()
	if n := b.open.Load(); n != 0 {
		t.Errorf("%d answers are open", n)
	}
	return fmt.Sprintf("%s", listing.Tools)
}

func TestListenStream_reopenAfterEnd(t *testing.T) {
	const ended = "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"resultType\":\"complete\"}}\n\n"
	for name, last := range map[string]string{"without a word": "", "with the result": ended} {
		synctest.Test(t, func(t *testing.T) {
			b := newBrief(last, 0)
			if got := b.heard(t, 3*lasts+lasts/2); !strings.Contains(got, `"n4"`) {
				t.Errorf("%s: it offers %s", name, got)
			}
			var pauses []time.Duration
			times := b.times()
			for n := range times[1:] {
				pauses = append(pauses, times[n+1].Sub(times[n]))
			}
			again := lasts + firstListenDelay
			if diff := cmp.Diff([]time.Duration{again, again, again}, pauses); diff != "" {
				t.Errorf("%s: listen times (-want +got)\n%s", name, diff)
			}
		})
	}
}

func TestListenStream_backoff(t *testing.T) {
	const refusal = "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"error\":{\"code\":-32603,\"message\":\"no\"}}\n\n"
	for name, row := range map[string]struct {
		last        string
		status      int
		least, most int
	}{
		"it is out of order":     {"", http.StatusServiceUnavailable, 60, 66},
		"it has no such stream":  {"", http.StatusNotFound, 1, 1},
		"it ends with a refusal": {refusal, 0, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBrief(row.last, row.status)
			if got := b.heard(t, 2*lasts); !strings.Contains(got, `"n1"`) {
				t.Errorf("%s: it offers %s", name, got)
			}
			if n := len(b.times()) - 1; n > row.most || n < row.least {
				t.Errorf("%s: %d listen requests within an hour", name, n)
			}
		})
	}
}

func TestListenStream_assumesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBrief("", 0)
		b.can = `"resources":{"subscribe":true}`
		updated := make(chan string, 10)
		pool := NewPool(playedBy(b),
			func() {}, func(name, uri string) { updated <- name + " " + uri })
		pool.SetTargets([]Target{{Name: "x", URL: "http://brief.test/mcp"}})
		pool.Subscribe("x", "lab://note")
		began := time.Now()
		if got, took := <-updated, time.Since(began); got != "x lab://note" || took != lasts+firstListenDelay {
			t.Errorf("after %s the updates are %q", took, got)
		}
		pool.Unsubscribe("x", "lab://note")
		time.Sleep(3 * lasts)
		if n := len(b.times()); n != 2 || len(updated) > 0 {
			t.Errorf("after unsubscribing: %d updates, %d listen requests", len(updated), n)
		}
		pool.Close()
	})
}
