package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/serve"
)

// files are the flags of every verb that reads tools.
type files struct {
	tools, config string
	vars          []string
	// toolsGiven and configGiven say that the flags were written.
	toolsGiven, configGiven bool
}

func (f *files) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.tools, "tools", "./tools.d", "folder of the tool `DIR`")
	cmd.Flags().StringVar(&f.config, "config", "./mcpd.hcl", "the operator's `FILE`, where it exists")
	cmd.Flags().StringArrayVar(&f.vars, "var", nil, "value of a variable, as `NAME=VALUE` (also MCPD_VAR_NAME)")
	_ = cmd.MarkFlagDirname("tools")
	_ = cmd.MarkFlagFilename("config", "hcl")
	cmd.PreRun = func(cmd *cobra.Command, _ []string) {
		f.toolsGiven = cmd.Flags().Changed("tools")
		f.configGiven = cmd.Flags().Changed("config")
	}
}

// open returns a server for the files, not yet loaded.
func (f *files) open(e env, o engine.Options) (*engine.Server, error) {
	vars, err := f.values(e)
	if err != nil {
		return nil, err
	}
	if info, err := e.disk.stat(f.tools); err != nil || !info.IsDir() {
		hint := "; run mcpd init to make one, or name it with --tools"
		if f.toolsGiven {
			hint = ""
		}
		return nil, usage("there is no folder %s%s", f.tools, hint)
	}
	if _, err := e.disk.stat(f.config); err != nil && f.configGiven {
		return nil, usage("cannot read the operator's file: %v", err)
	}
	o.Name, o.Version = "mcpd", version()
	o.Tools, o.ToolsPath = engine.Dir(f.tools), filepath.ToSlash(filepath.Clean(f.tools))
	o.Config, o.ConfigPath = engine.Dir(filepath.Dir(f.config)), filepath.ToSlash(filepath.Clean(f.config))
	o.Trial = trial(e, o.Logger)
	o.Vars, o.LookupEnv, o.CheckTool = vars, e.lookup, serve.CheckTool
	return engine.New(o)
}

// values gathers variables from the environment and from flags, which win.
func (f *files) values(e env) (map[string]engine.VarValue, error) {
	const prefix = "MCPD_VAR_"
	vars := map[string]engine.VarValue{}
	for _, entry := range e.environ {
		name, value, _ := strings.Cut(entry, "=")
		if variable, ok := strings.CutPrefix(name, prefix); ok && variable != "" {
			vars[variable] = engine.VarValue{Text: value, Origin: name}
		}
	}
	for _, flag := range f.vars {
		name, value, ok := strings.Cut(flag, "=")
		if !ok || name == "" {
			return nil, usage("--var takes NAME=VALUE")
		}
		vars[name] = engine.VarValue{Text: value, Origin: "--var " + name}
	}
	return vars, nil
}

// load loads the files and prints what is wrong with them.
func load(ctx context.Context, e env, s *engine.Server, config string) (engine.Report, error) {
	report, err := s.Load(ctx)
	if printErr := printProblems(e, report); printErr != nil {
		return report, printErr
	}
	return report, loadError(report, config, err)
}

// loadError returns the exit code of a failed load: a broken operator's file
// is a matter of usage, broken tool files are findings.
func loadError(report engine.Report, config string, err error) error {
	if err == nil {
		return nil
	}
	var problems diag.List
	if !errors.As(err, &problems) {
		return err
	}
	errorCount := 0
	code := exitFindings
	for _, p := range report.Problems {
		if p.Severity != diag.Error {
			continue
		}
		errorCount++
		if p.Range.File == filepath.ToSlash(filepath.Clean(config)) {
			code = exitUsage
		}
	}
	return &exitError{code: code, text: fmt.Sprintf("%s in the files", count(errorCount, "mistake"))}
}

func printProblems(e env, report engine.Report) error {
	if len(report.Problems) == 0 {
		return nil
	}
	return diag.Printer{Sources: report.Sources, Color: e.colour}.Print(e.stderr, report.Problems)
}

// printJSON prints a value for machines.
func printJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// logging are the flags of verbs that write a log.
type logging struct{ level, format string }

func (l *logging) add(cmd *cobra.Command, level string) {
	cmd.Flags().StringVar(&l.level, "log-level", level, "`LEVEL` of the log: debug, info, warn or error")
	cmd.Flags().StringVar(&l.format, "log-format", "text", "`FORMAT` of the log: text or json")
}

// open returns a logger on stderr.
func (l *logging) open(e env) (*slog.Logger, error) {
	var level slog.Level
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, l.level) || level.UnmarshalText([]byte(l.level)) != nil {
		return nil, usage("--log-level takes debug, info, warn or error")
	}
	switch l.format {
	case "text":
		return slog.New(slog.NewTextHandler(e.stderr, &slog.HandlerOptions{Level: level, ReplaceAttr: dropProblems})), nil
	case "json":
		return slog.New(slog.NewJSONHandler(e.stderr, &slog.HandlerOptions{Level: level})), nil
	default:
		return nil, usage("--log-format takes text or json")
	}
}

// dropProblems takes the mistakes of files out of a log for people, to whom
// they are printed with the lines that they are in.
func dropProblems(_ []string, a slog.Attr) slog.Attr {
	if a.Key == "problems" {
		return slog.Attr{}
	}
	return a
}

// varsFiles is the pattern of the files of values beside the operator's file.
func (f *files) varsFiles() string { return filepath.Join(filepath.Dir(f.config), "*.mcpdvars") }
