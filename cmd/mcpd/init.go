package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"
)

// starter holds the files that init writes.
//
//go:embed starter
var starter embed.FS

func newInit(e env) *cobra.Command {
	return &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a small mcpd.hcl and tools.d to start from",
		Long: `Init writes a commented mcpd.hcl, and a tools.d with one tool, its policy and its tests.
It never overwrites a file. Then it writes the types of scripts, as mcpd types does.`,
		Example: `  mcpd init
  mcpd init ./my-tools && cd my-tools && mcpd dev`,
		Args:              oneFolderArg,
		ValidArgsFunction: completeFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			target := "."
			if len(args) == 1 {
				target = args[0]
			}
			return initialize(cmd.Context(), e, target)
		},
	}
}

// initialize writes all files, or none if one of them already exists. Types that cannot be written
// are no error: mcpd types writes them later.
func initialize(ctx context.Context, e env, target string) error {
	names, err := fs.Glob(starter, "starter/*.hcl")
	if err != nil {
		return fmt.Errorf("list starter files: %w", err)
	}
	tools, err := fs.Glob(starter, "starter/tools.d/*.hcl")
	if err != nil {
		return fmt.Errorf("list starter files: %w", err)
	}
	names = append(names, tools...)
	for _, name := range names {
		if to := starterPath(target, name); exists(e, to) {
			return findingsError("%s already exists, so nothing was written", to)
		}
	}
	for _, name := range names {
		content, err := starter.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read starter file: %w", err)
		}
		to := starterPath(target, name)
		if err := e.disk.mkdirAll(filepath.Dir(to), 0o755); err != nil {
			return findingsError("%v", err)
		}
		if err := e.disk.writeFile(to, content, 0o644); err != nil {
			return findingsError("%v", err)
		}
		if _, err := fmt.Fprintln(e.stdout, "wrote", filepath.ToSlash(to)); err != nil {
			return err
		}
	}
	f := projectFlags{tools: filepath.Join(target, "tools.d"), config: filepath.Join(target, "mcpd.hcl")}
	if err := f.writeTypes(ctx, e); err != nil {
		fmt.Fprintf(e.stderr, "mcpd: the types of scripts were not written: %s\n", sanitize(err.Error()))
	}
	enter := ""
	if filepath.Clean(target) != "." {
		enter = "cd " + filepath.ToSlash(target) + " && "
	}
	_, err = fmt.Fprintf(e.stdout, "next: %smcpd dev\n", enter)
	return err
}

func starterPath(target, name string) string {
	relative, _ := filepath.Rel("starter", filepath.FromSlash(path.Clean(name)))
	return filepath.Join(target, relative)
}

func exists(e env, name string) bool {
	_, err := e.disk.stat(name)
	return err == nil
}
