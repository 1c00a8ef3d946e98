// Package limitstore charges rate limits to a store of the embedding program, which several servers
// may share.
//
// [New] returns the [ratelimit.Store] of a server. It calls the [call.LimitStore] of the program in
// separate goroutines, as the store may be slow, fail, panic or hang, and denies calls that cannot
// be charged. Limits of one process are charged in memory.
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
	// defaultTimeout is the default of [call.SharedLimits].Timeout.
	defaultTimeout = time.Second
	// minSecret is the minimum length of a secret in bytes.
	minSecret = 16
	// maxInFlight bounds the parallel calls of a store.
	maxInFlight = 1 << 10
	// holdMargin is the time of a call beyond its timeout, for example for hooks.
	holdMargin = 5 * time.Second
	// maxLimitWait bounds the retry delay that a store may return.
	maxLimitWait = 365 * 24 * time.Hour
)

// New returns the limit store of a server. If shared is nil, it counts in memory only.
func New(shared *call.SharedLimits, now func() time.Time, logger *slog.Logger) (ratelimit.Store, error) {
	memory := ratelimit.NewMemory(now)
	if shared == nil {
		return memory, nil
	}
	options := *shared
	switch {
	case options.Store == nil:
		return nil, errors.New("the limit store is nil")
	case len(options.Secret) < minSecret:
		return nil, fmt.Errorf("the limit secret has %d bytes; use at least %d random bytes", len(options.Secret), minSecret)
	case options.Timeout < 0:
		return nil, errors.New("the limit timeout is negative")
	case options.Timeout == 0:
		options.Timeout = defaultTimeout
	}
	options.Secret = slices.Clone(options.Secret)
	return &externalStore{SharedLimits: options, memory: memory, prefix: rand.Text() + "-", slots: make(chan struct{}, maxInFlight), logger: logger}, nil
}

// Close waits until all calls of the external store have ended, at most for the time of one call
// and one release, and prevents further calls.
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
			continue // even if ctx has ended: an idle store is not slow
		default:
		}
		select {
		case count.slots <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("close limit store: %w", ctx.Err())
		}
	}
	return nil
}

// externalStore charges limits to the store of the program, and local limits to memory.
type externalStore struct {
	// Fixed at creation.
	call.SharedLimits
	memory *ratelimit.Memory
	prefix string // prefix of lease names
	logger *slog.Logger

	// slots is filled by calls of the store in flight.
	slots chan struct{}
	calls atomic.Uint64
}

// Take implements [ratelimit.Store]. The external store comes last: a local rejection costs it
// nothing, and local charges can be released after its rejection.
func (s *externalStore) Take(ctx context.Context, charges []ratelimit.Charge) (*ratelimit.Rejection, error) {
	shared, local := splitLocal(charges)
	if refusal, err := s.memory.Take(ctx, local); refusal != nil || err != nil {
		return refusal, err
	}
	number := s.calls.Add(1)
	for i := range shared {
		shared[i].Lease = number
	}
	refusal, err := s.takeShared(ctx, shared)
	if refusal != nil || err != nil {
		s.memory.Release(local)
	}
	return refusal, err
}

// Release implements [ratelimit.Store]. It waits for the store, so that the next call finds the
// freed place.
func (s *externalStore) Release(charges []ratelimit.Charge) {
	shared, local := splitLocal(charges)
	s.memory.Release(local)
	charged, _ := s.storeCharges(shared)
	if leased := leases(charged); len(leased) > 0 {
		s.releaseLeases(leased)
	}
}

// SetLimits implements [ratelimit.Store]. The external store expires its own counters.
func (s *externalStore) SetLimits(limits []*ratelimit.Limit) {
	s.memory.SetLimits(slices.DeleteFunc(slices.Clone(limits), func(l *ratelimit.Limit) bool { return !l.Local }))
}

// splitLocal moves the local charges to the end.
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

