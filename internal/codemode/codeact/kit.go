package codeact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"weak"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/codemode/toolprompt"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/scripting"
)

// kit is what all bodies of one block share.
type kit struct {
	block *definition.Codeact
	// compiling has a place for each program that is compiled at once.
	compiling chan struct{}

	mu sync.Mutex
	// index is that of the tools of one catalog: the one that was searched last.
	index *index
	// meanings are those of the names of one catalog: the one that was asked for last.
	meanings *meanings
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
	found *toolprompt.Index
	// entries are those that it finds, in its order.
	entries []*catalog.Entry
}

// tools returns the tools that code may call for the caller, in the order of their names.
func (k *kit) tools(ctx context.Context, s catalog.Survey) []*catalog.Entry {
	return slices.DeleteFunc(s.Tools(ctx), func(e *catalog.Entry) bool { return !definition.MatchesAny(k.block.Tools, e.Name) })
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
	for _, e := range c.Entries[catalog.Tools] {
		if !e.Surveys && !e.Alias && definition.MatchesAny(k.block.Tools, e.Name) {
			made.entries = append(made.entries, e)
		}
	}
	made.found = toolprompt.NewIndex(names(nil).all(made.entries)) // by full names
	k.index = made
	return made
}

// meanings are what names could mean in a catalog, to whomever, also of servers that cannot
// be reached now: what a program calls by a name is never another tool than a while before.
type meanings struct {
	of weak.Pointer[catalog.Catalog]
	// tools are the full names of tools, and bare counts the tools of upstreams by what they
	// are called without the prefix.
	tools map[string]bool
	bare  map[string]int
}

func (k *kit) meaningsOf(c *catalog.Catalog) *meanings {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.meanings != nil && k.meanings.of.Value() == c {
		return k.meanings
	}
	all, prefixes := map[catalog.ToolName]bool{}, prefixesOf(c)
	for _, e := range c.Entries[catalog.Tools] {
		all[catalog.ToolName{Upstream: e.Upstream, Name: e.Name}] = true
	}
	for _, known := range c.Known {
		all[known] = true
	}
	m := &meanings{of: weak.Make(c), tools: map[string]bool{}, bare: map[string]int{}}
	for t := range all {
		m.tools[t.Name] = true
		if own := ownName(t, prefixes[t.Upstream]); own != "" {
			m.bare[own]++
		}
	}
	k.meanings = m
	return m
}

// names are how code calls tools of upstreams, beside by their full names, which all tools
// have. No two tools have one name.
type names map[*catalog.Entry]alias

// alias is how code calls a tool, GROUP.OWN and BARE; either may be missing.
type alias struct{ group, own, bare string }

// namesOf returns the names of tools of a catalog, which are in the order of their full
// names. Full names go before groups, and groups before what the tools in them are called.
// A bare name is that of one tool, whoever calls, and whether its server can be reached.
func (k *kit) namesOf(c *catalog.Catalog, tools []*catalog.Entry) names {
	n, prefixes, meanings := names{}, prefixesOf(c), k.meaningsOf(c)
	for _, e := range tools {
		if own := ownName(catalog.ToolName{Upstream: e.Upstream, Name: e.Name}, prefixes[e.Upstream]); own != "" {
			n[e] = alias{group: strings.TrimRight(prefixes[e.Upstream], "_.-/"), own: own}
		}
	}
	groups := n.grouped(tools, meanings.tools)
	for e, a := range n {
		if meanings.bare[a.own] == 1 && !meanings.tools[a.own] && !groups[a.own] && toolprompt.Callable(a.own) {
			a.bare = a.own
			n[e] = a
		}
	}
	return n
}

// grouped takes tools out of groups that cannot be, or that have such a member, and returns
// those that are left. Taken are the names that no group can have.
func (n names) grouped(tools []*catalog.Entry, taken map[string]bool) (groups map[string]bool) {
	groups = map[string]bool{}
	members := map[alias]bool{}
	for _, e := range tools {
		a, named := n[e]
		if !named {
			continue
		}
		if toolprompt.Callable(a.group) && !taken[a.group] && !members[a] {
			groups[a.group], members[a] = true, true
			continue
		}
		a.group = ""
		n[e] = a
	}
	return groups
}

// prefixesOf returns what the names of tools begin with, by their upstreams.
func prefixesOf(c *catalog.Catalog) map[string]string {
	prefixes := make(map[string]string, len(c.Upstreams))
	for i := range c.Upstreams {
		prefixes[c.Upstreams[i].Name] = c.Upstreams[i].Prefix
	}
	return prefixes
}

