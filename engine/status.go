package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/scripting"
)

// Status is the state of a server at one moment, for health checks, logs and metrics.
type Status struct {
	// Revision is the content hash of the snapshot that serves; empty when none does.
	Revision string
	// Since is when that snapshot was published.
	Since time.Time
	// Tools, Resources and the others count what the snapshot holds. Files of
	// folders are resources.
	Tools, Resources, Templates, Prompts, Policies, Limits, Hooks int
	// Synchronized says that the snapshot is made of the files as last read.
	// It is false after a load that failed.
	Synchronized bool
	// RestartNeeded says that the files ask for what only a restart brings about, such as
	// another audit log.
	RestartNeeded bool
	// Problems are the diagnostics of the last load: errors when it failed,
	// warnings otherwise.
	Problems diag.List
	// Loads and FailedLoads count loads since the server was made.
	Loads, FailedLoads uint64
	// Calls and FailedCalls count calls that have ended, nested ones too; Running counts those that have not.
	Calls, FailedCalls uint64
	Running            int
	// HookFailures counts runs of hooks that failed or were cut short; HookWaits
	// counts the times that a call had to wait because the queue of a hook was full.
	HookFailures, HookWaits uint64
	// Draining says that no new calls are taken.
	Draining bool
	// Unrecorded says that the audit log cannot be written now, and Refusing that calls are
	// refused for that, as they are in strict mode.
	AuditFailing, RejectingCalls bool
	// Upstreams are the servers whose tools are offered here, in the order of their blocks.
	Upstreams []UpstreamStatus
	// Workers are the processes that run bodies, or, where these run in this one, programs of
	// agents alone; nil where there are none for either.
	Workers *scripting.Workers

	sources catalog.Sources
}

// Shown returns the files with problems, by the names that Problems use, for a
// [diag.Printer]: literals where secrets belong are masked.
func (s Status) Shown() map[string][]byte { return s.sources.Shown(s.Problems) }

// healthy is what [Status.Health] says of a server that lacks nothing.
const healthy = "healthy"

// Healthy reports whether the server lacks nothing.
func (s Status) Healthy() bool { return s.Health() == healthy }

// Ready reports whether calls are answered: by what serves, whether or not that is what the
// files say now.
func (s Status) Ready() bool { return s.Revision != "" && !s.Draining && !s.RejectingCalls }

// Health says in a few words how the server is: "healthy", or else what is wrong,
// as in "serving last good, 3 files broken".
func (s Status) Health() string {
	health, unrecorded := s.health(), "the audit log cannot be written"
	if ails := s.upstreamProblems(); ails != "" && !s.Draining {
		health = strings.TrimPrefix(health+"; "+ails, healthy+"; ")
	}
	if s.RejectingCalls {
		unrecorded = "calls are refused, as " + unrecorded
	}
	switch {
	case s.Draining || !s.AuditFailing:
		return health
	case health == healthy:
		return unrecorded
	}
	return unrecorded + "; " + health
}

// ailing says what is wrong with upstream servers, "" for nothing.
func (s Status) upstreamProblems() string {
	var down, ails []string
	for i := range s.Upstreams {
		if u := &s.Upstreams[i]; !u.Up && !u.Idle {
			down = append(down, u.Name)
		}
	}
	if down != nil {
		ails = append(ails, "not reached: "+strings.Join(down, ", "))
	}
	for _, ail := range []struct {
		what  string
		count func(*UpstreamStatus) int
	}{
		{"tools in quarantine", func(u *UpstreamStatus) int { return len(u.Quarantined) }},
		{"left out as rules do not fit", func(u *UpstreamStatus) int { return u.Unruled }},
		{"left out as names are taken", func(u *UpstreamStatus) int { return u.Taken }},
	} {
		var counts []string
		for i := range s.Upstreams {
			if n := ail.count(&s.Upstreams[i]); n > 0 {
				counts = append(counts, fmt.Sprintf("%d of %s", n, s.Upstreams[i].Name))
			}
		}
		if counts != nil {
			ails = append(ails, ail.what+": "+strings.Join(counts, ", "))
		}
	}
	return strings.Join(ails, "; ")
}

// health is Health without a look at the audit log and at upstream servers.
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

// broken counts the files with mistakes, or the mistakes that are of no file.
func (s Status) errorSummary() string {
	files, mistakes := map[string]bool{}, 0
	for _, p := range s.Problems {
		if p.Severity != diag.Error {
			continue
		}
		mistakes++
		if p.Range.File != "" {
			files[p.Range.File] = true
		}
	}
	switch {
	case len(files) == 1:
		return "1 file broken"
	case len(files) > 0:
		return fmt.Sprintf("%d files broken", len(files))
	case mistakes == 1:
		return "1 mistake"
	default:
		return fmt.Sprintf("%d mistakes", mistakes)
	}
}

// Probe returns nil when the server answers calls, and else why it does not. It
// runs a body that does nothing, as calls run theirs, without being a call: no
// policy is asked, no hook fires and nothing is counted.
//
// A server that is busy is not stuck: one that refuses for want of room answers,
// and so does one whose calls end while the probe waits for its turn. One that
// shuts down does what it is to. The error says that none of that happened before
// ctx was done, that no process can be had for a body, or that nothing is served.
func (s *Server) Probe(ctx context.Context) error {
	before := s.pipeline.Stats()
	switch {
	case s.current.Load() == nil:
		return errors.New("probe: nothing is served")
	case before.Draining:
		return nil
	}
	program, problems := scripting.Compile(scripting.Source{Name: "probe", Text: diag.NewText("probe", "return 1;", diag.Pos{Line: 1, Column: 1})})
	if program == nil {
		return fmt.Errorf("probe: %w", problems)
	}
	out, err := s.options.Scripts.Executor.Run(ctx, scripting.Call{Program: program}, denyHost{})
	switch {
	case err == nil && out.Result != nil, errors.Is(err, scripting.ErrOverloaded):
		return nil
	case s.pipeline.Stats().Calls != before.Calls:
		return nil
	case err != nil:
		return fmt.Errorf("probe: %w", err)
	case out.Failure != nil:
		return fmt.Errorf("probe: a body that does nothing: %s", out.Failure.Message)
	default:
		return errors.New("probe: a body that does nothing has no result")
	}
}

// noHost is that of a body which asks for nothing.
type denyHost struct{}

// Do refuses.
func (denyHost) Do(context.Context, int, string, []byte) ([]byte, error) {
	return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "a probe is granted nothing"}
}
