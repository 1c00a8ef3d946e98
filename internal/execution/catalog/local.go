package catalog

import (
	"path/filepath"
	"slices"

	"github.com/mcpd/mcpd/internal/language/configcheck"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/loader"
	"github.com/mcpd/mcpd/scripting"
)

// places returns what grants of files and programs are judged by.
func (b *Builder) places(roots *loader.Roots) configcheck.Places {
	p := configcheck.Places{Tools: loader.Path(b.options.Tools), Config: loader.Path(b.options.Config), Find: roots.Find, Program: roots.Program, NoDriver: b.options.NoDriver}
	if state, err := filepath.Abs(b.options.StatePath); err == nil && b.options.StatePath != "" {
		p.State = filepath.Dir(state)
	}
	if b.options.LookupEnv != nil {
		p.Home, _ = b.options.LookupEnv("HOME")
	}
	return p
}

// filesOf returns what is granted of files, with the folders that it leads to
// now: the broker opens nothing else.
func (f *build) filesOf(granted grant.Set) []grant.FS {
	files := slices.Clone(granted.FS)
	for i := range files {
		files[i].Real, _ = f.roots.Find(files[i].Root)
	}
	return files
}

// moved reports whether a root leads elsewhere than when its grant was compiled.
func (f *build) moved(files []grant.FS) bool {
	return slices.ContainsFunc(files, func(g grant.FS) bool {
		real, _ := f.roots.Find(g.Root)
		return real != g.Real
	})
}

// linkedRoots tells where the roots and programs lead that pass links: a snapshot that differs
// in that alone is another.
func (f *build) linkedRoots() []byte {
	var told []byte
	for _, g := range f.files {
		if g.Real != g.Root {
			told = append(append(told, g.Real...), 0)
		}
	}
	for _, g := range f.programs {
		if g.Real != g.Path {
			told = append(append(told, g.Real...), 0)
		}
	}
	return told
}

// localObjects returns the script's objects for what it is granted of the machine.
func localObjects(granted grant.Set) []scripting.Object {
	var objects []scripting.Object
	for _, g := range granted.FS {
		objects = append(objects, scripting.Object{Kind: "fs", Name: g.Name})
		if g.Write {
			objects = append(objects, scripting.Object{Kind: "fs.write", Name: g.Name})
		}
	}
	for _, name := range granted.Env {
		objects = append(objects, scripting.Object{Kind: "env", Name: name})
	}
	for _, name := range granted.Secrets {
		objects = append(objects, scripting.Object{Kind: "secrets", Name: name})
	}
	return objects
}
