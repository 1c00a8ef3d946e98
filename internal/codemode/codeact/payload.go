package codeact

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/scripting"
)

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

// hash is that of all of it.
func (c *continuation) hash() [sha256.Size]byte {
	encoded, _ := json.Marshal(c) // what was decoded always encodes
	return sha256.Sum256(encoded)
}

// answered returns what calls may go on with, by its hash: what the client has answered to
// what they have asked.
func answered(j *scripting.Journal) map[[sha256.Size]byte]bool {
	may := map[[sha256.Size]byte]bool{}
	for _, a := range j.Answered() {
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
	if op == "resume" {
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
func (p *payload) request(rehearse bool) catalog.Request {
	r := catalog.Request{Name: p.Tool, Arguments: p.Arguments, Rehearse: rehearse}
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
