package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/internal/ops/control"
	"github.com/mcpd/mcpd/internal/ops/history"
)

func newHistory(e env) *cobra.Command {
	var a controlClientFlags
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Print the last revisions that the server has served",
		Long: `History asks the running server for the last 10 revisions of its files, newest first:
when each began to serve, and which files changed.`,
		Example: `  mcpd history
  mcpd history --json
  mcpd history export 3f2a91c0 ./before`,
		Args: noOperand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var row historyRow
			if err := a.request(cmd.Context(), e, control.Request{Action: control.History}, historyPatience, &row); err != nil || a.asJSON {
				return err
			}
			return row.print(e)
		},
	}
	a.add(cmd)
	cmd.AddCommand(newHistoryExport(e))
	return cmd
}

func (r *historyRow) print(e env) error {
	table := tabwriter.NewWriter(e.stdout, 0, 0, 3, ' ', 0)
	for i, entry := range r.Revisions {
		changes := fmt.Sprintf("%d added, %d changed, %d removed", entry.Added, entry.Changed, entry.Removed)
		if i == len(r.Revisions)-1 && len(entry.Names) == 0 {
			changes = "the first that is known"
		}
		if entry.Bundle != "" {
			changes += fmt.Sprintf("; bundle %s, serial %d", entry.Bundle, entry.Serial)
		}
		if entry.Stored == 0 {
			changes += "; files not stored"
		}
		names := strings.Join(entry.Names, " ")
		if more := entry.Added + entry.Changed + entry.Removed - len(entry.Names); more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		if _, err := fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", sanitize(fmt.Sprintf("%.12s", entry.Revision)), entry.Time.Format(time.RFC3339), count(entry.Files, "file"), sanitize(changes), sanitize(names)); err != nil {
			return err
		}
	}
	return table.Flush()
}

func newHistoryExport(e env) *cobra.Command {
	var a controlClientFlags
	cmd := &cobra.Command{
		Use:   "export REV DIR",
		Short: "Write the files of a revision to a new directory",
		Long: `Export writes the files of a revision to DIR, which must not exist or be empty. REV is the
start of the revision in mcpd history, or "previous" for the one before the one that serves.`,
		Example: `  mcpd history export previous ./before`,
		Args:    needs(2, 2, "mcpd history export takes a revision and a directory; see mcpd history export --help"),
		RunE: func(cmd *cobra.Command, args []string) error {
			row, err := a.filesOf(cmd.Context(), e, args[0])
			if err != nil {
				return err
			}
			dir := e.resolve(args[1])
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return findingsError("create directory: %v", err)
			}
			if found, err := os.ReadDir(dir); err != nil || len(found) > 0 {
				return usageError("%s is not an empty directory", args[1])
			}
			p := projectDirs{}
			if err := p.open(dir, dir, false); err != nil {
				return findingsError("%v", err)
			}
			defer p.close()
			if err := p.change(nil, row.Files); err != nil {
				return findingsError("%v", err)
			}
			_, err = fmt.Fprintf(e.stdout, "%s of revision %.12s in %s\n", count(len(row.Files), "file"), sanitize(row.Revision.Revision), sanitize(args[1]))
			return err
		},
	}
	a.add(cmd)
	_ = cmd.Flags().MarkHidden("json")
	return cmd
}

