package mcp

import (
	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

import "encoding/json"

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

// inputRequired is the result of a modern call that waits for its client.
func (c *request) inputRequired(response *call.Result) *result {
	b := appendRequests(nil, response.Ask.Requests)
	b = appendOptional(b, "requestState", response.Ask.State)
	return &result{resultType: "input_required", members: b, revision: response.Revision}
}

// appendRequests appends the member inputRequests.
func appendRequests(dst []byte, requests []call.AskRequest) []byte {
	dst = append(appendMember(dst, "inputRequests"), '{')
	for _, r := range requests {
		dst = append(appendMember(dst, r.Key), '{')
		dst = append(appendRequest(dst, &r, newestModern, ""), '}')
	}
	return append(dst, '}')
}
