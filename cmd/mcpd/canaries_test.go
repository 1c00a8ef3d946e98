//go:build linux

package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestNobodySeesASecret sends 50 and more canaries down every path, and looks for
// each, in many forms, in everything that can be seen of a server from outside.
func TestNobodySeesASecret(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("mcpd")
	if err != nil {
		t.Fatal(err)
	}
	for _, executor := range []string{executorWorker, executorInline} {
		t.Run(executor, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && executor == executorInline {
				t.Skip("SKIPPED with -short: bodies in processes of their own start more goroutines")
			}
			s := newScene(t, executor)
			if len(s.all) < 50 {
				t.Errorf("only %d canaries", len(s.all))
			}
			s.serve(t, program, executor)
			s.byHand(t, executor)
			s.overStdio(t, program, executor)
			s.seeFiles(t, s.state)
			s.seeAudit(t, executor)
			if found := s.found(); len(found) > 0 {
				t.Errorf("canaries were seen:\n%s", strings.Join(found, "\n"))
			}
			s.cameOut(t)
			// The search finds what there is to find: what a body was let to return.
			control := aviary{all: s.all}
			control.see("the answer of control", s.leaked)
			if found := control.found(); len(found) != 1 || !strings.HasPrefix(found[0], "control as ") {
				t.Errorf("the search finds %q, want the control canary", found)
			}
		})
	}
}

// TestACanaryIsFoundInEveryForm holds the search to what it is to find.
func TestACanaryIsFoundInEveryForm(t *testing.T) {
	for number := range 2 {
		c := newCanary("c", number)
		page, err := json.Marshal("<p>" + html.EscapeString(c.value))
		if err != nil {
			t.Fatal(err)
		}
		for _, shown := range []string{
			c.value, string(page), url.QueryEscape(c.value), url.PathEscape(c.value), hex.EncodeToString([]byte("x" + c.value)), fmt.Sprintf("%X", c.value),
			base64.StdEncoding.EncodeToString([]byte(c.value)), base64.RawURLEncoding.EncodeToString([]byte("u:" + c.value)), base64.StdEncoding.EncodeToString([]byte("u" + c.value + "~~")),
		} {
			a := aviary{all: []canary{c, newCanary("other", 3)}}
			a.see("here", "before "+shown+" after")
			if found := a.found(); len(found) == 0 || !strings.HasPrefix(found[0], "c as ") {
				t.Errorf("%s is not found", shown)
			}
		}
	}
}

// environment is what the scene gives mcpd.
func (s *scene) environment() []string {
	return append(append(os.Environ(), "XDG_STATE_HOME="+s.state, "TMPDIR="+s.state), s.env...)
}

