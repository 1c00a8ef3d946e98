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

// Reply is what a client gets for a message.
type Reply struct {
	// Frame is zero when there is nothing to answer.
	Frame Frame
	// Refusal says why the message was not served; [Served] when it was.
	Refusal Refusal
	// RetryAfter is when a request that has failed may be tried again; 0 when that
	// would not help, and for a batch, of which other requests may have succeeded.
	RetryAfter time.Duration
	// Session is the id of the session that the message opened.
	Session string
	// Last says that the client wants nothing more.
	Final bool
}

func refuse(id []byte, f *fault) Reply {
	return Reply{Frame: errorFrame(id, &f.RPCError), Refusal: f.refusal}
}

// Crowded returns what is to be sent in place of a reply that there is no room for, in
// at most 2 KiB. It names the request, unless the reply is that to a batch.
func (r Reply) WithoutRoom() Reply {
	f := newFault(codeInternal, Unavailable, "the answer is lost: clients have not read the answers before it, and there is no room for more; try again in a second")
	refused := refuse(r.Frame.id(), f)
	refused.Final = r.Final
	return refused
}

// pending is a message that may be a request that was accepted: then it waits
// to be served.
type pending struct {
	request
	waits bool
	ctx   context.Context
	end   func()
}

// accept does all that must happen in the order of a client's messages: it
// takes note of notifications, judges requests, and makes them known to those
// that may cancel them. A request that passes waits; the reply to everything
// else is complete. All transports meet here.
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

// serve runs the request and returns the reply: none when nobody waits for it
// any more, or when it was answered late.
func (p *pending) serve() Reply {
	defer p.end()
	return p.reply(p.run(p.ctx))
}

func (p *pending) reply(r *result, f *fault) Reply {
	switch {
	case isCancelled(p.ctx), r == nil && f == nil:
		return Reply{}
	case f != nil:
		refused := p.refuse(f)
		refused.RetryAfter = p.retryAfter
		return refused
	}
	return Reply{Frame: p.answer(r), RetryAfter: p.retryAfter, Session: r.session, Final: r.final}
}

// accept accepts one message, or a batch in its order (2025-03-26 basic/index,
// Batching).
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

// refuse answers with an error. Legacy clients of HTTP read errors of requests
// in good order from a success (2025-11-25 basic/transports), so that only
// what is no such request counts as refused there.
func (c *request) refuse(f *fault) Reply {
	r := refuse(c.id, f)
	if c.era == legacy && f.refusal == UnknownMethod {
		r.Refusal = Served
	}
	return r
}

// run serves the call. A panic ends this call alone.
func (c *request) run(ctx context.Context) (r *result, f *fault) {
	defer func() {
		if p := recover(); p != nil {
			r, f = nil, c.logPanic(p, debug.Stack())
		}
	}()
	return c.handler.serve(ctx, c)
}

// panicked tells the operator of a panic, and returns what the client is told.
func (c *request) logPanic(cause any, stack []byte) *fault {
	c.server.options.Logger.Error("panic in an MCP method",
		"method", c.handler.name, "request_id", cmp.Or(c.requestID, httpheader.RequestIDOf(c.origin.sent), httpheader.RequestIDOf(c.origin.peer.Headers)), "panic", fmt.Sprint(cause), "stack", string(stack))
	return newFault(codeInternal, Served, "internal error")
}

// notified takes note of a notification. Those that are unknown or malformed
// are ignored, as nobody waits for an answer.
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

// Refuse returns the reply to a text that its transport turned away itself.
func Refuse(why Refusal, reason string) Reply {
	return refuse(nil, newFault(codeInvalidRequest, why, reason))
}

// method is one JSON-RPC method.
type method struct {
	name string
	eras era
	// early methods are served before initialize.
	early bool
	// slow methods may take long: clients can cancel them, and the connection serves
	// the next message meanwhile.
	slow bool
	// nameOf is the member of params that the header Mcp-Name mirrors; empty
	// for methods that have none.
	nameOf string
	// serve serves a request. A nil result with a nil fault sends no response:
	// the client does not wait for one any more.
	serve func(ctx context.Context, c *request) (*result, *fault)
}

// methodTable returns the methods by their names. Those of the tasks extension exist
// with a [TaskBackend] alone.
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

// capabilities returns the capabilities object that the server declares to clients of
// the era.
func (s *Server) capabilities(e era) string {
	const both = `{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"prompts":{"listChanged":true},"completions":{},"logging":{}`
	if e == modern && s.tasks != nil {
		return both + `,"extensions":{"` + keyTasks + `":{}}}`
	}
	return both + "}"
}