// ownName returns the name of a tool without the prefix of its upstream; "" where it has none:
// of a tool of ours, of an upstream without a prefix, or of one that was renamed.
func ownName(t catalog.ToolName, prefix string) string {
	own, ok := strings.CutPrefix(t.Name, prefix)
	if t.Upstream == "" || prefix == "" || !ok {
		return ""
	}
	return own
}

func (n names) tool(e *catalog.Entry) toolprompt.Tool {
	t := toolprompt.Tool{Name: e.Name, Title: e.Title, Input: e.Input.Raw(), ReadOnly: e.ReadOnly, Destructive: e.Destructive}
	if e.Declared != nil {
		t.Input = e.Declared
	}
	t.Fits = func(arguments json.RawMessage) bool { return len(e.Input.Validate(arguments)) == 0 }
	if e.Description != nil {
		t.Description = *e.Description
	}
	if e.Output != nil {
		t.Output = e.Output.Raw()
	}
	a := n[e]
	if t.Bare = a.bare; a.group != "" {
		t.Group, t.Member = a.group, a.own
	}
	return t
}

func (n names) all(entries []*catalog.Entry) []toolprompt.Tool {
	tools := make([]toolprompt.Tool, len(entries))
	for i, e := range entries {
		tools[i] = n.tool(e)
	}
	return tools
}

// grant returns what code may call, and by which further names.
func (n names) grant(entries []*catalog.Entry) (objects []scripting.Object, members []scripting.Member) {
	for _, e := range entries {
		objects = append(objects, scripting.Object{Kind: "tools", Name: e.Name})
		a := n[e]
		if a.group != "" {
			members = append(members, scripting.Member{Group: a.group, Name: a.own, Tool: e.Name})
		}
		if a.bare != "" {
			members = append(members, scripting.Member{Name: a.bare, Tool: e.Name})
		}
	}
	return objects, members
}

// payload is that of the operations call and resume.
type payload struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Resume is nil of a call that begins.
	Resume *continuation `json:"resume,omitempty"`
}

// continuation is what a call goes on with.
type continuation struct {
	State     resumption                 `json:"state"`
	Responses map[string]json.RawMessage `json:"responses"`
}

func (c *continuation) hash() [sha256.Size]byte {
	encoded, _ := json.Marshal(c) // what was decoded always encodes
	return sha256.Sum256(encoded)
}

// answered returns what calls may go on with, by its hash: what the client has answered to
// what they have asked.
func answered(j *scripting.Journal) map[[sha256.Size]byte]bool {
	may := map[[sha256.Size]byte]bool{}
	for _, a := range j.AnsweredInputs() {
		var c continuation
		if json.Unmarshal(a.Details, &c) == nil && json.Unmarshal(a.Responses, &c.Responses) == nil {
			may[c.hash()] = true
		}
	}
	return may
}

// resumption is what a call that has asked goes on from: its own state, and the keys of
// its tool by those that the client saw.
type resumption struct {
	State string            `json:"state"`
	Keys  map[string]string `json:"keys"`
}

// read reads a payload. What goes on has a state, so that it cannot be a call which begins
// and that nobody counts; and what begins is written in one way, as the journal knows it by
// its text, and with it how often the call was made that the user has approved.
func read(op string, text []byte) (*payload, error) {
	var p payload
	sound := json.Unmarshal(text, &p) == nil
	if op == scripting.OpResume {
		sound = sound && p.Resume != nil && p.Resume.State.State != ""
	} else {
		written, _ := json.Marshal(p) // what was decoded always encodes
		sound = sound && p.Resume == nil && bytes.Equal(written, text)
	}
	if !sound {
		return nil, &scripting.HostError{Code: scripting.Invalid, Message: "the call cannot be read"}
	}
	return &p, nil
}

// request is the call that a payload stands for.
func (p *payload) request(rehearse bool) catalog.CodeCall {
	r := catalog.CodeCall{Name: p.Tool, Arguments: p.Arguments, Rehearse: rehearse}
	if p.Resume == nil {
		return r
	}
	r.Resume = &call.Resume{State: p.Resume.State.State, Responses: map[string]json.RawMessage{}}
	for ours, theirs := range p.Resume.State.Keys {
		if response, given := p.Resume.Responses[ours]; given {
			r.Resume.Responses[theirs] = response
		}
	}
	return r
}