// serve calls every tool of a server, and looks at it meanwhile and afterwards.
func (s *scene) serve(t *testing.T, program, executor string) {
	t.Helper()
	d, err := startDaemon(program, s.dir, s.environment(), []string{"--executor", executor, "--log-level", "debug", "--log-format", "json"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	for _, name := range s.names {
		s.call(t, d, name)
	}
	s.otherWays(t, d)
	s.look(t, d)
	s.leaked = string(s.answer(t, d, "control"))
	// Now the operator writes a secret into the file itself.
	literal := s.hatch("literal")
	s.write(t, "mcpd.hcl", s.config.String()+"secret \"literal\" { value = \""+literal.core+"\" }\nsecret \"open { value = \""+literal.core+"\n")
	if _, err := d.waitFor(regexp.MustCompile("reload failed")); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"/readyz", "/healthz", "/metrics", "/mcp/capabilities"} {
		_, body, err := d.exchange(http.MethodGet, path, nil, nil)
		if err != nil {
			t.Error(err)
		}
		s.see(path, string(body))
	}
	s.seeProcesses(t, d.cmd.Process.Pid, s.grants...)
	if err := d.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if err := d.cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	d.mu.Lock()
	s.see("the log", strings.Join(d.lines, "\n"))
	d.mu.Unlock()
}

// answer calls a tool, with everything told that a client can be told, and
// returns all that came over the wire.
func (s *scene) answer(t *testing.T, d *daemon, name string) []byte {
	t.Helper()
	params := `{"name":"` + name + `"}`
	body := strings.Replace(string(modernBody("tools/call", params)), `"_meta":{`, `"_meta":{"progressToken":1,"io.modelcontextprotocol/logLevel":"debug",`, 1)
	status, answer, err := d.exchange(http.MethodPost, "/mcp", []byte(body), modernHeader("tools/call", params))
	if err != nil || status != http.StatusOK && status != http.StatusBadRequest {
		t.Errorf("%s: %d %s, %v", name, status, answer, err)
	}
	return answer
}

// call calls a tool over MCP and over REST.
func (s *scene) call(t *testing.T, d *daemon, name string) {
	t.Helper()
	told := string(s.answer(t, d, name))
	s.see("the answer of "+name, told)
	if name == "asks" && !strings.Contains(told, "Go on?") {
		t.Errorf("the call did not ask: %s", told)
	}
	_, answer, err := d.exchange(http.MethodPost, "/mcp/execute", []byte(`{"tool":"`+name+`"}`), nil)
	if err != nil {
		t.Error(err)
	}
	s.see("the REST answer of "+name, string(answer))
}

// look looks at the processes of a server while one of its programs runs, which
// waits for somebody to write to the pipe.
func (s *scene) look(t *testing.T, d *daemon) {
	t.Helper()
	answered := make(chan []byte)
	go func() { answered <- s.answer(t, d, "held") }()
	pipe, err := os.OpenFile(s.fifo, os.O_WRONLY, 0) // returns when the program reads
	if err != nil {
		t.Fatal(err)
	}
	if below := s.seeProcesses(t, d.cmd.Process.Pid, s.grants...); below < 1 {
		t.Error("no process was looked at")
	}
	if _, err := pipe.WriteString("it was " + s.held.value); err != nil {
		t.Error(err)
	}
	if err := pipe.Close(); err != nil {
		t.Error(err)
	}
	s.see("the answer of held", string(<-answered))
}

// overStdio calls every tool once more, over standard input and output.
func (s *scene) overStdio(t *testing.T, program, executor string) {
	t.Helper()
	server := serveStdio(t, program, s.dir, s.environment(), "--executor", executor, "--log-level", "debug")
	for id, request := range append([]string{
		`"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"canary","version":"1"},"capabilities":{}}`, `"logging/setLevel","params":{"level":"debug"}`,
	}, s.calls()...) {
		if _, err := fmt.Fprintf(server.in, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":%s}\n", id+1, request); err != nil {
			t.Fatal(err)
		}
		for answer := fmt.Sprintf(`"id":%d,`, id+1); server.lines.Scan(); {
			s.see("standard output", server.lines.Text())
			if strings.Contains(server.lines.Text(), answer) {
				break
			}
		}
		if id == 0 {
			_, _ = fmt.Fprintln(server.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		}
	}
	s.see("standard output", server.end(t))
	s.see("the log over stdio", server.log.String())
	if !strings.Contains(server.log.String(), "a script read a secret") {
		t.Error("nothing was called over stdio")
	}
}

// calls returns a call of each tool, with its progress, or of some of them where
// everything is slow.
func (s *scene) calls() []string {
	var calls []string
	for i, name := range s.names {
		if i%slower > 0 {
			continue
		}
		calls = append(calls, fmt.Sprintf(`"tools/call","params":{"name":%q,"arguments":{},"_meta":{"progressToken":"p-%s"}}`, name, name))
	}
	return calls
}

// byHand does what an operator does on the command line, with the files as they
// are and with those that have a mistake. Verbs know no executor: they run beside one.
func (s *scene) byHand(t *testing.T, executor string) {
	t.Helper()
	run := func(arguments ...string) {
		_, stdout, stderr := inProcess(t, s.dir, s.environment(), arguments...) // most calls fail
		if stdout+stderr == "" {
			t.Errorf("mcpd %v says nothing", arguments)
		}
		s.see("mcpd "+strings.Join(arguments, " "), stdout+stderr)
	}
	for _, arguments := range [][]string{{"check"}, {"check", "--json"}, {"fmt", "--check", filepath.Join(s.dir, "mcpd.hcl")}, {"list"}, {"call", "echo_env"}} {
		run(arguments...)
	}
	s.write(t, "mcpd.hcl", s.config.String())
	run("check", "--json")
	run("list", "--json")
	for i, name := range s.names {
		if i%slower > 0 || executor != executorWorker {
			continue
		}
		if strings.HasSuffix(name, "_file") || strings.HasPrefix(name, "shown") || name == "sensitive" {
			run("call", name, "--log-level", "debug")
		}
	}
	run("call", "token", "--raw", "--log-level", "debug")
	for _, arguments := range [][]string{{"tail"}, {"tail", "-n", "10000", "--json"}, {"verify"}, {"export", "--format", "jsonl"}, {"export", "--format", "csv"}, {"export", "--format", "otlp-json"}} {
		run(append([]string{"audit"}, arguments...)...)
	}
}

// cameOut tells secrets that were not sent where they belong: then the test shows
// nothing.
func (s *scene) cameOut(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	came := aviary{all: s.outgoing}
	came.see("what came out", s.came.String())
	said := strings.Join(came.found(), "\n")
	for _, c := range s.outgoing {
		if !strings.Contains(said, c.name+" as ") {
			t.Errorf("%s came to nobody", c.name)
		}
	}
}

// accounts has every call written down, and a body hand a secret that it reads to a
// tool of which the arguments are kept.
func (s *scene) accounts(t *testing.T) {
	t.Helper()
	c := s.hatch("told")
	s.secret(t, "told", "file", c.value, "reveal = true")
	s.config.WriteString("audit {\n  path    = \"audit/calls.jsonl\"\n  mode    = \"strict\"\n  capture = [\"hears\"]\n}\n")
	s.tools.WriteString("tool \"hears\" {\n  extra_arguments = true\n  run = \"return 1;\"\n}\n")
	s.tool("tells", "    secrets { names = [\"told\"] }\n    call { tools = [\"hears\"] }",
		`const told = secrets.told, plain = told.replace(/[^ -~]/g, "");
      return await tools.hears({ told, coded: btoa(plain), hex: [...plain].map((c) => c.charCodeAt(0).toString(16)).join(""), url: encodeURIComponent(told), deep: [{ [told]: told }], [btoa(plain)]: 1 });`)
}

// bomb has a body read a secret and take its process down.
func (s *scene) bomb(t *testing.T) {
	t.Helper()
	c := s.hatch("bomb")
	s.secret(t, "bomb", "file", c.value, "reveal = true")
	s.names = append(s.names, "bomb")
	s.tools.WriteString("tool \"bomb\" {\n  timeout = \"20s\"\n  limits { memory = \"64MiB\" }\n  allow {\n    secrets { names = [\"bomb\"] }\n  }\n  run = <<JS\n    let all = secrets.bomb;\n    for (;;) all += all;\n  JS\n}\n")
}

// seeAudit takes in the audit log, of which it wants that it tells of what was read
// and handed on, and the log of what died of a secret.
func (s *scene) seeAudit(t *testing.T, executor string) {
	t.Helper()
	folder := filepath.Join(s.dir, "audit")
	s.seeFiles(t, folder)
	text, err := os.ReadFile(filepath.Join(folder, "calls.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"kind":"intent"`, `"event.name":"secret.revealed"`, `"name":"shown"`, `"gen_ai.tool.call.arguments":{"[secret:told]":1,`, `"told":"[secret:told]"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the audit log lacks %s", want)
		}
	}
	if died := fmt.Sprint(s.seen["the log"]); executor == executorWorker && !strings.Contains(died, "a process that runs bodies has ended") {
		t.Error("no process died")
	}
}

// seeProcesses takes in the command lines of a process and of all below it, and
// the environments of those below. It returns how many those are. A program has
// in its environment what its grant puts there: but lists the canaries of which
// that is so.
func (a *aviary) seeProcesses(t *testing.T, root int, but ...canary) (below int) {
	t.Helper()
	for _, pid := range append([]int{root}, descendants(t, root)...) {
		// A process may end meanwhile; then there is nothing to see.
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		a.see("command lines", string(line))
		if pid == root {
			continue
		}
		below++
		environment, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		text := string(environment)
		for _, c := range but {
			text = strings.ReplaceAll(text, c.value, "")
		}
		a.see("environments", text)
	}
	return below
}

// descendants returns the processes that a process has started, and theirs.
func descendants(t *testing.T, root int) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	children := map[int][]int{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		// The name, in parentheses, may hold anything.
		_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
		fields := strings.Fields(rest)
		parent, _ := strconv.Atoi(fields[1])
		children[parent] = append(children[parent], pid)
	}
	var all []int
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		all = append(all, children[queue[0]]...)
		queue = append(queue, children[queue[0]]...)
	}
	return all
}
