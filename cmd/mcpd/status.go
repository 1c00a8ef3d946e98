package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/ops/control"
	"github.com/mcpd/mcpd/scripting/worker"
)

// statusPatience is the timeout of a status request.
const statusPatience = 10 * time.Second

// statusResult is the JSON output of status.
type statusResult struct {
	control.StatusResult
	Scripts   workerState       `json:"bodies"`
	Bundle    *bundleState      `json:"bundle,omitempty"`
	Decisions *changedDecisions `json:"changed_decisions,omitempty"`
	Appliance *applianceState   `json:"appliance,omitempty"`
}

// workerState describes the execution of scripts and its confinement.
type workerState struct {
	control.ScriptState
	Confined worker.Report `json:"confined_by"`
}

func stateReachOf(r *state.Reach, now time.Time) *control.StateReach {
	if r == nil {
		return nil
	}
	row := control.StateReach{Database: r.Database, Away: r.Err != nil, Heartbeat: r.Heartbeat.UTC().Round(0), Age: now.Sub(r.Heartbeat).Seconds()}
	if r.Err != nil {
		row.Error = r.Err.Error()
	}
	return &row
}

// stateText describes the state database in a line.
func stateText(r *control.StateReach) string {
	if !r.Away {
		return fmt.Sprintf("database %s, last heartbeat %s ago", r.Database, seconds(r.Age))
	}
	return fmt.Sprintf("database %s is away for %s, since %s: calls that need state or a limit fail until it returns, all others continue; %s",
		r.Database, seconds(r.Age), r.Heartbeat.Format(time.RFC3339), r.Error)
}

func newStatus(e env) *cobra.Command {
	var a controlClientFlags
	var fleet bool
	var expect int
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Print the state of the running server",
		Long: `Status asks the running server for its state over the control socket: what it serves and
since when, whether that matches the files, and its calls, processes and sessions.

The exit code is 0 if the server is healthy. It is 1 if no server answers, if the
files have errors, or if an upstream server or the state database cannot be reached.

With --fleet it lists all servers that share the state database of this server. The
exit code is 1 if they serve different revisions, or if one of them is not healthy. A server
that has stopped is not in the list: --expect says how many must be alive.`,
		Example: `  mcpd status
  mcpd status --fleet --expect 3
  mcpd status --control /run/mcpd/control.sock --json`,
		Args: noOperand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case cmd.Flags().Changed("expect") && (!fleet || expect < 1):
				return usageError("--expect takes a number of replicas from 1, and needs --fleet")
			case fleet:
				return fleetStatus(cmd.Context(), e, &a, expect)
			}
			var row statusResult
			if err := a.ask(cmd.Context(), e, control.Status, statusPatience, &row); err != nil {
				return err
			}
			if !a.asJSON {
				if err := row.print(e); err != nil {
					return err
				}
			}
			return row.exit(a.asJSON)
		},
	}
	a.add(cmd)
	cmd.Flags().BoolVar(&fleet, "fleet", false, "list all servers that share the state of this server")
	cmd.Flags().IntVar(&expect, "expect", 0, "with --fleet, fail unless at least `N` servers are alive")
	return cmd
}

// exit returns an error unless the server is healthy. said means that the state was
// printed.
func (r *statusResult) exit(said bool) error {
	switch {
	case r.Status == "healthy":
		return nil
	case said:
		return &exitError{code: exitFindings}
	default:
		return findingsError("%s", r.Status)
	}
}

