package systemd

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Variables are those of the environment by which the manager talks to a service
// (sd_notify(3), sd_watchdog_enabled(3)); each is empty where it is not set. What
// the service starts must not have them: it would speak in its name.
type Variables struct {
	// Socket is NOTIFY_SOCKET, Interval WATCHDOG_USEC and Process WATCHDOG_PID.
	Socket, Interval, Process string
}

// sendTime is how long the manager may take to receive a message.
const sendTime = 5 * time.Second

// Notifier tells the manager how the service is. A nil Notifier tells nobody. It
// is safe for concurrent use.
type Notifier struct {
	// fixed at creation
	address *net.UnixAddr
	elapsed func() (time.Duration, error)
}

// New returns the notifier that the variables ask for, nil when they ask for none.
func New(v Variables) (*Notifier, error) {
	if v.Socket == "" {
		return nil, nil
	}
	if !filepath.IsAbs(v.Socket) && (!strings.HasPrefix(v.Socket, "@") || len(v.Socket) == 1) {
		return nil, fmt.Errorf("NOTIFY_SOCKET is %q, which is neither an absolute path nor an abstract socket; unset it, or run mcpd under systemd", v.Socket)
	}
	return &Notifier{address: &net.UnixAddr{Name: v.Socket, Net: "unixgram"}, elapsed: elapsed}, nil
}

// Ready says that the service does its work, or does it again after a reload; text
// is for people.
func (n *Notifier) Ready(text string) error { return n.send("READY=1", status(text)) }

// Reloading says that a reload begins. [Notifier.Ready] must follow.
func (n *Notifier) Reloading() error {
	if n == nil {
		return nil
	}
	since, err := n.elapsed()
	if err != nil {
		return fmt.Errorf("tell systemd: read the clock: %w", err)
	}
	return n.send("RELOADING=1", "MONOTONIC_USEC="+strconv.FormatInt(since.Microseconds(), 10))
}

// Stopping says that the service ends.
func (n *Notifier) Stopping(text string) error { return n.send("STOPPING=1", status(text)) }

// Alive says that the service does its work.
func (n *Notifier) Alive() error { return n.send("WATCHDOG=1") }

// status is the assignment of text for people, which is one line.
func status(text string) string { return "STATUS=" + strings.ReplaceAll(text, "\n", " ") }

// send sends one message. The manager may be another process than before, so that
// no connection is kept.
func (n *Notifier) send(assignments ...string) error {
	if n == nil {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, n.address)
	if err != nil {
		return fmt.Errorf("tell systemd: %w", err)
	}
	defer conn.Close()
	_ = conn.SetWriteDeadline(time.Now().Add(sendTime))
	if _, err := conn.Write([]byte(strings.Join(assignments, "\n") + "\n")); err != nil {
		return fmt.Errorf("tell systemd: %w", err)
	}
	return nil
}
