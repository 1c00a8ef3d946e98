package supervisor

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// descendants returns the processes that this one, or one of them, has started.
func descendants() []int {
	children := map[int][]int{}
	entries, _ := os.ReadDir("/proc") // what cannot be read is tried again
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if parent, ok := parentOf(pid); ok {
			children[parent] = append(children[parent], pid)
		}
	}
	found := children[os.Getpid()]
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}

// parentOf returns the process that is the parent of another. It stands behind
// the name, which may hold anything, and the state.
func parentOf(pid int) (parent int, ok bool) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0, false
	}
	parent, err = strconv.Atoi(string(fields[1]))
	return parent, err == nil
}
