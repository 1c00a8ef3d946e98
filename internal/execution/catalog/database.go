package catalog

import (
	"slices"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// databasesOf returns what is granted of databases, with the files and folders
// that it leads to now: the broker opens nothing else.
func (f *build) databasesOf(granted grant.Set) []grant.SQL {
	databases := slices.Clone(granted.SQL)
	for i := range databases {
		if databases[i].Path != "" {
			databases[i].Real, _ = f.roots.Find(databases[i].Path)
		}
	}
	return databases
}

// placesOf returns the files and folders of databases as grants of files: when
// one of them leads elsewhere, what was compiled is compiled again.
func placesOf(databases []grant.SQL) []grant.FS {
	var places []grant.FS
	for _, g := range databases {
		if g.Path != "" {
			places = append(places, grant.FS{Root: g.Path, Real: g.Real})
		}
	}
	return places
}

// databaseObjects returns the script's objects for databases.
func databaseObjects(granted grant.Set) []scripting.Object {
	var objects []scripting.Object
	for _, g := range granted.SQL {
		objects = append(objects, scripting.Object{Kind: "sql", Name: g.Name})
		if g.Write {
			objects = append(objects, scripting.Object{Kind: "sql.write", Name: g.Name})
		}
		if g.Chosen {
			objects = append(objects, scripting.Object{Kind: "sql.open", Name: g.Name})
		}
	}
	return objects
}
