package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// bombServer is a server of testdata/bombs with the site that its tools call.
type bombServer struct {
	*daemon
	tools []string // tools that are bombs
	// timeouts and ends hold the timeout and the expected errors of each bomb.
	timeouts map[string]time.Duration
	ends     map[string]*regexp.Regexp

	mu    sync.Mutex
	posts map[string]int // requests by path
	waits chan struct{}  // one element for each waiting request
	let   chan struct{}  // closed to release the waiting requests
}

// newBombServer starts the server with the executor of mcpd serve.
func newBombServer(t *testing.T) *bombServer {
	t.Helper()
	b := &bombServer{timeouts: map[string]time.Duration{}, ends: map[string]*regexp.Regexp{}, posts: map[string]int{}, waits: make(chan struct{}, 1000), let: make(chan struct{})}
	loop := httptest.NewServer(b)
	t.Cleanup(loop.Close)
	dir := t.TempDir()
	source := filepath.Join("..", "..", "testdata", "bombs")
	if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	memory := "256"
	if os.Getenv("MCPD_LONG") == "" {
		memory = "64"
		config := filepath.Join(dir, "mcpd.hcl")
		text, err := os.ReadFile(config)
		if err != nil {
			t.Fatal(err)
		}
		write(t, config, string(text)+"ceiling { memory = \"64MiB\" }\n")
	}
	files, err := filepath.Glob(filepath.Join(dir, "tools.d", "*.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if name := filepath.Base(file); name != "ordinary.hcl" {
			b.addBombs(t, name, string(text), memory)
		}
		text = bytes.ReplaceAll(text, []byte("127.0.0.1:9"), []byte(loop.Listener.Addr().String()))
		if os.Getenv("MCPD_LONG") == "" { // otherwise a bomb that delays for a second is a failure
			text = bytes.Replace(text, []byte("tool \"add\" {\n"), []byte("tool \"add\" {\n  timeout = \"20s\"\n"), 1)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program, err := exec.LookPath("mcpd")
	if err != nil {
		t.Fatal(err)
	}
	if b.daemon, err = startDaemon(program, dir, append(os.Environ(), "XDG_STATE_HOME="+dir), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.kill)
	return b
}

// addBombs registers the bombs of a file. memory is the limit for a script in MiB.
func (b *bombServer) addBombs(t *testing.T, file, text, memory string) {
	for _, tool := range regexp.MustCompile(`(?m)^tool "(.*)" \{\n  timeout = "(.*)"`).FindAllStringSubmatch(text, -1) {
		timeout, err := time.ParseDuration(tool[2])
		if err != nil {
			t.Fatal(err)
		}
		ends := bombEnds[tool[1]]
		if ends == nil {
			ends = bombEnds[file]
		}
		b.ends[tool[1]] = regexp.MustCompile("^(" + strings.ReplaceAll(strings.Join(ends, "|"), "MEMORY", memory) + ")$")
		b.tools = append(b.tools, tool[1])
		b.timeouts[tool[1]] = timeout
	}
	if n := strings.Count(text, "\ntool "); n != strings.Count(text, "\n  timeout ") {
		t.Fatalf("some of %d bombs have no timeout in the first line", n)
	}
}

// ServeHTTP counts requests and makes some wait. One response is nested too deeply for
// an engine.
func (b *bombServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/deep" {
		_, _ = io.WriteString(w, strings.Repeat("[", 1e6)+strings.Repeat("]", 1e6))
		return
	}
	if strings.HasSuffix(r.URL.Path, "/wait") {
		b.waits <- struct{}{}
		select {
		case <-b.let:
		case <-r.Context().Done():
		}
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.posts[r.URL.Path]++
}

// fault is the error of a failed call, zero for a successful one.
type fault struct{ Code, Message string }

// isRefusal reports whether the call was shed before it started.
func (f fault) isRefusal() bool { return strings.Contains(f.Message, "overloaded") }

// try calls a tool and returns the text of its result.
func (b *bombServer) try(tool, arguments string) (text string, f fault, err error) {
	status, body, err := b.modern("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))
	if err != nil {
		return "", f, err
	}
	var answer struct {
		Result struct {
			Content []struct{ Text string }
			Meta    struct {
				Error fault `json:"mcpd/error"`
			} `json:"_meta"`
		}
	}
	if i := bytes.LastIndex(body, []byte("data: ")); i >= 0 {
		body = body[i+len("data: "):] // the result of a call that sent progress
	}
	if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusOK || len(answer.Result.Content) == 0 {
		return "", f, fmt.Errorf("%d %.200s: %w", status, body, err)
	}
	return answer.Result.Content[0].Text, answer.Result.Meta.Error, nil
}

// work keeps connections busy with well-behaved calls until stop is called. stop
// reports their failures.
func (b *bombServer) work(t *testing.T, connections int) (stop func()) {
	var over atomic.Bool
	var calls atomic.Int64
	var all sync.WaitGroup
	for i := range connections {
		all.Go(func() {
			for n := 0; !over.Load(); n++ {
				b.add(t, i, n)
				b.post(t, fmt.Sprintf("%d-%d", i, n))
				calls.Add(2)
			}
		})
	}
	return func() {
		over.Store(true)
		all.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		for path, n := range b.posts {
			if n != 1 && !strings.Contains(path, "flood") {
				t.Errorf("%s was posted %d times", path, n)
			}
		}
		t.Logf("%d concurrent calls", calls.Load())
		if calls.Load() < int64(len(b.tools)) {
			t.Error("too few calls ran beside the bombs")
		}
	}
}

func (b *bombServer) add(t *testing.T, x, y int) {
	got, f, err := b.try("add", fmt.Sprintf(`{"a":%d,"b":%d}`, x, y))
	if want := fmt.Sprintf(`{"sum":%d}`, x+y); err != nil || f != (fault{}) || got != want {
		t.Errorf("%d + %d = %s: %v, %v", x, y, got, f, err)
	}
}

func (b *bombServer) post(t *testing.T, id string) {
	got, f, err := b.try("post", fmt.Sprintf(`{"id":%q}`, id))
	if want := `{"statuses":[200,200],"sum":49995000}`; err != nil || f != (fault{}) || got != want {
		t.Errorf("post %s returned %s: %v, %v", id, got, f, err)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if before, after := b.posts["/"+id+"/before"], b.posts["/"+id+"/after"]; before != 1 || after != 1 {
		t.Errorf("post %s posted %d and %d times", id, before, after)
	}
}

// mostWorkers is the maximum number of processes that run scripts at once.
const mostWorkers = 8

// stat returns the fields of /proc/ID/stat after the name: state, parent, and so on.
func stat(id int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])), nil
}

// processes returns the ids of the child processes of the server that were not reaped.
func (b *bombServer) processes(t *testing.T) (ids []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(all) == 0 {
		t.Skip("SKIPPED: this system has no /proc")
	}
	for _, dir := range all {
		id, _ := strconv.Atoi(filepath.Base(dir))
		if fields, err := stat(id); err == nil && fields[1] == strconv.Itoa(b.cmd.Process.Pid) {
			ids = append(ids, id)
		}
	}
	return ids
}

// remainingProcesses waits for killed processes to exit and returns the remaining ones. Calls do not
// wait for that.
func (b *bombServer) remainingProcesses(t *testing.T) (ids []int) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if ids = b.processes(t); len(ids) <= mostWorkers || time.Now().After(end) {
			break
		}
	}
	if len(ids) > mostWorkers {
		t.Errorf("%d processes are left", len(ids))
	}
	return ids
}

// memory returns the current and the peak memory of the server, in bytes.
func (b *bombServer) memory(t *testing.T) (now, most int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	bytes := map[string]int{}
	for _, match := range regexp.MustCompile(`(VmRSS|VmHWM):\s+(\d+) kB`).FindAllSubmatch(text, 2) {
		kilobytes, _ := strconv.Atoi(string(match[2]))
		bytes[string(match[1])] = kilobytes << 10
	}
	if len(bytes) != 2 {
		t.Fatalf("no resident memory in %s", text)
	}
	return bytes["VmRSS"], bytes["VmHWM"]
}

// settledMemory waits until the memory of the server is at most most, or stops shrinking. The
// runtime collects garbage after two minutes at the latest, then returns memory.
func (b *bombServer) settledMemory(t *testing.T, most int) (now int) {
	t.Helper()
	for range 240 {
		if now, _ = b.memory(t); now <= most {
			break
		}
		b.add(t, 1, 1) // an idle server does not collect garbage
		time.Sleep(time.Second)
	}
	return now
}
