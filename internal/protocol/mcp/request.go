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

// call is one request on its way through its method.
type request struct {
	server *Server
	origin *origin
	message
	// handler is the method; one that serves nothing when there is no such.
	handler *method
	era     era
	// left says that the call was answered while the backend holds its goroutine,
	// and alone is the batch of which it is all, where it can be; nil otherwise.
	left  bool
	alone *batch
	// emitter tells what comes before the result; nil when there is nothing to tell.
	emitter *emitter
	// request is its request_id, once somebody has asked who makes it: the same in all
	// that is said of it.
	request string
	// retryAfter is when a call that has failed may be tried again; 0 when that would
	// not help.
	retryAfter time.Duration
}

// result is the result of a method, as pieces of JSON.
type result struct {
	// resultType is what modern clients tell results apart by; empty stands
	// for "complete".
	resultType string
	// members are those of the result object, without the braces. They may
	// be shared with other results and are never written to.
	members []byte
	// more are further members, each with a comma before it.
	more []byte
	// revision is that of the tools that the result was made of.
	revision string
	// meta are further members of _meta, without the braces.
	meta []byte
	// session is the id of the session that was opened.
	session string
	// last says that the client wants nothing more after this result.
	last bool
}

func (c *request) claim() (AgentClaim, *call.Error) {
	claim, err := parseAgent(c.meta.agent)
	for _, h := range [...]http.Header{c.origin.sent, c.origin.peer.Headers} {
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

// caller returns who makes the call. The error is a [*call.Error]: the claim is none, or
// the agent that the message claims is not the one that its headers claim, and the caller
// is the one that it would be if it claimed nothing; or an
// [*identity.ContradictionError], and the caller is whom it claims to be.
func (c *request) caller() (identity.Caller, error) {
	claim, refused := c.claim()
	client, source := clientName(c.meta.clientInfo), c.origin.peer.Source
	if c.era == legacy && c.origin.session != nil {
		client, source.Session = c.origin.session.client, c.origin.session.mark
	}
	claim.RequestID = cmp.Or(claim.RequestID, c.request)
	agent, err := claim.Of(&c.origin.peer.Principal, client)
	if refused != nil {
		err = refused
	}
	c.request = agent.RequestID
	return identity.Caller{Principal: c.origin.peer.Principal, Agent: agent, Source: source}, err
}

// answer puts a result into a response for the client's era: modern results
// tell their type and who made them.
func (c *request) answer(r *result) Frame {
	const room = 320 // for all but what the call and its result bring along
	text := append(make([]byte, 0, room+len(c.id)+len(r.more)+len(r.meta)), openFrame...)
	text = append(appendValue(text, "id", c.id), `,"result":{`...)
	if c.era == modern {
		text = appendText(text, "resultType", cmp.Or(r.resultType, "complete"))
		if len(r.members) > 0 {
			text = append(text, ',')
		}
	}
	head := len(text)
	text = c.appendEnd(text, r)
	return Frame{head: text[:head:head], body: r.members, tail: text[head:]}
}

// appendEnd appends what follows the members of a result: more of them, its
// _meta, and the ends of the result and the response.
func (c *request) appendEnd(dst []byte, r *result) []byte {
	dst = append(dst, r.more...)
	if c.era != modern && r.revision == "" && len(r.meta) == 0 {
		return append(dst, "}}"...)
	}
	if c.era == modern || len(r.members) > 0 {
		dst = append(dst, ',')
	}
	dst = append(dst, `"_meta":{`...)
	if c.era == modern {
		dst = appendValue(dst, keyServerInfo, c.server.implementation())
	}
	if r.revision != "" {
		dst = appendText(dst, keyRevision, r.revision)
	}
	if len(r.meta) > 0 && dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(append(dst, r.meta...), "}}}"...)
}

// itemParams are the params that the calls of items have in common; each is
// JSON, and empty when absent or null.
type itemParams struct {
	name, uri, arguments []byte
	responses, state     []byte // of a client that was asked
}

// parse reads the params that are the next value, and returns all of them.
// Their _meta is read into m.
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

// perform has the backend carry out a request of the client, and answers with
// its outcome.
func (c *request) perform(ctx context.Context, r call.Request, p *itemParams) (*result, *fault) {
	level, f := c.logLevel()
	if f != nil {
		return nil, f
	}
	var err error
	if r.Caller, err = c.caller(); err != nil {
		refused, ok := errors.AsType[*call.Error](err)
		if !ok {
			return nil, c.claimFault(r.Caller, err)
		}
		r.RejectErr, r.Trace = refused, c.trace()
		response, _ := c.server.backend.Call(ctx, r)
		return c.failed(&r, response.Err, response.Revision)
	}
	if f := c.checkMirrors(ctx, &r); f != nil {
		return nil, f
	}
	r.Can, r.Trace = c.can(&r), c.trace()
	if r.Resume, f = c.resume(p); f != nil {
		return nil, f
	}
	if c.emitter = c.emitterOf(ctx, r.Name, level); c.emitter != nil {
		defer c.silence()
		r.Emit, r.Debug = c.emitter, level == severityOf("debug")
	}
	if c.alone != nil && r.Kind == call.Tools {
		r.Late = c
	}
	response, task := c.converse(ctx, &r)
	switch {
	case response.Detached:
		return nil, nil
	case response.Err != nil:
		return c.failed(&r, response.Err, response.Revision)
	case task != nil:
		return c.becameTask(&r, task, response.Revision)
	case response.Ask != nil:
		members := appendOptional(appendRequests(nil, response.Ask.Requests), "requestState", response.Ask.State)
		return &result{resultType: "input_required", members: members, revision: response.Revision}, nil
	}
	return c.succeeded(&r, &response), nil
}

// silence sees to it that nothing more precedes the answer.
func (c *request) silence() {
	if c.emitter != nil && !c.left {
		c.emitter.stop(c.server.options.Logger)
	}
}

// Answer answers the call of a tool, which has failed, in the place of the
// goroutine that the backend holds.
func (c *request) Answer(response call.Result) {
	c.silence()
	c.left = true
	r := call.Request{Kind: call.Tools}
	r.Name, _ = jsontext.Text(c.item.name)
	r.Caller, _ = c.caller() // which was no error before
	c.alone.answer(c.failed(&r, response.Err, response.Revision))
}

// claimFault returns the fault that claims are refused with where no call is made yet.
// That the credential is bound to another agent is told to the operator, too: the caller
// is the one that is claimed then.
func (c *request) claimFault(claimed identity.Caller, err error) *fault {
	var contradicts *identity.ContradictionError
	if !errors.As(err, &contradicts) {
		return invalidParams(err.Error())
	}
	if told := c.server.options.Contradicted; told != nil {
		contradiction := Contradiction{Caller: claimed, Method: c.handler.name, Trace: c.trace()}
		if c.handler.nameOf != "uri" {
			contradiction.Name = string(jsontext.Unquote(c.named()))
		}
		told(contradiction)
	}
	return newFault(codeInvalidRequest, Forbidden, err.Error())
}

// TraceOf returns what the headers of a request say; nil headers say nothing.
func TraceOf(h http.Header) (t call.Trace) {
	if parents := h["Traceparent"]; len(parents) == 1 {
		t.CarrierParent = parents[0]
		if states := h["Tracestate"]; len(states) == 1 {
			t.CarrierState = states[0]
		}
	}
	return t
}

// trace returns what the call says of where it comes from.
// The headers of a connection that carries many requests are of none of them.
func (c *request) trace() (t call.Trace) {
	carrier := c.origin.sent
	if c.origin.mirrored {
		carrier = c.origin.peer.Headers
	}
	t = TraceOf(carrier)
	if len(c.meta.traceparent) <= maxTraceParent {
		t.Parent, _ = jsontext.Text(c.meta.traceparent)
	}
	if t.Parent != "" && len(c.meta.tracestate) <= maxTraceState {
		t.State, _ = jsontext.Text(c.meta.tracestate)
	}
	return t
}

// What is longer, as JSON, is not looked at: nothing that has a meaning is.
const (
	maxTraceParent = 128
	maxTraceState  = 1 << 10
)
