package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/hclfile"
	"github.com/mcpd/mcpd/internal/language/loader"
	"github.com/mcpd/mcpd/internal/language/privdiff"
	"github.com/mcpd/mcpd/internal/ops/openapi"
	"github.com/mcpd/mcpd/internal/ops/openapi/spec"
	"github.com/mcpd/mcpd/internal/ops/tooltest"
)

func newImport(e env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Import the tools of an API or of an MCP server",
		Long:  `Import writes tools for the operations of an OpenAPI document, or connects an MCP server.`,
		Example: `  mcpd import openapi petstore.yaml --tag pets
  mcpd import mcp https://mcp.example.com/mcp`,
		RunE: helpOnVerbs,
		Args: cobra.ArbitraryArgs,
	}
	cmd.AddCommand(newImportOpenAPI(e), newImportMCP(e))
	return cmd
}

// importFlags holds the flags of all imports.
type importFlags struct {
	files       projectFlags
	name        string
	yes, dryRun bool
}

func (f *importFlags) add(cmd *cobra.Command) {
	f.files.add(cmd)
	cmd.Flags().BoolVar(&f.yes, "yes", false, "write the files without a question")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "write nothing, and print what would change")
}

// createTools creates the tools directory, which other verbs require, if it is missing.
func (f *importFlags) createTools(e env) (created bool, err error) {
	if _, err := e.disk.stat(f.files.tools); !errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err := e.disk.mkdirAll(f.files.tools, 0o755); err != nil {
		return false, findingsError("%v", err)
	}
	return true, nil
}

// importedName matches the names of imports, which are parts of names of files and secrets.
var importedName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// confirm asks the user to confirm a change, unless --yes is given.
func (f *importFlags) confirm(e env, question string) error {
	if f.yes {
		return nil
	}
	return confirmChange(e, question, "review the changes above, then confirm with --yes")
}

// candidate is a file to write.
type candidate struct {
	path          string
	before, after []byte
	existed       bool
}

// readCandidate reads a file that may be missing.
func readCandidate(e env, path string) (candidate, error) {
	info, err := e.disk.stat(e.resolve(path))
	if err == nil && !info.Mode().IsRegular() {
		return candidate{}, findingsError("%s is not a file", sanitize(path))
	}
	var text []byte
	if err == nil {
		text, err = e.disk.readFile(e.resolve(path))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return candidate{}, findingsError("%v", err)
	}
	return candidate{path: path, before: text, after: text, existed: err == nil}, nil
}

func (c *candidate) changed() bool { return string(c.before) != string(c.after) }

// writeAll writes the files, all or none. It fails if a file has changed since it was read, such as
// while the user read the question.
func writeAll(e env, files ...candidate) error {
	for _, c := range files {
		now, err := readCandidate(e, c.path)
		if err != nil {
			return err
		}
		if now.existed != c.existed || string(now.before) != string(c.before) {
			return findingsError("%s has changed during the import; nothing was written, so import again", sanitize(c.path))
		}
	}
	for i, c := range files {
		if !c.changed() {
			continue
		}
		if err := c.write(e, c.after); err != nil {
			for _, done := range files[:i] {
				if done.changed() {
					err = errors.Join(err, done.restore(e))
				}
			}
			return findingsError("write %s: %v", c.path, err)
		}
	}
	return nil
}

func (c *candidate) write(e env, text []byte) error {
	return e.disk.replaceFile(e.resolve(c.path), text)
}

func (c *candidate) restore(e env) error {
	if !c.existed {
		return e.disk.remove(e.resolve(c.path))
	}
	return c.write(e, c.before)
}

// overlaid returns a server for the files with the candidates in place of those on disk.
func (f *importFlags) overlaid(e env, o engine.Options, files ...candidate) (*engine.Server, error) {
	overlay := &loader.Overlay{}
	absolute := func(path string) (string, error) { return filepath.Abs(e.resolve(path)) }
	for _, c := range files {
		path, err := absolute(c.path)
		if err != nil {
			return nil, findingsError("%v", err)
		}
		if c.changed() || c.existed {
			overlay.Set(path, c.after)
		}
	}
	tools, err := absolute(f.files.tools)
	if err != nil {
		return nil, findingsError("%v", err)
	}
	config, err := absolute(filepath.Dir(f.files.config))
	if err != nil {
		return nil, findingsError("%v", err)
	}
	if f.files.folder(e) == nil {
		o.Files.Tools = overlay.Dir(tools)
	}
	o.Files.ToolsPath = filepath.ToSlash(filepath.Clean(f.files.tools))
	o.Files.Config, o.Files.ConfigPath = overlay.Dir(config), filepath.ToSlash(filepath.Clean(f.files.config))
	o.Files.LockPath = e.resolve(f.files.lockPath())
	return f.files.open(e, o)
}

