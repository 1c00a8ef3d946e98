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

// handler forwards the calls of an item to its server.
type handler struct {
	pool *upstream.Pool
	// server is the name of the upstream. method and name are the call there; name is "" if the
	// caller names the resource to read.
	server, method, name string
	ask                  grant.Ask
	// output limits the result, in bytes.
	output int
	// accepts reports whether the server still offers the accepted definition. Nil skips the
	// check.
	accepts func(*upstream.Listing) bool
}

// Run makes the call, or resumes a call after the client has responded.
func (h *handler) Run(ctx context.Context, i catalog.Invocation) (scripting.Outcome, error) {
	if len(h.ask.Names()) > 0 {
		i.Host.InputPolicy.Grant = &h.ask
	}
	rc := &remoteCall{handler: h, invocation: &i, relay: &notificationRelay{ctx: ctx, host: &i.Host}}
	defer rc.relay.stop()
	c, failure, err := rc.start(ctx)
	if failure != nil || err != nil {
		return scripting.Outcome{Failure: failure}, err
	}
	return rc.await(ctx, c)
}

type remoteCall struct {
	*handler
	invocation *catalog.Invocation
	relay      *notificationRelay
}

// start makes the call, or finds the suspended call that waits for responses.
func (rc *remoteCall) start(ctx context.Context) (*upstream.Call, *scripting.Failure, error) {
	state, answers, suspended := rc.invocation.Journal.SavedState()
	if !suspended {
		return rc.send(ctx, rc.request(nil, ""))
	}
	return rc.resume(ctx, state, answers)
}

func (rc *remoteCall) request(responses map[string]json.RawMessage, state string) upstream.Request {
	r := upstream.Request{Method: rc.method, Name: rc.name, ClientCapabilities: rc.clientCapabilities(), DebugLogs: rc.invocation.Host.Debug, Responses: responses, State: state, AcceptsListing: rc.accepts}
	switch rc.method {
	case upstream.MethodRead:
		r.Name = rc.invocation.Address
	default:
		r.Arguments = rc.invocation.Input
	}
	return r
}

func (rc *remoteCall) send(ctx context.Context, r upstream.Request) (*upstream.Call, *scripting.Failure, error) {
	c, err := rc.pool.Start(ctx, rc.server, r, rc.relay)
	if err != nil {
		return nil, nil, unavailableError(err)
	}
	return c, nil, nil
}

func unavailableError(err error) error {
	lost := &catalog.UnavailableError{Message: "the upstream server cannot be reached now", Err: err}
	if errors.Is(err, upstream.ErrListingChanged) {
		lost.Message = "this tool has changed on the upstream server: list the tools again"
	}
	if unreachable, ok := errors.AsType[*upstream.UnreachableError](err); ok {
		lost.RetryAfter = unreachable.RetryAfter
	}
	return lost
}

func (rc *remoteCall) await(ctx context.Context, c *upstream.Call) (scripting.Outcome, error) {
	for {
		reply, err := c.Next(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			c.Cancel(context.Cause(ctx))
			return scripting.Outcome{}, ctx.Err()
		case err != nil:
			return scripting.Outcome{}, &catalog.UnavailableError{Message: "the upstream server has not responded", Err: err}
		case reply.Error != nil:
			return scripting.Outcome{Failure: rc.rpcFailure(reply.Error)}, nil
		case reply.Result != nil:
			return rc.outcome(reply.Result), nil
		case rc.method == upstream.MethodComplete:
			c.Cancel(context.Canceled)
			return failed("the upstream server requests input during a completion"), nil
		}
		outcome, continues := rc.relayInputRequests(ctx, c, reply)
		if !continues {
			return outcome, nil
		}
	}
}

// maxMessage bounds forwarded text of a server, in bytes.
const maxMessage = 16 << 10

// rpcFailure converts a protocol error of the server. For a tool it is an error that a model
// may learn from. For other methods the error code carries the meaning, such as a missing
// resource.
func (rc *remoteCall) rpcFailure(f *call.RPCError) *scripting.Failure {
	message := truncateMessage(rc.invocation.Host.Secrets.Redact(f.Message))
	const missingCapability = -32021
	switch {
	case f.Code == missingCapability && isObject(f.Data):
		return &scripting.Failure{Kind: scripting.CapabilityError, Message: message, Details: f.Data}
	case rc.method == upstream.MethodTool:
		return &scripting.Failure{Kind: scripting.Thrown, Message: message}
	}
	return &scripting.Failure{Kind: scripting.RPCError, RPCCode: f.Code, Message: message}
}

func truncateMessage(text string) string { return truncateTo(text, maxMessage) }

// truncateTo truncates text to at most limit bytes and keeps characters complete.
func truncateTo(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return truncate.Start(text, limit) + "…"
}

func failed(format string, args ...any) scripting.Outcome {
	return scripting.Outcome{Failure: &scripting.Failure{Kind: scripting.Thrown, Message: fmt.Sprintf(format, args...)}}
}

// The limits of notifications during one execution of a call: their number, and the bytes of
// their texts. One warning reports the dropped ones.
const (
	maxEvents    = 10_000
	maxTextBytes = 1 << 20
)

// notificationRelay forwards the notifications of a server while the call runs. They are
// redacted, bounded and logged like output of scripts.
type notificationRelay struct {
	ctx  context.Context // of the execution: notifications belong to its span
	host *host.RunHost

	mu        sync.Mutex
	stopped   bool
	events    int
	textBytes int  // bytes forwarded
	dropped   bool // a notification was dropped
}

func (r *notificationRelay) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
}

func (r *notificationRelay) send(op string, payload any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.events++; r.events > maxEvents {
		r.noteDropped()
		return
	}
	r.forward(op, payload)
}

// forward forwards one notification while the call runs. The caller holds mu.
func (r *notificationRelay) forward(op string, payload any) {
	encoded, err := json.Marshal(payload)
	if r.stopped || err != nil {
		return // an invalid number or invalid fields
	}
	_, _ = r.host.Do(r.ctx, 0, op, encoded) // an invalid message is dropped
}

// noteDropped records that a notification was dropped. The caller holds mu.
func (r *notificationRelay) noteDropped() {
	if !r.dropped {
		r.dropped = true
		r.forward("log", map[string]any{"level": "warn", "message": "the upstream server sends more notifications for this call than mcpd forwards: some are dropped"})
	}
}

// reserve reserves n bytes of text, and reports whether they fit.
func (r *notificationRelay) reserve(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.textBytes+n > maxTextBytes {
		r.noteDropped()
		return false
	}
	r.textBytes += n
	return true
}

// Progress forwards a progress notification. It drops the message if the limit is exceeded.
func (r *notificationRelay) Progress(done float64, total *float64, message string) {
	if message = truncateMessage(r.host.Secrets.Redact(message)); !r.reserve(len(message)) {
		message = ""
	}
	r.send("progress", map[string]any{"done": done, "total": total, "message": message})
}

// levels are the log levels of MCP (2026-07-28 server/utilities/logging).
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Log forwards a log record. A session with a server has one log level for all calls, so this
// call may not have requested the record.
func (r *notificationRelay) Log(level, message string, fields json.RawMessage) {
	if !slices.Contains(levels, level) || level == "debug" && !r.host.Debug {
		return
	}
	message = truncateMessage(r.host.Secrets.Redact(message))
	if !r.reserve(len(message) + len(fields)) {
		return
	}
	record := map[string]any{"level": level, "message": message}
	if isObject(fields) {
		record["fields"] = fields
	} else if fields != nil {
		record["fields"] = map[string]any{"data": fields}
	}
	r.send("log", record)
}
