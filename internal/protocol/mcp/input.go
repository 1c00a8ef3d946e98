package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// defaultAskTimeout is how long a call waits for its client if it sets no time.
const defaultAskTimeout = 5 * time.Minute

const (
	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"
)

// requiredBy returns the client capabilities that the requests of an ask need.
// ok is false if no client supports one of them.
func requiredBy(a *call.Ask) (needs call.Capabilities, ok bool) {
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

// appendRequest appends the members of a request in the form of the revision.
// An elicitationId exists only in 2025-11-25: there URL mode requires it, and
// it is the id of the request if the call sets none.
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

// callBackend passes a request to the backend, and asks the client for input as
// often as the call needs it: a legacy client by requests, a modern client by
// the result.
func (req *request) callBackend(ctx context.Context, r *call.Request) (call.Result, *Task) {
	for {
		response, task := req.server.backend.Call(ctx, *r)
		if response.Ask == nil || response.Err != nil {
			return response, task
		}
		if response.Err = CheckAsk(r, response.Ask); response.Err != nil || req.era == modern {
			return response, task
		}
		if req.notifier != nil {
			req.notifier.queue.flush()
		}
		state := response.Ask.State
		if r.Resume, response.Err = req.ask(ctx, response.Ask); response.Err != nil {
			if ctx.Err() != nil {
				req.reportAbandoned(ctx, r, state, response.Err)
			}
			return response, task
		}
	}
}

// reportAbandoned reports a cancelled call to the backend if its client was
// being asked for input. The call does not continue.
func (req *request) reportAbandoned(ctx context.Context, r *call.Request, state string, cause *call.Error) {
	r.Resume, r.RejectErr = &call.Resume{State: state}, cause
	req.server.backend.Call(ctx, *r)
}

// CheckAsk rejects an ask that needs a capability that the client has not
// declared (2026-07-28 basic/patterns/mrtr, Server Requirements).
func CheckAsk(r *call.Request, a *call.Ask) *call.Error {
	needs, ok := requiredBy(a)
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
// for all responses. It cancels the requests without a response.
func (req *request) ask(ctx context.Context, a *call.Ask) (*call.Resume, *call.Error) {
	out := &req.origin.session.serverRequests
	responses := make(chan clientResponse, len(a.Requests))
	ids, ok := out.add(a.Requests, responses)
	if !ok {
		return nil, &call.Error{Code: call.ExecutionError, Message: "too many requests wait for the client", Overloaded: true}
	}
	defer func() { req.cancelUnanswered(out, ids) }()
	for i, r := range a.Requests {
		if req.origin.emit(requestFrame(ids[i], &r, req.origin.session.version)) != nil {
			return nil, askError("the client is gone")
		}
	}
	resume := &call.Resume{State: a.State, Responses: map[string]json.RawMessage{}, Refused: map[string]call.RPCError{}}
	timer := time.NewTimer(askTimeout(a))
	defer timer.Stop()
	for range a.Requests {
		select {
		case a := <-responses:
			if a.err == nil {
				resume.Responses[a.key] = a.result
			} else {
				resume.Refused[a.key] = *a.err
			}
		case <-timer.C:
			return nil, &call.Error{Code: call.Timeout, Message: fmt.Sprintf("the client did not answer within %v", askTimeout(a))}
		case <-ctx.Done():
			return nil, askError("the call was cancelled while it waited for its client")
		case <-req.origin.ending:
			return nil, askError("the server ends the connection before its client has answered; connect again and repeat the call")
		}
	}
	return resume, nil
}

func askTimeout(a *call.Ask) time.Duration {
	if a.Wait > 0 {
		return a.Wait
	}
	return defaultAskTimeout
}

// cancelUnanswered cancels the requests that the client has not answered yet
// (2025-11-25 basic/utilities/cancellation).
func (req *request) cancelUnanswered(out *serverRequests, ids []string) {
	for _, id := range ids {
		if _, open := out.take(id); !open {
			continue
		}
		// Without a client there is nothing to cancel.
		_ = req.origin.emit(notification("notifications/cancelled",
			appendText(appendText(nil, "requestId", id), "reason", "the call has ended")))
	}
}

func askError(message string) *call.Error {
	return &call.Error{Code: call.ExecutionError, Message: message}
}

func requestFrame(id string, r *call.AskRequest, version string) Frame {
	b := append(make([]byte, 0, 96+len(r.Params)), openFrame...)
	b = appendRequest(appendText(b, "id", id), r, version, id)
	return Frame{head: append(b, '}')}
}

// resume reads the input responses of a modern client (2026-07-28
// basic/patterns/mrtr); nil if there are none.
func (req *request) resume(p *itemParams) (*call.Resume, *fault) {
	if req.era != modern || p.responses == nil && p.state == nil {
		return nil, nil
	}
	var r call.Resume
	if p.state != nil {
		var ok bool
		// An empty state is invalid, and no state would start the call anew.
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
