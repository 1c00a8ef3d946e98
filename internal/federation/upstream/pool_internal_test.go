package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// statelessServer is a server of revision 2026-07-28 without a network. It rejects everything that this
// revision does not have, and records it.
type statelessServer struct {
	can string // its capabilities, as members of JSON
	// answer returns the body of a response, and whether it ends.
	answer func(m message) (body io.Reader, ends bool)
	open   atomic.Int32 // responses that are not closed

	mu      sync.Mutex
	refused []string // HTTP and MCP methods
}

func (s *statelessServer) RoundTrip(r *http.Request) (*http.Response, error) {
	m, _, err := sentBy(r)
	if err != nil {
		return nil, err
	}
	switch {
	case m.id == nil:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.refused = append(s.refused, strings.TrimSpace(r.Method+" "+m.method))
		return given(r, http.StatusBadRequest, "text/plain", strings.NewReader("there is no such thing")), nil
	case m.method == "server/discover":
		return given(r, http.StatusOK, "application/json", strings.NewReader(
			`{"jsonrpc":"2.0","id":`+string(m.id)+`,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{`+s.can+`},"ttlMs":0,"cacheScope":"private"}}`)), nil
	}
	body, ends := s.answer(m)
	s.open.Add(1)
	return given(r, http.StatusOK, streamed, &blockingStream{Reader: body, ctx: r.Context(), open: &s.open, ends: ends}), nil
}

// refusals returns the rejected requests.
func (s *statelessServer) refusals() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// A server that rejects the notification continues with all other calls.
func TestFilterTransport_cancelWithoutSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &statelessServer{can: `"tools":{}`, answer: func(message) (io.Reader, bool) { return strings.NewReader(""), false }}
		l := dialed(t, s, TransportStreamable)
		defer func() { _ = l.Close() }()
		begin := func() *Call { return l.Start(t.Context(), Request{Method: MethodTool, Name: "x"}, nil) }
		c, other := begin(), begin()
		synctest.Wait()
		if n := s.open.Load(); n != 2 || !l.Modern() {
			t.Fatalf("%d calls have reached a server of %s", n, l.Revision())
		}
		c.Cancel(context.Canceled)
		if _, err := c.Next(t.Context()); !errors.Is(err, context.Canceled) {
			t.Errorf("the call ends with %v", err)
		}
		synctest.Wait()
		if n := s.open.Load(); n != 1 || other.Ended() || l.Err() != nil {
			t.Errorf("%d open streams, other call ended %t: %v", n, other.Ended(), l.Err())
		}
		if diff := cmp.Diff([]string(nil), s.refusals()); diff != "" {
			t.Errorf("rejected requests (-want +got)\n%s", diff)
		}
	})
}

// Regardless of the order of SetTargets and Subscribe, the last server has exactly the
// subscriptions that were not removed.
func TestPool_subscriptionsOfReplacedServer(t *testing.T) {
	pool := NewPool(Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}, func() {}, func(string, string) {})
	defer pool.Close()
	replace := func(n int) {
		pool.SetTargets([]Target{{Name: "one", Command: []string{fmt.Sprintf("/nowhere/%d", n)}}})
	}
	replace(0)
	const rounds = 400
	kept, gone := func(n int) string { return fmt.Sprint("kept://", n) }, func(n int) string { return fmt.Sprint("gone://", n) }
	for n := range rounds {
		pool.Subscribe("one", gone(n))
	}
	var all sync.WaitGroup
	for n := range rounds {
		all.Go(func() { replace(n + 1) })
		all.Go(func() { pool.Subscribe("one", kept(n)) })
		all.Go(func() { pool.Unsubscribe("one", gone(n)) })
	}
	all.Wait()
	wanted := pool.server("one").subscriptions
	for n := range rounds {
		if !wanted.wants(kept(n)) || wanted.wants(gone(n)) {
			t.Errorf("round %d: a subscription is lost or reappears", n)
		}
	}
}

// unlucky is a server of the newest revision whose connection breaks at the first listen
// request, before or after its status.
type unlucky struct {
	*brief
	behind bool
}

func (u unlucky) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get(methodHeader) != methodListen || len(u.times()) > 0 {
		return u.brief.RoundTrip(r)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked = append(u.asked, time.Now())
	if u.behind {
		return given(r, http.StatusOK, streamed, cut{}), nil
	}
	return nil, io.ErrUnexpectedEOF
}

func TestSubscriptions_retryAfterLoss(t *testing.T) {
	for name, behind := range map[string]bool{"before the status": false, "behind it": true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBrief("", 0)
			b.can = `"resources":{"subscribe":true}`
			pool := NewPool(playedBy(unlucky{b, behind}), func() {}, func(string, string) {})
			pool.SetTargets([]Target{{Name: "x", URL: "http://brief.test/mcp"}})
			pool.Subscribe("x", "lab://note")
			time.Sleep(lasts / 2)
			if n := len(b.times()); n != 2 {
				t.Errorf("%s: %d requests within half an hour", name, n)
			}
			pool.Close()
			time.Sleep(lasts)
		})
	}
}

func TestSuspend_limitPerOwner(t *testing.T) {
	pool := NewPool(Options{}, func() {}, func(string, string) {})
	defer pool.Close()
	park := func(by string) (handle string, cause error) {
		ctx, cancel := context.WithCancelCause(t.Context())
		return pool.Suspend(newCall(1, Request{}, nil, cancel), by), context.Cause(ctx)
	}
	var last string
	for n := range maxSuspendedPerOwner {
		var err error
		if last, err = park("ann"); last == "" {
			t.Fatalf("call %d does not wait: %v", n, err)
		}
	}
	if handle, err := park("ann"); handle != "" || err != errTooManySuspended {
		t.Errorf("one more waits, or has not ended: %v", err)
	}
	if handle, err := park("bob"); handle == "" {
		t.Errorf("a call of another owner is not suspended: %v", err)
	}
	pool.Resume(last, nil)
	if handle, err := park("ann"); handle == "" {
		t.Errorf("no call is suspended after another was resumed: %v", err)
	}
	for n := range 2 * maxSuspended / maxSuspendedPerOwner {
		for range maxSuspendedPerOwner {
			_, _ = park(fmt.Sprint("other ", n))
		}
	}
	if len(pool.suspended) != maxSuspended {
		t.Errorf("%d calls wait", len(pool.suspended))
	}
}
