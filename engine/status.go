package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/federation"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/scripting"
)

// Status is the state of a server at one moment, for health checks, logs and metrics.
type Status struct {
	// Revision is the content hash of the serving snapshot; empty if there is none.
	Revision string
	// Since is the time when that snapshot was published.
	Since time.Time
	// Tools and the following fields count the items of the snapshot. Files of folder blocks count
	// as resources.
	Tools, Resources, Templates, Prompts, Policies, Limits, Hooks int
	// Synchronized reports that the snapshot matches the files as last read. It is false after a
	// failed load.
	Synchronized bool
	// RestartNeeded reports that a change in the files needs a restart, such as another audit log.
	RestartNeeded bool
	// Problems are the diagnostics of the last load: errors if it failed, else warnings.
	Problems diag.List
	// Loads and FailedLoads count the loads of this server.
	Loads, FailedLoads uint64
	// Calls and FailedCalls count calls that have ended, including nested calls. Running counts the
	// rest.
	Calls, FailedCalls uint64
	Running            int
	// HookFailures counts hook runs that failed or were cut short. HookWaits counts how often a
	// call had to wait because a hook queue was full.
	HookFailures, HookWaits uint64
	// Draining reports that the server rejects new calls.
	Draining bool
	// AuditFailing reports that the audit log cannot be written. RejectingCalls reports that calls
	// are rejected for that reason, as in strict mode.
	AuditFailing, RejectingCalls bool
	// StateAway is the time of the last contact with the state database, if that cannot be reached now.
	StateAway time.Time
	// Upstreams are the upstream servers, in the order of their blocks.
	Upstreams []UpstreamStatus
	// Workers are the processes that run scripts, or processes for agent code if scripts run in this
	// process; nil if there are none.
	Workers *scripting.Workers

	sources catalog.Sources
}

// Shown returns the files with Problems by name, for a [diag.Printer], with secret literals masked.
func (s Status) Shown() map[string][]byte { return s.sources.Shown(s.Problems) }

// healthy is the [Status.Health] of a server without problems.
const healthy = "healthy"

// Healthy reports whether the server has no problems.
func (s Status) Healthy() bool { return s.Health() == healthy }

// Ready reports whether the server answers calls, even if its snapshot does not match the files.
func (s Status) Ready() bool { return s.Revision != "" && !s.Draining && !s.RejectingCalls }

// Health returns a short description: "healthy", or the problem, as in "serving last good, 3 files
// broken".
func (s Status) Health() string {
	health, auditProblem := s.health(), "the audit log cannot be written"
	if problems := s.partProblems(); problems != "" && !s.Draining {
		health = strings.TrimPrefix(health+"; "+problems, healthy+"; ")
	}
	if s.RejectingCalls {
		auditProblem = "calls are rejected, because " + auditProblem
	}
	if s.Draining || !s.AuditFailing {
		return health
	}
	return strings.TrimSuffix(auditProblem+"; "+health, "; "+healthy)
}

// partProblems describes the problems of the state database and of upstream servers; "" if there are none.
func (s Status) partProblems() string {
	servers := make([]federation.ServerStatus, len(s.Upstreams))
	for i, u := range s.Upstreams {
		servers[i] = federation.ServerStatus(u)
	}
	problems := federation.Problems(servers)
	if !s.StateAway.IsZero() {
		problems = strings.TrimSuffix("the state database is away; "+problems, "; ")
	}
	return problems
}

// health is Health without the audit log and the upstream servers.
func (s Status) health() string {
	switch {
	case s.Draining:
		return "shutting down"
	case s.Revision != "" && s.Synchronized:
		return healthy
	case s.Revision != "":
		return "serving last good, " + s.errorSummary()
	case s.Loads == 0:
		return "nothing is loaded yet"
	default:
		return "nothing is served, " + s.errorSummary()
	}
}

// errorSummary counts the files with errors, or the errors that belong to no file.
func (s Status) errorSummary() string {
	files, errors := map[string]bool{}, 0
	for _, p := range s.Problems {
		if p.Severity != diag.Error {
			continue
		}
		errors++
		if p.Range.File != "" {
			files[p.Range.File] = true
		}
	}
	number, noun, rest := len(files), "file", " broken"
	if number == 0 {
		number, noun, rest = errors, "mistake", ""
	}
	if number != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s%s", number, noun, rest)
}

// Probe returns nil if the server can run scripts, and an error otherwise. It runs an empty script
// like a call, but evaluates no policy, fires no hook and counts nothing.
//
// An overloaded server is alive: a rejected probe returns nil, and so does a probe that waits while
// other calls end. A draining server is alive, too. Probe returns an error if none of that happens
// before ctx ends, if no process can be started, or if nothing is served.
func (s *Server) Probe(ctx context.Context) error {
	before := s.pipeline.Stats()
	switch {
	case s.current.Load() == nil:
		return errors.New("probe: the server has no items")
	case before.Draining:
		return nil
	}
	program, problems := scripting.Compile(scripting.Source{Name: "probe", Text: diag.NewText("probe", "return 1;", diag.Pos{Line: 1, Column: 1})})
	if program == nil {
		return fmt.Errorf("probe: %w", problems)
	}
	out, err := s.options.Scripts.Executor.Run(ctx, scripting.Call{Program: program}, &host.RunHost{Brokers: s.brokers}) // nothing is granted
	switch {
	case err == nil && out.Result != nil, errors.Is(err, scripting.ErrOverloaded):
		return nil
	case s.pipeline.Stats().Calls != before.Calls:
		return nil
	case err != nil:
		return fmt.Errorf("probe: %w", err)
	case out.Failure != nil:
		return fmt.Errorf("probe: the empty script failed: %s", out.Failure.Message)
	default:
		return errors.New("probe: the empty script has no result")
	}
}
