package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/tools/txtar"
)

// stracedProcess is a process in the log of strace.
type stracedProcess struct {
	program string     // last executed program, as printed by strace; "" for none
	calls   []*straced // of all its threads, in order of their start
}

// straced is a system call, from the log line where it starts to the line where it
// ends.
type straced struct {
	begin, end int
	text       string
}

// stracedThread is a thread in the log of strace -f.
type stracedThread struct {
	parent   *stracedThread // nil for the first one
	process  bool           // it started a process
	gone     bool
	underway *straced
	calls    []*straced
}

// stracedAnswer is the prefix of a write to standard output.
const stracedAnswer = "write(1, "

var (
	// stracedKilled matches the call of a thread that is killed while starting it: the
	// kernel does not make the call, strace does not know its name, and there is no result.
	stracedKilled = regexp.MustCompile(`^\?\?\?\((\) += \?)?$`)

	stracedChild  = regexp.MustCompile(`^(?:clone3?|v?fork)\(.*\) += (\d+)$`)
	stracedExec   = regexp.MustCompile(`^execve(?:at)?\((.*)\) += 0$`)
	stracedFilter = regexp.MustCompile(`^seccomp\(SECCOMP_SET_MODE_FILTER, .*\) += 0$`)
	stracedOrder  = regexp.MustCompile(`^read\(0, *".*\) += [1-9]\d*$`)
	// stracedComputing matches the traced calls of a process that only computes and
	// returns its result.
	stracedComputing = regexp.MustCompile(`^(?:read|write)\(|^clone\(.*\|CLONE_THREAD\|`)
)

// readStrace returns the processes in a log of strace -f, the first one started first.
func readStrace(log string) []*stracedProcess {
	var all []*stracedThread
	byID := map[string]*stracedThread{}
	find := func(id string) *stracedThread {
		if byID[id] == nil || byID[id].gone {
			byID[id] = &stracedThread{process: true}
			all = append(all, byID[id])
		}
		return byID[id]
	}
	for n, line := range strings.Split(strings.TrimSpace(log), "\n") {
		id, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		text = strings.TrimSpace(text)
		thread := find(id)
		if other, ok := strings.CutPrefix(text, "+++ superseded by execve in pid "); ok { // which takes over its number
			by := find(strings.TrimSuffix(other, " +++"))
			thread.underway, by.gone = by.underway, true
			continue
		}
		call := thread.see(n, text)
		if call == nil {
			continue
		}
		if child := stracedChild.FindStringSubmatch(call.text); child != nil {
			made := byID[child[1]]
			if made == nil || made.parent != nil {
				made = &stracedThread{}
				byID[child[1]], all = made, append(all, made)
			}
			made.parent, made.process = thread, !strings.Contains(call.text, "|CLONE_THREAD|")
		}
	}
	return stracedProcesses(all)
}

// see processes a log line of a thread, and returns the call that ends with it.
func (t *stracedThread) see(n int, text string) *straced {
	switch {
	case strings.HasPrefix(text, "+++"):
		t.gone = true
		if last := len(t.calls) - 1; last >= 0 && stracedKilled.MatchString(t.calls[last].text) {
			t.calls = t.calls[:last]
		}
		return nil
	case strings.HasPrefix(text, "---"):
		return nil
	}
	if _, rest, ok := strings.Cut(text, " resumed>"); ok && strings.HasPrefix(text, "<... ") && t.underway != nil {
		call := t.underway
		t.underway, call.end, call.text = nil, n, call.text+rest
		return call
	}
	begun, unfinished := strings.CutSuffix(text, "<unfinished ...>")
	call := &straced{n, n, strings.TrimSpace(begun)}
	t.calls = append(t.calls, call)
	if unfinished {
		t.underway, call.end = call, math.MaxInt
		return nil
	}
	return call
}

func stracedProcesses(all []*stracedThread) (processes []*stracedProcess) {
	of := map[*stracedThread]*stracedProcess{}
	for _, thread := range all {
		begun := thread
		for !begun.process {
			begun = begun.parent
		}
		if of[begun] == nil {
			of[begun] = &stracedProcess{}
			processes = append(processes, of[begun])
		}
		of[begun].calls = append(of[begun].calls, thread.calls...)
	}
	for _, p := range processes {
		slices.SortFunc(p.calls, func(a, b *straced) int { return a.begin - b.begin })
		for _, call := range p.calls {
			if program := stracedExec.FindStringSubmatch(call.text); program != nil {
				p.program = program[1]
			}
		}
	}
	return processes
}

// confined returns the line where the process has dropped its privileges, the last step
// of its start.
func (p *stracedProcess) confined() (line int, ok bool) {
	for _, call := range p.calls {
		if stracedFilter.MatchString(call.text) {
			return call.end, true
		}
	}
	return 0, false
}

