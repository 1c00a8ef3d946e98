package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/language/loader"
	"github.com/mcpd/mcpd/internal/language/privdiff"
)

func newDiff(e env) *cobra.Command {
	var d diffFlags
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Print the permissions that an edit adds",
		Long: `Diff compares two directories of tool files, or two tool files. It prints how NEW
changes what tools, resources, prompts, hooks and policies may do:

  +  adds a permission, or needs a review
  -  removes a permission
  ~  changes no permission, for example a description or a script

The exit code is 1 if a permission is added.`,
		Example: `  mcpd diff ../main/tools.d ./tools.d
  mcpd diff old.hcl tools.d/crm.hcl
  mcpd diff ../main/tools.d ./tools.d --old-config ../main/mcpd.hcl`,
		Args:              needs(2, 2, "mcpd diff takes two folders or two files, OLD and NEW; see mcpd diff --help"),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.run(cmd, e, args[0], args[1])
		},
	}
	d.add(cmd)
	return cmd
}

// diffFlags holds the flags of diff.
type diffFlags struct {
	projectFlags
	oldConfig, newConfig string
	asJSON               bool
}

func (d *diffFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&d.config, "config", "./mcpd.hcl", "read the configuration in `FILE` for both sides; the default file is optional")
	flags.StringVar(&d.oldConfig, "old-config", "", "read the configuration of OLD in `FILE`")
	flags.StringVar(&d.newConfig, "new-config", "", "read the configuration of NEW in `FILE`")
	for _, name := range []string{"config", "old-config", "new-config"} {
		_ = cmd.MarkFlagFilename(name, "hcl")
	}
	d.addVars(cmd)
	flags.BoolVar(&d.asJSON, "json", false, "print the changes as JSON")
}

func (d *diffFlags) run(cmd *cobra.Command, e env, before, after string) error {
	was, err := d.side(cmd.Context(), e, before, d.oldConfig)
	if err != nil {
		return err
	}
	is, err := d.side(cmd.Context(), e, after, d.newConfig)
	if err != nil {
		return err
	}
	return d.finish(e, privdiff.Compare(was.Inside().Definitions(), is.Inside().Definitions()))
}

// finish prints the changes and returns the exit code.
func (d *diffFlags) finish(e env, changes []privdiff.Change) error {
	if err := d.print(e, changes); err != nil {
		return err
	}
	if privdiff.Count(changes, privdiff.Adds) > 0 {
		return &exitError{code: exitFindings} // the changes were printed
	}
	return nil
}

// side loads the files of one side and prints their errors.
func (d *diffFlags) side(ctx context.Context, e env, tools, config string) (*engine.Snapshot, error) {
	f := d.projectFlags
	f.tools, f.toolsGiven = tools, true
	if config != "" {
		f.config, f.configGiven = config, true
	}
	s, err := f.openEither(e)
	if err != nil {
		return nil, err
	}
	defer s.Close(ctx)
	if err := f.load(ctx, e, s, d.asJSON); err != nil {
		return nil, err
	}
	return s.Snapshot(), nil
}

// openEither opens a directory or a single tool file.
func (f *projectFlags) openEither(e env) (*engine.Server, error) {
	o := engine.Options{Mode: engine.Offline}
	if info, err := e.disk.stat(f.tools); err == nil && !info.IsDir() {
		if !strings.HasSuffix(f.tools, ".hcl") && !strings.HasSuffix(f.tools, ".hcl.json") {
			return nil, usageError("%s is not a tool file: the name must end in .hcl or .hcl.json", f.tools)
		}
		o.Files.Tools, f.tools = loader.File(e.resolve(f.tools)), filepath.Dir(f.tools)
	}
	return f.open(e, o)
}

// print prints one line for each change, then a summary.
func (d *diffFlags) print(e env, changes []privdiff.Change) error {
	adds, removes := privdiff.Count(changes, privdiff.Adds), privdiff.Count(changes, privdiff.Removes)
	if d.asJSON {
		return printJSON(e.stdout, struct {
			Adds    bool              `json:"adds_power"`
			Changes []privdiff.Change `json:"changes"`
		}{adds > 0, append([]privdiff.Change{}, changes...)})
	}
	var b strings.Builder
	for _, c := range changes {
		fmt.Fprintf(&b, "%s %s\n", c.Effect.Symbol(), sanitize(c.String()))
	}
	summary := "no changes"
	if len(changes) > 0 {
		summary = fmt.Sprintf("%s: %d with more permissions, %d with fewer, %d neutral", count(len(changes), "change"), adds, removes, len(changes)-adds-removes)
	}
	b.WriteString(summary + "\n")
	_, err := fmt.Fprint(e.stdout, b.String())
	return err
}
