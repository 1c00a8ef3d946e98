package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/serve"
)

// projectFlags holds the flags of every verb that reads tools.
type projectFlags struct {
	tools, config string
	vars          []string
	// toolsGiven and configGiven report whether the flags were set.
	toolsGiven, configGiven bool
	// serving is true for serve, which owns the audit log. Other verbs run beside a
	// server.
	serving bool
	// dir is the directory for the state and the control socket of a server with --bundle; ""
	// is the user's state directory.
	dir string
	// upstreams holds the upstream flags, for verbs that connect to upstream servers.
	upstreams upstreamFlags
}

func (f *projectFlags) add(cmd *cobra.Command) {
	f.addPaths(cmd)
	f.addVars(cmd)
}

// addVars adds --var. It also records which flags were set.
func (f *projectFlags) addVars(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.vars, "var", nil, "set a variable, as `NAME=VALUE` (also MCPD_VAR_NAME)")
	cmd.PreRun = func(cmd *cobra.Command, _ []string) { f.note(cmd) }
}

// note records which flags were set. A verb with a PreRunE must call it there, because
// cobra then skips PreRun.
func (f *projectFlags) note(cmd *cobra.Command) {
	f.toolsGiven = cmd.Flags().Changed("tools")
	f.configGiven = cmd.Flags().Changed("config")
}

func (f *projectFlags) addPaths(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.tools, "tools", "./tools.d", "read the tool files in `DIR`")
	cmd.Flags().StringVar(&f.config, "config", "./mcpd.hcl", "read the configuration in `FILE`; the default file is optional")
	_ = cmd.MarkFlagDirname("tools")
	_ = cmd.MarkFlagFilename("config", "hcl")
}

// takeFolderArg sets the tools directory from the operand.
func (f *projectFlags) takeFolderArg(args []string) error {
	if len(args) == 0 {
		return nil
	}
	if f.toolsGiven {
		return usageError("give the directory either as DIR or with --tools")
	}
	f.tools, f.toolsGiven = args[0], true
	return nil
}

// open returns a server for the files, which are not yet loaded.
func (f *projectFlags) open(e env, o engine.Options) (*engine.Server, error) {
	vars, err := f.values(e)
	if err != nil {
		return nil, err
	}
	if o.Mode != engine.Offline && o.Mode != engine.Checking {
		if o.Upstreams, err = f.upstreams.servers(e); err != nil {
			return nil, err
		}
	}
	if o.Files.Config == nil {
		if err := f.setFiles(e, &o); err != nil {
			return nil, err
		}
	}
	o.Name, o.Version, o.Extensions = "mcpd", version(), append(extensions(), o.Extensions...)
	o.Scripts.Trial, o.Scripts.Supervisor = compileCheck(e, o.Logger), supervise(e)
	if o.Mode == engine.Mode(0) && !f.serving {
		o.Mode = engine.ReadOnly
	}
	if o.Front == nil {
		o.Front = serve.ToolChecks{}
	}
	o.Files.Vars, o.Files.LookupEnv = vars, e.vars.lookup
	return engine.New(o)
}

// setFiles makes an engine load the tools directory and the configuration file.
func (f *projectFlags) setFiles(e env, o *engine.Options) error {
	missing := f.folder(e)
	if missing != nil && (f.toolsGiven || len(o.Upstreams) == 0) {
		return missing // with upstream servers the directory is optional
	}
	if _, err := e.disk.stat(f.config); err != nil && f.configGiven {
		return usageError("read configuration file: %v", err)
	}
	if o.Files.Tools == nil && missing == nil {
		o.Files.Tools = engine.Dir(e.resolve(f.tools))
	}
	o.Files.ToolsPath = filepath.ToSlash(filepath.Clean(f.tools))
	o.Files.Config, o.Files.ConfigPath = engine.Dir(e.resolve(filepath.Dir(f.config))), filepath.ToSlash(filepath.Clean(f.config))
	o.Files.LockPath = e.resolve(f.lockPath())
	return nil
}

// folder returns an error unless the tools directory exists.
func (f *projectFlags) folder(e env) error {
	info, err := e.disk.stat(f.tools)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return usageError("%s is a file; name its directory", f.tools)
	case f.toolsGiven:
		return usageError("directory %s not found", f.tools)
	case exists(e, f.config): // mcpd init replaces no file
		return usageError("directory %s not found; create it with mkdir %s, or name another with --tools", f.tools, filepath.Clean(f.tools))
	default:
		return usageError("directory %s not found; create it with mcpd init, or name another with --tools", f.tools)
	}
}

// values returns the variables from the environment and from flags. Flags win.
func (f *projectFlags) values(e env) (map[string]engine.VarValue, error) {
	const prefix = "MCPD_VAR_"
	vars := map[string]engine.VarValue{}
	for _, entry := range e.vars.list {
		name, value, _ := strings.Cut(entry, "=")
		if variable, ok := strings.CutPrefix(name, prefix); ok && variable != "" {
			vars[variable] = engine.VarValue{Text: value, Origin: name}
		}
	}
	for _, flag := range f.vars {
		name, value, ok := strings.Cut(flag, "=")
		if !ok || name == "" {
			return nil, usageError("--var takes NAME=VALUE")
		}
		vars[name] = engine.VarValue{Text: value, Origin: "--var " + name}
	}
	return vars, nil
}

