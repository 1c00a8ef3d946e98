package catalog

import (
	"path/filepath"
	"slices"

	"github.com/mcpd/mcpd/internal/language/configcheck"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/loader"
)

// places returns what grants of files and programs are judged by.
func (b *Builder) places(roots *loader.Resolver) configcheck.HostPaths {
	p := configcheck.HostPaths{Tools: loader.Path(b.options.Tools), Config: loader.Path(b.options.Config), Find: roots.Resolve, Program: roots.ResolveProgram, NoDriver: b.options.NoDriver}
	if state, err := filepath.Abs(b.options.StatePath); err == nil && b.options.StatePath != "" {
		p.State = filepath.Dir(state)
	}
	if b.options.LookupEnv != nil {
		p.Home, _ = b.options.LookupEnv("HOME")
	}
	return p
}

// led returns grants with the files, folders and programs that their paths lead to now: the
// brokers open and run nothing else.
func (f *build) resolveGrants(granted grant.Set) grant.Set {
	granted.FS, granted.Exec, granted.SQL = slices.Clone(granted.FS), slices.Clone(granted.Exec), slices.Clone(granted.SQL)
	for i := range granted.FS {
		granted.FS[i].ResolvedPath, _ = f.roots.Resolve(granted.FS[i].Root)
	}
	for i := range granted.SQL {
		if granted.SQL[i].Path != "" {
			granted.SQL[i].ResolvedPath, _ = f.roots.Resolve(granted.SQL[i].Path)
		}
	}
	for i := range granted.Exec {
		granted.Exec[i].ResolvedPath, _ = f.roots.Resolve(granted.Exec[i].Path)
	}
	return granted
}

// ledFrom calls yield with each path in grants, and with the place that it led to.
func eachResolvedPath(granted []grant.Set, yield func(path, real string)) {
	for i := range granted {
		for _, g := range granted[i].FS {
			yield(g.Root, g.ResolvedPath)
		}
		for _, g := range granted[i].SQL {
			yield(g.Path, g.ResolvedPath) // both are empty of one that is no file
		}
	}
	for i := range granted {
		for _, g := range granted[i].Exec {
			yield(g.Path, g.ResolvedPath)
		}
	}
}

// moved reports whether a path leads elsewhere than when its grant was compiled: what was
// compiled with it is compiled again.
func (f *build) pathsMoved(granted ...grant.Set) (moved bool) {
	eachResolvedPath(granted, func(path, real string) {
		if path != "" && !moved {
			now, _ := f.roots.Resolve(path)
			moved = now != real
		}
	})
	return moved
}

// linkedRoots tells where paths in grants lead that pass links: a snapshot that differs in
// that alone is another.
func (f *build) resolvedRoots() (told []byte) {
	eachResolvedPath(f.granted, func(path, real string) {
		if path != real {
			told = append(append(told, real...), 0)
		}
	})
	return told
}
