// Package systemd notifies the service manager with sd_notify(3): the service is ready,
// reloads, stops, or is alive.
//
// A [Notifier] sends the messages. A [Watchdog] sends watchdog messages while a check
// succeeds. Both are created from [Env], the environment of the service manager.
// Without them, nothing is sent.
//
// The package starts no service, does not read the environment, and does not accept
// sockets from the service manager.
//
// It is written by hand because the usual library reads the process environment, has no
// write deadline and no watchdog loop.
package systemd

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Env holds the environment variables of the service manager (sd_notify(3),
// sd_watchdog_enabled(3)), empty if not set. Child processes must not inherit them,
// because they could send messages for the service.
type Env struct {
	// Socket is NOTIFY_SOCKET, Interval WATCHDOG_USEC and Process WATCHDOG_PID.
	Socket, Interval, Process string
}

// sendTimeout is the timeout of a message.
const sendTimeout = 5 * time.Second

// Notifier sends messages to the service manager. A nil Notifier does nothing. It is
// safe for concurrent use.
type Notifier struct {
	// fixed at creation
	address *net.UnixAddr
	elapsed func() (time.Duration, error)
}

// New returns the notifier for the variables, or nil if NOTIFY_SOCKET is not set.
func New(v Env) (*Notifier, error) {
	if v.Socket == "" {
		return nil, nil
	}
	if !filepath.IsAbs(v.Socket) && (!strings.HasPrefix(v.Socket, "@") || len(v.Socket) == 1) {
		return nil, fmt.Errorf("NOTIFY_SOCKET is %q, not an absolute path or abstract socket; unset it, or run mcpd under systemd", v.Socket)
	}
	return &Notifier{address: &net.UnixAddr{Name: v.Socket, Net: "unixgram"}, elapsed: monotonicNow}, nil
}

// Ready reports that the service is ready, also after a reload. text is a status for
// people.
func (n *Notifier) Ready(text string) error { return n.send("READY=1", status(text)) }

// Reloading reports the start of a reload. [Notifier.Ready] must follow.
func (n *Notifier) Reloading() error {
	if n == nil {
		return nil
	}
	since, err := n.elapsed()
	if err != nil {
		return fmt.Errorf("notify systemd: read clock: %w", err)
	}
	return n.send("RELOADING=1", "MONOTONIC_USEC="+strconv.FormatInt(since.Microseconds(), 10))
}

// Stopping reports that the service stops.
func (n *Notifier) Stopping(text string) error { return n.send("STOPPING=1", status(text)) }

// Watchdog sends a watchdog message.
func (n *Notifier) Watchdog() error { return n.send("WATCHDOG=1") }

// status returns the STATUS assignment, which must be one line.
func status(text string) string { return "STATUS=" + strings.ReplaceAll(text, "\n", " ") }

// send sends one message. It does not keep a connection, since the service manager may
// restart.
func (n *Notifier) send(assignments ...string) error {
	if n == nil {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, n.address)
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	defer conn.Close()
	_ = conn.SetWriteDeadline(time.Now().Add(sendTimeout))
	if _, err := conn.Write([]byte(strings.Join(assignments, "\n") + "\n")); err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	return nil
}

// Watchdog sends watchdog messages while a check succeeds.
type Watchdog struct {
	// Interval is the watchdog timeout. Notify is called twice in that time.
	Interval time.Duration
	// Check returns nil if the service works. Its timeout is a quarter of Every.
	Check func(context.Context) error
	// Notify sends the watchdog message.
	Notify func() error
	// Logger logs failed checks.
	Logger *slog.Logger
}

// Run checks and sends until ctx is done. It repeats a failed check at once, so that
// two checks fit into the timeout.
func (w Watchdog) Run(ctx context.Context) {
	for ctx.Err() == nil {
		wait := w.Interval / 2
		if !w.beat(ctx) {
			wait = w.Interval / 16
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// beat checks once, and reports success.
func (w Watchdog) beat(ctx context.Context) bool {
	bounded, cancel := context.WithTimeout(ctx, w.Interval/4)
	defer cancel()
	err := w.Check(bounded)
	if ctx.Err() != nil {
		return true
	}
	if err != nil {
		w.Logger.Error("check server health", slog.String("error", err.Error()))
		return false
	}
	if err := w.Notify(); err != nil {
		w.Logger.Warn("notify systemd watchdog", slog.String("error", err.Error()))
	}
	return true
}

// WatchdogInterval returns the watchdog timeout of the process with this id, or 0 if there is
// none.
func (e Env) WatchdogInterval(pid int) (time.Duration, error) {
	if e.Interval == "" || e.Process != "" && e.Process != strconv.Itoa(pid) {
		return 0, nil
	}
	usec, err := strconv.ParseInt(e.Interval, 10, 64)
	if err != nil || usec <= 0 || usec > maxInterval.Microseconds() {
		return 0, fmt.Errorf("WATCHDOG_USEC is %q, not a number of microseconds up to %s; unset it, or run mcpd under systemd", e.Interval, maxInterval)
	}
	return time.Duration(usec) * time.Microsecond, nil
}

// maxInterval is the longest valid watchdog timeout.
const maxInterval = 365 * 24 * time.Hour
