package limitstore

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/execution/ratelimit"
)

// usageReader is a [call.LimitStore] that tells how much of its limits is in use. A store of an embedding
// program does not.
type usageReader interface {
	// LimitUsage returns how much of each limit is in use, with at most n keys for each of its bounds. The
	// charges have no key.
	LimitUsage(limits []call.LimitCharge, n int) ([]state.LimitUsage, error)
	// StoredKey returns the key in LimitUsage for a charge.
	StoredKey(*call.LimitCharge) string
}

// Problems of [ratelimit.Usage]. The log has the cause.
const (
	problemNoKeys = "counted in a store that does not list its keys"
	problemAway   = "the database that counts for all replicas did not answer"
)

var errNoKeys = errors.New(problemNoKeys)

// usageCache has what the shared store last said about limits, so that operators who ask often cost it one
// read per limit in usageTTL.
type usageCache struct {
	now func() time.Time // fixed at creation

	// mu is held during a read, so that there is one at a time.
	mu    sync.Mutex
	known map[usageKey]knownUsage
	// failed is the time of the last read if it failed, else zero.
	failed time.Time
}

// usageKey identifies an answer.
type usageKey struct {
	ratelimit.ID
	burst, concurrency, n int
}

type knownUsage struct {
	at    time.Time
	usage ratelimit.Usage
}

func keyOfUsage(l *ratelimit.Limit, n int) usageKey {
	return usageKey{l.ID, l.Burst, l.Concurrency, n}
}

// recent reports whether an answer of a time is still used.
func (c *usageCache) recent(at time.Time) bool {
	age := c.now().Sub(at)
	return !at.IsZero() && age >= 0 && age < usageTTL
}

// sharedUsage returns how much of limits of the shared store is in use.
func (s *combinedStore) sharedUsage(limits []*ratelimit.Limit, n int, known func(*ratelimit.Limit) iter.Seq[string]) []ratelimit.Usage {
	c := &s.usage
	c.mu.Lock()
	defer c.mu.Unlock()
	var unread []*ratelimit.Limit
	for _, l := range limits {
		if !c.recent(c.known[keyOfUsage(l, n)].at) {
			unread = append(unread, l)
		}
	}
	problem := problemAway
	if len(unread) > 0 && !c.recent(c.failed) {
		switch err := s.readUsage(unread, n, known); {
		case errors.Is(err, errNoKeys):
			problem = problemNoKeys
		case err == nil:
			c.failed = time.Time{}
		default:
			if c.failed.IsZero() {
				s.logger.Warn("read usage of limits", slog.String("error", err.Error()))
			}
			c.failed = c.now()
		}
	}
	usages := make([]ratelimit.Usage, len(limits))
	for i, l := range limits {
		usages[i] = ratelimit.Usage{Shared: true, Problem: problem}
		if k := c.known[keyOfUsage(l, n)]; c.recent(k.at) {
			usages[i] = k.usage
		}
	}
	return usages
}

// readUsage reads how much of limits is in use; mu of the cache is held. It stops to wait after usageTimeout.
func (s *combinedStore) readUsage(limits []*ratelimit.Limit, n int, known func(*ratelimit.Limit) iter.Seq[string]) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), usageTimeout, errStoreTimeout)
	defer cancel()
	if s.limits.Load() == nil {
		if err := s.callStore(ctx, func(context.Context) error { return s.open() }, func() {}); err != nil {
			return err
		}
	}
	options := s.limits.Load()
	reader, ok := options.Store.(usageReader)
	if !ok {
		return errNoKeys
	}
	charges := make([]call.LimitCharge, len(limits))
	for i, l := range limits {
		charges[i] = call.LimitCharge{Limit: l.Name, Calls: l.Rate.Calls, Per: l.Rate.Per, Burst: l.Burst, Concurrency: l.Concurrency}
	}
	var read []state.LimitUsage
	err := s.callStore(ctx, func(context.Context) (err error) {
		read, err = reader.LimitUsage(charges, n)
		return err
	}, func() {})
	if err != nil {
		return err
	}
	c := &s.usage
	for key, k := range c.known {
		if !c.recent(k.at) {
			delete(c.known, key)
		}
	}
	if c.known == nil {
		c.known = map[usageKey]knownUsage{}
	}
	for i, l := range limits {
		texts := textsOf(&read[i], known(l), func(key string) string {
			charge := charges[i]
			charge.Key = keyOf(options.Secret, &ratelimit.Charge{Limit: l, Key: key})
			return reader.StoredKey(&charge)
		})
		usage := ratelimit.Usage{Shared: true, Keys: read[i].Keys, Rate: keyShares(read[i].Rate, texts), Concurrency: keyShares(read[i].Concurrency, texts)}
		c.known[keyOfUsage(l, n)] = knownUsage{c.now(), usage}
	}
	return nil
}

// textsOf returns the known keys of a usage, by their form in the store.
func textsOf(u *state.LimitUsage, known iter.Seq[string], stored func(key string) string) map[string]string {
	missing := map[string]bool{}
	for _, shares := range [][]state.LimitShare{u.Rate, u.Concurrency} {
		for _, share := range shares {
			if !share.Rest {
				missing[share.Key] = true
			}
		}
	}
	texts := map[string]string{}
	if len(missing) == 0 {
		return texts
	}
	for text := range known {
		if key := stored(text); missing[key] {
			texts[key] = text
			if delete(missing, key); len(missing) == 0 {
				break
			}
		}
	}
	return texts
}

func keyShares(shares []state.LimitShare, texts map[string]string) []ratelimit.KeyShare {
	var list []ratelimit.KeyShare
	for _, share := range shares {
		k := ratelimit.KeyShare{Key: share.Key, Rest: share.Rest, Share: share.Share}
		if text, known := texts[share.Key]; known {
			k.Key = text
		} else if k.Hashed = !share.Rest; share.Rest {
			k.Key = ""
		}
		list = append(list, k)
	}
	return list
}
