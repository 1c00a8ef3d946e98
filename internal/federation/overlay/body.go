package overlay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/truncate"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/federation/upstream"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// body is the body of what a server offers: it passes the call on.
type body struct {
	fleet *upstream.Fleet
	// server is the name of the upstream; method and name are what is called there, the
	// name "" where the caller names what is read.
	server, method, name string
	ask                  grant.Ask
	// output bounds the result, in bytes.
	output int
	// accepts reports whether the server offers what was accepted of it. Nil asks for nothing.
	accepts func(*upstream.Listing) bool
}

// Run makes the call, or goes on with one whose client has answered.
func (b *body) Run(ctx context.Context, i catalog.Invocation) (scripting.Outcome, error) {
	if len(b.ask.Names()) > 0 {
		i.Host.Asking.Grant = &b.ask
	}
	l := &leg{body: b, invocation: &i, listener: &listener{ctx: ctx, host: &i.Host}}
	defer l.listener.end()
	c, failure, err := l.begin(ctx)
	if failure != nil || err != nil {
		return scripting.Outcome{Failure: failure}, err
	}
	return l.follow(ctx, c)
}

type leg struct {
	*body
	invocation *catalog.Invocation
	listener   *listener
}

// begin makes the call, or finds the one that waits for the answers of its client.
func (l *leg) begin(ctx context.Context) (*upstream.Call, *scripting.Failure, error) {
	kept, answers, paused := l.invocation.Journal.SavedState()
	if !paused {
		return l.send(ctx, l.request(nil, ""))
	}
	return l.resume(ctx, kept, answers)
}

func (l *leg) request(responses map[string]json.RawMessage, state string) upstream.Request {
	r := upstream.Request{Method: l.method, Name: l.name, Can: l.can(), Debug: l.invocation.Host.Debug, Responses: responses, State: state, Accepts: l.accepts}
	switch l.method {
	case upstream.MethodRead:
		r.Name = l.invocation.Address
	default:
		r.Arguments = l.invocation.Input
	}
	return r
}

func (l *leg) send(ctx context.Context, r upstream.Request) (*upstream.Call, *scripting.Failure, error) {
	c, err := l.fleet.Begin(ctx, l.server, r, l.listener)
	if err != nil {
		return nil, nil, unavailable(err)
	}
	return c, nil, nil
}

func unavailable(err error) error {
	lost := &catalog.UnavailableError{Message: "the server behind this cannot be reached now", Err: err}
	if errors.Is(err, upstream.ErrChanged) {
		lost.Message = "this has changed at the server behind it: list the tools again"
	}
	if gone, ok := errors.AsType[*upstream.UnreachableError](err); ok {
		lost.RetryAfter = gone.Wait
	}
	return lost
}

func (l *leg) follow(ctx context.Context, c *upstream.Call) (scripting.Outcome, error) {
	for {
		reply, err := c.Next(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			c.Cancel(context.Cause(ctx))
			return scripting.Outcome{}, ctx.Err()
		case err != nil:
			return scripting.Outcome{}, &catalog.UnavailableError{Message: "the server behind this has not answered", Err: err}
		case reply.Fault != nil:
			return scripting.Outcome{Failure: l.fault(reply.Fault)}, nil
		case reply.Result != nil:
			return l.result(reply.Result), nil
		case l.method == upstream.MethodComplete:
			c.Cancel(context.Canceled)
			return failed("the server behind this asks in the midst of a completion"), nil
		}
		outcome, goesOn := l.asked(ctx, c, reply)
		if !goesOn {
			return outcome, nil
		}
	}
}

// maxMessage bounds what is passed on of the words of a server, in bytes.
const maxMessage = 16 << 10

// fault is the failure of a call that the server answers with an error of the protocol.
// Of a tool it is an error that a model may learn from; elsewhere its code says what is
// wrong, such as that there is no such resource.
func (l *leg) fault(f *call.RPCError) *scripting.Failure {
	message := clipped(l.invocation.Host.Secrets.Redact(f.Message))
	const missingCapability = -32021
	switch {
	case f.Code == missingCapability && isObject(f.Data):
		return &scripting.Failure{Kind: scripting.CapabilityError, Message: message, Details: f.Data}
	case l.method == upstream.MethodTool:
		return &scripting.Failure{Kind: scripting.Thrown, Message: message}
	}
	return &scripting.Failure{Kind: scripting.RPCError, RPCCode: f.Code, Message: message}
}

func clipped(text string) string { return clippedTo(text, maxMessage) }

// clippedTo bounds a text in bytes, and leaves no half of a character.
func clippedTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return truncate.Start(text, most) + "…"
}

func failed(format string, args ...any) scripting.Outcome {
	return scripting.Outcome{Failure: &scripting.Failure{Kind: scripting.Thrown, Message: fmt.Sprintf(format, args...)}}
}

// The bounds of what a server tells of one call before it ends or asks: how many things, and
// the bytes of their texts. Of what is more one warning tells.
const (
	maxEvents = 10_000
	maxWords  = 1 << 20
)

// listener passes on what a server tells of a call while that runs. What it says is
// hidden, bounded and logged as what bodies say.
type listener struct {
	ctx  context.Context // of the leg: what is told belongs to its span
	host *host.Call

	mu    sync.Mutex
	ended bool
	told  int
	words int  // of what was told, in bytes
	cut   bool // something was not told
}

func (l *listener) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}

func (l *listener) tell(op string, payload any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.told++; l.told > maxEvents {
		l.leave()
		return
	}
	l.pass(op, payload)
}

// pass passes one thing on while the call runs. Its caller holds mu.
func (l *listener) pass(op string, payload any) {
	encoded, err := json.Marshal(payload)
	if l.ended || err != nil {
		return // a number that is none, or fields that are no JSON
	}
	_, _ = l.host.Do(l.ctx, 0, op, encoded) // nobody is told of a message that is none
}

// leave notes that something is not told. Its caller holds mu.
func (l *listener) leave() {
	if !l.cut {
		l.cut = true
		l.pass("log", map[string]any{"level": "warn", "message": "the server behind this tells more of the call than is passed on: some of it is left out"})
	}
}

// fits counts bytes that are to be told, and reports whether they may be.
func (l *listener) fits(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.words+n > maxWords {
		l.leave()
		return false
	}
	l.words += n
	return true
}

// Progress passes on how far the call is, without its words where these are too many.
func (l *listener) Progress(done float64, total *float64, message string) {
	if message = clipped(l.host.Secrets.Redact(message)); !l.fits(len(message)) {
		message = ""
	}
	l.tell("progress", map[string]any{"done": done, "total": total, "message": message})
}

// levels are the levels of MCP (2026-07-28 server/utilities/logging).
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Log passes on a record. One session with a server has one level for the calls of all, so
// that this call may not have asked for it.
func (l *listener) Log(level, message string, fields json.RawMessage) {
	if !slices.Contains(levels, level) || level == "debug" && !l.host.Debug {
		return
	}
	message = clipped(l.host.Secrets.Redact(message))
	if !l.fits(len(message) + len(fields)) {
		return
	}
	record := map[string]any{"level": level, "message": message}
	if isObject(fields) {
		record["fields"] = fields
	} else if fields != nil {
		record["fields"] = map[string]any{"data": fields}
	}
	l.tell("log", record)
}
