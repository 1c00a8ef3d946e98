package conformance_test

import (
	"maps"
	"strings"
)

var inputScenarios = []scenario{
	{"input-required-result-basic-elicitation", modernOnly, round("test_input_required_result_elicitation", object{"user_name": accepted("name", "Alice")},
		`{"user_name": `+form("What is your name?", "name", "string")+`}`, "Hello, Alice!")},
	{"input-required-result-basic-sampling", modernOnly, round("test_input_required_result_sampling", object{"capital_question": sampled("Paris.")},
		`{"capital_question": `+sampling("What is the capital of France?", "100")+`}`, "Paris.")},
	{"input-required-result-basic-list-roots", modernOnly, round("test_input_required_result_list_roots", object{"client_roots": rooted},
		`{"client_roots": {"method": "roots/list", "params": {}}}`, "Roots: file:///test/root")},
	{"input-required-result-request-state", modernOnly, round("test_input_required_result_request_state", object{"confirm": accepted("ok", true)},
		`{"confirm": `+form("Please confirm", "ok", "boolean")+`}`, "state-ok")},
	{"input-required-result-multiple-input-requests", modernOnly, round("test_input_required_result_multiple_inputs",
		object{"user_name": accepted("name", "Alice"), "greeting": sampled("Hello there!"), "client_roots": rooted},
		`{"user_name": `+form("What is your name?", "name", "string")+`, "greeting": `+sampling("Generate a greeting", "50")+`,
			"client_roots": {"method": "roots/list", "params": {}}}`, "Hello there! Alice, with 1 roots")},
	{"input-required-result-multi-round", modernOnly, twoRounds},
	{"input-required-result-missing-input-response", modernOnly, asksAgain},
	{"input-required-result-non-tool-request", modernOnly, promptAsks},
	{"input-required-result-result-type", modernOnly, saysThatItAsks},
	{"input-required-result-unsupported-methods", modernOnly, listsAskNothing},
	{"input-required-result-tampered-state", modernOnly, refusesTamperedState},
	{"input-required-result-capability-check", modernOnly, asksForWhatClientsCan},
	{"input-required-result-ignore-extra-params", modernOnly, ignoresOtherAnswers},
	{"input-required-result-validate-input", modernOnly, refusesWhatIsNoAnswer},
}

func accepted(name string, value any) object {
	return object{"action": "accept", "content": object{name: value}}
}

func sampled(text string) object {
	return object{"role": "assistant", "model": "test-model", "stopReason": "endTurn", "content": object{"type": "text", "text": text}}
}

var rooted = object{"roots": []object{{"uri": "file:///test/root", "name": "Test Root"}}}

// form returns an input request for one field of a form.
func form(message, name, kind string) string {
	return `{"method": "elicitation/create", "params": {"message": "` + message + `", "requestedSchema": {
		"type": "object", "properties": {"` + name + `": {"type": "` + kind + `"}}, "required": ["` + name + `"]}}}`
}

func sampling(text, tokens string) string {
	return `{"method": "sampling/createMessage", "params": {"maxTokens": ` + tokens + `, "messages": [{
		"role": "user", "content": {"type": "text", "text": "` + text + `"}}]}}`
}

// checkInputRequired checks an input-required result, and returns its state.
func (v *visit) checkInputRequired(result object, requests string) any {
	v.Helper()
	if result["resultType"] != "input_required" {
		v.Fatalf("the result has no input requests: %v", result)
	}
	v.same("input requests", result["inputRequests"], requests)
	if state, ok := result["requestState"].(string); !ok || state == "" {
		v.Errorf("requestState = %v", result["requestState"])
	}
	return result["requestState"]
}

// checkComplete checks a complete result.
func (v *visit) checkComplete(result object, text string) {
	v.Helper()
	if result["resultType"] != "complete" {
		v.Fatalf("the result is not complete: %v", result)
	}
	v.same("content", result["content"], `[{"type": "text", "text": "`+text+`"}]`)
}