func newRollback(e env) *cobra.Command {
	var a controlClientFlags
	var yes bool
	cmd := &cobra.Command{
		Use:   "rollback [REV]",
		Short: "Write the files of an earlier revision back",
		Long: `Rollback replaces the files on disk by those of a revision of mcpd history, and makes the
server load them. Without REV it takes the revision before the one that serves, so that a second
rollback undoes the first. It changes nothing if a file on disk is not what the server serves.

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

// filesOf requests the files of a revision.
func (a *controlClientFlags) filesOf(ctx context.Context, e env, revision string) (row filesRow, err error) {
	if revision == "" || len(revision) > 64 || a.asJSON {
		return row, usageError("name a revision of mcpd history, without --json")
	}
	return row, a.request(ctx, e, control.Request{Action: control.History, Revision: revision}, historyPatience, &row)
}

func (a *controlClientFlags) rollback(ctx context.Context, e env, revision string, yes bool) error {
	row, err := a.filesOf(ctx, e, revision)
	if err != nil {
		return err
	}
	short := sanitize(fmt.Sprintf("%.12s", row.Revision.Revision))
	switch changes := history.Changes(row.Serving, row.Files); {
	case row.Bundle:
		return findingsError("serial numbers of bundles only grow; build a new bundle from the earlier files, and sign it:\n  mcpd history export %s DIR\n  mcpd bundle build DIR -o FILE --name NAME --serial N\n  mcpd bundle sign FILE --key FILE", short)
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
		if !e.stdinIsTerminal {
			return usageError("confirm with --yes, as standard input is not a terminal")
		}
		fmt.Fprintf(e.stderr, "Write the files of revision %s? [y/N] ", short)
		if answer, _ := bufio.NewReader(e.stdin).ReadString('\n'); strings.TrimSpace(strings.ToLower(answer)) != "y" {
			return findingsError("nothing was changed")
		}
	}
	p := projectDirs{}
	if err := p.open(e.resolve(a.files.tools), e.resolve(filepath.Dir(a.files.config)), true); err != nil {
		return findingsError("%v", err)
	}
	defer p.close()
	if err := p.change(row.Serving, row.Files); err != nil {
		return findingsError("roll back: %v", err)
	}
	var loaded reloadRow
	if err := a.ask(ctx, e, control.Reload, reloadPatience, &loaded); err != nil {
		return err
	}
	return a.reloaded(e, loaded)
}

// projectDirs are where the files of a project are: the tools directory, and the directory of mcpd.hcl.
// No path leaves these directories, not even through a link.
type projectDirs struct {
	tools, config *os.Root
	split         bool // the tools directory is not below the other one
}

func (p *projectDirs) open(tools, config string, split bool) (err error) {
	p.split = split
	if p.config, err = os.OpenRoot(config); err != nil {
		return err
	}
	if p.tools, err = os.OpenRoot(tools); err != nil {
		return errors.Join(err, p.config.Close())
	}
	return nil
}

func (p *projectDirs) close() { _ = errors.Join(p.tools.Close(), p.config.Close()) }

// at returns the directory and the path of a file of a project.
func (p *projectDirs) at(name string) (*os.Root, string) {
	if below, ok := strings.CutPrefix(name, "tools.d/"); ok && p.split {
		return p.tools, below
	}
	return p.config, name
}

// staged is a written file that is not renamed yet.
type staged struct {
	root            *os.Root
	temporary, name string
}

// change replaces the files before by the files after. It first checks that what it replaces is on
// disk, writes all new files beside the old ones, and then renames all of them, so that an error of
// the disk changes nothing, and a server that watches the directories sees one change.
func (p *projectDirs) change(before, after map[string][]byte) error {
	changes := history.Changes(before, after)
	if err := p.check(before, after); err != nil {
		return err
	}
	var ready []staged
	defer func() {
		for _, s := range ready {
			_ = s.root.Remove(s.temporary) // of a failed change
		}
	}()
	for _, change := range changes {
		if change[0] == '-' {
			continue
		}
		root, name := p.at(change[1:])
		s, err := stage(root, name, after[change[1:]])
		if err != nil {
			return err
		}
		ready = append(ready, s)
	}
	for i, s := range ready {
		// The rename is not synced: after a power cut, a file is the old or the new one.
		if err := s.root.Rename(s.temporary, s.name); err != nil {
			ready = ready[i:]
			return fmt.Errorf("%d of %d files are replaced: %w", i, len(ready)+i, err)
		}
	}
	ready = nil
	for _, change := range changes {
		if root, name := p.at(change[1:]); change[0] == '-' {
			if err := root.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// check returns an error unless the files on disk are those before, and no new file would replace
// another one.
func (p *projectDirs) check(before, after map[string][]byte) error {
	all := maps.Clone(after)
	if all == nil {
		all = map[string][]byte{}
	}
	maps.Copy(all, before)
	for _, full := range slices.Sorted(maps.Keys(all)) {
		root, name := p.at(full)
		old, serves := before[full]
		info, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !serves:
			continue
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is not a regular file; change it by hand", sanitize(full))
		}
		content, err := root.ReadFile(name)
		if err != nil {
			return err
		}
		if !serves || !bytes.Equal(content, old) {
			return fmt.Errorf("%s on disk is not what the server serves; save it elsewhere, and run mcpd reload", sanitize(full))
		}
	}
	return nil
}

// stage writes a hidden file beside the file with this name, with its mode.
func stage(root *os.Root, name string, content []byte) (staged, error) {
	folder := path.Dir(name)
	if err := root.MkdirAll(folder, 0o755); err != nil {
		return staged{}, err
	}
	mode := fs.FileMode(0o644)
	if info, err := root.Lstat(name); err == nil {
		mode = info.Mode().Perm()
	}
	s := staged{root, path.Join(folder, ".rollback-"+rand.Text()), name}
	f, err := root.OpenFile(s.temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return staged{}, err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return staged{}, errors.Join(err, root.Remove(s.temporary))
	}
	return s, nil
}
