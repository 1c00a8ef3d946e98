package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

// The MCP methods of the input requests that a call may send.
const (
	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"
)

// declined is the response of a user who declines, valid for every method.
const declined = `{"action":"decline"}`

// maxAsked bounds the rounds of input requests of one call, since a remote server could
// send them forever.
const maxAsked = 100

// answers responds to the input requests of a call: with the values of --answer or by
// asking the user at the terminal.
type answers struct {
	given map[string]json.RawMessage // values of --answer, by key
	used  map[string]bool
	asked int     // rounds of input requests so far
	talk  *dialog // nil without a terminal
}

func answersOf(e env, pairs []string) (*answers, error) {
	a := &answers{given: map[string]json.RawMessage{}, used: map[string]bool{}}
	for _, pair := range pairs {
		key, text, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, usageError("--answer takes KEY=JSON")
		}
		if _, twice := a.given[key]; twice {
			return nil, usageError("--answer %s is given twice", sanitize(key))
		}
		if err := engine.CheckArguments([]byte(`{"answer":` + text + `}`)); err != nil || !json.Valid([]byte(text)) {
			return nil, usageError("--answer %s: the value is not JSON; write text in double quotes, such as '\"yes\"'", sanitize(key))
		}
		a.given[key] = json.RawMessage(text)
	}
	if e.stdinIsTerminal {
		a.talk = newDialog(e)
	}
	return a, nil
}

// approvalKey is the key of the input request that asks for approval.
const approvalKey = "approval"

// can returns the kinds of input requests that the server may send. It leaves out
// "approval" if no approval can be given, so that the server does not wait for one and
// its audit log records why.
func (a *answers) can() []string {
	can := []string{"form", "url", "sample", "roots"}
	if a.talk != nil || a.given[approvalKey] != nil {
		can = append(can, "approval")
	}
	return can
}

func (a *answers) to(requests []call.AskRequest) (map[string]json.RawMessage, error) {
	if a.asked++; a.asked > maxAsked {
		return nil, findingsError("the call has asked for input %d times; giving up", maxAsked)
	}
	made := make(map[string]json.RawMessage, len(requests))
	var missing []string
	for _, r := range requests {
		given, known := a.given[r.Key]
		switch {
		case known:
			answer, err := responseOf(r, given)
			if err != nil {
				return nil, usageError("--answer %s: %v", sanitize(r.Key), err)
			}
			made[r.Key], a.used[r.Key] = answer, true
		case a.talk != nil:
			answer, err := a.talk.ask(r)
			if err != nil {
				return nil, err
			}
			made[r.Key] = answer
		default:
			missing = append(missing, fmt.Sprintf("%s (%s)", sanitize(r.Key), exampleOf(r)))
		}
	}
	if missing != nil {
		return nil, findingsError("the call asks for input: answer at a terminal, or with --answer KEY=JSON for %s", strings.Join(missing, ", "))
	}
	return made, nil
}

// tellUnused warns of --answer flags that no input request matched: they may be typos.
func (a *answers) tellUnused(e env) {
	for _, key := range slices.Sorted(maps.Keys(a.given)) {
		if !a.used[key] {
			fmt.Fprintf(e.stderr, "mcpd: --answer %s matches no input request\n", sanitize(key))
		}
	}
}

// exampleOf describes the valid answers to a request.
func exampleOf(r call.AskRequest) string {
	switch r.Method {
	case methodSample:
		return `a model's text, such as '"text"', or false`
	case methodRoots:
		return `a list of URIs, such as '["file:///home/me"]', or false`
	}
	form, err := formOf(r.Params)
	if err != nil || len(form.fields) == 0 {
		return "true or false"
	}
	var names []string
	for _, f := range form.fields {
		names = append(names, f.name)
	}
	return sanitize("an object of " + strings.Join(names, ", ") + ", or false")
}

// responseOf returns the response that a value of --answer means. A value is a full
// response or its essential part; true accepts and false declines.
func responseOf(r call.AskRequest, given json.RawMessage) (json.RawMessage, error) {
	given = bytes.TrimSpace(given)
	var members map[string]json.RawMessage
	isObject := json.Unmarshal(given, &members) == nil && members != nil
	var text string
	isText := given[0] == '"' && json.Unmarshal(given, &text) == nil
	if string(given) == "false" || string(given) == "null" {
		return json.RawMessage(declined), nil
	}
	switch r.Method {
	case methodElicit:
		switch {
		case isObject && members["action"] != nil:
			return given, nil
		case isObject:
			return json.RawMessage(`{"action":"accept","content":` + string(given) + `}`), nil
		case string(given) == "true", text == "accept":
			return json.RawMessage(`{"action":"accept"}`), nil
		case text == "decline", text == "cancel":
			return json.RawMessage(`{"action":"` + text + `"}`), nil
		}
		return nil, errors.New("write true, false, or the object that fills in the form")
	case methodSample:
		switch {
		case isText:
			return sampled(text), nil
		case isObject:
			return given, nil
		}
		return nil, errors.New("write the text of the model, or false")
	}
	var roots []any
	switch {
	case isObject:
		return given, nil
	case json.Unmarshal(given, &roots) == nil && given[0] == '[':
		return rootsOf(roots)
	}
	return nil, errors.New("write a list of URIs, or false")
}

// rootsOf returns a roots/list response. Each element is a URI or an MCP root object.
func rootsOf(list []any) (json.RawMessage, error) {
	for i, root := range list {
		if uri, isText := root.(string); isText {
			list[i] = map[string]any{"uri": uri}
		}
	}
	return json.Marshal(map[string]any{"roots": list})
}

// sampled returns a sampling response with the text.
func sampled(text string) json.RawMessage {
	// A map of strings always encodes.
	made, _ := json.Marshal(map[string]any{
		"role": "assistant", "content": map[string]string{"type": "text", "text": text}, "model": "mcpd-call", "stopReason": "endTurn",
	})
	return made
}
