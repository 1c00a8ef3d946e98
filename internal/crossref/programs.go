package crossref

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/grant"
	"github.com/mcpd/mcpd/internal/hclfile"
)

// program judges the program of one grant.
func (c *machine) program(what string, g grant.Exec, where diag.Range, ranges map[string]diag.Range, bounded bool) {
	real, err := c.places.Program(g.Path)
	if !c.isNamedProgram(g.Path) {
		if why := c.changeable(g.Path, real); why != "" {
			c.report(diag.Diagnostic{
				Code: "bad-grant", Range: where, Summary: fmt.Sprintf("%s runs a program in %s", what, why),
				Detail: "whoever may write there decides what is run: use a program of another folder, or ask the operator to name this one in ceiling.exec_paths",
			})
			return
		}
		if ceiling := c.config.Ceiling; bounded && ceiling != nil && ceiling.ExecPaths != nil && !c.coversProgram(g.Path, real) {
			c.report(diag.Diagnostic{
				Code: "over-ceiling", Range: where, Summary: what + " runs a program that the operator's ceiling does not allow",
				Detail: "use a program of ceiling.exec_paths, or ask the operator to add this one",
				Notes:  []diag.Note{{Range: ceiling.Range, Message: "the ceiling"}},
			})
			return
		}
		if i, why := coded(g, real); i >= 0 {
			c.report(diag.Diagnostic{
				Code: "bad-grant", Range: ranges[fmt.Sprintf("exec.%s.argv.%d", g.Name, i)], Summary: why,
				Detail: "run the program itself that does the work, or write the code out before what a script passes; what is meant as it is, the operator names in ceiling.exec_paths",
			})
			return
		}
	}
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		c.report(diag.Diagnostic{
			Severity: diag.Warning, Code: "missing-program", Range: where, Summary: "the program does not exist yet",
			Detail: "install it, or correct the path; until then scripts cannot run it",
		})
	default:
		c.report(diag.Diagnostic{
			Code: "bad-grant", Range: where, Summary: "this is no program that can be granted: " + err.Error(),
			Detail: "name a file that may be executed, and that nobody else than its owner and group may write",
		})
	}
}

// isNamedProgram reports whether the ceiling names just this program.
func (c *machine) isNamedProgram(path string) bool {
	return c.noCeiling() || c.config.Ceiling != nil && slices.ContainsFunc(c.config.Ceiling.ExecPaths, func(n hclfile.Name) bool { return n.Text == path })
}

// coversProgram reports whether the ceiling covers a program, by its path as it
// is written and by the one that it leads to.
func (c *machine) coversProgram(path, real string) bool {
	covered := func(path string) bool {
		return slices.ContainsFunc(c.config.Ceiling.ExecPaths, func(n hclfile.Name) bool { return n.Matches(path) })
	}
	return real != "" && covered(path) && covered(real)
}

// gatherWritten notes the folders that scripts may write to.
func (c *machine) gatherWritten(files []*hclfile.Definitions) {
	add := func(granted grant.Set) {
		for _, g := range granted.FS {
			if real, _ := c.places.Find(g.Root); g.Write && real != "" {
				c.written = append(c.written, g.Root, real)
			}
		}
	}
	for i := range c.config.Hooks {
		add(c.config.Hooks[i].Grant)
	}
	for _, f := range files {
		eachGrant(f, func(_, _ string, granted grant.Set, _ map[string]diag.Range) { add(granted) })
	}
}

// changeable says in which folder a program lies where a script, or an author of
// tools, may put another one; "" when there is none.
func (c *machine) changeable(path, real string) string {
	for _, path := range []string{path, real} {
		if path == "" {
			continue
		}
		for _, folder := range []string{c.places.Tools, c.found(c.places.Tools)} {
			if folder != "" && within(path, folder) {
				return "the folder of the tools"
			}
		}
		if c.places.State != "" && within(path, c.places.State) {
			return "the folder of mcpd's state"
		}
		if slices.ContainsFunc(c.written, func(root string) bool { return within(path, root) }) {
			return "a folder that scripts may write to"
		}
	}
	return ""
}
