package codeact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mcpd/mcpd/internal/catalog"
	"github.com/mcpd/mcpd/scripting"
)

// made is a call that a program has made.
type made struct {
	Tool string `json:"tool"`
	// Outcome is "ok", the code of an error, or in a rehearsal "dry_run" or "planned".
	Outcome string `json:"outcome"`
	// Arguments and Approval are those of a call that was not made.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Approval  bool            `json:"approval,omitempty"`

	seq int
}

// host is the host of a program: it counts the calls that the program makes.
type host struct {
	scripting.Host
	survey   catalog.Survey
	tools    []string // those that it may call
	planning bool
	most     int
	// running has a place for each call that runs at once.
	running chan struct{}

	mu    sync.Mutex
	left  int
	calls []made
}

// maxTold bounds the calls that are told of, and maxArguments what is told of the
// arguments of one, in bytes.
const (
	maxTold      = 256
	maxArguments = 16 << 10
)

// Do makes a call. What the program prints is for its caller, whose journal has it, and
// not for the log.
func (h *host) Do(ctx context.Context, seq int, op string, payload []byte) ([]byte, error) {
	switch op {
	case "console":
		return nil, nil
	case "call":
		return h.call(ctx, seq, payload)
	}
	return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "a program can do nothing but call tools"}
}

// call makes a call that the program may make.
func (h *host) call(ctx context.Context, seq int, payload []byte) ([]byte, error) {
	var asked struct {
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(payload, &asked); err != nil {
		return nil, &scripting.HostError{Code: scripting.Invalid, Message: "the call cannot be read"}
	}
	if !slices.Contains(h.tools, asked.Tool) {
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "this tool may not be called"}
	}
	if err := h.count(); err != nil {
		return nil, err
	}
	select {
	case h.running <- struct{}{}:
		defer func() { <-h.running }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	call := made{Tool: asked.Tool, Outcome: "ok", seq: seq}
	answer, err := h.make(ctx, seq, payload, asked.Arguments, &call)
	if refused, ok := errors.AsType[*scripting.HostError](err); ok {
		call.Outcome = refused.Code
	} else if err != nil {
		call.Outcome = scripting.Unavailable
	}
	h.mu.Lock()
	h.calls = append(h.calls, call)
	h.mu.Unlock()
	return answer, err
}

// count counts a call, and refuses what is more than the block lets a program make.
func (h *host) count() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left == 0 {
		return &scripting.HostError{Code: scripting.Denied, Message: fmt.Sprintf("the program has made %d calls, which is all that one may make", h.most)}
	}
	h.left--
	return nil
}

// make makes a call, or rehearses it.
func (h *host) make(ctx context.Context, seq int, payload []byte, arguments json.RawMessage, call *made) ([]byte, error) {
	if !h.planning {
		return h.Host.Do(ctx, seq, "call", payload)
	}
	planned, err := h.survey.Plan(ctx, call.Tool, arguments)
	if err != nil || planned.How == "ran" {
		return planned.Value, err
	}
	call.Outcome, call.Approval = planned.How, planned.Approval
	if len(arguments) <= maxArguments {
		call.Arguments = arguments
	}
	return planned.Value, nil
}

// made returns the calls in the order in which the program asked for them.
func (h *host) made() []made {
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.SortFunc(h.calls, func(a, b made) int { return a.seq - b.seq })
	return append([]made{}, h.calls[:min(len(h.calls), maxTold)]...)
}
