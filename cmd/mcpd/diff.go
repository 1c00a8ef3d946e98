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
	var d difference
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Print what power an edit of the files adds",
		Long: `Diff reads two folders of tool files, or two tool files, and prints how the
second differs from the first in what tools, resources, prompts, hooks and
policies may do:

  +  adds power, or has to be read to know
  -  takes power away
  ~  bears on no power, such as a description or the text of a body

The exit code is 1 when power is added.`,
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

// difference are the flags of diff.
type difference struct {
	files
	oldConfig, newConfig string
	asJSON               bool
}

func (d *difference) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&d.config, "config", "./mcpd.hcl", "read the operator's `FILE`, where it exists, for both sides")
	flags.StringVar(&d.oldConfig, "old-config", "", "read the operator's `FILE` of OLD")
	flags.StringVar(&d.newConfig, "new-config", "", "read the operator's `FILE` of NEW")
	for _, name := range []string{"config", "old-config", "new-config"} {
		_ = cmd.MarkFlagFilename(name, "hcl")
	}
	d.addVars(cmd)
	flags.BoolVar(&d.asJSON, "json", false, "print the changes as JSON on standard output")
}

func (d *difference) run(cmd *cobra.Command, e env, before, after string) error {
	was, err := d.side(cmd.Context(), e, before, d.oldConfig)
	if err != nil {
		return err
	}
	is, err := d.side(cmd.Context(), e, after, d.newConfig)
	if err != nil {
		return err
	}
	changes := privdiff.Compare(was.Inside().Said(), is.Inside().Said())
	if err := d.print(e, changes); err != nil {
		return err
	}
	if privdiff.Count(changes, privdiff.Adds) > 0 {
		return &exitError{code: exitFindings} // the changes have said it
	}
	return nil
}

// side loads the files of one side. What is wrong with them is printed.
func (d *difference) side(ctx context.Context, e env, tools, config string) (*engine.Snapshot, error) {
	f := d.files
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

// openEither is open for a folder, or for one tool file.
func (f *files) openEither(e env) (*engine.Server, error) {
	o := engine.Options{Mode: engine.Offline}
	if info, err := e.disk.stat(f.tools); err == nil && !info.IsDir() {
		if !strings.HasSuffix(f.tools, ".hcl") && !strings.HasSuffix(f.tools, ".hcl.json") {
			return nil, usage("%s is no tool file: its name ends neither in .hcl nor in .hcl.json", f.tools)
		}
		o.Files.Tools, f.tools = loader.File(e.at(f.tools)), filepath.Dir(f.tools)
	}
	return f.open(e, o)
}

// print prints the changes: for people one a line, and a last one that counts them.
func (d *difference) print(e env, changes []privdiff.Change) error {
	adds, removes := privdiff.Count(changes, privdiff.Adds), privdiff.Count(changes, privdiff.Removes)
	if d.asJSON {
		return printJSON(e.stdout, struct {
			Adds    bool              `json:"adds_power"`
			Changes []privdiff.Change `json:"changes"`
		}{adds > 0, append([]privdiff.Change{}, changes...)})
	}
	var b strings.Builder
	for _, c := range changes {
		fmt.Fprintf(&b, "%s %s\n", c.Effect.Symbol(), printable(c.String()))
	}
	summary := "nothing has changed"
	if len(changes) > 0 {
		summary = fmt.Sprintf("%s: %d add power, %d remove some, %d bear on none", count(len(changes), "change"), adds, removes, len(changes)-adds-removes)
	}
	b.WriteString(summary + "\n")
	_, err := fmt.Fprint(e.stdout, b.String())
	return err
}