// work returns the input of a process, and the number of its reads and writes on the
// standard streams since it is sandboxed.
func (p *stracedProcess) work() (told string, reads, answers int) {
	from, ok := p.confined()
	for _, call := range p.calls {
		switch since := ok && call.end > from; {
		case stracedOrder.MatchString(call.text):
			told += call.text + "\n"
			if since {
				reads++
			}
		case since && strings.HasPrefix(call.text, stracedAnswer):
			answers++
		}
	}
	return told, reads, answers
}

// escapes returns the forbidden actions of a worker process: calls other than computing
// inside the sandbox, and output or received work outside of it. A process that only
// waits has done nothing forbidden.
func (p *stracedProcess) escapes() (all []string) {
	from, confined := p.confined()
	for _, call := range p.calls {
		switch {
		case !confined && (stracedOrder.MatchString(call.text) || strings.HasPrefix(call.text, stracedAnswer)):
			all = append(all, "it is not confined, and does "+call.text)
		case confined && call.begin <= from && strings.HasPrefix(call.text, stracedAnswer):
			all = append(all, "it is not confined yet, and does "+call.text)
		case confined && call.begin > from && !stracedComputing.MatchString(call.text):
			all = append(all, "it is confined, and does "+call.text)
		}
	}
	return all
}

func TestStracedProcess_escapes(t *testing.T) {
	const (
		begun   = "7 execve(\"/mcpd\", [\"/mcpd\", \"serve\"]) = 0\n7 clone(flags=CLONE_VM|CLONE_VFORK|SIGCHLD <unfinished ...>\n8 execve(\"/proc/self/exe\", [\"/mcpd\", \"worker\"]) = 0\n7 <... clone resumed>) = 8\n"
		thread  = "8 openat(AT_FDCWD, \"/etc/a\", O_RDONLY) = 3\n8 clone(flags=CLONE_VM|CLONE_THREAD|CLONE_SETTLS, tls=0x1 <unfinished ...>\n9 read(0, \"m\", 9) = 1\n8 <... clone resumed>) = 9\n"
		filters = "8 seccomp(SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, {len=1} <unfinished ...>\n7 openat(AT_FDCWD, \"/etc/b\", O_RDONLY) = 3\n8 <... seccomp resumed>)  = 0\n"
	)
	for _, c := range []struct{ what, log, want string }{
		{"it computes", begun + thread + filters + "9 read(0, \"q\", 9) = 1\n9 clone(flags=CLONE_VM|CLONE_THREAD|CLONE_SETTLS) = 10\n10 write(1, \"o\", 1) = 1\n7 socket(AF_INET) = 4\n", ""},
		{"it waits", begun + "8 openat(AT_FDCWD, \"/etc/a\", O_RDONLY) = 3\n8 read(0,  <unfinished ...>\n8 <... read resumed>\"\", 9) = 0\n8 +++ exited with 0 +++\n", ""},
		{"it is never confined", begun + thread, `it is not confined, and does read(0, "m", 9) = 1`},
		{"it is never confined, and waits first", begun + "8 read(0,  <unfinished ...>\n7 write(14, \"m\", 1) = 1\n8 <... read resumed>\"m\", 9) = 1\n", `it is not confined, and does read(0,"m", 9) = 1`},
		{"the filter is refused", begun + thread + "8 seccomp(SECCOMP_SET_MODE_FILTER, 0, {len=1}) = -1 EINVAL (Invalid argument)\n", `it is not confined, and does read(0, "m", 9) = 1`},
		{"it answers before", begun + thread + "9 write(1, \"o\", 1) = 1\n" + filters, `it is not confined yet, and does write(1, "o", 1) = 1`},
		{"it opens a file", begun + thread + filters + "9 openat(AT_FDCWD, \"/etc/c\", O_RDONLY) = -1 EPERM\n", `it is confined, and does openat(AT_FDCWD, "/etc/c", O_RDONLY) = -1 EPERM`},
		{"it is killed while it connects", begun + thread + filters + "9 connect(3, {sa_family=AF_INET} <unfinished ...>\n9 +++ killed by SIGKILL +++\n", "it is confined, and does connect(3, {sa_family=AF_INET}"},
		{"it is killed before it calls", begun + thread + filters + "9 ???( <unfinished ...>\n9 +++ killed by SIGKILL +++\n", ""},
		{"it is killed before it calls, and strace sees an end", begun + thread + filters + "9 ???( <unfinished ...>\n9 <... ??? resumed>)                             = ?\n9 +++ killed by SIGKILL +++\n", ""},
		{"what it calls is unknown", begun + thread + filters + "9 ???( <unfinished ...>\n9 <... ??? resumed>) = 3\n9 +++ killed by SIGKILL +++\n", "it is confined, and does ???() = 3"},
		{"it starts a process", begun + thread + filters + "9 clone(flags=CLONE_VM|CLONE_VFORK|SIGCHLD) = 10\n", "it is confined, and does clone(flags=CLONE_VM|CLONE_VFORK|SIGCHLD) = 10"},
		{"a thread with the number of another opens a file", begun + thread + "9 +++ exited with 0 +++\n" + filters + "8 clone(flags=CLONE_VM|CLONE_THREAD|CLONE_SETTLS) = 9\n9 open(\"/etc/c\") = 3\n", `it is confined, and does open("/etc/c") = 3`},
	} {
		processes := readStrace(c.log)
		if len(processes) < 2 || !strings.Contains(processes[1].program, `"worker"]`) || strings.Contains(processes[0].program, "worker") {
			t.Errorf("%s: the processes are %+v", c.what, processes)
		} else if got := strings.Join(processes[1].escapes(), "; "); got != c.want {
			t.Errorf("%s: got %s, want %s", c.what, got, c.want)
		}
	}
	taken := readStrace("7 execve(\"/mcpd\", [\"/mcpd\"]) = 0\n7 clone(flags=CLONE_VM|CLONE_THREAD|CLONE_SETTLS) = 8\n8 execve(\"/mcpd\", [\"/mcpd\", \"serve\"] <unfinished ...>\n7 +++ superseded by execve in pid 8 +++\n7 <... execve resumed>) = 0\n7 open(\"/etc/a\") = 3\n")
	if len(taken) != 1 || !strings.Contains(taken[0].program, "serve") {
		t.Errorf("a thread that executes a program is %+v", taken)
	}
}

