// Package ratelimit counts calls against limits.
//
// A [Limit] says how many calls may be made in a time, how many of them in a
// burst, and how many may run at once. A [Store] counts a [Charge], which is a
// call under one key of one limit. [Memory] is the store of one process; that of
// a program which has several processes count together is asked by package engine.
//
// A call that several limits are about is charged to all of them or to none.
// What is counted under a key is forgotten only when that changes nothing: when
// its burst is whole again and none of its calls runs. So a flood of keys can
// neither outgrow the store nor wash away the counters of a caller who is over
// its limit.
//
// Which limits are about a call, and what its keys are, is decided elsewhere.
//
// The algorithm (GCRA) is written by hand: x/time/rate has one bucket an object. It
// cannot charge several limits or none, count concurrent calls, or drop idle keys
// safely.
package ratelimit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"
)

// Rate is how many calls may be made in a time. The zero Rate is no bound.
type Rate struct {
	Calls int
	Per   time.Duration
}

// interval is the time in which one call becomes possible again, rounded up, so
// that no more than the rate ever are.
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

// ID tells limits apart. Limits of equal ID share their counters, so that these
// outlive the files that a limit was read from.
type ID struct {
	Name string
	// Operator says that the limit stands in the operator's file.
	Operator bool
	Rate     Rate
}

// Limit is one limit. It is immutable.
type Limit struct {
	ID
	// Burst is how many calls may be made in no time, at least one where there
	// is a rate.
	Burst int
	// Concurrency is how many calls may run at once; 0 is no bound.
	Concurrency int
	// Reason is what a refused caller is told; empty for words that are made of
	// the limit.
	Reason string
	// Local says that the limit is about what this process runs, and no other
	// process counts for it.
	Local bool
}

// Charge is one call under one key of a limit.
type Charge struct {
	Limit *Limit
	// Key is short; see [Key].
	Key string
	// Paid says that the rate has counted the call already, which goes on: only how
	// many calls run is asked.
	RateCharged bool
	MaxDuration time.Duration
	// Place is for stores beside Memory: what Take leaves here, Release finds.
	Lease uint64

	// counters are where Memory has found the key at slot, or in the bucket for
	// what there is no room for.
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

// Key returns a text as a key: itself when it is short, and otherwise its hash.
func Key(text string) string {
	if len(text) <= maxKey {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return string(sum[:])
}

// Refusal is why a call may not be made now.
type Rejection struct {
	Limit *Limit
	// Busy says that too many calls run at once, rather than that too many were made.
	ConcurrencyExceeded bool
	// Wait is when to come back. For a busy limit it is a guess.
	RetryAfter time.Duration
}

func (r *Rejection) Message() string {
	said := r.Limit.Reason
	switch {
	case said != "":
	case r.ConcurrencyExceeded:
		said = fmt.Sprintf("over the limit of %s at once", calls(r.Limit.Concurrency))
	default:
		said = fmt.Sprintf("over the limit of %s", r.Limit.Rate)
	}
	return fmt.Sprintf("%s; try again in %d s", said, max(1, (r.RetryAfter+time.Second-1)/time.Second))
}

// Store counts calls. It is safe for concurrent use.
type Store interface {
	// Take makes all charges, which are of different limits, or none. A refusal
	// names, of the limits that are against the call, the one with the longest
	// wait. After an error, of a store that cannot be asked, the call must not be
	// made, and Release is not called. The store may reorder the charges.
	Take(ctx context.Context, charges []Charge) (*Rejection, error)
	// Release says that a call for which Take made the charges has ended. It is
	// called once for each.
	Release(charges []Charge)
	// Keep forgets the counters of all other limits. Calls that are charged to
	// them may still run.
	SetLimits(limits []*Limit)
}
