package scripting

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// sampleMessage is a message to a model, as far as it tells of tools.
type sampleMessage struct {
	Role    string
	Content toolBlocks
}

// toolBlocks are the blocks of a message: one, or a list.
type toolBlocks []struct {
	Type      string
	ID        string
	ToolUseID string `json:"toolUseId"`
}

// UnmarshalJSON reads blocks.
func (b *toolBlocks) UnmarshalJSON(text []byte) error {
	if text[0] != '[' {
		text = append(append([]byte{'['}, text...), ']')
	}
	type list toolBlocks
	return json.Unmarshal(text, (*list)(b))
}

// ids returns the ids of the blocks of a kind, each with how often it is there.
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

// toolProblem says what keeps the messages in the params of a sampling from
// being a talk with tools: each use of a tool is followed by the message with
// its result, which holds results alone (2025-11-25 client/sampling, Message
// Content Constraints).
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

// problem says what is wrong with a message behind one that uses tools.
func (m *sampleMessage) problem(used map[string]int) string {
	results, uses := m.Content.ids("tool_result"), m.Content.ids("tool_use")
	for id, n := range results {
		if n > 1 || used[id] == 0 {
			return "each tool_result needs the toolUseId of a tool_use in the message before, once"
		}
	}
	for _, n := range uses {
		if n > 1 {
			return "each tool_use needs an id of its own"
		}
	}
	switch {
	case len(results) < len(used):
		return "each tool_use in the message before needs its tool_result here"
	case len(results) > 0 && (m.Role != "user" || len(results) < len(m.Content)):
		return "a message with a tool_result is of the user and holds nothing else"
	case len(uses) > 0 && m.Role != "assistant":
		return "a tool_use is of the assistant"
	}
	return ""
}