// definitions loads files and returns what they define. If they have errors, it returns the error of
// explain, or prints them if explain returns nil.
func (f *importFlags) definitions(ctx context.Context, e env, explain func(diag.List) error, files ...candidate) (privdiff.Snapshot, error) {
	s, err := f.overlaid(e, engine.Options{Mode: engine.Offline}, files...)
	if err != nil {
		return privdiff.Snapshot{}, err
	}
	defer s.Close(ctx)
	report, err := s.Load(ctx)
	if err != nil {
		if why := explain(report.Problems); why != nil {
			return privdiff.Snapshot{}, why
		}
	}
	if printErr := printProblems(e, report); printErr != nil {
		return privdiff.Snapshot{}, printErr
	}
	printUpstreams(e, s.Status())
	if err := loadError(report, f.files.config, err); err != nil {
		return privdiff.Snapshot{}, err
	}
	return s.Snapshot().Inside().Definitions(), nil
}

// unexplained prints the errors of files.
func unexplained(diag.List) error { return nil }

// openAPIFlags holds the flags of import openapi.
type openAPIFlags struct {
	importFlags
	options openapi.Options
}

func newImportOpenAPI(e env) *cobra.Command {
	var f openAPIFlags
	cmd := &cobra.Command{
		Use:   "openapi SPEC",
		Short: "Write tools for the operations of an OpenAPI document",
		Long: `Openapi reads an OpenAPI 3.0 or 3.1 document, as JSON or YAML; SPEC is a file, or - for standard
input. It writes a tool and a test for each selected operation to NAME.hcl in the tools
directory, which it creates, and the secrets that they need to mcpd.hcl. It first prints the permissions that
this adds and the hosts that get secrets, and asks.

A second import updates the blocks without edits, and keeps the others.`,
		Example: `  mcpd import openapi petstore.yaml
  mcpd import openapi github.json --name github_issues --tag issues --method GET
  mcpd import openapi petstore.yaml --server https://pets.example.com/v2 --yes`,
		Args: needs(1, 1, "mcpd import openapi takes one document; see mcpd import openapi --help"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), e, args[0]) },
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "write `NAME`.hcl, and use NAME for grants and secrets; by default the name of SPEC")
	flags.StringVar(&f.options.Prefix, "prefix", "", "start the names of the tools with `TEXT`")
	flags.StringVar(&f.options.Server, "server", "", "send requests to the server at `URL` instead of the servers in the document")
	flags.BoolVar(&f.options.Bearer, "bearer", false, "send a bearer token where the document asks for no credential")
	flags.StringSliceVar(&f.options.Tags, "tag", nil, "import only operations with this `TAG`; repeatable")
	flags.StringSliceVar(&f.options.Paths, "path", nil, "import only paths that match this `GLOB`, such as /pets/*, or /pets/** with all below; repeatable")
	flags.StringSliceVar(&f.options.Methods, "method", nil, "import only operations with this `METHOD`; repeatable")
	flags.StringSliceVar(&f.options.OperationIDs, "operation", nil, "import only the operation with this `ID`; repeatable")
	return cmd
}

// selects reports whether flags select operations.
func (f *openAPIFlags) selects() bool {
	o := &f.options
	return len(o.Tags)+len(o.Paths)+len(o.Methods)+len(o.OperationIDs) > 0
}

// prefixText matches the values of --prefix.
var prefixText = regexp.MustCompile(`^[a-z][a-z0-9_]{0,30}$`)

