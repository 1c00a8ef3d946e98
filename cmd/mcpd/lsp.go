package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/language/loader"
	"github.com/mcpd/mcpd/internal/ops/lsp"
	"github.com/mcpd/mcpd/serve"
)

func newLSP(e env) *cobra.Command {
	var f projectFlags
	var production, insecure, stdio bool
	cmd := &cobra.Command{
		Use:   "lsp",
		Short: "Serve diagnostics and completion to an editor",
		Long: `Lsp is a server of the Language Server Protocol for editors, on standard input and
output. It reports what check reports, as the user types: it checks the documents that are
open in the editor in place of the files on disk. Paths are relative to the folder that
the editor opens.

It runs no tests and no programs of the files, and reads no secrets.`,
		Example: `  mcpd lsp
  mcpd lsp --tools ./other-tools`,
		Args: noOperand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := engine.Options{Files: engine.Files{Production: production}, Front: editorChecks{serve.Checks{InsecureListen: insecure}}, Mode: engine.Checking}
			return languageServer(cmd.Context(), e, f, o)
		},
	}
	cmd.Flags().BoolVar(&production, "production", false, "apply the rules of production mode, even if mcpd.hcl does not set it")
	cmd.Flags().BoolVar(&insecure, "insecure-listen", false, "accept a listen address beyond loopback without authentication")
	f.add(cmd)
	cmd.Flags().BoolVar(&stdio, "stdio", false, "has no effect; some editors add it")
	_ = cmd.Flags().MarkHidden("stdio")
	return cmd
}

// editorChecks makes the checks of serve, except those that read private keys or open ports.
type editorChecks struct{ serve.Checks }

func (editorChecks) CheckTLS(engine.ListenTLS) error { return nil }
func (editorChecks) CheckVacant(engine.Listen) error { return nil }

func languageServer(ctx context.Context, e env, f projectFlags, o engine.Options) error {
	root, err := filepath.Abs(e.resolve("."))
	if err != nil {
		return usageError("find the working directory: %v", err)
	}
	log := slog.New(slog.NewTextHandler(e.stderr, nil))
	err = lsp.Serve(ctx, e.stdin, e.stdout, lsp.Options{
		Name: "mcpd", Version: version(), Root: root, Logger: log,
		Open: func(root string, files *loader.Overlay) (*lsp.Project, error) {
			return f.openForEditor(e, o, root, files)
		},
	})
	if errors.Is(err, lsp.ErrNoShutdown) {
		return findingsError("%v", err)
	}
	return err
}

// openForEditor returns the project in a directory, with the texts of an editor. A missing directory
// or file is not an error, as the editor may create it.
func (f projectFlags) openForEditor(e env, o engine.Options, root string, files *loader.Overlay) (*lsp.Project, error) {
	f.tools, f.config = under(root, f.tools), under(root, f.config)
	o.Files.Tools, o.Files.ToolsPath = files.Dir(f.tools), filepath.ToSlash(f.tools)
	o.Files.Config, o.Files.ConfigPath = files.Dir(filepath.Dir(f.config)), filepath.ToSlash(f.config)
	o.Files.LockPath = f.lockPath()
	s, err := f.open(e, o)
	if err != nil {
		return nil, err
	}
	return &lsp.Project{
		Tools: f.tools, Config: f.config,
		Check: func(change lsp.Change) diag.List {
			problems, upstreams := s.Inside().Examine(engine.Change{Paths: change.Paths, Config: change.Config, All: change.All})
			return slices.Concat(problems, missingPrograms(e, upstreams)).Sort()
		},
		Close: func() { _ = s.Close(context.Background()) },
	}, nil
}

// under returns an absolute path; a relative one starts at root.
func under(root, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(root, path)
}
