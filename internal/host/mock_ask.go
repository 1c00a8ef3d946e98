package host

import (
	"encoding/json"
	"fmt"
)

// askObjects are what mocks call the methods that a client is asked by.
func askObjects() map[string]string {
	return map[string]string{"elicitation/create": "elicit", "sampling/createMessage": "sample", "roots/list": "roots"}
}

// Asked answers one thing that the client of a test is asked, by its key and
// its MCP method. It returns false when no mock does; the test tells then which
// one to add, with the example for its body, or with that of the method where it is "".
func (m *Mocks) Asked(key, method, example string) (answer json.RawMessage, ok bool) {
	object := askObjects()[method]
	m.mu.Lock()
	defer m.mu.Unlock()
	mock, ok := m.find(object, key)
	if !ok {
		if example == "" {
			example = map[string]string{"elicit": "json = {}", "sample": `text = ""`, "roots": "json = []"}[object]
		}
		_ = m.lacking(object, key, "{\n  "+example+"\n}") // the test tells it; nobody is refused here
		return nil, false
	}
	return askAnswer(object, mock.Body), true
}

// askAnswer returns the answer that a mock stands for: the whole of it, or what
// matters in it.
func askAnswer(object string, body []byte) json.RawMessage {
	var members map[string]json.RawMessage
	whole := json.Unmarshal(body, &members) == nil
	switch {
	case object == "elicit" && members["action"] == nil:
		return json.RawMessage(fmt.Sprintf(`{"action":"accept","content":%s}`, body))
	case object == "sample" && (!whole || members["content"] == nil):
		text, _ := json.Marshal(string(body)) // a string always encodes
		return json.RawMessage(fmt.Sprintf(`{"role":"assistant","content":{"type":"text","text":%s},"model":"mock","stopReason":"endTurn"}`, text))
	case object == "roots" && !whole:
		return json.RawMessage(fmt.Sprintf(`{"roots":%s}`, body))
	}
	return body
}
