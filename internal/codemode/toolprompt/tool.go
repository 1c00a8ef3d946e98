package toolprompt

import (
	"encoding/json"
	"slices"
	"strings"
)

// Tool is what is told of a tool.
type Tool struct {
	// Name is what calls name. No two tools of a list share one: of those that
	// do, the first counts.
	Name string
	// Group and Member are another name, GROUP.MEMBER, in which Group is the name
	// of an upstream. Both are empty for tools that have none. A group that has the
	// name of a tool in the same list, or one that is not [Callable], is passed over.
	Group, Member string
	// Bare is another name, that of a function, such as what the tool's own server calls
	// it; empty where there is none. One that another tool of the list has, too, or that is
	// not [Callable], is passed over.
	Bare string
	// Title and Description are for people and models. Either may be empty.
	Title, Description string
	// Input and Output are JSON Schemas, of the one object of arguments and of the
	// result. A nil Output says nothing of the result.
	Input, Output json.RawMessage
	// ReadOnly and Destructive are the annotations of MCP, nil where nothing is said.
	ReadOnly, Destructive *bool
	// Fits reports whether arguments fit the schema. Nil knows only schemas whose keywords
	// are those that examples are made for.
	Fits func(arguments json.RawMessage) bool
}

// Call returns the expression that is the tool's function, as the declarations of
// a list have it in which no other tool takes its names: crm.get_customer,
// search_web or tools["any-name"].
func (t Tool) Call() string {
	return arrange([]Tool{t})[0].call(0)
}

// entry is a declaration at the top: a function, or an object that has functions.
type entry struct {
	name string
	// members are the names of the functions, nil where the entry is one itself.
	members []string
	tools   []*Tool
}

// call returns the expression that is the function of a tool of the entry.
func (e *entry) call(i int) string {
	switch {
	case e.members == nil:
		return e.name
	case isIdentifier(e.members[i]):
		return e.name + "." + e.members[i]
	}
	return e.name + "[" + quote(e.members[i]) + "]"
}

// add makes a tool a member of the entry.
func (e *entry) add(member string, t *Tool) {
	e.members = append(e.members, member)
	e.tools = append(e.tools, t)
}

// allTools is the object that has every tool by its name.
const allTools = "tools"

// arrange returns the declarations at the top that a list of tools needs, and in
// each its tools, by their names in bytewise order.
func arrange(tools []Tool) []*entry {
	sorted, named := byName(tools)
	entries := map[string]*entry{}
	object := func(name string) *entry {
		if entries[name] == nil {
			entries[name] = &entry{name: name, members: []string{}}
		}
		return entries[name]
	}
	type place struct{ group, member string }
	taken, bare := map[place]bool{}, map[string]int{}
	for _, t := range sorted {
		bare[t.Bare]++
		bare[t.Group]++ // which no function can be called
	}
	for _, t := range sorted {
		at := place{t.Group, t.Member}
		switch {
		case t.Member != "" && Callable(t.Group) && !named[t.Group] && !taken[at]:
			taken[at] = true
			object(t.Group).add(t.Member, t)
		case bare[t.Bare] == 1 && Callable(t.Bare) && !named[t.Bare]:
			entries[t.Bare] = &entry{name: t.Bare, tools: []*Tool{t}}
		case Callable(t.Name):
			entries[t.Name] = &entry{name: t.Name, tools: []*Tool{t}}
		default:
			object(allTools).add(t.Name, t)
		}
	}
	list := make([]*entry, 0, len(entries))
	for _, e := range entries {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b *entry) int { return strings.Compare(a.name, b.name) })
	return list
}

// byName returns the tools in the order of their names, each name once, and the
// set of names.
func byName(tools []Tool) (sorted []*Tool, named map[string]bool) {
	named = make(map[string]bool, len(tools))
	for i := range tools {
		if t := &tools[i]; !named[t.Name] {
			named[t.Name] = true
			sorted = append(sorted, t)
		}
	}
	slices.SortFunc(sorted, func(a, b *Tool) int { return strings.Compare(a.Name, b.Name) })
	return sorted, named
}
