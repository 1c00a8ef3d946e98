package codeact

import (
	"encoding/json"
	"slices"

	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/scripting"
)

// plan notes a call that was not made.
func (h *host) plan(seq int, reply catalog.Reply, arguments json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.planned == nil {
		h.planned, h.arguments = map[int]catalog.Reply{}, map[int]json.RawMessage{}
	}
	h.planned[seq], h.arguments[seq] = reply, arguments
}

// writes are the calls that a rehearsal has not made, in the order of asking.
func (h *host) writes(j *scripting.Journal) (all []catalog.Write) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range j.Calls() {
		if planned, is := h.planned[c.Seq]; is {
			all = append(all, catalog.Write{Tool: c.Tool, Arguments: h.arguments[c.Seq], Shown: planned.Shown, Approval: planned.Approval})
		}
	}
	return all
}

// maxArguments bounds what is told of the arguments of one call, in bytes.
const maxArguments = 16 << 10

// made is a call of a program, as its caller is told.
type made struct {
	Tool string `json:"tool"`
	// Outcome is "ok", the code of an error, "unknown" where the run ended first, or in a
	// rehearsal "dry_run" or "planned".
	Outcome string `json:"outcome"`
	// Arguments, without those that are sensitive, and Approval are those of a call that was
	// not made.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Approval  bool            `json:"approval,omitempty"`
}

// made returns the calls that a journal holds.
func (h *host) made(j *scripting.Journal) []made {
	h.mu.Lock()
	defer h.mu.Unlock()
	calls := []made{}
	for _, c := range j.Calls() {
		m := made{Tool: c.Tool, Outcome: c.Code}
		planned, is := h.planned[c.Seq]
		switch {
		case !c.Ended || h.cut[c.Seq]:
			m.Outcome = "unknown"
		case is:
			if m.Outcome, m.Approval = planned.How, planned.Approval; len(planned.Shown) <= maxArguments {
				m.Arguments = planned.Shown
			}
		case c.Code == "":
			m.Outcome = "ok"
		}
		calls = append(calls, m)
	}
	return calls
}

// unmade returns the tools of calls that a rehearsal has not made, and whose results are null
// therefore, each once and in the order of asking.
func (h *host) unmade(j *scripting.Journal) (tools []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range j.Calls() {
		if h.planned[c.Seq].How == "planned" && c.Ended && !slices.Contains(tools, c.Tool) {
			tools = append(tools, c.Tool)
		}
	}
	return tools
}
