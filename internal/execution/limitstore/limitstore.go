// Package limitstore charges rate limits to a store that several servers share: the store of the embedding
// program, or the database with the state of the servers.
//
// [New] returns the [ratelimit.Store] of a server. It calls the [call.LimitStore] in separate
// goroutines, as the store may be slow, fail, panic or hang. A call that cannot be charged is denied,
// unless its limits fail open. Limits of one process are charged in memory, and without a shared store
// all limits.
package limitstore

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/base/state"
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
	// usageTTL is the least time between two reads of the usage of a limit from the shared store, and
	// usageTimeout bounds one read.
	usageTTL     = 5 * time.Second
	usageTimeout = 2 * time.Second
	// maxRead bounds the limits whose counters the shared store reads for one answer.
	maxRead = 100
	// maxLimitWait bounds the retry delay that a store may return.
	maxLimitWait = 365 * 24 * time.Hour
)

// Options say where a server counts its calls.
type Options struct {
	// Shared is the store of the embedding program; nil for none. It wins over States.
	Shared *call.SharedLimits
	// States is the state store of the server, which counts for all servers that share it. Nil for none.
	States *state.Lazy
	// Metrics counts failures of the shared store. Nil counts none.
	Metrics observe.Metrics
	Now     func() time.Time
	Logger  *slog.Logger
}

// New returns the limit store of a server.
func New(o Options) (ratelimit.Store, error) {
	s := &combinedStore{memory: ratelimit.NewMemory(o.Now), prefix: rand.Text() + "-", slots: make(chan struct{}, maxInFlight), metrics: o.Metrics, logger: o.Logger, usage: usageCache{now: o.Now}}
	switch {
	case o.Shared != nil:
		limits, err := checked(*o.Shared)
		if err != nil {
			return nil, err
		}
		s.limits.Store(limits)
		return s, nil
	case o.States != nil:
		s.states = o.States
		return s, nil
	}
	return s.memory, nil
}

// checked returns the limits with their defaults.
func checked(limits call.SharedLimits) (*call.SharedLimits, error) {
	switch {
	case limits.Store == nil:
		return nil, errors.New("the limit store is nil")
	case len(limits.Secret) < minSecret:
		return nil, fmt.Errorf("the limit secret has %d bytes; use at least %d random bytes", len(limits.Secret), minSecret)
	case limits.Timeout < 0:
		return nil, errors.New("the limit timeout is negative")
	}
	limits.Secret, limits.Timeout = slices.Clone(limits.Secret), cmp.Or(limits.Timeout, defaultTimeout)
	return &limits, nil
}

// Close waits until all calls of the shared store have ended, at most for the time of one call
// and one release, and prevents further calls.
func Close(ctx context.Context, limits ratelimit.Store) error {
	s, ok := limits.(*combinedStore)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*s.timeout())
	defer cancel()
	for range maxInFlight {
		select {
		case s.slots <- struct{}{}:
			continue // even if ctx has ended: an idle store is not slow
		default:
		}
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("close limit store: %w", ctx.Err())
		}
	}
	return nil
}

// combinedStore charges limits to a shared store, and local limits to memory.
type combinedStore struct {
	// Fixed at creation.
	states  *state.Lazy // nil with a store of the program
	memory  *ratelimit.Memory
	prefix  string // prefix of the names of places
	metrics observe.Metrics
	logger  *slog.Logger

	// limits belong to the program, or to the state store after its first use.
	limits atomic.Pointer[call.SharedLimits]
	// slots is filled by calls of the store in flight.
	slots chan struct{}
	calls atomic.Uint64
	// failing means that the last call of the store failed.
	failing atomic.Bool

	usage usageCache
}

// sharing is a state store that counts for all servers that share it.
type sharing interface {
	SharedLimits() (*call.SharedLimits, error)
}

// open sets limits to the limits of the state store.
func (s *combinedStore) open() error {
	store, err := s.states.Open()
	if err != nil {
		return err
	}
	shared, ok := store.(sharing)
	if !ok {
		return errors.New("the state store counts no limits")
	}
	limits, err := shared.SharedLimits()
	if err == nil {
		limits, err = checked(*limits)
	}
	if err == nil {
		s.limits.Store(limits)
	}
	return err
}

func (s *combinedStore) timeout() time.Duration {
	if limits := s.limits.Load(); limits != nil {
		return limits.Timeout
	}
	return defaultTimeout
}

