package state

import (
	"errors"
	"fmt"
	"time"
)

// Errors of request states, claims and tasks. Their texts may be shown to callers.
var (
	// ErrTampered is the error for text that this store did not seal, or with an
	// expired key.
	ErrTampered = errors.New("the request state was not created by this server")
	// ErrForeign is the error for a request state of another principal.
	ErrForeign = errors.New("the request state belongs to another caller")
	// ErrExpired is the error for an expired request state.
	ErrExpired = errors.New("the request state has expired; make the call again")
	// ErrChanged is the error for a request state of an item that was edited since.
	ErrChanged = errors.New("the called item has changed since the request state was created; make the call again")
	// ErrArguments is the error for a request state that came with different arguments.
	ErrArguments = errors.New("the arguments differ from those of the original call")
	// ErrLost is the error for a request state whose use ended without an answer, for
	// example because the process was killed. Its effects may have happened, so it is
	// never run again.
	ErrLost = errors.New("the call was interrupted after it started, and its effects are unknown; check before you repeat it")
	// ErrNotStored is the error for a request state whose answer did not fit into the
	// store. It is never run again either.
	ErrNotStored = errors.New("the call was made, but its result is no longer stored")
	// ErrNotFound is the error for a task that does not exist, has expired or belongs
	// to another owner.
	ErrNotFound = errors.New("there is no such task")
	// ErrEnded is the error for a change of a completed, failed or cancelled task.
	ErrEnded = errors.New("the task has ended")
	// ErrPresumedDead is the error for the end of work that this process started before it
	// lost its database for so long that others presumed it dead. They report the work as
	// lost or failed.
	ErrPresumedDead = errors.New("the state store presumed this server dead while the work ran, and reports the work as interrupted")
	// ErrInUse is the error for a file that another process uses.
	ErrInUse = errors.New("in use by another process")
	// ErrUnavailable is the error for a database that cannot be opened now, and may be later.
	ErrUnavailable = errors.New("the state database is not available")
	// ErrClosed is the error of all methods of a closed store.
	ErrClosed = errors.New("the state store is closed")
)

// FullError is the error of a store without capacity.
type FullError struct {
	// What is the kind of item that does not fit, in the plural.
	What string
	// Wait is the minimum time until something expires.
	Wait time.Duration
	// Err is the error of the disk, or nil if a limit of the store was reached.
	Err error
}

func (e *FullError) Error() string {
	text := fmt.Sprintf("no room for more %s; try again in %s", e.What, e.Wait)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *FullError) Unwrap() error { return e.Err }
