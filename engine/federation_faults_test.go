package engine_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/engine"
)

// scene is a server with a tool of its own, an upstream that does well, and others that
// fail in every way.
type scene struct {
	config strings.Builder
	modes  map[string]*faulty // those that count
	tools  map[string][]string
}

// block adds the block of an upstream that fails, and has its tool be called if it has one.
func (s *scene) block(mode, name, where string, tool bool) {
	fmt.Fprintf(&s.config, "upstream %q {\n  %s\n  start_timeout = %q\n  timeout = \"200ms\"\n}\n", name, where, startTime())
	if tool {
		s.tools[mode] = append(s.tools[mode], name+"_work")
	}
}

// startTime is how long the upstreams may take until they are ready.
func startTime() string {
	if os.Getenv("MCPD_LONG") != "" {
		return "5s"
	}
	return "500ms"
}

// newScene adds so many upstreams for each mode.
func newScene(t *testing.T, each int) *scene {
	s := &scene{modes: map[string]*faulty{}, tools: map[string][]string{}}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	hosts := map[string]string{"refuse": refusing(t), "hang at connect": deaf(t), "expired certificate": expired(t)}
	for mode, answer := range answersThatFail {
		s.modes[mode] = newFaulty(answer)
		hosts[mode] = web(t, s.modes[mode])
	}
	for mode, host := range hosts {
		for i := range each {
			late := s.modes[mode] != nil && i%2 == 1
			path := fmt.Sprintf("/%d", i)
			if late {
				path += "/late"
			}
			s.block(mode, fmt.Sprintf("%s_%d", strings.ReplaceAll(mode, " ", "_"), i), fmt.Sprintf("url = %q", host+path), late)
		}
	}
	for i := range each {
		s.block("changed definitions", fmt.Sprintf("changed_%d", i), fmt.Sprintf("url = %q", web(t, &restless{})+"/mcp"), true)
		arguments := fmt.Sprintf("command = [%q, %q]", self, crashing)
		if i%2 == 0 {
			arguments = `command = ["false"]`
		}
		s.block("crash loop", fmt.Sprintf("crash_%d", i), arguments, i%2 == 1)
	}
	return s
}

// fail calls the tools of the upstreams that fail until stop is called, which returns how
// many calls there were of each mode, and how many of them have had a result.
func (s *scene) fail(server *engine.Server) (stop func() (calls, results map[string]int)) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	var mu sync.Mutex
	calls, results := map[string]int{}, map[string]int{}
	for mode, tools := range s.tools {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				r := server.Execute(ctx, tool(tools[i%len(tools)], `{}`))
				mu.Lock()
				calls[mode]++
				if r.Err == nil {
					results[mode]++
				}
				mu.Unlock()
				select { // whoever is refused at once does not ask again at once
				case <-ctx.Done():
				case <-time.After(10 * time.Millisecond):
				}
			}
		})
	}
	return func() (map[string]int, map[string]int) {
		cancel()
		all.Wait()
		return calls, results
	}
}

// times are how long calls took, in order.
type times []time.Duration

func (t times) at(share float64) time.Duration { return t[int(share*float64(len(t)-1))] }

// work makes calls of the tool of the server's own and of that of the upstream that does
// well. All of them succeed.
func work(t *testing.T, s *engine.Server, n int) map[string]times {
	t.Helper()
	took := map[string]times{}
	for range n {
		for name, c := range map[string]struct{ arguments, want string }{"add": {`{"a":2,"b":3}`, `{"sum":5}`}, "lab_sum": {`{"a":2}`, `{"sum":4}`}} {
			began := time.Now()
			got := called(t, s, tool(name, c.arguments))
			took[name] = append(took[name], time.Since(began))
			if string(got.Structured) != c.want {
				t.Fatalf("%s ends with %s", name, ended(got))
			}
		}
	}
	for _, all := range took {
		slices.Sort(all)
	}
	return took
}

// children counts the processes that this one has started and that are there.
func children(t *testing.T) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			n++
		}
	}
	return n
}

// TestUpstreamsThatFailCostOthersNothing has 2 upstreams fail in each of 13 ways, or 50 with
// MCPD_LONG, which also judges how long calls of the others take.
func TestUpstreamsThatFailCostOthersNothing(t *testing.T) {
	each, n := 2, 200
	long := os.Getenv("MCPD_LONG") != ""
	if long {
		each, n = 50, 1500
	}
	before, left := goleak.IgnoreCurrent(), children(t)
	var took [2]map[string]times
	t.Run("the scene", func(t *testing.T) {
		one := lab()
		good := upstreamAt(web(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return one }, &mcp.StreamableHTTPOptions{Stateless: true})))
		took[0] = work(t, federated(t, good, "add.hcl", addTool), n)
		s := newScene(t, each)
		began := time.Now()
		server := federated(t, good+s.config.String(), "add.hcl", addTool)
		until(t, server, func() bool { return server.Snapshot().Tool("lab_sum") != nil })
		first := server.Status().Loads
		stop := s.fail(server)
		if long { // what is judged is how it stays, not how it begins
			for _, m := range s.modes {
				m.await(4, (each+1)/2)
			}
		}
		took[1] = work(t, server, n)
		loads := server.Status().Loads - first
		calls, results := stop()
		s.judge(t, time.Since(began), calls, results)
		t.Logf("%d upstreams, %d goroutines, %d reloads", len(server.Status().Upstreams), runtime.NumGoroutine(), loads)
		down := 0
		for _, u := range server.Status().Upstreams {
			if u.Name == "lab" && !u.Up {
				t.Errorf("the one that does well is down: %v", u.Err)
			}
			if !u.Up {
				down++
			}
		}
		if down < each*len(answersThatFail)/2 {
			t.Errorf("only %d upstreams are down", down)
		}
		if err := server.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if n := children(t); n != left {
			t.Errorf("%d processes are left", n-left)
		}
	})
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
	for _, name := range slices.Sorted(maps.Keys(took[0])) {
		alone, beside := took[0][name], took[1][name]
		t.Logf("%-8s alone p50 %8s p99 %8s, beside them p50 %8s p99 %8s", name, alone.at(0.5), alone.at(0.99), beside.at(0.5), beside.at(0.99))
		if long && float64(beside.at(0.99)) > 1.5*float64(alone.at(0.99)) {
			t.Errorf("%s: its p99 is %s beside servers that fail, and %s alone", name, beside.at(0.99), alone.at(0.99))
		}
	}
}

// judge looks at how often servers were tried that fail, and what came of calls of them.
func (s *scene) judge(t *testing.T, during time.Duration, calls, results map[string]int) {
	t.Helper()
	// Pauses are at least 0.25 s, 0.5 s, 1 s and so on.
	most := 2 + int(math.Log2(4*during.Seconds()+1))
	for _, mode := range slices.Sorted(maps.Keys(s.modes)) {
		m := s.modes[mode]
		m.mu.Lock()
		for path, n := range m.tries {
			if n > most {
				t.Errorf("%s%s was tried %d times within %s", mode, path, n, during)
			}
		}
		m.mu.Unlock()
	}
	for _, mode := range slices.Sorted(maps.Keys(calls)) {
		t.Logf("%-20s %5d calls, %5d with a result", mode, calls[mode], results[mode])
		if mode != "changed definitions" && results[mode] > 0 {
			t.Errorf("%s: %d calls have a result", mode, results[mode])
		}
	}
}
