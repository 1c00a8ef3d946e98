package console

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcpd/mcpd/internal/ops/control"
)

// questionView is a question of a call as a form.
type questionView struct {
	control.TryQuestion
	Scope   string // the prefix of the names of its inputs
	Asked   int    // the number of the ask
	Message string
	URL     string // a page that the person should visit
	Widget  string // form, text, roots or json
	Form    form
	Prompt  string // of a sample
}

// The MCP methods of questions.
const (
	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"
)

// question are the parameters of a question.
type question struct {
	Message         string          `json:"message"`
	Mode            string          `json:"mode"`
	URL             string          `json:"url"`
	RequestedSchema json.RawMessage `json:"requestedSchema"`
}

// questionOf decodes the parameters of a question. Parameters of another form are empty.
func questionOf(q control.TryQuestion) question {
	var p question
	_ = json.Unmarshal(q.Params, &p)
	return p
}

// scope returns the prefix of the names of the inputs of a question, by its index.
func scope(i int) string { return fmt.Sprintf("q/%d/", i) }

func newQuestion(i int, q control.TryQuestion, asked int) questionView {
	p := questionOf(q)
	v := questionView{TryQuestion: q, Scope: scope(i), Asked: asked, Message: p.Message}
	switch q.Method {
	case methodElicit:
		v.Widget, v.URL = "form", p.URL
		if p.URL == "" && asksForValues(p.RequestedSchema) {
			v.Form = formOf(v.Scope, p.RequestedSchema, nil, nil)
		}
	case methodSample:
		v.Widget, v.Prompt = "text", prettyJSON(q.Params)
	case methodRoots:
		v.Widget = "roots"
	default:
		v.Widget = "json"
	}
	return v
}

// asksForValues reports whether the form of a question has fields. An approval has none.
func asksForValues(document json.RawMessage) bool {
	var s struct{ Properties map[string]json.RawMessage }
	return len(document) > 0 && (json.Unmarshal(document, &s) != nil || len(s.Properties) > 0)
}

// answerOf returns the answers of a posted form to questions. problem says what is wrong with it.
func answerOf(questions []control.TryQuestion, posted map[string][]string) (answer control.TryAnswer, problem string) {
	answer.Responses = map[string]json.RawMessage{}
	action := "accept"
	if a := posted["action"]; len(a) == 1 && (a[0] == "decline" || a[0] == "cancel") {
		action = a[0]
	}
	for i, q := range questions {
		within := map[string][]string{}
		for name, values := range posted {
			if rest, ok := strings.CutPrefix(name, scope(i)); ok {
				within[rest] = values
			}
		}
		var response any
		switch p := questionOf(q); {
		case action != "accept":
			response = map[string]any{"action": action}
		case q.Method == methodElicit && len(within["json"]) == 1: // its schema has no form
			content, isObject := decodeJSON([]byte(within["json"][0])).(map[string]any)
			if !isObject {
				return answer, "The answer is not a JSON object."
			}
			response = map[string]any{"action": "accept", "content": content}
		case q.Method == methodElicit && p.URL == "" && len(p.RequestedSchema) > 0:
			content, invalid := decodeForm(p.RequestedSchema, within)
			if invalid {
				return answer, "One of the values is not valid."
			}
			response = map[string]any{"action": "accept", "content": content}
		case q.Method == methodElicit:
			response = map[string]any{"action": "accept"}
		case q.Method == methodSample:
			response = map[string]any{"role": "assistant", "content": map[string]string{"type": "text", "text": strings.Join(within["text"], "\n")}, "model": "mcpd-console", "stopReason": "endTurn"}
		case q.Method == methodRoots:
			roots := []map[string]string{}
			for _, uri := range strings.Fields(strings.Join(within["text"], "\n")) {
				roots = append(roots, map[string]string{"uri": uri})
			}
			response = map[string]any{"roots": roots}
		default:
			return answer, "The console cannot answer this kind of question; decline it."
		}
		encoded, err := json.Marshal(response)
		if err != nil {
			return answer, "The answer cannot be encoded."
		}
		answer.Responses[q.Key] = encoded
	}
	return answer, ""
}
