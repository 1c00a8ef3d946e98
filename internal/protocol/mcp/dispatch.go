package mcp

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/httpheader"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// Reply is the outcome of a message or a batch.
type Reply struct {
	// Frame is zero if there is no response.
	Frame Frame
	// Refusal is the reason why the message was not served, or [Served].
	Refusal Refusal
	// RetryAfter is the delay after which a failed request may be retried; 0 if a
	// retry would not help, and for a batch, in which other requests may have
	// succeeded.
	RetryAfter time.Duration
	// Session is the id of the session that the message opened.
	Session string
	// Final is true if the client wants nothing more.
	Final bool
}

func refuse(id []byte, f *fault) Reply {
	return Reply{Frame: errorFrame(id, &f.RPCError), Refusal: f.refusal}
}

// WithoutRoom returns the reply to send instead of r when the client's queue is
// full, in at most 2 KiB. It has the id of the request, unless r answers a
// batch.
func (r Reply) WithoutRoom() Reply {
	f := newFault(codeInternal, Unavailable, "the response was dropped, because too many responses are unread; try again in a second")
	reply := refuse(r.Frame.id(), f)
	reply.Final = r.Final
	return reply
}

// pending is a parsed message. An accepted request waits to be served.
type pending struct {
	request
	waits bool
	ctx   context.Context
	end   func()
}

// accept does everything that must happen in the order of a client's messages:
// it handles notifications, validates requests, and registers them for
// cancellation. A valid request waits; the reply to any other message is
// complete. All transports use accept.
func (p *pending) accept(ctx context.Context) Reply {
	o := p.origin
	switch {
	case p.bad != nil:
		return refuse(p.id, p.bad)
	case p.isResponse():
		if o.session != nil {
			o.session.serverRequests.deliver(&p.message)
		}
		return Reply{}
	case p.isNotification():
		p.server.handleNotification(o, &p.message)
		return Reply{}
	}
	if f := p.admit(); f != nil {
		return p.refuse(f)
	}
	p.ctx, p.end = ctx, func() {}
	if p.handler.slow && o.calls != nil {
		var f *fault
		if p.ctx, p.end, f = o.calls.add(ctx, p.id); f != nil {
			return p.refuse(f)
		}
	}
	p.waits = true
	return Reply{}
}

// serve runs the request and returns its reply. The reply is empty if the
// client cancelled the request or it was answered detached.
func (p *pending) serve() Reply {
	defer p.end()
	return p.reply(p.run(p.ctx))
}

func (p *pending) reply(r *result, f *fault) Reply {
	switch {
	case isCancelled(p.ctx), r == nil && f == nil:
		return Reply{}
	case f != nil:
		reply := p.refuse(f)
		reply.RetryAfter = p.retryAfter
		return reply
	}
	return Reply{Frame: p.answer(r), RetryAfter: p.retryAfter, Session: r.session, Final: r.final}
}

// accept accepts one message, or the messages of a batch in order (2025-03-26
// basic/index, Batching).
func (s *Server) accept(ctx context.Context, o origin, b *batch) *fault {
	if b.isBatch && (o.session == nil || o.session.version > version20250326) {
		return malformed("the protocol revision has no batches")
	}
	b.origin = o
	for i := range b.pending {
		p := &b.pending[i]
		if p.hasBadParams() && (b.isBatch || !o.mirrored) {
			continue
		}
		p.server, p.origin = s, &b.origin
		if r := p.accept(ctx); !p.waits {
			b.setReply(i, r)
		}
	}
	return nil
}

// refuse returns an error reply. Legacy HTTP clients expect errors of
// well-formed requests with a success status (2025-11-25 basic/transports), so
// for them only other messages count as refused.
func (req *request) refuse(f *fault) Reply {
	r := refuse(req.id, f)
	if req.era == legacy && f.refusal == UnknownMethod {
		r.Refusal = Served
	}
	return r
}

// run serves the request. A panic ends this request alone.
func (req *request) run(ctx context.Context) (r *result, f *fault) {
	defer func() {
		if p := recover(); p != nil {
			r, f = nil, req.logPanic(p, debug.Stack())
		}
	}()
	return req.handler.serve(ctx, req)
}

