// Package observe defines the telemetry of a server: the data of traces and metrics,
// and the interfaces of their backends. It uses no telemetry library, so that a program
// links one only if it imports extensions/telemetry, which implements [Telemetry].
//
// A [Tracer] creates a [Span] for each call and its parts; the zero Tracer does nothing
// at no cost. [Metrics] count events, and fetch the rest as [Stats] at each scrape.
// [LogHandler] adds the ids of the span and of the [Request] in the context to log
// records. Work that may outlast its span, such as a hook run, uses an [Origin].
//
// Values that callers or scripts choose never become metric labels or span names: names
// come from the files of the operator, and outcomes from a fixed list. Arguments,
// results, messages and claims are not included.
package observe

import (
	"context"
	"log/slog"
	"net/http"
	"time"
)

// Options are the options that an engine passes to its telemetry.
type Options struct {
	// Service is the service name unless OTEL_SERVICE_NAME is set, and Version its
	// version.
	Service, Version string
	// LookupEnv reads the OTEL_* variables; nil means that none is set.
	LookupEnv func(name string) (string, bool)
	// Logger logs when spans start and stop being dropped. Nil discards.
	Logger *slog.Logger
	// Now is the clock of metrics. Nil means time.Now.
	Now func() time.Time
}

// Telemetry is the telemetry of one server. It is safe for concurrent use.
type Telemetry interface {
	// Tracer returns the zero Tracer if tracing is disabled.
	Tracer() Tracer
	Metrics() Metrics
	// Handler serves the metrics. The caller must authorize requests: metrics name all
	// tools.
	Handler() http.Handler
	// IDs returns the trace id and the span id of a context in hexadecimal, or "".
	IDs(ctx context.Context) (trace, span string)
	// Close exports the waiting spans until ctx is done. It returns the error of ctx if
	// spans were lost.
	Close(ctx context.Context) error
}

// Metrics count events. They are safe for concurrent use. Names that are in no
// [Catalog] are counted together.
type Metrics interface {
	// Publish replaces the set of names for labels.
	Publish(c Catalog)
	// CallEnded counts a call of an item by its outcome: ok, input_required, rehearsed
	// or one of the five error codes. It does not block and, in the steady state, does
	// not allocate.
	CallEnded(kind, name, via, outcome string, took time.Duration)
	// Denied counts a call that a policy denied, and Limited one that a rate limit
	// rejected.
	Denied(policy string)
	Limited(limit string)
	// LimitStoreFailed counts a call that the shared limit store could not count, by its outcome:
	// [UncountedAllowed] or [UncountedDenied].
	LimitStoreFailed(outcome string)
	// Reported counts a report of the state of the server by its outcome: [ReportDelivered] or
	// [ReportFailed].
	Reported(outcome string)
	// Forwarded counts a request for a session of another replica, by its outcome: one of the
	// constants with this prefix.
	Forwarded(outcome string)
	// HostCallEnded counts a host call of a script, such as "fs.readText", by its
	// outcome: ok, suspended or the error code.
	HostCallEnded(operation, outcome string, took time.Duration)
	// Loaded counts a load of the files by its outcome: published, unchanged or failed.
	Loaded(outcome string, took time.Duration)
	// Collect sets the function that returns the statistics at each scrape. It must be
	// safe for concurrent use, and must not wait for calls.
	Collect(from func() Stats)
}

// The outcomes of calls that the shared limit store could not count.
const (
	UncountedAllowed = "allowed"
	UncountedDenied  = "denied"
)

// The outcomes of reports.
const (
	ReportDelivered = "delivered"
	ReportFailed    = "failed"
)

// The outcomes of requests for sessions of other replicas.
const (
	// ForwardedServed: the other replica answered.
	ForwardedServed = "served"
	// ForwardedGone: there is no such replica, so that the client must initialize anew.
	ForwardedGone = "gone"
	// ForwardedUnavailable: nothing was sent, because the replica did not accept the connection in
	// time, or could not be looked up.
	ForwardedUnavailable = "unavailable"
	// ForwardedBroken: the connection broke after the request was sent.
	ForwardedBroken = "broken"
	// ForwardedCanceled: the client disconnected first, or this replica shut down.
	ForwardedCanceled = "canceled"
	// ForwardedRejected: the credential was refused, the session is of another principal, or the request
	// was invalid.
	ForwardedRejected = "rejected"
)

// Item is a callable item in the files of a snapshot.
type Item struct {
	// Kind is tool, resource, prompt or completion.
	Kind string
	// Name is the name of the definition, never a name from a caller. A definition of
	// several items, such as a resource directory, counts as one item.
	Name string
}

// Catalog lists the names in a snapshot.
type Catalog struct {
	Items            []Item
	Policies, Limits []string
}

// Stats are the statistics that are fetched at each scrape. Numbers of type uint64 are
// counters.
type Stats struct {
	Snapshot SnapshotStats
	// Running is the number of running calls. Draining means that new calls are
	// rejected.
	Running  int
	Draining bool
	// Unrecorded means that the audit log cannot be written.
	Unrecorded bool
	Hooks      HookStats
	Workers    WorkerStats
	Fronts     []FrontStats
	Replica    ReplicaStats
}

// ReplicaStats describe this server as a replica of a fleet.
type ReplicaStats struct {
	// ID is the id in the state database; empty without one.
	ID string
	// HeartbeatAge is the time since the last heartbeat that reached the database.
	HeartbeatAge time.Duration
}

// SnapshotStats describe the current snapshot.
type SnapshotStats struct {
	// Revision is empty and Since is zero before the first snapshot.
	Revision string
	Since    time.Time
	// Synchronized means that the snapshot matches the files as last read.
	Synchronized                                                  bool
	Tools, Resources, Templates, Prompts, Policies, Limits, Hooks int
}

// HookStats describe the hooks in files.
type HookStats struct {
	// Failures counts failed runs, and Waits the calls that waited for a full queue.
	Failures, Waits uint64
	// Queued is the number of waiting and running hook runs.
	Queued int
}

// WorkerStats describe the worker processes. All values are 0 without processes.
type WorkerStats struct {
	// Processes is the number of live processes, and Calls the number of calls in them.
	Processes, Calls int
	// Waiting is the number of queued calls; Refused counts the shed ones.
	Waiting int
	Refused uint64
	// Started counts all started processes.
	Started uint64
	Deaths  Deaths
}

// Deaths counts processes that exited while still in use, by cause.
type Deaths struct {
	// Overdue were killed for a timeout, Memory for their memory use, and Protocol for
	// invalid messages; Crashed exited on their own.
	Overdue, Memory, Protocol, Crashed uint64
}

// FrontStats describe one transport: streamable, sse, websocket, stdio or rest.
type FrontStats struct {
	Transport             string
	Sessions, Connections int
}
