package systemd

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"
)

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
