package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/federation"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
)

func newLock(e env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lock",
		Short: "Show and accept changes to the tools of upstream servers",
		Long: `Lock compares the tools of upstream servers with the accepted definitions in mcpd.lock,
which is beside mcpd.hcl. A tool that was not accepted, or that has changed since, is
quarantined: no caller can call it.`,
		Example: `  mcpd lock diff
  mcpd lock accept github search_code`,
		RunE: helpOnVerbs,
		Args: cobra.ArbitraryArgs,
	}
	cmd.AddCommand(newLockDiff(e), newLockAccept(e))
	return cmd
}

// lockPath returns the path of the lock file.
func (f *projectFlags) lockPath() string { return filepath.Join(filepath.Dir(f.config), "mcpd.lock") }

// lockFlags holds the flags of the verbs of lock.
type lockFlags struct {
	files  projectFlags
	asJSON bool
}

func (l *lockFlags) add(cmd *cobra.Command) {
	l.files.add(cmd)
	l.files.upstreams.add(cmd)
}

// drifts returns the differences between the upstream tools and the lock file. Operands
// select one upstream, or some of its tools.
func (l *lockFlags) drifts(ctx context.Context, e env, operands []string) ([]federation.Drift, error) {
	s, err := l.files.open(e, engine.Options{Mode: engine.Eager})
	if err != nil {
		return nil, err
	}
	defer s.Close(ctx)
	report, err := s.Load(ctx)
	if l.asJSON && err != nil {
		return nil, l.files.printReport(e, report, err)
	}
	if err != nil {
		return nil, cmp.Or(printProblems(e, report), loadError(report, l.files.config, err))
	}
	drifts := s.Inside().Drifts()
	if len(operands) == 0 {
		return drifts, nil
	}
	var names []string
	for i := range drifts {
		if names = append(names, drifts[i].Upstream); drifts[i].Upstream == operands[0] {
			if err := namedByServer(s.Snapshot(), drifts[i], operands[1:]); err != nil {
				return nil, err
			}
			d := drifts[i]
			if tools := operands[1:]; len(tools) > 0 {
				d.Unacceptable = nil
				d.Changes = slices.DeleteFunc(d.Changes, func(c lockfile.Change) bool { return !slices.Contains(tools, c.Name) })
			}
			return []federation.Drift{d}, nil
		}
	}
	hint := diag.DidYouMean(operands[0], names)
	return nil, usageError("no pinned upstream %q; %s", operands[0], cmp.Or(hint, "mcpd status shows all upstreams"))
}

// namedByServer rejects the local name of a renamed tool, since the lock file uses the
// name of the upstream server.
func namedByServer(s *engine.Snapshot, d federation.Drift, names []string) error {
	upstreams := s.Inside().Definitions().Config.Upstreams
	for i := range upstreams {
		if upstreams[i].Name != d.Upstream {
			continue
		}
		for _, own := range d.Tools {
			if here := upstreams[i].LocalName(own); slices.Contains(names, here) && !slices.Contains(d.Tools, here) {
				return findingsError("the upstream name of tool %q is %q; use that name, as mcpd.lock does", here, own)
			}
		}
	}
	return nil
}

// tellUncompared prints the upstreams that could not be compared, and the tools that
// cannot be accepted. It returns the number of these upstreams.
func tellUncompared(e env, drifts []federation.Drift) (uncompared int) {
	for _, d := range drifts {
		if d.Err != nil {
			uncompared++
			warnf(e, "upstream %s cannot be compared: %v", d.Upstream, d.Err)
		}
		for _, why := range d.Unacceptable {
			warnf(e, "upstream %s: cannot accept %s", d.Upstream, why)
		}
	}
	return uncompared
}

func newLockDiff(e env) *cobra.Command {
	var l lockFlags
	cmd := &cobra.Command{
		Use:   "diff [UPSTREAM [TOOL]]",
		Short: "Print the differences from the accepted tools",
		Long: `Diff lists the tools of the upstream servers in mcpd.hcl, and prints how they differ from
mcpd.lock. Use the tool names of the upstream server. The exit code is 0 if nothing
differs, and 1 if something differs or a server cannot be reached.`,
		Example: `  mcpd lock diff
  mcpd lock diff github search_code
  mcpd lock diff --json`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return l.diff(cmd.Context(), e, args) },
	}
	l.add(cmd)
	cmd.Flags().BoolVar(&l.asJSON, "json", false, "print the changes as JSON, with the definitions in full")
	return cmd
}

