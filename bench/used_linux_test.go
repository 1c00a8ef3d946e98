package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// usedBy returns the processor time of other running processes.
func usedBy(ids []int) (total time.Duration) {
	for _, id := range ids {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", id))
		if err != nil {
			continue
		}
		for _, task := range tasks {
			text, _ := os.ReadFile(task)
			nanoseconds, _, _ := bytes.Cut(text, []byte{' '})
			n, _ := strconv.ParseInt(string(nanoseconds), 10, 64)
			total += time.Duration(n)
		}
	}
	return total
}

// memoryOf returns the proportional set size of other running processes in bytes.
func memoryOf(ids []int) (total int64) {
	for _, id := range ids {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", id))
		for line := range bytes.Lines(text) {
			if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == "Pss:" {
				kB, _ := strconv.ParseInt(string(f[1]), 10, 64)
				total += kB << 10
			}
		}
	}
	return total
}

// startedBy returns the ids of the running processes that a parent started.
func startedBy(parent int) (ids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue
		}
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if string(fields[1]) == strconv.Itoa(parent) {
			id, _ := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
			ids = append(ids, id)
		}
	}
	return ids
}
