package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/internal/ops/audit"
)

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
		if err := audit.Unanswered(e.at(path), t.lines, func(l *audit.Line) error { return t.print(e.text(), l) }); err != nil {
			return unread(path, err)
		}
		return nil
	}
	// Where nothing is to be printed, the last record is still what others follow.
	var last []*audit.Line
	if err := audit.Tail(e.at(path), max(t.lines, 1), func(l *audit.Line) error {
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
	ctx, _, stop := e.signals()
	defer stop()
	return audit.Follow(ctx, e.at(path), seen, func(l *audit.Line) error { return t.print(e.text(), l) })
}

// print prints one record.
func (t *auditTail) print(out io.Writer, l *audit.Line) error {
	text := printable(l.String())
	if t.asJSON {
		text = string(l.JSON)
	}
	_, err := fmt.Fprintln(out, text)
	return err
}
