package call

import (
	"context"
	"time"
)

// SharedLimits configures an external store for the limit blocks of files, so that several servers
// enforce one limit together.
//
// A call that cannot be counted is denied with POLICY_DENIED and the advice to retry in a second;
// the log has the cause. If all its limits have on_store_failure = "allow", the server counts it in
// memory instead.
//
// The limits block of a tool bounds concurrent calls in one process. It is always counted in that
// process.
type SharedLimits struct {
	// Store counts calls. The server does not close it.
	Store LimitStore
	// Secret derives the keys of the store. It has at least 16 random bytes, and is the same in all
	// servers that count together. See [LimitCharge].
	Secret []byte
	// Timeout bounds the wait for the store. A call never waits longer than it may run. Default 1
	// s.
	Timeout time.Duration
}

// LimitStore counts calls for any number of servers, in this process and in others. Its methods are
// called from many goroutines.
//
// The server stops waiting for a method when its ctx ends. Per server at most 1,024 calls of the
// store are in flight, including those that are no longer waited for. A panic counts as an error.
// Errors appear in the operator's log, so they must not contain secrets, such as a password in an
// address.
//
// All servers must agree on the time. Use the clock of the store, such as TIME of Redis; none is
// passed.
//
// A store is not notified of reloads. An unchanged limit keeps its keys, and the keys of removed
// limits are not used again. So the store should expire a key that is back in its initial state: a
// slot after its Hold, and a rate once Burst calls are possible again, at the latest after Burst *
// Per / Calls.
type LimitStore interface {
	// Take makes all charges or none, in one atomic step. The charges have different keys. If one
	// slot is left for two calls, of any servers, exactly one of them is taken.
	Take(ctx context.Context, charges []LimitCharge) (LimitVerdict, error)
	// Release frees the Place of each charge, after the call ended, or after Take failed or timed
	// out so that its effect is unknown. Releasing a place that is not held is no error. Only
	// charges with a Place are passed; rates stay charged.
	Release(ctx context.Context, charges []LimitCharge) error
}

// LimitCharge charges one call to one key of a limit.
type LimitCharge struct {
	// Limit is the name of the limit, for display.
	Limit string
	// Key identifies the counter: it depends on the name, the rate and the file kind of the limit,
	// and on the expression of its key and the value. It is 43 characters of base64url (RFC 4648), an
	// HMAC-SHA256 under Secret. It reveals neither arguments nor the caller.
	Key string
	// Calls is the number of calls allowed per Per. It is 0 if no rate applies, as in the later
	// legs of a call that requests input from its user. Burst is the number of calls, at least one,
	// that may come at once after an idle period.
	Calls int
	Per   time.Duration
	Burst int
	// Concurrency is the number of calls that may run at once; 0 means no bound.
	Concurrency int
	// Place identifies the concurrency slot of this call. It is unique across all servers, and
	// empty if Concurrency is 0.
	Place string
	// Hold bounds how long the call occupies its Place. The store then frees the place, as for a
	// server that was killed. A Go function that ignores its ctx, and hooks for the end of the
	// call, may run longer.
	Hold time.Duration
}

// LimitVerdict is the result of Take. The zero verdict rejects the call.
type LimitVerdict struct {
	// Taken reports that all charges were made. The other fields are then ignored.
	Taken bool
	// Over is the index of the charge that exceeds its limit. If several do, it is the one with the
	// longest wait.
	Over int
	// Busy reports that too many calls run at once, not that the rate is exceeded.
	Busy bool
	// Wait is the time until a retry may succeed, an estimate for a busy limit. Zero means one
	// second.
	Wait time.Duration
}
