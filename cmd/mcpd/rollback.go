package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/internal/ops/control"
	"github.com/mcpd/mcpd/internal/ops/history"
)

func newRollback(e env) *cobra.Command {
	var a controlClientFlags
	var yes bool
	cmd := &cobra.Command{
		Use:   "rollback [REV]",
		Short: "Write the files of an earlier revision back",
		Long: `Rollback replaces the files on disk by the files of a revision in mcpd history, and makes the
server load them. Without REV it takes the revision before the one that serves, so that a second
rollback undoes the first. It changes nothing if a file on disk is not what the server serves.
After an interruption, run it again.

The files of a bundle are signed: rollback prints how to build a new bundle instead.`,
		Example: `  mcpd rollback
  mcpd rollback 3f2a91c0 --yes`,
		Args: needs(0, 1, "mcpd rollback takes at most one revision; see mcpd rollback --help"),
		RunE: func(cmd *cobra.Command, args []string) error {
			revision := control.Previous
			if len(args) == 1 {
				revision = args[0]
			}
			return a.rollback(cmd.Context(), e, revision, yes)
		},
	}
	a.add(cmd)
	_ = cmd.Flags().MarkHidden("json")
	cmd.Flags().BoolVar(&yes, "yes", false, "write the files without a question")
	return cmd
}

func (a *controlClientFlags) rollback(ctx context.Context, e env, revision string, yes bool) error {
	row, err := a.filesOf(ctx, e, revision)
	if err != nil {
		return err
	}
	short := sanitize(fmt.Sprintf("%.12s", row.Entry.Revision))
	switch changes := history.Changes(row.Serving, history.SumsOf(row.Files)); {
	case row.Bundle || a.files.dir != "": // the server must not lead to the files of another one
		return findingsError("serial numbers of bundles only grow; build a new bundle from the earlier files, and sign it:\n  mcpd history export %s DIR --bundle-dir %s\n  mcpd bundle build DIR -o FILE --name NAME --serial N\n  mcpd bundle sign FILE --key FILE", short, sanitize(a.files.dir))
	case row.Serving == nil:
		return findingsError("the files on disk have errors and do not serve; fix them, or get the earlier files with mcpd history export %s DIR", short)
	case len(changes) == 0:
		_, err := fmt.Fprintf(e.stdout, "the files of revision %s serve already\n", short)
		return err
	default:
		for _, name := range changes {
			if _, err := fmt.Fprintf(e.stdout, "%s %s\n", name[:1], sanitize(name[1:])); err != nil {
				return err
			}
		}
	}
	if !yes {
		if err := confirmChange(e, fmt.Sprintf("Write the files of revision %s?", short), "confirm with --yes"); err != nil {
			return err
		}
	}
	p := projectDirs{mode: 0o644, name: filepath.Base(a.files.config)}
	if err := p.open(e.resolve(a.files.tools), e.resolve(filepath.Dir(a.files.config))); errors.Is(err, fs.ErrNotExist) {
		return findingsError("%v; %s", err, whereFilesAre)
	} else if err != nil {
		return findingsError("%v", err)
	}
	defer p.close()
	if err := p.change(row.Serving, row.Files); err != nil {
		return findingsError("roll back: %v", err)
	}
	var loaded reloadResult
	if err := a.ask(ctx, e, control.Reload, reloadPatience, &loaded); err != nil {
		return err
	}
	return a.reloaded(e, loaded)
}

// whereFilesAre says how rollback finds the files of a server, which does not tell its paths.
const whereFilesAre = "run mcpd rollback in the folder of the files of the server, or name them with --tools and --config"
