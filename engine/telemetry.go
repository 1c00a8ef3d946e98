package engine

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/execution/extension"
	"github.com/mcpd/mcpd/internal/execution/pipeline"
)

// Clients counts the clients of one transport: streamable, sse, websocket, stdio or rest.
type Clients struct {
	Transport string
	// Sessions counts the MCP sessions, and Connections the open connections or streams.
	Sessions, Connections int
}

// telemetry is the telemetry of a server. Without the extension, all and metrics are nil and tracer
// is zero.
type telemetry struct {
	all     observe.Telemetry
	metrics observe.Metrics
	tracer  observe.Tracer
}

// openTelemetry opens the telemetry of the server, and adds call and span ids to its log.
func (o *Options) openTelemetry(by extension.Telemetry) (telemetry, error) {
	outer := o.Logger.Handler()
	if by == nil {
		o.Logger = slog.New(observe.LogHandler(outer, nil))
		return telemetry{}, nil
	}
	all, err := by.OpenTelemetry(observe.Options{Service: o.Name, Version: o.Version, LookupEnv: o.Files.LookupEnv, Logger: o.Logger, Now: o.Now})
	if err != nil {
		return telemetry{}, fmt.Errorf("new server: %w", err)
	}
	o.Logger = slog.New(observe.LogHandler(outer, all.IDs))
	return telemetry{all, all.Metrics(), all.Tracer()}, nil
}

// propagate returns the traceparent of the span in ctx.
func (w telemetry) propagate(ctx context.Context) string {
	parent, _ := w.tracer.Inject(ctx)
	return parent
}

// close exports pending spans, until ctx is done.
func (w telemetry) close(ctx context.Context) error {
	if w.all == nil {
		return nil
	}
	if err := w.all.Close(ctx); err != nil {
		return fmt.Errorf("export pending spans: %w", err)
	}
	return nil
}

// Metrics returns the handler for Prometheus; nil without extensions/telemetry. The metrics name
// all tools, so the front must restrict access.
func (s *Server) Metrics() http.Handler {
	if s.telemetry.all == nil {
		return nil
	}
	return s.telemetry.all.Handler()
}

// SetClientCounter sets the function that counts the clients of a front at each scrape.
func (s *Server) SetClientCounter(count func() []Clients) { s.countClients.Store(&count) }

// SetStatusFilter sets the function that completes the status for metrics. A front knows whether
// callers can be authenticated.
func (s *Server) SetStatusFilter(judge func(Status) Status) { s.filterStatus.Store(&judge) }

// stats returns the gauges and counters for a scrape.
func (s *Server) stats() observe.Stats {
	now := s.Status()
	if judge := s.filterStatus.Load(); judge != nil {
		now = (*judge)(now)
	}
	stats := observe.Stats{
		Snapshot: observe.SnapshotStats{
			Revision: now.Revision, Since: now.Since, Synchronized: now.Synchronized, Tools: now.Tools, Resources: now.Resources,
			Templates: now.Templates, Prompts: now.Prompts, Policies: now.Policies, Limits: now.Limits, Hooks: now.Hooks,
		},
		Running: now.Running, Draining: now.Draining, Unrecorded: now.AuditFailing,
		Hooks: observe.HookStats{Failures: now.HookFailures, Waits: now.HookWaits, Queued: s.hooks.Queued()},
	}
	stats.Replica.ID, stats.Replica.HeartbeatAge = s.states.Self()
	if w := now.Workers; w != nil {
		stats.Workers = observe.WorkerStats{
			Processes: w.Processes, Calls: w.Calls, Waiting: w.Waiting, Refused: w.Refused, Started: w.Started,
			Deaths: observe.Deaths{Overdue: w.Overdue, Memory: w.Memory, Protocol: w.Protocol, Crashed: w.Crashed},
		}
	}
	if count := s.countClients.Load(); count != nil {
		for _, clients := range (*count)() {
			stats.Fronts = append(stats.Fronts, observe.FrontStats(clients))
		}
	}
	return stats
}

// metricNames returns the names in a snapshot, for metric labels.
func (s *Snapshot) metricNames() observe.Catalog {
	var c observe.Catalog
	policies := map[string]bool{}
	for k, entries := range s.catalog.Entries {
		kind := call.Kind(k)
		for _, e := range entries {
			c.Items = append(c.Items, observe.Item{Kind: kind.String(), Name: e.Name})
			if e.CallsAllTools {
				policies[pipeline.DeniedByPlan] = true
			}
			if kind != call.Tools {
				c.Items = append(c.Items, observe.Item{Kind: "completion", Name: e.Name})
			}
			for _, rules := range [...][]catalog.Policy{e.Rules, e.ResultRules} {
				for i := range rules {
					policies[rules[i].Name] = true
				}
			}
		}
	}
	if s.catalog.DenyByDefault {
		policies[pipeline.DeniedByDefault] = true
	}
	for _, name := range [...]string{pipeline.DeniedByFrom, pipeline.DeniedByResult, pipeline.DeniedByApproval} {
		policies[name] = true
	}
	c.Policies = slices.Sorted(maps.Keys(policies))
	for _, l := range s.catalog.RateLimits {
		c.Limits = append(c.Limits, l.Name)
	}
	return c
}
