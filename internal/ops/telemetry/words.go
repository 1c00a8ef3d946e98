package telemetry

import "slices"

// other stands for all that a label does not name.
const other = "other"

// words are the values that a label may have. The last is "other".
type words struct {
	list  []string
	index map[string]int
}

func newWords(list ...string) words {
	w := words{list: append(slices.Clone(list), other), index: make(map[string]int, len(list))}
	for i, word := range list {
		w.index[word] = i
	}
	return w
}

// of returns the place of a word, that of "other" for one that is not known.
func (w words) of(word string) int {
	if i, known := w.index[word]; known {
		return i
	}
	return len(w.list) - 1
}

// vocabulary is the words of all labels with a fixed set of values.
type vocabulary struct {
	kinds, vias, outcomes, loads, operations, answers, transports words
}

func newVocabulary() vocabulary {
	codes := []string{"INVALID_INPUT", "TOOL_NOT_FOUND", "POLICY_DENIED", "EXECUTION_ERROR", "TIMEOUT"}
	// A host call is answered by a code of its own, or by that of the call it makes.
	answers := append([]string{"ok", "NOT_FOUND", "OUTSIDE_ROOT", "NOT_GRANTED", "TOO_LARGE", "DENIED", "UNAVAILABLE", "INVALID", "CAPABILITY", "CONSENT", "ASKS", "suspended"}, codes...)
	return vocabulary{
		kinds:      newWords("tool", "resource", "prompt", "completion"),
		vias:       newWords("client", "tool", "code", "test"),
		outcomes:   newWords(append([]string{"ok", "input_required", "rehearsed"}, codes...)...),
		loads:      newWords("published", "unchanged", "failed"),
		operations: newWords("http", "fs", "exec", "sql", "kv", "ask", "call", "env", "secret", "module", "log", "console", "progress", "disconnect"),
		answers:    newWords(answers...),
		transports: newWords("streamable", "sse", "websocket", "stdio", "rest"),
	}
}
