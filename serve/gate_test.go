package serve_test

import (
	"net/http"
	"testing"
)

// TestEveryRouteIsBehindTheGate asks as a page of another site would: by a name
// that is not ours, and from an origin that is not ours.
func TestEveryRouteIsBehindTheGate(t *testing.T) {
	url := listen(t, frontOf(t, outcomeTools))
	for _, route := range []string{"/mcp", "/mcp/sse", "/sse", "/messages", "/ws", "/mcp/capabilities", "/mcp/execute", "/healthz", "/readyz", "/nowhere"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			for name, spoil := range map[string]func(*http.Request){
				"a foreign host":   func(r *http.Request) { r.Host = "evil.example" },
				"a foreign origin": func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
			} {
				r, err := http.NewRequest(method, url+route, nil)
				if err != nil {
					t.Fatal(err)
				}
				spoil(r)
				response, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
				if response.StatusCode != http.StatusForbidden {
					t.Errorf("%s %s with %s got %s", method, route, name, response.Status)
				}
			}
		}
	}
}
