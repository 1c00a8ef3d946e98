// Package limitstore counts the limits of a server by a store of the program that embeds
// it, which several servers may share.
//
// [New] returns the [ratelimit.Store] that a server counts by. It asks the [call.LimitStore] of the
// program, which may be slow, fail, panic or not answer at all, in goroutines of their own,
// and denies what could not be counted. What is for one process alone is counted in memory.
package limitstore

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/execution/ratelimit"
)

const (
	// limitPatience is the default of [call.SharedLimits].Timeout.
	defaultTimeout = time.Second
	// limitSecret is how many bytes a secret has at least.
	minSecret = 16
	// limitQuestions bounds what a store is asked at the same time.
	maxInFlight = 1 << 10
	// holdMargin is for what a call does beside running its body.
	holdMargin = 5 * time.Second
	// maxLimitWait bounds what a store may have callers wait.
	maxLimitWait = 365 * 24 * time.Hour
)

// New returns what counts the limits of a server: in memory, and by a store of the program
// unless shared is nil.
func New(shared *call.SharedLimits, now func() time.Time, logger *slog.Logger) (ratelimit.Store, error) {
	memory := ratelimit.NewMemory(now)
	if shared == nil {
		return memory, nil
	}
	own := *shared
	switch {
	case own.Store == nil:
		return nil, errors.New("the store of the limits is nil")
	case len(own.Secret) < minSecret:
		return nil, fmt.Errorf("the secret of the limits has %d bytes; give it %d random ones at least", len(own.Secret), minSecret)
	case own.Timeout < 0:
		return nil, errors.New("the timeout of the limits is negative")
	case own.Timeout == 0:
		own.Timeout = defaultTimeout
	}
	own.Secret = slices.Clone(own.Secret)
	return &externalStore{SharedLimits: own, memory: memory, prefix: rand.Text() + "-", slots: make(chan struct{}, maxInFlight), logger: logger}, nil
}

// Close waits until a store is asked nothing any more, for as long as a question
// and what gives its places back may take, and has it asked nothing again.
func Close(ctx context.Context, limits ratelimit.Store) error {
	count, ok := limits.(*externalStore)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*count.Timeout)
	defer cancel()
	for range maxInFlight {
		select {
		case count.slots <- struct{}{}:
			continue // also where ctx has ended: a store that is asked nothing is not slow
		default:
		}
		select {
		case count.slots <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("the store of the limits has not answered: %w", ctx.Err())
		}
	}
	return nil
}

// counter counts by a store of the program, and in memory what is local.
type externalStore struct {
	// Fixed at creation.
	call.SharedLimits
	memory *ratelimit.Memory
	prefix string // what the names of places begin with
	logger *slog.Logger

	// room is held by what the store is asked.
	slots chan struct{}
	calls atomic.Uint64
}

// Take implements [ratelimit.Store]. The store is asked last: what is refused here
// costs it nothing, and what it refuses can be given back here.
func (c *externalStore) Take(ctx context.Context, charges []ratelimit.Charge) (*ratelimit.Rejection, error) {
	shared, local := splitLocal(charges)
	if refusal, err := c.memory.Take(ctx, local); refusal != nil || err != nil {
		return refusal, err
	}
	place := c.calls.Add(1)
	for i := range shared {
		shared[i].Lease = place
	}
	refusal, err := c.takeShared(ctx, shared)
	if refusal != nil || err != nil {
		c.memory.Release(local)
	}
	return refusal, err
}

// Release implements [ratelimit.Store]. It waits for the store, so that who calls again
// finds the place that it had.
func (c *externalStore) Release(charges []ratelimit.Charge) {
	shared, local := splitLocal(charges)
	c.memory.Release(local)
	asked, _ := c.storeCharges(shared)
	if held := leases(asked); len(held) > 0 {
		c.releaseLeases(held)
	}
}

// Keep implements [ratelimit.Store]. What the store of the program holds ends by itself.
func (c *externalStore) SetLimits(limits []*ratelimit.Limit) {
	c.memory.SetLimits(slices.DeleteFunc(slices.Clone(limits), func(l *ratelimit.Limit) bool { return !l.Local }))
}

// apart puts what is local behind what is shared.
func splitLocal(charges []ratelimit.Charge) (shared, local []ratelimit.Charge) {
	n := 0
	for i := range charges {
		if !charges[i].Limit.Local {
			charges[n], charges[i] = charges[i], charges[n]
			n++
		}
	}
	return charges[:n], charges[n:]
}

