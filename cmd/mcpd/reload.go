package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/internal/ops/control"
)

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

// reloaded says how a reload ended.
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
