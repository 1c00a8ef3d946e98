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

// More than 50 canary secrets pass through every path. None may show in any form in
// anything that is visible outside of a server.
func TestSecrets_neverVisible(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("mcpd")
	if err != nil {
		t.Fatal(err)
	}
	for _, executor := range []string{executorWorker, executorInline} {
		t.Run(executor, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && executor == executorInline {
				t.Skip("SKIPPED with -short: the worker executor starts more goroutines")
			}
			s := newCanaryServer(t, executor)
			if len(s.all) < 50 {
				t.Errorf("only %d canaries", len(s.all))
			}
			s.serve(t, program, executor)
			s.runVerbs(t, executor)
			s.overStdio(t, program, executor)
			s.addFiles(t, s.state)
			s.seeAudit(t, executor)
			if found := s.leaks(); len(found) > 0 {
				t.Errorf("canaries leaked:\n%s", strings.Join(found, "\n"))
			}
			s.checkDelivered(t)
			// The search must find the control canary, which a script returns.
			control := canaryCheck{all: s.all}
			control.addOutput("the answer of control", s.leaked)
			if found := control.leaks(); len(found) != 1 || !strings.HasPrefix(found[0], "control as ") {
				t.Errorf("found %q, want the control canary", found)
			}
		})
	}
}

// Checks that the search finds a canary in every encoding.
func TestCanary_foundInEveryEncoding(t *testing.T) {
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
			a := canaryCheck{all: []canary{c, newCanary("other", 3)}}
			a.addOutput("here", "before "+shown+" after")
			if found := a.leaks(); len(found) == 0 || !strings.HasPrefix(found[0], "c as ") {
				t.Errorf("%s not found", shown)
			}
		}
	}
}

// environment returns the variables of mcpd.
func (s *canaryServer) environment() []string {
	return append(append(os.Environ(), "XDG_STATE_HOME="+s.state, "TMPDIR="+s.state), s.env...)
}

