package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// askWait is how long a call waits that does not say how long.
const askWait = 5 * time.Minute

const (
	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"
)

// needsOf returns the capabilities that the requests of an ask take. ok is false if a client
// can not be asked one of them.
func needsOf(a *call.Ask) (needs call.Capabilities, ok bool) {
	for _, r := range a.Requests {
		switch r.Method {
		case methodElicit:
			if isURL(&r) {
				needs.URL = true
			} else {
				needs.Form = true
			}
		case methodSample:
			needs.Sample = true
			needs.SampleTools = needs.SampleTools || !jsontext.IsNull(jsontext.Get(r.Params, "tools")) || !jsontext.IsNull(jsontext.Get(r.Params, "toolChoice"))
		case methodRoots:
			needs.Roots = true
		default:
			return needs, false
		}
	}
	return needs, len(a.Requests) > 0
}

func isURL(r *call.AskRequest) bool {
	mode, _ := jsontext.Text(jsontext.Get(r.Params, "mode"))
	return r.Method == methodElicit && mode == "url"
}

const keyElicitation = "elicitationId"

// appendRequest appends the members of a request as a revision has them. The id
// of an elicitation by URL exists in 2025-11-25 alone: there it must be, and is
// that of the request when the call gives none.
func appendRequest(dst []byte, r *call.AskRequest, version, id string) []byte {
	dst = appendText(dst, "method", r.Method)
	if jsontext.IsNull(r.Params) {
		return dst
	}
	dst = append(appendMember(dst, "params"), '{')
	params, hasID := []byte(r.Params), false
	if r.Method == methodSample {
		params = fitSampling(params, version)
	}
	for object, ok := jsontext.Members(params); ok; {
		var name, value []byte
		if name, value, ok = object.Member(); !ok {
			break
		}
		if string(name) == keyElicitation && r.Method == methodElicit {
			if hasID = version == version20251125; !hasID {
				continue
			}
		}
		dst = appendValue(dst, string(name), value)
	}
	if !hasID && version == version20251125 && isURL(r) {
		dst = appendText(dst, keyElicitation, id)
	}
	return append(dst, '}')
}

// converse has the backend carry out a request, and asks the client in between
// as often as the call wants it: by requests of its own where the client is a
// legacy one, and by the result where it is modern.
func (c *request) converse(ctx context.Context, r *call.Request) (call.Result, *Task) {
	for {
		response, task := c.server.backend.Call(ctx, *r)
		if response.Ask == nil || response.Err != nil {
			return response, task
		}
		if response.Err = MayAsk(r, response.Ask); response.Err != nil || c.era == modern {
			return response, task
		}
		if c.emitter != nil {
			c.emitter.out.settle()
		}
		state := response.Ask.State
		if r.Resume, response.Err = c.ask(ctx, response.Ask); response.Err != nil {
			if ctx.Err() != nil {
				c.abandon(ctx, r, state, response.Err)
			}
			return response, task
		}
	}
}

// abandon has the backend take note of a call that was cancelled while its client was
// asked: it is not gone on with.
func (c *request) abandon(ctx context.Context, r *call.Request, state string, why *call.Error) {
	r.Resume, r.RejectErr = &call.Resume{State: state}, why
	c.server.backend.Call(ctx, *r)
}

// MayAsk makes sure that a client is asked for nothing that it has not
// declared (2026-07-28 basic/patterns/mrtr, Server Requirements).
func MayAsk(r *call.Request, a *call.Ask) *call.Error {
	needs, ok := needsOf(a)
	if !ok || r.Argument != "" {
		return &call.Error{Code: call.ExecutionError, Message: "the call asks for what no client can be asked"}
	}
	if lacks := missing(r.Can, needs); lacks != (call.Capabilities{}) {
		return &call.Error{
			Code: call.ExecutionError, Message: "the client cannot be asked what the call needs to know",
			Required: capabilitiesObject(lacks),
		}
	}
	return nil
}

