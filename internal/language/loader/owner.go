package loader

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/atomicfile"
)

// CheckOwner reports the directories and files, read by this load, that belong to another user
// than the user of mcpd or root. Call it after everything was read.
func (t *Tree) CheckOwner() diag.List {
	return ownerProblems(t.displayNames(t.ownedByOthers, func(o ownership) bool { return o.ownedByOther }))
}

// ownership is set for a file that belongs to another user, or that its group may write.
type ownership struct{ ownedByOther, groupWritable bool }

func ownershipOf(info fs.FileInfo) ownership {
	return ownership{isOwnedByOther(info), writableByGroup(info)}
}

// displayNames returns the names in diagnostics of the given directories, and of the files read
// by this load that satisfy is. They are sorted bytewise, without duplicates.
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

// CheckGroup warns of directories and files, read by this load, that their group may write:
// members of the group decide what mcpd runs. One warning covers all of them.
func (t *Tree) CheckGroup() diag.List {
	names := t.displayNames(t.groupWritable, func(o ownership) bool { return o.groupWritable })
	if len(names) == 0 {
		return nil
	}
	summary := "this is writable by its group"
	if more := len(names) - 1; more > 0 {
		summary = fmt.Sprintf("this and %d other loaded files or directories are writable by their group", more)
	}
	return diag.List{{
		Severity: diag.Warning, Code: "writable-by-group", Range: diag.Range{File: names[0]}, Summary: summary,
		Detail: "run chmod -R g-w on the directory: users who may write it decide what mcpd runs",
	}}
}

// CheckOwner is [Tree.CheckOwner] for the config file, the *.mcpdvars files and their
// directory. It also reports a directory that every user may write.
func (c *Config) CheckOwner() diag.List {
	problems := ownerProblems(c.ownedByOthers)
	if c.replaceable {
		problems = append(problems, diag.Diagnostic{
			Code: "writable-by-others", Range: diag.Range{File: path.Dir(c.name)},
			Summary: "every user can replace the config file in this directory, which production mode forbids",
			Detail:  "run chmod o-w on it: users who may write it decide what mcpd runs",
		})
	}
	return problems
}

// ownerProblems reports files that belong to other users.
func ownerProblems(names []string) diag.List {
	slices.Sort(names)
	var problems diag.List
	for _, name := range slices.Compact(names) {
		problems = append(problems, diag.Diagnostic{
			Code: "production-owner", Range: diag.Range{File: name},
			Summary: "this belongs to another user, which production mode forbids",
			Detail:  "run chown on it, to root or the user that runs mcpd: its owner decides what mcpd runs",
		})
	}
	return problems
}

// isOwnedByOther reports whether a file belongs to a user other than root and the user of mcpd.
// Its owner can write it, whatever its mode. A file that is not on disk belongs to the program.
// info is nil if a file could not be opened.
func isOwnedByOther(info fs.FileInfo) bool {
	if info == nil {
		return false
	}
	owner, known := atomicfile.Owner(info)
	return known && owner != 0 && int(owner) != os.Geteuid()
}

// hasModes reports whether this system has permissions of groups and of other users, and marks
// executable files.
const hasModes = runtime.GOOS != "windows"

// writableByGroup reports whether the group of a file may write it.
func writableByGroup(info fs.FileInfo) bool {
	return hasModes && info != nil && info.Mode().Perm()&0o020 != 0
}

// executable reports whether any user may execute a file. Without modes, its name decides.
func executable(info fs.FileInfo) bool { return !hasModes || info.Mode().Perm()&0o111 != 0 }

// writable reports whether every user may write a file.
func writable(info fs.FileInfo) bool { return hasModes && info.Mode().Perm()&0o002 != 0 }
