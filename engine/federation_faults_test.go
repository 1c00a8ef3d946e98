package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/engine"
)

// upstreamSet is the set of upstreams in addition to the healthy one.
type upstreamSet struct {
	config strings.Builder
	hosts  map[string]string
	tools  map[string][]string
}

// addBlock adds an upstream block, and its tool to the calls if it has one.
func (s *upstreamSet) addBlock(mode, name, where string, tool bool) {
	fmt.Fprintf(&s.config, "upstream %q {\n  %s\n  start_timeout = %q\n  timeout = \"200ms\"\n}\n", name, where, startTime())
	if tool {
		s.tools[mode] = append(s.tools[mode], name+"_work")
	}
}

// startTime returns the start timeout of the upstreams.
func startTime() string {
	if os.Getenv("MCPD_LONG") != "" {
		return "5s"
	}
	return "500ms"
}

// newUpstreamSet adds upstreams for each mode: hosts of a kind, and programs.
func newUpstreamSet(t *testing.T, kind string, each int) *upstreamSet {
	t.Helper()
	s := &upstreamSet{hosts: startHosts(t, kind), tools: map[string][]string{}}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for mode, host := range s.hosts {
		if mode == everyMode {
			continue
		}
		for i := range each {
			late := answersThatFail[mode] != nil && i%2 == 1
			path := fmt.Sprintf("/%d", i)
			if late {
				path += "/late"
			}
			s.addBlock(mode, fmt.Sprintf("%s_%d", strings.ReplaceAll(mode, " ", "_"), i), fmt.Sprintf("url = %q", host+path), late || mode == "changed definitions")
		}
	}
	for i := range each {
		program := []string{self, crashing}
		switch {
		case kind == hostsDo:
			program[1] = steady
		case i%2 == 0:
			program = []string{"false"}
		}
		s.addBlock("crash loop", fmt.Sprintf("crash_%d", i), "command = "+hclList(program), i%2 == 1)
	}
	return s
}

func hclList(texts []string) string {
	list, _ := json.Marshal(texts) // HCL has the lists and strings of JSON
	return string(list)
}

