package main

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/ops/report"
)

// applianceFlags identify a server among many.
type applianceFlags struct {
	id     string
	labels []string
	parsed map[string]string
}

func (a *applianceFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.id, "appliance-id", "", "use `ID` in reports and rollouts (default a hash of the machine ID)")
	cmd.Flags().StringArrayVar(&a.labels, "label", nil, "add the label `NAME=VALUE` for reports and rollouts (repeatable)")
}

// check rejects an invalid ID and invalid labels.
func (a *applianceFlags) check() (err error) {
	if a.id != "" && !definition.IsApplianceLabel(a.id) {
		return usageError("--appliance-id takes 1 to %d letters, digits, \".\", \"_\", \"/\" and \"-\"", definition.MaxApplianceLabel)
	}
	a.parsed, err = parseLabels("--label", a.labels)
	return err
}

// parseLabels returns the labels in the values of a flag.
func parseLabels(flag string, values []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, value := range values {
		name, text, ok := strings.Cut(value, "=")
		if !ok || !definition.IsApplianceLabel(name) || !definition.IsApplianceLabel(text) {
			return nil, usageError("%s takes NAME=VALUE, each with 1 to %d letters, digits, \".\", \"_\", \"/\" and \"-\"", flag, definition.MaxApplianceLabel)
		}
		if _, given := labels[name]; given {
			return nil, usageError("%s gives the label %s twice", flag, name)
		}
		labels[name] = text
	}
	if len(labels) > definition.MaxApplianceLabels {
		return nil, usageError("%s may be given at most %d times", flag, definition.MaxApplianceLabels)
	}
	return labels, nil
}

// applianceID returns the ID of this server.
func (f *serveFlags) applianceID(e env) string {
	machine, err := e.disk.readFile("/etc/machine-id")
	if err != nil {
		machine = nil // as on other systems than Linux
	}
	return report.ID(f.appliance.id, string(machine), e.process.host)
}

// applianceLabels returns the labels of a report block and of --label, which wins.
func (f *serveFlags) applianceLabels(block *definition.Report) map[string]string {
	labels := map[string]string{}
	if block != nil {
		maps.Copy(labels, block.Labels)
	}
	maps.Copy(labels, f.appliance.parsed)
	return labels
}

// reporter returns the reporter of the server, which follows the report block in service. The
// caller must call stop when it no longer runs.
func (o *runningServer) reporter() (r *report.Reporter, stop func()) {
	inside := o.server.Inside()
	r = report.New(report.Options{
		Settings: func() (report.Settings, bool) {
			block := o.reportBlock()
			if block == nil {
				return report.Settings{}, false
			}
			return report.Settings{URL: block.URL, Token: block.Token, Every: block.Every}, true
		},
		Report: o.stateReport,
		Secret: inside.Secret,
		Count: func(outcome string) {
			if metrics := inside.Metrics(); metrics != nil {
				metrics.Reported(outcome)
			}
		},
		Logger: o.logger,
	})
	var last atomic.Pointer[engine.Snapshot]
	return r, o.server.Watch(func([]string) { // also of changed resources, which may be frequent
		if now := o.server.Snapshot(); last.Swap(now) != now {
			r.Changed()
		}
	})
}

func (o *runningServer) reportBlock() *definition.Report {
	return o.server.Snapshot().Inside().Definitions().Config.Report
}

// applianceState is the JSON output of status for a server of many: one with --bundle, --appliance-id, --label
// or a report block.
type applianceState struct {
	ID      string            `json:"id"`
	Labels  map[string]string `json:"labels"`
	Reports *reportsState     `json:"reports,omitempty"`
}

// reportsState describes the reports of a report block.
type reportsState struct {
	// Receiver is the scheme and the host of the URL, whose path may be secret.
	Receiver  string    `json:"receiver"`
	Delivered time.Time `json:"delivered,omitzero"`
	Failed    time.Time `json:"failed,omitzero"`
	Failures  int       `json:"failures"`
	Error     string    `json:"error,omitempty"`
}

// applianceState returns how the server reports, or nil if it is not one of many.
func (o *runningServer) applianceState() *applianceState {
	block := o.reportBlock()
	if block == nil && o.flags.bundle.follower == nil && o.flags.appliance.id == "" && len(o.flags.appliance.labels) == 0 {
		return nil
	}
	row := applianceState{ID: o.flags.applianceID(o.env), Labels: o.flags.applianceLabels(block)}
	if block != nil && o.reports != nil {
		now := o.reports.Status()
		row.Reports = &reportsState{Delivered: now.Delivered.UTC(), Failed: now.Failed.UTC(), Failures: now.Failures, Error: now.Problem}
		if u, err := url.Parse(block.URL); err == nil {
			row.Reports.Receiver = u.Scheme + "://" + u.Host
		}
	}
	return &row
}

func (r *applianceState) text() string {
	parts := []string{r.ID}
	for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
		parts = append(parts, name+"="+r.Labels[name])
	}
	return strings.Join(parts, ", ")
}

func (r *reportsState) text() string {
	text := "to " + r.Receiver + ", none delivered yet"
	if !r.Delivered.IsZero() {
		text = "to " + r.Receiver + ", last delivered at " + r.Delivered.Format(time.RFC3339)
	}
	if r.Failures > 0 {
		text += fmt.Sprintf("; %s failed, last at %s: %s", count(r.Failures, "attempt"), r.Failed.Format(time.RFC3339), r.Error)
	}
	return text
}

// stateReport returns the current state of the server for a report.
func (o *runningServer) stateReport() report.Report {
	status := o.front.Status()
	row := o.row(status)
	r := report.Report{
		Format: report.Format, ID: o.flags.applianceID(o.env), Time: o.env.now().UTC(), Labels: o.flags.applianceLabels(o.reportBlock()),
		Server: report.ServerName(o.server.Snapshot().Info().Name), Version: row.Version, Started: row.Started.UTC(), UptimeSeconds: int64(row.UptimeSeconds),
		Healthy: row.Status == "healthy", Ready: row.Ready, RestartNeeded: row.RestartNeeded, Revision: row.Revision,
		Serves: report.Serves{Tools: row.Serves.Tools, Resources: row.Serves.Resources, Templates: row.Serves.Templates, Prompts: row.Serves.Prompts},
		Loads:  report.Loads(row.Loads), Calls: report.Calls{Running: row.Calls.Running, Outcomes: o.server.Inside().Outcomes()},
		Upstreams: report.Upstreams{Total: len(row.Upstreams)},
	}
	r.Problems, r.ProblemsOmitted = report.ProblemsOf(status.Problems)
	for _, u := range row.Upstreams {
		if !u.Up && !u.Idle {
			r.Upstreams.Unreachable++
		}
	}
	if b := row.Bundle; b != nil {
		r.Bundle = &report.Bundle{Name: b.Name, Serial: b.Serial, Digest: b.Digest, Expires: b.Expires, Pending: b.Pending, Checked: b.Checked, Problem: b.Code}
		r.Bundle.Problems, r.Bundle.ProblemsOmitted = report.ProblemsOf(b.Files)
	}
	return r
}
