package mcp

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// request is one request while its method serves it.
type request struct {
	server *Server
	origin *origin
	message
	// handler is the method; an empty one for an unknown method.
	handler *method
	era     era
	// detached is true if the call was answered while the backend blocks its
	// goroutine. batch is the batch that holds only this request, if it may be
	// answered detached; nil otherwise.
	detached bool
	batch    *batch
	// notifier sends what precedes the result; nil if the client accepts nothing.
	notifier *callNotifier
	// requestID is the request_id, set when the caller is first computed, so that
	// all records of the request share it.
	requestID string
	// retryAfter is the delay after which a failed call may be retried; 0 if a
	// retry would not help.
	retryAfter time.Duration
}

// result is the result of a method, as pieces of JSON.
type result struct {
	// resultType is the resultType of modern results; empty means "complete".
	resultType string
	// members are the members of the result object, without the braces. They may
	// be shared with other results and are never modified.
	members []byte
	// more holds further members, each after a comma.
	more []byte
	// revision is the revision of the state that the result was built from.
	revision string
	// meta holds further members of _meta, without the braces.
	meta []byte
	// session is the id of the opened session.
	session string
	// final is true if the client wants nothing more after this result.
	final bool
}

func (req *request) claim() (AgentClaim, *call.Error) {
	claim, err := parseAgent(req.meta.agent)
	for _, h := range [...]http.Header{req.origin.sent, req.origin.peer.Headers} {
		var headers AgentClaim
		if err == nil {
			headers, err = AgentFromHeaders(h)
		}
		if err == nil {
			claim, err = claim.merge(headers)
		}
	}
	if err != nil {
		return AgentClaim{}, err
	}
	return claim, nil
}

// caller returns the caller of the request. The error is a [*call.Error] if the
// claim is invalid, or if the message and the headers claim different agents;
// the caller then has no claim. Or it is an [*identity.ContradictionError], and
// the caller has the claimed agent.
func (req *request) caller() (identity.Caller, error) {
	claim, invalid := req.claim()
	client, source := clientName(req.meta.clientInfo), req.origin.peer.Source
	if req.era == legacy && req.origin.session != nil {
		client, source.Session = req.origin.session.client, req.origin.session.publicID
	}
	claim.RequestID = cmp.Or(claim.RequestID, req.requestID)
	agent, err := claim.Of(&req.origin.peer.Principal, client)
	if invalid != nil {
		err = invalid
	}
	req.requestID = agent.RequestID
	return identity.Caller{Principal: req.origin.peer.Principal, Agent: agent, Source: source}, err
}

// answer encodes a result as a response for the client's era. Modern results
// carry their type and the server's description.
func (req *request) answer(r *result) Frame {
	const overhead = 320 // for everything but the id and the result
	text := append(make([]byte, 0, overhead+len(req.id)+len(r.more)+len(r.meta)), openFrame...)
	text = append(appendValue(text, "id", req.id), `,"result":{`...)
	if req.era == modern {
		text = appendText(text, "resultType", cmp.Or(r.resultType, "complete"))
		if len(r.members) > 0 {
			text = append(text, ',')
		}
	}
	head := len(text)
	text = req.appendEnd(text, r)
	return Frame{head: text[:head:head], body: r.members, tail: text[head:]}
}

// appendEnd appends what follows the members of a result: further members,
// _meta, and the closing braces of the result and the response.
func (req *request) appendEnd(dst []byte, r *result) []byte {
	dst = append(dst, r.more...)
	if req.era != modern && r.revision == "" && len(r.meta) == 0 {
		return append(dst, "}}"...)
	}
	if req.era == modern || len(r.members) > 0 {
		dst = append(dst, ',')
	}
	dst = append(dst, `"_meta":{`...)
	if req.era == modern {
		dst = appendValue(dst, keyServerInfo, req.server.implementation())
	}
	if r.revision != "" {
		dst = appendText(dst, keyRevision, r.revision)
	}
	if len(r.meta) > 0 && dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(append(dst, r.meta...), "}}}"...)
}

// itemParams holds the params shared by calls of items. Each is JSON, and empty
// if absent or null.
type itemParams struct {
	name, uri, arguments []byte
	responses, state     []byte // input responses and request state
}

// parse reads params, the next value, and returns it whole. It reads _meta into
// m.
func (p *itemParams) parse(c *jsontext.Cursor, m *meta) []byte {
	start := c.Offset()
	if !c.Enter() {
		return c.Value()
	}
	for {
		name, ok := c.Name()
		if !ok {
			break
		}
		if string(name) == "_meta" {
			m.parse(c)
			continue
		}
		if value := c.Value(); !jsontext.IsNull(value) {
			p.set(name, value)
		}
	}
	c.Leave()
	return c.From(start)
}

