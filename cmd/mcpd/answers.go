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

// The methods by which a call asks.
const (
	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"
)

// declined is the answer of a person who does not want to answer, to every method.
const declined = `{"action":"decline"}`

// maxAsked bounds how often a call may ask: a server that another person runs might never
// come to an end.
const maxAsked = 100

// answers are what call answers with what it is asked: from the command line, or from the
// person at the terminal.
type answers struct {
	given map[string]json.RawMessage // of --answer, by the keys
	used  map[string]bool
	asked int     // how often the call has asked
	talk  *dialog // nil where no person can be asked
}

func answersOf(e env, pairs []string) (*answers, error) {
	a := &answers{given: map[string]json.RawMessage{}, used: map[string]bool{}}
	for _, pair := range pairs {
		key, text, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, usage("--answer takes KEY=JSON")
		}
		if _, twice := a.given[key]; twice {
			return nil, usage("--answer %s is given twice", printable(key))
		}
		if err := engine.CheckArguments([]byte(`{"answer":` + text + `}`)); err != nil || !json.Valid([]byte(text)) {
			return nil, usage("--answer %s: the value is no JSON; text is written in double quotes, such as '\"yes\"'", printable(key))
		}
		a.given[key] = json.RawMessage(text)
	}
	if e.stdinIsTerminal {
		a.talk = newDialog(e)
	}
	return a, nil
}

// approvalKey is the key of the question whether a call is approved.
const approvalKey = "approval"

// can says what a server may ask. Of an approval that nobody can give it is not to wait for
// an answer, and its audit log says so: its key is known without asking.
func (a *answers) can() []string {
	can := []string{"form", "url", "sample", "roots"}
	if a.talk != nil || a.given[approvalKey] != nil {
		can = append(can, "approval")
	}
	return can
}

func (a *answers) to(requests []call.AskRequest) (map[string]json.RawMessage, error) {
	if a.asked++; a.asked > maxAsked {
		return nil, findings("the call has asked %d times, and goes on asking", maxAsked)
	}
	made := make(map[string]json.RawMessage, len(requests))
	var missing []string
	for _, r := range requests {
		given, known := a.given[r.Key]
		switch {
		case known:
			answer, err := responseOf(r, given)
			if err != nil {
				return nil, usage("--answer %s: %v", printable(r.Key), err)
			}
			made[r.Key], a.used[r.Key] = answer, true
		case a.talk != nil:
			answer, err := a.talk.ask(r)
			if err != nil {
				return nil, err
			}
			made[r.Key] = answer
		default:
			missing = append(missing, fmt.Sprintf("%s (%s)", printable(r.Key), exampleOf(r)))
		}
	}
	if missing != nil {
		return nil, findings("the call asks, and nothing answers: answer at a terminal, or with --answer KEY=JSON for %s", strings.Join(missing, ", "))
	}
	return made, nil
}

// tellUnused notes answers that nothing asked for, which may not be meant.
func (a *answers) tellUnused(e env) {
	for _, key := range slices.Sorted(maps.Keys(a.given)) {
		if !a.used[key] {
			fmt.Fprintf(e.stderr, "mcpd: nothing asked for the --answer %s\n", printable(key))
		}
	}
}

// exampleOf says what is asked, and how it may be answered.
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
	return printable("an object of " + strings.Join(names, ", ") + ", or false")
}

// responseOf returns the answer to a request that a value of --answer stands for: the whole
// of it, or what matters in it. true and false consent and refuse.
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

// rootsOf returns the answer of a client with such roots: URIs, or objects as MCP has them.
func rootsOf(list []any) (json.RawMessage, error) {
	for i, root := range list {
		if uri, isText := root.(string); isText {
			list[i] = map[string]any{"uri": uri}
		}
	}
	return json.Marshal(map[string]any{"roots": list})
}

// sampled is the answer of a model that has written a text.
func sampled(text string) json.RawMessage {
	// Text always encodes.
	made, _ := json.Marshal(map[string]any{
		"role": "assistant", "content": map[string]string{"type": "text", "text": text}, "model": "mcpd-call", "stopReason": "endTurn",
	})
	return made
}
