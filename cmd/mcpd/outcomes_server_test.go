package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/scripting/worker"
	"github.com/mcpd/mcpd/serve"
)

// outcomeScene is the life of one server of testdata/outcomes.
type outcomeScene struct {
	*testing.T
	// cut means that shutdown interrupts calls that do not end by themselves. Otherwise
	// hooks are late at shutdown.
	cut     bool
	ledger  *outcomeLedger
	server  *engine.Server
	front   *serve.Front
	web     *httptest.Server
	dir     string
	name    string        // of the worker processes
	end     chan struct{} // closed when functions that ignore their contexts may return
	loading sync.Mutex
	// auditDir holds the audit log. kept holds the kinds of calls with captured arguments.
	auditDir string
	kept     map[string]bool

	// stalled counts calls over HTTP that do not end by themselves, and the drain that
	// waits for them.
	stalled       sync.WaitGroup
	tasks, killed atomic.Int64
	killing       sync.Mutex // held while all processes are killed; guards stalling
	stalling      bool       // calls run that must not be killed
}

func newOutcomeScene(t *testing.T, cut bool) *outcomeScene {
	t.Helper()
	dir := t.TempDir()
	name := filepath.Join(dir, "mcpd")
	processes, err := worker.NewExecutor(worker.Options{Memory: 1 << 30}, self(), name, workerVerb)
	if err != nil {
		t.Fatal(err)
	}
	s := &outcomeScene{T: t, cut: cut, ledger: newOutcomeLedger(processes), dir: dir, name: name, end: make(chan struct{}), auditDir: t.TempDir(), kept: map[string]bool{}}
	if err := os.CopyFS(s.dir, os.DirFS(filepath.Join("..", "..", "testdata", "outcomes"))); err != nil {
		t.Fatal(err)
	}
	s.addAudit()
	s.server, err = engine.New(engine.Options{
		Name: "outcomes", Files: engine.Files{Config: os.DirFS(s.dir), Tools: os.DirFS(filepath.Join(s.dir, "tools.d"))}, Scripts: engine.Scripts{Executor: s.ledger, Modules: []engine.HostModule{s.ledger.module()}},
		Hooks: []engine.Hook{s.ledger.hook},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.addFunctions()
	if _, err := s.server.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	grace := patience
	if cut {
		grace = 100 * time.Millisecond
	}
	s.front = serve.New(s.server, serve.Options{Grace: grace})
	handler, err := s.front.Handler()
	if err != nil {
		t.Fatal(err)
	}
	s.web = httptest.NewServer(handler)
	return s
}

// addAudit enables the audit log.
func (s *outcomeScene) addAudit() {
	config := filepath.Join(s.dir, "mcpd.hcl")
	text, err := os.ReadFile(config)
	if err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(config, append(text, s.auditBlock()...), 0o600); err != nil {
		s.Fatal(err)
	}
}

// addFunctions adds tools in Go.
func (s *outcomeScene) addFunctions() {
	type none struct{}
	for name, run := range map[string]func(context.Context, identity.Agent, none) (none, error){
		"panics": func(context.Context, identity.Agent, none) (none, error) { panic("no") },
		"exits": func(context.Context, identity.Agent, none) (none, error) {
			runtime.Goexit()
			return none{}, nil
		},
		"deaf": func(context.Context, identity.Agent, none) (none, error) {
			<-s.end
			return none{}, nil
		},
	} {
		if err := engine.AddTool(s.server, engine.ToolOptions{Name: name, Timeout: 20 * time.Millisecond}, run); err != nil {
			s.Fatal(err)
		}
	}
}

func anybody() identity.Caller {
	return identity.Caller{Principal: identity.Anonymous(), Source: identity.Source{Listener: "local"}}
}

// call calls a tool in this process.
func (s *outcomeScene) call(ctx context.Context, tool, arguments string, resume *call.Resume) call.Result {
	return s.execute(ctx, call.Request{
		Name: tool, Arguments: json.RawMessage(arguments), Caller: anybody(), Can: call.Capabilities{Form: true}, Resume: resume,
	})
}

func (s *outcomeScene) execute(ctx context.Context, r call.Request) call.Result {
	result := s.server.Execute(ctx, r)
	if !result.Detached {
		s.ledger.ran(result)
	}
	return result
}

// lateOutcomes receives results of detached calls.
type lateOutcomes chan call.Result

func (a lateOutcomes) Answer(r call.Result) { a <- r }

// leave calls a function that ignores its context and blocks the calling goroutine.
func (s *outcomeScene) leave(ctx context.Context) {
	late, ended := make(lateOutcomes, 1), make(chan call.Result, 1)
	go func() {
		ended <- s.execute(ctx, call.Request{Name: "deaf", Caller: anybody(), Late: late})
	}()
	select {
	case result := <-late:
		s.ledger.ran(result)
	case <-ended: // rejected
	}
}

// post sends a request of a modern client and returns the response.
func (s *outcomeScene) post(method, params string) []byte {
	request, err := http.NewRequest(http.MethodPost, s.web.URL+"/mcp", bytes.NewReader(modernBody(method, params)))
	if err != nil {
		s.Error(err)
		return nil
	}
	request.Header = modernHeader(method, params)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Error(err)
		return nil
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		s.Error(err)
	}
	return answer
}

// reload changes the files, sometimes with an error.
func (s *outcomeScene) reload(r *rand.Rand) {
	s.loading.Lock()
	defer s.loading.Unlock()
	text := fmt.Sprintf("tool \"comes\" {\n  run = \"return %d\"\n}\n", r.IntN(100))
	switch r.IntN(3) {
	case 0:
		text = "tool \"comes\" {\n"
	case 1:
		text = ""
	}
	if err := os.WriteFile(filepath.Join(s.dir, "tools.d", "more.hcl"), []byte(text), 0o600); err != nil {
		s.Error(err)
	}
	_, _ = s.server.Load(context.Background()) // load errors do not matter
}

// stallers is the number of calls that shutdown interrupts.
const stallers = 4

// drain makes the server reject new calls.
func (s *outcomeScene) drain() {
	if s.cut {
		s.killing.Lock()
		defer s.killing.Unlock()
		s.stalling = true
		for range stallers {
			s.stalled.Go(func() {
				s.await("a call that does not end", func() bool {
					return !bytes.Contains(s.post("tools/call", `{"name":"stalls","arguments":{}}`), []byte("is overloaded"))
				})
			})
		}
		s.lasting()
		s.await("the calls that do not end", func() bool {
			begun, ended := s.ledger.count("stalls")
			return begun-ended == stallers && s.lasts()
		})
	}
	s.stalled.Go(func() {
		if err := s.server.Drain(context.Background()); err != nil {
			s.Error(err)
		}
	})
}

// await waits for a condition.
func (s *outcomeScene) await(what string, so func() bool) {
	for end := time.Now().Add(patience); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.Errorf("timeout waiting for %s: %s", what, s.ledger)
			return
		}
	}
}

