// Package ratelimit counts calls against limits.
//
// A [Limit] restricts the rate of calls, their burst, and how many may run at once. A [Store] takes
// a [Charge], which is one call for one key of one limit. [Memory] is the store of one process;
// package limitstore shares limits between processes.
//
// A call with several limits is charged to all of them or to none. A counter is removed only if
// that has no effect: its burst is full, and none of its calls is running. So a flood of keys can
// neither exceed the memory bound nor reset the counters of a caller who is over the limit.
//
// The caller of this package selects the limits of a call, and their keys.
//
// The algorithm (GCRA) is implemented here, as x/time/rate needs one object per bucket. It cannot
// charge several limits atomically, count concurrent calls, or remove idle keys safely.
package ratelimit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"time"
)

// Rate is a number of calls per time. The zero Rate means no limit.
type Rate struct {
	Calls int
	Per   time.Duration
}

// interval returns the time until one more call is possible, rounded up so that the rate is never
// exceeded.
func (r Rate) interval() time.Duration {
	if r.Calls <= 0 {
		return 0
	}
	return (r.Per + time.Duration(r.Calls) - 1) / time.Duration(r.Calls)
}

// String returns the rate in words, such as "60 calls a minute".
func (r Rate) String() string {
	per := r.Per.String()
	switch r.Per {
	case time.Second:
		per = "a second"
	case time.Minute:
		per = "a minute"
	case time.Hour:
		per = "an hour"
	}
	return calls(r.Calls) + " " + per
}

func calls(n int) string {
	if n == 1 {
		return "1 call"
	}
	return fmt.Sprintf("%d calls", n)
}

// ID identifies a limit. Limits with equal IDs share their counters, so that counters survive a
// reload.
type ID struct {
	Name string
	// Operator reports that the limit is in mcpd.hcl.
	Operator bool
	Rate     Rate
	// Key is the expression of the limit. The keys of another expression may have arguments, which an
	// edited limit must not show.
	Key string
}

// Limit is one limit. It is immutable.
type Limit struct {
	ID
	// Burst is the number of calls that may come at once, at least one if there is a rate.
	Burst int
	// Concurrency is the number of calls that may run at once; 0 means no limit.
	Concurrency int
	// Reason is the message for a rejected caller; empty for a generated one.
	Reason string
	// Local reports that the limit applies to this process only.
	Local bool
	// FailOpen reports that calls are counted in memory while a shared store fails. Otherwise they
	// are denied.
	FailOpen bool
}

// Charge is one call for one key of a limit.
type Charge struct {
	Limit *Limit
	// Key is short; see [Key].
	Key string
	// RateCharged reports that an earlier leg of the call was charged to the rate. Only the
	// concurrency is charged.
	RateCharged bool
	MaxDuration time.Duration
	// Place is the number of the place that the call holds in a shared store: Take sets it, and Release
	// reads it. It is 0 in Memory.
	Place uint64

	// counters and slot are the location of the key in Memory; slot may be the shared slot.
	counters *counters
	slot     int
}

func (c *Charge) interval() time.Duration {
	if c.RateCharged {
		return 0
	}
	return c.Limit.Rate.interval()
}

// maxKey bounds a key in bytes.
const maxKey = 128

// Key returns a text as a key: unchanged if it is short, else its hash.
func Key(text string) string {
	if len(text) <= maxKey {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return string(sum[:])
}

// Rejection is the limit that rejects a call.
type Rejection struct {
	Limit *Limit
	// ConcurrencyExceeded reports that too many calls run at once, not that the rate is exceeded.
	ConcurrencyExceeded bool
	// RetryAfter is the time until a retry may succeed, an estimate if ConcurrencyExceeded is set.
	RetryAfter time.Duration
}

// Message returns the message for the caller.
func (r *Rejection) Message() string {
	text := r.Limit.Reason
	switch {
	case text != "":
	case r.ConcurrencyExceeded:
		text = fmt.Sprintf("over the limit of %s at once", calls(r.Limit.Concurrency))
	default:
		text = fmt.Sprintf("over the limit of %s", r.Limit.Rate)
	}
	return fmt.Sprintf("%s; try again in %d s", text, max(1, (r.RetryAfter+time.Second-1)/time.Second))
}

// Store counts calls. It is safe for concurrent use.
type Store interface {
	// Take makes all charges, which have different limits, or none. A rejection names the limit
	// with the longest wait. After an error, the call must not be made, and Release is not called.
	// The store may reorder the charges.
	Take(ctx context.Context, charges []Charge) (*Rejection, error)
	// Release ends a call with the charges of a successful Take. It is called once per call.
	Release(charges []Charge)
	// SetLimits removes the counters of all other limits. Calls that are charged to them may still
	// run.
	SetLimits(limits []*Limit)
	// Usage returns how much of each limit is in use, with at most n keys for each of its bounds. A store
	// that has only hashes of the keys compares them with the hashes of the known keys of a limit.
	Usage(limits []*Limit, n int, known func(*Limit) iter.Seq[string]) []Usage
}

// Usage is how much of a limit is in use at one moment.
type Usage struct {
	// Shared reports that another store counts. If Problem is not empty, the keys are not known, and
	// Problem says why.
	Shared  bool
	Problem string
	// Keys is the number of keys with counters.
	Keys int
	// Rate and Concurrency have the keys with the largest shares in use, largest first.
	Rate, Concurrency []KeyShare
}

// KeyShare is the share of a bound that a key uses, from 0 to 1. Rest stands for all keys without a
// separate counter. Hashed reports that Key is a hash of a key that is not known.
type KeyShare struct {
	Key    string
	Rest   bool
	Hashed bool
	Share  float64
}
