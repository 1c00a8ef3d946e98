package scripting

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/builtins"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// The reasons of an AskDenied.
const (
	declined  = "declined"
	cancelled = "cancelled"
)

// inputResponse is the response to one request: a value, or the reason of a denial.
type inputResponse struct {
	value  *goja.Object
	denied string
}

func declinedMessage(method, denied string) string {
	switch method {
	case methodSample:
		return "the request to the client's model was " + denied
	case methodRoots:
		return "the request for the client's roots was " + denied
	}
	return "the question to the user was " + denied
}

// responseObject returns the member of the result of ask for one request.
func (r *execution) responseObject(a inputResponse) *goja.Object {
	if a.denied == "" {
		return a.value
	}
	o := r.Runtime.NewObject()
	action := "decline"
	if a.denied == cancelled {
		action = "cancel"
	}
	_ = o.Set("action", action)
	return o
}

// inputError returns the error object for a refused request.
func (r *execution) inputError(refused *HostError, stack []goja.StackFrame) *goja.Object {
	if refused.Code != Capability {
		return r.hostError(refused, stack)
	}
	var details map[string]json.RawMessage
	_ = json.Unmarshal(refused.Details, &details) // without details no capability is known
	required, err := r.Decode(string(details[requiredCapabilities]))
	if _, ok := required.(*goja.Object); err != nil || !ok {
		required = r.Runtime.NewObject()
	}
	return r.newCallError("CapabilityError", refused.Message, required, stack)
}

// readResponses reads {"responses": {key: result}}. A result that does not match its request is an
// error.
func (r *execution) readResponses(data []byte, requests []keyedRequest) ([]inputResponse, *HostError) {
	var answer struct {
		Responses map[string]json.RawMessage `json:"responses"`
	}
	if json.Unmarshal(data, &answer) != nil {
		return nil, &HostError{Code: Unavailable, Message: errUnreadable.Error()}
	}
	replies := make([]inputResponse, len(requests))
	for i, request := range requests {
		result, ok := r.decodeObject(answer.Responses[request.key])
		if ok {
			replies[i], ok = r.readResponse(request.askRequest, result)
		}
		if !ok {
			return nil, &HostError{Code: Invalid, Message: "the response for " + request.key + " does not match the request"}
		}
	}
	return replies, nil
}

func (r *execution) decodeObject(text json.RawMessage) (*goja.Object, bool) {
	v, err := r.Decode(string(text))
	o, ok := v.(*goja.Object)
	return o, ok && err == nil && jsvalue.KindOf(o) == jsvalue.Plain
}

func (r *execution) readResponse(request *askRequest, result *goja.Object) (inputResponse, bool) {
	switch builtins.TextOf(result.Get("action")) {
	case "decline":
		return inputResponse{denied: declined}, true
	case "cancel":
		return inputResponse{denied: cancelled}, true
	}
	switch request.method {
	case methodElicit:
		return r.acceptance(request, result)
	case methodSample:
		_, role := result.Get("role").(goja.String)
		_, model := result.Get("model").(goja.String)
		_, content := result.Get("content").(*goja.Object)
		return inputResponse{value: result}, role && model && content
	default:
		list, ok := result.Get("roots").(*goja.Object)
		return inputResponse{value: list}, ok && r.onlyRoots(list)
	}
}

// acceptance reads an accepted elicitation. A client may omit the content of a form with only
// optional members.
func (r *execution) acceptance(request *askRequest, result *goja.Object) (inputResponse, bool) {
	if builtins.TextOf(result.Get("action")) != "accept" {
		return inputResponse{}, false
	}
	o := r.Runtime.NewObject()
	_ = o.Set("action", "accept")
	content := result.Get("content")
	switch _, ok := content.(*goja.Object); {
	case !request.form:
		return inputResponse{value: o}, true
	case builtins.IsNothing(content):
		content = r.Runtime.NewObject()
	case !ok:
		return inputResponse{}, false
	}
	_ = o.Set("content", content)
	return inputResponse{value: o}, true
}

func (r *execution) onlyRoots(list *goja.Object) bool {
	if jsvalue.KindOf(list) != jsvalue.Array {
		return false
	}
	for i := range jsvalue.LengthOf(list) {
		r.Proceed()
		root, ok := list.Get(builtins.Index(i)).(*goja.Object)
		if !ok {
			return false
		}
		if _, ok := root.Get("uri").(goja.String); !ok {
			return false
		}
	}
	return true
}

// sampleMessage is a message to a model, as far as it concerns tools.
type sampleMessage struct {
	Role    string
	Content toolBlocks
}

// toolBlocks are the blocks of a message: one block, or a list.
type toolBlocks []struct {
	Type      string
	ID        string
	ToolUseID string `json:"toolUseId"`
}

// UnmarshalJSON decodes one block or a list of blocks.
func (b *toolBlocks) UnmarshalJSON(text []byte) error {
	if text[0] != '[' {
		text = append(append([]byte{'['}, text...), ']')
	}
	type list toolBlocks
	return json.Unmarshal(text, (*list)(b))
}

// ids returns the ids of the blocks of a kind, with the number of their occurrences.
func (b toolBlocks) ids(kind string) map[string]int {
	ids := map[string]int{}
	for _, block := range b {
		switch {
		case block.Type != kind:
		case kind == "tool_use":
			ids[block.ID]++
		default:
			ids[block.ToolUseID]++
		}
	}
	return ids
}

// toolProblem returns the error in the sequence of tool messages in the params of a sampling; empty
// if there is none. Each use of a tool must be followed by the message with its result, which has
// only results (2025-11-25 client/sampling, Message Content Constraints).
func toolProblem(params []byte) string {
	if !bytes.Contains(params, []byte(`"tool_`)) {
		return ""
	}
	var talk struct{ Messages []sampleMessage }
	if json.Unmarshal(params, &talk) != nil {
		return "messages: the id of a tool_use and the toolUseId of a tool_result must be strings"
	}
	var used map[string]int
	for i, m := range talk.Messages {
		if problem := m.problem(used); problem != "" {
			return fmt.Sprintf("messages[%d]: %s", i, problem)
		}
		used = m.Content.ids("tool_use")
	}
	if len(used) > 0 {
		return "messages: the last tool_use needs its tool_result in a message after it"
	}
	return ""
}

// problem returns the error in a message after a message that uses tools; empty if there is none.
func (m *sampleMessage) problem(used map[string]int) string {
	results, uses := m.Content.ids("tool_result"), m.Content.ids("tool_use")
	for id, n := range results {
		if n > 1 || used[id] == 0 {
			return "each tool_result needs the toolUseId of a tool_use in the message before, once"
		}
	}
	for _, n := range uses {
		if n > 1 {
			return "each tool_use needs a unique id"
		}
	}
	switch {
	case len(results) < len(used):
		return "each tool_use in the message before needs its tool_result here"
	case len(results) > 0 && (m.Role != "user" || len(results) < len(m.Content)):
		return "a message with a tool_result has the role user and no other content"
	case len(uses) > 0 && m.Role != "assistant":
		return "a message with a tool_use has the role assistant"
	}
	return ""
}
