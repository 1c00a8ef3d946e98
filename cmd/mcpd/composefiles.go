package main

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/mcpd/mcpd/internal/ops/compose"
)

// composedFile is what became of a file, or would.
type composedFile struct {
	Path  string `json:"path"`
	State string `json:"state"`
	Line  int    `json:"line,omitempty"` // the first that differs, of --check
}

// settle brings the files on the disk, or tells how those there differ.
func (c *composition) settle(e env, files []compose.File) error {
	have := map[string][]byte{}
	differences, err := compose.Drift(files, func(name string) ([]byte, error) {
		content, err := e.disk.readFile(c.at(name))
		have[name] = content
		return content, err
	})
	if err != nil {
		return findings("%v", err)
	}
	if c.check {
		return c.tellDrift(e, files, differences)
	}
	var foreign []string
	for _, d := range differences {
		if d.Kind != compose.Missing && !compose.Written(have[d.Name]) && !c.force {
			foreign = append(foreign, filepath.ToSlash(c.at(d.Name)))
		}
	}
	if len(foreign) > 0 {
		return findings("mcpd compose has not written %s; nothing was written. Move it away, or let it be replaced with --force", strings.Join(foreign, ", "))
	}
	for i := range differences {
		if err := c.change(e, files, differences[i]); err != nil {
			return findings("%v", err)
		}
	}
	return c.tellWritten(e, files, differences)
}

// at returns the path of a file of the deployment.
func (c *composition) at(name string) string { return filepath.Join(c.out, filepath.FromSlash(name)) }

// change does away with one difference.
func (c *composition) change(e env, files []compose.File, d compose.Difference) error {
	to := c.at(d.Name)
	if d.Kind == compose.Stale {
		return e.disk.remove(to)
	}
	const mode fs.FileMode = 0o644
	content := contentOf(files, d.Name)
	if d.Kind == compose.Changed {
		return e.disk.replaceFile(to, content, mode)
	}
	if err := e.disk.mkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return e.disk.writeFile(to, content, mode)
}

func contentOf(files []compose.File, name string) []byte {
	for _, f := range files {
		if f.Name == name {
			return f.Content
		}
	}
	return nil
}

// states returns what is told of each file; names has the words for the kinds of
// differences.
func (c *composition) states(files []compose.File, differences []compose.Difference, names map[compose.Kind]string) []composedFile {
	told := map[string]bool{}
	var list []composedFile
	for _, d := range differences {
		told[d.Name] = true
		row := composedFile{Path: path.Clean(filepath.ToSlash(c.at(d.Name))), State: names[d.Kind]}
		if c.check {
			row.Line = d.Line
		}
		list = append(list, row)
	}
	for _, f := range files {
		if !told[f.Name] {
			list = append(list, composedFile{Path: filepath.ToSlash(c.at(f.Name)), State: "unchanged"})
		}
	}
	return list
}

// tellDrift prints how the files on the disk differ, which is a finding.
func (c *composition) tellDrift(e env, files []compose.File, differences []compose.Difference) error {
	rows := c.states(files, differences, map[compose.Kind]string{compose.Missing: "missing", compose.Changed: "changed", compose.Stale: "stale"})
	if c.asJSON {
		if err := c.printRows(e, rows, len(differences) > 0); err != nil {
			return err
		}
		if len(differences) > 0 {
			return &exitError{code: exitFindings} // the JSON has said it
		}
		return nil
	}
	for _, row := range rows[:len(differences)] {
		where := row.Path
		if row.Line > 0 {
			where = fmt.Sprintf("%s:%d", row.Path, row.Line)
		}
		if _, err := fmt.Fprintf(e.stdout, "%s: %s\n", where, row.State); err != nil {
			return err
		}
	}
	if len(differences) > 0 {
		return findings("%s would change; run mcpd compose", count(len(differences), "file"))
	}
	return nil
}

// tellWritten prints what was written and removed.
func (c *composition) tellWritten(e env, files []compose.File, differences []compose.Difference) error {
	rows := c.states(files, differences, map[compose.Kind]string{compose.Missing: "written", compose.Changed: "written", compose.Stale: "removed"})
	if c.asJSON {
		return c.printRows(e, rows, len(differences) > 0)
	}
	var b strings.Builder
	for _, row := range rows[:len(differences)] {
		verb := "wrote"
		if row.State == "removed" {
			verb = "removed"
		}
		fmt.Fprintf(&b, "%s %s\n", verb, row.Path)
	}
	if len(differences) == 0 {
		b.WriteString("nothing has changed\n")
	}
	_, err := fmt.Fprint(e.stdout, b.String())
	return err
}

func (c *composition) printRows(e env, rows []composedFile, changed bool) error {
	return printJSON(e.stdout, struct {
		Changed bool           `json:"changed"`
		Files   []composedFile `json:"files"`
	}{changed, rows})
}
