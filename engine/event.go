package engine

import "time"

// EventKind says what happened to a server.
type EventKind string

const (
	// Started follows the first successful load.
	Started EventKind = "started"
	// Reloaded follows each later snapshot that differs from the one before.
	Reloaded EventKind = "reloaded"
	// ReloadFailed says that files have mistakes and the old snapshot keeps serving.
	ReloadFailed EventKind = "reload_failed"
	// Draining says that no new calls are taken.
	Draining EventKind = "draining"
	// Stopped says that the last call has ended and all hooks have run, or that
	// the grace period is over: Status.Running tells.
	Stopped EventKind = "stopped"
)

// Event is told to [Options].OnEvent, one at a time, in order.
type Event struct {
	Kind EventKind
	// Status is the state of the server after the event.
	Status Status
	// Took is how long a load took; 0 for other events.
	Took time.Duration
}
