package limitstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/mcpd/mcpd/call"
)

// errLimitSilence is why a store is waited for no longer.
var errLimitSilence = errors.New("the store has not answered in time")

// ask asks the store of the program in a goroutine of its own, since a store may not
// heed its ctx, and waits for the answer until ctx ends. Where there was none, or an
// error, unsure runs before the goroutine ends.
func (c *counter) ask(ctx context.Context, question func(context.Context) error, unsure func()) error {
	select {
	case c.room <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	answer := make(chan error) // an answer that nobody takes is none
	go func() {
		defer func() { <-c.room }()
		err := guarded(ctx, question)
		select {
		case answer <- err:
			if err != nil {
				unsure()
			}
		case <-ctx.Done():
			unsure()
		}
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// guarded runs a function of the program.
func guarded(ctx context.Context, question func(context.Context) error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("it panicked: %v", cause)
		}
	}()
	return question(ctx)
}

// giveBack has the store take places back.
func (c *counter) giveBack(held []call.LimitCharge) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), c.Timeout, errLimitSilence)
	defer cancel()
	if err := c.ask(ctx, func(ctx context.Context) error { return c.Store.Release(ctx, held) }, func() {}); err != nil {
		c.untaken(err)
	}
}

// drop has the store take places back that it may have given, on the goroutine that
// asked for them.
func (c *counter) drop(held []call.LimitCharge) {
	if len(held) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
	defer cancel()
	if err := guarded(ctx, func(ctx context.Context) error { return c.Store.Release(ctx, held) }); err != nil {
		c.untaken(err)
	}
}

// untaken tells that a place is not given back.
func (c *counter) untaken(err error) {
	c.logger.Warn("the store of the limits has not taken a place back, which ends by itself", slog.String("error", err.Error()))
}
