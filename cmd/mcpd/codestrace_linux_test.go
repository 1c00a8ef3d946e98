package main

import (
	"bufio"
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

// TestAProcessThatRunsCodeOpensNothing looks at the system calls of the process in which
// code runs that tries to escape: after its start it opens no file, makes no connection and
// starts no program.
func TestAProcessThatRunsCodeOpensNothing(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		if os.Getenv("MCPD_NEED_STRACE") != "" {
			t.Fatal(err)
		}
		t.Skip("SKIPPED: strace is not installed, without which nobody sees what a process asks its kernel")
	}
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
	write("mcpd.hcl", "codeact {\n  timeout = \"1s\"\n}\n")
	write("tools.d/a.hcl", "tool \"list\" {\n  run = \"return [1];\"\n}\n")
	d, err := startDaemon(buildDaemon(t), folder, append(os.Environ(), "XDG_STATE_HOME="+t.TempDir()), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	runProgram(t, d.url, "await list()") // the process has started by then
	log := filepath.Join(t.TempDir(), "calls")
	seen := watchCalls(t, strace, log, workerOf(t, d.cmd.Process.Pid))
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
	seen()
	if ran < 30 || seenAll && ran < 200 {
		t.Errorf("only %d programs tried to escape", ran)
	}
	calls, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	reads := bytes.Count(calls, []byte("read("))
	for line := range bytes.Lines(calls) {
		if bytes.Contains(line, []byte("read(")) || bytes.Contains(line, []byte("write(")) {
			continue
		}
		if !bytes.Contains(line, []byte("+++")) && !bytes.Contains(line, []byte("---")) && !bytes.Contains(line, []byte("resumed>")) {
			t.Errorf("the process asks its kernel for %s", line)
		}
	}
	if reads < ran/2 { // the rest are refused before the process hears of them
		t.Errorf("only %d reads of the process were seen", reads)
	}
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

// workerOf returns the process that the daemon runs bodies in.
func workerOf(t *testing.T, daemon int) int {
	t.Helper()
	for _, name := range must(filepath.Glob("/proc/[0-9]*/stat")) {
		stat, _ := os.ReadFile(name)
		if fields := strings.Fields(string(stat)); len(fields) < 4 || fields[3] != strconv.Itoa(daemon) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
		if bytes.Contains(line, []byte("\x00worker")) {
			return must(strconv.Atoi(filepath.Base(filepath.Dir(name))))
		}
	}
	t.Fatal("the daemon has no process for bodies")
	return 0
}

// watchCalls writes the system calls of a process, of all its threads, to a log, until the
// function is called that it returns.
func watchCalls(t *testing.T, strace, log string, pid int) (end func()) {
	t.Helper()
	cmd := exec.Command(strace, "-f", "-p", strconv.Itoa(pid), "-o", log, "-e", "trace=%file,%net,execve,execveat,fork,vfork,ptrace,read,write")
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	attached := regexp.MustCompile(`attached`)
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if attached.MatchString(lines.Text()) {
			break
		}
		fmt.Fprintln(os.Stderr, lines.Text())
	}
	go func() {
		for lines.Scan() { // or it would wait for a reader
		}
	}()
	return func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait()
	}
}
