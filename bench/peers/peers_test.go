package main

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// These verbs make this program use processor time, for TestProcessorTime.
const (
	useVerb     = "use-processor"
	computeVerb = "compute"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == useVerb {
		useProcessor()
		return
	}
	if len(os.Args) == 2 && os.Args[1] == computeVerb {
		compute(50 * time.Millisecond)
		return
	}
	os.Exit(m.Run())
}

// TestServers_answer makes all servers answer all messages in all of their modes.
func TestServers_answer(t *testing.T) {
	s := &site{dir: t.TempDir(), bin: os.Getenv("PEERS_BIN")}
	if s.bin == "" {
		if err := s.build(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.installNode(t.Context(), os.Getenv("PEERS_NPM") != ""); err != nil {
		t.Logf("skip the TypeScript SDK: %v", err)
	}
	for _, v := range servers {
		names := v.modes
		if names == nil {
			names = []string{"http", "stdio"}
		}
		for _, name := range names {
			t.Run(v.name+"/"+name, func(t *testing.T) {
				if !s.available(v) {
					t.Skip("SKIPPED: node is not installed")
				}
				for _, callers := range []int{1, 3} {
					answers(t, s, v, modeNamed(name), callers)
				}
			})
		}
	}
}

// answers starts a server and sends it each message a few times, from all callers.
func answers(t *testing.T, s *site, v server, m mode, callers int) {
	t.Helper()
	const tools = 12
	p, err := s.start(v, m, tools)
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	connections, err := p.dial(callers)
	if err != nil {
		t.Fatal(err)
	}
	for _, work := range []string{"add", "list", "blob", "five"} {
		for i, c := range connections {
			message := newMessage(work, m.revision, i, tools)
			if work == "five" {
				message = twoAndThree(m.revision, i)
			}
			for range 3 {
				message.next()
				response, err := c.send(message)
				if err != nil {
					t.Fatalf("%s: %v\n%s", work, err, p.log)
				}
				if err := message.check(response); err != nil {
					t.Fatalf("%s: %v", work, err)
				}
			}
		}
	}
}

func TestParse(t *testing.T) {
	s, err := parseStat([]byte("7 (a) b (c) S 3 7 7 0 -1 4194560 1 2 3 4 40 2 100 20 20 0 1 0 5 6 7"))
	if err != nil || s != (stat{parent: 3, reaped: 1200 * time.Millisecond}) {
		t.Errorf("parseStat = %+v, %v", s, err)
	}
	if _, err := parseStat([]byte("7 (a) S 3")); err == nil {
		t.Error("parseStat accepts a short line")
	}
	if d, err := parseSchedstat([]byte("434928059 221273552 270\n")); err != nil || d != 434928059 {
		t.Errorf("parseSchedstat = %d, %v", d, err)
	}
	if n, err := parsePSS([]byte("55c66d763000 [rollup]\nRss:    1612 kB\nPss:     217 kB\nPss_Dirty: 1 kB\n")); err != nil || n != 217<<10 {
		t.Errorf("parsePSS = %d, %v", n, err)
	}
}

func TestPercentile(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(i+1))
	}
	for _, test := range []struct {
		share float64
		want  time.Duration
	}{{0, 1}, {0.5, 50}, {0.99, 99}, {1, 100}} {
		if got := percentile(hundred, test.share); got != test.want {
			t.Errorf("percentile(%g) = %d, want %d", test.share, got, test.want)
		}
	}
	if got := median([]float64{3, 1, 2}); got != 2 {
		t.Errorf("median = %g", got)
	}
	if got := median([]float64{4, 1, 2, 3}); got != 2.5 {
		t.Errorf("median = %g", got)
	}
}

// twoAndThree returns a call add(2, 3). Its arguments do not change.
func twoAndThree(revision string, caller int) *message {
	m := newMessage("add", revision, caller, 0)
	m.a, m.b = 2, 3
	copy(m.body[m.aAt:], "2   ")
	copy(m.body[m.bAt:], "3   ")
	m.aAt = 0
	return m
}

// useProcessor uses processor time in threads that exit and in a child that exits,
// prints how much, and waits for the end of standard input.
func useProcessor() {
	compute(50 * time.Millisecond)
	var threads sync.WaitGroup
	for range 3 {
		threads.Go(func() {
			runtime.LockOSThread() // the thread exits with its goroutine
			compute(50 * time.Millisecond)
		})
	}
	threads.Wait()
	child := exec.Command(os.Args[0], computeVerb)
	if err := child.Run(); err != nil {
		fmt.Println(err)
		return
	}
	var own unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &own); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(time.Duration(own.Utime.Nano()+own.Stime.Nano()) + child.ProcessState.UserTime() + child.ProcessState.SystemTime())
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// compute uses processor time in one thread.
func compute(d time.Duration) {
	var t unix.Timespec
	start := int64(0)
	for {
		_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
		if start == 0 {
			start = t.Nano()
		}
		if t.Nano()-start > int64(d) {
			return
		}
	}
}

