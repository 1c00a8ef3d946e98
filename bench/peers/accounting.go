package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the unit of times in /proc/PID/stat: Linux has USER_HZ = 100 on all
// architectures of Go.
const tick = 10 * time.Millisecond

// stat is the part of /proc/PID/stat that the measurements use.
type stat struct {
	parent int
	reaped time.Duration // processor time of children that have exited
}

// parseStat parses the content of /proc/PID/stat. The name of the program is in
// parentheses and may contain any character.
func parseStat(text []byte) (stat, error) {
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 15 {
		return stat{}, fmt.Errorf("parse %q: %d fields", text, len(fields))
	}
	var numbers [3]int64
	for i, at := range []int{1, 13, 14} { // ppid, cutime, cstime
		n, err := strconv.ParseInt(string(fields[at]), 10, 64)
		if err != nil {
			return stat{}, err
		}
		numbers[i] = n
	}
	return stat{parent: int(numbers[0]), reaped: time.Duration(numbers[1]+numbers[2]) * tick}, nil
}

// processes returns a process and all its descendants. It skips processes that exit
// meanwhile.
func processes(root int) (map[int]stat, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	all := map[int]stat{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		s, err := parseStat(text)
		if err != nil {
			return nil, err
		}
		id, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		all[id] = s
	}
	if _, ok := all[root]; !ok {
		return nil, fmt.Errorf("process %d has exited", root)
	}
	found := map[int]stat{root: all[root]}
	for grown := true; grown; {
		grown = false
		for id, s := range all {
			_, known := found[id]
			if _, child := found[s.parent]; child && !known {
				found[id], grown = s, true
			}
		}
	}
	return found, nil
}

// processorTime returns the processor time that a process and all its descendants have
// used so far, in user and kernel mode. The clock of a process counts nanoseconds, and
// includes threads that have exited. Children that have exited count in units of a
// tick.
func processorTime(root int) (time.Duration, error) {
	found, err := processes(root)
	if err != nil {
		return 0, err
	}
	var total time.Duration
	for id, s := range found {
		used, err := clock(id)
		if err != nil {
			if id != root && errors.Is(err, unix.EINVAL) {
				continue // it has exited
			}
			return 0, err
		}
		total += used + s.reaped
	}
	return total, nil
}

// clock returns the processor time of all threads of a process, as clock_getcpuclockid
// and clock_gettime do.
func clock(id int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^id<<3|scheduled), &t); err != nil {
		return 0, fmt.Errorf("read processor time of process %d: %w", id, err)
	}
	return time.Duration(t.Nano()), nil
}

// memory returns the proportional set size of a process and all its descendants in
// bytes, and their number. A page that n processes share counts 1/n in each of them.
func memory(root int) (size int64, count int, err error) {
	found, err := processes(root)
	if err != nil {
		return 0, 0, err
	}
	for id := range found {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", id))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			return 0, 0, err
		}
		n, err := parsePSS(text)
		if err != nil {
			return 0, 0, err
		}
		size, count = size+n, count+1
	}
	return size, count, nil
}

// parsePSS returns the proportional set size in the content of smaps_rollup, in bytes.
func parsePSS(text []byte) (int64, error) {
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte("Pss:")); ok {
			n, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))), 10, 64)
			return n << 10, err
		}
	}
	return 0, errors.New("smaps_rollup has no Pss")
}
