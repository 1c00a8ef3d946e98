package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/tools/txtar"
)

// tracedCalls are the system calls that are looked at: by which a process may reach beyond
// itself, and by which it is seen what it begins, confines and does.
const tracedCalls = "trace=%file,%net,execve,execveat,fork,vfork,clone,clone3,ptrace,read,write,seccomp," +
	"?open_by_handle_at,?io_uring_setup,?memfd_create,?pidfd_open,?pidfd_getfd,?process_vm_readv,?process_vm_writev,?bpf"

// TestAProcessThatRunsCodeOpensNothing looks at the system calls of all processes in which
// bodies are tried and run, among them code that tries to escape, from before they start on:
// once one is confined it opens no file, makes no connection and starts no program, and none
// has anything to do before.
func TestAProcessThatRunsCodeOpensNothing(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("mcpd.hcl", "codeact {\n  limits { memory = \"64MiB\" }\n}\n")
	write("tools.d/a.hcl", "tool \"list\" {\n  run = \"return [1];\"\n}\n")
	write("tools.d/b.hcl", "tool \"small\" {\n  limits { memory = \"32MiB\" }\n  run = \"return 1;\"\n}\n")
	write("tools.d/c.hcl", "tool \"large\" {\n  run = <<JS\n"+strings.Repeat("    [1, 2].map((n) => n + 1);\n", 1000)+"    return 1;\n  JS\n}\n")
	d, ended := serveStraced(t, folder)
	// What has more than its memory costs its process: the rest has another one.
	runProgram(t, d.url, "await list(); await small(); const all = []; for (;;) all.push('x'.repeat(1e6) + all.length)")
	ran, seenAll := 0, os.Getenv("MCPD_LONG") != ""
	for _, name := range must(filepath.Glob("../../scripting/testdata/escapes/*.txtar")) {
		for i, f := range must(txtar.ParseFile(name)).Files {
			if i%10 != 0 && !seenAll {
				continue // all of them are run by the tests of package worker
			}
			code, _, _ := strings.Cut(string(f.Data), "\n=> ")
			runProgram(t, d.url, code)
			ran++
		}
	}
	if ran < 30 || seenAll && ran < 200 {
		t.Errorf("only %d programs tried to escape", ran)
	}
	processes := ended()
	reads, doing, programs := 0, map[string]int{}, 0
	for _, p := range processes[1:] {
		if len(p.calls) > 0 && !isWorker.MatchString(p.program) {
			t.Errorf("the server starts %q, which does %s", p.program, p.calls[0].text)
		}
		for _, escape := range p.escapes() {
			t.Error(escape)
		}
		told, read, answers := p.work()
		reads += read
		for what, told := range map[string]int{"a trial": strings.Count(told, `{\"name\":\"large\",`), "a body": times(told, "list"), "another body": times(told, "small"), "code": times(told, "run_code")} {
			if told > 0 && answers > 0 {
				doing[what]++
			}
		}
		programs += times(told, "run_code")
	}
	if doing["a trial"] == 0 || doing["a body"] == 0 || doing["another body"] == 0 || doing["code"] < 2 {
		t.Errorf("of %d processes were seen at work: %v", len(processes)-1, doing)
	}
	if reads < ran/2 || programs < ran/2 { // the rest are refused before a process hears of them
		t.Errorf("only %d reads of processes were seen, %d of programs", reads, programs)
	}
}

// isWorker matches how strace writes a program that runs bodies.
var isWorker = regexp.MustCompile(`^"/proc/self/exe", \[".*/mcpd", "worker"\], `)

// times returns how often a process was told a program of a name.
func times(told, name string) int {
	return len(regexp.MustCompile(`\{\\"Hash\\":\[[0-9,]*\],\\"Name\\":\\"`+name+`\\"`).FindAllString(told, -1))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// runProgram has a program run; that it fails is well.
func runProgram(t *testing.T, url, code string) {
	t.Helper()
	body := must(json.Marshal(map[string]any{"tool": "run_code", "arguments": map[string]string{"code": code}}))
	resp, err := http.Post(url+"/mcp/execute", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}

// serveStraced serves a folder below strace, which sees all processes from their beginning.
// What it returns ends the server, and returns them.
func serveStraced(t *testing.T, folder string) (d *daemon, ended func() []*stracedProcess) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil && os.Getenv("MCPD_NEED_STRACE") != "" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip("SKIPPED: strace is not installed, without which nobody sees what a process asks its kernel")
	}
	beside := t.TempDir()
	script, log := filepath.Join(beside, "mcpd"), filepath.Join(beside, "log")
	text := fmt.Sprintf("#!/bin/sh\nexec %q -f -q -s 1024 -o %q -e %q %q \"$@\"\n", strace, log, tracedCalls, buildDaemon(t))
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	d, err = startDaemon(script, folder, append(os.Environ(), "XDG_STATE_HOME="+t.TempDir()), nil)
	if err != nil {
		t.Fatal(err)
	}
	server := must(os.FindProcess(childOf(t, d.cmd.Process.Pid)))
	t.Cleanup(func() {
		_ = server.Kill() // or it would go on without strace
		d.kill()
	})
	return d, func() []*stracedProcess {
		t.Helper()
		if err := server.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := d.cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		return readStrace(string(must(os.ReadFile(log))))
	}
}

// childOf returns the process that another has started.
func childOf(t *testing.T, parent int) int {
	t.Helper()
	for _, name := range must(filepath.Glob("/proc/[0-9]*/stat")) {
		stat, _ := os.ReadFile(name)
		if fields := strings.Fields(string(stat)); len(fields) > 3 && fields[3] == strconv.Itoa(parent) {
			return must(strconv.Atoi(filepath.Base(filepath.Dir(name))))
		}
	}
	t.Fatalf("process %d has started none", parent)
	return 0
}