func (f *openAPIFlags) run(ctx context.Context, e env, source string) error {
	document, err := f.read(e, source)
	if err != nil {
		return err
	}
	if f.options.Prefix != "" && !prefixText.MatchString(f.options.Prefix) {
		return usageError("--prefix takes lower-case letters, digits and underscores")
	}
	if !f.files.toolsGiven {
		created, err := f.createTools(e)
		if err != nil {
			return err
		}
		if created {
			defer func() { _ = e.disk.remove(f.files.tools) }() // fails if the import has written a file
		}
	}
	if err := f.files.folder(e); err != nil {
		return err
	}
	tools, err := readCandidate(e, filepath.Join(f.files.tools, f.name+".hcl"))
	if err != nil {
		return err
	}
	config, err := readCandidate(e, f.files.config)
	if err != nil {
		return err
	}
	was, err := f.definitions(ctx, e, unexplained, tools, config)
	if err != nil {
		return nothingWritten(err)
	}
	f.options.Name, f.options.MaxText, f.options.MaxHCL = f.name, maxToolFile, hclfile.MaxHCL
	f.options.Earlier = openapi.Earlier(string(tools.before))
	if tools.existed && f.options.Earlier == nil {
		return usageError("%s is not the file of an import; choose another name with --name", tools.path)
	}
	generated, err := openapi.Generate(document, f.options)
	if errors.Is(err, openapi.ErrTooLarge) {
		return tooLargeImport()
	}
	if err != nil {
		return findingsError("%v", err)
	}
	if err := nameTaken(was, generated, tools.path); err != nil {
		return err
	}
	merged := openapi.Merge(string(tools.before), generated)
	printSkipped(e, generated.Skipped)
	if len(generated.Tools) == 0 && (!tools.existed || f.selects()) {
		return findingsError("no operation was selected that a tool can serve")
	}
	if len(merged.Text) > maxToolFile {
		return tooLargeImport()
	}
	tools.after = []byte(merged.Text)
	config.after = append(config.after, missingSecrets(was, generated.Secrets, len(config.before) > 0)...)
	removed := removal{was: was, path: filepath.ToSlash(filepath.Clean(tools.path)), text: merged.Text, earlier: f.options.Earlier}
	explain := func(problems diag.List) error { return removed.explain(e, problems) }
	is, err := f.definitions(ctx, e, explain, tools, config)
	if err != nil {
		return nothingWritten(err)
	}
	return f.finish(e, merged, privdiff.Compare(was, is), secretLines(was, is, generated.Secrets), tools, config)
}

// nameTaken returns an error if a tool outside the imported file has the name of a generated one.
func nameTaken(was privdiff.Snapshot, generated *openapi.Generated, path string) error {
	for _, file := range was.Files {
		for i := range file.Tools {
			t := &file.Tools[i]
			isIt := func(g openapi.Tool) bool { return g.Name == t.Name }
			if t.NameRange.File != filepath.ToSlash(filepath.Clean(path)) && slices.ContainsFunc(generated.Tools, isIt) {
				return usageError("%s: there is a tool %q already; choose other names with --prefix TEXT, or update the earlier import with its --name", t.NameRange, t.Name)
			}
		}
	}
	return nil
}

// removal explains errors that come from the removal of tools which other blocks name.
type removal struct {
	was     privdiff.Snapshot
	path    string                         // of the imported file
	text    string                         // the imported file after the import
	earlier map[string]openapi.EarlierTool // in this file before the import
}

// explain prints the blocks that name removed tools, with their positions on disk. It returns nil
// if the files have other errors, too.
func (r *removal) explain(e env, problems diag.List) error {
	removed, left := map[string]string{}, openapi.Earlier(r.text)
	for key, tool := range r.earlier {
		if tool.Name != "" && left[key].Name == "" {
			removed[tool.Name] = key
		}
	}
	var lines []string
	r.eachName(func(block, name string, where diag.Range) {
		if key := removed[name]; key != "" {
			lines = append(lines, fmt.Sprintf("%s: %s names tool %q, and the document no longer has %s", where, block, name, key))
		}
	})
	mistakes := slices.DeleteFunc(slices.Clone(problems), func(p diag.Diagnostic) bool { return p.Severity != diag.Error })
	if len(mistakes) != len(lines) || slices.ContainsFunc(mistakes, func(p diag.Diagnostic) bool { return p.Code != "unknown-tool" }) {
		return nil
	}
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Fprintln(e.stderr, sanitize(line))
	}
	return findingsError("the import would remove tools that other blocks name; remove these names, or edit the tools to keep them, and import again")
}

