package serve_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestAnHTTPConnectionEndsWithACallThatIsLeft: the function holds its
// goroutine, which nobody can have answer anything else.
func TestAnHTTPConnectionEndsWithACallThatIsLeft(t *testing.T) {
	url := listen(t, newFront(t, &hookLog{}))
	for tool, closes := range map[string]bool{"go_stuck": true, "go_add": false} {
		body := request(metaModern, call{tool, `{"a":1,"b":2}`})
		if tool == "go_stuck" {
			body = request(metaModern, call{tool, `{}`})
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{
			"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {tool},
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || response.Close != closes || response.ContentLength != int64(len(text)) {
			t.Errorf("%s: %v, status %d, closes %v, %d bytes of %d", tool, err, response.StatusCode, response.Close, len(text), response.ContentLength)
		}
	}
}
