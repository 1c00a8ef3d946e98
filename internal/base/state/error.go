package state

import (
	"errors"
	"fmt"
	"time"
)

// What can be wrong with a request state, a claim or a task. The texts are fit
// for callers.
var (
	// ErrTampered is the error of text that this store has not sealed, or whose
	// key is long gone.
	ErrTampered = errors.New("the request state is not one that this server made")
	// ErrForeign is the error of a request state that was made for another principal.
	ErrForeign = errors.New("the request state was made for somebody else")
	// ErrExpired is the error of a request state that is too old.
	ErrExpired = errors.New("the request state has expired; make the call again")
	// ErrChanged is the error of a request state whose item has been edited since.
	ErrChanged = errors.New("what was called has changed since the request state was made; make the call again")
	// ErrArguments is the error of a request state that came back with other arguments.
	ErrArguments = errors.New("the arguments are not those of the call that the request state was made for")
	// ErrLost is the error of a request state whose use ended without an
	// answer, as when the process was killed: its effects may have happened, so
	// it is never run again.
	ErrLost = errors.New("the call was cut off after it had begun, and what it did is not known; check before you make it again")
	// ErrUnkept is the error of a request state whose use ended with an answer
	// that the store had no room for. It is never run again either.
	ErrUnkept = errors.New("the call was made, and its answer is not kept any more")
	// ErrNotFound is the error of a task that does not exist, has expired or
	// belongs to somebody else.
	ErrNotFound = errors.New("there is no such task")
	// ErrEnded is the error of a change to a task that is completed, failed or cancelled.
	ErrEnded = errors.New("the task has ended")
	// ErrInUse is the error of a file that another process has.
	ErrInUse = errors.New("in use by another process")
	// ErrClosed is the error of everything that is asked of a closed store.
	ErrClosed = errors.New("the state store is closed")
)

// FullError says that a store has no room for one more.
type FullError struct {
	// What there is no room for, in the plural.
	What string
	// Wait is how long it takes at least until something expires.
	Wait time.Duration
	// Err is what the disk said, or nil when a bound of the store was met.
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
