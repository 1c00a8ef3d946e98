package main

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// A call is approved at a terminal.
func TestCall_atATerminal(t *testing.T) {
	t.Parallel()
	program, dir := buildDaemon(t), t.TempDir()
	const text = `
tool "wipe" { run = "return 'wiped';" }
policy "wipes" {
  requires_approval = "true"
  reason            = "It cannot be undone."
}
`
	if err := os.WriteFile(filepath.Join(dir, "t.hcl"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	terminal, name := openTerminal(t)
	screen, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	mcpd := exec.CommandContext(ctx, program, "call", "wipe", "--tools", dir)
	var out bytes.Buffer
	mcpd.Stdin, mcpd.Stderr, mcpd.Stdout = screen, screen, &out
	if err := mcpd.Start(); err != nil {
		t.Fatal(err)
	}
	screen.Close()
	var seen strings.Builder
	for r := bufio.NewReader(terminal); !strings.Contains(seen.String(), "[y/n]"); {
		b, err := r.ReadByte()
		if err != nil {
			t.Fatalf("%v after %q", err, seen.String())
		}
		seen.WriteByte(b)
	}
	if _, err := terminal.WriteString("y\n"); err != nil {
		t.Fatal(err)
	}
	if err := mcpd.Wait(); err != nil || out.String() != "wiped\n" {
		t.Errorf("%v, %q", err, out.String())
	}
	if !strings.Contains(seen.String(), "It cannot be undone.") {
		t.Errorf("the terminal shows %q", seen.String())
	}
}

// openTerminal opens a pseudo-terminal and returns the master and the name of the
// slave.
func openTerminal(t *testing.T) (*os.File, string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	var locked, n int32
	for request, value := range map[uintptr]*int32{syscall.TIOCSPTLCK: &locked, syscall.TIOCGPTN: &n} {
		if _, _, err := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), request, uintptr(unsafe.Pointer(value))); err != 0 {
			t.Fatal(err)
		}
	}
	return master, "/dev/pts/" + strconv.Itoa(int(n))
}
