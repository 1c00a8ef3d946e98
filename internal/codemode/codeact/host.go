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

// host is the scripting host of a program. The process that calls it may be compromised by the
// program. It can only make calls that the caller may make, and send the input requests of the
// called tools.
type host struct {
	// Fixed at creation.
	survey   catalog.ToolAccess
	tools    []string // the tools that the program may call
	dryRun   bool
	maxCalls int // limit of calls
	deadline time.Time
	// slots has a slot for each concurrent call.
	slots chan struct{}

	mu sync.Mutex
	// remaining is the number of calls that the program may still start, in all executions of
	// the run.
	remaining int
	// approved counts the calls that the user has approved and that were not made yet.
	approved map[[16]byte]int
	// resumable are the calls with responses of their clients, by hash of the resume input. It
	// is fixed at creation.
	resumable map[[sha256.Size]byte]bool
	// inputRequests are the input requests of tools, by hash of the request to the client.
	inputRequests map[[sha256.Size]byte]bool
	// skipped are the calls of a dry run that were not made, by sequence number.
	skipped map[int]catalog.CodeReply
	// arguments are the arguments of the skipped calls.
	arguments map[int]json.RawMessage
	// interrupted are the calls that the end of the run has interrupted, by sequence number.
	interrupted map[int]bool
}

type inputRequest struct {
	Key    string          `json:"key"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// Do makes a call, or sends an input request. Printed text is not logged: the journal has it
// for the caller.
func (h *host) Do(ctx context.Context, seq int, op string, text []byte) ([]byte, error) {
	switch op {
	case scripting.OpConsole:
		return nil, nil
	case scripting.OpAsk:
		return nil, h.requestInput(text)
	case scripting.OpCall, scripting.OpResume:
		p, err := parsePayload(op, text)
		if err != nil {
			return nil, err
		}
		return h.call(ctx, seq, p)
	}
	return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "a program can only call tools"}
}

// requestInput only allows input requests of called tools.
func (h *host) requestInput(text []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.inputRequests[sha256.Sum256(compact(text))] {
		return &scripting.HostError{Code: scripting.NotGranted, Message: "a program cannot send input requests"}
	}
	return scripting.ErrSuspended
}

// compact returns JSON without white space, or nil if it is invalid.
func compact(text []byte) []byte {
	var value struct {
		Requests []inputRequest `json:"requests"`
	}
	if json.Unmarshal(text, &value) != nil {
		return nil
	}
	// Decoded JSON always encodes.
	encoded, _ := json.Marshal(value)
	return encoded
}

// call makes a call that the program may make, or resumes one.
func (h *host) call(ctx context.Context, seq int, p *payload) ([]byte, error) {
	if !slices.Contains(h.tools, p.Tool) {
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "this tool may not be called"}
	}
	if p.Resume != nil && !h.resumable[p.Resume.hash()] {
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "the client has not sent this response"}
	}
	if err := h.count(p.Resume != nil); err != nil {
		return nil, err
	}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return nil, h.interrupt(ctx, seq)
	}
	bounded, cancel := context.WithDeadline(ctx, h.deadline)
	defer cancel()
	request := p.codeCall(h.dryRun)
	request.Approved = h.isApproved(p)
	reply, err := h.survey.Call(bounded, request)
	switch {
	case err != nil && bounded.Err() != nil:
		<-ctx.Done() // the run has ended, so the error has no recipient
		return nil, h.interrupt(ctx, seq)
	case err != nil:
		return nil, err
	case reply.Ask != nil:
		return nil, h.suspend(seq, p.Tool, reply.Ask)
	}
	if reply.Mode != "" && reply.Mode != "ran" {
		h.recordSkipped(seq, reply, p.Arguments)
	}
	return reply.Value, nil
}

// interrupt records a call that the end of the run has interrupted, and returns its error.
func (h *host) interrupt(ctx context.Context, seq int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.interrupted == nil {
		h.interrupted = map[int]bool{}
	}
	h.interrupted[seq] = true
	return ctx.Err()
}

// isApproved reports whether the user has approved a call, as often as the plan contains it. A
// resumed call was approved when it started.
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

// count counts a call, up to the limit of the block. A resumed call was already counted.
func (h *host) count(resumed bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case resumed:
		return nil
	case h.remaining <= 0:
		return &scripting.HostError{Code: scripting.Denied, Message: fmt.Sprintf("the program has made %d calls, the maximum", h.maxCalls)}
	}
	h.remaining--
	return nil
}

// suspend returns the error for a call with input requests: the program is suspended, and
// resumes with the call. Keys are made unique, because several calls may request input at once.
func (h *host) suspend(seq int, tool string, ask *call.Ask) error {
	asks := struct {
		Requests []inputRequest `json:"requests"`
		State    resumeState    `json:"state"`
	}{State: resumeState{State: ask.State, Keys: map[string]string{}}}
	for _, r := range ask.Requests {
		key := tool + "_" + strconv.Itoa(seq) + "_" + r.Key
		asks.Requests = append(asks.Requests, inputRequest{key, r.Method, r.Params})
		asks.State.Keys[key] = r.Key
	}
	// Requests of a call always encode.
	details, _ := json.Marshal(asks)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.inputRequests == nil {
		h.inputRequests = map[[sha256.Size]byte]bool{}
	}
	h.inputRequests[sha256.Sum256(compact(details))] = true
	return &scripting.HostError{Code: scripting.Asks, Message: "the tool requests input from the client", Details: details}
}
