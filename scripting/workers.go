package scripting

// Workers are the processes of an executor at one moment.
type Workers struct {
	// Processes run calls. One that waits for the next call to need it is not counted.
	Processes int
	// Calls are under way in them; of these Computing do not wait for their host.
	Calls, Computing int
	// Lost counts processes that have ended before they were let go, by these causes:
	// killed for a call that did not end, for the memory they had, or for what they said,
	// and ended by themselves.
	Lost, Overdue, Memory, Protocol, Crashed uint64
	// Started counts the processes that were ever started.
	Started uint64
	// Waiting are the calls that wait to begin; Refused counts those that would have begun
	// too late.
	Waiting int
	Refused uint64
}

// Staffed is an [Executor] that runs bodies in processes of their own.
type Staffed interface {
	Executor
	Workers() Workers
}
