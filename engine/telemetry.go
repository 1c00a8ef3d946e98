package engine

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/execution/pipeline"
	"github.com/mcpd/mcpd/internal/ops/telemetry"
)

// Telemetry is what telemetry has of the outside world. Which calls are traced, and where
// their spans are sent, say the variables OTEL_* (OpenTelemetry, Environment Variable
// Specification), which [Options].LookupEnv reads.
type Telemetry struct {
	// ReadFile reads the certificates and keys that the variables name; nil means that
	// there are none.
	ReadFile func(name string) ([]byte, error)
	// Console gets the spans of OTEL_TRACES_EXPORTER=console, one JSON object a line; nil
	// drops them.
	Console io.Writer
}

// Clients counts the clients of one transport: streamable, sse, websocket, stdio or rest.
type Clients = telemetry.FrontStats

// observed is what a server tells of itself: nothing of it is nil but what nobody asked for.
type observed struct {
	all     *telemetry.Telemetry
	metrics *telemetry.Metrics
	tracer  *telemetry.Tracer
}

// observe returns what tells of the server, and has its log name calls and spans.
func (o *Options) observe() (observed, error) {
	outer := o.Logger
	o.Logger = slog.New(telemetry.LogHandler(outer.Handler()))
	if o.Telemetry == nil {
		return observed{}, nil
	}
	all, err := telemetry.New(telemetry.Options{
		Service: o.Name, Version: o.Version, LookupEnv: o.LookupEnv, ReadFile: o.Telemetry.ReadFile, Console: o.Telemetry.Console, Logger: outer, Now: o.Now,
	})
	if err != nil {
		return observed{}, fmt.Errorf("new server: %w", err)
	}
	return observed{all, all.Metrics(), all.Tracer()}, nil
}

// propagate returns the traceparent of what is done in a context.
func (w observed) propagate(ctx context.Context) string {
	parent, _ := w.tracer.Inject(ctx)
	return parent
}

// close sends what waits to be told, until ctx is done.
func (w observed) close(ctx context.Context) error {
	if w.all == nil {
		return nil
	}
	if err := w.all.Close(ctx); err != nil {
		return fmt.Errorf("send the last spans: %w", err)
	}
	return nil
}

// Metrics serves the metrics of the server to Prometheus; nil without
// [Options].Telemetry. Who may ask is for the front to say: they name the tools of all.
func (s *Server) Metrics() http.Handler {
	if s.observed.all == nil {
		return nil
	}
	return s.observed.all.Handler()
}

// CountClients has the metrics tell of the clients of a front, which are counted whenever
// somebody looks.
func (s *Server) CountClients(count func() []Clients) { s.clients.Store(&count) }

// JudgeStatus has the metrics tell of the status as a front sees it, which knows whether
// callers can be let in.
func (s *Server) JudgeStatus(judge func(Status) Status) { s.judge.Store(&judge) }

// stats is what metrics fetch when somebody looks.
func (s *Server) stats() telemetry.Stats {
	now := s.Status()
	if judge := s.judge.Load(); judge != nil {
		now = (*judge)(now)
	}
	stats := telemetry.Stats{
		Snapshot: telemetry.SnapshotStats{
			Revision: now.Revision, Since: now.Since, Synchronized: now.Synchronized, Tools: now.Tools, Resources: now.Resources,
			Templates: now.Templates, Prompts: now.Prompts, Policies: now.Policies, Limits: now.Limits, Hooks: now.Hooks,
		},
		Running: now.Running, Draining: now.Draining, Unrecorded: now.Unrecorded,
		Hooks: telemetry.HookStats{Failures: now.HookFailures, Waits: now.HookWaits, Queued: s.hooks.Queued()},
	}
	if w := now.Workers; w != nil {
		stats.Workers = telemetry.WorkerStats{
			Processes: w.Processes, Calls: w.Calls, Waiting: w.Waiting, Refused: w.Refused, Started: w.Started,
			Deaths: telemetry.Deaths{Overdue: w.Overdue, Memory: w.Memory, Protocol: w.Protocol, Crashed: w.Crashed},
		}
	}
	if count := s.clients.Load(); count != nil {
		stats.Fronts = (*count)()
	}
	return stats
}

// names are what a snapshot names, for the labels of metrics.
func (s *Snapshot) names() telemetry.Catalog {
	var c telemetry.Catalog
	policies := map[string]bool{}
	for k, entries := range s.catalog.Entries {
		kind := call.Kind(k)
		for _, e := range entries {
			c.Items = append(c.Items, telemetry.Item{Kind: kind.String(), Name: e.Name})
			if e.Surveys {
				policies[pipeline.ByPlan] = true
			}
			if kind != call.Tools {
				c.Items = append(c.Items, telemetry.Item{Kind: "completion", Name: e.Name})
			}
			for _, rules := range [...][]catalog.Policy{e.Rules, e.ResultRules} {
				for i := range rules {
					policies[rules[i].Name] = true
				}
			}
		}
	}
	if s.catalog.DenyByDefault {
		policies[pipeline.ByDefault] = true
	}
	for _, name := range [...]string{pipeline.ByFrom, pipeline.ByResult, pipeline.ByApproval} {
		policies[name] = true
	}
	c.Policies = slices.Sorted(maps.Keys(policies))
	for _, l := range s.catalog.RateLimits {
		c.Limits = append(c.Limits, l.Name)
	}
	return c
}