func (p *itemParams) set(name, value []byte) {
	switch string(name) {
	case "name":
		p.name = value
	case "uri":
		p.uri = value
	case "arguments":
		p.arguments = value
	case "inputResponses":
		p.responses = value
	case "requestState":
		p.state = value
	}
}

// invoke passes a request to the backend and returns its outcome.
func (req *request) invoke(ctx context.Context, r call.Request, p *itemParams) (*result, *fault) {
	level, f := req.logLevel()
	if f != nil {
		return nil, f
	}
	var err error
	if r.Caller, err = req.caller(); err != nil {
		invalid, ok := errors.AsType[*call.Error](err)
		if !ok {
			return nil, req.claimFault(r.Caller, err)
		}
		r.RejectErr, r.Trace = invalid, req.trace()
		response, _ := req.server.backend.Call(ctx, r)
		return req.failed(&r, response.Err, response.Revision)
	}
	if f := req.checkMirrors(ctx, &r); f != nil {
		return nil, f
	}
	r.Can, r.Trace = req.can(&r), req.trace()
	if r.Resume, f = req.resume(p); f != nil {
		return nil, f
	}
	if req.notifier = req.newNotifier(ctx, r.Name, level); req.notifier != nil {
		defer req.stopNotifications()
		r.Emit, r.Debug = req.notifier, level == severityOf("debug")
	}
	if req.batch != nil && r.Kind == call.Tools {
		r.Late = req
	}
	response, task := req.callBackend(ctx, &r)
	switch {
	case response.Detached:
		return nil, nil
	case response.Err != nil:
		return req.failed(&r, response.Err, response.Revision)
	case task != nil:
		return req.taskResult(&r, task, response.Revision)
	case response.Ask != nil:
		members := appendOptional(appendRequests(nil, response.Ask.Requests), "requestState", response.Ask.State)
		return &result{resultType: "input_required", members: members, revision: response.Revision}, nil
	}
	return req.succeeded(&r, &response), nil
}

// stopNotifications makes sure that nothing more precedes the response.
func (req *request) stopNotifications() {
	if req.notifier != nil && !req.detached {
		req.notifier.stop(req.server.options.Logger)
	}
}

// Answer sends the result of a failed tool call while the backend still blocks
// the goroutine of the call.
func (req *request) Answer(response call.Result) {
	req.stopNotifications()
	req.detached = true
	r := call.Request{Kind: call.Tools}
	r.Name, _ = jsontext.Text(req.item.name)
	r.Caller, _ = req.caller() // it was valid before
	req.batch.answerDetached(req.failed(&r, response.Err, response.Revision))
}

// claimFault returns the fault for an invalid claim before a call exists. It
// also reports a credential that is bound to another agent; claimed is then the
// caller with the claimed agent.
func (req *request) claimFault(claimed identity.Caller, err error) *fault {
	var contradicts *identity.ContradictionError
	if !errors.As(err, &contradicts) {
		return invalidParams(err.Error())
	}
	if report := req.server.options.OnAgentMismatch; report != nil {
		contradiction := AgentMismatch{Caller: claimed, Method: req.handler.name, Trace: req.trace()}
		if req.handler.nameOf != "uri" {
			contradiction.Name = string(jsontext.Unquote(req.named()))
		}
		report(contradiction)
	}
	return newFault(codeInvalidRequest, Forbidden, err.Error())
}

// TraceOf returns the trace context in the headers of a request. h may be nil.
func TraceOf(h http.Header) (t call.Trace) {
	if parents := h["Traceparent"]; len(parents) == 1 {
		t.CarrierParent = parents[0]
		if states := h["Tracestate"]; len(states) == 1 {
			t.CarrierState = states[0]
		}
	}
	return t
}

// trace returns the trace context of the request. The headers of a connection
// that carries many requests belong to none of them.
func (req *request) trace() (t call.Trace) {
	carrier := req.origin.sent
	if req.origin.mirrored {
		carrier = req.origin.peer.Headers
	}
	t = TraceOf(carrier)
	if len(req.meta.traceparent) <= maxTraceParent {
		t.Parent, _ = jsontext.Text(req.meta.traceparent)
	}
	if t.Parent != "" && len(req.meta.tracestate) <= maxTraceState {
		t.State, _ = jsontext.Text(req.meta.tracestate)
	}
	return t
}

// Longer values, as JSON, are ignored: no valid value is longer.
const (
	maxTraceParent = 128
	maxTraceState  = 1 << 10
)
