package main

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/internal/ops/audit"
)

// auditExport are the flags of audit export.
type auditExport struct {
	log                  auditLog
	format, since, until string
}

func newAuditExport(e env) *cobra.Command {
	var x auditExport
	cmd := &cobra.Command{
		Use:   "export [PATH]",
		Short: "Print an audit log in a form for other programs",
		Long: `Export prints the records of an audit log, or those of a span of time, as JSON
lines, as CSV, or as requests of the OpenTelemetry protocol for logs in JSON, one a
line. Lines that are no records are left out, and counted on standard error.`,
		Example: `  mcpd audit export --format csv > calls.csv
  mcpd audit export --format otlp-json --since 2026-07-28T09:00:00Z
  mcpd audit export --format jsonl --since 2026-07-01 --until 2026-08-01`,
		RunE: func(_ *cobra.Command, args []string) error { return x.run(e, args) },
	}
	x.log.add(cmd)
	cmd.Flags().StringVar(&x.format, "format", string(audit.JSONL), "print as `FORMAT`: jsonl, csv or otlp-json")
	cmd.Flags().StringVar(&x.since, "since", "", "leave out what was before `TIME`, such as 2026-07-28 or 2026-07-28T09:30:00Z")
	cmd.Flags().StringVar(&x.until, "until", "", "leave out what was at `TIME` or later")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formatNames(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func formatNames() []string {
	var names []string
	for _, f := range audit.Formats() {
		names = append(names, string(f))
	}
	return names
}

func (x *auditExport) run(e env, args []string) error {
	if !slices.Contains(formatNames(), x.format) {
		return usage("--format takes one of %s", strings.Join(formatNames(), ", "))
	}
	since, err := timeOf("--since", x.since)
	if err != nil {
		return err
	}
	until, err := timeOf("--until", x.until)
	if err != nil {
		return err
	}
	path, err := x.log.path(e, args)
	if err != nil {
		return err
	}
	strange, err := audit.Export(e.text(), e.at(path), audit.Format(x.format), audit.Span{Since: since, Until: until})
	if err != nil {
		return unread(path, err)
	}
	if strange > 0 {
		return findings("%s left out that are no records; mcpd audit verify tells where", count(strange, "line"))
	}
	return nil
}

// timeOf reads a time of a flag: a day, which begins in UTC, or RFC 3339.
func timeOf(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, usage("%s takes a day or a time, such as 2026-07-28 or 2026-07-28T09:30:00Z", flag)
	}
	return t, nil
}
