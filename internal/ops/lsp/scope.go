package lsp

import (
	"maps"
	"slices"
	"strings"
)

// scope has the names of code at a position. The first name of a path is a global.
type scope interface {
	// members returns the members of an object, or the globals if path is empty.
	members(path []string) []member
	// definition returns what declares the last name of a path.
	definition(path []string) []declared
}

// celScope has the variables of CEL expressions.
type celScope struct{ *cursor }

func (p *cursor) celScope() scope { return celScope{p} }

func (s celScope) members(path []string) (found []member) {
	switch {
	case len(path) == 0:
		for _, name := range slices.Sorted(maps.Keys(celMembers)) {
			if name == "result" && s.owner.literal(s.block, "on") != "result" || name == "content" && s.owner.literal(s.block, "on") != "result" {
				continue
			}
			found = append(found, member{name, blockDocs()["cel "+name]})
		}
	case path[0] == "args":
		return fieldMembers(s.inputs(), path[1:])
	case len(path) > 1:
	case path[0] == "vars":
		return s.variables()
	default:
		for _, name := range celMembers[path[0]] {
			found = append(found, member{name: name})
		}
	}
	return found
}

func (s celScope) definition(path []string) []declared {
	switch {
	case path[0] == "args" && len(path) > 1:
		return fieldDeclarations(s.inputs(), path[1:])
	case path[0] == "vars" && len(path) == 2:
		return s.index.named("variable", path[1])
	}
	return nil
}

// scriptScope has the globals of scripts.
type scriptScope struct{ *cursor }

func (p *cursor) scriptScope() scope { return scriptScope{p} }

func (s scriptScope) members(path []string) (found []member) {
	if s.file != nil {
		if known, isContext := s.file.resolve(path); isContext {
			if path = known; len(path) == 0 {
				return slices.DeleteFunc(s.globals(), func(m member) bool { return !slices.Contains(contextMembers, m.name) })
			}
		} else {
			path = known
		}
	}
	if len(path) == 0 {
		return s.globals()
	}
	switch path[0] {
	case "input":
		return fieldMembers(s.inputs(), path[1:])
	case "vars":
		if len(path) == 1 {
			return s.variables()
		}
		return nil
	case "tools":
		for _, d := range s.callable() {
			found = append(found, member{d.name(), entry{text: prose(d)}})
		}
		return found
	case "env", "secrets":
		for _, g := range s.grants() {
			if g.block.kind == path[0] {
				for _, name := range g.stringsOf(g.block, "names") {
					found = append(found, member{name: name})
				}
			}
		}
		return found
	case "http", "fs", "kv", "sql", "exec", "modules":
		if len(path) == 2 {
			return membersOf(path[0] + ".NAME")
		}
		for _, g := range s.grants() {
			if g.block.kind == strings.TrimSuffix(path[0], "s") && path[0] == "modules" || g.block.kind == path[0] {
				found = append(found, member{name: g.name()})
			}
		}
		return found
	}
	if len(path) == 1 {
		return membersOf(path[0])
	}
	return nil
}

// globals returns the globals that the script has.
func (s scriptScope) globals() (found []member) {
	granted := map[string]bool{}
	for _, g := range s.grants() {
		switch g.block.kind {
		case "call":
			granted["tools"] = true
		case "module":
			granted["modules"] = true
		case "ask":
			granted["ask"] = true
			for _, name := range []string{"elicit", "sample", "roots"} {
				granted[name] = g.word(g.block, name) == "true"
			}
		default:
			granted[g.block.kind] = true
		}
	}
	inHook := s.block.enclosing("hook") != nil
	for _, m := range membersOf("") {
		switch {
		case slices.Contains(needsGrant, m.name) && !granted[m.name]:
		case inHook && slices.Contains([]string{"input", "agent", "call", "progress", "content"}, m.name), !inHook && m.name == "event":
		case m.name == "value" && s.block.kind != "complete":
		case m.name == "uri" && s.block.enclosing("resource") == nil && s.block.enclosing("resource_template") == nil:
		case m.name == "params" && s.block.enclosing("resource_template") == nil && s.block.kind != "complete":
		default:
			found = append(found, m)
		}
	}
	return found
}

// callable returns the tools that the script may call.
func (s scriptScope) callable() (found []declared) {
	for _, g := range s.grants() {
		if g.block.kind != "call" {
			continue
		}
		for _, pattern := range g.stringsOf(g.block, "tools") {
			found = append(found, s.index.named("tool", pattern)...)
		}
	}
	return found
}

func (s scriptScope) definition(path []string) []declared {
	if s.file != nil {
		path, _ = s.file.resolve(path)
	}
	switch {
	case len(path) == 0:
	case path[0] == "input" && len(path) > 1:
		return fieldDeclarations(s.inputs(), path[1:])
	case path[0] == "vars" && len(path) == 2:
		return s.index.named("variable", path[1])
	case path[0] == "tools" && len(path) == 2:
		return s.index.named("tool", path[1])
	case path[0] == "secrets" && len(path) == 2:
		return s.index.named("secret", path[1])
	case len(path) == 2 && slices.Contains([]string{"http", "fs", "kv", "sql", "exec"}, path[0]):
		for _, g := range s.grants() {
			if g.block.kind == path[0] && g.name() == path[1] {
				return []declared{g}
			}
		}
	}
	return nil
}

// variables returns the variables of the config file.
func (p *cursor) variables() (found []member) {
	for _, d := range p.index.declarations("variable") {
		found = append(found, member{d.name(), entry{typ: d.word(d.block, "type"), text: prose(d)}})
	}
	return found
}

// fieldMembers returns the members of inputs, or of the field that a path names.
func fieldMembers(fields []field, path []string) (found []member) {
	for _, f := range within(fields, path) {
		found = append(found, member{f.name(), entry{typ: f.word(f.block, "type"), text: prose(f.declared)}})
	}
	return found
}

// within returns the fields below a path.
func within(fields []field, path []string) []field {
	for _, name := range path {
		var inner []field
		for _, f := range fields {
			if f.name() != name {
				continue
			}
			for _, b := range f.block.blocks {
				if b.kind == "field" {
					inner = append(inner, field{declared{f.source, b}, f.owner})
				}
			}
		}
		fields = inner
	}
	return fields
}

// fieldDeclarations returns the fields that a path names.
func fieldDeclarations(fields []field, path []string) (found []declared) {
	for _, f := range within(fields, path[:len(path)-1]) {
		if f.name() == path[len(path)-1] {
			found = append(found, f.declared)
		}
	}
	return found
}
