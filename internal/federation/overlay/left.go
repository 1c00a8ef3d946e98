package overlay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/jsontext"
	"github.com/mcpd/mcpd/internal/base/safetext"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// The bounds of what is offered of one server. Each template is tried for what is read, and
// for each tool and each prompt the policies that cover it are compiled, of which a catalog
// has a bounded number.
const (
	maxTemplates = 256
	maxTools     = 2000
	maxPrompts   = 2000
)

// maxTold bounds the warnings of one server.
const maxTold = 20

// included returns the tools of a list that a block includes, as many as are offered of one
// server, and those that are more. What is no object is among them, so that it is told of.
func included(u *definition.Upstream, list []json.RawMessage) (tools, more []json.RawMessage) {
	for _, entry := range list {
		var said members
		if json.Unmarshal(entry, &said) != nil || u.Includes(said.text("name")) {
			tools = append(tools, entry)
		}
	}
	most := min(len(tools), maxTools)
	return tools[:most:most], tools[most:]
}

// atMost returns the first entries of a list, and leaves out those that are more than most.
func (m *maker) atMost(kind catalog.Kind, list []json.RawMessage, most int) []json.RawMessage {
	kept := min(len(list), most)
	m.cut(kind, list[kept:], most)
	return list[:kept]
}

// cut leaves out entries that are more than most, of which one warning tells.
func (m *maker) cut(kind catalog.Kind, more []json.RawMessage, most int) {
	if len(more) == 0 {
		return
	}
	m.tell("left-out", fmt.Sprintf("%d %ss more than %d are left out", len(more), kind, most))
	why := fmt.Sprintf("no more than %d are offered of one upstream", most)
	for _, entry := range more {
		m.out(kind, decoded(m.veil.RedactJSON(entry)).called(kind), why)
	}
}

// leave leaves out an entry that its server calls name, and warns of it.
func (m *maker) leave(kind catalog.Kind, name, why string) {
	m.tell("left-out", fmt.Sprintf("the %s %.*q is left out: %s", kind, maxShown, name, why))
	m.out(kind, name, why)
}

// out is leave without the warning. What it returns is good until the next one is left out.
func (m *maker) out(kind catalog.Kind, name, why string) *catalog.LeftOut {
	if kind == catalog.Tools || kind == catalog.Prompts {
		name = m.block.LocalName(name)
	}
	m.left = append(m.left, catalog.NewLeftOut(kind, name, m.block.Name, why))
	return &m.left[len(m.left)-1]
}

func (m *maker) tell(code, what string) {
	if len(m.problems) == maxTold {
		m.untold++
		return
	}
	m.problems = append(m.problems, m.warning(code, what))
}

func (m *maker) warning(code, what string) diag.Diagnostic {
	return diag.Diagnostic{
		Severity: diag.Warning, Code: code, Range: m.block.NameRange, Summary: fmt.Sprintf("of the upstream %q: %s", m.block.Name, what),
	}
}

// maxShown bounds what is shown of a name in a warning, in bytes.
const maxShown = 128

// value decodes JSON of bounded depth, with numbers as they are written.
func value(raw json.RawMessage) (v any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	_ = d.Decode(&v) // what cannot be decoded is refused elsewhere
	return v
}

// hidesTool reports whether the entry of a tool holds invisible characters in what callers
// see of it. Of an entry that cannot be pinned that is anything.
func hidesTool(upstream string, entry json.RawMessage) bool {
	if t, err := lockfile.Of(upstream, entry); err == nil {
		return t.Hides()
	}
	return safetext.HidesIn(value(entry))
}

// apart returns the entries of tools that are served without a pin, and those that have to
// be accepted: entries with invisible characters, and whatever else has the name of one.
func (m *maker) apart(entries []json.RawMessage) (open, hiding []json.RawMessage) {
	names := map[string]bool{}
	for _, entry := range entries {
		if hidesTool(m.block.Name, m.veil.RedactJSON(entry)) {
			names[decoded(entry).text("name")] = true
		}
	}
	if len(names) == 0 {
		return entries, nil
	}
	for _, entry := range entries {
		if names[decoded(entry).text("name")] {
			hiding = append(hiding, entry)
		} else {
			open = append(open, entry)
		}
	}
	return open, hiding
}

// shownMembers are the members of entries of resources, templates and prompts that callers
// see beside their addresses.
var shownMembers = []string{"name", "title", "description", "mimeType", "annotations", "arguments"}

// The reasons for which something with invisible characters is left out.
var (
	errHidesAddress  = errors.New("its URI holds invisible characters")
	errHidesArgument = errors.New("the name of an argument of it holds invisible characters")
	errHides         = errors.New("it holds invisible characters; escape = [\"…\"] in the upstream block offers it with these as escapes")
)

// shown returns what callers see of an entry: invisible characters are escapes, unless the
// tool was accepted raw.
func (m *maker) shown(kind catalog.Kind, said members) (members, error) {
	if kind == catalog.Tools {
		if held, pinned := m.held[said.text("name")]; pinned && held.Hides() && !held.Raw() {
			return escaped(said, "name")
		}
		return said, nil
	}
	hides := false
	for _, name := range shownMembers {
		hides = hides || said[name] != nil && safetext.HidesIn(value(said[name]))
	}
	if !hides {
		return said, nil
	}
	if !m.block.Escapes(said.address(kind)) {
		return nil, errHides
	}
	if kind == catalog.Prompts {
		if hidesArgument(said) {
			return nil, errHidesArgument
		}
		return escaped(said, "name")
	}
	return escaped(said, "uri", "uriTemplate")
}

func hidesArgument(said members) bool {
	var arguments []members
	_ = json.Unmarshal(said["arguments"], &arguments)
	return slices.ContainsFunc(arguments, func(a members) bool { return safetext.Hides(a.text("name")) })
}

// escaped returns an entry with invisible characters as escapes, but for members that the
// server is called by.
func escaped(said members, but ...string) (members, error) {
	shown := make(members, len(said))
	for name, raw := range said {
		v, err := safetext.EscapeIn(value(raw))
		if err != nil {
			return nil, err
		}
		if shown[name], err = jsontext.Marshal(v); err != nil {
			return nil, fmt.Errorf("escape %s: %w", name, err)
		}
	}
	for _, name := range but {
		if raw, given := said[name]; given {
			shown[name] = raw
		}
	}
	return shown, nil
}

// instructions is how a pattern of escape calls the instructions of a server.
const instructions = "instructions"

// instruct returns the instructions of a server for models, behind its name, "" for none.
// Those with invisible characters are left out, unless the block has them escaped.
func (m *maker) instruct(text string) string {
	switch {
	case !m.block.Instructions || text == "":
		return ""
	case safetext.Hides(text) && !m.block.Escapes(instructions):
		m.tell("left-out", fmt.Sprintf("its instructions are left out: they hold invisible characters; escape = [%q] in the upstream block adds them with these as escapes", instructions))
		return ""
	}
	return safetext.Prompt("["+m.block.Name+"] ", text, maxMessage)
}
