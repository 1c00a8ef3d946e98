package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/serve"
)

func newCheck(e env) *cobra.Command {
	var f projectFlags
	var asJSON, production, insecure bool
	cmd := &cobra.Command{
		Use:   "check [DIR]",
		Short: "Report all errors and warnings in the files",
		Long: `Check loads mcpd.hcl and the tool files as serve does, and reports all errors and
warnings at once. It also checks what serve needs to start: the files of auth and tls
blocks, the directory of the audit log, and the listen address. It creates no files.`,
		Example: `  mcpd check
  mcpd check ./other-tools --json`,
		Args:              oneFolderArg,
		ValidArgsFunction: completeFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.takeFolderArg(args); err != nil {
				return err
			}
			o := engine.Options{Files: engine.Files{Production: production}, Front: fileChecks{serve.Checks{InsecureListen: insecure}}, Mode: engine.Checking}
			return check(cmd, e, &f, o, asJSON)
		},
	}
	cmd.Flags().BoolVar(&production, "production", false, "apply the rules of production mode, even if mcpd.hcl does not set it")
	cmd.Flags().BoolVar(&insecure, "insecure-listen", false, "accept a listen address beyond loopback without authentication")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	f.add(cmd)
	return cmd
}

// fileChecks makes the checks of serve, except that the address is free.
type fileChecks struct{ serve.Checks }

func (fileChecks) CheckVacant(engine.Listen) error { return nil }

func check(cmd *cobra.Command, e env, f *projectFlags, o engine.Options, asJSON bool) error {
	s, err := f.open(e, o)
	if err != nil {
		return err
	}
	defer s.Close(cmd.Context())
	report, err := s.Load(cmd.Context())
	if err == nil {
		report.Problems = slices.Concat(report.Problems, missingPrograms(e, s.Snapshot().Inside().Upstreams())).Sort()
	}
	if asJSON {
		return f.printReport(e, report, err)
	}
	if err := cmp.Or(printProblems(e, report), loadError(report, f.config, err)); err != nil {
		return err
	}
	status := s.Status()
	_, err = fmt.Fprintf(e.stdout, "ok: %s, %s, %s, revision %s\n", offered(status),
		countRules(status), count(status.Hooks, "hook"), status.Revision[:12])
	return err
}

// printReport prints the report of a load as JSON and returns the exit code.
func (f *projectFlags) printReport(e env, report engine.Report, err error) error {
	out := struct {
		OK       bool      `json:"ok"`
		Revision string    `json:"revision"`
		Problems diag.List `json:"problems"`
	}{err == nil, report.Revision, report.Problems}
	if printErr := printJSON(e.stdout, out); printErr != nil {
		return printErr
	}
	err = loadError(report, f.config, err)
	var said *exitError
	if errors.As(err, &said) {
		return &exitError{code: said.code} // the JSON was printed
	}
	return err
}

func countRules(status engine.Status) string {
	rules := "1 policy"
	if status.Policies != 1 {
		rules = fmt.Sprintf("%d policies", status.Policies)
	}
	if status.Limits > 0 {
		rules += ", " + count(status.Limits, "limit")
	}
	return rules
}

// missingPrograms warns of upstreams with a command that this machine does not have.
// These are warnings, because another machine may run the server.
func missingPrograms(e env, upstreams []definition.Upstream) (warnings diag.List) {
	for i := range upstreams {
		u := &upstreams[i]
		if len(u.Command) == 0 {
			continue
		}
		if err := e.executables.find(u.Command[0]); err != nil {
			for why := err; why != nil; why = errors.Unwrap(why) {
				err = why // the innermost error does not repeat the path
			}
			warnings = append(warnings, diag.Diagnostic{
				Severity: diag.Warning, Code: "missing-program", Range: u.AddressRange,
				Summary: fmt.Sprintf("cannot run program %q: %v", u.Command[0], err),
				Detail:  fmt.Sprintf("without it, no tool of upstream %q is served; install the program, or correct its path", u.Name),
			})
		}
	}
	return warnings
}
