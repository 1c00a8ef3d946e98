package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/mcpd/mcpd/internal/cputime"
)

// used returns the processor time of this process and of those that it has
// started and that run.
func used(children []int) time.Duration {
	total := cputime.Used()
	for _, id := range children {
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

// started returns the ids of the processes that this one has started and that run.
func started() (ids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue
		}
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if string(fields[1]) == strconv.Itoa(os.Getpid()) {
			id, _ := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
			ids = append(ids, id)
		}
	}
	return ids
}
