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

// kit is shared by all handlers of one block.
type kit struct {
	block *definition.Codeact
	// compileSlots has a slot for each concurrent compilation.
	compileSlots chan struct{}

	mu sync.Mutex
	// index is the index of the catalog that was searched last.
	index *index
	// nameTable is the name table of the catalog that was used last.
	nameTable *nameTable
}

// maxCompiles bounds concurrent compilations: a large program is tried in a process first,
// which may use all of its time and memory.
const maxCompiles = 4

// compile compiles a program, once there is a slot. The error is the error of ctx.
func (k *kit) compile(ctx context.Context, src scripting.Source) (*scripting.Program, diag.List, error) {
	select {
	case k.compileSlots <- struct{}{}:
		defer func() { <-k.compileSlots }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	program, problems := scripting.Compile(src)
	return program, problems, ctx.Err()
}

// index finds tools of a catalog.
type index struct {
	catalog weak.Pointer[catalog.Catalog]
	search  *toolprompt.Index
	// entries are the indexed tools, in the order of the index.
	entries []*catalog.Entry
}

// tools returns the tools that code may call for the caller, sorted by name.
func (k *kit) tools(ctx context.Context, s catalog.ToolAccess) []*catalog.Entry {
	return slices.DeleteFunc(s.Tools(ctx), func(e *catalog.Entry) bool { return !definition.MatchesAny(k.block.Tools, e.Name) })
}

// indexOf returns the index of all tools of a catalog that code may call. The searcher decides
// which of them are visible.
func (k *kit) indexOf(c *catalog.Catalog) *index {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.index != nil && k.index.catalog.Value() == c {
		return k.index
	}
	made := &index{catalog: weak.Make(c)}
	for _, e := range c.Entries[catalog.Tools] {
		if !e.CallsAllTools && !e.Alias && definition.MatchesAny(k.block.Tools, e.Name) {
			made.entries = append(made.entries, e)
		}
	}
	made.search = toolprompt.NewIndex(aliases(nil).promptTools(made.entries)) // by full name
	k.index = made
	return made
}

// nameTable has the names of all tools of a catalog, regardless of the caller, including tools
// of unreachable servers: a name in a program never changes its tool.
type nameTable struct {
	catalog weak.Pointer[catalog.Catalog]
	// tools are the full names, and bare counts the upstream tools by their name without
	// prefix.
	tools map[string]bool
	bare  map[string]int
}

func (k *kit) nameTableOf(c *catalog.Catalog) *nameTable {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.nameTable != nil && k.nameTable.catalog.Value() == c {
		return k.nameTable
	}
	all, prefixes := map[catalog.ToolName]bool{}, prefixesOf(c)
	for _, e := range c.Entries[catalog.Tools] {
		all[catalog.ToolName{Upstream: e.Upstream, Name: e.Name}] = true
	}
	for _, known := range c.Known {
		all[known] = true
	}
	m := &nameTable{catalog: weak.Make(c), tools: map[string]bool{}, bare: map[string]int{}}
	for t := range all {
		m.tools[t.Name] = true
		if own := nameWithoutPrefix(t, prefixes[t.Upstream]); own != "" {
			m.bare[own]++
		}
	}
	k.nameTable = m
	return m
}

// aliases are additional names for upstream tools in code; every tool also has its full name.
// No two tools share a name.
type aliases map[*catalog.Entry]alias

// alias is the alias of a tool, GROUP.MEMBER and BARE; either may be missing.
type alias struct{ group, member, bare string }

// namesOf returns the aliases of tools, which are sorted by full name. Full names take
// precedence over groups, and groups over bare names. A bare name belongs to one tool,
// regardless of the caller and of reachable servers.
func (k *kit) namesOf(c *catalog.Catalog, tools []*catalog.Entry) aliases {
	n, prefixes, meanings := aliases{}, prefixesOf(c), k.nameTableOf(c)
	for _, e := range tools {
		if own := nameWithoutPrefix(catalog.ToolName{Upstream: e.Upstream, Name: e.Name}, prefixes[e.Upstream]); own != "" {
			n[e] = alias{group: strings.TrimRight(prefixes[e.Upstream], "_.-/"), member: own}
		}
	}
	groups := n.checkGroups(tools, meanings.tools)
	for e, a := range n {
		if meanings.bare[a.member] == 1 && !meanings.tools[a.member] && !groups[a.member] && toolprompt.Callable(a.member) {
			a.bare = a.member
			n[e] = a
		}
	}
	return n
}

// checkGroups removes tools from invalid groups and from groups with a duplicate member, and
// returns the valid groups. taken are names that no group can have.
func (as aliases) checkGroups(tools []*catalog.Entry, taken map[string]bool) (groups map[string]bool) {
	groups = map[string]bool{}
	members := map[alias]bool{}
	for _, e := range tools {
		a, named := as[e]
		if !named {
			continue
		}
		if toolprompt.Callable(a.group) && !taken[a.group] && !members[a] {
			groups[a.group], members[a] = true, true
			continue
		}
		a.group = ""
		as[e] = a
	}
	return groups
}

// prefixesOf returns the name prefixes, by upstream.
func prefixesOf(c *catalog.Catalog) map[string]string {
	prefixes := make(map[string]string, len(c.Upstreams))
	for i := range c.Upstreams {
		prefixes[c.Upstreams[i].Name] = c.Upstreams[i].Prefix
	}
	return prefixes
}

// nameWithoutPrefix returns the name of a tool without the prefix of its upstream, or "" for a
// local tool, an upstream without a prefix, or a renamed tool.
func nameWithoutPrefix(t catalog.ToolName, prefix string) string {
	own, ok := strings.CutPrefix(t.Name, prefix)
	if t.Upstream == "" || prefix == "" || !ok {
		return ""
	}
	return own
}

func (as aliases) promptTool(e *catalog.Entry) toolprompt.Tool {
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
	a := as[e]
	if t.Bare = a.bare; a.group != "" {
		t.Group, t.Member = a.group, a.member
	}
	return t
}

func (as aliases) promptTools(entries []*catalog.Entry) []toolprompt.Tool {
	tools := make([]toolprompt.Tool, len(entries))
	for i, e := range entries {
		tools[i] = as.promptTool(e)
	}
	return tools
}

// grant returns the objects that code may call, and their aliases.
func (as aliases) grant(entries []*catalog.Entry) (objects []scripting.Object, members []scripting.Member) {
	for _, e := range entries {
		objects = append(objects, scripting.Object{Kind: "tools", Name: e.Name})
		a := as[e]
		if a.group != "" {
			members = append(members, scripting.Member{Group: a.group, Name: a.member, Tool: e.Name})
		}
		if a.bare != "" {
			members = append(members, scripting.Member{Name: a.bare, Tool: e.Name})
		}
	}
	return objects, members
}

// payload is the payload of the operations call and resume.
type payload struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Resume is nil for a new call.
	Resume *resumeInput `json:"resume,omitempty"`
}

