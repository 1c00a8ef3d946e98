package bench

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
)

// bareVerb makes this program serve the bare handler over HTTP.
const bareVerb = "bare"

// serveBare logs its address like mcpd and serves until the process is killed.
func serveBare() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "listening on http://%s/mcp\n", l.Addr())
	return http.Serve(l, http.HandlerFunc(bareHTTP))
}

// apart is a server in its own process, as operators run it.
type apart struct {
	name  string
	most  float64 // maximum cost of a call relative to the first server; 0 for the first
	id    int
	calls []func()

	costs, ratios []float64
}

// start starts a server with a tool that adds and connects to it. The program must log
// its address.
func (a *apart) start(tb testing.TB, connections int, program string, args ...string) {
	tb.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+tb.TempDir())
	log, err := cmd.StderrPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill() // a background job may ignore SIGINT
		_ = cmd.Wait()
	})
	lines := bufio.NewReader(log)
	var address []string
	for address == nil {
		line, err := lines.ReadString('\n')
		if err != nil {
			tb.Fatalf("%s exited before listening: %v", a.name, err)
		}
		address = regexp.MustCompile(`http://([^ /"]+)/mcp`).FindStringSubmatch(line)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	a.id = cmd.Process.Pid
	for range connections {
		a.calls = append(a.calls, callAt(tb, address[1]))
	}
}

// cost returns the processor time of a call in nanoseconds over one batch per
// connection. It includes the processes that the server started.
func (a *apart) cost() float64 {
	ids := append(startedBy(a.id), a.id)
	before := usedBy(ids)
	var all sync.WaitGroup
	for _, call := range a.calls {
		all.Go(func() {
			for range batch {
				call()
			}
		})
	}
	all.Wait()
	return float64(usedBy(ids)-before) / float64(batch*len(a.calls))
}

// addInJavaScript is the tool of the bare handler as a tool file.
const addInJavaScript = `
tool "add" {
  input "a" { type = number }
  input "b" { type = number }
  output "sum" { type = number }
  run = <<JS
    return { sum: input.a + input.b };
  JS
}
`

func buildMCPD(tb testing.TB) (program string) {
	tb.Helper()
	program = filepath.Join(tb.TempDir(), "mcpd")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, "../cmd/mcpd").CombinedOutput(); err != nil {
		tb.Fatalf("build mcpd: %v\n%s", err, out)
	}
	return program
}

// serversApart starts the bare handler first, then mcpd with a JavaScript tool in each
// executor.
func serversApart(tb testing.TB, connections int) []*apart {
	tb.Helper()
	program, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	mcpd := buildMCPD(tb)
	tools := onDisk(tb, map[string]string{"add.hcl": addInJavaScript})
	all := []*apart{{name: "bare handler"}, {name: "inline", most: 1.4}, {name: "worker", most: 2}}
	all[0].start(tb, connections, program, bareVerb)
	for _, a := range all[1:] {
		a.start(tb, connections, mcpd, "serve", "--listen", "127.0.0.1:0", "--tools", tools, "--executor", a.name)
	}
	return all
}

// measure alternates between the servers, so other load on the machine affects all of
// them equally.
func measure(servers []*apart, rounds int) {
	for _, s := range servers {
		s.cost() // one-time work
	}
	for range rounds {
		for _, s := range servers {
			s.costs = append(s.costs, s.cost())
			last := len(s.costs) - 1
			s.ratios = append(s.ratios, s.costs[last]/servers[0].costs[last])
		}
	}
}

// TestScript_cost checks the processor time per call. Busy servers have eight
// connections with back-to-back calls. On a single connection most of the cost is
// waking threads.
func TestScript_cost(t *testing.T) {
	if os.Getenv("MCPD_LONG") == "" {
		t.Skip("SKIPPED: set MCPD_LONG")
	}
	for _, connections := range []int{1, 8} {
		servers := serversApart(t, connections)
		measure(servers, 61)
		for _, s := range servers {
			ratio := median(s.ratios)
			t.Logf("%d connections, %s: %.1f µs, ratio %.2f", connections, s.name, median(s.costs)/1e3, ratio)
			if s.most > 0 && ratio > s.most {
				t.Errorf("%d connections, %s: a call costs %.2f times the processor time of a bare handler, want at most %.1f", connections, s.name, ratio, s.most)
			}
		}
	}
}
