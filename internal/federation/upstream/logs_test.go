package upstream

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// loggingServer is a server with sessions that records log levels. A call of its tool logs one
// debug record if allowed, and ends when the test says so.
type loggingServer struct {
	end chan struct{}

	mu     sync.Mutex
	levels []string
}

func (s *loggingServer) RoundTrip(r *http.Request) (*http.Response, error) {
	give := func(status int, kind string, body io.Reader) (*http.Response, error) {
		return given(r, status, kind, body), nil
	}
	if r.Method != http.MethodPost {
		return give(http.StatusMethodNotAllowed, "text/plain", http.NoBody)
	}
	m, _, err := sentBy(r)
	if err != nil {
		return nil, err
	}
	result := func(s string) string { return `{"jsonrpc":"2.0","id":` + string(m.id) + `,"result":` + s + `}` }
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m.method {
	case "initialize":
		return give(http.StatusOK, "application/json", strings.NewReader(result(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"x","version":"1"}}`)))
	case "logging/setLevel":
		s.levels = append(s.levels, strings.Trim(tokenOf(m.params, "level"), `"`))
		return give(http.StatusOK, "application/json", strings.NewReader(result(`{}`)))
	case MethodTool:
		said := ""
		if s.levels[len(s.levels)-1] == "debug" {
			said = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"debug\",\"data\":\"x\"}}\n\n"
		}
		return give(http.StatusOK, streamed, io.MultiReader(strings.NewReader(said), until(s.end), strings.NewReader("data: "+result(`{"content":[]}`)+"\n\n")))
	case "server/discover":
		return give(http.StatusNotFound, "text/plain", http.NoBody)
	}
	return give(http.StatusAccepted, "text/plain", http.NoBody)
}

// until reads nothing, and ends when its channel receives.
type until chan struct{}

func (u until) Read([]byte) (int, error) {
	<-u
	return 0, io.EOF
}

// logCounter counts log records.
type logCounter struct{ n int }

func (*logCounter) Progress(float64, *float64, string) {}

func (r *logCounter) Log(string, string, json.RawMessage) { r.n++ }

// Several calls set the level once.
func TestDebugState_refcount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &loggingServer{end: make(chan struct{})}
		l := dialed(t, s, TransportStreamable)
		defer func() { _ = l.Close() }()
		begin := func(debug bool) (*Call, *logCounter) {
			heard := &logCounter{}
			c := l.Start(t.Context(), Request{Method: MethodTool, Name: "x", DebugLogs: debug}, heard)
			synctest.Wait()
			return c, heard
		}
		end := func(calls ...*Call) {
			t.Helper()
			for range calls {
				s.end <- struct{}{}
			}
			for _, c := range calls {
				if _, err := c.Next(t.Context()); err != nil {
					t.Error(err)
				}
			}
			synctest.Wait()
		}
		for range 2 {
			before, none := begin(false)
			end(before)
			first, one := begin(true)
			second, another := begin(true)
			end(first, second)
			behind, nothing := begin(false)
			end(behind)
			if none.n != 0 || one.n != 1 || another.n != 1 || nothing.n != 0 {
				t.Errorf("the calls received %d, %d, %d and %d records", none.n, one.n, another.n, nothing.n)
			}
		}
		if diff := cmp.Diff([]string{"info", "debug", "info", "debug", "info"}, s.levels); diff != "" {
			t.Errorf("the levels that the server is asked for (-want +got)\n%s", diff)
		}
	})
}
