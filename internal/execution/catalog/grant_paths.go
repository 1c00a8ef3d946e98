package catalog

import (
	"path/filepath"
	"slices"

	"github.com/mcpd/mcpd/internal/language/configcheck"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/loader"
)

// hostPaths returns the paths that grants are checked against.
func (b *Builder) hostPaths(roots *loader.Resolver) configcheck.HostPaths {
	p := configcheck.HostPaths{Tools: loader.Path(b.options.Tools), Config: loader.Path(b.options.Config), Find: roots.Resolve, Program: roots.ResolveProgram, NoDriver: b.options.NoDriver}
	if state, err := filepath.Abs(b.options.StatePath); err == nil && b.options.StatePath != "" {
		p.State = filepath.Dir(state)
	}
	if b.options.LookupEnv != nil {
		p.Home, _ = b.options.LookupEnv("HOME")
	}
	return p
}

// resolveGrants returns grants with resolved paths. The brokers access only these paths.
func (s *buildState) resolveGrants(granted grant.Set) grant.Set {
	granted.FS, granted.Exec, granted.SQL = slices.Clone(granted.FS), slices.Clone(granted.Exec), slices.Clone(granted.SQL)
	for i := range granted.FS {
		granted.FS[i].ResolvedPath, _ = s.roots.Resolve(granted.FS[i].Root)
	}
	for i := range granted.SQL {
		if granted.SQL[i].Path != "" {
			granted.SQL[i].ResolvedPath, _ = s.roots.Resolve(granted.SQL[i].Path)
		}
	}
	for i := range granted.Exec {
		granted.Exec[i].ResolvedPath, _ = s.roots.Resolve(granted.Exec[i].Path)
	}
	return granted
}

// eachResolvedPath calls yield with each path in grants and its resolved path.
func eachResolvedPath(granted []grant.Set, yield func(path, real string)) {
	for i := range granted {
		for _, g := range granted[i].FS {
			yield(g.Root, g.ResolvedPath)
		}
		for _, g := range granted[i].SQL {
			yield(g.Path, g.ResolvedPath) // both are empty unless the grant names a file
		}
	}
	for i := range granted {
		for _, g := range granted[i].Exec {
			yield(g.Path, g.ResolvedPath)
		}
	}
}

// pathsMoved reports whether a path resolves differently than at compile time, so that the
// definition must be compiled again.
func (s *buildState) pathsMoved(granted ...grant.Set) (moved bool) {
	eachResolvedPath(granted, func(path, real string) {
		if path != "" && !moved {
			now, _ := s.roots.Resolve(path)
			moved = now != real
		}
	})
	return moved
}

// resolvedRoots returns the granted paths that resolve to another path, for the revision.
func (s *buildState) resolvedRoots() (roots []byte) {
	eachResolvedPath(s.granted, func(path, real string) {
		if path != real {
			roots = append(append(roots, real...), 0)
		}
	})
	return roots
}