// tracedCalls are the traced system calls: those that reach outside of the process, and
// those that show its start, its sandbox and its work.
const tracedCalls = "trace=%file,%net,execve,execveat,fork,vfork,clone,clone3,ptrace,read,write,seccomp," +
	"?open_by_handle_at,?io_uring_setup,?memfd_create,?pidfd_open,?pidfd_getfd,?process_vm_readv,?process_vm_writev,?bpf"

// Traces all processes that compile and run scripts, including code that tries to
// escape. Once sandboxed, a process must not open files, connect or start programs, and
// it must get no work before that.
func TestSandbox_systemCalls(t *testing.T) {
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
	// Exceeding the memory kills the process; the rest runs in another one.
	runProgram(t, d, "await list(); await small(); const all = []; for (;;) all.push('x'.repeat(1e6) + all.length)")
	ran, seenAll := 0, os.Getenv("MCPD_LONG") != ""
	for _, name := range must(filepath.Glob("../../scripting/testdata/escapes/*.txtar")) {
		for i, f := range must(txtar.ParseFile(name)).Files {
			if i%10 != 0 && !seenAll {
				continue // the tests of package worker run all of them
			}
			code, _, _ := strings.Cut(string(f.Data), "\n=> ")
			runProgram(t, d, code)
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
		for what, told := range map[string]int{"a trial": strings.Count(told, `{\"name\":\"large\",`), "a script": times(told, "list"), "another script": times(told, "small"), "code": times(told, "run_code")} {
			if told > 0 && answers > 0 {
				doing[what]++
			}
		}
		programs += times(told, "run_code")
	}
	if doing["a trial"] == 0 || doing["a script"] == 0 || doing["another script"] == 0 || doing["code"] < 2 {
		t.Errorf("of %d processes, these worked: %v", len(processes)-1, doing)
	}
	if reads < ran/2 || programs < ran/2 { // the others are rejected before they reach a process
		t.Errorf("only %d reads of processes were seen, %d of programs", reads, programs)
	}
}

// isWorker matches a worker process in the log of strace.
var isWorker = regexp.MustCompile(`^"/proc/self/exe", \[".*/mcpd", "worker"\], `)

// times returns how often a process received a program of a name.
func times(told, name string) int {
	return len(regexp.MustCompile(`\{\\"Hash\\":\[[0-9,]*\],\\"Name\\":\\"`+name+`\\"`).FindAllString(told, -1))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// runProgram runs agent code; it may fail.
func runProgram(t *testing.T, d *daemon, code string) {
	t.Helper()
	body := must(json.Marshal(map[string]any{"tool": "run_code", "arguments": map[string]string{"code": code}}))
	resp, err := http.Post(d.url+"/mcp/execute", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatalf("%v; %s", err, d.failure())
	}
	_ = resp.Body.Close()
}

// serveStraced serves a directory under strace, which traces all processes from their
// start. ended stops the server and returns the processes.
func serveStraced(t *testing.T, folder string) (d *daemon, ended func() []*stracedProcess) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil && os.Getenv("MCPD_NEED_STRACE") != "" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip("SKIPPED: strace is not installed")
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
		_ = server.Kill() // otherwise it would continue without strace
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

// childOf returns a child process.
func childOf(t *testing.T, parent int) int {
	t.Helper()
	for _, name := range must(filepath.Glob("/proc/[0-9]*/stat")) {
		stat, _ := os.ReadFile(name)
		if fields := strings.Fields(string(stat)); len(fields) > 3 && fields[3] == strconv.Itoa(parent) {
			return must(strconv.Atoi(filepath.Base(filepath.Dir(name))))
		}
	}
	t.Fatalf("process %d has no child", parent)
	return 0
}