func (c *externalStore) takeShared(ctx context.Context, shared []ratelimit.Charge) (*ratelimit.Rejection, error) {
	asked, limits := c.storeCharges(shared)
	if len(asked) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, min(c.Timeout, shared[0].MaxDuration), errStoreTimeout)
	defer cancel()
	var verdict call.LimitVerdict
	held := leases(asked)
	err := c.callStore(ctx, func(ctx context.Context) (err error) {
		verdict, err = c.Store.Take(ctx, asked)
		return err
	}, func() { c.releaseUncertain(held) })
	switch {
	case err != nil:
		return nil, fmt.Errorf("limit store: %w", err)
	case verdict.Taken:
		return nil, nil
	case verdict.Over < 0 || verdict.Over >= len(limits):
		return nil, fmt.Errorf("limit store: it refuses charge %d of %d", verdict.Over, len(limits))
	}
	refusal := &ratelimit.Rejection{Limit: limits[verdict.Over], ConcurrencyExceeded: verdict.Busy, RetryAfter: min(verdict.Wait, maxLimitWait)}
	if refusal.RetryAfter <= 0 {
		refusal.RetryAfter = time.Second
	}
	return refusal, nil
}

// asked returns charges as a store knows them, and their limits. A call that has paid
// is nothing to those that count a rate alone.
func (c *externalStore) storeCharges(shared []ratelimit.Charge) (asked []call.LimitCharge, limits []*ratelimit.Limit) {
	for i := range shared {
		charge := &shared[i]
		l := charge.Limit
		if charge.RateCharged && l.Concurrency == 0 {
			continue
		}
		a := call.LimitCharge{Limit: l.Name, Key: c.key(charge), Concurrency: l.Concurrency, Hold: charge.MaxDuration + holdMargin}
		if !charge.RateCharged {
			a.Calls, a.Per, a.Burst = l.Rate.Calls, l.Rate.Per, l.Burst
		}
		if l.Concurrency > 0 {
			a.Place = c.prefix + strconv.FormatUint(charge.Lease, 36)
		}
		asked, limits = append(asked, a), append(limits, l)
	}
	return asked, limits
}

func (c *externalStore) key(charge *ratelimit.Charge) string {
	id := charge.Limit.ID
	text := fmt.Appendf(nil, "mcpd limit 1\x00%t\x00%d\x00%d\x00%d\x00%s%s", id.Operator, id.Rate.Calls, id.Rate.Per, len(id.Name), id.Name, charge.Key)
	mac := hmac.New(sha256.New, c.Secret)
	mac.Write(text)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func leases(asked []call.LimitCharge) []call.LimitCharge {
	return slices.DeleteFunc(slices.Clone(asked), func(a call.LimitCharge) bool { return a.Place == "" })
}

var errStoreTimeout = errors.New("the store has not answered in time")

// ask asks the store of the program in a goroutine of its own, since a store may not
// heed its ctx, and waits for the answer until ctx ends. Where there was none, or an
// error, unsure runs before the goroutine ends.
func (c *externalStore) callStore(ctx context.Context, question func(context.Context) error, unsure func()) error {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	answer := make(chan error) // an answer that nobody takes is none
	go func() {
		defer func() { <-c.slots }()
		err := recoverPanic(ctx, question)
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
func recoverPanic(ctx context.Context, question func(context.Context) error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("it panicked: %v", cause)
		}
	}()
	return question(ctx)
}

func (c *externalStore) releaseLeases(held []call.LimitCharge) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), c.Timeout, errStoreTimeout)
	defer cancel()
	if err := c.callStore(ctx, func(ctx context.Context) error { return c.Store.Release(ctx, held) }, func() {}); err != nil {
		c.logReleaseFailure(err)
	}
}

// drop has the store take places back that it may have given, on the goroutine that
// asked for them.
func (c *externalStore) releaseUncertain(held []call.LimitCharge) {
	if len(held) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
	defer cancel()
	if err := recoverPanic(ctx, func(ctx context.Context) error { return c.Store.Release(ctx, held) }); err != nil {
		c.logReleaseFailure(err)
	}
}

func (c *externalStore) logReleaseFailure(err error) {
	c.logger.Warn("the store of the limits has not taken a place back, which ends by itself", slog.String("error", err.Error()))
}
