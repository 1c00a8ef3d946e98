package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/ops/control"
)

// controlOff is the value of --control that makes no socket.
const controlOff = "off"

// controlFlag is where a server answers the one who runs it.
type controlFlag struct{ value string }

func (c *controlFlag) add(cmd *cobra.Command, text string) {
	cmd.Flags().StringVar(&c.value, "control", "", text)
	_ = cmd.MarkFlagFilename("control")
}

// path returns the path of the socket of a server of these files, empty for none.
func (c *controlFlag) path(e env, f *files) string {
	switch c.value {
	case controlOff:
		return ""
	case "":
		return f.kept(e, ".sock")
	default:
		return c.value
	}
}

// controlAnswer is what a server answers: JSON for machines, which verbs print as it is, and
// mistakes of files for people.
type controlAnswer struct {
	Said    json.RawMessage `json:"said"`
	Printed string          `json:"printed"`
}

func (o *operation) answer(ctx context.Context, r control.Request) (any, error) {
	switch r.Do {
	case control.Status:
		status := o.front.Status()
		return answerOf(o.row(status), status.Problems, status.Shown(), r)
	case control.Tokens, control.DropTokens:
		return answerTokens(o.server, r)
	}
	if o.server.Status().Draining {
		return nil, errors.New("the server is shutting down; nothing is read any more")
	}
	report, err := o.reload(ctx, engine.Change{All: true})
	var mistakes diag.List
	if err != nil && !errors.As(err, &mistakes) {
		return nil, fmt.Errorf("reload: %w", err)
	}
	status := o.front.Status()
	return answerOf(reloadRow{
		OK: err == nil, Revision: report.Revision, Problems: encoded(report.Problems), RestartNeeded: status.RestartNeeded,
		Status: status.Health(), Summary: o.line(),
	}, report.Problems, report.Shown(), r)
}

// answerOf joins what machines and people read.
func answerOf(row any, problems diag.List, shown map[string][]byte, r control.Request) (any, error) {
	said, err := json.Marshal(row)
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	var printed bytes.Buffer
	if err := (diag.Printer{Sources: shown, Color: r.Color}).Print(&printed, problems); err != nil {
		return nil, err
	}
	return controlAnswer{said, printed.String()}, nil
}

// encoded returns diagnostics as they stand in a row, which is decoded without them.
func encoded(problems diag.List) json.RawMessage {
	list, err := json.Marshal(problems)
	if err != nil {
		return json.RawMessage("[]") // they are texts and numbers, and have no such error
	}
	return list
}

// asking are the flags of the verbs that ask a server which runs.
type asking struct {
	files   files
	control controlFlag
	asJSON  bool
}

func (a *asking) add(cmd *cobra.Command) {
	a.files.addPaths(cmd)
	a.control.add(cmd, "ask the server that has the socket `PATH` (default that of the server of these files)")
	cmd.Flags().BoolVar(&a.asJSON, "json", false, "print the answer as JSON")
}

// ask asks the server, prints for people what is wrong with its files, or for
// machines all that it says, and decodes that.
func (a *asking) ask(ctx context.Context, e env, do control.Verb, patience time.Duration, row any) error {
	path := a.control.path(e, &a.files)
	if path == "" {
		return usage("name the socket of the server with --control PATH: there is no folder in which it would have one")
	}
	got, err := reach(ctx, e.resolve(path), control.Request{Do: do, Color: e.color && !a.asJSON}, patience, row)
	if errors.Is(err, control.ErrNobody) {
		return findings("no server of %s with %s answers at %s; start one with mcpd serve, or name its socket with --control", a.files.tools, a.files.config, path)
	}
	if err != nil {
		return findings("%v", err)
	}
	if a.asJSON {
		return printJSON(e.stdout, got.Said)
	}
	_, err = fmt.Fprint(e.stderr, got.Printed)
	return err
}

// reach asks the server at a socket, and decodes what it says to machines.
func reach(ctx context.Context, path string, r control.Request, patience time.Duration, row any) (got controlAnswer, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it has not answered within %s", patience))
	defer cancel()
	if err := control.Ask(ctx, path, r, &got); err != nil {
		return got, err
	}
	if err := json.Unmarshal(got.Said, row); err != nil {
		return got, fmt.Errorf("read the answer of the server: %w", err)
	}
	return got, nil
}

// reloadPatience is how long a reload may take, with the tests that it may run.
const reloadPatience = 10 * time.Minute

// reloadRow is what a reload says to machines.
type reloadRow struct {
	OK       bool            `json:"ok"`
	Revision string          `json:"revision"`
	Status   string          `json:"status"`
	Summary  string          `json:"summary"`
	Problems json.RawMessage `json:"problems"`
	// RestartNeeded says that what has changed takes effect when the server is restarted.
	RestartNeeded bool `json:"restart_needed"`
}

func newReload(e env) *cobra.Command {
	var a asking
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Have the server read all its files again",
		Long: `Reload has the server that serves these files read all of them again, secrets
too, as SIGHUP does, waits until it has, and reports all mistakes and warnings.
Where there is a mistake, the server goes on with what it served before, and the
exit code is 1.`,
		Example: `  mcpd reload
  mcpd reload --control /run/mcpd/control.sock --json`,
		Args: noOperand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var row reloadRow
			if err := a.ask(cmd.Context(), e, control.Reload, reloadPatience, &row); err != nil {
				return err
			}
			return a.reloaded(e, row)
		},
	}
	a.add(cmd)
	return cmd
}

func (a *asking) reloaded(e env, row reloadRow) error {
	switch {
	case row.OK && a.asJSON:
		return nil
	case row.OK:
		_, err := fmt.Fprintf(e.stdout, "ok: %s\n", printable(row.Summary))
		return err
	case a.asJSON:
		return &exitError{code: exitFindings} // the JSON has said it
	default:
		return findings("the files have mistakes, and nothing was changed; %s", row.Status)
	}
}