// eachName calls do with each name of a tool in a block that stays.
func (r *removal) eachName(do func(block, name string, where diag.Range)) {
	targets := func(kind, block string, t definition.Targets) {
		for _, name := range t.Tools {
			do(fmt.Sprintf("%s %q", kind, block), name.Text, name.Range)
		}
	}
	calls := func(kind, block string, g grant.Set, ranges map[string]diag.Range) {
		for _, name := range g.Call {
			do(fmt.Sprintf("%s %q", kind, block), name, ranges["tools."+name])
		}
	}
	rules := func(policies []definition.Policy, limits []definition.Limit, hooks []definition.Hook) {
		for i := range policies {
			targets("policy", policies[i].Name, policies[i].Targets)
		}
		for i := range limits {
			targets("limit", limits[i].Name, limits[i].Targets)
		}
		for i := range hooks {
			targets("hook", hooks[i].Name, hooks[i].Targets)
			calls("hook", hooks[i].Name, hooks[i].Grant, hooks[i].GrantRanges)
		}
	}
	rules(r.was.Config.Policies, r.was.Config.RateLimits, r.was.Config.Hooks)
	for _, f := range r.was.Files {
		rules(f.Policies, f.Limits, f.Hooks)
		for i := range f.Tools {
			calls("tool", f.Tools[i].Name, f.Tools[i].Grant, f.Tools[i].GrantRanges)
		}
		for i := range f.Resources {
			calls("resource", f.Resources[i].Name, f.Resources[i].Grant, f.Resources[i].GrantRanges)
		}
		for i := range f.Templates {
			calls("resource_template", f.Templates[i].Name, f.Templates[i].Grant, f.Templates[i].GrantRanges)
		}
		for i := range f.Prompts {
			calls("prompt", f.Prompts[i].Name, f.Prompts[i].Grant, f.Prompts[i].GrantRanges)
		}
		for i := range f.Tests {
			t := &f.Tests[i]
			if t.TargetRange.File != r.path || strings.Contains(r.text, "test "+tooltest.QuoteHCL(t.Name)+" {") {
				do(fmt.Sprintf("test %q", t.Name), t.Tool, t.TargetRange)
			}
		}
	}
}

// nothingWritten says in an error that the import has written no file.
func nothingWritten(err error) error {
	if exit := (*exitError)(nil); errors.As(err, &exit) {
		return &exitError{code: exit.code, text: "nothing was written: " + exit.text, cause: err}
	}
	return err
}

// maxToolFile is the maximum size of a tool file.
const maxToolFile = 1 << 20

func tooLargeImport() error {
	return findingsError("%v; import a part of them with --tag, --path or --method, and the others with another --name", openapi.ErrTooLarge)
}

// read reads the document, and derives the name of the import from its file.
func (f *openAPIFlags) read(e env, source string) (*spec.Document, error) {
	text, err := []byte(nil), error(nil)
	if source == "-" {
		text, err = io.ReadAll(io.LimitReader(e.stdin, spec.MaxBytes+1))
	} else {
		if strings.HasPrefix(source, "https://") || strings.HasPrefix(source, "http://") {
			return nil, usageError("mcpd reads documents from files: download %s first, or pass it to mcpd import openapi - --name NAME", source)
		}
		var info fs.FileInfo
		if info, err = e.disk.stat(e.resolve(source)); err == nil && info.Size() > spec.MaxBytes {
			return nil, findingsError("the document is larger than 32 MiB")
		}
		if err == nil && !info.Mode().IsRegular() {
			return nil, usageError("%s is not a file; use - to read standard input", source)
		}
		if err == nil {
			text, err = e.disk.readFile(e.resolve(source))
		}
	}
	if err != nil {
		return nil, usageError("read the document: %v", err)
	}
	if f.name == "" && source != "-" {
		base := filepath.Base(source)
		f.name = openapi.ImportName(strings.TrimSuffix(base, filepath.Ext(base)))
	}
	if !importedName.MatchString(f.name) {
		return nil, usageError("name the import with --name, in lower-case letters, digits and underscores")
	}
	document, err := spec.Read(text)
	if err != nil {
		return nil, findingsError("%s: %v", source, err)
	}
	return document, nil
}

// missingSecrets returns the blocks of secrets that mcpd.hcl lacks.
func missingSecrets(was privdiff.Snapshot, secrets []openapi.Secret, separate bool) []byte {
	declared := map[string]bool{}
	for _, s := range was.Config.Secrets {
		declared[s.Name] = true
	}
	var b strings.Builder
	for _, s := range secrets {
		if declared[s.Name] {
			continue
		}
		if separate || b.Len() > 0 {
			b.WriteString("\n")
		}
		if s.Reveal {
			fmt.Fprintf(&b, "# Scripts read this secret, because the API takes it in the query.\nsecret %q {\n  env    = %q\n  reveal = true\n}\n", s.Name, s.Variable)
		} else {
			fmt.Fprintf(&b, "secret %q { env = %q }\n", s.Name, s.Variable)
		}
	}
	return []byte(b.String())
}

