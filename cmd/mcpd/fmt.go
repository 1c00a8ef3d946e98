package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

func newFmt(e env) *cobra.Command {
	var f projectFlags
	var onlyCheck bool
	cmd := &cobra.Command{
		Use:   "fmt [PATH...]",
		Short: "Format HCL files",
		Long: `Fmt rewrites mcpd.hcl and the tool files, or the named files and directories, in the
canonical format. It keeps scripts byte for byte, and prints the names of the files that
changed.`,
		Example: `  mcpd fmt
  mcpd fmt --check tools.d/customer.hcl`,
		RunE: func(_ *cobra.Command, args []string) error { return format(e, &f, args, onlyCheck) },
	}
	f.addPaths(cmd)
	cmd.ValidArgsFunction = cobra.FixedCompletions([]cobra.Completion{"hcl", "mcpdvars"}, cobra.ShellCompDirectiveFilterFileExt)
	cmd.Flags().BoolVar(&onlyCheck, "check", false, "change nothing; exit with 1 if a file would change")
	return cmd
}

func format(e env, f *projectFlags, args []string, onlyCheck bool) error {
	given := len(args) > 0
	if !given {
		if err := f.folder(e); err != nil {
			return err
		}
		for _, name := range []string{f.config, f.tools} {
			if exists(e, name) {
				args = append(args, name)
			}
		}
	}
	names, err := hclFiles(e, args)
	if err != nil {
		return err
	}
	if given && len(names) == 0 {
		return findingsError("no .hcl file in %s", strings.Join(args, ", "))
	}
	changed, broken := 0, 0
	for _, name := range names {
		different, err := formatFile(e, name, onlyCheck)
		switch {
		case err != nil:
			return err
		case different < 0:
			broken++
		case different > 0:
			changed++
		}
	}
	if broken > 0 {
		return findingsError("%s could not be parsed", count(broken, "file"))
	}
	if onlyCheck && changed > 0 {
		return findingsError("%s would change; run mcpd fmt", count(changed, "file"))
	}
	return nil
}

// formatFile formats one file. It returns 1 if the file differs from its canonical
// format, and -1 if it is not valid HCL; the errors were then printed.
func formatFile(e env, name string, onlyCheck bool) (int, error) {
	source, err := e.disk.readFile(name)
	if err != nil {
		return 0, findingsError("%v", err)
	}
	path := filepath.ToSlash(name)
	formatted, problems := hclfile.Format(hclfile.Source{Path: path, Bytes: source})
	if problems.HasErrors() {
		printer := diag.Printer{Sources: map[string][]byte{path: hclfile.RedactSecrets(path, source)}, Color: e.color}
		return -1, printer.Print(e.stderr, problems)
	}
	if bytes.Equal(formatted, source) {
		return 0, nil
	}
	if _, err := fmt.Fprintln(e.stdout, name); err != nil || onlyCheck {
		return 1, err
	}
	return 1, e.disk.replaceFile(name, formatted)
}

// hclFiles returns the named HCL files and those in the named directories. It skips
// hidden files, which no verb reads.
func hclFiles(e env, args []string) ([]string, error) {
	var names []string
	for _, arg := range args {
		info, err := e.disk.stat(arg)
		if err != nil {
			return nil, usageError("%v", err)
		}
		if !info.IsDir() {
			if extension := filepath.Ext(arg); extension != ".hcl" && extension != ".mcpdvars" {
				return nil, usageError("fmt cannot format %s: the name must end in .hcl or .mcpdvars", arg)
			}
			names = append(names, arg)
			continue
		}
		err = e.disk.walk(arg, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case name != arg && hidden(entry.Name()):
				if entry.IsDir() {
					return fs.SkipDir
				}
			case !entry.IsDir() && strings.HasSuffix(name, ".hcl"):
				names = append(names, name)
			}
			return nil
		})
		if err != nil {
			return nil, findingsError("%v", err)
		}
	}
	return names, nil
}

// hidden reports whether the engine ignores files and directories of this name.
func hidden(base string) bool {
	return strings.HasPrefix(base, ".") || strings.HasPrefix(base, "#") || strings.HasSuffix(base, "~")
}