// round has a tool ask once on one connection, and answers on another.
func round(tool string, answers object, requests, text string) func(*visit) {
	return func(v *visit) {
		state := v.checkInputRequired(v.connect().call(tool, nil), requests)
		v.checkComplete(v.connect().call(tool, object{"inputResponses": answers, "requestState": state}), text)
	}
}

func twoRounds(v *visit) {
	const tool = "test_input_required_result_multi_round"
	c := v.connect()
	first := v.checkInputRequired(c.call(tool, nil), `{"step1": `+form("Step 1: What is your name?", "name", "string")+`}`)
	second := v.checkInputRequired(c.call(tool, object{"inputResponses": object{"step1": accepted("name", "Alice")}, "requestState": first}),
		`{"step2": `+form("Step 2: What is your favorite color?", "color", "string")+`}`)
	if first == second {
		v.Error("the state did not change")
	}
	v.checkComplete(c.call(tool, object{"inputResponses": object{"step2": accepted("color", "blue")}, "requestState": second}), "Alice likes blue")
}

const greets = "test_input_required_result_elicitation"

func asksAgain(v *visit) {
	result := v.connect().call(greets, object{"inputResponses": object{"wrong_key": accepted("data", "wrong")}})
	v.checkInputRequired(result, `{"user_name": `+form("What is your name?", "name", "string")+`}`)
}

func promptAsks(v *visit) {
	c := v.connect()
	params := object{"name": "test_input_required_result_prompt"}
	state := v.checkInputRequired(c.get("prompts/get", params), `{"user_context": `+form("What context should the prompt use?", "context", "string")+`}`)
	maps.Copy(params, object{"inputResponses": object{"user_context": accepted("context", "test context")}, "requestState": state})
	result := c.get("prompts/get", params)
	v.same("type", result["resultType"], `"complete"`)
	v.same("messages", result["messages"], `[{"role": "user", "content": {"type": "text", "text": "Use this context: test context"}}]`)
}

func saysThatItAsks(v *visit) {
	v.same("type", v.connect().call(greets, nil)["resultType"], `"input_required"`)
}

func listsAskNothing(v *visit) {
	c := v.connect()
	for _, method := range []string{"tools/list", "prompts/list"} {
		v.same("type of "+method, c.get(method, nil)["resultType"], `"complete"`)
	}
}

func refusesTamperedState(v *visit) {
	const tool = "test_input_required_result_tampered_state"
	c := v.connect()
	state := v.checkInputRequired(c.call(tool, nil), `{"confirm": `+form("Please confirm", "ok", "boolean")+`}`)
	f := c.askError("tools/call", object{
		"name": tool, "arguments": object{}, "inputResponses": object{"confirm": accepted("ok", true)}, "requestState": state.(string) + "-TAMPERED",
	})
	if f.Code != -32602 || strings.Contains(f.Message, state.(string)) {
		v.Errorf("error %d %s", f.Code, f.Message)
	}
}

func asksForWhatClientsCan(v *visit) {
	c := v.connect()
	for capability, requests := range map[string]string{
		"sampling":    `{"greeting": ` + sampling("Say hello", "50") + `}`,
		"elicitation": `{"user_name": ` + form("What is your name?", "name", "string") + `}`,
	} {
		v.checkInputRequired(c.call("test_input_required_result_capabilities", object{"_meta": object{metaCapabilities: object{capability: object{}}}}), requests)
	}
}

func ignoresOtherAnswers(v *visit) {
	v.checkComplete(v.connect().call(greets, object{"inputResponses": object{
		"user_name": accepted("name", "Alice"), "unknown_extra_key": accepted("foo", "bar"), "another_unexpected": accepted("baz", 123),
	}}), "Hello, Alice!")
}

func refusesWhatIsNoAnswer(v *visit) {
	c := v.connect()
	for _, responses := range []any{object{"user_name": 12345}, nil} {
		m := c.ask("tools/call", object{"name": greets, "arguments": object{}, "inputResponses": responses})
		if m.Error == nil && c.result(m)["resultType"] != "input_required" {
			v.Errorf("%v: result %s", responses, m.Result)
		}
	}
}
