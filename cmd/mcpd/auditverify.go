package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/internal/ops/audit"
)

func newAuditVerify(e env) *cobra.Command {
	var l auditLog
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify [PATH]",
		Short: "Check that nothing was changed in an audit log",
		Long: `Verify reads an audit log from its first line to its last, and reports lines that
were changed, moved, taken out or put in, files that are missing, and an end that
was cut off. It needs the key of the log, which stands beside it.

Whoever has that key can write a log that is good. Note the last line of what
verify prints elsewhere: it names the youngest record and its code, by which a
later log can be told from another.

The exit code is 1 when there are findings.`,
		Example: `  mcpd audit verify
  mcpd audit verify audit/mcpd.jsonl --json`,
		RunE: func(_ *cobra.Command, args []string) error { return verifyAudit(e, &l, args, asJSON) },
	}
	l.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	return cmd
}

func verifyAudit(e env, l *auditLog, args []string, asJSON bool) error {
	path, err := l.path(e, args)
	if err != nil {
		return err
	}
	report, err := audit.Verify(e.at(path), nil)
	if err != nil {
		return unread(path, err)
	}
	if asJSON {
		err = printJSON(e.stdout, report)
	} else {
		err = printAudit(e, report)
	}
	if err == nil && len(report.Findings) > 0 {
		return &exitError{code: exitFindings} // the report has said it
	}
	return err
}

// printAudit prints a report for people: a line for each finding, and a last one
// that sums up.
func printAudit(e env, r *audit.Report) error {
	var b strings.Builder
	for _, f := range r.Findings {
		b.WriteString(printable(f.String()) + "\n")
	}
	if r.More > 0 {
		fmt.Fprintf(&b, "and %d more\n", r.More)
	}
	if r.Unfinished > 0 {
		fmt.Fprintf(&b, "a last line of %s is not finished: it is being written, or its writer was killed\n", count(r.Unfinished, "byte"))
	}
	verdict := "the log is good"
	if n := len(r.Findings) + r.More; n > 0 {
		verdict = count(n, "finding")
	}
	fmt.Fprintf(&b, "%s: %d to %d in %s, %s", count(int(r.Records), "record"), r.First, r.Last, count(r.Files, "file"), verdict)
	if r.MAC != "" {
		fmt.Fprintf(&b, ", last code %s", r.MAC)
	}
	_, err := fmt.Fprintln(e.stdout, b.String())
	return err
}