// load loads the files and prints their diagnostics. With asJSON it prints the report
// of a failed load as JSON on standard output.
func (f *projectFlags) load(ctx context.Context, e env, s *engine.Server, asJSON bool) error {
	report, err := s.Load(ctx)
	if asJSON && err != nil {
		return f.printReport(e, report, err)
	}
	if printErr := printProblems(e, report); printErr != nil {
		return printErr
	}
	if !f.serving {
		printUpstreams(e, s.Status())
	}
	return loadError(report, f.config, err)
}

// loadError returns the error of a failed load. Errors in the configuration file exit
// with 2, errors in tool files with 1.
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
	return &exitError{code: code, text: fmt.Sprintf("%s in the files", count(errorCount, "error")), cause: err}
}

func printProblems(e env, report engine.Report) error {
	if len(report.Problems) == 0 {
		return nil
	}
	return diag.Printer{Sources: report.Shown(), Color: e.color}.Print(e.stderr, report.Problems)
}

// offered counts the items that callers can use, tools first. Without any item it is "0
// tools".
func offered(s engine.Status) string {
	var counts []string
	for _, of := range []struct {
		n    int
		noun string
	}{{s.Tools, "tool"}, {s.Resources, "resource"}, {s.Templates, "template"}, {s.Prompts, "prompt"}} {
		if of.n > 0 {
			counts = append(counts, count(of.n, of.noun))
		}
	}
	if counts == nil {
		return count(0, "tool")
	}
	return strings.Join(counts, ", ")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// inMemory is the value of --state that stores nothing on disk.
const inMemory = "memory"

// stateFile returns the path of the state file, or "" for in memory. The default file,
// one for each tools directory, is optional; a file named by --state is required.
func (f *serveFlags) stateFile(e env) (path string, optional bool) {
	if f.stateURL() != "" {
		return "", false
	}
	switch f.state {
	case inMemory:
		return "", false
	case "":
	default:
		return f.state, false
	}
	path = f.files.state(e)
	return path, path != ""
}

// stateURL returns the database that --state names, or "".
func (f *serveFlags) stateURL() string {
	if isDatabase(f.state) {
		return f.state
	}
	return ""
}

// isDatabase reports whether a value of --state is the URL of a database.
func isDatabase(value string) bool {
	return strings.HasPrefix(value, "postgres://") || strings.HasPrefix(value, "postgresql://")
}

// state returns the default state file for these files, or "" if there is no directory
// for it.
func (f *projectFlags) state(e env) string { return f.stateFileFor(e, ".db") }

// stateFileFor returns the path of a file with this ending that belongs to the server of these
// files, or "" if there is no directory for it.
func (f *projectFlags) stateFileFor(e env, ending string) string {
	if f.dir != "" {
		return filepath.Join(e.resolve(f.dir), "mcpd"+ending)
	}
	home := stateHome(e)
	tools, err := filepath.Abs(e.resolve(f.tools))
	if home == "" || err != nil {
		return ""
	}
	config, err := filepath.Abs(e.resolve(f.config))
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(tools + "\x00" + config))
	return filepath.Join(home, "mcpd", hex.EncodeToString(sum[:8])+ending)
}

// checkState opens the state file of --state, and the default one if it exists, so that
// an error stops the start and not the first call that waits.
func (f *serveFlags) checkState(e env, s *engine.Server) error {
	path, optional := f.stateFile(e)
	block := s.Snapshot().Inside().Definitions().Config.State != nil
	if block && f.state == inMemory {
		return usageError("--state memory contradicts the state block in %s; remove one of them", f.files.config)
	}
	if f.stateURL() != "" || block && f.state == "" {
		if _, err := s.Inside().State(); err != nil {
			return startExitError(err)
		}
		return nil
	}
	if path == "" {
		return nil
	}
	if _, err := e.disk.stat(path); optional && err != nil {
		return nil // created on first use
	}
	if _, err := s.Inside().State(); err != nil {
		return startExitError(fmt.Errorf("--state %s: %w", path, err))
	}
	return nil
}

// stateExists reports whether the server has a state store that is in use anyway: a database, or a
// file that exists.
func (f *serveFlags) stateExists(e env, s *engine.Server) bool {
	path, _ := f.stateFile(e)
	if f.stateURL() != "" || path == "" || s.Snapshot().Inside().Definitions().Config.State != nil && f.state == "" {
		return true
	}
	_, err := e.disk.stat(path)
	return err == nil
}

// stateHome returns the user's directory for application state, or "".
func stateHome(e env) string {
	if folder, _ := e.vars.lookup("XDG_STATE_HOME"); filepath.IsAbs(folder) {
		return folder
	}
	variable, below := "HOME", []string{".local", "state"}
	switch runtime.GOOS {
	case "windows":
		variable, below = "LocalAppData", nil
	case "darwin":
		below = []string{"Library", "Application Support"}
	}
	folder, _ := e.vars.lookup(variable)
	if !filepath.IsAbs(folder) {
		return ""
	}
	return filepath.Join(append([]string{folder}, below...)...)
}
