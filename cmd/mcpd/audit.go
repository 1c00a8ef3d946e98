package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/loader"
	"github.com/mcpd/mcpd/internal/ops/audit"
)

func newAudit(e env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Verify, print, export and merge audit logs",
		Long: `Audit reads the log that the audit block of mcpd.hcl configures. It is safe to use
while a server writes the log.`,
		Example: `  mcpd audit verify
  mcpd audit tail --follow
  mcpd audit export --format csv --since 2026-07-01 > july.csv`,
		RunE: helpOnVerbs,
		Args: cobra.ArbitraryArgs,
	}
	cmd.AddCommand(newAuditVerify(e), newAuditTail(e), newAuditExport(e), newAuditMerge(e))
	return cmd
}

// auditPathFlags holds the flags that locate an audit log.
type auditPathFlags struct{ files projectFlags }

func (l *auditPathFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.files.config, "config", "./mcpd.hcl", "read the path of the log from the configuration `FILE`")
	_ = cmd.MarkFlagFilename("config", "hcl")
	l.files.addVars(cmd)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usageError("mcpd audit %s takes one path, not %d; see mcpd audit %[1]s --help", cmd.Name(), len(args))
		}
		return nil
	}
	cmd.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
}

// path returns the path of the log: the operand, the only log in the directory that the
// operand names, or the path in the configuration file.
func (l *auditPathFlags) path(e env, args []string) (string, error) {
	if len(args) == 1 {
		return logAt(e, args[0])
	}
	values, err := l.files.values(e)
	if err != nil {
		return "", err
	}
	vars := definition.VarValues{}
	for name, value := range values {
		vars[name] = definition.VarValue(value)
	}
	folder := filepath.Dir(l.files.config)
	name := filepath.ToSlash(filepath.Clean(l.files.config))
	read := loader.ReadConfig(engine.Dir(e.resolve(folder)), name, vars)
	if read.Problems.HasErrors() {
		if err := (diag.Printer{Sources: read.Sources, Color: e.color}).Print(e.stderr, read.Problems); err != nil {
			return "", err
		}
		return "", usageError("%s has errors; pass the PATH of the log", name)
	}
	if read.Config.Audit == nil {
		return "", usageError("%s has no audit block; pass the PATH of the log", name)
	}
	if path := read.Config.Audit.Path; filepath.IsAbs(path) {
		return path, nil
	}
	return filepath.Join(folder, filepath.FromSlash(read.Config.Audit.Path)), nil
}

// unread returns the error for a log that cannot be read. A missing log is a usage
// error.
func unread(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return usageError("audit log %s is missing or incomplete: %v", path, err)
	}
	return findingsError("%v", err)
}

func newAuditVerify(e env) *cobra.Command {
	var l auditPathFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify [PATH]",
		Short: "Verify that an audit log was not changed",
		Long: `Verify reads an audit log and reports records that were changed, moved, removed or
inserted, missing files and a truncated end. It needs the key file beside the log.

Anyone with that key can forge a valid log. Store the last line of the output on
another machine: it names the latest record and its code, so that you can recognize a
replaced log.

The exit code is 1 if there are findings.`,
		Example: `  mcpd audit verify
  mcpd audit verify audit/mcpd.jsonl --json`,
		RunE: func(_ *cobra.Command, args []string) error { return verifyAudit(e, &l, args, asJSON) },
	}
	l.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	return cmd
}

func verifyAudit(e env, l *auditPathFlags, args []string, asJSON bool) error {
	path, err := l.path(e, args)
	if err != nil {
		return err
	}
	report, err := audit.Verify(e.resolve(path))
	if err != nil {
		return unread(path, err)
	}
	if asJSON {
		err = printJSON(e.stdout, report)
	} else {
		err = printAudit(e, report)
	}
	if err == nil && len(report.Findings) > 0 {
		return &exitError{code: exitFindings} // the report was printed
	}
	return err
}

