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
		Short: "Check and read what was written down of calls",
		Long: `Audit checks and reads the log of calls that an audit block in mcpd.hcl asks
for. It may be used while a server writes the log.`,
		Example: `  mcpd audit verify
  mcpd audit tail --follow
  mcpd audit export --format csv --since 2026-07-01 > july.csv`,
		RunE: helpOnVerbs,
		Args: cobra.ArbitraryArgs,
	}
	cmd.AddCommand(newAuditVerify(e), newAuditTail(e), newAuditExport(e))
	return cmd
}

// auditLog are the flags that say where a log is.
type auditLog struct{ files files }

func (l *auditLog) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.files.config, "config", "./mcpd.hcl", "read the operator's `FILE`, which says where the log is")
	_ = cmd.MarkFlagFilename("config", "hcl")
	l.files.addVars(cmd)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usage("mcpd audit %s takes one path, not %d; see mcpd audit %[1]s --help", cmd.Name(), len(args))
		}
		return nil
	}
	cmd.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
}

// path returns where the log is: at the operand, in the folder that the operand is, or
// where the operator's file says.
func (l *auditLog) path(e env, args []string) (string, error) {
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
		return "", usage("%s has mistakes; name the log as PATH", name)
	}
	if read.Config.Audit == nil {
		return "", usage("%s has no audit block; name the log as PATH", name)
	}
	if path := read.Config.Audit.Path; filepath.IsAbs(path) {
		return path, nil
	}
	return filepath.Join(folder, filepath.FromSlash(read.Config.Audit.Path)), nil
}

// unread returns the error of a log that cannot be read: one that is not there
// was named wrong.
func unread(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return usage("there is no audit log at %s, or a part of it is gone: %v", path, err)
	}
	return findings("%v", err)
}

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
		return findings("%s left out that are no records; mcpd audit verify tells where", count(strange, "line"))
	}
	return nil
}

// spanOf reads the values of --since and --until.
func spanOf(since, until string) (s audit.Span, err error) {
	if s.Since, err = timeOf("--since", since); err != nil {
		return s, err
	}
	s.Until, err = timeOf("--until", until)
	return s, err
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

// auditTail are the flags of audit tail.
type auditTail struct {
	log    auditLog
	lines  int
	follow bool
	asJSON bool
	// unanswered leaves out all but approvals that nobody has given or refused.
	unanswered bool
}

func newAuditTail(e env) *cobra.Command {
	var t auditTail
	cmd := &cobra.Command{
		Use:   "tail [PATH]",
		Short: "Print the last records of an audit log",
		Long: `Tail prints the last records of an audit log, the oldest first: when, what, who,
and what became of it. It does not check them; mcpd audit verify does. With
--unanswered it prints the last approvals that were asked and that nobody has given
or refused since.`,
		Example: `  mcpd audit tail
  mcpd audit tail -n 100 --json audit/mcpd.jsonl
  mcpd audit tail --follow
  mcpd audit tail --unanswered`,
		RunE: func(_ *cobra.Command, args []string) error { return t.run(e, args) },
	}
	t.log.add(cmd)
	cmd.Flags().IntVarP(&t.lines, "lines", "n", 20, "print the last `N` records")
	cmd.Flags().BoolVarP(&t.follow, "follow", "f", false, "print records as they are written, until a signal to stop")
	cmd.Flags().BoolVar(&t.asJSON, "json", false, "print the lines as they were written")
	cmd.Flags().BoolVar(&t.unanswered, "unanswered", false, "print approvals that were asked and not answered")
	return cmd
}

func (t *auditTail) run(e env, args []string) error {
	if t.lines < 0 || t.lines > audit.MaxTail {
		return usage("-n takes a number from 0 to %d", audit.MaxTail)
	}
	if t.unanswered && t.follow {
		return usage("--unanswered tells of what did not follow, and cannot be used with --follow")
	}
	path, err := t.log.path(e, args)
	if err != nil {
		return err
	}
	if t.unanswered {
		if err := audit.Unanswered(e.resolve(path), t.lines, func(l *audit.Line) error { return t.print(e.text(), l) }); err != nil {
			return unread(path, err)
		}
		return nil
	}
	// Where nothing is to be printed, the last record is still what others follow.
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
	text := printable(l.String())
	if t.asJSON {
		text = string(l.JSON)
	}
	_, err := fmt.Fprintln(out, text)
	return err
}
