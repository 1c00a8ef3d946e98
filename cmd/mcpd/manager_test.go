package main

import (
	"fmt"
	"net"
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// manager is a service manager that receives notifications of a daemon.
type manager struct {
	conn *net.UnixConn
	text []byte
}

// cmdManager listens like systemd on an abstract socket. Daemons started later notify
// it.
func cmdManager(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 || neg {
		ts.Fatalf("usage: manager INTERVAL")
	}
	interval, err := time.ParseDuration(args[0])
	ts.Check(err)
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram"}) // the kernel names it
	ts.Check(err)
	ts.Defer(func() { _ = conn.Close() })
	ts.Value(holderKey{}).(*holder).manager = &manager{conn: conn, text: make([]byte, 4096)}
	ts.Setenv("NOTIFY_SOCKET", conn.LocalAddr().String())
	ts.Setenv("WATCHDOG_USEC", fmt.Sprint(interval.Microseconds()))
}

// cmdTold requires the next messages to the manager to be these; * matches the rest of
// a word. A watchdog message may come at any time, and is matched only by its name.
func cmdTold(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 || neg {
		ts.Fatalf("usage: told MESSAGE...")
	}
	m := ts.Value(holderKey{}).(*holder).manager
	for _, want := range args {
		got, err := m.hear(want == alive)
		ts.Check(err)
		pattern := strings.ReplaceAll(regexp.QuoteMeta(want), `\*`, `\w+`)
		if !regexp.MustCompile(`\A` + pattern + `\z`).MatchString(got) {
			ts.Fatalf("the manager received %q, want %q", got, want)
		}
	}
}

const alive = "WATCHDOG=1"

// hear returns the next watchdog message or the next other message, with spaces between
// its assignments.
func (m *manager) hear(life bool) (string, error) {
	for {
		if err := m.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			return "", err
		}
		n, err := m.conn.Read(m.text)
		if err != nil {
			return "", fmt.Errorf("no message to the manager: %w", err)
		}
		said := strings.ReplaceAll(strings.TrimSuffix(string(m.text[:n]), "\n"), "\n", " ")
		if life == (said == alive) {
			return said, nil
		}
	}
}
