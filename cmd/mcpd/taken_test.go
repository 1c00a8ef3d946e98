package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAServerThatFindsItsAddressTakenHasDoneNothing has the address be that of --listen, a
// socket, too, or of the operator's file. Nothing is accepted of an upstream server then, which
// is not even asked, and no audit log is made.
func TestAServerThatFindsItsAddressTakenHasDoneNothing(t *testing.T) {
	t.Parallel()
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	path := filepath.Join(t.TempDir(), "s")
	socket, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	var asked atomic.Int64
	behind := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer behind.Close()
	config := "audit { path = \"audit.jsonl\" }\nupstream \"x\" {\n  url = \"" + behind.URL + "/mcp\"\n}\n"
	for name, c := range map[string]struct{ flag, block string }{
		"a flag":     {flag: port.Addr().String()},
		"a block":    {block: port.Addr().String()},
		"a socket":   {flag: "unix:" + path},
		"flag first": {flag: port.Addr().String(), block: "127.0.0.1:0"},
	} {
		s := newSandbox(t)
		text, args := config, []string{"serve"}
		if c.flag != "" {
			args = append(args, "--listen", c.flag)
		}
		if c.block != "" {
			text += "listen { address = \"" + c.block + "\" }\n"
		}
		s.write(t, "mcpd.hcl", text)
		before := s.holds(t)
		code, _, stderr := s.run(t, nil, args...)
		if code != exitFindings || !strings.HasSuffix(stderr, "address already in use; choose another address with --listen\n") {
			t.Errorf("%s: exit code %d\n%s", name, code, stderr)
		}
		if diff := cmp.Diff(before, s.holds(t)); diff != "" {
			t.Errorf("%s: files are left (-before +after)\n%s", name, diff)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the upstream server was asked %d times", n)
	}
}
