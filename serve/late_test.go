package serve_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestAnHTTPConnectionEndsWithACallThatIsLeft: the function holds its
// goroutine, which nobody can have answer anything else.
func TestAnHTTPConnectionEndsWithACallThatIsLeft(t *testing.T) {
	url := listen(t, newFront(t, &hookLog{}))
	for tool, closes := range map[string]bool{"go_stuck": true, "go_add": false} {
		args := `{"a":1,"b":2}`
		if tool == "go_stuck" {
			args = `{}`
		}
		response, text := toMCP(t, http.DefaultClient, url, oneCall{tool, args})
		if response.StatusCode != http.StatusOK || response.Close != closes || response.ContentLength != int64(len(text)) {
			t.Errorf("%s: status %d, closes %v, %d bytes of %d", tool, response.StatusCode, response.Close, len(text), response.ContentLength)
		}
	}
}

// TestACallOverHTTP2EndsInTime: a stream of it would end with the function, as
// its connection is that of others too.
func TestACallOverHTTP2EndsInTime(t *testing.T) {
	handler, err := newFront(t, &hookLog{}).Handler()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	response, text := toMCP(t, server.Client(), server.URL, oneCall{"go_stuck", `{}`})
	if response.ProtoMajor != 2 || read(t, text).Code != "TIMEOUT" {
		t.Errorf("over %s: %s", response.Proto, text)
	}
}

// toMCP makes a call, and returns the response with its whole body.
func toMCP(t *testing.T, client *http.Client, url string, c oneCall) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/mcp", strings.NewReader(request(metaModern, c)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {c.tool},
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, text
}