func (o *runningServer) row(s engine.Status) statusResult {
	now := time.Now()
	r := statusResult{
		StatusResult: control.StatusResult{
			Status: o.health(s), Ready: s.Ready(), Synchronized: s.Synchronized, RestartNeeded: s.RestartNeeded, Problems: encoded(s.Problems),
			State: stateReachOf(o.server.Inside().States().Reach(), now), Revision: s.Revision, Since: s.Since, AgeSeconds: now.Sub(s.Since).Seconds(),
			Serves: control.ServedCounts{Tools: s.Tools, Resources: s.Resources, Templates: s.Templates, Prompts: s.Prompts, Policies: s.Policies, Limits: s.Limits, Hooks: s.Hooks},
			Loads:  control.LoadCounts{Total: s.Loads, Failed: s.FailedLoads}, Calls: control.CallCounts{Running: s.Running, Ended: s.Calls, Failed: s.FailedCalls},
			HookRuns: control.HookRunCounts{Failed: s.HookFailures, Waits: s.HookWaits}, Upstreams: upstreamStates(s.Upstreams), Sessions: o.front.Sessions(), Listeners: []string{},
			Version: version(), PID: o.env.process.pid, Started: o.began, UptimeSeconds: now.Sub(o.began).Seconds(),
		},
		Scripts: workerState{control.ScriptState{Executor: executorInline}, worker.Report{}},
		Bundle:  o.bundleState(), Decisions: o.flags.bundle.trial.row(), Appliance: o.applianceState(),
	}
	if w := s.Workers; w != nil {
		r.Scripts.Processes, r.Scripts.Calls, r.Scripts.Computing, r.Scripts.Lost = w.Processes, w.Calls, w.Computing, w.Lost
		if o.report != nil { // and not only processes for agent code
			r.Scripts.Executor, r.Scripts.Confined = executorWorker, o.report
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.listener != "" {
		r.Listeners = append(r.Listeners, o.listener)
	}
	return r
}

func (r *statusResult) print(e env) error {
	table := tabwriter.NewWriter(e.stdout, 0, 0, 3, ' ', 0)
	lines := [][2]string{
		{"status", r.Status},
		{"serves", offered(engine.Status{Tools: r.Serves.Tools, Resources: r.Serves.Resources, Templates: r.Serves.Templates, Prompts: r.Serves.Prompts})},
		{"rules", countRules(engine.Status{Policies: r.Serves.Policies, Limits: r.Serves.Limits}) + ", " + count(r.Serves.Hooks, "hook")},
		{"revision", fmt.Sprintf("%.12s, for %s, since %s", r.Revision, seconds(r.AgeSeconds), r.Since.Format(time.RFC3339))},
		{"loads", fmt.Sprintf("%d (%d failed)", r.Loads.Total, r.Loads.Failed)},
		{"calls", fmt.Sprintf("%d running, %d completed (%d refused or failed)", r.Calls.Running, r.Calls.Ended, r.Calls.Failed)},
		{"hooks", fmt.Sprintf("%d runs failed, %d calls delayed", r.HookRuns.Failed, r.HookRuns.Waits)},
		{"scripts", r.Scripts.text()},
		{"sessions", r.sessions()},
		{"listens on", strings.Join(r.Listeners, ", ") + r.restart()},
		{"process", fmt.Sprintf("%d, mcpd %s, up %s", r.PID, r.Version, seconds(r.UptimeSeconds))},
	}
	if b := r.Bundle; b != nil {
		lines = append(lines, [2]string{"bundle", b.text()})
	}
	if d := r.Decisions; d != nil {
		lines = append(lines, [2]string{"decisions", d.text()})
	}
	if a := r.Appliance; a != nil {
		lines = append(lines, [2]string{"appliance", a.text()})
		if a.Reports != nil {
			lines = append(lines, [2]string{"reports", a.Reports.text()})
		}
	}
	if r.State != nil {
		lines = append(lines, [2]string{"state", stateText(r.State)})
	}
	for _, u := range r.Upstreams {
		lines = append(lines, [2]string{"upstream", upstreamText(&u)})
	}
	for _, line := range lines {
		if _, err := fmt.Fprintf(table, "%s\t%s\n", line[0], diag.Printable(line[1])); err != nil {
			return err
		}
	}
	return table.Flush()
}

func (b workerState) text() string {
	running := "1 process"
	if b.Processes != 1 {
		running = fmt.Sprintf("%d processes", b.Processes)
	}
	running = fmt.Sprintf("%s with %s, %d lost", running, count(b.Calls, "call"), b.Lost)
	const inline = "inline, without isolation from the server"
	switch {
	case b.Executor == executorWorker:
		return running + ", confined by " + b.Confined.String()
	case b.Processes > 0 || b.Lost > 0:
		return inline + "; agent code in " + running
	}
	return inline
}

// sessions lists the number of sessions for each transport that has any.
func (r *statusResult) sessions() string {
	var some []string
	for _, transport := range slices.Sorted(maps.Keys(r.Sessions)) {
		if n := r.Sessions[transport]; n > 0 {
			some = append(some, fmt.Sprintf("%d %s", n, transport))
		}
	}
	if some == nil {
		return "none"
	}
	return strings.Join(some, ", ")
}

func (r *statusResult) restart() string {
	if r.RestartNeeded {
		return "; restart mcpd to apply the changed listen or audit block"
	}
	return ""
}

// seconds formats a duration in whole seconds.
func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Second).String()
}
