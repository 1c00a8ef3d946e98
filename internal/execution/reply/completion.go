package reply

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/mcpd/mcpd/scripting"
)

// maxValues is how many values a completion may hold (2026-07-28
// server/utilities/completion, Completion Results).
const maxValues = 100

// Suggestions returns {"completion": …} of what the body of a completion
// returned: an array of strings, of which the first 100 are sent.
func Suggestions(r *scripting.Result) (json.RawMessage, error) {
	wrong := errors.New("the completion must return an array of strings")
	var returned []*string
	switch {
	case r.Kind == scripting.Nothing:
	case r.Kind != scripting.Value || json.Unmarshal(r.JSON, &returned) != nil:
		return nil, wrong
	}
	values := make([]string, len(returned))
	for i, v := range returned {
		if v == nil {
			return nil, wrong
		}
		values[i] = *v
	}
	return completion(values), nil
}

// Beginning returns {"completion": …} of the values that begin with what was
// typed, whatever its case.
func Beginning(values []string, typed string) json.RawMessage {
	var fit []string
	for _, v := range values {
		if len(v) >= len(typed) && strings.EqualFold(v[:len(typed)], typed) {
			fit = append(fit, v)
		}
	}
	return completion(fit)
}

func completion(values []string) json.RawMessage {
	sent := values[:min(len(values), maxValues)]
	if sent == nil {
		sent = []string{}
	}
	// Strings always encode.
	list, _ := json.Marshal(sent)
	b := appendMember([]byte(`{"completion":{`), "values", list)
	b = appendInt(b, "total", int64(len(values)))
	b = append(b, `,"hasMore":`...)
	if len(values) > maxValues {
		return append(b, "true}}"...)
	}
	return append(b, "false}}"...)
}