func (s *externalStore) takeShared(ctx context.Context, shared []ratelimit.Charge) (*ratelimit.Rejection, error) {
	charged, limits := s.storeCharges(shared)
	if len(charged) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, min(s.Timeout, shared[0].MaxDuration), errStoreTimeout)
	defer cancel()
	var verdict call.LimitVerdict
	leased := leases(charged)
	err := s.callStore(ctx, func(ctx context.Context) (err error) {
		verdict, err = s.Store.Take(ctx, charged)
		return err
	}, func() { s.releaseUncertain(leased) })
	switch {
	case err != nil:
		return nil, fmt.Errorf("limit store: %w", err)
	case verdict.Taken:
		return nil, nil
	case verdict.Over < 0 || verdict.Over >= len(limits):
		return nil, fmt.Errorf("limit store: invalid charge index %d of %d", verdict.Over, len(limits))
	}
	refusal := &ratelimit.Rejection{Limit: limits[verdict.Over], ConcurrencyExceeded: verdict.Busy, RetryAfter: min(verdict.Wait, maxLimitWait)}
	if refusal.RetryAfter <= 0 {
		refusal.RetryAfter = time.Second
	}
	return refusal, nil
}

// storeCharges returns the charges for the external store, and their limits. A charge without a
// rate and a concurrency is omitted.
func (s *externalStore) storeCharges(shared []ratelimit.Charge) (charged []call.LimitCharge, limits []*ratelimit.Limit) {
	for i := range shared {
		charge := &shared[i]
		l := charge.Limit
		if charge.RateCharged && l.Concurrency == 0 {
			continue
		}
		a := call.LimitCharge{Limit: l.Name, Key: s.key(charge), Concurrency: l.Concurrency, Hold: charge.MaxDuration + holdMargin}
		if !charge.RateCharged {
			a.Calls, a.Per, a.Burst = l.Rate.Calls, l.Rate.Per, l.Burst
		}
		if l.Concurrency > 0 {
			a.Place = s.prefix + strconv.FormatUint(charge.Lease, 36)
		}
		charged, limits = append(charged, a), append(limits, l)
	}
	return charged, limits
}

func (s *externalStore) key(charge *ratelimit.Charge) string {
	id := charge.Limit.ID
	text := fmt.Appendf(nil, "mcpd limit 1\x00%t\x00%d\x00%d\x00%d\x00%s%s", id.Operator, id.Rate.Calls, id.Rate.Per, len(id.Name), id.Name, charge.Key)
	mac := hmac.New(sha256.New, s.Secret)
	mac.Write(text)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func leases(charged []call.LimitCharge) []call.LimitCharge {
	return slices.DeleteFunc(slices.Clone(charged), func(a call.LimitCharge) bool { return a.Place == "" })
}

var errStoreTimeout = errors.New("the store did not respond in time")

// callStore calls the external store in a separate goroutine, as it may ignore its ctx, and waits
// until ctx ends. After an error or a timeout, onUncertain runs before the goroutine ends.
func (s *externalStore) callStore(ctx context.Context, fn func(context.Context) error, onUncertain func()) error {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	answer := make(chan error) // unbuffered: a result without a receiver is dropped
	go func() {
		defer func() { <-s.slots }()
		err := recoverPanic(ctx, fn)
		select {
		case answer <- err:
			if err != nil {
				onUncertain()
			}
		case <-ctx.Done():
			onUncertain()
		}
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// recoverPanic runs a function of the program, and converts a panic to an error.
func recoverPanic(ctx context.Context, fn func(context.Context) error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	return fn(ctx)
}

func (s *externalStore) releaseLeases(leased []call.LimitCharge) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), s.Timeout, errStoreTimeout)
	defer cancel()
	if err := s.callStore(ctx, func(ctx context.Context) error { return s.Store.Release(ctx, leased) }, func() {}); err != nil {
		s.logReleaseFailure(err)
	}
}

// releaseUncertain releases places that the store may have taken, in the goroutine that called
// Take.
func (s *externalStore) releaseUncertain(leased []call.LimitCharge) {
	if len(leased) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.Timeout)
	defer cancel()
	if err := recoverPanic(ctx, func(ctx context.Context) error { return s.Store.Release(ctx, leased) }); err != nil {
		s.logReleaseFailure(err)
	}
}

func (s *externalStore) logReleaseFailure(err error) {
	s.logger.Warn("release rate limit lease", slog.String("error", err.Error()))
}
