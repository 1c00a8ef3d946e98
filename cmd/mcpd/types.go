package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/codemode/scripttypes"
)

// typesDir is the directory of the written declarations, in the directory of the project.
const typesDir = ".mcpd"

func newTypes(e env) *cobra.Command {
	var f projectFlags
	var watching bool
	cmd := &cobra.Command{
		Use:   "types [DIR]",
		Short: "Write the types of scripts for editors and tsc",
		Long: `Types writes TypeScript declarations to the directory .mcpd beside mcpd.hcl, or beside
the tools directory if there is no mcpd.hcl:

  types.d.ts     the types of the input, result and grants of each tool
  globals.d.ts   the globals of scripts
  tsconfig.json  the settings for tsc and editors

It also writes a tsconfig.json beside .mcpd if there is none. It writes only files that
change. It never overwrites a file that it has not written, or the types of another
tools directory.`,
		Example: `  mcpd types && npx -p typescript tsc
  mcpd types --watch
  mcpd types --config other/mcpd.hcl --tools other/tools.d`,
		Args:              oneFolderArg,
		ValidArgsFunction: completeFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.takeFolderArg(args); err != nil {
				return err
			}
			if watching {
				return f.watchTypes(e)
			}
			return f.writeTypes(cmd.Context(), e)
		},
	}
	cmd.Flags().BoolVar(&watching, "watch", false, "write the types again after each change, until the process is stopped")
	f.add(cmd)
	return cmd
}

func (f *projectFlags) writeTypes(ctx context.Context, e env) error {
	s, err := f.open(e, engine.Options{Mode: engine.Offline})
	if err != nil {
		return err
	}
	defer s.Close(ctx)
	if err := f.load(ctx, e, s, false); err != nil {
		return err
	}
	return f.writeTypesOf(e, s.Snapshot())
}

// writeTypesOf writes the types of a snapshot of the files.
func (f *projectFlags) writeTypesOf(e env, s *engine.Snapshot) error {
	project := f.projectDir(e)
	dir := filepath.Join(project, typesDir)
	tools, err := relative(e, dir, f.tools)
	if err != nil {
		return findingsError("the tools directory has no path relative to %s: %v", project, err)
	}
	snapshot := s.Inside().Definitions()
	if info, err := os.Lstat(e.resolve(dir)); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return findingsError("%s is a link, which mcpd types does not follow; remove it", filepath.ToSlash(dir))
	}
	if old, err := e.disk.readFile(filepath.Join(dir, scripttypes.Settings)); err == nil && !scripttypes.Covers(string(old), filepath.ToSlash(tools)) {
		return findingsError("%s has the types of another tools directory; give these tools a mcpd.hcl of their own, and name both with --config and --tools, or remove %[1]s", filepath.ToSlash(dir))
	}
	if err := e.disk.mkdirAll(dir, 0o755); err != nil {
		return findingsError("create directory: %v", err)
	}
	for _, file := range scripttypes.Files(snapshot.Config, snapshot.Files, filepath.ToSlash(tools)) {
		if err := writeGenerated(e, filepath.Join(dir, file.Name), file.Content); err != nil {
			return err
		}
	}
	if own := filepath.Join(project, "tsconfig.json"); !exists(e, own) {
		return writeFileOnce(e, own, scripttypes.Project(typesDir))
	}
	return nil
}

// projectDir returns the directory of the configuration file, or of the tools directory if there is
// no file.
func (f *projectFlags) projectDir(e env) string {
	if f.configGiven || exists(e, f.config) {
		return filepath.Dir(f.config)
	}
	return filepath.Dir(f.tools)
}

// relative returns the path of a file relative to a directory.
func relative(e env, dir, name string) (string, error) {
	from, err := filepath.Abs(e.resolve(dir))
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(e.resolve(name))
	if err != nil {
		return "", err
	}
	return filepath.Rel(from, to)
}

// watchTypes writes the types at once and after each change, until the process is stopped. Errors
// are printed, and the old types stay.
func (f *projectFlags) watchTypes(e env) error {
	if err := f.folder(e); err != nil {
		return err
	}
	ctx, hup, stop := e.service.signals()
	defer stop()
	return f.onChanges(ctx, e, hup, f.watched(e, nil), func(engine.Change) (done bool, err error) {
		if err := f.writeTypes(ctx, e); err != nil && err.Error() != "" && ctx.Err() == nil {
			fmt.Fprintf(e.stderr, "mcpd: %s\n", sanitize(err.Error()))
		}
		return false, nil
	})
}

// writeGenerated replaces a file that this verb has written, if its content changes.
func writeGenerated(e env, name, content string) error {
	old, err := e.disk.readFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return findingsError("%v", err)
	}
	first, _, _ := bytes.Cut(old, []byte("\n"))
	switch {
	case err == nil && string(old) == content:
		return nil
	case err == nil && !bytes.Contains(first, []byte(scripttypes.Marker)):
		return findingsError("%s already exists, and mcpd types has not written it; remove it", filepath.ToSlash(name))
	}
	return writeFileOnce(e, name, content)
}

// writeFileOnce writes a file atomically and prints its name.
func writeFileOnce(e env, name, content string) error {
	if err := e.disk.replaceFile(name, []byte(content)); err != nil {
		return findingsError("%v", err)
	}
	_, err := fmt.Fprintln(e.stdout, "wrote", filepath.ToSlash(name))
	return err
}
