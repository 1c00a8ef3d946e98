package codeact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/catalog"
	"github.com/mcpd/mcpd/scripting"
)

// host is the host of a program. What asks it is a process that the program may have taken
// over: it does nothing but make the calls that the caller may make, and ask the client
// what the tools of these want to ask.
type host struct {
	// Fixed at creation.
	survey   catalog.Survey
	tools    []string // those that the program may call
	planning bool
	most     int // calls
	ends     time.Time
	// running has a place for each call that runs at once.
	running chan struct{}

	mu sync.Mutex
	// left are the calls that the program may still begin, in all legs of its run.
	left int
	// approved counts the calls that the user has approved, and were not made yet.
	approved map[[16]byte]int
	// answered are the calls that go on with what their client has answered, by the hashes
	// of what they go on from. It is fixed at creation.
	answered map[[sha256.Size]byte]bool
	// asks are what tools want to ask, by the hashes of what the client is asked.
	asks map[[sha256.Size]byte]bool
	// planned are the calls of a rehearsal that were not made, by their numbers.
	planned map[int]catalog.Reply
	// arguments are those of planned.
	arguments map[int]json.RawMessage
	// cut are the calls that the end of the run has cut off, by their numbers.
	cut map[int]bool
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

// question is what a client is asked.
type question struct {
	Key    string          `json:"key"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// Do makes a call, or asks the client. What the program prints is for its caller, whose
// journal has it, and not for the log.
func (h *host) Do(ctx context.Context, seq int, op string, text []byte) ([]byte, error) {
	switch op {
	case "console":
		return nil, nil
	case "ask":
		return nil, h.ask(text)
	case "call", "resume":
		p, err := read(op, text)
		if err != nil {
			return nil, err
		}
		return h.call(ctx, seq, p)
	}
	return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "a program can do nothing but call tools"}
}

// ask lets the client be asked what a tool wants to ask, and nothing else.
func (h *host) ask(text []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.asks[sha256.Sum256(compact(text))] {
		return &scripting.HostError{Code: scripting.NotGranted, Message: "a program asks nobody"}
	}
	return scripting.ErrSuspended
}

// compact returns JSON without white space between its parts; nil of what is none.
func compact(text []byte) []byte {
	var value struct {
		Requests []question `json:"requests"`
	}
	if json.Unmarshal(text, &value) != nil {
		return nil
	}
	// What was decoded always encodes.
	encoded, _ := json.Marshal(value)
	return encoded
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

// call makes a call that the program may make, or goes on with one.
func (h *host) call(ctx context.Context, seq int, p *payload) ([]byte, error) {
	if !slices.Contains(h.tools, p.Tool) {
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "this tool may not be called"}
	}
	if p.Resume != nil && !h.answered[p.Resume.hash()] {
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "the client has not answered so"}
	}
	if err := h.count(p.Resume != nil); err != nil {
		return nil, err
	}
	select {
	case h.running <- struct{}{}:
		defer func() { <-h.running }()
	case <-ctx.Done():
		return nil, h.cutOff(ctx, seq)
	}
	bounded, cancel := context.WithDeadline(ctx, h.ends)
	defer cancel()
	request := p.request(h.planning)
	request.Approved = h.isApproved(p)
	reply, err := h.survey.Call(bounded, request)
	switch {
	case err != nil && bounded.Err() != nil:
		<-ctx.Done() // what fails since the run is over is an answer to nobody
		return nil, h.cutOff(ctx, seq)
	case err != nil:
		return nil, err
	case reply.Ask != nil:
		return nil, h.asking(seq, p.Tool, reply.Ask)
	}
	if reply.How != "" && reply.How != "ran" {
		h.plan(seq, reply, p.Arguments)
	}
	return reply.Value, nil
}

// cutOff notes a call that the end of the run has cut off, and returns what it fails with.
func (h *host) cutOff(ctx context.Context, seq int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cut == nil {
		h.cut = map[int]bool{}
	}
	h.cut[seq] = true
	return ctx.Err()
}

// isApproved reports whether the user has approved a call, each as often as it stands in
// the plan. One that goes on was approved when it began.
func (h *host) isApproved(p *payload) bool {
	digest := scripting.CallDigest(p.Tool, p.Arguments)
	h.mu.Lock()
	defer h.mu.Unlock()
	left, planned := h.approved[digest]
	if planned && p.Resume == nil {
		h.approved[digest]--
	}
	return planned && (left > 0 || p.Resume != nil)
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

// count counts a call, and refuses what is more than the block lets a program make. One
// that goes on has been counted.
func (h *host) count(resumed bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case resumed:
		return nil
	case h.left <= 0:
		return &scripting.HostError{Code: scripting.Denied, Message: fmt.Sprintf("the program has made %d calls, which is all that one may make", h.most)}
	}
	h.left--
	return nil
}

// asking is the answer to a call whose tool asks the client: the program is suspended, and
// goes on with the call. Keys are made unique, as several calls may ask at once.
func (h *host) asking(seq int, tool string, ask *call.Ask) error {
	asks := struct {
		Requests []question `json:"requests"`
		State    resumption `json:"state"`
	}{State: resumption{State: ask.State, Keys: map[string]string{}}}
	for _, r := range ask.Requests {
		key := tool + "_" + strconv.Itoa(seq) + "_" + r.Key
		asks.Requests = append(asks.Requests, question{key, r.Method, r.Params})
		asks.State.Keys[key] = r.Key
	}
	// What a call asks always encodes.
	details, _ := json.Marshal(asks)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asks == nil {
		h.asks = map[[sha256.Size]byte]bool{}
	}
	h.asks[sha256.Sum256(compact(details))] = true
	return &scripting.HostError{Code: scripting.Asks, Message: "the tool asks the client", Details: details}
}

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