// Take implements [ratelimit.Store]. The shared store comes last: a local rejection costs it
// nothing, and local charges can be released after its rejection. If it fails, limits that fail open
// are charged to memory.
func (s *combinedStore) Take(ctx context.Context, charges []ratelimit.Charge) (*ratelimit.Rejection, error) {
	if s.limits.Load() == nil && !s.states.Shared() {
		return s.memory.Take(ctx, charges)
	}
	shared, local := split(charges, func(c *ratelimit.Charge) bool { return !c.Limit.Local })
	if refusal, err := s.memory.Take(ctx, local); refusal != nil || err != nil {
		return refusal, err
	}
	refusal, err := s.takeShared(ctx, shared)
	if err != nil && ctx.Err() == nil {
		refusal, err = s.failed(ctx, shared, err)
	}
	if refusal != nil || err != nil {
		s.memory.Release(local)
	}
	return refusal, err
}

// failed decides a call that the shared store cannot count. Memory counts it if all its limits fail
// open.
func (s *combinedStore) failed(ctx context.Context, shared []ratelimit.Charge, err error) (*ratelimit.Rejection, error) {
	if !s.failing.Swap(true) {
		s.logger.Warn("reach limit store", slog.String("error", err.Error()))
	}
	outcome := observe.UncountedAllowed
	if slices.ContainsFunc(shared, func(c ratelimit.Charge) bool { return !c.Limit.FailOpen }) {
		outcome = observe.UncountedDenied
	}
	if s.metrics != nil {
		s.metrics.LimitStoreFailed(outcome)
	}
	if outcome == observe.UncountedDenied {
		return nil, err
	}
	for i := range shared {
		shared[i].Place = 0
	}
	return s.memory.Take(ctx, shared)
}

// Release implements [ratelimit.Store]. It waits for the store, so that the next call finds the
// freed place.
func (s *combinedStore) Release(charges []ratelimit.Charge) {
	shared, local := split(charges, func(c *ratelimit.Charge) bool { return c.Place != 0 })
	s.memory.Release(local)
	if len(shared) == 0 {
		return
	}
	limits := s.limits.Load()
	charged, _ := s.storeCharges(limits, shared)
	if placed := withPlaces(charged); len(placed) > 0 {
		s.releasePlaces(limits, placed)
	}
}

// SetLimits implements [ratelimit.Store]. A shared store expires its own counters.
func (s *combinedStore) SetLimits(limits []*ratelimit.Limit) { s.memory.SetLimits(limits) }

// Usage implements [ratelimit.Store].
func (s *combinedStore) Usage(limits []*ratelimit.Limit, n int, known func(*ratelimit.Limit) iter.Seq[string]) []ratelimit.Usage {
	usages := make([]ratelimit.Usage, len(limits))
	var shared []*ratelimit.Limit
	var at []int // the positions of shared
	for i, l := range limits {
		switch {
		case l.Local || s.limits.Load() == nil && !s.states.Shared():
			usages[i] = s.memory.UsageOf(l, n)
		case len(shared) == maxRead:
			usages[i] = ratelimit.Usage{Shared: true, Problem: fmt.Sprintf("only the counters of the first %d limits are read", maxRead)}
		default:
			shared, at = append(shared, l), append(at, i)
		}
	}
	for i, u := range s.sharedUsage(shared, n, known) {
		usages[at[i]] = u
	}
	return usages
}

// split moves the charges that are not shared to the end.
func split(charges []ratelimit.Charge, isShared func(*ratelimit.Charge) bool) (shared, local []ratelimit.Charge) {
	n := 0
	for i := range charges {
		if isShared(&charges[i]) {
			charges[n], charges[i] = charges[i], charges[n]
			n++
		}
	}
	return charges[:n], charges[n:]
}

