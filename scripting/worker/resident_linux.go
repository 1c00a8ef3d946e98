package worker

import (
	"bytes"
	"os"
	"strconv"
)

// resident returns how many bytes of memory a process has beside the program that it
// runs, which has so many; 0 when it has ended.
func resident(pid int, program int64) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	return ownMemory(text, program)
}

// ownMemory returns what statm says. The pages of a program are there once for all its
// processes; what else a process could share with others counts.
func ownMemory(statm []byte, program int64) int64 {
	fields := bytes.Fields(statm)
	if len(fields) < 3 {
		return 0
	}
	all, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	shared, err := strconv.ParseInt(string(fields[2]), 10, 64)
	if err != nil {
		return 0
	}
	size := int64(os.Getpagesize())
	return all*size - min(shared*size, program)
}
