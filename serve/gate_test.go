package serve_test

import (
	"io"
	"net/http"
	"strings"
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

// TestARefusalIsAnErrorOfItsWire sends what is no JSON to each route that
// takes messages, from a page of another site and from none.
func TestARefusalIsAnErrorOfItsWire(t *testing.T) {
	url := listen(t, frontOf(t, outcomeTools))
	const rpc, rest = `{"jsonrpc":"2.0","error":{"code":-32600,"message":"`, `{"error":"`
	for route, begins := range map[string]string{
		"/mcp": rpc, "/mcp/sse": rpc, "/sse": rpc, "/messages": rpc, "/ws": rpc, "/mcp/execute": rest, "/mcp/capabilities": rest, "/healthz": rest,
	} {
		for origin, status := range map[string]int{"": http.StatusUnsupportedMediaType, "https://evil.example": http.StatusForbidden} {
			r, err := http.NewRequest(http.MethodPost, url+route, strings.NewReader("a=b"))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			if origin != "" {
				r.Header.Set("Origin", origin)
			}
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err != nil || response.StatusCode != status || !strings.HasPrefix(string(body), begins) {
				t.Errorf("%s from %q got %s: %s, %v", route, origin, response.Status, body, err)
			}
		}
	}
}
