package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/ops/audit"
	"github.com/mcpd/mcpd/internal/ops/control"
	"github.com/mcpd/mcpd/internal/ops/replay"
)

// policyReplay holds the flags of policy replay.
type policyReplay struct {
	files        projectFlags
	with         string
	since, until string
	unverified   bool
	asJSON       bool
}

func newPolicyReplay(e env) *cobra.Command {
	var x policyReplay
	cmd := &cobra.Command{
		Use:   "replay AUDIT --with DIR",
		Short: "Print the calls of an audit log that other policies decide differently",
		Long: `Replay evaluates the policies of the tool files in DIR for the calls of an audit log. It
prints each call that these policies would decide differently. Each call is evaluated
at the time when it was made.

Replay does not guess missing facts. A policy that reads arguments needs a log with
captured arguments (capture); other calls count as unknown, with the reason. Rate limits
are not replayed. No script runs, so policies over results are not evaluated.

The log is verified first. A changed log is replayed only with --unverified. The exit
code is 1 if the policies decide a call differently, and 2 if replay fails.`,
		Example: `  mcpd policy replay audit/mcpd.jsonl --with ./tools.d
  mcpd policy replay audit --with ../branch/tools.d --config ../branch/mcpd.hcl --since 2026-07-01`,
		Args: needs(1, 1, "name one audit log or its directory: mcpd policy replay AUDIT --with DIR"),
		RunE: func(cmd *cobra.Command, args []string) error { return x.run(cmd.Context(), e, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&x.with, "with", "", "evaluate the policies of the tool files in `DIR`")
	flags.StringVar(&x.files.config, "config", "./mcpd.hcl", "read the configuration in `FILE`; the default file is optional")
	_ = cmd.MarkFlagDirname("with")
	_ = cmd.MarkFlagFilename("config", "hcl")
	x.files.addVars(cmd)
	flags.StringVar(&x.since, "since", "", "skip calls before `TIME`, such as 2026-07-28 or 2026-07-28T09:30:00Z")
	flags.StringVar(&x.until, "until", "", "skip calls at `TIME` or later")
	flags.BoolVar(&x.unverified, "unverified", false, "replay a log without verifying it")
	flags.BoolVar(&x.asJSON, "json", false, "print the calls and the counts as JSON")
	cmd.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	return cmd
}

func (x *policyReplay) run(ctx context.Context, e env, path string) error {
	span, err := spanOf(x.since, x.until)
	if err != nil {
		return err
	}
	if x.with == "" {
		return usageError("name the directory of the tool files with --with DIR")
	}
	x.files.tools, x.files.toolsGiven = x.with, true
	if path, err = logAt(e, path); err != nil {
		return err
	}
	s, err := x.files.open(e, engine.Options{Mode: engine.Offline})
	if err != nil {
		return err
	}
	defer s.Close(ctx)
	if err := x.files.load(ctx, e, s, x.asJSON); err != nil {
		return untold(err)
	}
	last, err := x.verified(e, path)
	if err != nil {
		return err
	}
	return x.compare(ctx, e, s, path, last, span)
}

// verified verifies a log and returns the number of its last record.
func (x *policyReplay) verified(e env, path string) (last uint64, err error) {
	if x.unverified {
		return 0, nil
	}
	report, err := audit.Verify(e.resolve(path))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, unread(path, err)
	}
	if err != nil {
		return 0, usageError("%v", err)
	}
	if n := len(report.Findings) + report.More; n > 0 {
		return 0, usageError("the audit log has %s (see mcpd audit verify); to replay it anyway, use --unverified", count(n, "finding"))
	}
	return report.Last, nil
}

// compare evaluates the calls of a log up to a record, and prints the changed
// decisions.
func (x *policyReplay) compare(ctx context.Context, e env, s *engine.Server, path string, last uint64, span audit.TimeRange) error {
	r := &replay.Replay{Evaluate: s.Inside().Explain, Counts: replay.Counts{Reasons: map[string]int{}, Names: map[string]int{}}}
	out := &changePrinter{out: bufio.NewWriter(e.text()), asJSON: x.asJSON}
	var err error
	r.Counts.NoRecords, err = audit.Calls(e.resolve(path), last, func(c *audit.Call) error {
		if !span.Contains(c.Began) {
			return nil
		}
		change, err := r.Compare(ctx, c)
		if err != nil || change == nil {
			return err
		}
		return out.change(change)
	})
	if err != nil {
		return untold(err)
	}
	if err := out.end(r.Counts); err != nil {
		return err
	}
	if r.Counts.Different > 0 {
		return &exitError{code: exitFindings} // the changes were printed
	}
	return nil
}

// changePrinter prints changed decisions as they come, so that memory use stays constant.
type changePrinter struct {
	out    *bufio.Writer
	asJSON bool
	some   bool
}

func (p *changePrinter) change(c *replay.DecisionChange) error {
	if p.asJSON {
		r := c.Call
		row, err := indentedJSON(changeRow{
			r.Seq, r.Began.UTC(), r.Call, r.Kind, r.Name, orNull(r.URI), r.Caller.Principal.ID, decisionRowOf(c.Recorded), decisionRowOf(c.Current),
		}, "    ")
		if err != nil {
			return err
		}
		begin := ",\n    "
		if !p.some {
			begin = "{\n  \"changes\": [\n    "
		}
		p.some = true
		_, err = p.out.WriteString(begin + string(row))
		return err
	}
	text := fmt.Sprintf("%s  %s  %s  %s  then %s, now %s", c.Call.Began.UTC().Format(time.RFC3339), c.Call.Call, cmp.Or(c.Call.URI, c.Call.Name), c.Call.Caller.Principal.ID, c.Recorded, c.Current)
	if r := c.Current.Ruling; r != nil && r.Policy.Compiled != nil {
		text += fmt.Sprintf(" (%s)", r.Policy.Where)
	}
	_, err := p.out.WriteString(sanitize(text) + "\n")
	return err
}

func (p *changePrinter) end(n replay.Counts) error {
	if p.asJSON {
		return p.endJSON(n)
	}
	fmt.Fprintf(p.out, "%s: %d decided differently, %d the same, %d unknown, %d of removed items\n", count(n.Calls, "call"), n.Different, n.Same, n.Unknown, n.Gone)
	if n.DifferentPolicy > 0 {
		fmt.Fprintf(p.out, "  the same: %d denied by another policy\n", n.DifferentPolicy)
	}
	for _, reason := range mostFirst(n.Reasons) {
		fmt.Fprintf(p.out, "  unknown: %d, because %s\n", n.Reasons[reason], sanitize(reason))
	}
	for _, name := range mostFirst(n.Names) {
		fmt.Fprintf(p.out, "  removed: %d of %s\n", n.Names[name], sanitize(name))
	}
	if n.NoRecords > 0 {
		fmt.Fprintf(p.out, "  skipped: %s, not audit records\n", count(n.NoRecords, "line"))
	}
	return p.out.Flush()
}

// mostFirst returns the names, largest count first.
func mostFirst(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
}

func (p *changePrinter) endJSON(n replay.Counts) error {
	begin := "\n  ],\n"
	if !p.some {
		begin = "{\n  \"changes\": [],\n"
	}
	counts, err := indentedJSON(n, "  ")
	if err != nil {
		return err
	}
	if _, err := p.out.WriteString(begin + "  \"counts\": " + string(counts) + "\n}\n"); err != nil {
		return err
	}
	return p.out.Flush()
}

// changeRow is the JSON output for a call with a changed decision.
type changeRow struct {
	Seq       uint64      `json:"seq"`
	Time      time.Time   `json:"time"`
	CallID    string      `json:"call_id"`
	Kind      string      `json:"kind"`
	Name      string      `json:"name"`
	URI       *string     `json:"uri"`
	Principal string      `json:"principal"`
	Then      decisionRow `json:"then"`
	Now       decisionRow `json:"now"`
}

// decisionRow is the JSON output for a decision.
type decisionRow struct {
	Verdict   string         `json:"verdict"`
	Policy    *string        `json:"policy"`
	ByDefault bool           `json:"by_default"`
	Place     *control.Place `json:"place"`
}

func decisionRowOf(d replay.PolicyOutcome) decisionRow {
	row := decisionRow{Verdict: string(d.Verdict), Policy: orNull(d.By), ByDefault: d.ByDefault}
	if d.Ruling != nil && d.Ruling.Policy.Compiled != nil {
		place := placeOf(d.Ruling.Policy.Where)
		row.Place = &place
	}
	return row
}

// logAt returns the path of an audit log: the named file, or the only log in a
// directory.
func logAt(e env, path string) (string, error) {
	info, err := e.disk.stat(path)
	if err != nil || !info.IsDir() {
		return path, nil // after a rotation the current file may be missing
	}
	logs, err := audit.FindLogs(e.resolve(path))
	switch {
	case err != nil:
		return "", usageError("%v", err)
	case len(logs) != 1:
		return "", usageError("found %d audit logs in %s; name one file", len(logs), path)
	}
	return logs[0], nil
}
