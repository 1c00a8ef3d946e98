package worker

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// nices returns how many threads of a process have which nice value.
func nices(t *testing.T, pid int) map[string]int {
	t.Helper()
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(stats) == 0 {
		t.Fatalf("the process has no threads: %v", err)
	}
	got := map[string]int{}
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended
		}
		_, fields, _ := strings.Cut(string(text), ") ")
		got[strings.Fields(fields)[16]]++
	}
	return got
}

// TestAProcessThatIsStuckGivesWay, all of its threads, from then on, and no other
// process does. Quick calls go elsewhere.
func TestAProcessThatIsStuckGivesWay(t *testing.T) {
	e := executor(t, Options{Processes: 3})
	unwatched(e)
	fast := need{memory: e.options.Memory, program: [32]byte{1}}
	e.records.learn(fast.program, quick)
	first, err := e.choose(fast)
	if err != nil {
		t.Fatal(err)
	}
	other := taken(t, e, true)
	f := &flight{id: 1}
	first.board(f)
	usual := slices.Sorted(maps.Keys(nices(t, os.Getpid())))[0]
	own, err := strconv.Atoi(usual)
	if err != nil {
		t.Fatal(err)
	}
	nicer := strconv.Itoa(min(own+lowered, 19))
	for _, test := range []struct {
		name  string
		since int64
		want  string
	}{{"does nothing", 0, usual}, {"computes for long", 90, nicer}, {"has ended", 0, nicer}} {
		f.since.Store(test.since)
		e.looks.Store(100)
		e.look()
		if got := nices(t, first.cmd.Process.Pid); got[test.want] == 0 || len(got) != 1 {
			t.Errorf("while a call %s, the threads have %v, want %s", test.name, got, test.want)
		}
	}
	if got := nices(t, other.cmd.Process.Pid); got[usual] == 0 || len(got) != 1 {
		t.Errorf("the threads of another process have %v", got)
	}
	if p, err := e.choose(fast); p == nil || p == first {
		t.Errorf("a quick call goes where it must give way: %v", err)
	} else {
		release(e, p, fast, unknown)
	}
	release(e, first, fast, unknown)
}
