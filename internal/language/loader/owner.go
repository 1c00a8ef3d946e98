package loader

import (
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/mcpd/mcpd/diag"
)

// Foreign reports the folders and files that this load has read and that belong to another
// user than the one that runs mcpd, and not to root. It is asked once everything is read.
func (t *Tree) CheckOwner() diag.List {
	return ownerProblems(t.displayNames(t.ownedByOthers, func(o ownership) bool { return o.ownedByOther }))
}

// ownership says that a file is another user's, or that its group may write it.
type ownership struct{ ownedByOther, groupWritable bool }

func ownershipOf(info fs.FileInfo) ownership {
	return ownership{isOwnedByOther(info), writableByGroup(info)}
}

// displayed returns how diagnostics call these folders and the files that this load has read
// of which is holds, each once, in bytewise order.
func (t *Tree) displayNames(folders []string, is func(ownership) bool) []string {
	names := slices.Clone(folders)
	for name, u := range t.files {
		if is(u.ownership) {
			names = append(names, name)
		}
	}
	for _, name := range t.usedNames() {
		if is(t.refs[name].ownership) {
			names = append(names, name)
		}
	}
	for i := range names {
		names[i] = t.display(names[i])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Shared warns of the folders and files that this load has read and that their group may
// write: its members decide what mcpd runs. One warning is about all of them.
func (t *Tree) CheckGroup() diag.List {
	names := t.displayNames(t.groupWritable, func(o ownership) bool { return o.groupWritable })
	if len(names) == 0 {
		return nil
	}
	summary := "this is writable by its group"
	if more := len(names) - 1; more > 0 {
		summary = fmt.Sprintf("this and %d more of what is loaded are writable by their groups", more)
	}
	return diag.List{{
		Severity: diag.Warning, Code: "writable-by-group", Range: diag.Range{File: names[0]}, Summary: summary,
		Detail: "run chmod -R g-w on the folder: who may write here decides what mcpd runs",
	}}
}

// Foreign is [Tree.Foreign] for the operator's file, the values beside it and their
// folder. It also reports that every user may write in that.
func (c *Config) CheckOwner() diag.List {
	problems := ownerProblems(c.ownedByOthers)
	if c.replaceable {
		problems = append(problems, diag.Diagnostic{
			Code: "writable-by-others", Range: diag.Range{File: path.Dir(c.name)},
			Summary: "this folder is writable by every user, and production mode demands that nobody else can replace the operator's file",
			Detail:  "run chmod o-w on it: who may write here decides what mcpd runs",
		})
	}
	return problems
}

// ofOthers reports that files are those of other users.
func ownerProblems(names []string) diag.List {
	slices.Sort(names)
	var problems diag.List
	for _, name := range slices.Compact(names) {
		problems = append(problems, diag.Diagnostic{
			Code: "production-owner", Range: diag.Range{File: name},
			Summary: "this belongs to another user than the one that runs mcpd, and production mode demands that nobody else can change it",
			Detail:  "run chown on it, for that user or for root: its owner decides what mcpd runs",
		})
	}
	return problems
}
