package upstream_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/federation/upstream"
)

// paged is a server whose list of tools is in three pages, of which each says for how long
// it holds.
func paged(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Cursor string }
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil || m.Method == "server/discover" {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	result := `{}`
	switch {
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	case m.Method == "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"paged","version":"1"},"instructions":"Turn the pages."}`
	case m.Method == "tools/list":
		result = map[string]string{
			"":  `{"tools":[{"name":"a"}],"ttlMs":60000,"nextCursor":"b"}`,
			"b": `{"tools":[{"name":"b"}],"ttlMs":30000,"nextCursor":"c"}`,
			"c": `{"tools":[{"name":"c"}],"ttlMs":0}`,
		}[m.Params.Cursor]
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func TestEveryPageIsReadAndTheListsHoldAsLongAsTheFirstOfThem(t *testing.T) {
	host := httptest.NewServer(http.HandlerFunc(paged))
	t.Cleanup(host.Close)
	l, _ := dial(t, upstream.Place{Name: "paged", URL: host.URL + "/mcp"})
	listing, err := l.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%s %s", listing.Tools, listing.Instructions); got != `[{"name":"a"} {"name":"b"} {"name":"c"}] Turn the pages.` || listing.TTL != 30*time.Second {
		t.Errorf("it lists %s for %s", got, listing.TTL)
	}
}