// ask sends requests to a legacy client, on the stream of its call, and waits
// until all are answered. What is not answered in the end is cancelled.
func (c *request) ask(ctx context.Context, a *call.Ask) (*call.Resume, *call.Error) {
	out := &c.origin.session.outgoing
	answers := make(chan clientAnswer, len(a.Requests))
	ids, ok := out.add(a.Requests, answers)
	if !ok {
		return nil, &call.Error{Code: call.ExecutionError, Message: "too many requests wait for the client", Overloaded: true}
	}
	defer func() { c.cancelAsked(out, ids) }()
	for i, r := range a.Requests {
		if c.origin.emit(requestFrame(ids[i], &r, c.origin.session.version)) != nil {
			return nil, unanswered("the client is gone")
		}
	}
	resume := &call.Resume{State: a.State, Responses: map[string]json.RawMessage{}, Refused: map[string]call.RPCError{}}
	timer := time.NewTimer(waitOf(a))
	defer timer.Stop()
	for range a.Requests {
		select {
		case a := <-answers:
			if a.err == nil {
				resume.Responses[a.key] = a.result
			} else {
				resume.Refused[a.key] = *a.err
			}
		case <-timer.C:
			return nil, &call.Error{Code: call.Timeout, Message: fmt.Sprintf("the client did not answer within %v", waitOf(a))}
		case <-ctx.Done():
			return nil, unanswered("the call was cancelled while its client was asked")
		case <-c.origin.ending:
			return nil, unanswered("the server ends the connection before its client has answered; connect again and repeat the call")
		}
	}
	return resume, nil
}

func waitOf(a *call.Ask) time.Duration {
	if a.Wait > 0 {
		return a.Wait
	}
	return askWait
}

// cancelAsked tells the client not to answer what is not answered yet
// (2025-11-25 basic/utilities/cancellation).
func (c *request) cancelAsked(out *outgoing, ids []string) {
	for _, id := range ids {
		if _, open := out.take(id); !open {
			continue
		}
		// A client that is gone need not be told.
		_ = c.origin.emit(notification("notifications/cancelled",
			appendText(appendText(nil, "requestId", id), "reason", "the call has ended")))
	}
}

func unanswered(message string) *call.Error {
	return &call.Error{Code: call.ExecutionError, Message: message}
}

func requestFrame(id string, r *call.AskRequest, version string) Frame {
	b := append(make([]byte, 0, 96+len(r.Params)), openFrame...)
	b = appendRequest(appendText(b, "id", id), r, version, id)
	return Frame{head: append(b, '}')}
}

// resume reads what a modern client answered to an Ask (2026-07-28
// basic/patterns/mrtr); nil when it answered nothing.
func (c *request) resume(p *itemParams) (*call.Resume, *fault) {
	if c.era != modern || p.responses == nil && p.state == nil {
		return nil, nil
	}
	var r call.Resume
	if p.state != nil {
		var ok bool
		// No state is empty, and none at all would begin the call anew.
		if r.State, ok = jsontext.Text(p.state); !ok || r.State == "" {
			return nil, invalidParams("params.requestState must be a string that is not empty")
		}
	}
	if p.responses == nil {
		return &r, nil
	}
	object, ok := jsontext.Members(p.responses)
	if !ok {
		return nil, invalidParams("params.inputResponses must be an object")
	}
	r.Responses = map[string]json.RawMessage{}
	for {
		key, value, ok := object.Member()
		if !ok {
			return &r, nil
		}
		if !jsontext.IsObject(value) {
			return nil, invalidParams("params.inputResponses must hold results, which are objects")
		}
		r.Responses[string(key)] = value
	}
}

func appendRequests(dst []byte, requests []call.AskRequest) []byte {
	dst = append(appendMember(dst, "inputRequests"), '{')
	for _, r := range requests {
		dst = append(appendMember(dst, r.Key), '{')
		dst = append(appendRequest(dst, &r, newestModern, ""), '}')
	}
	return append(dst, '}')
}
