package mcp

import "encoding/json"

// resume reads what a modern client answered to an Ask (2026-07-28
// basic/patterns/mrtr); nil when it answered nothing.
func (c *call) resume(p *itemParams) (*Resume, *fault) {
	if c.era != modern || p.responses == nil && p.state == nil {
		return nil, nil
	}
	var r Resume
	if p.state != nil {
		var ok bool
		if r.State, ok = text(p.state); !ok {
			return nil, invalidParams("params.requestState must be a string")
		}
	}
	if p.responses == nil {
		return &r, nil
	}
	object, ok := members(p.responses)
	if !ok {
		return nil, invalidParams("params.inputResponses must be an object")
	}
	r.Responses = map[string]json.RawMessage{}
	for {
		key, value, ok := object.member()
		if !ok {
			return &r, nil
		}
		if !isObject(value) {
			return nil, invalidParams("params.inputResponses must hold results, which are objects")
		}
		r.Responses[string(key)] = value
	}
}

// inputRequired is the result of a modern call that waits for its client.
func (c *call) inputRequired(response *Response) *result {
	b := append(appendMember(nil, "inputRequests"), '{')
	for _, r := range response.Ask.Requests {
		b = append(appendMember(b, r.Key), '{')
		b = append(r.appendTo(b, newestModern, ""), '}')
	}
	b = appendOptional(append(b, '}'), "requestState", response.Ask.State)
	return &result{resultType: "input_required", members: b, revision: response.Revision}
}
