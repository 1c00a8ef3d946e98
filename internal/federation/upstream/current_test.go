package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// current is a server of revision 2026-07-28 without a network. It refuses all that this
// revision does not have, and keeps what that was.
type current struct {
	can string // its capabilities, as members of JSON
	// answer returns the body of the answer to a request, of which ends says whether it has an
	// end.
	answer func(m message) (body io.Reader, ends bool)
	open   atomic.Int32 // answers that nobody has left

	mu      sync.Mutex
	refused []string // methods of HTTP and of MCP
}

func (s *current) RoundTrip(r *http.Request) (*http.Response, error) {
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
	return given(r, http.StatusOK, streamed, &lasting{Reader: body, ctx: r.Context(), open: &s.open, ends: ends}), nil
}

// refusals returns what the server has refused.
func (s *current) refusals() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// TestAServerWithoutSessionsSeesACancellationByTheStreamOfItsCallAlone: one that refuses
// whatever else it is told goes on with all other calls.
func TestAServerWithoutSessionsSeesACancellationByTheStreamOfItsCallAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &current{can: `"tools":{}`, answer: func(message) (io.Reader, bool) { return strings.NewReader(""), false }}
		l := dialled(t, s, Streamable)
		defer func() { _ = l.Close() }()
		begin := func() *Call { return l.Begin(t.Context(), Request{Method: MethodTool, Name: "x"}, nil) }
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
			t.Errorf("%d streams are open, and another call has ended (%t): %v", n, other.Ended(), l.Err())
		}
		if diff := cmp.Diff([]string(nil), s.refusals()); diff != "" {
			t.Errorf("what the server refuses (-want +got)\n%s", diff)
		}
	})
}