// secretLines describe the secrets of the tools: where each comes from, and the hosts that get it.
func secretLines(was, is privdiff.Snapshot, secrets []openapi.Secret) (lines []string) {
	for _, s := range secrets {
		named := func(known definition.Secret) bool { return known.Name == s.Name }
		what := "existing"
		if !slices.ContainsFunc(was.Config.Secrets, named) {
			what = "new"
		}
		from := "a source of its own"
		if i := slices.IndexFunc(is.Config.Secrets, named); i >= 0 {
			switch known := is.Config.Secrets[i]; {
			case known.Env != "":
				from = "environment variable " + known.Env
			case known.File != "":
				from = "file " + known.File
			case known.Command != nil:
				from = "a program"
			case known.OAuth != nil:
				from = "OAuth"
			}
		}
		lines = append(lines, fmt.Sprintf("%s secret %q, from %s, is sent to %s", what, s.Name, from, strings.Join(s.Hosts, ", ")))
	}
	return lines
}

// maxSkipped is the number of skipped operations that are printed.
const maxSkipped = 50

func printSkipped(e env, skipped []openapi.Skipped) {
	for i, s := range skipped {
		if i == maxSkipped {
			fmt.Fprintf(e.stderr, "… and %d more\n", len(skipped)-i)
			return
		}
		what := "left out"
		if s.Test {
			what = "no test for"
		}
		fmt.Fprintf(e.stderr, "%s %s: %s\n", what, sanitize(s.Key), sanitize(s.Reason))
	}
}

// finish shows the changes, asks, and writes the files.
func (f *openAPIFlags) finish(e env, merged openapi.Merged, changes []privdiff.Change, secrets []string, tools, config candidate) error {
	for _, kept := range merged.Kept {
		what := "edited, kept: " + kept.Block
		if kept.OfEdited {
			what = "kept with its edited tool: " + kept.Block
		}
		switch {
		case kept.New == "":
			what += "; the document no longer has it"
		case kept.Changed && kept.Seen:
			what += "; the document changed it too, as an earlier import showed"
		case kept.Changed:
			what += "; the document changed it too:\n" + kept.Diff()
		}
		fmt.Fprintf(e.stderr, "%s\n", diag.PrintableLines(what, "  "))
	}
	if !tools.changed() && !config.changed() {
		_, err := fmt.Fprintf(e.stdout, "nothing changes: %s\n", sanitize(tools.path))
		return err
	}
	question := "Write the files?"
	if onlyNotes := merged.Noted > 0 && len(merged.Added)+len(merged.Updated)+len(merged.Removed) == 0 && !config.changed(); onlyNotes {
		question = "Update the comments above the edited blocks, so that a later import does not print these differences again?"
		if len(merged.Kept) == 0 {
			question = "Update the comments above blocks that equal a new import, so that a later import updates them?"
		}
	} else if err := (&diffFlags{}).print(e, changes); err != nil {
		return err
	}
	for _, line := range secrets {
		if _, err := fmt.Fprintln(e.stdout, sanitize(line)); err != nil {
			return err
		}
	}
	if len(merged.Updated) > 0 {
		text := openapi.Diff(tools.path, tools.before, tools.after)
		if _, err := fmt.Fprintf(e.stdout, "%s\n", diag.PrintableLines(text, "  ")); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(e.stdout, "%s: %d added, %d updated, %d removed, %d kept, %d unchanged\n",
		sanitize(tools.path), len(merged.Added), len(merged.Updated), len(merged.Removed), len(merged.Kept), merged.Unchanged); err != nil || f.dryRun {
		return err
	}
	// A document may change what a tool says and where it sends, without more permissions.
	if err := f.confirm(e, question); err != nil {
		return err
	}
	if err := writeAll(e, config, tools); err != nil {
		return err
	}
	if config.changed() {
		fmt.Fprintf(e.stderr, "wrote new secrets to %s; set their environment variables\n", sanitize(config.path))
	}
	return nil
}