// logPanic logs a panic and returns the error for the client.
func (req *request) logPanic(cause any, stack []byte) *fault {
	req.server.options.Logger.Error("panic in an MCP method",
		"method", req.handler.name, "request_id", cmp.Or(req.requestID, httpheader.RequestIDOf(req.origin.sent), httpheader.RequestIDOf(req.origin.peer.Headers)), "panic", fmt.Sprint(cause), "stack", string(stack))
	return newFault(codeInternal, Served, "internal error")
}

// handleNotification handles a notification. It ignores unknown and malformed
// notifications, which get no response.
func (s *Server) handleNotification(o *origin, m *message) {
	switch {
	case m.method == "notifications/initialized" && o.session != nil:
		o.session.ready.Store(true)
	case m.method == "notifications/cancelled" && o.calls != nil:
		if id := jsontext.Get(m.params, "requestId"); len(id) > 0 {
			o.calls.cancel(id, jsontext.Get(m.params, "reason"))
		}
	}
}

// Refuse returns the reply to a text that the transport rejected itself.
func Refuse(refusal Refusal, reason string) Reply {
	return refuse(nil, newFault(codeInvalidRequest, refusal, reason))
}

// method is one JSON-RPC method.
type method struct {
	name string
	eras era
	// early methods are allowed before initialize.
	early bool
	// slow methods may take long: clients can cancel them, and the connection
	// serves the next message meanwhile.
	slow bool
	// nameOf is the member of params that the header Mcp-Name mirrors; empty for
	// methods without one.
	nameOf string
	// serve serves a request. It returns nil and a nil fault to send no response,
	// because the client no longer waits for one.
	serve func(ctx context.Context, c *request) (*result, *fault)
}

// methodTable returns the methods by name. The methods of the tasks extension
// need a [TaskBackend].
func methodTable(withTasks bool) map[string]*method {
	all := []method{
		// 2025-11-25 basic/lifecycle and basic/utilities/ping. Clients send shutdown,
		// which is not in the specification.
		{name: "initialize", eras: legacy, early: true, serve: initialize},
		{name: "ping", eras: legacy, early: true, serve: ping},
		{name: "shutdown", eras: legacy, serve: shutdown},
		{name: "server/discover", eras: modern, serve: discover},
		{name: "tools/list", eras: bothEras, serve: lister(call.Tools)},
		{name: "tools/call", eras: bothEras, slow: true, nameOf: "name", serve: callTool},
		{name: "resources/list", eras: bothEras, serve: lister(call.Resources)},
		{name: "resources/templates/list", eras: bothEras, serve: lister(call.Templates)},
		{name: "resources/read", eras: bothEras, slow: true, nameOf: "uri", serve: readResource},
		{name: "resources/subscribe", eras: legacy, serve: subscribeResource},
		{name: "resources/unsubscribe", eras: legacy, serve: unsubscribeResource},
		{name: "prompts/list", eras: bothEras, serve: lister(call.Prompts)},
		{name: "prompts/get", eras: bothEras, slow: true, nameOf: "name", serve: getPrompt},
		{name: "completion/complete", eras: bothEras, slow: true, serve: complete},
		{name: "logging/setLevel", eras: legacy, serve: setLevel},
		// 2026-07-28 basic/patterns/subscriptions.
		{name: "subscriptions/listen", eras: modern, slow: true, serve: listen},
	}
	if withTasks {
		all = append(all,
			method{name: "tasks/get", eras: modern, slow: true, nameOf: "taskId", serve: getTask},
			method{name: "tasks/update", eras: modern, slow: true, nameOf: "taskId", serve: updateTask},
			method{name: "tasks/cancel", eras: modern, slow: true, nameOf: "taskId", serve: cancelTask},
		)
	}
	table := make(map[string]*method, len(all))
	for i := range all {
		table[all[i].name] = &all[i]
	}
	return table
}

// capabilities returns the server capabilities object for clients of the era.
func (s *Server) capabilities(e era) string {
	const both = `{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"prompts":{"listChanged":true},"completions":{},"logging":{}`
	if e == modern && s.tasks != nil {
		return both + `,"extensions":{"` + keyTasks + `":{}}}`
	}
	return both + "}"
}
