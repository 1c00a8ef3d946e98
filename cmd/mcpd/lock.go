package main

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/federation"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
)

func newLock(e env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lock",
		Short: "Show and accept what other servers have changed of their tools",
		Long: `Lock compares the tools of upstream servers with those that were accepted, which
mcpd.lock beside mcpd.hcl holds. A tool that is another than the one that was
accepted, or that nobody has accepted, is in quarantine: nobody can call it.`,
		Example: `  mcpd lock diff
  mcpd lock accept github search_code`,
		RunE: helpOnVerbs,
		Args: cobra.ArbitraryArgs,
	}
	cmd.AddCommand(newLockDiff(e), newLockAccept(e))
	return cmd
}

// lockPath is the file of what was accepted of upstream servers.
func (f *files) lockPath() string { return filepath.Join(filepath.Dir(f.config), "mcpd.lock") }

// locking are the flags of the verbs of lock.
type locking struct {
	files  files
	asJSON bool
}

func (l *locking) add(cmd *cobra.Command) {
	l.files.add(cmd)
	l.files.upstreams.add(cmd)
}

// drifts returns how the tools of all upstreams differ from the lock file, or those of one,
// or some of these.
func (l *locking) drifts(ctx context.Context, e env, operands []string) ([]federation.Drift, error) {
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
			return []federation.Drift{ofTools(drifts[i], operands[1:])}, nil
		}
	}
	hint := diag.DidYouMean(operands[0], names)
	return nil, usage("there is no upstream %q whose tools are pinned; %s", operands[0], cmp.Or(hint, "mcpd status shows all"))
}

// namedByServer refuses names that tools of an upstream have here alone, where its server
// calls them otherwise.
func namedByServer(s *engine.Snapshot, d federation.Drift, names []string) error {
	upstreams := s.Inside().Said().Config.Upstreams
	for i := range upstreams {
		if upstreams[i].Name != d.Upstream {
			continue
		}
		for _, own := range d.Tools {
			if here := upstreams[i].Renamed(own); slices.Contains(names, here) && !slices.Contains(d.Tools, here) {
				return findings("the tool %q is called %q by its server, and so in mcpd.lock: write that name", here, own)
			}
		}
	}
	return nil
}

// ofTools returns of a drift what is of some tools; no names are those of all.
func ofTools(d federation.Drift, names []string) federation.Drift {
	if len(names) > 0 {
		d.Refused = nil
		d.Changes = slices.DeleteFunc(d.Changes, func(c lockfile.Change) bool { return !slices.Contains(names, c.Name) })
	}
	return d
}

// tellUncompared says which upstreams could not be compared, and of which tools nothing can
// be accepted.
func tellUncompared(e env, drifts []federation.Drift) (uncompared int) {
	for _, d := range drifts {
		if d.Err != nil {
			uncompared++
			tell(e, "the upstream %s cannot be compared: %v", d.Upstream, d.Err)
		}
		for _, why := range d.Refused {
			tell(e, "of the upstream %s nobody can accept %s", d.Upstream, why)
		}
	}
	return uncompared
}
