package osproc

import (
	"bufio"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"
	"syscall"
)

// Program holds the read-only mappings of the program file in this process: code, tables
// and constants.
type Program struct{ mappings []mapping }

type mapping struct{ start, end uint64 }

// FindProgram finds the program. It reads /proc, so a process that confines itself must
// call it before. If it cannot read /proc, the program has no mappings.
func FindProgram() Program {
	list, err := os.Open("/proc/self/smaps")
	if err != nil {
		return Program{}
	}
	defer list.Close()
	return programIn(list, uint64(reflect.ValueOf(FindProgram).Pointer()))
}

// Unmap removes the pages of the program from the memory of this process. They stay in
// the page cache until the system needs their memory, and the process maps each page
// again when it uses it.
func (p Program) Unmap() {
	for _, m := range p.mappings {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, uintptr(m.start), uintptr(m.end-m.start), syscall.MADV_DONTNEED) // on failure, they stay
	}
}

// programIn returns the mappings of the file that has the address code, from a list in
// the format of smaps. It leaves out mappings with pages that differ from the file, such
// as relocations and breakpoints: Unmap would lose them.
func programIn(smaps io.Reader, code uint64) Program {
	var all []fileMapping
	file := ""
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		if m, ok := parseMapping(lines.Text()); ok {
			all = append(all, m)
			if m.start <= code && code < m.end {
				file = m.file
			}
		} else if name, size, ok := strings.Cut(lines.Text(), ":"); ok && len(all) > 0 {
			all[len(all)-1].note(name, strings.TrimSpace(size) == "0 kB")
		}
	}
	if lines.Err() != nil || file == "" {
		return Program{}
	}
	var p Program
	for _, m := range all {
		if m.file == file && m.unchanged && !m.swapped && (m.access == "r-xp" || m.access == "r--p") {
			p.mappings = append(p.mappings, m.mapping)
		}
	}
	return p
}

// fileMapping is an entry of smaps.
type fileMapping struct {
	mapping
	access string
	file   string // device and inode; empty for anonymous memory
	// unchanged means that no page in memory differs from the file, and swapped that one in the swap does.
	unchanged, swapped bool
}

// note takes a line of the entry: whether a size is zero.
func (m *fileMapping) note(name string, zero bool) {
	switch name {
	case "Anonymous":
		m.unchanged = zero
	case "Swap":
		m.swapped = !zero
	}
}

// parseMapping parses the first line of an entry of smaps, such as
// "00400000-01db6000 r-xp 00000000 fe:00 1234 /usr/bin/mcpd".
func parseMapping(line string) (fileMapping, bool) {
	fields := strings.Fields(line)
	if len(fields) < 5 {
		return fileMapping{}, false
	}
	first, last, _ := strings.Cut(fields[0], "-")
	start, err := strconv.ParseUint(first, 16, 64)
	if err != nil {
		return fileMapping{}, false
	}
	end, err := strconv.ParseUint(last, 16, 64)
	if err != nil {
		return fileMapping{}, false
	}
	m := fileMapping{mapping: mapping{start, end}, access: fields[1]}
	if fields[4] != "0" {
		m.file = fields[3] + " " + fields[4]
	}
	return m, true
}