// shutdownWaitsForHooks reports whether a goroutine of a draining front waits for
// hooks. No API reports that.
func shutdownWaitsForHooks() bool {
	text := make([]byte, 16<<20)
	text = text[:runtime.Stack(text, true)]
	for of := range bytes.SplitSeq(text, []byte("\n\n")) {
		if bytes.Contains(of, []byte("hooks.(*Runner).Flush")) && bytes.Contains(of, []byte("created by github.com/mcpd/mcpd/serve.(*Front).drain")) {
			return true
		}
	}
	return false
}

// shutDown stops the server and returns its final status.
func (s *outcomeScene) shutDown() engine.Status {
	if s.cut {
		close(s.ledger.release)
		s.await("the ends of hooks", s.ledger.settled)
	} else {
		if s.ledger.settled() {
			s.Error("no hook is late: the test proves nothing")
		}
		s.stalled.Go(func() {
			s.await("who waits for hooks", func() bool { return s.ledger.isClosed() || shutdownWaitsForHooks() })
			close(s.ledger.release)
		})
	}
	begun, ended := s.ledger.count("stalls")
	if err := s.front.Shutdown(context.Background()); (err != nil) != (begun > ended) {
		s.Errorf("shutdown returned %v while %d endless calls ran", err, begun-ended)
	}
	s.stalled.Wait()
	close(s.end)
	s.web.Close()
	return s.server.Status()
}

