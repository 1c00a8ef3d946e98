// Package observe is what a server tells of its calls, and to whom: the data of traces and
// metrics, and the interfaces of what takes them. It has no library of telemetry, so that a
// program links one only if it imports extensions/telemetry, which implements [Telemetry].
//
// A [Tracer] makes a [Span] of each call and of its parts; the zero Tracer makes none, and
// nothing of it costs anything. [Metrics] count what happens, and fetch the rest as [Stats]
// for each scrape. [LogHandler] adds the ids of the span and of the [Request] in a context
// to the records of a log. Work that may outlast its span, such as the run of a hook, keeps
// an [Origin] of it.
//
// A value that a caller or a script chooses is never a label of a metric or the name of a
// span: names are those of the operator's files, and outcomes are from a fixed list. There
// are no arguments, results, messages or claims.
package observe

import (
	"context"
	"log/slog"
	"net/http"
	"time"
)

// Options are what an engine gives to its telemetry.
type Options struct {
	// Service is the name of the server where OTEL_SERVICE_NAME gives none, and
	// Version its version.
	Service, Version string
	// LookupEnv reads the variables OTEL_*; nil means that none is set.
	LookupEnv func(name string) (string, bool)
	// Logger gets a record when spans begin and cease to be lost. Nil discards it.
	Logger *slog.Logger
	// Now is the clock of metrics. Nil means time.Now.
	Now func() time.Time
}

// Telemetry is the telemetry of one server. It is safe for concurrent use.
type Telemetry interface {
	// Tracer returns the zero Tracer if nothing is traced.
	Tracer() Tracer
	Metrics() Metrics
	// Handler serves the metrics. The caller decides who may read them: they name the
	// tools of all.
	Handler() http.Handler
	// IDs returns the ids of the trace and of the span of a context in hexadecimal, ""
	// for none.
	IDs(ctx context.Context) (trace, span string)
	// Close sends the spans that wait, until ctx is done. It returns the error of ctx if
	// spans were lost by it.
	Close(ctx context.Context) error
}

// Metrics count what happens. They are safe for concurrent use. Names that no [Catalog] has
// are counted together.
type Metrics interface {
	// Publish replaces the names that labels may have.
	Publish(c Catalog)
	// CallEnded counts a call of an item by its outcome: ok, input_required, rehearsed or
	// one of the five codes. It neither waits nor, in the steady state, allocates.
	CallEnded(kind, name, via, outcome string, took time.Duration)
	// Denied counts a call that a policy denied, and Limited one that a limit refused.
	Denied(policy string)
	Limited(limit string)
	// HostCallEnded counts an operation of a script, such as "fs.readText", by its
	// outcome: ok, suspended, or the code of the error.
	HostCallEnded(operation, outcome string, took time.Duration)
	// Loaded counts a load of the files by its outcome: published, unchanged or failed.
	Loaded(outcome string, took time.Duration)
	// Collect has the rest fetched from a function for each scrape. Several goroutines may
	// call it at once, and it must not wait for calls.
	Collect(from func() Stats)
}

// Item names what can be called, in the files of a snapshot.
type Item struct {
	// Kind is tool, resource, prompt or completion.
	Kind string
	// Name is that of the definition, never what a caller asked for. A definition
	// that stands for several, such as a folder, is one item.
	Name string
}

// Catalog is what a snapshot names.
type Catalog struct {
	Items            []Item
	Policies, Limits []string
}

// Stats are what is not counted here but fetched when somebody looks. Numbers that
// are uint64 only ever grow.
type Stats struct {
	Snapshot SnapshotStats
	// Running are the calls that have begun and not ended. Draining says that no
	// new ones are taken.
	Running  int
	Draining bool
	// Unrecorded says that the audit log cannot be written.
	Unrecorded bool
	Hooks      HookStats
	Workers    WorkerStats
	Fronts     []FrontStats
}

// SnapshotStats are of what serves.
type SnapshotStats struct {
	// Revision is empty and Since is zero when nothing serves yet.
	Revision string
	Since    time.Time
	// Synchronized says that the snapshot is made of the files as last read.
	Synchronized                                                  bool
	Tools, Resources, Templates, Prompts, Policies, Limits, Hooks int
}

// HookStats are of the hooks in files.
type HookStats struct {
	// Failures are runs that failed, and Waits calls that found the queue full.
	Failures, Waits uint64
	// Queued are the runs that wait or are under way.
	Queued int
}

// WorkerStats are of the processes that run scripts. All are 0 where there are none.
type WorkerStats struct {
	// Processes are alive, and Calls are in them.
	Processes, Calls int
	// Waiting are the calls that wait to begin; Refused are those that would have
	// begun too late.
	Waiting int
	Refused uint64
	// Started are the processes that were ever started.
	Started uint64
	Deaths  Deaths
}

// Deaths are the processes that ended before they had nothing more to do, by cause.
type Deaths struct {
	// Overdue are those killed for a call that did not end, Memory for what they
	// had, and Protocol for what they said; Crashed ended by themselves.
	Overdue, Memory, Protocol, Crashed uint64
}

// FrontStats are of one transport: streamable, sse, websocket, stdio or rest.
type FrontStats struct {
	Transport             string
	Sessions, Connections int
}