// serve calls every tool of a server and inspects it during and after the calls.
func (s *canaryServer) serve(t *testing.T, program, executor string) {
	t.Helper()
	d, err := startDaemon(program, s.dir, s.environment(), []string{"--executor", executor, "--log-level", "debug", "--log-format", "json"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	for _, name := range s.names {
		s.call(t, d, name)
	}
	s.callOverOtherTransports(t, d)
	s.inspectProcesses(t, d)
	s.leaked = string(s.answer(t, d, "control"))
	// The operator writes a secret into the configuration file.
	literal := s.newSecret("literal")
	s.write(t, "mcpd.hcl", s.config.String()+"secret \"literal\" { value = \""+literal.core+"\" }\nsecret \"open { value = \""+literal.core+"\n")
	if _, err := d.waitFor(regexp.MustCompile("reload failed")); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"/readyz", "/healthz", "/metrics", "/mcp/capabilities"} {
		_, body, err := d.exchange(http.MethodGet, path, nil, nil)
		if err != nil {
			t.Error(err)
		}
		s.addOutput(path, string(body))
	}
	s.addProcesses(t, d.cmd.Process.Pid, s.grants...)
	if err := d.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if err := d.cmd.Wait(); err != nil {
		t.Errorf("the server exited with %v", err)
	}
	d.mu.Lock()
	s.addOutput("the log", strings.Join(d.lines, "\n"))
	d.mu.Unlock()
}

// answer calls a tool with all client features enabled and returns all received bytes.
func (s *canaryServer) answer(t *testing.T, d *daemon, name string) []byte {
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
func (s *canaryServer) call(t *testing.T, d *daemon, name string) {
	t.Helper()
	told := string(s.answer(t, d, name))
	s.addOutput("the answer of "+name, told)
	if name == "asks" && !strings.Contains(told, "Go on?") {
		t.Errorf("the call sent no input request: %s", told)
	}
	_, answer, err := d.exchange(http.MethodPost, "/mcp/execute", []byte(`{"tool":"`+name+`"}`), nil)
	if err != nil {
		t.Error(err)
	}
	s.addOutput("the REST answer of "+name, string(answer))
}

// inspectProcesses inspects the processes of a server while one of its programs waits on the pipe.
func (s *canaryServer) inspectProcesses(t *testing.T, d *daemon) {
	t.Helper()
	answered := make(chan []byte)
	go func() { answered <- s.answer(t, d, "held") }()
	pipe, err := os.OpenFile(s.fifo, os.O_WRONLY, 0) // returns when the program reads
	if err != nil {
		t.Fatal(err)
	}
	if below := s.addProcesses(t, d.cmd.Process.Pid, s.grants...); below < 1 {
		t.Error("no process was inspected")
	}
	if _, err := pipe.WriteString("it was " + s.held.value); err != nil {
		t.Error(err)
	}
	if err := pipe.Close(); err != nil {
		t.Error(err)
	}
	s.addOutput("the answer of held", string(<-answered))
}

// overStdio calls every tool over standard input and output.
func (s *canaryServer) overStdio(t *testing.T, program, executor string) {
	t.Helper()
	server := serveStdio(t, program, s.dir, s.environment(), "--executor", executor, "--log-level", "debug")
	for id, request := range append([]string{
		`"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"canary","version":"1"},"capabilities":{}}`, `"logging/setLevel","params":{"level":"debug"}`,
	}, s.calls()...) {
		if _, err := fmt.Fprintf(server.in, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":%s}\n", id+1, request); err != nil {
			t.Fatal(err)
		}
		for answer := fmt.Sprintf(`"id":%d,`, id+1); server.lines.Scan(); {
			s.addOutput("standard output", server.lines.Text())
			if strings.Contains(server.lines.Text(), answer) {
				break
			}
		}
		if id == 0 {
			_, _ = fmt.Fprintln(server.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		}
	}
	s.addOutput("standard output", server.end(t))
	s.addOutput("the log over stdio", server.log.String())
	if !strings.Contains(server.log.String(), "script read secret") {
		t.Error("no call over stdio")
	}
}

// calls returns a call with progress for each tool, or for some of them under the race
// detector.
func (s *canaryServer) calls() []string {
	var calls []string
	for i, name := range s.names {
		if i%slower > 0 {
			continue
		}
		calls = append(calls, fmt.Sprintf(`"tools/call","params":{"name":%q,"arguments":{},"_meta":{"progressToken":"p-%s"}}`, name, name))
	}
	return calls
}

// runVerbs runs the command-line verbs with valid files and with files that have an
// error.
func (s *canaryServer) runVerbs(t *testing.T, executor string) {
	t.Helper()
	run := func(arguments ...string) {
		_, stdout, stderr := inProcess(t, s.dir, s.environment(), arguments...) // most calls fail
		if stdout+stderr == "" {
			t.Errorf("mcpd %v prints nothing", arguments)
		}
		s.addOutput("mcpd "+strings.Join(arguments, " "), stdout+stderr)
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

// checkDelivered checks that each secret reached its destination; otherwise the test proves
// nothing.
func (s *canaryServer) checkDelivered(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	came := canaryCheck{all: s.outgoing}
	came.addOutput("what came out", s.came.String())
	said := strings.Join(came.leaks(), "\n")
	for _, c := range s.outgoing {
		if !strings.Contains(said, c.name+" as ") {
			t.Errorf("%s was not sent", c.name)
		}
	}
}

// addAudit enables the audit log, and makes a script pass a secret to a tool with
// captured arguments.
func (s *canaryServer) addAudit(t *testing.T) {
	t.Helper()
	c := s.newSecret("told")
	s.secret(t, "told", "file", c.value, "reveal = true")
	s.config.WriteString("audit {\n  path    = \"audit/calls.jsonl\"\n  mode    = \"strict\"\n  capture = [\"hears\"]\n}\n")
	s.tools.WriteString("tool \"hears\" {\n  extra_arguments = true\n  run = \"return 1;\"\n}\n")
	s.tool("tells", "    secrets { names = [\"told\"] }\n    call { tools = [\"hears\"] }",
		`const told = secrets.told, plain = told.replace(/[^ -~]/g, "");
      return await tools.hears({ told, coded: btoa(plain), hex: [...plain].map((c) => c.charCodeAt(0).toString(16)).join(""), url: encodeURIComponent(told), deep: [{ [told]: told }], [btoa(plain)]: 1 });`)
}

// addCrash makes a script read a secret and crash its process.
func (s *canaryServer) addCrash(t *testing.T) {
	t.Helper()
	c := s.newSecret("bomb")
	s.secret(t, "bomb", "file", c.value, "reveal = true")
	s.names = append(s.names, "bomb")
	s.tools.WriteString("tool \"bomb\" {\n  timeout = \"20s\"\n  limits { memory = \"64MiB\" }\n  allow {\n    secrets { names = [\"bomb\"] }\n  }\n  run = <<JS\n    let all = secrets.bomb;\n    for (;;) all += all;\n  JS\n}\n")
}

// seeAudit adds the audit log, and checks that it records the secrets that were read
// and passed on. It also adds the log of the crashed process.
func (s *canaryServer) seeAudit(t *testing.T, executor string) {
	t.Helper()
	folder := filepath.Join(s.dir, "audit")
	s.addFiles(t, folder)
	text, err := os.ReadFile(filepath.Join(folder, "calls.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"kind":"intent"`, `"event.name":"secret.revealed"`, `"name":"shown"`, `"gen_ai.tool.call.arguments":{"[secret:told]":1,`, `"told":"[secret:told]"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the audit log has no %s", want)
		}
	}
	if died := fmt.Sprint(s.seen["the log"]); executor == executorWorker && !strings.Contains(died, "worker process exited") {
		t.Error("no process crashed")
	}
}

// addProcesses adds the command lines of a process and its descendants, and the
// environments of the descendants. It returns their number. The environment of a
// program contains the secrets of its grant: but lists those canaries.
func (a *canaryCheck) addProcesses(t *testing.T, root int, but ...canary) (below int) {
	t.Helper()
	for _, pid := range append([]int{root}, descendants(t, root)...) {
		// A process may exit meanwhile.
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		a.addOutput("command lines", string(line))
		if pid == root {
			continue
		}
		below++
		environment, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		text := string(environment)
		for _, c := range but {
			text = strings.ReplaceAll(text, c.value, "")
		}
		a.addOutput("environments", text)
	}
	return below
}

// descendants returns the ids of all descendants of a process.
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
		// The name, in parentheses, may contain anything.
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
