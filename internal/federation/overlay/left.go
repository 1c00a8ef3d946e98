package overlay

import (
	"encoding/json"
	"fmt"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/language/hclfile"
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
func included(u *hclfile.Upstream, list []json.RawMessage) (tools, more []json.RawMessage) {
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

// quarantine leaves out a tool that nobody has accepted as it is.
func (m *maker) quarantine(name, why string) {
	m.tell(catalog.Quarantined, fmt.Sprintf("the tool %.*q is left out: %s", maxShown, name, why))
	m.out(catalog.Tools, name, why).Quarantined = true
}

// out is leave without the warning. What it returns is good until the next one is left out.
func (m *maker) out(kind catalog.Kind, name, why string) *catalog.LeftOut {
	if kind == catalog.Tools || kind == catalog.Prompts {
		name = m.block.Renamed(name)
	}
	m.left = append(m.left, catalog.NewLeftOut(kind, name, m.block.Name, why))
	return &m.left[len(m.left)-1]
}

// tell warns of what cannot be offered.
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
