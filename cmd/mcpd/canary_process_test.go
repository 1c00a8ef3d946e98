//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

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
