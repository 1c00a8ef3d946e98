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
	var f files
	var onlyCheck bool
	cmd := &cobra.Command{
		Use:   "fmt [PATH...]",
		Short: "Rewrite HCL files in the one true layout",
		Long: `Fmt rewrites mcpd.hcl and the tool files, or the files and folders that are
named, in canonical layout. Raw bodies are kept byte for byte. The names of the
files that changed are printed.`,
		Example: `  mcpd fmt
  mcpd fmt --check tools.d/customer.hcl`,
		RunE: func(_ *cobra.Command, args []string) error { return format(e, &f, args, onlyCheck) },
	}
	f.addPaths(cmd)
	cmd.ValidArgsFunction = cobra.FixedCompletions([]cobra.Completion{"hcl", "mcpdvars"}, cobra.ShellCompDirectiveFilterFileExt)
	cmd.Flags().BoolVar(&onlyCheck, "check", false, "change nothing; exit 1 when a file would change")
	return cmd
}

func format(e env, f *files, args []string, onlyCheck bool) error {
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
		return findings("there is no .hcl file in %s", strings.Join(args, ", "))
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
		return findings("%s could not be read as HCL", count(broken, "file"))
	}
	if onlyCheck && changed > 0 {
		return findings("%s would change; run mcpd fmt", count(changed, "file"))
	}
	return nil
}

// formatFile formats one file. It returns 1 when the file differs from its
// canonical form, and -1 when it is no HCL; the mistakes have been printed then.
func formatFile(e env, name string, onlyCheck bool) (int, error) {
	source, err := e.disk.readFile(name)
	if err != nil {
		return 0, findings("%v", err)
	}
	path := filepath.ToSlash(name)
	formatted, problems := hclfile.Format(hclfile.Source{Path: path, Bytes: source})
	if problems.HasErrors() {
		printer := diag.Printer{Sources: map[string][]byte{path: hclfile.RedactSecrets(path, source)}, Color: e.colour}
		return -1, printer.Print(e.stderr, problems)
	}
	if bytes.Equal(formatted, source) {
		return 0, nil
	}
	if _, err := fmt.Fprintln(e.stdout, name); err != nil || onlyCheck {
		return 1, err
	}
	info, err := e.disk.stat(name)
	if err != nil {
		return 0, err
	}
	return 1, e.disk.replaceFile(name, formatted, info.Mode().Perm())
}

// hclFiles returns the HCL files that are named and those in named folders,
// but for hidden ones, which no verb reads.
func hclFiles(e env, args []string) ([]string, error) {
	var names []string
	for _, arg := range args {
		info, err := e.disk.stat(arg)
		if err != nil {
			return nil, usage("%v", err)
		}
		if !info.IsDir() {
			if extension := filepath.Ext(arg); extension != ".hcl" && extension != ".mcpdvars" {
				return nil, usage("%s is no file that fmt formats: those end in .hcl or .mcpdvars", arg)
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
			return nil, findings("%v", err)
		}
	}
	return names, nil
}

// hidden reports the names of files and folders that the engine never reads.
func hidden(base string) bool {
	return strings.HasPrefix(base, ".") || strings.HasPrefix(base, "#") || strings.HasSuffix(base, "~")
}
