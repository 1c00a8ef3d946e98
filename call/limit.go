package call

import (
	"context"
	"time"
)

// SharedLimits say how the limit blocks of files are counted elsewhere than in the
// memory of one server, so that several servers give together what a limit says.
//
// Calls that cannot be counted are denied: with POLICY_DENIED, what to tell the
// operator in the log, and the advice to come again in a second. A program that
// rather lets them through has its store answer that they are taken.
//
// What the limits block of a tool says of its calls at once bounds the process that
// runs them, and is counted there all the same.
type SharedLimits struct {
	// Store counts. The server does not close it.
	Store LimitStore
	// Secret is what keys are made with: 16 random bytes at least, the same in all
	// servers that count together. See [LimitCharge].
	Secret []byte
	// Timeout is how long a call waits for the store at most, and never longer than
	// it may run itself. Default 1 s.
	Timeout time.Duration
}

// LimitStore counts calls for servers, of which there may be many at the same time,
// in this process and in others. Its methods are called from many goroutines.
//
// Both methods have until their ctx ends; nobody waits for them any longer, and
// 1,024 of them at most are under way for one server, whether or not somebody waits.
// One that panics has failed. Errors are for the operator's log: no secret, such as
// the password of an address, belongs in one.
//
// All servers must agree on the time, so it is best that of the store, such as what
// Redis answers to TIME; none is passed.
//
// A store is not told of reloads: limits that are the same have the same keys as
// before, and those of others are not asked for again. So what a key holds should
// end by itself once it is as good as new: places after their Hold, and a rate when
// Burst calls have become possible again, which Burst * Per / Calls is enough for.
type LimitStore interface {
	// Take makes all charges, which have different keys, or none of them, in one step:
	// of two calls for which there is room once, by whatever servers, one is taken.
	Take(ctx context.Context, charges []LimitCharge) (LimitVerdict, error)
	// Release gives the Place of each charge back: that of a call which has ended, and
	// of one that was denied because its Take failed or came too late, so that nobody
	// knows what became of it. A place that is not held is no error. Only charges with
	// a place are passed, and what was charged to a rate stays charged.
	Release(ctx context.Context, charges []LimitCharge) error
}

// LimitCharge is one call under one key of a limit.
type LimitCharge struct {
	// Limit is the name of the limit, for people.
	Limit string
	// Key tells apart what is counted apart: limits of another name, rate or kind of
	// file, and of one limit what its key says. It is 43 signs of base64url (RFC 4648),
	// a digest (HMAC-SHA256 under Secret): neither arguments nor who calls can be told
	// from it.
	Key string
	// Calls may be made in each Per; Calls is 0 when no rate is asked, as in the later
	// legs of a call that asks its user. Burst of them, at least one, may be made in no
	// time after a time of rest.
	Calls int
	Per   time.Duration
	Burst int
	// Concurrency is how many calls may run at once, 0 for no bound.
	Concurrency int
	// Place names the place of this call among those that run at once: no other call of
	// any server has the same. It is empty where there is no Concurrency.
	Place string
	// Hold is how long the call holds its place at most. Then the store takes it back,
	// as of a server that was killed. What may go on after that is a function in Go that
	// ignores its ctx, and hooks that hear of the end of the call.
	Hold time.Duration
}

// LimitVerdict says whether a call may be made. The zero verdict refuses it.
type LimitVerdict struct {
	// Taken says that all charges are made, and nothing else counts.
	Taken bool
	// Over is the index of the charge whose limit is against the call: of several the
	// one with the longest wait.
	Over int
	// Busy says that too many calls run at once, rather than that too many were made.
	Busy bool
	// Wait is when to come back; for a busy limit a guess. Without one it is a second.
	Wait time.Duration
}
