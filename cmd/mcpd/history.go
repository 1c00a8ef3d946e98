package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/internal/ops/control"
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
			var row historyResult
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

func (r *historyResult) print(e env) error {
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
start of the revision in mcpd history, or "previous" for the one before the one that serves. If
the files on disk have errors and do not serve, "previous" is the one that serves.`,
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
			p := projectDirs{export: true, mode: 0o600}
			if err := p.open(dir, dir); err != nil {
				return findingsError("%v", err)
			}
			defer p.close()
			if err := p.change(nil, row.Files); err != nil {
				return findingsError("%v", err)
			}
			_, err = fmt.Fprintf(e.stdout, "%s of revision %.12s in %s\n", count(len(row.Files), "file"), sanitize(row.Entry.Revision), sanitize(args[1]))
			return err
		},
	}
	a.add(cmd)
	_ = cmd.Flags().MarkHidden("json")
	return cmd
}

// filesOf requests the files of a revision.
func (a *controlClientFlags) filesOf(ctx context.Context, e env, revision string) (row filesResult, err error) {
	if revision == "" || len(revision) > 64 || a.asJSON {
		return row, usageError("name a revision of mcpd history, without --json")
	}
	return row, a.request(ctx, e, control.Request{Action: control.History, Revision: revision}, historyPatience, &row)
}
