package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/internal/base/atomicfile"
	"github.com/mcpd/mcpd/internal/ops/audit"
)

// auditMerge holds the flags of audit merge.
type auditMerge struct {
	output, since, until string
	broken               bool
}

func newAuditMerge(e env) *cobra.Command {
	var m auditMerge
	cmd := &cobra.Command{
		Use:   "merge PATH...",
		Short: "Verify audit logs and print them as one, in the order of time",
		Long: `Merge verifies audit logs, for example of several replicas, as mcpd audit verify does,
and prints their records as one stream of JSON Lines in the order of time. A PATH is a
log or a directory of logs. Each record is unchanged, after a new first member "log":
the path of its log.

If a log was changed, merge prints the findings on standard error, prints no record of
any log, and the exit code is 1. With --include-broken it prints all records; the
records of a log with findings have "log_broken": true.`,
		Example: `  mcpd audit merge logs/a/mcpd.jsonl logs/b/mcpd.jsonl | jq -r '[.time, .log, .outcome] | @tsv'
  mcpd audit merge logs/* --since 2026-07-28T09:00:00Z -o fleet.jsonl`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError("mcpd audit merge needs the paths of logs; see mcpd audit merge --help")
			}
			return nil
		},
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE:              func(_ *cobra.Command, args []string) error { return m.run(e, args) },
	}
	cmd.Flags().StringVarP(&m.output, "output", "o", "", "write to the new `FILE` instead of standard output")
	cmd.Flags().StringVar(&m.since, "since", "", "skip records before `TIME`, such as 2026-07-28 or 2026-07-28T09:30:00Z")
	cmd.Flags().StringVar(&m.until, "until", "", "skip records at `TIME` or later")
	cmd.Flags().BoolVar(&m.broken, "include-broken", false, "print the records although a log has findings")
	_ = cmd.MarkFlagFilename("output")
	return cmd
}

// errBrokenLog is the error of a merge that wrote nothing because a log has findings.
var errBrokenLog = errors.New("a log has findings")

func (m *auditMerge) run(e env, args []string) error {
	span, err := spanOf(m.since, m.until)
	if err != nil {
		return err
	}
	logs, err := mergedLogs(e, args)
	if err != nil {
		return err
	}
	var merged audit.Merged
	merge := func(w io.Writer) (err error) {
		out := bufio.NewWriterSize(w, 1<<20)
		if merged, err = audit.Merge(out, logs, audit.MergeOptions{Range: span, Broken: m.broken}); err != nil {
			return err
		}
		if merged.Broken() && !m.broken {
			return errBrokenLog
		}
		return out.Flush()
	}
	if m.output == "" {
		err = merge(e.text())
	} else {
		err = m.writeFile(e, merge)
	}
	switch usage := (*exitError)(nil); {
	case errors.Is(err, fs.ErrNotExist):
		return usageError("an audit log is missing or incomplete: %v", err)
	case errors.As(err, &usage):
		return err
	case err != nil && !errors.Is(err, errBrokenLog):
		return findingsError("%v", err)
	}
	return m.report(e, merged)
}

// writeFile writes the output to a new file, which exists only if merge succeeds.
func (m *auditMerge) writeFile(e env, merge func(io.Writer) error) error {
	path := e.resolve(m.output)
	switch _, err := os.Lstat(path); {
	case err == nil:
		return usageError("%s exists; choose another file", m.output)
	case !errors.Is(err, fs.ErrNotExist):
		return usageError("%v", err)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return usageError("the directory of %s is missing", m.output)
	}
	return atomicfile.Write(path, nil, 0o600, func(f *os.File) error { return merge(f) })
}

// report prints findings, skipped lines and, for a file, a summary on standard error.
func (m *auditMerge) report(e env, merged audit.Merged) error {
	for _, r := range merged.Reports {
		for _, f := range r.Findings {
			if _, err := fmt.Fprintln(e.stderr, sanitize(f.String())); err != nil {
				return err
			}
		}
		if r.More > 0 {
			if _, err := fmt.Fprintf(e.stderr, "and %d more\n", r.More); err != nil {
				return err
			}
		}
	}
	switch {
	case merged.Broken() && !m.broken:
		return findingsError("no record was printed, because a log was changed; pass --include-broken to print all records")
	case merged.Skipped > 0:
		return findingsError("%s of changed logs skipped: not audit records", count(merged.Skipped, "line"))
	case merged.Broken():
		return &exitError{code: exitFindings} // the findings were printed
	case m.output == "":
		return nil
	}
	_, err := fmt.Fprintf(e.stderr, "%s: %s of %s\n", sanitize(m.output), count(int(merged.Written), "record"), count(len(merged.Reports), "log"))
	return err
}

// mergedLogs returns the logs that operands name, each once: logs, their rotated files,
// and directories that hold logs.
func mergedLogs(e env, args []string) (logs []string, err error) {
	for _, arg := range args {
		found := []string{audit.LogOf(filepath.Clean(e.resolve(arg)))}
		if info, err := e.disk.stat(arg); err == nil && info.IsDir() {
			if found, err = audit.FindLogs(e.resolve(arg)); err != nil {
				return nil, usageError("%v", err)
			}
			if len(found) == 0 {
				return nil, usageError("found no audit log in %s", arg)
			}
		}
		for _, log := range found {
			if !slices.Contains(logs, log) {
				logs = append(logs, log)
			}
		}
	}
	return logs, nil
}
