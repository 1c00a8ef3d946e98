package catalog

import (
	"slices"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// programsOf returns what is granted of programs, with the files that their paths
// lead to now: the broker runs nothing else.
func (f *build) programsOf(granted grant.Set) []grant.Exec {
	programs := slices.Clone(granted.Exec)
	for i := range programs {
		programs[i].Real, _ = f.roots.Find(programs[i].Path)
	}
	return programs
}

// turned reports whether a path leads to another program than when its grant was
// compiled.
func (f *build) turned(programs []grant.Exec) bool {
	return slices.ContainsFunc(programs, func(g grant.Exec) bool {
		real, _ := f.roots.Find(g.Path)
		return real != g.Real
	})
}

// programObjects returns the script's objects for the programs that it is granted.
func programObjects(granted grant.Set) []scripting.Object {
	var objects []scripting.Object
	for _, g := range granted.Exec {
		objects = append(objects, scripting.Object{Kind: "exec", Name: g.Name})
	}
	return objects
}