func (l *lockFlags) diff(ctx context.Context, e env, operands []string) error {
	drifts, err := l.drifts(ctx, e, operands)
	if err != nil {
		return err
	}
	if len(operands) > 1 {
		if err := compared(drifts[0], operands[1]); err != nil {
			return err
		}
	}
	if l.asJSON {
		return l.printDrifts(e, drifts)
	}
	changes := 0
	for _, d := range drifts {
		for _, c := range d.Changes {
			if changes++; changes > 1 {
				fmt.Fprintln(e.text())
			}
			if _, err := fmt.Fprint(e.text(), c.Diff()); err != nil {
				return err
			}
			if c.New.Hides() {
				warnf(e, "tool %q of %s has invisible characters, shown as escapes", c.Name, c.Upstream)
			}
		}
	}
	switch uncompared := tellUncompared(e, drifts); {
	case changes > 0:
		accept := strings.Join(append([]string{"mcpd lock accept"}, operands...), " ")
		return findingsError("%s from %s; to accept the changes: %s", differ(changes), l.files.lockPath(), accept)
	case uncompared > 0:
		return &exitError{code: exitFindings} // the messages were printed
	}
	_, err = fmt.Fprintf(e.stdout, "ok: nothing differs from %s\n", sanitize(l.files.lockPath()))
	return err
}

// compared rejects the name of a tool that is neither listed nor in the lock file.
func compared(d federation.Drift, tool string) error {
	if d.Err != nil || slices.Contains(d.Tools, tool) {
		return nil
	}
	hint := cmp.Or(diag.DidYouMean(tool, d.Tools), fmt.Sprintf("mcpd lock diff %s shows the tools that differ", d.Upstream))
	return findingsError("upstream %s has no tool %q to compare; %s", d.Upstream, tool, hint)
}

func differ(n int) string {
	if n == 1 {
		return "1 tool differs"
	}
	return fmt.Sprintf("%d tools differ", n)
}

// driftRow is the JSON output for an upstream.
type driftRow struct {
	Upstream string    `json:"upstream"`
	Error    string    `json:"error,omitempty"`
	New      bool      `json:"new"`
	Refused  []string  `json:"refused"`
	Changes  []pinsRow `json:"changes"`
}

// pinsRow is the JSON output for a changed tool.
type pinsRow struct {
	Kind string  `json:"kind"`
	Tool string  `json:"tool"`
	Old  *pinRow `json:"old"`
	New  *pinRow `json:"new"`
	Diff string  `json:"diff"`
}

// pinRow is the JSON output for a definition of a tool.
type pinRow struct {
	SHA256     string          `json:"sha256"`
	Definition json.RawMessage `json:"definition"`
}

func pinRowOf(t lockfile.Tool) *pinRow {
	if t.Equal(lockfile.Tool{}) {
		return nil
	}
	return &pinRow{t.Hash(), t.Definition()}
}

func (l *lockFlags) printDrifts(e env, drifts []federation.Drift) error {
	out := struct {
		OK        bool       `json:"ok"`
		Upstreams []driftRow `json:"upstreams"`
	}{OK: true, Upstreams: []driftRow{}}
	for _, d := range drifts {
		row := driftRow{Upstream: d.Upstream, New: d.New, Refused: append([]string{}, d.Unacceptable...), Changes: []pinsRow{}}
		if d.Err != nil {
			row.Error = d.Err.Error()
		}
		for _, c := range d.Changes {
			row.Changes = append(row.Changes, pinsRow{c.Kind.String(), c.Name, pinRowOf(c.Old), pinRowOf(c.New), c.Diff()})
		}
		out.OK = out.OK && d.Err == nil && len(d.Changes) == 0
		out.Upstreams = append(out.Upstreams, row)
	}
	if err := printJSON(e.text(), out); err != nil {
		return err
	}
	if !out.OK {
		return &exitError{code: exitFindings} // the JSON was printed
	}
	return nil
}
