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
	"github.com/mcpd/mcpd/internal/ops/replay"
)

// policyReplay are the flags of policy replay.
type policyReplay struct {
	files        files
	with         string
	since, until string
	unverified   bool
	asJSON       bool
}

func newPolicyReplay(e env) *cobra.Command {
	var x policyReplay
	cmd := &cobra.Command{
		Use:   "replay AUDIT --with DIR",
		Short: "Print which calls of an audit log would be decided otherwise",
		Long: `Replay reads the calls of an audit log, has the policies of the tool files in DIR
judge them, and prints those that these decide otherwise than it was decided then.
Each call is judged as of the time when it was made.

What the log does not hold is not guessed: policies that read arguments can judge
calls whose arguments were kept (capture), and all others are counted as unknown,
with the reason. Limits are not replayed, and no body runs, so that policies over
results judge nothing that was returned.

The log is verified first; one that was changed is not replayed, unless you say
--unverified. The exit code is 1 when a call would be decided otherwise, and 2 when
that cannot be told.`,
		Example: `  mcpd policy replay audit/mcpd.jsonl --with ./tools.d
  mcpd policy replay audit --with ../branch/tools.d --config ../branch/mcpd.hcl --since 2026-07-01`,
		Args: needs(1, 1, "name one audit log, or the folder that it is in: mcpd policy replay AUDIT --with DIR"),
		RunE: func(cmd *cobra.Command, args []string) error { return x.run(cmd.Context(), e, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&x.with, "with", "", "judge by the policies of the tool files in `DIR`")
	flags.StringVar(&x.files.config, "config", "./mcpd.hcl", "read the operator's `FILE`, where it exists")
	_ = cmd.MarkFlagDirname("with")
	_ = cmd.MarkFlagFilename("config", "hcl")
	x.files.addVars(cmd)
	flags.StringVar(&x.since, "since", "", "leave out what was before `TIME`, such as 2026-07-28 or 2026-07-28T09:30:00Z")
	flags.StringVar(&x.until, "until", "", "leave out what was at `TIME` or later")
	flags.BoolVar(&x.unverified, "unverified", false, "replay a log that is not verified, be it for want of its key")
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
		return usage("name the folder of the tool files whose policies judge, with --with DIR")
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

// verified returns the number of the last record of a log that nobody has changed.
func (x *policyReplay) verified(e env, path string) (last uint64, err error) {
	if x.unverified {
		return 0, nil
	}
	report, err := audit.Verify(e.resolve(path))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, unread(path, err)
	}
	if err != nil {
		return 0, usage("%v", err)
	}
	if n := len(report.Findings) + report.More; n > 0 {
		return 0, usage("the audit log has %s, which mcpd audit verify tells; replay it all the same with --unverified", count(n, "finding"))
	}
	return report.Last, nil
}

// compare judges the calls of a log up to a record, and prints those that are decided otherwise.
func (x *policyReplay) compare(ctx context.Context, e env, s *engine.Server, path string, last uint64, span audit.Span) error {
	r := &replay.Replay{Judge: s.Inside().Explain, Counts: replay.Counts{Reasons: map[string]int{}, Names: map[string]int{}}}
	out := &changes{out: bufio.NewWriter(e.text()), asJSON: x.asJSON}
	var err error
	r.Counts.Strange, err = audit.Calls(e.resolve(path), last, func(c *audit.Call) error {
		if !span.Holds(c.Began) {
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
		return &exitError{code: exitFindings} // the changes have said it
	}
	return nil
}

// changes prints calls that are decided otherwise, one after the other, so that it takes
// the memory of one.
type changes struct {
	out    *bufio.Writer
	asJSON bool
	some   bool
}

func (p *changes) change(c *replay.Change) error {
	if p.asJSON {
		r := c.Call
		row, err := indentedJSON(changeRow{
			r.Seq, r.Began.UTC(), r.Call, r.Kind, r.Name, orNull(r.URI), r.Caller.Principal.ID, decisionRowOf(c.Then), decisionRowOf(c.Now),
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
	text := fmt.Sprintf("%s  %s  %s  %s  then %s, now %s", c.Call.Began.UTC().Format(time.RFC3339), c.Call.Call, cmp.Or(c.Call.URI, c.Call.Name), c.Call.Caller.Principal.ID, c.Then, c.Now)
	if r := c.Now.Ruling; r != nil && r.Policy.Compiled != nil {
		text += fmt.Sprintf(" (%s)", r.Policy.Where)
	}
	_, err := p.out.WriteString(printable(text) + "\n")
	return err
}

func (p *changes) end(n replay.Counts) error {
	if p.asJSON {
		return p.endJSON(n)
	}
	fmt.Fprintf(p.out, "%s: %d decided otherwise, %d the same, %d unknown, %d of what is gone\n", count(n.Calls, "call"), n.Different, n.Same, n.Unknown, n.Gone)
	if n.OtherPolicy > 0 {
		fmt.Fprintf(p.out, "  the same: %d denied by another policy\n", n.OtherPolicy)
	}
	for _, reason := range mostFirst(n.Reasons) {
		fmt.Fprintf(p.out, "  unknown: %d, as %s\n", n.Reasons[reason], printable(reason))
	}
	for _, name := range mostFirst(n.Names) {
		fmt.Fprintf(p.out, "  gone: %d of %s\n", n.Names[name], printable(name))
	}
	if n.Strange > 0 {
		fmt.Fprintf(p.out, "  left out: %s that are no records\n", count(n.Strange, "line"))
	}
	return p.out.Flush()
}

// mostFirst returns the names of counts, the largest first.
func mostFirst(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
}

func (p *changes) endJSON(n replay.Counts) error {
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

// changeRow is one call that is decided otherwise.
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

// decisionRow is how a call was or is decided.
type decisionRow struct {
	Verdict   string    `json:"verdict"`
	Policy    *string   `json:"policy"`
	ByDefault bool      `json:"by_default"`
	Place     *placeRow `json:"place"`
}

func decisionRowOf(d replay.Decision) decisionRow {
	row := decisionRow{Verdict: string(d.Verdict), Policy: orNull(d.By), ByDefault: d.ByDefault}
	if d.Ruling != nil && d.Ruling.Policy.Compiled != nil {
		place := placeOf(d.Ruling.Policy.Where)
		row.Place = &place
	}
	return row
}

// logAt returns the path of an audit log: the one that is named, or the only one of a folder.
func logAt(e env, path string) (string, error) {
	info, err := e.disk.stat(path)
	if err != nil || !info.IsDir() {
		return path, nil // a log whose youngest file was put aside has none of its own name
	}
	logs, err := audit.In(e.resolve(path))
	switch {
	case err != nil:
		return "", usage("%v", err)
	case len(logs) != 1:
		return "", usage("there are %d audit logs in %s; name one by its file", len(logs), path)
	}
	return logs[0], nil
}
