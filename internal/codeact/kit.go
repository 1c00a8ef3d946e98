package codeact

import (
	"context"
	"slices"
	"strings"
	"sync"
	"weak"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/catalog"
	"github.com/mcpd/mcpd/internal/codemode"
	"github.com/mcpd/mcpd/internal/hclfile"
	"github.com/mcpd/mcpd/scripting"
)

// kit is what all bodies of one block share.
type kit struct {
	block *hclfile.Codeact
	// compiling has a place for each program that is compiled at once.
	compiling chan struct{}

	mu sync.Mutex
	// index is that of the tools of one catalog: the one that was searched last.
	index *index
}

// maxCompiling is how many programs are compiled at once: each that is large is tried in a
// process first, which may take its time and memory to their bounds.
const maxCompiling = 4

// compile compiles a program, once there is a place for that. The error is that of ctx.
func (k *kit) compile(ctx context.Context, src scripting.Source) (*scripting.Program, diag.List, error) {
	select {
	case k.compiling <- struct{}{}:
		defer func() { <-k.compiling }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	program, problems := scripting.Compile(src)
	return program, problems, ctx.Err()
}

// index finds tools of a catalog.
type index struct {
	of    weak.Pointer[catalog.Catalog]
	found *codemode.Index
	// entries are those that it finds, in its order.
	entries []*catalog.Entry
}

// tools returns the tools that code may call for the caller, in the order of their names.
func (k *kit) tools(ctx context.Context, s catalog.Survey) []*catalog.Entry {
	return slices.DeleteFunc(s.Tools(ctx), func(e *catalog.Entry) bool { return !hclfile.Covers(k.block.Tools, e.Name) })
}

// indexOf returns the index of all tools of a catalog that code may call for anybody: who
// searches says which of them it sees.
func (k *kit) indexOf(c *catalog.Catalog) *index {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.index != nil && k.index.of.Value() == c {
		return k.index
	}
	made := &index{of: weak.Make(c)}
	var tools []codemode.Tool
	names := namesOf(c)
	for _, e := range c.Entries[catalog.Tools] {
		if !e.Surveys && !e.Alias && hclfile.Covers(k.block.Tools, e.Name) {
			made.entries, tools = append(made.entries, e), append(tools, names.tool(e))
		}
	}
	made.found = codemode.NewIndex(tools)
	k.index = made
	return made
}

// names are how code calls the tools of a catalog.
type names struct {
	// groups are those of upstreams, by their names, and prefixes what the names of their
	// tools begin with.
	groups, prefixes map[string]string
}

func namesOf(c *catalog.Catalog) names {
	n := names{groups: map[string]string{}, prefixes: map[string]string{}}
	for i := range c.Upstreams {
		u := &c.Upstreams[i]
		n.prefixes[u.Name] = u.Prefix
		if group := strings.TrimRight(u.Prefix, "_.-/"); codemode.Callable(group) {
			n.groups[u.Name] = group
		}
	}
	return n
}

// own returns what the server of a tool calls it, "" of one that has no prefix here.
func (n names) own(e *catalog.Entry) string {
	prefix := n.prefixes[e.Upstream]
	own, ok := strings.CutPrefix(e.Name, prefix)
	if e.Upstream == "" || prefix == "" || !ok {
		return ""
	}
	return own
}

// tool returns what is told of a tool.
func (n names) tool(e *catalog.Entry) codemode.Tool {
	t := codemode.Tool{Name: e.Name, Title: e.Title, Input: e.Input.Raw(), ReadOnly: e.ReadOnly, Destructive: e.Destructive}
	if e.Description != nil {
		t.Description = *e.Description
	}
	if e.Output != nil {
		t.Output = e.Output.Raw()
	}
	if t.Bare = n.own(e); t.Bare != "" && n.groups[e.Upstream] != "" {
		t.Group, t.Member = n.groups[e.Upstream], t.Bare
	}
	return t
}

// all returns what is told of some tools.
func (n names) all(entries []*catalog.Entry) []codemode.Tool {
	tools := make([]codemode.Tool, len(entries))
	for i, e := range entries {
		tools[i] = n.tool(e)
	}
	return tools
}

// grant returns what code may call, and by which further names: as members of groups, and
// by what their servers call them where no other tool is called so.
func (n names) grant(entries []*catalog.Entry) (objects []scripting.Object, members []scripting.Member) {
	taken := map[string]int{}
	for _, e := range entries {
		taken[e.Name]++
		if own := n.own(e); own != "" {
			taken[own]++
		}
	}
	for _, e := range entries {
		objects = append(objects, scripting.Object{Kind: "tools", Name: e.Name})
		own := n.own(e)
		if own == "" {
			continue
		}
		if group := n.groups[e.Upstream]; group != "" && taken[group] == 0 {
			members = append(members, scripting.Member{Group: group, Name: own, Tool: e.Name})
		}
		if taken[own] == 1 {
			members = append(members, scripting.Member{Name: own, Tool: e.Name})
		}
	}
	return objects, members
}
