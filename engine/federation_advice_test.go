package engine_test

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/engine"
)

// newFixedUpstream returns a server with one response to everything.
func newFixedUpstream(t *testing.T, status int, kind, body string) (url string) {
	return web(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}))
}

// One sentence says why a server is unreachable. Its own text is not shown.
func TestUpstream_unreachableAdvice(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	plain := newFixedUpstream(t, http.StatusOK, "text/html", "<p>hello</p>")
	const nowhere = ": check that its path is right, usually /mcp"
	for what, row := range map[string]struct{ url, want string }{
		"no credential":         {newFixedUpstream(t, 401, "text/plain", "body"), "the server rejects the credential (401 Unauthorized): check the header of the block, and its secret"},
		"no authority":          {newFixedUpstream(t, 403, "text/plain", "body"), "access denied (403 Forbidden): check the permissions of the block's credential"},
		"no path":               {newFixedUpstream(t, 404, "text/plain", "body"), "no MCP server at this URL (404 Not Found)" + nowhere + ", and that it starts with https"},
		"a redirect":            {newFixedUpstream(t, 302, "text/plain", "body"), "the server redirects (302 Found), and mcpd does not follow: set the final URL"},
		"a failure":             {newFixedUpstream(t, 500, "text/plain", "body"), "the server failed (500 Internal Server Error): check its log"},
		"a page":                {plain, "no MCP server answers at this URL" + nowhere},
		"nothing":               {newFixedUpstream(t, 200, "", ""), "no MCP server answers at this URL" + nowhere},
		"other JSON":            {newFixedUpstream(t, 200, "application/json", `{"body":1}`), "the server sent an invalid JSON-RPC message"},
		"nobody":                {"http://" + gone, gone + " refused the connection: is it running, and is the port correct?"},
		"a strange certificate": {secure.URL, "no trusted TLS connection to " + secure.Listener.Addr().String() + " could be made: tls: failed to verify certificate: x509: certificate signed by unknown authority"},
		"no TLS":                {"https" + strings.TrimPrefix(plain, "http"), "it does not use TLS; write http:// if you trust it"},
	} {
		s := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", upstreamAt(row.url+"/mcp", "private_networks = true", `transport = "streamable"`))}})
		got := fmt.Sprint(s.Status().Upstreams[0].Err)
		if !strings.HasSuffix(got, row.want) || strings.Contains(got, "body") {
			t.Errorf("%s: %s", what, got)
		}
	}
}