// resumeInput is the input of a resumed call.
type resumeInput struct {
	State     resumeState                `json:"state"`
	Responses map[string]json.RawMessage `json:"responses"`
}

func (r *resumeInput) hash() [sha256.Size]byte {
	encoded, _ := json.Marshal(r) // decoded JSON always encodes
	return sha256.Sum256(encoded)
}

// resumableCalls returns the hashes of valid resume inputs: the responses of the client to the
// requests of calls.
func resumableCalls(j *scripting.Journal) map[[sha256.Size]byte]bool {
	may := map[[sha256.Size]byte]bool{}
	for _, a := range j.AnsweredInputs() {
		var c resumeInput
		if json.Unmarshal(a.Details, &c) == nil && json.Unmarshal(a.Responses, &c.Responses) == nil {
			may[c.hash()] = true
		}
	}
	return may
}

// resumeState is the state of a suspended call: its own state, and the request keys of its tool
// by the keys that the client saw.
type resumeState struct {
	State string            `json:"state"`
	Keys  map[string]string `json:"keys"`
}

// parsePayload parses a payload. A resumed call must have a state, so that it cannot be a new
// call that is not counted. A new call must be in canonical form, because the journal
// identifies it by its text, and counts approvals by it.
func parsePayload(op string, text []byte) (*payload, error) {
	var p payload
	valid := json.Unmarshal(text, &p) == nil
	if op == scripting.OpResume {
		valid = valid && p.Resume != nil && p.Resume.State.State != ""
	} else {
		written, _ := json.Marshal(p) // decoded JSON always encodes
		valid = valid && p.Resume == nil && bytes.Equal(written, text)
	}
	if !valid {
		return nil, &scripting.HostError{Code: scripting.Invalid, Message: "the call cannot be read"}
	}
	return &p, nil
}

// codeCall converts a payload to a call.
func (p *payload) codeCall(rehearse bool) catalog.CodeCall {
	r := catalog.CodeCall{Name: p.Tool, Arguments: p.Arguments, DryRun: rehearse}
	if p.Resume == nil {
		return r
	}
	r.Resume = &call.Resume{State: p.Resume.State.State, Responses: map[string]json.RawMessage{}}
	for key, innerKey := range p.Resume.State.Keys {
		if response, given := p.Resume.Responses[key]; given {
			r.Resume.Responses[innerKey] = response
		}
	}
	return r
}
