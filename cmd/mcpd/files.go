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

// files are the flags of every verb that reads tools.
type files struct {
	tools, config string
	vars          []string
	// toolsGiven and configGiven say that the flags were written.
	toolsGiven, configGiven bool
	// serving says that the verb is the server, beside which others may run: it has the
	// audit log.
	serving bool
	// upstreams are the servers behind this one, of verbs that reach them.
	upstreams upstreamFlags
}

func (f *files) add(cmd *cobra.Command) {
	f.addPaths(cmd)
	f.addVars(cmd)
}

// addVars adds the flag that gives variables values. It notes which flags were written.
func (f *files) addVars(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.vars, "var", nil, "give a variable a value, as `NAME=VALUE` (also MCPD_VAR_NAME)")
	cmd.PreRun = func(cmd *cobra.Command, _ []string) { f.note(cmd) }
}

// note notes which flags were written. A verb with a PreRunE of its own calls it there: it
// runs in the place of PreRun.
func (f *files) note(cmd *cobra.Command) {
	f.toolsGiven = cmd.Flags().Changed("tools")
	f.configGiven = cmd.Flags().Changed("config")
}

func (f *files) addPaths(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.tools, "tools", "./tools.d", "read the tool files in `DIR`")
	cmd.Flags().StringVar(&f.config, "config", "./mcpd.hcl", "read the operator's `FILE`, where it exists")
	_ = cmd.MarkFlagDirname("tools")
	_ = cmd.MarkFlagFilename("config", "hcl")
}

// operand takes the folder that a verb is given without --tools.
func (f *files) operand(args []string) error {
	if len(args) == 0 {
		return nil
	}
	if f.toolsGiven {
		return usage("name the folder either as DIR or with --tools")
	}
	f.tools, f.toolsGiven = args[0], true
	return nil
}

// open returns a server for the files, not yet loaded.
func (f *files) open(e env, o engine.Options) (*engine.Server, error) {
	vars, err := f.values(e)
	if err != nil {
		return nil, err
	}
	if o.Mode != engine.Offline && o.Mode != engine.Checking {
		if o.Upstreams, err = f.upstreams.servers(e); err != nil {
			return nil, err
		}
	}
	missing := f.folder(e)
	if missing != nil && (f.toolsGiven || len(o.Upstreams) == 0) {
		return nil, missing // who offers the tools of others needs none
	}
	if _, err := e.disk.stat(f.config); err != nil && f.configGiven {
		return nil, usage("cannot read the operator's file: %v", err)
	}
	o.Name, o.Version, o.Extensions = "mcpd", version(), append(extensions(), o.Extensions...)
	if o.Files.Tools == nil && missing == nil {
		o.Files.Tools = engine.Dir(e.at(f.tools))
	}
	o.Files.ToolsPath = filepath.ToSlash(filepath.Clean(f.tools))
	o.Files.Config, o.Files.ConfigPath = engine.Dir(e.at(filepath.Dir(f.config))), filepath.ToSlash(filepath.Clean(f.config))
	o.Scripts.Trial, o.Scripts.Supervisor = trial(e, o.Logger), supervise(e)
	if o.Mode == engine.Mode(0) && !f.serving {
		o.Mode = engine.ReadOnly
	}
	if o.Front == nil {
		o.Front = serve.ToolChecks{}
	}
	o.Files.Vars, o.Files.LookupEnv, o.Files.LockPath = vars, e.lookup, e.at(f.lockPath())
	return engine.New(o)
}

// roots are the folders to watch.
func (f *files) roots(e env) []string {
	if f.folder(e) != nil {
		return nil
	}
	return []string{f.tools}
}

// folder fails when the folder of the tools is none.
func (f *files) folder(e env) error {
	info, err := e.disk.stat(f.tools)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return usage("%s is a file; name the folder that it is in", f.tools)
	case f.toolsGiven:
		return usage("there is no folder %s", f.tools)
	default:
		return usage("there is no folder %s; run mcpd init to make one, or name it with --tools", f.tools)
	}
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

// load loads the files and prints what is wrong with them: for people, or when
// the load has failed also for machines that read the standard output.
func (f *files) load(ctx context.Context, e env, s *engine.Server, asJSON bool) error {
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
	return &exitError{code: code, text: fmt.Sprintf("%s in the files", count(errorCount, "mistake")), cause: err}
}

func printProblems(e env, report engine.Report) error {
	if len(report.Problems) == 0 {
		return nil
	}
	return diag.Printer{Sources: report.Shown(), Color: e.colour}.Print(e.stderr, report.Problems)
}

// offered counts what callers may ask for, tools first; only tools when there
// is nothing.
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

// inMemory is the value of --state that keeps nothing on disk.
const inMemory = "memory"

// stateFile returns where the state of a server is kept, empty for in memory,
// and whether it may do without: a file that the user named must be had, and
// the one in the user's own folder, one for each folder of tools, need not.
func (f *serveFlags) stateFile(e env) (path string, optional bool) {
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

// state returns the file that a server of these files keeps its state in when it is
// told no other; empty when there is no folder for it.
func (f *files) state(e env) string { return f.kept(e, ".db") }

// kept returns the path of a file with this ending that a server of these files
// has for itself; empty when there is no folder for such files.
func (f *files) kept(e env, ending string) string {
	home := stateHome(e)
	tools, err := filepath.Abs(e.at(f.tools))
	if home == "" || err != nil {
		return ""
	}
	config, err := filepath.Abs(e.at(f.config))
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(tools + "\x00" + config))
	return filepath.Join(home, "mcpd", hex.EncodeToString(sum[:8])+ending)
}

// checkState opens the file that the user named, and the one in the user's own
// folder if it is there: what is wrong with it shows at the start and not when the
// first call waits.
func (f *serveFlags) checkState(e env, s *engine.Server) error {
	path, optional := f.stateFile(e)
	if path == "" {
		return nil
	}
	if _, err := e.disk.stat(path); optional && err != nil {
		return nil // it is made when it is needed
	}
	if _, err := s.Inside().State(); err != nil {
		return unstarted(fmt.Errorf("--state %s: %w", path, err))
	}
	return nil
}

// stateHome returns the folder in which programs of the user keep what they
// need again, empty when there is none.
func stateHome(e env) string {
	if folder, _ := e.lookup("XDG_STATE_HOME"); filepath.IsAbs(folder) {
		return folder
	}
	variable, below := "HOME", []string{".local", "state"}
	switch runtime.GOOS {
	case "windows":
		variable, below = "LocalAppData", nil
	case "darwin":
		below = []string{"Library", "Application Support"}
	}
	folder, _ := e.lookup(variable)
	if !filepath.IsAbs(folder) {
		return ""
	}
	return filepath.Join(append([]string{folder}, below...)...)
}
