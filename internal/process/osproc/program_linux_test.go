package osproc

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestProgramIn_choosesMappings(t *testing.T) {
	const list = `00400000-01db6000 r-xp 00000000 fe:00 1234                     /usr/bin/mcpd
Rss:               22488 kB
Anonymous:             0 kB
Swap:                  0 kB
SwapPss:               0 kB
VmFlags: rd ex mr mw me
01db6000-0380d000 r--p 019b6000 fe:00 1234                     /usr/bin/mcpd
Anonymous:             0 kB
0380d000-03847000 r--p 0340d000 fe:00 1234                     /usr/bin/mcpd
Anonymous:            12 kB
Swap:                  0 kB
03847000-03848000 r--p 03447000 fe:00 1234                     /usr/bin/mcpd
Anonymous:             0 kB
Swap:                  4 kB
03848000-03a4b000 rw-p 03448000 fe:00 1234                     /usr/bin/mcpd
Anonymous:             0 kB
c000000000-c004000000 rw-p 00000000 00:00 0                    [anon: Go: heap]
Anonymous:          5364 kB
7f0000000000-7f0000021000 r-xp 00000000 fe:00 99               /lib/libc.so.6
Anonymous:             0 kB
`
	want := []mapping{{0x400000, 0x1db6000}, {0x1db6000, 0x380d000}}
	if p := programIn(strings.NewReader(list), 0x401000); !slices.Equal(p.mappings, want) {
		t.Errorf("mappings %x, want %x", p.mappings, want)
	}
	for _, code := range []uint64{0x1000, 0xc000000000} { // in no mapping, and in no file
		if p := programIn(strings.NewReader(list), code); len(p.mappings) > 0 {
			t.Errorf("code at %x: mappings %x", code, p.mappings)
		}
	}
	for _, list := range []string{"", "x", "00400000 r-xp 0 fe:00 1\n", "g-2 r-xp 0 fe:00 1\n", "1-g r-xp 0 fe:00 1\n", "Anonymous: 0 kB\n", strings.Repeat("x", 1<<17)} {
		if p := programIn(strings.NewReader(list), 1); len(p.mappings) > 0 {
			t.Errorf("%.40q has mappings %x", list, p.mappings)
		}
	}
}

func TestProgram_unmap(t *testing.T) {
	const populateRead = 22 // MADV_POPULATE_READ
	p := FindProgram()
	if len(p.mappings) < 2 {
		t.Fatalf("mappings %x, want code and constants", p.mappings)
	}
	for _, m := range p.mappings {
		if _, _, err := syscall.Syscall(syscall.SYS_MADVISE, uintptr(m.start), uintptr(m.end-m.start), populateRead); err != 0 {
			t.Skip("SKIPPED: the system cannot map all pages: ", err)
		}
	}
	before := residentPages(t, p)
	p.Unmap()
	if after := residentPages(t, p); after > before*3/4 {
		t.Errorf("%d kB of the program are mapped, before Unmap %d kB", after, before)
	}
}

// residentPages returns the kilobytes of a program that are mapped.
func residentPages(t *testing.T, p Program) (kB int) {
	t.Helper()
	list, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	counts := false
	for line := range strings.Lines(string(list)) {
		if m, ok := parseMapping(line); ok {
			counts = slices.Contains(p.mappings, m.mapping)
		} else if size, ok := strings.CutPrefix(line, "Rss:"); ok && counts {
			n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(size), " kB"))
			if err != nil {
				t.Fatal(err)
			}
			kB += n
		}
	}
	return kB
}
