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
	"time"
)

// bareVerb has this program be the yardstick over HTTP.
const bareVerb = "bare"

// serveBare says where it listens as mcpd does, and serves until it is killed.
func serveBare() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "listening on http://%s/mcp\n", l.Addr())
	return http.Serve(l, http.HandlerFunc(bareHTTP))
}

// apart is a server in a process of its own, as operators have it.
type apart struct {
	name  string
	most  float64 // what a call may cost, as a multiple of the first; 0 for that one
	id    int
	calls []func()

	costs, ratios []float64
}

// start starts a server, with a tool that adds, and connects to it. The program
// logs where it listens.
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
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	lines := bufio.NewReader(log)
	var address []string
	for address == nil {
		line, err := lines.ReadString('\n')
		if err != nil {
			tb.Fatalf("%s has ended before it listens: %v", a.name, err)
		}
		address = regexp.MustCompile(`http://([^ /"]+)/mcp`).FindStringSubmatch(line)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	a.id = cmd.Process.Pid
	for range connections {
		a.calls = append(a.calls, callAt(tb, address[1]))
	}
}

// cost returns the processor time of a call in nanoseconds over a batch on each
// connection, of the server and of the processes that it has started.
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

// serversApart starts the yardstick, and mcpd with a tool in JavaScript in both
// executors.
func serversApart(tb testing.TB, connections int) []*apart {
	tb.Helper()
	program, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	dir := tb.TempDir()
	mcpd, tools := filepath.Join(dir, "mcpd"), filepath.Join(dir, "tools.d")
	if out, err := exec.Command("go", "build", "-o", mcpd, "../cmd/mcpd").CombinedOutput(); err != nil {
		tb.Fatalf("build mcpd: %v\n%s", err, out)
	}
	if err := os.Mkdir(tools, 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tools, "add.hcl"), []byte(addInJavaScript), 0o644); err != nil {
		tb.Fatal(err)
	}
	all := []*apart{{name: "bare handler"}, {name: "inline", most: 1.4}, {name: "worker", most: 2}}
	all[0].start(tb, connections, program, bareVerb)
	for _, a := range all[1:] {
		a.start(tb, connections, mcpd, "serve", "--listen", "127.0.0.1:0", "--tools", tools, "--executor", a.name)
	}
	return all
}

// TestAScriptCostsLittleMoreThanABareHandler compares the processor time of
// processes as operators have them, while one client calls, and while eight do
// as fast as they can.
func TestAScriptCostsLittleMoreThanABareHandler(t *testing.T) {
	if os.Getenv("MCPD_LONG") == "" {
		t.Skip("SKIPPED: set MCPD_LONG")
	}
	for _, connections := range []int{1, 8} {
		t.Run(fmt.Sprint(connections), func(t *testing.T) {
			servers := serversApart(t, connections)
			for _, s := range servers {
				s.cost() // what is done once
			}
			for round := range rounds {
				bare := 0.0
				for i, s := range servers {
					cost := s.cost()
					if i == 0 {
						bare = cost
					}
					if round > 0 || i >= 0 {
						s.costs, s.ratios = append(s.costs, cost), append(s.ratios, cost/bare)
					}
				}
			}
			for _, s := range servers {
				t.Logf("%d at once, %s: %.1f µs, ratio %.2f", connections, s.name, median(s.costs)/float64(time.Microsecond), median(s.ratios))
			}
		})
	}
}

const rounds = 61
