package engine_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/engine"
)

// The operator gets the cause, callers get a retry message, and neither gets a secret.
func TestUpstream_dialErrors(t *testing.T) {
	up, lock := newChangingUpstream(t, "read"), newLock(t)
	acceptTools(t, lock, upstreamAt(up.url)) // accepted tools of an unreachable server may be called
	silent, outdated := newListener(), expiredCertHost()
	t.Cleanup(func() { _ = silent.Close() })
	t.Cleanup(outdated.Close)
	hang, dated, gone := silent.Addr().String(), outdated.Listener.Addr().String(), strings.TrimPrefix(refusingHost(), "http://")
	const hangs, soon = "the server is not ready within 50ms (start_timeout)", `start_timeout = "50ms"`
	for what, row := range map[string]struct{ url, start, want string }{
		"it refuses the connection":   {"http://" + gone, "", gone + " refused the connection: is it running, and is the port correct?"},
		"it shakes no hands":          {"https://" + hang, soon, hangs},
		"it answers nothing":          {"http://" + hang, soon, hangs},
		"its certificate has expired": {"https://" + dated, "", "no trusted TLS connection to " + dated + " could be made: tls: failed to verify certificate: x509: certificate has expired or is not yet valid"},
	} {
		t.Run(what, func(t *testing.T) {
			const key = "sesame-open"
			s := server(t, engine.Options{
				Files: engine.Files{
					Config: files("mcpd.hcl", "secret \"key\" {\n  env = \"KEY\"\n}\n"+upstreamAt(row.url+"/mcp", "lazy = true", "private_networks = true", `transport = "streamable"`, row.start,
						"header \"X-Key\" {\n    value = \"k-${secret.key}\"\n  }")),
					LockPath:  lock,
					LookupEnv: func(name string) (string, bool) { return key, name == "KEY" },
				},
			})
			result := executeCall(t, s, tool("lab_read", `{}`))
			got := outcomeLine(result)
			if !strings.HasPrefix(got, "EXECUTION_ERROR: the upstream server cannot be reached now") || strings.Contains(got, row.want) {
				t.Errorf("the caller gets %s", got)
			}
			status := s.Status().Upstreams[0]
			told := fmt.Sprint(status.Err)
			if !strings.HasPrefix(told, row.want) || status.Up || status.NextAttempt.IsZero() {
				t.Errorf("the error is %s, want %s; up is %t, and the next attempt is at %s", told, row.want, status.Up, status.NextAttempt)
			}
			if all := fmt.Sprintf("%+v %+v %s", result, result.Err, told); strings.Contains(all, key) {
				t.Errorf("the key is revealed: %s", all)
			}
		})
	}
}

// No goroutine may remain; TestMain checks that.
func TestUpstream_closeWhileConnecting(t *testing.T) {
	connected := make(chan struct{}, 8)
	hangs := web(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		connected <- struct{}{}
		_, _ = io.Copy(io.Discard, r.Body) // the server notices the end of the connection by reading
		<-r.Context().Done()
	}))
	s := unloaded(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", upstreamAt(hangs)+"upstream \"deaf\" {\n  command = [\"sleep\", \"3600\"]\n}\n")}})
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		_, _ = s.Load(t.Context())
	}()
	<-connected
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	<-loaded
}