func (s *combinedStore) takeShared(ctx context.Context, shared []ratelimit.Charge) (*ratelimit.Rejection, error) {
	if len(shared) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, min(s.timeout(), shared[0].MaxDuration), errStoreTimeout)
	defer cancel()
	if s.limits.Load() == nil {
		if err := s.callStore(ctx, func(context.Context) error { return s.open() }, func() {}); err != nil {
			return nil, fmt.Errorf("limit store: %w", err)
		}
	}
	number := s.calls.Add(1)
	for i := range shared {
		shared[i].Place = number
	}
	options := s.limits.Load()
	charged, limits := s.storeCharges(options, shared)
	if len(charged) == 0 {
		return nil, nil
	}
	var verdict call.LimitVerdict
	placed := withPlaces(charged)
	err := s.callStore(ctx, func(ctx context.Context) (err error) {
		verdict, err = options.Store.Take(ctx, charged)
		return err
	}, func() { s.releaseUncertain(options, placed) })
	if err != nil {
		return nil, fmt.Errorf("limit store: %w", err)
	}
	if !verdict.Taken && (verdict.Over < 0 || verdict.Over >= len(limits)) {
		return nil, fmt.Errorf("limit store: invalid charge index %d of %d", verdict.Over, len(limits))
	}
	if s.failing.Load() && s.failing.Swap(false) {
		s.logger.Info("limit store reached again")
	}
	if verdict.Taken {
		return nil, nil
	}
	refusal := &ratelimit.Rejection{Limit: limits[verdict.Over], ConcurrencyExceeded: verdict.Busy, RetryAfter: min(verdict.Wait, maxLimitWait)}
	if refusal.RetryAfter <= 0 {
		refusal.RetryAfter = time.Second
	}
	return refusal, nil
}

// storeCharges returns the charges for the shared store, and their limits. A charge without a
// rate and a concurrency is omitted.
func (s *combinedStore) storeCharges(options *call.SharedLimits, shared []ratelimit.Charge) (charged []call.LimitCharge, limits []*ratelimit.Limit) {
	for i := range shared {
		charge := &shared[i]
		l := charge.Limit
		if charge.RateCharged && l.Concurrency == 0 {
			continue
		}
		a := call.LimitCharge{Limit: l.Name, Key: keyOf(options.Secret, charge), Concurrency: l.Concurrency, Hold: charge.MaxDuration + holdMargin}
		if !charge.RateCharged {
			a.Calls, a.Per, a.Burst = l.Rate.Calls, l.Rate.Per, l.Burst
		}
		if l.Concurrency > 0 {
			a.Place = s.prefix + strconv.FormatUint(charge.Place, 36)
		}
		charged, limits = append(charged, a), append(limits, l)
	}
	return charged, limits
}

// keyOf returns the key of a charge for the shared store. Each limit has keys of its own: another expression
// of the key may have the same values.
func keyOf(secret []byte, charge *ratelimit.Charge) string {
	id := charge.Limit.ID
	text := fmt.Appendf(nil, "mcpd limit 2\x00%t\x00%d\x00%d\x00%d\x00%d\x00%s%s%s", id.Operator, id.Rate.Calls, id.Rate.Per, len(id.Name), len(id.Key), id.Name, id.Key, charge.Key)
	mac := hmac.New(sha256.New, secret)
	mac.Write(text)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func withPlaces(charged []call.LimitCharge) []call.LimitCharge {
	return slices.DeleteFunc(slices.Clone(charged), func(a call.LimitCharge) bool { return a.Place == "" })
}

var errStoreTimeout = errors.New("the store did not respond in time")

// callStore calls the shared store in a separate goroutine, as it may ignore its ctx, and waits
// until ctx ends. After an error or a timeout, onUncertain runs before the goroutine ends.
func (s *combinedStore) callStore(ctx context.Context, fn func(context.Context) error, onUncertain func()) error {
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

func (s *combinedStore) releasePlaces(options *call.SharedLimits, placed []call.LimitCharge) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), options.Timeout, errStoreTimeout)
	defer cancel()
	if err := s.callStore(ctx, func(ctx context.Context) error { return options.Store.Release(ctx, placed) }, func() {}); err != nil {
		s.logReleaseFailure(err)
	}
}

// releaseUncertain releases places that the store may have taken, in the goroutine that called
// Take.
func (s *combinedStore) releaseUncertain(options *call.SharedLimits, placed []call.LimitCharge) {
	if len(placed) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), options.Timeout)
	defer cancel()
	if err := recoverPanic(ctx, func(ctx context.Context) error { return options.Store.Release(ctx, placed) }); err != nil {
		s.logReleaseFailure(err)
	}
}

func (s *combinedStore) logReleaseFailure(err error) {
	s.logger.Warn("release rate limit lease", slog.String("error", err.Error()))
}