// printAudit prints a report for people: one line for each finding, then a summary.
func printAudit(e env, r *audit.Report) error {
	var b strings.Builder
	for _, f := range r.Findings {
		b.WriteString(sanitize(f.String()) + "\n")
	}
	if r.More > 0 {
		fmt.Fprintf(&b, "and %d more\n", r.More)
	}
	if r.Unfinished > 0 {
		fmt.Fprintf(&b, "the last line is incomplete (%s): it is being written, or its writer was killed\n", count(r.Unfinished, "byte"))
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

// auditExport holds the flags of audit export.
type auditExport struct {
	log                  auditPathFlags
	format, since, until string
}

func newAuditExport(e env) *cobra.Command {
	var x auditExport
	cmd := &cobra.Command{
		Use:   "export [PATH]",
		Short: "Print an audit log as JSON Lines, CSV or OTLP",
		Long: `Export prints the records of an audit log, or of a time range. The formats are JSON
Lines, CSV and OTLP log requests in JSON, one request per line. It skips lines that are
not records, and prints their number on standard error.`,
		Example: `  mcpd audit export --format csv > calls.csv
  mcpd audit export --format otlp-json --since 2026-07-28T09:00:00Z
  mcpd audit export --format jsonl --since 2026-07-01 --until 2026-08-01`,
		RunE: func(_ *cobra.Command, args []string) error { return x.run(e, args) },
	}
	x.log.add(cmd)
	cmd.Flags().StringVar(&x.format, "format", string(audit.JSONL), "print as `FORMAT`: jsonl, csv or otlp-json")
	cmd.Flags().StringVar(&x.since, "since", "", "skip records before `TIME`, such as 2026-07-28 or 2026-07-28T09:30:00Z")
	cmd.Flags().StringVar(&x.until, "until", "", "skip records at `TIME` or later")
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
		return usageError("--format takes one of %s", strings.Join(formatNames(), ", "))
	}
	span, err := spanOf(x.since, x.until)
	if err != nil {
		return err
	}
	path, err := x.log.path(e, args)
	if err != nil {
		return err
	}
	strange, err := audit.Export(e.text(), e.resolve(path), audit.Format(x.format), span)
	if err != nil {
		return unread(path, err)
	}
	if strange > 0 {
		return findingsError("%s skipped: not audit records; run mcpd audit verify to locate them", count(strange, "line"))
	}
	return nil
}

// spanOf parses the values of --since and --until.
func spanOf(since, until string) (s audit.TimeRange, err error) {
	if s.Since, err = timeOf("--since", since); err != nil {
		return s, err
	}
	s.Until, err = timeOf("--until", until)
	return s, err
}

// timeOf parses a time flag: a day, which starts at midnight UTC, or an RFC 3339 time.
func timeOf(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, usageError("%s takes a day or a time, such as 2026-07-28 or 2026-07-28T09:30:00Z", flag)
	}
	return t, nil
}

// auditTail holds the flags of audit tail.
type auditTail struct {
	log    auditPathFlags
	lines  int
	follow bool
	asJSON bool
	// unanswered prints only approval requests without an answer.
	unanswered bool
}

func newAuditTail(e env) *cobra.Command {
	var t auditTail
	cmd := &cobra.Command{
		Use:   "tail [PATH]",
		Short: "Print the last records of an audit log",
		Long: `Tail prints the last records of an audit log, oldest first: time, call, caller and
outcome. It does not verify them; mcpd audit verify does. With --unanswered it prints
the last approval requests that were neither granted nor refused.`,
		Example: `  mcpd audit tail
  mcpd audit tail -n 100 --json audit/mcpd.jsonl
  mcpd audit tail --follow
  mcpd audit tail --unanswered`,
		RunE: func(_ *cobra.Command, args []string) error { return t.run(e, args) },
	}
	t.log.add(cmd)
	cmd.Flags().IntVarP(&t.lines, "lines", "n", 20, "print the last `N` records")
	cmd.Flags().BoolVarP(&t.follow, "follow", "f", false, "print new records until interrupted")
	cmd.Flags().BoolVar(&t.asJSON, "json", false, "print the lines of the log unchanged")
	cmd.Flags().BoolVar(&t.unanswered, "unanswered", false, "print approval requests without an answer")
	return cmd
}

func (t *auditTail) run(e env, args []string) error {
	if t.lines < 0 || t.lines > audit.MaxTail {
		return usageError("-n takes a number from 0 to %d", audit.MaxTail)
	}
	if t.unanswered && t.follow {
		return usageError("--unanswered cannot be used with --follow")
	}
	path, err := t.log.path(e, args)
	if err != nil {
		return err
	}
	if t.unanswered {
		if err := audit.PendingApprovals(e.resolve(path), t.lines, func(l *audit.Line) error { return t.print(e.text(), l) }); err != nil {
			return unread(path, err)
		}
		return nil
	}
	// With -n 0 the last record is still read: --follow starts after it.
	var last []*audit.Line
	if err := audit.Tail(e.resolve(path), max(t.lines, 1), func(l *audit.Line) error {
		last = append(last, l)
		return nil
	}); err != nil {
		return unread(path, err)
	}
	for _, l := range last[max(0, len(last)-t.lines):] {
		if err := t.print(e.text(), l); err != nil {
			return err
		}
	}
	if !t.follow {
		return nil
	}
	var seen uint64
	if len(last) > 0 {
		seen = last[len(last)-1].Seq
	}
	ctx, _, stop := e.service.signals()
	defer stop()
	return audit.Follow(ctx, e.resolve(path), seen, func(l *audit.Line) error { return t.print(e.text(), l) })
}

func (t *auditTail) print(out io.Writer, l *audit.Line) error {
	text := sanitize(l.String())
	if t.asJSON {
		text = string(l.JSON)
	}
	_, err := fmt.Fprintln(out, text)
	return err
}