// callUpstreams calls the tools of the upstreams until stop is called, which returns the calls and the
// results of each mode.
func (s *upstreamSet) callUpstreams(server *engine.Server) (stop func() (calls, results map[string]int)) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	var mu sync.Mutex
	calls, results := map[string]int{}, map[string]int{}
	for mode, tools := range s.tools {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				r := server.Execute(context.Background(), tool(tools[i%len(tools)], `{}`))
				mu.Lock()
				calls[mode]++
				if r.Err == nil {
					results[mode]++
				}
				mu.Unlock()
				select { // a rejected caller waits before it retries
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

// times are durations of calls.
type times []time.Duration

// at returns a quantile; the times are sorted.
func (t times) at(share float64) time.Duration { return t[int(share*float64(len(t)-1))] }

// callHealthy makes calls of the local tool and of the healthy upstream. All of them must succeed.
func callHealthy(t *testing.T, s *engine.Server, n int) map[string]times {
	t.Helper()
	took := map[string]times{}
	for range n {
		for name, c := range map[string]struct{ arguments, want string }{"add": {`{"a":2,"b":3}`, `{"sum":5}`}, "lab_sum": {`{"a":2}`, `{"sum":4}`}} {
			began := time.Now()
			got := executeCall(t, s, tool(name, c.arguments))
			took[name] = append(took[name], time.Since(began))
			if string(got.Structured) != c.want {
				t.Fatalf("%s ends with %s", name, outcomeLine(got))
			}
		}
	}
	return took
}

// children counts the running child processes.
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

// 2 upstreams fail in each of 13 ways, or 50 with MCPD_LONG. The long run also compares the latency
// of other calls with that beside the same number of healthy upstreams. The two alternate, so that
// other load on the machine affects both.
func TestUpstream_faultIsolation(t *testing.T) {
	each, n, turns := 2, 200, 1
	long := os.Getenv("MCPD_LONG") != ""
	if long {
		each, n, turns = 50, 5000, 3
	}
	before := goleak.IgnoreCurrent()
	took := map[string]map[string]times{hostsDo: {}, hostsFail: {}}
	for range turns {
		for _, kind := range []string{hostsDo, hostsFail} {
			t.Run(kind, func(t *testing.T) {
				for name, all := range measureBeside(t, kind, each, n) {
					took[kind][name] = append(took[kind][name], all...)
				}
			})
		}
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
	for _, name := range slices.Sorted(maps.Keys(took[hostsDo])) {
		well, badly := took[hostsDo][name], took[hostsFail][name]
		slices.Sort(well)
		slices.Sort(badly)
		t.Logf("%-8s beside servers that do well p50 %8s p99 %8s, that fail p50 %8s p99 %8s", name, well.at(0.5), well.at(0.99), badly.at(0.5), badly.at(0.99))
		if long && float64(badly.at(0.99)) > 1.5*float64(well.at(0.99)) {
			t.Errorf("%s: its p99 is %s beside faulty upstreams, and %s beside healthy ones", name, badly.at(0.99), well.at(0.99))
		}
	}
}

// measureBeside makes n calls of the tools of [callHealthy] beside upstreams of a kind for each mode, and returns
// their durations.
func measureBeside(t *testing.T, kind string, each, n int) map[string]times {
	t.Helper()
	long := os.Getenv("MCPD_LONG") != ""
	good := upstreamAt(startHosts(t, hostOfLabs)["lab"])
	s := newUpstreamSet(t, kind, each)
	left, began := children(t), time.Now()
	server := federated(t, good+s.config.String(), "add.hcl", addTool)
	waitForSnapshot(t, server, func() bool { return server.Snapshot().Tool("lab_sum") != nil })
	if kind == hostsDo {
		waitForSnapshot(t, server, func() bool { return down(server) == 0 })
	}
	first := server.Status().Loads
	stop := s.callUpstreams(server)
	if kind == hostsFail && long { // the steady state is measured
		tried(t, s.hosts, 4, (each+1)/2)
	}
	took := callHealthy(t, server, n)
	loads := server.Status().Loads - first
	calls, results := stop()
	if kind == hostsFail {
		s.check(t, time.Since(began), calls, results)
		if n := down(server); n < each*len(answersThatFail)/2 {
			t.Errorf("only %d upstreams are down", n)
		}
	} else if long && !maps.Equal(calls, results) {
		t.Errorf("of the calls %v, these succeeded: %v", calls, results)
	}
	t.Logf("%d upstreams, %d goroutines, %d reloads", len(server.Status().Upstreams), runtime.NumGoroutine(), loads)
	for _, u := range server.Status().Upstreams {
		if u.Name == "lab" && !u.Up {
			t.Errorf("the healthy upstream is down: %v", u.Err)
		}
	}
	if err := server.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if n := children(t); n != left {
		t.Errorf("%d processes remain", n-left)
	}
	return took
}

// down counts the unreachable upstreams.
func down(s *engine.Server) (n int) {
	for _, u := range s.Status().Upstreams {
		if !u.Up {
			n++
		}
	}
	return n
}

// check checks the reconnect rate of faulty servers, and the results of their calls.
func (s *upstreamSet) check(t *testing.T, during time.Duration, calls, results map[string]int) {
	t.Helper()
	// Retry delays are at least 0.25 s, 0.5 s, 1 s and so on.
	most := 2 + int(math.Log2(4*during.Seconds()+1))
	for mode, tries := range tried(t, s.hosts, 0, 0) {
		for path, n := range tries {
			if n > most {
				t.Errorf("%s%s was tried %d times within %s", mode, path, n, during)
			}
		}
	}
	for _, mode := range slices.Sorted(maps.Keys(calls)) {
		t.Logf("%-20s %5d calls, %5d with a result", mode, calls[mode], results[mode])
		if mode != "changed definitions" && results[mode] > 0 {
			t.Errorf("%s: %d calls have a result", mode, results[mode])
		}
	}
}