// scheduled returns the sum of the processor time of the threads of a process that are
// alive, from schedstat.
func scheduled(id int) (total time.Duration, err error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", id))
	if err != nil {
		return 0, err
	}
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has exited
		}
		used, err := parseSchedstat(text)
		if err != nil {
			return 0, err
		}
		total += used
	}
	return total, nil
}

// parseSchedstat returns the first of the three numbers in schedstat: the processor
// time in nanoseconds.
func parseSchedstat(text []byte) (time.Duration, error) {
	fields := bytes.Fields(text)
	if len(fields) != 3 {
		return 0, fmt.Errorf("parse %q: want 3 numbers", text)
	}
	n, err := strconv.ParseInt(string(fields[0]), 10, 64)
	return time.Duration(n), err
}

// TestProcessorTime compares the measured time with the accounting of the process itself.
func TestProcessorTime(t *testing.T) {
	cmd := exec.Command(os.Args[0], useVerb)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	want, err := time.ParseDuration(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	got, err := processorTime(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if want < 4*50*time.Millisecond || (got-want).Abs() > 4*tick {
		t.Errorf("processorTime = %v, the process says %v", got, want)
	}
	alive, err := scheduled(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if own, err := clock(cmd.Process.Pid); err != nil || own-alive < 2*50*time.Millisecond {
		t.Errorf("clock = %v with %v in threads that are alive, %v", own, alive, err)
	}
	if size, count, err := memory(cmd.Process.Pid); err != nil || count != 1 || size < 1<<20 || size > 1<<30 {
		t.Errorf("memory = %d in %d processes, %v", size, count, err)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := processorTime(cmd.Process.Pid); err == nil {
		t.Error("processorTime of a process that has exited has no error")
	}
}

// TestMessage_next compares the changed message with a new one.
func TestMessage_next(t *testing.T) {
	m := newMessage("add", modern, 2, 10)
	m.next()
	want := `{"jsonrpc":"2.0","id":12000001,"method":"tools/call","params":{"name":"add","arguments":{"a":1003,"b":9994},`
	if got := string(m.body[:len(want)]); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if err := m.check([]byte(`{"jsonrpc":"2.0","id":12000001,"result":{"structuredContent":{"sum":10997}}}`)); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{
		`{"jsonrpc":"2.0","id":12000002,"result":{"structuredContent":{"sum":10997}}}`,
		`{"jsonrpc":"2.0","id":12000001,"result":{"structuredContent":{"sum":109970}}}`,
		`{"jsonrpc":"2.0","id":12000001,"error":{"code":1}}`,
	} {
		if m.check([]byte(wrong)) == nil {
			t.Errorf("accepts %s", wrong)
		}
	}
}

// TestResults_write writes tables and charts of invented results, and parses the charts.
func TestResults_write(t *testing.T) {
	r := results{Machine: thisMachine(), Rounds: 1, ManyTools: 10_000}
	for _, sc := range fullPlan.scenarios() {
		for _, name := range sc.servers {
			v := serverNamed(name)
			sc.Rows = append(sc.Rows, row{Server: name, Title: v.title, Rounds: []round{{10, 12.5, 100, 1234.5, 8000}}})
		}
		summarize(sc.Rows)
		r.Scenarios = append(r.Scenarios, sc)
	}
	r.Startups = []startup{{Server: "go-sdk", Title: "go-sdk <&>", Cold: 12, Idle: 8 << 20}}
	r.Reloads = []reload{{Title: "mcpd", Tools: 10, IdleMedian: 13}}
	dir := t.TempDir()
	table := r.markdown()
	if err := r.write(dir, table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| mcpd, tool in Go | 1.00 | 1.00 | 1.00 | 1.00 | 1.00 |", "| 12.5 | 100 | 1,234 | 1.00 | 8,000 |", "| 10,000 tools, MiB |"} {
		if !strings.Contains(table, want) {
			t.Errorf("table lacks %q", want)
		}
	}
	charts, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	if err != nil || len(charts) != 6 {
		t.Fatalf("%d charts, %v", len(charts), err)
	}
	for _, file := range charts {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := xml.Unmarshal(text, new(struct{})); err != nil {
			t.Errorf("%s: %v", filepath.Base(file), err)
		}
	}
}

func TestNumber(t *testing.T) {
	for f, want := range map[float64]string{0: "0.00", 1.234: "1.23", 9.996: "10.0", 99.96: "100", 999.4: "999", 1000: "1,000", 1234567: "1,234,567", -1.5: "-1.50"} {
		if got := number(f); got != want {
			t.Errorf("number(%g) = %s, want %s", f, got, want)
		}
	}
}