// processes returns the ids of the worker processes of the scene, by their unique name.
func (s *outcomeScene) processes() (ours []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		var id int
		if _, err := fmt.Sscanf(file, "/proc/%d/cmdline", &id); err != nil {
			continue
		}
		if line, err := os.ReadFile(file); err == nil && strings.HasPrefix(string(line), s.name+"\x00") {
			ours = append(ours, id)
		}
	}
	return ours
}

// kill kills one worker process. It spares calls that shutdown must interrupt.
func (s *outcomeScene) kill(r *rand.Rand) {
	s.killing.Lock()
	defer s.killing.Unlock()
	if ours := s.processes(); !s.stalling && len(ours) > 0 {
		s.signal(ours[r.IntN(len(ours))])
	}
}

// signal kills a process, unless it has exited.
func (s *outcomeScene) signal(id int) {
	if p, err := os.FindProcess(id); err == nil && p.Kill() == nil {
		s.killed.Add(1)
	}
}

// blockedCall is a call that waits in its script until its process is killed.
type blockedCall struct {
	arrived, dead chan struct{}
	once          sync.Once
}

// wait is called by the script, in each process that it runs in.
func (m *blockedCall) wait(ctx context.Context) error {
	m.once.Do(func() { close(m.arrived) })
	select {
	case <-m.dead:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// killInFlight kills all worker processes while one of them runs a call.
func (s *outcomeScene) killInFlight(*rand.Rand) {
	s.killing.Lock()
	defer s.killing.Unlock()
	if s.stalling {
		return
	}
	m := &blockedCall{arrived: make(chan struct{}), dead: make(chan struct{})}
	s.ledger.meeting.Store(m)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.call(context.Background(), "survives", `{}`, nil)
	}()
	select {
	case <-m.arrived:
		// The process of the call may have exited because of another call. Then the call runs again in
		// the next process, or ends.
		for before := s.killed.Load(); s.killed.Load() == before && !isClosed(ended); {
			for _, id := range s.processes() {
				s.signal(id)
			}
		}
	case <-ended: // rejected
	}
	close(m.dead)
	<-ended
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// begin starts a call as a task and returns a JSON member with its id, or "" if the
// call was rejected.
func (s *outcomeScene) begin(params string) string {
	id := taskID.FindSubmatch(s.post("tools/call", params))
	if id == nil {
		return ""
	}
	s.tasks.Add(1)
	return fmt.Sprintf(`{"taskId":%q`, id[1])
}

// task runs a call as a task. Input requests are answered, cancelled or ignored.
func (s *outcomeScene) task(r *rand.Rand) {
	of := s.begin(fmt.Sprintf(`{"name":"job","arguments":{"ask":%t}}`, r.IntN(2) == 0))
	if of == "" {
		return
	}
	switch r.IntN(4) {
	case 0:
		s.post("tasks/cancel", of+"}")
		return
	case 1:
		return
	}
	for end := time.Now().Add(patience); ; runtime.Gosched() {
		got := string(s.post("tasks/get", of+"}"))
		if strings.Contains(got, `"status":"input_required"`) {
			s.post("tasks/update", of+`,"inputResponses":{"first":{"action":"decline"}}}`)
			continue
		}
		if !strings.Contains(got, `"status":"working"`) {
			return
		}
		if time.Now().After(end) {
			s.Errorf("the task still runs: %s", got)
			return
		}
	}
}

// cancelTask cancels a task that does not end by itself.
func (s *outcomeScene) cancelTask(*rand.Rand) {
	if of := s.begin(`{"name":"long","arguments":{}}`); of != "" {
		s.post("tasks/cancel", of+"}")
	}
}

// lasting keeps one task running that does not end by itself. If a task is rejected for
// lack of capacity, it starts another one.
func (s *outcomeScene) lasting() {
	s.await("a task that does not end", func() bool {
		if s.lasts() {
			return true
		}
		s.begin(`{"name":"lasts","arguments":{}}`)
		return false
	})
}

func (s *outcomeScene) lasts() bool {
	begun, ended := s.ledger.count("lasts")
	return begun > ended
}
