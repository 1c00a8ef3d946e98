package main

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// stracedProcess is a process as strace has seen it.
type stracedProcess struct {
	program string     // what it has executed last, as strace writes that; "" for nothing
	calls   []*straced // of all its threads, in the order in which they began
}

// straced is a system call: from the line of the log on which it began to the one on which
// it ended.
type straced struct {
	begin, end int
	text       string
}

// stracedThread is a thread as strace -f has seen it.
type stracedThread struct {
	parent   *stracedThread // nil for the first one
	process  bool           // it began a process
	gone     bool
	underway *straced
	calls    []*straced
}

// stracedAnswer is what a call begins with that writes to standard output.
const stracedAnswer = "write(1, "

// stracedKilled is the call of a thread that is killed as it begins one: the kernel does not
// make it then, and strace has not learned which it was.
const stracedKilled = "???("

var (
	stracedChild  = regexp.MustCompile(`^(?:clone3?|v?fork)\(.*\) += (\d+)$`)
	stracedExec   = regexp.MustCompile(`^execve(?:at)?\((.*)\) += 0$`)
	stracedFilter = regexp.MustCompile(`^seccomp\(SECCOMP_SET_MODE_FILTER, .*\) += 0$`)
	stracedOrder  = regexp.MustCompile(`^read\(0, *".*\) += [1-9]\d*$`)
	// stracedComputing are the calls of those that are looked at by which a process only
	// computes, and says what comes of it.
	stracedComputing = regexp.MustCompile(`^(?:read|write)\(|^clone\(.*\|CLONE_THREAD\|`)
)

// readStrace returns the processes in a log of strace -f, the one that it started first.
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
		if other, ok := strings.CutPrefix(text, "+++ superseded by execve in pid "); ok { // which has its number from now on
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

// see takes in what a line tells of a thread, and returns the call that ends with it.
func (t *stracedThread) see(n int, text string) *straced {
	switch {
	case strings.HasPrefix(text, "+++"):
		if t.gone = true; t.underway != nil && t.underway.text == stracedKilled {
			t.calls = t.calls[:len(t.calls)-1]
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

// confined returns the line on which the process has given its rights up, which is the last
// of its start.
func (p *stracedProcess) confined() (line int, ok bool) {
	for _, call := range p.calls {
		if stracedFilter.MatchString(call.text) {
			return call.end, true
		}
	}
	return 0, false
}

// work is what a process has been told, by its standard input, and how often it has read
// there and answered by its standard output since it is confined.
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

// escapes returns what a process for bodies has done that it must not: whatever is not to
// compute since it is confined, and to answer before, or to be told what to do without ever
// being so. One that waits for that has done neither.
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

func TestWhatProcessesForBodiesMustNotDoIsSeen(t *testing.T) {
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
