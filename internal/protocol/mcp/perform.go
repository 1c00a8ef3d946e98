package mcp

import (
	"context"
	"errors"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

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
		return c.decline(ctx, &r, refused)
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
	case response.Left:
		return nil, nil
	case response.Err != nil:
		return c.failed(&r, response.Err, response.Revision)
	case task != nil:
		return c.becameTask(&r, task, response.Revision)
	case response.Ask != nil:
		return c.inputRequired(&response), nil
	}
	return c.succeeded(&r, &response), nil
}

// decline answers a call that is not made, once the backend knows of it.
func (c *request) decline(ctx context.Context, r *call.Request, why *call.Error) (*result, *fault) {
	r.Declined, r.Trace = why, c.trace()
	response, _ := c.server.backend.Call(ctx, *r)
	return c.failed(r, response.Err, response.Revision)
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
