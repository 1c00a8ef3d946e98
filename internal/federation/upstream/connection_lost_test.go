package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/internal/process/supervisor"
)

// subscriptionRefuser is a server that refuses some subscriptions, or closes the connection on them.
type subscriptionRefuser struct {
	costs, refuses func(uri string) bool

	mu    sync.Mutex
	asked []string // since the last connection
	links int
}

func (s *subscriptionRefuser) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := func(status int, text string) (*http.Response, error) {
		resp := given(r, status, "application/json", strings.NewReader(text))
		resp.Header.Set("Mcp-Session-Id", "s")
		return resp, nil
	}
	if r.Method != http.MethodPost {
		return answer(http.StatusMethodNotAllowed, "")
	}
	m, _, err := sentBy(r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	result := `{"resources":[],"resourceTemplates":[]}`
	switch m.method {
	case "initialize":
		s.asked = nil
		s.links++
		result = `{"protocolVersion":"2025-11-25","capabilities":{"resources":{"subscribe":true}},"serverInfo":{"name":"touchy","version":"1"}}`
	case "resources/subscribe":
		uri := strings.Trim(tokenOf(m.params, "uri"), `"`)
		s.asked = append(s.asked, uri)
		if s.costs(uri) {
			return answer(http.StatusNotFound, "")
		}
		if s.refuses(uri) {
			return answer(http.StatusOK, `{"jsonrpc":"2.0","id":`+string(m.id)+`,"error":{"code":-32002,"message":"no"}}`)
		}
		result = `{}`
	}
	if m.id == nil {
		return answer(http.StatusAccepted, "")
	}
	return answer(http.StatusOK, `{"jsonrpc":"2.0","id":`+string(m.id)+`,"result":`+result+`}`)
}

// followed subscribes a pool to all uris for a while. It returns the number of connections,
// the subscriptions requested last, and those still wanted.
func followed(t *testing.T, s *subscriptionRefuser, uris []string) (links int, asked, wanted []string) {
	t.Helper()
	pool := NewPool(playedBy(s), func() {}, func(string, string) {})
	pool.SetTargets([]Target{{Name: "touchy", URL: "http://touchy.test/mcp"}})
	for _, uri := range uris {
		pool.Subscribe("touchy", uri)
	}
	time.Sleep(10 * time.Minute)
	wanted = pool.server("touchy").subscriptions.all()
	pool.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.links, s.asked, wanted
}

func TestSubscriptions_dropsCulprit(t *testing.T) {
	uris := []string{"lab://a", "lab://b", "lab://c", "lab://d", "lab://e"}
	never := func(string) bool { return false }
	for _, culprit := range uris {
		for name, refuses := range map[string]func(string) bool{"agrees to the others": never, "refuses the others": func(uri string) bool { return uri != culprit }} {
			synctest.Test(t, func(t *testing.T) {
				s := &subscriptionRefuser{costs: func(uri string) bool { return uri == culprit }, refuses: refuses}
				links, asked, wanted := followed(t, s, uris)
				left := slices.DeleteFunc(slices.Clone(uris), func(uri string) bool { return uri == culprit })
				if links != 3 || !slices.Equal(asked, left) || !slices.Equal(wanted, left) {
					t.Errorf("%s, server %s: connection %d, requested %q, wanted %q", culprit, name, links, asked, wanted)
				}
			})
		}
	}
}

func TestSubscriptions_lostOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		s := &subscriptionRefuser{refuses: func(string) bool { return false }, costs: func(string) bool {
			n++
			return n == 1 || n == 3 // after a confirmation
		}}
		uris := []string{"lab://a"}
		subscriptions := newSubscriptions(uris)
		for range 4 {
			l := dialed(t, s, TransportStreamable)
			leave := make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				defer close(leave)
				subscriptions.maintain(ctx, l)
			}()
			synctest.Wait()
			cancel()
			<-leave
			_ = l.Close()
		}
		if got := fmt.Sprint(subscriptions.all(), s.links, n); got != "[lab://a] 4 4" {
			t.Errorf("wanted are %s", got)
		}
	})
}

// modernEvents is a server of revision 2026-07-28 over HTTP+SSE. Its listen request never ends, and it
// rejects the credential of each call.
type modernEvents struct{ to *io.PipeWriter }

func (s *modernEvents) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		var stream *io.PipeReader
		stream, s.to = io.Pipe()
		context.AfterFunc(r.Context(), func() { _ = s.to.CloseWithError(io.EOF) })
		go func() { _, _ = io.WriteString(s.to, "event: endpoint\ndata: /messages\n\n") }()
		return given(r, http.StatusOK, streamed, stream), nil
	}
	m, _, err := sentBy(r)
	if err != nil {
		return nil, err
	}
	switch m.method {
	case "server/discover":
		text := `{"jsonrpc":"2.0","id":` + string(m.id) + `,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"resultType":"complete"}}`
		go func() { _, _ = io.WriteString(s.to, "event: message\ndata: "+text+"\n\n") }()
	case MethodTool:
		return given(r, http.StatusUnauthorized, "text/plain", strings.NewReader("")), nil
	}
	return given(r, http.StatusAccepted, "text/plain", strings.NewReader("")), nil
}

// The client library does not end a connection that it cannot write to while a listen request is open.
func TestConn_brokenWhileListening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := Dial(t.Context(), Target{Name: "shop", URL: "http://shop.test/sse", Transport: TransportSSE}, playedBy(&modernEvents{}))
		if err != nil {
			t.Fatal(err)
		}
		if !c.Modern() {
			t.Fatalf("the revision is %s", c.Revision())
		}
		for i, want := range []string{"rejects the credential", "connection"} {
			if _, err := c.Start(t.Context(), Request{Method: MethodTool, Name: "x"}, nil).Next(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("call %d ends with %v", i, err)
			}
		}
		synctest.Wait()
		if !errors.Is(c.Err(), ErrConnectionLost) {
			t.Errorf("the connection has ended with %v", c.Err())
		}
		_ = c.Close()
	})
}

func TestStdioServer_sendError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		filter, _ := running()
		s := &stdioServer{child: &supervisor.Child{}, filter: filter, conn: &Conn{}}
		var errs []error
		for _, reads := range []bool{false, true} {
			out, in, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			if !reads {
				_ = out.Close()
			}
			s.child.Stdin = in
			_, err = s.Write([]byte("{}\n"))
			errs = append(errs, err)
			_ = s.Close()
			if sent, _ := io.ReadAll(out); len(sent) > 0 {
				t.Errorf("after an error, it sends %q", sent)
			}
			_ = out.Close()
		}
		if errs[0] == nil || errs[0] != errs[1] || filter.failure() != errs[0] {
			t.Errorf("the errors are %q, and the connection ends with %v", errs, filter.failure())
		}
	})
}
