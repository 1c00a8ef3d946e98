// Package systemd tells the service manager how the service is, as sd_notify(3)
// has it: that it is ready, reloads, stops, and is alive.
//
// A [Notifier] sends the messages; a [Pulse] sends one again and again for as
// long as a check finds that the service does its work. Both are made of
// [Variables], by which the manager says where it listens. Without them there is
// nothing to tell, and nothing is sent.
//
// The package starts no service, reads no environment, and takes no sockets from
// the manager.
//
// It is written by hand: the usual library reads the environment of the process, sets no
// deadline for a write, and has no loop for the watchdog.
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

// Pulse says that the service is alive while a check finds that it is.
type Pulse struct {
	// Every is the time within which the manager wants to hear something. It is
	// told twice in that time.
	Every time.Duration
	// Check returns nil when the service does its work. It has a quarter of Every.
	Check func(context.Context) error
	// Beat tells the manager.
	Beat func() error
	// Logger is told of checks that fail.
	Logger *slog.Logger
}

// Run looks and tells until ctx is done. A check that fails is made again at once,
// so that there is time for two before the manager has heard nothing for too long.
func (p Pulse) Run(ctx context.Context) {
	for ctx.Err() == nil {
		wait := p.Every / 2
		if !p.beat(ctx) {
			wait = p.Every / 16
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// beat checks once, and reports whether all is well.
func (p Pulse) beat(ctx context.Context) bool {
	bounded, cancel := context.WithTimeout(ctx, p.Every/4)
	defer cancel()
	err := p.Check(bounded)
	if ctx.Err() != nil {
		return true
	}
	if err != nil {
		p.Logger.Error("the server does not answer; systemd is not told that it is alive", slog.String("error", err.Error()))
		return false
	}
	if err := p.Beat(); err != nil {
		p.Logger.Warn("systemd cannot be told that the server is alive", slog.String("error", err.Error()))
	}
	return true
}

// Every returns how long the manager waits for a sign of life of the process with
// an id, 0 when it waits for none.
func (v Variables) Every(pid int) (time.Duration, error) {
	if v.Interval == "" || v.Process != "" && v.Process != strconv.Itoa(pid) {
		return 0, nil
	}
	usec, err := strconv.ParseInt(v.Interval, 10, 64)
	if err != nil || usec <= 0 || usec > maxInterval.Microseconds() {
		return 0, fmt.Errorf("WATCHDOG_USEC is %q, which is no number of microseconds up to %s; unset it, or run mcpd under systemd", v.Interval, maxInterval)
	}
	return time.Duration(usec) * time.Microsecond, nil
}

// maxInterval is the longest time that is believed to be meant.
const maxInterval = 365 * 24 * time.Hour
