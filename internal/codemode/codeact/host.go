package codeact

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/scripting"
)

// host is the host of a program. What asks it is a process that the program may have taken
// over: it does nothing but make the calls that the caller may make, and ask the client
// what the tools of these want to ask.
type host struct {
	// Fixed at creation.
	survey   catalog.ToolAccess
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
	planned map[int]catalog.CodeReply
	// arguments are those of planned.
	arguments map[int]json.RawMessage
	// cut are the calls that the end of the run has cut off, by their numbers.
	cut map[int]bool
}

type question struct {
	Key    string          `json:"key"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// Do makes a call, or asks the client. What the program prints is for its caller, whose
// journal has it, and not for the log.
func (h *host) Do(ctx context.Context, seq int, op string, text []byte) ([]byte, error) {
	switch op {
	case scripting.OpConsole:
		return nil, nil
	case scripting.OpAsk:
		return nil, h.ask(text)
	case scripting.OpCall, scripting.OpResume:
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
	if reply.Mode != "" && reply.Mode != "ran" {
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
