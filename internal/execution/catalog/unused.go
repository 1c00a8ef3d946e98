package catalog

import (
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// unusedGrants returns a warning for each object that is granted to bodies none
// of which can reach it. ranges are where grants are written. Nothing is said
// where a body could not be compiled, which is nil.
func unusedGrants(granted grant.Set, ranges map[string]diag.Range, bodies []*scripting.Program) (list diag.List) {
	for _, object := range objectsOf(granted) {
		where, written := ranges[object.Kind+"."+object.Name]
		if !written || len(bodies) == 0 || object.Kind == "fs.write" || reached(object, bodies) {
			continue
		}
		name := object.Kind + "." + object.Name
		if object.Kind == "ask" {
			name = object.Name
		}
		list = append(list, diag.Diagnostic{
			Severity: diag.Warning, Code: "unused-grant", Range: where,
			Summary: fmt.Sprintf("%s is granted, and no body uses it", name), Detail: "remove it: what is not granted cannot be misused",
		})
	}
	return list
}

func reached(object scripting.Object, bodies []*scripting.Program) bool {
	for _, program := range bodies {
		if program == nil || program.Reaches(object) {
			return true
		}
	}
	return false
}

// objectsOf returns the script's objects for what it is granted.
func objectsOf(granted grant.Set) (objects []scripting.Object) {
	for _, http := range granted.HTTP {
		objects = append(objects, scripting.Object{Kind: "http", Name: http.Name})
	}
	objects = slices.Concat(objects, localObjects(granted), programObjects(granted), databaseObjects(granted))
	for _, kv := range granted.KV {
		objects = append(objects, scripting.Object{Kind: "kv", Name: kv.Name})
	}
	for _, module := range granted.Modules {
		objects = append(objects, scripting.Object{Kind: "modules", Name: module.Name})
	}
	for _, pattern := range granted.Call {
		objects = append(objects, scripting.Object{Kind: "tools", Name: pattern})
	}
	if granted.Ask != nil {
		for _, name := range append(granted.Ask.Names(), "ask") {
			objects = append(objects, scripting.Object{Kind: "ask", Name: name})
		}
	}
	return objects
}
