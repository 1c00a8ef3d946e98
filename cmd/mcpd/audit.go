package main

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/language/hclfile"
	"github.com/mcpd/mcpd/internal/language/loader"
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
	vars := hclfile.VarValues{}
	for name, value := range values {
		vars[name] = hclfile.VarValue(value)
	}
	folder := filepath.Dir(l.files.config)
	name := filepath.ToSlash(filepath.Clean(l.files.config))
	read := loader.ReadConfig(engine.Dir(e.at(folder)), name, vars)
	if read.Problems.HasErrors() {
		if err := (diag.Printer{Sources: read.Sources, Color: e.colour}).Print(e.stderr, read.Problems); err != nil {
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
