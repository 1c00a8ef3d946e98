package host

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mcpd/mcpd/scripting"
)

// Mock is the answer to one host call of a test.
type Mock struct {
	// Object is the granted object and Request identifies the call:
	//
	//	http.NAME       method and target, such as "GET /customers/C-1042"
	//	fs.NAME         operation and path, such as "readText app.log"
	//	exec.NAME       the arguments on one line; Body is {"code","stdout","stderr"}
	//	sql.NAME        the name of the statement, and the path of a chosen file
	//	kv.NAME         the key; Body is the stored value
	//	modules.NAME    the name of the function
	//	env, secrets    the name of the variable or secret
	//	tools           the name of the tool; Body is its result
	//	elicit, sample, roots    the key of the input request
	Object, Request string
	Status          int
	Headers         map[string]string
	// Body is nil if there is none.
	Body []byte
	// Error is the code of an error, or "" if the mock answers.
	Error string
}

// Mocks answer the host calls of a test and record them.
type Mocks struct {
	mocks []Mock

	mu      sync.Mutex
	calls   []string
	missing []string
	used    []bool // by index of mocks
	kv      mockKV
}

func NewMocks(known []Mock) *Mocks { return &Mocks{mocks: known, used: make([]bool, len(known))} }

// Calls returns the host calls so far, in order, such as "http.crm GET /customers/C-1042".
func (m *Mocks) Calls() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.calls)
}

// Missing returns the mock blocks that the host calls would have needed.
func (m *Mocks) Missing() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.missing)
}

// Unused returns the mocks that answered no call.
func (m *Mocks) Unused() []Mock {
	m.mu.Lock()
	defer m.mu.Unlock()
	var unused []Mock
	for i, used := range m.used {
		if !used {
			unused = append(unused, m.mocks[i])
		}
	}
	return unused
}

// find records a call and returns its mock. The caller holds mu.
func (m *Mocks) find(object, request string) (Mock, bool) {
	call := object
	if request != "" {
		call += " " + request
	}
	m.calls = append(m.calls, call)
	return m.lookup(object, request)
}

// lookup is find without recording a call.
func (m *Mocks) lookup(object, request string) (Mock, bool) {
	i := slices.IndexFunc(m.mocks, func(mock Mock) bool { return mock.Object == object && mock.Request == request })
	if i < 0 {
		return Mock{}, false
	}
	m.used[i] = true
	return m.mocks[i], true
}

// reply records a call and returns its mock, or the mocked or missing-mock error. The caller
// holds mu.
func (m *Mocks) reply(object, request, example string) (Mock, error) {
	mock, ok := m.find(object, request)
	switch {
	case !ok:
		return mock, m.missingMock(object, request, example)
	case mock.Error != "":
		return mock, mock.mockError()
	}
	return mock, nil
}

// missingMock returns the error for a call without a mock, and records the mock block to add.
// example is its body. The caller holds mu.
func (m *Mocks) missingMock(object, request, example string) error {
	block := fmt.Sprintf("mock %q %q %s", object, request, example)
	if !slices.Contains(m.missing, block) { // one block answers every call
		m.missing = append(m.missing, block)
	}
	return &scripting.HostError{Code: scripting.Unavailable, Message: strings.TrimSpace("no mock for " + object + " " + request)}
}

// httpResponse answers a request under an http grant. Without a mock it fails, and the test
// reports the block to add.
func (m *Mocks) httpResponse(name string, payload []byte) ([]byte, error) {
	var request struct {
		Method string `json:"method"`
		URL    string `json:"url"`
	}
	if err := json.Unmarshal(payload, &request); err != nil {
		return nil, &scripting.HostError{Code: scripting.Invalid, Message: "the request cannot be read"}
	}
	target := request.URL
	if parsed, err := url.Parse(request.URL); err == nil {
		target = parsed.RequestURI()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	mock, err := m.reply("http."+name, request.Method+" "+target, "{\n  json = {}\n}")
	if err != nil {
		return nil, err
	}
	return encodeMockResponse(mock, request.URL)
}

func (m Mock) mockError() error {
	return &scripting.HostError{Code: m.Error, Message: m.Request + ": the mock refuses"}
}

func encodeMockResponse(mock Mock, target string) ([]byte, error) {
	headers := make(map[string]string, len(mock.Headers))
	for name, value := range mock.Headers {
		headers[strings.ToLower(name)] = value
	}
	answer := map[string]any{"status": mock.Status, "headers": headers, "url": target}
	if utf8.Valid(mock.Body) {
		answer["body"] = string(mock.Body)
	} else {
		answer["body64"] = base64.StdEncoding.EncodeToString(mock.Body)
	}
	encoded, err := json.Marshal(answer)
	if err != nil {
		return nil, fmt.Errorf("encode mock: %w", err)
	}
	return encoded, nil
}

// AnswerInput answers an input request of a test, by key and MCP method. It returns false
// without a mock; then the test reports the block to add, with example as its body, or the
// default body of the method if example is "".
func (m *Mocks) AnswerInput(key, method, example string) (answer json.RawMessage, ok bool) {
	object := map[string]string{"elicitation/create": "elicit", "sampling/createMessage": "sample", "roots/list": "roots"}[method]
	m.mu.Lock()
	defer m.mu.Unlock()
	mock, ok := m.find(object, key)
	if !ok {
		example = cmp.Or(example, map[string]string{"elicit": "json = {}", "sample": `text = ""`, "roots": "json = []"}[object])
		_ = m.missingMock(object, key, "{\n  "+example+"\n}") // only recorded: no call fails here
		return nil, false
	}
	return inputResponse(object, mock.Body), true
}

// inputResponse returns the response of a mock, which may be complete or only the essential
// part.
func inputResponse(object string, body []byte) json.RawMessage {
	var members map[string]json.RawMessage
	whole := json.Unmarshal(body, &members) == nil
	switch {
	case object == "elicit" && members["action"] == nil:
		return json.RawMessage(fmt.Sprintf(`{"action":"accept","content":%s}`, body))
	case object == "sample" && (!whole || members["content"] == nil):
		text, _ := json.Marshal(string(body)) // strings always encode
		return json.RawMessage(fmt.Sprintf(`{"role":"assistant","content":{"type":"text","text":%s},"model":"mock","stopReason":"endTurn"}`, text))
	case object == "roots" && !whole:
		return json.RawMessage(fmt.Sprintf(`{"roots":%s}`, body))
	}
	return body
}

// CallTool answers a nested tool call. A test covers one tool; nested tools have their own
// tests. The error is a [scripting.HostError].
func (m *Mocks) CallTool(name string) ([]byte, error) { return m.value("tools", name) }

// value returns the body of a mock, regardless of arguments.
func (m *Mocks) value(object, request string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mock, err := m.reply(object, request, "{\n  json = {}\n}")
	return mock.Body, err
}
